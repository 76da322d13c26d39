"""Mechanisms with constraints, as textbooks have them."""

from __future__ import annotations

import numpy as np

import coadjoint as cj
from coadjoint import Constraint
from coadjoint.lie import se3


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    return se3.pose(np.eye(3), np.array([x, y, z]))


def bar(name: str, parent: str, length: float, start: float, mass: float = 1.0, joint: str = "") -> cj.Link:
    """A uniform bar along x that turns about z at `start` on the bar before."""
    solid = {"mass": mass, "com": (length / 2, 0, 0), "inertia": mass * length**2 / 12 * np.array([0.01, 1.0, 1.0])}
    return cj.Link.solid(name, parent, cj.Joint.revolute((0, 0, 1), name=joint or name), at(start), **solid)


def four_bar(crank=0.4, coupler=0.9, rocker=0.6, ground=1.0, masses=(1.0, 2.0, 1.5)) -> cj.Robot:
    """A chain of three bars in the plane x, y, weight along -y, with frames "tip" at its end and "pin" where it is to be."""
    links = [
        bar("crank", "base", crank, 0.0, masses[0]),
        bar("coupler", "crank", coupler, crank, masses[1]),
        bar("rocker", "coupler", rocker, coupler, masses[2]),
    ]
    robot = cj.Robot("four-bar", links, gravity=(0, -9.81, 0))
    return robot.with_frame("tip", "rocker", at(rocker)).with_frame("pin", "base", at(ground))


def slider_crank(crank=0.3, rod=1.0) -> cj.Robot:
    """Crank and connecting rod with a frame "pin" at its end, and a piston that slides along x."""
    links = [
        bar("crank", "base", crank, 0.0, 1.2),
        bar("rod", "crank", rod, crank, 0.8),
        cj.Link.solid(
            "piston", "base", cj.Joint.prismatic((1, 0, 0), name="piston"), np.eye(4), mass=0.5, inertia=0.01 * np.ones(3)
        ),
    ]
    return cj.Robot("slider-crank", links, gravity=(0, -9.81, 0)).with_frame("pin", "rod", at(rod))


def free_body(mass: float, inertia: tuple[float, ...], name: str = "body", gravity: float = 9.81) -> cj.Robot:
    """One rigid body with all freedoms, its frame at its centre of mass."""
    link = cj.Link.solid(name, "base", cj.Joint.free(name=name), np.eye(4), mass=mass, inertia=np.array(inertia, dtype=float))
    return cj.Robot(name, [link], gravity=(0, 0, -gravity))


def bennett(a: float = 1.0, alpha: float = 0.7, b: float = 1.5) -> tuple[cj.Robot, Constraint]:
    """Bennett's linkage: four revolute joints in space that move though six equations hold three angles; sin α / a = sin β / b.

    Each bar goes along x for its length and turns its far axis about x by its twist (Denavit and Hartenberg).
    """
    beta = np.arcsin(b * np.sin(alpha) / a)
    links, parent, placement = [], "base", np.eye(4)
    for k, (length, twist) in enumerate([(a, alpha), (b, beta), (a, alpha)]):
        solid = {"mass": 1.0 + k, "com": (length / 2, 0, 0), "inertia": 0.1 * np.ones(3)}
        links.append(cj.Link.solid(f"bar {k + 1}", parent, cj.Joint.revolute((0, 0, 1), name=f"bar {k + 1}"), placement, **solid))
        parent, placement = f"bar {k + 1}", at(length) @ se3.exp(np.array([twist, 0, 0, 0, 0, 0]))
    robot = cj.Robot("bennett", links).with_frame("end", "bar 3", placement)
    # The base is the fourth bar: from its far axis, (b, β) away along x, the near one is where bar 1 turns.
    robot = robot.with_frame("far", "base", se3.inverse(at(b) @ se3.exp(np.array([beta, 0, 0, 0, 0, 0]))))
    return robot, Constraint.loop(robot, "far", "end", "revolute")
