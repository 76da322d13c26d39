"""States in the conventions of other libraries, without the libraries.

                free joint: q                v                                          other joints
    coadjoint   position, quaternion xyzw    ω, u: twist in the axes of the link        planar x y θ; v = ω, u
    pinocchio   position, xyzw               u, ω in the axes of the link               continuous cos sin; planar x y cos sin; v = u, ω
    mujoco      position, wxyz               ṗ in space, ω in the axes of the link      spherical wxyz; planar x y θ; v = ẋ ẏ θ̇
    drake       wxyz, position               ω, ṗ in space                              planar x y θ; v = ẋ ẏ θ̇
    pybullet    position, xyzw               ṗ, ω in space                              one number each

PyBullet's position is that of the centre of mass of the base, in axes parallel to the link's. In Pinocchio's vectors joints that mimic
others have no coordinate, as with `mimic=True`; in those of the others they have their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments import a_flag, a_robot, one_of, takes
from ..arrays import cross, mv
from ..errors import CoadjointError, ShapeError
from ..lie import quaternion
from ..robot.robot import Robot
from ..words import short
from ._mujoco_states import JointPair

LIBRARIES = ("coadjoint", "pinocchio", "mujoco", "drake", "pybullet")
UNIT = 1e-3
"""The largest deviation of a quaternion's length from one."""


@takes(robot=a_robot, from_=one_of(*LIBRARIES), to=one_of(*LIBRARIES), check=a_flag)
def convert_states(
    robot: Robot,
    q: Any,
    v: Any = None,
    from_: str = "coadjoint",
    to: str = "coadjoint",
    *,
    joints: Sequence[str] | None = None,
    check: bool = True,
) -> Any:
    """(q, v) of one library in the convention of another, or q alone if v is None; leading axes are batch axes.

    joints: the names of the joints in the order of the other library's vectors (`model.names[1:]` of Pinocchio), where it is not the
    robot's, of both where neither is this one; those that do not move are skipped. Quaternions that are not of length one are refused,
    and so are those that turn a base upside down in every state but would not in the other order (x, y, z, w) or (w, x, y, z), unless
    check=False.
    """
    q = _array(q, "q")
    v = None if v is None else _array(v, "v")
    tree_q, tree_v = _to_tree(robot, q, v, from_, joints, check)
    if to == "coadjoint":
        moved = [i for i in range(robot.n_links) if i not in robot.mimics]
        q = _joined([tree_q[..., robot.tree_q_slices[i]] for i in moved], tree_q)
        return q if tree_v is None else (q, _joined([tree_v[..., robot.tree_v_slices[i]] for i in moved], tree_v))
    parts = [_out(robot, pair, to, tree_q, tree_v) for pair in _pairs(robot, to, joints)]
    q = _joined([part[0] for part in parts], tree_q)
    return q if tree_v is None else (q, _joined([part[1] for part in parts], tree_v))


def _array(x: Any, name: str) -> np.ndarray:
    try:
        found = np.asarray(x, dtype=float)
    except (ValueError, TypeError, OverflowError):
        raise CoadjointError(f"{name} is {short(x)}; expected numbers.") from None
    if found.ndim == 0:
        raise ShapeError(f"{name} is {short(x)}; expected a vector, or vectors with batch axes in front.")
    return found


