"""Kernels of a structure: one for all robots that differ only in their numbers, which are its first input.

The first robot of a structure has kernels of its own, with its numbers as constants. Every other one is given kernels of the structure:
compiled once, then only loaded. Entries that are 0 or ±1 in all robots seen so far stay constants (a `Pattern`), so that such a kernel
costs little more than one made for the robot alone; a robot that has other numbers there widens the pattern. A robot that runs so many
states in batches that a kernel of its own would pay is given one: see `PAYS`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..arguments import Shape
from ..memo import Recent
from .dispatch import core_shape
from .graph import Graph
from .mechanism import Mechanism
from .runtime import cache, cache_key
from .runtime.abi import COUNTED, NUMBERS
from .runtime.function import CompiledFunction
from .runtime.native import build

KEPT = 64
"""The number of kernels of structures that stay in memory when no robot uses them; the longest unused goes first, and comes back from
the disk."""
SKELETONS = 256
"""The number of skeletons whose patterns are remembered in memory."""
PATTERNS = 8
"""The number of patterns of one skeleton: robots with the same names and joints that are otherwise unlike."""
PAYS = 1e8
"""States in batches after which a robot is given a kernel of its own.

Making one takes about 0.2 ms for every operation, and saves a tenth or two of the 0.02 ns that the operation takes for a state: so many
states later what it saves is what it costs. Small calls do not count, so that a control loop never waits for a compilation.
"""

_patterns = Recent(SKELETONS)
_kernels = Recent(KEPT)
_unshared = Recent(SKELETONS)
"""Keys of kernels whose sources need numbers, not symbols, of a robot: they are compiled for each."""


@dataclass(frozen=True)
class Pattern:
    """The numbers of robots of one skeleton that are variables, and the values of the others."""

    first: str
    """The fingerprint of the robot that has kernels of its own."""
    variable: np.ndarray
    constants: np.ndarray
    """The numbers of all robots of the pattern where they are not variable, and 0 where they are."""

    @staticmethod
    def of(numbers: np.ndarray, free: np.ndarray, first: str) -> Pattern:
        """The pattern of a single robot: all numbers but 0 and ±1 are variable, and these as well where they are `free`."""
        variable = free | ~((numbers == 0.0) | (np.abs(numbers) == 1.0))
        return Pattern(first, variable, np.where(variable, 0.0, numbers))

    def joined(self, numbers: np.ndarray) -> Pattern:
        """The narrowest pattern that is not narrower than this one and has these numbers in it."""
        variable = self.variable | (numbers != self.constants)
        return self if np.array_equal(variable, self.variable) else Pattern(self.first, variable, np.where(variable, 0.0, numbers))

    def suits(self, own: Pattern) -> bool:
        """True if a robot with that pattern of its own loses little by this one: it has not many more variables."""
        return self.count <= 1.5 * own.count + 8

    @property
    def count(self) -> int:
        """The number of variables."""
        return int(self.variable.sum())

    @property
    def digest(self) -> str:
        """The pattern without the robot that was its first."""
        content = np.packbits(self.variable).tobytes() + (self.constants + 0.0).tobytes()  # -0 and 0 are the same
        return hashlib.blake2b(content, digest_size=16).hexdigest()


class BoundFunction:
    """The kernel of a structure with the numbers of one robot: what `Kernel` calls like a `CompiledFunction`."""

    def __init__(self, function: CompiledFunction, numbers: np.ndarray) -> None:
        self.function = function
        self.numbers = np.append(numbers, PAYS).astype(function.signature.dtype)
        """The first input; its last entry, which machine code counts down, is how many states in batches are left until `spent`."""

    @property
    def spent(self) -> bool:
        """True once so many states were computed that a kernel of the robot's own pays."""
        return bool(self.numbers[-1] < 0)

    @property
    def kind(self) -> str:
        """The kind of kernel, in words."""
        return f"the kernel of its structure, {len(self.numbers) - 1} of its numbers as inputs"

    def renew(self) -> None:
        """Stay in use for ever."""
        self.numbers[-1] = np.inf

    @property
    def otherwise(self) -> Callable[..., Any] | None:
        """The function for inputs that the built-in function does not handle itself."""
        return self.function.otherwise

    @otherwise.setter
    def otherwise(self, call: Callable[..., Any]) -> None:
        self.function.otherwise = lambda _, *arrays, **options: call(*arrays, **options)

    @property
    def call(self) -> Callable[..., Any]:
        """The built-in function with its first argument given."""
        return partial(self.function.call, self.numbers)

    def run(self, given: list[np.ndarray], batch: Shape, out: Any, threads: int | None) -> Any:
        """The results for arrays that were checked."""
        count = math.prod(batch)
        if count > COUNTED:
            self.numbers[-1] -= count
        return self.function.run([self.numbers, *given], batch, out, threads)


