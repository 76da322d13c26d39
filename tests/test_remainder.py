"""x // y and x % y of symbols: NumPy's values in every execution, on the operation fmod, which has no rounding error."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.kernel import export
from coadjoint.kernel.passes import derive
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.trace.trace import trace
from graph_helpers import native, of_one_node, targets

ODD = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.1, -0.1, 0.9, -0.9, 0.3, 6.0, -7.5, 5e-324, 1e-310, 1e308, -2.5e307]
)
PAIRS = np.stack(np.meshgrid(ODD, ODD), axis=-1).reshape(-1, 2)


def numbers(dtype, count=20_000):
    """Pairs of any exponent, quotients near integers, and those above."""
    rng = np.random.default_rng(0)
    last = 300 if dtype == "float64" else 37
    wide = rng.choice([-1.0, 1.0], size=(count, 2)) * 10.0 ** rng.uniform(-last - 8, last, size=(count, 2))
    near = rng.normal(size=(count, 2))
    near[:, 0] = np.round(rng.normal(size=count) * 10.0 ** rng.uniform(0, 20, count)) * near[:, 1]
    with np.errstate(all="ignore"):
        return np.concatenate([wide, near, PAIRS]).astype(dtype)


@pytest.mark.native
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["host", "one lane", "sse2"])
def test_fmod_is_exact(name, dtype):
    found = targets()
    if name not in found:
        pytest.skip("another processor")
    x, y = numbers(dtype).T
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(native(of_one_node("fmod", 2), dtype, found[name])(x, y), np.fmod(x, y))


def divided(x):
    """x // y, x % y and the same with a number as divisor or dividend."""
    x, y = x[..., 0], x[..., 1]
    return [x // y, x % y, np.floor_divide(x, 0.1), x % -0.1, 0.9 // y, -0.9 % y, x // x]


@pytest.mark.native
def test_every_execution_gives_the_values_of_numpy():
    x = numbers("float64", 4000)
    with np.errstate(all="ignore"):
        expected = np.stack(divided(x), axis=-1)
    graph = trace(lambda x: np.stack(divided(x)), {"x": (2,)})
    robot = cj.load("planar2r")
    compiled = cj.compile(lambda robot, x: np.stack(divided(x)), robot, shapes={"x": (2,)})
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(graph, x)[0], expected)
        results = [evaluate(simplify(graph), x)[0], compiled(x)]
    normal = ~(np.abs(x[:, 1]) < 1e-307)  # a simplified quotient multiplies by 1 / y, which must not overflow
    for result in results:
        whole = np.abs(expected) < 2.0**50  # larger quotients have the rounding errors of a division
        np.testing.assert_array_equal(result[whole & normal[:, None]], expected[whole & normal[:, None]])
        np.testing.assert_allclose(result[normal], expected[normal], rtol=5e-16, atol=0.0)
    for x, y in PAIRS[::5].tolist():
        folded = trace(lambda s: np.stack([s[0] + x // y, s[1] + x % y]) if y else s, {"s": (2,)})  # noqa: B023
        if y:
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(evaluate(folded, np.zeros(2))[0], [np.float64(x) // y, np.float64(x) % y])


def test_derivatives():
    x = np.array([7.3, 1.7])
    slopes = trace(lambda x: derive.jacobian(np.stack([x[0] % x[1], -x[0] % x[1], x[0] // x[1]]), x), {"x": (2,)})
    np.testing.assert_allclose(evaluate(slopes, x)[0], [[1.0, -4.0], [-1.0, 5.0], [0.0, 0.0]], atol=1e-14)


def test_exported():
    graph = of_one_node("fmod", 2)
    assert "fmod(t0, t1)" in export.c(graph)
    assert "t0 % t1" in export.js(graph)
    assert r"\operatorname{fmod}" in export.latex(graph)
    symbols, (y,) = export.sympy(graph)
    values = dict(zip(symbols.values(), (-7.5, 2.0), strict=True))
    assert y.subs(values) == -1.5


def test_the_derivative_of_a_quotient_by_zero_is_infinite():
    """As the quotient is; no ZeroDivisionError of Python's."""
    found = cj.derivative(lambda robot, q: q / 0.0, cj.load("planar1r"))(np.array([[0.5]]))
    np.testing.assert_array_equal(found, [[[np.inf]]])
