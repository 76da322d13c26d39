"""Misprints and claims of Altafini (2004), (8)-(24), that fail as they stand, beside what is true."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from acceptance import load
from coadjoint import redundancy as rd
from coadjoint.geometry import flat_coordinates
from coadjoint.lie import se3
from laws import close, derivative
from redundant_robots import PLANAR, balanced_3r, case_24, ppr_with_rotor, pprr, with_wheels


def spectral_root(M):
    """N = D₁ P of the text before (11): the roots of the eigenvalues times the eigenvectors, signs such that it is smooth."""
    values, vectors = np.linalg.eigh(M)
    vectors = vectors * np.where(vectors.sum(-2, keepdims=True) < 0, -1.0, 1.0)
    return np.sqrt(values)[..., :, None] * np.swapaxes(vectors, -1, -2)


@pytest.mark.native
def test_the_factor_9_to_11_is_not_a_jacobian():
    """Nᵀ N = M holds for N = D₁ P, but ∂_k N_ij is not symmetric in j, k, as it must be for q̃ = φ(q): polar coordinates."""
    robot = load(17).robot
    q = np.array([0.4, 0.3])
    N = spectral_root(cj.mass_matrix(robot, q))
    close(N.T @ N, cj.mass_matrix(robot, q), 1e-13)
    slope = lambda root: np.moveaxis(derivative(robot, root, np.tile(q, (2, 1)), np.eye(2), h=1e-2), 0, -1)
    printed = slope(lambda x: spectral_root(cj.mass_matrix(robot, x)))
    assert np.max(np.abs(printed - printed.swapaxes(1, 2))) > 0.1
    corrected = slope(lambda x: flat_coordinates(robot, x)[1])
    assert np.max(np.abs(corrected - corrected.swapaxes(1, 2))) < 1e-8


@pytest.mark.native
def test_isometry_8_to_12():
    """The parallel N of `flat_coordinates` preserves products, (8), (11), takes ∇ to derivatives, (10), and makes q̃'' = N⁻ᵀ τ, (12)."""
    robot = load(17).robot
    rng = np.random.default_rng(0)
    q, v, w, tau = np.array([0.4, 0.3]), *rng.normal(size=(3, 2))
    _, N = flat_coordinates(robot, q)
    M = cj.mass_matrix(robot, q)
    assert (N @ v) @ (N @ w) == pytest.approx(v @ M @ w, rel=1e-10)
    change = derivative(robot, lambda x: flat_coordinates(robot, x)[1], q, v, h=1e-2)  # ∂_v N
    close(N @ cj.covariant_derivative(robot, q, v, w, np.zeros((2, 2))), change @ w, 1e-8)
    a = cj.forward_dynamics(robot.with_gravity((0, 0, 0)), q, v, tau)
    close(N @ a + change @ v, np.linalg.solve(N.T, tau), 1e-8)


def test_split_13_and_the_assumptions():
    """(13) holds; A2 is no stronger than A1: dim V = n - 6 wherever the rank is 6. It makes no Riemannian submersion (Prop. II.1)."""
    case = case_24()
    robot, q, v = case.robot, case.inputs.q, case.inputs.qd
    horizontal, vertical = rd.split_velocity(robot, q, v, "tool")
    close(horizontal + vertical, v, 1e-13)
    assert horizontal @ cj.mass_matrix(robot, q) @ vertical == pytest.approx(0, abs=1e-11)
    J = cj.jacobian(robot, q, "tool")
    assert np.linalg.matrix_rank(J) == 6
    assert rd.vertical_basis(robot, q, "tool").shape[-1] == 9 - 6
    X = J @ horizontal
    assert abs(X @ X - horizontal @ cj.mass_matrix(robot, q) @ horizontal) > 1.0  # printed: equal
    inertia = cj.effective_inertia(robot, q, "tool")
    assert X @ inertia @ X == pytest.approx(horizontal @ cj.mass_matrix(robot, q) @ horizontal, rel=1e-10)


def test_fibre_bundle_15_has_no_isometric_splitting():
    """(15) and the diagram after it: SE(3) and ℝ⁶ are not locally isometric, as left-invariant metrics on SE(3) are curved."""
    body = cj.Robot("b", [cj.Link.solid("b", "base", cj.Joint.free(), mass=1.0, inertia=np.eye(3))], gravity=(0, 0, 0))
    close(cj.mass_matrix(body, body.neutral()), np.eye(6), 1e-14)
    R = cj.curvature(body, body.neutral())
    assert R[0, 1, 0, 1] == pytest.approx(0.25)  # 0 for ℝ⁶


@pytest.mark.parametrize("base", ["spherical", "free"])
def test_connection_16_lacks_the_vertical_bracket(base):
    """∇_{Xʰ} Yʰ = ρ*ʰ(∇_X Y) + ½ [Xʰ, Yʰ]ᵛ on a Riemannian submersion; the last term is not 0."""
    robot = with_wheels(base)
    rows = (0, 1, 2) if base == "spherical" else tuple(range(6))
    q = robot.random(2)
    V = rd.vertical_brackets(robot, q, "body", rows)
    close(rd.oneill_tensor(robot, q, "body", rows), 0.5 * V, 1e-12)  # corrected
    assert np.max(np.abs(V)) > 0.1  # printed: 0


def test_connection_17_is_for_horizontal_fields():
    """J ∇_{Xʰ} Yʰ is ∇_X Y below; with a vertical part added to the fields it is something else."""
    robot = with_wheels("spherical")
    q, rows = robot.random(3), (0, 1, 2)
    J, L = cj.jacobian(robot, q, "body")[:3], cj.horizontal_lift(robot, q, "body", rows)
    below = cj.Robot(
        "b",
        [cj.Link.solid("b", "base", cj.Joint.spherical(), mass=1.0, inertia=cj.effective_inertia(robot, q, "body", rows))],
        gravity=(0, 0, 0),
    )
    x, y = np.random.default_rng(1).normal(size=(2, 3))
    # Left-invariant fields above and below: constant components in the frames of velocities, L is constant too.
    wanted = cj.covariant_derivative(below, q[:4], x, y, np.zeros((3, 3)))
    still = np.zeros((robot.nv, robot.nv))
    close(J @ cj.covariant_derivative(robot, q, L @ x, L @ y, still), wanted, 1e-11)
    spin = np.array([0, 0, 0, 1.0, -0.5])
    other = J @ cj.covariant_derivative(robot, q, L @ x + spin, L @ y, still)
    assert np.max(np.abs(other - wanted)) > 0.02


def test_workspace_equations_18():
    """Printed: Ẋ = ad*_X X + J M⁻¹ τ. True: Ẋ = J M⁻¹ τ + (J̇ - J M⁻¹ C) v."""
    case = case_24()
    robot, q, v, tau = case.robot, case.inputs.q, case.inputs.qd, case.inputs.tau
    J, M, X = cj.jacobian(robot, q, "tool"), cj.mass_matrix(robot, q), np.array(case.expected["X"])
    pushed = J @ np.linalg.solve(M, tau)
    printed = se3.ad_dual_act(X, X) + pushed
    bias = cj.jacobian_rate(robot, q, v, "tool") @ v - J @ np.linalg.solve(M, cj.coriolis_matrix(robot, q, v) @ v)
    assert np.max(np.abs(printed - case.expected["Xdot"])) > 1
    np.testing.assert_allclose(pushed + bias, case.expected["Xdot"], **case.close)
    np.testing.assert_allclose(rd.task_acceleration(robot, q, v, tau, "tool"), case.expected["Xdot"], **case.close)
    # Where it is a Riemannian submersion with Λ = 1 and the motion horizontal, ad*_X X is right.
    robot = ppr_with_rotor()
    q, X = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, -0.3, 0.7])
    v = cj.horizontal_lift(robot, q, "a", PLANAR) @ X
    twist = np.array([0, 0, *X, 0])
    found = rd.task_acceleration(robot, q, v, np.zeros(4), "a", PLANAR)
    close(found, se3.ad_dual_act(twist, twist)[[2, 3, 4]], 1e-12)


def test_singular_values_20_to_22():
    """(20) with P₆ P₆ᵀ = 1 is a projector of rank 6; it is not diag(1, 0) in the coordinates q̃, (21), (22), though H is integrable."""
    robot, q = pprr(), np.array([0.3, -0.2, 0.7, 0.4])
    N = np.linalg.cholesky(cj.mass_matrix(robot, q)).T  # constant, so q̃ = N q is an isometry
    J = cj.jacobian(robot, q, "b")[list(PLANAR)] @ np.linalg.inv(N)
    _, s, P = np.linalg.svd(J)
    close(s, np.ones(3), 1e-12)  # a partial isometry
    lift = J.T
    close(lift, np.linalg.pinv(J), 1e-12)
    turned, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))  # another isometry q̃' = turned q̃ is as good
    J = J @ turned.T
    projector = J.T @ J
    close(projector @ projector, projector, 1e-12)
    close(projector, (P @ turned.T)[:3].T @ (P @ turned.T)[:3], 1e-12)  # corrected (20)
    assert np.max(np.abs(projector - np.diag([1, 1, 1, 0]))) > 0.1  # printed (22)


def test_lift_23_is_not_the_pseudoinverse():
    """Theorem III.2 on a robot that meets all its hypotheses; N⁻¹ (J N⁻¹)⁺ is the lift, and J⁺ only where M maps ker J to ker J."""
    for robot, frame in ((pprr(), "b"), (ppr_with_rotor(), "a")):
        q = np.array([0.3, -0.2, 0.7, 0.4])
        J, M = cj.jacobian(robot, q, frame)[list(PLANAR)], cj.mass_matrix(robot, q)
        N = np.linalg.cholesky(M).T
        L = cj.horizontal_lift(robot, q, frame, PLANAR)
        close(L, np.linalg.solve(N, np.linalg.pinv(J @ np.linalg.inv(N))), 1e-12)
        keeps = rd.pseudoinverse_defect(robot, q, frame, PLANAR) < 1e-12
        assert keeps == (np.max(np.abs(L - np.linalg.pinv(J))) < 1e-12)
        assert keeps == (frame == "a")


def test_corollary_of_15_integrability():
    """Corollary III.2 on a flat robot: the horizontal distribution is not integrable."""
    robot = balanced_3r()
    assert cj.is_flat(robot)
    assert np.max(np.abs(rd.vertical_brackets(robot, [0.3, 0.9, -0.5], "tip", (3, 4)))) > 0.1


def test_lift_of_a_function_24():
    """Printed: dϑ = J⁺ η (a vector), grad ϑ = M⁻¹ J⁺ η. True: dϑ = Jᵀ η, grad ϑ = M⁻¹ Jᵀ η."""
    case = case_24()
    robot, q, eta = case.robot, case.inputs.q, case.inputs.eta
    force, gradient = rd.lift_function(robot, q, eta, "tool")
    np.testing.assert_allclose(force, case.expected["dvartheta"], **case.close)
    np.testing.assert_allclose(gradient, case.expected["grad_vartheta"], **case.close)
    printed = np.linalg.solve(cj.mass_matrix(robot, q), rd.moore_penrose(robot, q, "tool") @ eta)
    assert np.max(np.abs(printed - gradient)) > 0.01
    # dϑ along a velocity is dθ along its twist; the printed one is not.
    v = case.inputs.qd
    assert force @ v == pytest.approx(eta @ (cj.jacobian(robot, q, "tool") @ v), rel=1e-10)
    assert abs(rd.moore_penrose(robot, q, "tool") @ eta @ v - force @ v) > 0.1
