"""Models that other packages bring, and bodies alone."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import numpy as np

import coadjoint as cj


def urdf_files() -> dict[str, Path]:
    """Every URDF of `example-robot-data` by the last three parts of its path; empty where the package is not installed."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    paths = [Path(str(f.locate())).resolve() for f in files if f.suffix == ".urdf"]
    return {"/".join(path.parts[-3:]): path for path in sorted(paths)}


def mjcf_files() -> dict[str, Path]:
    """The models that dm_control ships, without importing it; `lqr` and `swimmer` have no joints before Python code has added them."""
    found = importlib.util.find_spec("dm_control")
    folder = Path(found.submodule_search_locations[0]) / "suite" if found else Path("nowhere")
    return {path.stem: path for path in sorted(folder.glob("*.xml")) if path.stem not in ("lqr", "swimmer")}


def body(joint: cj.Joint, mass: float = 1.0, moments: tuple[float, ...] = (1.0, 1.0, 1.0)) -> cj.Robot:
    """One body on a joint at its centre of mass."""
    return cj.Robot("body", [cj.Link.solid("body", "base", joint, mass=mass, inertia=np.diag(moments))])
