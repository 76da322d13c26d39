"""The three kinds of files that tables of states stand in, each read alike.

A reader tells whether the file has a quantity (`find`), reads what was found as arrays (N, n) (`read`), and names a place in the
file for an error (`where`).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ReadError
from ..robot.robot import Robot
from .states import column_names

Report = Callable[[float], None]
"""Called now and then with the part that is done, from 0 to 1."""


class Columns:
    """A file with named columns."""

    path: Path
    header: list[str]
    time: list[int] | None
    found: dict[str, list[int]]

    def _set_header(self, path: Path, header: list[str]) -> None:
        self.path, self.header = path, header
        for k, name in enumerate(header):
            if name in header[:k]:
                raise ReadError(f"{path}: two columns are called {name!r}.")
        self.time = [header.index("time")] if "time" in header else None

    @property
    def numbered(self) -> bool:
        return "q1" in self.header

    def find(self, robot: Robot, what: str) -> list[int] | None:
        """Where the columns of a quantity are; None if the file has none of them; an error if it has only some, or too many."""
        index = {name: k for k, name in enumerate(self.header)}
        choices = [column_names(robot, what, numbered) for numbered in (True, False)]
        for names in choices:
            if all(name in index for name in names):
                most = len(names)
                while f"{what}{most + 1}" in index:
                    most += 1
                if most > len(names):
                    raise ReadError(f"{self.path}: {most} columns {what}1 … {what}{most}; robot {robot.name!r} has {len(names)}.")
                return [index[name] for name in names]
        for names in choices:
            absent = [name for name in names if name not in index]
            if len(absent) < len(names):
                shown = ", ".join(absent[:8]) + (f", … ({len(absent)} in all)" if len(absent) > 8 else "")
                raise ReadError(f"{self.path}: columns of robot {robot.name!r} are missing: {shown}. {self.has()}")
        return None

    def has(self) -> str:
        shown = ", ".join(self.header[:12]) + (f", … ({len(self.header)} in all)" if len(self.header) > 12 else "")
        return f"The table has the columns {shown}."

    def where(self, row: int, what: str, column: int, robot: Robot) -> str:
        return f"row {row + 1}, column {self.header[self.found[what][column]]!r}"

    def read(self, wanted: dict[str, list[int]], report: Report | None) -> dict[str, np.ndarray]:
        self.found = wanted
        order = sorted({column for columns in wanted.values() for column in columns})
        table = self._table(order, report)
        return {what: np.ascontiguousarray(table[:, np.searchsorted(order, columns)]) for what, columns in wanted.items()}

    def _table(self, order: list[int], report: Report | None) -> np.ndarray:
        """The numbers (N, n) in these columns."""
        raise NotImplementedError


class Csv(Columns):
    """Comma-separated values below a line of names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        first = next(self._lines(), None)
        if first is None:
            raise ReadError(f"{path}: the file is empty; expected a first line of column names, such as time,q1,v1,a1.")
        names = _cells(first[1])
        if len(names) == 1 and (other := next((x for x in ";\t|" if x in first[1].strip()), "")):
            raise ReadError(f"{path}: {other!r} stands between the names of line {first[0]}; expected commas (and decimal points).")
        if all(_is_number(name) for name in names):
            raise ReadError(f"{path}: line {first[0]} has numbers; expected a first line of column names, such as time,q1,v1,a1.")
        self._set_header(path, names)

    def _lines(self, report: Report | None = None) -> Iterator[tuple[int, str]]:
        """The lines that are not blank, with their numbers."""
        size, done = self.path.stat().st_size or 1, 0
        try:
            with open(self.path, encoding="utf-8-sig") as file:
                for number, line in enumerate(file, 1):
                    done += len(line)
                    if report and number % 4096 == 0:
                        report(min(1.0, done / size))
                    if line.strip():
                        yield number, line
        except UnicodeDecodeError:
            raise ReadError(f"{self.path}: not a text file; expected comma-separated values in UTF-8.") from None

    def _rows(self, report: Report | None) -> Iterator[str]:
        """The lines below the header, each with as many cells as it: numpy would not notice one too many."""
        commas = len(self.header) - 1
        lines = self._lines(report)
        next(lines)
        for number, line in lines:
            if line.count(",") != commas and len(cells := _cells(line)) != commas + 1:
                raise ReadError(f"{self.path}: line {number} has {len(cells)} cells; the header has {commas + 1}.")
            yield line

    def _table(self, order: list[int], report: Report | None) -> np.ndarray:
        rows = self._rows(report)
        first = next(rows, None)
        if first is None:
            raise ReadError(f"{self.path}: the table has a header but no rows.")
        try:
            return np.loadtxt(chain([first], rows), delimiter=",", usecols=order, ndmin=2, comments=None, quotechar='"')
        except ReadError:
            raise
        except ValueError as error:
            raise self._unreadable(order) or ReadError(f"{self.path}: {error}") from None

    def _unreadable(self, order: list[int]) -> ReadError | None:
        """The first cell that is not a number."""
        lines = self._lines()
        next(lines)
        for number, line in lines:
            cells = _cells(line)
            for column in order:
                if not _is_number(cells[column]):
                    place = f"line {number}, column {self.header[column]!r}"
                    return ReadError(f"{self.path}: {place}: {cells[column]!r} is not a number.")
        return None

    def where(self, row: int, what: str, column: int, robot: Robot) -> str:
        lines = self._lines()
        for _ in range(row + 1):
            next(lines)
        return f"line {next(lines)[0]}, column {self.header[self.found[what][column]]!r}"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line.rstrip("\n")]))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # 1_000 is a number for Python and not for numpy


