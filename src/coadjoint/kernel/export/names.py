"""Names of inputs and outputs that other languages accept, and elements of arrays by their place."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...errors import CoadjointError


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """The name as an identifier of C and Python that is not yet taken."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII) or "f"
    if name[0].isdigit():
        name = "_" + name
    taken = set(taken)
    while name in taken:
        name += "_"
    return name


def places(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The indices of an array's elements, counted from 1, in row-major order."""
    for index in np.ndindex(*shape):
        yield tuple(k + 1 for k in index)


def optional(module: str, package: str) -> Any:
    """The module, or an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CoadjointError(f"exporting to {module} needs {package}. Install it with: pip install {package}") from None
