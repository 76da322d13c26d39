"""Native functions take what NumPy users give them, and refuse the rest with the errors of the as-written path."""

from __future__ import annotations

import gc
import inspect
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import coadjoint as cj
from coadjoint.arguments import check_inputs
from coadjoint.errors import CoadjointError, ShapeError
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.runtime import builtin, native, threads
from coadjoint.kernel.runtime.arguments import as_rows
from coadjoint.kernel.runtime.native import NativeError, build
from graph_helpers import SMOOTH, Maker, random_graph

pytestmark = pytest.mark.native

GRAPH = random_graph(3, 120, shapes=((4,), (2, 3), ()), out=((5,), (2, 2), ()), ops=SMOOTH)
CORES = GRAPH.input_shapes


class Called:
    """A compiled function that is called as users call it: by its built-in function."""

    def __init__(self, f):
        self.f, self.call = f, f.call

    def __call__(self, *arrays, **named):
        return self.call(*arrays, **named)

    def __getattr__(self, name):
        return getattr(self.f, name)

    def __repr__(self):
        return repr(self.f)


@pytest.fixture(scope="module")
def f():
    os.environ["COADJOINT_NATIVE"] = "1"
    return Called(build(GRAPH))


@pytest.fixture(scope="module")
def single():
    """x ↦ 2x + y of vectors: one result."""
    os.environ["COADJOINT_NATIVE"] = "1"
    make = Maker((3,), (3,))
    two = make.const(2.0)
    return Called(build(make.graph([make("add", make("mul", two, a), b) for a, b in zip(*make.inputs, strict=True)], name="line")))


def sample(*batches, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, batch + core).astype(dtype) for batch, core in zip(batches, CORES, strict=True)]


def agree(got, inputs):
    batch = check_inputs(GRAPH.input_names, CORES, inputs)
    if 0 in batch:
        assert [g.shape for g in got] == [batch + core for core in GRAPH.output_shapes]
        return
    expected = evaluate(GRAPH, *[np.broadcast_to(x, batch + c) for x, c in zip(inputs, CORES, strict=True)])
    for g, e, core in zip(got, expected, GRAPH.output_shapes, strict=True):
        assert g.shape == batch + core
        np.testing.assert_allclose(g, e, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 17, 63, 64, 65, 200, 3000])
def test_batches_of_any_size(f, n):
    inputs = sample((n,), (n,), (n,))
    agree(f(*inputs), inputs)
    agree(f.call(*inputs), inputs)


@pytest.mark.parametrize(
    "batches",
    [
        ((), (), ()),
        ((1,), (1,), (1,)),
        ((7,), (), (7,)),
        ((), (5,), ()),
        ((3, 1), (4,), ()),
        ((2, 3, 4), (3, 4), (2, 1, 1)),
        ((1, 6), (5, 1), (1, 1)),
        ((0,), (0,), (0,)),
        ((4, 0), (), (1, 0)),
    ],
)
def test_batch_axes_broadcast(f, batches):
    inputs = sample(*batches)
    agree(f(*inputs), inputs)


