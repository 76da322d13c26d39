"""Values and names as text for messages: short, and free of terminal control sequences."""

from __future__ import annotations

import re
import reprlib
from typing import Any

LONGEST = 80
"""The number of characters of a value that a message repeats."""

_repr = reprlib.Repr()
_repr.maxlevel = 4
_repr.maxlist = _repr.maxtuple = _repr.maxarray = _repr.maxdict = _repr.maxset = _repr.maxfrozenset = _repr.maxdeque = 20
_repr.maxstring = _repr.maxlong = _repr.maxother = 200


def short(value: Any, most: int = LONGEST) -> str:
    """`repr(value)` on one line, cut to about `most` characters; fast for values of any size."""
    if isinstance(value, str | bytes) and len(value) > most:
        return f"{value[:most]!r}… ({len(value)} in all)"
    try:
        text = " ".join(_repr.repr(value).split())
    except ValueError:  # Python writes no integer of more than 4300 digits
        text = f"a {type(value).__name__} too large to write"
    return text if len(text) <= most else f"{text[:most]}…"


def cut(text: str, most: int = LONGEST) -> str:
    """The text with control characters escaped, cut to about `most` characters."""
    return printable(text) if len(text) <= most else f"{printable(text[:most])}…"


def printable(text: str) -> str:
    """The text with control characters, line ends and changes of the writing direction escaped, as `\\x1b` or `\\n`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


_ALONE = r"(?<![\w/\\.-])"
_NO_FILE = r"(?!\S*[/\\])(?!\S*\.[A-Za-z])"


def in_a_shell(text: str) -> str:
    """A message with the options of commands in the place of the arguments of functions that it names: `--units q=deg`.

    Names of files stay as they are, as in rate=100/log.csv.
    """
    text = re.sub(_ALONE + r"(columns|units)=\{['\"](\w+)['\"]: (.*?)\}", _option, text)
    text = re.sub(_ALONE + r"(missing|times|topic)=['\"]([^'\"]+)['\"]", r"--\1 \2", text)
    text = re.sub(_ALONE + r"terms=\(\)", "--terms none", text)
    text = re.sub(_ALONE + r"(gains|cutoff|rate)=(?![^\s,;)])", r"--\1", text)
    return re.sub(_ALONE + r"(gains|delay|cutoff|rate)=(?=\S)" + _NO_FILE, r"--\1 ", text)


def _option(found: re.Match[str]) -> str:
    option, what, value = found.groups()
    plain = re.fullmatch(r"['\"]([^'\"]+)['\"]", value)
    return f"--{option} {what}={plain[1] if plain and plain[1] != '…' else 'NAMES' if option == 'columns' else 'UNIT'}"
