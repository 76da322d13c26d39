"""Mechanisms of textbooks, whose equations fit on a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ModelError
from ...lie import se3
from ..link import Frame, Joint, Link
from ..robot import Robot


def _at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    return se3.pose(np.eye(3), np.array([x, y, z]))


def _sizes(what: str, values: Any, n: int) -> np.ndarray:
    try:
        return np.broadcast_to(np.asarray(values, dtype=float), (n,))
    except ValueError:
        raise ModelError(f"{what} is {values!r}; expected one number or {n}, one for each link.") from None


def planar_nr(n: int = 3, lengths: Any = 1.0, masses: Any = 1.0) -> Robot:
    """n uniform rods in the upright plane x, y, each turning about z at the end of the one before; gravity along -y, frame "tip".

    Each link's frame is at its joint, x along the rod. Home: stretched along x.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ModelError(f"n is {n!r}; expected the number of links, 1 or more.")
    lengths, masses = _sizes("lengths", lengths, n), _sizes("masses", masses, n)
    return _planar(f"planar{n}r", lengths, masses, lengths / 2, masses * lengths**2 / 12)


def planar2r(
    lengths: Any = 1.0,
    masses: Any = 1.0,
    coms: Any = None,
    inertias: Any = None,
) -> Robot:
    """The planar arm with two links of every textbook, in the upright plane x, y, gravity along -y; frame "tip".

    Lengths and masses 1; `coms` are the distances of the centres of mass from the joints, half the lengths if None;
    `inertias` the moments about axes z through them, those of uniform rods if None.
    """
    lengths, masses = _sizes("lengths", lengths, 2), _sizes("masses", masses, 2)
    c = lengths / 2 if coms is None else _sizes("coms", coms, 2)
    moments = masses * lengths**2 / 12 if inertias is None else _sizes("inertias", inertias, 2)
    return _planar("planar2r", lengths, masses, c, moments)


def _planar(name: str, lengths: np.ndarray, masses: np.ndarray, coms: np.ndarray, moments: np.ndarray) -> Robot:
    links = []
    for i, (mass, com, moment) in enumerate(zip(masses, coms, moments, strict=True)):
        joint = Joint.revolute(name=f"joint{i + 1}")
        body = {"mass": mass, "com": (com, 0.0, 0.0), "inertia": (0.0, moment, moment)}
        links.append(Link.solid(f"link{i + 1}", f"link{i}" if i else "base", joint, _at(lengths[i - 1]) if i else None, **body))
    return Robot(name, links, [Frame("tip", links[-1].name, _at(lengths[-1]))], gravity=(0.0, -9.81, 0.0))


def spherical_pendulum(length: float = 1.0, mass: float = 1.0) -> Robot:
    """A point mass on a rod without mass that turns about x and then y; home: hanging down; frame "tip" at the mass.

    The mass moves on a sphere, whose curvature 1/(m r²) is that of the metric. Where the rod lies along x, the first angle
    moves nothing and the mass matrix is singular.
    """
    joint = Joint.universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), name="pivot")
    link = Link.solid("rod", "base", joint, mass=mass, com=(0.0, 0.0, -length))
    return Robot("spherical_pendulum", [link], [Frame("tip", "rod", _at(z=-length))])


def furuta() -> Robot:
    """Furuta's pendulum: an arm that turns about z, upright, and a pendulum that turns about the arm; home: hanging; frame "tip".

    The mechanism: Furuta, Yamakita & Kobayashi, Swing-up control of inverted pendulum using pseudo-state feedback (1992). The
    figures are not theirs but those of the Quanser QUBE-Servo 2, as the parameter files of its courseware give them: arm 0.095 kg,
    0.085 m, pendulum 0.024 kg, 0.129 m, both taken as uniform rods. The friction in those files, 0.0015 and 0.0005 N m s, was
    tuned by hand; hub and rotor are left out.
    """
    arm, pendulum = (0.095, 0.085), (0.024, 0.129)
    moment = [m * r**2 / 12 for m, r in (arm, pendulum)]
    links = [
        Link.solid(
            "arm",
            "base",
            Joint.revolute(name="arm_joint", damping=0.0015),
            mass=arm[0],
            com=(arm[1] / 2, 0.0, 0.0),
            inertia=(0.0, moment[0], moment[0]),
        ),
        Link.solid(
            "pendulum",
            "arm",
            Joint.revolute((1.0, 0.0, 0.0), name="pendulum_joint", damping=0.0005),
            _at(arm[1]),
            mass=pendulum[0],
            com=(0.0, 0.0, -pendulum[1] / 2),
            inertia=(moment[1], moment[1], 0.0),
        ),
    ]
    return Robot("furuta", links, [Frame("tip", "pendulum", _at(z=-pendulum[1]))])


def cartpole(cart: float = 1.0, pole: float = 0.1, length: float = 1.0) -> Robot:
    """A cart that slides along x and a pole that turns about y on it; home: the pole upright; frame "tip" at its end.

    Masses 1 and 0.1 kg, a uniform pole of 1 m: Barto, Sutton & Anderson, Neuronlike adaptive elements that can solve
    difficult learning control problems (1983), whose track is 2.4 m long to either side and whose force is 10 N.
    """
    slide = Joint.prismatic((1.0, 0.0, 0.0), name="slide", lower=-2.4, upper=2.4, effort=10.0)
    moment = pole * length**2 / 12
    links = [
        Link.solid("cart", "base", slide, mass=cart),
        Link.solid(
            "pole",
            "cart",
            Joint.continuous((0.0, 1.0, 0.0), name="hinge"),
            mass=pole,
            com=(0.0, 0.0, length / 2),
            inertia=(moment, moment, 0.0),
        ),
    ]
    return Robot("cartpole", links, [Frame("tip", "pole", _at(z=length))])


def floating_body(mass: float = 1.0, sides: Sequence[float] = (0.3, 0.2, 0.1)) -> Robot:
    """A uniform brick that moves freely, of that mass and with those sides along x, y and z; its frame at the centre."""
    squares = np.square(_sizes("sides", sides, 3))
    inertia = mass / 12 * (squares.sum() - squares)
    return Robot("floating_body", [Link.solid("body", "base", Joint.free(name="free"), mass=mass, inertia=inertia)])
