"""Tracing: the graph computes what the function computes, and nothing twice."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coadjoint import arrays
from coadjoint.errors import TraceError
from coadjoint.kernel.graph import Graph, verify
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.trace import symbols as xs
from coadjoint.kernel.trace.expr import Expr
from coadjoint.kernel.trace.trace import trace
from kernel_helpers import programs, run, well_formed


def agrees(fn, *inputs, tolerance=1e-13):
    """The graph of fn on a batch equals fn itself on each member."""
    graph = well_formed(trace(fn, {f"x{k}": x.shape[1:] for k, x in enumerate(inputs)}))
    results = evaluate(graph, *inputs)
    for b in range(len(inputs[0])):
        expected = fn(*(x[b] for x in inputs))
        for mine, theirs in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
            np.testing.assert_allclose(mine[b], np.asarray(theirs, dtype=float), rtol=tolerance, atol=tolerance)
    return graph


def ops(graph):
    return {op: n for op, n in graph.count().items() if op not in ("input", "const")}


def traced(fn, n=3):
    """The graph of fn of n scalars."""
    return well_formed(trace(lambda x: fn(*x), {"x": (n,)}))


RNG = np.random.default_rng(7)


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda x, y, z: x * y + y * x, {"mul": 2}),  # 2 (x y)
        (lambda x, y, z: 0 * x + y * 0.0, {}),
        (lambda x, y, z: 1 * x + 0 - y / 1, {"sub": 1}),
        (lambda x, y, z: x - x + (y - y), {}),
        (lambda x, y, z: -(-x), {}),  # noqa: B002
        (lambda x, y, z: x + -x, {}),
        (lambda x, y, z: -x + x, {}),
        (lambda x, y, z: -1 * x + y, {"sub": 1}),
        (lambda x, y, z: (-x) * y + z, {"mul": 1, "sub": 1}),
        (lambda x, y, z: (-x) * (-y), {"mul": 1}),
        (lambda x, y, z: (-x) / (-y), {"div": 1}),
        (lambda x, y, z: x - (-2.0) * y, {"mul": 1, "add": 1}),
        (lambda x, y, z: -x - y, {"add": 1, "neg": 1}),
        (lambda x, y, z: 1 - x + 0 * z, {"sub": 1}),
        (lambda x, y, z: -3 - x, {"add": 1, "neg": 1}),
        (lambda x, y, z: (x - y) * z + (y - x), {"sub": 2, "mul": 1}),
        (lambda x, y, z: x / 4.0, {"mul": 1}),
        (lambda x, y, z: x / 3.0, {"div": 1}),
        (lambda x, y, z: x / -3.0 + y, {"div": 1, "sub": 1}),
        (lambda x, y, z: 0 / x, {}),
        (lambda x, y, z: x / x, {}),
        (lambda x, y, z: np.cos(-x) * np.cos(x), {"cos": 1, "mul": 1}),
        (lambda x, y, z: np.sin(-x) + np.sin(x), {"sin": 1}),
        (lambda x, y, z: abs(-x) - abs(x), {"abs": 1}),
        (lambda x, y, z: xs.where(x < y, z, z), {}),
        (lambda x, y, z: xs.where(~(x < y), y, z), {"lt": 1, "where": 1}),
        (lambda x, y, z: xs.where(~~(x < y) & (x < y), y, z), {"lt": 1, "where": 1}),
        (lambda x, y, z: xs.minimum(x, y) + xs.minimum(y, x), {"min": 1, "mul": 1}),
        (lambda x, y, z: x**3 * x**0, {"mul": 2}),
        (lambda x, y, z: x**0.5, {"sqrt": 1}),
        (lambda x, y, z: x**-1, {"div": 1}),
    ],
)
def test_folding(fn, expected):
    graph = traced(fn)
    counts = ops(graph)
    counts.pop("neg", None) if "neg" not in expected else None
    x = RNG.uniform(0.1, 2.0, size=(20, 3))
    theirs = np.array([float(fn(*row)) for row in x])
    assert theirs.any() or graph.op == ["const"]
    np.testing.assert_allclose(evaluate(graph, x)[0], theirs, rtol=1e-14)
    for op, n in expected.items():
        assert counts.get(op, 0) <= n
    assert set(counts) <= set(expected)


def test_constants_stay_floats():
    def fn(x):
        for zero in (0 * x[0], x[0] * np.float64(0.0), x[0] - x[0], x[1] + -x[1]):
            assert np.asarray(zero).item() == 0.0
        assert isinstance(0 * x[0], float)
        assert isinstance(xs.sin(xs.asarray(0.5)).item(), float)
        assert (1.0 * x[0]).index == x[0].index
        return x

    trace(fn, {"x": (2,)})


def test_equal_nodes_are_one():
    graph = traced(lambda x, y, z: (x * y + np.sin(z)) * (np.sin(z) + y * x) + 2 * (3.5 * x) - 3.5 * x)
    keys = [(op, tuple(sorted(args)) if op in ("add", "mul") else args, str(value))
            for op, args, value in zip(graph.op, graph.args, graph.value, strict=True)]  # fmt: skip
    assert len(keys) == len(set(keys))
    assert graph.op.count("sin") == 1


def test_numpy_code_runs_on_symbols():
    """NumPy's functions and those of the namespace, on arrays, elements and NumPy's scalars."""

    def fn(x, m):
        xp = arrays.namespace(x)
        w = arrays.stack([xp.sin(x[..., 0]), 0.0, np.cos(x[1])])
        n = arrays.dot(w, w)
        angles = np.arctan2(x[0], 2.0), np.arcsin(x[0] / 9), np.arccos(x[1] / 9), np.arctan(x[2]), np.tan(x[0] / 9)
        return (
            arrays.cross(w, x),
            n[..., None] * m,
            xp.where((n > 0.5) | (x[0] <= 0), np.float64(2.0) * x[0], np.maximum(x[1], 0)),
            np.float64(1.0) < x[1],
            (x * np.array([1.0, 0.0, 1.0])).sum(-1),
            m @ x + np.eye(3) @ m[0],
            x[1:].max() - np.min(x),
            np.abs(x) ** 1.5 + np.square(x) / 3 + (x * x + 1) ** -0.5,
            np.stack(angles),
            arrays.dot(np.array([1.0, 2.0, 3.0]), xp.ones(3))[..., None],
            np.sign(x) + np.floor(x) + np.ceil(x) + x % 0.75 + x // 0.5,
            np.hypot(x[0], x[1]) * np.exp(x) * np.log(np.abs(x) + 1) + 2.0**x,
            np.einsum("ij,j->i", m, x) - np.where(x > 0, x, 0) * np.where(x[0] > x[1], 2.0, x[2]),
            np.cross(m, x) + np.clip(x, -1, x[0] * x[0]),
            np.concatenate([m, m.T], axis=-1).reshape(-1)[::2],
            xp.clip(x, -0.5, 0.5),
            (x == x[0]) * 2.0 - (x != x[1]),
            np.logical_and(x > 0, x < 1) & ~(x > 0.5),
            np.trace(m) + np.outer(x, x).sum() + np.dot(m, x) @ x + np.tensordot(m, m) + np.linalg.norm(x),
            np.prod(x) * np.cumsum(x) + np.mean(m, axis=0),
        )

    agrees(fn, RNG.normal(size=(30, 3)), RNG.normal(size=(30, 3, 3)))


def test_every_elementwise_function_folds_on_floats_as_numpy_does():
    values = np.array([-2.5, -1.0, -0.0, 0.0, 0.3, 1.0, 7.0, 1e300, np.inf, -np.inf, np.nan])
    with np.errstate(all="ignore"):
        for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "abs", "floor", "ceil", "sign", "square", "negative"):
            mine = getattr(xs, name)(xs.asarray(values))
            np.testing.assert_allclose(np.asarray(mine.tolist()), getattr(np, name)(values), rtol=1e-15, err_msg=name)
        for name in ("add", "subtract", "multiply", "divide", "minimum", "maximum", "arctan2", "less", "less_equal"):
            mine = getattr(xs, name)(xs.asarray(values)[:, None], values)
            theirs = getattr(np, name)(values[:, None], values)
            np.testing.assert_array_equal(np.asarray(mine.tolist()), theirs, err_msg=name)


def test_division_by_zero_in_the_branch_not_taken():
    def fn(x):
        zero = xs.asarray(0.0)
        return xs.where(zero > 0, 1.0 / zero, x[0]), xs.where(x[0] < 9, x[0], x[0] / zero)

    graph = trace(fn, {"x": (1,)})
    assert evaluate(graph, np.array([3.0])) == (3.0, 3.0)


def _branch(x):
    return x if x[0] > 0 else -x


@pytest.mark.parametrize(
    ("fn", "remedy"),
    [
        (_branch, "where"),
        (lambda x: max(x[0], x[1]), "where"),
        (lambda x: x[0] > 0 and x[1] > 0, "& |"),
        (lambda x: x[0] and 1.0, "where"),
        (lambda x: float(x[0]), "namespace"),
        (lambda x: int(x[0]), "namespace"),
        (lambda x: [1, 2, 3][x[0]], "namespace"),
        (lambda x: np.linalg.inv(x[:, None] * x), "solve_spd"),
        (lambda x: np.linalg.inv(np.outer(x, x) + np.eye(3)), "solve_spd"),
        (lambda x: np.round(x), "cannot be traced: .* rint .* symbols"),
        (lambda x: np.std(x), "symbols"),
        (lambda x: np.interp(x, [0.0, 1.0], [2.0, 3.0]), "symbols"),
        (lambda x: np.asarray(x, dtype=float), "namespace"),
        (lambda x: list(x[0]), "iterate over the array"),
        (lambda x: np.arcsinh(x), "arctan2"),
        (lambda x: np.nan_to_num(x), "where"),
        (lambda x: np.nan_to_num(x[0]), "where"),
        (lambda x: x[0] ** x[1], "exp"),
        (lambda x: {"a": x}, "tuple of arrays"),
        (lambda x: None, "tuple of arrays"),
    ],
)
def test_what_cannot_be_traced_says_what_to_write(fn, remedy):
    with pytest.raises(TraceError, match=remedy):
        trace(fn, {"x": (3,)})


@pytest.mark.parametrize("fn", [lambda x: x.nothing, lambda x: np.sum(x, of=1)])
def test_mistakes_of_a_traced_function_are_raised_as_they_are(fn):
    with pytest.raises((AttributeError, TypeError)) as caught:
        trace(fn, {"x": (3,)})
    assert not isinstance(caught.value, TraceError)


def test_symbols_of_two_traces_do_not_mix():
    kept = []
    trace(lambda x: kept.append(x) or x, {"x": (2,)})
    for use in (lambda x: x + kept[0], lambda x: x[0] * kept[0][0], lambda x: kept[0], lambda x: xs.minimum(x, kept[0])):
        with pytest.raises(TraceError, match="another trace"):
            trace(use, {"x": (2,)})


def test_outputs_keep_shapes_and_kinds():
    graph = trace(
        lambda x, y: (x, 2.0, np.ones((2, 3)), y[..., None], x[0] > 0, np.zeros((0, 2)), np.array(True)),
        {"x": (2, 2), "y": ()},
        "named",
    )
    assert graph.name == "named"
    assert graph.input_shapes == ((2, 2), ())
    assert graph.input_names == ("x", "y")
    assert graph.output_shapes == ((2, 2), (), (2, 3), (1,), (2,), (0, 2), ())
    out = evaluate(graph, np.arange(8.0).reshape(2, 2, 2), np.ones(2))
    assert [x.shape for x in out] == [(2, 2, 2), (2,), (2, 2, 3), (2, 1), (2, 2), (2, 0, 2), (2,)]
    np.testing.assert_array_equal(out[4], [[False, True], [True, True]])


def test_a_traced_graph_can_be_traced_again():
    def fn(x):
        return arrays.stack([np.sin(x[0]) * x[1], x[0] - x[1]]), x.sum()

    graph = trace(fn, {"x": (2,)})
    again = trace(lambda x: evaluate(graph, x), {"x": (2,)}, graph.name)
    assert again.op == graph.op
    assert again.args == graph.args
    assert again.outputs == graph.outputs


@pytest.mark.parametrize("n", [1, 4, 12, 15])
def test_solve_spd(n):
    def fn(a, b):
        m = a @ arrays.transpose(a) + np.eye(n)
        return arrays.solve_spd(m, b), m @ arrays.solve_spd(m, b) - b

    a, b = RNG.normal(size=(3, n, n)), RNG.normal(size=(3, n, 2))
    graph = agrees(fn, a, b, tolerance=1e-11)
    assert ("block" in graph.op) == (n > 12)
    batched = trace(lambda a, b: fn(a[None], b)[0], {"a": (n, n), "b": (4, n, 2)})
    b4 = RNG.normal(size=(3, 4, n, 2))
    np.testing.assert_allclose(evaluate(batched, a, b4)[0], fn(a[:, None], b4)[0], rtol=1e-10, atol=1e-12)


def test_solve_spd_keeps_branch_zeros():
    """Two branches on a trunk: no product crosses between the branches."""
    pattern = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 0, 0, 1, 1], [1, 0, 0, 1, 1.0]])
    dense = trace(lambda m, b: arrays.solve_spd(m, b), {"m": (5, 5), "b": (5, 1)})
    branched = trace(lambda m, b: arrays.solve_spd(m * pattern, b), {"m": (5, 5), "b": (5, 1)})
    assert branched.count()["mul"] <= dense.count()["mul"] - 14
    m = np.eye(5) * 6 + pattern * 0.5
    b = RNG.normal(size=(5, 1))
    np.testing.assert_allclose(evaluate(branched, m, b)[0], np.linalg.solve(m * pattern, b), rtol=1e-13)


def test_solve_spd_of_what_is_not_positive_definite():
    """Each by itself is nan, also where rounding alone decides, and the others are solved."""
    good, thin = np.diag([2.0, 3.0]), np.array([[1.0, 1.0], [1.0, 1.0 + 1e-16]])
    batch = np.stack([good, -good, np.full((2, 2), np.nan), thin, 2 * good])
    found = arrays.solve_spd(batch, np.ones((2, 1)))[..., 0]
    np.testing.assert_allclose(found[[0, 4]], [[1 / 2, 1 / 3], [1 / 4, 1 / 6]], rtol=1e-15)
    assert np.isnan(found[1:4]).all()
    assert np.isnan(arrays.solve_spd(-good, np.ones((2, 3)))).all()


def test_solve_spd_on_other_arrays():
    a, b = RNG.normal(size=(3, 1, 4, 4)), RNG.normal(size=(2, 4, 3))
    m = a @ arrays.transpose(a) + np.eye(4)
    expected = np.linalg.solve(m, b)
    np.testing.assert_allclose(arrays.solve_spd(m, b), expected, rtol=1e-10)
    torch = pytest.importorskip("torch")
    t, s = torch.as_tensor(m), torch.as_tensor(b)
    for pair in ((t, s), (t, b), (m, s)):
        np.testing.assert_allclose(arrays.solve_spd(*pair).numpy(), expected, rtol=1e-10)
    jax = pytest.importorskip("jax")
    for pair in ((jax.numpy.asarray(m), b), (m, jax.numpy.asarray(b))):
        np.testing.assert_allclose(np.asarray(arrays.solve_spd(*pair)), expected, rtol=2e-3, atol=2e-3)  # maybe float32


def test_where_on_all_arrays():
    x = RNG.normal(size=(5, 3))
    expected = np.where(x > 0, x, 0.0)
    np.testing.assert_array_equal(arrays.where(x > 0, x, 0.0), expected)
    graph = trace(lambda x: arrays.where(x > 0, x, 0.0), {"x": (3,)})
    np.testing.assert_array_equal(evaluate(graph, x)[0], expected)
    torch = pytest.importorskip("torch")
    t = torch.as_tensor(x)
    np.testing.assert_array_equal(arrays.where(t > 0, t, 0.0).numpy(), expected)
    np.testing.assert_array_equal(arrays.where(t > 0, x, torch.zeros(3, dtype=t.dtype)).numpy(), expected)
    jax = pytest.importorskip("jax")
    j = jax.numpy.asarray(x)
    np.testing.assert_allclose(np.asarray(arrays.where(j > 0, j, 0.0)), expected, rtol=1e-6)


def test_threads_trace_at_once():
    def fn(x):
        for _ in range(60):
            x = np.sin(x) * x[::-1] + x
        return x

    alone = trace(fn, {"x": (8,)})
    graphs = [None] * 8

    def work(k):
        graphs[k] = trace(fn, {"x": (8,)})

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(graph == alone for graph in graphs)


def test_a_long_chain_needs_no_recursion():
    def fn(x):
        y = x[0]
        for _ in range(50_000):
            y = y * x[1] + x[2]
        return y

    graph = trace(fn, {"x": (3,)})
    assert len(graph) == 100_003
    assert np.isfinite(evaluate(graph, np.array([0.5, 0.9, 0.1]))[0])


@settings(max_examples=150, deadline=None)
@given(programs(), st.integers(0, 2**32 - 1))
def test_random_programs(program, seed):
    x = np.random.default_rng(seed).uniform(-2, 2, size=(5, 3))
    graph = well_formed(trace(lambda x: run(program, x, xs), {"x": (3,)}))
    theirs = run(program, x, np)
    with np.errstate(all="ignore"):
        mine = evaluate(graph, x)[0]
    usual = np.abs(theirs) < 1e6
    np.testing.assert_allclose(mine[usual], theirs[usual], rtol=1e-9, atol=1e-9)


def test_an_element_behaves_as_a_numpy_scalar():
    def fn(x):
        assert isinstance(x[0], Expr)
        assert x[0].shape == ()
        assert x[0].ndim == 0
        assert x[0][..., None].shape == (1,)
        assert (x[0] * np.ones((2, 2))).shape == (2, 2)
        assert type(x.sum()) is type(x)
        assert arrays.namespace(x[0]) is xs
        assert arrays.namespace(x.sum()) is xs
        return x[0] * np.ones((2, 2)), np.ones(2) - x[1]

    agrees(lambda x: fn(x) if x.dtype == object else (x[0] * np.ones((2, 2)), np.ones(2) - x[1]), RNG.normal(size=(4, 2)))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"op": ["input", "const", "nothing"]}, "no such operation"),
        ({"args": [(), (), (0,)]}, "wrong number of arguments"),
        ({"args": [(), (), (0, 2)]}, "does not stand before it"),
        ({"args": [(), (), (0, -1)]}, "does not stand before it"),
        ({"op": ["input", "const", "and"]}, "argument 0 is input"),
        ({"op": ["input", "const", "lt"]}, "is an output"),
        ({"value": [(0, 3), 2.0, None]}, "no such input"),
        ({"value": [(0, 0), -1, None]}, "its value is -1"),
        ({"outputs": ((2, 2),)}, "has 2 entries"),
    ],
)
def test_unsound_graphs_are_found(change, what):
    sound = {"op": ["input", "const", "add"], "args": [(), (), (0, 1)], "value": [(0, 0), 2.0, None], "outputs": ((2,),)}
    rest = {"name": "f", "input_names": ("x",), "input_shapes": ((2,),), "output_shapes": ((1,),)}
    verify(Graph(**rest, **sound))
    with pytest.raises(AssertionError, match=what):
        verify(Graph(**rest, **(sound | change)))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer")
def test_an_interrupt_while_tracing_is_an_interrupt():
    """NumPy's loops over objects went on after it and gave a SystemError."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTS], capture_output=True, text=True, check=False, env=os.environ | {"COADJOINT_CACHE": "off"}
    )
    assert done.returncode == 0, done.stderr


