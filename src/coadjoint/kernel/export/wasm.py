"""Graphs as WebAssembly: a JavaScript module that contains the machine code of its function.

The binary format of the WebAssembly Core Specification 1.0, as far as straight-line code needs it. A function reads its inputs from
memory and writes its outputs there. A value that is used once stays on the operand stack; the others have local variables, which are
reused after the last use. Elementary functions that WebAssembly does not have are those of JavaScript.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from ...arguments import takes
from ..graph import Graph
from ..ops import OPS, TRUTH
from ..walk import uses
from .js import CHECK, RESERVED, SPD_SOLVE, js_form
from .names import a_graph, argument_names

I32, F64 = b"\x7f", b"\x7c"
GET, SET = b"\x20", b"\x21"
LOAD, STORE = b"\x2b\x03", b"\x39\x03"  # of eight bytes, aligned to 2³
ZERO, CALL, END = b"\x41\x00", b"\x10", b"\x0b"
PAGE = 65536

NESTED = """\
const nested = (memory, at, shape) => {
  if (!shape.length) return memory[at];
  let found = new Array(shape.reduce((n, m) => n * m));
  for (let i = 0; i < found.length; i++) found[i] = memory[at + i];
  for (let k = shape.length - 1; k > 0; k--) {
    const size = shape[k], whole = found;
    found = new Array(shape.slice(0, k).reduce((n, m) => n * m));
    for (let i = 0; i < found.length; i++) found[i] = whole.slice(i * size, (i + 1) * size);
  }
  return found;
};

