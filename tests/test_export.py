"""Exports compute what the graph computes: C is compiled, LaTeX read back, SymPy and CasADi evaluated."""

import ctypes
import math
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coadjoint import arrays
from coadjoint.errors import CoadjointError
from coadjoint.kernel import export
from coadjoint.kernel.export.latex import number
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.trace import symbols as xs
from coadjoint.kernel.trace.trace import trace
from kernel_helpers import bodies, newton_euler, programs, run

RNG = np.random.default_rng(3)
SHAPES3 = dict.fromkeys(("q", "v", "a"), (3,))


def arm(q, v, a):
    return newton_euler(q, v, a, bodies(3))


def everything(x, m):
    """Every operation of a graph, with constants of all kinds."""
    y = np.where((x[0] > x[1]) | ~(x[2] <= 0.5) & (x[0] != 0.25), x * -0.75, np.minimum(x, -1.0))
    z = np.sqrt(np.abs(y) + 2) - np.exp(-x) * np.log(x * x + 1 / 3) / 7 + np.floor(3 * x) + np.tanh(x) + np.log1p(x * x)
    return (
        np.arctan2(z, np.maximum(y, -0.5)) * np.cos(x[0] + x[1]),
        m @ np.sin(x) - 1e-7,
        -x[0],
        np.array([-2.5, 1e9]),
        x[1] == x[2],
    )


def solve(x):
    """A linear solve that is kept as a block."""
    a = x * x[:, None] * 0.1 + np.eye(13) * 3
    return arrays.solve_spd(a, np.stack([x, np.sin(x)], axis=-1))


