"""Tables of states as files: CSV, NumPy's npz, and Parquet.

CSV and Parquet have a column for each coordinate, called by number (`q1 … qn`, `v1 …`, `a1 …`, `tau1 …`) or by joint
(`q.elbow`, `v.base.wx`), and perhaps `time`; other columns are left alone. An npz file has arrays q (N, nq), v, a, tau (N, nv)
and perhaps time (N,). Everything is checked before anything is returned: an error names the file, the line and the column.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CoadjointError, ReadError
from ..files import as_path, check_output, replacing
from ..robot.robot import Robot
from ..words import cut, short
from .states import States, column_names
from .table_readers import Csv, Npz, Parquet, Report, open_table

QUANTITIES = {"q": "positions", "v": "velocities", "a": "accelerations", "tau": "joint forces"}
READERS: dict[str, Any] = {".csv": Csv, ".npz": Npz, ".parquet": Parquet}


class MissingColumnsError(ReadError):
    """A table lacks quantities that are needed: `missing` names them ("v", "a")."""

    def __init__(self, message: str, missing: Sequence[str]) -> None:
        super().__init__(message)
        self.missing = tuple(missing)


def check_format(path: str | Path) -> str:
    """The extension of a table's name, if it is one that can be read and written here."""
    extension = as_path(path).suffix.lower()
    if extension not in READERS:
        raise CoadjointError(f"{cut(str(path), 300)}: tables end in {', '.join(READERS)}, not in {extension or 'nothing'!r}.")
    if extension == ".parquet" and find_spec("pyarrow") is None:
        raise CoadjointError(f"{path}: Parquet needs pyarrow, which is not installed: pip install pyarrow")
    return extension


def check_input(path: str | Path) -> str:
    """The extension of a table that can be read."""
    extension = check_format(path)
    open_table(as_path(path)).close()
    return extension


def read_states(path: str | Path, robot: Robot, needs: Sequence[str] = ("q", "v", "a"), report: Report | None = None) -> States:
    """The states in a file: those of q, v, a, tau that it has, of which it must have `needs`, and the time if it has that."""
    extension = check_input(path)
    path = Path(path)
    reader = READERS[extension](path)
    found = {what: reader.find(robot, what) for what in QUANTITIES} | {"time": reader.time}
    if missing := [what for what in needs if found[what] is None]:
        raise MissingColumnsError(f"{path}: {_missing(robot, missing)} {reader.has()}", missing)
    arrays = reader.read({what: columns for what, columns in found.items() if columns is not None}, report)
    if not len(arrays["q"]):
        raise ReadError(f"{path}: the table has no rows.")
    for what, x in arrays.items():
        _check_finite(reader, robot, what, x)
    _check_quaternions(reader, robot, arrays["q"])
    return States(**{what: x[:, 0] if what == "time" else x for what, x in arrays.items()}, numbered=reader.numbered)


def write_states(path: str | Path, robot: Robot, states: States, report: Report | None = None) -> None:
    """The states as a table; the file appears whole or not at all."""
    extension = check_format(path)
    check_output(path)
    arrays = {what: getattr(states, what) for what in ("time", *QUANTITIES) if getattr(states, what) is not None}
    names = [name for what in arrays for name in (["time"] if what == "time" else column_names(robot, what, states.numbered))]
    if extension == ".csv":
        _check_header(names)
    with replacing(path) as part:
        if extension == ".npz":
            np.savez_compressed(part, **arrays)
            return
        table = np.concatenate([x.reshape(len(states), -1) for x in arrays.values()], axis=1)
        if extension == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.table(dict(zip(names, table.T, strict=True))), part)
        else:
            _write_csv(part, names, table, report)


def _check_header(names: list[str]) -> None:
    """Refuse names that a line of text cannot give back."""
    for name in names:
        if name != name.strip() or len(name.splitlines()) > 1 or "\0" in name:
            raise CoadjointError(
                f"a column would be called {short(name)}, which a line of text cannot hold; write columns by number, or another format."
            )


def _write_csv(path: Path, names: list[str], table: np.ndarray, report: Report | None) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(names)
        for start in range(0, len(table), 4096):
            # repr gives the fewest digits that read back as the same number
            file.writelines(",".join(map(repr, row)) + "\n" for row in table[start : start + 4096].tolist())
            if report:
                report(min(1.0, (start + 4096) / len(table)))


def _missing(robot: Robot, missing: list[str]) -> str:
    """What columns are missing."""
    choices = []
    for what in missing:
        numbered, named = column_names(robot, what, True), column_names(robot, what, False)
        choices.append(f"{_span(numbered)} (or {_span(named)})")
    *most, last = (QUANTITIES[what] for what in missing)
    kinds = f"{', '.join(most)} and {last}" if most else last
    return f"the {kinds} of robot {robot.name!r} are missing: expected {', '.join(choices)}."


def _span(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def _check_finite(reader: Any, robot: Robot, what: str, x: np.ndarray) -> None:
    bad = ~np.isfinite(x)
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        more = f" ({bad.sum()} such numbers among the {QUANTITIES.get(what, 'times')})" if bad.sum() > 1 else ""
        place = reader.where(row, what, column, robot)
        raise ReadError(f"{reader.path}: {place}: {x[row, column]:g} is not a finite number{more}.")


def _check_quaternions(reader: Any, robot: Robot, q: np.ndarray) -> None:
    for joint, own in robot.quaternions:
        length = np.linalg.norm(q[:, own], axis=1)
        if np.any(wrong := np.abs(length - 1) > 1e-2):
            row = int(np.argmax(wrong))
            place = reader.where(row, "q", own.start, robot)
            what = f"the quaternion (x, y, z, w) of joint {joint!r} has length {length[row]:.4g}; expected 1"
            raise ReadError(f"{reader.path}: {place}: {what}.")