"""


@takes(graph=a_graph)
def wasm(graph: Graph) -> str:
    """The source of an ES module as `js` gives it, whose function runs as WebAssembly: for functions of many thousand operations, which
    JavaScript's compilers do not optimise. Its results are those of `js` to the last bit.

    The module compiles its code when it is imported (top-level await).
    """
    name = argument_names(graph, RESERVED).function
    solve = SPD_SOLVE if "block" in graph.op else ""
    return (
        f"{solve}{CHECK}{wasm_functions({name: graph})}export default functions.{name};\nexport const {name} = functions.{name};\n"
    )


def wasm_functions(graphs: Mapping[str, Graph]) -> str:
    """JavaScript that defines `functions`, an object with the functions by name. It awaits, and uses `flat` of `CHECK`, and `spd_solve` of
    `SPD_SOLVE` where a function solves large systems.
    """
    made = module(list(graphs.values()))
    code = base64.b64encode(made.code).decode("ascii")
    lines = [
        f'{NESTED}const binary = Uint8Array.from(atob("{code}"), (x) => x.charCodeAt(0));',
        f"const {{ instance: {{ exports }} }} = await WebAssembly.instantiate(binary, {{ js: {{ {', '.join(made.imports)} }} }});",
        "const memory = new Float64Array(exports.memory.buffer);",
        "const functions = {",
        *(f"{name}: {_wrapper(graph, k)}," for k, (name, graph) in enumerate(graphs.items())),
        "};",
    ]
    return "\n".join(lines) + "\n"


class Module(NamedTuple):
    """The bytes of a module, and what it imports as properties of a JavaScript object."""

    code: bytes
    imports: list[str]


class _Places(NamedTuple):
    """Offsets in memory, in units of eight bytes, of inputs, outputs and the operands of blocks, and the end."""

    inputs: list[int]
    outputs: list[int]
    blocks: dict[int, int]
    end: int


def module(graphs: Sequence[Graph]) -> Module:
    """A module that exports its memory as `memory` and the function of graph k as `f<k>`, without arguments and results."""
    called = list(dict.fromkeys(op for graph in graphs for op in graph.op if op in OPS and OPS[op].wasm is None))
    numbers = {op: k for k, op in enumerate(called)}
    imports = [f"{op}: {_function(op)}" for op in called]
    types = [b"\x60" + _vector([]) + _vector([]), *(b"\x60" + _vector([F64] * n) + _vector([F64]) for n in (1, 2))]
    imported = [_name("js") + _name(op) + b"\x00" + _number(OPS[op].arity) for op in called]
    if any("block" in graph.op for graph in graphs):
        numbers["block"] = len(imported)
        types.append(b"\x60" + _vector([I32] * 4) + _vector([]))
        imported.append(_name("js") + _name("solve") + b"\x00" + _number(3))
        sizes = "memory.subarray(a, a + n * (n + 1) / 2), memory.subarray(x, x + n * m)"
        imports.append(f"solve: (n, m, a, x) => spd_solve(n, m, {sizes})")
    pages = 1 + max((8 * _places(graph).end for graph in graphs), default=0) // PAGE
    exports = [_name("memory") + b"\x02\x00"] + [_name(f"f{k}") + b"\x00" + _number(len(imported) + k) for k in range(len(graphs))]
    parts = {
        1: _vector(types),
        2: _vector(imported),
        3: _vector([b"\x00"] * len(graphs)),
        5: _vector([b"\x00" + _number(pages)]),
        7: _vector(exports),
        10: _vector([_sized(_body(graph, numbers)) for graph in graphs]),
    }
    return Module(b"\0asm\1\0\0\0" + b"".join(bytes([k]) + _sized(part) for k, part in parts.items()), imports)


def _function(op: str) -> str:
    """An operation as a function of JavaScript: that of Math itself, which browsers call directly, where it is one."""
    form = js_form(op)
    own = re.fullmatch(r"(Math\.\w+)\(\{\}(, \{\})?\)", form)
    return own[1] if own else f"(x, y) => {form.format('x', 'y')}"


def _places(graph: Graph) -> _Places:
    at, found = 0, []
    for shape in (*graph.input_shapes, *graph.output_shapes):
        found.append(at)
        at += prod(shape)
    blocks = {}
    for k, op in enumerate(graph.op):
        if op == "block":
            blocks[k], at = at, at + len(graph.args[k])
    return _Places(found[: len(graph.input_shapes)], found[len(graph.input_shapes) :], blocks, at)


class _Locals(NamedTuple):
    """The local variable of each node that has one, and how many of each type there are: numbers, then truth values."""

    of: dict[int, int]
    numbers: int
    truths: int


def _statements(graph: Graph) -> list[bool]:
    """True for nodes that are computed in their place; nodes that are used once, numbers and inputs are computed where they are used."""
    counts = uses(graph.args, [k for nodes in graph.outputs for k in nodes])
    found = [count > 1 and op not in ("const", "part") for op, count in zip(graph.op, counts, strict=True)]
    for nodes in graph.outputs:
        for k in nodes:
            found[k] = True
    for k, op in enumerate(graph.op):
        if op == "block" and counts[k]:
            found[k] = True
    return found


def _locals(graph: Graph, statements: list[bool]) -> _Locals:
    counts = uses(graph.args, ())
    owner, last = list(range(len(graph))), [-1] * len(graph)  # the statement that computes a node; the last one that needs it
    for k in reversed(range(len(graph))):
        if statements[k] or last[k] >= 0:
            owner[k] = k if statements[k] else last[k]
            for j in graph.args[k]:
                last[j] = max(last[j], owner[k])
    ends: dict[int, list[int]] = {}
    for k, end in enumerate(last):
        if end >= 0 and _kept(graph, statements, counts, k):
            ends.setdefault(end, []).append(k)
    free: dict[bool, list[int]] = {False: [], True: []}
    size, of = {False: 0, True: 0}, dict[int, int]()
    for k in range(len(graph)):
        if not statements[k]:
            continue
        for j in ends.get(k, ()):
            free[graph.op[j] in TRUTH].append(of[j])
        if last[k] >= 0 and _kept(graph, statements, counts, k):
            truth = graph.op[k] in TRUTH
            if not free[truth]:
                free[truth].append(size[truth])
                size[truth] += 1
            of[k] = free[truth].pop()
    placed = {k: n + (size[False] if graph.op[k] in TRUTH else 0) for k, n in of.items()}
    return _Locals(placed, size[False], size[True])


def _kept(graph: Graph, statements: list[bool], counts: list[int], k: int) -> bool:
    """True if a node has a local variable: others are outputs only, or numbers, or stand in memory."""
    return statements[k] and counts[k] > 0 and graph.op[k] not in ("const", "block", "part")


def _body(graph: Graph, numbers: dict[str, int]) -> bytes:
    """The body of a function: its local variables and its code."""
    places, statements = _places(graph), _statements(graph)
    slots = _locals(graph, statements)
    results: dict[int, list[int]] = {}
    for at, nodes in zip(places.outputs, graph.outputs, strict=True):
        for n, k in enumerate(nodes):
            results.setdefault(k, []).append(at + n)
    code = bytearray()

    def value(k: int, again: bool = True) -> None:
        """Code that puts the value of a node onto the stack; again: it may have been computed before."""
        work: list[tuple[int, bool] | bytes] = [(k, again)]
        while work:
            item = work.pop()
            if isinstance(item, bytes):
                code.extend(item)
                continue
            k, again = item
            op = graph.op[k]
            if again and k in slots.of:
                code.extend(GET + _number(slots.of[k]))
            elif op == "const":
                code.extend(b"\x44" + struct.pack("<d", graph.value[k]))
            elif op == "input":
                argument, n = graph.value[k]
                code.extend(ZERO + LOAD + _number(8 * (places.inputs[argument] + n)))
            elif op == "part":
                _, n, _ = graph.value[graph.args[k][0]]
                code.extend(ZERO + LOAD + _number(8 * (places.blocks[graph.args[k][0]] + n * (n + 1) // 2 + graph.value[k])))
            else:
                own, args = OPS[op].wasm, graph.args[k]
                work.append(bytes([own]) if own is not None else CALL + _number(numbers[op]))
                work += [(j, True) for j in reversed((*args[1:], args[0]) if op == "where" else args)]

    def store(k: int, at: int, again: bool = True) -> None:
        code.extend(ZERO)
        value(k, again)
        code.extend(STORE + _number(8 * at))

    for k in range(len(graph)):
        if not statements[k]:
            continue
        if graph.op[k] == "block":
            _, n, m = graph.value[k]
            at = places.blocks[k]
            for i, j in enumerate(graph.args[k]):
                store(j, at + i)
            for x in (n, m, at, at + n * (n + 1) // 2):
                code.extend(b"\x41" + _signed(x))
            code.extend(CALL + _number(numbers["block"]))
        elif k in slots.of:
            value(k, again=False)
            code.extend(SET + _number(slots.of[k]))
            for at in results.get(k, ()):
                store(k, at)
        else:
            for at in results.get(k, ()):
                store(k, at, again=False)
    groups = [_number(count) + kind for count, kind in ((slots.numbers, F64), (slots.truths, I32)) if count]
    return _vector(groups) + bytes(code) + END


def _wrapper(graph: Graph, k: int) -> str:
    """The function of JavaScript that copies its arguments to memory, runs function k, and copies the outputs from there."""
    names, places = argument_names(graph, RESERVED), _places(graph)
    lines = [f"({', '.join(names.inputs)}) => {{"]
    for x, shape, at in zip(names.inputs, graph.input_shapes, places.inputs, strict=True):
        lines.append(f'  memory.set(flat({x}, "{x}", [{", ".join(map(str, shape))}]), {at});')
    shapes = [f"[{', '.join(map(str, shape))}]" for shape in graph.output_shapes]
    outputs = [f"nested(memory, {at}, {shape})" for at, shape in zip(places.outputs, shapes, strict=True)]
    result = outputs[0] if len(outputs) == 1 else f"[{', '.join(outputs)}]"
    return "\n".join([*lines, f"  exports.f{k}();", f"  return {result};", "}"])


# The binary format


def _number(n: int) -> bytes:
    """An unsigned number as LEB128."""
    found = bytearray()
    while n > 127:
        found.append(n & 127 | 128)
        n >>= 7
    return bytes([*found, n])


def _signed(n: int) -> bytes:
    """A number that is not negative as signed LEB128: the sixth bit of the last byte is a sign."""
    found = bytearray()
    while n > 63:
        found.append(n & 127 | 128)
        n >>= 7
    return bytes([*found, n])


def _sized(part: bytes) -> bytes:
    return _number(len(part)) + part


def _vector(items: Sequence[bytes]) -> bytes:
    return _number(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    return _sized(text.encode())
