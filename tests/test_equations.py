"""Equations of the papers that no other test states, written out as they stand there. `docs/papers.md` says which is where."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag, expm

import coadjoint as cj
import laws
from coadjoint.lie import inertia, se3, so3
from laws import rate
from random_robots import ONE_SCREW, random_inertia, random_pose, random_robot


def close(found, expected, tolerance=1e-12):
    laws.close(found, expected, tolerance)


@pytest.fixture(params=range(3))
def chain(request):
    """A chain of joints with one screw each, and a state."""
    rng = np.random.default_rng(request.param)
    return random_robot(rng, 5, ONE_SCREW, tree=False), *rng.normal(size=(3, 5))


def exponentials(screws, q, start, stop):
    """e^{A x} of the joints start … stop - 1, in this order."""
    product = np.eye(4)
    for k in range(start, stop):
        product = product @ expm(se3.hat(screws[k]) * q[k])
    return product


# --- Park, Bobrow & Ploen (1995)


def test_forces_move_as_angular_velocities_and_moments_as_velocities():
    """(8)-(11): (f, m) by Ad_T⁻¹, as a vector and as a matrix, is (m, f) by Ad_T*."""
    rng = np.random.default_rng(0)
    T, m, f = random_pose(rng), *rng.normal(size=(2, 3))
    found = se3.Ad_dual_act(T, np.concatenate([m, f]))
    exchanged = np.concatenate([found[3:], found[:3]])
    close(np.linalg.inv(se3.Ad(T)) @ np.concatenate([f, m]), exchanged)
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = so3.hat(f), m
    close(se3.inverse(T) @ matrix @ T, se3.hat(exchanged))


def test_body_jacobian_written_out(chain):
    """(18) by the screws B of the body, (20) by the screws A of space."""
    robot, q, *_ = chain
    A, home = cj.space_screws(robot, "tip")
    B, _ = cj.body_screws(robot, "tip")
    J = cj.jacobian(robot, q, "tip").T
    close([se3.Ad_inv_act(exponentials(B, q, i + 1, 5), B[i]) for i in range(5)], J)
    close([se3.Ad_inv_act(home, se3.Ad_inv_act(exponentials(A, q, i + 1, 5), A[i])) for i in range(5)], J)


def test_featherstones_arrangement():
    """(28) takes (ω, v) to (f, m), and his inner product (a, b) · (c, d) = aᵀd + bᵀc is ours of a twist and a wrench."""
    rng = np.random.default_rng(1)
    m, com, about_com = random_inertia(rng)
    r, V = so3.hat(com), rng.normal(size=6)
    spatial = np.block([[-m * r, m * np.eye(3)], [about_com - m * r @ r, m * r]])
    momentum = inertia.apply(inertia.from_body(m, com, about_com), V)
    close((spatial @ V)[[3, 4, 5, 0, 1, 2]], momentum)
    close(V[:3] @ (spatial @ V)[3:] + V[3:] @ (spatial @ V)[:3], V @ momentum)


def test_links_follow_each_other(chain):
    """(67)-(72): poses, velocities and the derivative of Ad_{f⁻¹} V along a motion q(t) = q + t v + t²/2 a."""
    robot, q, v, a = chain
    at = lambda t: q + t * v + t * t / 2 * a
    step = lambda i, t: robot.placements[i] @ se3.exp_screw(robot.screws[i], at(t)[i])
    poses, V = cj.forward_kinematics(robot, q), cj.link_velocities(robot, q, v)
    velocity = lambda t: cj.link_velocities(robot, at(t), v + t * a)
    dV = rate(velocity)
    for i in range(1, 5):
        f, S = step(i, 0.0), robot.screws[i]
        close(poses[i - 1] @ f, poses[i])
        close(se3.vee(se3.inverse(poses[i]) @ rate(lambda t, i=i: cj.forward_kinematics(robot, at(t))[i])), V[i], 1e-9)
        close(se3.Ad_inv_act(f, V[i - 1]) + S * v[i], V[i])
        carried = se3.Ad_inv_act(f, V[i - 1])
        change = rate(lambda t, i=i: se3.Ad_inv_act(step(i, t), velocity(t)[i - 1]))
        close(se3.Ad_inv_act(f, dV[i - 1]) + se3.ad_act(carried, S * v[i]), change, 1e-9)
        close(change + S * a[i], dV[i], 1e-9)


def test_newton_and_euler_of_a_link():
    """(74)-(79) and (81): force and moment of a body by its accelerations are J V̇ - ad*_V (J V)."""
    rng = np.random.default_rng(2)
    m, com, about_com = random_inertia(rng)
    w, v, dw, dv = rng.normal(size=(4, 3))
    origin = dv + np.cross(w, v)  # (76)
    centre = origin + np.cross(dw, com) + np.cross(w, np.cross(w, com))  # (77)
    force = m * centre  # (74)
    moment = about_com @ dw + np.cross(w, about_com @ w) + np.cross(com, m * centre)  # (75)
    body, V, A = inertia.from_body(m, com, about_com), np.concatenate([w, v]), np.concatenate([dw, dv])
    close(inertia.apply(body, A) - se3.ad_dual_act(V, inertia.apply(body, V)), np.concatenate([moment, force]))
    W, dW, r = so3.hat(w), so3.hat(dw), so3.hat(com)
    close(m * (dv + W @ v + dW @ com + W @ W @ com), force)  # (78), (81)
    inner = m * r @ dv + m * r @ W @ v + m * r @ dW @ com + m * r @ W @ W @ com
    close(about_com @ dw + np.cross(w, about_com @ w) + inner, moment)  # (79)


def test_what_acts_on_a_link(chain):
    """(80): the wrench through a link's own joint, less what it passes on, is what moves the link."""
    robot, q, v, a = chain
    at = lambda t: (q + t * v + t * t / 2 * a, v + t * a)
    F, V = cj.joint_reactions(robot, q, v, a), cj.link_velocities(robot, q, v)
    dV, poses = rate(lambda t: cj.link_velocities(robot, *at(t))), cj.forward_kinematics(robot, q)
    for i in range(5):
        J, weight = robot.inertias[i], np.append(np.zeros(3), poses[i][:3, :3].T @ robot.gravity)
        acting = inertia.apply(J, dV[i] - weight) - se3.ad_dual_act(V[i], inertia.apply(J, V[i]))
        passed = np.zeros(6)
        if i < 4:
            passed = se3.Ad_inv_dual_act(robot.placements[i + 1] @ se3.exp_screw(robot.screws[i + 1], q[i + 1]), F[i + 1])
        close(F[i] - passed, acting, 1e-9)


