"""Recorded logs in any usual form: `read_log` returns times, positions, velocities and forces in SI units, by joint, with notes of
what was done.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import a_dictionary, a_flag, a_function_of, a_name, a_robot, keywords, one_of, positive, refuse_keywords, takes
from ..arrays import unmasked
from ..errors import CoadjointError, LogWarning, ReadError
from ..robot.robot import Robot
from ..words import cut, short
from .columns import SPELLINGS, UNITS, Place, families
from .log_checks import (
    check_times,
    degree_suspicion,
    gap_notes,
    gaps,
    jump_suspicion,
    order_suspicion,
    slope_suspicions,
    sorted_rows,
    time_suspicion,
)
from .states import States, turning
from .table_readers import Arrays, Columns, Frame, Report

QUANTITIES = {"q": "positions", "v": "velocities", "a": "accelerations", "tau": "joint forces"}


@dataclass(frozen=True, repr=False)
class Log:
    """A recorded motion: time (N,), q (N, nq), and v, a, tau (N, nv) or None; SI units, a column for each coordinate."""

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray | None = None
    a: np.ndarray | None = None
    tau: np.ndarray | None = None
    names: tuple[str, ...] = ()
    """The names of the coordinates of v: those of the robot, else 1, 2, …"""
    notes: tuple[str, ...] = ()
    """Remarks: conversions, omissions and suspicious data."""
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Other columns by name; those with numbers together: i1 … i6 are `i` (N, 6)."""
    source: str = ""
    units_doubted: bool = False
    """Whether positions, velocities or times seem to have other units than was said, as one of the notes says."""

    def __post_init__(self) -> None:
        for name in ("time", "q", "v", "a", "tau"):
            if isinstance(x := getattr(self, name), np.ma.MaskedArray):
                object.__setattr__(self, name, unmasked(x))
        a_flag(self.units_doubted, "units_doubted")

    def __len__(self) -> int:
        return len(self.time)

    @property
    def duration(self) -> float:
        """Seconds from the first row to the last."""
        return float(self.time[-1] - self.time[0])

    @property
    def rate(self) -> float:
        """Rows per second, by the median step."""
        return float(1.0 / np.median(np.diff(self.time)))

    @property
    def gaps(self) -> np.ndarray:
        """The rows after which time goes on by ten usual steps or more."""
        return gaps(self.time)

    @property
    def states(self) -> States:
        """The rows as a table of states."""
        return States(self.q, self.v, self.a, self.tau, self.time)

    def __getitem__(self, rows: slice | np.ndarray) -> Log:
        """Some of the rows."""
        own: dict[str, Any] = {
            what: None if (x := getattr(self, what)) is None else x[rows] for what in ("time", "q", "v", "a", "tau")
        }
        return replace(self, **own, extra={name: x[rows] for name, x in self.extra.items()})

    def to_dataframe(self) -> Any:
        """The log as a table of pandas: time, q.elbow, …, and the other columns."""
        names = {what: [f"{what}.{name}" for name in self.names] for what in QUANTITIES}
        table = {"time": self.time}
        for what in QUANTITIES:
            x = getattr(self, what)
            if x is not None:
                own = names[what] if len(names[what]) == x.shape[1] else [f"{what}{k + 1}" for k in range(x.shape[1])]
                table |= dict(zip(own, x.T, strict=True))
        for name, x in self.extra.items():
            table |= {name: x} if x.ndim == 1 else {f"{name}{k + 1}": x[:, k] for k in range(x.shape[1])}
        try:
            import pandas
        except ImportError:
            raise CoadjointError("a data frame needs pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame(table)

    def __str__(self) -> str:
        return "\n".join([repr(self)[1:-1], *(f"  {note}" for note in self.notes)])

    def __repr__(self) -> str:
        has = [f"{what} ({x.shape[1]})" for what in QUANTITIES if (x := getattr(self, what)) is not None]
        more = f", also {', '.join(self.extra)}" if self.extra else ""
        name = f" {cut(Path(self.source).name)}" if self.source else ""
        return f"<Log{name}: {len(self)} rows over {self.duration:.4g} s, {self.rate:.4g} a second, of {', '.join(has)}{more}>"


@takes(robot=a_robot, units=a_dictionary, rate=positive, topic=a_name, report=a_function_of("part"))
def read_log(
    source: Any,
    robot: Robot | None = None,
    columns: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    units: Mapping[str, str] | None = None,
    missing: str = "error",
    times: str = "error",
    rate: float | None = None,
    topic: str | None = None,
    report: Report | None = None,
) -> Log:
    """The log in a file (.csv, .tsv, .txt, each also .gz; .parquet, .npz; ROS .bag, .db3, .mcap), a mapping of arrays, a data frame.

    Text may have any delimiter and decimal points or commas. Columns are found by their names (q1, position_0, dq1, elbow_velocity,
    /joint_states/elbow/effort, t_ms); `columns` says what names do not: {"q": "pos_{}"} or {"q": ["a", "b"], "time": "clock"}, or a list of
    names for a file without them. Units that names state are converted; `units` states others: {"q": "deg", "time": "ms"}. What only looks
    like degrees or milliseconds is not converted but said (a LogWarning, and in `notes`). Rows with empty cells or NaN are an error, or
    with missing="drop" left out; times that do not grow are an error, or with times="sort" put in order. `rate` gives times to a table
    without them. Velocities and accelerations are those of the table, or None: never differences of positions.
    """
    one_of("error", "drop")(missing, "missing")
    one_of("error", "sort")(times, "times")
    if isinstance(source, Log):
        options = {"columns": columns, "units": units, "rate": rate, "topic": topic, "times": times != "error"}
        for name, x in options.items():
            if x:
                raise CoadjointError(
                    f"{name} is of a log that is not read yet; this one is: give {name} to the read_log that made it."
                )
        return source
    read = read_table(source, robot, columns, units=units, missing=missing, topic=topic, report=report)
    if "q" not in read.arrays:
        raise ReadError(
            f"{read.label}: there are no positions: expected q1 … or position_0 …; columns={{'q': […]}} names them. {read.has}"
        )
    q = read.arrays["q"]
    if "time" in read.arrays:
        time = read.arrays.pop("time")[:, 0]
    elif rate is not None and np.isfinite(rate) and rate > 0:
        time = np.arange(len(q)) / rate
    else:
        raise ReadError(
            f"{read.label}: there is no column of time; columns={{'time': name}} names it, rate= gives rows per second."
        )
    notes, doubts = list(read.notes), list(read.doubts)
    if times == "sort":
        keep, done = sorted_rows(time)
        notes += done
        time, read = time[keep], read.rows(keep)
    check_times(read.label, time)
    notes += gap_notes(time)
    names = tuple(robot.v_names) if robot is not None else tuple(str(k + 1) for k in range(q.shape[1]))
    doubts += _doubts(robot, names, time, read.arrays, units or {}, read.stated)
    for doubt in doubts:
        warnings.warn(f"{read.label}: {doubt}", LogWarning, stacklevel=2)
    other_units = any("units={" in doubt for doubt in doubts)
    return Log(
        time, **read.arrays, names=names, notes=(*notes, *doubts), extra=read.extra, source=read.label, units_doubted=other_units
    )


@dataclass(frozen=True)
class Table:
    """The content of a source: arrays (N, n) of quantities, other columns, and remarks on them."""

    label: str
    arrays: dict[str, np.ndarray]
    extra: dict[str, np.ndarray]
    notes: list[str]
    doubts: list[str]
    stated: set[str]
    """The quantities whose unit is stated by a name."""
    has: str
    numbered: bool

    def rows(self, keep: np.ndarray) -> Table:
        arrays = {what: x[keep] for what, x in self.arrays.items()}
        return replace(self, arrays=arrays, extra={name: x[keep] for name, x in self.extra.items()})


def read_table(
    source: Any,
    robot: Robot | None = None,
    columns: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    needs: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    missing: str = "error",
    topic: str | None = None,
    extra: bool = True,
    report: Report | None = None,
) -> Table:
    """The quantities that a source has, of which it must have `needs`, finite, in SI units."""
    from .tables import missing_columns

    names, given = _given(columns)
    reader = open_source(source, names, topic, robot)
    _rename(reader, given)
    factors = _factors(units or {})
    places: dict[str, Place] = {}
    for what in sorted(SPELLINGS, key=lambda x: given.get(x) is None):  # those that are named come first
        place = reader.find(robot, what, given.get(what))
        named = {k for other in places if given.get(other) is not None for k in places[other].columns}
        if place is not None and (given.get(what) is not None or not named & set(place.columns)):
            places[what] = place
    if absent := [what for what in needs if what not in places]:
        raise missing_columns(reader, robot, absent)
    wanted = {what: place.columns for what, place in places.items()}
    others = _others(reader, wanted) if extra else {}
    arrays = reader.read(wanted | {f"extra {name}": x for name, x in others.items()}, report, [f"extra {name}" for name in others])
    found = {name: (x[:, 0] if x.shape[1] == 1 else x) for name in others if (x := arrays.pop(f"extra {name}")).size}
    if any(not len(x) for x in arrays.values()):
        raise ReadError(f"{reader.path}: the table has no rows.")
    notes, stated = [], set()
    for what, place in places.items():
        unit = place.unit if what not in factors else ""
        if unit:
            stated.add(what)
        factor = factors.get(what, UNITS[what].get(unit, 1.0))
        if factor != 1.0:
            arrays[what] = arrays[what] * _factor(robot, what, arrays[what].shape[1], factor)
            notes.append(f"{QUANTITIES.get(what, 'times')}: converted from {unit or (units or {})[what]}")
        if place.zero_based:
            notes.append(f"{QUANTITIES[what]}: columns {cut(reader.header[place.columns[0]])} … are numbered from 0")
    table = Table(str(reader.path), arrays, found, notes, [], stated, reader.has(), reader.numbered)
    return _finite(reader, table, wanted, missing)


def open_source(source: Any, names: list[str] | None = None, topic: str | None = None, robot: Robot | None = None) -> Columns:
    """The reader of a file, a mapping or a data frame."""
    from .tables import open_file

    if isinstance(source, Mapping):
        try:
            arrays = {str(key): np.asarray(unmasked(x)) for key, x in source.items()}
        except ValueError as error:
            raise CoadjointError(f"the log is a mapping with an item that is no array: {cut(str(error))}") from None
        return Arrays("the log", arrays)
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        return Frame(source)
    if not isinstance(source, str | Path) and not hasattr(source, "__fspath__"):
        raise CoadjointError(f"the log is {short(source)}; expected a file, a mapping of arrays or a data frame.")
    return open_file(source, names, topic)


def _given(columns: Any) -> tuple[list[str] | None, dict[str, Any]]:
    if columns is None:
        return None, {}
    if isinstance(columns, Mapping):
        return None, dict(columns)
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not all(isinstance(x, str) for x in columns):
        raise CoadjointError(f"columns is {short(columns)}; expected {{'q': [names]}}, or a list of the names of all columns.")
    return list(columns), {}


def _rename(reader: Columns, given: Mapping[str, Any]) -> None:
    """A map from the file's names to ours, {"knee": "q1"}: the file's columns are read under our names."""
    theirs = {name: ours for name, ours in given.items() if name not in SPELLINGS}
    for name, ours in theirs.items():
        if name not in reader.header:
            raise CoadjointError(
                f"columns[{short(name)}]: the table has no such column, and it is none of {', '.join(SPELLINGS)}. {reader.has()}"
            )
        reader.header[reader.header.index(name)] = str(ours)


def _others(reader: Columns, wanted: Mapping[str, list[int]]) -> dict[str, list[int]]:
    numeric = set(reader.numeric())
    taken = {k for columns in wanted.values() for k in columns}
    return families(reader.header, taken | (set(range(len(reader.header))) - numeric))


def _factors(units: Mapping[str, str]) -> dict[str, float]:
    found = {}
    for what, unit in units.items():
        if what not in UNITS:
            raise CoadjointError(f"units[{short(what)}]: choose among {', '.join(UNITS)}.")
        if not isinstance(unit, str) or unit.lower() not in UNITS[what]:
            raise CoadjointError(f"units[{what!r}] is {short(unit)}; choose among {', '.join(UNITS[what])}.")
        found[what] = UNITS[what][unit.lower()]
    return found


def _factor(robot: Robot | None, what: str, size: int, factor: float) -> Any:
    """Degrees are of angles, millimetres of lengths."""
    if robot is None or what in ("time", "tau"):
        return factor
    turns = turning(robot)
    if len(turns) != size:
        raise CoadjointError(f"robot {robot.name!r} has joints of several coordinates; give {QUANTITIES[what]} in SI units.")
    return np.where(turns != (factor == 1e-3), factor, 1.0)


def _finite(reader: Columns, table: Table, wanted: Mapping[str, list[int]], missing: str) -> Table:
    """The table without rows that have NaN, or an error at the first."""
    bad = {what: ~np.isfinite(x) for what, x in table.arrays.items()}
    rows = np.any([x.any(axis=1) for x in bad.values()], axis=0)
    if not rows.any():
        return table
    if missing == "drop" and not rows.all():
        return replace(table.rows(~rows), notes=[*table.notes, f"{int(rows.sum())} rows with empty cells or NaN were left out"])
    what = next(x for x in bad if bad[x].any())
    row, k = (int(x) for x in np.argwhere(bad[what])[0])
    column = wanted[what][k]
    count = int(bad[what].sum())
    more = f" ({count} such numbers among the {QUANTITIES.get(what, 'times')})" if count > 1 else ""
    value = "the cell is empty" if reader.empty(row, column) else f"{table.arrays[what][row, k]:g} is not a finite number"
    remedy = "no row is whole." if missing == "drop" else "missing='drop' leaves such rows out."
    raise ReadError(f"{reader.path}: {reader.place(row, column)}: {value}{more}; {remedy}")


def check_reading(fn: Callable[..., Any], reading: Mapping[str, Any]) -> None:
    """An error if a keyword that a function passes on is none of `read_log`'s."""
    refuse_keywords(fn.__name__, reading, (keywords(fn) | keywords(read_log)) - {"source"})


def _doubts(
    robot: Robot | None,
    names: tuple[str, ...],
    time: np.ndarray,
    arrays: Mapping[str, np.ndarray],
    units: Mapping[str, str],
    stated: set[str],
) -> list[str]:
    """Suspicions of other units, signs or joints."""
    known = {*units, *stated}
    found = []
    if "time" not in known and (text := time_suspicion(time)):
        found.append(text)
    jump = jump_suspicion(robot, names, time, arrays["q"])
    order = "" if jump else order_suspicion(robot, arrays["q"])
    if jump or order:
        found.append(jump or order)
    elif "q" not in known and (text := degree_suspicion(robot, arrays["q"])):
        found.append(text)
    if not found and "v" in arrays:
        found += slope_suspicions(names, time, arrays["q"], arrays["v"])
    return found
