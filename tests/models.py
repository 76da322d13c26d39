"""Models that other packages bring, and bodies alone."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj


def urdf_files() -> dict[str, Path]:
    """Every URDF of `example-robot-data` by the last three parts of its path; empty where the package is not installed."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    paths = [Path(str(f.locate())).resolve() for f in files if f.suffix == ".urdf"]
    return {"/".join(path.parts[-3:]): path for path in sorted(paths)}


FEW = (
    "panda.urdf",
    "ur5_robot.urdf",
    "hyq_no_sensors.urdf",
    "solo12.urdf",
    "talos_reduced.urdf",
    "romeo_laas_small.urdf",
    "double_pendulum_continuous.urdf",
    "iris_simple.urdf",
    "tiago_no_hand.urdf",
    "ur3.urdf",
)
"""Arms, quadrupeds, humanoids; with mimic and continuous joints, without joints, without mass at a joint, without links."""


def slow_but_few(files: Iterable[str]) -> list:
    """Parameters of a test: every file, all but the few marked slow."""
    return [name if name.rpartition("/")[2] in FEW else pytest.param(name, marks=pytest.mark.slow) for name in files]


def mjcf_files() -> dict[str, Path]:
    """The models that dm_control ships, without importing it; `lqr` and `swimmer` have no joints before Python code has added them."""
    found = importlib.util.find_spec("dm_control")
    folder = Path(found.submodule_search_locations[0]) / "suite" if found else Path("nowhere")
    return {path.stem: path for path in sorted(folder.glob("*.xml")) if path.stem not in ("lqr", "swimmer")}


def body(joint: cj.Joint, mass: float = 1.0, moments: tuple[float, ...] = (1.0, 1.0, 1.0)) -> cj.Robot:
    """One body on a joint at its centre of mass."""
    return cj.Robot("body", [cj.Link.solid("body", "base", joint, mass=mass, inertia=np.diag(moments))])
