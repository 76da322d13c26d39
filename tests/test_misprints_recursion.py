"""Misprints of the papers in what the recursions and energies use: as printed they fail, corrected they hold.

`docs/papers.md` lists them. Errors are relative: a misprint is far from rounding, its correction within it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import coadjoint as cj
from coadjoint.lie import inertia, se3, so3
from laws import rate, relative
from random_robots import ONE_SCREW, random_inertia, random_pose, random_robot

HOLDS, FAILS = 1e-9, 1e-2


@pytest.fixture(scope="module")
def chain():
    """A chain of joints with one screw each, and a state."""
    rng = np.random.default_rng(1)
    return random_robot(rng, 5, ONE_SCREW, tree=False), *rng.normal(size=(3, 5))


# --- the recursion (22)-(27) of Park, Bobrow & Ploen, step by step as in the paper

CORRECTED = {
    "start": lambda g: np.concatenate([np.zeros(3), -g]),
    "velocity": lambda f, V, Sx: se3.Ad_inv_act(f, V) + Sx,
    "acceleration": lambda f, A, V, after, Sx, Sxx: Sxx + se3.Ad_inv_act(f, A) + se3.ad_act(se3.Ad_inv_act(f, V), Sx),
    "carried": se3.Ad_inv_dual_act,
    "inertia": lambda m, r, central: np.block([[central - m * r @ r, m * r], [-m * r, m * np.eye(3)]]),
    "gyroscopic": lambda V, JV: -se3.ad_dual_act(V, JV),
}

PRINTED = {
    "PBP (22)": {"start": lambda g: np.zeros(6)},
    "PBP (24)": {"velocity": lambda f, V, Sx: se3.Ad_act(f, V) + Sx},
    "PBP (25)": {"acceleration": lambda f, A, V, after, Sx, Sxx: Sxx + se3.Ad_act(f, A) + se3.ad_act(se3.Ad_act(f, V), Sx)},
    "PBP (26)": {"carried": se3.Ad_dual_act},
    "PBP (73)": {
        "acceleration": lambda f, A, V, after, Sx, Sxx: Sxx + se3.Ad_inv_act(f, A) + se3.ad_act(se3.Ad_inv_act(f, after), Sx)
    },
    "review, J": {"inertia": lambda m, r, central: np.block([[central - m * r @ r, m * r @ r], [-m * r @ r, m * np.eye(3)]])},
    "review (20)": {"carried": se3.Ad_inv_act},
    "review, section 5.1": {"gyroscopic": lambda V, JV: np.zeros(6)},
}


def recursion(robot, q, v, a, step):
    """τ with `step` in the place of the paper's equations."""
    f = [robot.placements[i] @ se3.exp_screw(robot.screws[i], q[i]) for i in range(robot.n_links)]  # (23)
    V, A, F = np.zeros(6), step["start"](robot.gravity), []
    for i, S in enumerate(robot.screws):
        after = step["velocity"](f[i], V, S * v[i])
        A = step["acceleration"](f[i], A, V, after, S * v[i], S * a[i])
        V = after
        mass, com, about_com = inertia.to_body(robot.inertias[i])
        J = step["inertia"](mass, so3.hat(com), about_com)
        F.append(J @ A + step["gyroscopic"](V, J @ V))
    for i in reversed(range(1, robot.n_links)):
        F[i - 1] = F[i - 1] + step["carried"](f[i], F[i])
    return np.array([S @ Fi for S, Fi in zip(robot.screws, F, strict=True)])  # (27)


@pytest.fixture
def lagrange(chain):
    """τ = d/dt ∂T/∂v - ∂T/∂q + ∂U/∂q, which knows nothing of the recursion."""
    robot, q, v, a = chain
    dM = rate(lambda t: cj.mass_matrix(robot, q + t * np.eye(5)))
    dU = rate(lambda t: cj.potential_energy(robot, q + t * np.eye(5)))
    return cj.mass_matrix(robot, q) @ a + np.einsum("kij,k,j", dM, v, v) - 0.5 * np.einsum("kij,i,j", dM, v, v) + dU


def test_the_corrected_recursion_holds(chain, lagrange):
    assert relative(recursion(*chain, CORRECTED), lagrange) < HOLDS
    assert relative(cj.inverse_dynamics(*chain), lagrange) < HOLDS


