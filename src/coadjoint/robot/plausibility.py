"""Plausibility checks: doubtful properties of a valid robot, for `robot.warnings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..lie import inertia

if TYPE_CHECKING:
    from .robot import Robot

ROUNDED = 1e-6
"""The relative error of inertias in files with few digits; smaller violations are not reported."""

POINT = 1e-15
"""An inertia below this times the mass (a radius of gyration of 3e-8 m) is that of a point, and its digits are rounding."""


def impossible(parameters: np.ndarray) -> list[str]:
    """The violations that make the ten parameters impossible for a body, one sentence each, beyond the error of few digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        mass, _, about_centre = inertia.to_body(parameters)
    if mass <= 0 or not np.isfinite(about_centre).all():
        return inertia.violations(parameters, ROUNDED)
    central = inertia.from_body(mass, np.zeros(3), about_centre)
    size, shift = np.max(np.abs(central[4:])), 1e-14 * np.max(np.abs(parameters[4:]))  # what the way to the centre rounds off
    return inertia.violations(central, ROUNDED + shift / size) if size > POINT * mass + shift else []


def impossible_inertias(robot: Robot) -> list[str]:
    """A sentence for every link with an inertia that no body can have."""
    found = [(link.name, impossible(row)) for link, row in zip(robot.links, robot.inertias, strict=True)]
    return [f"link {name!r}: {'; '.join(what)}." for name, what in found if what]


def massless_joints(robot: Robot) -> list[str]:
    """A sentence for every joint that moves neither mass nor inertia, by itself or by the joints that mimic it."""
    heavy = [bool(np.any(robot.inertias[i]) or np.any(robot.armature[robot.tree_v_slices[i]])) for i in range(robot.n_links)]
    for i in reversed(robot.order):
        if robot.parents[i] >= 0:
            heavy[robot.parents[i]] |= heavy[i]
    for i, (source, _, _) in robot.mimics.items():
        heavy[source] |= heavy[i]
    return [
        f"joint {link.joint.name!r} moves no mass: the mass matrix is singular, and forward dynamics refuses, unless the joint is "
        "locked or given an armature."
        for i, link in enumerate(robot.links)
        if not heavy[i] and link.joint.kind != "fixed" and i not in robot.mimics
    ]
