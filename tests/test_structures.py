"""Robots of one structure share kernels: right for all of them, compiled once, bounded, and given up where a kernel of its own pays."""

import gc
import inspect
import os
import threading
import weakref
from collections import Counter

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import ModelError
from coadjoint.kernel import structures
from coadjoint.kernel.dispatch import Kernel, core_shape
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.runtime import cache, native
from coadjoint.kernel.runtime.cache_key import of_graph
from coadjoint.kernel.structures import BoundFunction, Pattern
from coadjoint.memo import Recent
from constraint_robots import bennett
from laws import relative
from random_robots import ALL_KINDS, ONE_SCREW, random_robot

FRAMES = {"frame": "tip"}


def for_every_robot(kernel):
    """Whether it has no argument, such as a constraint, that must be made for a robot."""
    return all(p.default is not inspect.Parameter.empty for p in kernel.parameters if p.name not in {*kernel.cores, *FRAMES})


KERNELS = {name: fn.kernel for name in cj.__all__ if hasattr(fn := getattr(cj, name), "kernel") and for_every_robot(fn.kernel)}


@pytest.fixture
def compilations(monkeypatch, tmp_path):
    """The names of all graphs that are compiled; no structure is known, in memory or on disk."""
    made = []
    compile_graph = native.compile_graph
    monkeypatch.setattr(native, "compile_graph", lambda graph, *args: made.append(graph.name) or compile_graph(graph, *args))
    monkeypatch.setenv("COADJOINT_CACHE", str(tmp_path / "kernels"))
    forget(monkeypatch)
    return made


def forget(monkeypatch):
    """As in a new process: nothing is in memory."""
    monkeypatch.setattr(structures, "_patterns", Recent(structures.SKELETONS))
    monkeypatch.setattr(structures, "_kernels", Recent(structures.KEPT))
    monkeypatch.setattr(structures, "_unshared", Recent(structures.SKELETONS))
    native._alive.clear()


def changed(robot, rng, zeros=False):
    """The robot with all its numbers changed; with some that are zero, one, or equal to others, if `zeros`."""
    other = lambda x: np.asarray(x) * rng.uniform(0.8, 1.25, np.shape(x))
    placements = np.array(robot.placements)
    placements[:, :3, 3] = other(placements[:, :3, 3])
    inertias, gravity, armature = other(robot.inertias), other(robot.gravity), other(robot.armature)
    friction, damping = rng.uniform(0, 0.3, (2, robot.tree_nv))
    if zeros:
        placements[0, :3, 3] = 0.0, 1.0, 1.0
        inertias[0, :] = 0.0
        inertias[-1, 1:4] = 0.25
        gravity, friction = gravity * (0.0, 1.0, 0.0), 0.0 * friction
        damping[0] = 1.0
    numbers = {"placements": placements, "inertias": inertias, "gravity": gravity, "armature": armature}
    return robot.with_numbers(**numbers, friction=friction, damping=damping)


def arm(n=3, **options):
    """A small spatial chain with numbers in it that are neither 0 nor 1."""
    rng = np.random.default_rng(7)
    robot = cj.Robot("arm", [])
    for k in range(n):
        T = np.eye(4)
        T[:3, 3] = rng.uniform(0.1, 0.4, 3)
        joint = cj.Joint.revolute(np.eye(3)[k % 3], **options)
        link = cj.Link.solid(f"l{k}", f"l{k - 1}" if k else "base", joint, T, mass=1 + k, com=rng.uniform(0.1, 0.2, 3), inertia=0.1)
        robot = robot.with_link(link)
    return robot.with_frame("tip", f"l{n - 1}", T)


