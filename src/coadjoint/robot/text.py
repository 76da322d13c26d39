"""A robot as text: one line, a tree for the terminal, a table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ..words import printable

if TYPE_CHECKING:
    from .robot import Robot


DEEPEST = 40
"""Links deeper in the tree than this are not indented further, but have their depth before them."""


def summary(robot: Robot) -> str:
    """One line: name, sizes, mass."""
    mass = f"{_total_mass(robot):.4g} kg" if isinstance(robot.inertias, np.ndarray) else "traced"
    return f"Robot({robot.name!r}, {robot.n_links} links, nq={robot.nq}, nv={robot.nv}, {mass})"


def _total_mass(robot: Robot) -> float:
    return float(np.sum(robot.inertias[:, 0])) if robot.inertias.dtype != object else float("nan")


def structure(robot: Robot) -> str:
    """The structure of the robot: everything but its arrays of numbers, and the notes and shapes, on which no number depends."""
    joints = [link.joint for link in robot.links]
    limits = [[x.tolist() for x in (j.lower, j.upper, j.velocity, j.effort)] for j in joints]
    follows = [None if j.mimic is None else (j.mimic.joint, float(j.mimic.ratio), float(j.mimic.offset)) for j in joints]
    links = [(link.name, link.parent, link.joint.name, link.joint.kind) for link in robot.links]
    frames = [(frame.name, frame.link) for frame in robot.frames]
    springs = [(spring.name, *ends) for spring, ends in zip(robot.springs, robot.spring_ends, strict=True)]
    return repr((robot.name, robot.base, links, limits, follows, frames, springs))


def _limits(lower: np.ndarray, upper: np.ndarray) -> str:
    if not lower.size or not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return ""
    return "; ".join(f"{a:.4g} … {b:.4g}" for a, b in zip(lower, upper, strict=True) if np.isfinite(a) or np.isfinite(b))


def rows(robot: Robot) -> list[dict[str, str]]:
    """The main properties of each link and its joint, as text, in the order of description."""
    result = []
    plain = robot.has_plain_numbers
    for i, link in enumerate(robot.links):
        joint = link.joint
        mass, h = (robot.inertias[i, 0], robot.inertias[i, 1:4]) if plain else (np.nan, np.zeros(3))
        follows = ""
        if joint.mimic is not None:
            sign, offset = "-" if joint.mimic.offset < 0 else "+", abs(joint.mimic.offset)
            follows = f"= {joint.mimic.ratio:g}·{printable(joint.mimic.joint)}" + (f" {sign} {offset:g}" if offset else "")
        result.append(
            {
                "link": printable(link.name),
                "parent": printable(link.parent),
                "joint": printable(joint.name),
                "kind": joint.kind,
                "limits": follows or _limits(joint.lower, joint.upper),
                "mass": f"{mass:.4g}" if plain else "?",
                "com": " ".join(f"{x:.3g}" for x in h / mass) if mass > 0 else "",
            }
        )
    return result


def tree(robot: Robot) -> str:
    """The links as a tree, each with its joint."""
    children: dict[str, list[int]] = {}
    for i, link in enumerate(robot.links):
        children.setdefault(link.parent, []).append(i)
    table = rows(robot)
    lines = [summary(robot), printable(robot.base)]
    stack = [(i, "", 1) for i in reversed(children.get(robot.base, []))]
    while stack:
        i, indent, depth = stack.pop()
        link, row = robot.links[i], table[i]
        last = children[link.parent][-1] == i
        notes = ", ".join(x for x in (row["kind"], row["limits"], f"{row['mass']} kg") if x)
        before = indent if depth <= DEEPEST else f"{indent}{depth}: "
        lines.append(f"{before}{'└' if last else '├'}─ {row['link']}  ({row['joint']}: {notes})")
        deeper = indent + ("   " if last else "│  ") if depth < DEEPEST else indent
        stack.extend((k, deeper, depth + 1) for k in reversed(children.get(link.name, [])))
    return "\n".join(lines)


def html(robot: Robot) -> str:
    """A table for notebooks."""
    head = ("joint", "kind", "parent", "link", "limits", "mass", "com")
    body = "".join("<tr>" + "".join(f"<td>{escape(row[key])}</td>" for key in head) + "</tr>" for row in rows(robot))
    titles = "".join(f"<th>{key}</th>" for key in head)
    return f"<b>{escape(summary(robot))}</b><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
