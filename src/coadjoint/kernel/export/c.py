"""A graph as C99: one function, no dependence but the mathematics library."""

from __future__ import annotations

import math

from ..graph import Graph
from ..ops import OPS, TRUTH
from .names import identifier

_SPD_SOLVE = """\
/* x := A^-1 x for symmetric positive definite A (n by n), its lower triangle in a row by row, overwritten; x is n by m.
   All of x is NaN where A is not positive definite. */
static void spd_solve(int n, int m, double *a, double *x)
{
    for (int i = 0; i < n; i++) {
        double *row = a + i * (i + 1) / 2;
        for (int j = 0; j <= i; j++) {
            const double *other = a + j * (j + 1) / 2;
            double sum = row[j];
            for (int k = 0; k < j; k++)
                sum -= row[k] * other[k];
            row[j] = i > j ? sum / other[j] : sum > 0.0 ? sqrt(sum) : NAN;
        }
        for (int c = 0; c < m; c++) {
            double sum = x[i * m + c];
            for (int k = 0; k < i; k++)
                sum -= row[k] * x[k * m + c];
            x[i * m + c] = sum / row[i];
        }
    }
    for (int i = n - 1; i >= 0; i--)
        for (int c = 0; c < m; c++) {
            double sum = x[i * m + c];
            for (int k = i + 1; k < n; k++)
                sum -= a[k * (k + 1) / 2 + i] * x[k * m + c];
            x[i * m + c] = sum / a[i * (i + 1) / 2 + i];
        }
}

"""

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
_KNOWN = "spd_solve main NAN INFINITY y0 y1 yn j0 j1 jn gamma"
_RESERVED = frozenset((_KEYWORDS + _KNOWN).split()) | {op.c.partition("(")[0] for op in OPS.values()}


def c(graph: Graph) -> str:
    """C99 source of `void name(const double *in0, …, double *out0, …)`: arrays in row-major order, one state a call.

    Outputs may share memory with inputs: all is read before anything is written.
    """
    name = identifier(graph.name, _RESERVED)
    inputs: list[str] = []
    for given in graph.input_names:
        inputs.append(identifier(given, {*_RESERVED, *inputs, name}))
    outputs: list[str] = []
    for k in range(len(graph.outputs)):
        outputs.append(identifier(f"out{k}", {*_RESERVED, *inputs, *outputs, name}))
    parameters = ", ".join([*(f"const double *{x}" for x in inputs), *(f"double *{x}" for x in outputs)]) or "void"
    prefix = "t"
    while any(x.startswith(prefix) and x[len(prefix) :].isdigit() for x in (*inputs, *outputs)):
        prefix += "_"

    lines = [f"/* {_listing(inputs, graph.input_shapes)} -> {_listing(outputs, graph.output_shapes)} */"]
    lines += [f"void {name}({parameters})", "{"]
    named: list[str] = []
    for k, (op, args, value) in enumerate(zip(graph.op, graph.args, graph.value, strict=True)):
        terms = [named[j] for j in args]
        variable = f"{prefix}{k}"
        named.append(variable)
        if op == "const":
            named[k] = _number(value)
        elif op == "input":
            lines.append(f"    const double {variable} = {inputs[value[0]]}[{value[1]}];")
        elif op == "block":
            _, n, m = value
            size = n * (n + 1) // 2
            lines.append(f"    double a{variable}[] = {{{', '.join(terms[:size])}}};")
            lines.append(f"    double {variable}[] = {{{', '.join(terms[size:])}}};")
            lines.append(f"    spd_solve({n}, {m}, a{variable}, {variable});")
        elif op == "part":
            named[k] = f"{terms[0]}[{value}]"
        else:
            kind = "int" if op in TRUTH else "double"
            lines.append(f"    const {kind} {variable} = {OPS[op].c.format(*terms)};")
    for x, nodes in zip(outputs, graph.outputs, strict=True):
        lines += [f"    {x}[{place}] = {named[k]};" for place, k in enumerate(nodes)]
    lines.append("}")
    solve = _SPD_SOLVE if "block" in graph.op else ""
    return "#include <math.h>\n\n" + solve + "\n".join(lines) + "\n"


def _listing(names: list[str], shapes: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join(f"{name} ({', '.join(map(str, shape))})" for name, shape in zip(names, shapes, strict=True))


def _number(x: float) -> str:
    if math.isnan(x):
        return "NAN"
    if math.isinf(x):
        return "INFINITY" if x > 0 else "(-INFINITY)"
    return repr(float(x)) if x >= 0 else f"({float(x)!r})"
