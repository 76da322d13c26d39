"""`coadjoint equations`: the equations of motion in closed form."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ..arguments import a_moving_robot
from ..files import check_output, replacing
from ..show.terminal import number, table
from ..symbolic import Equations, equations
from ..words import printable
from .robots import add_robot, name_of

HELP = "write the equations of motion in closed form"

SAYS = {
    "M": "mass matrix M(q), τ = M a + C v + g",
    "C": "Coriolis matrix C(q, v), the one with Ṁ - 2C skew",
    "g": "gravity g(q)",
    "U": "potential energy U(q)",
    "T": "kinetic energy T(q, v)",
    "gamma": "Christoffel symbols Γ(q), τ_k = … + Γ_ijk v_i v_j",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    formats = "text to read, LaTeX for use in mathematics, a LaTeX document to print, Python for SymPy, or C (default: text)"
    parser.add_argument("--format", choices=("text", "latex", "document", "sympy", "c"), default="text", help=formats)
    numbers = "numbers of the robot, or symbols such as m_1, l_1, I_1zz (default: numeric)"
    parser.add_argument("--parameters", choices=("numeric", "symbolic"), default="numeric", help=numbers)
    quantities = (
        "which of M (mass matrix), C (Coriolis matrix), g (gravity), U, T (energies), gamma (Christoffel symbols) (default: M C g)"
    )
    parser.add_argument("--what", nargs="+", choices=tuple(SAYS), default=["M", "C", "g"], metavar="X", help=quantities)
    parser.add_argument("--out", metavar="FILE", help="write to a file")


def run(args: argparse.Namespace) -> None:
    from ..robot.load import load

    if args.out:
        check_output(args.out, args.robot if Path(args.robot).is_file() else None)
    robot = load(args.robot, base=args.base, fixed_joints=args.fixed_joints)
    a_moving_robot(robot, "robot")
    result = equations(robot, tuple(dict.fromkeys(args.what)), args.parameters)
    write: dict[str, Callable[[Equations], str]] = {
        "text": as_text,
        "latex": Equations.latex,
        "document": Equations.document,
        "sympy": Equations.python,
        "c": Equations.c,
    }
    text = write[args.format](result).rstrip("\n")
    if not args.out:
        print(text)
        return
    with replacing(args.out) as part:
        part.write_text(text + "\n", encoding="utf-8", newline="\n")
    print(f"wrote {args.out}")


def as_text(e: Equations) -> str:
    """The equations as text, with the meaning of their symbols."""
    parts = ["\n".join([f"{name_of(e.robot)}:", *(f"  {SAYS[name]}" for name in e.arrays)]), e.text()]
    names = [name for name in e.robot.joint_names if e.robot.joint_index(name) not in e.robot.mimics]
    if e.parameters:
        parts.append(table(("", "value", ""), [(p.name, number(p.value), p.meaning) for p in e.parameters], "lrl"))
    coordinates = []
    for name in names:
        where = e.robot.q_slice(name)
        span = f"q_{where.start + 1}" + (f" … q_{where.stop}" if where.stop > where.start + 1 else "")
        coordinates += [f"{span} {printable(name)}"] if where.stop > where.start else []
    parts.append("coordinates: " + ", ".join(coordinates))
    if e.in_steps:
        what = ", ".join(e.in_steps)
        parts.append(f"Written out, {what} would fill pages: here it is step by step, as computed, with names for what repeats.")
    return "\n\n".join(parts)
