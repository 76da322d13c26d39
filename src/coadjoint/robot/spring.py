"""Springs that a robot carries: between points of two links, or about a joint.

A spring between points pulls them together with the force k (ℓ - r), ℓ their distance; one with the rest length r = 0 balances gravity
exactly where its ends are chosen for it. A spring about a joint of one freedom pulls it to the coordinate r with k (q - r).
Both are part of potential energy, of gravity_force and of everything made of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arguments import a_name
from ..arrays import ArrayLike
from ..errors import ModelError, unknown
from ..words import short
from .joints import KINDS

if TYPE_CHECKING:
    from .link import Link
    from .robot import Robot


@dataclass(frozen=True, eq=False)
class Spring:
    """A spring of a stiffness [N/m or N m/rad] and the length or coordinate `rest` at which it exerts no force.

    Either `joint` names the joint that it acts about, or `links` the two links (or the base) and `points` (2, 3) where it is fixed to
    them, each in the link's frame.
    """

    name: str
    stiffness: float
    rest: float = 0.0
    joint: str = ""
    links: tuple[str, str] = ("", "")
    points: ArrayLike = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))

    def __post_init__(self) -> None:
        label = f"spring {short(a_name(self.name, 'the name of a spring'))}"
        for key, unit in (("stiffness", "a number that is not negative"), ("rest", "a finite number")):
            value = getattr(self, key)
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                number = math.nan
            if not math.isfinite(number) or (number < 0 and (key == "stiffness" or not self.joint)):
                raise ModelError(
                    f"{label}: {key} is {short(value)}; expected {unit if key == 'stiffness' or self.joint else 'a length'}."
                )
            object.__setattr__(self, key, number)
        try:
            points = np.array(self.points, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            points = np.zeros(0)
        if points.shape != (2, 3) or not np.all(np.isfinite(points)):
            raise ModelError(f"{label}: points are {short(self.points)}; expected two points of three coordinates.")
        points.flags.writeable = False
        object.__setattr__(self, "points", points)

    @property
    def numbers(self) -> np.ndarray:
        """(8,): stiffness, rest, and the two points."""
        return np.concatenate([[self.stiffness, self.rest], np.asarray(self.points, dtype=float).ravel()])

    def with_numbers(self, numbers: np.ndarray) -> Spring:
        """This spring with other `numbers`."""
        return replace(self, stiffness=numbers[0], rest=numbers[1], points=numbers[2:].reshape(2, 3))


class Ends(NamedTuple):
    """The structure of a spring: the joint that it acts about, or -1; its two links; whether it has a length at rest."""

    joint: int
    a: int
    b: int
    long: bool


def ends_of_springs(springs: Sequence[Any], links: Sequence[Link], index: Mapping[str, int]) -> tuple[Ends, ...]:
    """The `Ends` of every spring; an error names one that the robot cannot carry."""
    joints = {link.joint.name: i for i, link in enumerate(links)}
    found, seen = [], set()
    for k, spring in enumerate(springs):
        if not isinstance(spring, Spring):
            raise ModelError(f"springs[{k}] is {short(spring)}; expected a Spring.")
        if spring.name in seen:
            raise ModelError(f"two springs are named {short(spring.name)}; names must differ.")
        seen.add(spring.name)
        if spring.joint:
            if spring.joint not in joints:
                raise unknown(f"joint for the spring {short(spring.name)}", spring.joint, joints)
            kind = links[i := joints[spring.joint]].joint.kind
            if KINDS[kind].nv != 1:
                raise ModelError(
                    f"spring {short(spring.name)}: joint {short(spring.joint)} is {kind}; a spring about a joint needs one with a single "
                    "freedom. Fix a spring between two frames instead."
                )
            found.append(Ends(i, -1, -1, True))
            continue
        for link in spring.links:
            if link not in index:
                raise unknown(f"link for the spring {short(spring.name)}", link, index)
        a, b = (index[link] for link in spring.links)
        if a == b:
            label = f"spring {short(spring.name)} is fixed to {short(spring.links[0])}"
            raise ModelError(f"{label} with both ends and moves nothing; name two links.")
        found.append(Ends(-1, a, b, spring.rest != 0.0))
    return tuple(found)


def new_spring(robot: Robot, at: str, to: str | None, stiffness: float, rest: float, name: str | None) -> Spring:
    """The spring between the origins of two frames, or about the joint `at` where `to` is None."""
    a_name(at, "at")
    name = name if name is not None else _free_name(at if to is None else f"{at} - {to}", [x.name for x in robot.springs])
    if to is None:
        robot.joint_index(at)
        return Spring(name, stiffness, rest, joint=at)
    (i, a), (j, b) = robot.frame(at), robot.frame(to)
    links = (robot._link_name(i), robot._link_name(j))
    return Spring(name, stiffness, rest, links=links, points=np.stack([np.asarray(x)[:3, 3] for x in (a, b)]))


def _free_name(wanted: str, taken: Sequence[str]) -> str:
    name, k = wanted, 2
    while name in taken:
        name, k = f"{wanted} ({k})", k + 1
    return name


def moved_springs(springs: Iterable[Spring], places: Mapping[str, tuple[str, np.ndarray]]) -> list[Spring]:
    """Springs whose links have become part of others: `places` has, by link, what it is part of and its pose there.

    A spring both of whose ends are now on one body is dropped: it moves nothing.
    """
    found = []
    for spring in springs:
        if not spring.joint:
            on = [places.get(link, (link, np.eye(4))) for link in spring.links]
            if on[0][0] == on[1][0]:
                continue
            points = [T[:3, :3] @ x + T[:3, 3] for (_, T), x in zip(on, np.asarray(spring.points), strict=True)]
            spring = replace(spring, links=(on[0][0], on[1][0]), points=np.stack(points))
        found.append(spring)
    return found


def refuse_springs(robot: Robot, what: str) -> None:
    """Raise an error if the robot has springs, for functions that are linear in its inertias and would leave them out."""
    if robot.springs:
        raise ModelError(
            f"robot {short(robot.name)} has the spring {short(robot.springs[0].name)}; {what} does without springs. Use "
            "robot.with_springs([]), and take `spring_force` of the robot from the measured forces."
        )
