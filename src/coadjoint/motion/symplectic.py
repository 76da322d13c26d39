"""Variational steps of many robots in chunks of native code; only the states at the wanted times are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import mv
from ..constraints.constraint import Constraint
from ..dynamics import mass_matrix, mass_matrix_inverse
from ..families import Family
from ..traced import Traced
from .control import Control, traced_control
from .equations_of_motion import SimulationError
from .fixed_steps import check_converged, variational_step
from .rollout import roll_states
from .staged import Middles, Staged, outside

CHUNK = 1 << 14
"""Steps of all robots together that run natively in one go: short enough for progress and interruption."""


@dataclass
class Symplectic:
    """Motions of the robots of a family by the variational method, or a composition of its steps (`variational.COMPOSITIONS`)."""

    family: Family
    numbers: list[np.ndarray]
    """None, or the numbers (N, size) that differ."""
    times: np.ndarray
    control: Control | np.ndarray | Any | None
    """A function, forces (nv,) or (N, nv), or a controller whose reference must be evaluated outside of compiled steps."""
    constraint: Constraint | None
    friction: bool
    parts: tuple[float, ...]
    step: float
    report: Callable[[float], None]

    def __call__(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        """States (N, times, nq), (N, times, nv) from q (N, nq), v (N, nv), as far as they went, and "interrupted" if they were.

        A `SimulationError` has the states before it as its `motion`.
        """
        family, times, control = self.family, self.times, self.control
        constant, given = isinstance(control, np.ndarray), outside(control)
        middles = Middles(family.robot, *given) if given else None
        force: Traced | Staged | None = traced_control(family, control) if callable(control) else None
        counts = np.maximum(1, np.ceil(np.diff(times) / self.step - 1e-9)).astype(int)
        p, w = self._momentum(q, v), v
        take: Callable[..., Any] | None = None
        qs, ps, stopped = [q], [p], ""
        most = max(1, CHUNK // max(1, len(q)))
        try:
            for k, n in enumerate(counts):
                h = (times[k + 1] - times[k]) / n
                for first in range(0, n, most):  # all times and lengths of steps as they are needed: there may be millions
                    some = min(most, n - first)
                    lengths = np.tile(np.array(self.parts) * h, some)
                    begin = times[k] + first * h + np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
                    third = np.asarray(control)[..., None, :] if constant else (begin + lengths / 2)[:, None]
                    if middles is not None:
                        force, third = middles(third[:, 0])
                    take = take or variational_step(family, force, self.friction, self.constraint, constant)
                    q, p, w, left = self._steps(take, (q, p, w), third, lengths)
                    check_converged(left.reshape(len(q), some, -1).max(-1), h, int(counts[:k].sum()) + first)
                    self.report((times[k] + (first + some) * h - times[0]) / (times[-1] - times[0]))
                qs.append(q)
                ps.append(p)
        except KeyboardInterrupt:
            stopped = "interrupted"
        except SimulationError as error:
            error.motion = self._states(qs, ps)
            raise
        return (*self._states(qs, ps), stopped)

    def _states(self, qs: list[np.ndarray], ps: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """States (N, times, nq), (N, times, nv) of configurations and momenta."""
        states = np.stack(qs[: len(ps)], axis=1)
        return states, self._velocities(states, np.stack(ps, axis=1))

    def _momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if not self.family:
            return np.asarray(mv(mass_matrix(self.family.robot, q), v))
        return np.asarray(self._product("momentum", mass_matrix)(q, v, *self.numbers))

    def _velocities(self, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        if not self.family:  # an error says why where there is no inverse
            return np.asarray(mv(mass_matrix_inverse(self.family.robot, q), p))
        return np.asarray(self._product("velocity", mass_matrix_inverse)(q, p, *(x[:, None] for x in self.numbers)))

    def _product(self, name: str, matrix: Callable[..., Any]) -> Callable[..., Any]:
        """The compiled product of a matrix at q and a vector."""
        robot = self.family.robot
        return self.family.compiled(
            name,
            lambda robot, _, q, x: mv(matrix(robot, q), x),
            name,
            q=(robot.nq,),
            **{"v" if name == "momentum" else "p": (robot.nv,)},
        )

    def _steps(
        self, take: Any, state: tuple[np.ndarray, ...], third: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The last state after steps of these lengths, and how far each was from converged (N, steps)."""
        count, steps = len(state[0]), len(lengths)
        rows = [np.empty((count, steps + 1, x.shape[-1])) for x in state] + [np.empty((count, steps + 1, 1))]
        for row, x in zip(rows, state, strict=False):
            row[:, 0] = x

        def spread(x: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(np.broadcast_to(x, (count, steps, x.shape[-1])))

        roll_states(take, rows, [spread(third), spread(lengths[:, None]), *(spread(x[:, None]) for x in self.numbers)], 1, inputs=3)
        q, p, w = (x[:, -1].copy() for x in rows[:3])
        return q, p, w, rows[3][:, 1:, 0]
