"""What kernels and compiled functions are called with: the same checks, precision and errors in every execution."""

from __future__ import annotations

import inspect
import subprocess
import sys
import traceback
from dataclasses import replace

import numpy as np
import pytest

import coadjoint as cj

ROBOT = cj.load("planar2r")
X = np.random.default_rng(0).standard_normal((4, 2))


@pytest.fixture(params=["native", "as written"], autouse=True)
def execution(request, monkeypatch):
    if request.param == "native":
        pytest.importorskip("llvmlite")
    monkeypatch.setenv("COADJOINT_NATIVE", "1" if request.param == "native" else "0")
    return request.param


@pytest.fixture
def robot():
    """One for which nothing was compiled yet."""
    return cj.load("planar2r")


def test_masked_numbers_are_nan_everywhere(robot):
    q = np.ma.masked_array([0.3, 99.0], [False, True])
    for f in (cj.compile(cj.gravity_force, robot), cj.derivative(cj.gravity_force, robot), lambda q: cj.gravity_force(robot, q)):
        assert np.isnan(f(q)).any()
        assert np.isfinite(f(np.ma.masked_array([0.3, 0.2], [False, False]))).all()
        assert type(f(q)) is np.ndarray


CALLS = {
    "plain": lambda robot: lambda *x, **o: cj.inverse_dynamics(robot, *x, **o),
    "compiled": lambda robot: cj.compile(cj.inverse_dynamics, robot),
}


@pytest.mark.parametrize("call", CALLS)
def test_out_is_checked(robot, call):
    f = CALLS[call](robot)
    expected = f(X, X, X)
    out = np.empty((4, 2))
    assert f(X, X, X, out=out) is out
    assert np.array_equal(out, expected)
    for bad, words in [
        (np.zeros((4, 2), int), "out has dtype int64; the result has dtype float64"),
        (np.zeros((4, 4, 2)), r"out has shape \(4, 4, 2\); the result has shape \(4, 2\)"),
        ([0.0, 0.0], "out is a list"),
        (np.broadcast_to(np.zeros(2), (4, 2)), "read-only"),
        (np.lib.stride_tricks.as_strided(np.zeros(2), (4, 2), (0, 8)), "the same memory for several entries"),
    ]:
        with pytest.raises(cj.CoadjointError, match=words):
            f(X, X, X, out=bad)


@pytest.mark.parametrize("call", ["plain", "compiled"])
def test_results_cannot_share_an_out(robot, call):
    f = (
        cj.compile(cj.inverse_dynamics_derivatives, robot)
        if call == "compiled"
        else lambda *x, **o: cj.inverse_dynamics_derivatives(robot, *x, **o)
    )
    expected = f(X, X, X)
    one = np.empty((4, 2, 2))
    with pytest.raises(cj.CoadjointError, match=r"out\[0\] and out\[2\] share memory"):
        f(X, X, X, out=(one, one.copy(), one))
    with pytest.raises(
        cj.CoadjointError, match="out must be a tuple of 3 arrays: inverse_dynamics_derivatives has as many results"
    ):
        f(X, X, X, out=one)
    side_by_side = np.empty((4, 2, 6))  # in one block of memory, but apart
    outs = tuple(side_by_side[..., k : k + 2] for k in (0, 2, 4))
    f(X, X, X, out=outs)
    for x, y in zip(outs, expected, strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("threads", ["x", 2.5, 0, -3, [1]])
def test_threads_are_checked(robot, call, threads):
    f = CALLS[call](robot)
    with pytest.raises(cj.CoadjointError, match=r"threads is .*; expected a whole number, 1 or more"):
        f(X, X, X, threads=threads)
    f(X, X, X, threads=np.int64(2))


@pytest.mark.parametrize("call", CALLS)
def test_names_and_numbers_of_arguments_are_checked(robot, call):
    f = CALLS[call](robot)
    for arrays, named in [((X, X), {}), ((X, X, X), {"q": X}), ((X, X, X), {"nothing": X})]:
        with pytest.raises(TypeError):
            f(*arrays, **named)


def test_precision_is_the_same_in_every_execution(robot):
    """Single if all arrays are single, else double, whatever else they are."""
    q, v, a = X[:3]
    exact = cj.inverse_dynamics(robot, *(x.astype(np.float32).astype(float) for x in (q, v, a)))
    single = [x.astype(np.float32) for x in (q, v, a)]
    assert cj.inverse_dynamics(robot, *single).dtype == np.float32
    for mixed in ([*single[:2], single[2].astype(float)], [single[0].astype(np.longdouble), *single[1:]]):
        found = cj.inverse_dynamics(robot, *mixed)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, exact, rtol=1e-14)
    half = np.float16(0.5) * np.ones(2, np.float16)
    assert cj.gravity_force(robot, half).dtype == np.float64
    np.testing.assert_allclose(cj.gravity_force(robot, half), cj.gravity_force(robot, 0.5 * np.ones(2)), rtol=1e-14)


