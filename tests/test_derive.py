"""Derivatives on the graph against difference quotients in 60 digits, complex steps, and each other."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coadjoint import arrays
from coadjoint.errors import TraceError
from coadjoint.kernel.passes import derive
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.trace import symbols as xs
from coadjoint.kernel.trace.trace import trace
from kernel_helpers import difference_quotient, exact, programs, run

RNG = np.random.default_rng(11)


def close(mine, theirs):
    """Equal but for a reciprocal of a constant here and there, which was rounded to float64 when the graph was made."""
    with mpmath.workdps(60):
        scale = max([1, *(abs(y) for y in np.ravel(theirs))])
        for x, y in zip(np.ravel(mine), np.ravel(theirs), strict=True):
            assert abs(x - y) <= 1e-14 * scale, (x, y)


@settings(max_examples=60, deadline=None)
@given(programs(length=12), st.integers(0, 2**32 - 1))
def test_random_programs(program, seed):
    """Forward and reverse derivatives are what the difference quotient says, in exact arithmetic."""
    x = np.random.default_rng(seed).uniform(-2, 2, size=3)
    graph = trace(lambda x: run(program, x, xs), {"x": (3,)}, "f")
    expected = difference_quotient(graph, 0, 0, x)
    with mpmath.workdps(60):
        for mode in ("forward", "reverse"):
            close(exact(derive.derivative(graph, 0, "x", mode), x)[0], expected)


@settings(max_examples=25, deadline=None)
@given(programs(length=8), st.integers(0, 2**32 - 1), st.sampled_from(["forward", "reverse"]))
def test_second_derivatives_by_applying_twice(program, seed, mode):
    x = np.random.default_rng(seed).uniform(-2, 2, size=3)
    first = derive.derivative(trace(lambda x: run(program, x, xs), {"x": (3,)}, "f"))
    second = derive.derivative(first, mode=mode)
    assert second.output_shapes[0] == (len(program), 3, 3)
    with mpmath.workdps(60):
        hessian = exact(second, x)[0]
        close(hessian, difference_quotient(first, 0, 0, x))
        close(hessian, hessian.swapaxes(-1, -2))


@pytest.mark.parametrize(
    ("function", "points"),
    [
        (lambda x: np.sqrt(x), [0.3, 2.0]),
        (lambda x: np.exp(x) * np.log(x), [0.3, 2.0]),
        (lambda x: np.arctan2(x, 2 - x), [0.3, 2.0, 3.0, -1.0]),
        (lambda x: np.arctan2(1 - x * x, x), [0.3, 2.0, -1.2]),
        (lambda x: np.abs(x) * x, [0.3, -2.0]),
        (lambda x: np.floor(x) * x, [0.3, -2.5, 7.7]),
        (lambda x: np.minimum(x, x * x), [0.3, 2.0, -1.0]),
        (lambda x: np.maximum(np.sin(x), 0.25), [0.1, 2.0]),
        (lambda x: np.where(x > 1, x**3, 1 / x), [0.3, 2.0]),
        (lambda x: np.where((x > 1) | (x < -1), x**-0.5, x), [0.3, 2.0]),
        (lambda x: np.tan(x) + np.arcsin(x / 3) * np.arccos(x / 4) + np.arctan(x), [0.3, 1.0, -1.2]),
        (lambda x: x % 0.7 + x**2.3 + 2.0**x, [0.3, 1.5]),
        (lambda x: (3.0 - x) / x - x / 3.0, [0.3, -1.5]),
    ],
)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_rules(function, points, mode):
    graph = trace(lambda x: function(x), {"x": ()}, "f")
    first = derive.derivative(graph, mode=mode)
    second = derive.derivative(first, mode=mode)
    for x in points:
        with mpmath.workdps(60):
            close(exact(first, x)[0], difference_quotient(graph, 0, 0, np.asarray(x)))
            close(exact(second, x)[0], difference_quotient(first, 0, 0, np.asarray(x)))


def test_complex_step():
    """On analytic functions the complex step needs no precision beyond float64."""

    def fn(x):
        y = np.sin(x[..., [0]]) * x + np.exp(x[..., ::-1]) / (2 + x * x)
        return np.sqrt(1 + y * y) * y.sum(-1)[..., None]

    graph = trace(fn, {"x": (4,)})
    x = RNG.normal(size=4)
    step = np.stack([fn(x + 1e-30j * e).imag / 1e-30 for e in np.eye(4)], axis=-1)
    for mode in ("forward", "reverse", None):
        np.testing.assert_allclose(evaluate(derive.derivative(graph, mode=mode), x)[0], step, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n", [3, 13])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_through_a_linear_solve(n, mode):
    """Derivatives of A(x)⁻¹B(x), unrolled or as a block; twice for the block's derivative of the derivative."""
    c, d = RNG.normal(size=(n, n)), RNG.normal(size=(n, 2))

    def fn(x):
        j = np.arange(n)
        a = (np.sin(x[0] * (j[:, None] + j)) if x.dtype != object else xs.sin(x[0] * (j[:, None] + j))) * 0.3
        return arrays.solve_spd(a + x[1] * np.eye(n) + c @ c.T + 4 * np.eye(n), d * x[0] + 1.0)

    graph = trace(fn, {"x": (2,)})
    assert ("block" in graph.op) == (n > 12)
    x = np.array([0.7, 1.3])
    first = derive.derivative(graph, mode=mode)
    with mpmath.workdps(60):
        close(exact(first, x)[0], difference_quotient(graph, 0, 0, x))
        if n > 12:
            slope = trace(lambda x: evaluate(first, x)[0][0, 0], {"x": (2,)})
            close(exact(derive.derivative(slope, mode=mode), x)[0], difference_quotient(slope, 0, 0, x))