CASES = [
    (arm, SHAPES3),
    (everything, {"x": (3,), "m": (2, 3)}),
    (solve, {"x": (13,)}),
    (lambda x: (x[..., None] * x, np.zeros((2, 0)), 3.0), {"x": (2, 2)}),
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that compiles C source and gives a callable on arrays."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("c")

    def load(source, name, shapes):
        stem = folder / f"f{len(list(folder.iterdir()))}"
        stem.with_suffix(".c").write_text(source)
        strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-unused-parameter"]
        flags = [*strict, "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, f"{stem}.c", "-o", f"{stem}.so", "-lm"], check=True)
        function = ctypes.CDLL(f"{stem}.so")[name]
        function.restype = None

        def call(*inputs):
            outputs = [np.full(shape, 77.0) for shape in shapes]
            given = [np.ascontiguousarray(x, dtype=float) for x in inputs]
            function(*(ctypes.c_void_p(x.ctypes.data) for x in (*given, *outputs)))
            return outputs

        return call

    return load


def samples(shapes, n=5):
    return [[RNG.normal(size=shape) for shape in shapes.values()] for _ in range(n)]


@pytest.mark.parametrize(("fn", "shapes"), CASES)
@pytest.mark.parametrize("change", [lambda graph: graph, simplify])
def test_c(compiled, fn, shapes, change):
    graph = change(trace(fn, shapes, "my function"))
    call = compiled(export.c(graph), "my_function", graph.output_shapes)
    for x in samples(shapes):
        for mine, theirs in zip(call(*x), evaluate(graph, *x), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)


def test_c_keeps_nan_and_odd_names(compiled):
    graph = trace(lambda x, y, t: (np.minimum(x, y), np.maximum(x, y), t * np.inf, np.nan, x / 0.0),
                  {"double": (), "t1": (), "out0": ()}, "sin")  # fmt: skip
    call = compiled(export.c(graph), "sin_", graph.output_shapes)
    for x, y in ((math.nan, 1.0), (1.0, math.nan), (2.0, 1.0), (-math.inf, 0.0)):
        with np.errstate(all="ignore"):
            expected = evaluate(graph, x, y, -1.0)
        np.testing.assert_array_equal(call(x, y, -1.0), np.array(expected))


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(0, 2**32 - 1))
def test_latex_of_random_programs_reads_back(program, seed):
    x = np.random.default_rng(seed).uniform(-2, 2, size=3)
    graph = trace(lambda x: run(program, x, xs), {"x": (3,)}, "f")
    check_latex(graph, {"x": x}, short=bool(seed % 2), inline=seed % 12)


def check_latex(graph, values, tolerance=1e-10, **options):
    text = export.latex(graph, digits=17, **options)
    found = read(text, {name: np.asarray(x, dtype=float) for name, x in values.items()})
    for k, (shape, expected) in enumerate(zip(graph.output_shapes, evaluate(graph, *values.values()), strict=True)):
        name = "y" if len(graph.outputs) == 1 else f"y^{{({k + 1})}}"
        for place in np.ndindex(*shape):
            index = "".join(str(j + 1) for j in place) if not place or max(place) < 9 else ",".join(str(j + 1) for j in place)
            mine = found[name + (f"_{{{index}}}" if place else "")]
            np.testing.assert_allclose(mine, expected[place], rtol=tolerance, atol=tolerance, err_msg=text)


@pytest.mark.parametrize(("fn", "shapes"), CASES)
@pytest.mark.parametrize("short", [True, False])
def test_latex_reads_back(fn, shapes, short):
    graph = trace(fn, shapes, "f")
    for x in samples(shapes, 2):
        check_latex(graph, dict(zip(shapes, x, strict=True)), short=short)


def test_latex_is_readable():
    def two_links(q, v, a):
        h = np.cos(q[1]) / 8
        return np.stack(
            [(5 / 12 + 2 * h) * a[0] + (1 / 12 + h) * a[1] - np.sin(q[1]) / 8 * v[1] ** 2, 9.81 * np.cos(q[0] + q[1]) - q[0]]
        )

    graph = trace(two_links, dict.fromkeys(("q", "v", "a"), (2,)))
    text = export.latex(graph, {"v": r"\dot q", "a": r"\ddot q"}, [r"\tau"])
    assert text == (
        "\\begin{aligned}\n"
        r"\tau_{1} &= \ddot q_{1} \, \left(0.25 \, c_{2} + \frac{5}{12}\right)"
        r" + \ddot q_{2} \, \left(\frac{1}{8} \, c_{2} + \frac{1}{12}\right) - \frac{1}{8} \, \dot q_{2}^{2} \, s_{2} \\" + "\n"
        r"\tau_{2} &= 9.81 \, \cos \left(q_{1} + q_{2}\right) - q_{1} \\" + "\n"
        r"s_{i} &= \sin q_{i}, \quad c_{i} = \cos q_{i}" + "\n"
        "\\end{aligned}"
    )
    assert r"\sin q_{2}" in export.latex(graph, short=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2"), (0.5, r"\frac{1}{2}"), (1 / 3, r"\frac{1}{3}"), (0.25, "0.25"), (9.81, "9.81"), (math.pi, "3.14159"),
     (1.25e-7, r"1.25 \cdot 10^{-7}"), (1e-9, "10^{-9}"), (5 / 12, r"\frac{5}{12}"), (123456.0, "123456")],
)  # fmt: skip
def test_latex_numbers(value, text):
    assert number(value, 6) == text


def test_what_is_shared_is_written_once():
    def fn(x):
        y = x
        for _ in range(60):  # as one formula it would have 2^60 terms
            y = y[::-1] * np.sin(y) + x[0]
        return y

    graph = trace(fn, {"x": (2,)})
    assert len(export.latex(graph)) < 20_000
    check_latex(graph, {"x": np.array([0.3, 0.4])})


@pytest.mark.parametrize(("fn", "shapes"), CASES[:2] + CASES[3:])
def test_sympy(fn, shapes):
    sympy = pytest.importorskip("sympy")
    graph = trace(fn, shapes, "f")
    symbols, outputs = export.sympy(graph)
    flat = [
        s
        for name in shapes
        for s in np.ravel(np.array(symbols[name].tolist() if hasattr(symbols[name], "tolist") else symbols[name]))
    ]
    for x in samples(shapes, 2):
        values = dict(zip(flat, np.concatenate([np.ravel(y) for y in x]), strict=True))
        for mine, theirs in zip(outputs, evaluate(graph, *x), strict=True):
            elements = sympy.flatten(mine) if hasattr(mine, "shape") else [mine]
            numbers = [complex(sympy.N(sympy.sympify(e).subs(values))) for e in elements]
            np.testing.assert_allclose(numbers, np.ravel(theirs), rtol=1e-9, atol=1e-9)


