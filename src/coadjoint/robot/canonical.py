"""The canonical form of a robot: the same mechanism in frames whose constants mostly vanish.

Joint forces, accelerations, the mass matrix and kinetic energy do not depend on which frames are fixed to the links, nor on how
mass is divided between a link and its parent, as far as the motion of their joint cannot distinguish it. So, before a kernel is
made,

1. every frame is put on its joint's axis, z along it, x along the common normal to the next axis (the modified convention of
   Denavit and Hartenberg), and what is left of the home angle is added to q: a placement is then Rot_x(α) Trans(a, ∓d sin α, d cos α);
2. the mass on the axis of a revolute joint (m, h_z and I_yy, with I_xx the same) goes to the parent's link, which cannot be told
   from it, and so does the whole rotational inertia that a prismatic joint carries; what reaches the base is dropped.

Structural zeros are exact, other numbers agree to rounding. Poses of links and wrenches on them are those of other frames:
`frames[i]` is the pose of the new frame of link i in its old one. Potential energy changes by a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..lie import inertia, se3
from ..memo import per_robot, results
from .robot import Robot

_TINY = 4e-16
_NEARLY_PARALLEL = 1e-2
"""Axes with a smaller sine s of their angle are not used: their common normal may be at a distance 1/s, where inertias lose a
factor 1/s² to rounding.
"""


@dataclass(frozen=True)
class Canonical:
    """A robot in its canonical form, and the poses of its frames in the old ones."""

    robot: Robot
    frames: np.ndarray


@per_robot
def canonical(robot: Robot) -> Canonical:
    """The canonical form of a robot whose numbers are constants."""
    onward = _heaviest_branches(robot)
    frames = np.stack([_axis_frame(robot, i, onward[i]) for i in range(robot.n_links)]) if robot.n_links else np.zeros((0, 4, 4))
    placements, screws, offsets = np.array(robot.placements), np.array(robot.screws), np.zeros(robot.tree_nq)
    inertias = np.array([inertia.transform(se3.inverse(Y), J) for Y, J in zip(frames, robot.inertias, strict=True)]).reshape(-1, 10)
    for i, parent in enumerate(robot.parents):
        home = robot.placements[i] @ frames[i]
        home = home if parent < 0 else se3.inverse(frames[parent]) @ home
        dofs = robot.tree_v_slices[i]
        screws[dofs] = se3.Ad_inv_act(frames[i], robot.screws[dofs])
        if robot.kind(i).nv == 1:
            turns = bool(np.any(robot.screws[dofs.start, :3]))
            placements[i], offset = _split(home, turns)
            if turns:  # pitch h: the home angle also advances by h θ₀, which the placement must take back
                pitch = robot.kind(i).pitch(robot.screws[dofs]) or 0.0
                screws[dofs.start] = [0.0, 0.0, 1.0, 0.0, 0.0, pitch]
                placements[i] = placements[i] @ _translation_z(-pitch * offset)
            else:
                screws[dofs.start] = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
            offsets[robot.tree_q_slices[i]] = offset
        else:
            placements[i] = home
    placements = _snapped(placements)
    _regroup(robot, placements, inertias)
    springs = _moved_springs(robot, frames, offsets)
    other = robot.derived(placements=placements, screws=_snapped(screws), inertias=inertias, spring_numbers=springs)
    index, ratio, shift = robot._q_map or (np.arange(robot.nq), np.ones(robot.nq), np.zeros(robot.nq))
    if np.any(offsets) or robot._q_map is not None:
        other.__dict__["_q_map"] = (index, ratio, shift + offsets)
    itself = Canonical(other, np.broadcast_to(np.eye(4), frames.shape))
    results(other._memo, canonical).get((), lambda: itself)
    return Canonical(other, frames)


def _moved_springs(robot: Robot, frames: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The numbers of the springs in the new frames of the links and for the new zeros of the joints."""
    moved = np.array(robot.spring_numbers)
    for k, ends in enumerate(robot.spring_ends):
        if ends.joint >= 0:
            moved[k, 1] += offsets[robot.tree_q_slices[ends.joint].start]
        for link, place in ((ends.a, slice(2, 5)), (ends.b, slice(5, 8))):
            if link >= 0:
                T = se3.inverse(frames[link])
                moved[k, place] = T[:3, :3] @ moved[k, place] + T[:3, 3]
    return moved


