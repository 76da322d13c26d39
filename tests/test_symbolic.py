"""Closed-form equations: textbook forms to the letter, and every printed form computes what the library computes."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coadjoint as cj
from coadjoint import Joint, Link, Mimic, Robot
from coadjoint.errors import CoadjointError, ShapeError
from coadjoint.robot import zoo
from coadjoint.symbolic.equations import FUNCTIONS
from coadjoint.symbolic.formula import Symbol
from coadjoint.symbolic.harmonics import runs
from coadjoint.symbolic.ring import OPERATIONS, Ring, TooLargeError
from random_robots import ALL_KINDS, random_robot

ALL = tuple(FUNCTIONS)
PUMA = {mode: cj.equations(cj.load("puma560"), ("M", "C", "g", "U", "T"), mode) for mode in ("numeric",)}


def numbers(robot, names, q, v):
    """What the library's functions give."""
    given_ = {"q": q, "v": v}
    return {name: FUNCTIONS[name][0](robot, *(given_[x] for x in FUNCTIONS[name][1])) for name in names}


def states(robot, n=4, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random(rng, (n,)), rng.normal(size=(n, robot.nv))


def assert_same(computed, robot, q, v, tolerance=1e-12):
    for name, expected in numbers(robot, computed, q, v).items():
        scale = max(np.max(np.abs(expected)), np.max(np.abs(cj.mass_matrix(robot, q))))
        np.testing.assert_allclose(computed[name] / scale, expected / scale, rtol=0, atol=tolerance, err_msg=name)


# --- as in textbooks


def lines(robot, what, parameters="symbolic"):
    return [line for line in cj.equations(robot, what, parameters).text().splitlines() if line]


def test_planar_2r_reads_like_a_textbook():
    """Spong, Hutchinson & Vidyasagar, Robot Modeling and Control, section 6.4, with r for l_c."""
    robot = cj.load("planar2r")
    assert lines(robot, "M") == [
        "M_11 = m_1 r_1^2 + m_2 (l_1^2 + r_2^2 + 2 l_1 r_2 cos(q_2)) + I_1zz + I_2zz",
        "M_12 = m_2 (r_2^2 + l_1 r_2 cos(q_2)) + I_2zz",
        "M_22 = m_2 r_2^2 + I_2zz",
    ]
    assert lines(robot, "C") == [
        "C_11 = -m_2 l_1 r_2 sin(q_2) v_2",
        "C_12 = -m_2 l_1 r_2 sin(q_2) (v_1 + v_2)",
        "C_21 = m_2 l_1 r_2 sin(q_2) v_1",
        "C_22 = 0",
    ]
    assert lines(robot, "g") == [
        "g_1 = g ((m_1 r_1 + m_2 l_1) cos(q_1) + m_2 r_2 cos(q_1 + q_2))",
        "g_2 = m_2 g r_2 cos(q_1 + q_2)",
    ]
    assert lines(robot, "U") == ["U = g ((m_1 r_1 + m_2 l_1) sin(q_1) + m_2 r_2 sin(q_1 + q_2))"]
    assert lines(robot, "T") == [
        "T = 1/2 (m_1 r_1^2 + m_2 (l_1^2 + r_2^2 + 2 l_1 r_2 cos(q_2)) + I_1zz + I_2zz) v_1^2",
        "    + (m_2 (r_2^2 + l_1 r_2 cos(q_2)) + I_2zz) v_1 v_2 + 1/2 (m_2 r_2^2 + I_2zz) v_2^2",
    ]
    assert lines(robot, "gamma") == [
        "Γ_112 = m_2 l_1 r_2 sin(q_2)",
        "Γ_121 = -m_2 l_1 r_2 sin(q_2)",
        "Γ_221 = -m_2 l_1 r_2 sin(q_2)",
    ]


def test_planar_2r_in_numbers():
    """Unit rods: M_11 = 5/3 + cos q₂, M_12 = 1/3 + ½ cos q₂, M_22 = 1/3; g by 1½ and ½ times 9.81."""
    robot = cj.load("planar2r")
    assert lines(robot, ("M", "g"), "numeric") == [
        "M_11 = 1.6667 + cos(q_2)",
        "M_12 = 0.33333 + 0.5 cos(q_2)",
        "M_22 = 0.33333",
        "g_1 = 14.715 cos(q_1) + 4.905 cos(q_1 + q_2)",
        "g_2 = 4.905 cos(q_1 + q_2)",
    ]


def test_other_mechanisms_read_like_textbooks():
    assert lines(cj.load("cartpole"), ("M", "C")) == [
        "M_11 = m_1 + m_2",
        "M_12 = m_2 r_2 cos(q_2)",
        "M_22 = m_2 r_2^2 + I_2yy",
        "C_11 = 0",
        "C_12 = -m_2 r_2 sin(q_2) v_2",
        "C_21 = 0",
        "C_22 = 0",
    ]
    assert lines(cj.load("furuta"), "M") == [
        "M_11 = m_1 r_1^2 + m_2 l_1^2 + (m_2 r_2^2 + I_2yy) sin(q_2)^2 + I_1zz",
        "M_12 = -m_2 l_1 r_2 cos(q_2)",
        "M_22 = m_2 r_2^2 + I_2xx",
    ]
    assert lines(cj.load("spherical_pendulum"), ("M", "T"))[-1] == "T = 1/2 m_1 r_1^2 cos(q_2)^2 v_1^2 + 1/2 m_1 r_1^2 v_2^2"
    assert lines(cj.load("planar3r"), "g")[0] == (
        "g_1 = g ((m_1 r_1 + l_1 (m_2 + m_3)) cos(q_1) + (m_2 r_2 + m_3 l_2) cos(q_1 + q_2) + m_3 r_3 cos(q_1 + q_2 + q_3))"
    )
    body = lines(cj.load("floating_body"), ("M", "C", "U"))
    assert body[:6] == ["M_11 = I_1xx", "M_22 = I_1yy", "M_33 = I_1zz", "M_44 = m_1", "M_55 = m_1", "M_66 = m_1"]
    assert body[-1] == "U = m_1 g q_3"


def test_latex_of_small_matrices_is_a_matrix():
    text = cj.equations(cj.load("planar2r"), ("M", "g")).latex()
    assert r"M(q) &= \begin{bmatrix} 1.6667 + \cos q_{2} & 0.33333 + 0.5 \, \cos q_{2}" in text
    assert r"g(q) &= \begin{bmatrix} 14.715 \, \cos q_{1} + 4.905 \, \cos\left(q_{1} + q_{2}\right) \\ " in text
    assert cj.equations(cj.load("planar2r"))._repr_latex_().startswith("$")


def test_puma_is_compact():
    """Written out, with short names for sines and for what repeats; numbers of five digits."""
    e = PUMA["numeric"]
    assert e.in_steps == ()
    text = e.text()
    assert "c_23 = cos(q_2 + q_3)" in text
    assert "M_55 = 0.17135" in text
    assert "g_6 = 0" in text
    assert cj.equations(e.robot, "M").size < 320
    M11 = text[text.index("M_11 =") : text.index("M_12 =")]
    assert M11.startswith("M_11 = 3.1384 + 0.80093 c_22 - 0.76975 c_2 s_23 + 0.32392 s_23^2")
    assert max(len(x.replace(".", "").lstrip("0")) for x in re.findall(r"(?<![_\d.])\d+\.\d+", text)) == 5, "numbers are rounded"
    assert max(map(len, text.splitlines())) < 140


# --- what is printed is true


@pytest.mark.parametrize("name", [n for n in zoo.names() if n not in ("panda", "puma560", "ur5e")])
@pytest.mark.parametrize("parameters", ["numeric", "symbolic"])
def test_small_robots_of_the_zoo(name, parameters):
    robot = cj.load(name)
    q, v = states(robot)
    e = cj.equations(robot, ALL, parameters)
    assert e.in_steps == ()
    assert_same(e(q, v), robot, q, v)


SLOW = pytest.mark.slow
LARGE = [
    ("puma560", "symbolic"),
    pytest.param("ur5e", "numeric", marks=SLOW),
    ("panda", "numeric"),
    pytest.param("panda", "symbolic", marks=SLOW),
]


@pytest.mark.parametrize(("name", "parameters"), LARGE)
def test_large_robots_of_the_zoo(name, parameters):
    """Where the closed form would fill pages it is written step by step; it is as true."""
    robot = cj.load(name)
    q, v = states(robot)
    e = cj.equations(robot, ("M", "C", "g"), parameters)
    assert ("M" in e.in_steps) == (name == "panda")
    assert_same(e(q, v), robot, q, v)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([("numeric", 1), ("numeric", 3), ("symbolic", 1), ("symbolic", 2)]), st.booleans())
