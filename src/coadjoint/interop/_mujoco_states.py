"""Conversion of states between a robot and MuJoCo's model of it.

Joints are matched by name. For hinges and slides q = qpos and v = qvel; a universal joint is two hinges `name_1`, `name_2`,
a planar joint two slides and a hinge `name_x`, `name_y`, `name_theta`. Otherwise

    spherical, ball    qpos = (w, x, y, z) of the turn in the axes of the body, qvel = the angular velocity in them
    free               qpos = (position, (w, x, y, z)) in the world, qvel = (ṗ, ω): the velocity of the body's origin in the axes of
                       the world, and the angular velocity in those of the body. With the body twist V = (ω, u): ṗ = R u.
                       A free joint on a link that moves is three slides and a ball, `name_x`, `name_y`, `name_z`, `name_ball`,
                       and for "world" stands the frame of what carries it.
    planar             qvel = (ẋ, ẏ, ω) with (ẋ, ẏ) = R(θ) (vx, vy)

So velocities are linear maps of each other that depend on q, qvel = G(q) v. Hence qacc = G a + Ġ v, and generalised forces, which
keep their power τ·v = qfrc·qvel, go the other way: τ = Gᵀ qfrc. Mass matrices obey M = Gᵀ M_mujoco G, Jacobians J = J_mujoco G.

A joint that mimics another has its own coordinate in MuJoCo; forces on it count for the joint it follows, and none are put on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import cross, mv, transpose
from ..errors import ModelError, unknown
from ..lie import quaternion
from ..robot.joints import KINDS, axes_and_centre
from ..robot.mjcf_write import SUFFIXES
from ..robot.robot import Robot
from ..words import short
from ._common import Names, array


def names_of(model: Any, what: str) -> list[str]:
    """The names of all bodies ("body"), joints ("jnt"), sites and so on; "" for one without a name."""
    text = model.names
    return [decoded(text[k : text.index(b"\0", k)]) for k in getattr(model, f"name_{what}adr")]


def decoded(name: bytes) -> str:
    """A name of MuJoCo's, which keeps the bytes of the file."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise ModelError(f"a name is {short(name)}, which is not UTF-8. Save the file as UTF-8.") from None


def joint_names(model: Any) -> list[str]:
    """The names of the joints; the name of the body for a joint without one."""
    given, bodies = names_of(model, "jnt"), names_of(model, "body")
    names = Names(*given)
    return [name or names.take(f"{bodies[b] or f'body{b}'}_joint") for name, b in zip(given, model.jnt_bodyid, strict=True)]


def q_to_mujoco(robot: Robot, model: Any, q: Any) -> np.ndarray:
    """qpos (..., model.nq) of q (..., nq)."""
    q = robot.tree_q(array(q, "q", robot.nq, f"robot {robot.name!r}"))
    qpos = np.empty((*q.shape[:-1], model.nq))
    for pair in _pairs(robot, model):
        qpos[..., pair.qpos] = pair.to_qpos(q[..., pair.q])
    return qpos


def q_from_mujoco(robot: Robot, model: Any, qpos: Any) -> np.ndarray:
    """q (..., nq) of qpos (..., model.nq); the coordinates of joints that mimic others are not read."""
    return _independent(robot, _tree_q(robot, model, qpos), robot.tree_q_slices)


def v_to_mujoco(robot: Robot, model: Any, q: Any, v: Any) -> np.ndarray:
    """qvel = G(q) v (..., model.nv) of v (..., nv)."""
    q, v = _tree(robot, q=q, v=v)
    return _assemble(robot, model, q, lambda pair, q: pair.push(q, v[..., pair.v]), v)


def v_from_mujoco(robot: Robot, model: Any, qpos: Any, qvel: Any) -> np.ndarray:
    """v = G⁻¹ qvel (..., nv) of qvel (..., model.nv)."""
    return _independent(robot, _tree_v(robot, model, _tree_q(robot, model, qpos), qvel), robot.tree_v_slices)


def a_to_mujoco(robot: Robot, model: Any, q: Any, v: Any, a: Any) -> np.ndarray:
    """qacc = G a + Ġ v (..., model.nv) of the acceleration a = dv/dt (..., nv)."""
    q, v, a = _tree(robot, q=q, v=v, a=a)
    return _assemble(robot, model, q, lambda pair, q: pair.push(q, a[..., pair.v]) + pair.drift(q, v[..., pair.v]), v, a)


def a_from_mujoco(robot: Robot, model: Any, qpos: Any, qvel: Any, qacc: Any) -> np.ndarray:
    """a = G⁻¹ (qacc - Ġ v) (..., nv) of qacc (..., model.nv)."""
    q = _tree_q(robot, model, qpos)
    v = _tree_v(robot, model, q, qvel)
    qacc = array(qacc, "qacc", model.nv, "the model")
    drift = _assemble(robot, model, q, lambda pair, q: pair.drift(q, v[..., pair.v]), v)
    return _independent(robot, _tree_v(robot, model, q, qacc - drift), robot.tree_v_slices)


