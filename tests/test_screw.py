"""Screws: every case of Chasles' and Poinsot's theorems, round trips, batches."""

from __future__ import annotations

import numpy as np
import pytest

import acceptance
import lie_helpers as h
from coadjoint.errors import ShapeError
from coadjoint.lie import screw, se3

SPECIAL = np.array(
    [
        [0, 0, 0, 0, 0, 0],  # zero
        [0, 0, 0, 3, 0, 4],  # translation
        [0, 0, 0, 0, 0, 1e-200],
        [0, 0, 2, 0, 0, 0],  # rotation about the origin
        [0, 0, 2, 1, 0, 0],  # rotation about another point
        [0, 0, 2, 1, 0, 0.5],  # both
        [1e-200, 0, 0, 0, 1, 0],  # so far away that |ω|² underflows
        [0, 1e-200, 1e-200, 0, 0, 0],
        [1e200, 0, 0, 0, 1e200, 1e190],
        [5e-324, 0, 0, 1, 1, 1],  # its axis would be beyond the range of float64: a translation
    ]
)


def test_case_03():
    c = acceptance.read(3)
    for make, key in ((screw.from_twist, "twist"), (screw.from_wrench, "wrench")):
        inputs = np.array(c["inputs"]["twists" if key == "twist" else "wrenches"], dtype=float)
        result = make(inputs)
        for k, expected in enumerate(c["expected"][f"{key}_screws"]):
            for field, value in expected.items():
                np.testing.assert_allclose(getattr(result, field)[k], np.array(value, dtype=float), **c["tolerance"])
        np.testing.assert_allclose(getattr(result, key)(), inputs, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(("make", "back"), [(screw.from_twist, "twist"), (screw.from_wrench, "wrench")])
def test_round_trip_of_every_kind(make, back):
    swap = [0, 1, 2, 3, 4, 5] if back == "twist" else [3, 4, 5, 0, 1, 2]
    for x in np.concatenate([SPECIAL, h.normal((20,), 6)]):
        s = make(x[swap])
        assert np.isfinite(s.point).all()
        result = getattr(s, back)()[swap]
        scale = np.abs(x).max()
        np.testing.assert_allclose(result[:3], x[:3], atol=4 * h.EPS * np.abs(x[:3]).max() + 1e-300)
        np.testing.assert_allclose(result[3:], x[3:], atol=4 * h.EPS * scale)


@pytest.mark.parametrize("shape", h.SHAPES)
def test_the_parts_are_what_they_are_called(shape):
    V = h.normal(shape, 6)
    s = screw.from_twist(V)
    w, v = V[..., :3], V[..., 3:]
    assert s.point.shape == (*shape, 3)
    assert s.pitch.shape == shape
    np.testing.assert_allclose(np.linalg.norm(s.direction, axis=-1), np.ones(shape), rtol=1e-15)
    np.testing.assert_allclose(s.magnitude, np.linalg.norm(w, axis=-1), rtol=1e-15)
    np.testing.assert_allclose((s.point * s.direction).sum(-1), np.zeros(shape), atol=1e-14)  # foot of the perpendicular
    # Points of the axis move along it only, with the speed pitch × magnitude.
    np.testing.assert_allclose(v + np.cross(w, s.point), s.pitch[..., None] * w, atol=1e-14)


def test_any_point_of_the_axis_gives_the_same_screw():
    s = screw.from_twist(h.normal((5,), 6))
    moved = s._replace(point=s.point + 2.5 * s.direction)
    np.testing.assert_allclose(moved.twist(), s.twist(), atol=1e-14)
    np.testing.assert_allclose(moved.wrench(), s.wrench(), atol=1e-14)


def test_a_finite_twist_keeps_its_axis_fixed():
    s = screw.from_twist(h.normal((7,), 6, seed=2))
    T = se3.exp(s.twist())
    moved = (T[:, :3, :3] @ s.point[..., None])[..., 0] + T[:, :3, 3]
    np.testing.assert_allclose(moved, s.point + (s.pitch * s.magnitude)[:, None] * s.direction, atol=1e-13)


def test_power_of_a_wrench_on_a_twist_by_screws():
    V, F = h.normal((9,), 6, seed=3), h.normal((9,), 6, seed=4)
    a, b = screw.from_twist(V), screw.from_wrench(F)
    # The virtual coefficient of two screws: M₁ M₂ ((h₁ + h₂) cos α - (r₂ - r₁)·(d₁ × d₂)).
    cos = (a.direction * b.direction).sum(-1)
    offset = ((b.point - a.point) * np.cross(a.direction, b.direction)).sum(-1)
    power = a.magnitude * b.magnitude * ((a.pitch + b.pitch) * cos - offset)
    np.testing.assert_allclose((V * F).sum(-1), power, atol=1e-13)


def test_special_cases_by_name():
    zero = screw.from_twist(SPECIAL[0])
    assert (zero.pitch, zero.magnitude) == (0, 0)
    assert not zero.direction.any()
    assert not zero.point.any()
    couple = screw.from_wrench([3, 0, 4, 0, 0, 0])
    assert (couple.pitch, couple.magnitude) == (np.inf, 5)
    np.testing.assert_allclose(couple.direction, [0.6, 0, 0.8], rtol=1e-15)
    assert screw.from_twist(SPECIAL[-1]).pitch == np.inf
    made = screw.Screw(point=[0, 1, 0], direction=[0, 0, 1], pitch=0.5, magnitude=2)
    np.testing.assert_array_equal(made.twist(), [0, 0, 2, 2, 0, 1])
    np.testing.assert_array_equal(made.wrench(), [2, 0, 1, 0, 0, 2])
    np.testing.assert_array_equal(screw.Screw([0, 1, 0], [0, 0, 1], np.inf, 2).twist(), [0, 0, 0, 0, 0, 2])
    with pytest.raises(ShapeError, match=r"direction has shape \(2,\)"):
        screw.Screw([0, 1, 0], [0, 1], 0.5, 2).twist()
    with pytest.raises(ShapeError, match=r"V has shape \(3,\)"):
        screw.from_twist([0, 0, 1])


_SMOOTH = h.normal((3,), 6, seed=5)
_POINTS = np.concatenate([_SMOOTH, SPECIAL[:6]])
_FUNCTIONS = {
    "round trip": lambda V: screw.from_twist(V).twist(),
    "point": lambda V: screw.from_twist(V).point,
    "direction": lambda V: screw.from_wrench(V).direction,
    "magnitude": lambda V: screw.from_wrench(V).magnitude,
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_symbols(name):
    h.check_symbols(_FUNCTIONS[name], _POINTS)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_single_precision(name):
    h.check_float32(_FUNCTIONS[name], _SMOOTH)


@pytest.mark.parametrize("name", ["round trip"])  # these contain the others, and compiling takes a second
def test_jax(name):
    h.check_jax(_FUNCTIONS[name], _POINTS, len(_SMOOTH))


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_torch(name):
    h.check_torch(_FUNCTIONS[name], _POINTS, len(_SMOOTH))


def test_a_screw_passes_through_jit_and_vmap():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        s = jax.jit(jax.vmap(screw.from_twist))(SPECIAL[:6])
        np.testing.assert_allclose(s.pitch, screw.from_twist(SPECIAL[:6]).pitch, rtol=1e-15)
        np.testing.assert_allclose(jax.jit(lambda s: s.twist())(s), SPECIAL[:6], rtol=1e-15)
