"""Rows in the metric: three solvers, one answer; units do not matter; dependent rows share their load or are known."""

from __future__ import annotations

import numpy as np
import pytest

from coadjoint.constraints import metric_rows
from coadjoint.constraints.metric_rows import MetricRows, RegularizedRows, gram_lengths, least_squares, row_lengths


def problem(rng: np.random.Generator, m: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of very different lengths, a metric M and its Cholesky factor."""
    A = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-3, 3, (m, 1))
    L = np.tril(rng.normal(size=(n, n))) + 2.0 * np.eye(n)
    return A, L @ L.T, L


def solvers(A: np.ndarray, M: np.ndarray, L: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """M⁻¹ Aᵀ λ with A M⁻¹ Aᵀ λ = b, by each."""
    W = np.linalg.inv(M)
    G = A @ W @ A.T
    d = metric_rows.decompose(A, L, np.zeros(len(A), dtype=bool))
    rows = RegularizedRows(A, W, row_lengths(np.diag(G)))
    x = np.zeros(len(M))
    for _ in range(rows.turns):
        x = x + W @ rows.impulse(A @ x - b)
    return {
        "exact": W @ (A.T @ MetricRows(A, W @ A.T).solve(b[:, None])[:, 0]),
        "regularised": x,
        "singular values": W @ (A.T @ d.multipliers(b)[0]),
        "change": d.change(b),
        "pseudo-inverse": d.pseudo_inverse() @ b,
        "least squares": W @ (A.T @ least_squares(G, b)),
    }


@pytest.mark.parametrize("seed", range(5))
def test_all_solvers_give_the_shortest_motion_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    A, M, L = problem(rng, 3, 6)
    b = A @ rng.normal(size=6)
    # Lagrange's equations of min ½ xᵀ M x, A x = b, by another road: rows scaled by powers of two, one dense solve.
    scale = np.exp2(np.round(np.log2(np.abs(A).max(1))))
    B = A / scale[:, None]
    expected = np.linalg.solve(np.block([[M, B.T], [B, np.zeros((3, 3))]]), np.concatenate([np.zeros(6), b / scale]))[:6]
    for name, x in solvers(A, M, L, b).items():
        np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max(), err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_dependent_rows_share_their_load_and_the_exact_solver_says_so(seed):
    rng = np.random.default_rng(seed)
    A, M, L = problem(rng, 3, 6)
    A = np.concatenate([A, 7.0 * A[:1] + A[1:2]])
    x0 = rng.normal(size=6)
    found = solvers(A, M, L, A @ x0)
    assert np.isnan(found.pop("exact")).all()
    independent = solvers(A[:3], M, L, A[:3] @ x0)["change"]
    for name, x in found.items():
        np.testing.assert_allclose(x, independent, rtol=1e-6, atol=1e-6 * np.abs(independent).max(), err_msg=name)
    d = metric_rows.decompose(A, L, np.zeros(4, dtype=bool))
    assert d.rank == 3
    assert np.abs(d.multipliers(A @ x0)[1]).max() < 1e-9 * np.abs(A @ x0 / d.length).max()
    wrong = A @ x0 + np.array([0.0, 0.0, 0.0, d.length[3]])
    assert np.abs(d.multipliers(wrong)[1]).max() > 0.1


def test_units_of_rows_do_not_matter():
    rng = np.random.default_rng(1)
    A, M, L = problem(rng, 3, 5)
    b = rng.normal(size=3)
    unit = np.array([1e-6, 1.0, 1e5])
    for (name, x), y in zip(solvers(A, M, L, b).items(), solvers(unit[:, None] * A, M, L, unit * b).values(), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-8, atol=1e-9 * np.abs(x).max(), err_msg=name)


def test_rows_that_are_rounding_stay_as_they_are():
    G = np.diag([4.0, 1e-30, 0.0])
    np.testing.assert_array_equal(gram_lengths(G), [2.0, 1.0, 1.0])
    np.testing.assert_array_equal(row_lengths(np.array([4.0, 9.0, -1.0]), np.array([True, False, True])), [2.0, 1.0, 1.0])


def test_the_mobility_along_rows_at_rest_is_the_projected_one():
    rng = np.random.default_rng(2)
    A, M, _ = problem(rng, 2, 5)
    W = np.linalg.inv(M)
    rows = RegularizedRows(A, W, row_lengths(np.diag(A @ W @ A.T)))
    found = rows.mobility()
    np.testing.assert_allclose(found, W - W @ A.T @ np.linalg.solve(A @ W @ A.T, A @ W), atol=1e-12)
    p = rng.normal(size=5)
    np.testing.assert_allclose(W @ rows.tangent(p), found @ p, atol=1e-11)


def test_damping_makes_steps_shorter():
    A, _, L = problem(np.random.default_rng(3), 2, 4)
    d = metric_rows.decompose(A, L, np.zeros(2, dtype=bool))
    b = A @ np.ones(4)
    length = [np.linalg.norm(L.T @ d.change(b, damping)) for damping in (0.0, 1e-3, 1.0)]
    assert length[0] > length[1] > length[2] > 0
