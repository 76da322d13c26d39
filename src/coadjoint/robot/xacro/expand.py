"""xacro expanded: properties, macros, blocks, includes, conditions, arguments.

The language is that of the reference implementation, in the order of the file: https://github.com/ros/xacro/wiki. What differs is how it
is done. Expressions are walked and never run as Python; messages are not printed; and what a few lines could make without end (macros
that call themselves, includes in a circle, lists of lists) is refused by name. The result is a tree of elements, each with the file and
the line that it was written in.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import Any

from ...errors import CoadjointError, ReadError
from ...files import read_bytes
from ...words import cut, short
from .. import xml
from ..packages import Finder
from .scope import Scope
from .substitution import MOST_FILES, Substitution, escaped
from .values import ExpressionError, text, truth

PREFIX = "xacro:"
DEEPEST = 64
"""The most macros, blocks and elements within each other."""

MOST_ELEMENTS = 200_000

_DEFAULT = r"\$\{.*?\}|\$\(.*?\)|(?:'.*?'|\".*?\"|[^\s'\"]+)+|"
_PARAMETER = re.compile(r"\s*([^\s:=]+?)\s*:?=\s*(\^\|?)?(" + _DEFAULT + r")(?:\s+|$)(.*)", re.DOTALL)


def expand(path: str | os.PathLike[str], arguments: Mapping[str, Any], finder: Finder) -> xml.Element:
    """The root element of the XML that a xacro file describes; arguments are those of its <xacro:arg>."""
    return _Expander(arguments, finder).file(Path(path))


@dataclass
class _Macro:
    body: xml.Element
    parameters: list[str]
    defaults: dict[str, tuple[bool, str | None]]
    """Defaults of parameters: whether a parameter takes the value that its name has where the macro is called, and the text of its
    default."""


@dataclass
class _Block:
    elements: list[xml.Element]
    content: str = ""


class _Place:
    """The place where an element is expanded: the names that it sees."""

    def __init__(self, symbols: Scope, macros: Scope) -> None:
        self.symbols, self.macros = symbols, macros

    def inside(self) -> _Place:
        return _Place(Scope(self.symbols), Scope(self.macros))


class _Expander(Substitution):
    def __init__(self, arguments: Mapping[str, Any], finder: Finder) -> None:
        super().__init__(arguments, finder)
        self.notes: dict[str, None] = {}
        self.made = 0
        self.place = _Place(self.symbols, Scope())

    def file(self, path: Path) -> xml.Element:
        root = self._parsed(path, None)
        self.files.append(path)
        if root.tag.startswith(PREFIX):
            raise root.error("the root element is one of xacro's own; expected <robot>.")
        (result,) = self._expanded([root], self.place, 0, None)
        return result

    def _parsed(self, path: Path, by: xml.Element | None) -> xml.Element:
        """The root of a file; errors name the element that includes it."""
        self.read += 1
        if self.read > MOST_FILES:
            raise (by.error if by else ReadError)(f"more than {MOST_FILES} files are included.")
        try:
            root = xml.parse(read_bytes(path), cut(str(path), 300), content=True, quoted=escaped)
        except CoadjointError as error:
            raise (by.error(str(error)) if by else error) from None
        root.document.notes = self.notes
        return root

    # --- elements

    def _expanded(self, elements: list[xml.Element], place: _Place, depth: int, parent: xml.Element | None) -> list[xml.Element]:
        """The elements after expansion, in their order; `parent` is the expanded element that they will be in."""
        result: list[xml.Element] = []
        if depth > DEEPEST:
            raise elements[0].error(
                f"elements, macros and blocks are nested deeper than {DEEPEST} levels; does a macro call itself?"
            )
        for element in elements:
            try:
                self.work.add()
                result += self._one(element, place, depth, parent)
            except ExpressionError as error:
                raise element.error(str(error)) from None
        return result

    def _one(self, element: xml.Element, place: _Place, depth: int, parent: xml.Element | None) -> list[xml.Element]:
        tag = element.tag
        if not tag.startswith(PREFIX):
            return [self._plain(element, place, depth)]
        name = tag[len(PREFIX) :]
        if name in ("property", "macro", "arg"):
            {"property": self._property, "macro": self._define, "arg": self._declare}[name](element, place)
            return []
        if name == "attribute":
            key = text(self._value(element.text("name"), place.symbols))
            if parent is None or not key:
                raise ExpressionError("an attribute needs a name, and an element that it is in.")
            parent.attributes[key] = text(self._value(_needed(element, "value"), place.symbols))
            return []
        if name in ("if", "unless"):
            condition = _needed(element, "value")
            keep = truth(self._value(condition, place.symbols), condition) is (name == "if")
            return self._inside(element, place, depth, parent) if keep else []
        if name == "include":
            return self._include(element, place, depth, parent)
        if name == "insert_block":
            return self._insert(element, place, depth, parent)
        if name == "element":
            tag = text(self._value(_needed(element, "xacro:name"), place.symbols))
            if not tag:
                raise ExpressionError("the name of the element is empty.")
            attributes = {key: value for key, value in element.attributes.items() if key != "xacro:name"}
            return self._one(_copy(element, tag, attributes, element.children), place, depth, parent)
        return self._call(element, place, depth, parent)

    def _inside(self, element: xml.Element, place: _Place, depth: int, parent: xml.Element | None) -> list[xml.Element]:
        """The children of an element that is itself left out; its text goes to the parent's."""
        if parent is not None and element.content.strip():
            parent.content += text(self._value(element.content, place.symbols))
        return self._expanded(element.children, place, depth + 1, parent) if element.children else []

    def _plain(self, element: xml.Element, place: _Place, depth: int) -> xml.Element:
        self.made += 1
        if self.made > MOST_ELEMENTS:
            raise ExpressionError(f"the description has more than {MOST_ELEMENTS} elements; no robot is that large.")
        attributes = {}
        for key, value in element.attributes.items():
            if not key.startswith(PREFIX) and key != "xmlns:xacro":
                attributes[key] = text(self._value(value, place.symbols))
        made = _copy(element, element.tag, attributes, [])
        made.content = text(self._value(element.content, place.symbols)) if element.content.strip() else ""
        if element.children:
            made.children = self._expanded(element.children, place, depth + 1, made)
        return made

    def _property(self, element: xml.Element, place: _Place) -> None:
        _only(element, "name", "value", "default", "remove", "scope", "lazy_eval")
        has, symbols = element.attributes, place.symbols
        name = text(self._value(element.text("name"), symbols))
        if not name.isidentifier() or name.startswith("__") or iskeyword(name):
            raise ExpressionError(
                f"the property {short(name)} needs a name of letters, digits and single underscores, not a word of Python."
            )
        remove = truth(self._value(has.get("remove") or "false", symbols), has.get("remove", ""))
        if ("value" in has) + ("default" in has) + remove > 1:
            raise ExpressionError(f"the property {short(name)} has more than one of value, default and remove.")
        if remove:
            symbols.remove(name)
            return
        if "default" in has and symbols.has(name):
            return
        given: Any = has.get("value", has.get("default"))
        later = truth(self._value(has.get("lazy_eval") or "true", symbols), has.get("lazy_eval", ""))
        if given is None:
            name, given = f"**{name}", _Block(element.children, element.content)
        scope = has.get("scope")
        if scope not in (None, "", "parent", "global"):
            raise ExpressionError(f"the scope {short(scope)} is unknown; choose 'parent' or 'global'.")
        target = symbols
        if scope == "global":
            target, later = symbols.top, False
        elif scope == "parent":
            target, later = self._parent_scope(symbols), False
        target.set(name, self._value(given, symbols) if isinstance(given, str) and not later else given, later)

    def _parent_scope(self, symbols: Scope) -> Scope:
        outer = symbols.around
        if not symbols.namespace:
            while outer is not None and outer.namespace:
                outer = outer.around
        if outer is None or outer.around is None:
            raise ExpressionError("there is no scope around this one.")
        return outer

    def _declare(self, element: xml.Element, place: _Place) -> None:
        _only(element, "name", "default")
        name, default = element.text("name"), _needed(element, "default")
        if name not in self.arguments:
            self.arguments[name] = text(self._value(default, place.symbols))

    def _include(self, element: xml.Element, place: _Place, depth: int, parent: xml.Element | None) -> list[xml.Element]:
        _only(element, "filename", "ns", "optional")
        name = self._beside(self._value(element.text("filename"), place.symbols))
        space = text(self._value(element.attributes.get("ns", ""), place.symbols))
        optional = truth(element.attributes.get("optional", "false"), "optional")
        if space:
            inner = _Place(Scope(place.symbols, namespace=True), Scope())
            place.symbols.values[space], place.macros.values[space] = inner.symbols, inner.macros
            place = inner
        found = sorted(glob.glob(name)) if re.search(r"[*[?]", name) else [name]
        result: list[xml.Element] = []
        for path in map(Path, found):
            if path in self.files and len(self.files) > DEEPEST // 2:
                raise element.error(f"files include each other in a circle: {short(str(path))}.")
            if optional and not os.path.exists(path):
                continue
            root = self._parsed(path, element)
            self.files.append(path)
            for value in root.attributes.values():
                self._value(value, place.symbols)
            result += self._inside(root, place, depth, parent)
            self.files.pop()
        return result

    def _insert(self, element: xml.Element, place: _Place, depth: int, parent: xml.Element | None) -> list[xml.Element]:
        name = element.text("name")
        for stars in ("**", "*"):
            if place.symbols.has(stars + name):
                block = place.symbols.get(stars + name, self._value)
                if parent is not None and block.content.strip():
                    parent.content += text(self._value(block.content, place.symbols))
                return self._expanded(block.elements, place, depth + 1, parent) if block.elements else []
        raise ExpressionError(f"no block is named {short(name)} here.")

    # --- macros

    def _define(self, element: xml.Element, place: _Place) -> None:
        _only(element, "name", "params")
        name = element.text("name").removeprefix(PREFIX)
        if name == "call" or "." in name:
            raise ExpressionError(f"a macro cannot be named {short(name)}.")
        parameters: list[str] = []
        defaults: dict[str, tuple[bool, str | None]] = {}
        rest = element.attributes.get("params", "").strip()
        while rest:
            if match := _PARAMETER.match(rest):
                parameter, forward, default, rest = match.groups()
                defaults[parameter] = (bool(forward), default or None)
                rest = rest.strip()
            else:
                parameter, _, rest = rest.partition(" ") if " " in rest else (*rest.split(None, 1), "", "")[:3]
                rest = rest.strip()
            parameters.append(parameter)
        place.macros.values[name] = _Macro(element, parameters, defaults)

    def _macro(self, name: str, place: _Place) -> tuple[_Macro, _Place]:
        """The macro of a name, which namespaces may precede, and where it is expanded."""

        def look(where: _Place, key: str) -> Any:
            return where.macros.get(key, self._value) if where.macros.has(key) else None

        found: Any = look(place, name)
        *spaces, last = name.split(".")
        if not isinstance(found, _Macro) and spaces:
            for space in spaces:
                macros, symbols = look(place, space), place.symbols.get(space, self._value) if place.symbols.has(space) else None
                if not isinstance(macros, Scope) or not isinstance(symbols, Scope):
                    raise ExpressionError(f"no file is included with the namespace {short(space)} here.")
                place = _Place(symbols, macros)
            found = look(place, last)
        if not isinstance(found, _Macro):
            raise ExpressionError(f"no macro is named {short(name)} here.")
        return found, place

    def _call(self, element: xml.Element, place: _Place, depth: int, parent: xml.Element | None) -> list[xml.Element]:
        name, given = element.tag[len(PREFIX) :], dict(element.attributes)
        if name == "call":
            name = text(self._value(_needed(element, "macro"), place.symbols))
            del given["macro"]
        macro, at = self._macro(name, place)
        inner = at.inside()
        missing = list(macro.parameters)
        for key, value in given.items():
            if key.startswith("xmlns"):
                continue
            if key not in missing:
                raise ExpressionError(f"the macro {short(name)} has no parameter {short(key)}.")
            missing.remove(key)
            inner.symbols.set(key, self._value(value, place.symbols))
        blocks = self._expanded(element.children, place, depth + 1, None) if element.children else []
        for key in [key for key in missing if key.startswith("*")]:
            if not blocks:
                raise ExpressionError(f"the macro {short(name)} needs a block for {short(key)}.")
            block = blocks.pop(0)
            missing.remove(key)
            inner.symbols.values[key] = _Block(block.children, block.content) if key.startswith("**") else _Block([block])
        if blocks:
            raise ExpressionError(f"the macro {short(name)} takes no block {blocks[0]}.")
        for key in [key for key in missing if key in macro.defaults]:
            inner.symbols.set(key, self._default(key, *macro.defaults[key], place.symbols))
            missing.remove(key)
        if missing:
            raise ExpressionError(f"the macro {short(name)} needs {', '.join(short(x) for x in missing)}.")
        return self._inside(macro.body, inner, depth, parent)

    def _default(self, name: str, forwarded: bool, default: str | None, symbols: Scope) -> Any:
        if forwarded and symbols.has(name):
            return symbols.get(name, self._value)
        if default is None:
            raise ExpressionError(f"no property {short(name)} is there to be passed on.")
        return self._value(default, symbols)


def _copy(element: xml.Element, tag: str, attributes: dict[str, str], children: list[xml.Element]) -> xml.Element:
    return xml.Element(tag, attributes, element.document, element.line, children, element.content)


def _needed(element: xml.Element, key: str) -> str:
    if key not in element.attributes:
        raise ExpressionError(f'the attribute "{key}" is missing.')
    return element.attributes[key]


def _only(element: xml.Element, *known: str) -> None:
    for key in element.attributes:
        if key not in known and not key.startswith("xmlns"):
            element.document.notes[f"line {element.line}: {element}: the attribute {short(key)} is unknown."] = None
