"""The horizontal lift and what is made of it: laws on random chains, case 24, singular tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import coadjoint as cj
from coadjoint import redundancy as rd
from coadjoint.errors import CoadjointError
from coadjoint.lie import se3
from laws import derivative
from random_robots import ONE_SCREW, random_robot, random_velocity
from redundant_robots import case_24

seeds = st.integers(0, 2**32 - 1)
FEW = [HealthCheck.filter_too_much]  # some chains can do less than six things
BRACKETS = np.array([[se3.ad_act(a, b) for b in np.eye(6)] for a in np.eye(6)])


def redundant(seed: int, kinds=ONE_SCREW, n: int = 8):
    """A random chain with at least 7 freedoms, and a configuration where its tip can do everything."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, n, kinds, tree=False)
    q = robot.random(rng, 8)
    return robot, q[int(np.argmax(dexterity(robot, q)))]


def dexterity(robot, q):
    """The least singular value of J N⁻¹, Nᵀ N = M, its rows of ω and of v divided by their root mean square: independent of `rd`."""
    if robot.nv < 6:
        return np.zeros(np.shape(q)[:-1])
    N = np.linalg.cholesky(cj.mass_matrix(robot, q)).mT
    J = cj.jacobian(robot, q, "tip") @ np.linalg.inv(N)
    size = np.sqrt(np.mean(np.sum(J**2, -1).reshape(*np.shape(q)[:-1], 2, 3), -1))
    return np.linalg.svd(J / np.repeat(np.where(size > 0, size, 1.0), 3, -1)[..., None], compute_uv=False)[..., -1]


def close(found, wanted, tolerance=1e-9):
    scale = max(1.0, float(np.max(np.abs(wanted))))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * scale)


@pytest.fixture(params=["as written", pytest.param("native", marks=pytest.mark.native)])
def way(request):
    """Both executions."""


def test_case_24():
    case = case_24()
    robot, x = case.robot, case.inputs
    wanted = {key: np.array(value) for key, value in case.expected.items()}
    horizontal, vertical = rd.split_velocity(robot, x.q, x.qd, "tool")
    force, gradient = rd.lift_function(robot, x.q, x.eta, "tool")
    found = {
        "lift": cj.horizontal_lift(robot, x.q, "tool"),
        "pinv": rd.moore_penrose(robot, x.q, "tool"),
        "X": cj.jacobian(robot, x.q, "tool") @ x.qd,
        "qd_horizontal": horizontal,
        "qd_vertical": vertical,
        "operational_inertia": cj.effective_inertia(robot, x.q, "tool"),
        "Xdot": rd.task_acceleration(robot, x.q, x.qd, x.tau, "tool"),
        "dvartheta": force,
        "grad_vartheta": gradient,
    }
    for key, value in found.items():
        np.testing.assert_allclose(value, wanted[key], **case.close, err_msg=key)
    assert np.max(np.abs(found["lift"] - found["pinv"])) == pytest.approx(wanted["max_lift_minus_pinv"], rel=1e-9)


@pytest.mark.slow
@pytest.mark.native
def test_case_24_native():
    case = case_24()
    np.testing.assert_allclose(cj.horizontal_lift(case.robot, case.inputs.q, "tool"), case.expected["lift"], **case.close)
    found = cj.effective_inertia(case.robot, case.inputs.q, "tool")
    np.testing.assert_allclose(found, case.expected["operational_inertia"], **case.close)


def test_case_24_brackets():
    case = case_24()
    robot, q = case.robot, case.inputs.q
    np.testing.assert_allclose(rd.lift_brackets(robot, q, "tool")[:, 0, 1], case.expected["bracket_L0_L1"], **case.close)
    for key, weight in (("lift", None), ("pinv", np.eye(9))):
        largest = np.max(np.abs(rd.vertical_brackets(robot, q, "tool", weight=weight)))
        assert largest == pytest.approx(case.expected[f"vertical_bracket_norm_{key}"], rel=1e-9)


