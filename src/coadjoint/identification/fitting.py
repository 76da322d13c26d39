"""From a robot and its log to a model: `identify`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..arguments import a_robot, names, one_of, takes
from ..arrays import unmasked
from ..blas import on_one_thread
from ..errors import CoadjointError, LogWarning
from ..motion.chunks import LogChunks
from ..motion.logs import Log, check_reading, read_log
from ..robot.robot import Robot
from ..robot.spring import refuse_springs
from ..words import short
from .bounds import bound_rows
from .choosing import ENOUGH, Judge, choose_speeds, choose_terms
from .consistency import consistent
from .delays import ROUNDS, advanced, checked_delay, is_clear, late, told
from .doubts import doubts, few, still
from .equations import GAIN, Equations, Rows, Structure, equations, level, structure
from .estimators import METHODS, refined
from .friction import LOADED, TERMS, Friction
from .instruments import instruments
from .linearised import data_alone, order
from .misfits import misfits
from .model import GAMMAS, ROUNDING, WEAK, Choice, Fit, Fitter, spreads
from .preparation import Prepared, check_cutoff, driven, prepare
from .priors import Posterior, checked_prior
from .result import Choices, Identification
from .reversals import reversals, usual
from .simulated import SIMULATED, by_simulation
from .statistics import correlation_sum
from .streaming import Spool

FOLDS = 5
"""Blocks of rows that are held back one after the other."""
DECIDED = 10.0
"""The loss of log evidence after which larger weights are not tried."""
RICH = ("offset", "viscous", "armature", "coulomb", "load", "spring")
"""Terms of the first fit, whose residuals are taken as noise."""
ANY = 1.0
"""The standard deviation of gains that payloads show."""
EXTRA = frozenset({"asymmetry", "previous_load", "next_load"})
"""Terms that are tried only if they are named."""
LOADS, ALIKE = 8, 1e-3
"""Most steps towards loads that no longer change, and their relative change by then."""
FREE = 0.1
"""A weight of the prior that hardly counts."""


@takes(robot=a_robot, friction=names)
@on_one_thread
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
    delay: float | str = "auto",
    gains: Any = None,
    payloads: Sequence[Mapping[str, Any] | None] | None = None,
    **reading: Any,
) -> Identification:
    """The model of a robot that its log shows: inertias of possible bodies, friction, rotors' inertias, offsets, the mounting's tilt.

    `log`: what `read_log` reads (a path, a mapping with time (N,), q, tau (N, nv) and perhaps v and a, a data frame), or a list of logs, or
    `LogChunks`, a log in parts that need not fit into memory.
    `friction`: terms of `identification.friction.TERMS` for all joints, or "auto": those that held-back stretches ask for, joint by joint;
    ("auto", "previous_load", "next_load") tries couplings of neighbouring joints too.
    `prior`: "entropic", "riemannian" or "euclidean"; its weight γ is `weight`, or the one that evidence or held-back stretches choose. A
    number is the weight of the entropic one. `bounds`: masses, boxes, ellipsoids (`identification.bounds`). `method`: "auto", the maximum
    posterior; or "ordinary", "weighted", "reweighted", "maximum_likelihood", "instrumental_variables", "output_error",
    "inverse_output_error", whose estimates are then moved to the nearest possible robot; `simulation` has what the last three simulate
    with (reference, kp, kd, …).
    `gravity`: "fixed", "tilted" (two angles), or "auto".
    `cutoff`: Hz of the zero-phase low-pass, None for no filter. `delay`: seconds by which forces are recorded later than positions; "auto":
    what the fit shows, if it is clear and the terms of friction are "auto" too.
    `gains` (nv,): factors of the log's tau, which are then currents; a log without tau may have them as i1 … or current_0 ….
    What looks wrong in the log (columns in another order or of another sign, other units, too few rows) is a LogWarning and in `notes`.
    `payloads`: what the robot carried in each log, None or arguments of `Robot.with_payload` (frame, mass, com, inertia): the gains of all
    joints are then identified too (`fit.gains`), since the forces of the payload are known.
    """
    refuse_springs(robot, "identification")
    check_reading(identify, reading)
    kind, given = checked_prior(prior, weight)
    one_of("auto", *METHODS, *SIMULATED)(method, "method")
    one_of("auto", "fixed", "tilted")(gravity, "gravity")
    within = bound_rows(robot, bounds)
    shift = checked_delay(delay)
    check_cutoff(cutoff)
    stream = None
    if isinstance(log, LogChunks):
        _check_parts(payloads, reading, method, shift)
        stream = Spool(robot, log, cutoff, _factors(robot, gains))
        data = stream.sample
    else:
        log = recorded = _read(robot, log, gains, reading)
        log = advanced(log, shift) if shift else log
        data = prepare(robot, log, cutoff, payloads=payloads)
    start, notes = consistent(robot.inertias, robot.link_names)
    start = _with_masses(start, robot, notes)
    allowed, forced = _terms(friction)
    tilted = gravity != "fixed" and bool(np.any(robot.gravity)) and _is_fixed(robot)
    model = partial(
        _model, robot, start, allowed, forced, gravity, given if kind == "entropic" else None, payloads is not None, tilted
    )
    choice, fit, fitter, eq, rows, table = model(data)
    if shift is None and stream is None and not forced:
        seconds = 0.0
        for _ in range(ROUNDS):
            more, spread = late(rows, eq, fitter, choice, fit)
            if not is_clear(recorded, seconds, more, spread):
                break
            seconds += more
            log = advanced(recorded, seconds)
            data = prepare(robot, log, cutoff, payloads=payloads)
            choice, fit, fitter, eq, rows, table = model(data)
        notes += [told(seconds)] if seconds else []
    s = eq.structure
    notes = [*data.notes, *notes, *still(robot, data)]
    left = float(np.sqrt(fit.variance.sum() / max(float((eq.yy.sum(0) / eq.count.sum(0).clip(1)).sum()), 1e-300)))
    found, explained = ([], True) if _units_doubted(stream or recorded) else doubts(robot, data, left)
    doubtful = [*found, *few(data, s.rank + len(choice.unknowns))]
    posterior = Posterior(fitter, choice, kind, *within)
    if stream is not None:
        eq = stream.equations(s, fit.x[: s.rank], FOLDS)
    if method == "auto" and (kind != "entropic" or len(within[1]) or stream is not None):
        fit = posterior.solve(eq, fit, fit.gamma if given is None and kind == "entropic" else given)
    own = None
    if method in METHODS:
        moving = instruments(robot, log, cutoff, simulation) if method == "instrumental_variables" else None
        blocks = None if stream is None else stream.blocks
        fit, own = refined(posterior, eq, data, fit, method, given, moving, lambda f: _robot(s, f), blocks)
    elif stream is not None:
        own = refined(posterior, eq, data, fit, "weighted", given, None, lambda f: _robot(s, f), stream.blocks)[1]
    result = _result(robot, rows, eq, fitter, choice, fit, table, notes, start, own)
    if method not in SIMULATED and not explained:  # those do not fit forces
        doubtful += misfits(robot.v_names, result.data, result.predicted, method == "reweighted")
    result = replace(result, prior_kind=kind, method=method, notes=_warned(result.notes, doubtful))
    if stream is not None:
        return stream.told(result)
    return result if method not in SIMULATED else by_simulation(result, log, method, simulation)


def _check_parts(payloads: Any, reading: Mapping[str, Any], method: str, shift: float | None) -> None:
    """An error if there is an argument that a log in parts cannot have."""
    if payloads is not None:
        raise CoadjointError("payloads are of logs that are in memory; a log in parts has none.")
    one_of("auto", *METHODS[:-1])(method, "method of a log in parts")
    if reading:
        raise CoadjointError(f"{next(iter(reading))} is of a log that is not read yet; give it to LogChunks.")
    if shift:
        raise CoadjointError("delay is of logs that are in memory; for a log in parts shift its forces beforehand.")


def _units_doubted(log: Log | list[Log] | Spool) -> bool:
    """Whether the reader doubts units, from which follows what forces would say."""
    return any(x.units_doubted for x in (log if isinstance(log, list) else [log]))


def _warned(notes: tuple[str, ...], doubtful: list[str]) -> tuple[str, ...]:
    """The notes and the doubts, which are also warnings."""
    for text in doubtful:
        warnings.warn(text, LogWarning, stacklevel=5)
    return (*notes, *doubtful)


def _reverse(rows: Rows, start: np.ndarray, folds: np.ndarray) -> None:
    """The reversal of dry friction that fits the data."""
    s, r = rows.structure, rows.structure.rank
    Y = np.concatenate([rows.base(k)[..., :r] for k in rows])
    s.shape = reversals(rows.data, Y, Y @ (s.base.matrix @ start.reshape(-1)), folds)


def _read(robot: Robot, log: Any, gains: Any, reading: dict[str, Any]) -> Log | list[Log]:
    """A log or several, their tau multiplied by drive gains."""
    factor = _factors(robot, gains)
    if isinstance(log, list | tuple):
        return [driven(robot, read_log(x, robot, **reading), factor) for x in log]
    return driven(robot, read_log(log, robot, **reading), factor)


def _factors(robot: Robot, gains: Any) -> np.ndarray | None:
    """(nv,), checked."""
    if gains is None:
        return None
    try:
        factor = np.asarray(unmasked(gains), dtype=float)
    except (TypeError, ValueError, OverflowError):
        factor = np.zeros(0)
    if factor.shape != (robot.nv,) or not np.all(np.isfinite(factor)) or not np.all(np.abs(factor) > 1e-150):
        raise CoadjointError(f"gains is {short(gains)}; expected {robot.nv} numbers, the force of each joint for a current of one.")
    return factor


def _terms(friction: str | Sequence[str]) -> tuple[tuple[str, ...], bool]:
    given = (friction,) if isinstance(friction, str) else tuple(friction)
    chosen = "auto" in given
    if chosen:
        given = tuple(name for name in TERMS if name not in EXTRA or name in given) + tuple(
            x for x in given if x not in ("auto", *TERMS)
        )
    for name in given:
        if name not in TERMS:
            raise CoadjointError(f"friction has {name!r}; choose among {', '.join(TERMS)}, or 'auto'.")
    return given, not chosen


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
    robot: Robot,
    start: np.ndarray,
    allowed: tuple[str, ...],
    forced: bool,
    gravity: str,
    gamma: float | None,
    gained: bool,
    tilted: bool,
    data: Prepared,
) -> tuple[Choice, Fit, Fitter, Equations, Rows, list[dict[str, object]]]:
    """The chosen model and its fit."""
    rows, folds = Rows(structure(robot, usual(data.v), tilted), data), _folds(data)
    _reverse(rows, start, folds)
    s, n = rows.structure, data.tau.shape[1]
    table: list[dict[str, object]] = []
    eq = equations(rows, s.base.matrix @ start.reshape(-1), folds)
    sums = eq.total()
    forces = np.sqrt(sums[2] / sums[3].clip(1))
    spread = spreads(np.maximum(forces, 1e-3 * forces.max()), *([ANY] if gained else []))
    names = allowed if forced else tuple(x for x in RICH if x in allowed)
    names = (*names, "gain") if gained and "gain" not in names else names
    local, shown = s.blocks * s.rank, np.einsum("jpp->jp", sums[0]) > 0  # of a joint that never moves no column of friction is
    numbers = [TERMS.index(name) for name in names]
    choice = Choice(tuple(tuple(k for k in numbers if k == GAIN or shown[j, local + k]) for j in range(n)))
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
    eq = choose_speeds(rows, fitter, eq, judge.fit, choice, folds)
    if gained:
        choice = replace(choice, local=tuple(own if GAIN in own else (*own, GAIN) for own in choice.local))
    if tilt:
        table.append({"joint": "base", "term": "tilt", "gain": values[-1] - values[0]})
    fit = judge.fit
    if len(s.horizontal) and not choice.tilt:
        s = structure(s.robot, s.shape, False)
        eq, rows, fitter = level(eq, s), rows.level(s), Fitter(s, start, fitter.correlation, spread)
        fit = replace(fit, tilt=np.zeros(0))
    loaded = any(TERMS[k] in LOADED for own in choice.local for k in own)
    if loaded:
        fit, eq = _with_loads(rows, fitter, choice, fit, eq, folds, 3.0)
    free = Fitter(s, start, np.ones(n), spread)
    loose = free.solve(eq.total(), choice, FREE, fit, tolerance=1e-4)
    fitter = Fitter(s, start, _correlations(rows, free, choice, loose), spread)
    best = _by_evidence(fitter, eq, choice, loose) if gamma is None else fitter.solve(eq.total(), choice, gamma, loose)
    if loaded:
        best, eq = _with_loads(rows, fitter, choice, best, eq, folds, best.gamma)
    return choice, best, fitter, eq, rows, table


def _with_loads(
    rows: Rows, fitter: Fitter, choice: Choice, fit: Fit, eq: Equations, folds: np.ndarray, gamma: float
) -> tuple[Fit, Equations]:
    """The fit whose columns of loads are those of its own base parameters, and its equations."""
    r, beta = rows.structure.rank, fit.x[: rows.structure.rank]
    for _ in range(LOADS):
        fit = fitter.solve(eq.total(), choice, gamma, fit)
        G, change = eq.G[..., :r, :r].sum((0, 1)), fit.x[:r] - beta
        beta = fit.x[:r]
        eq = equations(rows, beta, folds)
        if change @ G @ change < ALIKE**2 * (beta @ G @ beta):
            break
    return fit, eq


def _by_evidence(fitter: Fitter, eq: Equations, choice: Choice, fit: Fit) -> Fit:
    """The fit with the weight of the prior that has most evidence."""
    sums, found = eq.total(), []
    for gamma in GAMMAS:
        fit = fitter.solve(sums, choice, gamma, fit, rounds=2, tolerance=1e-4)
        found.append((fitter.evidence(sums, choice, fit), fit))
        if found[-1][0] < max(found, key=lambda x: x[0])[0] - DECIDED:
            break
    value, best = max(found, key=lambda x: x[0])
    for gamma in WEAK if best.gamma == GAMMAS[0] else ():
        fit = fitter.solve(sums, choice, gamma, best, rounds=2, tolerance=1e-4)
        if not (new := fitter.evidence(sums, choice, fit)) > value:
            break
        value, best = new, fit
    return fitter.solve(sums, choice, best.gamma, best)


def _correlations(rows: Rows, fitter: Fitter, choice: Choice, fit: Fit) -> np.ndarray:
    """The sum of the autocorrelations of residuals, its geometric mean over the joints for all (nv,): joints are weighed by variance alone.

    A joint whose residual changes slowly, as that of a light wrist does, would else count for little, and take up what others leave.
    """
    e, data = _residuals(rows, fitter, choice, fit), rows.data
    rounding = ROUNDING * np.sqrt((data.tau**2).mean(0).clip(1e-6 * (data.tau**2).mean(0).max()))

    def of(j: int) -> float:
        own = e[data.used[:, j], j]
        known = np.any(np.abs(own) > rounding[j])  # rounding says nothing of how errors are correlated
        return correlation_sum(own, data.stretch[data.used[:, j]]) if known else 1.0

    each = [of(j) for j in range(e.shape[1])]
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
    estimate, covariance = data_alone(rows, eq, fitter, choice, fit) if own is None else own
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
        freedoms=min(max(int(x), 1) / order(int(x)) for x in data.used.sum(0)),
    )