def test_sympy_names_shapes_and_fractions():
    sympy = pytest.importorskip("sympy")
    graph = trace(lambda q, g: (np.sin(q) * 0.5 * g, q[0] / 3 * g, q * q[:, None] * q[:, None, None]), {"q": (2,), "g": ()})
    symbols, (vector, scalar, array) = export.sympy(graph, {"q": "theta"})
    q1, q2 = sympy.symbols("theta_1 theta_2", real=True)
    g = sympy.Symbol("g", real=True)
    assert list(symbols["q"]) == [q1, q2]
    assert symbols["g"] == g
    assert vector == sympy.Matrix([sympy.sin(q1) * g / 2, sympy.sin(q2) * g / 2])
    assert scalar == q1 * g / 3
    assert array.shape == (2, 2, 2)


def test_sympy_solves():
    """The block as explicit elimination, at numbers."""
    pytest.importorskip("sympy")
    graph = trace(solve, {"x": (13,)}, "f")
    lifted = trace(lambda t: evaluate(graph, t[0] * np.arange(1.0, 14.0) * 0.1), {"t": (1,)})
    symbols, (solution,) = export.sympy(lifted)
    assert solution.shape == (13, 2)
    value = solution[5, 1].subs({symbols["t"][0]: 0.4})
    np.testing.assert_allclose(float(value), evaluate(lifted, np.array([0.4]))[0][5, 1], rtol=1e-9)


