"""SE(3): group laws, the actions against the 6×6 operators, 60-digit accuracy at all angles, other array libraries."""

from __future__ import annotations

import numpy as np
import pytest

import acceptance
import lie_helpers as h
from coadjoint.errors import CoadjointError, ShapeError
from coadjoint.lie import se3, so3

shapes = pytest.mark.parametrize("shape", h.SHAPES)


def mv(A, x):
    return (A @ x[..., None])[..., 0]


def random_pose(shape, seed=0, scale=1.0):
    return se3.exp(h.normal(shape, 6, seed=seed, scale=scale))


# Laws


@shapes
def test_group_axioms(shape):
    A, B, C = (random_pose(shape, seed=k) for k in range(3))
    one = np.broadcast_to(np.eye(4), A.shape)
    np.testing.assert_allclose(A @ se3.inverse(A), one, atol=1e-15)
    np.testing.assert_allclose(se3.inverse(A) @ A, one, atol=1e-15)
    np.testing.assert_allclose((A @ B) @ C, A @ (B @ C), atol=1e-14)
    np.testing.assert_allclose(se3.inverse(A @ B), se3.inverse(B) @ se3.inverse(A), atol=1e-14)


@shapes
def test_pose_has_its_rotation_and_translation(shape):
    R, p = so3.exp(h.normal(shape, 3)), h.normal(shape, 3, seed=1)
    T = se3.pose(R, p)
    np.testing.assert_array_equal(se3.rotation(T), R)
    np.testing.assert_array_equal(se3.translation(T), p)
    np.testing.assert_array_equal(T[..., 3, :], np.broadcast_to([0, 0, 0, 1], (*shape, 4)))
    assert se3.pose(np.eye(3), p).shape == (*shape, 4, 4)


@shapes
@pytest.mark.parametrize("scale", [1e-9, 1.0])
def test_exp_and_log_are_inverse(shape, scale):
    xi = h.normal(shape, 6, scale=scale)
    xi[..., :3] *= np.minimum(1.0, 3.1 / h.lengths(xi[..., :3]))[..., None]
    T = se3.exp(xi)
    np.testing.assert_allclose(se3.log(T), xi, atol=8 * h.EPS * scale)
    np.testing.assert_allclose(se3.exp(se3.log(T)), T, atol=8 * h.EPS)
    np.testing.assert_allclose(se3.exp(0.3 * xi) @ se3.exp(0.7 * xi), T, atol=8 * h.EPS)
    np.testing.assert_array_equal(se3.vee(se3.hat(xi)), xi)


@shapes
def test_Ad_is_conjugation_and_a_homomorphism(shape):
    T, U, xi = random_pose(shape), random_pose(shape, seed=1), h.normal(shape, 6, seed=2)
    np.testing.assert_allclose(T @ se3.exp(xi), se3.exp(mv(se3.Ad(T), xi)) @ T, atol=3e-14)
    np.testing.assert_allclose(se3.hat(mv(se3.Ad(T), xi)), T @ se3.hat(xi) @ se3.inverse(T), atol=1e-14)
    np.testing.assert_allclose(se3.Ad(T @ U), se3.Ad(T) @ se3.Ad(U), atol=1e-14)
    np.testing.assert_allclose(se3.Ad(se3.exp(xi)) @ se3.Ad(se3.exp(-xi)), np.broadcast_to(np.eye(6), (*shape, 6, 6)), atol=1e-13)


@shapes
def test_ad_is_the_bracket_and_the_derivative_of_Ad(shape):
    x, y, z = (h.normal(shape, 6, seed=k) for k in range(3))
    X, Y = se3.hat(x), se3.hat(y)
    np.testing.assert_allclose(se3.hat(se3.ad_act(x, y)), X @ Y - Y @ X, atol=1e-14)
    jacobi = se3.ad_act(x, se3.ad_act(y, z)) + se3.ad_act(y, se3.ad_act(z, x)) + se3.ad_act(z, se3.ad_act(x, y))
    np.testing.assert_allclose(jacobi, np.zeros((*shape, 6)), atol=1e-13)
    difference = h.differences(lambda t: se3.Ad(se3.exp(t * x)), np.zeros(()), step=1e-3)
    np.testing.assert_allclose(difference, se3.ad(x), atol=1e-10)


