"""Robots of `example-robot-data`'s URDF files beside Pinocchio's models of them, and how their coordinates belong together.

Pinocchio orders joints depth-first by name, puts linear before angular parts, writes an unbounded angle as cosine and
sine, and is asked here for the whole tree, in which joints that mimic others move by themselves. A matrix P takes our velocities
to its, so that a mass matrix must be Pᵀ M P and forces Pᵀ τ; P and the mimicking angles come from the XML of the file, read here
by the standard library, not by ours.
"""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import ModelWarning
from models import urdf_files

pin = pytest.importorskip("pinocchio")

STATES = 100
SWAP = [3, 4, 5, 0, 1, 2]

EMPTY = "ur_description/urdf/ur3.urdf"
"""A <robot> without a name and without a single link, which Pinocchio refuses: there is nothing to compare."""


FILES = urdf_files()
if not FILES:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)


def load(source: Path | str, base: str = "fixed", **options: str) -> cj.Robot:
    """Some of the files have inertias that no body can have, of which a warning tells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return cj.load(source, base=base, **options)


class Peer:
    """A robot of ours, Pinocchio's model of the same file, and how their coordinates belong together."""

    def __init__(self, path: Path, robot: cj.Robot, model: pin.Model) -> None:
        self.path, self.robot, self.model, self.data = path, robot, model, model.createData()
        joints = {joint.get("name"): joint for joint in ElementTree.parse(path).getroot().findall("joint")}
        self.P = np.zeros((self.model.nv, robot.nv))
        self.angles = []  # (number of Pinocchio's joint, where our coordinate stands, ratio, offset)
        self.joint_ids = []
        for name in robot.joint_names:
            number = self.model.getJointId(name)
            self.joint_ids.append(number)
            source, ratio, offset = name, 1.0, 0.0
            while name != "root_joint" and (mimic := joints[source].find("mimic")) is not None and mimic.get("joint") in joints:
                offset += ratio * float(mimic.get("offset", 0.0))
                ratio *= float(mimic.get("multiplier", 1.0))
                source = mimic.get("joint")
            block = np.eye(6)[SWAP] if self.model.joints[number].nv == 6 else ratio * np.eye(self.model.joints[number].nv)
            rows = slice(self.model.idx_vs[number], self.model.idx_vs[number] + self.model.nvs[number])
            self.P[rows, robot.v_slice(source)] = block
            self.angles.append((number, robot.q_slice(source), ratio, offset))

    @staticmethod
    def of(path: Path, base: str) -> Peer:
        model = pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if base == "free" else []))
        return Peer(path, load(path, base), model)

    def locked(self, joints: list[str]) -> Peer:
        """Both with these joints, and what follows them, held at home."""
        robot = self.robot.lock(dict.fromkeys(joints, 0.0))
        gone = [self.model.getJointId(name) for name in self.robot.joint_names if name not in robot.joint_names]
        return Peer(self.path, robot, pin.buildReducedModel(self.model, gone, self.q(self.robot.neutral()[None])[0]))

    def states(self, seed: int) -> tuple[np.ndarray, ...]:
        """q, v, a, tau, wrenches of ours."""
        robot, rng = self.robot, np.random.default_rng(seed)
        v, a, tau = rng.normal(size=(3, STATES, robot.nv))
        return robot.random(rng, STATES), v, a, tau, rng.normal(size=(STATES, robot.n_links, 6))

    def q(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's q of ours."""
        result = np.empty((len(q), self.model.nq))
        for number, where, ratio, offset in self.angles:
            x = q[:, where] * ratio + offset
            if self.model.nqs[number] == 2:
                x = np.concatenate([np.cos(x), np.sin(x)], axis=-1)
            start = self.model.idx_qs[number]
            result[:, start : start + self.model.nqs[number]] = x
        return result

    def forces(self, wrenches: np.ndarray) -> pin.StdVec_Force:
        result = pin.StdVec_Force()
        result.extend([pin.Force.Zero()] * self.model.njoints)
        for number, wrench in zip(self.joint_ids, wrenches):
            result[number] = pin.Force(wrench[3:], wrench[:3])
        return result
