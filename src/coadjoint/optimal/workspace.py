"""An optimal control problem in memory, with its compiled functions bound to where their arrays stand: what programs work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..kernel.programs import native_program
from ..kernel.runtime.bound import Bound, Kernels
from ..robot.robot import Robot
from . import layout
from .by_control import ByControl
from .by_velocity import ByVelocity
from .control_examples import solve_examples
from .differenced import put_hessians
from .fddp_program import solve
from .layout import Memory
from .shooting import Costs

TOGETHER = 8
"""Lengths of steps that are tried at once where steps have to wait for each other: as many as processors compute at no extra cost."""
LENGTHS = 12
"""Lengths of steps that are tried: 1, ½, ¼, …"""
FIRST_RHO, FIRST_INNER, GROWTH = 1e-2, 1e-3, 10.0
"""The first penalty of limits of states, and the first error at which their multipliers are renewed, beside the cost; by which factor the
penalty grows."""


@dataclass
class Span:
    """A run of steps with the same functions."""

    steps: ByControl | ByVelocity
    start: int
    stop: int
    numbers: np.ndarray
    """(P or 1, stop - start, ...): lengths of steps, references, weights."""


@dataclass
class Path:
    """Trajectories of P problems."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray


@dataclass
class Problem:
    """P problems of one shape."""

    robot: Robot
    spans: list[Span]
    final: Costs
    final_numbers: np.ndarray
    """(P or 1, ...)"""
    q0: np.ndarray
    v0: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    """Limits (m,) of the controls."""
    low_x: np.ndarray | None = None
    high_x: np.ndarray | None = None
    """Limits (2 nv,) of the state, infinite where there are none."""
    threads: int | None = None

    @property
    def count(self) -> int:
        return len(self.q0)

    @property
    def horizon(self) -> int:
        return self.spans[-1].stop

    @property
    def nx(self) -> int:
        return 2 * int(self.robot.nv)

    @property
    def m(self) -> int:
        return int(self.spans[0].steps.m)

    @property
    def is_by_velocity(self) -> bool:
        return isinstance(self.spans[0].steps, ByVelocity)

    def by_velocity(self) -> Problem:
        """The problem with its steps chosen by velocities."""
        spans = [replace(s, steps=ByVelocity(self.robot, s.steps.cost, s.steps.B)) for s in self.spans]
        return replace(self, spans=spans)


