"""Fixed-step simulation."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from laws import relative
from random_robots import random_robot


def energy(robot, q, v):
    return cj.kinetic_energy(robot, q, v) + cj.potential_energy(robot, q)


@pytest.mark.parametrize("native", [pytest.param(True, marks=pytest.mark.native), False])
def test_steps_are_the_formulas(native):
    rng = np.random.default_rng(0)
    robot = random_robot(rng, 5, ("revolute", "spherical", "free", "planar", "prismatic"))
    q, v, tau = robot.random(rng, 3), rng.normal(size=(3, robot.nv)), rng.normal(size=(3, 4, robot.nv))
    qs, vs = cj.rollout(robot, q, v, tau, dt=1e-2)
    assert qs.shape == (3, 5, robot.nq)
    for k in range(4):
        v = v + 1e-2 * cj.forward_dynamics(robot, q, v, tau[:, k])
        q = robot.integrate(q, 1e-2 * v)
        assert relative(vs[:, k + 1], v) < 1e-10
        assert relative(qs[:, k + 1], q) < 1e-10


@pytest.mark.native
@pytest.mark.slow
def test_rk4_is_of_fourth_order():
    rng = np.random.default_rng(1)
    robot = random_robot(rng, 4, ("revolute", "spherical", "free", "planar"), tree=False)
    q, v = robot.random(rng), 0.3 * rng.normal(size=robot.nv)
    end = {n: cj.rollout(robot, q, v, steps=n, dt=0.4 / n, method="rk4")[1][-1] for n in (20, 40, 160)}
    order = np.log2(np.abs(end[20] - end[160]).max() / np.abs(end[40] - end[160]).max())
    assert 3.7 < order < 4.5


@pytest.mark.native
def test_euler_keeps_energy_without_trend():
    robot = cj.load("planar2r")
    qs, vs = cj.rollout(robot, [0.3, 0.2], [0.0, 0.0], steps=4000, dt=1e-3)
    e = energy(robot, qs, vs)
    assert np.abs(e[2000:].mean() - e[:2000].mean()) < 0.02 * np.ptp(cj.potential_energy(robot, qs))


@pytest.mark.parametrize("native", [pytest.param(True, marks=pytest.mark.native), False])
def test_a_policy_is_traced_into_the_kernel(native):
    robot = cj.load("planar2r")
    target = np.array([0.5, -0.3])

    def policy(robot, q, v, t):
        return cj.gravity_force(robot, q) + 40 * (target - q) - 12 * v

    steps = 5000 if native else 1000  # as written each step takes milliseconds
    qs, vs = cj.rollout(robot, np.zeros((7, 2)), np.zeros(2), steps=steps, dt=10 / steps, policy=policy)
    assert np.abs(qs[:, -1] - target).max() < 1e-3
    assert np.abs(vs[:, -1]).max() < 1e-3


@pytest.mark.native
def test_all_steps_run_in_one_kernel(monkeypatch):
    """The compiled step is not called from Python at all."""
    from coadjoint.kernel.runtime.function import CompiledFunction

    calls = []
    steps = CompiledFunction.steps
    monkeypatch.setattr(CompiledFunction, "steps", lambda self, *args: calls.append(args[1][0].shape[1]) or steps(self, *args))
    robot = cj.load("planar2r")
    qs, _ = cj.rollout(robot, np.zeros((5, 2)), np.zeros(2), steps=30, dt=1e-3, threads=1)
    assert calls == [30]
    assert np.all(np.isfinite(qs))


def test_time_reaches_the_policy():
    slider = cj.Robot("slider", [cj.Link.solid("cart", "base", cj.Joint.prismatic((1, 0, 0)), mass=2.0)])
    _, vs = cj.rollout(slider, [0.0], [0.0], steps=100, dt=0.01, policy=lambda robot, q, v, t: 6.0 * t + 0.0 * v)
    assert vs[-1, 0] == pytest.approx(3 * 0.01**2 * sum(range(100)), rel=1e-12)


def test_errors():
    robot = cj.load("planar2r")
    zero = np.zeros(2)
    for options, message in (
        ({"dt": 0.01}, "steps is None"),
        ({"dt": -1, "steps": 3}, "dt is -1"),
        ({"dt": 0.01, "steps": 3, "method": "leapfrog"}, "method is 'leapfrog'"),
        ({"dt": 0.01, "tau": np.zeros((3, 2)), "policy": lambda *x: 0}, "both tau and policy"),
        ({"dt": 0.01, "tau": np.zeros((3, 2)), "steps": 4}, r"tau has shape \(3, 2\)"),
        ({"dt": 0.01, "tau": np.zeros(3)}, r"tau has shape \(3,\)"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            cj.rollout(robot, zero, zero, **options)
    qs, _ = cj.rollout(robot, zero, zero, steps=0, dt=0.1)
    assert qs.shape == (1, 2)


def test_steps_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 5, ("revolute", "prismatic"), tree=False, armature=True)
    model = cj.interop.mujoco.to_mjmodel(robot)
    model.opt.timestep = 2e-3
    for method, integrator in (("euler", mujoco.mjtIntegrator.mjINT_EULER), ("rk4", mujoco.mjtIntegrator.mjINT_RK4)):
        model.opt.integrator = int(integrator)
        data = mujoco.MjData(model)
        q, v, tau = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=(20, robot.nv))
        data.qpos[:], data.qvel[:] = q, v
        qs, vs = cj.rollout(robot, q, v, tau, dt=2e-3, method=method)
        for k in range(20):
            data.qfrc_applied[:] = tau[k]
            mujoco.mj_step(model, data)
            assert relative(qs[k + 1], data.qpos) < 1e-10
            assert relative(vs[k + 1], data.qvel) < 1e-10


def test_fresh_memory_is_begun_bit_by_bit(monkeypatch):
    """So that an interrupt is answered; the states are the same, also of forces that are one for all and not copied."""
    robot, rng = cj.load("planar2r"), np.random.default_rng(0)
    q, tau = rng.normal(size=(5, 3, 2)), rng.normal(size=(4, 2))
    whole = {m: cj.rollout(robot, q, np.zeros(2), tau, dt=1e-2, method=m) for m in ("euler", "variational")}
    monkeypatch.setattr("coadjoint.motion.rollout.TOUCHED", 300)
    monkeypatch.setattr("coadjoint.motion.rollout.PAGE", 100)
    for method, (qs, vs) in whole.items():
        again = cj.rollout(robot, q, np.zeros(2), np.broadcast_to(tau, (5, 3, 4, 2)), dt=1e-2, method=method)
        assert np.array_equal(again[0], qs)
        assert np.array_equal(again[1], vs)
    turned = cj.rollout(robot, q, np.zeros(2), np.asfortranarray(tau), dt=1e-2)
    assert np.array_equal(turned[0], whole["euler"][0])