def force_to_mujoco(robot: Robot, model: Any, q: Any, tau: Any) -> np.ndarray:
    """qfrc = G⁻ᵀ τ (..., model.nv) of generalised forces τ (..., nv), as for `qfrc_applied`."""
    (q,) = _tree(robot, q=q)
    tau = array(tau, "tau", robot.nv, f"robot {robot.name!r}")

    def part(pair: JointPair, q: np.ndarray) -> np.ndarray:
        if pair.link in robot.mimics:
            return np.zeros(1)
        mine = tau[..., robot._v_slices[pair.link]]
        return mine if pair.same else np.linalg.solve(transpose(pair.G(q)), mine[..., None])[..., 0]

    return _assemble(robot, model, q, part, tau)


def force_from_mujoco(robot: Robot, model: Any, qpos: Any, qfrc: Any) -> np.ndarray:
    """τ = Gᵀ qfrc (..., nv) of generalised forces qfrc (..., model.nv), such as `qfrc_inverse`.

    MuJoCo's `qfrc_bias` is the force at qacc = 0, `bias_force` that at a = 0. These are not the same motion where Ġ v is not zero:
    Gᵀ qfrc_bias = bias_force + M a for a = `a_from_mujoco(robot, model, qpos, qvel, 0)`.
    """
    q, qfrc = _tree_q(robot, model, qpos), array(qfrc, "qfrc", model.nv, "the model")
    tau = np.empty((*np.broadcast_shapes(q.shape[:-1], qfrc.shape[:-1]), robot.tree_nv))
    for pair in _pairs(robot, model):
        theirs = qfrc[..., pair.qvel]
        tau[..., pair.v] = theirs if pair.same else mv(transpose(pair.G(q[..., pair.q])), theirs)
    return robot.from_tree(tau)


def velocity_map(robot: Robot, model: Any, q: Any) -> np.ndarray:
    """G(q) (..., model.nv, nv) with qvel = G v; M = Gᵀ M_mujoco G, and J = J_mujoco G for `mj_jac` and reference "world"."""
    (q,) = _tree(robot, q=q)
    G = np.zeros((*q.shape[:-1], model.nv, robot.tree_nv))
    for pair in _pairs(robot, model):
        G[..., pair.qvel, pair.v] = pair.G(q[..., pair.q])
    return robot.from_tree_columns(G)


