"""Distances between capsules as limits of a motion, with exact first and second derivatives.

With δ = a(q, s) - b(q, t) between the nearest points, F = ½|δ|² and x those of (s, t) that are not at an end,

    ∇(½d²) = F_q,    ∇²(½d²) = F_qq - F_qx F_xx⁻¹ F_xq,    ∇²d = (∇²(½d²) - ∇d ∇dᵀ) / d.

The distance is smooth where the nearest points are unique, and has a kink where segments turn through being parallel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array, mv, stack
from ..compiling import compile as compiled
from ..differentiating import derivative, differential
from ..kinematics import pose
from ..robot.robot import Robot
from .capsules import Bodies
from .segments import Nearest, closest
from .stages import DYNAMIC, Curvature, Forces

SOFT = 1e-8
"""Part of |a|²|b|² by which the curvature of nearly parallel segments is bounded."""


class Points:
    """The ends of the capsules that move (2 M, 3), with derivatives."""

    def __init__(self, robot: Robot, links: tuple[int, ...], ends: np.ndarray) -> None:
        self.robot, self.links, self.places = robot, links, ends.reshape(-1, 3)
        shapes = {"w": self.places.shape}
        self.value = compiled(self.of, robot)
        self.jacobian = derivative(self.of, robot, "q")
        self.second = derivative(differential(self.weighted, "q"), robot, "q", shapes=shapes)

    def __reduce__(self) -> tuple[Any, ...]:
        return Points, (self.robot, self.links, self.places.reshape(-1, 2, 3))

    def of(self, robot: Robot, q: Array) -> Array:
        found, poses = [], {i: pose(robot, q, robot.link_names[i]) for i in dict.fromkeys(self.links)}
        for k, place in enumerate(self.places):
            X = poses[self.links[k // 2]]
            found.append(mv(X[..., :3, :3], place) + X[..., :3, 3])
        return stack(found, axis=-2)

    def weighted(self, robot: Robot, q: Array, w: Array) -> Array:
        return (w * self.of(robot, q)).sum((-1, -2))


@dataclass(frozen=True, eq=False)
class Gaps:
    """Pairs of capsules at N configurations."""

    points: Points
    q: np.ndarray
    bodies: Bodies
    ends: np.ndarray
    """(N, C, 2, 3) in space."""
    nearest: Nearest

    @property
    def value(self) -> np.ndarray:
        """The distances of the surfaces (N, P)."""
        return np.asarray(self.nearest.distance - self.bodies.thickness)

    @cached_property
    def end_jacobians(self) -> np.ndarray:
        """(N, C, 2, 3, n); zero for what stands still."""
        N, n = self.q.shape
        found = np.zeros((N, len(self.bodies.links), 2, 3, n))
        moving = [k for k, link in enumerate(self.bodies.links) if link >= 0]
        found[:, moving] = np.asarray(self.points.jacobian(self.q)).reshape(N, len(moving), 2, 3, n)
        return found

    @cached_property
    def between(self) -> np.ndarray:
        """∂(a(s) - b(t))/∂q (N, P, 3, n) with s and t held."""
        first, second = (self.end_jacobians[:, self.bodies.pairs[:, k]] for k in (0, 1))
        s, t = (x[..., None, None] for x in (self.nearest.s, self.nearest.t))
        return np.asarray((1 - s) * first[:, :, 0] + s * first[:, :, 1] - (1 - t) * second[:, :, 0] - t * second[:, :, 1])

    @cached_property
    def gradient(self) -> np.ndarray:
        """∂d/∂q (N, P, n)."""
        return np.asarray((self.nearest.normal[..., None, :] @ self.between)[..., 0, :])

    def curvature(self, weights: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """Σ weights ∂²d + sigma ∂d ∂dᵀ (N, n, n) for (N, P) of both."""
        near, J, g = self.nearest, self.between, self.gradient
        N, _, _, n = J.shape
        over = weights / np.maximum(near.distance, 1e-9)
        V, inverse = self._slides()
        left = np.concatenate([J, g[:, :, None], V], axis=2)
        scaled = np.concatenate(
            [over[..., None, None] * J, ((sigma - over)[..., None] * g)[:, :, None], -over[..., None, None] * (inverse @ V)], axis=2
        )
        return np.asarray(left.reshape(N, -1, n).swapaxes(-1, -2) @ scaled.reshape(N, -1, n) + self._bent(weights))

    def _bent(self, weights: np.ndarray) -> np.ndarray:
        """Σ weights n·∂²(a(s) - b(t)) (N, n, n)."""
        near, (N, C) = self.nearest, self.ends.shape[:2]
        pull = weights[..., None] * near.normal
        on = np.zeros((N, C, 2, 3))
        for side, x, sign in ((0, near.s, 1.0), (1, near.t, -1.0)):
            for k, index in enumerate(self.bodies.pairs[:, side]):
                on[:, index, 0] += sign * (1 - x[:, k, None]) * pull[:, k]
                on[:, index, 1] += sign * x[:, k, None] * pull[:, k]
        moving = [k for k, link in enumerate(self.bodies.links) if link >= 0]
        return np.asarray(self.points.second(self.q, on[:, moving].reshape(N, -1, 3)))

    def _slides(self) -> tuple[np.ndarray, np.ndarray]:
        """F_xq (N, P, 2, n) and F_xx⁻¹ (N, P, 2, 2), zero for those of (s, t) that are at an end."""
        near, J = self.nearest, self.between
        delta = (near.distance[..., None] * near.normal)[..., None, :]
        first, second = (self.end_jacobians[:, self.bodies.pairs[:, k]] for k in (0, 1))
        turns = [(delta @ (x[:, :, 1] - x[:, :, 0]))[..., 0, :] for x in (first, second)]
        V = np.stack(
            [(near.along[..., None, :] @ J)[..., 0, :] + turns[0], -(near.beside[..., None, :] @ J)[..., 0, :] - turns[1]], axis=-2
        )
        free = np.stack([(near.s > 0) & (near.s < 1), (near.t > 0) & (near.t < 1)], axis=-1)
        aa, bb, ab = (np.einsum("...i,...i->...", x, y) for x, y in _products(near))
        both = free.all(-1)
        det = np.where(both, aa * bb - ab**2 + SOFT * aa * bb, 1.0)
        inverse = np.zeros((*free.shape, 2))
        inverse[..., 0, 0] = np.where(both, bb / det, np.where(free[..., 0], 1.0 / np.where(aa > 0, aa, 1.0), 0.0))
        inverse[..., 1, 1] = np.where(both, aa / det, np.where(free[..., 1], 1.0 / np.where(bb > 0, bb, 1.0), 0.0))
        inverse[..., 0, 1] = inverse[..., 1, 0] = np.where(both, ab / det, 0.0)
        return V, inverse


def _products(near: Nearest) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(near.along, near.along), (near.beside, near.beside), (near.along, near.beside)]


class Clearances:
    """The distances of the surfaces of pairs of capsules."""

    kind = "clearance"

    def __init__(self, robot: Robot, bodies: Bodies, least: float) -> None:
        self.robot, self.bodies = robot, bodies
        moving = [k for k, link in enumerate(bodies.links) if link >= 0]
        self.points = Points(robot, tuple(bodies.links[k] for k in moving), bodies.ends[moving])
        self.names = bodies.pair_names
        self.lower, self.upper = np.full(len(self.names), least), np.full(len(self.names), np.inf)

    def gaps(self, q: np.ndarray) -> Gaps:
        """At configurations q (N, n)."""
        N, bodies = len(q), self.bodies
        ends = np.broadcast_to(bodies.ends, (N, *bodies.ends.shape)).copy()
        moving = [k for k, link in enumerate(bodies.links) if link >= 0]
        ends[:, moving] = np.asarray(self.points.value(q)).reshape(N, len(moving), 2, 3)
        return Gaps(self.points, q, bodies, ends, closest(ends[:, bodies.pairs[:, 0]], ends[:, bodies.pairs[:, 1]]))

    def _at(self, forces: Forces) -> Gaps:
        found: Gaps = forces.once(self, lambda: self.gaps(forces.q))
        return found

    def value(self, forces: Forces) -> np.ndarray:
        return self._at(forces).value

    def pull(self, forces: Forces, weights: np.ndarray, into: np.ndarray) -> None:
        into[:, 0] += (weights[:, None] @ self._at(forces).gradient)[:, 0]

    def push(self, forces: Forces, moved: np.ndarray) -> np.ndarray:
        return np.asarray((self._at(forces).gradient @ moved[:, 0, :, None])[..., 0])

    def longest(self, forces: Forces, moved: np.ndarray) -> np.ndarray:
        """The longest step (N,) along changes of q (N, n) within which no segment comes to the other side of another."""
        gaps = self._at(forces)
        speeds = np.linalg.norm((gaps.end_jacobians @ moved[:, None, None, :, None])[..., 0], axis=-1).max(-1)
        closing = speeds[:, self.bodies.pairs[:, 0]] + speeds[:, self.bodies.pairs[:, 1]]
        room = np.maximum(gaps.nearest.distance, 0.5 * self.bodies.thickness)
        return np.asarray((0.9 * room / np.maximum(closing, 1e-300)).min(1))

    def curve(self, forces: Forces, weights: np.ndarray, sigma: np.ndarray, into: Curvature, convex: bool) -> None:
        N, n = forces.q.shape
        blocks = np.zeros((N, DYNAMIC**2, n, n))
        blocks[:, 0] = self._at(forces).curvature(0.0 * weights if convex else weights, sigma)
        into.add(blocks)
