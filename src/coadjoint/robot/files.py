"""Files read and written so that none is lost."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from ..errors import CoadjointError, ReadError


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, or an error that says why there are none."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ReadError(f"{path}: there is no such file (looked in {Path.cwd()}).") from None
    except IsADirectoryError:
        raise ReadError(f"{path}: this is a directory; expected a file.") from None
    except (OSError, ValueError) as error:
        raise ReadError(f"{path}: cannot be read: {error}.") from None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a whole file or none: the text goes to a temporary file beside it, which then takes its place."""
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if path.exists():
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        os.replace(temporary, path)
    except OSError as error:
        raise CoadjointError(f"{path}: cannot be written: {error.strerror}.") from None
    finally:
        temporary.unlink(missing_ok=True)