@shapes
def test_duals_are_transposes_and_actions_are_the_operators(shape):
    T, V, W = random_pose(shape), h.normal(shape, 6, seed=1), h.normal(shape, 6, seed=2)
    Ti = se3.inverse(T)
    np.testing.assert_array_equal(se3.Ad_dual(T), np.swapaxes(se3.Ad(T), -1, -2))
    np.testing.assert_array_equal(se3.ad_dual(V), np.swapaxes(se3.ad(V), -1, -2))
    for action, operator in (
        (se3.Ad_act(T, V), mv(se3.Ad(T), V)),
        (se3.Ad_inv_act(T, V), mv(se3.Ad(Ti), V)),
        (se3.Ad_dual_act(T, V), mv(se3.Ad_dual(T), V)),
        (se3.Ad_inv_dual_act(T, V), mv(se3.Ad_dual(Ti), V)),
        (se3.ad_act(V, W), mv(se3.ad(V), W)),
        (se3.ad_dual_act(V, W), mv(se3.ad_dual(V), W)),
    ):
        np.testing.assert_allclose(action, operator, atol=1e-14)


def test_actions_broadcast_batch_axes():
    T, V = random_pose((5, 1)), h.normal((3,), 6)
    for act in (se3.Ad_act, se3.Ad_inv_act, se3.Ad_dual_act, se3.Ad_inv_dual_act):
        result = act(T, V)
        assert result.shape == (5, 3, 6)
        np.testing.assert_allclose(result[4, 2], act(T[4, 0], V[2]), atol=1e-15)


# Accuracy


@pytest.mark.parametrize("angle", [*h.ANGLES, *h.LARGE_ANGLES])
def test_exp_has_60_digit_accuracy(angle):
    xi = h.twists(angle)
    error = np.abs(se3.exp(xi) - h.each(lambda x: h.power_series(se3.hat(x)), xi))
    assert error[:, :3, :3].max() <= 4 * h.EPS
    assert (error[:, :3, 3].max(-1) <= 3 * h.EPS * h.lengths(xi[:, 3:])).all()
    assert (error[:, 3] == 0).all()


@pytest.mark.parametrize("angle", h.ANGLES)
def test_log_has_60_digit_accuracy(angle):
    xi = h.twists(angle)
    error = np.abs(se3.log(h.each(lambda x: h.power_series(se3.hat(x)), xi)) - xi)
    assert (error[:, :3] <= 3 * h.EPS * angle).all()
    assert (error[:, 3:].max(-1) <= 4 * h.EPS * h.lengths(xi[:, 3:])).all()


@pytest.mark.parametrize("angle", h.LARGE_ANGLES)
def test_log_of_half_a_turn_and_more_gives_a_twist_of_the_same_pose(angle):
    T = se3.exp(h.twists(angle))
    np.testing.assert_allclose(se3.exp(se3.log(T)), T, atol=12 * h.EPS)


def test_log_of_a_roughly_orthogonal_matrix_is_finite():
    rng = np.random.default_rng(0)
    for angle in (*h.ANGLES, *h.LARGE_ANGLES):
        T = se3.exp(h.twists(angle)) + 1e-15 * rng.uniform(-1, 1, size=(6, 4, 4))
        np.testing.assert_allclose(se3.exp(se3.log(T))[:, :3], T[:, :3], atol=30 * h.EPS)


@pytest.mark.parametrize("angle", [*h.ANGLES, *h.LARGE_ANGLES])
def test_dexp_has_60_digit_accuracy(angle):
    xi = h.twists(angle)[1::2]
    length = h.lengths(xi[:, 3:])
    references = [h.power_series(se3.ad(x), shift=1) for x in xi]
    error = np.abs(se3.dexp(xi) - np.stack([h.rounded(A) for A in references]))
    assert error[:, :3, :3].max() <= 3 * h.EPS
    assert (error[:, 3:, :3].max((-1, -2)) <= 3 * h.EPS * length).all()
    np.testing.assert_array_equal(se3.dexp_body(xi), se3.dexp(-xi))


