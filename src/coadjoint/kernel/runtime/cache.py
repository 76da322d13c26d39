"""Compiled kernels on disk.

A file's name is its key; its content begins with a digest over the name and all that follows, keyed by a secret of this user that is
kept elsewhere. A damaged, truncated or foreign file, or one that somebody else put there, fails it and is built anew, never run. Files
appear whole or not at all (a temporary file, renamed), so any number of processes may share the directory; two that build the same
kernel write the same file twice. Whatever goes wrong here only costs the caching.

The environment variable COADJOINT_CACHE is the directory, an absolute path, or `off`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from .folder import Folder, Refused, open_folder

LIMIT = 512 * 2**20
"""Bytes; beyond them the kernels that were not used for longest go."""
PART = 64
"""A process reads the whole directory when it first stores something and after every such part of the limit: it takes 10 µs a file."""
LARGEST = 128 * 2**20
"""Bytes of one kernel's file."""
HEAD = b"coadjoint kernel 2\n"
SUFFIX = ".kernel"
STRUCTURE = ".structure"
"""The file of what is known of robots of one structure; no code."""
STALE = 3600.0
"""Seconds after which a temporary file belongs to nobody."""
SECRET = "cache-secret"
SECRET_BYTES = 32

_KERNEL, _TEMPORARY = r"[0-9a-f]{64}\.kernel", r"\.[0-9a-f]{24}\.tmp"
_KEPT = r"[0-9a-f]{64}\.(kernel|structure)"
"""Names that are ours; nothing else in the directory is touched."""

_room: dict[tuple[str, int], int] = {}
"""Bytes that this process may store before it reads the directory again, of each directory and limit."""


def place() -> tuple[Path | None, str]:
    """(the directory, "") or (None, why there is none); it need not exist yet."""
    chosen = os.environ.get("COADJOINT_CACHE", "").strip()
    if chosen.lower() in ("off", "0", "no", "none", "false"):
        return None, "switched off by the environment variable COADJOINT_CACHE"
    try:
        if chosen:
            path = _home() / chosen[2:] if chosen[:2] in ("~", "~/", "~\\") else Path(chosen).expanduser()
            if not path.is_absolute():
                return None, f"the environment variable COADJOINT_CACHE is {chosen!r}; expected an absolute path, or off"
            return path, ""
        return _standard("XDG_CACHE_HOME", ".cache", "Library/Caches", "LOCALAPPDATA", "AppData/Local", "Cache"), ""
    except RuntimeError:
        return None, f"there is no home directory{f' for {chosen!r}' if chosen else ''}; COADJOINT_CACHE can name another place"


def _home() -> Path:
    """The user's home, without links: where it is was not decided by whoever put files there."""
    home = Path.home()
    if not home.is_absolute():
        raise RuntimeError(f"the home directory {str(home)!r} is not an absolute path")
    return Path(os.path.realpath(home))


def _standard(variable: str, linux: str, macos: str, windows_variable: str, windows: str, windows_end: str) -> Path:
    """The platform's standard folder of a kind, and ours in it."""
    if sys.platform == "win32":
        return Path(os.environ.get(windows_variable) or _home() / windows) / "coadjoint" / windows_end
    if sys.platform == "darwin":
        return _home() / macos / "coadjoint"
    named = Path(os.environ.get(variable, ""))
    return (named if named.is_absolute() else _home() / linux) / "coadjoint"  # relative ones are invalid: XDG's own rule


def _secret(make: bool) -> bytes:
    """The secret of this user, made once; Refused if there is none."""
    try:
        where = _standard("XDG_STATE_HOME", ".local/state", "Library/Application Support", "APPDATA", "AppData/Roaming", "State")
    except RuntimeError:
        raise Refused(
            "there is no home directory for the secret that protects the cache; XDG_STATE_HOME can name a place"
        ) from None
    with open_folder(where, make) as folder:
        with contextlib.suppress(FileNotFoundError):
            return _read_secret(folder)
        if not make:
            raise Refused(f"{where} holds no secret yet")
        temporary = _temporary_name()
        folder.write_new(temporary, os.urandom(SECRET_BYTES))
        try:
            with contextlib.suppress(FileExistsError):  # another process was first
                folder.link(temporary, SECRET)
        finally:
            folder.remove(temporary)
        return _read_secret(folder)


