"""The size of the model in an MJCF file, checked before MuJoCo compiles it.

A few lines of MJCF can ask for more than any machine has: `<replicate>` in `<replicate>`, a height field of 60000 x 60000, a grid
of 10⁹ vertices; and MuJoCo blocks forever on a pipe that an `<include>` or a mesh names. So all files of a model are scanned first,
including those that they include and attach.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from ..errors import ReadError
from ..files import open_regular, read_bytes
from ..words import cut
from . import xml

MOST_BODIES = 5_000
"""Bodies of a model, replicated ones counted each; MuJoCo takes about a second for as many."""

MOST_ELEMENTS = 100_000
MOST_CELLS = 2**25
"""The most cells of a height field or a texture."""

MOST_USER_NUMBERS = 10_000
MOST_MEMORY = 4 * 2**30
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}


def check_size(path: Path) -> None:
    """Raise an error if a file is not MJCF, or its model would be too large; it names file, line and element."""
    _Scan(path).run()


class _Scan:
    def __init__(self, path: Path) -> None:
        self.folder, self.parsed = path.parent, {path: xml.parse(read_bytes(path), cut(str(path), 300))}
        self.root = self.parsed[path]
        self.included = {path}
        self.models: dict[str, xml.Element] = {}
        self.folders = [self.folder]
        self.bodies = self.elements = 0.0

    def run(self) -> None:
        if self.root.tag != "mujoco":
            raise ReadError(f"{self.root.source}: the root element is <{cut(self.root.tag)}>; expected <mujoco>.")
        stack = [(self.root, 1.0)]
        while stack:
            element, times = stack.pop()
            times = self._count(element, times)
            if element.tag == "include" and (inner := self._other(element)) is not None:
                stack.append((inner, times))
            elif element.tag == "model" and (inner := self._other(element)) is not None:
                self.models[element.attributes.get("name", inner.attributes.get("model", ""))] = inner
            elif element.tag == "attach" and (known := self.models.get(element.attributes.get("model", ""))) is not None:
                stack.append((known, times))
            stack += [(child, times) for child in reversed(element.children)]

    def _count(self, element: xml.Element, times: float) -> float:
        """Count an element with its multiplicity; returns the multiplicity of its children."""
        tag, has = element.tag, element.attributes
        self._check_numbers(element)
        if "file" in has and tag not in ("include", "model"):
            self._check_file(element)
        within = times
        if tag == "replicate":
            within *= max(1.0, _number(has.get("count", "1")))
        if tag in ("composite", "flexcomp"):
            self.bodies += times * math.prod(max(1.0, _number(word)) for word in has.get("count", "1").split()[:3])
        self.bodies += times * (tag == "body")
        self.elements += times
        if self.bodies > MOST_BODIES or self.elements > MOST_ELEMENTS:
            what = f"{MOST_BODIES} bodies" if self.bodies > MOST_BODIES else f"{MOST_ELEMENTS} elements"
            raise element.error(f"with this element the model has more than {what}, the most that is read.")
        return within

    def _check_numbers(self, element: xml.Element) -> None:
        tag, has = element.tag, element.attributes
        sides = {"hfield": ("nrow", "ncol"), "texture": ("width", "height")}.get(tag)
        if sides and math.prod(max(1.0, _number(has.get(side, "1"))) for side in sides) > MOST_CELLS:
            size = " x ".join(cut(has.get(side, "1"), 20) for side in sides)
            raise element.error(f"its size is {size}; at most {MOST_CELLS} cells are read.")
        if tag == "size":
            for key, value in has.items():
                most = MOST_MEMORY if key == "memory" else MOST_USER_NUMBERS if key.startswith("nuser_") else MOST_MEMORY / 1024
                if _number(value) > most:
                    raise element.error(f'{cut(key)}="{cut(value)}" is more than {most:.0f}, the most that is read.')
        if tag == "compiler":
            for key in ("assetdir", "meshdir", "texturedir"):
                if key in has:
                    self.folders.append(self.folder / has[key])

    def _other(self, element: xml.Element) -> xml.Element | None:
        """The root of another MJCF file; None where there is none, which MuJoCo will say, and for a file that was included before."""
        name = element.attributes.get("file", "")
        for folder in (self.folder, Path(element.source).parent):
            path = folder / name
            if not name or "\0" in name or not os.path.exists(path):
                continue
            if element.tag == "include" and path in self.included:
                return None
            self.included.add(path)
            if path not in self.parsed:
                self.parsed[path] = xml.parse(read_bytes(path), str(path))
            return self.parsed[path]
        return None

    def _check_file(self, element: xml.Element) -> None:
        """Raise an error if a mesh, a texture or a height field is a pipe or a device."""
        name = element.attributes["file"]
        for folder in self.folders:
            if "\0" not in name and name and os.path.exists(folder / name):
                try:
                    open_regular(folder / name, 2**40).close()
                except ReadError as error:
                    raise element.error(str(error)) from None


def _number(word: str) -> float:
    """A number as MuJoCo may read it, with K, M, G … for thousands of bytes; 0 for what is none, which MuJoCo will say."""
    match = re.match(r"\s*[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?\s*([KMGTPE]?)", word, re.ASCII)
    if match is None:
        return math.inf if word.strip().lower().startswith(("inf", "+inf")) else 0.0
    return float(match[0].strip().rstrip("KMGTPE")) * _BYTES[match[4]]
