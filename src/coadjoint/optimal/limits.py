"""The limits of a motion along a path as rows in x = ṡ² and u = s̈.

With q' = dq/ds and q'' = d²q/ds², v = q' √x and a = q' u + q'' x, so that

    acceleration     q' u + q'' x
    joint force      (M q') u + (M q'' + C(q, q') q') x + d q' √x + g + μ sign(q')
    reaction         the wrench through a joint, of the same form; so are acceleration and grip of a frame (`frame_limits.py`)

each between its bounds, and x ≤ (limit / |q'|)² for velocities. The power τ q' √x is the row of the joint force between the bounds
± limit / (|q'| √x), which bend with x. Rows are divided by their limits, so that residuals are relative.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array, concat, stack
from ..dynamics import inverse_dynamics, joint_reactions
from ..families import built
from ..kernel.programs import WIDTH
from ..memo import recent
from ..motion.friction import friction_coefficients
from ..robot.robot import Robot
from .frame_limits import SPEEDS, FrameLimit, frame_values

SLOW = 1e-3
"""Velocity below which a limit of power does not matter, for joints whose force has no limit."""


@dataclass(frozen=True, eq=False)
class Limits:
    """The limits of a motion: (nv,) each, inf where there is no limit; reactions are (joint number, component, limit)."""

    robot: Robot
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    power: np.ndarray
    reactions: tuple[tuple[int, int, float], ...] = ()
    frames: tuple[FrameLimit, ...] = ()
    names: tuple[tuple[str, str], ...] = field(init=False)
    """The quantity and joint that each row limits: a quantity and its joint."""

    def __post_init__(self) -> None:
        joints = self.robot.v_names
        names = [("acceleration", joints[j]) for j in self.accelerated] + [("effort", joints[j]) for j in self.loaded]
        names += [("power", joints[j]) for j in self.powered]
        for joint, component, _ in self.reactions:
            what = ("moment x", "moment y", "moment z", "force x", "force y", "force z")[component]
            names.append((what, self.robot.joint_names[joint]))
        names += [(x.quantity, x.frame) for x in self.frame_rows]
        object.__setattr__(self, "names", tuple(names))

    @cached_property
    def accelerated(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.acceleration))

    @cached_property
    def loaded(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.effort))

    @cached_property
    def powered(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.power))

    @cached_property
    def frame_rows(self) -> tuple[FrameLimit, ...]:
        return tuple(x for x in self.frames if x.quantity not in SPEEDS)

    @cached_property
    def frame_speeds(self) -> tuple[FrameLimit, ...]:
        return tuple(x for x in self.frames if x.quantity in SPEEDS)

    @cached_property
    def speed_names(self) -> tuple[tuple[str, str], ...]:
        """The name of each limit of speed: a quantity and its joint or frame."""
        return (*(("velocity", self.robot.v_names[j]) for j in self.fast), *((x.quantity, x.frame) for x in self.frame_speeds))

    @cached_property
    def fast(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.velocity))

    @cached_property
    def dynamic(self) -> bool:
        """True if the dynamics of the robot matter."""
        return bool(len(self.loaded) or len(self.powered) or self.reactions)

    @cached_property
    def curved(self) -> bool:
        """True if some row is not linear in x or jumps with the sign of q': power, and friction."""
        d, dry = friction_coefficients(self.robot)
        some = self.loaded
        return bool(len(self.powered) or np.any(np.asarray(d)[some] != 0) or np.any(np.asarray(dry)[some] != 0))

    @cached_property
    def rows(self) -> int:
        """R: how many rows, in whole blocks."""
        return _whole(len(self.names))

    @cached_property
    def speeds(self) -> int:
        """V: how many limits of speed, in whole blocks; the last one is of rows that do not depend on u."""
        return _whole(len(self.fast) + len(self.frame_speeds) + 1)

    @cached_property
    def scale(self) -> np.ndarray:
        """(rows + speeds): what rows and velocities are divided by."""
        last = [limit for _, _, limit in self.reactions] + [x.limit for x in self.frame_rows]
        forces = self.effort[self.loaded], self.power[self.powered]
        speeds = self.velocity[self.fast], [x.limit for x in self.frame_speeds]
        return np.concatenate([self.acceleration[self.accelerated], *forces, last, *speeds])

    @cached_property
    def constants(self) -> np.ndarray:
        """(3, R): damping and dry friction of every row, divided by its limit; of powers a velocity so low that they do not matter."""
        found = np.zeros((3, self.rows))
        d, dry = (np.asarray(x) for x in friction_coefficients(self.robot))
        first, some = len(self.accelerated), np.concatenate([self.loaded, self.powered])
        mine = slice(first, first + len(some))
        found[0, mine], found[1, mine] = d[some], dry[some]
        found[:2, mine] /= self.scale[mine]
        power, effort = self.power[self.powered], self.effort[self.powered]
        found[2, first + len(self.loaded) : first + len(some)] = np.where(np.isfinite(effort), power / (2.0 * effort), SLOW)
        return found

    def kernel(self, order: int) -> Any:
        """A kernel of places: rows (4 R + V) from a polynomial c (order, nv), highest power first, at d, and the scale.

        At each place the coefficients of u, those of x, the rest, q' of the row's joint (R each), and the inverse limits of x (V).
        """
        robot = self.robot
        key = (order, *(tuple(x.tolist()) for x in (self.accelerated, self.loaded, self.powered, self.fast)))
        key = (*key, tuple((x.frame, x.quantity, x.inertia) for x in self.frames))
        places = tuple((joint, component) for joint, component, _ in self.reactions)
        shapes = {"c": (order, robot.nv), "d": (1,), "scale": (len(self.scale),)}
        make = lambda: built(robot, lambda c, d, scale: self._traced(places, c, d, scale), shapes, "timing_rows")
        return recent(robot, ("timing", key, places), make)

    def _traced(self, places: tuple[tuple[int, int], ...], c: Array, d: Array, scale: Array) -> Array:
        q, dq, ddq = horner([c[..., k, :] for k in range(c.shape[-2])], d)
        joints, zero = [int(j) for j in (*self.loaded, *self.powered)], 0.0 * d[..., 0]
        parts = {"a": [dq[..., j] for j in self.accelerated], "b": [ddq[..., j] for j in self.accelerated]}
        parts["g"] = [zero] * len(self.accelerated)
        if self.dynamic:
            for name, tau in zip("abg", _forces(self.robot, places, q, dq, ddq), strict=True):
                parts[name] += [tau[..., j] for j in joints] + [tau[..., self.robot.nv + k] for k in range(len(places))]
        if self.frame_rows:
            states = {"a": (0.0 * dq, dq, False), "b": (dq, ddq, False), "g": (0.0 * dq, 0.0 * dq, True)}
            for name, state in states.items():
                parts[name] += frame_values(self.robot, self.frame_rows, q, *state)
        n, first = len(self.names), len(self.accelerated)
        found: list[Array] = []
        for name in "abg":
            found += [x / scale[..., k] for k, x in enumerate(parts[name])] + [zero] * (self.rows - n)
        found += [zero] * first + [dq[..., j] for j in joints] + [zero] * (self.rows - first - len(joints))
        squares = [dq[..., int(j)] ** 2 for j in self.fast]
        squares += frame_values(self.robot, self.frame_speeds, q, dq, 0.0 * dq, False)
        found += [x / scale[..., n + k] ** 2 for k, x in enumerate(squares)]
        return stack(found + [zero] * (4 * self.rows + self.speeds - len(found)))


def _whole(n: int) -> int:
    return WIDTH * max(1, -(-n // WIDTH))


def horner(c: list[Any], d: Any) -> tuple[Any, Any, Any]:
    """The values and both derivatives at d of a polynomial with these coefficients, highest power first."""
    q, dq, ddq = c[0], 0.0 * c[0], 0.0 * c[0]
    for x in c[1:]:
        ddq = ddq * d + 2.0 * dq
        dq = dq * d + q
        q = q * d + x
    return q, dq, ddq


def _forces(robot: Robot, places: tuple[tuple[int, int], ...], q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
    """M q', M q'' + C q' and g, and the same of the reactions, (..., nv + reactions) each."""
    weightless = robot.with_gravity((0.0, 0.0, 0.0))
    found = []
    for one, v, a in ((weightless, 0.0 * dq, dq), (weightless, dq, ddq), (robot, 0.0 * dq, 0.0 * dq)):
        tau = inverse_dynamics(one, q, v, a)
        if places:
            F = joint_reactions(one, q, v, a)
            tau = concat([tau, *(F[..., joint, component : component + 1] for joint, component in places)])
        found.append(tau)
    return found[0], found[1], found[2]
