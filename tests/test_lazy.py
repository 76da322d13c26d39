"""Dask and xarray arrays: the lazy result is the eager one, bit for bit, and nothing is computed before it is asked for."""

import importlib
import os
import pickle
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, ShapeError, UnknownNameError
from coadjoint.kernel.alone import ALONE
from coadjoint.kernel.dispatch import Kernel, core_shape
from coadjoint.redundancy import Task
from coadjoint.scale.task import Task as SentTask
from coadjoint.scale.task import _robot
from constraint_robots import four_bar
from random_robots import random_robot

da = pytest.importorskip("dask.array")
xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask")
N = 23


def all_kernels():
    """Every kernel of the library, by name."""
    found = {}
    for info in pkgutil.walk_packages(cj.__path__, "coadjoint."):
        if info.name.startswith(("coadjoint.interop.", "coadjoint.__main__")):
            continue
        module = importlib.import_module(info.name)
        for x in vars(module).values():
            if isinstance(getattr(x, "kernel", None), Kernel) and x.__module__ == info.name:
                found[f"{info.name}.{x.__name__}"] = x
    return found


KERNELS = all_kernels()


@pytest.fixture(autouse=True)
def own_kernels():
    """Plain calls take the robot's own kernels, as tasks do: those that robots share differ by rounding.

    Kernels of tests before, which may have run as written, are forgotten.
    """
    ROBOT._fast.clear()
    _robot.cache_clear()
    token = ALONE.set(True)
    yield
    ALONE.reset(token)


def given(fn, robot, rng, constraint=None, batch=(N,)):
    """Arrays and other arguments for a kernel."""
    arrays = {name: rng.normal(size=(*batch, *core_shape(core, robot))) for name, core in fn.kernel.cores.items()}
    if "q" in arrays:
        arrays["q"] = robot.random(rng, batch)
    if "weight" in arrays:
        arrays["weight"] = np.broadcast_to(np.eye(robot.nv), arrays["weight"].shape).copy()
    basis = cj.constraints.PseudoVelocities(lambda q: np.eye(robot.nv) + 0.0 * q[0])
    known = {"basis": basis, "frame": "tip", "task": Task("tip", (3, 4)), "constraint": constraint}
    if fn.__name__ == "_prioritized_inverse":
        known["task"] = (Task("tip", (3,)), Task("tip", (4,)))
    return arrays, {name: known[name] for name in fn.kernel.statics if name in known}


def same(x, y, tolerance=0.0):
    """Equal bit for bit, nan where nan is; or up to a tolerance."""
    x, y = (z if isinstance(z, tuple) else (z,) for z in (x, y))
    assert len(x) == len(y)
    for one, other in zip(x, y, strict=True):
        assert isinstance(one, da.Array)
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        scale = np.abs(other[np.isfinite(other)]).max(initial=1.0)
        np.testing.assert_allclose(one.compute(scheduler="synchronous"), other, rtol=0, atol=tolerance * scale)


