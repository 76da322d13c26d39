"""What is odd about a robot as it stands, though nothing that keeps it from being one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..lie import inertia

if TYPE_CHECKING:
    from .robot import Robot

ROUNDED = 1e-6
"""How much of an inertia, relative to its largest entry, files lose by writing few digits; less is not worth a word."""

POINT = 1e-15
"""An inertia below this times the mass (a radius of gyration of 3e-8 m) is that of a point, and its digits are rounding."""


def impossible(parameters: np.ndarray) -> list[str]:
    """What no body with the ten parameters could have, one sentence each, leaving aside what few digits do."""
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