def test_strides_of_every_kind(f):
    a, b, c = sample((12,), (12,), (12,))
    views = [
        [a[::2], b[::2], c[::2]],
        [a[::-1], b[::-1], c[::-1]],
        [a[:, ::-1], b[:, :, ::-1], c],
        [np.asfortranarray(a), np.asfortranarray(b), c],
        [a.reshape(3, 4, 4).swapaxes(0, 1), b.reshape(3, 4, 2, 3).swapaxes(0, 1), c.reshape(3, 4).T],
        [np.broadcast_to(a[0], (12, 4)), b, np.broadcast_to(c[0], 12)],
        [np.hstack([a, a])[:, 2:6], b, np.column_stack([c, c])[:, 1]],
    ]
    for inputs in views:
        agree(f(*inputs), inputs)
    raw = np.zeros(12 * 4 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(12, 4)  # not aligned
    raw[...] = a
    assert not raw.flags.aligned
    agree(f(raw, b, c), [raw, b, c])
    agree(f(a.astype(">f8"), b, c), [a, b, c])


def test_kinds_of_numbers(f):
    a, b, c = sample((6,), (6,), (6,))
    small = a.astype(np.float32)
    agree(f(small, b, c), [small.astype(float), b, c])
    whole = np.arange(24).reshape(6, 4)
    agree(f(whole, b, c), [whole.astype(float), b, c])
    agree(f(a.tolist(), b.tolist(), c.tolist()), [a, b, c])
    one = [a[0], b[0], c[0]]
    agree(f(a[0], b[0], float(c[0])), one)
    agree(f(a[0], b[0], np.float64(c[0])), one)


def test_single_precision():
    f = build(GRAPH, np.float32)
    inputs = sample((19,), (19,), (19,), dtype=np.float32)
    for got, expected in zip(f(*inputs), evaluate(GRAPH, *[x.astype(float) for x in inputs]), strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_arguments_by_name(f):
    a, b, c = sample((3,), (3,), (3,))
    for got in (f(a, x1=b, x2=c), f(x2=c, x0=a, x1=b), f.call(a, x2=c, x1=b)):
        agree(got, [a, b, c])


def test_out(single):
    x, y = np.random.default_rng(0).normal(size=(2, 11, 3))
    exact = 2 * x + y
    for out in (np.empty((11, 3)), np.empty((22, 3))[::2], np.empty((11, 6))[:, :3], np.empty((3, 11)).T):
        assert single(x, y, out=out) is out
        assert np.array_equal(out, exact)
        out[...] = 0
        assert single.call(x, y, out=out) is out
        assert np.array_equal(out, exact)
    out = np.empty((2, 11, 3))
    assert np.array_equal(single(np.stack([x, y]), y, out=out)[0], exact)
    out = np.empty(3)
    assert single(x[0], y[0], out=out) is out
    assert np.array_equal(out, exact[0])


def test_out_that_overlaps_an_input(single):
    x, y = np.random.default_rng(0).normal(size=(2, 200, 3))
    exact = 2 * x + y
    memory = np.zeros((201, 3))
    for place, out in ((memory[:200], memory[1:]), (memory[1:], memory[:200]), (memory[:200], memory[:200])):
        place[...] = x
        assert single(place, y, out=out) is out
        assert np.array_equal(out, exact)


def test_out_of_several_results(f):
    inputs = sample((9,), (9,), (9,))
    outs = tuple(np.empty((9, *core)) for core in GRAPH.output_shapes)
    assert f(*inputs, out=outs) is outs
    agree(outs, inputs)
    assert f(*inputs, out=list(outs))[0] is outs[0]
    with pytest.raises(CoadjointError, match="tuple of 3 arrays"):
        f(*inputs, out=outs[0])
    with pytest.raises(CoadjointError, match=r"out\[1\] and out\[2\] share memory"):
        f(*inputs, out=(outs[0], outs[1], outs[1][:, 0, 0]))


def test_wrong_input_says_what_is_expected(f, single):
    a, b, c = sample((3,), (3,), (3,))
    with pytest.raises(ShapeError, match=r"^x0 has shape \(3, 5\); expected \(\.\.\., 4\)"):
        f(np.zeros((3, 5)), b, c)
    with pytest.raises(ShapeError, match=r"^x1 has shape \(3,\); expected \(\.\.\., 2, 3\)"):
        f(a, np.zeros(3), c)
    with pytest.raises(ShapeError, match=r"x0 \(3,\), x1 \(4,\), x2 \(3,\)"):
        f(a, np.zeros((4, 2, 3)), c)
    with pytest.raises(ShapeError, match=r"x0 is .*; expected real numbers"):
        f([[1.0], [1.0, 2.0]], b, c)
    for bad in (a.astype(complex), np.array([["a"] * 4]), np.array([[None] * 4])):
        with pytest.raises(CoadjointError, match=r"x0 is .*; expected real numbers"):
            f(bad, b, c)
    with pytest.raises(TypeError, match=r"takes 3 arrays \(x0, x1, x2\); 2 given"):
        f(a, b)
    with pytest.raises(TypeError, match="4 given"):
        f(a, b, c, c)
    with pytest.raises(TypeError, match="unexpected or repeated argument 'y'"):
        f(a, b, c, y=c)
    with pytest.raises(TypeError, match="unexpected or repeated argument 'x0'"):
        f(a, b, c, x0=a)
    with pytest.raises(CoadjointError, match="threads is 0; expected a whole number, 1 or more"):
        f(a, b, c, threads=0)
    x = np.zeros((4, 3))
    read_only = np.zeros((4, 3))
    read_only.flags.writeable = False
    with pytest.raises(CoadjointError, match="out is read-only"):
        single(x, x, out=read_only)
    with pytest.raises(ShapeError, match=r"out has shape \(4, 4\); the result has shape \(4, 3\)"):
        single(x, x, out=np.zeros((4, 4)))
    with pytest.raises(ShapeError, match=r"out has shape \(1, 3\); the result has shape \(3,\)"):
        single(x[0], x[0], out=np.zeros((1, 3)))
    with pytest.raises(CoadjointError, match="out has dtype float32; the result has dtype float64"):
        single(x, x, out=np.zeros((4, 3), np.float32))
    with pytest.raises(CoadjointError, match="out is a list"):
        single(x, x, out=[0])


def test_fast_and_general_way_agree_to_the_bit(f, monkeypatch):
    """The checks in machine code and in Python lead to the same numbers; without the former all still works."""
    inputs = sample((50,), (50,), ())
    fast = f.call(*inputs)
    for got, expected in zip(f.compute(*inputs), fast, strict=True):
        assert np.array_equal(got, expected)
    monkeypatch.setattr(builtin, "direct", lambda: False)
    plain = build(GRAPH)
    assert plain.call is plain
    for got, expected in zip(plain(*inputs), fast, strict=True):
        assert np.array_equal(got, expected)


def test_keywords_in_machine_code():
    """It knows `out` and `threads=1` in any order, and None for either; the rest goes the general way."""
    seen = []
    f = build(GRAPH, otherwise=lambda *arrays, **named: seen.append(named))
    inputs = sample((9,), (9,), (9,))
    outs = tuple(np.empty((9, *core)) for core in GRAPH.output_shapes)
    for named in ({"threads": 1}, {"threads": None}, {"out": None}, {"out": None, "threads": 1}, {"threads": None, "out": None}):
        agree(f.call(*inputs, **named), inputs)
    for named in ({"out": outs}, {"threads": 1, "out": outs}, {"out": outs, "threads": None}):
        for x in outs:
            x[...] = 0
        assert f.call(*inputs, **named) is outs
        agree(outs, inputs)
    assert not seen
    others = [
        {"threads": 2},
        {"threads": 1.0},
        {"thread": 1},
        {"out": outs, "threads": 0},
        {"out": 1},
        {"a": 1, "out": 1, "threads": 1},
    ]
    for named in others:
        assert f.call(*inputs, **named) is None
    assert seen == others


def test_machine_code_understands_this_numpy():
    """On the platforms we test; elsewhere the general way serves."""
    assert builtin.direct()


def test_slow_gets_what_the_fast_way_does_not_know():
    seen = []

    def slow(*arrays, **named):
        seen.append((arrays, named))
        return "slow"

    f = build(GRAPH, otherwise=slow)
    a, b, c = sample((3,), (3,), (3,))
    agree(f.call(a, b, c), [a, b, c])
    assert not seen
    assert f.call(a, b, 1.0) == "slow"
    assert f.call(a.tolist(), b, c, out=None) == "slow"
    assert seen[1] == ((a.tolist(), b, c), {"out": None})
    agree(f.compute(a, b, c), [a, b, c])


def test_it_looks_like_a_function(f):
    assert str(inspect.signature(f.call)) == "(x0, x1, x2, /, *, out=None, threads=None)"
    assert f.call.__name__ == "made"
    assert "made(x0, x1, x2" in repr(f)


def test_references_are_counted(single):
    x, y, out = np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 3))
    gc.collect()  # what earlier tests left refers to the same dtype
    before = [sys.getrefcount(v) for v in (x, y, out, x.dtype)]
    for _ in range(1000):
        single.call(x, y)
        single.call(x, y, out=out)
        single.call(x.tolist(), y, out=out)
    assert [sys.getrefcount(v) for v in (x, y, out)] == before[:3]
    assert abs(sys.getrefcount(x.dtype) - before[3]) < 500  # one of three calls that kept a reference would add 1000
    result = single.call(x, y)
    assert sys.getrefcount(result) == 2


