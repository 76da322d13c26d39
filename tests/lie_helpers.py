"""References with 60 digits for the Lie groups, summed from the defining series and not from the closed forms under test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

EPS = float(np.finfo(np.float64).eps)
ANGLES = (0.0, 1e-300, 1e-160, 1e-12, 1e-9, 1e-4, 0.1, 0.9999, 1.0001, 2.0, 3.0, np.pi - 1e-4, np.pi - 1e-9)
"""Angles up to π at which every function must keep its digits."""
LARGE_ANGLES = (np.pi, np.pi + 1e-9, 4.0, 2 * np.pi - 1e-4, 2 * np.pi - 1e-9, 2 * np.pi, 2 * np.pi + 1e-9, 7.0)
SHAPES = ((), (1,), (3, 1, 2))


def normal(shape: tuple[int, ...], *core: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=(*shape, *core))


def directions(seed: int = 0, n: int = 3) -> np.ndarray:
    """Unit vectors: an axis, one almost an axis, one with a repeated component, and random ones."""
    fixed = [[0.0, -1.0, 0.0], [1.0, 1e-9, 0.0], [-1.0, 1.0, 1.0]]
    u = np.concatenate([fixed, normal((n,), 3, seed=seed)])
    return u / np.linalg.norm(u, axis=-1, keepdims=True)


def rotation_vectors(angle: float) -> np.ndarray:
    return angle * directions()


def twists(angle: float) -> np.ndarray:
    """Twists (N, 6) with this angle and linear parts of order 1."""
    w = rotation_vectors(angle)
    return np.concatenate([w, normal(w.shape, seed=1)], axis=-1)


def _exact(x: np.ndarray) -> np.ndarray:
    return np.array([mpmath.mpf(float(c)) for c in x.flat], dtype=object).reshape(x.shape)


def power_series(A: np.ndarray, shift: int = 0, scale: float = 1.0) -> np.ndarray:
    """Σ_k (scale A)ᵏ / (k + shift)! in 60 digits and more: the exponential, and with shift = 1 ∫₀¹ exp(t A) dt."""
    with mpmath.workdps(90):
        A = _exact(A) * mpmath.mpf(scale)
        term = _exact(np.eye(len(A))) / mpmath.factorial(shift)
        total = term
        for k in range(1, 400):
            term = term @ A / (k + shift)
            total = total + term
            if max(abs(x) for x in term.flat) < mpmath.mpf(10) ** -75 and k > 3:
                return total
    raise AssertionError("the series did not converge")


def inverse60(A: np.ndarray) -> np.ndarray:
    with mpmath.workdps(90):
        return np.array((mpmath.matrix(A.tolist()) ** -1).tolist(), dtype=object)


def rounded(A: np.ndarray) -> np.ndarray:
    return A.astype(np.float64)


def each(function: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """The reference function of each row, rounded once."""
    return np.stack([rounded(function(x)) for x in inputs])


def lengths(x: np.ndarray) -> np.ndarray:
    """|x| over the last axis, without underflow."""
    scale = np.abs(x).max(-1)
    return scale * np.linalg.norm(x / np.where(scale > 0, scale, 1.0)[..., None], axis=-1)


Function = Callable[[Any], Any]


def check_symbols(fn: Function, points: np.ndarray) -> None:
    """Traced on symbols and run as a graph, the function gives what it gives on numbers."""
    from coadjoint.kernel.passes.evaluate import evaluate
    from coadjoint.kernel.trace.trace import trace

    graph = trace(fn, {"x": points.shape[1:]})
    (result,) = evaluate(graph, points)
    np.testing.assert_allclose(result, fn(points), rtol=1e-13, atol=1e-14)


def differences(fn: Function, point: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The Jacobian of fn by central differences of fourth order: (*result, *argument)."""
    columns = []
    for k in np.ndindex(point.shape):
        e = np.zeros(point.shape)
        e[k] = step
        columns.append((8 * (fn(point + e) - fn(point - e)) - (fn(point + 2 * e) - fn(point - 2 * e))) / (12 * step))
    return np.stack(columns, axis=-1).reshape(*columns[0].shape, *point.shape)


def check_jax(fn: Function, points: np.ndarray, n_smooth: int) -> None:
    """The same values as NumPy under jit and vmap, finite Jacobians at all points, right ones at the first n_smooth."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        values, jacobians = jax.jit(jax.vmap(lambda x: (fn(x), jax.jacrev(fn)(x))))(points)
    np.testing.assert_allclose(values, fn(points), rtol=1e-13, atol=1e-14)
    assert np.isfinite(jacobians).all()
    for x, jacobian in zip(points[:n_smooth], jacobians, strict=False):
        np.testing.assert_allclose(jacobian, differences(fn, x), rtol=1e-8, atol=1e-9)


def check_torch(fn: Function, points: np.ndarray, n_smooth: int) -> None:
    """The same values as NumPy, also under vmap; finite gradients; right first and second ones at the first n_smooth."""
    torch = pytest.importorskip("torch")
    expected = fn(points)
    np.testing.assert_allclose(fn(torch.tensor(points)).numpy(), expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(torch.vmap(fn)(torch.tensor(points)).numpy(), expected, rtol=1e-13, atol=1e-14)
    x = torch.tensor(points, requires_grad=True)
    fn(x).sum().backward()
    assert torch.isfinite(x.grad).all()
    smooth = torch.tensor(points[:n_smooth], requires_grad=True)
    torch.autograd.gradcheck(fn, smooth, fast_mode=True)
    torch.autograd.gradgradcheck(fn, smooth, fast_mode=True)


def check_float32(fn: Function, points: np.ndarray) -> None:
    """Single precision stays single precision and is as accurate as that allows."""
    result = fn(points.astype(np.float32))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, fn(points.astype(np.float32).astype(np.float64)), rtol=3e-5, atol=3e-6)
