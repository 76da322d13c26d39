"""Variational integration: the discrete laws, its order, what it conserves, and constraints over many steps."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Constraint
from coadjoint.motion import variational
from coadjoint.motion.discrete_mechanics import coadjoint, momentum_and_force
from coadjoint.robot.zoo.textbook import planar_nr
from random_robots import MOVING, random_robot


def energy(robot, q, v):
    return cj.kinetic_energy(robot, q, v) + cj.potential_energy(robot, q)


def one_step(robot, q, v, h, **options):
    """q⁺, v⁺ and p⁺ of one step as written."""
    p = cj.mass_matrix(robot, q) @ v
    q, p, _, left = variational.step(robot, q, p, v, np.array([h]), **options)
    assert left < 1e-9
    return q, cj.mass_matrix_inverse(robot, q) @ p, p


@pytest.mark.parametrize("kind", MOVING)
def test_momentum_and_force_are_derivatives_of_the_lagrangian(kind):
    """p = ∂T/∂v, f = ∂(T - U)/∂q, against the exact derivative of the traced energies."""
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 4, (kind, "revolute"), tree=True, armature=True)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    p, f = momentum_and_force(robot, q, v)

    def lagrangian(robot, q, v):
        return cj.kinetic_energy(robot, q, v) - cj.potential_energy(robot, q)

    np.testing.assert_allclose(p, cj.mass_matrix(robot, q) @ v, atol=1e-11)
    np.testing.assert_allclose(f, cj.differential(lagrangian, "q")(robot, q, v), rtol=1e-9, atol=1e-10)


def test_force_follows_mimic_joints():
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 5, ("revolute", "prismatic"), tree=True, mimic=True)
    assert robot.mimics
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    _, f = momentum_and_force(robot, q, v)
    lagrangian = lambda robot, q, v: cj.kinetic_energy(robot, q, v) - cj.potential_energy(robot, q)
    np.testing.assert_allclose(f, cj.differential(lagrangian, "q")(robot, q, v), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "kinds", [("revolute", "prismatic"), ("spherical", "universal"), ("planar", "revolute"), ("free", "helical")]
)
def test_the_step_is_stationary_for_the_discrete_action(kinds):
    """δ(L_d(q₀, q₁) + L_d(q₁, q₂)) = 0 for every variation of q₁, L_d as in the docstring, differentiated numerically."""
    rng = np.random.default_rng(11)
    robot = random_robot(rng, 2, kinds, tree=False, armature=True)
    for link in robot.links:  # armature along axes that turn is not part of a Lagrangian: see test_armature_of_group_joints
        if link.joint.kind in ("spherical", "planar", "free"):
            robot = robot.with_joint(link.joint.name, armature=0)
    h, q0, v0 = 0.01, robot.random(rng), 0.5 * rng.normal(size=robot.nv)
    q1, v1, _ = one_step(robot, q0, v0, h)
    q2, _, _ = one_step(robot, q1, v1, h)

    def discrete_lagrangian(a, b):
        xi = robot.difference(a, b)
        m = robot.integrate(a, xi / 2)
        return h * (cj.kinetic_energy(robot, m, xi / h) - cj.potential_energy(robot, m))

    def action(x):
        q = robot.integrate(q1, x)
        return discrete_lagrangian(q0, q) + discrete_lagrangian(q, q2)

    d = 1e-4
    slope = np.array([(action(d * e) - action(-d * e)) / (2 * d) for e in np.eye(robot.nv)])
    each = np.array(
        [(discrete_lagrangian(q0, robot.integrate(q1, d * e)) - discrete_lagrangian(q0, q1)) / d for e in np.eye(robot.nv)]
    )
    assert np.abs(slope).max() < 1e-5 * np.abs(each).max()


def test_motions_obey_the_principle_of_lagrange_and_dalembert():
    """Žefran & Bullo (28): d/ds ∫ L dt + ∫ ⟨Y, δq⟩ dt = 0 for variations that vanish at both ends."""
    robot, force, end = cj.load("planar2r"), np.array([1.5, -0.7]), 0.5
    motion = cj.simulate(robot, [0.3, 0.2], [0.5, -1.0], [0.0, end], force, tolerance=1e-12)
    x, weights = np.polynomial.legendre.leggauss(40)
    t, weights = end / 2 * (x + 1), end / 2 * weights
    q, v = motion(t)
    shape, slope = np.sin(np.pi * t / end) * t, np.pi / end * np.cos(np.pi * t / end) * t + np.sin(np.pi * t / end)
    for e in (np.array([1.0, 0.0]), np.array([0.3, -1.0])):

        def action(s, e=e):
            a, b = q + s * shape[:, None] * e, v + s * slope[:, None] * e
            return weights @ (cj.kinetic_energy(robot, a, b) - cj.potential_energy(robot, a))

        d = 1e-4
        change = (8 * (action(d) - action(-d)) - action(2 * d) + action(-2 * d)) / (12 * d)
        work = weights @ (shape * (force @ e))
        assert abs(work) > 0.01
        assert change + work == pytest.approx(0.0, abs=1e-9)


def test_the_map_is_symplectic():
    """Jᵀ Ω J = Ω for the derivative J of (q, p) -> (q⁺, p⁺), by differences of fourth order."""
    rng = np.random.default_rng(2)
    robot = random_robot(rng, 2, ("revolute", "prismatic"), tree=False)
    n, h = robot.nv, 0.02
    q, v = robot.random(rng), rng.normal(size=n)
    p = cj.mass_matrix(robot, q) @ v

    def moved(x):
        q, p, _, _ = variational.step(robot, x[:n], x[n:], v, np.array([h]))
        return np.concatenate([q, p])

    x, d = np.concatenate([q, p]), 1e-5
    stencil = lambda e: (8 * (moved(x + d * e) - moved(x - d * e)) - moved(x + 2 * d * e) + moved(x - 2 * d * e)) / (12 * d)
    J = np.stack([stencil(e) for e in np.eye(2 * n)], axis=1)
    omega = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    np.testing.assert_allclose(J.T @ omega @ J, omega, atol=1e-8)
    assert np.abs(J - np.eye(2 * n)).max() > 1e-3


@pytest.mark.parametrize("kinds", [("revolute", "prismatic"), ("free", "spherical"), ("planar", "universal")])
def test_the_step_is_symmetric(kinds):
    """A step back undoes a step."""
    rng = np.random.default_rng(4)
    robot = random_robot(rng, 2, kinds, tree=False)
    q0, v0 = robot.random(rng), rng.normal(size=robot.nv)
    q1, v1, _ = one_step(robot, q0, v0, 0.01)
    q2, v2, _ = one_step(robot, q1, v1, -0.01)
    assert np.abs(robot.difference(q0, q2)).max() < 1e-11
    np.testing.assert_allclose(v2, v0, atol=1e-9)


def test_momentum_of_a_free_body_is_conserved():
    """Noether: without gravity the momentum in space stays, to rounding, and so does ‖p‖ of a body that turns."""
    robot = cj.load("floating_body").with_numbers(gravity=np.zeros(3))
    rng = np.random.default_rng(1)
    q, v = robot.random(rng), rng.normal(size=6)
    before = cj.momentum(robot, q, v)
    p = cj.mass_matrix(robot, q) @ v
    w, h = v, np.array([0.02])
    for _ in range(20):
        q, p, w, _ = variational.step(robot, q, p, w, h)
    np.testing.assert_allclose(cj.momentum(robot, q, cj.mass_matrix_inverse(robot, q) @ p), before, atol=1e-12)
    np.testing.assert_allclose(coadjoint(robot, 0.0 * p, p), p, atol=1e-15)


@pytest.mark.native
@pytest.mark.parametrize(("method", "order"), [("variational", 2), ("symplectic", 4)])
def test_order(method, order):
    """Against the adaptive integrator, on a tree with joints of several freedoms."""
    rng = np.random.default_rng(8)
    robot = random_robot(rng, 2, ("spherical", "revolute"), tree=False)
    q, v = robot.random(rng), 0.5 * rng.normal(size=robot.nv)
    true = cj.simulate(robot, q, v, [0.0, 0.4], tolerance=1e-12)
    error = []
    for step in (0.01, 0.005):
        found = cj.simulate(robot, q, v, [0.0, 0.4], method=method, step=step)
        error.append(np.abs(robot.difference(true.q[-1], found.q[-1])).max() + np.abs(true.v[-1] - found.v[-1]).max())
    assert order - 0.3 < np.log2(error[0] / error[1]) < order + 0.7


@pytest.mark.native
@pytest.mark.parametrize(
    ("name", "step", "tilt"), [("planar2r", 2e-3, 1.0), pytest.param("panda", 1e-3, 0.3, marks=pytest.mark.slow)]
)
def test_energy_has_no_trend(name, step, tilt):
    """The mean energy of late stretches is that of early ones, far below its oscillation; `benchmarks.long_runs` goes to 10⁶ steps."""
    robot = cj.load(name)
    q = robot.neutral() + tilt * np.linspace(0.5, 1.0, robot.nq)
    found = cj.simulate(robot, q, np.zeros(robot.nv), np.arange(4001) * (10 * step), method="variational", step=step)
    e = found.energy - found.energy[0]
    early, late = e[:2000].mean(), e[2000:].mean()
    assert np.abs(e).max() < 2e-3 * (np.ptp(found.potential_energy) + found.kinetic_energy.max())
    assert abs(late - early) < 0.1 * np.ptp(e)


@pytest.mark.native
def test_closure_stays_at_rounding():
    """A chain of four rods whose tip is held at a point: two freedoms are left."""
    robot = planar_nr(4)
    q = np.array([0.9, -1.0, -0.7, -0.6])
    held = Constraint.point(robot, "tip", "xy").at(robot, q)
    found = cj.simulate(robot, q, np.zeros(4), np.arange(501) * 0.02, constraints=held, method="variational", step=1e-3)
    values, rates = found.drift()
    assert values < 1e-12
    assert rates < 1e-11
    e = found.energy - found.energy[0]
    assert abs(e[250:].mean() - e[:250].mean()) < 0.1 * np.ptp(e)
    assert np.abs(e).max() < 1e-3 * np.ptp(found.potential_energy)


@pytest.mark.native
@pytest.mark.parametrize("method", ["euler", pytest.param("rk4", marks=pytest.mark.slow), "variational"])
def test_rollouts_keep_constraints(method):
    """A batch of a planar chain closed to a loop, written with all six equations of which three are redundant."""
    robot = planar_nr(3)
    robot = robot.with_frame("anchor", "base", np.array([[1, 0, 0, 1.2], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))
    loop = Constraint.loop(robot, "anchor", "tip", "revolute")
    rng = np.random.default_rng(0)
    q = cj.constraints.project(robot, loop, np.array([1.0, -1.0, -1.5]) + 0.05 * rng.normal(size=(5, 3)))
    v = cj.constraints.project_velocity(robot, loop, q, rng.normal(size=(5, 3)))
    true = cj.simulate(robot, q[0], v[0], [0.0, 0.4], constraints=loop, tolerance=1e-12).q[-1]
    errors = []
    for steps in (200, 400):
        qs, vs = cj.rollout(robot, q, v, steps=steps, dt=0.4 / steps, method=method, constraints=loop)
        assert np.abs(loop.residual(robot, qs)).max() < 1e-12
        assert np.abs(np.einsum("...ij,...j->...i", loop.jacobian(robot, qs), vs)).max() < 1e-10
        errors.append(np.abs(qs[0, -1] - true).max())
    assert abs(np.log2(errors[0] / errors[1]) - {"euler": 1, "rk4": 4, "variational": 2}[method]) < 0.4


@pytest.mark.parametrize("method", ["euler", "rk4", "variational"])
def test_units_of_rows_do_not_matter(method):
    """A row written in micrometres, or kilometres, beside others is kept as well as they are."""
    robot = planar_nr(3)
    q = np.array([0.2, 0.3, 0.3])
    moved = []
    for scale in (1.0, 1e-6, 1e3):
        both = Constraint.holonomic(lambda q, scale=scale: scale * (q[0] + q[1] - 0.5)) & Constraint.gear(
            robot, {"joint3": 1.0}, 0.3
        )
        v = cj.constraints.project_velocity(robot, both, q, np.array([1.0, 0.0, 0.0]))
        qs, vs = cj.rollout(robot, q, v, steps=4, dt=0.01, method=method, constraints=both)
        assert np.abs(qs[:, 0] + qs[:, 1] - 0.5).max() < 1e-13
        assert np.abs(vs[:, 0] + vs[:, 1]).max() < 1e-12
        moved.append(qs)
    np.testing.assert_allclose(moved[1], moved[0], atol=1e-12)
    np.testing.assert_allclose(moved[2], moved[0], atol=1e-12)


def test_rollouts_that_leave_the_constraint_are_reported():
    """Steps much too long for a fast mechanism."""
    robot = planar_nr(3)
    held = Constraint.point(robot, "tip", "xy")
    q = np.array([0.4, 0.9, -0.7])
    v = cj.constraints.project_velocity(robot, held, q, np.array([300.0, 0.0, 0.0]))
    with pytest.raises(cj.constraints.ConstraintError, match=r"the motion left the constraint, at the end .*take shorter steps"):
        cj.rollout(robot, q, v, steps=3, dt=0.05, constraints=held)


def test_rollout_as_written_agrees_with_native(monkeypatch):
    robot = cj.load("planar2r")
    q, v = np.array([[0.3, 0.2], [1.0, -0.4]]), np.zeros(2)
    slow = cj.rollout(robot, q, v, steps=20, dt=5e-3, method="variational", policy=lambda robot, q, v, t: -0.5 * v + t)
    monkeypatch.setenv("COADJOINT_NATIVE", "1")
    quick = cj.rollout(
        cj.load("planar2r"), q, v, steps=20, dt=5e-3, method="variational", policy=lambda robot, q, v, t: -0.5 * v + t
    )
    for a, b in zip(slow, quick, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.native
def test_forces_friction_and_time_reach_the_step():
    """Second order against the adaptive integrator with constant forces, a policy of time, and friction."""
    robot = cj.load("cartpole")
    robot = robot.with_numbers(damping=np.full(robot.tree_nv, 0.3))
    q, v = np.array([0.1, 0.4]), np.array([0.2, 0.0])
    for control in (np.array([1.5, 0.0]), lambda robot, q, v, t: np.array([1.0, 0.0]) * t + 0.0 * v):
        true = cj.simulate(robot, q, v, [0.0, 1.0], control, friction=True, tolerance=1e-12)
        found = cj.simulate(robot, q, v, [0.0, 1.0], control, friction=True, method="variational", step=1e-3)
        assert np.abs(true.q[-1] - found.q[-1]).max() < 1e-5
        taus = {} if callable(control) else {"tau": np.tile(control, (1000, 1))}
        policy = {"policy": control, "steps": 1000} if callable(control) else {}
        qs, _ = cj.rollout(robot, q, v, dt=1e-3, method="variational", friction=True, **taus, **policy)
        np.testing.assert_allclose(qs[-1], found.q[-1], atol=1e-10)


def test_a_step_that_is_too_long_is_reported():
    robot = cj.load("planar2r")
    with pytest.raises(cj.CoadjointError, match="did not converge at step"):
        cj.rollout(robot, [0.3, 0.2], [4.0, -9.0], steps=5, dt=0.1, method="variational")


@pytest.mark.native
@pytest.mark.parametrize("kind", ["spherical", "planar", pytest.param("free", marks=pytest.mark.slow)])
def test_armature_of_group_joints(kind):
    """The same motion as that of the adaptive method, to second order: armature has no gyroscopic part there either."""
    armature = {"spherical": (0.5, 0.1, 2.0), "planar": (0.5, 0.1, 2.0), "free": (0.5, 0.1, 2.0, 0.3, 1.0, 0.2)}[kind]
    joint = getattr(cj.Joint, kind)(armature=armature)
    body = cj.Link.solid("body", "base", joint, mass=1.0, com=(0.2, 0.1, 0), inertia=np.diag([1.0, 2.0, 2.5]))
    arm = cj.Link.solid("arm", "body", cj.Joint.revolute((1, 0, 0), armature=0.3), mass=0.5, com=(0, 0.3, 0.1), inertia=0.1)
    robot = cj.Robot("top", [body, arm])
    q, v = robot.neutral(), np.random.default_rng(0).normal(size=robot.nv)
    true = cj.simulate(robot, q, v, [0.0, 1.0])
    errors = []
    for h in (4e-3, 2e-3):
        found = cj.simulate(robot, q, v, [0.0, 1.0], method="variational", step=h)
        errors.append(np.abs(found.v[-1] - true.v[-1]).max())
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.3)