class Workspace:
    """Room for one of the problems."""

    def __init__(self, problem: Problem, rows: int, exact: bool) -> None:
        self.problem, self.exact = problem, exact
        robot, N, m = problem.robot, problem.horizon, problem.m
        by_velocity = problem.is_by_velocity
        self.memory = memory = Memory(
            N,
            robot.nq,
            robot.nv,
            m,
            spans=len(problem.spans),
            by_velocity=by_velocity,
            limited=problem.low is not None,
            bounded=problem.low_x is not None,
            together=1 if by_velocity else TOGETHER,
            room=rows + 1,
        )
        memory["SPAN"][:] = [*(s.start for s in problem.spans), N]
        if problem.low is not None and problem.high is not None:
            memory["LOW"][:], memory["HIGH"][:] = problem.low, problem.high
        if problem.low_x is not None and problem.high_x is not None:
            memory["LOW_X"][:], memory["HIGH_X"][:] = problem.low_x, problem.high_x
            memory["PLACE_X"][: robot.nv] = configuration_places(robot)
        self.numbers = [np.empty(s.numbers.shape[1:]) for s in problem.spans]
        self.final_numbers = np.empty((1, problem.final_numbers.shape[-1]))
        bind = self._by_velocity if by_velocity else self._by_control
        bound = [x for s, numbers in zip(problem.spans, self.numbers, strict=True) for x in bind(s, numbers)]
        self.kernels = Kernels([*bound, *self._final()])
        self.program: Callable[..., int] = native_program(solve, solve_examples) if self.kernels.native else solve

    # --- functions and where their arrays stand

    def _by_velocity(self, span: Span, numbers: np.ndarray) -> list[Bound]:
        steps, mem = span.steps, self.memory
        at, after = slice(span.start, span.stop), slice(span.start + 1, span.stop + 1)
        nz = steps.nz
        given = [mem["Q"][at], mem["V"][at], mem["V"][after], numbers]
        slopes = mem["G"][at, :nz]
        found = [mem["COST"][at], mem["U"][at], slopes, mem["G_TURNED"][at, :nz], mem["H"][at], mem["EXCHANGE"][at]]
        more = [mem["U"][at], slopes, mem["EXCHANGE"][at]]
        new = [mem["NEW_Q"][0, at], mem["NEW_V"][0, at], mem["NEW_V"][0, after], numbers]
        model = Bound(steps.model, given, [*found, mem["RESPONSE"][at]])
        return [
            model,
            Bound(steps.curvature, [*given, *more], [mem["H"][at]]) if self.exact else model,
            Bound(steps.forward, new, [mem["NEW_U"][0, at], mem["NEW_COST"][0, at]]),
        ]

    def _by_control(self, span: Span, numbers: np.ndarray) -> list[Bound]:
        steps, mem = span.steps, self.memory
        at, after = slice(span.start, span.stop), slice(span.start + 1, span.stop + 1)
        nx, nz = steps.nx, steps.nz
        given = [mem["Q"][at], mem["V"][at], mem["U"][at], numbers]
        found = [mem["COST"][at], mem["G"][at, :nz], mem["H"][at], mem["DYNAMICS"][at], mem["GAP"][at, :nx]]
        old = [mem[name][None, at] for name in ("Q", "V", "U", "GAINS", "FEEDFORWARD")]
        more = [mem["GAP"][None, at, :nx], mem["LENGTH"][:, None], numbers[None]]
        box = [mem["LOW"][None, at], mem["HIGH"][None, at]] if steps.limited else []
        states = [mem[name] for name in ("NEW_Q", "NEW_V", "NEW_COST")]
        outputs = [*(x[:, after] for x in states), mem["NEW_U"][:, at]]
        model = Bound(steps.model, [*given, mem["Q"][after], mem["V"][after]], found)
        return [
            model,
            Bound(steps.curvature, [*given, mem["COSTATE"][after, :nx]], [mem["H"][at]]) if self.exact else model,
            Bound(steps.forward, [*(x[:, at] for x in states), *old, *more, *box], outputs, stepped=True),
        ]

    def _final(self) -> list[Bound]:
        final, mem, N, nx = self.problem.final, self.memory, self.problem.horizon, self.problem.nx
        none = np.zeros((1, self.problem.m))
        given = [mem["Q"][N:], mem["V"][N:], none, self.final_numbers]
        model = Bound(final.model, given, [mem["COST"][N:], mem["G_END"][:, :nx], mem["H_END"]])
        return [
            model,
            Bound(final.curvature, given, [mem["H_END"]]) if self.exact else model,
            Bound(final.value, [mem["NEW_Q"][:, N], mem["NEW_V"][:, N], none, self.final_numbers], [mem["NEW_COST"][:, N]]),
        ]

    # --- problems

    def begin(self, k: int, path: Path, tolerance: float, exact: bool) -> None:
        """Take problem k, from its trajectory in `path`."""
        problem, mem = self.problem, self.memory
        for s, place in zip(problem.spans, self.numbers, strict=True):
            place[:] = s.numbers[k if len(s.numbers) > 1 else 0]
            mem["H_STEP"][s.start : s.stop] = place[:, 0]
        self.final_numbers[0] = problem.final_numbers[k if len(problem.final_numbers) > 1 else 0]
        for name, x in (("Q", path.q), ("V", path.v), ("U", path.u)):
            mem[name][:] = x[k]
        mem["MULTIPLIER"][:] = 0.0
        scalars = mem["SCALARS"]
        scalars[:] = 0.0
        scalars[layout.TOLERANCE], scalars[layout.EXACT], scalars[layout.FULL] = tolerance, exact, 1.0
        scalars[layout.TRIES], scalars[layout.GROWTH], scalars[layout.OLD_VIOLATION] = LENGTHS, GROWTH, np.inf
        scalars[layout.FIRST_RHO], scalars[layout.INNER] = FIRST_RHO, FIRST_INNER

    def run(self, iterations: int, last: bool) -> int:
        """Run the iterations, and with `last` compute the conditions where they end; the result is a status of `fddp_program`."""
        return int(self.program(self.kernels, self.memory.at, self.memory.numbers, iterations, int(last)))

    def judge(self, last: bool) -> int:
        """The status (of `fddp_program`) of a motion that meets the conditions of first order, by differences of first derivatives."""
        put_hessians(self)
        return self.run(0, last)

    def cost(self) -> float:
        """The cost of the trajectory, after a step."""
        return float(self.memory.scalar(layout.NEW_TOTAL))

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """K (N, m, nx) and k (N, m) of the controls."""
        mem, nx = self.memory, self.problem.nx
        K, k = mem["GAINS"][..., :nx], mem["FEEDFORWARD"]
        if not self.problem.is_by_velocity:
            return K.copy(), k.copy()
        E = mem["EXCHANGE"]
        by_w = E[..., nx : nx + self.problem.m]
        return E[..., :nx] + by_w @ K, (by_w @ k[..., None])[..., 0]

    def multipliers(self) -> np.ndarray:
        """The multipliers (N + 1, nx) of the limits of states at the present trajectory."""
        mem, robot = self.memory, self.problem.robot
        found = np.zeros_like(mem["MULTIPLIER"])
        if self.problem.low_x is not None:
            x = np.concatenate([mem["Q"][:, configuration_places(robot)], mem["V"]], axis=-1)
            rho, old = mem.scalar(layout.RHO), mem["MULTIPLIER"]
            with np.errstate(invalid="ignore"):
                found = np.maximum(old + rho * (x - mem["HIGH_X"]), 0.0) + np.minimum(old + rho * (x - mem["LOW_X"]), 0.0)
            found[0] = 0.0
        return found

    def table(self) -> np.ndarray:
        """(rows, columns of `layout.COLUMNS`)."""
        return self.memory["TABLE"][: int(self.memory.scalar(layout.ROWS))].copy()


def configuration_places(robot: Robot) -> np.ndarray:
    """The index in q of the coordinate of every freedom, -1 for freedoms of groups."""
    found = np.full(robot.nv, -1)
    for joint in robot.joint_names:
        q, v = range(robot.nq)[robot.q_slice(joint)], range(robot.nv)[robot.v_slice(joint)]
        if len(q) == len(v):
            found[robot.v_slice(joint)] = list(q)
    return found
