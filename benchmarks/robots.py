"""The robots that are measured."""

from __future__ import annotations

import importlib.metadata

import numpy as np

import coadjoint as cj


def humanoid() -> cj.Robot:
    """Talos, 38 freedoms with its floating base, from `example-robot-data`; without it a figure of the same size."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
        path = next(f.locate() for f in files if f.name == "talos_reduced.urdf")
        return cj.load(str(path), base="free")
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        return _figure()


def _figure() -> cj.Robot:
    """A trunk on a floating base with two legs of six joints, two arms of eight, a waist of two and a neck of two."""
    rng = np.random.default_rng(0)
    trunk = cj.Link.solid("trunk", "base", cj.Joint.free(), mass=15, com=(0, 0, 0.1), inertia=(0.4, 0.3, 0.2))
    links = [trunk]
    for limb, n in (("left leg", 6), ("right leg", 6), ("waist", 2)):
        links += _limb(rng, limb, "trunk", n)
    for limb, n in (("left arm", 8), ("right arm", 8), ("neck", 2)):
        links += _limb(rng, limb, "waist 2", n)
    return cj.Robot("humanoid", links)


def _limb(rng: np.random.Generator, name: str, parent: str, n: int) -> list[cj.Link]:
    links = []
    for k in range(n):
        axis, at = np.eye(3)[k % 3], np.eye(4)
        at[:3, 3] = rng.uniform(-0.2, 0.2, 3)
        solid = {"mass": rng.uniform(0.5, 4), "com": rng.uniform(-0.1, 0.1, 3), "inertia": rng.uniform(0.01, 0.012, 3)}
        links.append(cj.Link.solid(f"{name} {k + 1}", parent, cj.Joint.revolute(axis), at, **solid))
        parent = f"{name} {k + 1}"
    return links


def chain(n: int) -> cj.Robot:
    """n links with revolute joints about x, y and z in turn, each with all ten inertial parameters."""
    rng = np.random.default_rng(1)
    links = []
    for k in range(n):
        at = np.eye(4)
        at[:3, 3] = 0.0, 0.0, 0.1
        A = rng.normal(size=(3, 3)) * 0.05
        inertia = np.trace(A @ A.T) * np.eye(3) - A @ A.T
        joint = cj.Joint.revolute(np.eye(3)[k % 3])
        parent = f"link {k}" if k else "base"
        links.append(cj.Link.solid(f"link {k + 1}", parent, joint, at, mass=0.3, com=rng.uniform(-0.05, 0.05, 3), inertia=inertia))
    return cj.Robot(f"chain {n}", links)


def robots(names: list[str]) -> dict[str, cj.Robot]:
    """The robots by name: panda, ur5e, humanoid, chain10 …"""
    made = {}
    for name in names:
        made[name] = humanoid() if name == "humanoid" else chain(int(name[5:])) if name.startswith("chain") else cj.load(name)
    return made