def test_random_trees_of_all_joints(seed, size, mimic):
    parameters, n = size
    robot = random_robot(seed, n, tuple(k for k in ALL_KINDS if k not in ("free", "fixed")), mimic=mimic)
    q, v = states(robot, seed=seed)
    assert_same(cj.equations(robot, ALL, parameters)(q, v), robot, q, v, 1e-11)


@pytest.mark.parametrize("parameters", ["numeric", "symbolic"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=SLOW) for seed in (1, 2))])
def test_random_robots_with_a_free_joint(seed, parameters):
    robot = random_robot(seed, 2, ("free", "revolute"))
    q, v = states(robot, seed=seed)
    assert_same(cj.equations(robot, ("M", "g", "U"), parameters)(q, v), robot, q, v, 1e-11)


def test_armature_and_gear_ratios():
    at = np.eye(4)
    at[0, 3] = 0.5
    first = Link.solid("a", "base", Joint.revolute(name="x", armature=0.3), mass=1, com=(0.2, 0, 0.1), inertia=0.1)
    second = Link.solid(
        "b", "a", Joint.revolute((0, 1, 0), mimic=Mimic("x", -0.5, 0.3)), at, mass=1, com=(0.2, 0.1, 0), inertia=0.1
    )
    robot = Robot("geared", [first, second])
    q, v = states(robot)
    for parameters in ("numeric", "symbolic"):
        e = cj.equations(robot, ALL, parameters)
        assert_same(e(q, v), robot, q, v)
    assert "sin(1/2 q_1)" in e.text()
    assert "J_1" in e.text()


