"""Exact Newton steps beside quasi-Newton ones: `python -m benchmarks.newton_or_bfgs`.

Least effort, without limits, as in the comparisons of Lee, Kim, Park & Bobrow (2005): the exact Hessian, BFGS with the exact gradient,
and BFGS with a gradient by finite differences, on the same splines from the same motion. The PUMA 560 between two configurations; and
a four-bar linkage with one motor, a closed chain, whose constraints SciPy's SLSQP (BFGS with equations) has to meet as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

import coadjoint as cj
from coadjoint.optimal.motion_result import OptimalMotion
from coadjoint.optimal.transcription import Transcription

ONE = np.zeros(1, dtype=int)


def compare(name: str, newton: Callable[[], OptimalMotion]) -> None:
    """Print a table of one problem."""
    problem = newton().conditions.problem
    x = problem.join(problem.fixed, problem.durations)[0]
    begin = time.process_time()
    motion = newton()
    seconds = time.process_time() - begin
    equations = problem.at(x[None], ONE).e.shape[1]
    print(f"\n{name}: {problem.variables} variables, {equations} equations")
    print("| | iterations | evaluations | processor time | cost | largest equation |\n|---|---|---|---|---|---|")
    _row("exact Hessian", len(motion.table), "", seconds, problem, motion.conditions.x[0])
    for kind, gradients in (("exact gradient", True), ("finite differences", False)):
        begin = time.process_time()
        found = minimize(_cost(problem), x, jac=_gradient(problem) if gradients else None, **_method(problem, equations, gradients))
        _row(f"BFGS, {kind}", found.nit, found.nfev, time.process_time() - begin, problem, found.x)


def _row(name: str, iterations: int, evaluations: Any, seconds: float, problem: Transcription, x: np.ndarray) -> None:
    here = problem.at(x[None], ONE)
    gap = np.abs(here.e).max(initial=0.0)
    print(f"| {name} | {iterations} | {evaluations} | {seconds:.3f} s | {here.f[0]:.9g} | {gap:.1e} |", flush=True)


def _method(problem: Transcription, equations: int, gradients: bool) -> dict[str, Any]:
    if not equations:
        return {"method": "BFGS", "options": {"gtol": 1e-6, "maxiter": 5000}}
    equal: dict[str, Any] = {"type": "eq", "fun": lambda x: problem.values(x[None], ONE)[2][0]}
    if gradients:
        equal["jac"] = lambda x: problem.at(x[None], ONE).equality_jacobian[0]
    return {"method": "SLSQP", "constraints": [equal], "options": {"ftol": 1e-10, "maxiter": 5000}}


def _cost(problem: Transcription) -> Callable[[np.ndarray], float]:
    return lambda x: float(problem.values(x[None], ONE)[0][0])


def _gradient(problem: Transcription) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: problem.at(x[None], ONE).gradient[0]


def main() -> None:
    puma = cj.load("puma560")
    start, goal = [0.0, -0.6, 0.4, 0.0, 0.5, 0.0], [1.2, -0.1, -0.5, 0.6, -0.4, 0.8]
    for spans in (4, 8):
        compare(f"puma560, {spans} spans", lambda n=spans: cj.optimal_motion(puma, start, goal, 1.0, limits=False, spans=n))  # type: ignore[misc]
    arm = cj.load("planar3r").with_gravity((0, -9.81, 0))
    held = cj.Constraint.point(arm, "tip", axes="xy", at=(1.2, 0.8))
    first, last = (cj.constraints.assemble(arm, held, [x, 0.8, 0.9], fixed="joint1") for x in (-0.2, 0.5))
    options: dict[str, Any] = {"constraints": held, "motors": "joint1", "spans": 32}
    compare("four-bar linkage, 32 spans", lambda: cj.optimal_motion(arm, first, last, 1.0, **options))


if __name__ == "__main__":
    main()
