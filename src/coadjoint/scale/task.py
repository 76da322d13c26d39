"""A function of a robot as a small object that can be sent to another process.

It holds the module and the name of the function, the robot and the options, never machine code: each process loads the kernel from
its own cache. A process that receives the same robot in many tasks builds it once.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import inspect
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..kernel.alone import ALONE

PARAMETER = "parameters: "


def parameter(name: str) -> str:
    """The name, among the arrays of a task, of a set of a robot's numbers (an item of the argument `parameters`)."""
    return PARAMETER + name


def by_argument(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of a task as arguments of its function."""
    numbers = {name.removeprefix(PARAMETER): x for name, x in arrays.items() if name.startswith(PARAMETER)}
    given = {name: x for name, x in arrays.items() if not name.startswith(PARAMETER)}
    return given | {"parameters": numbers} if numbers else given


class Task:
    """fn(robot, **arrays, **options) as a function of the arrays, on one thread unless the options have `threads`.

    The result is one array, or a tuple of the arrays that the function returns: those of a dataclass in the order of its fields.
    `alone`: with kernels of the robot alone, so that the bits do not depend on what a process did before.
    """

    def __init__(
        self, fn: Callable[..., Any], robot: Any, names: tuple[str, ...], options: Mapping[str, Any], alone: bool = False
    ) -> None:
        self.fn, self.robot, self.names, self.options, self.alone = fn, robot, names, dict(options), alone
        if self.options.get("threads") is None and _takes_threads(fn):
            self.options["threads"] = 1

    def result(self, *arrays: np.ndarray, **further: Any) -> Any:
        """The value that the function returns."""
        robot = () if self.robot is None else (self._own,) if self.alone else (self.robot,)
        token = ALONE.set(self.alone)
        try:
            return self.fn(*robot, **by_argument(dict(zip(self.names, arrays, strict=True))), **self.options, **further)
        finally:
            ALONE.reset(token)

    @functools.cached_property
    def _own(self) -> Any:
        """The robot as an object of its own, which has not met a shared kernel."""
        return _robot(pickle.dumps(self.robot, protocol=5), True)

    def __call__(self, *arrays: np.ndarray) -> Any:
        found = tuple(map(np.asarray, fields(self.result(*arrays))))
        return found[0] if len(found) == 1 else found

    def identity(self) -> tuple[Any, ...]:
        """A text that identifies the computation: function, library, robot, options."""
        robot = None if self.robot is None else self.robot.fingerprint
        return (name_of(self.fn) or self.fn, library_digest(), robot, self.names, sorted(self.options.items()))

    def __dask_tokenize__(self) -> Any:
        from dask.base import normalize_token

        return normalize_token(self.identity())

    def __reduce__(self) -> Any:
        name = name_of(self.fn)
        robot = None if self.robot is None else pickle.dumps(self.robot, protocol=5)
        return _received, (name or self.fn, robot, self.names, self.options, self.alone)


def _received(fn: Any, robot: bytes | None, names: tuple[str, ...], options: dict[str, Any], alone: bool) -> Task:
    return Task(resolve(*fn) if isinstance(fn, tuple) else fn, None if robot is None else _robot(robot), names, options, alone)


@functools.lru_cache(maxsize=64)
def _robot(pickled: bytes, alone: bool = False) -> Any:
    """The robot; the same object for the same bytes, so that its kernels are found again; another one for kernels of its own."""
    return pickle.loads(pickled)


def name_of(fn: Any) -> tuple[str, str] | None:
    """(module, name) of a function of this library; None for other functions, which are pickled."""
    module, name = getattr(fn, "__module__", None) or "", getattr(fn, "__qualname__", "")
    if module.partition(".")[0] != __name__.partition(".")[0]:
        return None
    try:
        return (module, name) if resolve(module, name) is fn else None
    except (ImportError, AttributeError):
        return None


def resolve(module: str, name: str) -> Any:
    """The function of this name in this module."""
    return getattr(importlib.import_module(module), name)


def fields(result: Any) -> tuple[Any, ...]:
    """The arrays of a result: one, a tuple of them, or the fields of a dataclass that have batch axes."""
    if dataclasses.is_dataclass(result):
        return tuple(getattr(result, name) for name in _batched(result))
    return tuple(result) if isinstance(result, tuple) else (result,)


def whole(result: Any, arrays: tuple[Any, ...], robot: Any) -> Any:
    """The arrays combined to a result: one array, a tuple, or a dataclass, whose robot is this one."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        given = {"robot": robot} if hasattr(result, "robot") else {}
        return dataclasses.replace(result, **given, **dict(zip(_batched(result), arrays, strict=True)))
    if hasattr(result, "_fields"):  # a named tuple
        return type(result)(*arrays)
    return arrays if isinstance(result, tuple) else arrays[0]


def _batched(result: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(result) if not field.metadata.get("for_all")]


def kernel_of(fn: Any) -> Any:
    """The kernel that a function is; None for others, such as wrappers that took over the attributes of one."""
    kernel = getattr(fn, "kernel", None)
    return kernel if getattr(kernel, "public", None) is fn else None


def _takes_threads(fn: Callable[..., Any]) -> bool:
    return kernel_of(fn) is not None or "threads" in inspect.signature(fn).parameters


@functools.cache
def library_digest() -> str:
    """Version and content of this library, which decide the numbers that it returns."""
    from .._version import __version__

    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()[:16]}"


def check_robot(robot: Any) -> None:
    """Raise an error for a robot whose numbers are variables: it cannot be sent."""
    if not robot.has_plain_numbers:
        raise CoadjointError(
            f"the numbers of robot {robot.name!r} are variables, which cannot be sent to tasks; make them inputs instead, as in "
            "coadjoint.compile(fn, robot, parameters=['masses'])."
        )
