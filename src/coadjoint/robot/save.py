"""`save`: a robot to a file."""

from __future__ import annotations

import os
import warnings

from ..arguments import a_robot, takes
from ..errors import CoadjointError, ModelWarning
from ..files import as_path, check_output, replacing
from ..words import cut
from .mjcf_write import to_mjcf
from .robot import Robot
from .urdf_write import to_urdf, unsaid

FORMATS = (".json", ".urdf", ".xml")


@takes(robot=a_robot)
def save(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write the robot to a file, atomically: .json without loss, or .urdf, or .xml (MJCF). A property that URDF or MJCF cannot
    represent is an error if the dynamics would change, and nothing is written; otherwise a ModelWarning names it.
    `coadjoint.load` reads the file again.
    """
    extension = check_format(path)
    path = check_output(path)
    text = robot.to_json() + "\n"
    if extension == ".urdf":
        text = to_urdf(robot)
        if notes := unsaid(robot):
            warnings.warn(f"robot {robot.name!r} has what URDF does not hold: {' '.join(notes)}", ModelWarning, stacklevel=2)
    elif extension == ".xml":
        text = to_mjcf(robot)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def check_format(path: str | os.PathLike[str]) -> str:
    """The extension of a robot's file, or an error if that format cannot be written."""
    extension = as_path(path).suffix.lower()
    if extension not in FORMATS:
        raise CoadjointError(
            f"{cut(str(path), 300)}: robots are written as {', '.join(FORMATS)}, not as {extension or 'nothing'!r}."
        )
    return extension
