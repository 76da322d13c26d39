"""SO(3): group laws, 60-digit accuracy at all angles, other array libraries."""

from __future__ import annotations

import numpy as np
import pytest

import lie_helpers as h
from coadjoint.errors import ShapeError
from coadjoint.lie import so3

shapes = pytest.mark.parametrize("shape", h.SHAPES)


@shapes
def test_hat_is_the_cross_product_and_vee_its_inverse(shape):
    w, x = h.normal(shape, 3), h.normal(shape, 3, seed=1)
    np.testing.assert_allclose((so3.hat(w) @ x[..., None])[..., 0], np.cross(w, x), atol=4 * h.EPS)
    np.testing.assert_array_equal(so3.vee(so3.hat(w)), w)
    np.testing.assert_array_equal(so3.hat(w), -np.swapaxes(so3.hat(w), -1, -2))


@shapes
@pytest.mark.parametrize("scale", [1e-9, 1.0])
def test_exp_is_a_homomorphism_along_lines_and_gives_rotations(shape, scale):
    w = h.normal(shape, 3, scale=scale)
    R = so3.exp(w)
    assert R.shape == (*shape, 3, 3)
    np.testing.assert_allclose(R @ np.swapaxes(R, -1, -2), np.broadcast_to(np.eye(3), R.shape), atol=4 * h.EPS)
    np.testing.assert_allclose(np.linalg.det(R), np.ones(shape), rtol=12 * h.EPS)  # three rows' errors add up
    np.testing.assert_allclose(so3.exp(0.3 * w) @ so3.exp(0.7 * w), R, atol=4 * h.EPS)
    np.testing.assert_allclose(so3.exp(-w), np.swapaxes(R, -1, -2), atol=0)


@shapes
def test_conjugation_is_rotation_of_the_vector(shape):
    w, R = h.normal(shape, 3), so3.exp(h.normal(shape, 3, seed=1))
    Rw = (R @ w[..., None])[..., 0]
    np.testing.assert_allclose(R @ so3.exp(w) @ np.swapaxes(R, -1, -2), so3.exp(Rw), atol=10 * h.EPS)
    np.testing.assert_allclose(R @ so3.hat(w) @ np.swapaxes(R, -1, -2), so3.hat(Rw), atol=10 * h.EPS)


@pytest.mark.parametrize("angle", [*h.ANGLES, *h.LARGE_ANGLES])
def test_exp_has_60_digit_accuracy(angle):
    w = h.rotation_vectors(angle)
    expected = h.each(lambda w: h.power_series(so3.hat(w)), w)
    error = np.abs(so3.exp(w) - expected)
    # Where the angle is small, each entry off the diagonal is as accurate as it is small.
    assert (error <= 4 * h.EPS * np.minimum(1.0, np.where(np.eye(3), 1.0, angle))).all()


@pytest.mark.parametrize("angle", h.ANGLES)
def test_log_inverts_exp_to_the_last_digits(angle):
    w = h.rotation_vectors(angle)
    R = h.each(lambda w: h.power_series(so3.hat(w)), w)
    assert (np.abs(so3.log(R) - w) <= 3 * h.EPS * angle).all()


def test_log_at_pi_has_the_axis_and_a_stated_sign():
    u = h.directions(n=50)
    R = 2 * u[:, :, None] * u[:, None, :] - np.eye(3)  # exactly symmetric: half a turn
    w = so3.log(R)
    largest = np.abs(u).argmax(-1)[:, None]
    expected = np.pi * u * np.sign(np.take_along_axis(u, largest, -1))
    np.testing.assert_allclose(w, expected, atol=8 * h.EPS)
    assert (np.take_along_axis(w, largest, -1) > 0).all()
    np.testing.assert_allclose(so3.exp(w), R, atol=8 * h.EPS)


@pytest.mark.parametrize("angle", [np.pi, np.pi + 1e-12, np.pi + 1e-9, 4.0, 6.0, 2 * np.pi])
def test_log_of_more_than_half_a_turn_is_the_shorter_way(angle):
    w = h.rotation_vectors(angle)
    R = so3.exp(w)
    back = so3.log(R)
    assert (h.lengths(back) <= np.pi * (1 + h.EPS)).all()
    np.testing.assert_allclose(so3.exp(back), R, atol=12 * h.EPS)


