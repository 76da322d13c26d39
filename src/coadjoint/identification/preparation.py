"""Logs made ready for a fit: even, smooth, without what would mislead; each thing done is a note.

A log that has q, v and a, smooth as simulated or filtered ones are, or of states that are no motion in time, is used as it is. Any
other is resampled to even times, filtered forward and backward at `cutoff` Hz, differentiated, freed of its ends, where a filter knows
only one side, and thinned to what passed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..arguments import sequence
from ..dynamics import inverse_dynamics
from ..errors import CoadjointError
from ..motion.columns import FILLERS, words
from ..motion.filtering import resample, zero_phase
from ..motion.logs import Log, read_log
from ..robot.robot import Robot
from ..words import short

CUTOFF = 10.0
"""Hz: above what arms move by, below where gears and currents are noisy."""
ENDS = 3.0
"""Periods of the cut-off frequency that are left out at each end."""
ROUGH = 1e-4
"""Power of an acceleration above the cut-off, relative to all, beyond which it is noise."""
STANDING = 0.02
"""A joint stands where its speed is below this part of its root-mean-square speed …"""
DWELL = 0.2
"""… for so many seconds: its dry friction may then be anything between two bounds, and its equation is left out …"""
SLIPPED = 1.6e-2
"""… and until it has moved this far, relative to the displacement in which it reverses: where it goes on as it came it has all of its
friction, and where it turns back the friction turns as well."""
MOVING = 100
"""Rows in which a joint must move for those at rest to be left out: with fewer nothing would be left to fit."""
DEVIATIONS = 3.0
"""Standard deviations of the noise of a velocity, up to which it tells no motion."""
ROUNDING = 1e-8
"""A part of a velocity that is rounding."""
CURRENTS = {"i", "current", "currents"}
"""Names of columns of motor currents."""
MOST_HERTZ = 1e9
NOISE = 1.0
"""The mean square of the steps of a position, relative to its variance, above which it is noise."""
WANDERING = 0.02
"""The range of a position (rad or m) from which on it is no noise of a robot that stands."""
BAND, FEW = 3e-3, 0.01
"""A force is saturated with noise if so wide a band at its largest value, relative to its range, holds most of what is near …"""
MOST = 3.0
"""… so many times the rows of the next nine bands, and so large a part of all rows in which the robot moves."""
LEAST = 32
"""Rows that a log must have."""


@dataclass(frozen=True)
class Prepared:
    """States and forces that are fitted: rows of one or several logs, one after the other."""

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    used: np.ndarray
    """(N, nv): whether the equation of that joint is used."""
    stretch: np.ndarray
    """(N,): the number of the uninterrupted stretch that a row belongs to."""
    step: float
    """Seconds between rows."""
    known: np.ndarray
    """(N, nv): forces that are known beforehand, as of a payload."""
    notes: tuple[str, ...] = ()
    noise: np.ndarray = field(default_factory=lambda: np.zeros(()))
    """(nv,): the speed up to which the noise of the log, which a filter has taken in part, tells no motion."""

    def __len__(self) -> int:
        return len(self.time)


def prepare(
    robot: Robot,
    log: Any,
    cutoff: float | str | None = "auto",
    *,
    payloads: Sequence[Mapping[str, Any] | None] | None = None,
    **reading: Any,
) -> Prepared:
    """One or several logs ready for a fit. `cutoff` in Hz; None: not filtered; "auto": 10 Hz where it is needed.

    `payloads`: what the robot carried in each log; the forces that need be are `known`.
    """
    logs = list(log) if isinstance(log, list | tuple) else [log]
    if not logs:
        raise CoadjointError("there is no log: the list of logs is empty.")
    check_cutoff(cutoff)
    loaded = _loaded(robot, len(logs), payloads)
    parts: list[Prepared] = []
    for one, other in zip(logs, loaded, strict=True):
        read = read_log(one, robot, **reading)
        _check(robot, read)
        made = _stretches(robot, read, cutoff)
        parts += made if other is None else [replace(x, known=_more(robot, other, x)) for x in made]
    return _joined(robot, parts)


def check_cutoff(cutoff: Any) -> None:
    """An error unless it is a frequency in Hz, None or "auto"."""
    if cutoff is None or (isinstance(cutoff, str) and cutoff == "auto"):
        return
    if not isinstance(cutoff, int | float) or not 0 < cutoff <= MOST_HERTZ:
        raise CoadjointError(f"cutoff is {short(cutoff)}; expected a frequency in Hz, None or 'auto'.")


def _loaded(robot: Robot, count: int, payloads: Sequence[Mapping[str, Any] | None] | None) -> list[Robot | None]:
    """The robot with the payload of each log."""
    if payloads is None:
        return [None] * count
    given = sequence(payloads, "payloads")
    if len(given) != count or not any(given):
        raise CoadjointError(f"payloads has {len(given)} items, of which one must be a payload; there are {count} logs.")
    try:
        return [None if not x else robot.with_payload(**x) for x in given]
    except TypeError:
        raise CoadjointError(
            f"payloads is {short(given)}; expected None or {{'frame': …, 'mass': …, 'com': …, 'inertia': …}}."
        ) from None


def _more(robot: Robot, loaded: Robot, x: Prepared) -> np.ndarray:
    """The forces (N, nv) that a payload adds."""
    return np.asarray(inverse_dynamics(loaded, x.q, x.v, x.a) - inverse_dynamics(robot, x.q, x.v, x.a))


def _check(robot: Robot, log: Log) -> None:
    label = log.source or "the log"
    if log.tau is None:
        raise CoadjointError(
            f"{label}: there are no measured joint forces: expected tau1 …, torque_0 … or effort; "
            f"columns={{'tau': …}} names them{_of_currents(robot, log)}."
        )
    for what, x, size in (("q", log.q, robot.nq), ("v", log.v, robot.nv), ("a", log.a, robot.nv), ("tau", log.tau, robot.nv)):
        if x is not None and x.shape[1] != size:
            raise CoadjointError(f"{label}: {what} has {x.shape[1]} columns; robot {robot.name!r} has {size}.")
    if len(log) < LEAST:
        raise CoadjointError(f"{label}: {len(log)} rows are too few to fit a model; expected at least {LEAST}.")
    if not np.ptp(log.q, axis=0).max() > 1e-6:
        raise CoadjointError(
            f"{label}: the log is constant: no joint moves. Record a motion that moves every joint; `coadjoint.excitation` designs one."
        )
    if _are_separate(log):
        if np.ptp(log.q, axis=0).max() < WANDERING:
            raise CoadjointError(
                f"{label}: the log is constant but for noise: no position moves by more than from row to row. Record a motion that moves "
                "every joint; `coadjoint.excitation` designs one."
            )
        if log.v is None or log.a is None:
            raise CoadjointError(
                f"{label}: positions jump from row to row, so that they have no slopes: separate states need v and a in every row."
            )
    if not np.ptp(log.tau, axis=0).max() > 0:
        raise CoadjointError(f"{label}: the measured joint forces are constant: the first row has {short(log.tau[0].tolist())}.")
    if log.v is None and robot.nq != robot.nv:
        raise CoadjointError(f"{label}: robot {robot.name!r} has joints of several coordinates; the log needs v and a.")


def _are_separate(log: Log) -> bool:
    """True if rows are separate states, no motion in time: every position changes from row to row as much as at all."""
    return not log.gaps.size and all(_is_noise(x) for x in log.q.T if np.ptp(x) > 1e-6)


def _is_noise(x: np.ndarray) -> bool:
    """True if a column is noise, which changes from row to row as much as over the whole: von Neumann's ratio, 2 for white noise and 0
    for smooth motions."""
    return bool(np.mean(np.diff(x) ** 2) > NOISE * np.var(x))


def _currents(robot: Robot, log: Log) -> str:
    """The name of the columns (N, nv) of motor currents; "" if there are none."""
    for name, x in log.extra.items():
        own = [word for word in words(name) if word not in FILLERS]
        if x.shape[1:] == (robot.nv,) and len(own) == 1 and own[0] in CURRENTS:
            return name
    return ""


def _of_currents(robot: Robot, log: Log) -> str:
    name = _currents(robot, log)
    return f". For the currents {name}1 … give gains= with the force of each joint for a current of one" if name else ""


def driven(robot: Robot, log: Log, factor: np.ndarray | None) -> Log:
    """The log whose tau is its tau, or where it has none its currents, times gains (nv,)."""
    if factor is None:
        return log
    if log.tau is not None:
        return replace(log, tau=log.tau * factor)
    name = _currents(robot, log)
    if not name:
        return log
    tau = log.extra[name]
    bad = ~np.isfinite(tau).all(axis=1)
    if bad.any():
        raise CoadjointError(
            f"{log.source or 'the log'}: the currents {name}1 … have no finite number in row {int(np.argmax(bad)) + 1}."
        )
    return replace(log, tau=tau * factor, notes=(*log.notes, f"joint forces: the currents {name}1 … times the gains"))


def _stretches(robot: Robot, log: Log, cutoff: float | str | None) -> list[Prepared]:
    """The uninterrupted stretches of a log that are long enough."""
    notes = list(log.notes)
    cuts = [0, *(int(k) + 1 for k in log.gaps), len(log)]
    parts = [log[slice(i, j)] for i, j in pairwise(cuts) if j - i >= LEAST]
    if not parts:
        raise CoadjointError(f"{log.source or 'the log'}: no stretch between gaps has {LEAST} rows.")
    if len(cuts) > 2:
        notes.append(f"the log has gaps; its {len(parts)} stretches of at least {LEAST} rows are fitted together")
    assert log.tau is not None
    usable = ~_saturated(robot, log, notes)
    made = []
    for i, j in pairwise(cuts):
        if j - i >= LEAST:
            made.append(_smooth(robot, log[slice(i, j)], usable[i:j], cutoff, notes))
    first = replace(made[0], notes=tuple(dict.fromkeys(notes)))
    return [first, *made[1:]]


def _saturated(robot: Robot, log: Log, notes: list[str]) -> np.ndarray:
    """(N, nv): where a force stands at its largest value, as of a drive at its limit."""
    assert log.tau is not None
    tau, moves = log.tau, _moves(log)
    found = np.zeros(tau.shape, dtype=bool)
    for k in range(tau.shape[1]):
        if not np.ptp(tau[:, k]) > 0:
            found[:, k] = True
            notes.append(
                f"{robot.v_names[k]}: the measured force is {tau[0, k] + 0.0:g} in every row, as of no sensor; its equation is left out"
            )
            continue
        if _is_noise(tau[:, k]) and abs(tau[:, k].mean()) > 10.0 * tau[:, k].std():
            found[:, k] = True
            notes.append(
                f"{robot.v_names[k]}: the measured force is saturated: {tau[:, k].mean():.4g} in every row but for noise; "
                "its equation is left out"
            )
            continue
        for end in (tau[:, k].max(), tau[:, k].min()):
            at = np.abs(tau[:, k] - end) <= 1e-9 * abs(end)
            run = at[2:] & at[1:-1] & at[:-2]
            if end and run.sum() >= max(3, 0.002 * len(tau)):
                found[:, k] |= at
                continue
            below = np.abs(tau[:, k] - end) / (BAND * np.ptp(tau[:, k]))
            near, next_ = int(np.sum((below <= 1) & moves)), int(np.sum((below > 1) & (below <= 10) & moves))
            if near > max(MOST * next_, FEW * moves.sum(), 16):  # a smooth peak has less than half as many near as next to it
                found[:, k] |= below <= 1
        if found[:, k].any():
            share = 100.0 * found[:, k].mean()
            notes.append(f"{robot.v_names[k]}: the force is saturated in {share:.1f} % of the rows, which are left out")
    return found


def _moves(log: Log) -> np.ndarray:
    """(N,): where a joint moves faster than it does on average by a fiftieth: forces of a robot that stands may well be constant."""
    v = np.gradient(log.q, axis=0) if log.v is None else log.v
    return np.asarray(np.any(np.abs(v) > STANDING * np.sqrt(np.mean(v * v, axis=0)), axis=1))


def _smooth(robot: Robot, log: Log, usable: np.ndarray, cutoff: float | str | None, notes: list[str]) -> Prepared:
    rate = log.rate
    auto = cutoff == "auto"
    frequency = None if cutoff is None else min(CUTOFF, 0.2 * rate) if auto else float(cutoff)
    separate = auto and _are_separate(log)
    if separate:
        notes.append("positions jump from row to row: rows are separate states, which are not filtered")
    if (
        separate
        or robot.nq != robot.nv
        or (auto and log.v is not None and log.a is not None and frequency and not is_rough(log, frequency))
    ):
        frequency = None
    if frequency is None and log.v is not None and log.a is not None:
        assert log.tau is not None
        step = float(np.median(np.diff(log.time)))
        return _part(log.time, log.q, log.v, log.a, log.tau, usable, step, DWELL, _rounding(log.v))
    even = resample(log)
    if even is not log:
        notes.append(f"resampled to {even.rate:.5g} rows a second")
    if frequency is not None:
        if not frequency < 0.5 * rate:
            raise CoadjointError(
                f"cutoff is {frequency:g} Hz; the log has {rate:.4g} rows a second, so at most {0.45 * rate:.4g} Hz."
            )
        notes.append(f"zero-phase low-pass at {frequency:g} Hz")

    def keep(x: np.ndarray) -> np.ndarray:
        return x if frequency is None else zero_phase(x, rate, frequency)

    q = keep(even.q)
    v = slopes(q, even.rate) if even.v is None else keep(even.v)
    a = slopes(v, even.rate) if even.a is None else keep(even.a)
    notes += [f"{name}: derivative of {of}" for name, of, x in (("v", "q", even.v), ("a", "v", even.a)) if x is None]
    assert even.tau is not None
    tau = keep(even.tau)
    noise = _rounding(v)
    usable = usable[np.searchsorted(log.time, even.time).clip(0, len(log) - 1)]
    end, thin = 2, 1
    if frequency is not None:
        end, thin = int(ENDS * rate / frequency + 1e-6), max(1, int(rate / (5.0 * frequency) + 1e-6))
        end = end if len(even) > 8 * end else len(even) // 16
        notes.append(f"{end / rate:.2g} s at each end left out" + (f", one row in {thin} kept" if thin > 1 else ""))
    if frequency is not None:
        lost = 2.0 * np.pi * frequency * (even.q - q) if even.v is None else even.v - v  # noise that passed is no larger
        noise = np.maximum(noise, DEVIATIONS * np.sqrt(np.mean(lost[end : len(even) - end] ** 2, axis=0)))
    rows = slice(end, len(even) - end, thin)
    return _part(even.time[rows], q[rows], v[rows], a[rows], tau[rows], usable[rows], thin / rate, DWELL, noise)


def _rounding(v: np.ndarray) -> np.ndarray:
    return np.asarray(ROUNDING * np.sqrt(np.mean(v * v, axis=0)))


def is_rough(log: Log, frequency: float) -> bool:
    """True if accelerations of a log are noise above the cut-off frequency."""
    assert log.a is not None
    power = np.abs(np.fft.rfft((log.a - log.a.mean(0)) * np.hanning(len(log))[:, None], axis=0)) ** 2
    high = np.fft.rfftfreq(len(log), 1.0 / log.rate) > 2.0 * frequency
    return bool(np.any(power[high].sum(0) > ROUGH * power.sum(0).clip(1e-300)) and power.sum() > 0)


def slopes(x: np.ndarray, rate: float) -> np.ndarray:
    """Derivatives of the columns: of fourth order inside, of second at the ends."""
    out = np.asarray(np.gradient(x, 1.0 / rate, axis=0, edge_order=2))
    out[2:-2] = rate / 12.0 * (x[:-4] - 8.0 * x[1:-3] + 8.0 * x[3:-1] - x[4:])
    return out


def _part(*arrays: Any) -> Prepared:
    time, q, v, a, tau, usable, step, dwell, noise = arrays
    rests = sticking(v, a, step, max(1, round(dwell / step)), *(np.sqrt(np.mean(x * x, axis=0)) for x in (v, a)))
    rests[:, (~rests).sum(0) < MOVING] = False
    used = usable & ~rests
    return Prepared(time, q, v, a, tau, used, np.zeros(len(time), dtype=int), step, np.zeros_like(v), noise=noise)


def sticking(v: np.ndarray, a: np.ndarray, step: float, least: int, speed: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """(N, nv): where a joint stands for at least so many rows, or sets out from there; `speed`, `acceleration` (nv,): what is usual."""
    still = lasting(np.abs(v) < STANDING * speed, least)
    far, path = SLIPPED * speed**2 / acceleration.clip(1e-12), step * np.cumsum(np.abs(v), axis=0)
    where = np.where(still, np.arange(len(v))[:, None], -1)
    last = np.maximum.accumulate(where, axis=0)
    moved = path - np.take_along_axis(path, last.clip(0), axis=0)
    return np.asarray(still | ((last >= 0) & (moved < far)))


def lasting(still: np.ndarray, least: int) -> np.ndarray:
    """(N, nv): where a joint is still for at least so many rows."""
    still = still.copy()
    for k in range(still.shape[1]):
        for i, j in runs(still[:, k]):
            if j - i < least:
                still[i:j, k] = False
    return still


def runs(true: np.ndarray) -> Iterator[tuple[int, int]]:
    """The first rows of runs in which it is true (N,), and those after their last ones."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], true.astype(int), [0]])))
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _joined(robot: Robot, parts: Sequence[Prepared]) -> Prepared:
    def stack(name: str) -> np.ndarray:
        return np.concatenate([getattr(x, name) for x in parts])

    stretch = np.concatenate([np.full(len(x), i) for i, x in enumerate(parts)])
    used = stack("used")
    notes = list(dict.fromkeys(note for x in parts for note in x.notes))
    left = 100.0 * (1.0 - used.mean(0))
    if left.max() >= 1.0:
        worst = ", ".join(f"{name} {x:.0f} %" for name, x in zip(robot.v_names, left, strict=True) if x >= 1.0)
        notes.append(f"rows left out where a joint stands or sets out, or its force is saturated: {worst}")
    own = {name: stack(name) for name in ("time", "q", "v", "a", "tau", "known")}
    step, noise = float(np.median([x.step for x in parts])), np.max([x.noise for x in parts], axis=0)
    return Prepared(**own, used=used, stretch=stretch, step=step, notes=tuple(notes), noise=noise)
