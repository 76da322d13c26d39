"""Robots read from MJCF by MuJoCo's own compiler; `mjcf_write.py` writes them."""

from __future__ import annotations

import os

from ..errors import ModelError, ReadError
from .files import read_bytes
from .robot import Robot
from .urdf import check_options
from .xml import root_tag


def read_mjcf(path: str | os.PathLike[str], base: str = "fixed", fixed_joints: str = "merge") -> Robot:
    """The robot in an MJCF file, compiled by MuJoCo, so that defaults, includes, meshes and inertia from geoms are exact.

    See `coadjoint.interop.mujoco.from_mjmodel` for what becomes of its elements and for the options. A file that MuJoCo refuses
    raises a ReadError with MuJoCo's words. Needs the package `mujoco`.
    """
    from ..interop import mujoco as interop
    from ..interop._common import engine

    check_options(base, fixed_joints)
    mujoco = engine("mujoco")
    name = os.fspath(path)
    if (tag := root_tag(read_bytes(path), name)) != "mujoco":
        raise ReadError(f"{name}: the root element is <{tag}>; expected <mujoco>.")
    try:
        model, said = interop.compiled(lambda: mujoco.MjModel.from_xml_path(name))
    except ValueError as error:
        raise ReadError(f"{name}: MuJoCo: {' '.join(str(error).split())}") from None
    try:
        robot = interop.from_mjmodel(model, base, fixed_joints)
    except ModelError as error:
        raise ReadError(f"{name}: {error}") from None
    return robot._remade(notes=(*robot.notes, *said)) if said else robot