@pytest.mark.parametrize("equation", PRINTED)
def test_the_recursion_as_printed_fails(chain, lagrange, equation):
    assert relative(recursion(*chain, CORRECTED | PRINTED[equation]), lagrange) > FAILS


def test_moment_equation_82_83():
    """Of J V̇ - ad*_V (J V) the moment has -m[ω][r]²ω, which is m[r][ω]²r; printed is +m[ω][r]²ω."""
    rng = np.random.default_rng(2)
    m, com, I = random_inertia(rng)
    w, v, dw, dv = rng.normal(size=(4, 3))
    W, Vh, r = so3.hat(w), so3.hat(v), so3.hat(com)
    J, V, A = inertia.spatial(inertia.from_body(m, com, I)), np.concatenate([w, v]), np.concatenate([dw, dv])
    moment = (J @ A - se3.ad_dual_act(V, J @ V))[:3]
    written = lambda sign: (
        I @ dw - m * r @ r @ dw + m * r @ dv + W @ I @ w + sign * m * W @ r @ r @ w + m * W @ r @ v + m * Vh @ W @ com
    )
    assert relative(written(-1), moment) < HOLDS
    assert relative(written(+1), moment) > FAILS
    assert relative(-m * W @ r @ r @ w, m * r @ W @ W @ com) < HOLDS
    assert relative(-m * r @ r @ dw, m * r @ W @ W @ com) > FAILS


# --- exponentials and Jacobians


@pytest.mark.parametrize(("length", "holds"), [(1.0, True), (0.0, True), (2.0, False), (0.5, False)])
def test_exponential_16_17_needs_a_unit_axis(length, holds):
    """With |ω| = 1, or ω = 0, (16) and (17) are the exponential; with other lengths not. `exp` takes every length."""
    S, angle = np.array([0.6 * length, 0, 0.8 * length, 0.3, -0.2, 0.9]), 0.7
    W = so3.hat(S[:3])
    R = np.eye(3) + np.sin(angle) * W + (1 - np.cos(angle)) * W @ W
    b = (angle * np.eye(3) + (1 - np.cos(angle)) * W + (angle - np.sin(angle)) * W @ W) @ S[3:]
    expected = expm(se3.hat(S) * angle)
    error = relative(se3.pose(R, b), expected)
    assert error < HOLDS if holds else error > FAILS
    assert relative(se3.exp(S * angle), expected) < HOLDS
    if holds:
        assert relative(se3.exp_screw(S, angle), expected) < HOLDS
    else:
        with pytest.raises(cj.CoadjointError, match="exp_screw needs a screw with"):
            se3.exp_screw(S, angle)


def test_velocities_of_the_review_3_4(chain):
    """The inertial and the body velocity have ḃ where (3) and (4) print b."""
    robot, q, v, _ = chain
    T, dT = cj.pose(robot, q, "tip"), rate(lambda t: cj.pose(robot, q + t * v, "tip"))
    R, b, dR, db = T[:3, :3], T[:3, 3], dT[:3, :3], dT[:3, 3]
    space, body = cj.jacobian(robot, q, "tip", "space") @ v, cj.jacobian(robot, q, "tip") @ v
    for b_or_rate, holds in ((db, True), (b, False)):
        for found, expected in ((b_or_rate - dR @ R.T @ b, space[3:]), (R.T @ b_or_rate, body[3:])):
            assert relative(found, expected) < HOLDS if holds else relative(found, expected) > FAILS


def test_point_velocity_of_zefran_and_bullo(chain):
    """A point of the body has constant p_B; what V̂ᵇ p_B gives is Rᵀ ṗ_S."""
    robot, q, v, _ = chain
    point = np.array([0.3, -0.1, 0.2, 1.0])
    V = se3.hat(cj.jacobian(robot, q, "tip") @ v)
    R, moved = cj.pose(robot, q, "tip")[:3, :3], rate(lambda t: cj.pose(robot, q + t * v, "tip") @ point)
    assert relative((V @ point)[:3], R.T @ moved[:3]) < HOLDS
    assert np.linalg.norm(V @ point) > FAILS  # as printed it would be ṗ_B, which is 0


