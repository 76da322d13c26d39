"""Limits of a named frame along a path: how fast it moves, how it accelerates, and the wrench that holds a body there.

With V = J v the body twist of the frame, A = J v̇ + J̇ v its rate and G the inertia of a body that is held at the frame,

    speed            |ω| and |v|, the angular and the linear velocity
    acceleration     ω̇ and v̇ + ω × v, along the axes of the frame
    grip             G (A - g) - ad*(V) G V, the moments and forces that the hand exerts on the body, along the axes of the frame
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, concat, cross, dot, like, mv, to_numpy, transpose
from ..errors import CoadjointError, ShapeError
from ..kinematics.jacobian import jacobian, jacobian_rate
from ..kinematics.poses import pose
from ..lie import se3
from ..robot.robot import Robot
from ..words import short

SPEEDS = ("angular speed", "linear speed")
ACCELERATIONS = tuple(f"{what} acceleration {axis}" for what in ("angular", "linear") for axis in "xyz")
WRENCHES = tuple(f"grip {what} {axis}" for what in ("moment", "force") for axis in "xyz")


@dataclass(frozen=True)
class FrameLimit:
    """A limit of one component of a frame's motion, or of the wrench that holds a body of this inertia there."""

    frame: str
    quantity: str
    component: int
    limit: float
    inertia: tuple[float, ...] | None = None
    """36 numbers, row after row."""


def frame_limits(robot: Robot, speed: Any, acceleration: Any, grip: Any) -> tuple[FrameLimit, ...]:
    """The limits in mappings from frames to two, to six numbers, and to an inertia and six numbers."""
    found: list[FrameLimit] = []
    for name, given, quantities in (
        ("frame_speed", speed, SPEEDS),
        ("frame_acceleration", acceleration, ACCELERATIONS),
        ("grip", grip, WRENCHES),
    ):
        if given is None:
            continue
        if not isinstance(given, Mapping):
            raise CoadjointError(f"{name} is {short(given)}; expected {{frame: limits}}.")
        for frame, values in given.items():
            robot.frame(frame)
            what, inertia = f"{name}[{frame!r}]", None
            if quantities is WRENCHES:
                if not isinstance(values, tuple | list) or len(values) != 2:
                    raise CoadjointError(
                        f"{what} is {short(values)}; expected (inertia, six limits): a mass or a matrix (6, 6) first."
                    )
                inertia = _inertia(values[0], what)
                values = values[1]
            numbers = _positive(values, what, quantities)
            found += [
                FrameLimit(frame, quantity, k, float(x), inertia)
                for k, (quantity, x) in enumerate(zip(quantities, numbers, strict=True))
                if np.isfinite(x)
            ]
    return tuple(found)


def _positive(given: Any, what: str, quantities: tuple[str, ...]) -> np.ndarray:
    try:
        found = np.asarray(to_numpy(given, what), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"{what} is {short(given)}; expected a number, or {len(quantities)}.") from None
    if found.shape not in ((), (1,), (len(quantities),)):
        raise ShapeError(f"{what} has shape {found.shape}; expected one number, or ({len(quantities)},): {', '.join(quantities)}.")
    found = np.broadcast_to(found, (len(quantities),))
    for quantity, x in zip(quantities, found, strict=True):
        if not x > 0:
            raise CoadjointError(f"{what}: {quantity} is {x:g}; expected a positive limit, inf where there is none.")
    return found


def _inertia(given: Any, what: str) -> tuple[float, ...]:
    try:
        G = np.asarray(to_numpy(given, what), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"{what}: the inertia is {short(given)}; expected a mass or a matrix (6, 6).") from None
    if G.shape == ():
        G = np.diag([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]) * G
    if G.shape != (6, 6):
        raise ShapeError(f"{what}: the inertia has shape {G.shape}; expected a mass, or (6, 6) at the frame, rotation first.")
    if not np.all(np.isfinite(G)) or np.abs(G - G.T).max() > 1e-9 * np.abs(G).max() or np.linalg.eigvalsh(G)[0] < -1e-12:
        raise CoadjointError(f"{what}: the inertia is not symmetric, finite and positive.")
    return tuple(G.ravel().tolist())


def frame_values(robot: Robot, limits: tuple[FrameLimit, ...], q: Array, v: Array, a: Array, weight: bool) -> list[Array]:
    """The limited values (...) at velocity v and acceleration a, of speeds their squares. weight: whether gravity counts."""
    moving: dict[str, tuple[Array, Array, Array]] = {}
    found = []
    for x in limits:
        if x.frame not in moving:
            V = mv(jacobian(robot, q, x.frame), v)
            A = mv(jacobian(robot, q, x.frame), a) + mv(jacobian_rate(robot, q, v, x.frame), v)
            moving[x.frame] = (
                V,
                A,
                mv(transpose(pose(robot, q, x.frame)[..., :3, :3]), like(np.asarray(robot.gravity, dtype=float), q)),
            )
        V, A, gravity = moving[x.frame]
        w, p = V[..., :3], V[..., 3:]
        if x.quantity in SPEEDS:
            found.append(dot(w, w) if x.component == 0 else dot(p, p))
        elif x.inertia is None:
            found.append(concat([A[..., :3], A[..., 3:] + cross(w, p)])[..., x.component])
        else:
            G = like(np.reshape(x.inertia, (6, 6)), q)
            rate = concat([A[..., :3], A[..., 3:] - gravity]) if weight else A
            found.append((mv(G, rate) - se3.ad_dual_act(V, mv(G, V)))[..., x.component])
    return found