def test_code_is_freed_with_its_last_function():
    make = Maker((2,))
    f = build(make.graph([make("add", *make.inputs[0])]))
    call, code = f.call, weakref.ref(f.kernel.code)
    del f
    gc.collect()
    assert call(np.ones(2)) == [2.0]  # a built-in function keeps its code
    assert code() is not None
    del call
    gc.collect()
    assert code() is None


def test_llvm_loads_what_we_do_not_link(monkeypatch):
    """As on processors and systems whose object code we do not know."""
    from coadjoint.kernel.runtime import elf

    monkeypatch.setattr(elf, "loads_here", lambda: False)
    graph = random_graph(8, 2600, ops=SMOOTH)
    description, payload = native.compile_graph(graph, "float64")
    assert description["how"] == {"kind": "object"}
    kernel = native.Kernel(description, payload)
    f = native.CompiledFunction(kernel)
    code = weakref.ref(kernel.code)
    x = [np.random.default_rng(0).uniform(-1, 1, (50, *shape)) for shape in graph.input_shapes]
    for got, expected in zip(f.call(*x), evaluate(graph, *x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)
    del f, kernel
    gc.collect()
    assert code() is None


def test_threads_share_a_batch(f):
    inputs = sample((1001,), (1001,), ())
    one = f(*inputs, threads=1)
    for n in (2, 3, 7, 2000):
        for got, expected in zip(f(*inputs, threads=n), one, strict=True):
            assert np.array_equal(got, expected)
    agree(one, inputs)


def test_parts_of_a_shared_batch_cover_it():
    for n in (1, 7, 64, 65, 1000):
        for count in (1, 2, 3, 8):
            parts = []

            def work(start, stop, parts=parts):
                parts.append((start, stop))
                yield 0

            assert threads.share(work, threads.split(n, count, 8, 100), count) == 0
            assert [k for start, stop in sorted(parts) for k in range(start, stop)] == list(range(n))
            assert all(start % 8 == 0 for start, _ in parts)
            assert all(stop - start < 100 + 16 for start, stop in parts)


def test_many_threads_call_and_compile_at_once():
    graphs = [random_graph(seed, 60, shapes=((3,),), out=((4,),), ops=SMOOTH) for seed in range(4)]
    x = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    expected = [evaluate(g, x)[0] for g in graphs]
    wrong = []

    def work(number):
        for turn in range(4):
            k = (number + turn) % 4
            g = build(graphs[k])
            for _ in range(10):
                if not np.allclose(g(x, threads=1 + turn % 2), expected[k], rtol=1e-12, atol=1e-12):
                    wrong.append(k)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of forking with threads
@pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")  # and so does JAX, once it was used
def test_fork_after_use(f):
    """A child calls, shares a batch among threads of its own, and compiles, whatever the parent's threads did."""
    inputs = sample((1001,), (1001,), ())
    one = f(*inputs, threads=2)
    stop = threading.Event()

    def compile_on():
        seed = 100
        while not stop.is_set():
            build(random_graph(seed, 40, shapes=((3,),), out=((2,),), ops=SMOOTH))
            seed += 1

    worker = threading.Thread(target=compile_on)
    worker.start()
    try:
        for seed in range(3):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    fine = all(np.array_equal(a, b) for a, b in zip(f(*inputs, threads=2), one, strict=True))
                    graph = random_graph(50 + seed, 40, shapes=((3,),), out=((2,),), ops=SMOOTH)
                    x = np.ones((5, 3))
                    fine &= np.allclose(build(graph)(x), evaluate(graph, x)[0], rtol=1e-12)
                    code = 0 if fine else 2
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        worker.join()


def test_switched_off(monkeypatch):
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    assert not native.available()
    assert "COADJOINT_NATIVE" in native.why_not()
    with pytest.raises(NativeError, match="COADJOINT_NATIVE"):
        build(GRAPH)


def test_without_llvmlite():
    code = """
import sys
sys.modules["llvmlite"] = None
import numpy as np, coadjoint
from coadjoint.kernel.runtime import native
assert not native.available() and "llvmlite" in native.why_not(), native.why_not()
assert coadjoint.lie.so3.exp(np.zeros(3)).shape == (3, 3)
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "COADJOINT_NATIVE": "1"})


@pytest.mark.parametrize(("file", "text"), [("__init__", "raise ImportError('no LLVM')"), ("binding", "raise OSError('no LLVM')")])
def test_an_llvmlite_that_cannot_be_loaded(file, text, tmp_path):
    """Installed, but not for this machine: functions run as written, and `why_not` has the reason."""
    (tmp_path / "llvmlite").mkdir()
    (tmp_path / "llvmlite" / "__init__.py").write_text("__version__ = '0'")
    (tmp_path / "llvmlite" / f"{file}.py").write_text(text)
    code = """
import numpy as np, coadjoint as cj
from coadjoint.kernel.runtime import native
robot = cj.load("planar2r")
assert np.isfinite(cj.forward_dynamics(robot, np.ones(2), np.ones(2), np.ones(2))).all()
assert cj.compile(cj.mass_matrix, robot)(np.ones((3, 2))).shape == (3, 2, 2)
assert native.why_not() == "no LLVM", native.why_not()
"""
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    env = {**os.environ, "PYTHONPATH": paths, "COADJOINT_CACHE": "off", "COADJOINT_NATIVE": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_import_does_not_import_llvm():
    code = "import sys, coadjoint, coadjoint.kernel.runtime.native; assert not any(m.startswith('llvmlite') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_floating_point_types():
    with pytest.raises(CoadjointError, match="float64 or float32, not int64"):
        build(GRAPH, np.int64)


def test_even_rows():
    """`as_rows` finds the one stride of a batch, or that there is none."""
    x = np.zeros((2, 3, 4))
    assert as_rows(x, (4,), (2, 3))[1] == 32
    assert as_rows(x, (3, 4), (2,))[1] == 96
    assert as_rows(x[:, 0], (4,), (2,))[1] == 96
    assert as_rows(x[0, 0], (4,), (5, 6))[1] == 0
    assert as_rows(x[:, :1], (4,), (2, 3)) is None
    assert as_rows(x[:, ::2], (4,), (2, 2)) is None
    assert as_rows(x.swapaxes(0, 1), (4,), (3, 2)) is None
    assert as_rows(x[..., ::2], (2,), (2, 3)) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_state_is_computed_as_in_a_batch(dtype):
    """One state has code of its own, its angles side by side in vectors: huge, infinite and undefined ones too."""

    def fn(robot, q, v):
        return np.concatenate([np.sin(q) * v[0], np.cos(q) + v, np.exp(v), np.arctan2(q, v), np.sqrt(v * v)])

    robot = cj.load("planar9r")
    call = cj.compile(fn, robot, dtype=dtype)
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 40, 9)).astype(dtype)
    q[:, 3] *= 1e4
    q[5, 4], q[6, 8], q[7, 0], q[8, 1] = 1e22, np.inf, np.nan, -1e300 if dtype == np.float64 else -1e30
    together = call(q, v)
    alone = np.array([call(x, y) for x, y in zip(q, v, strict=True)])
    assert alone.dtype == dtype
    np.testing.assert_array_equal(alone, together)
