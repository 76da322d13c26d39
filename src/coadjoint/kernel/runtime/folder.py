"""Folders that only their owner can change, opened once and used by descriptor.

Where the system has descriptors of folders (not on Windows), the way from the root is walked step by step: no link is followed, every
folder on it belongs to root or to this user, and nobody else may rename what is in it. What was checked is then what is used.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Any

BY_DESCRIPTOR = os.name == "posix" and {os.open, os.mkdir, os.stat, os.unlink, os.rename, os.link} <= os.supports_dir_fd
_WALK = (
    getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
OTHERS_WRITE = 0o022


class Refused(Exception):
    """A folder or file cannot be used; the message says why."""


class Folder:
    """An open folder; names are relative to it."""

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path, self._descriptor = path, descriptor

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _at(self, name: str, *keys: str) -> tuple[str, dict[str, Any]]:
        """The arguments by which functions of `os` find a file."""
        if self._descriptor is None:
            return os.path.join(self.path, name), {}
        return name, dict.fromkeys(keys or ("dir_fd",), self._descriptor)

    def read(self, name: str, most: int, private: int = OTHERS_WRITE) -> tuple[bytes, int]:
        """(content, permissions) of an ordinary file of this user of at most so many bytes; Refused if it is anything else."""
        at, place = self._at(name)
        # Opened without waiting: a named pipe would wait for somebody to write to it.
        descriptor = os.open(at, os.O_RDONLY | _PLAIN | getattr(os, "O_NONBLOCK", 0), **place)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise Refused(f"{self.path}/{name} is not an ordinary file")
            if os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & private):
                raise Refused(f"{self.path}/{name} belongs to another user, or others may use it")
            if found.st_size > most:
                raise Refused(f"{self.path}/{name} is too large")
            content = file.read(most + 1)
            if len(content) != found.st_size:
                raise Refused(f"{self.path}/{name} is changing")
            with contextlib.suppress(OSError):  # used now
                os.utime(descriptor if os.utime in os.supports_fd else at)
        return content, found.st_mode

    def write_new(self, name: str, content: bytes) -> None:
        """A new file of this user alone; FileExistsError if there is one. What was begun and failed is removed."""
        at, place = self._at(name)
        descriptor = os.open(at, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o600, **place)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
        except BaseException:
            self.remove(name)
            raise

    def rename(self, name: str, new: str) -> None:
        """Give a file another name, in place of the one that has it."""
        at, place = self._at(name, "src_dir_fd", "dst_dir_fd")
        os.replace(at, self._at(new)[0], **place)

    def link(self, name: str, new: str) -> None:
        """Give a file another name as well; FileExistsError if that is taken."""
        at, place = self._at(name, "src_dir_fd", "dst_dir_fd")
        os.link(at, self._at(new)[0], **place)

    def remove(self, name: str) -> bool:
        """Remove a file; true if that was possible."""
        at, place = self._at(name)
        try:
            os.unlink(at, **place)
        except OSError:
            return False
        return True

    def has(self, name: str) -> bool:
        """True if there is a file of that name."""
        at, place = self._at(name)
        try:
            os.stat(at, follow_symlinks=False, **place)
        except OSError:
            return False
        return True

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """(name, facts) of every ordinary file."""
        with contextlib.suppress(OSError), os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_file(follow_symlinks=False):
                        yield entry.name, entry.stat(follow_symlinks=False)


def open_folder(path: str | os.PathLike[str], make: bool = False) -> Folder:
    """The folder if it can be trusted, made if asked for; Refused otherwise."""
    path = os.path.normpath(path)
    if not os.path.isabs(path):
        raise Refused(f"{path} is not an absolute path")
    try:
        if BY_DESCRIPTOR:
            return Folder(path, _walk(path, make))
        if make:
            os.makedirs(path, mode=0o700, exist_ok=True)
        if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            raise Refused(f"{path} does not exist or is reached by a link, to {os.path.realpath(path)}")
        if not os.path.isdir(path):
            raise Refused(f"{path} is not a directory")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}") from None
    return Folder(path, None)


def _walk(path: str, make: bool) -> int:
    """A descriptor of the folder, by way of its ancestors, each of them checked."""
    here, now = "/", os.open("/", _WALK)
    try:
        for part in path.split("/")[1:] if path != "/" else ():
            _check(here, os.fstat(now), ancestor=True)
            here = os.path.join(here, part)
            following = _step(now, part, here, make)
            os.close(now)
            now = following
        _check(here, os.fstat(now), ancestor=False)
        return os.open(".", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0), dir_fd=now)  # one that can be listed
    finally:
        os.close(now)


def _step(folder: int, name: str, path: str, make: bool) -> int:
    for _ in range(2):
        try:
            return os.open(name, _WALK, dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)
        except OSError:
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise Refused(f"{path} is a link; give the path that it leads to") from None
            raise
    raise Refused(f"{path} cannot be made")


def _check(path: str, found: os.stat_result, ancestor: bool) -> None:
    if found.st_uid != os.geteuid() and not (ancestor and found.st_uid == 0):
        raise Refused(f"{path} belongs to another user")
    if found.st_mode & OTHERS_WRITE and not (ancestor and found.st_mode & stat.S_ISVTX):
        raise Refused(f"{path} can be written by others: `chmod go-w {path}`")