def arguments(kernel, robot, rng, wrenches):
    """(names and values of arrays for three states, values of other arguments) of a kernel; None if it has none for this robot."""
    statics = {p.name: FRAMES.get(p.name, p.default) for p in kernel.parameters if p.name in kernel.statics}
    if inspect.Parameter.empty in statics.values() or not 0 < robot.nv <= min(kernel.largest, 14):
        return None
    given = [*kernel.required, *(["wrenches"] if wrenches and "wrenches" in kernel.optional else [])]
    arrays = {name: rng.normal(size=(3, *core_shape(kernel.cores[name], robot))) for name in given}
    return arrays | ({"q": robot.random(rng, 3)} if "q" in arrays else {}), statics


HEAVY = ("second_derivatives", "curvature", "connection", "covariant", "christoffel", "forward_dynamics_derivatives", "linearize")


SOLVED = ("forward_dynamics", "inverse", "curvature", "connection", "covariant", "linearize")
"""Functions that need a mass matrix with an inverse."""


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3, 4))])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_one_graph_is_right_for_all(name, seed):
    """The graph does not depend on the robot that it is traced for, and gives what the source does for each."""
    kernel, rng = KERNELS[name], np.random.default_rng(seed)
    kinds = ONE_SCREW if any(word in name for word in HEAVY) else ALL_KINDS
    first = random_robot(rng, 3 if kinds == ONE_SCREW else 4, kinds, mimic=seed == 3, armature=seed % 2 == 0, shuffle=seed == 1)
    second = changed(first, rng, zeros=seed % 2 == 1 and not any(word in name for word in SOLVED))
    found = arguments(kernel, first, rng, wrenches=seed % 2)
    if found is None:
        assert not 0 < first.nv <= kernel.largest
        return
    arrays, statics = found
    (x, free), (y, _) = (robot.numbers(kernel.joint_space) for robot in (first, second))
    numbers, pattern = (x, y), Pattern.of(x, free, "").joined(y)
    graphs = [
        structures._traced(kernel, robot, tuple(arrays), statics, pattern, x[pattern.variable])
        for robot, x in zip((first, second), numbers, strict=True)
    ]
    assert of_graph(graphs[0]) == of_graph(graphs[1])
    results = evaluate(graphs[0], np.tile(np.append(numbers[1][pattern.variable], 0.0), (3, 1)), *arrays.values())
    expected = kernel.source(second, **arrays, **statics)
    for x, y in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert np.abs(x - y).max() <= 1e-9 * max(1.0, np.abs(y).max())


def test_patterns():
    x, free = np.array([0.0, 1.0, -1.0, 0.5, 2.0]), np.zeros(5, dtype=bool)
    pattern = Pattern.of(x, free, "first")
    assert pattern.variable.tolist() == [False, False, False, True, True]
    assert pattern.joined(np.array([-0.0, 1.0, -1.0, 0.0, 1.0])) is pattern
    wider = pattern.joined(np.array([0.5, 1.0, -1.0, 0.5, 2.0]))
    assert wider.variable.tolist() == [True, False, False, True, True]
    assert wider.joined(x) is wider
    assert wider.first == "first"
    assert wider.digest != pattern.digest
    assert Pattern.of(-0.0 * x, free, "").digest == Pattern.of(0.0 * x, free, "").digest
    assert Pattern.of(x, free | (x == 1), "").variable.tolist() == [False, True, False, True, True]
    free = np.zeros(100, dtype=bool)
    many = Pattern.of(np.full(100, 0.5), free, "")
    assert not many.suits(Pattern.of(np.zeros(100), free, ""))
    assert many.suits(Pattern.of(np.full(100, 0.25), free, ""))


CALLS = {
    "inverse_dynamics": lambda robot, q, v, a: cj.inverse_dynamics(robot, q, v, a),
    "forward_dynamics": lambda robot, q, v, a: cj.forward_dynamics(robot, q, v, a),
    "mass_matrix": lambda robot, q, v, a: cj.mass_matrix(robot, q),
    "pose": lambda robot, q, v, a: cj.pose(robot, q, "tip"),
}


