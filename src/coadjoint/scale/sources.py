"""Sources of states for a stream: files too large for memory, read in blocks of rows.

A source is any object with

    rows the number of states
    identity a text that differs between sources with different numbers
    read(start, stop)     these states as {"q": (n, nq), "v": (n, nv), …}, in any process that received the source by pickle; the
                          arrays are not used after the next call by the same thread, which may write to them again

`open_source` gives one for Parquet, Zarr and NumPy files. The identity of a file is its size, time of change and first bytes, not
its whole content; a stream that is continued compares what it reads by checksums (`store.py`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..arguments import whole
from ..errors import CoadjointError, MissingPackageError, ReadError
from ..files import as_path
from ..words import cut, short

if TYPE_CHECKING:
    from ..robot.robot import Robot

HEAD = 1 << 16
"""The number of bytes at the beginning of a file that enter its identity."""


class Source(Protocol):
    """A source of states; see the module."""

    @property
    def rows(self) -> int: ...

    @property
    def identity(self) -> str: ...

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]: ...


def open_source(path: str | Path, robot: Robot, needs: Sequence[str]) -> Source:
    """The states in a file: .parquet with columns q1 … or q.JOINT …, .zarr with arrays q, v, …, or .npy with all side by side."""
    path = as_path(path)
    if not path.exists():
        raise ReadError(f"{path}: there is no such file.")
    if not (path.is_file() or path.is_dir()):
        raise ReadError(f"{path}: this is not an ordinary file; copy what it holds to a file.")
    kinds: dict[str, Callable[..., Source]] = {".parquet": ParquetSource, ".zarr": ZarrSource, ".npy": NpySource}
    if path.suffix.lower() not in kinds:
        raise ReadError(f"{path}: states of a stream stand in {', '.join(kinds)}, not in {path.suffix or 'nothing'!r}.")
    result: Source = kinds[path.suffix.lower()](path.resolve(), robot, tuple(needs))
    return result


def widths(robot: Robot, needs: Sequence[str]) -> dict[str, int]:
    """The size of each quantity of a state."""
    return {what: robot.nq if what == "q" else robot.nv for what in needs}


def file_identity(path: Path) -> str:
    """Size, time of change and first bytes of a file, or of all files in a folder."""
    digest = hashlib.sha256()
    try:
        files = sorted(x for x in path.rglob("*") if x.is_file()) if path.is_dir() else [path]
        for file in files:
            known = os.stat(file)
            name = file.relative_to(path).as_posix() if path.is_dir() else ""
            digest.update(f"{name}|{known.st_size}|{known.st_mtime_ns}|".encode("utf-8", "surrogateescape"))
            if len(files) == 1 or file.name == "zarr.json":
                with open(file, "rb") as opened:
                    digest.update(opened.read(HEAD))
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror}.") from None
    return digest.hexdigest()


def check_source(source: Any) -> int:
    """The number of states of a source; an error for an object that is none."""
    if lacking := [name for name in ("rows", "identity", "read") if not hasattr(source, name)]:
        raise CoadjointError(f"source is {short(source)}, which has no {lacking[0]!r}; expected the name of a file, or a source.")
    if not isinstance(source.identity, str):
        raise CoadjointError(f"the identity of the source is {short(source.identity)}; expected text.")
    if (rows := whole(source.rows, "the number of rows of the source")) < 1:
        raise CoadjointError("the source has no states.")
    return rows


class FileSource:
    """A source that is a file, or a folder."""

    path: Path
    rows: int
    identity: str

    def check_unchanged(self) -> None:
        """An error if the file is another one than when it was opened."""
        if file_identity(self.path) != self.identity:
            raise ReadError(f"{self.path}: the file has changed while it was read; remove the output, and begin anew.")


class NpySource(FileSource):
    """One array (N, nq + nv + …) of a .npy file: q, v and a or tau side by side."""

    def __init__(self, path: Path, robot: Robot, needs: tuple[str, ...]) -> None:
        self.path, self.widths = path, widths(robot, needs)
        array = self._array()
        wanted = sum(self.widths.values())
        if array.ndim != 2 or array.shape[1] != wanted or array.dtype.kind not in "fiu":
            sides = " + ".join(f"{n} {what}" for what, n in self.widths.items())
            raise ReadError(
                f"{path}: the array has shape {array.shape} and dtype {array.dtype}; expected numbers of shape (N, {wanted}) for robot "
                f"{robot.name!r}: {sides}."
            )
        self.rows, self.identity = len(array), file_identity(path)

    def _array(self) -> np.ndarray:
        try:
            result = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # whatever NumPy says of a header that is damaged
            raise ReadError(f"{self.path}: not an array of numbers that numpy.save has written: {_told(error)}") from None
        if not isinstance(result, np.ndarray):
            raise ReadError(f"{self.path}: not an array of numbers that numpy.save has written, but a file of several.")
        return result

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]:
        part = np.array(self._array()[start:stop], dtype=np.float64)
        ends = np.cumsum(list(self.widths.values()))[:-1]
        return dict(zip(self.widths, map(np.ascontiguousarray, np.split(part, ends, axis=1)), strict=True))


class ZarrSource(FileSource):
    """Arrays q (N, nq), v (N, nv), … of a Zarr group."""

    def __init__(self, path: Path, robot: Robot, needs: tuple[str, ...]) -> None:
        self.path, self.widths = path, widths(robot, needs)
        group = self._group()
        lengths = {}
        for what, n in self.widths.items():
            if what not in self._names(group):
                raise ReadError(
                    f"{path}: there is no array {what!r}, (N, {n}); the group has {', '.join(self._names(group)) or 'none'}."
                )
            array = self._member(group, what)
            shape = array.shape
            if len(shape) != 2 or shape[1] != n or array.dtype.kind not in "fiu":
                raise ReadError(f"{path}: {what!r} has shape {shape}; expected numbers of shape (N, {n}) for robot {robot.name!r}.")
            lengths[what] = shape[0]
        if len(set(lengths.values())) > 1:
            raise ReadError(f"{path}: the arrays are of different lengths: {', '.join(f'{k} {n}' for k, n in lengths.items())}.")
        self.rows, self.identity = next(iter(lengths.values())), file_identity(path)

    def _group(self) -> Any:
        zarr = import_zarr()
        try:
            return zarr.open_group(str(self.path), mode="r")
        except Exception as error:
            raise ReadError(f"{self.path}: not a Zarr group: {_told(error)}") from None

    def _names(self, group: Any) -> list[str]:
        """The names of the arrays in the group."""
        try:
            return sorted(group)
        except Exception as error:
            raise ReadError(f"{self.path}: the description of the group is damaged: {_told(error)}") from None

    def _member(self, group: Any, what: str) -> Any:
        """An array of the group."""
        try:
            array = group[what]
            array.shape, array.dtype  # noqa: B018  which a group has not
            return array
        except Exception as error:
            raise ReadError(f"{self.path}: {what!r} is not an array, or its description is damaged: {_told(error)}") from None

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]:
        group, found = self._group(), {}
        for what in self.widths:
            array = self._member(group, what)
            try:
                found[what] = np.asarray(array[start:stop], dtype=np.float64)
            except Exception as error:
                raise ReadError(f"{self.path}: rows {start + 1} to {stop} of {what!r} are damaged: {_told(error)}") from None
        return found


class ParquetSource(FileSource):
    """Columns of a Parquet file, named as in any table of states; a row group must fit into memory."""

    def __init__(self, path: Path, robot: Robot, needs: tuple[str, ...]) -> None:
        from ..motion.table_readers import Parquet
        from ..motion.tables import check_format, missing_columns

        check_format(path)
        reader = Parquet(path)
        found = {what: reader.find(robot, what) for what in needs}
        if missing := [what for what, columns in found.items() if columns is None]:
            raise missing_columns(reader, robot, missing)
        self.path, numeric = path, {reader.header[k] for k in reader.numeric()}
        self.columns = {what: [reader.header[k] for k in place.columns] for what, place in found.items() if place is not None}
        for name in (name for columns in self.columns.values() for name in columns):
            if name not in numeric:
                raise ReadError(f"{path}: column {short(name)} holds {reader.schema.field(name).type}; expected numbers.")
        try:
            with self._file() as file:
                sizes = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        except Exception as error:
            raise ReadError(f"{path}: the file is damaged: {_told(error)}") from None
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.rows, self.identity = int(self.starts[-1]), file_identity(path)
        self._last: tuple[tuple[int, int], dict[str, np.ndarray]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def _file(self) -> Any:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(self.path)

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]:
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        last = int(np.searchsorted(self.starts, stop, side="left"))
        if self._last is None or self._last[0] != (first, last):  # neighbouring chunks are often of the same row groups
            self._last = (first, last), self._groups(first, last)
        offset = int(self.starts[first])
        return {what: x[start - offset : stop - offset] for what, x in self._last[1].items()}

    def _groups(self, first: int, last: int) -> dict[str, np.ndarray]:
        names = [name for columns in self.columns.values() for name in columns]
        try:
            with self._file() as file:
                table = file.read_row_groups(list(range(first, last)), columns=names)
            return {
                what: np.stack([table[name].to_numpy().astype(np.float64) for name in columns], axis=1)
                for what, columns in self.columns.items()
            }
        except Exception as error:
            raise ReadError(f"{self.path}: the file is damaged: {_told(error)}") from None


def _told(error: Exception) -> str:
    """A library's message about a damaged file, on one line."""
    return cut(" ".join(str(error).split()), 200) or type(error).__name__


def import_zarr() -> Any:
    """The package zarr, or an error with the command that installs it."""
    try:
        import zarr
    except ImportError:
        raise MissingPackageError('Zarr is not installed; install it with: pip install "coadjoint[zarr]"') from None
    return zarr
