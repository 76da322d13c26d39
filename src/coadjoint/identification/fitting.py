"""From a robot and its log to a model: `identify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..arguments import a_robot, one_of, takes
from ..errors import CoadjointError
from ..motion.chunks import LogChunks
from ..robot.robot import Robot
from .bounds import bound_rows
from .consistency import consistent
from .equations import LOCAL, ROWS, SMOOTH, Equations, Structure, columns, equations, level, structure
from .estimators import METHODS, refined
from .friction import TERMS, Friction
from .instruments import instruments
from .model import GAMMAS, Choice, Fit, Fitter, choose_terms, offsets
from .preparation import Prepared, prepare
from .priors import Posterior, checked_prior
from .result import Identification
from .simulated import SIMULATED, by_simulation
from .statistics import correlation_sum, meat
from .streaming import Spool

FOLDS = 5
"""Blocks of rows that are held back one after the other."""


FREE = 0.1
"""A weight of the prior that hardly counts."""


@takes(robot=a_robot)
def identify(
    robot: Robot,
    log: Any,
    *,
    friction: str | Sequence[str] = "auto",
    prior: str | float = "auto",
    weight: float | None = None,
    bounds: Mapping[str, Any] | None = None,
    method: str = "auto",
    simulation: Mapping[str, Any] | None = None,
    gravity: str = "auto",
    cutoff: float | str | None = "auto",
    gains: Any = None,
    **reading: Any,
) -> Identification:
    """The model of a robot that its log shows: inertias of possible bodies, friction, rotors' inertias, offsets, the mounting's tilt.

    `log`: what `read_log` reads (a path, a mapping with time (N,), q, tau (N, nv) and perhaps v and a, a data frame), or a list of logs, or
    `LogChunks`, a log in parts that need not fit into memory.
    `friction`: terms of `identification.friction.TERMS` for all joints, or "auto": those that held-back stretches ask for, joint by joint.
    `prior`: "entropic", "riemannian" or "euclidean"; its weight γ is `weight`, or the one that evidence or held-back stretches choose. A
    number is the weight of the entropic one. `bounds`: masses, boxes, ellipsoids (`identification.bounds`). `method`: "auto", the maximum
    posterior; or "ordinary", "weighted", "reweighted", "maximum_likelihood", "instrumental_variables", "output_error",
    "inverse_output_error", whose estimates are then moved to the nearest possible robot; `simulation` has what the last three simulate
    with (reference, kp, kd, …).
    `gravity`: "fixed", "tilted" (two angles), or "auto".
    `cutoff`: Hz of the zero-phase low-pass, None for no filter. `gains` (nv,): factors of the log's tau, which are then currents.
    """
    kind, given = checked_prior(prior, weight)
    one_of("auto", *METHODS, *SIMULATED)(method, "method")
    within = bound_rows(robot, bounds)
    stream = None
    if isinstance(log, LogChunks):
        one_of("auto", *METHODS[:-1])(method, "method of a log in parts")
        stream = Spool(robot, log, cutoff, _factors(robot, gains))
        data = stream.sample
    else:
        log = _scaled(robot, log, gains, reading)
        data = prepare(robot, log, cutoff, **reading)
    notes = list(data.notes)
    start, moved = consistent(robot.inertias, robot.link_names)
    notes += moved
    start = _with_masses(start, robot, notes)
    allowed, forced = _terms(friction)
    tilted = gravity != "fixed" and bool(np.any(robot.gravity)) and _is_fixed(robot)
    s = structure(robot, data.v, tilted)
    folds = _folds(data)
    eq = equations(s, data, start.reshape(-1), folds)
    choice, fit, fitter, eq, table = _model(
        s, eq, data, start, folds, allowed, forced, gravity, given if kind == "entropic" else None
    )
    s = eq.structure
    notes += _doubts(robot, data, fitter, choice, fit)
    posterior = Posterior(fitter, choice, kind, *within)
    if stream is not None:
        eq = stream.equations(s, fit.inertial, FOLDS)
    if method == "auto" and (kind != "entropic" or len(within[1]) or stream is not None):
        fit = posterior.solve(eq, fit, fit.gamma if given is None and kind == "entropic" else given)
    own = None
    if method in METHODS:
        moving = instruments(robot, log, cutoff, simulation, **reading) if method == "instrumental_variables" else None
        blocks = None if stream is None else stream.blocks
        fit, own = refined(posterior, eq, data, fit, method, given, moving, lambda f: _robot(s, fitter, choice, f), blocks)
    elif stream is not None:
        own = refined(posterior, eq, data, fit, "weighted", given, None, lambda f: _robot(s, fitter, choice, f), stream.blocks)[1]
    found = _result(robot, data, s, eq, fitter, choice, fit, table, notes, start, own)
    found = replace(found, prior_kind=kind, method=method)
    if stream is not None:
        return stream.told(found)
    return found if method not in SIMULATED else by_simulation(found, log, method, simulation, **reading)


def _scaled(robot: Robot, log: Any, gains: Any, reading: dict[str, Any]) -> Any:
    """Logs whose tau is multiplied by drive gains."""
    if gains is None:
        return log
    from ..motion.logs import read_log

    factor = _factors(robot, gains)
    logs = log if isinstance(log, list | tuple) else [log]
    read = [read_log(x, robot, **reading) for x in logs]
    reading.clear()
    return [replace(x, tau=None if x.tau is None else x.tau * factor) for x in read]


def _factors(robot: Robot, gains: Any) -> np.ndarray | None:
    """(nv,), checked."""
    if gains is None:
        return None
    factor = np.asarray(gains, dtype=float)
    if factor.shape != (robot.nv,) or not np.all(np.isfinite(factor)) or not np.all(factor):
        raise CoadjointError(f"gains is {gains!r}; expected {robot.nv} numbers, the force of each joint for a current of one.")
    return factor


def _terms(friction: str | Sequence[str]) -> tuple[tuple[str, ...], bool]:
    if friction == "auto":
        return tuple(name for name in TERMS if name != "asymmetry"), False
    names = (friction,) if isinstance(friction, str) else tuple(friction)
    for name in names:
        if name not in TERMS:
            raise CoadjointError(f"friction has {name!r}; choose among {', '.join(TERMS)}, or 'auto'.")
    return names, True


def _is_fixed(robot: Robot) -> bool:
    return all(kind.group is None or len(kind.group) < 6 for kind in robot.kinds)


def _with_masses(start: np.ndarray, robot: Robot, notes: list[str]) -> np.ndarray:
    """The prior with a speck in the place of links without mass, so that every link is a possible body."""
    empty = start[:, 0] <= 0
    if not empty.any():
        return start
    if empty.all():
        raise CoadjointError(f"robot {robot.name!r} has no link with mass; give approximate masses, from which the fit can start.")
    size = 1e-6 * start[~empty, 0].mean()
    radius = 1e-2
    out = start.copy()
    out[empty] = [size, 0, 0, 0, size * radius**2, 0, 0, size * radius**2, 0, size * radius**2]
    names = ", ".join(name for name, x in zip(robot.link_names, empty, strict=True) if x)
    notes.append(f"links without mass stay all but massless: {names}")
    return out


def _folds(data: Prepared) -> np.ndarray:
    """The block of every row: stretches of time, of about equal length."""
    return np.minimum(np.arange(len(data)) * FOLDS // len(data), FOLDS - 1)


def _model(
    s: Structure,
    eq: Equations,
    data: Prepared,
    start: np.ndarray,
    folds: np.ndarray,
    allowed: tuple[str, ...],
    forced: bool,
    gravity: str,
    gamma: float | None,
) -> tuple[Choice, Fit, Fitter, Equations, list[dict[str, object]]]:
    """The chosen model and its fit."""
    n = len(s.widths[0])
    table: list[dict[str, object]] = []
    basic = tuple(x for x in ("offset", "viscous", "coulomb") if x in allowed)
    rich = Choice((tuple(LOCAL.index((name, int(name not in SMOOTH))) for name in (allowed if forced else basic)),) * n)
    fitter = Fitter(s, start, np.full(n, 1.0))
    fit = fitter.solve(
        eq.total(), rich, FREE, None, rounds=5
    )  # residuals of a model that is stiffer than the data are correlated by that
    fitter = Fitter(s, start, _correlations(s, data, fitter, rich, fit, start))
    choice = rich
    if not forced:
        choice = choose_terms(fitter, eq, offsets(n), fit, allowed, table)
    fit = fitter.solve(eq.total(), choice, 3.0, fit, rounds=4)
    if len(s.horizontal):
        turned = replace(choice, tilt=True)
        other = fitter.solve(eq.total(), turned, 3.0, fit, rounds=8)
        gain = (
            _likelihood(fitter, eq, other)
            - _likelihood(fitter, eq, fit)
            - 0.5 * float(other.tilt @ other.tilt) / np.radians(1.0) ** 2
        )
        if gravity == "tilted" or gain > 10.0:
            if gravity != "tilted" and not forced:  # what the tilt explains, friction need not
                table.clear()
                choice = replace(choose_terms(fitter, eq, offsets(n), other, allowed, table), tilt=True)
                other = fitter.solve(eq.total(), choice, 3.0, other, rounds=8)
            choice, fit = replace(choice, tilt=True), other
            table.append({"joint": "base", "term": "tilt", "width": float("nan"), "gain": float(gain)})
    if len(s.horizontal) and not choice.tilt:
        s = structure(s.robot, data.v, False)
        eq, fitter = level(eq, s), Fitter(s, start, fitter.correlation)
        fit = fitter.solve(eq.total(), choice, 3.0, replace(fit, tilt=np.zeros(0)))
    if any(LOCAL[k][0] == "load" for own in choice.local for k in own):
        inertial = fitter.K(choice) @ fit.x
        eq = equations(s, data, inertial, folds)
        fit = fitter.solve(eq.total(), choice, 3.0, fit)
    free = Fitter(s, start, np.full(n, 1.0))
    loose = free.solve(eq.total(), choice, FREE, fit)
    fitter = Fitter(s, start, _correlations(s, data, free, choice, loose, start))
    best = _by_evidence(fitter, eq, choice, loose) if gamma is None else fitter.solve(eq.total(), choice, gamma, loose)
    return choice, best, fitter, eq, table


def _likelihood(fitter: Fitter, eq: Equations, fit: Fit) -> float:
    return float(-0.5 * (eq.count.sum(0) / fitter.correlation * np.log(fit.variance)).sum())


def _by_evidence(fitter: Fitter, eq: Equations, choice: Choice, fit: Fit) -> Fit:
    """The fit with the weight of the prior that has most evidence."""
    sums, found = eq.total(), []
    for gamma in GAMMAS:
        fit = fitter.solve(sums, choice, gamma, fit, rounds=3)
        found.append((fitter.evidence(sums, choice, fit, fit.variance) + _normalisation(fitter, eq, fit), fit))
    best = max(found, key=lambda x: x[0])[1]
    return fitter.solve(sums, choice, best.gamma, best)


def _normalisation(fitter: Fitter, eq: Equations, fit: Fit) -> float:
    """What the log-likelihood has beside its quadratic: -½ Σ (N log σ² + Σ τ²/σ²) / c."""
    return float(-0.5 * ((eq.count.sum(0) * np.log(fit.variance) + eq.yy.sum(0) / fit.variance) / fitter.correlation).sum())


def _correlations(s: Structure, data: Prepared, fitter: Fitter, choice: Choice, fit: Fit, start: np.ndarray) -> np.ndarray:
    """The sum of the autocorrelations of residuals, its geometric mean over the joints for all (nv,): joints are weighed by variance alone.

    A joint whose residual changes slowly, as that of a light wrist does, would else count for little, and take up what others leave.
    """
    e = _residuals(s, data, fitter, choice, fit)
    each = [correlation_sum(e[data.used[:, j], j], data.stretch[data.used[:, j]]) for j in range(e.shape[1])]
    return np.full(len(each), np.exp(np.mean(np.log(each))))


def _residuals(s: Structure, data: Prepared, fitter: Fitter, choice: Choice, fit: Fit) -> np.ndarray:
    """(N, nv), a few rows at once."""
    inertial = fitter.K(choice) @ fit.x
    full = np.zeros((len(data.tau[0]), s.size))
    full[:, : s.rank] = fit.x[: s.rank]
    for d, t in enumerate(fit.tilt):
        full[:, (d + 1) * s.rank : (d + 2) * s.rank] = t * fit.x[: s.rank]
    for value, (j, number) in zip(fit.x[len(fitter.start) :], choice.unknowns, strict=False):
        full[j, s.blocks * s.rank + number] = value
    out = np.empty_like(data.tau)
    for start in range(0, len(data), ROWS):
        k = slice(start, start + ROWS)
        out[k] = data.tau[k] - np.einsum("njp,jp->nj", columns(s, data.q[k], data.v[k], data.a[k], inertial), full)
    return out


def _robot(s: Structure, fitter: Fitter, choice: Choice, fit: Fit) -> tuple[Robot, Friction]:
    """The robot of a fit, without its friction, and the friction."""
    phi = (fitter.K(choice) @ fit.x).reshape(-1, 10)
    gravity = np.asarray(s.robot.gravity, dtype=float) + fit.tilt @ s.horizontal
    n = len(s.widths[0])
    found = {name: np.zeros(n) for name in TERMS}
    widths = s.widths[1].copy()
    p = len(fitter.start)
    for value, (j, number) in zip(fit.x[p:], choice.unknowns, strict=False):
        name, k = LOCAL[number]
        found[name][j] = value
        if name not in SMOOTH:
            widths[j] = s.widths[k, j]
    friction = Friction(tuple(s.robot.v_names), widths, {name: x for name, x in found.items() if x.any()})
    return s.robot.with_numbers(inertias=phi, gravity=gravity), friction


def _doubts(robot: Robot, data: Prepared, fitter: Fitter, choice: Choice, fit: Fit) -> list[str]:
    """Joints whose forces look like those of another joint, or of the opposite sign."""
    from ..dynamics import inverse_dynamics

    expected = np.asarray(inverse_dynamics(robot, data.q, data.v, data.a))
    x, y = expected - expected.mean(0), data.tau - data.tau.mean(0)

    def norm(z: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt((z * z).sum(0)))

    strong = norm(expected) > 0.05 * norm(expected).max()
    names, notes = robot.v_names, []
    error = np.array([[norm(a - b) for b in y.T] for a in x.T]) / norm(x).clip(1e-300)[:, None]
    for j in np.flatnonzero(strong & (norm(x) > 0)):
        if norm(x[:, j] + y[:, j]) < 0.5 * norm(x[:, j] - y[:, j]) and norm(x[:, j] - y[:, j]) > norm(x[:, j]):
            notes.append(f"{names[j]}: the measured force has the opposite sign of the expected one: is its sign wrong?")
        for k in range(j):
            if error[j, k] + error[k, j] < 0.5 * (error[j, j] + error[k, k]) and max(error[j, k], error[k, j]) < 0.7:
                notes.append(
                    f"{names[k]} and {names[j]}: each one's force is like the one expected of the other: are they swapped?"
                )
    return notes


def _result(
    robot: Robot,
    data: Prepared,
    s: Structure,
    eq: Equations,
    fitter: Fitter,
    choice: Choice,
    fit: Fit,
    table: list[dict[str, object]],
    notes: list[str],
    start: np.ndarray,
    own: tuple[np.ndarray, np.ndarray] | None = None,
) -> Identification:
    """The identification of a fit; `own`: estimate and covariance by the data alone, if they are not those of weighted least squares."""
    rigid, friction = _robot(s, fitter, choice, fit)
    estimate, covariance = _data_alone(s, data, eq, fitter, choice, fit) if own is None else own
    return Identification(
        prior=robot,
        start=start,
        rigid=rigid.consolidated(),
        friction=friction,
        data=data,
        base_matrix=s.base,
        gamma=fit.gamma,
        tilt=fit.tilt @ s.horizontal,
        estimate=estimate,
        covariance=covariance,
        unknowns=tuple((robot.v_names[j], LOCAL[k][0]) for j, k in choice.unknowns),
        correlation=fitter.correlation,
        predicted=data.tau - _residuals(s, data, fitter, choice, fit),
        choices=tuple(table),
        notes=tuple(dict.fromkeys(notes)),
    )


def _data_alone(
    s: Structure, data: Prepared, eq: Equations, fitter: Fitter, choice: Choice, fit: Fit
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate and covariance of base parameters and friction (and of the tilt, last) by the data without any prior.

    Weighted least squares; the covariance knows the autocorrelation of the residuals. What the motion does not show has infinite variance.
    """
    r, hidden = s.rank, fitter.hidden
    x = fit.x.copy()
    if choice.tilt:
        x[-2:] = 0.0
    made = fitter.assemble(eq.total(), choice, fit.tilt, x[:r])
    n = fitter.size(choice)
    A, b = np.zeros((n, n)), np.zeros(n)
    for j, (index, G, c) in enumerate(made):
        A[np.ix_(index, index)] += G / fit.variance[j]
        b[index] += c / fit.variance[j]
    keep = np.r_[0:r, r + hidden : n]
    A, b = A[np.ix_(keep, keep)], b[keep]
    scale = 1.0 / np.sqrt(np.diag(A).clip(1e-300))
    scale[np.diag(A) <= 0] = 0.0
    values, vectors = np.linalg.eigh(A * scale[:, None] * scale)
    seen = values > 1e-10 * max(values[-1], 1e-300)
    V = scale[:, None] * vectors[:, seen] / np.sqrt(values[seen])
    start = x[keep]
    estimate = start + V @ (V.T @ (b - A @ start))
    middle = _meat(s, data, fitter, choice, fit, estimate, keep)
    covariance = V @ (V.T @ middle @ V) @ V.T
    unseen = vectors[:, ~seen]
    lost = (unseen**2).sum(1) > 1e-8
    covariance[lost, lost] = np.inf
    covariance[scale == 0, scale == 0] = np.inf
    return estimate, covariance