def block_diagonal(parts):
    """Matrices, or vectors as columns, along the diagonal."""
    return block_diag(*(x if x.ndim == 2 else x[:, None] for x in parts))


def test_velocity_and_mass_matrix_by_space_screws(chain):
    """(33)-(40): Ad_i^{j+1}(A_j), the velocity of every link, and the mass matrix as a sum of their inner products."""
    robot, q, v, _ = chain
    A, _ = cj.space_screws(robot, robot.link_names[-1])
    homes = cj.forward_kinematics(robot, np.zeros(5))
    D = [inertia.spatial(inertia.transform(homes[k], robot.inertias[k])) for k in range(5)]  # (36)
    seen = [[se3.Ad_inv_act(exponentials(A, q, j + 1, k + 1), A[j]) for j in range(k + 1)] for k in range(5)]  # (37)
    twists = [sum(seen[k][j] * v[j] for j in range(k + 1)) for k in range(5)]  # (38)
    close(se3.Ad_inv_act(homes, twists), cj.link_velocities(robot, q, v))  # (33), (34)
    assert sum(0.5 * twists[k] @ D[k] @ twists[k] for k in range(5)) == pytest.approx(cj.kinetic_energy(robot, q, v), rel=1e-12)
    M = [[sum(seen[k][i] @ D[k] @ seen[k][j] for k in range(max(i, j), 5)) for j in range(5)] for i in range(5)]  # (40)
    close(M, cj.mass_matrix(robot, q))


