"""Elastic joints with encoders at the motor and at the link: stiffness, damping, rotors, friction of the motors, and the links' inertias.

With θ the position of a rotor and τ the motor's force, both as seen behind the gear, and q that of the link (Spong 1987):

    B θ̈ + f(θ̇) + K (θ - q) + D (θ̇ - q̇) = τ            M(q) q̈ + h(q, q̇) + friction = K (θ - q) + D (θ̇ - q̇)

The first is linear in B, f, K and D, joint by joint. The right side of the second is then known: a log of the links, which `identify` fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from ..arguments import a_robot, names, takes
from ..arrays import Array
from ..blas import on_one_thread
from ..dynamics import forward_dynamics
from ..errors import CoadjointError, ShapeError
from ..motion.logs import Log, read_log
from ..robot.robot import Robot
from ..words import printable, short
from .fitting import identify
from .preparation import CUTOFF, Prepared, is_rough, prepare
from .result import Identification, Parameters
from .statistics import meat

Z95 = 1.959963984540054
TERMS = ("inertia", "viscous", "coulomb", "offset", "stiffness", "damping")
"""Numbers of a joint's drive; all but the offset are not negative."""
WIDTH = 0.03
"""The speed within which dry friction is smooth, relative to the root-mean-square speed of the motor."""


@dataclass(frozen=True, eq=False, repr=False)
class ElasticJoints:
    """Drives with elastic joints, and the robot beyond them; prints as a table."""

    link: Identification
    """The links' side: inertias and friction beyond the springs."""
    numbers: dict[str, np.ndarray]
    """(nv,) by term: inertia (of the rotor), viscous, coulomb, offset (of the motor), stiffness, damping (of the joint)."""
    parameters: Parameters
    """The parameters with 95 % intervals, infinite for what the motion does not show."""
    widths: np.ndarray
    rms: np.ndarray
    """(nv,): of the motors' forces that are not explained."""

    @property
    def robot(self) -> Robot:
        """The links' robot, without the drives."""
        return self.link.robot

    @property
    def stiffness(self) -> np.ndarray:
        return self.numbers["stiffness"]

    @property
    def damping(self) -> np.ndarray:
        return self.numbers["damping"]

    @property
    def inertia(self) -> np.ndarray:
        """The inertias of the rotors (nv,)."""
        return self.numbers["inertia"]

    def joint_force(self, q: Array, v: Array, theta: Array, omega: Array) -> np.ndarray:
        """K (θ - q) + D (θ̇ - q̇) (..., nv), which the springs exert on the links."""
        return np.asarray(self.stiffness * (np.asarray(theta) - q) + self.damping * (np.asarray(omega) - v))

    def motor_force(self, q: Array, v: Array, theta: Array, omega: Array, alpha: Array) -> np.ndarray:
        """The motors' forces (..., nv) that a motion of links and rotors needs."""
        own = self.inertia * np.asarray(alpha) + self._friction(np.asarray(omega))
        return np.asarray(self.joint_force(q, v, theta, omega) + own)

    def accelerations(self, q: Array, v: Array, theta: Array, omega: Array, tau: Array) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations (..., nv) of links and rotors under motors' forces."""
        force = self.joint_force(q, v, theta, omega)
        zero = np.zeros(np.shape(force))
        friction = self.link.friction(np.asarray(q, dtype=float), np.asarray(v, dtype=float), zero, force)
        a = np.asarray(forward_dynamics(self._with_armature, q, v, force - friction))
        return a, (np.asarray(tau) - force - self._friction(np.asarray(omega))) / self.inertia

    @property
    def _with_armature(self) -> Robot:
        armature = self.link.friction.coefficients.get("armature", np.zeros(self.link.rigid.nv))
        return self.link.rigid.with_numbers(armature=armature).consolidated()

    def _friction(self, omega: np.ndarray) -> np.ndarray:
        own = self.numbers
        return np.asarray(own["viscous"] * omega + own["coulomb"] * np.tanh(omega / self.widths) + own["offset"])

    def __repr__(self) -> str:
        return f"<ElasticJoints of {self.link.prior.name!r}: stiffness {np.array2string(self.stiffness, precision=4)}>"

    def __str__(self) -> str:
        width = [12] * len(TERMS)
        lines = [f"{'joint':<20}" + "".join(f"{name:>{w}}" for name, w in zip(TERMS, width, strict=True)) + f"{'rms':>12}"]
        for k, joint in enumerate(self.link.prior.v_names):
            lines.append(
                f"{printable(joint)[:19]:<20}"
                + "".join(f"{self.numbers[name][k]:>12.4g}" for name in TERMS)
                + f"{self.rms[k]:>12.4g}"
            )
        return "\n".join(["drives and elastic joints", *lines, "", "links", str(self.link)])


