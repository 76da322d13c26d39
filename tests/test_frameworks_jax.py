"""Native kernels as primitives of JAX: values, derivatives of any order, batches, control flow, precision, threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import KernelWarning
from coadjoint.kernel.runtime.function import CompiledFunction
from derivative_helpers import ROBOTS, complex_step
from laws import relative
from random_robots import ONE_SCREW, random_robot

jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.native


@pytest.fixture(autouse=True)
def _double():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def state(robot, seed=0, shape=()):
    rng = np.random.default_rng(seed)
    return [robot.random(rng, shape), *rng.normal(size=(2, *shape, robot.nv))]


def made(fn, robot, **options):
    return cj.interop.jax.function(fn, robot, **options)


def closest(found, expected):
    """The largest relative difference between the arrays of two trees of the same shape."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(relative(np.asarray(x), np.asarray(y)) for x, y in pairs)


def own(robot, q, v):
    """A user's function with two results."""
    J = cj.jacobian(robot, q, "tip")
    return cj.kinetic_energy(robot, q, v), J @ v


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_values(shape):
    robot = random_robot(1, 5, armature=True)
    q, v, a = state(robot, 1, shape)
    for fn, args, options in (
        (cj.inverse_dynamics, (q, v, a), {}),
        (cj.inverse_dynamics, (q, v, a), {"friction": True}),
        (cj.pose, (q,), {"frame": "tip"}),
        (cj.forward_dynamics, (q, v, a), {}),
        (cj.kinetic_energy, (q, v), {}),
    ):
        f = made(fn, robot, **options)
        expected = fn(robot, *args, **options)
        for g in (f, jax.jit(f)):
            found = g(*args)
            assert isinstance(found, jax.Array)
            assert found.shape == expected.shape
            assert not found.size or relative(np.asarray(found), expected) < 1e-13


def test_a_users_function_names_and_broadcasting():
    robot = random_robot(2, 4, ONE_SCREW)
    q, v, _ = state(robot, 2, (3,))
    f = jax.jit(made(own, robot))
    energy, twist = f(q=q[:, None], v=v)
    assert energy.shape == (3, 3)
    for i in range(3):
        for j in range(3):
            assert closest((energy[i, j], twist[i, j]), own(robot, q[i], v[j])) < 1e-13


@pytest.mark.parametrize("kind", ["universal", "floating"])
def test_first_derivatives_by_complex_step(kind):
    """Both modes, of functions with one, two and no axes; for the free base by the entries of q."""
    robot = ROBOTS[kind](np.random.default_rng(3))
    q, v, a = state(robot, 3)
    chosen = [(cj.inverse_dynamics, (q, v, a)), (cj.kinetic_energy, (q, v))]
    for fn, args in [*chosen, (cj.forward_dynamics, (q, v, a))] if kind == "floating" else chosen:
        f, graph = made(fn, robot), cj.trace(fn, robot)
        places = tuple(range(len(args)))
        expected = [complex_step(graph, k, *args)[0] for k in places]
        for mode in (jax.jacfwd, jax.jacrev):
            assert closest(mode(f, places)(*args), expected) < 1e-11, (fn.__name__, mode.__name__)


def test_tangent_vectors_of_a_free_base():
    robot = random_robot(4, 2, ("free", "revolute"), tree=False)
    q, v, a = state(robot, 4)
    by_q, by_v, by_a = jax.jacfwd(made(cj.inverse_dynamics, robot), (0, 1, 2))(q, v, a)
    along = robot.rate(q, np.eye(robot.nv)).T
    assert closest((by_q @ along, by_v, by_a), cj.inverse_dynamics_derivatives(robot, q, v, a)) < 1e-11