def test_mass_matrix_in_factors(chain):
    """(41)-(51): M = 𝒜ᵀ ℒᵀ 𝒟 ℒ 𝒜 by space screws, 𝒮ᵀ 𝒢ᵀ 𝒥 𝒢 𝒮 by the recursion's quantities, and how these belong together."""
    robot, q, *_ = chain
    screws, _ = cj.space_screws(robot, robot.link_names[-1])
    homes, poses = cj.forward_kinematics(robot, np.zeros(5)), cj.forward_kinematics(robot, q)
    lower = lambda entry: np.block([[entry(i, j) if j <= i else np.zeros((6, 6)) for j in range(5)] for i in range(5)])
    A = block_diagonal(screws)  # (41)
    L = lower(lambda i, j: se3.Ad(se3.inverse(exponentials(screws, q, j + 1, i + 1))))  # (42), (43)
    D = block_diagonal([inertia.spatial(inertia.transform(homes[k], robot.inertias[k])) for k in range(5)])  # (44), (45)
    M = cj.mass_matrix(robot, q)
    close(A.T @ L.T @ D @ L @ A, M)  # (46)
    S, J = block_diagonal(robot.screws), block_diagonal([inertia.spatial(x) for x in robot.inertias])  # (47), (48)
    G = lower(lambda i, j: se3.Ad(se3.inverse(poses[i]) @ poses[j]))  # (49)
    close(S.T @ G.T @ J @ G @ S, M)  # (51)
    Q = block_diagonal([se3.Ad(home) for home in homes])  # (50), homes being the products M_1 ⋯ M_i of placements
    close(Q @ S, A)
    close(Q @ G @ np.linalg.inv(Q), L)
    close(np.linalg.inv(Q).T @ J @ np.linalg.inv(Q), D)


def test_mass_matrix_of_two_joints():
    """(60)."""
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 2, ("revolute",), tree=False)
    q = rng.normal(size=2)
    (A1, A2), _ = cj.space_screws(robot, robot.link_names[-1])
    homes = cj.forward_kinematics(robot, np.zeros(2))
    D1, D2 = (inertia.spatial(inertia.transform(home, x)) for home, x in zip(homes, robot.inertias, strict=True))
    a1 = se3.Ad_inv_act(se3.exp_screw(A2, q[1]), A1)
    close([[A1 @ D1 @ A1 + a1 @ D2 @ a1, a1 @ D2 @ A2], [a1 @ D2 @ A2, A2 @ D2 @ A2]], cj.mass_matrix(robot, q))


# --- Žefran & Bullo (2004)


def test_velocities_of_frames_relative_to_each_other():
    """(4) for frames X, Y, Z that move."""
    rng = np.random.default_rng(3)
    X, Y = random_pose(rng), random_pose(rng)
    x, y = rng.normal(size=(2, 6))
    first, second = (lambda t: X @ se3.exp(t * x)), (lambda t: Y @ se3.exp(t * y))
    dT, T = rate(lambda t: first(t) @ second(t)), X @ Y
    space, body = se3.vee(dT @ se3.inverse(T)), se3.vee(se3.inverse(T) @ dT)
    close(se3.Ad_act(X, x) + se3.Ad_act(X, se3.Ad_act(Y, y)), space, 1e-10)
    close(se3.Ad_inv_act(Y, x) + y, body, 1e-10)


def test_screws_of_joints():
    """(6) and the prismatic joint after it, with Kool's (6) and (7) for a helical one: points of the axis slide along it."""
    w, p, h = np.array([0.6, 0, 0.8]), np.array([0.1, -0.2, 0.3]), 0.4
    close(cj.Joint.revolute(w, p).screws[0], np.concatenate([w, -np.cross(w, p)]))
    close(cj.Joint.prismatic(w).screws[0], np.concatenate([np.zeros(3), w]))
    close(cj.Joint.helical(w, h, p).screws[0], np.concatenate([w, np.cross(p, w) + h * w]))
    assert cj.lie.screw.from_twist(cj.Joint.helical(w, h, p).screws[0]).pitch == pytest.approx(h, rel=1e-14)


def test_space_jacobian_written_out(chain):
    """The column j of the spatial Jacobian is Ad of the exponentials before j on ξ_j."""
    robot, q, *_ = chain
    A, _ = cj.space_screws(robot, "tip")
    close([se3.Ad_act(exponentials(A, q, 0, j), A[j]) for j in range(5)], cj.jacobian(robot, q, "tip", "space").T)


def test_euler_and_lagrange(chain):
    """(10), Kool's (1): d/dt ∂L/∂q̇ - ∂L/∂q is the joint force, L = T - V from the energies alone."""
    robot, q, v, a = chain
    L = lambda q, v: cj.kinetic_energy(robot, q, v) - cj.potential_energy(robot, q)
    # T is quadratic in v, so its derivative by v is a difference without error.
    momentum = lambda q, v: (L(q, v + np.eye(5)) - L(q, v - np.eye(5))) / 2
    change = rate(lambda t: momentum(q + t * v + t * t / 2 * a, v + t * a))
    by_q = rate(lambda t: L(q + t * np.eye(5), v))
    close(change - by_q, cj.inverse_dynamics(robot, q, v, a), 1e-9)