def test_precision_of_compiled_functions(robot):
    f, g = cj.compile(cj.gravity_force, robot), cj.compile(cj.gravity_force, robot, dtype=np.float32)
    for dtype in (np.float16, np.float32, np.float64, np.longdouble, int):
        assert f(np.ones(2, dtype)).dtype == np.float64
        assert g(np.ones(2, dtype)).dtype == np.float32


EMPTY = (
    "christoffel",
    "mass_matrix_derivative",
    "connection",
    "curvature",
    "mass_matrix",
    "pose",
    "inverse_dynamics_second_derivatives",
)
LARGE = ("connection", "curvature", "inverse_dynamics_second_derivatives")


@pytest.mark.parametrize(
    ("size", "name"),
    [
        *((2, name) for name in EMPTY),
        *(pytest.param(30, name, marks=[pytest.mark.slow] if name in LARGE else []) for name in EMPTY),
    ],
)
def test_empty_batches(size, name):
    robot = cj.load("planar2r") if size == 2 else cj.load("planar30r")
    f = getattr(cj, name)
    arrays = 3 if "second" in name else 1
    further = ("tip",) if name == "pose" and "tip" in robot.frame_names else (robot.link_names[-1],) if name == "pose" else ()
    if size == 30 and name in ("curvature", "inverse_dynamics_second_derivatives"):
        shapes = {"curvature": [(30,) * 4], "inverse_dynamics_second_derivatives": [(30,) * 3] * 4}[name]
    else:
        one = f(robot, *[np.full(size, 0.3)] * arrays, *further)
        shapes = [x.shape for x in (one if isinstance(one, tuple) else (one,))]
    for batch in ((0,), (3, 0), (0, 1, 2)):
        found = f(robot, *[np.zeros((*batch, size))] * arrays, *further)
        assert [x.shape for x in (found if isinstance(found, tuple) else (found,))] == [(*batch, *shape) for shape in shapes]


@pytest.mark.parametrize("axes", [25, 31, 40, 60])
def test_too_many_axes(robot, axes):
    with pytest.raises(cj.errors.ShapeError, match="batch axes; expected at most"):
        cj.mass_matrix(robot, np.zeros((1,) * axes + (2,)))
    assert cj.mass_matrix(robot, np.zeros((1,) * 24 + (2,))).ndim == 26


def test_singular_states_of_extended_precision():
    """They used to be a TypeError where the state is explained."""
    robot = cj.Robot.from_screws(
        [[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0]], np.broadcast_to(np.eye(4), (2, 4, 4)), [0.0, 1.0], [np.zeros((3, 3)), np.eye(3)]
    )
    with pytest.raises(cj.errors.SingularMassMatrixError):
        cj.forward_dynamics(robot, *[np.zeros(2, np.longdouble)] * 3)


def test_a_wrong_name_gives_a_short_traceback(robot):
    for call, words in [
        (lambda: cj.pose(robot, X, "tipp"), "no frame is named 'tipp'"),
        (lambda: cj.jacobian(robot, X, "tipp"), "no frame is named 'tipp'"),
        (lambda: cj.jacobian(robot, X, "link2", "bodi"), "reference is 'bodi'"),
        (lambda: cj.jacobian_rate(robot, X, X, "tipp"), "no frame is named 'tipp'"),
        (lambda: cj.pose("panda", X, "tipp"), "the first argument is str; expected a Robot"),
    ]:
        with pytest.raises(cj.CoadjointError, match=words) as caught:
            call()
        frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if "test_arguments" not in f.filename]
        assert len(frames) <= 3, frames
        assert all(f.line for f in frames)  # the lines of generated functions, too


