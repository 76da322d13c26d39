"""A robot whose lengths and inertias are symbols with the names of textbooks.

    m_i                      mass of link i
    r_i, or r_ix, r_iy, r_iz centre of mass of link i, from its joint, in the axes of the link's frame
    I_ixx, I_ixy, …          inertia of link i about its centre of mass, in the same axes
    l_i                      joint i + 1 seen from joint i, along the one axis in which they are apart
    p_jx, p_jy, p_jz         joint j seen from the joint before, where several axes or branches are
    h_i                      pitch of helical joint i
    g, or g_x, g_y, g_z      free fall
    J_k                      armature of velocity k

Links are counted from 1 in the robot's order. What is zero stays zero, and directions stay numbers: these make the structure of the
equations. A joint is seen at the point of its axis that is nearest to the origin of its link's frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..lie import inertia, se3
from ..robot.robot import Robot
from .formula import Symbol

_AXES = "xyz"
_SMALL = 1e-12


@dataclass(frozen=True)
class Parameter:
    """A number of a robot that becomes a symbol: its name, its value, and its description."""

    symbol: Symbol
    value: float
    meaning: str

    @property
    def name(self) -> str:
        return self.symbol.name


class Parameters:
    """The numbers of a robot that become symbols, and the robot made of them."""

    def __init__(self, robot: Robot) -> None:
        self.list: list[Parameter] = []
        self.frames = _joint_frames(robot)
        self.robot = _moved(robot, self.frames)
        self.masses, self.coms, self.central = inertia.to_body(self.robot.inertias)
        self.places: dict[Any, int] = {}
        self._name_lengths()
        self._name_inertias()
        self._name_rest()

    def _add(self, place: Any, name: str, kind: str, value: float, meaning: str) -> None:
        self.places[place] = len(self.list)
        self.list.append(Parameter(Symbol(name, kind), float(value), meaning))

    def _name_lengths(self) -> None:
        robot = self.robot
        scale = np.max(np.abs(robot.placements[:, :3, 3]), initial=0.0)
        for j in range(robot.n_links):
            parent = robot.parents[j]
            p = robot.placements[j][:3, 3]
            axes = [k for k in range(3) if abs(p[k]) > _SMALL * scale]
            carries = [i for i in range(robot.n_links) if robot.parents[i] == parent]
            joint = f"joint {robot.joint_names[j]!r}"
            before = f"joint {robot.joint_names[parent]!r}" if parent >= 0 else "the base"
            for k in axes:
                alone = len(axes) == 1 and len(carries) == 1
                name = f"l_{parent + 1}" if alone else f"p_{j + 1}{_AXES[k]}"
                self._add(("placement", j, k), name, "length", p[k], f"{joint} from {before}, along {_AXES[k]} [m]")
            pitch = robot.kind(j).pitch(robot.joint_screws(j))
            if pitch is not None:
                self._add(("pitch", j, 0), f"h_{j + 1}", "length", pitch, f"pitch of {joint} [m/rad]")

    def _name_inertias(self) -> None:
        scale = np.max(np.abs(self.coms), initial=0.0)
        for i, name in enumerate(self.robot.link_names):
            link = f"link {name!r}"
            if self.masses[i]:
                self._add(("mass", i, 0), f"m_{i + 1}", "mass", self.masses[i], f"mass of {link} [kg]")
            axes = [k for k in range(3) if abs(self.coms[i, k]) > _SMALL * scale]
            for k in axes:
                short = f"r_{i + 1}" if len(axes) == 1 else f"r_{i + 1}{_AXES[k]}"
                self._add(
                    ("com", i, k),
                    short,
                    "length",
                    self.coms[i, k],
                    f"centre of mass of {link} from its joint, along {_AXES[k]} [m]",
                )
            largest = np.max(np.abs(self.central[i]))
            for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
                if abs(self.central[i, a, b]) > _SMALL * largest:
                    index = f"{i + 1}{_AXES[a]}{_AXES[b]}"
                    meaning = f"inertia of {link} about its centre of mass, {_AXES[a]}{_AXES[b]} [kg m²]"
                    self._add(("inertia", i, (a, b)), f"I_{index}", "inertia", self.central[i, a, b], meaning)

    def _name_rest(self) -> None:
        robot = self.robot
        axes = [k for k in range(3) if robot.gravity[k]]
        for k in axes:
            value = abs(robot.gravity[k]) if len(axes) == 1 else robot.gravity[k]
            along = "free fall [m/s²]" if len(axes) == 1 else f"free fall along {_AXES[k]} [m/s²]"
            self._add(("gravity", k, 0), "g" if len(axes) == 1 else f"g_{_AXES[k]}", "gravity", value, along)
        for k, x in enumerate(robot.armature):
            if x:
                self._add(("armature", k, 0), f"J_{k + 1}", "armature", x, f"armature of velocity {k + 1} [kg m² or kg]")

    def symbolic(self, p: Array) -> Robot:
        """The robot with elements of p in the place of its numbers."""
        robot, n, p = self.robot, self.robot.n_links, p.tolist()

        def filled(template: np.ndarray, what: str, sign: Any = None) -> np.ndarray:
            array = np.array(template, dtype=object)
            for (kind, i, k), place in self.places.items():
                if kind == what:
                    index = (i, *k) if isinstance(k, tuple) else (i, k) if array.ndim > 1 else (i,)
                    array[index] = p[place] if sign is None else float(sign[i]) * p[place]
            return array

        placements = np.array(robot.placements, dtype=object)
        placements[:, :3, 3] = filled(np.zeros((n, 3)), "placement")
        central = filled(np.zeros((n, 3, 3)), "inertia")
        for a, b in ((0, 1), (0, 2), (1, 2)):
            central[:, b, a] = central[:, a, b]
        bodies = inertia.from_body(*(_symbols(x) for x in (filled(np.zeros(n), "mass"), filled(np.zeros((n, 3)), "com"), central)))
        screws = np.array(robot.screws, dtype=object)
        for (kind, i, _), place in self.places.items():
            if kind == "pitch":
                k = robot.tree_v_slices[i].start
                screws[k, 3:] = [float(x) * p[place] for x in robot.screws[k, :3]]
        alone = np.count_nonzero(robot.gravity) == 1
        gravity = filled(np.zeros(3), "gravity", np.sign(robot.gravity) if alone else None)
        armature = filled(np.zeros(len(robot.armature)), "armature")
        numbers = {"placements": placements, "inertias": bodies, "screws": screws, "gravity": gravity, "armature": armature}
        return robot.with_numbers(**{key: _symbols(x) for key, x in numbers.items()})


def _symbols(x: Any) -> Any:
    from ..kernel.trace.symbols import symbols

    return symbols(x)


def _joint_frames(robot: Robot) -> np.ndarray:
    """The pose, for every link in its frame, of the frame with the same axes whose origin is on its joint's axis."""
    frames = np.tile(np.eye(4), (robot.n_links, 1, 1))
    for i, kind in enumerate(robot.kinds):
        frames[i, :3, 3] = kind.centre(robot.joint_screws(i))
    return frames


def _moved(robot: Robot, frames: np.ndarray) -> Robot:
    """The robot with its links described in these frames; entries that are zero up to rounding become zero."""
    back = se3.inverse(frames)
    placements = np.array(robot.placements @ frames)
    for i, parent in enumerate(robot.parents):
        if parent >= 0:
            placements[i] = back[parent] @ placements[i]
    screws = np.array(robot.screws)
    for i in range(robot.n_links):
        dofs = robot.tree_v_slices[i]
        if screws[dofs].size:
            screws[dofs] = se3.Ad_inv_act(frames[i], screws[dofs])
    inertias = inertia.transform(back, robot.inertias)

    def clean(x: np.ndarray, scale: float) -> np.ndarray:
        return np.where(np.abs(x) < 1e-14 * scale, 0.0, x)

    length = max(1e-300, float(np.max(np.abs(robot.placements[:, :3, 3]), initial=0.0)))
    placements[:, :3, :3] = clean(placements[:, :3, :3], 1.0)
    placements[:, :3, 3] = clean(placements[:, :3, 3], length)
    return robot.with_numbers(placements=placements, screws=clean(screws, max(1.0, length)), inertias=inertias)
