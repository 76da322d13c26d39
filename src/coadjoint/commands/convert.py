"""`coadjoint convert`: a robot from one format to another."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from ..errors import CoadjointError, ModelWarning
from ..files import check_output, replacing
from ..robot.robot import Robot

FORMATS = (".urdf", ".xml", ".json")


def run(args: argparse.Namespace) -> None:
    from ..robot.load import load

    out = Path(args.out)
    if (extension := out.suffix.lower()) not in FORMATS:
        raise CoadjointError(f"{out}: robots are written as {', '.join(FORMATS)}, not as {extension or 'nothing'!r}.")
    check_output(out, args.robot)
    if out.exists() and not args.force:
        raise CoadjointError(f"{out} exists already; --force overwrites it.")
    robot = load(args.robot, fixed_joints="keep")
    for note in robot.warnings:
        warnings.warn(note, ModelWarning, stacklevel=2)
    text = as_text(robot, extension)
    with replacing(out) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    print(f"wrote {out}: {robot!r}")


def as_text(robot: Robot, extension: str) -> str:
    """The robot in the format of that extension; what the format does not hold is named in a warning or refused."""
    if extension == ".urdf":
        from ..robot.urdf_write import to_urdf, unsaid

        for note in unsaid(robot):
            warnings.warn(f"URDF: {note}", ModelWarning, stacklevel=2)
        return to_urdf(robot)
    if extension == ".xml":
        from ..robot.mjcf import to_mjcf

        return to_mjcf(robot)
    return robot.to_json() + "\n"
