"""Optima, fits, designs and controllers travel: through pickle and joblib, to new processes, and to Dask's names."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import coadjoint as cj
from coadjoint import control, costs, identification
from controllers import THREE, small

pytestmark = pytest.mark.native

ARM = cj.load("planar2r").with_gravity((0, -9.81, 0))
for _link in ARM.link_names:
    ARM = ARM.with_inertia(_link, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
Q = np.array([0.3, 0.9])
TIME = np.linspace(0, 2, 101)
MOVED = (np.sin(np.outer(TIME, [3, 5])), np.cos(np.outer(TIME, [3, 5])) * [3, 5], -np.sin(np.outer(TIME, [3, 5])) * [9, 25])
LOG = cj.Log(TIME, *MOVED, cj.inverse_dynamics(ARM, *MOVED))
STAGE = cj.Stage(4, [costs.control(0.1), costs.state(Q), costs.position("tip", [1.0, 0.5, 0.0])])
WAY = np.stack([Q, Q + 0.1, Q + 0.3])
LIMITS = {"velocity": 1.0, "acceleration": 5.0}
PUMA = cj.load("puma560")
POSTURES = PUMA.random(0, 30)
TRACKED = small("computed_torque")


def running():
    """An adaptive controller after two samples."""
    at_work = small("adaptive").start()
    for t in (0.0, 1e-3):
        at_work.force(np.zeros(3), np.ones(3), t)
    return at_work


def stepped():
    """A receding horizon after two samples."""
    plan = cj.receding_horizon(ARM, STAGE, Q, velocity=2.0)
    for _ in range(2):
        plan.step(Q, np.zeros(2))
    return plan


MADE = {
    "motion": (lambda: cj.optimal_motion(ARM, Q, Q + 0.3, 1.0, spans=4), lambda x: (x.cost, *x(0.3))),
    "collocation": (
        lambda: cj.optimal_motion(ARM, Q, Q + 0.3, 1.0, "action", spans=4, transcription="collocation"),
        lambda x: (x.cost, *x(0.3)),
    ),
    "own cost": (
        lambda: cj.optimal_motion(ARM, Q, Q + 0.3, 1.0, lambda robot, q, v, a: (a * a).sum(-1), spans=4),
        lambda x: (x.cost, *x(0.3)),
    ),
    "motions": (lambda: cj.optimal_motion(ARM, Q, [Q + 0.3, Q - 0.2], 1.0, spans=4), lambda x: (x.cost, x.q)),
    "controls": (lambda: cj.optimal_control(ARM, STAGE, Q), lambda x: (x.cost, x.u, x.q)),
    "horizon": (stepped, lambda x: (x.cost, x.gains, *x.plan, x.step(Q + 0.01, np.zeros(2)))),
    "gains": (
        lambda: cj.time_varying_lqr(ARM, np.tile(Q, (4, 1)), np.zeros((4, 2)), np.zeros((3, 2)), dt=0.01, Q=np.eye(4), R=np.eye(2)),
        lambda x: (x.K,),
    ),
    "timing": (lambda: cj.time_optimal(ARM, WAY, **LIMITS), lambda x: (x.duration, *x(0.1))),
    "timing with jerk": (lambda: cj.time_optimal(ARM, WAY, **LIMITS, jerk=50.0), lambda x: (x.duration, *x(0.1))),
    "timings": (lambda: cj.time_optimal(ARM, [WAY, WAY + 0.1], **LIMITS), lambda x: (x.duration, *x[1](0.1))),
    "design": (
        lambda: cj.design.optimize(ARM, "masses", lambda robot: cj.total_mass(robot) ** 2, bounds={"masses": (0.5, 2.0)}),
        lambda x: (x.robot.parameters("masses"), x.cost),
    ),
    "balance": (lambda: cj.design.balance(ARM), lambda x: (str(x),)),
    "conditions": (lambda: cj.design.conditions(ARM), lambda x: (str(x),)),
    "identification": (
        lambda: cj.identify(ARM, LOG, friction=["viscous"], prior=1e-3, gravity="fixed", cutoff=None, delay=0.0),
        lambda x: (x.robot.inertial_parameters, x.torque(*MOVED)),
    ),
    "least squares": (lambda: identification.recursive_least_squares(ARM), lambda x: x.run(*MOVED, LOG.tau)[-1:]),
    "payload": (lambda: identification.recursive_least_squares(ARM, payload="tip"), lambda x: x.run(*MOVED, LOG.tau)[-1:]),
    "natural gradient": (lambda: identification.natural_gradient(ARM, gain=0.1), lambda x: x.run(*MOVED, LOG.tau)[-1:]),
    "base parameters": (lambda: cj.base_parameters(ARM), lambda x: (x.rank, x.values(ARM))),
    "excitation": (
        lambda: cj.excitation(ARM, 2.0, harmonics=3, position=(-1.0, 1.0), velocity=2.0, acceleration=5.0),
        lambda x: x(0.3),
    ),
    "calibration": (
        lambda: cj.calibrate(PUMA, POSTURES, points=cj.pose(PUMA, POSTURES, "tip")[:, None, :3, 3], terms=[]),
        lambda x: (x.predict(POSTURES),),
    ),
    "loop": (lambda: control.closed_loop(THREE, TRACKED, np.zeros(3), np.zeros(3), 0.01), lambda x: (x.q, x.tau)),
    "verification": (
        lambda: control.verify(TRACKED, control.closed_loop(THREE, TRACKED, np.zeros(3), np.zeros(3), 0.01)),
        lambda x: (str(x),),
    ),
    "running": (running, lambda x: (x.state, x.force(np.ones(3), np.zeros(3), 2e-3), len(x.states))),
    "stage": (lambda: STAGE, lambda x: (cj.optimal_control(ARM, x, Q).cost,)),
}


def same(made, numbers):
    back = pickle.loads(pickle.dumps(made))
    again = pickle.loads(pickle.dumps(back))
    assert type(back) is type(made)
    for found, kept, other in zip(numbers(back), numbers(made), numbers(again), strict=True):
        assert np.array_equal(found, kept)
        assert np.array_equal(other, kept)


@pytest.mark.parametrize("kind", MADE)
def test_results_come_back_with_their_numbers(kind):
    make, numbers = MADE[kind]
    same(make(), numbers)


def test_conditions_of_a_motion_come_back():
    """What is computed from them anew is the same but for rounding: sums may run in another order over arrays that lie elsewhere."""
    motion = MADE["motion"][0]()
    assert pickle.loads(pickle.dumps(motion)).least_curvature == pytest.approx(motion.least_curvature, rel=1e-9)


@pytest.mark.parametrize(
    "law", [pytest.param(x, marks=pytest.mark.slow) if x in ("limited", "adaptive_frame") else x for x in small(None)]
)
def test_controllers_come_back_with_their_forces(law):
    made = small(law)
    n = made.robot.nv
    q, v, t = np.linspace(0.1, 0.5, n), np.linspace(-0.2, 0.3, n), 0.05
    if law == "observer":
        same(made, lambda x: (x.update(q, v, v, x.state(q, v)), repr(x)))
    elif hasattr(made, "force"):
        same(made, lambda x: (x.force(q, v, t), repr(x)))
    else:
        same(made, lambda x: (*x.step(q, v, t, x.initial), repr(x)))


def told(made):
    """What another process finds."""
    return (
        made["timing"](0.1)[0],
        made["controls"].u,
        made["running"].force(np.ones(3), np.zeros(3), 2e-3),
        made["law"].force(np.ones(3), np.zeros(3), 0.1),
        made["horizon"].step(Q, np.zeros(2)),
    )


@pytest.mark.slow
def test_new_processes_find_the_same_numbers():
    made = {kind: MADE[kind][0]() for kind in ("timing", "controls", "running", "horizon")} | {"law": TRACKED}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(told, (made,))
    for x, y in zip(found, told(made), strict=True):
        assert np.array_equal(x, y)
    joblib = pytest.importorskip("joblib")
    made |= {kind: MADE[kind][0]() for kind in ("running", "horizon")}
    (found,) = joblib.Parallel(n_jobs=2)(joblib.delayed(told)(x) for x in [made])
    for x, y in zip(found, told(made), strict=True):
        assert np.array_equal(x, y)


@pytest.mark.slow
def test_functions_that_cannot_be_pickled_are_named():
    """By plain pickle: a path, a cost. The motion of such a cost can, and says then what it has lost."""
    text = """
