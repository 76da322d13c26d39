"""Jacobians of frames, their rate and their derivative by q.

Write a_k for the body column of freedom k: its screw, seen in the frame. By Park, Bobrow & Ploen (1995), (18) and (53), its
derivatives are brackets, with "k before l" when freedom k lies nearer the base than l on the path:

    body     ∂_l a_k = [a_k, a_l] if k before l, else 0
    space    A_k = Ad_f a_k,  ∂_l A_k = [A_l, A_k] unless k before l
    world    W_k = (R ω_k, R v_k), R the rotation of the frame,  ∂_l W_k = (R, R)(∂_l a_k + (ω_l × ω_k, ω_l × v_k))

Freedoms of one spherical, planar or free joint move together: neither is before the other.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, concat, cross, like, mv, stack
from ..errors import CoadjointError
from ..kernel.dispatch import check_robot, kernel
from ..lie import se3
from ..robot.robot import Robot
from ..words import short
from .poses import relative_pose

REFERENCES = ("body", "space", "world")


def check_reference(robot: Robot, frame: str, reference: str) -> None:
    """Raise an error for an unknown frame or an unknown reference."""
    check_robot(robot)
    robot.frame(frame)
    if not isinstance(reference, str) or reference not in REFERENCES:
        raise CoadjointError(
            f"reference is {short(reference)}; choose 'body', 'space', or 'world' (at the frame's origin, space axes)."
        )


def body_columns(robot: Robot, q: Array, frame: str) -> tuple[Array, dict[int, Array]]:
    """The pose of the frame and the column a_k (..., 6) of every freedom k of the tree on its path."""
    q = robot.tree_q(q)
    last, T = robot.frame(frame)
    columns: dict[int, Array] = {}
    for link in reversed(robot.path(last)):
        S = robot.kind(link).subspace(robot.joint_screws(link), q[..., robot.tree_q_slices[link]])
        dofs = robot.tree_v_slices[link]
        for row, k in enumerate(range(dofs.start, dofs.stop)):
            columns[k] = se3.Ad_inv_act(like(T, q), like(S, q)[..., row, :])
        T = relative_pose(robot, q, link) @ like(T, q)
    return like(T, q), columns


def _seen_from(T: Array, column: Array, reference: str) -> Array:
    """A body column expressed in the given reference."""
    if reference == "space":
        return se3.Ad_act(T, column)
    if reference == "world":
        R = T[..., :3, :3]
        return concat([mv(R, column[..., :3]), mv(R, column[..., 3:])])
    return column


def assemble_columns(robot: Robot, columns: dict[int, Array], q: Array) -> Array:
    """(..., 6, nv) from columns of the tree's freedoms."""
    if not robot.tree_nv:
        return like(np.zeros((6, 0)), q)
    zero = like(np.zeros(6), q)
    return robot.from_tree_columns(stack([columns.get(k, zero) for k in range(robot.tree_nv)], axis=-1))


def _together(robot: Robot) -> dict[int, slice]:
    """The freedoms of the joint of every freedom of a subgroup joint."""
    return {
        k: robot.tree_v_slices[i]
        for i, kind in enumerate(robot.kinds)
        if kind.group is not None
        for k in range(robot.tree_v_slices[i].start, robot.tree_v_slices[i].stop)
    }


def _before(robot: Robot, frame: str) -> list[int]:
    """The freedoms on the path to the frame, from the base outward."""
    return [k for i in robot.path(robot.frame(frame)[0]) for k in range(robot.tree_nv)[robot.tree_v_slices[i]]]


@kernel("6 nv", q="nq", check=check_reference)
def jacobian(robot: Robot, q: Array, frame: str, reference: str = "body") -> Array:
    """J (..., 6, nv) with J v the twist of a frame: Park, Bobrow & Ploen (1995), (18)-(20).

    reference "body": in the frame itself; "space": the spatial twist, Ad_f of it; "world": the velocity of the frame's origin and
    the angular velocity, both in space axes.
    """
    T, columns = body_columns(robot, q, frame)
    return assemble_columns(robot, {k: _seen_from(T, a, reference) for k, a in columns.items()}, q)


@kernel("6 nv nv", q="nq", check=check_reference)
def jacobian_derivative(robot: Robot, q: Array, frame: str, reference: str = "body") -> Array:
    """∂J[..., i, k]/∂q_l as (..., 6, nv, nv), l last; for joints with quaternions by the tangent vector of `integrate`."""
    T, a = body_columns(robot, q, frame)
    path, together = _before(robot, frame), _together(robot)
    zero = like(np.zeros(6), q)
    rank = {k: n for n, k in enumerate(path)}

    def derivative(k: int, l: int) -> Array:
        if k not in rank or l not in rank:
            return zero
        before = rank[k] < rank[l] and together.get(k) != together.get(l, ())
        if reference == "space":
            if before or k == l:
                return zero
            return se3.ad_act(se3.Ad_act(T, a[l]), se3.Ad_act(T, a[k]))
        body = se3.ad_act(a[k], a[l]) if before else zero
        if reference == "body":
            return body
        w = a[l][..., :3]
        return _seen_from(T, body + concat([cross(w, a[k][..., :3]), cross(w, a[k][..., 3:])]), "world")

    n = robot.tree_nv
    if not n:
        return like(np.zeros((6, 0, 0)), q)
    slices = [assemble_columns(robot, {k: derivative(k, l) for k in range(n)}, q) for l in range(n)]
    return robot.from_tree_columns(stack(slices, axis=-1))


@kernel("6 nv", q="nq", v="nv", check=check_reference)
def jacobian_rate(robot: Robot, q: Array, v: Array, frame: str, reference: str = "body") -> Array:
    """dJ/dt (..., 6, nv) along the velocity v: the twist of the frame changes by J̇ v + J v̇."""
    T, a = body_columns(robot, q, frame)
    v = robot.tree_v(v)
    path, together = _before(robot, frame), _together(robot)
    twist, later = like(np.zeros(6), q), like(np.zeros(6), q)
    for k in path:
        twist = twist + a[k] * v[..., k : k + 1]
    rates: dict[int, Array] = {}
    for n in reversed(range(len(path))):
        k = path[n]
        # Freedoms before which k stands: all farther out, less those of its own subgroup joint.
        own = like(np.zeros(6), q)
        for l in range(k + 1, together[k].stop) if k in together else ():
            own = own + a[l] * v[..., l : l + 1]
        body = se3.ad_act(a[k], later - own)
        if reference == "space":
            body = body + se3.ad_act(twist, a[k])
        elif reference == "world":
            w = twist[..., :3]
            body = body + concat([cross(w, a[k][..., :3]), cross(w, a[k][..., 3:])])
        rates[k] = _seen_from(T, body, reference)
        later = later + a[k] * v[..., k : k + 1]
    return assemble_columns(robot, rates, q)
