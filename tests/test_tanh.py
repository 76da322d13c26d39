"""tanh, an operation that stands in kernel/ops.py alone, in everything that is made of a graph."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import coadjoint as cj
from coadjoint import arrays
from coadjoint.kernel import export
from coadjoint.kernel.passes import derive
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.trace.trace import trace
from graph_helpers import native, of_one_node, targets, ulps


@pytest.mark.native
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["host", "one lane", "sse2"])
def test_accuracy(name, dtype):
    found = targets()
    if name not in found:
        pytest.skip("another processor")
    rng = np.random.default_rng(0)
    tiny = 10.0 ** rng.uniform(-300 if dtype == "float64" else -40, 0, 2000)
    x = np.concatenate([rng.uniform(-1, 1, 6000), rng.uniform(-25, 25, 2000), tiny, -tiny, [5e-324, 1e300, 19.0, 20.0]])
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    x = x[np.isfinite(x)]
    f = native(of_one_node("tanh"), dtype, found[name])
    with mp.workprec(200):
        assert ulps(f(x), [mp.tanh(mp.mpf(v)) for v in x.tolist()]) < 2.5
    special = f(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype))
    np.testing.assert_array_equal(special, [1.0, -1.0, np.nan, 0.0, -0.0])
    assert np.array_equal(np.signbit(special[3:]), [False, True])


def smooth_friction(v, width=0.01):
    """A friction force without a jump."""
    return 0.3 * arrays.namespace(v).tanh(v / width) + 0.1 * v


def test_traced_folded_and_differentiated():
    graph = trace(smooth_friction, {"v": (3,)})
    v = np.linspace(-0.02, 0.02, 3)
    np.testing.assert_allclose(evaluate(graph, v)[0], smooth_friction(v))
    assert np.tanh(0.5) in trace(lambda x: x * np.tanh(0.5), {"x": ()}).value[1:]
    assert trace(lambda x: np.tanh(-x) + np.tanh(x), {"x": ()}).op == ["const"]  # odd
    slope = trace(lambda v: derive.jacobian(smooth_friction(v), v), {"v": (3,)})
    expected = np.diag(30.0 / np.cosh(v / 0.01) ** 2 + 0.1)
    np.testing.assert_allclose(evaluate(slope, v)[0], expected, rtol=1e-12)


@pytest.mark.native
def test_compiled():
    robot = cj.load("planar2r")
    f = cj.compile(lambda robot, v: smooth_friction(v), robot)
    v = np.linspace(-0.05, 0.05, 34).reshape(17, 2)
    np.testing.assert_allclose(f(v), smooth_friction(v), rtol=1e-14)


def test_exported():
    graph = of_one_node("tanh")
    assert "tanh(t0)" in export.c(graph)
    assert r"\tanh" in export.latex(graph)
    symbols, (y,) = export.sympy(graph)
    assert str(y) == f"tanh({symbols['x0']})"


def test_in_jax_and_torch():
    for name in ("jax.numpy", "torch"):
        library = pytest.importorskip(name)
        x = library.asarray([0.005])
        np.testing.assert_allclose(np.asarray(smooth_friction(x)), smooth_friction(np.array([0.005])), rtol=1e-6)
