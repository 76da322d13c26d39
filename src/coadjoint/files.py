"""Writing files whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import CoadjointError


def check_output(path: str | Path, *inputs: str | Path | None) -> Path:
    """The path as one that can be written: its folder exists, it is no folder itself and none of the inputs."""
    path = Path(path)
    if path.is_dir():
        raise CoadjointError(f"{path} is a folder; give the name of a file to write.")
    if path.exists() and not path.is_file():
        raise CoadjointError(f"{path} is not an ordinary file; give the name of a file to write.")
    if path.exists() and not os.access(path, os.W_OK):
        raise CoadjointError(f"{path} cannot be written: it is protected; give another name, or permit writing to it.")
    folder = path.parent
    if not folder.is_dir():
        raise CoadjointError(f"{path} cannot be written: the folder {folder} does not exist; make it first.")
    if not os.access(folder, os.W_OK):
        raise CoadjointError(f"{path} cannot be written: no permission to write in the folder {folder.resolve()}.")
    for other in inputs:
        if other is not None and os.path.realpath(other) == os.path.realpath(path):
            raise CoadjointError(f"{path} is to be read and written at once; give the output another name.")
    return path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to, which takes the place of `path` when all went well and else is removed."""
    target = Path(os.path.realpath(path))
    # The name ends like the target's: some writers choose the format by it.
    part = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    try:
        yield part
        os.replace(part, target)
    except OSError as error:
        if error.filename == str(part):  # of which the caller knows nothing
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        part.unlink(missing_ok=True)
