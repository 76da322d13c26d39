"""YAML files that a xacro file reads, with the units that xacro gives meaning to."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import CoadjointError, ReadError
from ...files import read_text
from ...words import cut
from .values import Dictionary, ExpressionError, weight

LARGEST = 2**20
"""The largest YAML file that is read, in bytes."""

UNITS = {"radians": 1.0, "degrees": math.pi / 180, "meters": 1.0, "millimeters": 0.001, "foot": 0.3048, "inches": 0.0254}


def load_yaml(path: Path, evaluate: Callable[[str], Any]) -> Any:
    """The content of a YAML file, dictionaries with their entries as attributes; `evaluate` computes the numbers before units."""
    try:
        import yaml
    except ImportError:
        raise ExpressionError("YAML files are read by the package pyyaml, which is not installed: pip install pyyaml.") from None
    try:
        given = read_text(path, LARGEST)
    except ReadError as error:
        raise ExpressionError(str(error)) from None

    Loader = type("Loader", (yaml.SafeLoader,), {})  # its own: the tags are added to the class

    def unit(factor: float) -> Callable[[Any, Any], float]:
        return lambda loader, node: float(evaluate(str(loader.construct_scalar(node)))) * factor

    for name, factor in UNITS.items():
        yaml.add_constructor(f"!{name}", unit(factor), Loader)
    try:
        data = yaml.load(given, Loader)
        weight(data)  # and so not without end
        return _plain(data)
    except (CoadjointError, ExpressionError) as error:
        raise ExpressionError(f"{cut(str(path), 300)}: {error}") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise ExpressionError(f"{cut(str(path), 300)}: {where}not YAML: {cut(str(getattr(error, 'problem', error)))}.") from None


def _plain(value: Any) -> Any:
    """Numbers, text, lists and dictionaries; dates and the like as text."""
    if isinstance(value, dict):
        return Dictionary({key: _plain(x) for key, x in value.items()})
    if isinstance(value, list):
        return [_plain(x) for x in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
