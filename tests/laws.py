"""What the laws are stated with: relative errors, numerical derivatives on the configuration manifold, states, robots without kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

import coadjoint as cj
from coadjoint.lie import se3

WEIGHTS = ((1, 8 / 5), (2, -2 / 5), (3, 8 / 105), (4, -1 / 140))
"""(k, w): f'(0) = Σ w (f(k h) - f(-k h)) / 2h up to terms of order h⁸."""

COORDINATES = ("revolute", "continuous", "prismatic", "helical", "universal", "fixed")
"""Kinds of joints whose velocities are rates of coordinates."""


def relative(x, y):
    """The largest difference, relative to the largest entry of y. NaN if either has a NaN, so that no bound holds."""
    return np.max(np.abs(np.asarray(x) - y)) / max(1e-300, np.max(np.abs(y)))


def close(found, expected, tolerance=1e-9):
    """Equal but for tolerance times the largest entry expected, or times 1 where all are smaller."""
    scale = max(1.0, float(np.max(np.abs(expected))))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def rate(fn: Callable, h: float = 2e-3):
    """d/dt fn(t) at 0, by central differences of eighth order."""
    return sum(w * (fn(k * h) - fn(-k * h)) for k, w in WEIGHTS) / (2 * h)


def central(fn: Callable, x, k: int, h: float = 1e-3):
    """∂fn/∂x_k at x (n,), by central differences of eighth order."""
    e = np.eye(len(x))[k]
    return rate(lambda t: fn(x + t * e), h)


def derivative(robot: cj.Robot, fn: Callable, q, direction, h: float = 1e-3):
    """d/dt fn(q ⊕ t direction) at 0, by central differences of eighth order."""
    return rate(lambda t: fn(robot.integrate(q, t * direction)), h)


def frame_derivative(robot: cj.Robot, fn: Callable, q):
    """X_l fn along every direction l of the velocities, l last."""
    return np.moveaxis(derivative(robot, fn, q[..., None, :], np.eye(robot.nv)), q.ndim - 1, -1)


def structure_constants(robot: cj.Robot):
    """cˡ_ij of [X_i, X_j] = cˡ_ij X_l, from the brackets of the screws of each group joint."""
    c = np.zeros((robot.nv,) * 3)
    for i, link in enumerate(robot.links):
        if link.joint.kind in ("spherical", "planar", "free"):
            S, v = robot.joint_screws(i), robot._v_slices[i]
            brackets = se3.ad_act(S[:, None], S[None])
            c[v, v, v] = np.moveaxis(brackets @ np.linalg.pinv(S), -1, 0)
    return c


def state(robot: cj.Robot, rng: np.random.Generator, shape: tuple[int, ...] = ()):
    """A random configuration (*shape, nq) and two random vectors (*shape, nv)."""
    return robot.random(rng, shape), *rng.normal(size=(2, *shape, robot.nv))


def fresh(robot: cj.Robot) -> cj.Robot:
    """The same robot without what was compiled for it."""
    return cj.Robot(robot.name, robot.links, robot.frames, robot.gravity, robot.base, robot.notes, springs=robot.springs)


def derivatives_of(motion, parameters):
    """The derivatives of an optimal motion, which say by a warning where they would be others if limits were drawn in anew."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = motion.sensitivity(parameters)
    assert [str(x.message).startswith("limits are drawn in") for x in told] == [True] * (found.drawn > 1e-4)
    return found
