"""References of forces beside those of motion: multipliers that are asked for, wrenches that are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import a_function_of, floats
from ..arrays import Array, like
from ..errors import CoadjointError, ShapeError
from ..words import short
from .of_time import OfTime, plain


@dataclass(frozen=True)
class MotionAndForce:
    """What a reference of the motion gives, then the forces."""

    motion: Callable[[Any], tuple[Array, ...]]
    force: Callable[[Any], tuple[Array, ...]]

    def __call__(self, t: Any) -> tuple[Array, ...]:
        return (*self.motion(t), *self.force(t))


@dataclass(frozen=True)
class _Constant:
    value: np.ndarray

    def __call__(self, t: Any) -> tuple[Array, ...]:
        return (like(self.value, t) if hasattr(t, "shape") else self.value,)


def as_force(given: Any, name: str, rows: int, what: str) -> Callable[[Any], tuple[Array, ...]]:
    """A function of time that gives (rows,) of what a user gives: such a function, these numbers, or one for all."""
    if callable(given):
        a_function_of("t")(given, name)
        found = _numbers(given(0.0), name, rows, what)
        if found.shape != (rows,):
            raise ShapeError(f"{name}(t) gave an array of shape {found.shape}; expected ({rows},): {rows} {what}.")
        return OfTime(lambda t: (plain(given(t), f"{name}(t)"),))
    value = _numbers(given, name, rows, what)
    if value.shape not in ((), (rows,)) or not np.isfinite(value).all():
        raise CoadjointError(f"{name} is {short(given)}; expected {rows} finite {what}.")
    return _Constant(np.broadcast_to(value, (rows,)).copy())


def _numbers(given: Any, name: str, rows: int, what: str) -> np.ndarray:
    try:
        return floats(given, name)
    except CoadjointError:
        raise CoadjointError(f"{name} is {short(given)}; expected {rows} {what}, or a function of time that gives them.") from None
