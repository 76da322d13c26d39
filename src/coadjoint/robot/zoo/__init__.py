"""Bundled robots, written from published figures: `make("panda")`, `make("planar_nr", n=5)`, `make("planar5r")`.

Each function that makes one says where its figures come from. Sizes that a robot takes are the arguments of that function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from ...errors import CoadjointError, unknown
from ..robot import Robot
from .industrial import puma560, scara, ur5e
from .panda import panda
from .textbook import cartpole, floating_body, furuta, planar2r, planar_nr, spherical_pendulum

_MAKERS: dict[str, Callable[..., Robot]] = {
    maker.__name__: maker
    for maker in (panda, puma560, ur5e, scara, planar2r, planar_nr, spherical_pendulum, furuta, cartpole, floating_body)
}
_PLANAR = re.compile(r"planar([1-9]\d{0,2})r")


def names() -> tuple[str, ...]:
    """The names of all bundled robots."""
    return tuple(_MAKERS)


def has(name: str) -> bool:
    """True if `make` knows the name."""
    return name in _MAKERS or _PLANAR.fullmatch(name) is not None


def make(name: str, **sizes: Any) -> Robot:
    """The bundled robot of that name; sizes as its function takes them. "planar7r" is short for "planar_nr" with n = 7."""
    if name not in _MAKERS and (match := _PLANAR.fullmatch(name)):
        return make("planar_nr", n=int(match[1]), **sizes)
    if name not in _MAKERS:
        raise unknown("bundled robot", name, _MAKERS)
    maker = _MAKERS[name]
    allowed = tuple(inspect.signature(maker).parameters)
    for size in sizes:
        if size not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no sizes"
            raise CoadjointError(f"the bundled robot {name!r} has no size {size!r}; it {takes}.")
    return maker(**sizes)
