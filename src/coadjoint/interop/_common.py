"""Helpers shared by the conversions to all libraries."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..arguments import check_core
from ..errors import CoadjointError, MissingPackageError
from ..robot.link import Joint, Link
from ..robot.urdf import fresh

PACKAGES = {"pinocchio": "pin"}
"""The package names for `pip`, where they differ from the module's name."""


def engine(module: str) -> Any:
    """The imported library; if it is missing, the error says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise MissingPackageError(
            f"this needs the package {name!r} ({error}); install it with: pip install {PACKAGES.get(name, name)}"
        ) from None


def check_model(model: Any, attribute: str, expected: str) -> None:
    """Raise an error if the model is not one of the library."""
    if not hasattr(model, attribute):
        raise CoadjointError(f"the model is {model!r}; expected a {expected}. Files are read by coadjoint.load.")


class Names:
    """A generator of unique names: the requested one, or with a number appended if it is taken."""

    def __init__(self, *taken: str) -> None:
        self.taken = set(taken)

    def take(self, wanted: str) -> str:
        name = fresh(wanted, self.taken)
        self.taken.add(name)
        return name


def chain(
    link: str, parent: str, joints: Sequence[Joint], placements: Sequence[np.ndarray], parameters: Any, names: Names
) -> list[Link]:
    """Links for several joints in a row: massless ones, named after the link and their joint, and last the link itself."""
    links = []
    for joint, placement in zip(joints[:-1], placements[:-1], strict=True):
        between = Link(names.take(f"{link}_{joint.name}"), parent, joint, placement)
        links.append(between)
        parent = between.name
    return [*links, Link(link, parent, joints[-1], placements[-1], parameters)]


def array(x: Any, name: str, size: int, of: str) -> np.ndarray:
    """x as float64 of shape (..., size)."""
    found = np.asarray(x, dtype=np.float64)
    check_core(name, found, (size,), f" for {of}")
    return found


def listing(names: Sequence[str], most: int = 8) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(x) for x in names[:most]) + more
