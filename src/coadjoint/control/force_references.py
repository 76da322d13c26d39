"""References of forces beside those of motion: multipliers that are asked for, wrenches that are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, like
from ..errors import CoadjointError, ShapeError
from ..words import short
from .references import check_depends


@dataclass(frozen=True)
class MotionAndForce:
    """What a reference of the motion gives, then the forces."""

    motion: Callable[[Any], tuple[Array, ...]]
    force: Callable[[Any], Array]

    def __call__(self, t: Any) -> tuple[Array, ...]:
        force = self.force(t)
        force = force if hasattr(force, "shape") else np.asarray(force)
        if not isinstance(self.force, _Constant):
            check_depends(self.force, t, [force])
        return (*self.motion(t), force)


@dataclass(frozen=True)
class _Constant:
    value: np.ndarray

    def __call__(self, t: Any) -> Array:
        return like(self.value, t) if hasattr(t, "shape") else self.value


def as_force(given: Any, name: str, rows: int, what: str) -> Callable[[Any], Array]:
    """A function of time that gives (rows,) of what a user gives: such a function, these numbers, or one for all."""
    if callable(given):
        found = _numbers(given(0.0), name, rows, what)
        if found.shape != (rows,):
            raise ShapeError(f"{name}(t) gave an array of shape {found.shape}; expected ({rows},): {rows} {what}.")
        return given  # type: ignore[no-any-return]
    value = _numbers(given, name, rows, what)
    if value.shape not in ((), (rows,)) or not np.isfinite(value).all():
        raise CoadjointError(f"{name} is {short(given)}; expected {rows} finite {what}.")
    return _Constant(np.broadcast_to(value, (rows,)).copy())


def _numbers(given: Any, name: str, rows: int, what: str) -> np.ndarray:
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise CoadjointError(f"{name} is {short(given)}; expected {rows} {what}, or a function of time that gives them.") from None