def chunked(arrays, *sizes):
    """Each array in chunks of another size, its last axis too."""
    return {
        name: da.from_array(x, chunks=(sizes[k % len(sizes)], *(max(1, n // 2) for n in x.shape[1:])))
        for k, (name, x) in enumerate(arrays.items())
    }


def check_kernel(fn, robot, constraint, tolerance=0.0):
    arrays, options = given(fn, robot, np.random.default_rng(3), constraint)
    eager = fn(robot, **arrays, **options)
    same(fn(robot, **chunked(arrays, 5, 7, 23, 11), **options), eager, tolerance)
    first = {name: x if k else da.from_array(x, chunks=3) for k, (name, x) in enumerate(arrays.items())}
    same(fn(robot, **first, **options), eager, tolerance)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if "second_derivatives" in name else name for name in KERNELS]
)
def test_every_kernel_is_lazy_as_written(name):
    # NumPy's own products and solvers round differently for other batch sizes.
    joints = ("revolute", "prismatic") if "kool" in name or "lagrangian" in name else ("revolute", "spherical", "universal")
    robot = random_robot(5, 3, joints, tree=False)
    check_kernel(KERNELS[name], robot, cj.Constraint.point(robot, "tip", "x", at=0.1), tolerance=1e-9)


@pytest.mark.native
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_lazy_natively(name):
    check_kernel(KERNELS[name], ROBOT, cj.Constraint.point(ROBOT, "tip", "x", at=0.1))


ROBOT = cj.load("planar2r")
RNG = np.random.default_rng(1)
Q, V = ROBOT.random(RNG, (4, N)), RNG.normal(size=(N, 2))


def test_nothing_is_computed_when_the_graph_is_built():
    def fail(block):
        raise AssertionError("computed")

    q = da.from_array(Q, chunks=(2, 5, 2)).map_blocks(fail, dtype=float, meta=np.empty((0, 0, 0)))
    for fn in (cj.mass_matrix, cj.gravity_force, lambda robot, q: cj.pose(robot, q, "tip")):
        fn(ROBOT, q)
    cj.rollout(ROBOT, q, np.zeros(2), dt=0.01, steps=3)


@pytest.mark.native
def test_batch_axes_broadcast_and_chunks_are_kept():
    q, v = da.from_array(Q, chunks=(3, 5, 2)), da.from_array(V, chunks=(7, 1))
    found = cj.coriolis_matrix(ROBOT, q, v)
    same(found, cj.coriolis_matrix(ROBOT, Q, V))
    assert found.chunks[0] == (3, 1)
    assert found.chunks[2:] == ((2,), (2,))
    one = cj.kinetic_energy(ROBOT, q[0, 0], v[0])
    assert one.shape == ()
    assert one.compute() == cj.kinetic_energy(ROBOT, Q[0, 0], V[0])
    same(cj.mass_matrix(ROBOT, q[:0]), cj.mass_matrix(ROBOT, Q[:0]))


@pytest.mark.native
def test_precision_is_that_of_the_arrays():
    q = da.from_array(Q, chunks=(3, 5, 2))
    single = cj.mass_matrix(ROBOT, q.astype(np.float32))
    same(single, cj.mass_matrix(ROBOT, Q.astype(np.float32)))
    assert single.dtype == np.float32
    whole = np.arange(2 * N).reshape(N, 2)
    same(cj.mass_matrix(ROBOT, da.from_array(whole, chunks=4)), cj.mass_matrix(ROBOT, whole))


def test_unknown_chunk_sizes_stay_unknown():
    q = da.from_array(V, chunks=(5, 2))
    some = q[q[:, 0] > 0]
    found = cj.gravity_force(ROBOT, some)
    assert np.isnan(found.shape[0])
    np.testing.assert_allclose(found.compute(), cj.gravity_force(ROBOT, V[V[:, 0] > 0]), atol=1e-12)


def test_wrong_arguments_are_reported_when_the_graph_is_built():
    q, v = da.from_array(Q, chunks=(2, 5, 2)), da.from_array(V, chunks=(5, 2))
    with pytest.raises(ShapeError, match=r"v has shape \(23, 1\); expected \(..., 2\) for robot 'planar2r'"):
        cj.coriolis_matrix(ROBOT, q, v[:, :1])
    with pytest.raises(ShapeError, match="batch axes do not broadcast"):
        cj.coriolis_matrix(ROBOT, q, v[:7])
    with pytest.raises(UnknownNameError, match="no frame is named 'tap'"):
        cj.jacobian(ROBOT, q, "tap")
    with pytest.raises(CoadjointError, match="complex128"):
        cj.gravity_force(ROBOT, q.astype(complex))
    with pytest.raises(CoadjointError, match="out is given"):
        cj.gravity_force(ROBOT, q, out=np.empty(Q.shape))
    with pytest.raises(CoadjointError, match="friction is a Dask array"):
        cj.inverse_dynamics(ROBOT, q, v, v, friction=v)
    with pytest.raises(CoadjointError, match="Robot"):
        cj.gravity_force("panda", q)
    with pytest.raises(CoadjointError, match="variables"):
        cj.gravity_force(ROBOT.with_numbers(gravity=np.zeros(3, np.float32)), q)


def test_what_takes_no_dask_arrays_says_so():
    q = da.from_array(Q, chunks=(2, 5, 2))
    for call in (lambda: ROBOT.integrate(q, q), lambda: cj.lie.so3.exp(q)):
        with pytest.raises(CoadjointError, match="is a Dask array, which this function does not take"):
            call()
    with pytest.raises(CoadjointError, match=r"of shape \(2,\) is one state; give a batch"):
        cj.simulate(ROBOT, q[0, 0], q[0, 0], 1.0)


def test_errors_of_states_are_raised_when_they_are_computed():
    found = cj.horizontal_lift(ROBOT, da.zeros((4, 2), chunks=2), "tip", rows=(3, 4))
    with pytest.raises(cj.redundancy.SingularTaskError):
        found.compute()


@pytest.mark.native
def test_rollouts_and_inverse_kinematics():
    q, v = da.from_array(Q, chunks=(3, 5, 2)), da.from_array(V, chunks=(7, 1))
    tau = RNG.normal(size=(N, 6, 2))
    same(cj.rollout(ROBOT, q, v, dt=0.01, steps=5), cj.rollout(ROBOT, Q, V, dt=0.01, steps=5))
    same(cj.rollout(ROBOT, q, v, tau, dt=0.01), cj.rollout(ROBOT, Q, V, tau, dt=0.01))
    same(cj.rollout(ROBOT, q, v, da.from_array(tau, chunks=(7, 2, 2)), dt=0.01), cj.rollout(ROBOT, Q, V, tau, dt=0.01))
    targets = cj.pose(ROBOT, Q, "tip")
    lazy = cj.inverse_kinematics(ROBOT, da.from_array(targets, chunks=(3, 5, 2, 4)), "tip")
    eager = cj.inverse_kinematics(ROBOT, targets, "tip")
    for name in ("q", "success", "poses", "angles", "distances", "starts"):
        same(getattr(lazy, name), getattr(eager, name))
    assert repr(lazy) == "<InverseKinematics: targets (4, 23), not computed yet>"
    arm = cj.load("ur5e")
    targets = cj.pose(arm, arm.random(RNG, N), "tip")
    lazy = cj.inverse_kinematics_solutions(arm, da.from_array(targets, chunks=(5, 4, 2)), "tip")
    eager = cj.inverse_kinematics_solutions(arm, targets, "tip")
    same((lazy.q, lazy.valid), (eager.q, eager.valid))
    assert lazy.robot is arm
    assert "'ur5e': targets (23,), not computed yet" in repr(lazy)


def test_dependent_rows_of_constraints():
    robot = four_bar()
    gear = cj.Constraint.gear(robot, {robot.joint_names[0]: 1.0, robot.joint_names[1]: 1.0})
    twice = gear & gear  # rows that depend on each other are solved outside the kernel
    q, v, tau = robot.random(RNG, N), *RNG.normal(size=(2, N, robot.nv))
    lazy = cj.constrained_dynamics(robot, twice, *(da.from_array(x, chunks=(7, 2)) for x in (q, v, tau)))
    same(lazy, cj.constrained_dynamics(robot, twice, q, v, tau), tolerance=1e-12)


@pytest.mark.native
def test_tasks_in_single_precision():
    arm = cj.load("panda")
    states = arm.random(RNG, N)
    single = states.astype(np.float32)  # computed in double
    same(cj.horizontal_lift(arm, da.from_array(single, chunks=5), "tip"), cj.horizontal_lift(arm, single, "tip"))
    q = da.from_array(states, chunks=5)
    found, eager = (cj.redundancy.operational_space(arm, x, np.ones(7), "tip") for x in (q, states))
    same(found.gravity, eager.gravity)


@pytest.mark.native
def test_compiled_functions_and_parameter_sweeps():
    torque = cj.compile(cj.gravity_force, ROBOT, parameters=["masses"])
    masses = RNG.uniform(1, 2, (N, 2))
    same(torque(da.from_array(Q, chunks=(2, 5, 2)), da.from_array(masses, chunks=(4, 1))), torque(Q, masses))
    with pytest.raises(ShapeError, match="masses has shape"):
        torque(da.from_array(Q, chunks=(2, 5, 2)), masses[:, :1])


def doubled(robot, q, factor=2.0):
    return factor * q, q.sum(-1) + robot.nv


def test_any_function_through_scale_lazy():
    q = da.from_array(Q, chunks=(3, 5, 2))
    same(cj.scale.lazy(doubled, ROBOT, q, factor=3.0), doubled(ROBOT, Q, 3.0))
    same(cj.scale.lazy(cj.lie.so3.exp, da.from_array(Q[..., [0, 1, 1]], chunks=(3, 5, 2))), cj.lie.so3.exp(Q[..., [0, 1, 1]]))


def test_tasks_are_small_and_the_same_robot_is_made_once():
    task = SentTask(cj.inverse_dynamics, ROBOT, ("q", "v", "a"), {})
    sent = pickle.dumps(task)
    assert len(sent) < 10_000
    first, second = pickle.loads(sent), pickle.loads(sent)
    assert first.robot is second.robot
    assert first.fn is cj.inverse_dynamics
    assert first.options == {"threads": 1}
    assert dask.base.tokenize(task) == dask.base.tokenize(first)
    assert dask.base.tokenize(task) != dask.base.tokenize(SentTask(cj.inverse_dynamics, cj.load("cartpole"), ("q", "v", "a"), {}))
    assert dask.base.tokenize(ROBOT) == dask.base.tokenize(pickle.loads(pickle.dumps(ROBOT)))


HISTORY = """
import sys, hashlib, numpy, dask.array as da, coadjoint as cj
robot, rng = cj.load("planar3r"), numpy.random.default_rng(0)
for mass in eval(sys.argv[1]):  # others of the same structure, whose kernel would be shared
    other = robot.with_inertia(robot.link_names[-1], mass=mass, com=(0.01, 0.02, 0.03), inertia=(0.1, 0.2, 0.25))
    cj.inverse_dynamics(other, *numpy.zeros((3, 3)))
q, v, a = (da.from_array(x, chunks=(40, 3)) for x in (robot.random(rng, 100), *rng.normal(size=(2, 100, 3))))
print(hashlib.sha256(cj.inverse_dynamics(robot, q, v, a).compute(scheduler="synchronous").tobytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.native
def test_bits_do_not_depend_on_what_a_process_did_before(tmp_path):
    found = [
        subprocess.run(
            [sys.executable, "-c", HISTORY, masses],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"COADJOINT_CACHE": str(tmp_path / str(k))},
        ).stdout
        for k, masses in enumerate(("()", "(1.0, 2.0, 3.0)"))
    ]
    assert found[0] == found[1] != ""


@pytest.mark.slow
@pytest.mark.native
def test_processes_and_a_cluster_give_the_same_bits():
    distributed = pytest.importorskip("distributed")
    q = da.from_array(Q, chunks=(2, 5, 2))
    eager = cj.coriolis_matrix(ROBOT, Q, V)
    lazy = cj.coriolis_matrix(ROBOT, q, V)
    np.testing.assert_array_equal(lazy.compute(scheduler="processes", num_workers=1), eager)
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster):
        np.testing.assert_array_equal(lazy.compute(), eager)
        same(cj.scale.lazy(lambda robot, q: 2 * q, ROBOT, q), 2 * Q)


# --- xarray


def arrays(**changes):
    t = np.linspace(0, 1, N)
    q = xr.DataArray(Q, dims=("run", "time", "dof"), coords={"time": t, "run": list("abcd"), "kind": "test"})
    v = xr.DataArray(V, dims=("time", "dof"), coords={"time": t})
    return q, v


@pytest.mark.native
@pytest.mark.parametrize("lazy", [False, True])
def test_xarray_keeps_dimensions_and_coordinates(lazy):
    q, v = arrays()
    if lazy:
        q = q.chunk(time=5, dof=1)
    found = cj.coriolis_matrix(ROBOT, q, v)
    assert found.dims == ("run", "time", "dof", "dof_2")
    assert found.name == "coriolis_matrix"
    assert (found.chunks is not None) == lazy
    np.testing.assert_array_equal(found.values, cj.coriolis_matrix(ROBOT, Q, V))
    xr.testing.assert_identical(found.coords["time"].drop_vars("kind"), q.coords["time"].drop_vars("kind"))
    assert found.coords["kind"] == "test"
    assert found.coords["dof"].values.tolist() == list(ROBOT.v_names)
    turned = cj.coriolis_matrix(ROBOT, q.transpose("time", "run", "dof"), v)
    np.testing.assert_array_equal(turned.transpose(*found.dims).values, found.values)
    poses = cj.forward_kinematics(ROBOT, q)
    assert poses.dims == ("run", "time", "link", "row", "column")
    assert poses.coords["link"].values.tolist() == list(ROBOT.link_names)
    np.testing.assert_array_equal(poses.values, cj.forward_kinematics(ROBOT, Q))
    moved, speeds = cj.rollout(ROBOT, q, v, dt=0.01, steps=2)
    assert moved.dims == ("run", "time", "step", "dof")
    np.testing.assert_array_equal(speeds.values, cj.rollout(ROBOT, Q, V, dt=0.01, steps=2)[1])


def test_xarray_dimensions_of_quaternion_robots():
    robot = cj.load("floating_body")
    q = xr.DataArray(robot.random(RNG, 3), dims=("time", "x"))
    v = xr.DataArray(RNG.normal(size=(3, 6)), dims=("time", "x"))  # the same name for seven and for six
    assert cj.inverse_dynamics(robot, q, v, v).dims == ("time", "x")
    assert cj.mass_matrix(robot, q).dims == ("time", "joint", "joint_2")


def test_xarray_refuses_what_would_be_guessed():
    q, v = arrays()
    names = list(ROBOT.q_names)
    labelled = q.assign_coords(dof=names)
    assert cj.gravity_force(ROBOT, labelled).coords["dof"].values.tolist() == names
    with pytest.raises(CoadjointError, match="Reorder"):
        cj.gravity_force(ROBOT, labelled.isel(dof=[1, 0]))
    with pytest.raises(CoadjointError, match="core dimension"):
        cj.coriolis_matrix(ROBOT, q, v.isel(time=slice(0, 2)).transpose("dof", "time"))
    for wrong in (labelled, q.rename(dof="joint")):
        with pytest.raises(CoadjointError, match="the core comes last"):
            cj.gravity_force(ROBOT, wrong.isel(time=slice(0, 2)).transpose("run", wrong.dims[-1], "time"))
    with pytest.raises(CoadjointError, match="do not fit together"):
        cj.coriolis_matrix(ROBOT, q, v.assign_coords(time=np.arange(N)))
    with pytest.raises(ShapeError, match="no names"):
        cj.coriolis_matrix(ROBOT, q, V)
    with pytest.raises(ShapeError, match="v has shape"):
        cj.coriolis_matrix(ROBOT, q, v.isel(dof=[0]))
    assert cj.coriolis_matrix(ROBOT, q, np.ones(2)).dims == ("run", "time", "dof", "dof_2")
