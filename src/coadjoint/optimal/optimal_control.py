"""Optimal control with feedback: `optimal_control`, on one problem or on many at once."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arguments import a_function_of, a_robot, one_of, positive, takes, whole
from ..arrays import to_numpy
from ..errors import CoadjointError
from ..kernel.programs import runs
from ..motion.trajectory import Trajectory
from ..robot.robot import Robot
from ..words import short
from . import fddp, fddp_program
from .control_sensitivity import ControlSensitivity, Given, control_sensitivity
from .costs import Term, terms
from .posing import check_start, posed
from .shooting import EXACT, METHODS
from .workspace import Problem

LONGEST = 10**7
"""Steps of a stage, at most: what fits into memory."""
MOST_ITERATIONS = 10**6
"""Iterations at most: each has a row in the table."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A part of the horizon: `steps` steps of dt seconds, each of which costs dt times the sum of the costs (`cj.costs`).

    dt is a number, or (steps,) for steps of different lengths.
    """

    steps: int
    costs: tuple[Term, ...]
    dt: Any = 0.01

    def __init__(self, steps: int, costs: Term | Sequence[Term], dt: Any = 0.01) -> None:
        for name, x in (("steps", steps), ("costs", terms(costs, "the costs of a stage")), ("dt", dt)):
            object.__setattr__(self, name, x)
        self._check()

    def _check(self) -> None:
        if not 1 <= whole(self.steps, "steps") <= LONGEST:
            raise CoadjointError(f"a stage has {short(self.steps)} steps; expected 1 to {LONGEST:,}.")
        try:
            dt = np.asarray(to_numpy(self.dt, "dt"), dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise CoadjointError(f"dt is {self.dt!r}; expected a positive number of seconds, or ({self.steps},).") from None
        if dt.shape not in ((), (self.steps,)) or not (np.isfinite(dt).all() and (dt > 0).all()):
            raise CoadjointError(f"dt is {self.dt!r}; expected a positive number of seconds, or ({self.steps},) of them.")
        object.__setattr__(self, "dt", np.broadcast_to(dt, self.steps))


@dataclass(frozen=True, eq=False, repr=False)
class OptimalControl(Trajectory):
    """The trajectory that was found, with its controls, gains and the conditions that it meets; for many problems, batch axes in front.

    `tau` (N + 1, nv) are the joint forces B u; the last row, where no step follows, is that of the last step.
    """

    u: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """Controls (N, m), each held during a step."""
    cost: Any = np.nan
    gains: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    """K (N, m, 2 nv): near the trajectory the best control is u + K (q ⊖ q*, v - v*); 0 in rows of controls at their limits.

    With "rk4", and of robots with more than 20 freedoms, second derivatives of converged problems are differences of exact first ones,
    good to about 1e-8.
    """
    feedforward: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """k (N, m): what the next iteration would add to u; 0 to rounding where converged."""
    value_hessian: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    """(N + 1, 2 nv, 2 nv): the second derivative of the cost to go by the state, as exact as the gains."""
    costate: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """∂J/∂x (N + 1, 2 nv): the derivative of the cost by a push to the state, controls as they are."""
    multipliers: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """-∂J/∂u (N, m) of controls at their limits: positive at the upper, negative at the lower; 0 elsewhere."""
    state_multipliers: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """(N + 1, 2 nv): the same of positions and velocities at their limits."""
    converged: Any = False
    """True if ∂J/∂u, less what limits hold back, all gaps and violations of limits are below the tolerance, and the conditions of second
    order hold: the motion is a minimum."""
    message: Any = ""
    error: Any = np.nan
    """The largest violation of these conditions."""
    iterations: Any = 0
    solve_time: float = field(default=0.0, metadata={"for_all": True})
    """Seconds of the processor that the iterations took."""
    table: Sequence[dict[str, Any]] = field(default=(), metadata={"for_all": True})
    """The iterations; of many problems together, the sum of the costs and the largest errors."""
    given: Given | None = field(default=None, metadata={"for_all": True})
    """The problem that was solved."""

    def feedback(self, k: int, q: Any, v: Any) -> np.ndarray:
        """The control (m,) in step k from the state q (nq,), v (nv,): u + K (q ⊖ q*, v - v*)."""
        away = np.concatenate([self.robot.difference(self.q[..., k, :], q), np.asarray(v) - self.v[..., k, :]], axis=-1)
        return np.asarray(self.u[..., k, :] + (self.gains[..., k, :, :] @ away[..., None])[..., 0])

    def sensitivity(self, parameters: str) -> ControlSensitivity:
        """The derivatives of states, controls and cost by a set of the robot's parameters: "masses", "inertial", "lengths", "dh:tip", …

        By the implicit function theorem, as long as the same limits hold the motion: dcost = sensitivity.cost @ dp.
        """
        return control_sensitivity(self, parameters)

    def __getstate__(self) -> dict[str, Any]:
        try:
            pickle.dumps(self.given)
        except Exception:  # a user's function that cannot be pickled: the motion itself can
            return self.__dict__ | {"given": None}
        return self.__dict__

    def __str__(self) -> str:
        batch = self.u.shape[:-2]
        if batch:
            return (
                f"optimal control of {self.robot.name}: {int(np.sum(self.converged))} of {int(np.prod(batch))} problems converged"
            )
        return f"optimal control of {self.robot.name}: cost {self.cost:.9g} after {self.iterations} iterations; {self.message}"

    def __repr__(self) -> str:
        return f"<{self}>"


@runs(fddp_program.solve)
@takes(robot=a_robot, method=one_of(*METHODS), report=a_function_of("count", "error"))
def optimal_control(
    robot: Robot,
    stages: Stage | Sequence[Stage],
    start: Any,
    terminal: Term | Sequence[Term] = (),
    *,
    start_velocity: Any = None,
    actuation: Any = None,
    effort: Any = None,
    velocity: Any = None,
    position: Any = None,
    method: str = "euler",
    guess: Any = None,
    tolerance: float = 1e-8,
    iterations: int = 200,
    threads: int | None = None,
    report: Callable[[int, float], None] | None = None,
) -> OptimalControl:
    """The controls of least cost from the state `start` (..., nq), at rest or with start_velocity (..., nv), through all stages.

    The cost is the sum over all steps of dt · costs, and of the terminal costs (`cj.costs`) at the end. Joint forces are B u:
    actuation B is (nv, m), a sequence of the joints that have motors, or None for all. effort limits u: None, "robot" for the effort limits
    of the robot's joints, a number, (m,) for ±, or a pair (lower, upper). velocity and position limit the states after the start in
    the same ways, by an augmented Lagrangian, to the tolerance. method: "euler" (semi-implicit) or "rk4", as for `rollout`.

    guess: controls (..., N, m), a triple q (..., N + 1, nq), v, u whose states need not fit the controls, or an earlier result; by default
    the robot stays at its start under the forces that hold it. Batch axes are many problems, solved together. tolerance: of ∂J/∂u and
    the gaps; where these vanish at a motion that is no minimum, it is left in a direction in which the cost falls. report(count, error)
    is called after every iteration; of many problems, with the number of those done. Ctrl-C returns the best so far.
    """
    tolerance = float(positive(tolerance, "tolerance"))
    if not 1 <= whole(iterations, "iterations") <= MOST_ITERATIONS:
        raise CoadjointError(f"iterations is {short(iterations)}; expected 1 to {MOST_ITERATIONS:,}.")
    stages = as_stages(stages)
    problem, path, batch = posed(
        robot,
        stages,
        terms(terminal, "terminal"),
        start,
        start_velocity,
        actuation=actuation,
        effort=effort,
        position=position,
        velocity=velocity,
        method=method,
        guess=guess,
        threads=threads,
    )
    check_start(problem)
    exact = method == "euler" and robot.nv <= EXACT  # Runge and Kutta's steps are used without their second derivatives
    found = fddp.solve(problem, path, tolerance=tolerance, iterations=iterations, exact=exact, report=report)
    time = np.concatenate([[0.0], np.cumsum(np.concatenate([s.dt for s in stages]))])
    return _result(robot, time, batch, problem, found, (stages, terms(terminal, "terminal")))


def as_stages(stages: Any) -> list[Stage]:
    """The stages as a list, at least one."""
    found = [stages] if isinstance(stages, Stage) else list(stages) if isinstance(stages, Sequence) else [stages]
    for stage in found:
        if not isinstance(stage, Stage):
            raise CoadjointError(f"stages has {type(stage).__name__} in it; expected cj.Stage(steps, costs, dt).")
    if not found:
        raise CoadjointError("stages is empty; expected at least one cj.Stage(steps, costs, dt).")
    return found


def _result(
    robot: Robot,
    time: np.ndarray,
    batch: tuple[int, ...],
    problem: Problem,
    found: fddp.Outcome,
    given: tuple[Sequence[Stage], tuple[Term, ...]],
) -> OptimalControl:
    path, steps = found.path, problem.spans[0].steps

    def shaped(x: np.ndarray) -> np.ndarray:
        return x.reshape(*batch, *x.shape[1:])

    def one(x: Any, kind: Callable[[Any], Any]) -> Any:
        return kind(x[0]) if not batch else np.asarray(x).reshape(batch)

    tau = path.u @ steps.B.T
    stages = tuple((stage.steps, stage.costs, span.numbers) for stage, span in zip(given[0], problem.spans, strict=True))
    held = np.zeros_like(path.u)
    if problem.low is not None and problem.high is not None:
        at = (path.u <= problem.low) | (path.u >= problem.high)
        held = np.where(at, -found.slope, 0.0)
    return OptimalControl(
        robot,
        time,
        shaped(path.q),
        shaped(path.v),
        shaped(np.concatenate([tau, tau[:, -1:]], axis=1)),
        u=shaped(path.u),
        cost=one(found.cost, float),
        gains=shaped(found.K),
        feedforward=shaped(found.k),
        value_hessian=shaped(found.V),
        costate=shaped(found.costate),
        multipliers=shaped(held),
        state_multipliers=shaped(found.multiplier),
        converged=one(found.converged, bool),
        message=one(np.array(found.message, dtype=object), str),
        error=one(found.error, float),
        iterations=one(found.iterations, int),
        solve_time=found.time,
        table=found.table,
        given=Given(stages, given[1], problem.final_numbers, steps.B, steps.method),
    )
