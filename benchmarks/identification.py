"""Identification: `python -m benchmarks.identification [FOLDER]`. FOLDER has recorded logs; without it only simulated data are fitted.

Times are processor times, the least of some rounds. Clarabel is compared where it is installed (pip install clarabel cvxpy).
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

import coadjoint as cj
from coadjoint.identification.consistency import ConsistentFit
from coadjoint.lie import inertia


def least(fn, rounds: int = 5):
    """The least processor time of some calls, and the last result."""
    best, result = np.inf, None
    for _ in range(rounds):
        start = time.process_time()
        result = fn()
        best = min(best, time.process_time() - start)
    return best, result


def normal_equations(robot, seed: int = 0, noise: float = 0.5):
    """A and b of a short noisy motion whose unconstrained optimum is not possible."""
    rng = np.random.default_rng(seed)
    q, v, a = robot.random(rng, (300,)), rng.normal(size=(300, robot.nv)), rng.normal(size=(300, robot.nv))
    Y = np.asarray(cj.regressor(robot, q, v, a)).reshape(-1, 10 * robot.n_links)
    y = Y @ robot.inertial_parameters + noise * rng.normal(size=len(Y))
    return Y.T @ Y + 1e-6 * np.eye(Y.shape[1]), Y.T @ y


def clarabel_optimum(A: np.ndarray, b: np.ndarray, links: int):
    """The least ½ xᵀAx - bᵀx under Σ ⪰ 0 of every link, or None without Clarabel."""
    try:
        import clarabel
        from scipy import sparse
    except ImportError:
        return None
    basis = np.asarray(inertia.pseudo(np.eye(10)))
    rows = []
    for j in range(4):
        rows += [(1.0 if i == j else np.sqrt(2.0)) * basis[:, i, j] for i in range(j + 1)]
    G = -np.kron(np.eye(links), np.array(rows))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.PSDTriangleConeT(4)] * links
    solver = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(A)), -b, sparse.csc_matrix(G), np.zeros(len(G)), cones, settings)
    return least(lambda: solver.solve(), 1)


def cvxpy_optimum(A: np.ndarray, b: np.ndarray, links: int):
    """The same program through cvxpy, as Python users state it, or None without cvxpy."""
    try:
        import cvxpy
    except ImportError:
        return None
    basis = np.asarray(inertia.pseudo(np.eye(10)))
    root = np.linalg.cholesky(A)

    def solve():
        x = cvxpy.Variable(len(b))
        bodies = [sum(x[10 * k + i] * basis[i] for i in range(10)) >> 0 for k in range(links)]
        problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(root.T @ x) - b @ x), bodies)
        problem.solve(solver="CLARABEL")
        return problem.value

    return least(solve, 3)


def consistent_fit(bootstraps: int = 1000) -> None:
    """Time and optimum beside Clarabel's, alone and through cvxpy, on the same matrices in turn; then noisy fits."""
    robot = cj.load("panda")
    n = 10 * robot.n_links
    start = np.array(robot.inertial_parameters)
    table = []
    for seed in range(10):
        A, b = normal_equations(robot, seed, noise=(0.5, 2.0)[seed % 2])
        seconds, x = least(lambda A=A, b=b: ConsistentFit(A, b, np.eye(n), robot.inertias).constrained(start))
        value = 0.5 * x @ A @ x - b @ x
        peers = [clarabel_optimum(A, b, robot.n_links), cvxpy_optimum(A, b, robot.n_links)]
        values = [None if p is None else (p[1].obj_val if hasattr(p[1], "obj_val") else p[1]) for p in peers]
        table.append((seconds, [p and p[0] for p in peers], [None if v is None else abs(value - v) / abs(v) for v in values]))
    print(f"consistent fit, 7 links, ten problems: {1e3 * np.median([x[0] for x in table]):.1f} ms")
    for k, name in enumerate(("Clarabel", "Clarabel through cvxpy")):
        if table[0][1][k] is not None:
            times, off = [x[1][k] for x in table], [x[2][k] for x in table]
            print(f"  {name}: {1e3 * np.median(times):.1f} ms, relative difference of the optima at most {max(off):.1g}")
    possible = 0
    for seed in range(bootstraps):
        A, b = normal_equations(robot, seed, noise=2.0)
        x = ConsistentFit(A, b, np.eye(n), robot.inertias).constrained(start)
        possible += np.linalg.eigvalsh(np.asarray(inertia.pseudo(x.reshape(-1, 10)))).min() > 0
    print(f"  possible bodies in {possible} of {bootstraps} noisy fits")


def logs(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, robot in (("panda_log", cj.load("panda")), ("lwr4_log", cj.load(folder / "lwr4_log" / "lwr4.urdf"))):
            log = cj.read_log(folder / name / "excitation.csv", robot)
            seconds, fit = least(lambda log=log, robot=robot: cj.identify(robot, log), 3)
            print(
                f"{name}: {seconds:.2f} s of processor time, relative error {100 * fit.relative_error:.2f} %, rms {np.round(fit.rms, 3)}"
            )


if __name__ == "__main__":
    consistent_fit()
    if len(sys.argv) > 1:
        logs(Path(sys.argv[1]))