@pytest.mark.parametrize(("fn", "shapes"), CASES)
def test_casadi(fn, shapes):
    pytest.importorskip("casadi")
    graph = trace(fn, shapes, "my function")
    function = export.casadi(graph)
    assert function.name() == "my_function"
    assert function.name_in() == list(shapes)
    for x in samples(shapes, 2):
        results = function(*x) if len(graph.outputs) > 1 else (function(*x),)
        for mine, theirs in zip(results, evaluate(graph, *x), strict=True):
            np.testing.assert_allclose(np.ravel(np.array(mine)), np.ravel(theirs), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("module", ["sympy", "casadi"])
def test_a_missing_package_is_named(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CoadjointError, match=f"pip install {module}"):
        getattr(export, module)(trace(lambda x: x, {"x": (2,)}))


# A reader of the LaTeX that is written, to compute with it.

TOKEN = re.compile(
    r"\\begin\{(?:cases|bmatrix)\}|\\end\{(?:cases|bmatrix)\}|\\operatorname\{atan2\}|\\text\{[^}]*\}|\\left\\lfloor|\\right\\rfloor"
    r"|\\left[(|]|\\right[)|]|\\\\|\\,|\\[a-z]+|X\^\{\(\d+\)\}_\{[\d,]+\}|X\^\{\(\d+\)\}|[a-z](?:_\{[^}]*\})*|\d+(?:\.\d+)?|[-+^{}&=<,]"
)


def read(text, inputs):
    """The values of all names that the equations define."""
    known = {"e": math.e}
    for name, x in inputs.items():
        for place in np.ndindex(*x.shape):
            index = "".join(str(k + 1) for k in place) if not place or max(place) < 9 else ",".join(str(k + 1) for k in place)
            suffix = f"_{{{index}}}" if place else ""
            known[name + suffix] = x[place]
            known.setdefault(f"s{suffix}", math.sin(x[place])) if name in ("q", "x") else None
            known.setdefault(f"c{suffix}", math.cos(x[place])) if name in ("q", "x") else None
    body = text.removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    for line in body.split(" \\\\\n"):
        name, _, formula = line.partition(" &= ")
        if "quad" in formula:
            continue
        reader = Reader(TOKEN.findall(formula), known)
        assert "".join(reader.tokens).replace(" ", "") == formula.replace(" ", ""), formula
        value = reader.matrix_solve(name) if name.startswith("X") else reader.expression()
        assert reader.done(), formula
        if not name.startswith("X"):
            known[name] = value
    return known


ENDS = {"", "+", "-", "}", "&", ",", "=", "<", "\\\\", "\\le", "\\land", "\\lor", "\\right)", "\\right|", "\\right\\rfloor"}
ENDS |= {"\\end{cases}", "\\end{bmatrix}"}


class Reader:
    """A recursive-descent reader that computes."""

    def __init__(self, tokens, known):
        self.tokens = list(tokens)
        self.known, self.at = known, 0

    def done(self):
        return self.at == len(self.tokens)

    def peek(self):
        while self.at < len(self.tokens) and self.tokens[self.at] == "\\,":
            self.at += 1
        return "" if self.done() else self.tokens[self.at]

    def take(self, expected=None):
        token = self.peek()
        assert expected in (None, token), (expected, token, self.tokens)
        self.at += 1
        return token

    def braces(self):
        self.take("{")
        value = self.expression()
        self.take("}")
        return value

    def expression(self):
        sign = -1 if self.peek() == "-" and self.take() else 1
        value = sign * self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self):
        value = self.power()
        while self.peek() not in ENDS:
            self.take() if self.peek() == "\\cdot" else None
            value *= self.power()
        return value

    def power(self):
        value = self.atom()
        if self.peek() == "^":
            self.take()
            value = value ** self.braces()
        return value

    def atom(self):
        token = self.take()
        if token in self.known:
            return self.known[token]
        if re.fullmatch(r"\d+(\.\d+)?", token):
            return float(token)
        if token == "\\frac":
            return self.braces() / self.braces()
        if token == "\\sqrt":
            return math.sqrt(self.braces())
        if token in ("\\sin", "\\cos", "\\ln", "\\tanh"):
            power = self.take() and self.braces() if self.peek() == "^" else 1
            return {"\\sin": math.sin, "\\cos": math.cos, "\\ln": math.log, "\\tanh": math.tanh}[token](self.atom()) ** power
        if token in ("\\min", "\\max", "\\operatorname{atan2}"):
            self.take("\\left(")
            x = self.expression()
            self.take(",")
            y = self.expression()
            self.take("\\right)")
            return {"\\min": min, "\\max": max}.get(token, math.atan2)(x, y)
        if token in ("\\left(", "\\left|", "\\left\\lfloor"):
            value = self.condition()
            self.take({"\\left(": "\\right)", "\\left|": "\\right|"}.get(token, "\\right\\rfloor"))
            return {"\\left(": lambda x: x, "\\left|": abs}.get(token, math.floor)(value)
        if token == "\\begin{cases}":
            yes = self.expression()
            self.take("&")
            self.take("\\text{if }")
            condition = self.condition()
            self.take("\\\\")
            no = self.expression()
            self.take("&")
            self.take("\\text{otherwise}")
            self.take("\\end{cases}")
            return yes if condition else no
        raise AssertionError((token, self.tokens))

    def condition(self):
        value = self.relation()
        while self.peek() in ("\\land", "\\lor"):
            which, other = self.take(), self.relation()
            value = (value and other) if which == "\\land" else (value or other)
        return value

    def relation(self):
        if self.peek() == "\\lnot":
            self.take()
            self.take("\\left(")
            value = not self.condition()
            self.take("\\right)")
            return value
        x = self.expression()
        if self.peek() in ("<", "\\le", "="):
            which, y = self.take(), self.expression()
            return {"<": x < y, "\\le": x <= y, "=": x == y}[which]
        return x

    def matrix(self):
        self.take("\\begin{bmatrix}")
        rows = [[]]
        while True:
            rows[-1].append(self.expression())
            token = self.take()
            if token == "\\\\":
                rows.append([])
            elif token == "\\end{bmatrix}":
                return np.array(rows)

    def matrix_solve(self, name):
        A = self.matrix()
        self.take("^")
        self.take("{")
        assert self.take() == "-"
        assert self.take() == "1"
        self.take("}")
        X = np.linalg.solve(A, self.matrix())
        for (i, j), x in np.ndenumerate(X):
            comma = "," if max(X.shape[0], X.shape[1]) > 9 else ""
            self.known[f"{name}_{{{i + 1}{comma}{j + 1}}}"] = x