@dataclass(frozen=True)
class JointPair:
    """A joint of the robot, and the indices of its coordinates in the tree's and in MuJoCo's vectors."""

    link: int
    kind: str
    screws: np.ndarray
    placement: np.ndarray
    q: slice
    v: slice
    qpos: slice
    qvel: slice

    @property
    def same(self) -> bool:
        """True if both have the same coordinates: true for hinges and slides."""
        return self.kind not in ("spherical", "planar", "free")

    def push(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """G v (..., n)."""
        return v if self.same else mv(self.G(q), v)

    def _turn(self, q: np.ndarray) -> np.ndarray:
        """The quaternion of the link's rotation from home, in the axes of the link: K q K⁻¹."""
        K, _ = axes_and_centre(self.screws)
        return np.concatenate([mv(K, q[..., :3]), q[..., 3:]], axis=-1)

    def to_qpos(self, q: np.ndarray) -> np.ndarray:
        if self.kind == "spherical":
            return np.roll(self._turn(q), 1, axis=-1)
        if self.kind == "free":
            position = (self.placement @ KINDS["free"].pose(self.screws, q))[..., :3, 3]
            turn = quaternion.multiply(quaternion.from_matrix(self.placement[:3, :3]), self._turn(q[..., 3:]))
            return np.concatenate([position, np.roll(turn, 1, axis=-1)], axis=-1)
        return q

    def from_qpos(self, qpos: np.ndarray) -> np.ndarray:
        if self.kind not in ("spherical", "free"):
            return qpos
        K, c = axes_and_centre(self.screws)
        turn = np.roll(qpos[..., -4:], -1, axis=-1)
        if self.kind == "free":
            home = quaternion.from_matrix(self.placement[:3, :3])
            turn = quaternion.multiply(quaternion.conjugate(home), turn)
        q = np.concatenate([mv(K.T, turn[..., :3]), turn[..., 3:]], axis=-1)
        if self.kind == "spherical":
            return q
        # x = c + K p - R c is where the link's origin stands from home.
        x = mv(self.placement[:3, :3].T, qpos[..., :3] - self.placement[:3, 3])
        R = quaternion.to_matrix(quaternion.normalize(turn))
        return np.concatenate([mv(K.T, x - c + mv(R, c)), q], axis=-1)

    def G(self, q: np.ndarray) -> np.ndarray:
        """∂qvel/∂v (..., n, n)."""
        if self.kind == "spherical":
            return self.screws[:, :3].T
        if self.kind == "free":
            w, u = self.screws[:, :3].T, self._rotation(q) @ self.screws[:, 3:].T
            return np.concatenate([u, np.broadcast_to(w, u.shape)], axis=-2)
        if self.kind == "planar":
            G = np.zeros((*q.shape[:-1], 3, 3))
            cos, sin = np.cos(q[..., 2]), np.sin(q[..., 2])
            G[..., 0, 1], G[..., 0, 2], G[..., 1, 1], G[..., 1, 2], G[..., 2, 0] = cos, -sin, sin, cos, 1.0
            return G
        return np.eye(self.v.stop - self.v.start)

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Ġ v (..., n): the axes of the link, in which u is given, turn with ω."""
        if self.kind == "free":
            V = v @ self.screws
            change = mv(self._rotation(q), cross(V[..., :3], V[..., 3:]))
            return np.concatenate([change, np.zeros_like(change)], axis=-1)
        if self.kind == "planar":
            w, x, y = v[..., 0], v[..., 1], v[..., 2]
            turned = np.stack([np.zeros(w.shape), -w * y, w * x], axis=-1)  # of (ω, vx, vy)
            return mv(self.G(q), turned)
        return np.zeros(v.shape)

    def _rotation(self, q: np.ndarray) -> np.ndarray:
        return self.placement[:3, :3] @ KINDS["free"].pose(self.screws, q)[..., :3, :3]


def _pairs(robot: Robot, model: Any) -> Iterator[JointPair]:
    """Every moving joint of the robot with its coordinates in MuJoCo's model; an error if a joint of the model is left over."""
    index = {name: j for j, name in enumerate(joint_names(model))}
    taken = 0
    for i, link in enumerate(robot.links):
        kind, name = link.joint.kind, link.joint.name
        if kind == "fixed":
            continue
        suffixes = ("",) if kind == "free" and name in index else SUFFIXES.get(kind, ("",))
        for suffix in suffixes:
            if name + suffix not in index:
                raise unknown("joint of the model", name + suffix, index)
        first = index[name + suffixes[0]]
        q, v = model.jnt_qposadr[first], model.jnt_dofadr[first]
        nq, nv = robot.kinds[i].nq, robot.kinds[i].nv
        here, there = (robot.tree_q_slices[i], robot.tree_v_slices[i]), (slice(q, q + nq), slice(v, v + nv))
        yield JointPair(i, kind, robot.joint_screws(i), robot.placements[i], *here, *there)
        taken += nv
    if taken != model.nv:
        ours = {link.joint.name + s for link in robot.links for s in ("", *SUFFIXES.get(link.joint.kind, ()))}
        extra = [name for name in index if name not in ours]
        raise ModelError(f"the model has joints that robot {robot.name!r} has not: {', '.join(extra)}.")


def _tree(robot: Robot, **arrays: Any) -> list[np.ndarray]:
    """The arrays in the coordinates of the tree."""
    label = f"robot {robot.name!r}"
    return [
        robot.tree_q(array(x, name, robot.nq, label)) if name == "q" else robot.tree_v(array(x, name, robot.nv, label))
        for name, x in arrays.items()
    ]


def _tree_q(robot: Robot, model: Any, qpos: Any) -> np.ndarray:
    qpos = array(qpos, "qpos", model.nq, "the model")
    q = np.empty((*qpos.shape[:-1], robot.tree_nq))
    for pair in _pairs(robot, model):
        q[..., pair.q] = pair.from_qpos(qpos[..., pair.qpos])
    return q


def _tree_v(robot: Robot, model: Any, q: np.ndarray, qvel: Any) -> np.ndarray:
    """G⁻¹ qvel in the coordinates of the tree."""
    qvel = array(qvel, "qvel", model.nv, "the model")
    v = np.empty((*np.broadcast_shapes(q.shape[:-1], qvel.shape[:-1]), robot.tree_nv))
    for pair in _pairs(robot, model):
        theirs = qvel[..., pair.qvel]
        v[..., pair.v] = theirs if pair.same else np.linalg.solve(pair.G(q[..., pair.q]), theirs[..., None])[..., 0]
    return v


def _independent(robot: Robot, x: np.ndarray, slices: tuple[slice, ...]) -> np.ndarray:
    """The coordinates of the tree without those of mimic joints."""
    parts = [x[..., slices[i]] for i in range(robot.n_links) if i not in robot.mimics]
    return np.concatenate([x[..., :0], *parts], axis=-1)


def _assemble(
    robot: Robot, model: Any, q: np.ndarray, part: Callable[[JointPair, np.ndarray], np.ndarray], *others: np.ndarray
) -> np.ndarray:
    """MuJoCo's vector (..., nv) from its part for each joint."""
    result = np.empty((*np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in others)), model.nv))
    for pair in _pairs(robot, model):
        result[..., pair.qvel] = part(pair, q[..., pair.q])
    return result
