"""Files read, or an error that says why they cannot be."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ReadError


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ReadError(f"{path}: there is no such file (looked in {Path.cwd()}).") from None
    except IsADirectoryError:
        raise ReadError(f"{path}: this is a directory; expected a file.") from None
    except (OSError, ValueError) as error:
        raise ReadError(f"{path}: cannot be read: {error}.") from None


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file in UTF-8."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReadError(f"{path}: cannot decode the text: {error}. Save it as UTF-8.") from None
