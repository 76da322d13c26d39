"""Reading files safely (regular files of limited size only) and writing them atomically."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from .errors import CoadjointError, ReadError
from .words import cut, short

LARGEST = 64 * 2**20
"""The largest robot description that is read, in bytes. The largest published ones have a few megabytes."""

ABANDONED = 24 * 3600.0
"""The age in seconds at which an unfinished temporary file is removed."""

_PART = re.compile(r"\.coadjoint-[0-9a-f]{16}\.part(\.\w+)?")
_swept: set[str] = set()


def as_path(path: Any) -> Path:
    """The argument as a Path, or an error if no file can have that name."""
    try:
        name = os.fspath(path)
        os.fsencode(name)
    except (TypeError, UnicodeEncodeError):
        raise CoadjointError(f"{short(path)} cannot be the name of a file; give a path as text.") from None
    if not isinstance(name, str) or not name or "\0" in name:
        raise CoadjointError(f"{short(path)} cannot be the name of a file; give a path as text.")
    try:
        os.lstat(name)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise CoadjointError(f"{short(path)} cannot be the name of a file: it is too long.") from None
    return Path(name)


# --- reading


def open_regular(path: str | os.PathLike[str], largest: int = LARGEST) -> BinaryIO:
    """The file, opened for reading; a ReadError unless it is a regular file of at most `largest` bytes.

    Anything else (a pipe that nobody writes to, an endless device) is opened without blocking and not read.
    """
    path = as_path(path)
    label = cut(str(path), 300)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise ReadError(f"{label}: there is no such file (looked in {Path.cwd()}).") from None
    except OSError as error:
        if path.is_dir():  # on Windows a folder cannot be opened
            raise ReadError(f"{label}: this is a directory; expected a file.") from None
        reason = "this is not an ordinary file" if _is_odd(path) else f"cannot be read: {error.strerror}"
        raise ReadError(f"{label}: {reason}.") from None
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise ReadError(f"{label}: this is a directory; expected a file.")
        if not stat.S_ISREG(found.st_mode):
            raise ReadError(f"{label}: this is not an ordinary file but a {_kind(found.st_mode)}; copy what it holds to a file.")
        if found.st_size > largest:
            raise ReadError(f"{label}: the file has {_size(found.st_size)}; at most {_size(largest)} are read.")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _is_odd(path: Path) -> bool:
    with suppress(OSError):
        return not stat.S_ISREG(os.stat(path).st_mode)
    return False


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFSOCK: "socket"}
    return kinds.get(stat.S_IFMT(mode), "special file")


def _size(n: int) -> str:
    return f"{n / 2**20:.0f} MiB" if n >= 2**20 else f"{n} bytes"


def read_bytes(path: str | os.PathLike[str], largest: int = LARGEST) -> bytes:
    """The content of a regular file of at most `largest` bytes."""
    with open_regular(path, largest) as file:
        try:
            data = file.read(largest + 1)  # the size that a file states may be 0, as those of the kernel have it
        except OSError as error:
            raise ReadError(f"{cut(str(path), 300)}: cannot be read: {error.strerror}.") from None
    if len(data) > largest:
        raise ReadError(f"{cut(str(path), 300)}: the file has more than {_size(largest)}, which is the most that is read.")
    return data


def read_text(path: str | os.PathLike[str], largest: int = LARGEST) -> str:
    """The content of a UTF-8 text file."""
    try:
        return read_bytes(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReadError(f"{cut(str(path), 300)}: cannot decode the text: {error}. Save it as UTF-8.") from None


# --- writing


def check_output(path: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None) -> Path:
    """The path, or an error if it cannot be written: its folder must exist, and it must be neither a folder nor one of the
    inputs.
    """
    path = as_path(path)
    if path.is_dir():
        raise CoadjointError(f"{path} is a folder; give the name of a file to write.")
    if path.exists() and not path.is_file():
        raise CoadjointError(f"{path} is not an ordinary file; give the name of a file to write.")
    if path.exists() and not os.access(path, os.W_OK):
        raise CoadjointError(f"{path} cannot be written: it is protected; give another name, or permit writing to it.")
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise CoadjointError(f"{path} is a link that leads nowhere but to itself; give the name of a file to write.")
    folder = target.parent
    if not folder.is_dir():
        raise CoadjointError(f"{path} cannot be written: the folder {path.parent} does not exist; make it first.")
    if not os.access(folder, os.W_OK):
        raise CoadjointError(f"{path} cannot be written: no permission to write in the folder {folder}.")
    for other in inputs:
        if other is not None and os.path.realpath(other) == os.path.realpath(path):
            raise CoadjointError(f"{path} is to be read and written at once; give the output another name.")
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it replaces `path` if the block succeeds, and is removed otherwise.

    Readers see either the whole old file or the whole new one, however many processes and threads write. The temporary file has an
    unpredictable name, is created exclusively (a symbolic link of that name is not followed), gets the permissions of the old file
    (default permissions if there was none), and is flushed to disk before it replaces the old file. Files that a killed process
    left behind are removed a day later, when something is next written to that folder.
    """
    target = Path(os.path.realpath(path))
    # The name ends like the target's: some writers choose the format by it.
    part = target.with_name(f".coadjoint-{secrets.token_hex(8)}.part{target.suffix if len(target.suffix) <= 16 else ''}")
    try:
        old = os.stat(target)
    except OSError:
        old = None
    try:
        _sweep(target.parent)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(part, flags, 0o666 if old is None else 0o600))
        yield part
        _finish(part, old)
        os.replace(part, target)
    except OSError as error:
        if error.filename == str(part):  # of which the caller knows nothing
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        part.unlink(missing_ok=True)


def _finish(part: Path, old: os.stat_result | None) -> None:
    """Flush the file to disk, and give it the owner and the permissions of the old one, never more."""
    descriptor = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if old is not None and hasattr(os, "fchmod"):
            mode = stat.S_IMODE(old.st_mode) & 0o777
            new = os.fstat(descriptor)
            if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
                try:
                    os.fchown(descriptor, old.st_uid if os.geteuid() == 0 else -1, old.st_gid)
                except OSError:
                    mode &= ~0o070  # what the old group was allowed is not for another
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(folder: Path) -> None:
    """Remove temporary files that killed processes of this library left in the folder; once per folder and process."""
    if str(folder) in _swept:
        return
    _swept.add(str(folder))
    oldest = time.time() - ABANDONED
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not _PART.fullmatch(entry.name):
                continue
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                ours = stat.S_ISREG(found.st_mode) and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())
                if ours and found.st_mtime < oldest:
                    os.unlink(entry.path)