INTERRUPTS = """
import signal, coadjoint as cj
robot = cj.load("panda")
cj.trace(cj.forward_dynamics_derivatives, cj.load("planar2r"))
signal.signal(signal.SIGALRM, signal.default_int_handler)
for k in range(20):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.0051 * k)
            cj.trace(cj.forward_dynamics_derivatives, robot)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
"""


BOOLEAN = (np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert)


@pytest.mark.parametrize("ufunc", sorted(xs._UFUNCS, key=lambda f: f.__name__), ids=lambda f: f.__name__)
def test_every_function_of_numpy_on_symbols(ufunc):
    """On numbers of either sign, equal ones among them; on truth values where it takes these."""
    signed = np.array([[0.3, 0.3], [-0.7, 0.4], [0.8, -0.2], [-0.5, -0.5], [0.0, 0.6], [0.9, 0.13]])

    def fn(x):
        given = [x[k] > 0.35 for k in range(ufunc.nin)] if ufunc in BOOLEAN else [x[k] for k in range(ufunc.nin)]
        given = [x[0], 2.5] if ufunc is np.power else given
        return np.where(ufunc(*given), 2.0, 1.0) if ufunc in BOOLEAN or "equal" in ufunc.__name__ else ufunc(*given) * 1.0

    for inputs in (signed, np.abs(signed) + 0.05):
        with np.errstate(all="ignore"):
            finite = np.array([np.isfinite(fn(x)) for x in inputs])
            agrees(fn, inputs[finite])
    assert finite.sum() > 3


