"""The sources of tables, each read alike: files of columns, files of arrays, arrays in memory.

A reader finds the columns of a quantity (`find`), reads them as arrays (N, n) (`read`), and names a cell for an error (`place`).
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import ReadError
from ..files import open_regular
from ..robot.robot import Robot
from ..words import cut, short
from .columns import SPELLINGS, Header, Place, words
from .states import coordinate_names

Report = Callable[[float], None]
"""Called occasionally with the completed fraction, from 0 to 1."""

LARGEST = 8 * 2**30
"""The most bytes of a table's file, and of the numbers in it, which are kept in memory."""


ENDLESS = 2**60
"""The most bytes of a file that is read in parts."""


def open_table(path: Path, largest: int = LARGEST) -> BinaryIO:
    """The file of a table, opened for reading: an ordinary one, not too large."""
    return open_regular(path, largest)


def _check_size(path: Path, size: int) -> None:
    """Raise an error for tables that are small in the file and large in memory."""
    if size > LARGEST:
        raise ReadError(f"{path}: the numbers take {size / 2**30:.3g} GiB; at most {LARGEST / 2**30:.3g} GiB are read.")


class Columns:
    """A table with named columns."""

    path: Any
    """The file, or what the source is called."""
    header: list[str]

    def _set_header(self, path: Any, header: list[str]) -> None:
        self.path, self.header = path, header
        seen: set[str] = set()
        for name in header:
            if name in seen:
                raise ReadError(f"{path}: two columns are called {short(name)}.")
            seen.add(name)

    @property
    def numbered(self) -> bool:
        return "q1" in self.header

    def find(self, robot: Robot | None, what: str, given: Any = None) -> Place | None:
        """The places of the columns of a quantity; None if there are none of them; an error if there are only some, or too many."""
        names = None if robot is None else coordinate_names(robot, what)
        header = Header(self.header, str(self.path), "" if robot is None else robot.name)
        return header.locate(what, None if what == "time" else names, given)

    def has(self) -> str:
        return Header(self.header, str(self.path)).has()

    def read(
        self, wanted: dict[str, list[int]], report: Report | None = None, optional: Iterable[str] = ()
    ) -> dict[str, np.ndarray]:
        """The wanted columns (N, n); what is optional has NaN where it has no number."""
        order = sorted({column for columns in wanted.values() for column in columns})
        if not order:
            raise ReadError(f"{self.path}: there is nothing to read. {self.has()}")
        spare = frozenset(column for what in optional for column in wanted[what])
        table = self._table(order, report, spare)
        return {what: np.ascontiguousarray(table[:, np.searchsorted(order, columns)]) for what, columns in wanted.items()}

    def numeric(self) -> list[int]:
        """The columns that hold numbers."""
        raise NotImplementedError

    def place(self, row: int, column: int) -> str:
        """A cell for an error."""
        return f"row {row + 1}, column {short(self.header[column])}"

    def empty(self, row: int, column: int) -> bool:
        """True if a cell that is NaN was left empty."""
        return False

    def _table(self, order: list[int], report: Report | None, optional: frozenset[int] = frozenset()) -> np.ndarray:
        """The numbers (N, n) in these columns."""
        raise NotImplementedError


def _unreadable(what: str, error: Exception) -> ReadError:
    """Turn any error that a library raises on a damaged file into a ReadError."""
    return ReadError(f"{what}: {cut(' '.join(str(error).split()), 200) or type(error).__name__}")


