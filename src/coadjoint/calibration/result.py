"""The result of a calibration: the robot with its fitted geometry, its predictions, and the uncertainty of each number."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import numbers
from ..arrays import Array
from ..errors import CoadjointError, ModelWarning, ShapeError
from ..kinematics import DH, space_screws, to_dh
from ..lie import se3
from ..robot.robot import Robot
from .camera import Corners
from .chain import Chain, corrected
from .fit import Fit, Problem, State, covariance, fit, held_back, upper
from .measured import Planes, Points, Poses
from .said import described, left_out, unseen
from .terms import Terms


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """A calibrated robot: `robot` has the fitted geometry, `predict(q)` says what would be measured at configurations q."""

    nominal: Robot
    frame: str
    fit: Fit
    held_back: Array
    """Residuals (N, d) of every configuration, predicted from the others."""
    tried: tuple[tuple[str, float], ...]
    """Groups of terms that were tried, and the mean held-back error with them [m, rad]."""
    notes: tuple[str, ...]
    covariance: Array
    """The covariance of all unknowns, in the order of `names`."""

    # --- the result

    @property
    def chain(self) -> Chain:
        return self.fit.problem.chain

    @property
    def terms(self) -> Terms:
        return self.fit.problem.terms

    @property
    def offset(self) -> Array:
        """The fitted zero offsets of the chain's joints (n,)."""
        found = np.zeros(len(self.chain.links))
        for k, group in enumerate(self.terms.group):
            if group == "offset":
                found[self.terms.joint[k]] = self.fit.state.coefficients[k]
        return found

    @property
    def robot(self) -> Robot:
        """The robot with corrected placements, zero offsets included. Scale, harmonics and deflection are in `correct`."""
        return corrected(self.chain, self.fit.state.twists(self.chain), self.offset)

    def correct(self, q: Any) -> Array:
        """The configuration (..., nq) at which `robot` stands where the real one stands when its encoders say q.

        base @ pose(robot, correct(q), frame) is the pose of the frame in the frame of the measurement.
        """
        flat, shape = self._configurations(q)
        problem = self._at(flat)
        delta = problem.delta(self.fit.state) - self.offset
        out = flat.copy()
        out[:, list(self.chain.coordinates)] += delta
        return out.reshape(*shape, flat.shape[1])

    @property
    def base(self) -> Array:
        """The pose (4, 4) of the robot's base in the frame of the measurement; the identity if the measurement has no such frame."""
        return self.fit.state.base

    @property
    def tool(self) -> Array | None:
        """The pose (4, 4) of the measured tool or camera on the frame, or None."""
        return self.fit.state.measured.tool if isinstance(self.fit.state.measured, Poses | Corners) else None

    @property
    def points(self) -> Array | None:
        """The places (k, 3) of the measured points on the frame, or None."""
        measured = self.fit.state.measured
        return None if isinstance(measured, Poses | Corners) else np.atleast_2d(measured.place)

    @property
    def camera(self) -> Array | None:
        """The camera's matrix (3, 3) in pixels, or None."""
        return self.fit.state.measured.matrix if isinstance(self.fit.state.measured, Corners) else None

    @property
    def distortion(self) -> Array | None:
        """The camera's two coefficients of radial distortion, or None."""
        return self.fit.state.measured.intrinsics[4:] if isinstance(self.fit.state.measured, Corners) else None

    def pose(self, q: Any) -> Array:
        """The pose (..., 4, 4) of the frame in the frame of the measurement."""
        flat, shape = self._configurations(q)
        return self._at(flat).poses(self.fit.state).reshape(*shape, 4, 4)

    def predict(self, q: Any) -> Array:
        """The predicted measurements at q (..., nq): points (..., k, 3), poses (..., 4, 4), distances (..., k) or corners (..., k, 2)."""
        flat, shape = self._configurations(q)
        if isinstance(self.fit.state.measured, Planes):
            raise CoadjointError("contacts with planes say which plane was touched, which q does not; use pose(q).")
        found = self.fit.state.measured.predict(self._at(flat).poses(self.fit.state))
        return found.reshape(*shape, *found.shape[1:])

    def uncertainty(self, q: Any) -> Array:
        """Standard deviations (..., d) of what is predicted at q: how well the unknowns are known, without the scatter of a measurement."""
        flat, shape = self._configurations(q)
        J = self._linear(flat)
        variance = np.einsum("ndi,ij,ndj->nd", J, self.covariance, J)
        unit = self.fit.state.measured.unit if isinstance(self.fit.state.measured, Corners) else 1.0
        return unit * np.sqrt(np.maximum(variance, 0.0)).reshape(*shape, J.shape[1])

    def pose_uncertainty(self, q: Any) -> Array:
        """Standard deviations (..., 6) of `pose(q)`: of a rotation vector and of the origin, along the frame's axes.

        What the measurement does not show of base and frame (a zero offset beside an unknown tool) has the description's tolerance here;
        in what is measured it cancels (`uncertainty`).
        """
        flat, shape = self._configurations(q)
        _, J = self._twists(flat)
        C = self.covariance[: J.shape[2], : J.shape[2]]
        variance = np.einsum("ndi,ij,ndj->nd", J, C, J)
        return np.sqrt(np.maximum(variance, 0.0)).reshape(*shape, 6)

    def next_postures(self, pool: Any, count: int = 10) -> Array:
        """The rows (count,) of a pool of configurations (M, nq) that would tell most together: greedy, each the largest gain of log det.

        The information of what was measured and the prior are what one starts with.
        """
        flat, _ = self._configurations(pool)
        if not 1 <= count <= len(flat):
            raise CoadjointError(f"count is {count}; expected one from 1 to the {len(flat)} configurations of the pool.")
        deviations = self.fit.problem.deviations(self.fit.state)
        new = self._linear(flat) * deviations / self.fit.scale[:, None]
        A, _ = self.fit.scaled
        X = A.reshape(-1, A.shape[2])
        half = np.linalg.inv(upper(X))
        inverse = half @ half.T
        chosen: list[int] = []
        for _ in range(count):
            inner = new @ inverse @ np.swapaxes(new, 1, 2) + np.eye(new.shape[1])
            gain = np.linalg.slogdet(inner)[1]
            gain[chosen] = -np.inf
            best = int(np.argmax(gain))
            chosen.append(best)
            half = inverse @ new[best].T
            inverse = inverse - half @ np.linalg.solve(inner[best], half.T)
        return np.array(chosen)

    # --- what it says of itself

    @property
    def names(self) -> tuple[str, ...]:
        return self.fit.problem.names(self.fit.state)

    @property
    def values(self) -> Array:
        """Displacements from the robot as described, in the order of `names`; 0 for base, tool and points."""
        return self.fit.problem.displacements(self.fit.state)

    @property
    def parameters(self) -> dict[str, tuple[float, float]]:
        """Every displacement with its standard deviation; for those that cannot be seen this is that of the prior, or infinite."""
        spread = np.sqrt(np.diag(self.covariance))
        prior = self.fit.problem.deviations(self.fit.state)
        count = len(self.fit.state.eta) + len(self.fit.state.coefficients)
        blind = spread > 0.9 * prior
        return {
            name: (float(self.values[k]), float(np.inf if blind[k] else spread[k])) for k, name in enumerate(self.names[:count])
        }

    @property
    def unseen(self) -> tuple[str, ...]:
        """Combinations of unknowns that the measurements cannot show, each with the names of its largest parts."""
        return unseen(self.fit)

    @property
    def residuals(self) -> Array:
        """Measured minus predicted (N, d) of the configurations that were fitted."""
        return self.fit.residual

    def errors(self, residuals: Array) -> Array:
        """Residuals as lengths: of points [m] or corners [pixels] (N, k), of a pose's angle and origin (N, 2), or their absolute values."""
        if isinstance(self.fit.state.measured, Corners):
            return np.linalg.norm(residuals.reshape(len(residuals), -1, 2), axis=2) * self.fit.state.measured.unit
        if isinstance(self.fit.state.measured, Points):
            return np.linalg.norm(residuals.reshape(len(residuals), -1, 3), axis=2)
        if isinstance(self.fit.state.measured, Poses):
            return np.linalg.norm(residuals.reshape(len(residuals), 2, 3), axis=2)
        return np.abs(residuals)

    @property
    def outliers(self) -> Array:
        """The configurations whose weight in the fit is below a tenth of the usual."""
        return np.flatnonzero(self.fit.weights < 0.1 * np.median(self.fit.weights))

    def report(self, path: str | Path) -> None:
        """Write a page of its own (.html): residuals before and after, parameters with intervals, what cannot be seen."""
        from ..show.calibration import write_report

        write_report(path, self)

    def write_urdf(self, source: str | Path, path: str | Path) -> None:
        """Write a URDF that is the source but for the origins of the calibrated joints: meshes, colours and remarks stay.

        It is `robot`: scale, harmonics and deflection, for which such files have no place, are in `correct`; a ModelWarning says how much
        they are.
        """
        from .writing import write_urdf

        write_urdf(self, source, path)
        self._warn(str(path))

    def write_mjcf(self, source: str | Path, path: str | Path) -> None:
        """Write an MJCF file that is the source but for the poses of the calibrated joints' bodies; as `write_urdf`, it is `robot`."""
        from .writing import write_mjcf

        write_mjcf(self, source, path)
        self._warn(str(path))

    def dh(self, convention: str = "standard") -> DH:
        """Denavit–Hartenberg parameters of the calibrated chain, which are those of `robot`: `from_dh` gives back the same poses.

        Axes that are parallel but for a calibrated angle have their common normal far away; the numbers are large then, and as exact.
        """
        found = to_dh(*space_screws(self.robot, self.frame), convention)
        self._warn("Denavit–Hartenberg parameters")
        return found

    def __str__(self) -> str:
        return described(self)

    def __repr__(self) -> str:
        error = float(np.mean(self.errors(self.held_back)))
        return f"<Calibration of {self.nominal.name!r} to {self.frame!r}: {len(self.fit.weights)} configurations, held back {error:.3g}>"

    def nominal_fit(self) -> Calibration:
        """The fit of the robot as described: only base, tool and points are fitted. It shows what calibration gains."""
        rigid = replace(self.chain, directions=tuple(np.zeros((0, 6)) for _ in self.chain.links))
        problem = Problem(rigid, self.terms.chosen(()), self.fit.problem.q, np.zeros((len(self.fit.weights), 0)))
        state = State(np.zeros(0), np.zeros(0), self.fit.state.base, self.fit.state.measured)
        found = fit(problem, state, "squares")
        every = np.arange(found.jacobian.shape[2])
        return Calibration(self.nominal, self.frame, found, held_back(found, every), (), (), covariance(found))

    # --- inside

    def _warn(self, what: str) -> None:
        """A warning that what was written lacks terms of the fit."""
        if lost := left_out(self):
            warnings.warn(f"{what}: {lost}.", ModelWarning, stacklevel=3)

    def _configurations(self, q: Any) -> tuple[Array, tuple[int, ...]]:
        q = np.asarray(numbers(q, "q"), dtype=float)
        if q.ndim < 1 or q.shape[-1] != self.nominal.nq:
            raise ShapeError(f"q has shape {q.shape}; expected (..., {self.nominal.nq}).")
        return q.reshape(-1, q.shape[-1]), q.shape[:-1]

    def _at(self, q: Array) -> Problem:
        return Problem(self.chain, self.terms, q, self.terms.design(q))

    def _linear(self, q: Array) -> Array:
        """The prediction's Jacobian (M, d, m) at other configurations."""
        state = self.fit.state
        T, by_twist = self._twists(q)
        if isinstance(state.measured, Planes):
            raise CoadjointError("contacts with planes say which plane was touched, which q does not.")
        if isinstance(state.measured, Poses):  # at what is predicted: no residual
            own = np.broadcast_to(np.eye(6), (len(q), 6, 6))
            twist = np.broadcast_to(se3.Ad(se3.inverse(state.measured.tool)), (len(q), 6, 6))
        else:
            twist, own = state.measured.derivatives(T)
        return np.concatenate([twist @ by_twist, own], axis=2)

    def _twists(self, q: Array) -> tuple[Array, Array]:
        """The frame's poses (M, 4, 4) and their body twists (M, 6, m) by displacements, terms and base."""
        problem, state = self._at(q), self.fit.state
        T, by_eta, by_delta, by_base = self.chain.jacobian(problem.own, state.twists(self.chain), problem.delta(state), state.base)
        by_term = by_delta[:, :, self.terms.joint] * problem.functions[:, None]
        parts = [by_eta, by_term, by_base] if state.measured.has_base else [by_eta, by_term]
        return T, np.concatenate(parts, axis=2)
