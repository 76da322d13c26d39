"""Mechanisms with the numbers that files of robots have: round, repeated, nearly zero, nearly a right angle."""

from __future__ import annotations

import numpy as np

import coadjoint as cj
from coadjoint.lie import so3

KINDS = (
    "revolute",
    "revolute",
    "revolute",
    "continuous",
    "prismatic",
    "helical",
    "universal",
    "spherical",
    "planar",
    "free",
    "fixed",
)
ANGLES = (0.0, 0.0, 1.5707963, -1.5707963, 1.57079632679, np.pi / 2, -np.pi / 2, np.pi, 3.1415926, np.pi / 4, 1e-12, 0.3)
LENGTHS = (0.0, 0.0, 0.0, 0.1, 0.25, 0.5, 1.0, -0.3, 1e-12, 0.0825, 0.333)
MASSES = (1.0, 1.0, 0.7, 2.0, 0.5, 1e-12, 0.0)


def mechanism(rng: np.random.Generator, largest: int = 6) -> cj.Robot:
    """A robot of up to `largest` links and a frame "tip"; a CoadjointError where the numbers drawn make none."""
    links = []
    sources: list[str] = []
    count = int(rng.integers(1, largest + 1))
    for i in range(count):
        kind = str(rng.choice(KINDS))
        options = {"name": f"j{i}"}
        if kind in ("revolute", "continuous", "prismatic", "helical"):
            if sources and rng.random() < 0.2:
                options["mimic"] = cj.Mimic(
                    str(rng.choice(sources)), float(rng.choice([1.0, -1.0, 0.5])), float(rng.choice([0.0, 0.3]))
                )
            else:
                sources.append(options["name"])
        if kind != "fixed" and rng.random() < 0.3:
            options |= {"armature": 0.1, "damping": 0.3, "friction": 0.2}
        parent = "base" if i == 0 else f"l{i - 1 if rng.random() < 0.7 else rng.integers(i)}"
        mass = float(rng.choice(MASSES))
        inertia = np.diag(rng.choice([0.01, 0.02, 0.015, 0.1], size=3)) if rng.random() < 0.8 else np.zeros((3, 3))
        if rng.random() < 0.2:
            inertia = inertia + 0.001
        com = _lengths(rng) if mass else np.zeros(3)
        joint = _joint(rng, kind, options)
        links.append(
            cj.Link.solid(f"l{i}", parent, joint, _pose(rng), mass=mass, com=com, inertia=inertia if mass else np.zeros((3, 3)))
        )
    gravity = (0.0, 0.0, -9.81) if rng.random() < 0.8 else (0.0, 0.0, 0.0)
    return cj.Robot("fuzzed", links, gravity=gravity).with_frame("tip", f"l{count - 1}", _pose(rng))


def _lengths(rng: np.random.Generator) -> np.ndarray:
    return rng.choice(LENGTHS, size=3)


def _axis(rng: np.random.Generator) -> np.ndarray:
    axis = np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    if rng.random() < 0.15:
        axis = axis + np.eye(3)[rng.integers(3)] * float(rng.choice([1e-12, 1.0, 0.1]))
    return axis / np.linalg.norm(axis)


def _pose(rng: np.random.Generator) -> np.ndarray:
    pose = np.eye(4)
    for _ in range(rng.integers(0, 3)):
        pose[:3, :3] = pose[:3, :3] @ so3.exp(_axis(rng) * float(rng.choice(ANGLES)))
    whole = np.round(pose[:3, :3])
    if rng.random() < 0.3 and np.abs(pose[:3, :3] - whole).max() < 1e-6:
        pose[:3, :3] = whole
    pose[:3, 3] = _lengths(rng)
    return pose


def _joint(rng: np.random.Generator, kind: str, options: dict) -> cj.Joint:
    axis, point = _axis(rng), _lengths(rng)
    if kind in ("revolute", "continuous"):
        return getattr(cj.Joint, kind)(axis, point, **options)
    if kind == "prismatic":
        return cj.Joint.prismatic(axis, **options)
    if kind == "helical":
        return cj.Joint.helical(axis, float(rng.choice([0.1, 0.5, 1e-12])), point, **options)
    if kind == "universal":
        second = _axis(rng)
        while abs(axis @ second) > 0.9:
            second = _axis(rng)
        return cj.Joint.universal(axis, second, point, **options)
    if kind == "spherical":
        return cj.Joint.spherical(point, **options)
    if kind == "planar":
        return cj.Joint.planar(axis, point, **options)
    return getattr(cj.Joint, kind)(**options)
