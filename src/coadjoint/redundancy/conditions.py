"""Tests of Altafini's theorem for a robot: is its task a Riemannian submersion, is the lift integrable, is it the pseudoinverse?

Each is a condition on M and J at every configuration, tested at random ones and measured free of units:

    Riemannian submersion onto a left-invariant metric G     (J M⁻¹ Jᵀ)⁻¹ = G everywhere
    … onto some metric of the task                           Λ does not change along fibres: the symmetric part of O'Neill's tensor is 0
    integrable, repeatable                                   (1 - L J) [L_a, L_b] = 0 for all columns of the inverse L
    lift = pseudoinverse                                     M maps ker J to ker J
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_robot, finite, floats, takes, whole
from ..arrays import ArrayLike, transpose
from ..dynamics.composite import mass_matrix
from ..errors import CoadjointError
from ..kernel.dispatch import as_written
from ..robot.robot import Robot
from .integrability import inverse_brackets, oneill_kernel, vertical_brackets_kernel
from .lift import dexterity, moore_penrose, singular, split_of
from .task import AnyTask, task_of
from .tracking import Method, method

TOLERANCE = 1e-9
REGULAR = 1e-2
"""Random configurations whose dexterity is below this fraction of the largest are left out: digits are lost close to
singularities.
"""


def regular_configurations(robot: Robot, task: AnyTask, count: int, rng: Any = 0) -> np.ndarray:
    """q (count, nq) drawn at random, away from singularities of the task."""
    if count < 1:
        raise CoadjointError(f"configurations is {count}; expected 1 or more.")
    q = robot.random(rng, 8 * count)
    free = dexterity(robot, q, task)
    good = q[free > REGULAR * np.max(free, initial=1e-6)]
    if len(good) < count:
        raise singular(robot, q[int(np.argmax(free))], task, " nearly everywhere")
    result: np.ndarray = good[:count]
    return result


def _turned(robot: Robot, q: np.ndarray, L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """|B_ab|_M / (|L_a| |L_b|_M), largest over a and b (...): how much of L_b becomes B per unit of joint motion along L_a."""
    M = mass_matrix(robot, q)
    size = np.sqrt(np.maximum(np.einsum("...nab,...nm,...mab->...ab", B, M, B), 0.0))
    own = np.sqrt(np.einsum("...nb,...nm,...mb->...b", L, M, L))
    result: np.ndarray = np.max(size / (np.linalg.norm(L, axis=-2)[..., :, None] * own[..., None, :]), axis=(-2, -1))
    return result


@takes(robot=a_robot)
def pseudoinverse_defect(robot: Robot, q: ArrayLike, frame: str | AnyTask, rows: Sequence[int] | None = None) -> np.ndarray:
    """|P M (1 - P)| / |M| (...) with P = J⁺ J: zero exactly where M maps ker J to ker J, that is where L = J⁺."""
    task, q = task_of(frame, rows), floats(q, "q")
    P, M = moore_penrose(robot, q, task) @ task.jacobian(robot, q), mass_matrix(robot, q)
    result: np.ndarray = np.linalg.norm(P @ M @ (np.eye(robot.nv) - P), axis=(-2, -1)) / np.linalg.norm(M, axis=(-2, -1))
    return result


@dataclass(frozen=True)
class Repeatability:
    """The test of whether motion by an inverse comes back with the task, over random configurations."""

    inverse: str
    repeatable: bool
    largest: float
    """The largest |[L_a, L_b]ᵛ|_M / (|L_a| |L_b|_M): how much of a column becomes vertical per radian or metre of joint motion."""
    where: np.ndarray
    configurations: int

    def __str__(self) -> str:
        said = "repeatable" if self.repeatable else "not repeatable"
        return f"{self.inverse}: {said}, vertical brackets {self.largest:.2g} at most, over {self.configurations} configurations"


@takes(robot=a_robot, configurations=whole)
def repeatability(
    robot: Robot,
    frame: str | AnyTask,
    rows: Sequence[int] | None = None,
    inverse: Any = "lift",
    configurations: int = 16,
    rng: Any = 0,
) -> Repeatability:
    """The bracket condition of Shamir and Yomdin for any inverse, `method`'s names: (1 - L J) [L_a, L_b] = 0 at random configurations.

    It decides about closed paths of the task that can be shrunk to a point; round a hole of the workspace more may remain.
    """
    task, how = task_of(frame, rows), method(robot, inverse)
    q = regular_configurations(robot, task, configurations, rng)
    turned = _turned(robot, q, *_vertical(robot, q, task, how))
    k = int(np.argmax(turned))
    return Repeatability(how.name, bool(turned[k] <= TOLERANCE), float(turned[k]), q[k], configurations)


def _vertical(robot: Robot, q: np.ndarray, task: AnyTask, how: Method) -> tuple[np.ndarray, np.ndarray]:
    """L and (1 - L J) [L_a, L_b]; the user's own inverse is checked to be one."""
    if how.function is None:
        L = np.asarray(how.inverse(robot, q, task))
        return L, as_written(vertical_brackets_kernel)(robot, q, task, how.weight)  # a few states: not worth machine code
    L = np.stack([np.asarray(how.function(robot, x), dtype=float) for x in q])
    off = float(np.max(np.abs(task.jacobian(robot, q) @ L - np.eye(task.size))))
    if off > 1e-8:
        raise CoadjointError(f"{how.name} is no inverse of the Jacobian of task {task}: J L is off from 1 by {off:.2g}.")
    return L, inverse_brackets(robot, q, how.function, task)


