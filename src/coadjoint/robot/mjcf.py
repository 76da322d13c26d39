"""Robots read from MJCF by MuJoCo's own compiler; `mjcf_write.py` writes them."""

from __future__ import annotations

import os
from typing import Any

from ..errors import CoadjointError, ReadError
from ..files import as_path
from ..words import cut
from .mjcf_size import check_size
from .robot import Robot
from .urdf import check_options


def read_mjcf(path: str | os.PathLike[str], base: str = "fixed", fixed_joints: str = "merge") -> Robot:
    """The robot in an MJCF file, compiled by MuJoCo, so that defaults, includes, meshes and inertia from geoms are exact.

    See `coadjoint.interop.mujoco.from_mjmodel` for what becomes of its elements and for the options. A file that MuJoCo refuses
    raises a ReadError with MuJoCo's message. Needs the package `mujoco`.
    """
    from ..interop import mujoco as interop

    check_options(base, fixed_joints)
    model, said = compile_file(path)
    try:
        robot = interop.from_mjmodel(model, base, fixed_joints)
    except CoadjointError as error:
        raise ReadError(f"{cut(os.fspath(path), 300)}: {error}") from None
    return robot._remade(notes=(*robot.notes, *said)) if said else robot


def compile_file(path: str | os.PathLike[str]) -> tuple[Any, list[str]]:
    """The model that MuJoCo compiles from a file, and its warnings; a ReadError where the file is no MJCF, too large, or refused."""
    from ..interop import mujoco as interop
    from ..interop._common import engine

    mujoco = engine("mujoco")
    path = as_path(path)
    label = cut(str(path), 300)
    check_size(path)
    try:
        return interop.compiled(lambda: mujoco.MjModel.from_xml_path(str(path)))
    except Exception as error:  # MuJoCo raises ValueError for what it understands, and anything for what it does not
        raise ReadError(f"{label}: MuJoCo: {cut(' '.join(str(error).split()), 300)}") from None
