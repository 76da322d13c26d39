"""Tables of states as files: text with any delimiter, NumPy's npz, Parquet, and ROS bags.

Text and Parquet have a column for each coordinate, called by number (`q1 … qn`, `v1 …`, `a1 …`, `tau1 …`) or by joint
(`q.elbow`, `v.base.wx`), or by other names (`columns.py`), and perhaps `time`; other columns are left alone. An npz file has arrays
q (N, nq), v, a, tau (N, nv) and perhaps time (N,). Everything is checked before anything is returned: an error names the file, the line
and the column.
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
from .bags import BAGS, read_bag
from .delimited import Csv
from .logs import QUANTITIES, read_table
from .states import States, column_names
from .table_readers import ENDLESS, Columns, Npz, Parquet, Report, open_table

READERS: dict[str, Any] = {".csv": Csv, ".tsv": Csv, ".txt": Csv, ".npz": Npz, ".parquet": Parquet}
WRITTEN = (".csv", ".npz", ".parquet")


class MissingColumnsError(ReadError):
    """A table lacks quantities that are needed: `missing` names them ("v", "a")."""

    def __init__(self, message: str, missing: Sequence[str]) -> None:
        super().__init__(message)
        self.missing = tuple(missing)


def check_format(path: str | Path) -> str:
    """The extension of a table's file name, or an error if that format cannot be written."""
    extension = as_path(path).suffix.lower()
    if extension not in WRITTEN:
        raise CoadjointError(f"{cut(str(path), 300)}: tables end in {', '.join(WRITTEN)}, not in {extension or 'nothing'!r}.")
    _check_parquet(path, extension)
    return extension


def check_input(path: str | Path) -> str:
    """The extension of a table that can be read."""
    found = as_path(path)
    extension = found.suffix.lower()
    if extension == ".gz":
        extension = Path(found.stem).suffix.lower()
        if READERS.get(extension) is not Csv:
            raise CoadjointError(f"{cut(str(path), 300)}: of compressed tables .csv.gz, .tsv.gz and .txt.gz are read.")
    if extension in BAGS or (found.is_dir() and (found / "metadata.yaml").is_file()):
        return extension
    if extension not in READERS:
        ends = ", ".join([*READERS, ".csv.gz", *BAGS])
        raise CoadjointError(f"{cut(str(path), 300)}: tables end in {ends}, not in {extension or 'nothing'!r}.")
    _check_parquet(path, extension)
    open_table(found, ENDLESS).close()
    return extension


def _check_parquet(path: str | Path, extension: str) -> None:
    if extension == ".parquet" and find_spec("pyarrow") is None:
        raise CoadjointError(f"{path}: Parquet needs pyarrow, which is not installed: pip install pyarrow")


def open_file(path: str | Path, names: list[str] | None = None, topic: str | None = None) -> Columns:
    """The reader of a file; `names` of columns are those of a text without a line of names, `topic` that of a bag."""
    extension, path = check_input(path), Path(path)
    if extension not in READERS:
        return read_bag(path, topic)
    if READERS[extension] is Csv:
        return Csv(path, names)
    if names is not None:
        raise CoadjointError(f"{path}: a list of columns is for text; give {{'q': [names]}}.")
    result: Columns = READERS[extension](path)
    return result


def read_states(path: str | Path, robot: Robot, needs: Sequence[str] = ("q", "v", "a"), report: Report | None = None) -> States:
    """The states in a file: those of q, v, a, tau that it has, of which it must have `needs`, and the time if it has that."""
    return as_states(read_table(path, robot, needs=("q", *needs), extra=False, report=report), robot)


def as_states(table: Any, robot: Robot) -> States:
    """The states of a table that was read."""
    _check_quaternions(table.label, robot, table.arrays["q"])
    arrays = {what: x[:, 0] if what == "time" else x for what, x in table.arrays.items()}
    return States(**arrays, numbered=table.numbered)


def missing_columns(reader: Columns, robot: Robot | None, absent: Sequence[str]) -> MissingColumnsError:
    """The error that quantities are missing."""
    absent = list(dict.fromkeys(absent))
    return MissingColumnsError(f"{reader.path}: {_missing(robot, absent)} {reader.has()}", absent)


def write_states(path: str | Path, robot: Robot, states: States, report: Report | None = None) -> None:
    """Write the states as a table, atomically."""
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
    """Raise an error for names that cannot be read back from a line of text."""
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


def _missing(robot: Robot | None, missing: list[str]) -> str:
    """The names of missing columns."""
    choices = []
    for what in missing:
        if robot is None:
            choices.append(f"{what}1 …")
            continue
        numbered, named = column_names(robot, what, True), column_names(robot, what, False)
        choices.append(f"{_span(numbered)} (or {_span(named)})")
    *most, last = (QUANTITIES[what] for what in missing)
    kinds = f"{', '.join(most)} and {last}" if most else last
    owner = "" if robot is None else f" of robot {robot.name!r}"
    return f"the {kinds}{owner} are missing: expected {', '.join(choices)}."


def _span(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def _check_quaternions(label: str, robot: Robot, q: np.ndarray) -> None:
    for joint, own in robot.quaternions:
        length = np.linalg.norm(q[:, own], axis=1)
        if np.any(wrong := np.abs(length - 1) > 1e-2):
            row = int(np.argmax(wrong))
            what = f"the quaternion (x, y, z, w) of joint {joint!r} has length {length[row]:.4g}; expected 1"
            raise ReadError(f"{label}: row {row + 1}: {what}.")
