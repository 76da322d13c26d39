"""Many robots of one structure in one call: some of a robot's numbers differ from state to state of a batch.

The numbers are inputs of the compiled code like q and v, so all robots share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .arguments import check_core
from .arrays import Array, broadcast_named, to_numpy
from .errors import CoadjointError, ShapeError
from .memo import recent
from .robot.robot import Robot


class Family:
    """A robot and the numbers that differ from state to state: parameters {name: (..., *shape)}, names as for `coadjoint.compile`."""

    def __init__(self, robot: Robot, parameters: Mapping[str, Any] | None) -> None:
        if parameters is not None and not isinstance(parameters, Mapping):
            raise CoadjointError(f"parameters is {type(parameters).__name__}; expected a mapping, as {{'masses': array}}.")
        self.robot = robot
        self.names = tuple(parameters or {})
        self.cores = tuple(own_numbers(robot, name).shape for name in self.names)
        self.arrays = tuple(_checked(robot, name, x) for name, x in (parameters or {}).items())

    @classmethod
    def of(cls, robot: Robot, names: tuple[str, ...]) -> Family:
        """The family of a robot by the names of the numbers that differ, without these."""
        family = cls(robot, None)
        family.names, family.cores = names, tuple(own_numbers(robot, name).shape for name in names)
        return family

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def batches(self) -> dict[str, tuple[int, ...]]:
        """The batch axes of every set of numbers."""
        return {name: x.shape[: x.ndim - len(core)] for name, x, core in zip(self.names, self.arrays, self.cores, strict=True)}

    def batch(self, **others: tuple[int, ...]) -> tuple[int, ...]:
        """The batch shape of all numbers and of other arrays, whose batch axes are given by name."""
        return broadcast_named(others | {f"parameters[{name!r}]": shape for name, shape in self.batches.items()})

    def flat(self, batch: tuple[int, ...]) -> np.ndarray:
        """The numbers of every state, one after the other: (N, numbers)."""
        parts = [
            np.broadcast_to(x, (*batch, *core)).reshape(int(np.prod(batch)), int(np.prod(core, dtype=int)))
            for x, core in zip(self.arrays, self.cores, strict=True)
        ]
        return np.concatenate([np.zeros((int(np.prod(batch)), 0)), *parts], axis=-1)

    @property
    def size(self) -> int:
        """The number of numbers that every state has."""
        return int(sum(np.prod(core, dtype=int) for core in self.cores))

    def member(self, numbers: Array) -> Robot:
        """The robot with these numbers (size,), plain or symbols."""
        from .compiling import with_values

        chosen, offset = {}, 0
        for name, core in zip(self.names, self.cores, strict=True):
            n = int(np.prod(core, dtype=int))
            chosen[name], offset = numbers[offset : offset + n].reshape(core), offset + n
        if not chosen:
            return self.robot
        member = with_values(self.robot, chosen)
        member.__dict__["_overconstrained"] = self.robot._overconstrained  # a property of the structure
        return member

    def compiled(self, key: Any, fn: Callable[..., Any], name: str, **shapes: tuple[int, ...]) -> Callable[..., Any]:
        """fn(robot, numbers, *arrays) compiled: a callable f(*arrays, *numbers, out=None, threads=None) for states of any batch axes.

        numbers is empty, or has one array (size,), those that differ. key must determine fn for this robot.
        """
        shapes = {**shapes, **({"numbers": (self.size,)} if self else {})}

        def run(*arrays: Array) -> Any:
            return fn(self.member(arrays[-1]), arrays[-1:], *arrays[:-1]) if self else fn(self.robot, (), *arrays)

        return recent(self.robot, ("compiled", key, self.names), lambda: built(self.robot, run, shapes, name))


def built(robot: Robot, fn: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]], name: str) -> Callable[..., Any]:
    """fn of arrays of these shapes as machine code, or node by node where there is none."""
    from .differentiating import built_function
    from .kernel.passes.simplify import simplify
    from .kernel.trace.trace import trace

    return built_function(simplify(trace(fn, shapes, name)), np.float64)


def own_numbers(robot: Robot, name: str) -> np.ndarray:
    """The robot's own numbers of that name."""
    from .compiling import PARAMETERS

    return np.asarray(getattr(robot, name) if name in PARAMETERS else robot.parameters(name), dtype=float)


def number_axes(robot: Robot, parameters: Mapping[str, Any]) -> dict[str, str]:
    """The core axes of every array of `parameters`, each with a name of its own."""
    return {name: " ".join(f"{name}_{k}" for k in range(own_numbers(robot, name).ndim)) for name in parameters}


def _checked(robot: Robot, name: str, x: Any) -> np.ndarray:
    """The numbers as an array (..., *shape); an error names the set, and the first number that is not physical."""
    core = own_numbers(robot, name).shape
    x = to_numpy(x, f"parameters[{name!r}]")
    try:
        array = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise ShapeError(f"parameters[{name!r}] is {type(x).__name__}; expected real numbers (..., {_sizes(core)}).") from None
    check_core(f"parameters[{name!r}]", array, core, f" for robot {robot.name!r}")
    wrong = ~np.isfinite(array)
    if name in ("masses", "armature", "damping", "friction", "drives"):
        wrong |= array < 0
    elif name in ("inertial", "inertias"):
        wrong.reshape(*array.shape[: array.ndim - len(core)], robot.n_links, 10)[..., 0] |= (
            array.reshape(*array.shape[: array.ndim - len(core)], robot.n_links, 10)[..., 0] < 0
        )
    if wrong.any():
        index = tuple(int(k) for k in np.argwhere(wrong)[0])
        what = "must not be negative" if np.isfinite(array[index]) else "is no finite number"
        which = _what(robot, name, index[array.ndim - len(core) :], core)
        raise CoadjointError(f"parameters[{name!r}]{list(index)} is {array[index]:g}; {which} {what}.")
    return array


def _sizes(core: tuple[int, ...]) -> str:
    return ", ".join(map(str, core))


def _what(robot: Robot, name: str, index: tuple[int, ...], core: tuple[int, ...]) -> str:
    """The description of a number: its link or joint, and its meaning."""
    from .robot.parameters import FRAME_SETS, SETS

    if name.partition(":")[0] not in (*SETS, *FRAME_SETS):
        return "a number of the robot"
    return robot.parameter_names(name)[int(np.ravel_multi_index(index, core))]
