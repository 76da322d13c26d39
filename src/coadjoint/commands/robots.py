"""The robot that a command is for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ..errors import ModelWarning
from ..robot.load import load
from ..robot.robot import Robot


def read_robot(source: str, base: str = "fixed", fixed_joints: str = "merge") -> Robot:
    """The robot, without a word: `robot.warnings` has what there is to tell, each once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load(source, base=base, fixed_joints=fixed_joints)


def tell(texts: Iterable[str]) -> None:
    """Each as a warning."""
    for text in texts:
        warnings.warn(text, ModelWarning, stacklevel=2)
