"""The motions that `optimal_motion` finds."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..motion.states import States
from ..motion.trajectory import Trajectory
from . import interior_point
from .between_nodes import EXCEEDED, INEXACT, beyond
from .certificate import Proof, proof_of
from .clearance import Clearances
from .least_times import slowest_joint
from .multiple_shooting import Flight, Shots
from .newton import least_curvature
from .quintics import Quintics
from .sensitivity import Sensitivity, sensitivity
from .splines import ORDERS, Spline
from .transcription import Here, Transcription

SAMPLES = 201
"""Times of a motion, at least."""


@dataclass(frozen=True, eq=False)
class Conditions:
    """A problem with the variables and multipliers at its solution."""

    problem: Transcription | Shots
    """The problem of this motion alone."""
    x: np.ndarray
    s: np.ndarray
    z: np.ndarray
    y: np.ndarray
    """(1, …) each"""

    def here(self) -> Here | Flight:
        return self.problem.at(self.x, np.zeros(1, dtype=int))

    def hessian(self) -> tuple[Here | Flight, np.ndarray, np.ndarray]:
        """The problem at the solution, its Hessian with the limits that hold (n, n), the upper triangle, and the equations (k, n)."""
        here = self.here()
        return here, here.hessian(self.z, self.y, self.z / self.s)[0], here.equality_jacobian[0]


@dataclass(frozen=True, eq=False, repr=False)
class OptimalMotion(Trajectory):
    """The motion that was found, a `Trajectory` with its accelerations, cost and the conditions that it meets."""

    a: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """(N, nv)"""
    cost: float = np.nan
    converged: bool = False
    """True if the conditions of first order hold to the tolerance and the Hessian has no negative eigenvalue along the limits that hold:
    the motion is a local optimum among splines of its kind. Limits that would be exceeded between the nodes are drawn in there, by
    some thousandths of themselves, less with more spans."""
    message: str = ""
    error: float = np.nan
    """The largest violation of the conditions of first order."""
    violation: float = 0.0
    """The amount by which limits are exceeded between the nodes, as a part of each limit; at most 1e-6 in a converged motion."""
    clearance: float = np.inf
    """The least distance of bodies and obstacles on the way, in metres; infinite where there are none. In a converged motion it is proved
    to be what was asked for, at all times."""
    multipliers: Mapping[str, np.ndarray] = field(default_factory=dict)
    """By limit, such as "effort": (nodes, joints), positive where the upper limit holds the motion back, negative for the lower."""
    table: Sequence[Mapping[str, float]] = ()
    """The iterations."""
    control_points: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    conditions: Conditions | None = None

    @property
    def duration(self) -> float:
        """Seconds."""
        return float(self.time[-1] - self.time[0])

    @property
    def states(self) -> States:
        """The states as a table, with the accelerations."""
        return States(self.q, self.v, self.a, self.tau, self.time)

    @cached_property
    def least_curvature(self) -> float:
        """The least eigenvalue of the Hessian, its diagonal scaled to 1, along the limits that hold: the condition of second order.

        Positive at a strict minimum; negative where a neighbouring motion costs less, as for a geodesic beyond its conjugate point.
        """
        _, H, E = self._solved().hessian()
        return least_curvature(H, E)

    def sensitivity(self, parameters: str) -> Sensitivity:
        """The derivatives of the motion and of its cost by a set of the robot's parameters: "masses", "inertial", "lengths", "dh:tip", …

        Exact, by the implicit function theorem, as long as the same limits hold the motion: dcost = sensitivity.cost @ dp. The amounts
        by which limits are drawn in between the nodes are held, as a second call with `guess=motion` does; `drawn` tells how much the
        derivatives would change if they were not, and a warning says so above 1e-4.
        """
        return sensitivity(self, parameters)

    def _solved(self) -> Conditions:
        if self.conditions is None:
            raise CoadjointError(
                "this motion has no conditions with it: it was not made by `optimal_motion`, or came through pickle with a cost or a "
                "constraint that cannot; write that as a named function of a module."
            )
        return self.conditions

    def __getstate__(self) -> dict[str, Any]:
        try:
            pickle.dumps(self.conditions)
        except Exception:  # a user's function that cannot be pickled: the motion itself can
            return self.__dict__ | {"conditions": None}
        return self.__dict__

    def __str__(self) -> str:
        verdict = "optimal" if self.converged else "NOT optimal"
        what = f"{self.duration:.6g} s, cost {self.cost:.9g}, {verdict} after {len(self.table)} iterations ({self.message})"
        return f"Motion of {self.robot.name!r}: {what}"

    def __repr__(self) -> str:
        return f"<{self}>"


class OptimalMotions(Sequence[OptimalMotion]):
    """Many motions of one robot; `motions[k]` is one of them."""

    def __init__(self, motions: Sequence[OptimalMotion], shape: tuple[int, ...]) -> None:
        self.motions, self.shape = list(motions), shape

    def __len__(self) -> int:
        return len(self.motions)

    def __getitem__(self, k: Any) -> Any:
        return self.motions[k]

    def __iter__(self) -> Iterator[OptimalMotion]:
        return iter(self.motions)

    def _all(self, name: str) -> np.ndarray:
        found = np.array([getattr(motion, name) for motion in self.motions])
        return found.reshape(*self.shape, *found.shape[1:])

    @property
    def cost(self) -> np.ndarray:
        """(...)"""
        return self._all("cost")

    @property
    def converged(self) -> np.ndarray:
        """(...)"""
        return self._all("converged")

    @property
    def duration(self) -> np.ndarray:
        """(...)"""
        return self._all("duration")

    @property
    def q(self) -> np.ndarray:
        """(..., N, nq)"""
        return self._all("q")

    @property
    def v(self) -> np.ndarray:
        """(..., N, nv)"""
        return self._all("v")

    @property
    def time(self) -> np.ndarray:
        """(..., N)"""
        return self._all("time")

    def __repr__(self) -> str:
        name = self.motions[0].robot.name if self.motions else ""
        return f"<{len(self)} motions of {name!r}: {int(self.converged.sum())} optimal>"


@dataclass(frozen=True, eq=False)
class Between:
    """The motion as a function of time."""

    spline: Spline | Quintics
    control: np.ndarray
    duration: float

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = np.clip(np.asarray(t, dtype=float) / self.duration, 0.0, 1.0)
        q, v, *_ = self.spline.curve(self.control, self.duration, s.reshape(-1))
        return q.reshape(*s.shape, -1), v.reshape(*s.shape, -1)


def motions_of(problem: Transcription | Shots, which: np.ndarray, found: interior_point.Solution) -> list[OptimalMotion]:
    """The motions of solutions of problems `which` (b,)."""
    robot, spline, here = problem.robot, problem.spline, problem.at(found.x, which)
    c, T, b = problem.control(here), here.T, len(which)  # type: ignore[arg-type]
    s = np.linspace(0.0, 1.0, max(SAMPLES, 8 * spline.spans + 1))
    forces = problem.forces_at(here, spline.at(s))  # type: ignore[arg-type]
    stage, tau = forces.stage.reshape(b, len(s), ORDERS, robot.nv), forces.tau.reshape(b, len(s), robot.nv)
    q, v, a = (np.ascontiguousarray(stage[:, :, order]) for order in range(ORDERS - 1))
    over = beyond(problem, found.x, which)
    exact = problem.exact(here)  # type: ignore[arg-type]
    held = [-x.reshape(b, len(problem.nodes), -1) for x in here.by_row(found.z, -1.0)]
    closure = problem.closure
    missed = problem.missed(here) if isinstance(here, Flight) and isinstance(problem, Shots) else np.zeros(b)
    gap = np.zeros(b) if closure is None else np.abs(np.asarray(closure.value(q))).max((1, 2))
    made = []
    for k in range(b):
        beside = [part[k] for part, rows in zip(over, problem.limits, strict=True) if not isinstance(rows, Clearances)]
        doubts = _doubts(problem, beside, here.e[k], float(here.f[k]), float(exact[k]), bool(found.converged[k]))
        if isinstance(problem, Transcription) and not (found.converged[k] or problem.free_time):
            doubts += _too_fast(problem, c[k], float(T[k]))
        proof = proof_of(problem, c[k], float(T[k]))
        if proof is not None and not proof.holds:
            doubts.append(_near(proof, problem))
        if isinstance(here, Flight) and not found.converged[k] and np.abs(here.e[k]).max() > EXCEEDED:
            doubts = [_too_long(len(here.nodes[k]) - 1, float(T[k]), float(np.abs(here.e[k]).max()))]
        if missed[k] > EXCEEDED:
            doubts.append(f"the steps are so long that states are off by {missed[k]:.1e} at the next node; take more spans")
        if gap[k] > EXCEEDED:
            doubts.append(f"the constraints are open by {gap[k]:.1e} on the way; take more spans")
        one = slice(which[k], which[k] + 1)
        alone = Conditions(problem.part(one), *(x[k : k + 1] for x in (found.x, found.s, found.z, found.y)))
        made.append(
            OptimalMotion(
                robot,
                s * T[k],
                q[k],
                v[k],
                tau[k],
                constraints=None if closure is None else closure.constraint,
                pieces=((0.0, float(T[k]), Between(spline, c[k].copy(), float(T[k]))),),
                a=a[k],
                cost=float(here.f[k]),
                converged=bool(found.converged[k]) and not doubts,
                message="; ".join(doubts if found.converged[k] and doubts else [found.message[k], *doubts]),
                error=float(found.error[k]),
                violation=max([0.0, *(float(x.max(initial=0.0)) for x in beside)]),
                clearance=np.inf if proof is None else proof.distance,
                multipliers={rows.kind: x[k] for rows, x in zip(problem.limits, held, strict=True)},
                table=found.table[k],
                control_points=c[k],
                conditions=alone,
            )
        )
    return made


def _too_fast(problem: Transcription, c: np.ndarray, T: float) -> list[str]:
    """The message for a duration that no motion keeps."""
    need, joint = slowest_joint(problem, c)
    short = need > T * (1.0 + EXCEEDED)
    return [f"no motion takes {T:.6g} s: {joint} alone needs {need:.6g} s within its limits"] if short else []


def _near(proof: Proof, problem: Transcription | Shots) -> str:
    """The note about a motion whose clearance is not proved."""
    rows = next(x for x in problem.limits if isinstance(x, Clearances))
    where = f"{rows.names[proof.pair]} come as near as {proof.distance:.3g} m at {proof.time:.3g} s"
    if proof.interrupted:
        return f"interrupted before clearance was proved: at the nodes {where}"
    if proof.least >= 0:
        return f"{where}, which is enough, but it cannot be proved between the places that were looked at; take more spans"
    return f"{where}; perhaps there is no way around, or another guess or more spans find it"


def _too_long(spans: int, T: float, missed: float) -> str:
    """The note about shots that do not meet."""
    return (
        f"joint forces that are linear in spans of {T / spans:.2g} s were not found to lead from node to node: states are "
        f'off by {missed:.1e} there; take more spans (a light link leaves its way in a tenth of a second), or transcription="collocation"'
    )


def _doubts(
    problem: Transcription | Shots, over: Sequence[np.ndarray], e: np.ndarray, cost: float, exact: float, solved: bool
) -> list[str]:
    """Doubts about a motion: limits that do not hold, and a cost that differs between the nodes."""
    found = []
    parts = [x.max(initial=0.0) for x in over]
    if parts and max(parts) > EXCEEDED:
        k = int(np.argmax(parts))
        rows = [x for x in problem.limits if not isinstance(x, Clearances)][k]
        joint = int(over[k].max(0).argmax())
        remedy = "take more spans" if solved else "give more time, wider limits or another guess"
        found.append(f"the {rows.kind} of {rows.names[joint]} exceeds its limit by {max(parts):.1e} of it; {remedy}")
    missed = float(np.abs(e).max(initial=0.0))
    if missed > EXCEEDED:
        found.append(f"points on the way, or the pose at the end, are missed by {missed:.1e}; perhaps they contradict each other")
    off = abs(exact - cost) / max(abs(exact), abs(cost), 1e-300)
    if off > INEXACT and abs(exact - cost) > 1e-12:
        found.append(f"the cost between the nodes differs by {off:.1e} of it; take more spans")
    return found
