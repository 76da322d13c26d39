"""A wrench at a frame, converted to the argument `wrenches` of the dynamics."""

from __future__ import annotations

import numpy as np

from ..arguments import arguments
from ..arrays import Array, ArrayLike, concat, like, mv, transpose
from ..errors import CoadjointError, ModelError
from ..kinematics.jacobian import check_reference
from ..kinematics.poses import pose
from ..lie import se3
from ..robot.robot import Robot


def wrench_at(robot: Robot, frame: str, wrench: ArrayLike, q: ArrayLike | None = None, reference: str = "body") -> Array:
    """Wrenches (..., n_links, 6) on the links, for the argument `wrenches`, of one wrench (m, f) (..., 6) that the world exerts at a frame.

    reference "body": by the frame's axes, at its origin; "world": at its origin, by the axes of space; "space": about the origin of
    space, by its axes. The last two need the configuration q (..., nq). With J the Jacobian of the frame in the same reference,
    `generalized_force(robot, q, wrenches)` is Jᵀ wrench.
    """
    check_reference(robot, frame, reference)
    link, placement = robot.frame(frame)
    if link < 0:
        raise ModelError(
            f"frame {frame!r} stands on the base of robot {robot.name!r}, which bears any wrench; name one that moves."
        )
    if reference == "body":
        (F,) = arguments(("wrench", wrench, (6,)))
    elif q is None:
        raise CoadjointError(
            f"a wrench in reference {reference!r} needs the configuration: wrench_at(robot, frame, wrench, q, {reference!r})."
        )
    else:
        F, q = arguments(("wrench", wrench, (6,)), ("q", q, (robot.nq,)))
        T = pose(robot, q, frame)
        Rt = transpose(T[..., :3, :3])
        F = se3.Ad_dual_act(T, F) if reference == "space" else concat([mv(Rt, F[..., :3]), mv(Rt, F[..., 3:])])
    on_link = se3.Ad_inv_dual_act(like(placement, F), F)
    return like(np.eye(robot.n_links)[link][:, None], F) * on_link[..., None, :]
