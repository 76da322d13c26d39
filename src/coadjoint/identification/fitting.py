"""From a robot and its log to a model: `identify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..arguments import a_robot, one_of, takes
from ..errors import CoadjointError
from ..motion.chunks import LogChunks
from ..motion.logs import read_log
from ..robot.robot import Robot
from .bounds import bound_rows
from .choosing import ENOUGH, Judge, choose_terms
from .consistency import consistent
from .equations import GAIN, Equations, Rows, Structure, equations, level, structure
from .estimators import METHODS, refined
from .friction import TERMS, Friction
from .instruments import instruments
from .model import GAMMAS, Choice, Fit, Fitter, spreads
from .preparation import Prepared, driven, prepare
from .priors import Posterior, checked_prior
from .result import Choices, Identification
from .reversals import reversals, usual
from .simulated import SIMULATED, by_simulation
from .statistics import correlation_sum, meat
from .streaming import Spool

FOLDS = 5
"""Blocks of rows that are held back one after the other."""


DECIDED = 10.0
"""The loss of log evidence after which larger weights are not tried."""
RICH = ("offset", "viscous", "armature", "coulomb", "load", "spring")
"""Terms of the first fit, whose residuals are taken as noise."""
ANY = 1.0
"""The standard deviation of gains that payloads show."""
POOR = 0.3
"""A relative error that is told."""
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
    payloads: Sequence[Mapping[str, Any] | None] | None = None,
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
    `cutoff`: Hz of the zero-phase low-pass, None for no filter. `gains` (nv,): factors of the log's tau, which are then currents; a log
    without tau may have them as i1 … or current_0 ….
    `payloads`: what the robot carried in each log, None or arguments of `Robot.with_payload` (frame, mass, com, inertia): the gains of all
    joints are then identified too (`fit.gains`), since the forces of the payload are known.
    """
    kind, given = checked_prior(prior, weight)
    one_of("auto", *METHODS, *SIMULATED)(method, "method")
    within = bound_rows(robot, bounds)
    stream = None
    if isinstance(log, LogChunks):
        if payloads is not None:
            raise CoadjointError("payloads are of logs that are in memory; a log in parts has none.")
        one_of("auto", *METHODS[:-1])(method, "method of a log in parts")
        stream = Spool(robot, log, cutoff, _factors(robot, gains))
        data = stream.sample
    else:
        log = _scaled(robot, log, gains, reading)
        data = prepare(robot, log, cutoff, payloads=payloads, **reading)
    notes = list(data.notes)
    start, moved = consistent(robot.inertias, robot.link_names)
    notes += moved
    start = _with_masses(start, robot, notes)
    allowed, forced = _terms(friction)
    tilted = gravity != "fixed" and bool(np.any(robot.gravity)) and _is_fixed(robot)
    rows = Rows(structure(robot, usual(data.v), tilted), data)
    folds = _folds(data)
    _reverse(rows, start, folds)
    choice, fit, fitter, eq, rows, table = _model(
        rows, start, folds, allowed, forced, gravity, given if kind == "entropic" else None, payloads is not None
    )
    s = eq.structure
    notes += _doubts(robot, data)
    posterior = Posterior(fitter, choice, kind, *within)
    if stream is not None:
        eq = stream.equations(s, fit.x[: s.rank], FOLDS)
    if method == "auto" and (kind != "entropic" or len(within[1]) or stream is not None):
        fit = posterior.solve(eq, fit, fit.gamma if given is None and kind == "entropic" else given)
    own = None
    if method in METHODS:
        moving = instruments(robot, log, cutoff, simulation, **reading) if method == "instrumental_variables" else None
        blocks = None if stream is None else stream.blocks
        fit, own = refined(posterior, eq, data, fit, method, given, moving, lambda f: _robot(s, f), blocks)
    elif stream is not None:
        own = refined(posterior, eq, data, fit, "weighted", given, None, lambda f: _robot(s, f), stream.blocks)[1]
    found = _result(robot, rows, eq, fitter, choice, fit, table, notes, start, own)
    found = replace(found, prior_kind=kind, method=method, notes=(*found.notes, *_poor(found)))
    if stream is not None:
        return stream.told(found)
    return found if method not in SIMULATED else by_simulation(found, log, method, simulation, **reading)


