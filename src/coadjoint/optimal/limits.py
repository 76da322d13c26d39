"""The limits of a motion along a path as rows in x = ṡ² and u = s̈.

With q' = dq/ds and q'' = d²q/ds², v = q' √x and a = q' u + q'' x, so that

    acceleration     q' u + q'' x
    joint force      (M q') u + (M q'' + C(q, q') q') x + d q' √x + g + μ sign(q')
    reaction         the wrench through a joint, of the same form

each between its bounds, and x ≤ (limit / |q'|)² for velocities. Rows are divided by their limits, so that residuals are relative.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import Array, concat
from ..dynamics import inverse_dynamics, joint_reactions
from ..families import built
from ..memo import recent
from ..motion.friction import friction_coefficients
from ..robot.robot import Robot


@dataclass(frozen=True)
class Limits:
    """What a motion may not exceed: (nv,) each, inf where there is no limit; reactions are (joint number, component, limit)."""

    robot: Robot
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    reactions: tuple[tuple[int, int, float], ...] = ()
    names: tuple[tuple[str, str], ...] = field(init=False)
    """What each row limits: a quantity and its joint."""

    def __post_init__(self) -> None:
        joints = self.robot.v_names
        names = [("acceleration", joints[j]) for j in self.accelerated] + [("effort", joints[j]) for j in self.loaded]
        for joint, component, _ in self.reactions:
            what = ("moment x", "moment y", "moment z", "force x", "force y", "force z")[component]
            names.append((what, self.robot.joint_names[joint]))
        object.__setattr__(self, "names", tuple(names))

    @property
    def accelerated(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.acceleration))

    @property
    def loaded(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.effort))

    @property
    def dynamic(self) -> bool:
        """Whether the dynamics of the robot matter."""
        return bool(len(self.loaded) or self.reactions)

    @property
    def curved(self) -> bool:
        """Whether some row depends on √x: viscous friction."""
        d, _ = friction_coefficients(self.robot)
        return bool(np.any(d[self.loaded] != 0))


@dataclass
class Rows:
    """a u + b x + e √x between lo and hi, arrays (C, p, rows); and x ≤ 1 / inverse (C, p, m)."""

    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    e: np.ndarray | None
    inverse: np.ndarray
    signs: np.ndarray
    """(C, p, m): what must not change its sign in a cell."""


def rows_of(limits: Limits, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> Rows:
    """The rows at points (C, p, nv) of cells."""
    robot, some = limits.robot, limits.accelerated
    scale = limits.acceleration[some]
    a, b = [dq[..., some] / scale], [ddq[..., some] / scale]
    bound = np.ones_like(a[0])
    lo, hi, e, further = [-bound], [bound], [0 * bound], []
    if limits.dynamic:
        M, C, g = _coefficients(limits, q, dq, ddq)
        damping, dry = friction_coefficients(robot)
        sign = np.sign(dq.mean(axis=-2, keepdims=True))
        rest = g[..., : robot.nv] + dry * sign
        further.append(dq[..., np.flatnonzero(dry)])
        some = limits.loaded
        own = limits.effort[some]
        a.append(M[..., some] / own)
        b.append(C[..., some] / own)
        e.append(np.broadcast_to(damping[some] * dq[..., some] / own, a[-1].shape))
        lo.append(-1.0 - rest[..., some] / own)
        hi.append(1.0 - rest[..., some] / own)
        if limits.reactions:
            own = np.array([limit for _, _, limit in limits.reactions])
            M, C, g = (x[..., robot.nv :] / own for x in (M, C, g))
            a.append(M)
            b.append(C)
            lo.append(-1.0 - g)
            hi.append(1.0 - g)
            e.append(0 * g)
    fast = np.flatnonzero(np.isfinite(limits.velocity))
    inverse = (dq[..., fast] / limits.velocity[fast]) ** 2
    join: Any = lambda parts: np.concatenate(parts, axis=-1)
    curved = limits.curved
    A = join(a)
    return Rows(
        A,
        join(b),
        join(lo),
        join(hi),
        join(e) if curved else None,
        inverse,
        join([A, *further]),
    )


def _coefficients(limits: Limits, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> Any:
    """M q', M q'' + C q' and g, and the same of the reactions, (..., nv + reactions) each."""
    robot = limits.robot
    places = tuple((joint, component) for joint, component, _ in limits.reactions)
    size = dict.fromkeys(("q", "dq", "ddq"), (robot.nq,))
    make = lambda: built(robot, lambda q, dq, ddq: _traced(robot, places, q, dq, ddq), size, "timing_dynamics")
    return recent(robot, ("timing", places), make)(q, dq, ddq)


def _traced(robot: Robot, places: tuple[tuple[int, int], ...], q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
    weightless = robot.with_gravity((0.0, 0.0, 0.0))
    found = []
    for one, v, a in ((weightless, 0.0 * dq, dq), (weightless, dq, ddq), (robot, 0.0 * dq, 0.0 * dq)):
        tau = inverse_dynamics(one, q, v, a)
        if places:
            F = joint_reactions(one, q, v, a)
            tau = concat([tau, *(F[..., joint, component : component + 1] for joint, component in places)])
        found.append(tau)
    return found[0], found[1], found[2]
