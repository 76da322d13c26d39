"""Identification of logs that are larger than memory: their prepared rows lie in a file, and every sum is computed block by block.

A log in parts is cut into windows that overlap by more than a filter remembers, so that the prepared rows are those of the whole log. The
model (terms of friction, tilt, weight of the prior) is chosen on stretches spread over the log; its numbers are fitted to all rows.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..motion.chunks import LogChunks
from ..motion.logs import Log
from ..robot.robot import Robot
from .equations import Equations, Rows, Structure, equations
from .instruments import resolved
from .preparation import LEAST, Prepared, driven, prepare
from .result import Identification

CORE, MARGIN = 100_000, 5_000
"""Rows of a window, and those that it shares with each neighbour."""
STRETCHES, SAMPLE = 10, 2000
"""The stretches of so many rows on which the model is chosen, and which the result shows."""
BLOCK = 16384
"""Prepared rows that are in memory at once."""


@dataclass(frozen=True, eq=False, repr=False)
class StreamedIdentification(Identification):
    """A model fitted to a log that is not in memory: `data` and `residuals` are a sample of it, `rms` and `relative_error` of all rows."""

    rows: int = 0
    squares: np.ndarray | None = None
    """(3, nv): sums of squared residuals and forces, and their number."""

    @property
    def rms(self) -> np.ndarray:
        assert self.squares is not None
        return np.asarray(np.sqrt(self.squares[0] / self.squares[2].clip(1)))

    @property
    def relative_error(self) -> float:
        assert self.squares is not None
        return float(np.sqrt(self.squares[0].sum() / self.squares[1].sum()))


class Spool:
    """The prepared rows of a log, in a temporary file that goes with this object."""

    def __init__(self, robot: Robot, log: LogChunks, cutoff: float | str | None, factor: np.ndarray | None = None) -> None:
        self.robot, self.file, self.rows, self.stretches = robot, tempfile.TemporaryFile(), 0, 0  # noqa: SIM115
        weakref.finalize(self, self.file.close)
        self.notes: tuple[str, ...] = ()
        self.units_doubted = False
        self.noise = np.zeros(robot.nv)
        self.step = 0.0
        self.width = 2 + robot.nq + 4 * robot.nv
        self.thin = 1
        for window, first, last in self._windows(log, factor):
            cutoff = self._add(window, first, last, cutoff)
        if self.rows < LEAST:
            raise CoadjointError(f"{log!r} has {self.rows} rows after preparation; expected at least {LEAST}.")

    def _windows(self, log: LogChunks, factor: np.ndarray | None) -> Iterator[tuple[Log, float, float]]:
        """Windows of about CORE rows with margins, and the times from which and up to which their rows count.

        They begin at multiples of the rows of which one is kept.
        """
        buffer: Log | None = None
        first, lead, at = -np.inf, 0, 0
        for part in (driven(self.robot, x, factor) for x in log):
            buffer = part if buffer is None else _joined(buffer, part)
            while len(buffer) >= lead + CORE + MARGIN + LEAST:
                stop = lead + CORE
                last = float(buffer.time[stop])
                yield buffer[: stop + MARGIN], first, last
                begin = (at + stop - MARGIN) // self.thin * self.thin - at
                buffer, first, lead, at = buffer[begin:], last, stop - begin, at + begin
        if buffer is None:
            raise CoadjointError(f"{log!r} has no rows.")
        yield buffer, first, np.inf

    def _add(self, window: Log, first: float, last: float, cutoff: float | str | None) -> float | str | None:
        """Prepare a window and keep its rows from time `first` to `last`; returns the frequency that the first window was filtered at."""
        if cutoff == "auto":
            cutoff = resolved(self.robot, window, cutoff)
        data = prepare(self.robot, window, cutoff)
        keep = (data.time >= first) & (data.time < last)
        own = (data.time, data.q, data.v, data.a, data.tau, data.used.astype(float), (self.stretches + data.stretch).astype(float))
        table = np.column_stack(own)[keep]
        table.tofile(self.file)
        self.rows += len(table)
        if not self.step:
            self.step, self.thin = data.step, max(1, round(data.step * window.rate))
        self.notes = self.notes or data.notes
        self.units_doubted |= window.units_doubted
        self.noise = np.maximum(self.noise, data.noise)
        if len(np.unique(data.stretch)) > 1:
            self.stretches += int(data.stretch.max())
        return cutoff

    def read(self, start: int, count: int) -> Prepared:
        """Some of the rows."""
        self.file.flush()
        self.file.seek(8 * self.width * start)
        table = np.fromfile(self.file, count=self.width * count).reshape(-1, self.width)
        nq, n = self.robot.nq, self.robot.nv
        cuts = np.cumsum([1, nq, n, n, n, n])
        time, q, v, a, tau, used, stretch = np.split(table, cuts, axis=1)
        rest = (used > 0.5, stretch[:, 0].astype(int), self.step, np.zeros_like(v), self.notes, self.noise)
        return Prepared(time[:, 0], q, v, a, tau, *rest)

    @property
    def sample(self) -> Prepared:
        """Stretches that are spread over the log, or all of it where it is short."""
        if self.rows <= STRETCHES * SAMPLE:
            return self.read(0, self.rows)
        starts = np.linspace(0, self.rows - SAMPLE, STRETCHES).astype(int)
        parts = [self.read(int(k), SAMPLE) for k in starts]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(x, name) for x in parts]) for name in ("time", "q", "v", "a", "tau", "used", "known")
        }
        joined["stretch"] = np.repeat(np.arange(STRETCHES), SAMPLE)
        note = f"the model was chosen on {STRETCHES * SAMPLE} of {self.rows} rows, and fitted to all"
        return replace(parts[0], **joined, notes=(*self.notes, note))

    def blocks(self) -> Iterator[tuple[Prepared, None]]:
        for start in range(0, self.rows, BLOCK):
            yield self.read(start, BLOCK), None

    def equations(self, s: Structure, beta: np.ndarray, folds: int) -> Equations:
        """The normal matrices of all rows, in stretches of equal length."""
        n, P = self.robot.nv, s.size
        out = Equations(s, np.zeros((folds, n, P, P)), np.zeros((folds, n, P)), np.zeros((folds, n)), np.zeros((folds, n)))
        at = 0
        for data, _ in self.blocks():
            number = np.minimum((at + np.arange(len(data))) * folds // self.rows, folds - 1)
            at += len(data)
            first = int(number[0])
            part = equations(Rows(s, data), beta, number - first)
            here = slice(first, first + len(part.G))
            out.G[here] += part.G
            out.c[here] += part.c
            out.yy[here] += part.yy
            out.count[here] += part.count
        return out

    def told(self, fit: Identification) -> StreamedIdentification:
        """The identification with what all rows say of its residuals."""
        sums = np.zeros((3, self.robot.nv))
        for data, _ in self.blocks():
            e = (data.tau - fit.torque(data.q, data.v, data.a)) * data.used
            sums += [(e * e).sum(0), ((data.tau * data.used) ** 2).sum(0), data.used.sum(0)]
        own = {name: getattr(fit, name) for name in Identification.__dataclass_fields__}
        return StreamedIdentification(**own, rows=self.rows, squares=sums)


def _joined(a: Log, b: Log) -> Log:
    own: dict[str, Any] = {}
    for name in ("time", "q", "v", "a", "tau"):
        x, y = getattr(a, name), getattr(b, name)
        if (x is None) != (y is None):
            raise CoadjointError(f"one part of the log has {name}, another has not.")
        own[name] = None if x is None else np.concatenate([x, y])
    return replace(a, **own, extra={})
