"""Mechanisms with known motions, for the tests of simulation."""

from __future__ import annotations

import numpy as np

import coadjoint as cj
from coadjoint import Constraint
from coadjoint.lie import se3
from coadjoint.robot.zoo.textbook import planar_nr

G = 9.81


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    return se3.pose(np.eye(3), np.array([x, y, z]))


def sleigh(m: float = 1.8, inertia: float = 0.35, a: float = 0.4) -> tuple[cj.Robot, Constraint]:
    """Chaplygin's sleigh: a knife edge along x of the body at its origin, the centre of mass a before it."""
    body = cj.Link.solid("body", "base", cj.Joint.planar(), mass=m, com=(a, 0, 0), inertia=(0, 0, inertia))
    robot = cj.Robot("sleigh", [body])
    return robot, Constraint.twist(robot, "body", "y")


def disk(m: float = 1.3, r: float = 0.4) -> tuple[cj.Robot, Constraint]:
    """A thin disk that rolls on the floor; its axle is z of its frame."""
    body = cj.Link.solid("disk", "base", cj.Joint.free(), mass=m, inertia=(m * r * r / 4, m * r * r / 4, m * r * r / 2))
    robot = cj.Robot("disk", [body])
    return robot, Constraint.rolling(robot, "disk", r, axle=(0, 0, 1))


FOUR_BAR = (0.3, 0.9, 0.7, 0.8)
"""Crank, coupler, rocker, ground: the shortest and the longest are less than the others together, so the crank turns round."""


def four_bar() -> tuple[cj.Robot, Constraint]:
    """Three uniform rods of 1 kg, closed to the ground by a revolute loop joint: five equations, of which two are independent."""
    crank, coupler, rocker, ground = FOUR_BAR
    robot = planar_nr(3, [crank, coupler, rocker]).with_frame("anchor", "base", at(ground))
    return robot, Constraint.loop(robot, "anchor", "tip", "revolute")


def four_bar_positions(theta: float) -> np.ndarray:
    """The joints (4, 2) at crank angle θ, coupler above, by the intersection of two circles."""
    crank, coupler, rocker, ground = FOUR_BAR
    a, d = crank * np.array([np.cos(theta), np.sin(theta)]), np.array([ground, 0.0])
    line = d - a
    far = np.linalg.norm(line)
    along = (coupler**2 - rocker**2 + far**2) / (2 * far)
    up = np.sqrt(coupler**2 - along**2)
    b = a + along * line / far + up * np.array([-line[1], line[0]]) / far
    return np.array([[0.0, 0.0], a, b, d])


def four_bar_state(theta: float) -> np.ndarray:
    """q of the chain at crank angle θ."""
    p = four_bar_positions(theta)
    turn = np.arctan2(*np.diff(p, axis=0).T[::-1])
    return np.array([turn[0], turn[1] - turn[0], turn[2] - turn[1]])


SLIDER_CRANK = (0.3, 0.8)


def slider_crank() -> tuple[cj.Robot, Constraint]:
    """A crank of 1 kg, a rod of 0.5 kg and a slider of 2 kg along x, joined to the rod by a loop joint."""
    crank, rod = SLIDER_CRANK
    links = [
        cj.Link.solid("crank", "base", cj.Joint.revolute(name="a"), mass=1.0, com=(crank / 2, 0, 0), inertia=(0, 0, crank**2 / 12)),
        cj.Link.solid(
            "rod", "crank", cj.Joint.revolute(name="b"), at(crank), mass=0.5, com=(rod / 2, 0, 0), inertia=(0, 0, rod**2 / 24)
        ),
        cj.Link.solid("slider", "base", cj.Joint.prismatic((1, 0, 0), name="c"), mass=2.0),
    ]
    frames = [cj.Frame("end", "rod", at(rod)), cj.Frame("pin", "slider", np.eye(4))]
    robot = cj.Robot("slider-crank", links, frames, gravity=(0.0, -G, 0.0))
    return robot, Constraint.loop(robot, "pin", "end", "revolute")


def cradle(n: int = 5, radius: float = 0.05, length: float = 1.0, gap: float = 1e-6) -> tuple[cj.Robot, Constraint]:
    """n balls on strings, side by side along x with a small gap between; the constraint's values are the gaps."""
    pitch = 2 * radius + gap
    joints = [cj.Joint.revolute((0, -1, 0), name=f"string{k}") for k in range(n)]
    links = [cj.Link.solid(f"ball{k}", "base", joints[k], at(k * pitch), mass=0.2, com=(0, 0, -length)) for k in range(n)]
    robot = cj.Robot("cradle", links)

    def gaps(q):
        x, z = [k * pitch + length * np.sin(q[k]) for k in range(n)], [-length * np.cos(q[k]) for k in range(n)]
        square = [(x[k + 1] - x[k]) * (x[k + 1] - x[k]) + (z[k + 1] - z[k]) * (z[k + 1] - z[k]) for k in range(n - 1)]
        return np.stack([np.sqrt(s) - 2 * radius for s in square])

    return robot, Constraint.holonomic(gaps)


class Walker:
    """The compass walker of Garcia, Chatterjee, Ruina & Coleman (1998): legs of length 1, hip of mass 1, feet of mass β, g = 1.

    q = (θ, -φ) of the paper: the angle of the stance leg from the slope's normal, and from there to the swing leg.
    """

    def __init__(self, slope: float, foot: float) -> None:
        gravity = (np.sin(slope), -np.cos(slope), 0.0)
        swing = cj.Link.solid("swing", "stance", cj.Joint.revolute(name="hip"), at(0, 1), mass=foot, com=(0, -1, 0))
        stance = cj.Link.solid("stance", "base", cj.Joint.revolute(name="ankle"), mass=1.0, com=(0, 1, 0))
        self.pinned = cj.Robot("walker", [stance, swing], gravity=gravity)
        # In the air, for the impact: the stance foot may leave the ground, and has its mass.
        slides = [
            cj.Link("x", "base", cj.Joint.prismatic((1, 0, 0), name="x")),
            cj.Link("y", "x", cj.Joint.prismatic((0, 1, 0), name="y")),
        ]
        whole = cj.Link.solid(
            "stance",
            "y",
            cj.Joint.revolute(name="ankle"),
            mass=1 + foot,
            com=(0, 1 / (1 + foot), 0),
            inertia=(0, 0, foot / (1 + foot)),
        )
        self.free = cj.Robot("walker", [*slides, whole, swing], [cj.Frame("heel", "swing", at(0, -1))], gravity=gravity)
        self.heel = Constraint.point(self.free, "heel", "xy")

    def strike(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The plastic impact of the swing foot; the legs change their parts."""
        after, _ = cj.impact(self.free, self.heel, np.concatenate([[0, 0], q]), np.concatenate([[0, 0], v]))
        return np.array([q[0] + q[1], -q[1]]), np.array([after[2] + after[3], -after[3]])

    def step(self, state: np.ndarray, tolerance: float = 1e-11) -> tuple[np.ndarray, float]:
        """(θ, θ̇, rate of the hip) just after a heel strike, to those just after the next, and the time of the step."""
        strike = cj.Event(lambda q, v, t: q[1] + 2 * q[0], direction=-1, terminal=True, then=self.strike, name="heel strike")
        q = np.array([state[0], -2 * state[0]])
        found = cj.simulate(self.pinned, q, state[1:], [0.0, 6.0], events=[strike], tolerance=tolerance)
        assert found.stopped == "heel strike"
        return np.array([found.q[-1, 0], *found.v[-1]]), float(found.time[-1])