@settings(max_examples=12, deadline=None, suppress_health_check=FEW)
@given(seeds)
def test_the_lift_is_an_inverse_and_horizontal(seed):
    """J L = 1, L ⊥ ker J in M, L = N⁻¹ (J N⁻¹)⁺ for any N with Nᵀ N = M, Λ = Lᵀ M L; joints of every kind."""
    robot, q = redundant(seed, kinds=("revolute", "prismatic", "helical", "universal", "spherical", "planar", "free"), n=6)
    assume(robot.nv >= 7 and dexterity(robot, q) > 1e-3)
    J, M, L = cj.jacobian(robot, q, "tip"), cj.mass_matrix(robot, q), cj.horizontal_lift(robot, q, "tip")
    close(J @ L, np.eye(6))
    vertical = rd.vertical_basis(robot, q, "tip")
    close(J @ vertical, np.zeros((6, robot.nv - 6)))
    close(vertical.T @ M @ vertical, np.eye(robot.nv - 6))
    close(vertical.T @ M @ L, np.zeros((robot.nv - 6, 6)), 1e-8)
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(robot.nv, robot.nv)))
    N = turn @ np.linalg.cholesky(M).T
    close(np.linalg.solve(N, np.linalg.pinv(J @ np.linalg.inv(N))), L, 1e-7)
    close(L.T @ M @ L, cj.effective_inertia(robot, q, "tip"), 1e-8)
    H = rd.horizontal_basis(robot, q, "tip")
    close(H.T @ M @ H, np.eye(6), 1e-8)
    v = random_velocity(robot, rng)
    parts = rd.split_velocity(robot, q, v, "tip")
    close(sum(parts), v)
    assert sum(x @ M @ x for x in parts) == pytest.approx(v @ M @ v, rel=1e-8)  # Pythagoras
    close(rd.vertical_projector(robot, q, "tip") @ v, parts[1], 1e-8)


@settings(max_examples=20, deadline=None, suppress_health_check=FEW)
@given(seeds)
def test_the_lift_does_not_depend_on_coordinates(seed):
    """In coordinates x with q = A x the same velocity has the least energy; Moore and Penrose's inverse is another one."""
    robot, q = redundant(seed)
    assume(dexterity(robot, q) > 1e-3)
    A = np.diag(np.random.default_rng(seed).uniform(0.3, 3.0, robot.nv))
    J, M = cj.jacobian(robot, q, "tip") @ A, A.T @ cj.mass_matrix(robot, q) @ A
    Y = np.linalg.solve(M, J.T)
    close(A @ Y @ np.linalg.inv(J @ Y), cj.horizontal_lift(robot, q, "tip"), 1e-7)
    other = A @ np.linalg.pinv(J)
    assert np.max(np.abs(other - rd.moore_penrose(robot, q, "tip"))) > 1e-3