def _axis(robot: Robot, i: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """The axis of joint i in its link's frame: direction, a point, and whether the joint rotates."""
    S = robot.screws[robot.tree_v_slices[i].start]
    if np.any(S[:3]):
        w = S[:3] / np.linalg.norm(S[:3])
        return w, np.cross(w, S[3:]), True
    return S[3:] / np.linalg.norm(S[3:]), np.zeros(3), False


def _axis_frame(robot: Robot, i: int, child: int | None) -> np.ndarray:
    """The new frame of link i in its old one: on the joint's axis, x towards the axis of the child."""
    if robot.kind(i).nv != 1:
        return np.eye(4)
    z, origin, turns = _axis(robot, i)
    if child is not None:
        z2, point, turns2 = _axis(robot, child)
        T = robot.placements[child]
        z2, point = T[:3, :3] @ z2, T[:3, :3] @ point + T[:3, 3]
        x, origin = _common_normal(z, origin, turns, z2, point, turns2)
    else:
        x = None
    if x is None:  # no next axis, or the same one: an axis of the old frame will do
        e = np.eye(3)[np.argmin(np.abs(z))]
        x = e - z * (z @ e)
    x = x - z * (z @ x)
    x = x / np.linalg.norm(x)
    x = x if x[np.argmax(np.abs(x))] > 0 else -x  # either sense will do; that of the old axes leaves most home angles zero
    return se3.pose(np.stack([x, np.cross(z, x), z], axis=-1), origin)


def _heaviest_branches(robot: Robot) -> list[int | None]:
    """The child of each link, on a joint axis, that carries the most links, the first of equals; None if there is none."""
    size = [1] * robot.n_links
    for i in reversed(robot.order):
        if robot.parents[i] >= 0:
            size[robot.parents[i]] += size[i]
    found: list[int | None] = [None] * robot.n_links
    for j, parent in enumerate(robot.parents):
        if parent >= 0 and robot.kind(j).nv == 1:
            best = found[parent]
            found[parent] = j if best is None or size[j] > size[best] else best
    return found


def _common_normal(
    z: np.ndarray, o: np.ndarray, turns: bool, z2: np.ndarray, o2: np.ndarray, turns2: bool
) -> tuple[np.ndarray | None, np.ndarray]:
    """Direction of the common normal from the axis (o, z) to (o2, z2), or None, and its foot on the first."""
    normal = np.cross(z, z2)
    s = np.linalg.norm(normal)
    if s < 1e-9:  # parallel: any foot will do, and the one level with the old origin keeps d small
        between = (o2 - o) - z * (z @ (o2 - o))
        length = np.linalg.norm(between)
        return (between if turns and turns2 and length > 1e-9 else None), o
    normal = normal / s
    if not (turns and turns2) or s < _NEARLY_PARALLEL:  # the line of a prismatic joint stands anywhere
        return normal, o
    # o + t z + a n = o2 + u z2; t from the components in the plane of the two directions
    t = np.dot(np.cross(o2 - o, z2), normal) / s
    return normal, o + t * z


def _split(home: np.ndarray, turns: bool) -> tuple[np.ndarray, float]:
    """placement, offset with home = placement · exp(z offset): the offset is a rotation about z, or a translation along it, which
    the joint itself can perform. It is chosen so that the new x is orthogonal to the parent's z, along the common normal.
    """
    if not turns:
        offset = float(home[:3, 2] @ home[:3, 3])
        placement = home @ _translation_z(-offset)
        return placement, offset
    # x' = Rz(-θ₀) applied from the right: row of the parent's z in home's axes is (r, s, c); make its first entry vanish.
    r, s = home[2, 0], home[2, 1]
    if np.hypot(r, s) > 1e-9:
        # the common normal is ± (z_parent × z); choose the sign that lies along the parent's x if it can
        angle = np.arctan2(-r, s)
        candidates = (angle, angle + np.pi)
        angle = max(candidates, key=lambda a: float(np.cos(a) * home[0, 0] - np.sin(a) * home[0, 1]))
        offset = -angle
    else:
        sign = 1.0 if home[2, 2] > 0 else -1.0
        offset = sign * float(np.arctan2(home[1, 0], home[0, 0]))
    c, s = np.cos(-offset), np.sin(-offset)
    back = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    return home @ back, float(np.arctan2(np.sin(offset), np.cos(offset)))


def _translation_z(d: float) -> np.ndarray:
    T = np.eye(4)
    T[2, 3] = d
    return T


def _snapped(x: np.ndarray) -> np.ndarray:
    """x with entries that are 0 or ±1 up to rounding made exact."""
    x = np.where(np.abs(x) < 4 * _TINY, 0.0, x)
    return np.where(np.abs(np.abs(x) - 1) < 4 * _TINY, np.sign(x), x)


def _regroup(robot: Robot, placements: np.ndarray, inertias: np.ndarray) -> None:
    """Move to each parent, in place and from the tips to the base, the inertial parameters that its child's joint cannot
    distinguish from the parent's own.
    """
    for i in reversed(robot.order):
        kind, J = robot.kind(i), inertias[i]
        moved = np.zeros(10)
        if kind.revolute:  # mass on the z axis: a turn about it changes nothing
            moved[[0, 3, 4, 7]] = J[0], J[3], J[7], J[7]
        elif kind.turns == (False,):  # rotational inertia alone: a shift changes nothing
            moved[4:] = J[4:]
        J -= moved
        if robot.parents[i] >= 0:
            inertias[robot.parents[i]] += inertia.transform(placements[i], moved)