def _read_secret(folder: Folder) -> bytes:
    secret, _ = folder.read(SECRET, SECRET_BYTES, private=0o077)
    if len(secret) != SECRET_BYTES:
        raise Refused(f"{folder.path}/{SECRET} is damaged: remove it")
    return secret


def _open(make: bool = False) -> Folder:
    """The directory if it may be trusted; made if asked for."""
    path, reason = place()
    if path is None:
        raise Refused(reason)
    return open_folder(path, make)


def _digest(secret: bytes, key: str, body: bytes) -> bytes:
    digest = hashlib.blake2b(f"{key}\0".encode(), key=secret, digest_size=32)
    digest.update(body)
    return digest.digest()


def _temporary_name() -> str:
    return f".{os.urandom(12).hex()}.tmp"


def has(key: str) -> bool:
    """True if there is a file of that kernel, sound or not."""
    try:
        with _open() as folder:
            return folder.has(key + SUFFIX)
    except (OSError, Refused):
        return False


def load(key: str, suffix: str = SUFFIX) -> tuple[dict[str, Any], bytes] | None:
    """(description, code) of a kernel, or None."""
    try:
        with _open() as folder:
            content, _ = folder.read(key + suffix, LARGEST)
        secret = _secret(make=False)
    except (OSError, Refused):
        return None
    start = len(HEAD) + 32
    body = content[start:]
    if content[: len(HEAD)] != HEAD or content[len(HEAD) : start] != _digest(secret, key, body):
        return None
    length = int.from_bytes(body[:8], "little")
    return json.loads(body[8 : 8 + length]), body[8 + length :]


def store(key: str, description: dict[str, Any], code: bytes, suffix: str = SUFFIX) -> bool:
    """Keep a kernel; whether that was possible."""
    text = json.dumps(description).encode()
    body = len(text).to_bytes(8, "little") + text + code
    if len(body) > LARGEST // 2:
        return False
    temporary = _temporary_name()
    try:
        with _open(make=True) as folder:
            content = HEAD + _digest(_secret(make=True), key, body) + body
            folder.write_new(temporary, content)
            try:
                folder.rename(temporary, key + suffix)
            except BaseException:
                folder.remove(temporary)
                raise
            limited = folder.path, LIMIT
            _room[limited] = _room.get(limited, 0) - len(content)
            if _room[limited] <= 0:
                _prune(folder)
                _room[limited] = LIMIT // PART
    except (OSError, Refused):
        return False
    return True


def _files(folder: Folder, name: str) -> list[tuple[float, int, str]]:
    """(last use, bytes, name) of each of our files of a kind."""
    return [(found.st_mtime, found.st_size, file) for file, found in folder.files() if re.fullmatch(name, file)]


def _prune(folder: Folder) -> None:
    """Remove what was not used for longest until the limit is kept, and what killed processes left."""
    ours = sorted(_files(folder, rf"{_KEPT}|{_TEMPORARY}"))
    files = [file for file in ours if not file[2].startswith(".")]
    total = sum(size for _, size, _ in files)
    for _, size, name in files[:-1]:
        if total <= LIMIT:
            break
        folder.remove(name)
        total -= size
    now = time.time()
    for used, _, name in ours:
        if name.startswith(".") and now - used > STALE:
            folder.remove(name)


def info() -> dict[str, Any]:
    """The folder of the cache, the number of kernels and bytes that it holds, its limit, and the reason if it is not in use."""
    path, reason = place()
    files: list[tuple[float, int, str]] = []
    if path is not None and path.exists():
        try:
            with _open() as folder:
                files = _files(folder, _KERNEL)
            _secret(make=True)
        except (OSError, Refused) as error:
            reason = str(error)
    return {
        "path": None if path is None else str(path),
        "kernels": len(files),
        "bytes": sum(size for _, size, _ in files),
        "limit": LIMIT,
        "disabled": reason,
    }


def clear() -> int:
    """Remove all kernels; how many there were."""
    try:
        with _open() as folder:
            for _, _, name in _files(folder, rf"{_TEMPORARY}|[0-9a-f]{{64}}\{STRUCTURE}"):
                folder.remove(name)
            return sum(folder.remove(name) for _, _, name in _files(folder, _KERNEL))
    except (OSError, Refused):
        return 0
