"""Operational space: the equations of motion as the task feels them, null-space forces, hierarchies, ellipsoids."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import redundancy as rd
from coadjoint.errors import CoadjointError
from laws import close, derivative
from redundant_robots import redundant

POSITION, TURN = rd.Task("tip", (3, 4, 5)), rd.Task("tip", (0, 1, 2))


@pytest.fixture(params=["as written", pytest.param("native", marks=pytest.mark.native)])
def panda(request):
    robot = cj.load("panda")
    q = robot.random(1, 5)
    return robot, q, *np.random.default_rng(0).normal(size=(2, 5, 7))


def test_equations_of_motion_in_the_task(panda):
    """Λ Ẋ + μ + p = Lᵀ τ for any τ, and Ẋ is the derivative of X along the motion."""
    robot, q, v, tau = panda
    X = rd.task_acceleration(robot, q, v, tau, "tip")
    space, L = rd.operational_space(robot, q, v, "tip"), cj.horizontal_lift(robot, q, "tip")
    left = np.einsum("zij,zj->zi", space.inertia, X) + space.coriolis + space.gravity
    close(left, np.einsum("zji,zj->zi", L, tau), 1e-11)
    a = cj.forward_dynamics(robot, q, v, tau)
    twist = lambda s: np.einsum("zij,zj->zi", cj.jacobian(robot, q + s * v + s * s / 2 * a, "tip"), v + s * a)
    h = 2e-4
    close((8 * (twist(h) - twist(-h)) - (twist(2 * h) - twist(-2 * h))) / (12 * h), X, 1e-8)


def test_forces_of_the_null_space_do_nothing_to_the_task(panda):
    robot, q, v, tau = panda
    wanted = np.random.default_rng(3).normal(size=(5, 6))
    for extra in (None, tau, 10 * v):
        found = rd.task_torque(robot, q, v, wanted, "tip", null_torque=extra)
        close(rd.task_acceleration(robot, q, v, found, "tip"), wanted, 1e-10)
    null = rd.null_space_torque(robot, q, tau, "tip")
    assert np.max(np.abs(null)) > 0.01
    close(np.einsum("zji,zj->zi", cj.horizontal_lift(robot, q, "tip"), null), np.zeros((5, 6)), 1e-10)


def test_the_coriolis_matrix_of_the_task_is_skew_against_the_rate_of_its_inertia():
    robot, q = redundant(11)
    v = np.random.default_rng(1).normal(size=robot.nv)
    C = rd.task_coriolis_matrix(robot, q, v, "tip")
    rate = derivative(robot, lambda x: cj.effective_inertia(robot, x, "tip"), q, v)
    N = rate - 2 * C
    close(N + N.T, np.zeros((6, 6)), 1e-6 * np.max(np.abs(rate)))
    horizontal, _ = rd.split_velocity(robot, q, v, "tip")
    X = cj.jacobian(robot, q, "tip") @ v
    mu = rd.operational_space(robot, q, horizontal, "tip").coriolis
    close(rd.task_coriolis_matrix(robot, q, horizontal, "tip") @ X, mu, 1e-9)


def test_hierarchies(panda):
    """The first task is done, the second as far as the first allows: here both; three rows more than there are freedoms are refused."""
    robot, q, v, _ = panda
    G = rd.prioritized_inverse(robot, q, [POSITION, TURN])
    J = cj.jacobian(robot, q, "tip")[:, [3, 4, 5, 0, 1, 2]]
    close(J @ G, np.broadcast_to(np.eye(6), (5, 6, 6)), 1e-9)
    close(G, cj.horizontal_lift(robot, q, rd.Task("tip", (3, 4, 5, 0, 1, 2))), 1e-8)
    rng = np.random.default_rng(2)
    wanted = [rng.normal(size=(5, 3)), rng.normal(size=(5, 3))]
    tau = rd.prioritized_torque(robot, q, v, [POSITION, TURN], wanted)
    for task, x in zip((POSITION, TURN), wanted, strict=True):
        close(rd.task_acceleration(robot, q, v, tau, task), x, 1e-9)
    with pytest.raises(CoadjointError, match="the tasks have 9 rows"):
        rd.prioritized_inverse(robot, q, [POSITION, TURN, POSITION])
    with pytest.raises(CoadjointError, match="2 tasks and 1 accelerations"):
        rd.prioritized_torque(robot, q, v, [POSITION, TURN], wanted[:1])


def test_a_second_task_yields():
    """Two frames' positions with 7 freedoms: the first is exact; the second is least squares in kinetic energy where it conflicts."""
    robot = cj.load("panda")
    q = robot.random(5)
    elbow = rd.Task("link4", (3, 4, 5), "world")
    first, second = np.array([0.1, -0.2, 0.3]), np.array([0.2, 0.1, 0.0])
    with pytest.raises(rd.SingularTaskError, match="conflict"):
        rd.prioritized_inverse(
            robot, q, [elbow, rd.Task("link3", (3, 4, 5), "world")]
        )  # link 4 moves with link 3 but for one joint
    v = rd.prioritized_inverse(robot, q, [POSITION, elbow], damping=1e-4) @ np.concatenate([first, second])
    close(POSITION.jacobian(robot, q) @ v, first, 1e-5)
    exact = rd.prioritized_inverse(robot, q, [POSITION, rd.Task("link4", (4, 5), "world")]) @ np.concatenate([first, second[1:]])
    close(POSITION.jacobian(robot, q) @ exact, first, 1e-9)
    close(rd.Task("link4", (4, 5), "world").jacobian(robot, q) @ exact, second[1:], 1e-9)
    M = cj.mass_matrix(robot, q)
    J = np.concatenate([POSITION.jacobian(robot, q), rd.Task("link4", (4, 5), "world").jacobian(robot, q)])
    Y = np.linalg.solve(M, J.T)
    close(exact, Y @ np.linalg.solve(J @ Y, np.concatenate([first, second[1:]])), 1e-8)  # both can be done: the least energy


