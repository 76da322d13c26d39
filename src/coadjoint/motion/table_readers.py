"""The three kinds of files that tables of states stand in, each read alike.

A reader tells whether the file has a quantity (`find`), reads what was found as arrays (N, n) (`read`), and names a place in the
file for an error (`where`).
"""

from __future__ import annotations

import csv
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import ReadError
from ..files import open_regular
from ..robot.robot import Robot
from ..words import cut, short
from .states import column_names

Report = Callable[[float], None]
"""Called now and then with the part that is done, from 0 to 1."""

LARGEST = 8 * 2**30
"""The most bytes of a table's file, and of the numbers in it, which are kept in memory."""

LONGEST_LINE = 16 * 2**20
"""The most characters of a line of text."""


def open_table(path: Path) -> BinaryIO:
    """The file of a table, opened for reading: an ordinary one, not too large."""
    return open_regular(path, LARGEST)


def _check_size(path: Path, size: int) -> None:
    """Refuse what is small in the file and large in memory."""
    if size > LARGEST:
        raise ReadError(f"{path}: the numbers take {size / 2**30:.3g} GiB; at most {LARGEST / 2**30:.3g} GiB are read.")


class Columns:
    """A file with named columns."""

    path: Path
    header: list[str]
    time: list[int] | None
    found: dict[str, list[int]]

    def _set_header(self, path: Path, header: list[str]) -> None:
        self.path, self.header = path, header
        seen: set[str] = set()
        for name in header:
            if name in seen:
                raise ReadError(f"{path}: two columns are called {short(name)}.")
            seen.add(name)
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
        shown = ", ".join(cut(x) for x in self.header[:12]) + (f", … ({len(self.header)} in all)" if len(self.header) > 12 else "")
        return f"The table has the columns {shown}."

    def where(self, row: int, what: str, column: int, robot: Robot) -> str:
        return f"row {row + 1}, column {short(self.header[self.found[what][column]])}"

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
        names = self._cells(*first)
        if len(names) == 1 and (other := next((x for x in ";\t|" if x in first[1].strip()), "")):
            raise ReadError(f"{path}: {other!r} stands between the names of line {first[0]}; expected commas (and decimal points).")
        if all(_is_number(name) for name in names):
            raise ReadError(f"{path}: line {first[0]} has numbers; expected a first line of column names, such as time,q1,v1,a1.")
        self._set_header(path, names)

    def _lines(self, report: Report | None = None) -> Iterator[tuple[int, str]]:
        """The lines that are not blank, with their numbers."""
        with open_table(self.path) as binary, io.TextIOWrapper(binary, encoding="utf-8-sig") as file:
            size, done, number = os.fstat(binary.fileno()).st_size or 1, 0, 0
            try:
                while line := file.readline(LONGEST_LINE + 1):
                    number += 1
                    done += len(line)
                    if len(line) > LONGEST_LINE:
                        raise ReadError(f"{self.path}: line {number} has more than {LONGEST_LINE} characters; not a table.")
                    if report and number % 4096 == 0:
                        report(min(1.0, done / size))
                    if line.strip():
                        yield number, line
            except UnicodeDecodeError:
                raise ReadError(f"{self.path}: not a text file; expected comma-separated values in UTF-8.") from None

    def _cells(self, number: int, line: str) -> list[str]:
        """The cells of a line."""
        if line.count('"') % 2:
            raise ReadError(f"{self.path}: line {number}: a quotation mark is not closed.")
        try:
            return [cell.strip() for cell in next(csv.reader([line.rstrip("\r\n")]))]
        except csv.Error as error:
            raise ReadError(f"{self.path}: line {number}: {error}.") from None

    def _rows(self, report: Report | None) -> Iterator[str]:
        """The lines below the header, each with as many cells as it: numpy would not notice one too many."""
        commas = len(self.header) - 1
        lines = self._lines(report)
        next(lines)
        for number, line in lines:
            if (line.count(",") != commas or '"' in line) and len(cells := self._cells(number, line)) != commas + 1:
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
            raise self._unreadable(order) or ReadError(f"{self.path}: {cut(str(error))}") from None

    def _unreadable(self, order: list[int]) -> ReadError | None:
        """The first cell that is not a number."""
        lines = self._lines()
        next(lines)
        for number, line in lines:
            cells = self._cells(number, line)
            for column in order:
                if not _is_number(cells[column]):
                    place = f"line {number}, column {short(self.header[column])}"
                    return ReadError(f"{self.path}: {place}: {short(cells[column])} is not a number.")
        return None

    def where(self, row: int, what: str, column: int, robot: Robot) -> str:
        lines = self._lines()
        for _ in range(row + 1):
            next(lines)
        return f"line {next(lines)[0]}, column {short(self.header[self.found[what][column]])}"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # 1_000 is a number for Python and not for numpy


