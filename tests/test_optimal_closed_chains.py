"""Optimal motions of mechanisms with constraints: the forward dynamics of the mechanism repeat them."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError
from coadjoint.robot.link import Loop

ARM = cj.load("planar3r").with_gravity((0, -9.81, 0))
HELD = cj.Constraint.point(ARM, "tip", axes="xy", at=(1.2, 0.8))


def ends():
    """Two configurations of the four-bar linkage that three links and the ground make."""
    return [cj.constraints.assemble(ARM, HELD, [x, 0.8, 0.9], fixed="joint1") for x in (-0.2, 0.5)]


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.parametrize("motors", ["joint1", ("joint1", "joint2"), None])
def test_the_mechanism_moves_as_found_under_the_forces_found(motors):
    start, goal = ends()
    motion = cj.optimal_motion(ARM, start, goal, 1.0, "effort", constraints=HELD, motors=motors, spans=32)
    assert motion.converged, motion.message
    assert np.abs(HELD.residual(ARM, motion.q)).max() < 1e-6
    a, multipliers = cj.constrained_dynamics(ARM, HELD, motion.q, motion.v, motion.tau)
    np.testing.assert_allclose(a, motion.a, atol=1e-4 * np.abs(motion.a).max())
    forces = motion.tau + (HELD.jacobian(ARM, motion.q).swapaxes(-1, -2) @ multipliers[..., None])[..., 0]
    needed = cj.inverse_dynamics(ARM, motion.q, motion.v, motion.a)
    np.testing.assert_allclose(forces, needed, atol=1e-4 * np.abs(needed).max())
    idle = {"joint1": [1, 2], ("joint1", "joint2"): [2], None: []}[motors]
    assert np.abs(motion.tau[:, idle]).max(initial=0.0) < 1e-8 * np.abs(motion.tau).max()


@pytest.mark.native
def test_more_motors_and_wider_limits_cost_less():
    start, goal = ends()
    options = {"constraints": HELD, "spans": 32}
    costs = [cj.optimal_motion(ARM, start, goal, 1.0, motors=x, **options).cost for x in ("joint1", ("joint1", "joint2"), None)]
    assert costs[0] > costs[1] > costs[2]
    free = cj.optimal_motion(ARM, start, goal, 1.0, motors="joint1", **options)
    limit = 0.9 * np.abs(free.tau[:, 0]).max()
    careful = cj.optimal_motion(ARM, start, goal, 1.0, motors="joint1", effort=[limit, 1e3, 1e3], **options)
    assert careful.converged, careful.message
    assert np.abs(careful.tau[:, 0]).max() <= limit * (1 + 1e-6)
    assert careful.cost > free.cost


def test_wrong_constraints_are_named():
    start, goal = ends()
    doubled = HELD & cj.Constraint.point(ARM, "tip", axes="x", at=1.2)
    for options, words in [
        ({"motors": "joint1"}, "motors goes with constraints"),
        ({"constraints": doubled}, "has 3 rows and only 2 of them are independent"),
        ({"constraints": HELD, "motors": ()}, "motors has 0 joints and the mechanism 1 freedoms"),
        ({"constraints": cj.Constraint.twist(ARM, "tip", "y")}, "rows on velocities alone"),
    ]:
        with pytest.raises(CoadjointError, match=words):
            cj.optimal_motion(ARM, start, goal, 1.0, **options)
    with pytest.raises(CoadjointError, match="the goal does not meet the constraints: they are open by"):
        cj.optimal_motion(ARM, start, goal + 0.1, 1.0, constraints=HELD)


def test_loops_are_not_left_open():
    """A robot whose description closes a loop is no open tree: refused by name, with what moves it."""
    chain = cj.load("planar3r")
    frame = cj.lie.se3.pose(np.eye(3), np.array([1.2, 0.8, 0.0]))
    pinned = chain.with_frame("pin", "base", frame)
    robot = cj.Robot("four bar", pinned.links, pinned.frames, pinned.gravity, loops=[Loop("hinge", "pin", "tip", "spherical")])
    ends = np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]])
    for call in (
        lambda: cj.time_optimal(robot, ends, acceleration=1.0, effort=np.inf),
        lambda: cj.optimal_motion(robot, *ends, 1.0),
        lambda: cj.optimal_control(robot, cj.Stage(5, [cj.costs.control(1.0)], 0.01), ends[0]),
    ):
        with pytest.raises(CoadjointError, match=r"has the loop 'hinge', from 'pin' to 'tip', which .* would leave open"):
            call()


@pytest.mark.native
def test_loops_of_a_description_need_no_choice_of_rows():
    """A loop in a plane repeats rows; the motion is that of the two rows which are independent, and meets all of them."""
    start, goal = ends()
    placed = ARM.with_frame("pin", "base", cj.lie.se3.pose(np.eye(3), np.array([1.2, 0.8, 0.0])))
    robot = cj.Robot("four bar", placed.links, placed.frames, placed.gravity, loops=[Loop("hinge", "pin", "tip", "revolute")])
    options = {"motors": "joint1", "spans": 32}
    motion = cj.optimal_motion(robot, start, goal, 1.0, constraints=cj.Constraint.loops(robot), **options)
    assert motion.converged, motion.message
    assert np.abs(cj.Constraint.loops(robot).residual(robot, motion.q)).max() < 1e-6
    other = cj.optimal_motion(ARM, start, goal, 1.0, constraints=HELD, **options)
    assert motion.cost == pytest.approx(other.cost, rel=1e-6)