@pytest.mark.parametrize("exponent", [0.3, -0.4, 0.5, 1.7, 2, -3, 2.5, -2.5, 64.5, 65.0, 70.3])
def test_powers(exponent):
    x = np.array([[0.3], [1.1], [2.0]])
    agrees(lambda x: x[0] ** exponent, x, tolerance=1e-12)


def test_truth_values_are_numbers_in_arithmetic():
    x = np.array([[0.3, 0.3], [1.1, -0.4], [-2.0, 0.7]])
    agrees(lambda x: tuple(f(x[0] > x[1]) for f in (lambda t: t - 2.0, lambda t: 2.0 - t, lambda t: t + 2.0, lambda t: t * 3.0)), x)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (-1, 0), ()], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_over_any_axes(axis, keepdims):
    x = np.random.default_rng(3).normal(size=(9, 2, 3))

    def fn(x):
        y = x.reshape(2, 3)
        greatest, least = np.max(y, axis=axis, keepdims=keepdims), y.min(axis=axis, keepdims=keepdims, initial=0.5)
        some, every = np.any(y > 0.8, axis=axis, keepdims=keepdims), np.all(y > -0.8, axis=axis, keepdims=keepdims)
        return greatest, least, np.where(some, 1.0, 0.0), np.where(every, 1.0, 0.0)

    agrees(fn, x.reshape(9, 6))


def test_a_traced_graph_takes_batches_of_symbols():
    inner = trace(lambda x, c: (np.sin(x) * x.sum(), x[0] * c), {"x": (3,), "c": ()})
    y = np.random.default_rng(5).normal(size=(2, 4, 3))
    outer = trace(lambda y: evaluate(inner, y, y[0, 1]), {"y": (4, 3)})
    many, one = evaluate(outer, y)
    np.testing.assert_allclose(many, np.sin(y) * y.sum(-1, keepdims=True), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(one, y[..., 0] * y[:, :1, 1], rtol=1e-13, atol=1e-13)
