"""The protocol that execution asks of a robot."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..arrays import Array


class Mechanism(Protocol):
    """A mechanism whose functions can be compiled; `Robot` is one.

    Sizes that core shapes name (`nq`, `n_links`, …) are attributes as well.
    """

    _fast: dict[Any, Any]
    """The functions compiled for the robot: by source and arguments, and by the source alone for plain calls."""

    @property
    def name(self) -> str: ...

    @property
    def nv(self) -> int:
        """The number of velocities."""
        ...

    @property
    def has_plain_numbers(self) -> bool:
        """True if its numbers are constants, so that code can be made for them."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of all that it is."""
        ...

    def like(self, x: Array) -> Any:
        """The robot with its numbers as arrays of the kind of x."""
        ...

    def canonical_arguments(self, arrays: dict[str, Array]) -> tuple[Any, dict[str, Array]]:
        """This mechanism in frames that make computing cheap, and the arguments of a function as seen in them."""
        ...

    @property
    def skeleton(self) -> str:
        """Everything that a traced function can read of the robot beside its numbers."""
        ...

    def numbers(self, joint_space: bool) -> tuple[np.ndarray, np.ndarray]:
        """The robot's numbers in one vector, those of its canonical form for functions that may use it; and which of them are always
        inputs."""
        ...

    def member(self, joint_space: bool, values: np.ndarray, arrays: dict[str, Array]) -> tuple[Any, dict[str, Array]]:
        """A mechanism of the same skeleton with other numbers, symbols among them, and arguments as seen in its frames."""
        ...
