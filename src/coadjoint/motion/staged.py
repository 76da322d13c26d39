"""Controllers whose reference cannot be traced, in steps of fixed length: the law is traced and runs inside the compiled steps; the
reference is evaluated beforehand at the times of their stages, once each and in their order, and given to the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..robot.robot import Robot
from ..traced import Traced, all_evaluated, traced

STAGES = {"euler": (0.0,), "rk4": (0.0, 0.5, 1.0), "variational": (0.5,)}
"""The times at which a step asks its control, in parts of the step."""


@dataclass(frozen=True)
class Staged:
    """A controller for all steps of a rollout."""

    law: Traced
    shapes: tuple[tuple[int, ...], ...]
    """The shapes of what the reference gives at one time."""
    stages: tuple[float, ...]
    dt: float

    @property
    def size(self) -> int:
        """The number of values that the reference gives for one step."""
        return len(self.stages) * sum(int(np.prod(shape)) for shape in self.shapes)

    def __call__(self, q: Array, v: Array, t: At, *numbers: Array) -> Array:
        """The joint forces (nv,) at the stage t."""
        return self.law(q, v, *t.desired)

    def sampled(self, q: Array, v: Array, state: Array, t: At) -> tuple[Array, ...]:
        """The joint forces and the next state of a controller with a state."""
        return all_evaluated(self.law.graph, q, v, state, *t.desired)

    def at(self, third: Array) -> At:
        """The beginning of a step for which the values are `third` (stages · numbers)."""
        return At(self, third, self.stages[0])


@dataclass(frozen=True)
class At:
    """A stage in the place of its time: a part of a step later stands another one."""

    control: Staged
    third: Array
    part: float

    def __add__(self, time: float) -> At:
        return At(self.control, self.third, self.part + time / self.control.dt)

    @property
    def desired(self) -> list[Array]:
        """The values of the reference at that time."""
        stages, shapes = self.control.stages, self.control.shapes
        sizes = [int(np.prod(shape)) for shape in shapes]
        start = sum(sizes) * min(range(len(stages)), key=lambda k: abs(stages[k] - self.part))
        found = []
        for size, shape in zip(sizes, shapes, strict=True):
            part = self.third[..., start : start + size]
            found.append(part.reshape((*part.shape[:-1], *shape)))
            start += size
        return found


def outside(control: Any) -> tuple[Callable[..., Any], Callable[[np.ndarray], list[np.ndarray]]] | None:
    """The law of a controller, a function of q, v, its state if it has one, and what is desired, and the function of times (N,) that gives
    the latter as arrays (N, ...), if its reference must be evaluated outside of compiled steps; else None.
    """
    ask = getattr(control, "outside", None)
    return ask() if callable(ask) else None


def staged(robot: Robot, control: Any, method: str, dt: float, steps: int) -> tuple[Staged, np.ndarray] | None:
    """A controller whose reference must be evaluated outside, for steps of a method, and what it gives for each of them (steps, numbers);
    None for every other control.
    """
    found = outside(control)
    if found is None:
        return None
    fn, during = found
    state = np.shape(control.initial) if hasattr(control, "initial") else None
    stages = STAGES[method] if state is None else (0.0,)
    times = 0.5 * dt * np.arange(2 * steps + 1) if len(stages) > 1 else dt * (np.arange(steps) + stages[0])
    desired = during(times)
    flat = _rows(desired)
    rows = [flat[0:-1:2], flat[1::2], flat[2::2]] if len(stages) > 1 else [flat]
    return _staged(robot, fn, desired, stages, dt, state), np.concatenate(rows, axis=1)


class Middles:
    """A controller whose reference must be evaluated outside, for steps of any length that ask it in their middle."""

    def __init__(self, robot: Robot, law: Callable[..., Any], during: Callable[[np.ndarray], list[np.ndarray]]) -> None:
        self.robot, self.law, self.during = robot, law, during
        self.staged: Staged | None = None

    def __call__(self, times: np.ndarray) -> tuple[Staged, np.ndarray]:
        """The control of the steps with these middles (N,), and what its reference gives for each of them (N, numbers)."""
        desired = self.during(times)
        self.staged = self.staged or _staged(self.robot, self.law, desired, STAGES["variational"], 1.0, None)
        return self.staged, _rows(desired)


def _staged(
    robot: Robot,
    law: Callable[..., Any],
    desired: list[np.ndarray],
    stages: tuple[float, ...],
    dt: float,
    state: tuple[int, ...] | None,
) -> Staged:
    shapes = {"q": (robot.nq,), "v": (robot.nv,)} | ({} if state is None else {"state": state})
    shapes |= {f"desired{k}": x.shape[1:] for k, x in enumerate(desired)}
    return Staged(traced(law, shapes, "control"), tuple(x.shape[1:] for x in desired), stages, dt)


def _rows(desired: list[np.ndarray]) -> np.ndarray:
    """Arrays (N, ...) as one (N, numbers)."""
    return np.concatenate([x.reshape(len(x), -1) for x in desired], axis=1)