@pytest.mark.parametrize("angle", [x for x in (*h.ANGLES, *h.LARGE_ANGLES) if x != 2 * np.pi])
def test_the_inverse_of_dexp_has_60_digit_accuracy(angle):
    """But at 2π, where dexp is singular."""
    xi = h.twists(angle)[1::2]
    length = h.lengths(xi[:, 3:])
    references = [h.power_series(se3.ad(x), shift=1) for x in xi]
    expected = np.stack([h.rounded(h.inverse60(A)) for A in references])
    error = np.abs(se3.dexp_inverse(xi) - expected)
    condition = max(1.0, 2 * np.pi / abs(2 * np.pi - angle))
    for rows in (slice(0, 3), slice(3, 6)):
        size = np.maximum(np.abs(expected[:, rows, :3]).max((-1, -2)), length)
        assert (error[:, rows, :3].max((-1, -2)) <= 3 * h.EPS * condition * size).all()
    np.testing.assert_array_equal(se3.dexp_inverse_body(xi), se3.dexp_inverse(-xi))


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.5, 3.0, 6.0])
def test_dexp_is_the_derivative_of_exp_in_both_trivialisations(angle):
    for xi, d in zip(h.twists(angle), h.normal((6,), 6, seed=5), strict=True):
        dT = h.differences(lambda t, xi=xi, d=d: se3.exp(xi + t * d), np.zeros(()), step=1e-3)
        np.testing.assert_allclose(dT, se3.hat(se3.dexp(xi) @ d) @ se3.exp(xi), atol=2e-11)
        np.testing.assert_allclose(dT, se3.exp(xi) @ se3.hat(se3.dexp_body(xi) @ d), atol=2e-11)
        np.testing.assert_allclose(se3.Ad(se3.exp(xi)) @ se3.dexp_body(xi), se3.dexp(xi), atol=1e-14)


def test_case_01_small_angles():
    c = acceptance.read(1)
    xi, expected, tolerance = np.array(c["inputs"]["twists"]), np.array(c["expected"]["exp"]), c["tolerance"]
    T = se3.exp(xi)
    np.testing.assert_allclose(T, expected, rtol=tolerance["rtol"], atol=tolerance["atol"])
    back = se3.log(T)
    for part in (slice(0, 3), slice(3, 6)):
        assert (h.lengths(back[:, part] - xi[:, part]) <= tolerance["log_rtol"] * h.lengths(xi[:, part])).all()


# The exponential of a joint's screw

SCREWS = np.array(
    [
        [0, 0, 1, 0, 0, 0],
        [0, 0, 1, 0.3, -0.2, 0.1],
        [0, -1, 0, 0, 0, 0.5],
        [0.6, 0, 0.8, 1, 2, 3],
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0.6, -0.8, 0],
    ],
    dtype=float,
)


@pytest.mark.parametrize("q", [0.0, 1e-300, 1e-12, -1e-9, 1e-4, 0.7, -3.0, np.pi, 2 * np.pi, 20.0])
def test_exp_screw_is_exp_to_the_rounding_of_the_screws_own_lengths(q):
    expected = h.each(lambda S: h.power_series(se3.hat(S), scale=q), SCREWS)
    error = np.abs(se3.exp_screw(SCREWS, q) - expected)
    assert error[:, :3, :3].max() <= 2 * h.EPS
    assert (error[:, :3, 3].max(-1) <= 2 * h.EPS * h.lengths(SCREWS[:, 3:]) * max(1.0, abs(q))).all()


def test_exp_screw_broadcasts_and_refuses_other_lengths():
    q = h.normal((4, 1), seed=3)
    assert se3.exp_screw(SCREWS, q).shape == (4, 6, 4, 4)
    np.testing.assert_allclose(se3.exp_screw(SCREWS, q), se3.exp(SCREWS * q[..., None]), atol=1e-14)
    with pytest.raises(CoadjointError, match=r"\|ω\| = 1 or ω = 0, not \|ω\| = 2: divide"):
        se3.exp_screw([0, 0, 2, 0, 0, 0], 0.1)
    with pytest.raises(CoadjointError, match=r"not \|ω\| = 0.5"):
        se3.exp_screw([[0, 0, 1, 0, 0, 0], [0, 0, 0.5, 0, 0, 0]], 0.1)


