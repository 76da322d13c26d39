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

import numpy as np

from ..arrays import Array, concat, like, mv, transpose
from ..lie import se3
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


def groups(robot: Robot) -> list[tuple[slice, list[int]]]:
    """The velocities of every joint that moves in a group of several dimensions, and the coordinates of se(3) that they are."""
    found = []
    for link in robot.links:
        rows = _ROWS.get(link.joint.kind)
        if rows is not None:
            found.append((robot.v_slice(link.joint.name), rows))
    return sorted(found, key=lambda item: item[0].start)


_ROWS = {"spherical": [0, 1, 2], "planar": [2, 3, 4], "free": [0, 1, 2, 3, 4, 5]}


def tracking_error(robot: Robot, q: Array, v: Array, q_d: Array, v_d: Array, a_d: Array) -> TrackingError:
    """The error of the state q, v against the reference q_d, v_d, a_d."""
    e = robot.difference(q, q_d)
    seen = _by_group(robot, v_d, lambda part, rows: _moved(e, part, rows, v_d))
    w = seen - v
    rate = _by_group(robot, a_d, lambda part, rows: _moved(e, part, rows, a_d) + _bracket(w, v, part, rows))
    return TrackingError(e, w, seen, rate)


def error_rate(robot: Robot, e: Array, w: Array) -> Array:
    """de/dt = dexp⁻¹(e) w (..., nv) for the velocity error w."""
    return _by_group(robot, w, lambda part, rows: mv(_dexp_inverse(e, part, rows), w[..., part]))


def pulled_back(robot: Robot, e: Array, force: Array) -> Array:
    """dexp⁻¹(e)ᵀ force (..., nv): the joint force whose power with w is that of `force` with de/dt."""
    return _by_group(robot, force, lambda part, rows: mv(transpose(_dexp_inverse(e, part, rows)), force[..., part]))


def _by_group(robot: Robot, plain: Array, of_group: Callable[[slice, list[int]], Array]) -> Array:
    """`plain` with the parts of joints that move in groups replaced."""
    found = groups(robot)
    if not found:
        return plain
    pieces, at = [], 0
    for part, rows in found:
        pieces += [plain[..., at : part.start], of_group(part, rows)]
        at = part.stop
    return concat([x for x in (*pieces, plain[..., at:]) if x.shape[-1]])


def _embedded(x: Array, part: slice, rows: list[int]) -> Array:
    """The coordinates of one group as a twist (..., 6)."""
    into = np.zeros((6, len(rows)))
    into[rows, range(len(rows))] = 1.0
    return mv(like(into, x), x[..., part])


def _moved(e: Array, part: slice, rows: list[int], x: Array) -> Array:
    return se3.Ad_act(se3.exp(_embedded(e, part, rows)), _embedded(x, part, rows))[..., rows]


def _bracket(x: Array, y: Array, part: slice, rows: list[int]) -> Array:
    return se3.ad_act(_embedded(x, part, rows), _embedded(y, part, rows))[..., rows]


def _dexp_inverse(e: Array, part: slice, rows: list[int]) -> Array:
    return se3.dexp_inverse(_embedded(e, part, rows))[..., rows, :][..., :, rows]