@takes(robot=a_robot, friction=names)
@on_one_thread
def elastic_joints(
    robot: Robot,
    log: Any,
    *,
    motor: Sequence[str] = ("theta", "omega", "alpha"),
    friction: Sequence[str] = ("viscous", "coulomb", "offset"),
    cutoff: float | str | None = "auto",
    columns: Any = None,
    units: Any = None,
    **options: Any,
) -> ElasticJoints:
    """Stiffness and damping of joints, inertia and friction of motors, and the links' model, from a log with motor and link positions.

    The log has time, q (links), tau (motors, behind the gear), and theta1 … (motors, behind the gear, in the links' units); perhaps v, a
    and omega, alpha, the velocities and accelerations of the motors. `motor` names these three columns where they are called otherwise;
    `friction` has the motors' terms; `options` are those of `identify` for the links.
    """
    friction = [friction] if isinstance(friction, str) else list(friction)
    if strange := [x for x in friction if x not in ("viscous", "coulomb", "offset")]:
        raise CoadjointError(f"friction has {short(strange[0])}; choose among 'viscous', 'coulomb', 'offset'.")
    if robot.nq != robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has joints of several coordinates; elastic joints have one each.")
    read = read_log(log, robot, columns, units=units)
    link, rotor = _both_sides(robot, read, tuple(motor), cutoff)
    used = [name for name in TERMS if name in ("inertia", "stiffness", "damping", *friction)]
    widths = WIDTH * np.sqrt(np.mean(rotor.v**2, axis=0))
    widths = np.where(widths > 0, widths, 1.0)
    n = robot.nv
    values, deviations, rms = np.zeros((n, len(TERMS))), np.full((n, len(TERMS)), np.inf), np.zeros(n)
    place = [TERMS.index(name) for name in used]
    for j in range(n):
        X = np.stack([_column(name, link, rotor, j, widths[j]) for name in used], axis=1)
        rows = rotor.used[:, j] & link.used[:, j]
        x, deviation, rms[j] = _fitted(X[rows], link.tau[rows, j], link.stretch[rows], [name != "offset" for name in used])
        values[j, place], deviations[j, place] = x, deviation
    found = {name: values[:, k] for k, name in enumerate(TERMS)}
    _check(robot, found, deviations)
    force = found["stiffness"] * (rotor.q - link.q) + found["damping"] * (rotor.v - link.v)
    own = {"time": link.time, "q": link.q, "v": link.v, "a": link.a, "tau": force}
    fit = identify(robot, own, cutoff=None, **options)
    labels = tuple(f"{joint}.{name}" for joint in robot.v_names for name in TERMS)
    flat, half = values.reshape(-1), Z95 * deviations.reshape(-1)
    table = Parameters(labels, flat, flat - half, flat + half, np.full(len(flat), np.nan))
    return ElasticJoints(fit, found, table, widths, rms)


