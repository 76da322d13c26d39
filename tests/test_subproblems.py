"""The subproblems of Paden and Kahan: what they say holds, both solutions are there, and where there is none the nearest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coadjoint.kinematics.subproblems import Angle, angle, back, subproblem1, subproblem2, subproblem3, subproblem4, turned
from coadjoint.lie import so3

seeds = st.integers(0, 2**32 - 1)


def unit(rng, *shape):
    x = rng.normal(size=(*shape, 3))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def rotation(w, q):
    return so3.exp(w * np.asarray(q)[..., None])


def apart(q, other):
    """The angle between two angles."""
    return np.abs(np.angle(np.exp(1j * (q - other))))


def dot(x, y):
    return (x * y).sum(-1)


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_turned_is_the_rotation_about_the_axis(seed):
    rng = np.random.default_rng(seed)
    w, p, q = unit(rng, 5), rng.normal(size=(5, 3)), rng.uniform(-4, 4, 5)
    pair = Angle(np.sin(q), np.cos(q))
    assert np.abs(turned(w, pair, p) - (rotation(w, q) @ p[..., None])[..., 0]).max() < 1e-14
    assert np.abs(turned(w, back(pair), turned(w, pair, p)) - p).max() < 1e-14
    assert apart(angle(pair), q).max() < 1e-14


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_each_finds_the_angle_that_made_the_problem(seed):
    """And all that it finds solve the problem."""
    rng = np.random.default_rng(seed)
    n = 50
    w, w2, p, k, h = unit(rng, n), unit(rng, n), *rng.normal(size=(3, n, 3))
    q, q2 = rng.uniform(-np.pi, np.pi, (2, n))
    there = (rotation(w, q) @ p[..., None])[..., 0]

    one = subproblem1(w, p, there)
    assert apart(angle(one), q).max() < 1e-6
    assert np.abs(turned(w, one, p) - there).max() < 1e-7
    assert np.abs(one.sin**2 + one.cos**2 - 1.0).max() < 1e-14

    d = dot(h, there)
    found = subproblem4(w, h, p, d)
    assert max(np.abs(dot(h, turned(w, x, p)) - d).max() for x in found) < 1e-13
    for x in found:  # the angle itself is that of its sine and cosine
        assert apart(angle(x), np.arctan2(x.sin, x.cos)).max() < 1e-14
        assert np.abs(angle(x)).max() <= np.pi
    assert np.minimum(*(apart(angle(x), q) for x in found)).max() < 1e-6

    square = dot(there - k, there - k)
    found = subproblem3(w, p, k, square)
    assert max(np.abs(((turned(w, x, p) - k) ** 2).sum(-1) - square).max() for x in found) < 1e-12
    assert np.minimum(*(apart(angle(x), q) for x in found)).max() < 1e-6

    end = (rotation(w, q) @ rotation(w2, q2) @ p[..., None])[..., 0]
    pairs = subproblem2(w, w2, p, end)
    assert max(np.abs(turned(w, x, turned(w2, y, p)) - end).max() for x, y in pairs) < 1e-6
    assert np.minimum(*(np.maximum(apart(angle(x), q), apart(angle(y), q2)) for x, y in pairs)).max() < 1e-5


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_without_a_solution_the_nearest_is_given_twice(seed):
    """Against a search over all angles."""
    rng = np.random.default_rng(seed)
    w, p, h, k = unit(rng), *rng.normal(size=(3, 3))
    all_angles = np.linspace(-np.pi, np.pi, 20001)
    everywhere = turned(w, Angle(np.sin(all_angles), np.cos(all_angles)), p)
    for d in (10.0, -10.0):
        first, second = subproblem4(w, h, p, np.array(d))
        assert apart(angle(first), angle(second)) < 1e-7
        nearest = all_angles[np.argmin(np.abs(everywhere @ h - d))]
        assert apart(angle(first), nearest) < 1e-3
    first, _ = subproblem3(w, p, k, np.array(400.0))
    assert apart(angle(first), all_angles[np.argmax(((everywhere - k) ** 2).sum(-1))]) < 1e-3


def test_where_every_angle_solves_it_is_zero():
    z = np.array([0.0, 0.0, 1.0])
    assert subproblem1(z, 2 * z, 2 * z)[:2] == (0.0, 1.0)
    for pair in subproblem4(z, np.array([1.0, 2.0, 3.0]), 2 * z, np.array(6.0)):
        assert angle(pair) == 0.0


@pytest.mark.parametrize(("x", "y"), [(1.0, 1.0), (-0.3, 1.4), (0.2, -1.9)])
def test_two_links_in_the_plane(x, y):
    """The law of cosines, as in every textbook: cos θ₂ = (x² + y² - l₁² - l₂²) / (2 l₁ l₂)."""
    z, first, second = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]), np.array([1.2, 0.0, 0.0])
    elbow = subproblem3(z, second, -first, np.array(x * x + y * y))
    cosine = (x * x + y * y - 1.0 - 1.44) / 2.4
    assert sorted(angle(q) for q in elbow) == pytest.approx([-np.arccos(cosine), np.arccos(cosine)], abs=1e-12)