@dataclass(frozen=True)
class Submersion:
    """Properties of a robot and its task, over random configurations; every figure is 0 if the property holds."""

    robot: Robot
    task: AnyTask
    configurations: int
    metric: np.ndarray
    """G (m, m): the left-invariant metric that is compared with: the one given, or the mean of Λ."""
    from_metric: float
    """The largest |λ - 1| of the eigenvalues of J M⁻¹ Jᵀ G."""
    along_fibres: float
    """The symmetric part of O'Neill's tensor, as in `Repeatability`."""
    lift: Repeatability
    pseudoinverse: Repeatability
    lift_from_pseudoinverse: float
    """`pseudoinverse_defect`"""

    @property
    def riemannian(self) -> bool:
        """True if the task is a Riemannian submersion onto the left-invariant metric.

        For a position alone G must moreover be the same whichever way the frame is turned, which is a motion along the fibre.
        """
        return self.from_metric <= TOLERANCE and self.along_fibres <= TOLERANCE

    @property
    def lift_is_pseudoinverse(self) -> bool:
        return self.lift_from_pseudoinverse <= TOLERANCE

    def __str__(self) -> str:
        def yes(x: object) -> str:
            return "" if x else "not "

        own = " in the axes of the frame, which turn along fibres" if self.from_metric <= TOLERANCE and not self.riemannian else ""
        lines = [
            f"{yes(self.riemannian)}a Riemannian submersion onto a left-invariant metric: off by {self.from_metric:.2g}{own}",
            f"{yes(self.along_fibres <= TOLERANCE)}one onto some metric: the inertia felt changes along fibres by {self.along_fibres:.2g}",
            str(self.lift),
            str(self.pseudoinverse),
            f"the lift is {yes(self.lift_is_pseudoinverse)}the pseudoinverse: off by {self.lift_from_pseudoinverse:.2g}",
        ]
        return "\n".join(lines)


@takes(robot=a_robot, configurations=whole)
def submersion(
    robot: Robot,
    frame: str | AnyTask,
    rows: Sequence[int] | None = None,
    metric: Any = None,
    configurations: int = 16,
    rng: Any = 0,
) -> Submersion:
    """The deviations of a robot's task from what Altafini (2004) claims: Proposition II.1, Corollary III.2, Theorem III.2.

    metric (m, m): a left-invariant metric on the task, in body twists; the mean of Λ if None. Altafini takes 1.
    """
    task = task_of(frame, rows)
    q = regular_configurations(robot, task, configurations, rng)
    parts = split_of(robot, q, task)
    inertia = parts.inertia
    G = np.mean(inertia, axis=0) if metric is None else finite(floats(metric, "metric"), "metric")
    if G.shape != (task.size, task.size) or not np.allclose(G, G.T) or np.linalg.eigvalsh(G)[0] <= 0:
        raise CoadjointError(
            f"metric has shape {G.shape}; expected a symmetric positive definite matrix ({task.size}, {task.size})."
        )
    root = np.linalg.cholesky(G)
    seen = transpose(root) @ np.linalg.solve(inertia, np.broadcast_to(root, inertia.shape))
    off = np.max(np.abs(np.linalg.eigvalsh(0.5 * (seen + transpose(seen))) - 1))
    A = as_written(oneill_kernel)(robot, q, task)
    along = np.max(_turned(robot, q, parts.L, 0.5 * (A + transpose(A))))
    found = [repeatability(robot, task, None, inverse, configurations, rng) for inverse in ("lift", "moore-penrose")]
    defect = float(np.max(pseudoinverse_defect(robot, q, task)))
    return Submersion(robot, task, configurations, G, float(off), float(along), found[0], found[1], defect)
