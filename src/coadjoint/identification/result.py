"""The result of an identification: a robot, its friction, the uncertainty of each number, and how well it fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from ..arguments import check_labels
from ..arrays import Array
from ..dynamics import inverse_dynamics
from ..errors import CoadjointError, ShapeError, unknown
from ..motion.states import force_units
from ..robot.parameters import INERTIAL
from ..robot.robot import Robot
from ..words import printable
from .base_parameters import BaseParameters, base_parameters
from .friction import BRAKING, Friction
from .memory import CLEAR, ratios, remembered
from .preparation import Prepared

LONG = 40
"""Characters of a name from which on it stands behind the numbers."""


class Parameter(NamedTuple):
    """One number: its value, the 95 % interval that the data alone give, and what the description said."""

    name: str
    value: float
    lower: float
    upper: float
    prior: float

    @property
    def is_visible(self) -> bool:
        """True if the motion shows the parameter; else it stays at the prior as far as other numbers let it, and the interval is
        infinite."""
        return bool(np.isfinite(self.lower))


@dataclass(frozen=True)
class Parameters:
    """Numbers by name, with intervals; prints as a table."""

    names: tuple[str, ...]
    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    prior: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Parameter]:
        for k in range(len(self)):
            yield self._at(k)

    def __getitem__(self, name: str | int) -> Parameter:
        if isinstance(name, int):
            return self._at(range(len(self))[name])
        if name not in self.names:
            raise unknown("parameter", name, self.names)
        return self._at(self.names.index(name))

    def _at(self, k: int) -> Parameter:
        numbers = (self.values[k], self.lower[k], self.upper[k], self.prior[k])
        return Parameter(self.names[k], *(float(x) for x in numbers))

    def __str__(self) -> str:
        """A table; names that are long stand at the end of their lines, in full."""
        names = [printable(x) for x in self.names]
        width = max([len("parameter"), *(len(x) for x in names)])
        rows = []
        for name, p in zip(("parameter", *names), (None, *self), strict=True):
            numbers = f"{'value':>12}{'95 % interval':>28}{'prior':>12}"
            if p is not None:
                interval = f"{p.lower:.4g} … {p.upper:.4g}" if p.is_visible else "not shown by the motion"
                numbers = f"{p.value:>12.4g}{interval:>28}{p.prior:>12.4g}"
            rows.append(f"{name:<{width}}{numbers}" if width <= LONG else f"{numbers}   {name}")
        return "\n".join(rows)


class Choices(tuple[dict[str, Any], ...]):
    """Terms that were taken, in this order, with the held-back log-likelihood each gained; prints as a table of joints and terms."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "no term was chosen: those of the model were stated, or held-back stretches asked for none"
        terms = list(dict.fromkeys(str(x["term"]) for x in self))
        joints = list(dict.fromkeys(str(x["joint"]) for x in self))
        width = max([len("joint"), *(len(printable(x)) for x in joints)]) + 2
        rows = [f"{'joint':<{width}}" + "".join(f"{term:>{max(10, len(term) + 2)}}" for term in terms)]
        gains = {(str(x["joint"]), str(x["term"])): float(x["gain"]) for x in self}
        for joint in joints:
            cells = ((f"{gains[joint, term]:.1f}" if (joint, term) in gains else "", term) for term in terms)
            rows.append(f"{printable(joint):<{width}}" + "".join(f"{cell:>{max(10, len(term) + 2)}}" for cell, term in cells))
        return "\n".join(rows)


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """A model that was fitted to a log: `robot`, `torque`, `parameters`, `base`, `residuals`, `report`; prints as a table."""

    prior: Robot
    """The robot as it was described."""
    start: np.ndarray
    """(n_links, 10): its inertias, made possible."""
    rigid: Robot
    """The fitted robot without friction and armature."""
    friction: Friction
    data: Prepared
    """The fitted data: time, q, v, a, tau after preparation."""
    base_matrix: BaseParameters
    gamma: float
    """The weight of the prior."""
    tilt: np.ndarray
    """(3,): the change of the direction of gravity, m/s²."""
    estimate: np.ndarray
    covariance: np.ndarray
    """The covariance of base parameters, coefficients of friction and tilt, by the data alone."""
    unknowns: tuple[tuple[str, str], ...]
    correlation: np.ndarray
    """(nv,): how many rows count as one independent one."""
    predicted: np.ndarray
    """(N, nv): the forces of the model at the prepared rows."""
    choices: Choices = field(default_factory=Choices)
    """The terms that held-back stretches asked for, with the log-likelihood each gained."""
    notes: tuple[str, ...] = field(default=())
    prior_kind: str = "entropic"
    method: str = "auto"
    """The estimator; "auto" is the maximum posterior."""
    freedoms: float = 1e6
    """By how many freedoms the spectrum of the residuals is known: intervals are those of Student's t."""

    # --- the model

    @cached_property
    def robot(self) -> Robot:
        """The robot with the identified inertias, armature, viscous and Coulomb friction and gravity; every body is possible.

        Friction that goes with the root of speed, with the load or that Stribeck has is in the viscous and Coulomb friction that is nearest
        to it along the log. Offsets, gains, springs and asymmetry are in `torque` alone.
        """
        own, data = self._tree(np.arange(self.prior.nv)), self.data
        load = np.asarray(inverse_dynamics(self.rigid, data.q, data.v, data.a))
        viscous, coulomb = self.friction.plain(data.v, data.a, load, data.used)
        found = {"armature": self.friction.coefficients.get("armature", np.zeros(self.prior.nv))}
        numbers = {}
        for key, value in (found | {"damping": viscous, "friction": coulomb}).items():
            x = np.zeros(self.prior.tree_nv)
            x[own] = value
            numbers[key] = x
        return self.rigid.with_numbers(**numbers).consolidated()

    def _tree(self, k: np.ndarray) -> np.ndarray:
        """The freedom of the tree that each velocity is."""
        return np.asarray(np.argmax(np.asarray(self.prior.tree_v(np.eye(self.prior.nv))) == 1.0, axis=1)[k])

    def torque(self, q: Array, v: Array, a: Array, *, time: Array | None = None) -> np.ndarray:
        """The joint forces (..., nv) that are expected at states and accelerations: rigid bodies, rotors, friction and offsets.

        Each row counts by itself. With `time` (N,) the rows (N, …) are a motion, and dry friction at rest is what the motion before left.
        """
        for name, x in (("q", q), ("v", v), ("a", a)):
            check_labels(name, x, self.prior)
        q, v, a = (np.asarray(x, dtype=float) for x in (q, v, a))
        rigid = np.asarray(inverse_dynamics(self.rigid, q, v, a))
        if time is None:
            return np.asarray(rigid + self.friction(q, v, a, rigid))
        t = np.asarray(time, dtype=float)
        if t.ndim != 1 or not v.shape == a.shape == (len(t), self.prior.nv) or q.shape != (len(t), self.prior.nq):
            raise ShapeError(
                f"time has shape {t.shape} beside q {q.shape}, v {v.shape}, a {a.shape}; expected (N,) beside N rows of a motion."
            )
        if not np.all(np.diff(t) > 0):
            k = int(np.argmin(np.diff(t) > 0))
            raise CoadjointError(f"time must increase along a motion; row {k + 2} has {t[k + 1]:.9g} after {t[k]:.9g}.")
        sign = np.where(self._remembers, self._remembered(t, q, v, a), self.friction.shape.direction(v, a))
        return np.asarray(rigid + self.friction(q, v, a, rigid, sign))

    def _remembered(self, time: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        speed, acceleration = (np.sqrt(np.mean(x * x, axis=0)) for x in (self.data.v, self.data.a))
        return remembered(time, q, v, a, self.friction.shape, speed, acceleration, self.data.noise)

    @cached_property
    def _remembers(self) -> np.ndarray:
        """(nv,): whether dry friction at rest is what the motion before left, unless the log's rows at rest clearly tell otherwise.

        These were not fitted. Friction that a simulation made smooth in speed is zero there: with memory residuals are many times as large.
        """
        data, found = self.data, []
        for k in np.unique(data.stretch):
            rows = data.stretch == k
            q, v, a = data.q[rows], data.v[rows], data.a[rows]
            load = np.asarray(inverse_dynamics(self.rigid, q, v, a))
            more = self.friction(q, v, a, load, self._remembered(data.time[rows], q, v, a)) - self.friction(q, v, a, load)
            found.append(ratios(self.residuals[rows], self.residuals[rows] - more))
        return np.array([np.median([1.0, *(x for own in found for x in own[j])]) <= CLEAR for j in range(self.prior.nv)])

    @property
    def gains(self) -> np.ndarray:
        """(nv,): the joint force for a measured one: 1 / (1 + gain). Drives' gains are those that were assumed, times these."""
        return np.asarray(1.0 / (1.0 + self.friction.coefficients.get("gain", np.zeros(self.prior.nv))))

    # --- how well it fits

    @property
    def residuals(self) -> np.ndarray:
        """(N, nv): measured minus predicted forces at the prepared rows."""
        return np.asarray(self.data.tau - self.predicted)

    @property
    def rms(self) -> np.ndarray:
        """(nv,): root mean square of the residuals of the rows that were used."""
        return np.asarray(np.sqrt((self.residuals**2 * self.data.used).sum(0) / self.data.used.sum(0).clip(1)))

    @property
    def relative_error(self) -> float:
        """The norm of all residuals over that of all measured forces, at the rows that were used."""
        return float(np.linalg.norm(self.residuals * self.data.used) / np.linalg.norm(self.data.tau * self.data.used))

    # --- what is known

    @cached_property
    def base(self) -> Parameters:
        """The combinations of inertial parameters that the joint forces show, by name."""
        r = self.base_matrix.rank
        return self._numbers(
            self.base_matrix.combinations,
            self.base_matrix.matrix @ self.rigid.inertial_parameters,
            np.arange(r),
            self.base_matrix.matrix @ self.prior.inertial_parameters,
        )

    @cached_property
    def parameters(self) -> Parameters:
        """All inertial parameters, then friction, armature and offsets; the interval of what the motion does not show is infinite."""
        M, r = self.base_matrix.matrix, self.base_matrix.rank
        names = tuple(f"{link}.{number}" for link in self.prior.link_names for number in INERTIAL)
        place = np.full(len(names), -1)
        for row, pivot in enumerate(self.base_matrix.pivots):
            if np.count_nonzero(M[row]) == 1:
                place[pivot] = row
        index = {name: k for k, name in enumerate(self.prior.v_names)}
        values = [float(self.friction.coefficients[term][index[joint]]) for joint, term in self.unknowns]
        known = {"viscous": self.prior.damping, "coulomb": self.prior.friction, "armature": self.prior.armature}
        own = self._tree(np.arange(self.prior.nv))
        priors = [float(known[term][own[index[joint]]]) if term in known else 0.0 for joint, term in self.unknowns]
        return self._numbers(
            (*names, *(f"{joint}.{term}" for joint, term in self.unknowns)),
            np.concatenate([np.asarray(self.rigid.inertial_parameters), values]),
            np.concatenate([place, r + np.arange(len(values))]).astype(int),
            np.concatenate([np.asarray(self.prior.inertial_parameters), priors]),
        )

    def _numbers(self, names: tuple[str, ...], values: np.ndarray, place: np.ndarray, prior: np.ndarray) -> Parameters:
        lower, upper = np.full(len(names), -np.inf), np.full(len(names), np.inf)
        seen = place >= 0
        with np.errstate(invalid="ignore"):
            half = float(stdtrit(self.freedoms, 0.975)) * np.sqrt(np.diag(self.covariance))[place[seen]]
        middle = self.estimate[place[seen]]
        finite = np.isfinite(half)
        lower[np.flatnonzero(seen)[finite]] = (middle - half)[finite]
        upper[np.flatnonzero(seen)[finite]] = (middle + half)[finite]
        return Parameters(names, values, lower, upper, prior)

    @property
    def beside_rotors(self) -> tuple[str, ...]:
        """The base parameters that no motion can tell from the armatures that were fitted."""
        if self.prior.nv != self.prior.tree_nv:
            return ()
        M = self.base_matrix.matrix
        both = base_parameters(self.prior, drives=True)
        fitted = {f"{joint}.{term}" for joint, term in self.unknowns if term == "armature"}
        keep = [k for k, name in enumerate(both.names) if k < M.shape[1] or name in fitted]
        rows = np.concatenate([M, np.zeros((len(M), len(keep) - M.shape[1]))], axis=1)
        E = both.matrix[:, keep]
        rest = rows - np.linalg.lstsq(E.T, rows.T, rcond=None)[0].T @ E
        hidden = np.abs(rest).max(axis=1, initial=0.0) > 1e-8 * np.abs(rows).max(axis=1, initial=1.0)
        return tuple(name for name, x, p in zip(self.base.names, hidden, self.base, strict=True) if x and not p.is_visible)

    @property
    def advice(self) -> tuple[str, ...]:
        """Advice for the next recording: joints that hardly move or whose forces are hardly explained, uncertain combinations."""
        speed = np.sqrt(np.mean(self.data.v**2, axis=0))
        limit = np.where(np.isfinite(self.prior.velocity_limit), self.prior.velocity_limit, np.inf)
        found = []
        for k, name in enumerate(self.prior.v_names):
            size = float(np.sqrt((self.data.tau[:, k] ** 2).mean()))
            if speed[k] < 0.05 * min(speed.max() / 0.5, limit[k]):
                found.append(f"{name} hardly moves (rms {speed[k]:.2g}): move it as fast as the others")
            if size > 0 and self.rms[k] > 0.3 * size:
                found.append(f"{name}: the model explains little of its force: is its sensor or its column right?")
        wide = [
            p
            for p in self.base
            if p.is_visible and p.upper - p.lower > 2.0 * abs(p.prior) + 1e-3 and p.upper - p.lower > 1.0 * abs(p.value)
        ]
        unseen = [p.name for p in self.base if not p.is_visible]
        rotors = self.beside_rotors if unseen else ()
        unseen = [name for name in unseen if name not in rotors]
        if rotors:
            found.append(
                f"no motion tells {', '.join(rotors)} from the inertia of the rotor (armature), and none need: only their sum acts"
            )
        if unseen:
            found.append(
                f"the motion does not show {', '.join(unseen[:4])}{' …' if len(unseen) > 4 else ''}: move these joints together"
            )
        if wide:
            worst = sorted(wide, key=lambda p: p.lower - p.upper)[:4]
            found.append(f"badly known: {', '.join(p.name for p in worst)}; faster motion of these links would show them")
        return tuple(found) or ("every base parameter is known; record another, unlike motion to verify the model",)

    # --- words

    def report(self, path: str | Path) -> None:
        """Write an HTML page: measured and predicted forces, residuals, parameters beside the prior, what to record next."""
        from ..show.identification import write_report

        write_report(path, self)

    def __repr__(self) -> str:
        error = f"relative error {100 * self.relative_error:.2f} %"
        return f"<Identification of {self.prior.name!r}: {len(self.data)} rows, {error}>"

    def __str__(self) -> str:
        units = force_units(self.prior)
        names = self.prior.v_names
        lines = [
            f"{printable(self.prior.name)}: identified from {len(self.data)} rows, relative error {100 * self.relative_error:.2f} %",
            "",
        ]
        lines.append(f"{'joint':<20}{'rms residual':>14}{'rms measured':>14}       friction")
        size = np.sqrt((self.data.tau**2 * self.data.used).sum(0) / self.data.used.sum(0).clip(1))
        for k, name in enumerate(names):
            own = [f"{term} {x[k]:.3g}" for term, x in self.friction.coefficients.items() if x[k]]
            lines.append(f"{printable(name)[:19]:<20}{self.rms[k]:>14.4g}{size[k]:>14.4g} {units[k]:<5} {', '.join(own)}")
        others = [x for x, c in self.friction.coefficients.items() if x not in ("viscous", "coulomb", "armature") and np.any(c)]
        nearest, left = ([x for x in others if (x in BRAKING) == braking] for braking in (True, False))
        if others:
            lines.append("")
        if nearest:
            lines.append(f"{', '.join(nearest)}: fit.robot has the viscous and Coulomb friction nearest to it along the log")
        if left:
            lines.append(f"{', '.join(left)}: in fit.torque, not in fit.robot")
        hidden = sum(not p.is_visible for p in self.parameters)
        lines += [
            "",
            f"{self.base_matrix.rank} base parameters of {len(self.base_matrix.names)}; {hidden} numbers are not shown one by one",
        ]
        lines.append(f"{self.prior_kind} prior of weight {self.gamma:g}")
        if self.method != "auto":
            lines.append(f"estimated by {self.method.replace('_', ' ')}, then moved to possible bodies")
        if np.any(self.tilt):
            angle = np.degrees(np.linalg.norm(self.tilt) / np.linalg.norm(np.asarray(self.prior.gravity)))
            lines.append(
                f"the base is mounted askew by {angle:.2f}°: gravity is {np.array2string(np.asarray(self.rigid.gravity), precision=3)}"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])
