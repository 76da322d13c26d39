"""Every kernel is compared with the graph as traced: wrong kernels are found, right ones are not suspected."""

import json
import pickle

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import KernelWarning
from coadjoint.kernel import selftest
from coadjoint.kernel.passes import reassociate
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.runtime import cache, native
from coadjoint.kernel.runtime.function import CompiledFunction
from coadjoint.kernel.trace.trace import trace
from fuzz._mechanisms import mechanism
from random_robots import ALL_KINDS, random_robot

pytestmark = pytest.mark.native


def two_balls():
    """Two ball joints about one point, the second body's centre of mass there: its gravity force is zero."""
    T, c = np.eye(4), (0.25, 0.1, 0.0)
    T[:3, 3] = (0.25, 0, -0.3)
    ball = cj.Joint.spherical(point=c)
    first = cj.Link.solid("a", "base", ball, mass=0.7, com=(0.25, 1.0, 0.1), inertia=0.1)
    return cj.Robot("balls", [first, cj.Link.solid("b", "a", ball, T, mass=0.7, com=c, inertia=0.1)])


def sum_with_minus_one(table, depth, terms):
    """The sum as it once was: a partial sum that cancels is -1, which goes on as the number of a node, the last one."""
    terms.sort(key=lambda term: depth[term[0]])
    total, _ = terms.pop(next(n for n, (_, minus) in enumerate(terms) if not minus))
    for k, minus in terms:
        total = table.sub(total, k) if minus else table.add(total, k)
        if table.op[total] == "const" and table.value[total] == 0.0:
            total = len(table.op) - 2  # the last but this 0, which once was no node
    return total


def test_sums_that_cancel():
    robot = two_balls()
    q = robot.random(0)
    np.testing.assert_allclose(cj.gravity_force(robot, q), cj.gravity_force.source(robot, q), atol=1e-14)


@pytest.fixture
def old_sum(monkeypatch, tmp_path):
    """A robot in whose gravity force a sum cancels while sums are reassociated as they once were; reports go to the folder."""
    monkeypatch.setattr(reassociate, "_sum", sum_with_minus_one)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("COADJOINT_CACHE", "off")
    native._alive.clear()  # a kernel of an equal robot may be alive
    return mechanism(np.random.default_rng(537))


def test_the_old_sum_is_caught(old_sum, tmp_path):
    robot = old_sum
    q = robot.random(0)
    with pytest.warns(KernelWarning, match=r"gravity_force does not compute what its source does.*please report it") as seen:
        wrong = cj.gravity_force(robot, q)
    assert len(seen) == 1
    np.testing.assert_array_equal(wrong, cj.gravity_force.source(robot, q))  # as written
    (report,) = tmp_path.iterdir()
    assert str(report) in str(seen[0].message)
    content = json.loads(report.read_text())
    assert content["traced"]["name"] == "gravity_force"
    assert len(content["compiled"]["op"]) == len(content["compiled"]["args"])
    cj.gravity_force(robot, q)  # no second warning


def test_compiled_functions_fall_back(old_sum):
    robot = old_sum
    q = robot.random(0, 3)
    with pytest.warns(KernelWarning):
        f = cj.compile(cj.gravity_force, robot)
    np.testing.assert_allclose(f(q), cj.gravity_force.source(robot, q), atol=1e-14)


@pytest.mark.parametrize("seed", [0, 1, 3, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 4, 5))])
def test_right_kernels_are_not_suspected(seed):
    robot = random_robot(seed, 5, ALL_KINDS, mimic=seed % 2 == 0, massless=True)
    q, v, a = robot.random(1), np.ones(robot.nv), np.ones(robot.nv)
    for fn, arrays in ((cj.inverse_dynamics, (q, v, a)), (cj.forward_dynamics, (q, v, a)), (cj.coriolis_matrix, (q, v))):
        fn(robot, *arrays)  # a warning would be an error here
        fn(robot, *(x.astype(np.float32) for x in arrays))


