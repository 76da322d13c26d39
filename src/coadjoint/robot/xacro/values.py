"""Values of expressions in xacro: numbers, text, lists, dictionaries, and how large they may become.

Nothing here can reach a Python object's insides: a value has only the methods that are listed, and every value that an operation
makes is weighed before it is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...words import cut, short

HEAVIEST = 100_000
"""The most characters and entries of a value, nested ones included."""

MOST_BITS = 4096
"""The most bits of a whole number."""

MOST_WORK = 1_000_000
"""Steps of all expressions and elements of a description together; a humanoid with hands takes ten thousand."""


class ExpressionError(Exception):
    """An expression is wrong, or refused; the message is a sentence without its file and line."""


class Work:
    """Counts steps, and ends what takes too many."""

    def __init__(self) -> None:
        self.done = 0

    def add(self, steps: int = 1) -> None:
        self.done += steps
        if self.done > MOST_WORK:
            raise ExpressionError(f"the description takes more than {MOST_WORK} steps to expand; no robot does.")


class Dictionary(dict[Any, Any]):
    """A dictionary whose entries are also its attributes, as those of YAML files are."""


def weight(value: Any) -> int:
    """The size of a value with all that it contains; an error where it is more than HEAVIEST."""
    total, waiting = 0, [value]
    while waiting:
        x = waiting.pop()
        if isinstance(x, str):
            total += len(x)
        elif isinstance(x, bool) or x is None or isinstance(x, float):
            total += 1
        elif isinstance(x, int):
            total += 1
            if x.bit_length() > MOST_BITS:
                raise ExpressionError(f"a whole number has more than {MOST_BITS} bits; no robot has such.")
        elif isinstance(x, Mapping):
            total += len(x)
            waiting += [*x.keys(), *x.values()] if total <= HEAVIEST else []
        elif isinstance(x, list | tuple | set | frozenset | range):
            total += 1 + len(x)
            waiting += [] if isinstance(x, range) or total > HEAVIEST else x
        else:
            total += 1
        if total > HEAVIEST:
            raise ExpressionError(f"a value has more than {HEAVIEST} characters or entries; no robot has such.")
    return total


def text(value: Any) -> str:
    """A value as text, as Python writes it."""
    weight(value)
    return str(value)


def truth(value: Any, condition: str) -> bool:
    """A condition: true, false, a number, or what Python takes for one."""
    if not isinstance(value, str):
        return bool(value)
    if value in ("true", "True"):
        return True
    if value in ("false", "False"):
        return False
    try:
        return bool(int(value))
    except ValueError:
        raise ExpressionError(f"the condition {short(condition)} is {short(value)}, which is neither true nor false.") from None


def literal(value: Any) -> Any:
    """Text that is a number, a truth value or quoted as what it means; other text as it is, that with an underscore always."""
    if not isinstance(value, str):
        return value
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if "_" in value or len(value) > 400:
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return {"true": True, "True": True, "false": False, "False": False}.get(value, value)


# --- functions


def _small(fn: Callable[..., Any], most: int = 1000) -> Callable[..., Any]:
    """A function of whole numbers that grows too fast for large ones."""

    def limited(*args: Any) -> Any:
        if any(isinstance(x, int | float) and abs(x) > most for x in args):
            raise ExpressionError(f"{fn.__name__} of more than {most} is not computed.")
        return fn(*args)

    return limited


def _range(*args: Any) -> list[int]:
    found = range(*args)
    if len(found) > HEAVIEST:
        raise ExpressionError(f"range has {len(found)} entries; at most {HEAVIEST} are allowed.")
    return list(found)


def _listed(fn: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
    return lambda *args, **options: list(fn(*args, **options))


def _tokens(given: str, sep: str = ",; ", skip_empty: bool = True) -> list[str]:
    words = re.split("[" + re.escape(sep) + "]", given)
    return [word for word in words if word or not skip_empty]


def _fatal(*args: Any) -> None:
    raise ExpressionError(f"the description says: {cut(' '.join(text(x) for x in args), 300)}")


MATHEMATICS = {key: value for key, value in vars(math).items() if not key.startswith("_")}
MATHEMATICS |= {key: _small(MATHEMATICS[key]) for key in ("factorial", "comb", "perm") if key in MATHEMATICS}

COMMON: dict[str, Any] = {
    "list": list,
    "dict": lambda *args, **options: Dictionary(*args, **options),
    "map": _listed(map),
    "len": len,
    "str": text,
    "float": float,
    "int": int,
    "bool": bool,
    "min": min,
    "max": max,
    "round": round,
    "sorted": sorted,
    "range": _range,
}
PYTHON: dict[str, Any] = COMMON | {
    "abs": abs,
    "all": all,
    "any": any,
    "divmod": divmod,
    "enumerate": _listed(enumerate),
    "filter": _listed(filter),
    "frozenset": frozenset,
    "ord": ord,
    "repr": lambda x: (weight(x), repr(x))[1],
    "reversed": _listed(reversed),
    "set": set,
    "sum": sum,
    "tuple": tuple,
    "zip": _listed(zip),
}
SAID = {key: lambda *_args, **_options: "" for key in ("message", "warning", "error", "print_location")}
"""Messages of a description are for whoever writes it; they are not printed."""

XACRO: dict[str, Any] = SAID | {"tokenize": _tokens, "fatal": _fatal, "dotify": lambda x: Dictionary(x)}

METHODS: dict[type, tuple[str, ...]] = {
    str: (
        *("capitalize", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdigit", "islower", "isnumeric", "isspace"),
        *(
            "isupper",
            "join",
            "lower",
            "lstrip",
            "partition",
            "removeprefix",
            "removesuffix",
            "replace",
            "rfind",
            "rindex",
            "rpartition",
        ),
        *("rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper"),
    ),
    list: ("count", "index"),
    tuple: ("count", "index"),
    dict: ("get", "items", "keys", "values"),
    float: ("is_integer",),
    int: ("bit_length",),
    set: ("difference", "intersection", "issubset", "issuperset", "union"),
}
"""The methods that expressions may call; none of them changes its value or formats by a template."""
