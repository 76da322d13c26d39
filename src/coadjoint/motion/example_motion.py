"""A smooth motion for any robot, known exactly with its velocities and accelerations."""

from __future__ import annotations

import numpy as np

from ..arguments import a_robot, positive, takes
from ..arrays import Array
from ..errors import CoadjointError
from ..lie import quaternion, se3
from ..robot.joints import JointKind
from ..robot.link import Joint
from ..robot.robot import Robot
from .states import States

MOST_ROWS = 1e7

Swing = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A coordinate over time with its first and second derivative, each (N,)."""


@takes(robot=a_robot, duration=positive, rate=positive)
def smooth_motion(robot: Robot, duration: float = 5.0, rate: float = 200.0) -> States:
    """q, v and a of a motion within the limits of q and v, at rest at both ends: rows at `rate` per second.

    Each coordinate swings as sin³(c π t / duration) with c = 1, 2 or 3; at its zeros sin³ has neither slope nor curvature.
    A joint whose coordinates form a group moves by the product of the exponentials of its swings.
    """
    if not duration * rate <= MOST_ROWS:
        raise CoadjointError(f"{duration:g} s at {rate:g} rows per second are too many rows; expected at most {MOST_ROWS:g}.")
    time = np.linspace(0.0, duration, round(duration * rate) + 1)
    q, v, a = np.zeros((len(time), robot.nq)), np.zeros((len(time), robot.nv)), np.zeros((len(time), robot.nv))
    for i, (link, kind) in enumerate(zip(robot.links, robot.kinds, strict=True)):
        if i in robot.mimics or not kind.nv:
            continue
        at_q, at_v = robot._q_slices[i], robot._v_slices[i]
        swings = [_swing(kind, link.joint, k, time, at_v.start + k) for k in range(kind.nv)]
        if kind.group is not None:
            q[:, at_q], v[:, at_v], a[:, at_v] = _group_motion(kind, swings)
        else:
            q[:, at_q], v[:, at_v], a[:, at_v] = (np.stack(x, axis=-1) for x in zip(*swings, strict=True))
    return States(q, v, a, None, time)


def _factors(kind: JointKind) -> list[int]:
    """The unit twists of a group whose exponentials are multiplied: translations first, so that their amounts are coordinates of q."""
    return sorted(kind.group or (), key=lambda row: row < 3)


def _swing(kind: JointKind, joint: Joint, k: int, time: np.ndarray, number: int) -> Swing:
    """The swing of coordinate k of a joint, at most over six tenths of the way it may go; its number among all makes it differ."""
    factors = _factors(kind)
    is_length = factors[k] >= 3 if factors else not kind.turns[k]
    reach = 0.3 if is_length else 0.5 if factors else 1.0
    in_q = kind.quaternion is None or is_length
    lower, upper = (float(joint.lower[k]), float(joint.upper[k])) if in_q else (-np.inf, np.inf)
    low = lower if np.isfinite(lower) else min(0.0, upper - reach) - reach
    high = upper if np.isfinite(upper) else max(0.0, lower + reach) + reach
    w = (1 + number % 3) * np.pi / time[-1]
    # |d sin³/dx| is at most 2/√3. The velocities of a group's swings add up.
    fastest = float(np.min(joint.velocity)) / len(factors) if factors else float(joint.velocity[k])
    amplitude = min(reach, 0.3 * (high - low), 0.8 * fastest / (w * 2 / np.sqrt(3)))
    amplitude *= (1.0, -0.9, 0.8, -0.7)[number % 4]
    s, c = np.sin(w * time), np.cos(w * time)
    position = 0.5 * (low + high) + amplitude * s**3
    return position, amplitude * w * 3 * s**2 * c, amplitude * w**2 * (6 * s * c**2 - 3 * s**3)


def _group_motion(kind: JointKind, swings: list[Swing]) -> tuple[Array, Array, Array]:
    """q, v, a of g = exp(E₁ φ₁) exp(E₂ φ₂) ⋯, with V the body velocity of g, by the recursion of a chain of joints."""
    g, V, dV = np.eye(4), np.zeros(6), np.zeros(6)
    for axis, (angle, rate, second) in zip(_factors(kind), swings, strict=True):
        E = np.eye(6)[axis]
        step, own = se3.exp_screw(E, angle), E * rate[:, None]
        g = g @ step
        V = se3.Ad_inv_act(step, V) + own
        dV = se3.Ad_inv_act(step, dV) + se3.ad_act(V, own) + E * second[:, None]
    rows, coordinates = list(kind.group or ()), np.stack([swing[0] for swing in swings], axis=-1)
    if kind.quaternion is not None:  # turns of half a radian about three axes stay below π together, so that w > 0 throughout
        coordinates = np.concatenate([coordinates[:, :-3], quaternion.from_matrix(g[:, :3, :3])], axis=-1)
    return coordinates, V[:, rows], dV[:, rows]