def _reverse(rows: Rows, start: np.ndarray, folds: np.ndarray) -> None:
    """How dry friction reverses, by the data."""
    s, r = rows.structure, rows.structure.rank
    Y = np.concatenate([rows.base(k)[..., :r] for k in rows])
    s.shape = reversals(rows.data, Y, Y @ (s.base.matrix @ start.reshape(-1)), folds)


def _scaled(robot: Robot, log: Any, gains: Any, reading: dict[str, Any]) -> Any:
    """Logs whose tau is multiplied by drive gains."""
    if gains is None:
        return log
    factor = _factors(robot, gains)
    logs = log if isinstance(log, list | tuple) else [log]
    read = [read_log(x, robot, **reading) for x in logs]
    reading.clear()
    return [driven(robot, x, factor) for x in read]


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
    rows: Rows,
    start: np.ndarray,
    folds: np.ndarray,
    allowed: tuple[str, ...],
    forced: bool,
    gravity: str,
    gamma: float | None,
    gained: bool,
) -> tuple[Choice, Fit, Fitter, Equations, Rows, list[dict[str, object]]]:
    """The chosen model and its fit."""
    s, n = rows.structure, rows.data.tau.shape[1]
    table: list[dict[str, object]] = []
    eq = equations(rows, s.base.matrix @ start.reshape(-1), folds)
    sums = eq.total()
    spread = spreads(np.sqrt(sums[2] / sums[3].clip(1)), *([ANY] if gained else []))
    names = allowed if forced else tuple(x for x in RICH if x in allowed)
    names = (*names, "gain") if gained and "gain" not in names else names
    choice = Choice((tuple(TERMS.index(name) for name in names),) * n)
    fitter = Fitter(s, start, np.ones(n), spread)
    # residuals of a model that is stiffer than the data would be correlated by that
    fit = fitter.solve(sums, choice, FREE, None, rounds=5)
    fits = [(choice, fit)]
    if len(s.horizontal):
        turned = replace(choice, tilt=True)
        fits.append((turned, fitter.solve(sums, turned, FREE, fit, rounds=5)))
    fitter = Fitter(s, start, _correlations(rows, fitter, *fits[-1]), spread)
    judges = [(Judge(fitter, eq, fit), choice.tilt) for choice, fit in fits]
    judges = judges[-1:] if gravity == "tilted" else judges
    values = [float(judge(replace(choice, tilt=tilt))[0].sum()) for judge, tilt in judges]
    asked = -1 if values[-1] > values[0] + ENOUGH else 0
    judge, tilt = judges[asked]
    choice = replace(choice, tilt=tilt)
    if not forced:
        choice, table = choose_terms(judge, allowed, tilt)
    if gained:
        choice = replace(choice, local=tuple(own if GAIN in own else (*own, GAIN) for own in choice.local))
    if tilt:
        table.append({"joint": "base", "term": "tilt", "gain": values[-1] - values[0]})
    fit = judge.fit
    if len(s.horizontal) and not choice.tilt:
        s = structure(s.robot, s.shape, False)
        eq, rows, fitter = level(eq, s), rows.level(s), Fitter(s, start, fitter.correlation, spread)
        fit = replace(fit, tilt=np.zeros(0))
    if any(TERMS[k] == "load" for own in choice.local for k in own):
        fit = fitter.solve(eq.total(), choice, 3.0, fit)
        eq = equations(rows, fit.x[: s.rank], folds)
    free = Fitter(s, start, np.ones(n), spread)
    loose = free.solve(eq.total(), choice, FREE, fit, tolerance=1e-4)
    fitter = Fitter(s, start, _correlations(rows, free, choice, loose), spread)
    best = _by_evidence(fitter, eq, choice, loose) if gamma is None else fitter.solve(eq.total(), choice, gamma, loose)
    return choice, best, fitter, eq, rows, table


