"""XML read safely, every element with its line.

A robot description needs neither a document type nor entities, which is where XML is dangerous (entities that grow without end,
files and addresses read behind the reader's back): a file with either is refused. Namespaces are not resolved, so that prefixes
that nothing declares, common in old robot files, do no harm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from ..errors import ReadError

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITY = re.compile(r"([+-]?)inf(inity)?", re.IGNORECASE)


@dataclass(eq=False, repr=False)  # what is nested deeply must not recurse
class Element:
    """One element: its tag, attributes, children, and the line and file it stands in."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    children: list[Element] = field(default_factory=list)

    def __str__(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag}>" if name is None else f'<{self.tag} name="{name}">'

    def error(self, message: str) -> ReadError:
        """An error that names the file, the line and this element."""
        return ReadError(f"{self.source}: line {self.line}: {self}: {message}")

    def all(self, tag: str) -> Iterator[Element]:
        """The children with that tag."""
        return (child for child in self.children if child.tag == tag)

    def optional(self, tag: str) -> Element | None:
        """The child with that tag, or None; two of them are an error."""
        found = list(self.all(tag))
        if len(found) > 1:
            raise found[1].error(f"{self} has a second <{tag}>, the first being in line {found[0].line}; expected one.")
        return found[0] if found else None

    def one(self, tag: str) -> Element:
        """The child with that tag, which must be there."""
        child = self.optional(tag)
        if child is None:
            raise self.error(f"<{tag}> is missing; expected one inside.")
        return child

    def text(self, key: str) -> str:
        """An attribute that must be there and not be empty."""
        if key not in self.attributes:
            raise self.error(f'the attribute "{key}" is missing.')
        if not self.attributes[key].strip():
            raise self.error(f'the attribute "{key}" is empty.')
        return self.attributes[key]

    def number(self, key: str, default: float | None = None, infinite: bool = False) -> float:
        """An attribute that is one number; it must be there if there is no default."""
        if key not in self.attributes and default is not None:
            return default
        return self._number(key, self.text(key).strip(), infinite)

    def vector(self, key: str, default: tuple[float, float, float] | None = None) -> tuple[float, float, float]:
        """An attribute that is three numbers."""
        if key not in self.attributes and default is not None:
            return default
        words = self.text(key).split()
        if len(words) != 3:
            raise self.error(f'{key}="{self.attributes[key]}" has {len(words)} words; expected three numbers with spaces between.')
        x, y, z = (self._number(key, word, False) for word in words)
        return x, y, z

    def _number(self, key: str, word: str, infinite: bool) -> float:
        if infinite and (match := _INFINITY.fullmatch(word)):
            return -math.inf if match[1] == "-" else math.inf
        if not _NUMBER.fullmatch(word):
            hint = " Write decimals with a point." if _NUMBER.fullmatch(word.replace(",", ".", 1)) else ""
            raise self.error(f'{key}="{self.attributes[key]}": "{word}" is not a number.{hint}')
        value = float(word)
        if not math.isfinite(value):
            raise self.error(f'{key}="{self.attributes[key]}": "{word}" is too large for a number.')
        return value


def stripped(text: str) -> str:
    """The text without blanks and a byte order mark around it."""
    return text.strip().removeprefix("\ufeff").strip()


def is_text(source: str) -> bool:
    """Whether this is XML itself and not the name of a file."""
    return stripped(source).startswith("<")


def parse(data: bytes | str, source: str) -> Element:
    """The root element of an XML document; what is wrong with it is told with its line."""
    roots: list[Element] = []
    open_: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, source, parser.CurrentLineNumber)
        (open_[-1].children if open_ else roots).append(element)
        open_.append(element)

    parser = _parser(source)
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_.pop()
    _feed(parser, data, source, open_)
    return roots[0]


def root_tag(data: bytes | str, source: str) -> str:
    """The tag of the root element; nothing beyond it is read."""

    class Found(Exception):
        pass

    def start(tag: str, attributes: dict[str, str]) -> None:
        raise Found(tag)

    parser = _parser(source)
    parser.StartElementHandler = start
    try:
        _feed(parser, data, source, [])
    except Found as found:
        return str(found)
    raise AssertionError("a document without an element has been refused")


def _parser(source: str) -> Any:
    parser = expat.ParserCreate()

    def refuse(*_: Any) -> Any:
        raise ReadError(
            f"{source}: line {parser.CurrentLineNumber}: the file has a document type (<!DOCTYPE …>), which may hide entities and "
            "other files; robot descriptions need none. Remove it."
        )

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    return parser


def _feed(parser: Any, data: bytes | str, source: str, open_: list[Element]) -> None:
    if not data.strip():
        raise ReadError(f"{source}: the file is empty; expected XML.")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        inside = f" inside {open_[-1]} of line {open_[-1].line}, which is not closed" if open_ else ""
        raise ReadError(f"{source}: line {error.lineno}: not XML: {expat.ErrorString(error.code)}{inside}.") from None
    except (LookupError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        # An encoding that is declared and unknown, or declared and not kept.
        raise ReadError(f"{source}: line {parser.CurrentLineNumber}: cannot decode the text: {error}. Save it as UTF-8.") from None
