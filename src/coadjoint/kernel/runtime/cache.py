"""Compiled kernels on disk.

A file's name is its key; its content begins with a digest, keyed by the name, over all that follows. A damaged, truncated
or foreign file fails it and is built anew, never run. The directory must be the user's own and closed to writing by
others. Files appear whole or not at all (a temporary file, renamed), so any number of processes may share the directory;
two that build the same kernel write the same file twice. Whatever goes wrong here only costs the caching.

The environment variable COADJOINT_CACHE is the directory, or `off`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

LIMIT = 512 * 2**20
"""Bytes; beyond them the kernels that were not used for longest go."""
HEAD = b"coadjoint kernel 1\n"
SUFFIX = ".kernel"
STALE = 3600.0
"""Seconds after which a temporary file belongs to nobody."""


def place() -> tuple[Path | None, str]:
    """(the directory, "") or (None, why there is none); it need not exist yet."""
    chosen = os.environ.get("COADJOINT_CACHE", "").strip()
    if chosen.lower() in ("off", "0", "no", "none", "false"):
        return None, "switched off by the environment variable COADJOINT_CACHE"
    if chosen:
        return Path(chosen).expanduser(), ""
    try:
        home = Path.home()
    except RuntimeError:
        return None, "there is no home directory; the environment variable COADJOINT_CACHE can name another"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "coadjoint"
        return base / "Cache", ""
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "coadjoint", ""
    base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "coadjoint", ""


def _ready(make: bool = False) -> tuple[Path | None, str]:
    """The directory if it may be trusted; made if asked for."""
    path, reason = place()
    if path is None:
        return None, reason
    try:
        if make:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as error:
        return None, f"{path}: {error.strerror or error}"
    if not stat.S_ISDIR(found.st_mode):
        return None, f"{path} is not a directory"
    if os.name == "posix":
        if found.st_uid != os.geteuid():
            return None, f"{path} belongs to another user"
        if found.st_mode & 0o022:
            return None, f"{path} can be written by others: `chmod 700 {path}`"
    return path, ""


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.blake2b(body, key=key.encode()[:64], digest_size=32).digest()


def load(key: str) -> tuple[dict[str, Any], bytes] | None:
    """(description, code) of a kernel, or None."""
    directory, _ = _ready()
    if directory is None:
        return None
    path = directory / (key + SUFFIX)
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            found = os.fstat(file.fileno())
            if os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
                return None
            content = file.read()
    except OSError:
        return None
    start = len(HEAD) + 32
    body = content[start:]
    if content[: len(HEAD)] != HEAD or content[len(HEAD) : start] != _digest(key, body):
        return None
    length = int.from_bytes(body[:8], "little")
    with contextlib.suppress(OSError):
        os.utime(path)  # used now
    return json.loads(body[8 : 8 + length]), body[8 + length :]


def store(key: str, description: dict[str, Any], code: bytes) -> bool:
    """Keep a kernel; whether that was possible."""
    directory, _ = _ready(make=True)
    if directory is None:
        return False
    text = json.dumps(description).encode()
    body = len(text).to_bytes(8, "little") + text + code
    temporary = directory / f".{os.urandom(12).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(HEAD + _digest(key, body) + body)
        os.replace(temporary, directory / (key + SUFFIX))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    _prune(directory)
    return True


def _files(directory: Path, suffix: str) -> list[tuple[float, int, str]]:
    """(last use, bytes, path) of each file."""
    result = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(suffix):
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    result.append((found.st_mtime, found.st_size, entry.path))
    return result


def _prune(directory: Path) -> None:
    """Remove what was not used for longest until the limit is kept, and what killed processes left."""
    files = sorted(_files(directory, SUFFIX))
    total = sum(size for _, size, _ in files)
    for _, size, path in files[:-1]:
        if total <= LIMIT:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
    now = time.time()
    for used, _, path in _files(directory, ".tmp"):
        if now - used > STALE:
            with contextlib.suppress(OSError):
                os.unlink(path)


def info() -> dict[str, Any]:
    """Where the cache is, how many kernels and bytes it holds, its limit, and why it is not in use, if so."""
    path, reason = place()
    if path is not None and path.exists():
        _, reason = _ready()
    files = [] if path is None else _files(path, SUFFIX)
    return {
        "path": None if path is None else str(path),
        "kernels": len(files),
        "bytes": sum(size for _, size, _ in files),
        "limit": LIMIT,
        "disabled": reason,
    }


def clear() -> int:
    """Remove all kernels; how many there were."""
    directory, _ = _ready()
    if directory is None:
        return 0
    removed = 0
    for suffix in (SUFFIX, ".tmp"):
        for _, _, path in _files(directory, suffix):
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed += suffix == SUFFIX
    return removed
