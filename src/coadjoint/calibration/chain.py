"""The joints between base and frame with small errors: M₁ exp(η₁) exp(S₁ (q₁ + δ₁)) ⋯ Mₙ exp(ηₙ) exp(Sₙ (qₙ + δₙ)) · tip.

ηᵢ is a constant twist that moves the joint's screw by Ad(exp ηᵢ), with four coordinates for a revolute joint (tilts about two directions
across the axis, shifts along them) and two for a prismatic one (tilts): what is missing commutes with the joint and is left to the joints
after it. δᵢ(q) are errors of the coordinate: offset, scale, harmonics, deflection under gravity (`terms.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..errors import CoadjointError
from ..lie import se3
from ..robot.robot import Robot


@dataclass(frozen=True, eq=False)
class Chain:
    """The path from the base to a frame of a robot whose joints on it have one coordinate each."""

    robot: Robot
    frame: str
    links: tuple[int, ...]
    """The links of the joints that move, from the base outward."""
    coordinates: tuple[int, ...]
    """Their places in q."""
    placements: Array
    """(n, 4, 4): each in the frame of the one before; fixed joints between are included."""
    screws: Array
    tip: Array
    directions: tuple[Array, ...]
    """The twists (4 or 2, 6), for every joint, along which its screw may be moved."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.robot.links[i].joint.name for i in self.links)

    @property
    def turns(self) -> Array:
        """True for revolute joints."""
        return np.any(self.screws[:, :3] != 0, axis=1)

    def poses(self, q: Array, eta: Array, delta: Array, base: Array) -> tuple[list[Array], list[Array], Array]:
        """Frames (N, 4, 4) of every joint before and after its motion, and of the frame itself; q, delta (N, n), eta (n, 6)."""
        T = np.broadcast_to(base, (len(q), 4, 4))
        fixed = self.placements @ se3.exp(eta)
        before, after = [], []
        for i in range(len(self.links)):
            T = T @ fixed[i]
            before.append(T)
            T = T @ _motion(self.screws[i], q[:, i] + delta[:, i])
            after.append(T)
        return before, after, T @ self.tip

    def jacobian(self, q: Array, eta: Array, delta: Array, base: Array) -> tuple[Array, Array, Array, Array]:
        """The frame's pose (N, 4, 4) and its body twists by η (N, 6, Σ), by δ (N, 6, n) and by a twist of the base (N, 6, 6)."""
        before, after, T = self.poses(q, eta, delta, base)
        back = se3.inverse(T)
        of_eta = [_carried(back @ before[i], se3.dexp_body(eta[i]) @ x.T) for i, x in enumerate(self.directions)]
        of_delta = [_carried(back @ after[i], self.screws[i][:, None]) for i in range(len(self.links))]
        return T, np.concatenate(of_eta, axis=2), np.concatenate(of_delta, axis=2), _carried(back @ base, np.eye(6))


def _carried(T: Array, twists: Array) -> Array:
    """Ad(T) X (N, 6, m) of twists X (6, m)."""
    angular = T[:, :3, :3] @ twists[:3]
    linear = T[:, :3, :3] @ twists[3:] + _hat(T[:, :3, 3]) @ angular
    return np.concatenate([angular, linear], axis=1)


def _hat(p: Array) -> Array:
    out = np.zeros((len(p), 3, 3))
    out[:, 2, 1], out[:, 0, 2], out[:, 1, 0] = p.T
    out[:, 1, 2], out[:, 2, 0], out[:, 0, 1] = -p.T
    return out


def _motion(screw: Array, q: Array) -> Array:
    """exp(S q) (N, 4, 4), I + q Ŝ + (1 - cos q) Ŝ² + (q - sin q) Ŝ³ where |ω| = 1 (then Ŝ⁴ = -Ŝ²), I + q Ŝ for a translation."""
    X = se3.hat(screw)
    q = q[:, None, None]
    if not np.any(screw[:3] != 0):
        return np.eye(4) + q * X
    size = float(np.linalg.norm(screw[:3]))
    X, q = X / size, q * size
    return np.eye(4) + q * X + (1.0 - np.cos(q)) * (X @ X) + (q - np.sin(q)) * (X @ X @ X)


def chain(robot: Robot, frame: str) -> Chain:
    """The chain to a frame; an error where a joint on the way has several coordinates or follows another."""
    link, tip = robot.frame(frame)
    links, coordinates, placements, screws = [], [], [], []
    carried = np.eye(4)
    for i in robot.path(link):
        joint = robot.links[i].joint
        carried = carried @ robot.placements[i]
        own = robot.joint_screws(i)
        if len(own) == 0:
            continue
        if i in robot.mimics or len(own) != 1:
            reason = "follows another" if i in robot.mimics else f"has {len(own)} freedoms"
            raise CoadjointError(
                f"joint {joint.name!r} on the way to frame {frame!r} {reason}; calibration needs joints of their own coordinate."
            )
        links.append(i)
        coordinates.append(robot.q_slice(joint.name).start)
        placements.append(carried)
        screws.append(own[0])
        carried = np.eye(4)
    if not links:
        raise CoadjointError(f"no joint moves frame {frame!r} of robot {robot.name!r}; give a frame beyond a joint.")
    S = np.array(screws)
    directions = tuple(_directions(s) for s in S)
    return Chain(robot, frame, tuple(links), tuple(coordinates), np.array(placements), S, carried @ tip, directions)


def _directions(screw: Array) -> Array:
    """Twists that move a screw: those of SE(3) without those that commute with it."""
    w, v = screw[:3], screw[3:]
    turns = bool(np.any(w != 0))
    axis = (w if turns else v) / np.linalg.norm(w if turns else v)
    across = _across(axis)
    tilts = np.hstack([across, np.zeros((2, 3))])
    if not turns:
        return tilts
    point = np.cross(w, v) / (w @ w)
    tilts = np.hstack([across, -np.cross(across, point)])  # about lines through the axis: v = -ω × point
    return np.vstack([tilts, np.hstack([np.zeros((2, 3)), across])])


def _across(axis: Array) -> Array:
    """Two directions at right angles to an axis: coordinate axes where they are."""
    first = np.eye(3)[np.argmin(np.abs(axis))]
    first = first - axis * (first @ axis)
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(axis, first)])


def corrected(chain: Chain, eta: Array, offset: Array) -> Robot:
    """The robot with M exp(η) exp(S δ₀) instead of M at every joint of the chain."""
    robot = chain.robot
    for k, i in enumerate(chain.links):
        change = se3.exp(eta[k]) @ se3.exp(chain.screws[k] * offset[k])
        robot = robot.with_placement(robot.links[i].name, np.asarray(robot.placements[i]) @ change)
    return robot