def test_other_values_of_parameters_are_another_robot():
    e = cj.equations(cj.load("planar2r"), ALL, "symbolic")
    other = zoo.make("planar2r", lengths=(0.7, 1.3), masses=(2.0, 3.0), coms=(0.3, 0.4), inertias=(0.5, 0.6))
    values = {"l_1": 0.7, "m_1": 2.0, "m_2": 3.0, "r_1": 0.3, "r_2": 0.4, "I_1zz": 0.5, "I_2zz": 0.6}
    q, v = states(other)
    assert_same(e(q, v, values), other, q, v)
    assert {p.name: p.value for p in e.parameters} == pytest.approx(
        {"l_1": 1.0, "m_1": 1.0, "m_2": 1.0, "r_1": 0.5, "r_2": 0.5, "I_1zz": 1 / 12, "I_2zz": 1 / 12, "g": 9.81}
    )
    assert "mass of link 'link2' [kg]" in {p.meaning for p in e.parameters}


# --- every format read back

CASES = [
    ("planar2r", "symbolic", ALL),
    ("planar4r", "symbolic", ("M", "C", "g")),
    ("scara", "numeric", ALL),
    ("floating_body", "symbolic", ("M", "C", "g", "T")),
    ("puma560", "numeric", ("M", "C", "g", "T")),
    ("panda", "numeric", ("M", "g")),
]
each_case = pytest.mark.parametrize(("name", "parameters", "what"), CASES, ids=lambda x: x if isinstance(x, str) else "")


