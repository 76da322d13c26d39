"""Simplification: the same values to rounding, exactly the same in exact arithmetic, never at a higher cost."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coadjoint import arrays, coriolis_matrix
from coadjoint.kernel.passes import derive
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.passes.rewrite import cost
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.trace import symbols as xs
from coadjoint.kernel.trace.trace import trace
from fuzz._mechanisms import mechanism
from kernel_helpers import PROGRAM, bodies, exact, newton_euler, programs, run, well_formed

RNG = np.random.default_rng(5)
ADDITIONS = ("add", "sub", "neg")


def counts(graph):
    """(multiplications, additions and subtractions)."""
    number = graph.count()
    return number.get("mul", 0), sum(number.get(op, 0) for op in ADDITIONS)


def no_more(found, allowed):
    """Neither of the two counts is larger; `<=` on tuples would compare the second only where the first are equal."""
    return all(x <= y for x, y in zip(found, allowed, strict=True))


def simplified(fn, shapes, tolerance=1e-13):
    """The simplified graph of fn, checked to be well formed, cheaper, and equal on random states."""
    graph = trace(fn, shapes, "f")
    result = well_formed(simplify(graph))
    assert cost(result) <= cost(graph)
    inputs = [RNG.uniform(0.2, 1.5, size=(9, *shape)) for shape in shapes.values()]
    for mine, theirs in zip(evaluate(result, *inputs), evaluate(graph, *inputs), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * np.abs(theirs).max(initial=1.0))
    return result


@pytest.mark.parametrize(
    ("fn", "multiplications", "additions"),
    [
        (lambda a, b, c, d: a * b + a * c, 1, 1),
        (lambda a, b, c, d: a * b - a * c + a * d, 1, 2),
        (lambda a, b, c, d: a * (b * c) + a * (b * d), 2, 1),
        (lambda a, b, c, d: 3.0 * a - 3.0 * b, 1, 1),
        (lambda a, b, c, d: 3.0 * a + 5.0 * a, 1, 0),
        (lambda a, b, c, d: (a * 3.0) * 5.0 + b, 1, 1),
        (lambda a, b, c, d: 3.0 * (5.0 * (7.0 * a)), 1, 0),
        (lambda a, b, c, d: ((a + 1.0) + b) + 2.0, 0, 2),
        (lambda a, b, c, d: (a + 1.0) - 1.0, 0, 0),
        (lambda a, b, c, d: (a + b) - a, 0, 0),
        (lambda a, b, c, d: a * (b + c) - a * b - a * c, 0, 0),
        (lambda a, b, c, d: a * (b * d - c) + c * a, 2, 0),
        (lambda a, b, c, d: np.sin(a) ** 2 + np.cos(a) ** 2, 0, 0),
        (lambda a, b, c, d: np.sin(a) * (b * np.sin(a)) + np.cos(a) * (b * np.cos(a)), 0, 0),
        (lambda a, b, c, d: np.stack([1.0 - np.sin(a) ** 2, np.cos(a)]), 1, 0),
        (lambda a, b, c, d: (1 - np.cos(a) ** 2) * d + np.cos(a) ** 2 * d, 0, 0),
        (lambda a, b, c, d: a * b * c - c * (b * a), 0, 0),
        (lambda a, b, c, d: (a - b) * c + (b - a) * d, 1, 2),
        (lambda a, b, c, d: np.stack([a + b + c, d - a - b]), 0, 3),
        (lambda a, b, c, d: np.stack([a + b + c, a + b + d, a + b]), 0, 3),
        (lambda a, b, c, d: a / 3.0, 1, 0),
        (lambda a, b, c, d: np.stack([a / d, b / d, c / d]), 3, 0),
        (lambda a, b, c, d: a * b + c, 1, 1),
    ],
)
def test_rules(fn, multiplications, additions):
    graph = simplified(lambda x: fn(*x), {"x": (4,)})
    assert no_more(counts(graph), (multiplications, additions))
    assert graph.count().get("div", 0) <= 1


def rotated(q, J):
    """R J Rᵀ of a symmetric J given by its six elements, turned about z."""
    xp = arrays.namespace(q)
    c, s = xp.cos(q), xp.sin(q)
    R = arrays.matrix([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    a, b, c, d, e, f = (J[..., k] for k in range(6))
    K = R @ arrays.matrix([[a, b, c], [b, d, e], [c, e, f]]) @ arrays.transpose(R)
    return arrays.stack([K[..., i, j] for i in range(3) for j in range(i + 1)])


def test_symmetric_blocks_turn_by_double_angles():
    """Two blocks turned by one angle: 8 multiplications each, and what belongs to the angle alone, instead of 16."""
    graph = simplified(lambda q, J, K: (rotated(q, J), rotated(q, K)), {"q": (), "J": (6,), "K": (6,)})
    assert counts(graph)[0] <= 8 + 8 + 5
    plain = trace(lambda q, J, K: (rotated(q, J), rotated(q, K)), {"q": (), "J": (6,), "K": (6,)})
    assert counts(plain)[0] == 32


def test_a_rigid_body_needs_few_products():
    """J V̇ - ad*_V J V as written has 66 multiplications; the equations of Newton and Euler about any point have 45."""
    (m, h, J) = bodies(1)[0]

    def wrench(w, u, dw, du):
        linear, angular = m * u - arrays.cross(h, w), arrays.mv(J, w) + arrays.cross(h, u)
        force = m * du - arrays.cross(h, dw) + arrays.cross(w, linear)
        moment = arrays.mv(J, dw) + arrays.cross(h, du) + arrays.cross(w, angular) + arrays.cross(u, linear)
        return force, moment

    shapes = dict.fromkeys(("w", "u", "dw", "du"), (3,))
    assert counts(trace(wrench, shapes))[0] == 66
    assert counts(simplified(wrench, shapes))[0] <= 45


def test_inverse_dynamics():
    """A plain recursion for a 7-joint arm with full inertias: at least a fifth of the multiplications goes."""
    links = bodies(7)
    shapes = dict.fromkeys(("q", "v", "a"), (7,))
    plain = trace(lambda q, v, a: newton_euler(q, v, a, links), shapes)
    assert counts(plain) == (529, 429)
    graph = simplified(lambda q, v, a: newton_euler(q, v, a, links), shapes)
    assert no_more(counts(graph), (420, 385))
    assert no_more(counts(simplify(graph)), counts(graph))


def test_derivatives_simplify():
    links = bodies(3)
    shapes = dict.fromkeys(("q", "v", "a"), (3,))
    simplified(lambda q, v, a: derive.jacobian(newton_euler(q, v, a, links), q), shapes, tolerance=1e-12)


EXACT = tuple(name for name in PROGRAM if name not in ("div", "inverse"))  # reciprocals of constants are rounded


@settings(max_examples=150, deadline=None)
@given(programs(names=EXACT), st.integers(0, 2**32 - 1))
def test_random_programs_are_unchanged_in_exact_arithmetic(program, seed):
    x = np.random.default_rng(seed).uniform(-2, 2, size=3)
    graph = trace(lambda x: run(program, x, xs), {"x": (3,)}, "f")
    result = well_formed(simplify(graph))
    assert cost(result) <= cost(graph)
    with mpmath.workdps(60):
        for mine, theirs in zip(exact(result, x)[0], exact(graph, x)[0], strict=True):
            assert abs(mine - theirs) <= 1e-30 * max(1, abs(theirs)) ** 4


@settings(max_examples=60, deadline=None)
@given(programs(names=("add", "sub", "mul", "sin", "cos", "affine", "neg"), length=40), st.integers(0, 2**32 - 1))
def test_random_polynomials_are_unchanged_in_exact_arithmetic(program, seed):
    x = np.random.default_rng(seed).uniform(-1, 1, size=3)
    graph = trace(lambda x: run(program, x, xs), {"x": (3,)}, "f")
    result = well_formed(simplify(graph))
    assert cost(result) <= cost(graph)
    with mpmath.workdps(200):
        scale = max(1, *(abs(y) for y in exact(graph, x)[0]))
        for mine, theirs in zip(exact(result, x)[0], exact(graph, x)[0], strict=True):
            assert abs(mine - theirs) <= 1e-13 * scale


def test_blocks_and_choices_survive():
    def fn(x):
        a = x * x[:, None] + 20 * np.eye(14)
        y = arrays.solve_spd(a, x[:, None])[:, 0]
        return np.where(y[0] * x[1] + y[0] * x[2] > 0, y, -y) * 3 - 3 * x

    graph = simplified(fn, {"x": (14,)}, tolerance=1e-12)
    assert graph.op.count("block") == 1


def test_nothing_to_do():
    graph = trace(lambda x: (x, np.ones(2), np.zeros((0,))), {"x": (3,)})
    assert simplify(graph) == graph


def test_long_sums_and_chains():
    def fn(x):
        total = (x * x[::-1]).sum()
        y = x[0]
        for k in range(3000):
            y = y * x[k % 50] + x[(k + 7) % 50]
        return total, y

    simplified(fn, {"x": (50,)}, tolerance=1e-9)


def test_rewriting_makes_no_cycle():
    """A form of a sum that contains, found again by its content, a node whose own new form contains that sum."""
    robot = mechanism(np.random.default_rng(258), 4)
    shapes = {"q": (robot.nq,), "v": (robot.nv,)}
    simplified(lambda q, v: coriolis_matrix(robot, q, v), shapes, tolerance=1e-11)


@pytest.mark.parametrize("c", [np.nan, np.inf, -np.inf, 1e200, 1e-200, 5e-324])
def test_constants_that_are_not_ordinary(c):
    """NaN, infinities, and numbers whose products overflow: nothing is folded that changes a value."""

    def fn(x):
        return (
            c * x[0] + c * x[1] + c * x[2],
            (c * x[0]) * 1e-150 * c * x[1] + x[2] * c,
            (x[0] + c) * (x[1] - c) + c * x[2] * x[2] - x[0] / c,
            np.sin(x[0]) ** 2 * c + np.cos(x[0]) ** 2 * c,
        )

    graph = trace(fn, {"x": (3,)})
    x = RNG.uniform(0.2, 1.5, size=(9, 3)) * 1e-100
    for mine, theirs in zip(evaluate(well_formed(simplify(graph)), x), evaluate(graph, x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
