"""Model-predictive control: `receding_horizon`, an optimal control problem that is improved by an iteration or two at every sample."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments import a_robot, one_of, takes, whole
from ..errors import CoadjointError, ShapeError
from ..robot.robot import Robot
from . import fddp
from .costs import Term, terms
from .optimal_control import Stage, as_stages
from .posing import actuation_matrix, check_finite, control_limits, first_path, shooting_problem, start_states
from .shooting import METHODS


class RecedingHorizon:
    """A controller that optimises over a horizon from the state as measured: u = controller.step(q, v).

    Every step shifts the last solution by one sample, puts its start at the measured state, and takes `iterations` iterations of
    Gauss and Newton's kind; their forward pass starts at that state, so that the plan is always one the robot can follow.
    """

    def __init__(self, problem: fddp.Problem, path: fddp.Path, iterations: int) -> None:
        self.problem, self.path, self.iterations = problem, path, iterations
        self.cost = np.nan
        """Of the plan."""
        self.gains = np.zeros((problem.m, problem.nx))
        """K (m, 2 nv) of the first step, for controllers that run faster than the plan."""
        self.times: list[float] = []
        """Seconds that each call of `step` took, by the wall clock."""
        self._started = False

    @property
    def worst_time(self) -> float:
        """The longest call of `step` so far, in seconds."""
        return max(self.times, default=0.0)

    @property
    def plan(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States q (N + 1, nq), v (N + 1, nv) and controls u (N, m) as planned."""
        return self.path.q[0], self.path.v[0], self.path.u[0]

    def step(self, q: Any, v: Any) -> np.ndarray:
        """The control (m,) to hold from now for one sample, at the state q (nq,), v (nv,)."""
        begin = time.perf_counter()
        problem, path = self.problem, self.path
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if q.shape != problem.q0.shape[1:] or v.shape != problem.v0.shape[1:]:
            raise ShapeError(f"q has shape {q.shape} and v {v.shape}; expected {problem.q0.shape[1:]} and {problem.v0.shape[1:]}.")
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise CoadjointError("the measured state has entries that are not finite numbers.")
        if self._started:
            for x in (path.q, path.v, path.u):
                x[:, :-1] = x[:, 1:]
        problem.q0[0], problem.v0[0] = problem.robot.normalize(q), v
        path.q[:, 0], path.v[:, 0] = problem.q0, problem.v0
        for _ in range(self.iterations):
            self._improve()
        self._started = True
        self.times.append(time.perf_counter() - begin)
        return np.array(self.path.u[0, 0])

    def _improve(self) -> None:
        problem, path = self.problem, self.path
        local = problem.local(path, costates=False)
        policy = problem.backward(path, local, local.H, local.H_end, np.zeros(1))
        new, cost = problem.forward(path, local, policy, fddp.LENGTHS[: fddp.TOGETHER])
        missed = np.abs(local.gap).sum()
        merit = cost[0] + (1.0 - fddp.LENGTHS[: fddp.TOGETHER]) * 2.0 * np.abs(policy.p).max() * missed
        if np.isfinite(merit).any():  # the first control is always one of a plan from the measured state
            best = slice(int(np.nanargmin(merit)), int(np.nanargmin(merit)) + 1)
            self.path, self.cost = new.of(best), float(cost[0, best.start])
            self.gains = policy.K[0, 0].reshape(self.gains.shape)


@takes(robot=a_robot, method=one_of(*METHODS))
def receding_horizon(
    robot: Robot,
    stages: Stage | Sequence[Stage],
    start: Any,
    terminal: Term | Sequence[Term] = (),
    *,
    start_velocity: Any = None,
    actuation: Any = None,
    effort: Any = None,
    method: str = "euler",
    guess: Any = None,
    iterations: int = 1,
) -> RecedingHorizon:
    """A controller for model-predictive control; arguments as for `optimal_control`, whose result may be the guess.

    The first step of the first stage is the sample. One iteration in every `step` follows slow changes; more of them converge further.
    """
    if whole(iterations, "iterations") < 1:
        raise CoadjointError(f"iterations is {iterations}; expected at least 1.")
    found, end = as_stages(stages), terms(terminal, "terminal")
    B = actuation_matrix(robot, actuation)
    q0, v0, batch = start_states(robot, start, start_velocity)
    if batch:
        raise ShapeError(f"start has batch axes {batch}; a receding horizon is one problem.")
    parts = [(s.steps, s.costs, s.dt) for s in found]
    box = control_limits(robot, B, effort)
    problem = shooting_problem(robot, parts, end, B, method, np.array(q0), np.array(v0), batch, box, 1)
    path = first_path(problem, guess, batch)
    check_finite(problem, path, [", ".join(x.name for x in sums) for sums in (*(s.costs for s in found), end)])
    made = RecedingHorizon(problem, path, iterations)
    made._improve()  # compile now, not in the first step
    made.path = path
    return made
