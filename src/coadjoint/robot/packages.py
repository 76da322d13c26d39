"""The places of files that a description names: `package://`, `model://`, `file://`, and paths beside the description.

A package is found, in this order,

1. in the map that the caller gives, name to folder;
2. above the description: a folder of that name, or one whose `package.xml` states it, on the way up, or beside one of these;
3. below the folders of `ROS_PACKAGE_PATH`, `AMENT_PREFIX_PATH` (in `share`), `GAZEBO_MODEL_PATH`, `GZ_SIM_RESOURCE_PATH`,
   `IGN_GAZEBO_RESOURCE_PATH` and `SDF_PATH`;
4. in the cache of `robot_descriptions`.

Nothing is fetched from a network, and no address of one is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from ..errors import CoadjointError, ReadError
from ..files import open_regular
from ..words import short

Packages = Mapping[str, str | os.PathLike[str]]

VARIABLES = (
    "ROS_PACKAGE_PATH",
    "AMENT_PREFIX_PATH",
    "GAZEBO_MODEL_PATH",
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "SDF_PATH",
)
HIGHEST = 12
"""The number of folders above a description that are searched for a package."""

MOST_FOLDERS = 2_000
"""The number of folders of ROS_PACKAGE_PATH or the cache that are searched for a package."""

_NAME = re.compile(rb"<name>\s*([^<\s]+)\s*</name>")


class Finder:
    """Finds the files that one description names; what was found for a package is remembered."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, packages: Packages | None = None) -> None:
        self.folder = None if folder is None else Path(os.path.abspath(folder))
        self.given = check_packages(packages)
        self._known: dict[str, list[Path]] = {}

    def path(self, uri: str) -> Path | None:
        """The file at an address, or None where there is none."""
        if not uri or "\0" in uri or len(uri) > 4096:
            return None
        scheme, separator, rest = uri.partition("://")
        if not separator:
            return self._beside(uri)
        if scheme == "file":
            return _existing(Path(unquote(re.sub(r"^localhost(?=/)", "", rest)))) or self._beside(rest)
        if scheme not in ("package", "model"):
            return None
        name, _, inside = rest.lstrip("/").partition("/")
        inside = inside.lstrip("/")
        for folder in self.folders(name):
            if found := _existing(folder / inside):
                return found
        # Some descriptions name a package that has been moved into another folder; the rest of the address may still be there.
        return self._climbed(f"{name}/{inside}") or self._climbed(inside)

    def folders(self, name: str) -> list[Path]:
        """The folders that the package of this name may be, the likeliest first."""
        if not name or name in (".", "..") or "\0" in name:
            return []
        if name not in self._known:
            self._known[name] = list(dict.fromkeys(x for x in self._candidates(name) if _is_dir(x)))
        return self._known[name]

    def _candidates(self, name: str) -> Iterator[Path]:
        if name in self.given:
            yield self.given[name]
        for above in self._above():
            if above.name == name or _package_name(above) == name:
                yield above
            yield above / name
        for variable in VARIABLES:
            for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
                root = Path(entry)
                yield from (root / "share" / name, root / name)
                if root.name == name or _package_name(root) == name:
                    yield root
                if variable == "ROS_PACKAGE_PATH":
                    yield from _named_below(root, name)
        yield from _named_below(descriptions_cache(), name)

    def _above(self) -> Iterator[Path]:
        if self.folder is not None:
            yield from [x for x in (self.folder, *self.folder.parents) if x.name][:HIGHEST]

    def _beside(self, name: str) -> Path | None:
        path = Path(name)
        if path.is_absolute():
            return _existing(path)
        return None if self.folder is None else _existing(self.folder / name) or _existing(self.folder / unquote(name))

    def _climbed(self, rest: str) -> Path | None:
        return next((found for above in self._above() if rest and (found := _existing(above / rest))), None)


def check_packages(packages: Packages | None) -> dict[str, Path]:
    """The given map of packages, or an error that says what is wrong with it."""
    if packages is None:
        return {}
    if not isinstance(packages, Mapping):
        raise CoadjointError(f"packages is {short(packages)}; expected a dictionary, as {{'panda_description': '/folder'}}.")
    found = {}
    for name, folder in packages.items():
        if not isinstance(name, str) or not isinstance(folder, str | os.PathLike) or not _is_dir(Path(folder)):
            raise CoadjointError(f"packages: {short(name)} is at {short(folder)}; expected the name of a package and its folder.")
        found[name] = Path(os.path.abspath(folder))
    return found


def descriptions_cache() -> Path:
    """The folder where the package `robot_descriptions` keeps what it has fetched."""
    return Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")).expanduser()


def _existing(path: Path) -> Path | None:
    try:
        return Path(os.path.abspath(path)) if path.is_file() else None
    except (OSError, ValueError):  # a name too long for a file, or with characters that no file has
        return None


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _package_name(folder: Path) -> str:
    """The name that a folder's `package.xml` states; "" where there is none."""
    try:
        with open_regular(folder / "package.xml") as file:
            found = _NAME.search(file.read(20_000))
    except (OSError, ReadError):
        return ""
    return found[1].decode("utf-8", "replace") if found else ""


def _named_below(root: Path, name: str) -> Iterator[Path]:
    """Folders of that name below a folder, as ROS looks for packages: not inside a package, and not without end."""
    waiting, seen = [root], 0
    while waiting and seen < MOST_FOLDERS:
        folder = waiting.pop(0)
        seen += 1
        try:
            with os.scandir(folder) as entries:
                inner = sorted(Path(x.path) for x in entries if x.is_dir(follow_symlinks=False) and not x.name.startswith("."))
        except OSError:
            continue
        for path in inner:
            if path.name == name or _package_name(path) == name:
                yield path
            elif not (path / "package.xml").is_file():
                waiting.append(path)