def _by_evidence(fitter: Fitter, eq: Equations, choice: Choice, fit: Fit) -> Fit:
    """The fit with the weight of the prior that has most evidence."""
    sums, found = eq.total(), []
    for gamma in GAMMAS:
        fit = fitter.solve(sums, choice, gamma, fit, rounds=2, tolerance=1e-4)
        found.append((fitter.evidence(sums, choice, fit), fit))
        if found[-1][0] < max(found, key=lambda x: x[0])[0] - DECIDED:
            break
    best = max(found, key=lambda x: x[0])[1]
    return fitter.solve(sums, choice, best.gamma, best)


def _correlations(rows: Rows, fitter: Fitter, choice: Choice, fit: Fit) -> np.ndarray:
    """The sum of the autocorrelations of residuals, its geometric mean over the joints for all (nv,): joints are weighed by variance alone.

    A joint whose residual changes slowly, as that of a light wrist does, would else count for little, and take up what others leave.
    """
    e, data = _residuals(rows, fitter, choice, fit), rows.data
    each = [correlation_sum(e[data.used[:, j], j], data.stretch[data.used[:, j]]) for j in range(e.shape[1])]
    return np.full(len(each), np.exp(np.mean(np.log(each))))


def _residuals(rows: Rows, fitter: Fitter, choice: Choice, fit: Fit) -> np.ndarray:
    """(N, nv), a few rows at once."""
    data, out = rows.data, np.empty_like(rows.data.tau)
    full = fitter.vectors(choice, fit.x, fit.tilt, fit.gains)
    for k in rows:
        X = rows.columns(k, fit.x[: rows.structure.rank])
        out[k] = data.tau[k] - data.known[k] - np.einsum("njp,jp->nj", X, full)
    return out


def _robot(s: Structure, fit: Fit) -> tuple[Robot, Friction]:
    """The robot of a fit, without its friction, and the friction."""
    gravity = np.asarray(s.robot.gravity, dtype=float) + fit.tilt @ s.horizontal
    found = {name: np.zeros(len(fit.gains)) for name in TERMS}
    for (j, number), value in fit.coefficients.items():
        found[TERMS[number]][j] = value
    friction = Friction(tuple(s.robot.v_names), s.shape, {name: x for name, x in found.items() if x.any()})
    return s.robot.with_numbers(inertias=fit.inertial.reshape(-1, 10), gravity=gravity), friction


def _doubts(robot: Robot, data: Prepared) -> list[str]:
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


def _poor(found: Identification) -> list[str]:
    """That a model explains little of the forces, as it does of columns in another order or in other units."""
    if found.relative_error < POOR:
        return []
    return [
        f"the model explains little of the measured forces (relative error {100 * found.relative_error:.0f} %): are the columns of the "
        "log in the order of the robot's joints, their signs and units right?"
    ]


def _result(
    robot: Robot,
    rows: Rows,
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
    s, data = rows.structure, rows.data
    rigid, friction = _robot(s, fit)
    estimate, covariance = _data_alone(rows, eq, fitter, choice, fit) if own is None else own
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
        unknowns=tuple((robot.v_names[j], TERMS[k]) for j, k in choice.unknowns),
        correlation=fitter.correlation,
        predicted=data.tau - _residuals(rows, fitter, choice, fit),
        choices=Choices(table),
        notes=tuple(dict.fromkeys(notes)),
        freedoms=min(max(int(x), 1) / _order(int(x)) for x in data.used.sum(0)),
    )


