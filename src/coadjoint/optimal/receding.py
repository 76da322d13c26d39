"""Model-predictive control: `receding_horizon`, an optimal control problem that is improved by an iteration or two at every sample."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import a_robot, count_up_to, one_of, takes
from ..arrays import unmasked
from ..errors import CoadjointError, ShapeError
from ..kernel.programs import runs
from ..robot.robot import Robot
from . import layout
from .costs import Term, terms
from .fddp_program import NO_MEMORY, solve
from .optimal_control import Stage, as_stages
from .posing import posed
from .shooting import METHODS
from .workspace import Path, Problem, Workspace

TRIES = 4
"""Lengths of steps that are tried at most."""
SOLVED, PREPARED = 100, 1e-4
"""Iterations, at most, and tolerance of the first plan where states have limits."""
MOST_RHO = 0.1
"""The largest penalty of limits of states, beside the first cost; multipliers follow from sample to sample."""
TRUSTED = 10.0
"""How many times nearer the plan before the last one must have come to a measured state to be taken in its place."""
PLAN = ("Q", "V", "U", "MULTIPLIER")


class RecedingHorizon:
    """A controller that optimises over a horizon from the state as measured: u = controller.step(q, v).

    Every step shifts the last solution by one sample, puts its start at the measured state, and takes `iterations` iterations of
    Gauss and Newton's kind; their forward pass starts at that state, so that the plan is always one the robot can follow. The number of
    operations in a step is bounded: so many iterations, each of at most TRIES lengths.

    A single measurement that is far off is forgotten: where the plan from before it foresaw the next state much better than the plan made
    from it, that plan goes on. Its own sample has the control that such a state asks for; limits of effort bound it.
    """

    def __init__(self, problem: Problem, path: Path, iterations: int) -> None:
        self.problem, self.iterations = problem, iterations
        self._room = room = Workspace(problem, max(iterations, SOLVED), exact=False)
        room.begin(0, path, 0.0, exact=False)
        scalars = room.memory["SCALARS"]
        if problem.low_x is not None:  # limits of states need their multipliers from the beginning
            scalars[layout.TOLERANCE] = PREPARED
            room.run(SOLVED, last=False)
            scalars[[layout.TOLERANCE, layout.STEP, layout.CHANGE]] = 0.0
            scalars[layout.RHO] = min(scalars[layout.RHO], MOST_RHO * abs(room.memory["TABLE"][0, 0]))
        scalars[layout.TRIES], scalars[layout.FORCED], scalars[layout.GROWTH] = TRIES, 1.0, 1.0
        self.times: list[float] = []
        """Seconds that each call of `step` took, by the wall clock."""
        self._started = False
        self._before: dict[str, np.ndarray] | None = None
        """The plan of the sample before, when the last state was not known yet."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_room": {name: x.copy() for name, x in self._room.memory.views.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._room = Workspace(self.problem, max(self.iterations, SOLVED), exact=False)
        self._room.begin(0, Path(*(state["_room"][name][None] for name in ("Q", "V", "U"))), 0.0, exact=False)
        for name, x in state["_room"].items():
            self._room.memory[name][:] = x

    def __repr__(self) -> str:
        return f"<receding horizon of {self.problem.horizon} steps of {self.problem.robot.name!r}>"

    @property
    def worst_time(self) -> float:
        """The longest call of `step` so far, in seconds."""
        return max(self.times, default=0.0)

    @property
    def plan(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States q (N + 1, nq), v (N + 1, nv) and controls u (N, m) as planned."""
        mem = self._room.memory
        return mem["Q"].copy(), mem["V"].copy(), mem["U"].copy()

    @property
    def cost(self) -> float:
        """The cost of the plan."""
        return self._room.cost()

    @property
    def gains(self) -> np.ndarray:
        """K (m, 2 nv) of the first step, for controllers that run faster than the plan; of Gauss and Newton's kind."""
        K: np.ndarray = self._room.gains()[0][0]
        return K

    def step(self, q: Any, v: Any) -> np.ndarray:
        """The control (m,) to hold from now for one sample, at the state q (nq,), v (nv,)."""
        begin = time.perf_counter()
        problem, mem = self.problem, self._room.memory
        q, v = np.asarray(unmasked(q), dtype=float), np.asarray(unmasked(v), dtype=float)
        if q.shape != problem.q0.shape[1:] or v.shape != problem.v0.shape[1:]:
            raise ShapeError(f"q has shape {q.shape} and v {v.shape}; expected {problem.q0.shape[1:]} and {problem.v0.shape[1:]}.")
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise CoadjointError("the measured state has entries that are not finite numbers.")
        q = np.asarray(problem.robot.normalize(q))
        if self._started:
            self._shift(q, v)
        self._before, self._started = {name: mem[name].copy() for name in PLAN}, True
        mem["Q"][0], mem["V"][0] = q, v
        self._improve()
        if not np.isfinite(mem["V"].sum() + mem["U"].sum()):
            for name, x in self._before.items():
                mem[name][:] = x
            k = int(np.argmax(np.abs(np.concatenate([q, v]))))
            what = f"q[{k}] = {q[k]:g}" if k < len(q) else f"v[{k - len(q)}] = {v[k - len(q)]:g}"
            raise CoadjointError(
                f"there is no finite plan from the measured state, whose largest entry is {what}; the plan from before goes on. "
                "Look at the measurement, or hold back controls by effort=."
            )
        self.times.append(time.perf_counter() - begin)
        return np.array(mem["U"][0])

    def _shift(self, q: np.ndarray, v: np.ndarray) -> None:
        """The plan one sample later, or that from before the last measurement two samples later if it foresaw the state better."""
        mem, before = self._room.memory, self._before
        for name in PLAN:
            mem[name][:-1] = mem[name][1:]
            if before is not None:
                before[name][:-1] = before[name][1:]
        if before is not None and TRUSTED * self._away(before, q, v) < self._away(mem.views, q, v):
            for name, x in before.items():
                mem[name][:] = x

    def _away(self, plan: Mapping[str, np.ndarray], q: np.ndarray, v: np.ndarray) -> float:
        """How far the first state of a plan is from a measured one, velocities as what they move in a sample."""
        dt = float(self.problem.spans[0].numbers[0, 0, 0])
        robot = self.problem.robot
        far = q - plan["Q"][0] if robot.nq == robot.nv else np.asarray(robot.difference(plan["Q"][0], q))
        return float(max(np.abs(far).max(), dt * np.abs(v - plan["V"][0]).max()))

    def _improve(self) -> None:
        mem = self._room.memory
        mem["SCALARS"][[layout.SHIFT, layout.PENALTY, layout.ROWS]] = 0.0
        if self._room.run(self.iterations, last=False) == NO_MEMORY:
            raise MemoryError("receding horizon: no memory for intermediate values")


@runs(solve)
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
    velocity: Any = None,
    position: Any = None,
    method: str = "euler",
    guess: Any = None,
    iterations: int = 1,
) -> RecedingHorizon:
    """A controller for model-predictive control; arguments as for `optimal_control`, whose result may be the guess.

    The first step of the first stage is the sample. One iteration in every `step` follows slow changes; more of them converge further.
    """
    if count_up_to(10**6)(iterations, "iterations") < 1:
        raise CoadjointError(f"iterations is {iterations}; expected at least 1.")
    problem, path, batch = posed(
        robot,
        as_stages(stages),
        terms(terminal, "terminal"),
        start,
        start_velocity,
        actuation=actuation,
        effort=effort,
        position=position,
        velocity=velocity,
        method=method,
        guess=guess,
        threads=1,
    )
    if batch:
        raise ShapeError(f"start has batch axes {batch}; a receding horizon is one problem.")
    RecedingHorizon(problem, path, iterations)._improve()  # compile now, not in the first step
    return RecedingHorizon(problem, path, iterations)