def _unreadable(what: str, error: Exception) -> ReadError:
    """Of a damaged file the libraries that read it may say anything, in any kind of error."""
    return ReadError(f"{what}: {' '.join(str(error).split()) or type(error).__name__}")


class Parquet(Columns):
    """Columns in binary form."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet

        try:
            self.schema = pyarrow.parquet.read_schema(path)
            names = list(self.schema.names)
        except Exception as error:
            raise _unreadable(f"{path}: not a Parquet file", error) from None
        self._set_header(path, names)

    def _table(self, order: list[int], report: Report | None) -> np.ndarray:
        import pyarrow
        import pyarrow.parquet

        for column in order:
            kind = self.schema.field(column).type
            if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
                raise ReadError(f"{self.path}: column {self.header[column]!r} holds {kind}; expected numbers.")
        names = [self.header[column] for column in order]
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                table = file.read(columns=names)
        except Exception as error:
            raise _unreadable(f"{self.path}: the file is damaged", error) from None
        return np.stack([table[name].to_numpy().astype(np.float64) for name in names], axis=1)


class Npz:
    """A file of arrays, one for each quantity."""

    numbered = False

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                self.names = list(file.keys())
        except Exception as error:
            raise _unreadable(f"{path}: not an npz file; numpy.savez(path, time=…, q=…, v=…, a=…) writes one", error) from None
        self.time = 1 if "time" in self.names else None

    def find(self, robot: Robot, what: str) -> int | None:
        return len(column_names(robot, what, True)) if what in self.names else None

    def has(self) -> str:
        return f"The file has the arrays {', '.join(self.names) or 'none'}."

    def read(self, wanted: dict[str, int], report: Report | None) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        for what, size in wanted.items():
            try:
                with open(self.path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                    x: Any = file[what]
            except Exception as error:
                raise _unreadable(f"{self.path}: the array {what!r} cannot be read", error) from None
            expected = "(N,)" if what == "time" else f"(N, {size})"
            if x.dtype.kind not in "fiu":
                raise ReadError(f"{self.path}: the array {what!r} is of type {x.dtype}; expected numbers of shape {expected}.")
            if x.ndim != (1 if what == "time" else 2) or (x.ndim == 2 and x.shape[1] != size):
                raise ReadError(f"{self.path}: the array {what!r} has shape {x.shape}; expected {expected}.")
            arrays[what] = np.asarray(x, dtype=np.float64).reshape(len(x), size)
            if len(x) != len(arrays["q"]):
                raise ReadError(f"{self.path}: the array {what!r} has {len(x)} rows; 'q' has {len(arrays['q'])}.")
        return arrays

    def where(self, row: int, what: str, column: int, robot: Robot) -> str:
        return f"row {row + 1} of 'time'" if what == "time" else f"row {row + 1}, {column_names(robot, what, False)[column]}"
