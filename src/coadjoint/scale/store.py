"""A Zarr group that any number of processes fill chunk by chunk, and that can be continued after any crash.

The group and every file in it are created under a temporary name and renamed. Its attributes describe the computation: robot,
function, options, version and input. A chunk is done when its data have been written and then, in the array "done", the fingerprint
of this description.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ..errors import CoadjointError, ReadError
from .sources import import_zarr

KEY = "coadjoint stream"
"""The attribute that describes the computation."""
DONE = "done"
BYTES = 16
"""Length of a fingerprint in the array "done"."""


def fingerprint(description: Mapping[str, Any]) -> np.ndarray:
    """The fingerprint (16,) of a description, in bytes; never all zero."""
    text = json.dumps(dict(description), sort_keys=True)
    return np.frombuffer(hashlib.sha256(text.encode()).digest()[: BYTES - 1] + b"\1", dtype=np.uint8)


def open_store(path: Path, description: dict[str, Any], arrays: Mapping[str, tuple[tuple[int, ...], Any]], per_chunk: bool) -> None:
    """Create the group, or check that an existing one belongs to the same computation.

    arrays: core shape and type of each result. per_chunk: one row for each chunk, not for each state.
    """
    if path.exists():
        _check_same(path, description)
        return
    if not path.parent.is_dir():
        raise CoadjointError(f"{path} cannot be written: the folder {path.parent} does not exist; make it first.")
    zarr = import_zarr()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    rows, chunk, count = description["rows"], description["chunk"], chunks(description)
    try:
        group = zarr.create_group(str(part), attributes={KEY: description})
        # Not compressed: floating-point numbers hardly shrink, and the size of a whole chunk is known.
        plain = {"compressors": [zarr.codecs.Crc32cCodec()], "config": {"write_empty_chunks": True}}
        for name, (core, dtype) in arrays.items():
            lead = (count, 1) if per_chunk else (rows, chunk)
            group.create_array(name, shape=(lead[0], *core), chunks=(lead[1], *core), dtype=dtype, fill_value=np.nan, **plain)
        group.create_array(DONE, shape=(count, BYTES), chunks=(1, BYTES), dtype=np.uint8, fill_value=0, **plain)
        try:
            os.rename(part, path)
        except OSError:  # another process was quicker
            if not path.exists():
                raise
            _check_same(path, description)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def chunks(description: Mapping[str, Any]) -> int:
    """The number of chunks of the stream."""
    answer: int = -(-description["rows"] // description["chunk"])
    return answer


def _check_same(path: Path, description: dict[str, Any]) -> None:
    """Raise an error if the group belongs to another computation."""
    begun = read_description(path)
    words = {"version": "version of this library", "input": "input", "rows": "number of states", "chunk": "size of chunks"}
    for key, now in description.items():
        if begun.get(key) != now:
            raise CoadjointError(
                f"{path} was begun with another {words.get(key, key)}: {begun.get(key)!r}, now {now!r}. Give another output, or "
                "remove this one to begin anew."
            )


def read_description(path: Path) -> dict[str, Any]:
    """The description of the computation in a group; an error if it is not the output of a stream."""
    zarr = import_zarr()
    try:
        return dict(zarr.open_group(str(path), mode="r").attrs[KEY])
    except Exception:
        raise ReadError(f"{path} exists and is not the output of a stream; give another name, or remove it.") from None


def write_chunk(path: Path, description: Mapping[str, Any], k: int, arrays: Mapping[str, np.ndarray], per_chunk: bool) -> None:
    """Write the results of chunk k, then mark it as done; each file is written under a temporary name and renamed. This does not
    use Zarr, which takes milliseconds per file.
    """
    rows = 1 if per_chunk else description["chunk"]
    for name, x in arrays.items():
        if len(x) < rows:  # the last one: Zarr's chunks are all of one size
            x = np.concatenate([x, np.full((rows - len(x), *x.shape[1:]), np.nan, x.dtype)])
        _write(_place(path, name, k, x.ndim), x)
    _write(_place(path, DONE, k, 2), fingerprint(description))


def _place(path: Path, name: str, k: int, ndim: int) -> Path:
    """The file of chunk k of an array, as Zarr's format has it."""
    return path.joinpath(name, "c", str(k), *["0"] * (ndim - 1))


def _write(file: Path, x: np.ndarray) -> None:
    """Write the numbers, little-endian, and their checksum."""
    import google_crc32c

    data = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<")).tobytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{uuid4().hex}.partial")
    try:
        with open(part, "xb") as opened:
            opened.write(data)
            opened.write(google_crc32c.value(data).to_bytes(4, "little"))
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def missing_chunks(path: Path, description: Mapping[str, Any], names: Sequence[str]) -> list[int]:
    """The chunks that are not done: not marked as done, or with incomplete files."""
    count = chunks(description)
    group = import_zarr().open_group(str(path), mode="r")
    sizes = {name: (group[name].ndim, _file_size(group[name])) for name in names}
    expected = fingerprint(description)

    def whole(k: int) -> bool:
        if not _is_marked(path, k, expected):
            return False
        if all(_size(_place(path, name, k, ndim)) == n for name, (ndim, n) in sizes.items()):
            return True
        _place(path, DONE, k, 2).unlink()  # no worker may take it for done
        return False

    return [k for k in range(count) if not whole(k)]


def is_done(path: Path, description: Mapping[str, Any], k: int) -> bool:
    """True if chunk k is marked as done."""
    return _is_marked(path, k, fingerprint(description))


def _is_marked(path: Path, k: int, expected: np.ndarray) -> bool:
    try:
        return _place(path, DONE, k, 2).read_bytes()[:BYTES] == expected.tobytes()
    except OSError:
        return False


def _file_size(array: Any) -> int:
    """Bytes of a chunk's file: its numbers and four of checksum."""
    result: int = int(np.prod(array.chunks)) * array.dtype.itemsize + 4
    return result


def _size(file: Path) -> int:
    """Size of a file, 0 if there is none."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
