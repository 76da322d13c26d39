"""arrays.solve_spd has one contract in all executions: A⁻¹B for positive definite A, NaN in every entry for any other A."""

import ctypes
import shutil
import subprocess

import mpmath
import numpy as np
import pytest

import coadjoint as cj
from coadjoint import arrays
from coadjoint.kernel import export
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.runtime import native
from coadjoint.kernel.trace.trace import trace
from kernel_helpers import MPMATH

SIZES = (1, 2, 5, 12, 13, 18)
"""Up to 12 the factorisation is unrolled, beyond it is a block."""


def pattern(n, kind):
    """Which entries of A are not zero by construction: all, or those of two blocks that do not meet."""
    blocks = np.arange(n) < n // 2
    return np.ones((n, n)) if kind == "full" else (blocks[:, None] == blocks).astype(float)


def systems(n, kind):
    """Matrices, some positive definite, right sides, and which matrices are positive definite."""
    rng = np.random.default_rng(n)
    W = rng.normal(size=(n, n)) * pattern(n, kind)
    A = [W @ W.T + n * np.eye(n) for _ in range(7)]
    for k, place in ((1, 0), (2, n - 1), (3, n // 2)):  # a negative pivot first, last, in the middle
        A[k][place, place] = -3.0
    A[4][:, :] = 0.0
    A[5] = np.ones((n, n)) * pattern(n, kind) * (1.0 if n == 1 else -1.0)
    A[6] = A[0].copy()
    definite = np.array([np.linalg.eigvalsh(a)[0] > 1e-9 for a in A])
    return np.array(A), rng.normal(size=(7, n, 2)), definite


def check(X, A, B, definite):
    X = np.asarray(X, dtype=float)
    assert np.isnan(X[~definite]).all()
    np.testing.assert_allclose(X[definite], np.linalg.solve(A[definite], B[definite]), rtol=1e-9, atol=1e-12)


def graph_of(n, kind):
    return trace(lambda A, B: arrays.solve_spd(A * pattern(n, kind), B), {"A": (n, n), "B": (n, 2)}, "solve")


def in_numpy(n, kind, A, B):
    return arrays.solve_spd(A, B)


def in_jax(n, kind, A, B):
    jax = pytest.importorskip("jax")
    with jax.enable_x64():
        return np.asarray(arrays.solve_spd(jax.numpy.asarray(A), jax.numpy.asarray(B)))


def in_torch(n, kind, A, B):
    torch = pytest.importorskip("torch")
    return arrays.solve_spd(torch.as_tensor(A), torch.as_tensor(B)).numpy()


def by_evaluation(n, kind, A, B):
    return evaluate(graph_of(n, kind), A, B)[0]


def in_mpmath(n, kind, A, B):
    lift = np.vectorize(mpmath.mpf, otypes=[object])
    return [evaluate(graph_of(n, kind), lift(a), lift(b), operations=MPMATH)[0].astype(float) for a, b in zip(A, B, strict=True)]


def of_constants(n, kind, A, B):
    return [
        evaluate(trace(lambda x, a=a, b=b: arrays.solve_spd(a + 0 * x, b), {"x": ()}), 1.0)[0] for a, b in zip(A, B, strict=True)
    ]


def natively(n, kind, A, B):
    return native.build(simplify(graph_of(n, kind)))(A, B)


def natively_one_by_one(n, kind, A, B):
    f = native.build(simplify(graph_of(n, kind)))
    return [f(a, b) for a, b in zip(A, B, strict=True)]


@pytest.mark.native
@pytest.mark.parametrize("kind", ["full", "two blocks"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("execution", [in_numpy, in_jax, in_torch, by_evaluation, of_constants, natively, natively_one_by_one])
def test_one_contract(execution, n, kind):
    A, B, definite = systems(n, kind)
    check(execution(n, kind, A, B), A, B, definite)


@pytest.mark.parametrize("kind", ["full", "two blocks"])
@pytest.mark.parametrize("n", [n for n in SIZES if n > 12])
def test_one_contract_in_many_digits(n, kind):
    """Of large systems: in unrolled ones mpmath raises ZeroDivisionError where others have an infinity."""
    A, B, definite = systems(n, kind)
    check(in_mpmath(n, kind, A, B), A, B, definite)


@pytest.mark.parametrize("n", [2, 12, 13])
def test_exported_c(n, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    A, B, definite = systems(n, "two blocks")
    (tmp_path / "f.c").write_text(export.c(graph_of(n, "two blocks")))
    subprocess.run([compiler, "-std=c99", "-O1", "-shared", "-fPIC", "f.c", "-o", "f.so", "-lm"], check=True, cwd=tmp_path)
    function = ctypes.CDLL(str(tmp_path / "f.so")).solve
    X = np.zeros_like(B)
    for k in range(len(A)):
        function(*(ctypes.c_void_p(x.ctypes.data) for x in (A[k], B[k], X[k])))
    check(X, A, B, definite)


@pytest.mark.native
def test_a_negative_mass_has_no_acceleration():
    """Also where masses are inputs, and the robot's own cannot say what is small."""
    robot = cj.load("planar2r")
    f = cj.compile(cj.forward_dynamics, robot, parameters=["inertias"])
    states = [np.ones(2)] * 3
    assert np.isfinite(f(*states, robot.inertias)).all()
    assert np.isnan(f(*states, -np.asarray(robot.inertias))).all()