def exponentials(screws, q, start, stop):
    """e^{A x} of the joints start … stop - 1, in this order."""
    product = np.eye(4)
    for k in range(start, stop):
        product = product @ expm(se3.hat(screws[k]) * q[k])
    return product


def test_jacobian_of_altafini_4(chain):
    """In (4) ξ_i are the space screws A_i; with the body screws V_i = B_i, for which (2) and (4) are written, it fails."""
    robot, q, *_ = chain
    A, home = cj.space_screws(robot, "tip")
    B, _ = cj.body_screws(robot, "tip")
    columns = lambda xi: [se3.Ad_inv_act(home @ exponentials(B, q, i, 5), xi[i]) for i in range(5)]
    J = cj.jacobian(robot, q, "tip").T
    assert relative(columns(A), J) < HOLDS
    assert relative(columns(B), J) > FAILS


def test_jacobian_of_the_review_13(chain):
    """(18) of the paper; the review's (13) turns B_{n-1} by e^{-B_n x_n} on both sides and loses the dot of ẋ_{n-1}."""
    robot, q, v, _ = chain
    B, _ = cj.body_screws(robot, "tip")
    E = exponentials(B, q, 4, 5)
    term = cj.jacobian(robot, q, "tip")[:, 3] * v[3]
    assert relative(se3.inverse(E) @ se3.hat(B[3]) @ E * v[3], se3.hat(term)) < HOLDS
    assert relative(se3.inverse(E) @ se3.hat(B[3]) @ se3.inverse(E) * q[3], se3.hat(term)) > FAILS


def test_velocity_of_brockett_stokes_and_park_6(chain):
    """Ad_{ik} in (6) is the adjoint of P_{k,i}⁻¹, as (5) has it, not of a product P."""
    robot, q, v, _ = chain
    A, home = cj.space_screws(robot, "tip")
    P = [exponentials(A, q, k + 1, 5) for k in range(5)]
    twist = cj.jacobian(robot, q, "tip") @ v
    velocity = lambda act: se3.Ad_inv_act(home, sum(act(P[k], A[k]) * v[k] for k in range(5)))
    assert relative(velocity(se3.Ad_inv_act), twist) < HOLDS
    assert relative(velocity(se3.Ad_act), twist) > FAILS


def test_velocity_38_has_the_rates(chain):
    """(ω_i, v_i) = Σ Ad_i^{j+1}(A_j ẋ_j); (38) and the review's (27) print no ẋ_j, and the latter Ad_j^{i+1}, which is 1."""
    robot, q, v, _ = chain
    A, _ = cj.space_screws(robot, robot.link_names[-1])
    twist = cj.jacobian(robot, q, robot.link_names[-1], "space") @ v
    seen = np.array([se3.Ad_inv_act(exponentials(A, q, j + 1, 5), A[j]) for j in range(5)])
    back = exponentials(A, q, 0, 5)
    assert relative(se3.Ad_act(back, v @ seen), twist) < HOLDS
    assert relative(se3.Ad_act(back, seen.sum(0)), twist) > FAILS
    assert relative(se3.Ad_act(back, A.sum(0)), twist) > FAILS


def test_factor_50_has_products_of_the_placements(chain):
    """𝒜 = 𝒬 𝒮 with Ad of M_1 ⋯ M_i, as the review's (38) has it in its last entry; (50) prints Ad of section 3's M_i."""
    robot, *_ = chain
    A, _ = cj.space_screws(robot, robot.link_names[-1])
    homes = cj.forward_kinematics(robot, np.zeros(5))
    assert relative(se3.Ad_act(homes, robot.screws), A) < HOLDS
    assert relative(se3.Ad_act(robot.placements, robot.screws), A) > FAILS


