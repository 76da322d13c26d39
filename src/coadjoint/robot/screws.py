"""Links from the data of the product of exponentials: screws in the space frame and frames at the centres of mass, at home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments import numbers, sequence
from ..errors import ModelError, ShapeError
from ..lie import inertia, se3
from .link import Joint, Link, as_pose, check_solid


def links_of_screws(screws: Any, com_frames: Any, masses: Any, inertias: Any, parents: Sequence[int] | None) -> list[Link]:
    """The links of `Robot.from_screws`."""
    given = (("screws", screws), ("com_frames", com_frames), ("masses", masses), ("inertias", inertias))
    screws, com_frames, masses, inertias = (np.asarray(numbers(x, name), dtype=float) for name, x in given)
    n = len(screws) if screws.ndim else 0
    for what, x, shape in (
        ("screws", screws, (n, 6)),
        ("com_frames", com_frames, (n, 4, 4)),
        ("masses", masses, (n,)),
        ("inertias", inertias, (n, 3, 3)),
    ):
        if x.shape != shape:
            raise ShapeError(f"{what} has shape {x.shape}; expected {shape} for {n} joints.")
    parents = list(range(-1, n - 1)) if parents is None else sequence(parents, "parents")
    if len(parents) != n or not all(isinstance(p, int | np.integer) and -1 <= p < n for p in parents):
        raise ModelError(f"parents is {parents}; expected {n} link numbers from -1 (the base) to {n - 1}.")
    links = []
    for i in range(n):
        home = as_pose(com_frames[i], f"com_frames[{i}]")
        parent = as_pose(com_frames[parents[i]], f"com_frames[{parents[i]}]") if parents[i] >= 0 else np.eye(4)
        screw = se3.Ad(se3.inverse(home)) @ screws[i]
        joint = Joint(_kind_of_screw(screws[i], i), screw[None], name=f"joint{i + 1}")
        check_solid(f"link {i}", masses[i], np.zeros(3), inertias[i])
        parameters = inertia.from_body(masses[i], np.zeros(3), inertias[i])
        parent_name = f"link{parents[i] + 1}" if parents[i] >= 0 else "base"
        links.append(Link(f"link{i + 1}", parent_name, joint, se3.inverse(parent) @ home, parameters))
    return links


def _kind_of_screw(screw: np.ndarray, i: int) -> str:
    w, v = screw[:3], screw[3:]
    if not np.all(np.isfinite(screw)):
        raise ModelError(f"screws[{i}] is {screw.tolist()}; every number must be finite.")
    size = np.linalg.norm(w)
    if size < 1e-12:
        if np.linalg.norm(v) < 1e-12:
            raise ModelError(f"screws[{i}] is zero; a joint moves along or about something.")
        if abs(np.linalg.norm(v) - 1) > 1e-9:
            what = f"screws[{i}] is {screw.tolist()}: a prismatic joint (ω = 0) needs |v| = 1"
            raise ModelError(f"{what}; divide by {np.linalg.norm(v):g}.")
        return "prismatic"
    if abs(size - 1) > 1e-9:
        raise ModelError(f"screws[{i}] is {screw.tolist()}: a joint that turns needs |ω| = 1; divide by {size:g}.")
    return "revolute" if abs(w @ v) < 1e-12 * max(1.0, float(np.linalg.norm(v))) else "helical"
