"""Inertia: its four forms, changes of frame, kinetic energy, and what no body can have. Bodies are clouds of point masses."""

from __future__ import annotations

import numpy as np
import pytest

import lie_helpers as h
from coadjoint.errors import ShapeError
from coadjoint.lie import inertia, se3, so3

shapes = pytest.mark.parametrize("shape", h.SHAPES)


def cloud(shape, points=5, seed=0):
    """Masses (..., k) and positions (..., k, 3) of points."""
    return np.abs(h.normal(shape, points, seed=seed)), h.normal(shape, points, 3, seed=seed + 1)


def of_cloud(m, x):
    """Ten parameters by their definition as sums over points."""
    mass, first = m.sum(-1), (m[..., None] * x).sum(-2)
    square = (m * (x**2).sum(-1)).sum(-1)[..., None, None] * np.eye(3)
    second = square - np.einsum("...k,...ki,...kj->...ij", m, x, x)
    return np.concatenate([mass[..., None], first, second[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]], axis=-1)


def body(shape=(), seed=0):
    return of_cloud(*cloud(shape, seed=seed))


@shapes
def test_forms_are_the_sums_over_points(shape):
    m, x = cloud(shape)
    parameters = of_cloud(m, x)
    # Kinetic energy of the points moving with a twist, and their second moments in homogeneous coordinates.
    V = h.normal(shape, 6, seed=2)
    speed = V[..., None, 3:] + np.cross(V[..., None, :3], x)
    energy = 0.5 * (m * (speed**2).sum(-1)).sum(-1)
    J = inertia.spatial(parameters)
    np.testing.assert_allclose(0.5 * np.einsum("...i,...ij,...j", V, J, V), energy, rtol=1e-13)
    np.testing.assert_allclose(inertia.kinetic_energy(parameters, V), energy, rtol=1e-13)
    momentum = np.concatenate([(m[..., None] * np.cross(x, speed)).sum(-2), (m[..., None] * speed).sum(-2)], axis=-1)
    np.testing.assert_allclose(inertia.apply(parameters, V), momentum, atol=1e-13)
    np.testing.assert_allclose((J @ V[..., None])[..., 0], momentum, atol=1e-13)
    one = np.concatenate([x, np.ones((*m.shape, 1))], axis=-1)
    np.testing.assert_allclose(inertia.pseudo(parameters), np.einsum("...k,...ki,...kj", m, one, one), atol=1e-13)


@shapes
def test_conversions_are_inverse_to_each_other(shape):
    parameters = body(shape)
    mass, com, about_com = inertia.to_body(parameters)
    assert mass.shape == shape
    np.testing.assert_allclose(inertia.from_body(mass, com, about_com), parameters, atol=1e-14)
    np.testing.assert_allclose(inertia.from_pseudo(inertia.pseudo(parameters)), parameters, atol=1e-14)
    np.testing.assert_array_equal(inertia.from_spatial(inertia.spatial(parameters)), parameters)
    np.testing.assert_array_equal(inertia.rotational(parameters), inertia.spatial(parameters)[..., :3, :3])


def test_spatial_inertia_is_equation_21():
    mass, com, about_com = inertia.to_body(body())
    J = inertia.spatial(inertia.from_body(mass, com, about_com))
    r = so3.hat(com)
    expected = np.block([[about_com - mass * r @ r, mass * r], [-mass * r, mass * np.eye(3)]])
    np.testing.assert_allclose(J, expected, atol=1e-14)


@shapes
def test_change_of_frame(shape):
    m, x = cloud(shape)
    T = se3.exp(h.normal(shape, 6, seed=4))
    seen = np.einsum("...ij,...kj->...ki", T[..., :3, :3], x) + T[..., None, :3, 3]
    parameters, expected = of_cloud(m, x), of_cloud(m, seen)
    transformed = inertia.transform(T, parameters)
    np.testing.assert_allclose(transformed, expected, atol=1e-13)
    Sigma = inertia.pseudo(parameters)
    np.testing.assert_allclose(inertia.transform_pseudo(T, Sigma), T @ Sigma @ np.swapaxes(T, -1, -2), atol=1e-13)
    back = se3.Ad(se3.inverse(T))
    J = np.swapaxes(back, -1, -2) @ inertia.spatial(parameters) @ back
    np.testing.assert_allclose(inertia.spatial(transformed), J, atol=1e-12)
    V = h.normal(shape, 6, seed=5)
    energy = inertia.kinetic_energy(parameters, V)
    np.testing.assert_allclose(inertia.kinetic_energy(transformed, se3.Ad_act(T, V)), energy, rtol=1e-12)