def test_signatures_are_true():
    for f in (cj.inverse_dynamics, cj.pose, cj.forward_dynamics_derivatives):
        parameters = inspect.signature(f).parameters
        assert list(parameters)[-2:] == ["out", "threads"]
        assert parameters["out"].kind is parameters["threads"].kind is inspect.Parameter.KEYWORD_ONLY
        assert f.__doc__
    shown = subprocess.run(
        [sys.executable, "-c", "import coadjoint as cj; help(cj.inverse_dynamics)"], capture_output=True, text=True, check=True
    ).stdout
    assert "out" in shown
    assert "threads" in shown


def test_compiled_functions_say_what_they_are(robot, execution):
    f = cj.compile(cj.inverse_dynamics, robot)
    assert str(inspect.signature(f)) == "(q, v, a, /, *, out=None, threads=None)"
    assert f.__name__ == "inverse_dynamics"
    assert "q (..., 2), v (..., 2), a (..., 2) -> (..., 2)" in f.__doc__
    assert "inverse_dynamics" in repr(f)


def test_columns_in_another_order_than_the_robot_are_refused(robot):
    """A table says whose coordinates its columns are; taken as they stand, a permuted one would give the numbers of another state."""
    pandas = pytest.importorskip("pandas")
    first, second = robot.joint_names
    held, still = cj.Constraint.point(robot, "tip"), 0 * X
    calls = (
        lambda q: cj.mass_matrix(robot, q),
        lambda q: cj.kinetic_energy(robot, X, q),
        lambda q: robot.integrate(q, still),
        lambda q: cj.geodesic(robot, q, X, 0.01),
        lambda q: cj.constraints.project(robot, held, q.iloc[0]),
        lambda q: cj.time_optimal(robot, q, velocity=1.0, acceleration=1.0),
        lambda q: cj.optimal_motion(robot, q.iloc[0], q.iloc[1], 1.0),
        lambda q: cj.control.pd(robot, X[0], kp=1.0, kd=1.0).force(q, X, 0.0),
    )
    for names in ([first, second], [f"q.{first}", f"q.{second}"], ["q1", "q2"], ["q_9", "q_10"]):
        table = pandas.DataFrame(X, columns=names)
        np.testing.assert_array_equal(robot.integrate(table, still), robot.integrate(X, still))
        np.testing.assert_array_equal(cj.mass_matrix(robot, table), cj.mass_matrix(robot, X))
        for call in calls:
            with pytest.raises(cj.CoadjointError, match="has its columns in the order") as caught:
                call(table[names[::-1]])
            assert f"[{names!r}]" in str(caught.value)
    for names in (["a", "b"], [1, 0], ["q1", "dq1"]):  # which say nothing about the robot's coordinates
        np.testing.assert_array_equal(cj.mass_matrix(robot, pandas.DataFrame(X, columns=names)), cj.mass_matrix(robot, X))


def test_times_and_the_numbers_of_other_joints_are_no_order(robot):
    """The index of a series of times is no name of a joint, and q1 may be the first joint or the one that ends in 1."""
    pandas = pytest.importorskip("pandas")
    t = np.array([0.05, 0.1])
    for q, expected in zip(
        cj.geodesic(robot, X[0], X[0], pandas.Series(t, index=t)), cj.geodesic(robot, X[0], X[0], t), strict=True
    ):
        np.testing.assert_array_equal(q, expected)
    links = [
        replace(link, joint=replace(link.joint, name=name)) for link, name in zip(robot.links, ("joint_2", "joint_1"), strict=True)
    ]
    other = cj.Robot("named", links, gravity=robot.gravity)
    for names in (["q_2", "q_1"], ["q_1", "q_2"]):
        np.testing.assert_allclose(cj.mass_matrix(other, pandas.DataFrame(X, columns=names)), cj.mass_matrix(robot, X), rtol=1e-14)
    with pytest.raises(cj.CoadjointError, match="has its columns in the order"):
        cj.mass_matrix(other, pandas.DataFrame(X, columns=["q.joint_1", "q.joint_2"]))
