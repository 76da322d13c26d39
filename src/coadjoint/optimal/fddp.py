"""Differential dynamic programming on many problems: each is solved by the program of `fddp_program.py`, several at a time by threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np

from ..kernel.runtime.threads import cores, most_threads, share
from . import layout
from .fddp_program import GOING, INFEASIBLE, NO_MEMORY, NO_MINIMUM, NOT_CONVEX, OPTIMAL, STUCK
from .workspace import Path, Problem, Workspace

PIECE = 8
"""Iterations between two looks at interrupts."""


@dataclass
class Outcome:
    """The end of the iterations."""

    path: Path
    cost: np.ndarray
    error: np.ndarray
    K: np.ndarray
    """(P, N, m, nx)"""
    k: np.ndarray
    V: np.ndarray
    """(P, N + 1, nx, nx)"""
    costate: np.ndarray
    slope: np.ndarray
    multiplier: np.ndarray
    """Multipliers of the limits of states (P, N + 1, nx)."""
    converged: np.ndarray
    iterations: np.ndarray
    message: list[str]
    table: list[dict[str, Any]] = field(default_factory=list)
    time: float = 0.0
    """Seconds of the processor that the iterations took."""


def solve(
    problem: Problem,
    path: Path,
    *,
    tolerance: float,
    iterations: int,
    exact: bool = True,
    report: Callable[[int, float], None] | None = None,
) -> Outcome:
    """Locally optimal trajectories near the given ones, which are changed. Ctrl-C returns what is there."""
    P, N, m, nx = problem.count, problem.horizon, problem.m, problem.nx
    found = Outcome(
        path,
        np.full(P, np.nan),
        np.full(P, np.inf),
        np.zeros((P, N, m, nx)),
        np.zeros((P, N, m)),
        np.zeros((P, N + 1, nx, nx)),
        np.zeros((P, N + 1, nx)),
        np.zeros((P, N, m)),
        np.zeros((P, N + 1, nx)),
        np.zeros(P, dtype=bool),
        np.zeros(P, dtype=int),
        ["interrupted before it began: this is the first guess"] * P,
    )
    threads = min(P, cores() if problem.threads is None else most_threads(problem.threads))
    rooms = [Workspace(problem, iterations + 1, exact) for _ in range(threads)]
    tables: dict[int, np.ndarray] = {}

    def work(start: int, stop: int) -> Iterator[int]:
        room = rooms.pop()
        try:
            for k in range(start, stop):
                found.message[k] = "interrupted: this is the best so far"
                room.begin(k, path, tolerance, exact)
                try:
                    for count, status in enumerate(_rounds(room, iterations, 1 if report and P == 1 else PIECE)):
                        if report and P == 1:
                            report(count, room.memory.scalar(layout.ERROR))
                        yield int(status == NO_MEMORY)
                    found.message[k] = _told(room, status, iterations)
                    found.converged[k] = status == OPTIMAL
                finally:
                    _store(found, room, k)
                    tables[k] = room.table()
                if report and P > 1:
                    report(len(tables), float(np.max(found.error[list(tables)])))
        finally:
            rooms.append(room)

    begin = process_time()
    try:
        if share(work, [(k, k + 1) for k in range(P)], threads):
            raise MemoryError("optimal control: no memory for intermediate values")
    except KeyboardInterrupt:
        pass
    found.table, found.time = _together(tables), process_time() - begin
    return found


def _rounds(room: Workspace, iterations: int, piece: int) -> Iterator[int]:
    """Run up to the given number of iterations, a few at a time; the status after each."""
    done = 0
    while True:
        now = min(piece, iterations - done)
        done += now
        status = room.run(now, last=done == iterations)
        if status == OPTIMAL and not room.exact:
            status = room.judge(last=done == iterations)
        yield status
        if status != GOING or done == iterations:
            return


def _told(room: Workspace, status: int, iterations: int) -> str:
    error = room.memory.scalar(layout.ERROR)
    held = f"the conditions of first order hold to {error:.1e}"
    return {
        GOING: f"stopped after {iterations} iterations: {held}",
        OPTIMAL: f"optimal: {held}",
        NOT_CONVEX: "no direction of descent was found: a cost is not convex in the controls, or not a number",
        STUCK: f"no further progress: {held}",
        NO_MINIMUM: f"no minimum: {held}, but the cost falls to either side of this motion; give another guess",
        INFEASIBLE: (
            f"no motion keeps all limits: those of the states are missed by {room.memory.scalar(layout.VIOLATION):.1e}; "
            "give more time, wider limits, or another start"
        ),
    }.get(status, "no memory")


def _store(found: Outcome, room: Workspace, k: int) -> None:
    """The results of problem k."""
    mem, nx = room.memory, room.problem.nx
    for name, x in (("Q", found.path.q), ("V", found.path.v), ("U", found.path.u)):
        x[k] = mem[name]
    found.cost[k], found.error[k] = mem.scalar(layout.TOTAL), mem.scalar(layout.ERROR)
    found.iterations[k] = int(mem.scalar(layout.TAKEN))
    found.K[k], found.k[k] = room.gains()
    found.V[k], found.costate[k] = mem["VALUE"][..., :nx], mem["COSTATE"][..., :nx]
    found.slope[k], found.multiplier[k] = mem["SLOPE"], room.multipliers()


def _together(tables: dict[int, np.ndarray]) -> list[dict[str, Any]]:
    """The iterations of all problems: the sum of the costs, the shortest step, the largest of the rest."""
    rows = max((len(x) for x in tables.values()), default=0)
    if not rows:
        return []
    whole = np.stack([np.concatenate([x, np.repeat(x[-1:], rows - len(x), axis=0)]) for x in tables.values() if len(x)])
    found = []
    for row in whole.swapaxes(0, 1):
        named = dict(zip(layout.COLUMNS, row.T, strict=True))
        found.append(
            {name: float(x.sum() if name == "cost" else x.min() if name == "step" else x.max()) for name, x in named.items()}
        )
    return found
