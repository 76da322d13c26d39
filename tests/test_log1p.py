"""log1p, an operation that stands in kernel/ops.py alone: accurate for small arguments in everything that is made of a graph."""

from __future__ import annotations

from functools import cache

import mpmath as mp
import numpy as np
import pytest

import coadjoint as cj
from coadjoint import arrays
from coadjoint.kernel import export
from coadjoint.kernel.ops import OPS
from coadjoint.kernel.passes import derive
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.trace.trace import trace
from graph_helpers import native, of_one_node, targets, ulps


@cache
def exactly(x):
    """log(1 + x) to 60 digits, once for all processors."""
    with mp.workprec(200):
        return [mp.log1p(mp.mpf(v)) for v in x]


@pytest.mark.native
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["host", "one lane", "sse2"])
def test_accuracy(name, dtype):
    found = targets()
    if name not in found:
        pytest.skip("another processor")
    rng = np.random.default_rng(0)
    size = 10.0 ** rng.uniform(*((-300, 300) if dtype == "float64" else (-40, 38)), 600)
    near = -1.0 + 10.0 ** rng.uniform(-15 if dtype == "float64" else -7, 0, 400)
    x = np.concatenate([rng.uniform(-1, 1, 1000), rng.uniform(-0.3, 0.5, 600), size, -size[size < 1], near, [5e-324, -5e-324]])
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    x = x[(x > -1) & np.isfinite(x)]
    f = native(of_one_node("log1p"), dtype, found[name])
    assert ulps(f(x), exactly(tuple(x.tolist()))) < 2.0
    special = f(np.array([np.inf, -np.inf, np.nan, -1.0, -1.5, 0.0, -0.0], dtype))
    np.testing.assert_array_equal(special, [np.inf, np.nan, np.nan, -np.inf, np.nan, 0.0, -0.0])
    assert np.array_equal(np.signbit(special[5:]), [False, True])


def softplus(x, width=0.01):
    """max(x, 0) without a corner."""
    return width * arrays.namespace(x).log1p(np.e ** (x / width))


def test_traced_folded_and_differentiated():
    graph = trace(softplus, {"x": (3,)})
    x = np.linspace(-0.1, 0.1, 3)
    np.testing.assert_allclose(evaluate(graph, x)[0], softplus(x))
    assert np.log1p(0.5) in trace(lambda x: x * np.log1p(0.5), {"x": ()}).value[1:]
    np.testing.assert_array_equal([OPS["log1p"].number(x) for x in (-1.0, -2.0, np.inf)], [-np.inf, np.nan, np.inf])
    slope = trace(lambda x: derive.jacobian(softplus(x), x), {"x": (3,)})
    np.testing.assert_allclose(evaluate(slope, x)[0], np.diag(1.0 / (1.0 + np.exp(-x / 0.01))), rtol=1e-12)


@pytest.mark.native
def test_compiled():
    robot = cj.load("planar2r")
    f = cj.compile(lambda robot, v: softplus(v), robot)
    v = np.linspace(-0.05, 0.05, 34).reshape(17, 2)
    np.testing.assert_allclose(f(v), softplus(v), rtol=1e-14)


def test_exported():
    graph = of_one_node("log1p")
    assert "log1p(t0)" in export.c(graph)
    assert "Math.log1p(" in export.js(graph)
    assert r"\ln\left(1 + " in export.latex(graph)
    symbols, (y,) = export.sympy(graph)
    assert str(y) == f"log({symbols['x0']} + 1)"
    pytest.importorskip("casadi")
    assert float(export.casadi(graph)(1e-18)) == 1e-18


def test_in_jax_and_torch():
    for name in ("jax.numpy", "torch"):
        library = pytest.importorskip(name)
        x = library.asarray([0.005])
        np.testing.assert_allclose(np.asarray(softplus(x)), softplus(np.array([0.005])), rtol=1e-6)