def test_parameters_of_joined_bodies_add():
    (m1, x1), (m2, x2) = cloud((), seed=0), cloud((), seed=2)
    together = of_cloud(np.concatenate([m1, m2]), np.concatenate([x1, x2]))
    np.testing.assert_allclose(of_cloud(m1, x1) + of_cloud(m2, x2), together, atol=1e-13)


def test_trace_form_of_a_point_mass_where_det_I_is_zero():
    parameters = inertia.from_body(2.0, [0, 0, 0.5], np.zeros((3, 3)))
    V = np.array([0.0, 1.0, 3.0, 0.2, 0.0, 0.0])
    assert inertia.kinetic_energy(parameters, V) == pytest.approx(0.5 * 2.0 * (0.2 + 0.5) ** 2, rel=1e-15)


def test_massless_bodies_have_no_nan():
    mass, com, about_com = inertia.to_body(np.zeros((2, 10)))
    assert not mass.any()
    assert not com.any()
    assert not about_com.any()


def test_traced_operations_are_few():
    from coadjoint.kernel.trace.trace import trace

    assert trace(inertia.apply, {"parameters": (10,), "V": (6,)}).count()["mul"] == 24
    assert trace(inertia.transform, {"T": (4, 4), "parameters": (10,)}).count()["mul"] <= 73


# Physical consistency


@pytest.mark.parametrize("points", [1, 2, 3, 4])
def test_bodies_of_points_are_possible(points):
    # One point, a rod and a plate have singular pseudo-inertias: rounding must not make them impossible.
    for seed in range(20):
        assert inertia.violations(of_cloud(*cloud((), points, seed))) == []
    assert inertia.violations(np.zeros(10)) == []


def test_violations_are_exactly_those_of_the_pseudo_inertia():
    rng = np.random.default_rng(0)
    possible = 0
    for _ in range(300):
        parameters = body(seed=int(rng.integers(1000))) + rng.choice([0.0, 0.3, 1.0]) * rng.normal(size=10)
        smallest = np.linalg.eigvalsh(inertia.pseudo(parameters))[0]
        assert (inertia.violations(parameters) == []) == (smallest > 0)
        possible += smallest > 0
    assert 60 < possible < 240


def test_violations_say_what_and_by_how_much():
    about = lambda *moments: np.diag(moments).astype(float)
    (text,) = inertia.violations(inertia.from_body(1.0, [0.1, 0.2, 0.3], about(1, 1, 3)))
    assert "1, 1 and 3" in text
    assert "exceeds the sum of the others by 1" in text
    (text,) = inertia.violations(inertia.from_body(-2.0, [0, 0, 0], about(1, 1, 1)))
    assert "mass -2 is negative" in text
    texts = inertia.violations(inertia.from_body(1.0, [0, 0, 0], about(-0.5, 1, 1)))
    assert "principal moment -0.5 about the centre of mass is negative" in texts[0]
    assert "by 0.5" in texts[1]
    (text,) = inertia.violations([0, 1, 0, 2, *np.zeros(6)])
    assert "mass is 0, but mass times centre of mass is (1, 0, 2)" in text
    (text,) = inertia.violations([1, 0, 0, 0, np.nan, 0, 0, 1, 0, 1])
    assert "not a finite number" in text
    with pytest.raises(ShapeError, match=r"one body, \(10,\), not \(2, 10\)"):
        inertia.violations(np.zeros((2, 10)))


# Other array libraries

_POINTS = np.concatenate([body((3,)), np.zeros((1, 10))])
_T, _V = se3.exp(h.normal((), 6, seed=7)), h.normal((), 6, seed=8)
_FUNCTIONS = {
    "to_body and back": lambda p: inertia.from_body(*inertia.to_body(p)),
    "spatial": lambda p: inertia.from_spatial(inertia.spatial(p)),
    "transform": lambda p: inertia.transform_pseudo(_T, inertia.pseudo(p)),
    "apply": lambda p: inertia.apply(p, _V),
    "energy": lambda p: inertia.kinetic_energy(p, _V),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_symbols(name):
    h.check_symbols(_FUNCTIONS[name], _POINTS)


@pytest.mark.parametrize(
    "name", ["to_body and back", "transform", "apply", "energy"]
)  # these contain the others, and compiling takes a second
def test_jax(name):
    h.check_jax(_FUNCTIONS[name], _POINTS, 3)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_torch(name):
    h.check_torch(_FUNCTIONS[name], _POINTS, 3)