def _joined(parts: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    return np.concatenate([like[..., :0], *parts], axis=-1)


def _check_sizes(q: np.ndarray, v: np.ndarray | None, nq: int, nv: int, library: str) -> None:
    for name, x, size in (("q", q, nq), ("v", v, nv)):
        if x is not None and x.shape[-1] != size:
            raise ShapeError(f"{name} has {x.shape[-1]} numbers; in the convention of {library} the robot has {size}.")


def _pairs(robot: Robot, library: str, joints: Sequence[str] | None) -> list[JointPair]:
    """The joints in the order of the library's vectors."""
    names = [link.joint.name for link in robot.links] if joints is None or library == "coadjoint" else list(joints)
    own = library in ("pinocchio", "coadjoint")
    moving = {link.joint.name: i for i, link in enumerate(robot.links) if robot.kind(i).nv and not (own and i in robot.mimics)}
    chosen = [moving[name] for name in names if name in moving]
    missing = [name for name, i in moving.items() if i not in chosen and i not in robot.mimics]
    if missing or len(set(chosen)) < len(chosen):
        what = f"lacks {short(missing[0])}" if missing else "has a name twice"
        raise CoadjointError(f"joints {what}; give every joint that moves once, in the order of {library}'s vectors.")
    pairs = []
    for i in chosen:
        link = robot.links[i]
        _refuse(robot, i, library)
        q, v = robot.tree_q_slices[i], robot.tree_v_slices[i]
        pairs.append(JointPair(i, link.joint.kind, robot.joint_screws(i), robot.placements[i], q, v, q, v))
    return pairs


def _refuse(robot: Robot, i: int, library: str) -> None:
    kind, name = robot.links[i].joint.kind, robot.links[i].joint.name
    unknown = {"drake": ("spherical",), "pybullet": ("spherical", "planar")}.get(library, ())
    if library != "coadjoint" and (kind in unknown or (kind == "free" and robot.parents[i] >= 0)):
        raise CoadjointError(f"joint {name!r} is {kind}; how {library} keeps such a joint there is not known here.")


def _sizes(pair: JointPair, library: str) -> tuple[int, int]:
    """The numbers of q and v of a joint in a library's vectors."""
    nq, nv = pair.q.stop - pair.q.start, pair.v.stop - pair.v.start
    return nq + (library == "pinocchio" and pair.kind in ("continuous", "planar")), nv


def _to_tree(
    robot: Robot, q: np.ndarray, v: np.ndarray | None, library: str, joints: Sequence[str] | None, check: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """The state in the coordinates of the robot's tree."""
    pairs = _pairs(robot, library, joints)
    sizes = [_sizes(pair, library) for pair in pairs]
    _check_sizes(q, v, sum(n for n, _ in sizes), sum(n for _, n in sizes), library)
    batch = q.shape[:-1] if v is None else np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    tree_q = np.empty((*batch, robot.tree_nq))
    tree_v = None if v is None else np.empty((*batch, robot.tree_nv))
    at_q = at_v = 0
    for pair, (nq, nv) in zip(pairs, sizes, strict=True):
        theirs = q[..., at_q : at_q + nq]
        if check:
            _check_quaternion(robot, pair, library, theirs)
        if pair.link not in robot.mimics:
            speed = None if v is None else v[..., at_v : at_v + nv]
            own_q, own_v = _in(robot, pair, library, theirs, speed)
            tree_q[..., pair.q] = own_q
            if tree_v is not None:
                tree_v[..., pair.v] = own_v
        at_q, at_v = at_q + nq, at_v + nv
    for i, (source, ratio, offset) in robot.mimics.items():
        tree_q[..., robot.tree_q_slices[i]] = ratio * tree_q[..., robot.tree_q_slices[source]] + offset
        if tree_v is not None:
            tree_v[..., robot.tree_v_slices[i]] = ratio * tree_v[..., robot.tree_v_slices[source]]
    return tree_q, tree_v


# --- one joint


def _turn(wxyz: np.ndarray) -> np.ndarray:
    R: np.ndarray = quaternion.to_matrix(quaternion.normalize(np.roll(wxyz, -1, axis=-1)))
    return R


def _centre(robot: Robot, pair: JointPair) -> np.ndarray:
    m = robot.inertias[pair.link, 0]
    return robot.inertias[pair.link, 1:4] / m if m > 0 else np.zeros(3)


def _out(robot: Robot, pair: JointPair, library: str, q: np.ndarray, v: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """A joint's q and v in a library's vectors, by way of MuJoCo's."""
    q, v = q[..., pair.q], np.zeros((*q.shape[:-1], pair.v.stop - pair.v.start)) if v is None else v[..., pair.v]
    if library == "pinocchio" and pair.kind == "continuous":
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1), v
    if library == "pinocchio" and pair.kind == "planar":
        angle = q[..., 2:]
        return np.concatenate([q[..., :2], np.cos(angle), np.sin(angle)], axis=-1), np.roll(v, -1, axis=-1)
    if library == "pinocchio" and pair.kind == "spherical":
        return q, v
    qpos, qvel = pair.to_qpos(q), pair.push(q, v)
    if pair.kind != "free" or library == "mujoco":
        return qpos, qvel
    p, wxyz, dp, w = qpos[..., :3], qpos[..., 3:], qvel[..., :3], qvel[..., 3:]
    R, xyzw = _turn(wxyz), np.roll(wxyz, -1, axis=-1)
    if library == "pinocchio":
        return np.concatenate([p, xyzw], axis=-1), np.concatenate([mv(np.swapaxes(R, -1, -2), dp), w], axis=-1)
    if library == "drake":
        return np.concatenate([wxyz, p], axis=-1), np.concatenate([mv(R, w), dp], axis=-1)
    c = _centre(robot, pair)
    speed = dp + mv(R, cross(w, np.broadcast_to(c, w.shape)))
    return np.concatenate([p + mv(R, c), xyzw], axis=-1), np.concatenate([speed, mv(R, w)], axis=-1)


def _in(robot: Robot, pair: JointPair, library: str, q: np.ndarray, v: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of `_out`."""
    v = np.zeros((*q.shape[:-1], pair.v.stop - pair.v.start)) if v is None else v
    if library == "coadjoint":
        return q, v
    if library == "pinocchio" and pair.kind in ("continuous", "planar"):
        angle = np.arctan2(q[..., -1:], q[..., -2:-1])
        return np.concatenate([q[..., :-2], angle], axis=-1), v if pair.kind == "continuous" else np.roll(v, 1, axis=-1)
    if library == "pinocchio" and pair.kind == "spherical":
        return q, v
    if pair.kind == "free" and library != "mujoco":
        q, v = _free_in(robot, pair, library, q, v)
    own = pair.from_qpos(q)
    return own, v if pair.same else np.linalg.solve(pair.G(own), v[..., None])[..., 0]


def _free_in(robot: Robot, pair: JointPair, library: str, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's q and v of a free joint."""
    wxyz, p = (q[..., :4], q[..., 4:]) if library == "drake" else (np.roll(q[..., 3:], 1, axis=-1), q[..., :3])
    R = _turn(wxyz)
    back = np.swapaxes(R, -1, -2)
    first, second = v[..., :3], v[..., 3:]
    if library == "pinocchio":
        dp, w = mv(R, first), second
    elif library == "drake":
        dp, w = second, mv(back, first)
    else:
        c, w = _centre(robot, pair), mv(back, second)
        p, dp = p - mv(R, c), first - mv(R, cross(w, np.broadcast_to(c, w.shape)))
    return np.concatenate([p, wxyz], axis=-1), np.concatenate([dp, w], axis=-1)


# --- doubts


def _places(kind: str, library: str) -> tuple[slice, bool]:
    """The slice of the quaternion among the numbers of a free or spherical joint, and whether w is first."""
    first = library in ("mujoco", "drake")
    return (slice(0, 4) if kind == "spherical" or library == "drake" else slice(3, 7)), first


def _check_quaternion(robot: Robot, pair: JointPair, library: str, q: np.ndarray) -> None:
    """Raise an error where the quaternion of a joint is none, or seems to be in another order."""
    if pair.kind not in ("free", "spherical") or not q.size:
        return
    name = robot.links[pair.link].joint.name
    place, w_first = _places(pair.kind, library)
    size = np.linalg.norm(q[..., place], axis=-1)
    if not np.all(np.abs(size - 1) < UNIT):
        others = [x for x in LIBRARIES if np.all(np.abs(np.linalg.norm(q[..., _places(pair.kind, x)[0]], axis=-1) - 1) < UNIT)]
        hint = f"as those of {' or '.join(others)} they would be" if others else "normalise them first"
        worst = float(np.ravel(size)[np.argmax(np.abs(np.ravel(size) - 1))])
        raise CoadjointError(
            f"joint {name!r}: the quaternions are not of length one (one has {worst:.4g}) in the order of {library}; {hint}."
        )
    real, other = (0, 3) if w_first else (3, 0)
    turned, upright = np.abs(q[..., place][..., real]), np.abs(q[..., place][..., other])
    if pair.kind == "free" and np.all(upright > 0.9) and np.all(turned < 0.3):
        given, likely = ("w x y z", "x y z w") if w_first else ("x y z w", "w x y z")
        raise CoadjointError(
            f"joint {name!r}: read as {given}, the order of {library}, the quaternions turn the base upside down in every state; read as "
            f"{likely} they would not. Give from_= of the library that they are from, or check=False if the base is upside down."
        )
