"""Robots on which Altafini's claims fail, and those on which they hold."""

from __future__ import annotations

import numpy as np

import coadjoint as cj
from acceptance import load
from coadjoint import Joint, Link, Robot
from coadjoint import redundancy as rd
from random_robots import ONE_SCREW, random_robot

PLANAR = (2, 3, 4)
"""Rows of the planar pose (ω, vx, vy)."""


def redundant(seed: int, kinds=ONE_SCREW, n: int = 8):
    """A random chain with at least 7 freedoms, and a configuration where its tip can do everything."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, n, kinds, tree=False)
    q = robot.random(rng, 8)
    return robot, q[int(np.argmax(rd.dexterity(robot, q, "tip")))]


def case_24():
    """The case, its robot with the frame "tool"."""
    case = load(24)
    last = np.array(case.model["M"])[-1]
    case.robot = case.robot.with_frame("tool", case.robot.link_names[-1], np.linalg.inv(last) @ case.inputs.tool_home)
    return case


def cross_slide(*links: Link) -> Robot:
    """P P along x and y without mass, carrying links."""
    slides = [Link("x", "base", Joint.prismatic((1, 0, 0), name="jx")), Link("y", "x", Joint.prismatic((0, 1, 0), name="jy"))]
    return Robot("cross slide", [*slides, *links], gravity=(0, 0, 0))


def pprr() -> Robot:
    """P P R R with coaxial R's, M constant and J M⁻¹ Jᵀ = 1 for the planar pose of the last link."""
    first = Link.solid("a", "y", Joint.revolute((0, 0, 1), name="ja"), mass=0.4, inertia=np.diag([0.1, 0.1, 0.7]))
    second = Link.solid("b", "a", Joint.revolute((0, 0, 1), name="jb"), mass=0.6, inertia=np.diag([0.1, 0.1, 1.0]))
    return cross_slide(first, second)


def ppr_with_rotor() -> Robot:
    """P P R and a rotor on it with its axis in the plane; the task is the planar pose of link "a", and all that is claimed holds."""
    first = Link.solid("a", "y", Joint.revolute((0, 0, 1), name="ja"), mass=0.4, inertia=np.diag([0.1, 0.1, 0.8]))
    rotor = Link.solid("b", "a", Joint.revolute((1, 0, 0), name="jb"), mass=0.6, inertia=np.diag([0.3, 0.2, 0.2]))
    return cross_slide(first, rotor)


def with_wheels(base: str) -> Robot:
    """A body on a "spherical" or "free" joint with two balanced wheels: a Riemannian submersion that is not integrable."""
    joint = getattr(Joint, base)(name="body")
    links = [Link.solid("body", "base", joint, mass=2.0, inertia=np.diag([0.9, 1.2, 1.6]))]
    for name, axis in (("w1", (1, 0, 0)), ("w2", (0, 0.6, 0.8))):
        own = np.outer(axis, axis)
        links.append(
            Link.solid(name, "body", Joint.continuous(axis, name=f"j{name}"), mass=0.1, inertia=0.2 * own + 0.1 * np.eye(3))
        )
    return Robot("wheels", links, gravity=(0, 0, 0))


def balanced_3r() -> Robot:
    """A balanced planar 3R, so flat: links of length 1, 0.8, 0.6 whose centres of mass are where M is constant."""
    masses, lengths = np.array([3.0, 2.0, 1.0]), np.array([1.0, 0.8, 0.6])
    links = []
    for k in range(3):
        beyond = masses[k + 1 :].sum()
        com = (-beyond * lengths[k] / masses[k], 0.0, 0.0)
        pose = np.eye(4)
        pose[0, 3] = lengths[k - 1] if k else 0.0
        links.append(
            Link.solid(
                f"l{k}",
                f"l{k - 1}" if k else "base",
                Joint.revolute((0, 0, 1), name=f"j{k}"),
                pose,
                mass=masses[k],
                com=com,
                inertia=np.diag([0.1, 0.2, 0.25]),
            )
        )
    tip = np.eye(4)
    tip[0, 3] = lengths[-1]
    return Robot("balanced 3R", links, gravity=(0, 0, 0)).with_frame("tip", "l2", tip)


PANDA_START = np.array([0.3, -0.4, 0.2, -2.0, 0.3, 1.7, 0.5])


def panda_circle(duration: float = 10.0) -> tuple[Robot, np.ndarray, cj.kinematics.paths.Path]:
    """The Panda, a configuration, and a closed path of its tip from there."""
    robot = cj.load("panda")
    T = cj.pose(robot, PANDA_START, "tip")
    return robot, PANDA_START, cj.circle_path(T, T[:3, 3] + [0.1, 0, 0], [0, 1, 0.3], duration=duration)
