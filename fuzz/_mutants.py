"""Robot descriptions and tables with random faults: the structure is kept, so that faults reach every part of a reader."""

from __future__ import annotations

import copy
import io
import json
import random
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from ._documents import EXPRESSIONS, FILENAMES, KEYS, MJCF, SDF, SRDF, TAGS, TYPES, URDF, XACRO, YAML

_words = str.split
NUMBERS = [
    *_words(
        "0 -0 1 -1 +1 .5 5. 1e-12 1e9 1e20 1e150 -1e150 1e-150 1e200 1e308 -1e308 1.7976931348623157e308 1e309 5e-324 1e-9999 nan inf "
        "-inf Infinity 1e 1e+ 1.2.3 0x10 1_000 1,5 --1 1d0 true null １ ∞ 3.141592653589793 1e15"
    ),
    *("", " ", "\t\n", "9" * 400, "1" * 5000 + "x", "0." + "1" * 400, "1 2", "1;2"),
]
VECTORS = _words(
    "0 0 0|1 0|1 0 0 0|nan 0 0|1e308 1e308 1e308|1e-13 0 0|1e200 0 0|0 0 1e-320|inf 0 0|1,0,0|1\t0\n0|  1   0  0 ||3 4 12|"
    "1e-200 1e-200 1e-200|1e300 1e300 1e300|1e22 1e15 1e8",
    "|",
)
NAMES = [
    "", " ", "a", "base", "world", "root_joint", "é", "日本", "💥", "\u202e", "\ufeff", "\n", "\t", "%s", "{}", "${x}", "$(x)", "\\",
    "../../etc/passwd", "</script>", "*/", "#", "None", "time", "q1", "-", "1.0", "\u0301", "x" * 300, "y" * 70_000,
]  # fmt: skip


_XACRO = "http://www.ros.org/wiki/xacro"
TEXT = ""
"""The key of an element's text among its attributes."""


def _element(text: str) -> list[Any]:
    """An element as [tag, attributes, children]."""

    def converted(e: ElementTree.Element) -> list[Any]:
        text = {TEXT: e.text.strip()} if e.text and e.text.strip() else {}
        return [e.tag.replace(f"{{{_XACRO}}}", "xacro:"), dict(e.attrib) | text, [converted(x) for x in e]]

    root = converted(ElementTree.fromstring(text))
    if _XACRO in text:
        root[1]["xmlns:xacro"] = _XACRO
    return root


def _written(element: list[Any]) -> str:
    tag, attributes, children = element
    head = " ".join([tag, *(f"{key}={quoteattr(value)}" for key, value in attributes.items() if key != TEXT)])
    inside = escape(attributes.get(TEXT, "")) + "".join(map(_written, children))
    return f"<{head}>{inside}</{tag}>" if inside else f"<{head}/>"


def _copy(element: list[Any]) -> list[Any]:
    return [element[0], dict(element[1]), [_copy(x) for x in element[2]]]


_DOCUMENTS = {"urdf": URDF, "mjcf": MJCF, "sdf": SDF, "srdf": SRDF, "xacro": XACRO}
_SEEDS = {kind: _element(text) for kind, text in _DOCUMENTS.items()}


def _all(element: list[Any], parent: list[Any] | None = None) -> list[tuple[list[Any], list[Any] | None]]:
    found = [(element, parent)]
    for child in element[2]:
        found += _all(child, element)
    return found


def _value(r: random.Random, old: str, names: list[str]) -> str:
    words = old.split()
    numeric = bool(words) and all(x.lstrip("+-.").replace(".", "").isdigit() for x in words)
    if numeric and len(words) == 1:
        return r.choice(NUMBERS)
    if numeric:
        if r.random() < 0.5:
            return r.choice(VECTORS)
        words[r.randrange(len(words))] = r.choice(NUMBERS)
        return " ".join(words)
    return r.choice([r.choice(names or NAMES), r.choice(NAMES), old + r.choice(NAMES), r.choice(TYPES)])


def _xacro_value(r: random.Random, key: str, old: str, names: list[str]) -> str:
    if key == "filename":
        return r.choice(FILENAMES)
    if key == "params":
        return r.choice(
            [*_words("a a:= a:=^ a:=^|1 *a **a a=b :=1 * ** name|mass|*more|x:=y|name:=${name}", "|"), old + " " + r.choice(NAMES)]
        )
    return r.choice([r.choice(EXPRESSIONS), old + r.choice(EXPRESSIONS), _value(r, old, names)])