def count(fn, **inputs):
    from coadjoint.kernel.trace.trace import trace

    return trace(fn, inputs).count()


def test_traced_actions_multiply_no_more_than_they_must():
    for act in (se3.Ad_act, se3.Ad_inv_act, se3.Ad_dual_act, se3.Ad_inv_dual_act):
        assert count(act, T=(4, 4), x=(6,))["mul"] == 24
    for act in (se3.ad_act, se3.ad_dual_act):
        assert count(act, x=(6,), y=(6,))["mul"] == 18
    assert "mul" not in count(lambda q: se3.exp_screw(SCREWS[0], q), q=())
    assert count(lambda q: se3.exp_screw(SCREWS[4], q), q=()).keys() <= {"input", "const"}
    general = count(lambda q: se3.exp_screw(SCREWS[3], q), q=())
    assert (general["sin"], general["cos"]) == (1, 1)
    assert general["mul"] <= 18


# Other array libraries

_SMOOTH = np.concatenate([[np.zeros(6)], 1e-9 * np.ones((1, 6)), h.twists(0.7)[3:], h.twists(1.0)[:1], h.twists(2.5)[2:4]])
_POINTS = np.concatenate([_SMOOTH, h.twists(1e-200)[:1], h.twists(np.pi)[:2], h.twists(6.0)[:1]])
_T, _V = random_pose((), seed=7), h.normal((), 6, seed=8)  # constants of NumPy beside another library's arrays
_FUNCTIONS = {
    "hat": se3.hat,
    "vee": lambda x: se3.vee(se3.hat(x)),
    "exp": se3.exp,
    "exp_screw": lambda x: se3.exp_screw(SCREWS[3], x[..., 0]),
    "log": lambda x: se3.log(se3.exp(x)),
    "inverse": lambda x: se3.inverse(se3.hat(x)),  # algebraic in the pose, so any matrix serves
    "Ad": lambda x: se3.Ad(se3.hat(x)),
    "ad": se3.ad,
    "dexp": se3.dexp,
    "dexp_inverse": se3.dexp_inverse,
    "actions of a constant pose": lambda x: se3.Ad_dual_act(_T, se3.Ad_act(_T, x)),
    "actions on a constant": lambda x: se3.Ad_inv_act(se3.hat(x), _V),
    "dual actions on a constant": lambda x: se3.Ad_inv_dual_act(se3.hat(x), _V),
    "brackets": lambda x: se3.ad_dual_act(x, se3.ad_act(_V, x)),
    "pose": lambda x: se3.pose(np.eye(3), x[..., :3]),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_symbols(name):
    h.check_symbols(_FUNCTIONS[name], _POINTS)


@pytest.mark.parametrize("name", ["exp", "log", "dexp", "dexp_inverse", "Ad"])
def test_single_precision(name):
    h.check_float32(_FUNCTIONS[name], _SMOOTH)


@pytest.mark.parametrize(
    "name", ["vee", "exp_screw", "log", "inverse", "Ad", "ad", "dexp", "dexp_inverse", "actions of a constant pose", "brackets"]
)  # these contain the others, and compiling takes a second
def test_jax(name):
    h.check_jax(_FUNCTIONS[name], _POINTS, len(_SMOOTH))


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_torch(name):
    h.check_torch(_FUNCTIONS[name], _POINTS, len(_SMOOTH))


def test_lists_are_accepted_and_wrong_shapes_named():
    np.testing.assert_array_equal(se3.exp([0, 0, 0, 1, 2, 3])[:3, 3], [1, 2, 3])
    with pytest.raises(ShapeError, match=r"xi has shape \(3,\); expected \(\.\.\., 6\)"):
        se3.exp([1, 2, 3])
    with pytest.raises(ShapeError, match=r"T has shape \(3, 3\); expected \(\.\.\., 4, 4\)"):
        se3.Ad_act(np.eye(3), np.zeros(6))
