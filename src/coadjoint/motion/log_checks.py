"""Checks of a log: times out of order, gaps, degrees, milliseconds, velocities that are not the derivatives of positions."""

from __future__ import annotations

import numpy as np

from ..errors import ReadError
from ..robot.robot import Robot
from ..words import cut
from .states import turning

GAP = 10.0
"""A step of time this many times the usual one is a gap."""
JUMP, BESIDE = 10.0, 3
"""A step of a position this many times as large as nearly all others, and as those of so many rows before and after, is a jump."""

DEGREES = 180.0 / np.pi


def check_times(label: str, time: np.ndarray) -> None:
    """Raise an error if times do not increase."""
    step = np.diff(time)
    if len(step) and step.min() <= 0:
        back, same = int(np.sum(step < 0)), int(np.sum(step == 0))
        k = int(np.argmax(step < 0 if back else step == 0))
        remedy = "times='sort' puts rows in order and keeps the first of equal times."
        if back:
            kind = f"times must increase; row {k + 2} has {time[k + 1]:.9g} after {time[k]:.9g} ({back} rows go back)"
        else:
            kind = f"row {k + 2} repeats the time {time[k]:.9g} of the row before ({same} rows do)"
        raise ReadError(f"{label}: {kind}. {remedy}")


def sorted_rows(time: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The rows in order of time, of equal times the first, and what was done."""
    order = np.argsort(time, kind="stable")
    keep = order[np.concatenate([[True], np.diff(time[order]) > 0])]
    notes = []
    if np.any(np.diff(time) < 0):
        notes.append(f"times were out of order in {int(np.sum(np.diff(time) < 0))} places and were sorted")
    if len(keep) < len(time):
        notes.append(f"{len(time) - len(keep)} rows with a time that another row has were left out")
    return keep, notes


def gaps(time: np.ndarray) -> np.ndarray:
    """The rows after which there is a gap."""
    step = np.diff(time)
    return np.flatnonzero(step > GAP * np.median(step)) if len(step) > 2 else np.zeros(0, dtype=int)


def gap_notes(time: np.ndarray) -> list[str]:
    step, at = np.diff(time), gaps(time)
    if not len(at):
        return []
    k = at[np.argmax(step[at])]
    count = "a gap" if len(at) == 1 else f"{len(at)} gaps, the longest"
    return [f"{count} of {step[k]:.3g} s after {time[k]:.6g} s (the usual step is {np.median(step):.3g} s)"]


def time_suspicion(time: np.ndarray) -> str:
    """The reason why the times seem not to be seconds; "" if they do."""
    if len(time) < 20:
        return ""
    step = float(np.median(np.diff(time)))
    for unit, low, high in (("ms", 0.5, 2e2), ("us", 2e2, 2e5), ("ns", 2e5, np.inf)):
        if low <= step < high:
            return f"times grow by {step:.4g} from row to row, which suggests {unit}; units={{'time': {unit!r}}} converts them"
    return ""


def degree_suspicion(robot: Robot | None, q: np.ndarray) -> str:
    """The reason why positions of revolute joints seem to be degrees; "" if they do not."""
    largest = np.abs(q).max(axis=0) if len(q) else np.zeros(q.shape[1])
    if robot is None or len(largest) != robot.nv:
        turns, limit = np.ones(len(largest), dtype=bool), np.full(len(largest), np.inf)
    else:
        turns, limit = turning(robot), np.maximum(np.abs(robot.lower), np.abs(robot.upper))
    if not turns.any():
        return ""
    beyond = turns & (largest > np.where(np.isfinite(limit), 1.2 * limit, 8 * np.pi))
    possible = np.all(largest[turns] <= DEGREES * np.where(np.isfinite(limit[turns]), 1.2 * limit[turns], 4 * np.pi))
    if not beyond.any() or not (possible or np.isfinite(limit[beyond]).all()):
        return ""
    name = f"q{int(np.argmax(beyond)) + 1}" if robot is None else robot.q_names[int(np.argmax(beyond))]
    k = int(np.argmax(beyond))
    what = f"the position of {cut(name)} reaches {largest[k]:.4g}"
    bound = f" (its limit is {limit[k]:.4g} rad)" if np.isfinite(limit[k]) else ""
    if not possible:
        return f"{what}{bound}: are positions in another unit? units={{'q': …}} converts them, 'rad' keeps them"
    if largest[turns].max() <= 2.0 * np.pi:
        return f"{what}{bound}: is its zero another one than the description's, or are positions degrees (units={{'q': 'deg'}})?"
    return f"{what}{bound}, which suggests degrees; units={{'q': 'deg'}} converts positions, 'rad' keeps them"


def jump_suspicion(robot: Robot | None, names: tuple[str, ...], time: np.ndarray, q: np.ndarray) -> str:
    """The reason why a position jumps between two rows, by a whole turn, as one that is wrapped to ±π, or otherwise; "" if none does."""
    step, dq = np.diff(time), np.abs(np.diff(q, axis=0))
    if len(q) < 20 or len(names) != q.shape[1]:
        return ""
    usual = np.sort(dq, axis=0)[int(0.9 * len(dq))]  # of degrees, steps may well be so large
    turns = np.ones(q.shape[1], dtype=bool) if robot is None or robot.nv != q.shape[1] else turning(robot)
    for turn, text in ((2.0 * np.pi, "2π"), (360.0, "360")):
        found = (np.abs(dq - turn) < 0.1 * turn) & turns & (step < GAP * np.median(step))[:, None] & (dq > GAP * usual)
        if found.any():
            row, k = (int(x) for x in np.argwhere(found)[0])
            more = f" ({int(found.sum())} such jumps)" if found.sum() > 1 else ""
            what = f"the position of {cut(names[k])} jumps by a turn of {text} in row {row + 2}{more}"
            return (
                f"{what}: it is wrapped; unwrap it first, by q = numpy.unwrap(q, period={'2 * pi' if turn < 7 else '360'}, axis=0)"
            )
    usual = np.maximum(np.sort(dq, axis=0)[int(0.99 * len(dq))], 1e-3 * np.ptp(q, axis=0))
    found = (dq > JUMP * np.maximum(usual, _beside(dq))) & (step < GAP * np.median(step))[:, None]
    if not found.any():
        return ""
    row, k = (int(x) for x in np.argwhere(found)[0])
    more = f" ({int(found.sum())} such jumps)" if found.sum() > 1 else ""
    what = f"the position of {cut(names[k])} jumps by {dq[row, k]:.3g} in row {row + 2}{more}"
    return (
        f"{what}: are rows missing, or did its sensor fail? Leave such rows out, and give what is before and after them as two logs"
    )


def _beside(dq: np.ndarray) -> np.ndarray:
    """The median of the steps before and after each one (N, n): large in a motion, also of a joint that stands still nearly always."""
    padded = np.pad(dq, ((BESIDE, BESIDE), (0, 0)), mode="edge")
    others = [padded[BESIDE + k : BESIDE + k + len(dq)] for k in range(-BESIDE, BESIDE + 1) if k]
    return np.asarray(np.median(others, axis=0))


def order_suspicion(robot: Robot | None, q: np.ndarray) -> str:
    """The reason why two columns of positions seem to be exchanged: only then is every joint within its limits; "" if they do not."""
    if robot is None or not len(q) or not q.shape[1] == len(robot.lower) == robot.nv:
        return ""
    lower, upper = q.min(axis=0), q.max(axis=0)
    beyond = np.maximum(robot.lower - lower, upper - robot.upper)
    width = robot.upper - robot.lower
    far = np.flatnonzero(np.isfinite(width) & (beyond > 0.1 * width))
    pair = _exchanged(robot, lower, upper)
    if not len(far) or pair is None or set(far) - set(pair):
        return ""
    k = int(far[0])
    i, j = (cut(robot.q_names[x]) for x in pair)
    what = f"the position of {cut(robot.q_names[k])} goes from {lower[k]:.4g} to {upper[k]:.4g}"
    limits = f"its limits are {robot.lower[k]:.4g} and {robot.upper[k]:.4g}"
    return f"{what} ({limits}); with the columns of {i} and {j} exchanged all joints are within theirs: are the two swapped?"


def _exchanged(robot: Robot, lower: np.ndarray, upper: np.ndarray) -> tuple[int, int] | None:
    """The two columns that, exchanged, bring every joint within its limits; None if there are none, or several pairs."""
    fits = (robot.lower[:, None] <= lower) & (upper <= robot.upper[:, None])  # [joint, column]
    n = len(lower)
    pairs = [
        (i, j)
        for i in range(n)
        for j in range(i + 1, n)
        if fits[i, j] and fits[j, i] and all(fits[k, k] for k in range(n) if k not in (i, j))
    ]
    return pairs[0] if len(pairs) == 1 else None


def slope_suspicions(names: tuple[str, ...], time: np.ndarray, q: np.ndarray, v: np.ndarray) -> list[str]:
    """Velocities that are not the slopes of positions: other units, signs or joints."""
    if q.shape != v.shape or len(time) < 20:
        return []
    step = np.diff(time)
    steady = step < GAP * np.median(step)
    dq = np.diff(q, axis=0)[steady]
    mean = 0.5 * (v[1:] + v[:-1])[steady] * step[steady, None]
    power = np.sum(mean * mean, axis=0)
    changes = np.ptp(q, axis=0) > 1e-6
    moving = (power > 0) & changes
    still = [cut(name) for name, x in zip(names, changes & (power == 0), strict=False) if x]
    notes = (
        [f"the velocities of {', '.join(still)} are 0 in every row though their positions change: leave v out?"] if still else []
    )
    if not moving.any():
        return notes
    ratio = np.where(moving, np.sum(dq * mean, axis=0) / np.where(moving, power, 1.0), 1.0)
    fit = np.sum(dq * mean, axis=0) / np.sqrt(np.where(moving, power * np.sum(dq * dq, axis=0), 1.0) + 1e-300)
    common = float(np.median(ratio[moving]))
    for value, text in (
        (DEGREES, "positions seem to be degrees and velocities rad/s: units={'q': 'deg'}"),
        (1 / DEGREES, "velocities seem to be degrees per second and positions radians: units={'v': 'deg/s'}"),
        (1e-3, "times seem to be milliseconds: units={'time': 'ms'}"),
        (1e-6, "times seem to be microseconds: units={'time': 'us'}"),
        (1e-9, "times seem to be nanoseconds: units={'time': 'ns'}"),
    ):
        if 0.8 < common / value < 1.25 and np.median(fit[moving]) > 0.7:
            return [*notes, f"the slopes of positions are {common:.3g} times the velocities; {text}"]
    for k in np.flatnonzero(moving):
        if fit[k] < -0.7:
            notes.append(f"the velocity of {cut(names[k])} has the opposite sign of the slope of its position")
        elif fit[k] > 0.7 and not 0.8 < ratio[k] < 1.25:
            notes.append(f"the slope of {cut(names[k])} is {ratio[k]:.3g} times its velocity")
        elif fit[k] < 0.7:
            others = [j for j in np.flatnonzero(moving) if j != k and _alike(dq[:, k], mean[:, j])]
            if abs(fit[k]) >= 0.3 and not others:
                continue
            hint = f"; it is like that of {cut(names[others[0]])}: are two joints swapped?" if others else ""
            notes.append(f"the velocity of {cut(names[k])} is not the slope of its position{hint}")
    if len(notes) > 1 and all(np.abs(fit[moving]) < 0.3) and all(x.endswith("the slope of its position") for x in notes):
        return ["no velocity is the slope of its position: rows of another order, or separate states?"]
    return notes


def _alike(x: np.ndarray, y: np.ndarray) -> bool:
    return float(x @ y) > 0.9 * float(np.linalg.norm(x) * np.linalg.norm(y)) > 0