def test_energy_is_that_of_translation_and_of_rotation():
    """(11)-(12) at the centre of mass, the inertia tensor as -Σ m p̂²."""
    rng = np.random.default_rng(4)
    m, p, V = rng.uniform(0.1, 1, 6), rng.normal(size=(6, 3)), rng.normal(size=6)
    p = p - m @ p / m.sum()
    tensor = -sum(mass * so3.hat(x) @ so3.hat(x) for mass, x in zip(m, p, strict=True))
    body = inertia.from_body(m.sum(), np.zeros(3), tensor)
    expected = 0.5 * m.sum() * V[3:] @ V[3:] + 0.5 * V[:3] @ tensor @ V[:3]
    assert inertia.kinetic_energy(body, V) == pytest.approx(expected, rel=1e-14)
    assert expected == pytest.approx(0.5 * m @ ((V[3:] + np.cross(V[:3], p)) ** 2).sum(-1), rel=1e-13)


def test_accelerations_by_the_connection(chain):
    """(16), (17) and Altafini's (6), (7): a + Γ̂(v, v) = M⁻¹ (Y - dV), Γ̂ by derivatives of the mass matrix."""
    robot, q, v, tau = chain
    inverse, D = np.linalg.inv(cj.mass_matrix(robot, q)), cj.mass_matrix_derivative(robot, q)
    up = 0.5 * np.einsum("li,ljk->ijk", inverse, D + np.einsum("lkj->ljk", D) - np.einsum("jkl->ljk", D))
    close(cj.connection(robot, q), up)
    a = cj.forward_dynamics(robot, q, v, tau)
    close(a + np.einsum("ijk,j,k->i", up, v, v), inverse @ (tau - cj.gravity_force(robot, q)), 1e-10)
    # Along the motion v itself the field v changes by a, so ∇_v v has the same value.
    along = np.outer(a, v) / (v @ v)  # any derivative of a field with dy v = a
    close(cj.covariant_derivative(robot, q, v, v, along), inverse @ (tau - cj.gravity_force(robot, q)), 1e-10)


# --- Kool (2004)


def test_kool(chain):
    """(2)-(10) on line vectors and inertias in the absolute frame, the latter moving with the links."""
    robot, q, v, a = chain
    robot = robot.with_gravity((0, 0, 0))
    at = lambda t: (q + t * v + t * t / 2 * a, v + t * a)
    last = robot.link_names[-1]

    def lines(q, v):
        """Line vectors L (5, 6), twists T (5, 6), inertias N (5, 6, 6) and momenta M_i (5, 6) from link i outward."""
        poses = cj.forward_kinematics(robot, q)
        L = cj.jacobian(robot, q, last, "space").T
        T = np.cumsum(L * v[:, None], axis=0)  # (5)
        N = [inertia.spatial(inertia.transform(poses[j], robot.inertias[j])) for j in range(5)]  # (3)
        return L, T, N, np.cumsum([(N[j] @ T[j]) for j in range(5)][::-1], axis=0)[::-1]

    L, T, N, M = lines(q, v)
    close(se3.Ad_act(cj.forward_kinematics(robot, q), cj.link_velocities(robot, q, v)), T)
    assert sum(0.5 * T[j] @ N[j] @ T[j] for j in range(5)) == pytest.approx(cj.kinetic_energy(robot, q, v), rel=1e-12)  # (2)
    close(M[0], cj.momentum(robot, q, v))
    p = (L * M).sum(-1)  # (8)
    close(p, cj.mass_matrix(robot, q) @ v)  # (4): ∂E/∂q̇
    dL, dM = cj.jacobian_rate(robot, q, v, last, "space").T, rate(lambda t: lines(*at(t))[3])
    dp = (L * dM + dL * M).sum(-1)  # (9)
    close(rate(lambda t: cj.mass_matrix(robot, at(t)[0]) @ at(t)[1]), dp, 1e-9)
    dE = rate(lambda t: cj.kinetic_energy(robot, q + t * np.eye(5), v))
    close(dp - dE, cj.inverse_dynamics(robot, q, v, a), 1e-9)  # (10)
