"""Robots from Denavit–Hartenberg parameters.

A row (θ, d, a, α) leads from one link's frame to the next; the joint's coordinate adds to θ (revolute) or to d (prismatic):

    standard    Rot_z(θ) Trans_z(d) Trans_x(a) Rot_x(α)    the joint moves about the z axis of the frame before
    modified    Rot_x(α) Trans_x(a) Rot_z(θ) Trans_z(d)    the joint moves about the z axis of the link's own frame

Denavit & Hartenberg (1955); modified as in Craig, Introduction to Robotics (1986), where α and a bear the index i - 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import numbers, sequence
from ..arrays import ArrayLike
from ..errors import CoadjointError, ModelError, ShapeError
from ..words import short
from .link import Frame, Joint, Link, as_pose
from .robot import Robot

CONVENTIONS = ("standard", "modified")


def check_rows(rows: Any, kinds: str | None, convention: str) -> tuple[np.ndarray, str]:
    """Rows (n, 4) of finite numbers and a letter R or P for each."""
    if not isinstance(convention, str) or convention not in CONVENTIONS:
        raise CoadjointError(f"convention is {short(convention)}; choose 'standard' or 'modified' (Craig's).")
    rows = np.asarray(numbers(rows, "rows"), dtype=float)
    if rows.ndim != 2 or rows.shape[1] != 4:
        raise ShapeError(f"rows has shape {rows.shape}; expected (n, 4): theta, d, a, alpha for each joint.")
    for i, row in enumerate(rows):
        if not np.all(np.isfinite(row)):
            raise ModelError(f"rows[{i}] is {row.tolist()}; every number must be finite.")
    kinds = "R" * len(rows) if kinds is None else kinds
    if not isinstance(kinds, str) or len(kinds) != len(rows) or set(kinds) - set("RP"):
        raise ModelError(f"kinds is {short(kinds)}; expected {len(rows)} letters, R (revolute) or P (prismatic) for each row.")
    return rows, kinds


def row_pose(row: np.ndarray, convention: str) -> np.ndarray:
    """The pose (4, 4) that a row leads to."""
    theta, d, a, alpha = row
    about_z, about_x = np.eye(4), np.eye(4)
    about_z[:2, :2] = _turn(theta)
    about_z[2, 3] = d
    about_x[1:3, 1:3] = _turn(alpha)
    about_x[0, 3] = a
    return about_z @ about_x if convention == "standard" else about_x @ about_z


def _turn(angle: float) -> np.ndarray:
    """A rotation of the plane, exact for quarter turns: cos(π/2) = 6e-17 would be a constant in every formula made of it."""
    c, s = float(np.cos(angle)), float(np.sin(angle))
    c, s = (round(x) if abs(x - round(x)) < 1e-15 else x for x in (c, s))
    return np.array([[c, -s], [s, c]])


def _joint(row: np.ndarray, kind: str, convention: str, options: Mapping[str, Any]) -> Joint:
    """The joint of a row, in the frame of the link it carries."""
    axis, point = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    if convention == "standard":  # the axis lies before the step by a and the turn by α
        (c, _), (s, _) = _turn(row[3])
        axis, point = (0.0, float(s), float(c)), (-row[2], 0.0, 0.0)
    return Joint.prismatic(axis, **options) if kind == "P" else Joint.revolute(axis, point, **options)


def robot_from_dh(
    rows: ArrayLike,
    convention: str = "standard",
    kinds: str | None = None,
    *,
    masses: ArrayLike = 0.0,
    coms: ArrayLike = 0.0,
    inertias: ArrayLike = 0.0,
    base: ArrayLike | None = None,
    tool: ArrayLike | None = None,
    joints: Sequence[Mapping[str, Any]] | None = None,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    name: str = "robot",
) -> Robot:
    """A chain from rows (n, 4) of θ, d, a, α, with the links' inertias in their Denavit–Hartenberg frames.

    kinds: a letter for each row, R (revolute) or P (prismatic), as in "RRPR"; all revolute if None. masses (n,), coms (n, 3) and
    inertias (n, 3, 3) about the centres of mass, all in the links' frames. base (4, 4): the frame that the first row starts from,
    in space. tool (4, 4): a frame "tip" in the last link's frame. joints: what `Joint` takes beside its geometry, for each joint.
    """
    rows, kinds = check_rows(rows, kinds, convention)
    n = len(rows)
    arrays = {}
    for what, x, shape in (("masses", masses, (n,)), ("coms", coms, (n, 3)), ("inertias", inertias, (n, 3, 3))):
        try:
            arrays[what] = np.broadcast_to(np.asarray(numbers(x, what), dtype=float), shape)
        except ShapeError:
            raise
        except ValueError:
            raise ShapeError(f"{what} has shape {np.shape(x)}; expected {shape} for {n} rows.") from None
    options = [{} for _ in range(n)] if joints is None else sequence(joints, "joints")
    if len(options) != n:
        raise ModelError(f"joints has {len(options)} entries; expected {n}, one for each row.")
    links = []
    for i in range(n):
        if not isinstance(options[i], Mapping):
            raise ModelError(f"joints[{i}] is {short(options[i])}; expected a dictionary, as {{'lower': -1.0, 'upper': 1.0}}.")
        joint = _joint(rows[i], kinds[i], convention, {"name": f"joint{i + 1}"} | dict(options[i]))
        placement = row_pose(rows[i], convention)
        if i == 0 and base is not None:
            placement = as_pose(base, "base") @ placement
        body = {"mass": arrays["masses"][i], "com": arrays["coms"][i], "inertia": arrays["inertias"][i]}
        links.append(Link.solid(f"link{i + 1}", f"link{i}" if i else "base", joint, placement, **body))
    frames = [] if tool is None else [Frame("tip", links[-1].name if links else "base", as_pose(tool, "tool"))]
    return Robot(name, links, frames, gravity)