def _meat(
    s: Structure, data: Prepared, fitter: Fitter, choice: Choice, fit: Fit, estimate: np.ndarray, keep: np.ndarray
) -> np.ndarray:
    """The covariance of Xᵀ W e."""
    r, unknowns = s.rank, choice.unknowns
    inertial = fitter.K(choice) @ fit.x
    X = columns(s, data.q, data.v, data.a, inertial)
    out = np.zeros((len(keep), len(keep)))
    for j in range(X.shape[1]):
        use = data.used[:, j]
        Xj = X[use, j]
        base = Xj[:, :r] + sum(t * Xj[:, (d + 1) * r : (d + 2) * r] for d, t in enumerate(fit.tilt))
        own = [k for k, (i, _) in enumerate(unknowns) if i == j]
        parts = [base, Xj[:, [s.blocks * r + unknowns[k][1] for k in own]]]
        index = [*range(r), *(r + k for k in own)]
        if choice.tilt:
            parts += [(Xj[:, (d + 1) * r : (d + 2) * r] @ fit.x[:r])[:, None] for d in range(2)]
            index += [r + len(unknowns), r + len(unknowns) + 1]
        Z = np.concatenate(parts, axis=1)
        residual = data.tau[use, j] - Z @ estimate[index]
        order = int(np.clip(len(residual) // 50, 1, 24))
        correction = len(residual) / max(len(residual) - len(estimate) / X.shape[1], 1.0)
        out[np.ix_(index, index)] += correction * meat(Z, residual, data.stretch[use], order) / fit.variance[j] ** 2
    return out