def _unreadable(what: str, error: Exception) -> ReadError:
    """Of a damaged file the libraries that read it may say anything, in any kind of error."""
    return ReadError(f"{what}: {cut(' '.join(str(error).split()), 200) or type(error).__name__}")


class Parquet(Columns):
    """Columns in binary form."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet

        with open_table(path) as opened:
            try:
                self.schema = pyarrow.parquet.read_schema(opened)
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
                raise ReadError(f"{self.path}: column {short(self.header[column])} holds {cut(str(kind))}; expected numbers.")
        names = [self.header[column] for column in order]
        with open_table(self.path) as opened:
            try:
                with pyarrow.parquet.ParquetFile(opened) as file:
                    _check_size(self.path, 8 * len(names) * file.metadata.num_rows)
                    table = file.read(columns=names)
                return np.stack([table[name].to_numpy().astype(np.float64) for name in names], axis=1)
            except ReadError:
                raise
            except Exception as error:
                raise _unreadable(f"{self.path}: the file is damaged", error) from None


class Npz:
    """A file of arrays, one for each quantity."""

    numbered = False

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_table(path) as opened:
            try:
                with zipfile.ZipFile(opened) as file:
                    sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in file.infolist()}
            except Exception as error:
                hint = "numpy.savez(path, time=…, q=…, v=…, a=…) writes one"
                raise _unreadable(f"{path}: not an npz file; {hint}", error) from None
        self.names = list(sizes)
        _check_size(path, sum(sizes.get(what, 0) for what in ("time", "q", "v", "a", "tau")))
        self.time = 1 if "time" in self.names else None

    def find(self, robot: Robot, what: str) -> int | None:
        return len(column_names(robot, what, True)) if what in self.names else None

    def has(self) -> str:
        return f"The file has the arrays {', '.join(cut(x) for x in self.names[:12]) or 'none'}."

    def read(self, wanted: dict[str, int], report: Report | None) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        for what, size in wanted.items():
            with open_table(self.path) as opened:
                try:
                    with np.load(opened, allow_pickle=False) as file:
                        x: Any = file[what]
                except Exception as error:
                    raise _unreadable(f"{self.path}: the array {what!r} cannot be read", error) from None
            expected = "(N,)" if what == "time" else f"(N, {size})"
            if not isinstance(x, np.ndarray):
                raise ReadError(f"{self.path}: {what!r} is not an array of numpy; expected numbers of shape {expected}.")
            if x.dtype.kind not in "fiu":
                raise ReadError(
                    f"{self.path}: the array {what!r} is of type {cut(str(x.dtype))}; expected numbers of shape {expected}."
                )
            if x.ndim != (1 if what == "time" else 2) or (x.ndim == 2 and x.shape[1] != size):
                raise ReadError(f"{self.path}: the array {what!r} has shape {x.shape}; expected {expected}.")
            arrays[what] = np.asarray(x, dtype=np.float64).reshape(len(x), size)
            if len(x) != len(arrays["q"]):
                raise ReadError(f"{self.path}: the array {what!r} has {len(x)} rows; 'q' has {len(arrays['q'])}.")
        return arrays

    def where(self, row: int, what: str, column: int, robot: Robot) -> str:
        return f"row {row + 1} of 'time'" if what == "time" else f"row {row + 1}, {column_names(robot, what, False)[column]}"