def test_factors_31_39_of_the_review(chain):
    """Below the diagonal ℒ = 𝒬 𝒢 𝒬⁻¹ has Ad_i^{j+1}, not Ad_i^j; 𝒟 is 𝒬⁻ᵀ 𝒥 𝒬⁻¹, not 𝒬⁻¹ 𝒥 𝒬⁻¹."""
    robot, q, *_ = chain
    A, _ = cj.space_screws(robot, robot.link_names[-1])
    homes, poses = cj.forward_kinematics(robot, np.zeros(5)), cj.forward_kinematics(robot, q)
    entry = se3.Ad(homes[1] @ se3.inverse(poses[1]) @ poses[0] @ se3.inverse(homes[0]))
    right, printed = (se3.Ad(se3.inverse(exponentials(A, q, start, 2))) for start in (1, 0))
    assert relative(right, entry) < HOLDS
    assert relative(printed, entry) > FAILS
    assert relative(printed @ A[0], right @ A[0]) < HOLDS  # so M does not show it: e^{-A x} leaves its own A as it is
    D = [inertia.spatial(inertia.transform(homes[k], robot.inertias[k])) for k in range(5)]
    J, back = [inertia.spatial(x) for x in robot.inertias], [np.linalg.inv(se3.Ad(home)) for home in homes]
    assert relative([X.T @ Y @ X for X, Y in zip(back, J, strict=True)], D) < HOLDS
    assert relative([X @ Y @ X for X, Y in zip(back, J, strict=True)], D) > FAILS


# --- inertia and energy


def test_spatial_inertia_21_is_only_semidefinite():
    """For a point mass no energy belongs to turning about it: J of (21) is singular, not positive definite."""
    point = inertia.spatial(inertia.from_body(2.0, [0.1, 0.2, -0.3], np.zeros((3, 3))))
    values = np.linalg.eigvalsh(point)
    assert np.sum(values > 1e-12) == 3
    assert np.all(values > -1e-15)
    assert np.all(np.linalg.eigvalsh(inertia.spatial(inertia.from_body(*random_inertia(np.random.default_rng(3))))) > 0)


def test_generalised_inertia_of_zefran_and_bullo():
    """M_B at a frame B off the centre of mass has R I Rᵀ - m d̂² where -d̂² is printed (in their order (v, ω))."""
    rng = np.random.default_rng(4)
    m, _, I = random_inertia(rng)
    T = random_pose(rng)  # the frame of the centre of mass in B
    R, d = T[:3, :3], so3.hat(T[:3, 3])
    J = inertia.spatial(inertia.transform(T, inertia.from_body(m, np.zeros(3), I)))
    written = lambda mass: np.block([[m * np.eye(3), -m * d], [m * d, R @ I @ R.T - mass * d @ d]])
    exchanged = np.roll(J, (3, 3), axis=(0, 1))
    assert relative(written(m), exchanged) < HOLDS
    assert relative(written(1.0), exchanged) > FAILS


def test_trace_form_2_7_of_brockett_stokes_and_park():
    """With J = √det(I) I⁻¹ the energy exceeds the true one by exactly that of rotation; with √(det(I)/2) I⁻¹ it does not."""
    rng = np.random.default_rng(5)
    m, I = 1.7, np.diag([0.3, 0.5, 0.6])
    V = rng.normal(size=6)
    X, M = se3.hat(V), np.diag([0, 0, 0, m])
    J = lambda det: np.block([[np.sqrt(det) * np.linalg.inv(I), np.zeros((3, 1))], [np.zeros((1, 4))]])
    energy = lambda J: 0.5 * (np.trace(X @ M @ X.T) + np.trace(J @ X @ J @ X.T))
    true, rotation = 0.5 * m * V[3:] @ V[3:] + 0.5 * V[:3] @ I @ V[:3], 0.5 * V[:3] @ I @ V[:3]
    assert relative(inertia.kinetic_energy(inertia.from_body(m, np.zeros(3), I), V), true) < HOLDS
    assert relative(energy(J(np.linalg.det(I) / 2)), true) < HOLDS
    assert relative(energy(J(np.linalg.det(I))), true + rotation) < HOLDS


def test_motion_3_of_brockett_stokes_and_park():
    """A free body moves with ⟨V̇, W⟩ = ⟨V, [V, W]⟩ for every W; (3) prints ⟨V, [W, V]⟩."""
    rng = np.random.default_rng(6)
    mass, com, about_com = random_inertia(rng)
    link = cj.Link.solid("body", "base", cj.Joint.free(), mass=mass, com=com, inertia=about_com)
    robot = cj.Robot("body", [link], gravity=(0, 0, 0))
    V = rng.normal(size=6)
    A = cj.forward_dynamics(robot, robot.random(rng), V, np.zeros(6))
    J, W = inertia.spatial(robot.inertias[0]), np.eye(6)
    assert relative(W @ J @ A, se3.ad_act(V, W) @ J @ V) < HOLDS
    assert relative(W @ J @ A, se3.ad_act(W, V) @ J @ V) > FAILS