def shared(kernel: Any, robot: Mechanism, given: tuple[str, ...], statics: dict[str, Any], dtype: Any) -> BoundFunction | None:
    """The function of a kernel for a robot that is not the first of its structure; None for one that is, or that must have its own."""
    if not all(_plain(x) for x in statics.values()):
        return None
    numbers, free = robot.numbers(kernel.joint_space)
    pattern = _pattern(robot, kernel.joint_space, numbers, free)
    source = (kernel.source.__module__, kernel.source.__qualname__, given, statics)
    key = repr((*source, "structure", robot.skeleton, pattern.digest))
    if pattern.first == robot.fingerprint or key in _unshared:
        return None
    inputs = numbers[pattern.variable]
    try:
        function = build(lambda: _traced(kernel, robot, given, statics, pattern, inputs), dtype, key=key)
    except _NotShared:
        _unshared.get(key, lambda: True)
        return None
    _kernels.get((key, np.dtype(dtype).name), lambda: function.kernel)
    return BoundFunction(function, inputs)


class _NotShared(Exception):
    """The source cannot be traced with symbols for numbers of the robot."""


def _plain(x: Any) -> bool:
    """True if a static argument says the same of every robot: names and numbers do, and tasks and constraints that are made of such."""
    if is_dataclass(x):
        return all(_plain(getattr(x, field.name)) for field in fields(x))
    parts = x if type(x) is tuple else getattr(x, "parts", None)  # of a constraint
    return x is None or isinstance(x, str | bool | int | float) if parts is None else all(map(_plain, parts))


def _traced(
    kernel: Any, robot: Mechanism, given: tuple[str, ...], statics: dict[str, Any], pattern: Pattern, inputs: np.ndarray
) -> Graph:
    """The graph of a kernel for the robots of a pattern, simplified."""
    from .passes.simplify import simplify  # imported here: a kernel from the cache needs neither
    from .trace.trace import trace

    def run(variables: Any, *arrays: Any) -> Any:
        values = pattern.constants.astype(object)
        values[pattern.variable] = np.asarray(variables)[:-1]
        member, named = robot.member(kernel.joint_space, values, dict(zip(given, arrays, strict=True)))
        return kernel.call(member, **named, **statics)

    sizes = {NUMBERS: (len(inputs) + 1,)} | {name: core_shape(kernel.cores[name], robot) for name in given}
    try:
        graph = trace(run, sizes, kernel.source.__name__)
    except Exception as error:  # whatever it is: compiled for this robot alone, the source says it again or has none of it
        raise _NotShared from error
    return replace(simplify(graph), example=(*inputs.tolist(), 0.0))


def _pattern(robot: Mechanism, joint_space: bool, numbers: np.ndarray, free: np.ndarray) -> Pattern:
    """The pattern of a robot: one that has its numbers, else the nearest one widened, else its own, of which it is the first."""
    skeleton = repr((joint_space, len(numbers), robot.skeleton))
    found: list[Pattern] = _patterns.get(skeleton, lambda: _load(skeleton))
    own = Pattern.of(numbers, free, robot.fingerprint)
    joined = [pattern.joined(numbers) for pattern in found]
    suitable = [k for k, pattern in enumerate(joined) if pattern.suits(own)]
    best = min(suitable, key=lambda k: (joined[k] is not found[k], joined[k].count), default=None)
    if best is None:
        chosen = own
        found[:] = [*found[1 - PATTERNS :], own]
    elif joined[best] is found[best]:
        return joined[best]
    else:
        chosen = found[best] = joined[best]
    _store(skeleton, found)
    return chosen


def _load(skeleton: str) -> list[Pattern]:
    content = cache.load(cache_key.key(skeleton), cache.STRUCTURE)
    found = [] if content is None else content[0]["patterns"]
    return [Pattern(first, np.array(variable, dtype=bool), np.array(constants)) for first, variable, constants in found]


def _store(skeleton: str, patterns: list[Pattern]) -> None:
    described = [(p.first, p.variable.astype(int).tolist(), p.constants.tolist()) for p in patterns]
    cache.store(cache_key.key(skeleton), {"patterns": described}, b"", cache.STRUCTURE)
