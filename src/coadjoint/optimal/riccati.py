"""The backward pass of differential dynamic programming: one step of it, as array code that also runs as a native loop over time.

Near a trajectory the step is x' = T G z, with z = (x, u) deviations in tangent vectors, T (nx, nx) and G (nx, nz) mostly constants, and the
cost ½ zᵀ H z + gᵀ z. From the value ½ x'ᵀ V x' + pᵀ x' of the next state, with `gap` what the step misses of it,

    Q = H + Gᵀ Tᵀ V T G,    r = g + Gᵀ Tᵀ (p + V gap),    u = k + K x,    K = -Quu⁻¹ Qux,   k = -Quu⁻¹ ru

and V = Qxx + Qxu K, p = rx + Qxu k. Under limits on the controls k minimises the same quadratic between them, by projected Newton
steps (Bertsekas, 1982; Tassa, Mansard & Todorov, 2014) after sweeps over the controls, and controls at a limit have no feedback.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, mirror, mv, namespace, stack, transpose, where

NEWTON = 4
"""Projected Newton steps for the limits. They start from the controls as they are: near a solution one is enough."""


def backward_step(
    V: Array, p: Array, T: Array, G: Array, H: Array, g: Array, gap: Array, shift: Array, low: Array | None, high: Array | None
) -> tuple[Array, ...]:
    """V, p of the state before, K (m, nx), k (m,), and (3,): the least pivot of Quu, kᵀ ru, kᵀ Quu k.

    shift (1,) is added to the diagonal of Quu; low and high (m,) limit k, or are None.
    """
    nx = V.shape[-1]
    W = mirror(transpose(T) @ V @ T)
    Q = mirror(H + transpose(G) @ (W @ G))
    r = g + mv(transpose(G), mv(transpose(T), p + mv(V, gap)))
    m = Q.shape[-1] - nx
    Quu, Qux, ru = Q[..., nx:, nx:] + shift[..., None] * np.eye(m), Q[..., nx:, :nx], r[..., nx:]
    if low is None or high is None:
        found, least = _solved(Quu, [*(Qux[..., j] for j in range(nx)), ru])
        K, k = -stack(found[:-1]), -found[-1]
        p = r[..., :nx] + mv(transpose(K), ru)
    else:
        k, free, least = _box(Quu, ru, low, high)
        found, _ = _solved(_masked(Quu, free), [free * Qux[..., j] for j in range(nx)])
        K = -stack(found) * free[..., None]
        p = r[..., :nx] + mv(transpose(Qux), k) + mv(transpose(K), ru + mv(Quu, k))
    V = mirror(Q[..., :nx, :nx] + transpose(Qux) @ K)
    return V, p, K, k, stack([least, (k * ru).sum(-1), (k * mv(Quu, k)).sum(-1)])


def _solved(A: Array, columns: list[Array]) -> tuple[list[Array], Array]:
    """A⁻¹ of every column (m,) and the least pivot of A; pivots that are not positive count as 1: they are to be found out by it."""
    if namespace(A) is np:
        return _solved_by_lapack(A, columns)
    m = A.shape[-1]
    L: dict[tuple[int, int], Array] = {}
    LD: dict[tuple[int, int], Array] = {}
    pivots: list[Array] = []
    for j in range(m):  # A = L D Lᵀ
        d = A[..., j, j]
        for k in range(j):
            d = d - LD[j, k] * L[j, k]
        pivots.append(d)
        one = 1.0 / where(d > 0.0, d, 1.0 + 0.0 * d)
        for i in range(j + 1, m):
            x = A[..., i, j]
            for k in range(j):
                x = x - LD[i, k] * L[j, k]
            LD[i, j], L[i, j] = x, x * one
        L[j, j] = one
    least = pivots[0]
    for d in pivots[1:]:
        least = where(d < least, d, least)
    return [_substituted(L, b, m) for b in columns], least


def _substituted(L: dict[tuple[int, int], Array], b: Array, m: int) -> Array:
    """(L D Lᵀ)⁻¹ b; the diagonal of L holds 1/D."""
    y: list[Array] = []
    for i in range(m):
        x = b[..., i]
        for k in range(i):
            x = x - L[i, k] * y[k]
        y.append(x)
    z: list[Array] = [None] * m
    for i in reversed(range(m)):
        x = y[i] * L[i, i]
        for k in range(i + 1, m):
            x = x - L[k, i] * z[k]
        z[i] = x
    return stack(z)


def _solved_by_lapack(A: np.ndarray, columns: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """The same for large matrices; the least eigenvalue stands for the least pivot."""
    least = np.linalg.eigvalsh(A)[..., 0]
    safe = np.where((least > 0.0)[..., None, None], A, np.eye(A.shape[-1]))
    found = np.linalg.solve(safe, np.stack(np.broadcast_arrays(*columns), axis=-1))
    return [found[..., j] for j in range(len(columns))], least


def _masked(A: Array, free: Array) -> Array:
    """A where both row and column are free (1), the identity elsewhere."""
    return A * free[..., None] * free[..., None, :] + (1.0 - free)[..., None] * np.eye(A.shape[-1])


def _box(A: Array, r: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """x that makes ½ xᵀAx + rᵀx least between low ≤ 0 and high ≥ 0, which of its entries are free (1 or 0), and the least pivot."""

    def clipped(x: Array) -> Array:
        x = where(x < low, low, x)
        return where(x > high, high, x)

    def free_at(x: Array, slope: Array) -> Array:
        one = 1.0 + 0.0 * slope
        inner = where(x > low, one, where(slope > 0.0, 0.0 * one, one))
        return inner * where(x < high, one, where(slope < 0.0, 0.0 * one, one))

    def height(x: Array) -> Array:
        return ((0.5 * mv(A, x) + r) * x).sum(-1)

    def swept(x: Array) -> Array:
        """Every entry at its best, one after the other, which shows what is held."""
        entries = [x[..., i] for i in range(x.shape[-1])]
        for i in range(len(entries)):
            slope = r[..., i]
            for j, y in enumerate(entries):
                slope = slope + A[..., i, j] * y
            d = A[..., i, i]
            best = entries[i] - slope / where(d > 0.0, d, 1.0 + 0.0 * d)
            best = where(best < low[..., i], low[..., i], best)
            entries[i] = where(best > high[..., i], high[..., i], best)
        return stack(entries)

    x = 0.0 * r
    for _ in range(NEWTON):
        x = swept(x)
        slope = r + mv(A, x)
        free = free_at(x, slope)
        (step,), least = _solved(_masked(A, free), [-free * slope])
        best, least_height = x, height(x)
        for length in (0.3, 1.0):
            there = clipped(x + length * step)
            over = height(there)
            best = where((over < least_height)[..., None], there, best)
            least_height = where(over < least_height, over, least_height)
        x = best
    free = free_at(x, r + mv(A, x))
    return x, free, least


def adjoint_step(p: Array, T: Array, G: Array, g: Array) -> tuple[Array, Array]:
    """∂J/∂x (nx,) and ∂J/∂u (m,) from ∂J/∂x' = p: rows of g + Gᵀ Tᵀ p."""
    nx = p.shape[-1]
    r = g + mv(transpose(G), mv(transpose(T), p))
    return r[..., :nx], r[..., nx:]