def written(name, parameters, what):
    robot = cj.load(name)
    q, v = states(robot, 1)
    return robot, cj.equations(robot, what, parameters), q[0], v[0]


def values_of(e, q, v):
    known = {p.name: p.value for p in e.parameters} | {"sin": np.sin, "cos": np.cos}
    return known | {f"q_{k + 1}": x for k, x in enumerate(q)} | {f"v_{k + 1}": x for k, x in enumerate(v)}


def assert_entries(found, e, robot, q, v, tolerance):
    """Printed entries agree, and those not printed are zero or equal to one that is, mirrored."""
    for name, expected in numbers(robot, e.arrays, q, v).items():
        letter = "Γ" if name == "gamma" else name
        scale = np.max(np.abs(expected))
        for index in np.ndindex(expected.shape):
            title = f"{letter}_{''.join(str(k + 1) for k in index)}" if index else letter
            mirrored = f"{letter}_{''.join(str(k + 1) for k in (*index[1::-1], *index[2:]))}"
            got = found.get(title, found.get(mirrored, 0.0))
            assert abs(got - expected[index]) <= tolerance * scale, title


def product_signs(text):
    """a b (c) -> a * b * (c), ^ -> **."""
    tokens = re.findall(r"\d+\.?\d*(?:e[+-]\d+)?|\w+|\S", text)
    out = []
    for token in tokens:
        operand = re.match(r"[\w(.]", token)
        if out and operand and (re.match(r"[\w.]", out[-1]) or out[-1] == ")") and out[-1] not in ("sin", "cos"):
            out.append("*")
        out.append("**" if token == "^" else token)
    return "".join(out)


@each_case
def test_text_read_back(name, parameters, what):
    robot, e, q, v = written(name, parameters, what)
    joined = re.sub(r"\n +", " ", e.text(digits=17))
    names = values_of(e, q, v)
    pairs = [part.split(" = ") for line in joined.splitlines() if line for part in re.split(r", (?=[sc]_)", line)]
    pairs.sort(key=lambda pair: not re.match(r"[sc]_", pair[0]))  # sines are explained last
    for title, formula in pairs:
        names[title] = eval(product_signs(formula), {}, names)
    assert_entries(names, e, robot, q, v, 1e-12)


def python_of_latex(text):
    text = text.replace(r"\left(", "(").replace(r"\right)", ")").replace(r"\,", "*").replace(r"\dot q", "v").replace(r"\Gamma", "Γ")
    text = text.replace(r"\cdot", "*")
    text = re.sub(r"_\{([^{}]*)\}", lambda m: "_" + m[1].replace(",", "_").replace("-", "m"), text)
    text = re.sub(r"\\(sin|cos)\^\{(\d)\} (\w+)", r"\1(\3)^{\2}", text)
    text = re.sub(r"\\(sin|cos)\^\{(\d)\}(\([^()]*\))", r"\1\3^{\2}", text)
    text = re.sub(r"\\(sin|cos) (\w+)", r"\1(\2)", text)
    text = re.sub(r"\\(sin|cos)", r"\1", text)
    text = re.sub(r"\^\{(-?\d+)\}", r"**(\1)", text)
    return re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text).replace("{}", "").replace(r"\quad", "")


@each_case
def test_latex_read_back(name, parameters, what):
    robot, e, q, v = written(name, parameters, what)
    body = e.latex(digits=17).removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    names = values_of(e, q, v)
    lines = []
    for line in re.sub(r" \\\\\n&\\quad \{\}", " ", body).split(" \\\\\n"):
        title, formula = line.split(" &= ")
        matrix = re.fullmatch(r"\\begin\{bmatrix\} (.*) \\end\{bmatrix\}", formula)
        if not matrix:
            lines.append((python_of_latex(title), formula))
            continue
        letter = title[0]
        for i, row in enumerate(matrix[1].split(r" \\ ")):
            cells = row.split(" & ")
            lines += [(f"{letter}_{i + 1}{j + 1 if e.arrays[letter].ndim == 2 else ''}", cell) for j, cell in enumerate(cells)]
    lines.sort(key=lambda pair: not re.match(r"[sc]_", pair[0]))
    for title, formula in lines:
        names[title] = eval(python_of_latex(formula).strip(), {}, names)
    assert_entries(names, e, robot, q, v, 1e-12)