def as_written(robot, name, q, v, a):
    kernel = KERNELS[name]
    arrays = dict(zip(kernel.required, (q, v, a), strict=False))
    return kernel.source(robot, **arrays, **{name: "tip" for name in kernel.statics if name == "frame"})


@pytest.mark.native
def test_changed_robots_do_not_compile_again(compilations):
    rng, robot = np.random.default_rng(0), arm()
    q, v, a = rng.normal(size=(3, 70, 3))
    counts, expected, seen = [], [], Counter()
    for k in range(8):
        seen[robot.skeleton] += 1  # a robot with a weightless link is of another structure
        expected.append(len(CALLS) * sum(min(n, 2) for n in seen.values()))
        for name, call in CALLS.items():
            assert relative(call(robot, q, v, a), as_written(robot, name, q, v, a)) < 1e-12
            assert relative(call(robot, q[0], v[0], a[0]), as_written(robot, name, q[0], v[0], a[0])) < 1e-12
        counts.append(len(compilations))
        robot = changed(arm(), rng, zeros=k % 3 == 1) if k % 2 else arm().with_payload("tip", mass=rng.uniform(0.5, 2))
    assert counts == expected  # the first robot of a structure has its own kernels; the second makes those of the structure
    assert len(seen) == 2


@pytest.mark.native
def test_the_first_robot_keeps_its_own(compilations, monkeypatch):
    first, second = arm(), arm().with_gravity((0.5, 1.5, -9))
    q = np.ones(3)
    for robot in (first, second):
        cj.gravity_force(robot, q)
    assert compilations == ["gravity_force"] * 2
    assert "a kernel of its own" in str(cj.explain(cj.gravity_force, first))
    assert "the kernel of its structure" in cj.explain(cj.gravity_force, second).plain_calls
    assert cj.explain(cj.mass_matrix, second).plain_calls == "no kernel yet"
    forget(monkeypatch)  # another process finds all on disk
    del compilations[:]
    for robot in (arm(), arm().with_gravity((0.5, 1.5, -9)), arm().with_gravity((0.25, 1.5, -9))):
        expected = cj.gravity_force.source(robot, q)
        assert relative(cj.gravity_force(robot, q), expected) < 1e-12
    assert not compilations
    assert KERNELS["gravity_force"].in_use(robot).startswith("the kernel of its structure")


@pytest.mark.native
def test_unlike_robots_of_the_same_names_are_apart(compilations):
    """A planar chain does not run the code of a spatial one, though their joints are named and made alike."""
    flat = cj.Robot("arm", [])
    for k in range(3):
        T = np.eye(4)
        T[0, 3] = 0.25 if k else 0.0
        parent = f"l{k - 1}" if k else "base"
        flat = flat.with_link(
            cj.Link.solid(f"l{k}", parent, cj.Joint.revolute((0, 0, 1)), T, mass=1.5, com=(0.1, 0, 0), inertia=0.2)
        )
    flat = flat.with_frame("tip", "l2", T)
    spatial = arm()
    assert flat.skeleton == spatial.skeleton
    for robot in (spatial, flat):
        cj.mass_matrix(robot, np.ones(3))
    assert KERNELS["mass_matrix"].in_use(flat) == "a kernel of its own"