def test_second_derivatives_of_a_free_base():
    """All ways to take them agree with JAX's own of the function as written, by the entries of the quaternion too."""
    robot = random_robot(5, 1, ("free",))
    q, v, a = state(robot, 5)
    f = made(cj.inverse_dynamics, robot)
    weights = np.random.default_rng(5).normal(size=robot.nv)
    cost = lambda f: lambda q: weights @ f(q, v, a) ** 3
    expected = jax.jit(jax.hessian(cost(lambda *x: cj.inverse_dynamics(robot, *x))))(q)
    for outer in (jax.jacfwd, jax.jacrev):
        for inner in (jax.jacfwd, jax.jacrev):
            assert closest(jax.jit(outer(inner(cost(f))))(q), expected) < 1e-10


def test_derivatives_twice_are_the_second_derivatives():
    robot = random_robot(6, 3, ONE_SCREW)
    q, v, a = state(robot, 6)
    f = made(cj.inverse_dynamics, robot)
    second = cj.inverse_dynamics_second_derivatives(robot, q, v, a)
    qq, qv, vv = (jax.jacfwd(jax.jacrev(f, i), j)(q, v, a) for i, j in ((0, 0), (0, 1), (1, 1)))
    qa = jax.jacrev(jax.jacfwd(f, 0), 2)(q, v, a)
    assert closest((qq, qv, vv, qa), tuple(second)) < 1e-10
    third = jax.jacfwd(jax.jacfwd(jax.jacfwd(made(cj.potential_energy, robot))))(q)
    assert relative(np.asarray(third), np.moveaxis(np.asarray(third), 0, 2)) < 1e-12  # symmetric
    h = 1e-5
    hessian = jax.hessian(made(cj.potential_energy, robot))
    along = (hessian(q + h * v) - hessian(q - h * v)) / (2 * h)
    assert relative(np.asarray(third @ v), np.asarray(along)) < 1e-8


def test_vmap():
    robot = random_robot(7, 3, ONE_SCREW)
    q, v, a = state(robot, 7, (4, 5))
    f = made(cj.inverse_dynamics, robot)
    expected = cj.inverse_dynamics(robot, q, v, a)
    assert closest(jax.vmap(jax.vmap(f))(q, v, a), expected) < 1e-13
    assert closest(jax.jit(jax.vmap(f, in_axes=(1, 1, 1), out_axes=1))(q, v, a), expected) < 1e-13
    first = cj.inverse_dynamics(robot, q[:, :1], v[:1], a)  # q for the outer map only, v for the inner
    assert closest(jax.vmap(jax.vmap(f, (None, 0, 0)), (0, None, 0))(q[:, 0], v[0], a), first) < 1e-13
    assert closest(jax.vmap(f, (0, None, None))(q, v[0], a[0, 0]), cj.inverse_dynamics(robot, q, v[0], a[0, 0])) < 1e-13
    M = jax.vmap(jax.vmap(jax.jacrev(f, 2)))(q, v, a)
    assert closest(M, cj.mass_matrix(robot, q)) < 1e-12
    g = jax.vmap(jax.grad(made(cj.potential_energy, robot)))(q[0])
    assert closest(g, cj.gravity_force(robot, q[0])) < 1e-12


def test_what_all_states_share_has_the_sum_of_gradients():
    robot = random_robot(8, 3, ONE_SCREW)
    q, v, a = state(robot, 8, (4,))
    f = made(cj.inverse_dynamics, robot)
    shared = jax.grad(lambda v: (f(q, v, a) ** 2).sum())(v[0])
    each = jax.grad(lambda v: (f(q, v, a) ** 2).sum())(jnp.broadcast_to(v[0], v.shape))
    assert closest(shared, each.sum(0)) < 1e-12