def _data_alone(rows: Rows, eq: Equations, fitter: Fitter, choice: Choice, fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Estimate and covariance of base parameters and friction (and of the tilt, last) by the data without any prior but the gains'.

    Weighted least squares; the covariance knows the autocorrelation of the residuals. What the motion does not show has infinite variance.
    """
    r, hidden = fitter.s.rank, fitter.hidden
    made = fitter.assemble(fitter.collapse(eq.total(), fit.tilt, fit.x[:r], choice.tilt), choice, fit.gains)
    n = fitter.size(choice)
    A, b = np.zeros((n, n)), np.zeros(n)
    for j, (index, G, c, _) in enumerate(made):
        A[np.ix_(index, index)] += G / fit.variance[j]
        b[index] += c / fit.variance[j]
    joints, places = fitter.gained(choice)
    k = places - len(fitter.start)
    weights = fitter.expected(choice)[k[:, None], k]
    A[places[:, None], places] += weights
    b[places] -= weights @ fit.gains[joints]
    keep = np.r_[0:r, r + hidden : n]
    A, b = A[np.ix_(keep, keep)], b[keep]
    scale = 1.0 / np.sqrt(np.diag(A).clip(1e-300))
    scale[np.diag(A) <= 0] = 0.0
    values, vectors = np.linalg.eigh(A * scale[:, None] * scale)
    seen = values > 1e-10 * max(values[-1], 1e-300)
    V = scale[:, None] * vectors[:, seen] / np.sqrt(values[seen])
    start = fit.x[keep]
    estimate = start + V @ (V.T @ (b - A @ start))
    middle = _meat(rows, choice, fit, estimate, V)
    k = places - hidden
    middle[k[:, None], k] += weights
    covariance = V @ (V.T @ middle @ V) @ V.T
    unseen = vectors[:, ~seen]
    lost = (unseen**2).sum(1) > 1e-8
    covariance[lost, lost] = np.inf
    covariance[scale == 0, scale == 0] = np.inf
    estimate[places - hidden] += fit.gains[joints]
    if choice.tilt:
        estimate[-2:] += fit.tilt
    return estimate, covariance


def _order(rows: int) -> int:
    """Of the autoregression of so many residuals."""
    return int(np.clip(rows // 50, 1, 24))


def _meat(rows: Rows, choice: Choice, fit: Fit, estimate: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The covariance of Xᵀ W e, X being the columns of the model that is linear at the fit, and V Vᵀ = (Xᵀ W X)⁻¹."""
    s, r, data, unknowns = rows.structure, rows.structure.rank, rows.data, len(choice.unknowns)
    beta = fit.x[:r]
    X = np.concatenate([rows.columns(k, beta) for k in rows])
    base = X[..., :r] + sum(t * X[..., (d + 1) * r : (d + 2) * r] for d, t in enumerate(fit.tilt))
    out = np.zeros((len(estimate), len(estimate)))
    count = 0
    for j, own in enumerate(choice.local):
        use = data.used[:, j]
        factor, known, b = 1.0 + fit.gains[j], X[use, j, -1], base[use, j]
        local = [b @ beta + known if k == GAIN else X[use, j, s.blocks * r + k] for k in own]
        turned = [factor * (X[use, j, (d + 1) * r : (d + 2) * r] @ beta) for d in range(2)] if choice.tilt else []
        index = [*range(r), *(r + count + k for k in range(len(own))), *(r + unknowns + d for d in range(len(turned)))]
        Z = np.concatenate([factor * b, np.stack([*local, *turned], axis=1)], axis=1) if local or turned else factor * b
        residual = data.tau[use, j] - factor * known - Z @ estimate[index]
        order = _order(len(residual))
        fitted = Z @ V[index] / np.sqrt(fit.variance[j])
        out[np.ix_(index, index)] += meat(Z, residual, data.stretch[use], order, fitted) / fit.variance[j] ** 2
        count += len(own)
    return out
