"""`coadjoint info`: links, joints, limits and masses of a robot."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from ..dynamics import center_of_mass, total_mass
from ..lie import inertia
from ..robot import text
from ..robot.robot import Robot
from ..show.terminal import number, table, vector
from ..words import printable
from .robots import add_robot, read_robot

HELP = "show the tree, joints, limits, masses, frames and implausible inertias of a robot"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    facts = describe(robot)
    print(_as_json(facts) if args.json else as_text(robot, facts))


def _as_json(facts: dict[str, Any]) -> str:
    """The facts as JSON, in which only control characters are escaped."""
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def describe(robot: Robot) -> dict[str, Any]:
    """The facts that `info` prints, as JSON values; None where there is no limit, follower or centre of mass."""
    links = []
    for link in robot.links:
        mass, com, central = inertia.to_body(link.parameters)
        links.append(
            {
                "name": link.name,
                "parent": link.parent,
                "joint": link.joint.name,
                "mass": float(mass),
                "center_of_mass": com.tolist(),
                "principal_moments": np.linalg.eigvalsh(central).tolist() if np.isfinite(central).all() else [None] * 3,
            }
        )
    mass = float(total_mass(robot))
    return {
        "name": robot.name,
        "base": robot.base,
        "nq": robot.nq,
        "nv": robot.nv,
        "gravity": robot.gravity.tolist(),
        "total_mass": mass,
        "home": robot.neutral().tolist(),
        "center_of_mass_at_home": center_of_mass(robot, robot.neutral()).tolist() if mass > 0 else None,
        "joints": [_joint(robot, i) for i in range(robot.n_links)],
        "links": links,
        "frames": [{"name": f.name, "link": f.link, "position": f.pose[:3, 3].tolist()} for f in robot.frames],
        "warnings": list(robot.warnings),
    }


def _joint(robot: Robot, i: int) -> dict[str, Any]:
    joint, mimic = robot.links[i].joint, robot.links[i].joint.mimic

    def finite(x: np.ndarray) -> list[float | None]:
        return [float(y) if np.isfinite(y) else None for y in x]

    own = robot.q_slice(joint.name)
    return {
        "name": joint.name,
        "kind": joint.kind,
        "q": [own.start, own.stop],
        "mimic": None if mimic is None else {"joint": mimic.joint, "ratio": float(mimic.ratio), "offset": float(mimic.offset)},
        **{key: finite(getattr(joint, key)) for key in ("lower", "upper", "velocity", "effort", "armature", "damping", "friction")},
    }


def as_text(robot: Robot, facts: dict[str, Any]) -> str:
    """The facts as text."""
    parts = [text.tree(robot)]
    moving = [joint for joint, kind in zip(facts["joints"], robot.kinds, strict=True) if kind.nv and joint["mimic"] is None]
    if moving:
        parts.append(_joint_table(moving))
    parts.append(_link_table(facts["links"]))
    com = facts["center_of_mass_at_home"]
    parts.append(
        f"total mass {number(facts['total_mass'])} kg"
        + (f", centre of mass at home {vector(com)} m" if com is not None else "")
        + f", gravity {vector(facts['gravity'])} m/s²"
    )
    if facts["frames"]:
        rows = [(f["name"], f["link"], vector(f["position"])) for f in facts["frames"]]
        parts.append(table(("frame", "on link", "at [m]"), rows, "lll"))
    if facts["warnings"]:
        parts.append("warnings:\n" + "\n".join(f"  {printable(x)}" for x in facts["warnings"]))
    return "\n\n".join(parts)


def _joint_table(joints: list[dict[str, Any]]) -> str:
    """A table of limits and drives, one row per coordinate where they differ; empty columns are left out."""
    columns: dict[str, list[str]] = {key: [] for key in ("position", "velocity", "effort", "armature", "damping", "friction")}
    for joint in joints:
        pairs = list(dict.fromkeys(zip(joint["lower"], joint["upper"], strict=True)))
        limits = [f"{number(low)} … {number(high)}" for low, high in pairs if low is not None or high is not None]
        columns["position"].append("; ".join(limits))
        for key in ("velocity", "effort", "armature", "damping", "friction"):
            values = [x for x in dict.fromkeys(joint[key]) if x is not None and (x or key in ("velocity", "effort"))]
            columns[key].append("; ".join(map(number, values)))
    used = [key for key, cells in columns.items() if any(cells)]
    head = {"position": "position limits", "velocity": "velocity limit", "effort": "effort limit"}
    rows = [(joint["name"], joint["kind"], *(columns[key][k] or "-" for key in used)) for k, joint in enumerate(joints)]
    return table(("joint", "kind", *(head.get(key, key) for key in used)), rows, "ll" + "r" * len(used))


def _link_table(links: list[dict[str, Any]]) -> str:
    rows = [
        (
            link["name"],
            number(link["mass"]),
            vector(link["center_of_mass"]) if link["mass"] > 0 else "-",
            vector(link["principal_moments"]) if link["mass"] > 0 else "-",
        )
        for link in links
    ]
    return table(("link", "mass [kg]", "centre of mass [m]", "principal moments [kg m²]"), rows, "lrll")
