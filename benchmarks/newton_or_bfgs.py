"""Exact Newton steps beside BFGS: `python -m benchmarks.newton_or_bfgs`.

Least effort of the PUMA 560 between two configurations, without limits, as in the comparisons of Lee, Kim, Park & Bobrow (2005): the
exact Hessian, BFGS with the exact gradient, and BFGS with a gradient by finite differences, on the same splines from the same motion.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

import coadjoint as cj
from coadjoint.optimal.motion_result import OptimalMotion
from coadjoint.optimal.transcription import Transcription

START, GOAL, DURATION = [0.0, -0.6, 0.4, 0.0, 0.5, 0.0], [1.2, -0.1, -0.5, 0.6, -0.4, 0.8], 1.0
ONE = np.zeros(1, dtype=int)


def compare(robot: cj.Robot, spans: int) -> None:
    """Print a table of one robot."""

    def newton() -> OptimalMotion:
        return cj.optimal_motion(robot, START, GOAL, DURATION, "effort", limits=False, spans=spans)

    problem = newton().conditions.problem
    x = problem.join(problem.fixed, problem.durations)[0]
    begin = time.process_time()
    motion = newton()
    seconds = time.process_time() - begin
    at = problem.at(motion.conditions.x, ONE)
    print(
        f"\n{robot.name}, {problem.variables} variables\n| | iterations | evaluations | processor time | cost | largest gradient |"
    )
    print("|---|---|---|---|---|---|")
    print(f"| exact Hessian | {len(motion.table)} | | {seconds:.3f} s | {motion.cost:.9g} | {np.abs(at.gradient).max():.1e} |")
    for name, gradient in (("BFGS, exact gradient", _gradient(problem)), ("BFGS, finite differences", None)):
        begin = time.process_time()
        found = minimize(_cost(problem), x, jac=gradient, method="BFGS", options={"gtol": 1e-6, "maxiter": 5000})
        seconds = time.process_time() - begin
        largest = np.abs(problem.at(found.x[None], ONE).gradient).max()
        print(f"| {name} | {found.nit} | {found.nfev} | {seconds:.3f} s | {found.fun:.9g} | {largest:.1e} |", flush=True)


def _cost(problem: Transcription) -> Callable[[np.ndarray], float]:
    return lambda x: float(problem.values(x[None], ONE)[0][0])


def _gradient(problem: Transcription) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: problem.at(x[None], ONE).gradient[0]


if __name__ == "__main__":
    for spans in (4, 8):
        compare(cj.load("puma560"), spans)