CHOICES = {
    "tie": lambda x: np.where((x[0] + x[1] + x[2]) - (x[0] + (x[1] + x[2])) > 0, x, -x),
    "cut": lambda x: np.arctan2((x[0] + x[1] + x[2]) - (x[0] + (x[1] + x[2])), -1.0 - x * x),
    "signed zero": lambda x: np.arctan2(np.floor(abs(x[0]) * 0.1) * (x * x) - 2.0 * np.floor(abs(x[0]) * 0.1), -1.0 - x * x),
    "pole": lambda x: 1.0 / ((x[0] + x[1] + x[2]) - (x[0] + (x[1] + x[2]))),
    "root": lambda x: np.sqrt((x[0] * 0.1 + x[1] * 0.1) - (x[0] + x[1]) * 0.1),
    "cancels": lambda x: ((x + 1e8) - x - 1e8) * 1e8,
    "floor": lambda x: np.floor((x[0] + 0.3) + 0.7 - x[0]),
    "huge": lambda x: np.exp(300.0 * x) * 1e20,
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rounding_is_no_error(name, dtype):
    """Functions whose results rounding decides."""
    native.build(simplify(trace(CHOICES[name], {"x": (3,)}, name)), dtype)


@pytest.mark.parametrize("place", range(0, 60, 7))
def test_one_wrong_node_is_found(place):
    """An addition made a subtraction, anywhere in inverse dynamics."""
    robot = cj.load("planar2r")
    graph = cj.trace(cj.inverse_dynamics, robot)
    sums = [k for k, op in enumerate(graph.op) if op in ("add", "sub")]
    op = list(graph.op)
    k = sums[place % len(sums)]
    op[k] = "sub" if op[k] == "add" else "add"
    wrong = type(graph)(**{**vars(graph), "op": op})
    run = lambda *x: evaluate(wrong, *x)
    assert selftest.disagreement(graph, "float64", run)
    assert not selftest.disagreement(graph, "float64", lambda *x: evaluate(graph, *x))


def test_a_kernel_from_the_cache_is_checked(monkeypatch, tmp_path):
    """Another graph's code under this graph's name is not used."""
    monkeypatch.setenv("COADJOINT_CACHE", str(tmp_path))
    right = trace(lambda x: x * 3.0, {"x": (2,)}, "f")
    wrong = trace(lambda x: x * 4.0, {"x": (2,)}, "f")
    native.build(right, key="right")
    native.build(wrong, key="wrong")
    load, made = cache.load, []
    names = sorted(tmp_path.glob("*.kernel"))
    assert len(names) == 2
    found = [load(x.stem) for x in names]

    def confused(full):
        """The description of one kernel with the code of the other."""
        made.append(full)
        k = [x.stem for x in names].index(full)
        return found[k][0], found[1 - k][1]

    monkeypatch.setattr(cache, "load", confused)
    np.testing.assert_array_equal(native.build(lambda: right, key="right")(np.ones(2)), [3.0, 3.0])
    assert made


def test_every_call_can_be_compared(monkeypatch, tmp_path):
    monkeypatch.setenv("COADJOINT_VERIFY", "full")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    robot = cj.load("planar2r")
    q = robot.random(0, 70)
    np.testing.assert_allclose(cj.mass_matrix(robot, q), cj.mass_matrix.source(robot, q), atol=1e-14)
    out = np.zeros((70, 2, 2))
    assert cj.mass_matrix(robot, q, out=out) is out
    f = native.build(trace(lambda x: np.where(x > 0.99, x, 2 * x), {"x": ()}, "f"))
    right = CompiledFunction.run
    monkeypatch.setattr(CompiledFunction, "run", lambda self, given, *o: right(self, given, *o) + (given[0] == 0.5))  # in one place
    with pytest.warns(KernelWarning, match="1 of 3 entries"):
        np.testing.assert_array_equal(f(np.array([0.1, 0.5, 2.0])), [0.2, 1.0, 2.0])


def test_every_call_of_a_public_function_is_compared(monkeypatch, tmp_path):
    monkeypatch.setenv("COADJOINT_VERIFY", "full")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    robot = cj.load("planar2r")
    q = robot.random(0, 3)
    cj.gravity_force(robot, q)
    right = CompiledFunction.run
    monkeypatch.setattr(CompiledFunction, "run", lambda self, *a: right(self, *a) + 1.0)
    for _ in range(2):
        with pytest.warns(KernelWarning, match="6 of 6 entries"):
            np.testing.assert_allclose(cj.gravity_force(robot, q), cj.gravity_force.source(robot, q), atol=1e-14)


def test_compared_functions_take_what_others_take(monkeypatch):
    monkeypatch.setenv("COADJOINT_VERIFY", "full")
    robot = cj.load("planar2r")
    f = cj.compile(cj.gravity_force, robot)
    q = robot.random(0, 4)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(q), f(q))
    assert np.isnan(f(np.ma.masked_array(q, q == q))).all()
    dask = pytest.importorskip("dask.array")
    later = f(dask.from_array(q, chunks=(2, 2)))
    assert isinstance(later, dask.Array)
    np.testing.assert_allclose(later.compute(), f(q), atol=1e-14)


def test_rounding_amplified_beyond_all_bounds_decides_nothing():
    """Iterations that diverge at a trial state give numbers such as 1e174 of either sign: no sign of a wrong kernel."""
    from coadjoint.kernel.trial import Trial

    trial = Trial(None, "float64", [], [np.array([[-1.2e170], [1.0]])], [np.array([[4.2e174], [1e-9]])])
    assert not trial.wrong([np.array([[-5.2e174], [1.0]])])[0].any()
    assert trial.wrong([np.array([[-5.2e174], [1.1]])])[0].tolist() == [[False], [True]]