@each_case
def test_document_read_back(name, parameters, what):
    """Matrices, formulas, sines and cosines of the document together give the numbers."""
    robot, e, q, v = written(name, parameters, what)
    text = e.document(digits=17)
    names = values_of(e, q, v)
    sines = text.partition(r"\subsection*{Sines and cosines}")[2].partition(r"\subsection*")[0]
    pairs = [line.split(" = ", 1) for line in re.findall(r"\$([^$]*)\$", sines)]
    pairs += [line.split(" = ", 1) for line in re.findall(r"^\\formula\{(.*)\}$", text, re.MULTILINE)]
    for title, formula in pairs:
        names[python_of_latex(title)] = eval(python_of_latex(formula).strip(), {}, names)
    for letter, body in re.findall(r"\\\[ (\w)\(q.*? = \\begin\{pmatrix\} (.*) \\end\{pmatrix\} \\\]", text):
        for i, row in enumerate(body.split(r" \\ ")):
            for j, cell in enumerate(row.split(" & ")):
                title = f"{letter}_{i + 1}{j + 1 if e.arrays[letter].ndim == 2 else ''}"
                names[title] = eval(python_of_latex(cell).strip(), {}, names)
    assert_entries(names, e, robot, q, v, 1e-12)


@pytest.mark.parametrize("name", ["planar2r", pytest.param("panda", marks=pytest.mark.slow)])
def test_documents_print_without_a_line_that_is_too_long(name, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex")
    robot = cj.load(name)
    data = json.loads(robot.to_json()) | {"name": r"a_b & 100% {\"} \input{/etc/passwd} <<>> -- ^~#$ \u00e9"}
    (tmp_path / "robot.json").write_text(json.dumps(data))
    text = cj.equations(cj.load(tmp_path / "robot.json")).document()
    assert r"\input{" not in text
    (tmp_path / "robot.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "robot.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in (tmp_path / "robot.log").read_text(errors="replace")


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    program = shutil.which("cc") or shutil.which("gcc")
    if program is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("c")

    def build(source, stem):
        (folder / f"{stem}.c").write_text(source)
        strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
        subprocess.run([program, *strict, "-shared", "-fPIC", f"{folder / stem}.c", "-o", f"{folder / stem}.so", "-lm"], check=True)
        return ctypes.CDLL(f"{folder / stem}.so")

    return build


@each_case
def test_c_compiled(name, parameters, what, compiler):
    robot, e, q, v = written(name, parameters, what)
    library = compiler(e.c(), f"{name}_{parameters}")
    pointer = lambda x: ctypes.c_void_p(x.ctypes.data)
    p = np.array([x.value for x in e.parameters])
    computed = {}
    for quantity, array in e.arrays.items():
        out = np.full(array.shape, 77.0)
        given_ = [q, *([v] if quantity in ("C", "T") else []), *([p] if e.parameters else [])]
        library[f"{name}_{quantity}"](*map(pointer, given_), pointer(out))
        computed[quantity] = out
    assert_same(computed, robot, q, v)


@each_case
def test_sympy_evaluated(name, parameters, what):
    sp = pytest.importorskip("sympy")
    robot, e, q, v = written(name, parameters, what)
    found = e.sympy()
    names = values_of(e, q, v)
    values = {sp.Symbol(key, real=True): x for key, x in names.items() if not callable(x)}
    computed = {}
    for quantity in e.arrays:
        f = sp.lambdify(list(values), found[quantity], "numpy", cse=True)
        computed[quantity] = np.array(f(*values.values()), dtype=float).reshape(e.arrays[quantity].shape)
    assert_same(computed, robot, q, v)


def test_sympy_agrees_with_lagranges_equations():
    """d/dt ∂T/∂v - ∂T/∂q + ∂U/∂q = M a + C v + g, by SymPy's own differentiation."""
    sp = pytest.importorskip("sympy")
    f = cj.equations(cj.load("planar2r"), ALL, "symbolic").sympy()
    q, v, a = sp.Matrix([f["q_1"], f["q_2"]]), sp.Matrix([f["v_1"], f["v_2"]]), sp.Matrix(sp.symbols("a_1 a_2"))
    p = sp.Matrix([f["T"]]).jacobian(v)
    left = p.jacobian(q) * v + p.jacobian(v) * a - sp.Matrix([f["T"] - f["U"]]).jacobian(q).T
    assert sp.simplify(left - f["M"] * a - f["C"] * v - f["g"]) == sp.zeros(2, 1)
    gamma = f["gamma"]
    C = sp.Matrix(2, 2, lambda k, j: sum(gamma[i, j, k] * v[i] for i in range(2)))
    assert sp.simplify(C - f["C"]) == sp.zeros(2, 2)


# --- the ring


turns = st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.floats(-3, 3)).filter(lambda x: x[0] or x[1])


@given(st.lists(turns, min_size=1, max_size=4))
def test_trigonometric_identities_hold_by_themselves(angles):
    ring = Ring()
    x, y = ring.coordinate(Symbol("q_1", "q"), 0), ring.coordinate(Symbol("q_2", "q"), 1)
    sin, cos = OPERATIONS["sin"], OPERATIONS["cos"]
    for a, b, phase in angles:
        theta, other = x * a + y * b + phase, x * b - y * a
        assert (sin(theta) * sin(theta) + cos(theta) * cos(theta) - 1.0).terms == {}
        difference = sin(theta + other) - sin(theta) * cos(other) - cos(theta) * sin(other)
        assert all(abs(c) < 1e-14 for c in difference.terms.values())


def test_quaternions_have_unit_length():
    ring = Ring()
    symbols = [Symbol(f"q_{k}", "q") for k in range(4)]
    ring.quaternion(symbols)
    x, y, z, w = map(ring.symbol, symbols)
    assert (x * x + y * y + z * z + w * w - 1.0).terms == {}
    assert (w * w * w - w * (1.0 - x * x - y * y - z * z)).terms == {}


def test_work_is_limited():
    ring = Ring(work=10)
    x = ring.symbol(Symbol("m_1", "mass")) + ring.symbol(Symbol("m_2", "mass"))
    with pytest.raises(TooLargeError):
        _ = x * x * x * x


def test_runs_are_parallel_axes():
    assert runs(cj.load("puma560")) == [0, 1, 1, 3, 4, 5]
    assert runs(cj.load("ur5e")) == [0, 1, 1, 1, 4, 5]
    assert runs(cj.load("scara"))[0] == runs(cj.load("scara"))[1] == runs(cj.load("scara"))[3]
    assert runs(cj.load("planar5r")) == [0] * 5
    assert runs(cj.load("spherical_pendulum")) == [0, 1]


# --- wrong use


def test_wrong_use_is_named():
    robot = cj.load("planar2r")
    with pytest.raises(CoadjointError, match="no quantity is named 'K'"):
        cj.equations(robot, "K")
    with pytest.raises(CoadjointError, match="choose 'numeric' or 'symbolic'"):
        cj.equations(robot, parameters="letters")
    with pytest.raises(CoadjointError, match="expected a Robot"):
        cj.equations("planar2r")
    with pytest.raises(CoadjointError, match="no joint that moves"):
        cj.equations(Robot("still", [Link("a", "base", Joint.fixed())]))
    e = cj.equations(robot, ("M", "C"), "symbolic")
    with pytest.raises(ShapeError, match=r"expected \(\.\.\., 2\)"):
        e(np.zeros(3))
    with pytest.raises(CoadjointError, match="velocity v"):
        e(np.zeros(2))
    with pytest.raises(CoadjointError, match="no parameter is named 'm_3'"):
        e(np.zeros(2), np.zeros(2), {"m_3": 1.0})
