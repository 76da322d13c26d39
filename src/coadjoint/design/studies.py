"""Built-in studies: designs that anyone can repeat, each with a robot, an objective and the known properties of the answer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..kinematics import pose
from ..lie import se3
from ..robot import Frame, Robot
from ..robot.link import Joint, Link
from . import objectives
from .optimize import Design, optimize


def planar_chain(lengths: tuple[float, ...], inertia: float = 0.6) -> Robot:
    """Links in a horizontal plane, each turning about z at the end of the one before, centres of mass beside their axes; frame "tip"."""
    links = []
    for k, length in enumerate(lengths):
        at = np.array([lengths[k - 1] if k else 0.0, 0.0, 0.0])
        parent = f"link{k}" if k else "base"
        com = (0.4 * length, 0.1 * length, 0.0)
        joint = Joint.revolute((0, 0, 1), name=f"joint{k + 1}")
        links.append(
            Link.solid(f"link{k + 1}", parent, joint, se3.pose(np.eye(3), at), mass=1.0 + 0.3 * k, com=com, inertia=inertia)
        )
    end = Frame("tip", f"link{len(lengths)}", se3.pose(np.eye(3), np.array([lengths[-1], 0.0, 0.0])))
    return Robot("planar_chain", links, [end], gravity=(0, 0, 0))


def balanced_linkage(links: int = 3) -> Design:
    """A planar chain whose centres of mass are moved until its mass matrix is constant.

    Brockett, Stokes & Park (1993), section 5: in closed form m_k p_kk = -(Σ_{j>k} m_j) p_{k,k+1} for k = 2 … n. Masses and inertias stay.
    """
    robot = planar_chain((0.5, 0.4, 0.3, 0.25, 0.2)[:links], inertia=8.0)
    q = robot.random(np.random.default_rng(0), (32,))
    free = [f"inertial:link{k}.{x}" for k in range(2, links + 1) for x in ("hx", "hy")]
    return optimize(robot, free, objectives.variation, states={"q": q})


def least_curvature() -> Design:
    """The lengths and masses within bounds of a spatial arm with three joints, no heavier than given, whose metric is curved least."""
    vertical, shoulder, elbow = ((0, 0, 1), (0, 1, 0), (0, 1, 0))
    column, upper, lower = (se3.pose(np.eye(3), np.array(at)) for at in ((0.0, 0.0, 0.0), (0.0, 0.0, 0.4), (0.4, 0.0, 0.0)))
    body = {"inertia": 0.05}
    robot = Robot(
        "arm",
        [
            Link.solid("column", "base", Joint.revolute(vertical, name="turn"), column, mass=3.0, com=(0, 0, 0.2), **body),
            Link.solid("upper", "column", Joint.revolute(shoulder, name="shoulder"), upper, mass=2.0, com=(0.2, 0, 0), **body),
            Link.solid("lower", "upper", Joint.revolute(elbow, name="elbow"), lower, mass=1.0, com=(0.15, 0, 0), **body),
        ],
        gravity=(0, 0, 0),
    )
    q = robot.random(np.random.default_rng(0), (64,))
    mass = float(robot.inertias[:, 0].sum())
    light = lambda robot: 1.0 - robot.inertias[:, 0].sum() / mass
    return optimize(
        robot,
        ["masses", "lengths"],
        objectives.curvature,
        states={"q": q},
        bounds={"masses": (0.3, 5.0), "lengths": (0.2, 0.8)},
        constraints=[light],
    )


def reaching_lengths() -> Design:
    """The link lengths of a planar arm with two joints that comes as close as it can to a set of poses.

    The configurations that come nearest are found anew for every design; the distances are least in them, so the gradient takes them as
    they are. The poses are those of an arm with lengths 0.7 and 0.5, which the design finds from 0.5 and 0.4.
    """
    truth, robot = planar_chain((0.7, 0.5)), planar_chain((0.5, 0.4))
    q = np.random.default_rng(1).uniform(-1, 1, (24, 2)) * [1.5, 1.0] + [0.0, 0.8]
    targets = np.asarray(pose(truth, q, "tip"))[:, :3, :].reshape(-1, 12)
    nearest = lambda arm: {"q": _nearest(arm, targets, q), "target": targets}
    free = ["lengths", "frames:tip.vx"]
    return optimize(robot, free, objectives.reach("tip", length=0.3), states=nearest, bounds={"lengths": (0.2, 1.0)})


def sprung_arm(stiffness: float = 100.0) -> Robot:
    """An arm of two links in a vertical plane with three springs without length at rest: from the column to either link, and across the
    elbow. With the right stiffnesses they hold it still wherever it stands; frame "tip".
    """
    across = Joint.revolute((0, -1, 0), name="shoulder"), Joint.revolute((0, -1, 0), name="elbow")
    upper = Link.solid("upper", "base", across[0], mass=4.0, com=(0.25, 0, 0), inertia=0.08)
    lower = Link.solid(
        "lower", "upper", across[1], se3.pose(np.eye(3), np.array([0.5, 0, 0])), mass=2.5, com=(0.2, 0, 0), inertia=0.04
    )
    points = {"post": ("base", (0, 0, 0.3)), "strut": ("upper", (0.65, 0, 0)), "tip": ("lower", (0.45, 0, 0))}
    points |= {"at upper": ("upper", (0.2, 0, 0)), "at lower": ("lower", (0.15, 0, 0))}
    frames = [Frame(name, link, se3.pose(np.eye(3), np.array(at, dtype=float))) for name, (link, at) in points.items()]
    robot = Robot("sprung_arm", [upper, lower], frames)
    robot = robot.with_spring("post", "at upper", stiffness=stiffness, name="first")
    robot = robot.with_spring("post", "at lower", stiffness=stiffness, name="second")
    return robot.with_spring("strut", "at lower", stiffness=stiffness, name="third")


STIFFNESSES = ["springs:first.stiffness", "springs:second.stiffness", "springs:third.stiffness"]


def balancing_springs() -> Design:
    """The stiffnesses with which springs hold a `sprung_arm` at rest everywhere.

    In closed form, with h the height of the post, a and b where springs are fixed to the links, l the length of the upper link and s
    that of the strut beyond it: k₂ h b = m₂ g c₂, k₁ h a + k₂ h l = g (m₁ c₁ + m₂ l), k₃ s b = k₂ l b.
    """
    robot = sprung_arm()
    q = robot.random(np.random.default_rng(0), (64,))
    return optimize(robot, STIFFNESSES, objectives.holding, states={"q": q}, bounds={"springs": (0.0, 5e3)})


def pick_and_place() -> Design:
    """The stiffnesses of the springs of a `sprung_arm` that carries 3 kg from one place to another and comes back, with least effort."""
    robot = sprung_arm(0.0)
    stops = np.radians([[-40.0, 60.0], [50.0, -70.0], [100.0, -60.0], [50.0, -70.0], [-40.0, 60.0]])
    s, time = np.linspace(0.0, 1.0, 26)[:-1, None], 1.0
    parts = [(x + (y - x) * (10 * s**3 - 15 * s**4 + 6 * s**5), y - x) for x, y in pairwise(stops)]
    q = np.concatenate([x for x, _ in parts])
    v = np.concatenate([way * (30 * s**2 - 60 * s**3 + 30 * s**4) / time for _, way in parts])
    a = np.concatenate([way * (60 * s - 180 * s**2 + 120 * s**3) / time**2 for _, way in parts])
    load = np.repeat([3.0, 0.0], len(q) // 2)[:, None]
    states = {"q": q, "v": v, "a": a, "load": load}
    return optimize(robot, STIFFNESSES, objectives.carrying("tip"), states=states, bounds={"springs": (0.0, 5e3)})


def _nearest(arm: Robot, targets: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The configurations (N, nq) of least distance to the targets."""
    from scipy.optimize import least_squares

    def residual(x: np.ndarray, target: np.ndarray) -> np.ndarray:
        gap = np.asarray(pose(arm, x, "tip"))[:3, :] - target.reshape(3, 4)
        return np.concatenate([gap[:, 3], 0.3 / np.sqrt(2.0) * gap[:, :3].reshape(-1)])

    return np.array(
        [least_squares(residual, x, args=(t,), xtol=1e-14, ftol=1e-14, gtol=1e-14).x for x, t in zip(q, targets, strict=True)]
    )


STUDIES = {
    "balanced-linkage": balanced_linkage,
    "balancing-springs": balancing_springs,
    "least-curvature": least_curvature,
    "pick-and-place": pick_and_place,
    "reaching-lengths": reaching_lengths,
}
"""By name, for the command line."""