def test_scan_and_loops_inside_jit():
    """The gradient of where a motion ends, by its start and its torques, through the steps of a scan."""
    robot = random_robot(9, 2, ONE_SCREW, damping=True)
    q, v, _ = state(robot, 9)
    torques = np.random.default_rng(9).normal(size=(6, robot.nv))

    def end(accelerate):
        def step(x, tau):
            q, v = x
            v = v + 0.01 * accelerate(q, v, tau)
            return (q + 0.01 * v, v), None

        return jax.jit(jax.grad(lambda q, v, torques: (jax.lax.scan(step, (q, v), torques)[0][0] ** 2).sum(), (0, 1, 2)))

    found = end(made(cj.forward_dynamics, robot))(q, v, torques)
    expected = end(lambda *x: cj.forward_dynamics(robot, *x))(q, v, torques)
    assert closest(found, expected) < 1e-11
    f = made(cj.gravity_force, robot)
    looped = jax.jit(lambda q: jax.lax.fori_loop(0, 3, lambda _, x: x + 0.1 * f(x), q))(q)
    expected = np.asarray(q)
    for _ in range(3):
        expected = expected + 0.1 * cj.gravity_force(robot, expected)
    assert closest(looped, expected) < 1e-12
    recomputed = jax.grad(jax.checkpoint(lambda q: (f(q) ** 2).sum()))(q)
    assert closest(recomputed, jax.grad(lambda q: (f(q) ** 2).sum())(q)) < 1e-12


def test_one_of_several_results_and_linear_functions():
    robot = random_robot(10, 4, ONE_SCREW)
    q, v, _ = state(robot, 10)
    f = made(own, robot)
    w = np.random.default_rng(10).normal(size=6)
    assert closest(jax.grad(lambda v: f(q, v)[0])(v), cj.mass_matrix(robot, q) @ v) < 1e-12
    assert closest(jax.grad(lambda v: w @ f(q, v)[1])(v), w @ cj.jacobian(robot, q, "tip")) < 1e-12
    (energy, twist), along = jax.linearize(lambda v: f(q, v), v)
    assert closest(along(v), (2 * energy, twist)) < 1e-12
    (back,) = jax.linear_transpose(along, v)((0.0, w))
    assert closest(back, w @ cj.jacobian(robot, q, "tip")) < 1e-12
    twice = jax.grad(lambda v: (jax.jvp(lambda q: f(q, v)[1], (q,), (v,))[1] ** 2).sum())
    square = lambda v: ((cj.jacobian_rate(robot, q, v, "tip") @ v) ** 2).sum()
    differences = [(square(v + 1e-6 * e) - square(v - 1e-6 * e)) / 2e-6 for e in np.eye(robot.nv)]
    assert closest(twice(v), np.array(differences)) < 1e-7


def test_parameters_as_inputs():
    """∂τ/∂(inertial parameters) is the regressor; a frame's own function by lengths as written."""
    robot = random_robot(11, 3, ONE_SCREW)
    q, v, a = state(robot, 11, (2,))
    f = made(cj.inverse_dynamics, robot, parameters=["inertial", "gravity"])
    p = robot.parameters("inertial")
    assert closest(f(q, v, a, p, robot.gravity), cj.inverse_dynamics(robot, q, v, a)) < 1e-12
    assert closest(jax.jacfwd(f, 3)(q, v, a, p, robot.gravity), cj.regressor(robot, q, v, a)) < 1e-12
    by_gravity = jax.jacrev(f, 4)(q, v, a, p, robot.gravity)
    assert closest(by_gravity @ robot.gravity, cj.gravity_force(robot, q)) < 1e-12


def test_precision():
    robot = random_robot(12, 3, ONE_SCREW)
    q, v, a = state(robot, 12, (5,))
    f = made(cj.inverse_dynamics, robot)
    expected = cj.inverse_dynamics(robot, q, v, a)
    single = [x.astype(np.float32) for x in (q, v, a)]
    found = f(*single)
    assert found.dtype == np.float32
    assert relative(np.asarray(found), expected) < 1e-4
    gradient = jax.grad(lambda q: f(q, *single[1:]).sum())(jnp.asarray(single[0]))
    assert gradient.dtype == np.float32
    assert f(single[0], v, a).dtype == np.float64
    whole = np.zeros((5, robot.nv), dtype=int)
    assert closest(f(q, whole, whole), cj.gravity_force(robot, q)) < 1e-12
    with pytest.raises(cj.CoadjointError, match=r"q has dtype float16; kernels are of float64 or float32"):
        f(q.astype(np.float16), v, a)
    with pytest.raises(cj.CoadjointError, match="expected real numbers"):
        f(q + 1j, v, a)
    jax.config.update("jax_enable_x64", False)
    assert f(q, v, a).dtype == np.float32
    assert relative(np.asarray(f(q, v, a)), expected) < 1e-4


