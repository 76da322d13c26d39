"""A Zarr group that any number of processes fill chunk by chunk, and that can be continued after any crash.

The group and every file in it are created under a temporary name and renamed. Its attributes describe the computation: robot,
function, options, version and input. A chunk is done when its data have been written and then, in the array "done", the fingerprint
of this description and checksums of the states it was computed from. Every file has a checksum of its own, which is read again when the
stream is continued.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
CHECK = 4
"""Length of a checksum (CRC-32C)."""
Arrays = Mapping[str, tuple[tuple[int, ...], Any]]
"""Core shape and type of each result."""


def fingerprint(description: Mapping[str, Any]) -> np.ndarray:
    """The fingerprint (16,) of a description, in bytes; never all zero."""
    text = json.dumps(dict(description), sort_keys=True)
    return np.frombuffer(hashlib.sha256(text.encode()).digest()[: BYTES - 1] + b"\1", dtype=np.uint8)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Errors of the file system as errors that name the output."""
    try:
        yield
    except OSError as error:
        raise CoadjointError(
            f"{path} cannot be written: {error.strerror or error}. What is done is kept; the same call goes on where it stopped."
        ) from None


def open_store(path: Path, description: dict[str, Any], arrays: Arrays, per_chunk: bool, inputs: int) -> None:
    """Create the group, or check that an existing one belongs to the same computation.

    per_chunk: one row for each chunk, not for each state. inputs: how many arrays a state has.
    """
    layout = _layout(description, arrays, per_chunk, inputs)
    if path.exists():
        _check_same(path, description, layout)
        return
    if not path.parent.is_dir():
        raise CoadjointError(f"{path} cannot be written: the folder {path.parent} does not exist; make it first.")
    zarr = import_zarr()
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with _writing(path):
            group = zarr.create_group(str(part), attributes={KEY: description})
            # Not compressed: floating-point numbers hardly shrink, and the size of a whole chunk is known.
            plain = {"compressors": [zarr.codecs.Crc32cCodec()], "config": {"write_empty_chunks": True}}
            for name, (shape, chunk, dtype) in layout.items():
                fill = 0 if name == DONE else np.nan
                group.create_array(name, shape=shape, chunks=chunk, dtype=dtype, fill_value=fill, **plain)
            try:
                os.rename(part, path)
            except OSError:  # another process was quicker
                if not path.exists():
                    raise
                _check_same(path, description, layout)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _layout(description: Mapping[str, Any], arrays: Arrays, per_chunk: bool, inputs: int) -> dict[str, Any]:
    """Shape, shape of a chunk, and type of each array of the group."""
    count = chunks(description)
    rows, chunk = (count, 1) if per_chunk else (description["rows"], description["chunk"])
    width = BYTES + CHECK * inputs
    results = {name: ((rows, *core), (chunk, *core), np.dtype(dtype)) for name, (core, dtype) in arrays.items()}
    return results | {DONE: ((count, width), (1, width), np.dtype(np.uint8))}


def chunks(description: Mapping[str, Any]) -> int:
    """The number of chunks of the stream."""
    answer: int = -(-description["rows"] // description["chunk"])
    return answer


def _check_same(path: Path, description: dict[str, Any], layout: Mapping[str, Any]) -> None:
    """Raise an error if the group belongs to another computation, or its arrays are not those that were created."""
    begun = read_description(path)
    words = {"version": "version of this library", "input": "input", "rows": "number of states", "chunk": "size of chunks"}
    for key, now in description.items():
        if begun.get(key) != now:
            raise CoadjointError(
                f"{path} was begun with another {words.get(key, key)}: {begun.get(key)!r}, now {now!r}. Give another output, or "
                "remove this one to begin anew."
            )
    group = import_zarr().open_group(str(path), mode="r")
    for name, expected in layout.items():
        try:
            array = group[name]
            found = array.shape, array.chunks, array.dtype
        except Exception:  # whatever Zarr says of a file that is damaged or missing
            found = None
        if found != expected:
            raise ReadError(f"{path}: the description of array {name!r} is damaged or missing; remove {path} to begin anew.")


def read_description(path: Path) -> dict[str, Any]:
    """The description of the computation in a group; an error if it is not the output of a stream."""
    zarr = import_zarr()
    try:
        return dict(zarr.open_group(str(path), mode="r").attrs[KEY])
    except Exception:
        raise ReadError(f"{path} exists and is not the output of a stream; give another name, or remove it.") from None


def write_chunk(
    path: Path, description: Mapping[str, Any], k: int, arrays: Mapping[str, np.ndarray], per_chunk: bool, inputs: bytes
) -> None:
    """Write the results of chunk k, then mark it as done, with the checksums of its `inputs`; each file is written under a temporary
    name and renamed. This does not use Zarr, which takes milliseconds per file.
    """
    rows = 1 if per_chunk else description["chunk"]
    with _writing(path):
        for name, x in arrays.items():
            if len(x) < rows:  # the last one: Zarr's chunks are all of one size
                x = np.concatenate([x, np.full((rows - len(x), *x.shape[1:]), np.nan, x.dtype)])
            _write(_place(path, name, k, x.ndim), x)
        _write(_place(path, DONE, k, 2), np.concatenate([fingerprint(description), np.frombuffer(inputs, np.uint8)]))


def checksum(data: Any) -> bytes:
    """The CRC-32C of some bytes, or of an array's."""
    import google_crc32c

    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
    value: int = google_crc32c.value(data)
    return value.to_bytes(CHECK, "little")


def _place(path: Path, name: str, k: int, ndim: int) -> Path:
    """The file of chunk k of an array, as Zarr's format has it."""
    return path.joinpath(name, "c", str(k), *["0"] * (ndim - 1))


def _write(file: Path, x: np.ndarray) -> None:
    """Write the numbers, little-endian, and their checksum."""
    data = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<")).tobytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{uuid4().hex}.partial")
    try:
        with open(part, "xb") as opened:
            opened.write(data)
            opened.write(checksum(data))
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def missing_chunks(path: Path, description: Mapping[str, Any], arrays: Arrays) -> tuple[list[int], dict[int, bytes]]:
    """The chunks that are not done: not marked as done, or with files that are incomplete or damaged; and the checksums of the
    inputs of those that are.
    """
    expected = fingerprint(description)
    left, inputs = [], {}
    for k in range(chunks(description)):
        mark = _mark(path, k, expected)
        if mark is not None and all(
            _content(_place(path, name, k, 1 + len(core))) is not None for name, (core, _) in arrays.items()
        ):
            inputs[k] = mark
            continue
        if mark is not None:
            with _writing(path):
                _place(path, DONE, k, 2).unlink()  # no worker may take it for done
        left.append(k)
    return left, inputs


def is_done(path: Path, description: Mapping[str, Any], k: int) -> bool:
    """True if chunk k is marked as done."""
    return _mark(path, k, fingerprint(description)) is not None


def _mark(path: Path, k: int, expected: np.ndarray) -> bytes | None:
    """The checksums of the inputs of chunk k, if it is marked as done."""
    content = _content(_place(path, DONE, k, 2))
    return content[BYTES:] if content is not None and content[:BYTES] == expected.tobytes() else None


def _content(file: Path) -> bytes | None:
    """The content of a file without its checksum; None unless that is right."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    return data[:-CHECK] if checksum(np.frombuffer(data, np.uint8)[:-CHECK]) == data[-CHECK:] else None