import pickle, numpy as np, coadjoint as cj
arm, limits = cj.load("planar2r"), {"velocity": 1.0, "acceleration": 1.0, "effort": np.inf}
path = cj.time_optimal(arm, lambda s, k=0: np.outer(s if k == 0 else s * 0 + (k == 1), [1, 1]), **limits)
for thing in (path, cj.costs.function(lambda robot, q, v, u: (u * u).sum(-1))):
    try:
        pickle.dumps(thing)
    except cj.CoadjointError as error:
        assert "named function of a module" in str(error), error
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-c", text], check=True)
    back = pickle.loads(pickle.dumps(MADE["own cost"][0]()))
    with pytest.raises(cj.CoadjointError, match="came through pickle with a cost"):
        back.sensitivity("masses")


def test_dask_knows_them_by_what_they_are():
    """Two that were made alike have one token; another number makes another."""
    tokenize = pytest.importorskip("dask.base").tokenize
    for law in ("computed_torque", "adaptive"):
        assert tokenize(small(law)) == tokenize(small(law))
    assert tokenize(control.pd(THREE, np.zeros(3), kp=1.0, kd=1.0)) != tokenize(control.pd(THREE, np.zeros(3), kp=2.0, kd=1.0))
    assert tokenize(costs.state(Q)) == tokenize(costs.state(Q))
    assert tokenize(costs.control(1.0)) != tokenize(costs.control(2.0))