def _mutate(r: random.Random, root: list[Any], kind: str) -> None:
    everything = _all(root)
    element, parent = r.choice(everything)
    names = [x[1]["name"] for x, _ in everything if "name" in x[1]]
    what = r.random()
    if what < 0.45:
        having = [x for x, _ in everything if x[1]]
        if having:
            element = r.choice(having)
            key = r.choice(list(element[1]))
            element[1][key] = _value(r, element[1][key], names) if kind != "xacro" else _xacro_value(r, key, element[1][key], names)
    elif what < 0.55 and element[1]:
        del element[1][r.choice(list(element[1]))]
    elif what < 0.62 and parent is not None:
        parent[2].remove(element)
    elif what < 0.70 and parent is not None:
        for _ in range(r.choice([1, 1, 1, 5, 40])):
            parent[2].insert(r.randrange(len(parent[2]) + 1), _copy(element))
    elif what < 0.76:
        element[0] = r.choice(TAGS[kind])
    elif what < 0.84:
        keys = r.sample(KEYS[kind], 3)
        element[2].append(
            [r.choice(TAGS[kind]), {key: r.choice(r.choice([NUMBERS, VECTORS, NAMES, names or NAMES])) for key in keys}, []]
        )
    elif what < 0.90:
        element[1][r.choice(KEYS[kind])] = r.choice(NUMBERS + VECTORS + TYPES)
    elif what < 0.95:
        other = r.choice(everything)[0]
        other[2].append(_copy(element))
    else:
        r.shuffle(element[2])
        for _ in range(r.choice([0, 1, 10, 60])):
            element[2][:] = [[element[0], {}, element[2][:]]]


def damaged(r: random.Random, data: bytes) -> bytes:
    """Bytes with random faults."""
    b = bytearray(data)
    at = r.randrange(len(b) + 1)
    what = r.randrange(9)
    if what == 0:
        return bytes(b[:at])
    if what == 1:
        for _ in range(r.choice([1, 3, 30])):
            if b:
                b[r.randrange(len(b))] = r.randrange(256)
    elif what == 2:
        b[at:at] = r.randbytes(r.choice([1, 4, 100]))
    elif what == 3:
        del b[at : at + r.choice([1, 10, 1000])]
    elif what == 4:
        b[at:at] = b[at : at + r.choice([5, 50, 5000])]
    elif what == 5:
        return data.decode("utf-8", "replace").encode(
            r.choice(["utf-16", "utf-16-le", "utf-32", "utf-7", "cp037", "latin-1"]), "replace"
        )
    elif what == 6:
        encoding = r.choice(["latin-1", "utf-16", "x-none", "rot13", "hex", "punycode", "cp1252"])
        return f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + data
    elif what == 7:
        heads = [b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"<!-- -- -->", b"<!DOCTYPE r [<!ENTITY a 'b'>]>", b"<?php ?>", b" \n"]
        return r.choice(heads) + data
    else:
        b[at:at] = r.choice(
            [b"&undefined;", b"&#0;", b"&#xD800;", b"&lt;", b"\0", b"<![CDATA[<]]>", b"<!--", b"-->", b'"', b"\x1b"]
        )
    return bytes(b)


def xml(r: random.Random, kind: str) -> bytes:
    """A description in XML: urdf, mjcf, sdf, srdf or xacro."""
    root = _copy(_SEEDS[kind])
    for _ in range(r.choice([1, 1, 1, 2, 2, 3, 6])):
        _mutate(r, root, kind)
    data = _written(root).encode("utf-8", "replace")
    return damaged(r, data) if r.random() < 0.12 else data


def yaml(r: random.Random) -> bytes:
    """The data that a xacro file reads, mostly sound."""
    data = YAML.encode()
    if r.random() < 0.7:
        return data
    lines = _words("a: *x|a: &x [*x]|!!python/object:os.system x|- 1|a: {|!degrees x|? a|\ta: 1|<<: 1|limit: 2", "|")
    data += r.choice([*lines, "[" * 2000, "{a: " * 500, "a: " + "9" * 5000]).encode()
    return damaged(r, data) if r.random() < 0.5 else data


VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 1e308, 1e-320, 10**30, 10**400, float("nan"), float("inf"), "", "x", "nan", "-inf", "1e5", "1_0", "１２",
    "é" * 1000, "\ud800", "\x00", "\x1b[31m", "\n", [], {}, [[]], [1], [[1.0] * 4] * 4, [[0.0] * 6],
]  # fmt: skip


def _places(x: Any) -> list[tuple[Any, Any]]:
    """Every container and key of nested lists and dictionaries."""
    found = []
    stack = [x]
    while stack:
        here = stack.pop()
        found += [(here, key) for key in (here if isinstance(here, dict) else range(len(here)))]
        stack += [value for value in (here.values() if isinstance(here, dict) else here) if isinstance(value, dict | list)]
    return found