@pytest.mark.parametrize("half", [0.5, 1.0])
def test_kinetic_energy_has_a_factor_one_half(chain, half):
    """PBP (32), (39) and after (36), the review's (23), (25), (28), BSP's T and T_i, ZB after (12) print T = ⟨V, V⟩."""
    robot, q, v, _ = chain
    # The energy of every link by the motion of its points, Σ ½ m |ẋ|², as the trace of its second moments.
    rates = rate(lambda t: cj.forward_kinematics(robot, q + t * v))
    true = sum(0.5 * np.trace(f @ inertia.pseudo(x) @ f.T) for f, x in zip(rates, robot.inertias, strict=True))
    V = cj.link_velocities(robot, q, v)
    for found in (v @ cj.mass_matrix(robot, q) @ v, sum(x @ inertia.apply(J, x) for x, J in zip(V, robot.inertias, strict=True))):
        assert relative(half * found, true) < HOLDS if half == 0.5 else relative(half * found, 2 * true) < HOLDS
    assert relative(cj.kinetic_energy(robot, q, v), true) < HOLDS


@pytest.mark.parametrize(("sign", "holds"), [(-1, True), (1, False)])
def test_sign_of_the_potential_58_59(chain, sign, holds):
    """U = -Σ m ⟨g, f r⟩ for g that points down, as gravity does: what is let go falls. (59) holds for k up to n."""
    g = np.array([0, 0, -9.81])
    lift = cj.Robot("lift", [cj.Link.solid("load", "base", cj.Joint.prismatic((0, 0, 1)), mass=2.0)], gravity=g)
    energy = lambda q: sign * 2.0 * g @ cj.pose(lift, q, "load")[:3, 3]
    falls = -rate(lambda t: energy([t])) / 2.0
    assert (abs(falls + 9.81) < HOLDS) == holds
    assert (abs(energy([1.0]) - cj.potential_energy(lift, [1.0])) < HOLDS) == holds
    # (59) for a chain, with space screws A and the frames M at home.
    robot, q, *_ = chain
    A, _ = cj.space_screws(robot, robot.link_names[-1])
    homes = cj.forward_kinematics(robot, np.zeros(5))
    phi = np.zeros(5)
    for k in range(5):
        for i in range(k, 5):
            seen = se3.hat(se3.Ad_inv_act(exponentials(A, q, k + 1, i + 1), A[k]))
            mass, com, _ = inertia.to_body(robot.inertias[i])
            moved = exponentials(A, q, 0, i + 1) @ seen @ homes[i] @ np.append(com, 1.0)
            phi[k] += sign * mass * robot.gravity @ moved[:3]
    error = relative(phi, cj.gravity_force(robot, q))
    assert error < HOLDS if holds else error > FAILS


def test_matrix_form_of_the_motion_of_a_body_of_brockett_stokes_and_park():
    """V̇ M + J V̇ J = -V² M + [J V J, V] Ī in the frame at the centre of mass, against forward dynamics of a floating body.

    M = diag(0, 0, 0, m), Ī = diag(1, 1, 1, 0), J = √(det I / 2) I⁻¹; printed without -V² M, with V transposed and Ī on the other side.
    """
    rng = np.random.default_rng(8)
    mass, _, I = random_inertia(rng)
    body = cj.Robot("body", [cj.Link.solid("body", "base", cj.Joint.free(), mass=mass, inertia=I)], gravity=(0, 0, 0))
    twist = rng.normal(size=6)
    V, Vdot = se3.hat(twist), se3.hat(cj.forward_dynamics(body, body.neutral(), twist, np.zeros(6)))
    M, ones, J = np.diag([0, 0, 0, mass]), np.diag([1.0, 1, 1, 0]), np.zeros((4, 4))
    J[:3, :3] = np.sqrt(np.linalg.det(I) / 2) * np.linalg.inv(I)
    bracket = lambda X, Y: X @ Y - Y @ X
    left = Vdot @ M + J @ Vdot @ J
    assert relative(left, -V @ V @ M + bracket(J @ V @ J, V) @ ones) < HOLDS
    assert relative(left, ones.T @ bracket(J @ V @ J, V.T)) > FAILS