def test_dexterity_is_the_least_singular_value():
    for seed in range(20):
        robot, q = redundant(seed)
        assert rd.dexterity(robot, q, "tip") == pytest.approx(dexterity(robot, q), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("rows", [(3, 4, 5), (0, 1, 2), (5,), [2, 3], np.array([0, 5])])
def test_rows(rows, way):
    robot = cj.load("panda")
    q = robot.random(3, (2, 2))
    L = cj.horizontal_lift(robot, q, "tip", rows=rows)
    assert L.shape == (2, 2, 7, len(rows))
    close(cj.jacobian(robot, q, "tip")[..., list(rows), :] @ L, np.broadcast_to(np.eye(len(rows)), (2, 2, len(rows), len(rows))))
    assert cj.effective_inertia(robot, q, "tip", rows).shape == (2, 2, len(rows), len(rows))


def test_world_axes_turn_the_lift():
    robot = cj.load("panda")
    q = robot.random(1)
    R = cj.pose(robot, q, "tip")[:3, :3]
    close(cj.horizontal_lift(robot, q, rd.Task("tip", (3, 4, 5), "world")) @ R, cj.horizontal_lift(robot, q, "tip", (3, 4, 5)))


@settings(max_examples=12, deadline=None, suppress_health_check=FEW)
@given(seeds)
def test_brackets_of_lifts_do_what_the_twists_do(seed):
    """J [L_a, L_b] = [e_a, e_b], with spherical, planar and free joints too; its vertical part is that of O'Neill's tensor, twice."""
    robot, q = redundant(seed, kinds=("revolute", "prismatic", "universal", "spherical", "planar", "free", "helical"), n=5)
    assume(robot.nv >= 6 and dexterity(robot, q) > 3e-3)
    J, B = cj.jacobian(robot, q, "tip"), rd.lift_brackets(robot, q, "tip")
    close(np.einsum("kn,nab->abk", J, B), BRACKETS, 1e-7 * max(1, np.max(np.abs(B))))
    A, V = rd.oneill_tensor(robot, q, "tip"), rd.vertical_brackets(robot, q, "tip")
    close(A - A.swapaxes(-1, -2), V, 1e-8)
    close(J @ A.reshape(robot.nv, 36), np.zeros((6, 36)), 1e-7 * max(1, np.max(np.abs(A))))


@pytest.mark.parametrize("weight", ["lift", pytest.param("moore-penrose", marks=pytest.mark.slow)])
def test_brackets_by_differences(weight):
    """[L_a, L_b] = L_a(L_b) - L_b(L_a), by differences of the inverse; a user's own inverse by tracing gives the same."""
    robot, q = redundant(5)
    W = None if weight == "lift" else np.eye(robot.nv)
    task = rd.Task("tip")
    inverse = lambda x: rd.weighted_inverse(robot, x, task, W)
    L = inverse(q)
    D = np.stack([derivative(robot, inverse, q, L[:, a]) for a in range(6)], axis=1)  # n a b
    V = np.einsum("nm,mab->nab", np.eye(robot.nv) - L @ cj.jacobian(robot, q, "tip"), D - D.swapaxes(1, 2))
    found = rd.vertical_brackets(robot, q, "tip", weight=W)
    close(found, V, 1e-6)
    if weight == "moore-penrose":
        own = lambda robot, q: rd.moore_penrose(robot, q, "tip")
        close(rd.inverse_brackets(robot, q, own, "tip"), found, 1e-9)


@pytest.mark.slow
@pytest.mark.native
def test_a_task_of_ones_own():
    """The position of the tip as a user writes it: the same lift, brackets and self-motions as the rows in the axes of space."""
    robot = cj.load("panda")
    q = robot.random(2, 3)
    own = rd.MapTask(lambda robot, q: cj.pose(robot, q, "tip")[..., :3, 3], 3, "position")
    same = rd.Task("tip", (3, 4, 5), "world")
    close(own.jacobian(robot, q), same.jacobian(robot, q), 1e-12)
    v = np.random.default_rng(0).normal(size=(3, 7))
    close(own.jacobian_rate(robot, q, v), same.jacobian_rate(robot, q, v), 1e-12)
    close(cj.horizontal_lift(robot, q, own), cj.horizontal_lift(robot, q, same))
    compiled = cj.compile(cj.horizontal_lift, robot, frame=own)
    close(compiled(q), cj.horizontal_lift(robot, q, same))
    close(rd.vertical_brackets(robot, q[0], own), rd.vertical_brackets(robot, q[0], same), 1e-8)


def test_gradients_of_functions_of_the_pose():
    """θ = |p - c|²: η = (0, 2 Rᵀ(p - c)); ϑ = θ∘ρ has dϑ = Jᵀ η, and its gradient is horizontal."""
    robot = cj.load("panda")
    q, c = robot.random(4), np.array([0.3, 0.2, 0.5])
    T = cj.pose(robot, q, "tip")
    eta = np.concatenate([np.zeros(3), 2 * T[:3, :3].T @ (T[:3, 3] - c)])
    force, gradient = rd.lift_function(robot, q, eta, "tip")
    distance = lambda x: np.sum((cj.pose(robot, x, "tip")[..., :3, 3] - c) ** 2, -1)
    slope = np.array([derivative(robot, distance, q, e) for e in np.eye(7)])
    close(force, slope, 1e-8)
    horizontal, _ = rd.split_velocity(robot, q, gradient, "tip")
    close(horizontal, gradient)
    close(cj.mass_matrix(robot, q) @ gradient, force)


def test_flat_coordinates_turn_the_lift_into_a_pseudoinverse():
    """With the isometry's N = ∂q̃/∂q of a flat robot, L = N⁻¹ (J N⁻¹)⁺: Altafini (9), (11) and what is true of (23)."""
    from coadjoint.geometry import flat_coordinates
    from redundant_robots import balanced_3r

    robot = balanced_3r()
    q = np.array([0.3, 0.9, -0.5])
    _, N = flat_coordinates(robot, q)
    close(N.T @ N, cj.mass_matrix(robot, q), 1e-9)
    J = cj.jacobian(robot, q, "tip")[[3, 4]]
    close(np.linalg.solve(N, np.linalg.pinv(J @ np.linalg.inv(N))), cj.horizontal_lift(robot, q, "tip", (3, 4)), 1e-8)
    assert np.max(np.abs(np.linalg.pinv(J) - cj.horizontal_lift(robot, q, "tip", (3, 4)))) > 0.05


def test_singular_tasks_are_named(way):
    panda, planar = cj.load("panda"), cj.load("planar_nr")
    with pytest.raises(CoadjointError, match=r"has 6 rows, robot 'planar3r' has 3 freedoms"):
        cj.horizontal_lift(planar, [0.1, 0.2, 0.3], "tip")
    with pytest.raises(rd.SingularTaskError, match=r"rows \(0,\) do not move; choose rows=\(3,\)"):
        cj.horizontal_lift(planar, [0.1, 0.2, 0.3], "tip", (0, 3))
    with pytest.raises(rd.SingularTaskError, match=r"'tip', rows \(3, 4\) of robot 'planar3r' is singular in state 1"):
        cj.horizontal_lift(planar, [[0.1, 0.2, 0.3], [0.1, 0.0, 0.0]], "tip", (3, 4))
    stretched = np.array([0.3, 0.0, 0.5, 0.0, 0.2, 0.4, 0.1])
    for function in (cj.horizontal_lift, cj.effective_inertia, rd.vertical_projector, rd.vertical_brackets, rd.moore_penrose):
        with pytest.raises(rd.SingularTaskError, match=r"cannot be done|do not move"):
            function(planar, [0.1, 0.0, 0.0], "tip", (3, 4)) if function is not cj.horizontal_lift else function(
                panda, stretched, "tip"
            )
    assert np.all(np.isfinite(rd.weighted_inverse(panda, stretched, rd.Task("tip"), damping=0.1)))
    assert rd.dexterity(panda, stretched, "tip") < 1e-7
    for rows in ((0, 0), (6,), (), "xy", 3.5):
        with pytest.raises(CoadjointError, match="rows is"):
            cj.horizontal_lift(panda, stretched, "tip", rows)
    with pytest.raises(CoadjointError, match="no frame is named 'hand'"):
        cj.horizontal_lift(panda, stretched, "hand")
    with pytest.raises(CoadjointError, match="q has shape"):
        cj.horizontal_lift(panda, np.zeros(6), "tip")


def test_what_is_not_a_number_stays_so(way):
    robot = cj.load("panda")
    assert np.all(np.isnan(cj.horizontal_lift(robot, np.full(7, np.nan), "tip")))


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_other_arrays(library):
    module = pytest.importorskip(library)
    robot, task = cj.load("planar_nr"), rd.Task("tip", (3, 4))
    q = robot.random(3, 2)
    if library == "jax":
        module.config.update("jax_enable_x64", True)
        x, run = module.numpy.asarray(q), module.jit
    else:
        x, run = module.tensor(q), lambda f: f
    for function in (cj.horizontal_lift, cj.effective_inertia, rd.manipulability):
        close(np.asarray(run(lambda y, f=function: f(robot, y, task))(x)), function(robot, q, task), 1e-10)
    own = rd.MapTask(lambda robot, q: cj.pose(robot, q, "tip")[..., :2, 3], 2, "xy")
    with pytest.raises(CoadjointError, match="task 'xy' is a function of yours"):
        run(lambda y: cj.horizontal_lift(robot, y, own))(x)
    if library == "torch":  # as JAX compiles it for half a minute
        close(np.asarray(rd.vertical_brackets(robot, x, task)), rd.vertical_brackets(robot, q, task), 1e-9)


@pytest.mark.native
def test_native_is_as_written():
    from coadjoint.kernel.dispatch import as_written
    from coadjoint.redundancy import integrability, lift

    panda, planar = (cj.load("panda"), rd.Task("tip")), (cj.load("planar_nr"), rd.Task("tip", (3, 4)))
    kernels = [(lift._weighted_inverse, *panda), (lift._split_velocity, *planar), (lift._vertical_projector, *planar)]
    kernels += [(integrability.vertical_brackets_kernel, *planar), (integrability.oneill_kernel, *planar)]
    for fn, robot, task in kernels:
        q = robot.random(0, 50)
        if fn is lift._split_velocity:
            v = np.random.default_rng(0).normal(size=q.shape)
            close(fn(robot, q, v, task)[1], as_written(fn)(robot, q, v, task)[1])
            continue
        written = as_written(fn)(robot, q, task)
        scale = np.max(np.abs(written), axis=tuple(range(1, written.ndim)), keepdims=True)
        assert np.max(np.abs(fn(robot, q, task) - written) / scale) < 1e-10


@pytest.mark.slow
def test_every_singular_configuration_is_found(way):
    """Rounding leaves ±1e-16 of the freedom that is lost: with either sign there is no inverse."""
    robot, rng = cj.load("panda"), np.random.default_rng(0)
    q = robot.random(rng, 40)
    q[:, [1, 3]] = 0.0  # shoulder and elbow straight
    for state in q:
        for function in (cj.horizontal_lift, rd.moore_penrose, cj.effective_inertia, rd.vertical_projector):
            with pytest.raises(rd.SingularTaskError, match="cannot be done"):
                function(robot, state, "tip")
        with pytest.raises(rd.SingularTaskError, match="conflict"):
            rd.prioritized_inverse(robot, state, [rd.Task("tip", (0, 1, 2)), rd.Task("tip", (3, 4, 5))])


def test_joints_that_do_not_move_the_task_do_not_hide_that_it_is_singular(way):
    """A SCARA's stretched arm: its last two joints are free of it, and gravity does nothing to its position in the plane."""
    robot, v = cj.load("scara"), np.ones(4)
    for call in (
        lambda q: cj.horizontal_lift(robot, q, "tip", (3, 4)),
        lambda q: rd.split_velocity(robot, q, v, "tip", (3, 4)),
        lambda q: rd.vertical_projector(robot, q, "tip", (3, 4)),
        lambda q: rd.operational_space(robot, q, v, "tip", (3, 4)),
        lambda q: rd.null_space_torque(robot, q, v, "tip", (3, 4)),
        lambda q: rd.manipulability_gradient(robot, q, "tip", (3, 4)),
        lambda q: rd.prioritized_inverse(robot, q, [rd.Task("tip", (3, 4)), rd.Task("tip", (5,))]),
    ):
        with pytest.raises(rd.SingularTaskError):
            call(np.array([0.3, 0.0, 0.1, 0.0]))
        call(np.array([0.3, 0.5, 0.1, 0.0]))


def test_a_robot_without_mass_is_reported():
    links = [cj.Link("a", "base", cj.Joint.revolute(name="a")), cj.Link.solid("b", "a", cj.Joint.revolute(name="b"), mass=1.0)]
    robot = cj.Robot("massless", links)
    for function in (cj.horizontal_lift, rd.dexterity, rd.effective_inertia, rd.vertical_basis):
        with pytest.raises(CoadjointError, match="the mass matrix of robot 'massless' is singular"):
            function(robot, np.array([0.1, 0.2]), "b", (2,))


def test_single_precision_knows_what_is_singular(way):
    """Rounding of 1e-7 hides that J has lost rank; so it is computed in double precision, and given in single."""
    robot, rng = cj.load("panda"), np.random.default_rng(0)
    q = robot.random(rng, 12)
    L = cj.horizontal_lift(robot, q, "tip")
    single = cj.horizontal_lift(robot, q.astype(np.float32), "tip")
    assert single.dtype == np.float32
    assert np.max(np.abs(single - L) / np.max(np.abs(L), axis=(1, 2), keepdims=True)) < 1e-3
    parts = rd.split_velocity(robot, q.astype(np.float32), np.ones((12, 7), np.float32), "tip")
    assert all(part.dtype == np.float32 for part in parts)
    out = np.empty_like(single)
    assert cj.horizontal_lift(robot, q.astype(np.float32), "tip", out=out) is out
    assert np.array_equal(out, single)
    q[:, [1, 3]] = 0.0  # shoulder and elbow straight
    for state in q:
        for function in (cj.horizontal_lift, rd.moore_penrose, rd.weighted_inverse):
            with pytest.raises(rd.SingularTaskError, match="cannot be done"):
                function(robot, state.astype(np.float32), "tip")


def test_a_basis_of_the_vertical_spans_it_or_there_is_none():
    planar = cj.load("planar_nr")
    with pytest.raises(rd.SingularTaskError, match="do not move"):
        rd.vertical_basis(planar, [[0.1, 0.5, 0.2], [0.1, 0.0, 0.0]], "tip", (3, 4))
    with pytest.raises(CoadjointError, match="has 6 rows"):
        rd.vertical_basis(planar, [0.1, 0.5, 0.2], "tip")