def robot_json(r: random.Random, seed: str) -> bytes:
    """A robot's JSON file."""
    data = json.loads(seed)
    for _ in range(r.choice([1, 1, 1, 2, 4])):
        if not (places := _places(data)):
            break
        shallow = [p for p in places if isinstance(p[0], dict)]
        here, key = r.choice(shallow if shallow and r.random() < 0.6 else places)
        what = r.random()
        if what < 0.5:
            here[key] = copy.deepcopy(r.choice(VALUES))
        elif what < 0.6:
            del here[key]
        elif what < 0.7 and isinstance(here, list):
            here.insert(key, json.loads(json.dumps(here[key])))
        elif what < 0.85 and isinstance(here[key], float):
            here[key] = here[key] * r.choice([-1, 1e6, 1e-6, 1e300, 1.0001, 1 + 1e-7, 1 + 1e-10])
        elif what < 0.93:
            other, name = r.choice(places)
            here[key] = (
                json.loads(json.dumps(other[name])) if name in other or (isinstance(other, list) and name < len(other)) else 0
            )
        else:
            for _ in range(r.choice([1, 3, 100])):
                here[key] = [here[key]]
    text = json.dumps(data)
    if r.random() < 0.08:
        digits = r.choice(["1e999", "9" * 5000, "NaN", "-Infinity", "0x1", "01", "[" * 2000, '{"a":' * 500])
        at = r.choice([k for k, c in enumerate(text) if c in "0123456789"] or [0])
        text = text[:at] + digits + text[at + 1 :]
    data_bytes = text.encode("utf-8", "surrogatepass")
    return damaged(r, data_bytes) if r.random() < 0.1 else data_bytes


HEADERS = [
    "time",
    "q1",
    "q2",
    "v1",
    "v2",
    "a1",
    "a2",
    "tau1",
    "q.ja",
    "q.jb",
    "v.ja",
    "x",
    "",
    " ",
    "q3",
    "q1 ",
    '"q1"',
    "é",
    "y" * 140_000,
]
CELLS = [*NUMBERS, '"0', '"1"', '""', "#", "1e5", "-3", "y" * 140_000, "\x1b", "\r", "\x0b"]


def table(r: random.Random, kind: str, nq: int, nv: int) -> bytes:
    """A table of states."""
    n = r.choice([0, 1, 2, 5, 20])
    arrays: dict[str, Any] = {"time": np.arange(n) * 0.1, "q": np.zeros((n, nq)), "v": np.ones((n, nv)), "a": np.full((n, nv), 0.5)}
    if kind == "npz":
        for _ in range(r.choice([0, 1, 1, 2])):
            key = r.choice([*arrays, "tau", "q.npy", "other"])
            odd = [
                *(
                    np.zeros(0),
                    np.zeros((n, 7)),
                    np.full((n, nq), np.nan),
                    np.zeros((n, nq), complex),
                    np.array("a"),
                    np.zeros((1, 1, 1)),
                ),
                *(np.ones((n, nq), int), np.zeros((n, nq), np.float16), np.zeros(n, [("a", float)]), np.full((n, nq), 1e308)),
            ]
            arrays[key] = r.choice(odd)
        file = io.BytesIO()
        np.savez(file, **arrays)
        data = file.getvalue()
        return damaged(r, data) if r.random() < 0.6 else data
    names = ["time", *(f"q{k + 1}" for k in range(nq)), *(f"v{k + 1}" for k in range(nv)), *(f"a{k + 1}" for k in range(nv))]
    rows = np.concatenate([arrays["time"][:, None], arrays["q"], arrays["v"], arrays["a"]], axis=1)
    if kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        columns: dict[str, Any] = dict(zip(names, rows.T, strict=True))
        for _ in range(r.choice([0, 1, 2])):
            columns[r.choice(names)] = r.choice([["a"] * n, [None] * n, [1] * n, [[1.0]] * n, [float("nan")] * n, [True] * n])
        file = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns), file)
        data = file.getvalue()
        return damaged(r, data) if r.random() < 0.6 else data
    cells = [names, *([repr(x) for x in row] for row in rows.tolist())]
    for _ in range(r.choice([0, 1, 1, 2, 5])):
        row = r.randrange(len(cells)) if r.random() < 0.8 else 0
        what, line = r.random(), cells[row]
        if what < 0.6 and line:
            line[r.randrange(len(line))] = r.choice(HEADERS if row == 0 else CELLS)
        elif what < 0.8 and line:
            del line[r.randrange(len(line))]
        else:
            line.insert(r.randrange(len(line) + 1), r.choice(HEADERS if row == 0 else CELLS))
    data = r.choice(["\n", "\n", "\n", "\r\n", "\r", "\n\n"]).join(
        r.choice([",", ",", ",", ",", ";", "\t"]).join(line) for line in cells
    )
    encoded = data.encode("utf-8", "replace")
    return damaged(r, encoded) if r.random() < 0.15 else encoded
