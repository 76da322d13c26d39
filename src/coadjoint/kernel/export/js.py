"""A graph as JavaScript: an ES module without dependencies."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...arguments import takes
from ..graph import Graph
from ..ops import OPS
from .names import a_graph, argument_names
from .statements import Language, statements

SPD_SOLVE = """\
/* x := A^-1 x for symmetric positive definite A (n by n), its lower triangle in a row by row, overwritten; x is n by m.
   All of x is NaN where A is not positive definite. */
function spd_solve(n, m, a, x) {
  for (let i = 0; i < n; i++) {
    const row = i * (i + 1) / 2;
    for (let j = 0; j <= i; j++) {
      const other = j * (j + 1) / 2;
      let sum = a[row + j];
      for (let k = 0; k < j; k++) sum -= a[row + k] * a[other + k];
      a[row + j] = i > j ? sum / a[other + j] : sum > 0 ? Math.sqrt(sum) : NaN;
    }
    for (let c = 0; c < m; c++) {
      let sum = x[i * m + c];
      for (let k = 0; k < i; k++) sum -= a[row + k] * x[k * m + c];
      x[i * m + c] = sum / a[row + i];
    }
  }
  for (let i = n - 1; i >= 0; i--)
    for (let c = 0; c < m; c++) {
      let sum = x[i * m + c];
      for (let k = i + 1; k < n; k++) sum -= a[k * (k + 1) / 2 + i] * x[k * m + c];
      x[i * m + c] = sum / a[i * (i + 1) / 2 + i];
    }
}

"""

CHECK = """\
function flat(x, name, shape) {
  const all = typeof x === "number" ? [x] : ArrayBuffer.isView(x) ? x : numbers(x);
  let size = 1;
  for (const n of shape) size *= n;
  if (all.length !== size) throw new RangeError(`${name} has ${all.length} numbers; expected ${size}, shape [${shape}].`);
  return all;
}

function numbers(x) {
  if (!Array.isArray(x)) return [];
  if (!x.some(Array.isArray)) return x;
  const found = [], take = (part) => { for (const y of part) if (Array.isArray(y)) take(y); else found.push(y); };
  take(x);
  return found;
}

"""

_WORDS = """
arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for function
if implements import in instanceof interface let new null package private protected public return static super switch this throw true try
typeof undefined var void while with yield Math NaN Infinity Array ArrayBuffer RangeError flat numbers spd_solve
memory nested exports functions binary
"""
RESERVED = frozenset(_WORDS.split())


@takes(graph=a_graph)
def js(graph: Graph) -> str:
    """The source of an ES module that exports `function name(in0, …)`, by name and as default.

    Inputs are numbers, typed arrays, or arrays, nested or flat in row-major order. It returns the output as an array, nested by its
    shape (a number for the shape ()), or an array of all outputs if the graph has several. Truth values are 0 and 1.
    """
    name = argument_names(graph, RESERVED).function
    solve = SPD_SOLVE if "block" in graph.op else ""
    return solve + CHECK + f"export default {js_function(graph)}\nexport {{ {name} }};\n"


def js_function(graph: Graph) -> str:
    """The function alone; it calls `flat` of `CHECK`, and `spd_solve` of `SPD_SOLVE` where it solves large systems."""
    names = argument_names(graph, RESERVED)
    lines = [f"function {names.function}({', '.join(names.inputs)}) {{"]
    for x, shape in zip(names.inputs, graph.input_shapes, strict=True):
        lines.append(f'  {x} = flat({x}, "{x}", [{", ".join(map(str, shape))}]);')
    body, results = statements(graph, names, _JS)
    outputs = [_nested(iter(terms), shape) for terms, shape in zip(results, graph.output_shapes, strict=True)]
    lines += [*body, f"  return {outputs[0] if len(outputs) == 1 else '[' + ', '.join(outputs) + ']'};", "}"]
    return "\n".join(lines)


def _nested(terms: Iterator[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return f"+{next(terms)}"
    return "[" + ", ".join(_nested(terms, shape[1:]) for _ in range(shape[0])) + "]"


def _number(x: float) -> str:
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "Infinity" if x > 0 else "(-Infinity)"
    whole = float(x).is_integer() and abs(x) < 1e15
    text = repr(int(x)) if whole and math.copysign(1.0, x) == math.copysign(1.0, int(x)) else repr(float(x))
    return text if not text.startswith("-") else f"({text})"


def js_form(op: str) -> str:
    """JavaScript's expression: its own, or C's with the function taken from Math."""
    own = OPS[op]
    return own.js or (f"Math.{own.c}" if own.c[0].isalpha() else own.c)


def _solve(variable: str, n: int, m: int, triangle: list[str], right: list[str]) -> list[str]:
    return [f"  const {variable} = [{', '.join(right)}];", f"  spd_solve({n}, {m}, [{', '.join(triangle)}], {variable});"]


_JS = Language(
    number=_number,
    form=js_form,
    constant=lambda variable, value, truth: f"  const {variable} = {value};",
    solve=_solve,
)
