"""Results computed once for a robot and kept with it: `per_robot`, `per_structure`, and `recent` for code made of users' functions.

A robot is immutable, so a function of a robot and of hashable arguments has one result. Every store is bounded: the longest unused result
goes first. Users' functions are never keys, because what they read may change; what they computed when they were traced is (`traced.py`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

KEPT = 128
"""How many results of one function, and how many things made of users' functions, a robot keeps."""

P = ParamSpec("P")
R = TypeVar("R")
_MISSING: Any = object()


class Recent:
    """The last results, by key."""

    def __init__(self, size: int = KEPT) -> None:
        self.size = size
        self._made: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._made)

    def __contains__(self, key: Any) -> bool:
        return key in self._made

    def get(self, key: Any, make: Callable[[], R]) -> R:
        """The result for this key, or else make() now. Two threads may both make it; neither waits for the other."""
        found: R = self._made.get(key, _MISSING)
        if found is _MISSING:
            found = make()
        elif 2 * len(self._made) < self.size:  # far from full: the order does not matter yet
            return found
        self._made.pop(key, None)
        self._made[key] = found  # the last used stands last
        while len(self._made) > self.size:
            with contextlib.suppress(RuntimeError, StopIteration):  # another thread was quicker
                self._made.pop(next(iter(self._made)), None)
        return found


Memo = dict[Callable[..., Any], Recent]
"""What a robot keeps: the results of each function, by the function's arguments."""


def per_robot(fn: Callable[P, R]) -> Callable[P, R]:
    """fn(robot, *arguments), computed once for a robot and arguments that can be hashed; errors are not kept."""

    @functools.wraps(fn)
    def once(robot: Any, *arguments: Any) -> R:
        return results(robot._memo, fn).get(arguments, lambda: fn(robot, *arguments))  # type: ignore[call-arg]

    return cast("Callable[P, R]", once)


def per_structure(fn: Callable[P, R]) -> Callable[P, R]:
    """As `per_robot`, for what does not depend on the robot's numbers: `Robot.with_numbers` shares it."""

    @functools.wraps(fn)
    def once(robot: Any, *arguments: Any) -> R:
        return results(robot._structure_memo, fn).get(arguments, lambda: fn(robot, *arguments))  # type: ignore[call-arg]

    return cast("Callable[P, R]", once)


def recent(robot: Any, key: Any, make: Callable[[], R]) -> R:
    """make(), or what it made before for this robot and key, which says all that decides it."""
    return results(robot._memo, recent).get(key, make)


def results(memo: Memo, fn: Callable[..., Any]) -> Recent:
    """The results of a function that are kept, by its arguments after the robot."""
    fn = getattr(fn, "__wrapped__", fn)
    try:
        return memo[fn]
    except KeyError:
        return memo.setdefault(fn, Recent())
