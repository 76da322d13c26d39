"""Large positive definite systems whose zeros are known when code is made."""

import numpy as np
import pytest

from coadjoint.arrays import solve_spd
from coadjoint.kernel.emit.sparse_solve import Sparse
from coadjoint.kernel.runtime import native
from coadjoint.kernel.schedule.dense_layout import Full, layout
from coadjoint.kernel.trace.trace import trace

pytestmark = pytest.mark.native


def tree(rng, n, branching=0.3):
    """The pattern of the mass matrix of a tree whose children come after their parents."""
    pattern = np.eye(n, dtype=bool)
    for i in range(1, n):
        parent = int(rng.integers(-1, i)) if rng.random() < branching else i - 1
        if parent >= 0:
            above = np.flatnonzero(pattern[parent, : parent + 1])
            pattern[i, above] = pattern[above, i] = True
    return pattern


def systems(rng, pattern, right, count=9):
    n = len(pattern)
    A = rng.normal(size=(count, n, n))
    return (A + A.swapaxes(1, 2)) * pattern + 3 * n * np.eye(n), rng.normal(size=(count, *right.shape)) * right


def solver(pattern, right):
    """The graph that solves systems of these patterns."""
    n, m = right.shape
    fn = lambda A, B: solve_spd(A * pattern.astype(float), B * right.astype(float))
    return trace(fn, {"A": (n, n), "B": (n, m)})


@pytest.mark.parametrize(("n", "m"), [(13, 1), (14, 2), (21, 7), (30, 33)])
def test_trees(n, m):
    rng = np.random.default_rng(n)
    pattern, right = tree(rng, n), rng.random((n, m)) < 0.3
    graph = solver(pattern, right)
    block = graph.op.index("block")
    assert isinstance(layout(graph, block), Sparse if pattern.mean() < 0.6 else Full)
    A, B = systems(rng, pattern, right)
    X = native.build(graph).call(A, B)
    expected = np.linalg.solve(A, B)
    assert np.abs(X - expected).max() < 1e-14 * max(1.0, np.abs(expected).max())


def test_patterns_that_fill_up():
    """An arrow that points the wrong way is full after one step; other patterns fill in part."""
    rng = np.random.default_rng(0)
    n = 16
    arrow = np.eye(n, dtype=bool)
    arrow[-1] = arrow[:, -1] = True
    graph = solver(arrow, np.ones((n, 2), dtype=bool))
    assert isinstance(layout(graph, graph.op.index("block")), Full)
    band = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2
    band[9, 1] = band[1, 9] = True
    for pattern in (arrow, band):
        right = rng.random((n, 5)) < 0.5
        A, B = systems(rng, pattern, right)
        X = native.build(solver(pattern, right)).call(A, B)
        assert np.abs(X - np.linalg.solve(A, B)).max() < 1e-14


def test_not_positive_definite_is_nan():
    rng = np.random.default_rng(1)
    pattern, right = tree(rng, 15), np.ones((15, 3), dtype=bool)
    A, B = systems(rng, pattern, right)
    A[4] -= 1000 * np.eye(15)
    X = native.build(solver(pattern, right)).call(A, B)
    assert np.isnan(X[4]).all()
    assert np.isfinite(X[[0, 1, 2, 3, 5, 6, 7, 8]]).all()


def test_a_matrix_of_zeros_off_the_diagonal():
    rng = np.random.default_rng(2)
    pattern, right = np.eye(14, dtype=bool), np.eye(14, dtype=bool)
    A, B = systems(rng, pattern, right)
    X = native.build(solver(pattern, right)).call(A, B)
    assert np.abs(X - np.linalg.solve(A, B)).max() < 1e-14
