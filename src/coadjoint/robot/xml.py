"""XML read safely, every element with its line.

A robot description needs neither a document type nor entities, which is where XML is dangerous (entities that grow without end,
files and addresses read behind the reader's back): a file with either is refused. Namespaces are not resolved, so that prefixes
that nothing declares, common in old robot files, do no harm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from ..errors import ModelError, ReadError
from ..words import cut, short

MOST_ELEMENTS = 1_000_000
"""The most elements of a file; a robot of ten thousand links has a fifth of that."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITY = re.compile(r"([+-]?)inf(inity)?", re.IGNORECASE)


@dataclass(eq=False, repr=False)
class Document:
    """Common data of the elements of a file: its name, and remarks made while it was read, each once."""

    source: str
    notes: dict[str, None] = field(default_factory=dict)
    elements: int = 0


@dataclass(eq=False, repr=False, slots=True)  # what is nested deeply must not recurse
class Element:
    """One element: its tag, attributes, children, and the line and file it stands in."""

    tag: str
    attributes: dict[str, str]
    document: Document
    line: int
    children: list[Element] = field(default_factory=list)
    content: str = ""
    """Its text, where it was asked for."""

    @property
    def source(self) -> str:
        return self.document.source

    def __str__(self) -> str:
        name = self.attributes.get("name")
        return f"<{cut(self.tag)}>" if name is None else f'<{cut(self.tag)} name="{cut(name)}">'

    def error(self, message: str) -> ReadError:
        """An error that names the file, the line and this element."""
        return ReadError(f"{self.source}: line {self.line}: {self}: {message}")

    def all(self, tag: str) -> list[Element]:
        """The children with that tag."""
        return [child for child in self.children if child.tag == tag]

    def optional(self, tag: str) -> Element | None:
        """The child with that tag, or None; of several the first counts, as for other readers, and a note of the document says so."""
        found = self.all(tag)
        if len(found) > 1:
            place = f"line {found[1].line}: {self} has a second <{tag}>"
            self.document.notes[f"{place}; the first counts, which is in line {found[0].line}."] = None
        return found[0] if found else None

    def one(self, tag: str) -> Element:
        """The child with that tag, which must be there."""
        child = self.optional(tag)
        if child is None:
            raise self.error(f"<{tag}> is missing; expected one inside.")
        return child

    def only(self, tag: str) -> Element:
        """The child with that tag, of which there must be one and no more."""
        child, *more = self.all(tag) or [self.one(tag)]
        if more:
            raise more[0].error(f"{self} has a second <{tag}>, the first being in line {child.line}; expected one.")
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
            raise self.error(
                f'{key}="{cut(self.attributes[key])}" has {len(words)} words; expected three numbers with spaces between.'
            )
        x, y, z = (self._number(key, word, False) for word in words)
        return x, y, z

    def _number(self, key: str, word: str, infinite: bool) -> float:
        if infinite and (match := _INFINITY.fullmatch(word)):
            return -math.inf if match[1] == "-" else math.inf
        if not _NUMBER.fullmatch(word):
            hint = " Write decimals with a point." if _NUMBER.fullmatch(word.replace(",", ".", 1)) else ""
            raise self.error(f'{key}="{cut(self.attributes[key])}": "{cut(word)}" is not a number.{hint}')
        value = float(word)
        if not math.isfinite(value):
            raise self.error(f'{key}="{cut(self.attributes[key])}": "{cut(word)}" is too large for a number.')
        return value


def plain_numbers(text: str, count: int) -> list[float]:
    """The finite numbers of a text with spaces between; a ValueError where they are not so many."""
    words = text.split()
    if len(words) != count or not all(_NUMBER.fullmatch(word) for word in words):
        raise ValueError(f"expected {count} numbers")
    values = [float(word) for word in words]
    if not all(map(math.isfinite, values)):
        raise ValueError("expected finite numbers")
    return values


_FORBIDDEN = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def check_names(robot: str, names: Iterable[str], format: str) -> None:
    """Raise an error for names of blanks only, or with characters that no XML document can contain, even escaped."""
    for name in names:
        if not name.strip():
            raise ModelError(
                f"robot {short(robot)}: the name {short(name)} is blank, which {format} cannot hold; write JSON instead."
            )
        if found := _FORBIDDEN.search(name):
            raise ModelError(
                f"robot {short(robot)}: the name {short(name)} has the character {found[0]!r}, which XML and so {format} cannot hold; "
                "write the robot as JSON instead."
            )


def stripped(text: str) -> str:
    """The text without blanks and a byte order mark around it."""
    return text.strip().removeprefix("\ufeff").strip()


def is_text(source: str) -> bool:
    """True if this is XML itself and not the name of a file."""
    return stripped(source).startswith("<")


def parse(data: bytes | str, source: str, content: bool = False, quoted: Callable[[str], str] | None = None) -> Element:
    """The root element of an XML document, with its text if `content`; errors name the line. `quoted` is applied to CDATA sections."""
    roots: list[Element] = []
    open_: list[Element] = []
    document = Document(source)

    def start(tag: str, attributes: dict[str, str]) -> None:
        document.elements += 1
        if document.elements > MOST_ELEMENTS:
            line = parser.CurrentLineNumber
            raise ReadError(f"{source}: line {line}: the file has more than {MOST_ELEMENTS} elements; no robot is that large.")
        element = Element(tag, attributes, document, parser.CurrentLineNumber)
        (open_[-1].children if open_ else roots).append(element)
        open_.append(element)

    parser = _parser(source)
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_.pop()
    if content:
        pieces: dict[int, tuple[Element, list[str]]] = {}
        section: list[str] = []

        def gather(text: str) -> None:
            if text.strip() and open_:
                pieces.setdefault(id(open_[-1]), (open_[-1], []))[1].append(text)

        def begin_section() -> None:
            parser.CharacterDataHandler = section.append

        def end_section() -> None:
            text = "".join(section)
            section.clear()
            parser.CharacterDataHandler = gather
            gather(quoted(text) if quoted else text)

        parser.buffer_text = True
        parser.CharacterDataHandler = gather
        parser.StartCdataSectionHandler = begin_section
        parser.EndCdataSectionHandler = end_section
    _feed(parser, data, source, open_)
    if content:
        for element, texts in pieces.values():
            element.content = "".join(texts)
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


def _without_comments(data: Any, start: Any = b"<!--", end: Any = b"-->", line: Any = b"\n") -> Any:
    """The document with the lines of its comments, but not their text: many files have "--" in it, which XML forbids."""
    parts, at = [], 0
    while (first := data.find(start, at)) >= 0 and (last := data.find(end, first + len(start))) >= 0:
        parts += [data[at:first], line * data.count(line, first, last)]
        at = last + len(end)
    return line[:0].join([*parts, data[at:]]) if parts else data


def _feed(parser: Any, data: bytes | str, source: str, open_: list[Element]) -> None:
    if not data.strip():
        raise ReadError(f"{source}: the file is empty; expected XML.")
    try:
        parser.Parse(_without_comments(data, "<!--", "-->", "\n") if isinstance(data, str) else _without_comments(data), True)
    except expat.ExpatError as error:
        inside = f" inside {open_[-1]} of line {open_[-1].line}, which is not closed" if open_ else ""
        raise ReadError(f"{source}: line {error.lineno}: not XML: {expat.ErrorString(error.code)}{inside}.") from None
    except (LookupError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        # An encoding that is declared and unknown, or declared and not kept.
        raise ReadError(f"{source}: line {parser.CurrentLineNumber}: cannot decode the text: {error}. Save it as UTF-8.") from None