@pytest.mark.native
def test_every_way_of_calling(compilations):
    """out=, threads=, single precision, several batch axes, lists and views, as with a kernel of its own."""
    rng, robot = np.random.default_rng(1), changed(arm(), np.random.default_rng(2))
    cj.inverse_dynamics(arm(), *np.zeros((3, 3)))
    q, v, a = rng.normal(size=(3, 4, 25, 3))
    expected = cj.inverse_dynamics.source(robot, q, v, a)
    out = np.empty_like(q)
    for call in (
        lambda: cj.inverse_dynamics(robot, q, v, a),
        lambda: cj.inverse_dynamics(robot, q, v, a, out=out, threads=2),
        lambda: cj.inverse_dynamics(robot, q.tolist(), v.tolist(), a=a.tolist()),
        lambda: cj.inverse_dynamics(robot, *(x.reshape(100, 3) for x in (q, v, a))).reshape(4, 25, 3),
        lambda: cj.inverse_dynamics(robot, *(x.reshape(100, 3)[::-1] for x in (q, v, a)))[::-1].reshape(4, 25, 3),
        lambda: np.stack([[cj.inverse_dynamics(robot, q[i, j], v[i, j], a[i, j]) for j in range(25)] for i in range(4)]),
        lambda: cj.inverse_dynamics(robot, q, v, a, wrenches=np.zeros((3, 6))),
    ):
        assert relative(call(), expected) < 1e-12
    single = cj.inverse_dynamics(robot, *(x.astype(np.float32) for x in (q, v, a)))
    assert single.dtype == np.float32
    assert relative(single, expected) < 1e-4
    assert "structure" in KERNELS["inverse_dynamics"].in_use(robot)
    with pytest.raises(cj.errors.CoadjointError, match="q has shape"):
        cj.inverse_dynamics(robot, np.zeros(4), v, a)


@pytest.mark.native
def test_a_kernel_of_its_own_where_it_pays(compilations, monkeypatch):
    monkeypatch.setattr(structures, "PAYS", 1000)
    kernel, rng = KERNELS["inverse_dynamics"], np.random.default_rng(3)
    cj.inverse_dynamics(arm(), *np.zeros((3, 3)))
    robot = changed(arm(), rng)
    q, v, a = rng.normal(size=(3, 200, 3))
    first = cj.inverse_dynamics(robot, q[0], v[0], a[0])
    for k in range(1000):  # single states never end in a compilation
        cj.inverse_dynamics(robot, q[k % 200], v[k % 200], a[k % 200])
    assert "structure" in kernel.in_use(robot)
    before = cj.inverse_dynamics(robot, q, v, a)
    for _ in range(4):
        assert relative(cj.inverse_dynamics(robot, q, v, a), before) < 1e-13
    assert "structure" in kernel.in_use(robot)
    assert relative(cj.inverse_dynamics(robot, q, v, a), before) < 1e-13
    assert kernel.in_use(robot) == "a kernel of its own"
    assert relative(cj.inverse_dynamics(robot, q[0], v[0], a[0]), first) < 1e-13
    assert compilations == ["inverse_dynamics"] * 3


