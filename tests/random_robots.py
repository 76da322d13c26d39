"""Robots drawn at random, on which the laws of the library are tested."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coadjoint import Joint, Link, Mimic, Robot
from coadjoint.lie import se3
from coadjoint.robot.joints import KINDS

ONE_SCREW = ("revolute", "continuous", "prismatic", "helical")
"""Kinds of joints with one screw."""
MOVING = (*ONE_SCREW, "universal", "spherical", "planar", "free")
"""Kinds of joints that move."""
ALL_KINDS = tuple(KINDS)
"""Every kind of joint."""


def random_unit(rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def random_pose(rng: np.random.Generator, size: float = 0.5) -> np.ndarray:
    """A pose with any rotation and a position within ±size."""
    return se3.pose(se3.exp(np.concatenate([rng.normal(size=3) * 2, np.zeros(3)]))[:3, :3], rng.uniform(-size, size, 3))


def random_inertia(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and central inertia of a cloud of points: a body that can exist."""
    points = rng.normal(size=(6, 3)) * rng.uniform(0.05, 0.4, 3)
    weights = rng.uniform(0.1, 0.6, 6)
    mass = weights.sum()
    com = weights @ points / mass
    x = points - com
    inertia = sum(w * (y @ y * np.eye(3) - np.outer(y, y)) for w, y in zip(weights, x, strict=True))
    return float(mass), com + rng.uniform(-0.2, 0.2, 3), inertia


def random_joint(rng: np.random.Generator, kind: str, **options) -> Joint:
    """A joint of that kind with axes, points and pitch at random."""
    point = rng.uniform(-0.3, 0.3, 3)
    if kind in ("revolute", "continuous"):
        return getattr(Joint, kind)(random_unit(rng), point, **options)
    if kind == "prismatic":
        return Joint.prismatic(random_unit(rng), **options)
    if kind == "helical":
        return Joint.helical(random_unit(rng), rng.uniform(-0.3, 0.3), point, **options)
    if kind == "universal":
        return Joint.universal(random_unit(rng), random_unit(rng), point, **options)
    if kind == "spherical":
        return Joint.spherical(point, **options)
    if kind == "planar":
        return Joint.planar(random_unit(rng), point, **options)
    return getattr(Joint, kind)(**options)


def random_robot(
    rng: np.random.Generator | int,
    n: int,
    kinds: Sequence[str] = ALL_KINDS,
    *,
    tree: bool = True,
    shuffle: bool = False,
    mimic: bool = False,
    massless: bool = False,
    armature: bool = False,
    damping: bool = False,
) -> Robot:
    """A robot of n links, with a frame "tip" on the link that is deepest in the tree and a frame "mount" on the base.

    kinds: the kinds of joints to draw from; every one appears if n is large enough. tree: links hang on any earlier one, so the
    order is seldom depth-first; else a chain. shuffle: children may be described before their parents. mimic: about a third of
    the one-screw joints follow another. massless: some links have no mass, none so that the mass matrix is singular. armature,
    damping: at random on every joint (damping: viscous and Coulomb friction).
    """
    rng = np.random.default_rng(rng)
    drawn = [*rng.permutation(kinds), *rng.choice(kinds, max(0, n - len(kinds)))][:n]
    kinds = [str(kind) for kind in rng.permutation(drawn)]
    parents = [int(rng.integers(-1, i)) if tree and i else i - 1 for i in range(n)]
    depth: list[int] = []
    for parent in parents:
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    sources = [i for i in range(n) if kinds[i] in ONE_SCREW]
    followers = set(sources[1::3]) if mimic else set()
    hollow = _hollow(rng, kinds, parents) if massless else set()
    links = []
    for i in range(n):
        nv = KINDS[kinds[i]].nv
        options: dict = {"name": f"j{i}"}
        if armature:
            options["armature"] = rng.uniform(0.01, 0.3, nv)
        if damping:
            options |= {"damping": rng.uniform(0.01, 0.3, nv), "friction": rng.uniform(0.01, 0.3, nv)}
        if i in followers:
            source = int(rng.choice([k for k in sources if k not in followers]))
            options["mimic"] = Mimic(f"j{source}", rng.uniform(-2, 2), rng.uniform(-1, 1))
        joint = random_joint(rng, kinds[i], **options)
        mass, com, inertia = random_inertia(rng)
        if i in hollow:
            mass, inertia = 0.0, np.zeros((3, 3))
        parent = f"l{parents[i]}" if parents[i] >= 0 else "base"
        links.append(Link.solid(f"l{i}", parent, joint, random_pose(rng), mass=mass, com=com, inertia=inertia))
    if shuffle:
        links = [links[k] for k in rng.permutation(n)]
    robot = Robot("random", links, gravity=rng.normal(size=3) * 5)
    robot = robot.with_frame("mount", "base", random_pose(rng))
    return robot.with_frame("tip", f"l{int(np.argmax(depth))}" if n else "base", random_pose(rng))


def _hollow(rng: np.random.Generator, kinds: list[str], parents: list[int]) -> set[int]:
    """Links that may be without mass: a link with it hangs on them by a joint that cannot undo all of their motion."""
    hollow: set[int] = set()
    for i in reversed(range(len(parents))):
        stiff = [k for k, parent in enumerate(parents) if parent == i and k not in hollow and KINDS[kinds[k]].nv <= 1]
        if stiff and KINDS[kinds[i]].nv <= 1 and rng.random() < 0.7:
            hollow.add(i)
    return hollow


def random_velocity(robot: Robot, rng: np.random.Generator | int, shape: tuple[int, ...] = ()) -> np.ndarray:
    """A velocity (or acceleration, or force) of the robot, (*shape, nv)."""
    return np.random.default_rng(rng).normal(size=(*shape, robot.nv))
