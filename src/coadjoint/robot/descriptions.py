"""Robots of the package `robot_descriptions`, which fetches them with git into a cache of its own.

Where the repository is not in that cache, but the installed package `example-robot-data` has its files, these are taken, without a network.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import MissingPackageError, ReadError, unknown
from ..words import cut, short
from .packages import Packages, descriptions_cache

EXAMPLES = "example-robot-data"


def described(name: str, packages: Packages | None) -> tuple[Path, Packages, Path | None]:
    """The URDF or MJCF of a description, the map of packages with its own, and its SRDF if it has one."""
    try:
        known = import_module("robot_descriptions._descriptions").DESCRIPTIONS
    except ImportError:
        raise MissingPackageError(
            "robot_descriptions:… needs the package robot_descriptions, which is not installed: pip install robot_descriptions."
        ) from None
    if name not in known:
        raise unknown("description of robot_descriptions", name, known)
    module = _module(name, str(getattr(known[name], "repository", "")))
    path = next((Path(x) for key in ("URDF_PATH", "MJCF_PATH", "XACRO_PATH") if (x := getattr(module, key, None))), None)
    if path is None:
        raise ReadError(f"robot_descriptions: {short(name)} has no URDF and no MJCF.")
    own = {Path(x).name: x for key in ("PACKAGE_PATH",) if (x := getattr(module, key, None)) and Path(x).is_dir()}
    srdf = getattr(module, "SRDF_PATH", None)
    return path, {**own, **(packages or {})}, Path(srdf) if srdf and Path(srdf).is_file() else None


def _module(name: str, repository: str) -> ModuleType:
    qualified = f"robot_descriptions.{name}"
    examples = _examples() if repository == EXAMPLES and not (descriptions_cache() / EXAMPLES).is_dir() else None
    try:
        with redirect_stderr(StringIO()), redirect_stdout(StringIO()), _instead_of_cloning(examples):
            return import_module(qualified)
    except (Exception, SystemExit) as error:  # git raises its own, and anything else where there is no network
        sys.modules.pop(qualified, None)
        raise ReadError(
            f"robot_descriptions: {short(name)} is not in the cache {cut(str(descriptions_cache()), 200)} and could not be fetched "
            f"({type(error).__name__}); fetch it where there is a network with `python -m robot_descriptions pull {name}`."
        ) from None


def _examples() -> str | None:
    """The folder that is laid out as the repository of example-robot-data, where that package is installed."""
    try:
        files = importlib.metadata.distribution(EXAMPLES).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    path = next((Path(str(x.locate())).resolve() for x in files if x.suffix == ".urdf"), None)
    return next((str(x.parent) for x in path.parents if x.name == "robots" and x.parent.name == EXAMPLES), None) if path else None


@contextmanager
def _instead_of_cloning(folder: str | None) -> Iterator[None]:
    """While a description is imported, its repository is this folder."""
    if folder is None:
        yield
        return
    cache: Any = import_module("robot_descriptions._cache")
    before = cache.clone_to_cache
    cache.clone_to_cache = lambda *_args, **_options: folder
    try:
        yield
    finally:
        cache.clone_to_cache = before
