"""Programs on small dense matrices in rows of whole vectors: products, Cholesky's factor, substitution."""

from __future__ import annotations

from ..kernel.programs import Floats, load, splat, sqrt, store, total


def add_product(
    w: Floats, a: int, lda: int, b: int, ldb: int, c: int, ldc: int, rows: int, inner: int, blocks: int, sign: float
) -> None:
    """C += sign Aᵀ B for A (inner, rows), B (inner, 8 blocks), C (rows, 8 blocks), rows up to a multiple of four."""
    for i in range(0, rows, 4):
        j = 0
        while j + 1 < blocks:
            at = c + i * ldc + 8 * j
            c00 = load(w, at)
            c01 = load(w, at + 8)
            c10 = load(w, at + ldc)
            c11 = load(w, at + ldc + 8)
            c20 = load(w, at + 2 * ldc)
            c21 = load(w, at + 2 * ldc + 8)
            c30 = load(w, at + 3 * ldc)
            c31 = load(w, at + 3 * ldc + 8)
            for k in range(inner):
                left = a + k * lda + i
                right = b + k * ldb + 8 * j
                x = load(w, right)
                y = load(w, right + 8)
                f0 = splat(sign * w[left])
                f1 = splat(sign * w[left + 1])
                f2 = splat(sign * w[left + 2])
                f3 = splat(sign * w[left + 3])
                c00 += f0 * x
                c01 += f0 * y
                c10 += f1 * x
                c11 += f1 * y
                c20 += f2 * x
                c21 += f2 * y
                c30 += f3 * x
                c31 += f3 * y
            store(w, at, c00)
            store(w, at + 8, c01)
            store(w, at + ldc, c10)
            store(w, at + ldc + 8, c11)
            store(w, at + 2 * ldc, c20)
            store(w, at + 2 * ldc + 8, c21)
            store(w, at + 3 * ldc, c30)
            store(w, at + 3 * ldc + 8, c31)
            j += 2
        if j < blocks:
            at = c + i * ldc + 8 * j
            c00 = load(w, at)
            c10 = load(w, at + ldc)
            c20 = load(w, at + 2 * ldc)
            c30 = load(w, at + 3 * ldc)
            for k in range(inner):
                left = a + k * lda + i
                x = load(w, b + k * ldb + 8 * j)
                c00 += splat(sign * w[left]) * x
                c10 += splat(sign * w[left + 1]) * x
                c20 += splat(sign * w[left + 2]) * x
                c30 += splat(sign * w[left + 3]) * x
            store(w, at, c00)
            store(w, at + ldc, c10)
            store(w, at + 2 * ldc, c20)
            store(w, at + 3 * ldc, c30)


def add_combination(w: Floats, x: int, b: int, ldb: int, y: int, inner: int, blocks: int, sign: float) -> None:
    """y += sign Bᵀ x for x (inner,), B (inner, 8 blocks), y (8 blocks,)."""
    for j in range(blocks):
        even = load(w, y + 8 * j)
        odd = splat(0.0)
        for k in range(0, inner - 1, 2):
            even += splat(sign * w[x + k]) * load(w, b + k * ldb + 8 * j)
            odd += splat(sign * w[x + k + 1]) * load(w, b + (k + 1) * ldb + 8 * j)
        if inner % 2 == 1:
            even += splat(sign * w[x + inner - 1]) * load(w, b + (inner - 1) * ldb + 8 * j)
        store(w, y + 8 * j, even + odd)


def row_product(w: Floats, x: int, y: int, blocks: int) -> float:
    """xᵀ y of rows whose ends are filled with zeros."""
    added = load(w, x) * load(w, y)
    for j in range(1, blocks):
        added += load(w, x + 8 * j) * load(w, y + 8 * j)
    return total(added)


def copy(w: Floats, source: int, target: int, blocks: int) -> None:
    for j in range(blocks):
        store(w, target + 8 * j, load(w, source + 8 * j))


def clear(w: Floats, target: int, blocks: int) -> None:
    for j in range(blocks):
        store(w, target + 8 * j, splat(0.0))


def factorise(w: Floats, a: int, lda: int, m: int, shift: float, factor: int, pivot: int) -> float:
    """Cholesky's factor L (m, m) of A + shift 1, and 1/Lᵢᵢ; the least pivot, at which it stops if that is not positive."""
    least = 1e300
    for j in range(m):
        row = factor + j * m
        d = w[a + j * lda + j] + shift
        for k in range(j):
            d -= w[row + k] * w[row + k]
        if not d > 0.0:
            return d if d <= 0.0 else -1.0
        least = min(least, d)
        one = 1.0 / sqrt(d)
        w[pivot + j] = one
        for i in range(j + 1, m):
            x = w[a + i * lda + j]
            for k in range(j):
                x -= w[factor + i * m + k] * w[row + k]
            w[factor + i * m + j] = x * one
    return least


def substitute_forward(w: Floats, factor: int, pivot: int, m: int, b: int, ldb: int, y: int, ldy: int, blocks: int) -> None:
    """Y = L⁻¹ B for B and Y (m, 8 blocks)."""
    for j in range(blocks):
        for i in range(m):
            x = load(w, b + i * ldb + 8 * j)
            for k in range(i):
                x -= splat(w[factor + i * m + k]) * load(w, y + k * ldy + 8 * j)
            store(w, y + i * ldy + 8 * j, x * splat(w[pivot + i]))


def substitute_backward(w: Floats, factor: int, pivot: int, m: int, y: int, ldy: int, x: int, ldx: int, blocks: int) -> None:
    """X = -L⁻ᵀ Y for Y and X (m, 8 blocks)."""
    for j in range(blocks):
        for i in range(m - 1, -1, -1):
            z = -load(w, y + i * ldy + 8 * j)
            for k in range(i + 1, m):
                z -= splat(w[factor + k * m + i]) * load(w, x + k * ldx + 8 * j)
            store(w, x + i * ldx + 8 * j, z * splat(w[pivot + i]))


def solve_factored(w: Floats, factor: int, pivot: int, m: int, x: int) -> None:
    """x ← (L Lᵀ)⁻¹ x for x (m,)."""
    for i in range(m):
        y = w[x + i]
        for k in range(i):
            y -= w[factor + i * m + k] * w[x + k]
        w[x + i] = y * w[pivot + i]
    for i in range(m - 1, -1, -1):
        y = w[x + i]
        for k in range(i + 1, m):
            y -= w[factor + k * m + i] * w[x + k]
        w[x + i] = y * w[pivot + i]


def mirror_rows(w: Floats, a: int, lda: int, n: int) -> None:
    """A ← ½ (A + Aᵀ)."""
    for i in range(n):
        for j in range(i):
            mean = 0.5 * (w[a + i * lda + j] + w[a + j * lda + i])
            w[a + i * lda + j] = mean
            w[a + j * lda + i] = mean