def test_what_is_wrong_is_said():
    f = made(cj.inverse_dynamics, cj.load("panda"))
    x = np.zeros(7)
    for call in (f, jax.jit(f)):
        with pytest.raises(cj.errors.ShapeError, match=r"v has shape \(6,\); expected \(\.\.\., 7\)"):
            call(x, np.zeros(6), x)
        with pytest.raises(cj.errors.ShapeError, match="batch axes do not broadcast"):
            call(np.zeros((2, 7)), np.zeros((3, 7)), x)
        with pytest.raises(TypeError, match="missing a required argument: 'a'"):
            call(x, x)
    with pytest.raises(cj.CoadjointError, match="the shape of argument 'x' is not known"):
        made(lambda robot, x: x, cj.load("panda"))


def test_robots_side_by_side_and_threads():
    robots = [random_robot(seed, 3, ONE_SCREW) for seed in (13, 14, 15)]
    states = [state(robot, 1, (200,)) for robot in robots]
    functions = [made(cj.inverse_dynamics, robot) for robot in robots]
    together = jax.jit(lambda xs: [f(*x) for f, x in zip(functions, xs, strict=True)])(states)
    expected = [cj.inverse_dynamics(robot, *x) for robot, x in zip(robots, states, strict=True)]
    assert closest(together, expected) < 1e-13

    def gradient(k):
        f = made(cj.inverse_dynamics, robots[k % 3])
        q, v, a = states[k % 3]
        return jax.jit(jax.grad(lambda a: (f(q, v, a) * a).sum()))(jnp.asarray(a))

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(gradient, range(12)))
    for k, x in enumerate(found):
        robot, (q, v, a) = robots[k % 3], states[k % 3]
        tau = cj.inverse_dynamics(robot, q, v, a) + np.einsum("nij,nj->ni", cj.mass_matrix(robot, q), a)
        assert closest(x, tau) < 1e-12


def test_equal_functions_are_compiled_once():
    robot = random_robot(16, 2, ONE_SCREW)
    q = state(robot)[0]
    traces = []

    @jax.jit
    def outer(q):
        traces.append(1)
        return made(cj.gravity_force, robot)(q)

    outer(q), outer(q + 1)
    assert len(traces) == 1
    from coadjoint.interop._jax_functions import _jitted

    before = _jitted.cache_info().currsize
    for _ in range(3):
        made(cj.gravity_force, robot)(q)
    assert _jitted.cache_info().currsize == before + 1


def test_other_devices_run_the_function_as_written():
    """No GPU is needed to see what would be sent to one; and what would, computes the same."""
    from coadjoint.interop._jax_functions import _as_written, primitive
    from coadjoint.interop._programs import program

    robot = random_robot(17, 1, ("free",))
    q, v, a = (jnp.asarray(x) for x in state(robot, 17, (2,)))
    f = made(cj.inverse_dynamics, robot)
    gradient = jax.jit(jax.grad(lambda q: (f(q, v, a) ** 2).sum()))
    assert "coadjoint_" in gradient.lower(q).as_text()
    assert "coadjoint_" not in gradient.trace(q).lower(lowering_platforms=("cuda",)).as_text()
    p = program(cj.inverse_dynamics, robot, None, (), {})
    tau, w = jnp.asarray(cj.inverse_dynamics(robot, q, v, a)), jnp.ones((2, robot.nv))
    for derived, args in (
        (p, (q, v, a)),
        (p.along((0, 2)), (q, v, a, q, a)),
        (p.pulled_back((1, 0)), (q, v[0], a, tau)),
        (p.pulled_back((0,)).along((0, 3)), (q, v, a, w, q, tau)),
    ):
        assert closest(jax.jit(lambda *x, d=derived: _as_written(d, *x))(*args), primitive.bind(*args, program=derived)) < 1e-11


