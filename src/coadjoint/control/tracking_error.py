"""The error between a robot's state and a reference, on the configuration manifold.

For a joint that moves in a group, with configuration g and body velocity v, and the reference g_d, v_d,

    e = log(g⁻¹ g_d),    w = Ad(g⁻¹ g_d) v_d - v,    de/dt = dexp⁻¹(e) w.

Ad(g⁻¹ g_d) v_d is the reference's velocity as seen from the present configuration, and only there the two velocities may be
subtracted. Its derivative along the motion is Ad(g⁻¹ g_d) a_d + [w, v]. For joints with one screw Ad and dexp are 1, and all is
e = q_d - q, w = v_d - v. Bullo & Murray (1999), Tracking for fully actuated mechanical systems: a geometric framework.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..arrays import Array, concat, mv, transpose
from ..lie import se3
from ..robot.joints import JointKind
from ..robot.robot import Robot


class TrackingError(NamedTuple):
    """Errors (..., nv) of position and velocity, and the reference's motion seen from the present configuration."""

    position: Array
    """e: the tangent vector that moves q to the reference, as `robot.difference(q, q_d)`."""
    velocity: Array
    """w: the transported reference velocity less v."""
    reference_velocity: Array
    """The transported velocity of the reference."""
    reference_acceleration: Array
    """The derivative of the transported velocity along the motion."""


def groups(robot: Robot) -> list[tuple[slice, JointKind]]:
    """The velocities of every joint that moves in a group of several dimensions, and its kind, in the order of the velocities."""
    found = [
        (robot.v_slice(link.joint.name), robot.kind(i)) for i, link in enumerate(robot.links) if robot.kind(i).group is not None
    ]
    return sorted(found, key=lambda item: item[0].start)


def tracking_error(robot: Robot, q: Array, v: Array, q_d: Array, v_d: Array, a_d: Array) -> TrackingError:
    """The error of the state q, v against the reference q_d, v_d, a_d."""
    e = robot.difference(q, q_d)
    seen = _by_group(robot, v_d, lambda kind, part: _transported(kind, e[..., part], v_d[..., part]))
    w = seen - v
    rate = lambda kind, part: _transported(kind, e[..., part], a_d[..., part]) + kind.bracket(w[..., part], v[..., part])
    return TrackingError(e, w, seen, _by_group(robot, a_d, rate))


def error_rate(robot: Robot, e: Array, w: Array) -> Array:
    """de/dt = dexp⁻¹(e) w (..., nv) for the velocity error w."""
    return _by_group(robot, w, lambda kind, part: kind.from_twist(mv(_dexp_inverse(kind, e[..., part]), kind.twist(w[..., part]))))


def pulled_back(robot: Robot, e: Array, force: Array) -> Array:
    """dexp⁻¹(e)ᵀ force (..., nv): the joint force whose power with w is that of `force` with de/dt."""
    back = lambda kind, part: kind.from_twist(mv(transpose(_dexp_inverse(kind, e[..., part])), kind.twist(force[..., part])))
    return _by_group(robot, force, back)


def bracket(robot: Robot, v: Array, w: Array) -> Array:
    """[v, w] (..., nv) of velocities in the joints' groups: zero for joints of one freedom."""
    return _by_group(robot, 0.0 * v, lambda kind, part: kind.bracket(v[..., part], w[..., part]))


def _by_group(robot: Robot, plain: Array, of_group: Callable[[JointKind, slice], Array]) -> Array:
    """`plain` with the parts of joints that move in groups replaced."""
    pieces, at = [], 0
    for part, kind in groups(robot):
        pieces += [plain[..., at : part.start], of_group(kind, part)]
        at = part.stop
    return concat([x for x in (*pieces, plain[..., at:]) if x.shape[-1]]) if pieces else plain


def _transported(kind: JointKind, e: Array, x: Array) -> Array:
    """Ad(exp e) x: a velocity of the reference, seen from the present configuration."""
    return kind.from_twist(se3.Ad_act(se3.exp(kind.twist(e)), kind.twist(x)))


def _dexp_inverse(kind: JointKind, e: Array) -> Array:
    return se3.dexp_inverse(kind.twist(e))