@pytest.mark.parametrize("angle", [*h.ANGLES, *h.LARGE_ANGLES])
@pytest.mark.parametrize("noise", [1e-15, 1e-9, 1e-4])
def test_log_of_a_matrix_that_is_orthogonal_only_roughly(angle, noise):
    R = so3.exp(h.rotation_vectors(angle))
    R = R + noise * np.random.default_rng(0).uniform(-1, 1, size=R.shape)
    w = so3.log(R)
    assert np.isfinite(w).all()
    np.testing.assert_allclose(so3.exp(w), R, atol=20 * h.EPS + 4 * noise)


@pytest.mark.parametrize("angle", [*h.ANGLES, *h.LARGE_ANGLES])
def test_dexp_has_60_digit_accuracy(angle):
    w = h.rotation_vectors(angle)
    expected = h.each(lambda w: h.power_series(so3.hat(w), shift=1), w)
    assert np.abs(so3.dexp(w) - expected).max() <= 3 * h.EPS
    np.testing.assert_array_equal(so3.dexp_body(w), np.swapaxes(so3.dexp(w), -1, -2))


@pytest.mark.parametrize("angle", [a for a in (*h.ANGLES, *h.LARGE_ANGLES) if a != 2 * np.pi])
def test_dexp_inverse_is_as_accurate_as_its_pole_at_two_pi_permits(angle):
    w = h.rotation_vectors(angle)
    expected = h.each(lambda w: h.inverse60(h.power_series(so3.hat(w), shift=1)), w)
    condition = max(1.0, 2 * np.pi / abs(2 * np.pi - angle))
    error = np.abs(so3.dexp_inverse(w) - expected).max((-1, -2)) / np.abs(expected).max((-1, -2))
    assert error.max() <= 3 * h.EPS * condition
    np.testing.assert_array_equal(so3.dexp_inverse_body(w), np.swapaxes(so3.dexp_inverse(w), -1, -2))


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.5, 3.0, 6.0])
def test_dexp_is_the_derivative_of_exp_in_both_trivialisations(angle):
    for w, dw in zip(h.rotation_vectors(angle), h.normal((6,), 3, seed=5), strict=True):
        dR = h.differences(lambda t, w=w, dw=dw: so3.exp(w + t * dw), np.zeros(()), step=1e-3)
        np.testing.assert_allclose(dR, so3.hat(so3.dexp(w) @ dw) @ so3.exp(w), atol=1e-11)
        np.testing.assert_allclose(dR, so3.exp(w) @ so3.hat(so3.dexp_body(w) @ dw), atol=1e-11)


@shapes
def test_dexp_laws(shape):
    w = h.normal(shape, 3)
    np.testing.assert_allclose(so3.dexp(w) @ so3.dexp_inverse(w), np.broadcast_to(np.eye(3), (*shape, 3, 3)), atol=1e-15)
    np.testing.assert_allclose(so3.exp(w) @ so3.dexp_body(w), so3.dexp(w), atol=1e-15)


_SMOOTH = np.stack([np.zeros(3), 1e-9 * np.ones(3), [0.3, -0.4, 0.2], [1.0, 0.0, 0.0], [2.0, -1.5, 1.0]])
_POINTS = np.concatenate([_SMOOTH, [[1e-200, 0.0, 0.0], [np.pi, 0.0, 0.0], [0.0, 6.0, 0.0]]])
_FUNCTIONS = {
    "hat": so3.hat,
    "exp": so3.exp,
    "log of exp": lambda w: so3.log(so3.exp(w)),
    "dexp": so3.dexp,
    "dexp_inverse": so3.dexp_inverse,
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_symbols(name):
    h.check_symbols(_FUNCTIONS[name], _POINTS)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_single_precision(name):
    h.check_float32(_FUNCTIONS[name], _SMOOTH)


@pytest.mark.parametrize("name", ["log of exp", "dexp", "dexp_inverse"])  # these contain the others, and compiling takes a second
def test_jax(name):
    h.check_jax(_FUNCTIONS[name], _POINTS, len(_SMOOTH))


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_torch(name):
    h.check_torch(_FUNCTIONS[name], _POINTS, len(_SMOOTH))


def test_lists_are_accepted_and_wrong_shapes_named():
    np.testing.assert_array_equal(so3.exp([0, 0, 0]), np.eye(3))
    np.testing.assert_array_equal(so3.log([[1, 0, 0], [0, 1, 0], [0, 0, 1]]), np.zeros(3))
    with pytest.raises(ShapeError, match=r"w has shape \(4,\); expected \(\.\.\., 3\)"):
        so3.exp(np.zeros(4))
    with pytest.raises(ShapeError, match=r"R has shape \(3, 4\); expected \(\.\.\., 3, 3\)"):
        so3.log(np.zeros((3, 4)))