@pytest.mark.native
def test_caches_are_bounded(compilations, monkeypatch):
    monkeypatch.setattr(structures, "_kernels", Recent(2))
    monkeypatch.setattr(structures, "_patterns", Recent(3))
    monkeypatch.setattr(structures, "PATTERNS", 2)
    rng, alive = np.random.default_rng(4), []
    for n in range(1, 6):
        cj.gravity_force(arm(n), np.zeros(n))
        robot = changed(arm(n), rng)
        cj.gravity_force(robot, np.zeros(n))
        alive.append(weakref.ref(next(x for x in robot._fast.values() if isinstance(x, BoundFunction)).function.kernel))
    del robot
    gc.collect()
    assert len(structures._kernels) == 2
    assert len(structures._patterns) == 3
    assert [kernel() is None for kernel in alive] == [True, True, True, False, False]
    # Of one skeleton there are as many patterns as are allowed, however unlike the robots are.
    for k in range(5):
        numbers = np.where(np.arange(200) // 40 == k, 0.5, 0.0)
        structures._pattern(Stub(numbers), True, numbers, np.zeros(200, dtype=bool))
    (found,) = [x for key, x in structures._patterns._made.items() if "stub" in key]
    assert len(found) == 2
    # On disk what is known of structures is removed with the kernels.
    files = lambda: [name for name in os.listdir(cache.info()["path"]) if name.endswith(cache.STRUCTURE)]
    assert files()
    monkeypatch.setattr(cache, "LIMIT", 0)
    cj.mass_matrix(arm(2), np.zeros(2))
    assert cache.info()["kernels"] <= 1
    assert len(files()) <= 1
    cache.clear()
    assert not files()


class Stub:
    skeleton = "stub"

    def __init__(self, numbers):
        self.fingerprint = repr(numbers)


def joined_by_a_ball(armature):
    link = cj.Link.solid("a", "base", cj.Joint.spherical(armature=armature), mass=1.5, com=(0.1, 0.2, 0.3), inertia=0.4)
    return cj.Robot("ball", [link])


@pytest.mark.native
def test_errors_that_depend_on_numbers_are_raised(compilations):
    """A ball joint with armature has no metric: neither the robot before it nor the kernels of its structure hide that."""
    robot = joined_by_a_ball(0.0)
    for k in range(3):
        cj.christoffel(robot.with_inertia("a", mass=1.25 + k, com=(0.1, 0.2, 0.3), inertia=0.4), robot.neutral())
    for _ in range(2):
        with pytest.raises(ModelError, match="armature"):
            cj.christoffel(joined_by_a_ball(0.25), robot.neutral())
    again = robot.with_inertia("a", mass=7.5, com=(0.1, 0.2, 0.3), inertia=0.4)
    assert relative(cj.christoffel(again, robot.neutral()), cj.christoffel.source(again, robot.neutral())) < 1e-12


@pytest.mark.native
def test_singular_robots_say_so(compilations):
    """Zeros that come later than the kernel: a robot whose last joint moves no mass has no forward dynamics."""
    first = arm()
    for robot in (first, first.with_gravity((1.5, 2.5, 3.5))):
        cj.forward_dynamics(robot, *np.ones((3, 3)))
    empty = first.with_inertia("l2", mass=0.0)
    with pytest.raises(cj.errors.CoadjointError, match="mass"):
        cj.forward_dynamics(empty, *np.ones((3, 3)))
    assert relative(cj.mass_matrix(empty, np.ones(3)), cj.mass_matrix.source(empty, np.ones(3))) < 1e-12


@pytest.mark.native
def test_every_call_can_be_verified(compilations, monkeypatch):
    monkeypatch.setenv("COADJOINT_VERIFY", "full")
    first, rng = arm(2), np.random.default_rng(5)
    for robot in (first, changed(first, rng), changed(first, rng)):
        q = rng.normal(size=(70, 2))
        assert relative(cj.gravity_force(robot, q), cj.gravity_force.source(robot, q)) < 1e-12


@pytest.mark.native
@pytest.mark.filterwarnings("ignore:os.fork")  # JAX warns, where another test has imported it
def test_threads_and_forks(compilations):
    """Threads with a robot each wait for one compilation; a forked process goes on with what there is."""
    q = np.random.default_rng(6).normal(size=(500, 3))
    cj.gravity_force(arm(), q)
    robots = [changed(arm(), np.random.default_rng(k)) for k in range(8)]
    results = [None] * 8

    def work(k):
        for _ in range(20):
            results[k] = cj.gravity_force(robots[k], q, threads=1)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for robot, result in zip(robots, results, strict=True):
        assert relative(result, cj.gravity_force.source(robot, q)) < 1e-12
    assert len(compilations) <= 3
    if hasattr(os, "fork"):
        robot = changed(arm(), np.random.default_rng(9))
        child = os.fork()
        if not child:
            fine = relative(cj.gravity_force(robot, q), cj.gravity_force.source(robot, q)) < 1e-12
            os._exit(0 if fine and relative(cj.gravity_force(robots[0], q), results[0]) < 1e-13 else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.native
def test_kernels_that_robots_share_know_singular_mass_matrices():
    """A point mass on a ball joint, off the axes: its pivots are rounding, whose size is a number of each robot."""
    rng = np.random.default_rng(0)
    places = [(0.1, 1.0, 0.0), (0.3, -0.2, 0.7), (0.31, -0.27, 0.5), (-0.4, 0.2, 0.3)]
    for com in places:
        joint = cj.Joint.spherical()
        robot = cj.Robot("bob", [cj.Link.solid("bob", "base", joint, mass=rng.uniform(1, 2), com=com)])
        for q in robot.random(rng, 10):
            with pytest.raises(cj.errors.SingularMassMatrixError):
                cj.forward_dynamics(robot, q, rng.normal(size=3), rng.normal(size=3))
    assert "structure" in str(cj.explain(cj.forward_dynamics, robot).plain_calls)


def without_kernels(monkeypatch, call):
    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "native", lambda *_: None)
        return call()


@pytest.mark.native
def test_tasks_and_constraints_that_are_names_and_numbers_are_shared(compilations, monkeypatch):
    first, rng = arm(4), np.random.default_rng(11)
    q, v, tau = rng.normal(size=(3, 20, 4))
    held = cj.Constraint.point(first, "tip", axes="xz", at=(0.3, 0.4))
    calls = [
        lambda robot: cj.horizontal_lift(robot, q, "tip", (3, 4, 5)),
        lambda robot: cj.constrained_dynamics(robot, held, q, v, tau)[0],
        lambda robot: cj.constrained_dynamics(robot, held, q, v, tau)[1],
    ]
    for robot in [first, *(changed(first, rng) for _ in range(2))]:
        for call in calls:
            assert relative(call(robot), without_kernels(monkeypatch, lambda: call(robot))) < 1e-9  # noqa: B023
    compilations.clear()
    for robot in (changed(first, rng) for _ in range(5)):
        for call in calls:
            assert relative(call(robot), without_kernels(monkeypatch, lambda: call(robot))) < 1e-9  # noqa: B023
    assert compilations == []
    stretched = cj.load("planar3r")
    for scale in (1.0, 1.1, 1.2, 1.3):
        robot = stretched.with_parameters("lengths", scale * stretched.parameters("lengths"))
        with pytest.raises(cj.redundancy.SingularTaskError):
            cj.horizontal_lift(robot, (0.3, 0.0, 0.0), "tip", (3, 4))


@pytest.mark.native
def test_users_functions_of_a_robot_are_compiled_for_each(compilations):
    rng = np.random.default_rng(12)
    q, v, tau = rng.normal(size=(3, 3))
    for mass in (1.0, 2.0, 3.0):
        robot = arm().with_inertia("l0", mass=mass)
        reach = cj.Constraint.holonomic(lambda q, mass=mass: mass * q[0] ** 2 + q[1:2])
        a, _ = cj.constrained_dynamics(robot, reach, q, v, tau)
        assert abs(2 * mass * q[0] * a[0] + a[1] + 2 * mass * v[0] ** 2) < 1e-10


@pytest.mark.slow
@pytest.mark.native
def test_loops_with_dependent_rows_are_shared(compilations, monkeypatch):
    """Bennett's linkage, whose six rows leave one freedom of three by special lengths and twists, those of each robot."""
    rng = np.random.default_rng(13)
    for k, (a, alpha, b) in enumerate([(1.0, 0.7, 1.5), (0.8, 0.5, 1.3), (1.1, 0.4, 1.9), (0.9, 0.6, 1.2), (1.3, 0.7, 1.7)]):
        robot, loop = bennett(a, alpha, b)
        q = cj.constraints.assemble(robot, loop, rng.normal(size=3))
        v, tau = cj.constraint_projector(robot, loop, q) @ rng.normal(size=3), rng.normal(size=3)
        acceleration, _ = cj.constrained_dynamics(robot, loop, q, v, tau)
        expected, _ = without_kernels(monkeypatch, lambda: cj.constrained_dynamics(robot, loop, q, v, tau))  # noqa: B023
        assert relative(acceleration, expected) < 1e-7
        if k == 1:
            compilations.clear()
    assert "constrained_dynamics" not in compilations