class Parquet(Columns):
    """Columns in binary form."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet

        with open_table(path, ENDLESS) as opened:
            try:
                self.schema = pyarrow.parquet.read_schema(opened)
                names = list(self.schema.names)
            except Exception as error:
                raise _unreadable(f"{path}: not a Parquet file", error) from None
        self._set_header(path, names)

    def numeric(self) -> list[int]:
        from pyarrow import types

        kinds = [self.schema.field(k).type for k in range(len(self.header))]
        return [k for k, kind in enumerate(kinds) if types.is_floating(kind) or types.is_integer(kind)]

    def blocks(self, rows: int) -> Iterator[dict[str, np.ndarray]]:
        """The columns of numbers, block by block."""
        import pyarrow.parquet

        names = [self.header[k] for k in self.numeric()]
        with open_table(self.path, ENDLESS) as opened:
            try:
                with pyarrow.parquet.ParquetFile(opened) as file:
                    for batch in file.iter_batches(rows, columns=names):
                        yield {name: batch[name].to_numpy(zero_copy_only=False).astype(np.float64) for name in names}
            except (pyarrow.ArrowException, OSError) as error:
                raise _unreadable(f"{self.path}: the file is damaged", error) from None

    def _table(self, order: list[int], report: Report | None, optional: frozenset[int] = frozenset()) -> np.ndarray:
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


class Arrays(Columns):
    """Named arrays: q (N, nq) has a column for each coordinate, `elbow_velocity` (N,) is one."""

    def __init__(self, path: Any, arrays: Mapping[str, Any]) -> None:
        self.arrays = arrays
        self._set_shapes(path, {key: (x.shape, x.dtype) for key, x in arrays.items()})

    def _set_shapes(self, path: Any, shapes: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]) -> None:
        self.shapes = shapes
        self.cells: list[tuple[str, int | None]] = []
        for key, (shape, dtype) in shapes.items():
            if dtype.kind in "fiuM" and len(shape) in (1, 2):
                self.cells += [(key, None)] if len(shape) == 1 else [(key, k) for k in range(shape[1])]
        self._set_header(path, [key if k is None else f"{key}{k + 1}" for key, k in self.cells])

    numbered = False

    def find(self, robot: Robot | None, what: str, given: Any = None) -> Place | None:
        """The array of that name, or the columns."""
        keys = [x for x in self.shapes if ".".join(words(x)) in SPELLINGS[what]] if given is None else []
        if given is not None and isinstance(given, str) and given in self.shapes:
            keys = [given]
        if what in keys:
            keys = [what]
        if len(keys) > 1:
            raise ReadError(
                f"{self.path}: {' and '.join(map(short, keys))} may both be {what}; say which with columns={{{what!r}: name}}."
            )
        if not keys:
            return super().find(robot, what, given)
        (key,) = keys
        shape, dtype = self.shapes[key]
        size = len(coordinate_names(robot, what)) if robot is not None else "n"
        expected = "(N,)" if what == "time" else f"(N, {size})"
        if dtype.hasobject:
            raise ReadError(
                f"{self.path}: the array {key!r} cannot be read: it holds objects; expected numbers of shape {expected}."
            )
        if dtype.kind not in "fiu" and not (what == "time" and dtype.kind == "M"):
            raise ReadError(f"{self.path}: the array {key!r} is of type {cut(str(dtype))}; expected numbers of shape {expected}.")
        if what != "time" and len(shape) == 1 and (size == 1 or robot is None):
            return Place([self.cells.index((key, None))])
        if len(shape) != (1 if what == "time" else 2) or (what != "time" and robot is not None and shape[1] != size):
            raise ReadError(f"{self.path}: the array {key!r} has shape {shape}; expected {expected}.")
        return Place([k for k, (name, _) in enumerate(self.cells) if name == key])

    def has(self) -> str:
        names = list(self.shapes)
        more = f", … ({len(names)} in all)" if len(names) > 12 else ""
        return f"The table has the arrays {', '.join(cut(x) for x in names[:12]) or 'none'}{more}."

    def numeric(self) -> list[int]:
        return [k for k, (key, _) in enumerate(self.cells) if self.shapes[key][1].kind != "M"]

    def _table(self, order: list[int], report: Report | None, optional: frozenset[int] = frozenset()) -> np.ndarray:
        keys = list(dict.fromkeys(self.cells[k][0] for k in order))
        lengths = {key: self.shapes[key][0][0] for key in keys}
        first = "q" if "q" in lengths else keys[0]
        for key, length in lengths.items():
            if length != lengths[first]:
                raise ReadError(f"{self.path}: the array {key!r} has {length} rows; {first!r} has {lengths[first]}.")
        arrays = {key: _as_numbers(self._get(key)) for key in keys}
        columns = [arrays[key] if k is None else arrays[key][:, k] for key, k in (self.cells[c] for c in order)]
        return np.stack(columns, axis=1)

    def _get(self, key: str) -> np.ndarray:
        return np.asarray(self.arrays[key])


def _as_numbers(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "M":  # a time of day: seconds since the first
        return (x - x[:1]) / np.timedelta64(1, "s") if len(x) else np.zeros(0)
    return np.asarray(x, dtype=np.float64)


class Npz(Arrays):
    """A file of arrays."""

    def __init__(self, path: Path) -> None:
        with open_table(path) as opened:
            try:
                with zipfile.ZipFile(opened) as file:
                    shapes = {entry.filename.removesuffix(".npy"): _npy_shape(file, entry) for entry in file.infolist()}
            except Exception as error:
                hint = "numpy.savez(path, time=…, q=…, v=…, a=…) writes one"
                raise _unreadable(f"{path}: not an npz file; {hint}", error) from None
        self._set_shapes(path, shapes)

    def _get(self, key: str) -> np.ndarray:
        shape, dtype = self.shapes[key]
        _check_size(self.path, int(np.prod(shape, dtype=float)) * dtype.itemsize)
        with open_table(self.path) as opened:
            try:
                with np.load(opened, allow_pickle=False) as file:
                    found = np.asarray(file[key])
            except Exception as error:
                raise _unreadable(f"{self.path}: the array {key!r} cannot be read", error) from None
        if found.shape != shape or found.dtype != dtype:
            raise ReadError(f"{self.path}: {key!r} is not an array of the shape and type that its header states.")
        return found


def _npy_shape(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of an array; those of an object where it has none."""
    with file.open(entry) as opened:
        try:
            version = np.lib.format.read_magic(opened)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(opened)
        except ValueError:
            return (), np.dtype(object)
    return tuple(int(n) for n in shape), dtype


class Frame(Columns):
    """A data frame of pandas, Polars, or anything with `columns` whose items become NumPy arrays."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.own = list(frame.columns)
        self._set_header("the data frame", [str(x) for x in self.own])

    def numeric(self) -> list[int]:
        return [k for k in range(len(self.own)) if self._get(k).dtype.kind in "fiu"]

    def _get(self, column: int) -> np.ndarray:
        return np.asarray(self.frame[self.own[column]])

    def _table(self, order: list[int], report: Report | None, optional: frozenset[int] = frozenset()) -> np.ndarray:
        columns = []
        for k in order:
            x = self._get(k)
            if x.dtype.kind == "O":
                with suppress(TypeError, ValueError):
                    x = np.array([np.nan if y is None else float(y) for y in x])
            if x.dtype.kind not in "fiuM" or x.ndim != 1:
                raise ReadError(f"{self.path}: column {short(self.header[k])} holds {cut(str(x.dtype))}; expected numbers.")
            columns.append(_as_numbers(x))
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.frame), 0))
