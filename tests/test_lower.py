"""Machine code computes what the graph says: operations to the last places, graphs of every size, dense blocks."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

from graph_helpers import ALL, SMOOTH, Maker, lowered, native, of_one_node, random_graph, targets, ulps

pytest.importorskip("llvmlite")

from coadjoint.kernel.emit.entry import define_call
from coadjoint.kernel.emit.llvm import Lanes
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.runtime import elf, jit
from coadjoint.kernel.runtime.target import host
from coadjoint.kernel.schedule import list_schedule, spills
from coadjoint.kernel.schedule.plan import plan

pytestmark = pytest.mark.native

TARGETS = ["host", "one lane", "sse2"]
DTYPES = ["float64", "float32"]


@pytest.fixture(params=TARGETS)
def target(request):
    found = targets()
    if request.param not in found:
        pytest.skip("another processor")
    return found[request.param]


@pytest.fixture(autouse=True)
def _digits():
    """Enough of them for the angle of the largest number."""
    with mp.workprec(1250):
        yield


@cache
def exact(function, digits, *arrays):
    """A function of mpmath at numbers, given as tuples: once for all processors."""
    with mp.workprec(digits):
        return [getattr(mp, function)(*map(mp.mpf, x)) for x in zip(*arrays, strict=True)]


def numbers(x):
    return tuple(x.tolist())


def spread(rng, n, dtype):
    """Numbers of both signs and every size, subnormal ones included."""
    top, bottom = (308, -323) if dtype == "float64" else (38, -45)
    return rng.choice([-1, 1], n) * 10.0 ** rng.uniform(bottom, top, n)


def angles(dtype):
    rng = np.random.default_rng(1)
    near_axes = np.concatenate([np.arange(1, 60), 10 ** np.arange(2, 9), rng.integers(1, 60_000_000, 150)]) * (np.pi / 2)
    borders = np.outer([1e5, 1e6, 1e8], [1 - 1e-7, 1, 1 + 1e-6]).ravel()
    # 5.3e255 comes as near to a multiple of π/2 as any double does.
    hard = [5.319372648326541416707296656673541083813475031793921822105998164685e255, 6381956970095103.0 * 2.0**797]
    some = [rng.uniform(-7, 7, 300), rng.uniform(-1e4, 1e4, 150), rng.uniform(-1e8, 1e8, 150), spread(rng, 300, dtype)]
    large = [1.7e308, 5e-324, *hard] if dtype == "float64" else [3.4e38, 1e-45, 16367173.0 * 2.0**72]
    return np.concatenate([*some, near_axes, -near_axes, np.nextafter(near_axes, 0), borders, large]).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["sin", "cos"])
def test_sine_and_cosine_of_any_angle(op, dtype, target):
    x = angles(dtype)
    f = native(of_one_node(op), dtype, target)
    assert ulps(f(x), exact(op, 1250, numbers(x))) < 1.6
    special = f(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype))
    assert np.isnan(special[:3]).all()
    expected = [0.0, -0.0] if op == "sin" else [1.0, 1.0]
    assert np.array_equal(special[3:], expected)
    assert np.array_equal(np.signbit(special[3:]), np.signbit(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_far_angle_leaves_its_neighbours_alone(dtype, target):
    make = Maker((9,))
    f = native(make.graph([make(op, x) for x in make.inputs[0] for op in ("sin", "cos")]), dtype, target)
    x = np.random.default_rng(0).uniform(-3, 3, (17, 9)).astype(dtype)
    alone = f(x)
    for value in (1e30, np.inf, np.nan):
        y = x.copy()
        y[5, 4] = y[12, 0] = value
        changed = np.zeros((17, 18), bool)
        changed[5, 8:10] = changed[12, :2] = True
        assert np.array_equal(f(y)[~changed], alone[~changed])
        assert not np.array_equal(f(y)[changed], alone[changed])


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponential(dtype, target):
    rng = np.random.default_rng(2)
    low, high = (-750, 712) if dtype == "float64" else (-106, 90)
    x = np.concatenate([rng.uniform(-1, 1, 300), rng.uniform(low, high, 600), 0.1 * np.tanh(spread(rng, 100, dtype))]).astype(dtype)
    f = native(of_one_node("exp"), dtype, target)
    assert ulps(f(x), exact("exp", 200, numbers(x))) < 1.1
    special = f(np.array([np.inf, -np.inf, np.nan, 0.0, 2000.0, -2000.0], dtype))
    assert np.array_equal(special, [np.inf, 0, np.nan, 1, np.inf, 0], equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithm(dtype, target):
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(0.5, 2, 400), abs(spread(rng, 400, dtype)), 1 + 1e-3 * rng.normal(size=300)]).astype(dtype)
    x = x[x > 0]
    f = native(of_one_node("log"), dtype, target)
    assert ulps(f(x), exact("log", 200, numbers(x))) < 1.0
    special = f(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, -1.0, 1.0], dtype))
    assert np.array_equal(special, [np.inf, np.nan, np.nan, -np.inf, -np.inf, np.nan, 0], equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_angle_of_a_point(dtype, target):
    rng = np.random.default_rng(4)
    largest, smallest = (1.7e308, 5e-324) if dtype == "float64" else (3.4e38, 1e-45)
    corner = [largest, smallest, 1.0]
    y = np.concatenate([rng.normal(size=400), spread(rng, 300, dtype), np.repeat(corner, 3)]).astype(dtype)
    x = np.concatenate([rng.normal(size=400), spread(rng, 300, dtype), np.tile(corner, 3)]).astype(dtype)
    f = native(of_one_node("atan2", 2), dtype, target)
    assert ulps(f(y, x), exact("atan2", 200, numbers(y), numbers(x))) < 2.0
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype)
    y, x = np.meshgrid(special, special)
    expected = np.arctan2(y.astype(float), x.astype(float)).astype(dtype)  # NumPy's own float32 can be off by one ulp
    assert np.array_equal(f(y, x), expected, equal_nan=True)
    assert np.array_equal(np.signbit(f(y, x)), np.signbit(np.arctan2(y, x)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ops", [("floor", "sqrt", "abs", "neg"), ("add", "sub", "mul", "div", "min", "max")])
def test_exact_operations(ops, dtype, target):
    special = [0.0, -0.0, 0.5, -0.5, 1, -1, 2.5, -2.5, 2.0**23 + 1, -(2.0**52) - 1, 1e-40, np.inf, -np.inf, np.nan]
    x = np.array(special, dtype)
    arrays = [x] if "neg" in ops else list(np.meshgrid(x, x))
    make = Maker(*[()] * len(arrays))
    graph = make.graph(*([make(op, *[x[0] for x in make.inputs])] for op in ops), shapes=[()] * len(ops))
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, *arrays)
    for op, got, expected in zip(ops, native(graph, dtype, target)(*arrays), wanted, strict=True):
        assert got.dtype == dtype
        assert np.array_equal(got, expected, equal_nan=True), op
        if op not in ("min", "max"):  # of ±0 either may be the smaller
            there = ~np.isnan(expected)
            assert np.array_equal(np.signbit(got)[there], np.signbit(expected)[there]), op


def test_numbers_beyond_single_precision_are_infinities_of_their_sign(target):
    make = Maker(())
    x = make.inputs[0][0]
    f = native(make.graph([make("min", x, make.const(1e300)), make("max", x, make.const(-1e300))]), "float32", target)
    x = np.array([-1.5, 0.0, 3e38], np.float32)
    np.testing.assert_array_equal(f(x), np.stack([x, x], axis=-1))


@pytest.mark.parametrize(
    ("nodes", "target"),
    [(40, "host"), (400, "one lane"), (400, "sse2"), (3000, "host")]
    + [pytest.param(*x, marks=pytest.mark.slow) for x in ((400, "host"), (3000, "one lane"), (3000, "sse2"))],
    indirect=["target"],
)
def test_random_graphs(nodes, target):
    graph = random_graph(nodes, nodes)
    assert nodes < 1000 or len(lowered(graph, "float64", target)[1].chunks) > 3
    f = native(graph, "float64", target)
    for n in [*range(1, 18), 100]:
        rng = np.random.default_rng(n)
        inputs = [rng.uniform(-2, 2, (n, *shape)) for shape in graph.input_shapes]
        for got, expected in zip(f(*inputs), evaluate(graph, *inputs), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("target", TARGETS[:1], indirect=True)
def test_random_graphs_in_single_precision(target):
    graph = random_graph(7, 300, ops=SMOOTH)
    f = native(graph, "float32", target)
    for n in range(1, 20):
        rng = np.random.default_rng(n)
        inputs = [rng.uniform(-1, 1, (n, *shape)).astype("float32") for shape in graph.input_shapes]
        exact = evaluate(graph, *[x.astype("float64") for x in inputs])
        for got, expected in zip(f(*inputs), exact, strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)


def test_a_state_alone_is_the_same_state_in_a_batch():
    graph = random_graph(11, 2500)
    f = native(graph)
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-2, 2, (83, *shape)) for shape in graph.input_shapes]
    together = f(*inputs)
    for k in (0, 1, 41, 80, 82):
        for one, all_ in zip(f(*[x[k] for x in inputs]), together, strict=True):
            assert np.array_equal(one, all_[k])


@pytest.mark.parametrize(
    ("dtype", "target"),
    [("float64", "host"), ("float32", "host"), ("float64", "one lane"), ("float32", "sse2")]
    + [pytest.param(*x, marks=pytest.mark.slow) for x in (("float32", "one lane"), ("float64", "sse2"))],
    indirect=["target"],
)
def test_columns_of_any_number(dtype, target):
    """Inputs and outputs of every width, outputs that are inputs, constants or computed."""
    widths = [1, 2, 3, 5, 8, 63, 64, 71, 130]
    make = Maker(*[(w,) for w in widths])
    constant = [make.const(k) for k in range(max(widths))]
    outputs = [[(x, constant[k], make("neg", x))[k % 3] for k, x in enumerate(row)] for row in make.inputs]
    f = native(make.graph(*outputs), dtype, target)
    for n in (1, 2, 7, 9, 33):
        rng = np.random.default_rng(n)
        inputs = [rng.normal(size=(n, w)).astype(dtype) for w in widths]
        for x, got in zip(inputs, f(*inputs), strict=True):
            k = np.arange(x.shape[1])
            assert np.array_equal(got, np.where(k % 3 == 0, x, np.where(k % 3 == 1, k, -x)))


def spd_graph(n, m, constant=()):
    """A⁻¹B of inputs A (n, n), of which the lower triangle is read, and B (n, m)."""
    make = Maker((n, n), (n, m))
    lower_triangle = [make.inputs[0][i * n + j] for i in range(n) for j in range(i + 1)]
    right = [make.const(constant[k]) if k < len(constant) else x for k, x in enumerate(make.inputs[1])]
    block = make("block", *lower_triangle, *right, value=("spd_solve", n, m))
    return make, [make("part", block, value=k) for k in range(n * m)]


def positive_definite(rng, count, n):
    a = rng.normal(size=(count, n, n + 2))
    return a @ a.swapaxes(-1, -2) + 0.1 * np.eye(n)


SIZES = [(1, 1), (2, 1), (3, 2), (4, 4), (5, 1), (6, 5), (7, 7), (8, 3), (9, 6), (23, 9)]
OLD = {(2, 1), (5, 1), (9, 6)}
"""Sizes that are tried on other processors too, where the time is short."""


@pytest.mark.parametrize(
    ("n", "m", "target"),
    [
        pytest.param(*size, target, marks=[] if target == "host" or size in OLD else pytest.mark.slow)
        for size in SIZES
        for target in TARGETS
    ],
    indirect=["target"],
)
def test_spd_solve(n, m, target):
    make, parts = spd_graph(n, m)
    f = native(make.graph(parts, shapes=[(n, m)]), "float64", target)
    rng = np.random.default_rng(n)
    for count in (1, 3, 4, 50):
        a, b = positive_definite(rng, count, n), rng.normal(size=(count, n, m))
        x = f(a, b)
        assert np.linalg.norm(a @ x - b) < 1e-13 * np.linalg.norm(a) * np.linalg.norm(x)
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_spd_solve_of_another_matrix_is_nan(n):
    make, parts = spd_graph(n, 2)
    f = native(make.graph(parts, shapes=[(n, 2)]))
    rng = np.random.default_rng(n)
    a, b = positive_definite(rng, 30, n), rng.normal(size=(30, n, 2))
    bad = rng.random(30) < 0.4
    a[bad, n // 2, n // 2] -= 1 + np.linalg.norm(a[bad], axis=(1, 2))
    x = f(a, b)
    assert np.isnan(x[bad]).all()
    assert np.isfinite(x[~bad]).all()
    zero = np.zeros((n, n))
    assert np.isnan(f(zero, b[0])).all()


def test_blocks_feed_blocks_and_nodes():
    n, m = 5, 3
    make, parts = spd_graph(n, m, constant=(1.0, 0.0, -2.0))
    again = make(
        "block",
        *[make.inputs[0][i * n + j] for i in range(n) for j in range(i + 1)],
        *[p if k % 2 else make("sin", p) for k, p in enumerate(parts)],
        value=("spd_solve", n, m),
    )
    second = [make("part", again, value=k) for k in range(n * m)]
    sums = [make("add", p, q) for p, q in zip(parts, second, strict=True)]
    graph = make.graph(sums, parts[::-1], shapes=[(n, m), (n * m,)])
    f = native(graph)
    rng = np.random.default_rng(0)
    a, b = positive_definite(rng, 21, n), rng.normal(size=(21, n, m))
    for got, expected in zip(f(a, b), evaluate(graph, a, b), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)


def test_large_blocks_take_scratch_memory_from_the_heap():
    n, m = 70, 2
    make, parts = spd_graph(n, m)
    graph = make.graph(parts, shapes=[(n, m)])
    assert lowered(graph, "float64", host())[1].n_slots * host().vector_bits // 8 > 65536
    f = native(graph)
    rng = np.random.default_rng(0)
    a, b = positive_definite(rng, 9, n), rng.normal(size=(9, n, m))
    np.testing.assert_allclose(f(a, b), np.linalg.solve(a, b), rtol=1e-8, atol=1e-10)


def test_products_are_absorbed_where_that_saves_one():
    make = Maker((4,))
    a, b, c, d = make.inputs[0]
    product = make("mul", a, b)
    outputs = [make("add", product, c), make("sub", d, product), make("sub", make("mul", c, d), a)]
    graph = make.graph(outputs)
    assert len(plan(graph, True, [2, 1]).fused) == 3
    kept = make.graph([*outputs, product])  # it is wanted itself
    assert len(plan(kept, True, [2, 1]).fused) == 1
    x = np.random.default_rng(0).normal(size=(6, 4))
    for g in (graph, kept):
        np.testing.assert_allclose(native(g)(x), evaluate(g, x)[0], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_order_keeps_dependencies_and_lets_no_more_values_wait(seed):
    graph = random_graph(seed, 1500)
    nodes = [k for k in range(len(graph)) if graph.op[k] not in ("input", "const")]
    ordered = list_schedule.sequence(nodes, lambda k: graph.args[k])
    place = {k: n for n, k in enumerate(ordered)}
    assert sorted(ordered) == nodes
    assert all(place[a] < place[k] for k in nodes for a in graph.args[k] if a in place)
    number = {k: n for n, k in enumerate(nodes)}
    args = [[number[a] for a in set(graph.args[k]) if a in number] for k in nodes]
    assert list_schedule._waiting(args, [number[k] for k in ordered]) <= list_schedule._waiting(args, list(range(len(nodes))))


@pytest.mark.parametrize("seed", range(4))
def test_values_that_wait_in_a_chunk_do_not_share_memory(seed):
    parts = plan(random_graph(seed, 2500), True, [2, 1]).chunks
    assert any(spills.local_slots(part, set())[1] > 1 for part in parts)
    for chunk in parts:
        slots, count = spills.local_slots(chunk, set())
        assert set(slots.values()) == set(range(count))
        lives: dict[int, list[tuple[int, int]]] = {}
        for k, slot in slots.items():
            times = [n for n, step in enumerate(chunk.steps) if k in step.defs or k in step.uses]
            lives.setdefault(slot, []).append((times[0], times[-1]))
        for spans in lives.values():
            assert all(a[1] < b[0] for a, b in pairwise(sorted(spans)))


def test_slots_are_used_again():
    """A long chain needs no more scratch memory than a short one."""
    sizes = []
    for n in (6000, 18000):
        make = Maker((3,))
        x, y, z = make.inputs[0]
        for _ in range(n // 3):
            x, y, z = make("add", make("mul", x, y), z), make("sub", make("mul", y, z), x), make("mul", x, z)
        scheme = plan(make.graph([x, y, z]), True, [2, 1])
        assert len(scheme.chunks) > 3
        sizes.append(scheme.n_slots)
    assert sizes[0] == sizes[1] < 10


@pytest.mark.parametrize("dtype", DTYPES)
def test_code_needs_nothing_from_outside(dtype, target):
    """Not libm nor a run-time library: such a name, unresolved, would end the process."""
    graph = random_graph(5, 500, ops=ALL)
    module, _ = lowered(graph, dtype, target)
    define_call(module, Lanes(dtype, target.lanes(dtype)), graph.input_shapes, graph.output_shapes)
    object_code = jit.compile_ir(module.text(), target)
    if not object_code.startswith(b"\x7fELF") or "x86_64" not in target.triple:
        pytest.skip("another format of object code")
    linked = elf.link(object_code)
    assert linked is not None
    assert set(linked.symbols) == {"run", "call", "context"}
