"""Masked entries are no numbers: planning, control and identification refuse them, or give NaN; and odd arguments found by fuzzing."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control, costs, identification

ARM = cj.load("planar2r").with_gravity((0, -9.81, 0))
for _link in ARM.link_names:
    ARM = ARM.with_inertia(_link, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
Q, REST, WAY = np.array([0.3, 0.9]), np.zeros(2), np.array([[0.3, 0.9], [0.4, 1.0], [0.6, 1.2]])
TIME = np.linspace(0, 2, 51)
MOVED = (np.sin(np.outer(TIME, [3, 5])), np.cos(np.outer(TIME, [3, 5])) * [3, 5], -np.sin(np.outer(TIME, [3, 5])) * [9, 25])
TAU = cj.inverse_dynamics(ARM, *MOVED)
STAGE = cj.Stage(2, [costs.control(0.1), costs.state(Q)])
plan, move = partial(cj.optimal_control, ARM), partial(cj.optimal_motion, ARM)
timed = partial(cj.time_optimal, ARM, **{"velocity": 1.0, "acceleration": 5.0})
excite = partial(cj.excitation, ARM, 2.0, harmonics=3, position=(-1.0, 1.0), velocity=2.0, acceleration=5.0)
fitted = partial(cj.identify, ARM)
hold = partial(control.computed_torque, ARM, Q, kp=25.0, kd=10.0)


def masked(x):
    """The last of the numbers is not there."""
    found = np.ma.masked_array(np.array(x, dtype=float), mask=np.zeros(np.shape(x), dtype=bool))
    found.reshape(-1)[-1] = np.ma.masked
    return found


def along(s, order=0):
    return masked(np.outer(s if order == 0 else s * 0 + (order == 1), [1, 1]))


REFUSED = {
    "start of a plan": lambda: plan(STAGE, masked(Q)),
    "velocity of a plan": lambda: plan(STAGE, Q, start_velocity=masked(Q)),
    "guess of a plan": lambda: plan(STAGE, Q, guess=masked(np.zeros((2, 2)))),
    "limits of a plan": lambda: plan(STAGE, Q, effort=masked([5.0, 5.0])),
    "motors of a plan": lambda: plan(STAGE, Q, actuation=masked(np.eye(2))),
    "reference of a cost": lambda: plan(cj.Stage(2, [costs.state(masked(Q))]), Q),
    "weight of a cost": lambda: costs.control(masked([1.0, 1.0])),
    "steps of a stage": lambda: cj.Stage(2, costs.control(1.0), dt=masked([0.1, 0.1])),
    "waypoints": lambda: timed(masked(WAY)),
    "velocity limits": lambda: timed(WAY, velocity=masked([1.0, 1.0])),
    "jerk limits": lambda: timed(WAY, jerk=masked([9.0, 9.0])),
    "frame limits": lambda: timed(WAY, frame_speed={"tip": masked([1.0, 1.0])}),
    "a path": lambda: timed(along),
    "start of a motion": lambda: move(masked(Q), Q, 1.0),
    "goal of a motion": lambda: move(Q, masked(Q), 1.0),
    "limits of a motion": lambda: move(Q, Q + 0.1, 1.0, velocity=masked([5.0, 5.0])),
    "end of a motion": lambda: move(Q, Q + 0.1, 1.0, goal_velocity=masked(REST)),
    "point of a motion": lambda: move(Q, Q + 0.1, 1.0, via={0.5: masked(Q)}),
    "guess of a motion": lambda: move(Q, Q + 0.3, 1.0, guess=masked(WAY)),
    "obstacle": lambda: cj.Sphere(masked([0.0, 1.0, 2.0]), 0.1),
    "tracked motion": lambda: cj.time_varying_lqr(
        ARM, masked(np.tile(Q, (3, 1))), np.zeros((3, 2)), np.zeros((2, 2)), dt=0.1, Q=np.eye(4), R=np.eye(2)
    ),
    "samples": lambda: identification.recursive_least_squares(ARM).run(masked(MOVED[0]), *MOVED[1:], TAU),
    "noise": lambda: identification.recursive_least_squares(ARM, noise=masked([1.0, 1.0])),
    "state of an estimate": lambda: identification.natural_gradient(ARM, gain=0.1).run(*MOVED, TAU, masked(np.ones(32))),
    "positions of a log": lambda: fitted({"time": TIME, "q": masked(MOVED[0]), "tau": TAU}),
    "forces of a log": lambda: fitted(cj.Log(TIME, *MOVED, masked(TAU))),
    "times of a log": lambda: fitted({"time": masked(TIME), "q": MOVED[0], "tau": TAU}),
    "gains": lambda: fitted({"time": TIME, "q": MOVED[0], "tau": TAU}, gains=masked([1.0, 1.0])),
    "start of an excitation": lambda: excite(start=masked(REST)),
    "limits of an excitation": lambda: excite(velocity=masked([2.0, 2.0])),
    "states of a design": lambda: cj.design.optimize(
        ARM, "masses", lambda robot, q: (q * q).sum(-1), states={"q": masked(MOVED[0])}, bounds={"masses": (0.5, 2.0)}
    ),
    "pose": lambda: control.screw_motion(masked(np.eye(4)), np.eye(4), 1.0),
    "way of poses": lambda: cj.spline_path(masked([np.eye(4), np.eye(4)])),
    # found by `python -m fuzz api`
    "report of a plan": lambda: plan(STAGE, Q, report="x"),
    "steps without end": lambda: cj.Stage(10**50, costs.control(1.0)),
    "flag that is an array": lambda: hold(friction=np.ones(2)),
    "flag that is a set": lambda: control.closed_loop(ARM, hold(), Q, REST, 0.01, friction={1, 2}),
    "closed that is an array": lambda: cj.spline_path(np.stack([np.eye(4)] * 3), closed=np.ones(2)),
    "reference that is an array": lambda: cj.redundancy.Task("tip", reference=np.ones(2)),
    "curve without velocity": lambda: cj.geometry.parallel_transport(ARM, lambda t: 1.0, REST, [0.0, 0.1]),
    "rank at many": lambda: cj.constraints.constraint_rank(ARM, cj.Constraint.point(ARM, "tip", "x"), np.zeros((2, 2))),
    "spheres that are a number": lambda: excite(spheres=-1),
    "links that are a slice": lambda: control.adaptive(ARM, Q, rate=1.0, damping=1.0, adaptation=1.0, links=slice(None)),
    "transcription that is an array": lambda: move(Q, Q + 0.1, 1.0, transcription=np.zeros(2)),
    "duration that is a robot": lambda: move(Q, Q + 0.1, [ARM, ARM]),
    "type that is an array": lambda: cj.explain(cj.gravity_force, ARM, dtype=np.zeros(2)),
    "damping that is text": lambda: cj.redundancy.weighted_inverse(ARM, Q, "tip", rows=[3], damping="q"),
    "constraints that are a class": lambda: cj.design.optimize(ARM, "masses", cj.total_mass, constraints=type),
    "bounds that are an array": lambda: cj.design.optimize(ARM, "masses", cj.total_mass, bounds=np.zeros(2)),
    "metric that is an array": lambda: cj.redundancy.manipulability(ARM, Q, "tip", [3], metric=np.zeros(2)),
    "kind that is an array": lambda: cj.redundancy.ellipsoid(ARM, Q, "tip", [3], kind=np.ones(2, bool)),
    "limits that are an array": lambda: cj.inverse_kinematics_solutions(cj.load("ur5e"), np.eye(4), "tip", limits=np.zeros(6)),
    "limit beyond any number": lambda: timed(WAY, velocity=10**400),
    "start beyond any number": lambda: move(10**400, Q, 1.0),
    "step beyond any number": lambda: cj.rollout(ARM, Q, REST, dt=10**400, steps=3),
    "check that is an array": lambda: cj.interop.convert_states(ARM, Q, from_="mujoco", to="pinocchio", check=np.zeros(2)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_by_name(what):
    with pytest.raises(cj.CoadjointError):
        REFUSED[what]()


def test_times_that_are_masked():
    """Of motions and timings."""
    for motion in (timed(WAY), cj.simulate(ARM, Q, REST, 0.3)):
        with pytest.raises(cj.CoadjointError):
            motion(masked([0.1, 0.2]))


def test_controllers_give_no_number_for_masked_states():
    law, watch = hold(), control.momentum_observer(ARM, gain_rate=30.0)
    assert np.isnan(law.force(masked(Q), REST, 0.0)).all()
    assert np.isnan(law.lyapunov(masked(Q), REST, 0.0))
    assert np.isnan(watch.state(Q, masked(REST))).any()
    residual = np.array([0.0, 0.0, 1.0, np.nan])
    assert watch.collided(residual, 5.0)  # unknown is not safe
    assert not watch.collided(np.array([0.0, 0.0, 1.0, 2.0]), 5.0)


@pytest.mark.native
def test_horizons_refuse_masked_measurements():
    plan = cj.receding_horizon(ARM, STAGE, Q)
    for state in ((masked(Q), REST), (Q, masked(REST))):
        with pytest.raises(cj.CoadjointError, match="not finite"):
            plan.step(*state)


def test_hybrid_control_has_the_constraint_that_it_was_made_with():
    """What a constraint's function reads changes later: `force` and `rollout` go on with the same law."""
    ratio = {"k": 1.0}
    law = control.hybrid(ARM, cj.Constraint.holonomic(lambda q: q[0] + ratio["k"] * q[1] - 1.0), Q, force=[1.0], kp=25.0, kd=5.0)
    before = law.force(Q + 0.1, REST, 0.0)
    ratio["k"] = 3.0
    fresh = pickle.loads(pickle.dumps(law))  # not compiled yet
    assert np.array_equal(law.force(Q + 0.1, REST, 0.0), before)
    assert np.abs(fresh.force(Q + 0.1, REST, 0.0) - before).max() < 1e-12
