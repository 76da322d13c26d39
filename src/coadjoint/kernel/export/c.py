"""A graph as C99: one function, no dependence but the mathematics library."""

from __future__ import annotations

import math

from ...arguments import takes
from ..graph import Graph
from ..ops import OPS
from .names import a_graph, argument_names
from .statements import Language, statements

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


@takes(graph=a_graph)
def c(graph: Graph) -> str:
    """C99 source of `void name(const double *in0, …, double *out0, …)`: arrays in row-major order, one state a call.

    Outputs may share memory with inputs: all is read before anything is written.
    """
    names = argument_names(graph, _RESERVED)
    inputs = [f"const double *{x}" for x in names.inputs]
    outputs = [f"double *{x}" for x in names.outputs]
    lines = [f"/* {_listing(names.inputs, graph.input_shapes)} -> {_listing(names.outputs, graph.output_shapes)} */"]
    lines += [f"void {names.function}({', '.join([*inputs, *outputs]) or 'void'})", "{"]
    body, results = statements(graph, names, _C99)
    lines += body
    for x, terms in zip(names.outputs, results, strict=True):
        lines += [f"    {x}[{place}] = {term};" for place, term in enumerate(terms)]
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


def _solve(variable: str, n: int, m: int, triangle: list[str], right: list[str]) -> list[str]:
    return [
        f"    double a{variable}[] = {{{', '.join(triangle)}}};",
        f"    double {variable}[] = {{{', '.join(right)}}};",
        f"    spd_solve({n}, {m}, a{variable}, {variable});",
    ]


_C99 = Language(
    number=_number,
    form=lambda op: OPS[op].c,
    constant=lambda variable, value, truth: f"    const {'int' if truth else 'double'} {variable} = {value};",
    solve=_solve,
)