def test_shapes_products_and_gradient():
    """J·direction, Jᵀ·weights and gradients are products of the Jacobian, in the shapes they claim."""

    def fn(x):
        return np.cos(x) @ np.arange(6.0).reshape(3, 2) * x[0, 0] + x[1, :2]

    def both(x, u, w):
        y = fn(x)
        energy = (y * y).sum()
        return derive.jacobian(y, x), derive.jvp(y, x, u), derive.vjp(y, x, w), derive.gradient(energy, x), y

    graph = trace(both, {"x": (2, 3), "u": (2, 3), "w": (2, 2)})
    x, u, w = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(5, 2, 3)), RNG.normal(size=(5, 2, 2))
    J, ju, jw, g, y = evaluate(graph, x, u, w)
    assert J.shape == (5, 2, 2, 2, 3)
    np.testing.assert_allclose(ju, np.einsum("bijkl,bkl->bij", J, u), atol=1e-12)
    np.testing.assert_allclose(jw, np.einsum("bijkl,bij->bkl", J, w), atol=1e-12)
    np.testing.assert_allclose(g, 2 * np.einsum("bijkl,bij->bkl", J, y), atol=1e-11)


def test_constants_and_unused_inputs_have_zero_derivative():
    graph = trace(lambda x, y: (derive.jacobian(x * 3, y), derive.jacobian(np.ones(2), y), derive.jacobian(x, x)),
                  {"x": (2,), "y": (3,)})  # fmt: skip
    a, b, c = evaluate(graph, np.ones(2), np.ones(3))
    assert not a.any()
    assert not b.any()
    assert a.shape == b.shape == (2, 3)
    np.testing.assert_array_equal(c, np.eye(2))
    assert set(graph.op) == {"const"}


def test_at_a_computed_point():
    """jacobian_of differentiates at x, whatever x is made of: also where folding would lose x itself."""

    def fn(x):
        return np.stack([np.sin(x[0]) * x[1], x[2] - x[0]])

    def at(x):
        return derive.jacobian_of(fn, arrays.stack([-x[0], x[1] * x[0], 2.0]))

    graph = trace(at, {"x": (2,)})
    x = RNG.normal(size=2)
    y, J = evaluate(graph, x)
    p = np.array([-x[0], x[1] * x[0], 2.0])
    np.testing.assert_allclose(y, fn(p), rtol=1e-15)
    np.testing.assert_allclose(J, [[np.cos(p[0]) * p[1], np.sin(p[0]), 0], [-1, 0, 1]], rtol=1e-15)
    with pytest.raises(TraceError, match="jacobian_of"):
        trace(lambda x: derive.jacobian(x * x, 2 * x), {"x": (2,)})
    with pytest.raises(TraceError, match="no input 'z'"):
        derive.derivative(graph, 0, "z")


def test_the_gradient_costs_a_few_functions_and_the_jacobian_picks_its_mode():
    """The cheap-gradient law: reverse needs at most about five times the operations, however many inputs there are."""

    def energy(x):
        return (np.sin(x[:-1]) * x[1:] * np.cos(x[:-1] - x[1:])).sum()

    plain = trace(energy, {"x": (60,)})
    reverse = trace(lambda x: derive.gradient(energy(x), x), {"x": (60,)})
    chosen = trace(lambda x: derive.jacobian(energy(x), x), {"x": (60,)})
    assert len(reverse) < 5 * len(plain)
    assert len(chosen) <= len(reverse)

    def curve(t):
        return np.sin(t * np.arange(1.0, 61.0)) * t

    forward = trace(lambda t: derive.jacobian(curve(t), t, "forward"), {"t": ()})
    assert len(trace(lambda t: derive.jacobian(curve(t), t), {"t": ()})) == len(forward)


def test_a_forward_derivative_is_safe_in_the_branch_not_taken():
    graph = trace(lambda x: derive.jacobian(np.where(x > 0, np.sqrt(x), 0.0), x, "forward"), {"x": ()})
    np.testing.assert_array_equal(evaluate(graph, np.array([-1.0, 0.0, 4.0]))[0], [0, 0, 0.25])


def test_long_chains():
    def fn(x):
        y = x[0]
        for _ in range(20_000):
            y = y * x[1] + x[2]
        return y

    graph = trace(lambda x: derive.gradient(fn(x), x), {"x": (3,)})
    dy = evaluate(graph, np.array([0.5, 0.5, 0.1]))[0]
    np.testing.assert_allclose(dy, [0.0, 0.1 / 0.25, 2.0], atol=1e-12)


@pytest.mark.parametrize("n", [3, 13])
def test_substitution_through_a_linear_solve(n):
    """A(x)⁻¹B(x), traced and then taken at other symbols, is what the function gives there; unrolled or as a block."""
    c, d = RNG.normal(size=(n, n)), RNG.normal(size=(n, 2))
    fn = lambda x: arrays.solve_spd(x[1] * np.eye(n) + c @ c.T, d * x[0] + x[1])
    elsewhere = lambda x: x * x + 0.5
    graph = trace(lambda x: derive.substitute(fn(x), x, elsewhere(x)), {"x": (2,)})
    x = np.array([0.7, 1.3])
    np.testing.assert_allclose(evaluate(graph, x)[0], fn(elsewhere(x)), rtol=1e-12, atol=1e-12)
