"""Quaternions (x, y, z, w): laws, agreement with SO(3), accuracy, other array libraries."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import lie_helpers as h
from coadjoint.errors import ShapeError
from coadjoint.lie import quaternion, so3

shapes = pytest.mark.parametrize("shape", h.SHAPES)


def unit(shape, seed=0):
    return quaternion.normalize(h.normal(shape, 4, seed=seed))


def same_rotation(p, q, atol):
    sign = np.sign((p * q).sum(-1, keepdims=True))
    np.testing.assert_allclose(p * sign, q, atol=atol)


def test_the_order_is_x_y_z_w():
    np.testing.assert_allclose(quaternion.exp([0, 0, 2.0]), [0, 0, np.sin(1.0), np.cos(1.0)], rtol=1e-15)
    i, j, k = np.eye(4)[:3]
    np.testing.assert_array_equal(quaternion.multiply(i, j), k)
    np.testing.assert_array_equal(quaternion.multiply(j, k), i)
    np.testing.assert_array_equal(quaternion.multiply(k, i), j)
    np.testing.assert_array_equal(quaternion.multiply(i, i), [0, 0, 0, -1])


@shapes
def test_group_laws_and_the_map_to_matrices(shape):
    p, q, r = (unit(shape, seed=k) for k in range(3))
    multiply, conjugate, R = quaternion.multiply, quaternion.conjugate, quaternion.to_matrix
    one = np.broadcast_to([0.0, 0, 0, 1], q.shape)
    np.testing.assert_allclose(multiply(q, conjugate(q)), one, atol=4 * h.EPS)
    np.testing.assert_allclose(multiply(multiply(p, q), r), multiply(p, multiply(q, r)), atol=4 * h.EPS)
    np.testing.assert_allclose(R(multiply(p, q)), R(p) @ R(q), atol=8 * h.EPS)
    np.testing.assert_allclose(R(conjugate(q)), np.swapaxes(R(q), -1, -2), atol=0)
    np.testing.assert_array_equal(R(-q), R(q))
    same_rotation(quaternion.from_matrix(R(q)), q, atol=4 * h.EPS)
    np.testing.assert_allclose((quaternion.normalize(5.0 * q) ** 2).sum(-1), np.ones(shape), rtol=4 * h.EPS)


@shapes
def test_exp_and_log_go_with_those_of_the_rotation_group(shape):
    w = h.normal(shape, 3)
    q = quaternion.exp(w)
    np.testing.assert_allclose(quaternion.to_matrix(q), so3.exp(w), atol=8 * h.EPS)
    np.testing.assert_allclose(quaternion.log(q), so3.log(so3.exp(w)), atol=8 * h.EPS)
    np.testing.assert_array_equal(quaternion.log(-q), quaternion.log(q))
    np.testing.assert_allclose(quaternion.log(7.0 * q), quaternion.log(q), rtol=1e-14)


def exp60(w):
    with mpmath.workdps(90):
        x = [mpmath.mpf(float(c)) for c in w]
        angle = mpmath.sqrt(sum(c * c for c in x))
        ratio = mpmath.sin(angle / 2) / angle if angle else mpmath.mpf(1) / 2
        return np.array([ratio * c for c in x] + [mpmath.cos(angle / 2)], dtype=object)


@pytest.mark.parametrize("angle", [*h.ANGLES, *h.LARGE_ANGLES])
def test_60_digit_accuracy_of_exp_and_from_matrix(angle):
    w = h.rotation_vectors(angle)
    expected = h.each(exp60, w)
    error = np.abs(quaternion.exp(w) - expected)
    assert (error[:, :3] <= 3 * h.EPS * min(1.0, angle)).all()
    assert (error[:, 3] <= 3 * h.EPS).all()
    R = h.each(lambda w: h.power_series(so3.hat(w)), w)
    q = quaternion.from_matrix(R)
    assert (q[:, 3] >= 0).all()
    same_rotation(q, expected, atol=3 * h.EPS)


@pytest.mark.parametrize("angle", h.ANGLES)
def test_60_digit_accuracy_of_log(angle):
    w = h.rotation_vectors(angle)
    assert (np.abs(quaternion.log(h.each(exp60, w)) - w) <= 3 * h.EPS * angle).all()


def test_from_matrix_finds_the_quaternion_at_every_angle_and_axis():
    u = h.directions(n=40, seed=3)
    for angle in np.linspace(0, np.pi, 25):
        q = quaternion.exp(angle * u)
        R = quaternion.to_matrix(q)
        same_rotation(quaternion.from_matrix(R), q, atol=5 * h.EPS)


def test_log_at_half_a_turn_is_the_axis_as_it_stands():
    u = h.directions()
    q = np.concatenate([u, np.zeros((len(u), 1))], axis=-1)
    np.testing.assert_allclose(quaternion.log(q), np.pi * u, atol=2 * h.EPS)


@shapes
def test_rate_is_the_derivative_along_a_body_angular_velocity(shape):
    q, w = unit(shape), h.normal(shape, 3, seed=1)
    path = lambda t: quaternion.multiply(q, quaternion.exp(t * w))
    rate = quaternion.rate(q, w)
    np.testing.assert_allclose(rate, h.differences(path, np.zeros(()), step=1e-3), atol=1e-11)
    half = 0.5 * np.concatenate([w, np.zeros((*shape, 1))], axis=-1)
    np.testing.assert_allclose(rate, quaternion.multiply(q, half), atol=2 * h.EPS)
    Rdot = h.differences(lambda t: quaternion.to_matrix(path(t)), np.zeros(()), step=1e-3)
    np.testing.assert_allclose(Rdot, quaternion.to_matrix(q) @ so3.hat(w), atol=1e-10)


_SMOOTH = np.stack([np.zeros(3), 1e-9 * np.ones(3), [0.3, -0.4, 0.2], [2.0, -1.5, 1.0]])
_POINTS = np.concatenate([_SMOOTH, [[1e-200, 0.0, 0.0], [np.pi, 0.0, 0.0], [0.0, 6.0, 0.0]]])
_Q = unit((), seed=4)
_FUNCTIONS = {
    "exp": quaternion.exp,
    "products": lambda w: quaternion.rate(quaternion.multiply(quaternion.exp(w), _Q), w),
    "log": lambda w: quaternion.log(quaternion.normalize(quaternion.conjugate(quaternion.exp(w)))),
    "matrices": lambda w: quaternion.from_matrix(quaternion.to_matrix(quaternion.exp(w))),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_symbols(name):
    h.check_symbols(_FUNCTIONS[name], _POINTS)


@pytest.mark.parametrize("name", ["exp", "log", "matrices"])
def test_single_precision(name):
    h.check_float32(_FUNCTIONS[name], _SMOOTH)


@pytest.mark.parametrize("name", ["products", "log", "matrices"])  # these contain the others, and compiling takes a second
def test_jax(name):
    h.check_jax(_FUNCTIONS[name], _POINTS, len(_SMOOTH))


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_torch(name):
    h.check_torch(_FUNCTIONS[name], _POINTS, len(_SMOOTH))


def test_wrong_shapes_are_named():
    with pytest.raises(ShapeError, match=r"q has shape \(3,\); expected \(\.\.\., 4\)"):
        quaternion.to_matrix([0, 0, 1])