def test_an_unknown_xla_calls_back(monkeypatch):
    from coadjoint.interop import _xla

    robot = random_robot(18, 2, ONE_SCREW)
    q, v, a = state(robot, 18, (3,))
    monkeypatch.setattr(_xla, "version", lambda: None)
    f = made(cj.inverse_dynamics, robot)
    assert closest(f(q, v, a), cj.inverse_dynamics(robot, q, v, a)) < 1e-13
    assert closest(jax.vmap(jax.jacrev(f, 2))(q, v, a), cj.mass_matrix(robot, q)) < 1e-12


def test_every_call_from_xla_can_be_compared(monkeypatch, tmp_path):
    monkeypatch.setenv("COADJOINT_VERIFY", "full")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    robot = random_robot(19, 2, ONE_SCREW)
    q, v, a = state(robot, 19, (3,))
    f = jax.jit(made(cj.inverse_dynamics, robot))
    expected = cj.inverse_dynamics.source(robot, *map(np.asarray, (q, v, a)))
    assert closest(f(q, v, a), expected) < 1e-13
    right = CompiledFunction.run
    monkeypatch.setattr(CompiledFunction, "run", lambda self, *x: right(self, *x) + 1.0)
    with pytest.warns(KernelWarning, match="6 of 6 entries"):
        assert closest(f(q, v, a), expected) < 1e-13


def test_the_handler_refuses_what_does_not_fit():
    from coadjoint.interop import _xla
    from coadjoint.interop._programs import program

    robot = cj.load("panda")
    name = _xla.target(program(cj.gravity_force, robot, None, (), {}), np.float64)
    call = lambda x, *shape: jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(shape, x.dtype))(x)
    assert closest(call(jnp.ones((3, 7)), 3, 7), cj.gravity_force(robot, np.ones((3, 7)))) < 1e-14
    for x, shape in (
        (jnp.ones((3, 7)), (2, 7)),
        (jnp.ones((3, 6)), (3, 7)),
        (jnp.ones((3, 7), dtype=np.float32), (3, 7)),
        (jnp.ones((3, 7)), (3, 6)),
    ):
        with pytest.raises(Exception, match="XLA's buffers are not those that the kernel has"):
            jax.block_until_ready(call(x, *shape))


def test_a_singular_mass_matrix_is_nan_and_robots_that_do_not_move():
    arm = cj.Link.solid("bob", "base", cj.Joint.universal((0, 0, 1), (0, 1, 0)), mass=1.3, com=(0.7, 0, 0))
    f = jax.jit(made(cj.forward_dynamics, cj.Robot("pendulum", [arm])))
    found = f(np.array([[0.3, 0.5], [0.3, np.pi / 2]]), np.zeros(2), np.zeros(2))
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()
    still = cj.Robot("stone", [cj.Link.solid("stone", "base", cj.Joint.fixed(), mass=1.0)])
    assert jax.jit(made(cj.gravity_force, still))(np.zeros((3, 0))).shape == (3, 0)


def test_without_native_code(monkeypatch):
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    assert os.environ["COADJOINT_NATIVE"] == "0"
    robot = random_robot(19, 2, ONE_SCREW)
    q, v, a = state(robot, 19, (3,))
    f = jax.jit(made(cj.inverse_dynamics, robot))
    assert closest(f(q, v, a), cj.inverse_dynamics(robot, q, v, a)) < 1e-12
    assert closest(jax.jit(jax.vmap(jax.jacrev(f, 2)))(q, v, a), cj.mass_matrix(robot, q)) < 1e-12
