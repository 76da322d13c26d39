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

FAR, NEAR, HEAVY = 2.0, 1e-3, 0.05
"""Radii of gyration beyond this many lengths of the robot, and below this part of it for a link with this part of its mass, are doubted."""

TURNS = 25.2
"""Limits beyond four turns (rad) are doubted."""

UNITS = "are its moments of inertia in kg m²?"


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


def doubtful_numbers(robot: Robot) -> list[str]:
    """A sentence for every number that is possible and looks like a slip: of units, or a default that was never filled in."""
    found = []
    reach = sum(float(np.linalg.norm(x[:3, 3])) for x in robot.placements)
    reach += max((float(np.linalg.norm(row[1:4] / row[0])) for row in robot.inertias if row[0] > 0), default=0.0)
    total = float(np.sum(robot.inertias[:, 0]))
    for link, row in zip(robot.links, robot.inertias, strict=True):
        mass, _, central = inertia.to_body(row)
        largest = float(np.linalg.eigvalsh(central).max()) if np.isfinite(central).all() else 0.0
        if mass == 0 and np.any(row):
            found.append(f"link {link.name!r} has moments of inertia and no mass: no body has that.")
        elif mass > 0 and reach > 0:
            gyration = float(np.sqrt(max(largest, 0.0) / mass))
            if gyration > FAR * reach:
                found.append(
                    f"link {link.name!r} has a radius of gyration of {gyration:.3g} m, and the whole robot reaches {reach:.3g} m: {UNITS}"
                )
            elif 0 < gyration < NEAR * reach and mass > HEAVY * total:
                found.append(
                    f"link {link.name!r} of {mass:.3g} kg has a radius of gyration of {gyration:.1e} m, almost a point: {UNITS}"
                )
    return found + _doubtful_limits(robot)


def _doubtful_limits(robot: Robot) -> list[str]:
    found = []
    for i, link in enumerate(robot.links):
        joint = link.joint
        if robot.kinds[i].nv != 1 or i in robot.mimics:
            continue
        for name, limit in (("effort", joint.effort), ("velocity", joint.velocity)):
            if np.any(np.asarray(limit) == 0):
                found.append(f"joint {joint.name!r} has a limit of {name} of 0: as a limit it permits nothing.")
        ends = np.abs([x for x in (*np.ravel(joint.lower), *np.ravel(joint.upper)) if np.isfinite(x)])
        if joint.kind != "prismatic" and np.any((ends > TURNS) & (ends <= 720)):
            found.append(f"joint {joint.name!r} has a limit of {ends.max():g} rad: are the limits in degrees?")
    return found
