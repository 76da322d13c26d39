"""Results cached with a robot: `per_robot`, `per_structure`, and `recent` for code compiled from users' functions.

A robot is immutable, so a function of a robot and of hashable arguments has one result. Every cache is bounded: the least recently
used result is dropped first. Users' functions are never keys, because the variables they read may change; their traces are
(`traced.py`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

KEPT = 128
"""The number of results of one function, and of users' functions, that a robot caches."""

P = ParamSpec("P")
R = TypeVar("R")
_MISSING: Any = object()


class Recent:
    """A least-recently-used cache."""

    def __init__(self, size: int = KEPT) -> None:
        self.size = size
        self._made: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._made)

    def __contains__(self, key: Any) -> bool:
        return key in self._made

    def get(self, key: Any, make: Callable[[], R]) -> R:
        """The cached result for this key; on a miss, make() is called. Two threads may both call it; neither waits for the
        other.
        """
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
"""The caches of a robot: for each function, its results by the arguments."""


def per_robot(fn: Callable[P, R]) -> Callable[P, R]:
    """fn(robot, *arguments), cached for a robot and hashable arguments; errors are not cached."""

    @functools.wraps(fn)
    def once(robot: Any, *arguments: Any) -> R:
        return results(robot._memo, fn).get(arguments, lambda: fn(robot, *arguments))  # type: ignore[call-arg]

    return cast("Callable[P, R]", once)


def per_structure(fn: Callable[P, R]) -> Callable[P, R]:
    """`per_robot` for results that do not depend on the robot's numbers: `Robot.with_numbers` shares them."""

    @functools.wraps(fn)
    def once(robot: Any, *arguments: Any) -> R:
        return results(robot._structure_memo, fn).get(arguments, lambda: fn(robot, *arguments))  # type: ignore[call-arg]

    return cast("Callable[P, R]", once)


def recent(robot: Any, key: Any, make: Callable[[], R]) -> R:
    """make(), cached on the robot under a key that determines the result."""
    return results(robot._memo, recent).get(key, make)


def results(memo: Memo, fn: Callable[..., Any]) -> Recent:
    """The cache of a function, by its arguments after the robot."""
    fn = getattr(fn, "__wrapped__", fn)
    try:
        return memo[fn]
    except KeyError:
        return memo.setdefault(fn, Recent())
