"""Arguments of the functions on Lie groups: lists become arrays, constants join the others' array library, shapes are checked."""

from __future__ import annotations

from ..arrays import Array, alike, asfloat
from ..errors import ShapeError


def arguments(*named: tuple[str, Array, tuple[int, ...]]) -> tuple[Array, ...]:
    """Each (name, array, core shape) as a floating-point array whose last axes are the core shape; () stands for a scalar."""
    arrays = [asfloat(x, name) for name, x, _ in named]
    for (name, _, core), x in zip(named, arrays, strict=True):
        if core and tuple(x.shape[-len(core) :]) != core:
            wanted = ", ".join(map(str, core))
            raise ShapeError(f"{name} has shape {tuple(x.shape)}; expected (..., {wanted}).")
    return tuple(alike(arrays))


def argument(name: str, x: Array, *core: int) -> Array:
    """One array whose last axes are the core shape."""
    return arguments((name, x, core))[0]