@pytest.mark.slow
def test_manipulability_and_its_gradient(panda):
    robot, q, *_ = panda
    J, M = cj.jacobian(robot, q, "tip"), cj.mass_matrix(robot, q)
    transposed = J.swapaxes(-1, -2)
    close(rd.manipulability(robot, q, "tip"), np.sqrt(np.linalg.det(J @ transposed)), 1e-11)
    close(rd.manipulability(robot, q, "tip", metric="kinetic"), np.sqrt(np.linalg.det(J @ np.linalg.solve(M, transposed))), 1e-9)
    for metric in ("euclidean", "kinetic"):
        gradient = rd.manipulability_gradient(robot, q, POSITION, metric=metric)
        slopes = [derivative(robot, lambda x, m=metric: rd.manipulability(robot, x, POSITION, metric=m), q, e) for e in np.eye(7)]
        close(gradient, np.stack(slopes, -1), 1e-7)
    assert rd.manipulability(robot, np.zeros(7), "tip") < 1e-7
    with pytest.raises(CoadjointError, match="metric is 'flat'"):
        rd.manipulability(robot, q, "tip", metric="flat")


@pytest.mark.native
def test_gradients_by_tracing_are_the_formulas():
    robot = cj.load("puma560")
    q = robot.random(0, 4)
    for metric in ("euclidean", "kinetic"):
        traced = cj.derivative(rd.manipulability, robot, frame="tip", rows=(3, 4, 5), metric=metric)
        close(traced(q), rd.manipulability_gradient(robot, q, "tip", (3, 4, 5), metric=metric), 1e-9)


def test_ellipsoids():
    """Half-axes are the singular values; the inertia ellipsoid is the inverse of the mobility; unit velocities fill them."""
    robot = cj.load("panda")
    q = robot.random(2, 3)
    J = cj.jacobian(robot, q, "tip")[:, 3:]
    found = rd.ellipsoid(robot, q, "tip", (3, 4, 5))
    close(found.lengths, np.linalg.svd(J)[1], 1e-12)
    inertia, mobility = (rd.ellipsoid(robot, q, "tip", (3, 4, 5), kind) for kind in ("inertia", "mobility"))
    close(inertia.matrix @ mobility.matrix, np.broadcast_to(np.eye(3), (3, 3, 3)), 1e-9)
    close(inertia.matrix, cj.effective_inertia(robot, q, "tip", (3, 4, 5)), 1e-9)
    assert np.all(np.diff(inertia.lengths, axis=-1) <= 0)
    close((inertia.axes * inertia.lengths[:, None] ** 2) @ inertia.axes.swapaxes(-1, -2), inertia.matrix, 1e-10)
    v = np.random.default_rng(0).normal(size=(500, 3, 7))
    v = v / np.linalg.norm(v, axis=-1, keepdims=True)
    X = np.einsum("zij,kzj->kzi", J, v)
    inside = np.einsum("kzi,zij,kzj->kz", X, np.linalg.inv(found.matrix), X)
    assert inside.max() <= 1 + 1e-9
    close(rd.ellipsoid(robot, q, "tip", (3, 4, 5), "force").lengths[:, ::-1] * found.lengths, np.ones((3, 3)), 1e-10)
    weightless = robot.with_gravity((0, 0, 0))
    push = rd.task_acceleration(weightless, q, np.zeros((3, 7)), v[0], POSITION)
    A = rd.ellipsoid(robot, q, "tip", (3, 4, 5), "acceleration").matrix
    assert np.all(np.einsum("zi,zij,zj->z", push, np.linalg.inv(A), push) <= 1 + 1e-9)
    with pytest.raises(CoadjointError, match="mix radians and metres"):
        rd.ellipsoid(robot, q, "tip")
    with pytest.raises(CoadjointError, match="kind is 'ball'"):
        rd.ellipsoid(robot, q, "tip", (3, 4, 5), "ball")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_posture_behind_a_pose(dtype):
    """Thirteen rows for seven freedoms: with damping the pose comes first, and the posture has what is left, the vertical part."""
    robot = cj.load("panda")
    q, X, u = robot.random(0), 0.1 * np.arange(1.0, 7.0), np.ones(7)
    posture = rd.MapTask(lambda robot, q: q, 7, "posture")
    G = rd.prioritized_inverse(robot, q.astype(dtype), ["tip", posture], damping=1e-5)
    assert G.dtype == dtype
    v = G @ np.concatenate([X, u])
    close(cj.jacobian(robot, q, "tip") @ v, X, 1e-5 if dtype is np.float64 else 1e-4)
    lifted = cj.horizontal_lift(robot, q, "tip") @ X
    n = rd.vertical_basis(robot, q, "tip")[:, 0]
    close(v - lifted, n * (n @ (u - lifted)) / (n @ n), 1e-4)  # least squares of the posture along the fibre
    with pytest.raises(CoadjointError, match=r"the tasks have 13 rows.*or give damping"):
        rd.prioritized_inverse(robot, q, ["tip", posture])
    with pytest.raises(CoadjointError, match="damping is nan"):
        rd.prioritized_inverse(robot, q, ["tip", posture], damping=float("nan"))
