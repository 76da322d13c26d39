"""Options of a stream as texts, by which it is recognized when it is continued."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np


def text_of(x: Any, robot: Any) -> str:
    """An option as a text that differs between options that differ."""
    if hasattr(x, "identity"):
        text: str = x.identity(robot)
        return text
    if isinstance(x, np.ndarray):  # whose repr rounds, and leaves out what is in the middle, as that of a data frame does
        if x.dtype.kind == "O":
            return f"{x.shape} {text_of(x.ravel().tolist(), robot)}"
        return f"{x.dtype} {x.shape} {hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()}"
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{text_of(key, robot)}: {text_of(value, robot)}" for key, value in x.items()) + "}"
    if isinstance(x, list | tuple):
        return f"{type(x).__name__}({', '.join(text_of(y, robot) for y in x)})"
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return f"{type(x).__name__}({text_of([getattr(x, y.name) for y in dataclasses.fields(x)], robot)})"
    return text_of(np.asarray(x), robot) if hasattr(x, "__array__") else repr(x)