def _both_sides(robot: Robot, log: Log, motor: tuple[str, ...], cutoff: float | str | None) -> tuple[Prepared, Prepared]:
    """Links and rotors, made ready alike, at the same rows."""
    if len(motor) != 3:
        raise CoadjointError(f"motor is {short(motor)}; expected the names of the motors' positions, velocities and accelerations.")
    position, velocity, acceleration = (log.extra.get(name, log.extra.get(f"{name}1")) for name in motor)
    if position is None:
        has = ", ".join(log.extra) or "none"
        raise CoadjointError(
            f"{log.source or 'the log'}: there are no motor positions {motor[0]}1 …; motor=(…) names them. Other columns: {has}."
        )
    sides = []
    for name, x in zip(motor, (position, velocity, acceleration), strict=True):
        if x is not None and x.reshape(len(log), -1).shape[1] != robot.nv:
            raise ShapeError(f"{log.source or 'the log'}: {name} has shape {x.shape}; expected ({len(log)}, {robot.nv}).")
        if x is not None and not np.isfinite(x).all():
            raise CoadjointError(f"{log.source or 'the log'}: {name} has a number that is not finite.")
        sides.append(None if x is None else x.reshape(len(log), -1))
    assert sides[0] is not None
    turned = replace(log, q=sides[0], v=sides[1], a=sides[2], extra={})
    whole = all(x.v is not None and x.a is not None for x in (log, turned))
    if cutoff == "auto":
        frequency = min(CUTOFF, 0.2 * log.rate)
        cutoff = None if whole and not (is_rough(log, frequency) or is_rough(turned, frequency)) else frequency
    link, rotor = (prepare(robot, x, cutoff) for x in (log, turned))
    _, here, there = np.intersect1d(link.time, rotor.time, assume_unique=True, return_indices=True)
    return _rows(link, here), _rows(rotor, there)


def _rows(data: Prepared, keep: np.ndarray) -> Prepared:
    own: dict[str, Any] = {name: getattr(data, name)[keep] for name in ("time", "q", "v", "a", "tau", "used", "stretch", "known")}
    return replace(data, **own)


def _column(name: str, link: Prepared, rotor: Prepared, j: int, width: float) -> np.ndarray:
    if name == "stiffness":
        return np.asarray(rotor.q[:, j] - link.q[:, j])
    if name == "damping":
        return np.asarray(rotor.v[:, j] - link.v[:, j])
    own = {
        "inertia": rotor.a[:, j],
        "viscous": rotor.v[:, j],
        "coulomb": np.tanh(rotor.v[:, j] / width),
        "offset": np.ones(len(rotor)),
    }
    return np.asarray(own[name])


def _fitted(X: np.ndarray, y: np.ndarray, stretch: np.ndarray, positive: list[bool]) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients, their standard deviations (infinite for what is not shown), and the root mean square of what is left."""
    size = np.sqrt((X**2).sum(0))
    scale = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
    Z = X * scale
    x = np.linalg.lstsq(Z, y, rcond=1e-12)[0]
    if np.any(x[positive] < 0):
        x = lsq_linear(Z, y, (np.where(positive, 0.0, -np.inf), np.inf), tol=1e-14).x
    x = x + np.linalg.lstsq(Z, y - Z @ x, rcond=1e-12)[0] * bool(np.all(x[positive] > 0))  # rounding
    e = y - Z @ x
    order = int(np.clip(len(e) // 50, 1, 24))
    inverse = np.linalg.pinv(Z.T @ Z, rcond=1e-13, hermitian=True)
    U, values, _ = np.linalg.svd(Z, full_matrices=False)
    covariance = inverse @ meat(Z, e, stretch, order, U[:, values > 1e-12 * values[0]]) @ inverse
    hidden = np.eye(len(x)) - np.linalg.pinv(Z, rcond=1e-10) @ Z
    lost = (np.diag(hidden) > 1e-6) | (size == 0)
    deviation = np.where(lost, np.inf, np.sqrt(np.diag(covariance).clip(0)) * scale)
    return x * scale, deviation, float(np.sqrt(np.mean(e**2)))


def _check(robot: Robot, found: dict[str, np.ndarray], deviations: np.ndarray) -> None:
    for j, joint in enumerate(robot.v_names):
        if not found["stiffness"][j] > 0 or not np.isfinite(deviations[j, TERMS.index("stiffness")]):
            raise CoadjointError(
                f"joint {joint!r}: motor and link positions show no spring between them (stiffness {found['stiffness'][j]:.3g}): is "
                "theta behind the gear, in the links' unit and with their sign and zero, and does the joint carry a force that changes?"
            )
