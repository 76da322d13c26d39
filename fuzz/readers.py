"""Readers of URDF, MJCF, SDF, SRDF, xacro, JSON and tables: whatever stands in a file, the outcome is a robot (or states), or one
error of ours that begins with the name of the file, is short, and says where; within two seconds and 512 MiB.

A robot that was read has only finite numbers. Some of them are used: they come back from JSON as they were, and are written as URDF
and MJCF or refused by name.
"""

from __future__ import annotations

import os
import random
import tempfile
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np

from coadjoint import CoadjointError, Joint, Link, Mimic, Robot, load
from coadjoint.motion import read_states
from coadjoint.robot.mjcf_write import to_mjcf
from coadjoint.robot.robot import NUMBERS
from coadjoint.robot.storage import from_json
from coadjoint.robot.urdf_write import to_urdf

from . import _isolated, _mutants

KINDS = [*["urdf"] * 4, *["sdf"] * 4, *["xacro"] * 4, *["json"] * 3, *["srdf"] * 2, *["mjcf"] * 2, *["csv"] * 2, "npz"]
WRITTEN = 8
"""Every so many robots that were read are shown and written, too, which takes longer than reading."""
ENDINGS = {"urdf": ".urdf", "mjcf": ".xml", "sdf": ".sdf", "srdf": ".srdf", "xacro": ".xacro"}


def _robot() -> Robot:
    """A robot with every kind of joint."""
    placement = np.eye(4)
    placement[:3, 3] = 0.1, 0.2, 0.3
    solid = {"mass": 1.0, "com": (0.1, 0.0, 0.2), "inertia": (0.1, 0.2, 0.15)}
    return Robot(
        "r",
        [
            Link.solid("a", "base", Joint.revolute((0, 1, 0), name="ja", lower=-1.0, upper=1.0, damping=0.1), placement, **solid),
            Link.solid("b", "a", Joint.prismatic((1, 0, 0), name="jb", mimic=Mimic("ja", 0.5, 0.1)), placement, **solid),
            Link.solid("c", "b", Joint.spherical((0, 0, 0.1), name="jc"), placement, **solid),
            Link.solid("d", "a", Joint.planar((0, 0, 1), name="jd"), placement, **solid),
            Link.solid("e", "d", Joint.helical((0, 0, 1), 0.1, name="je"), **solid),
            Link.solid("f", "e", Joint.universal(name="jf"), **solid),
        ],
    ).with_frame("tip", "f", placement)


_JSON = _robot().to_json()
_TWO = Robot("two", [Link("a", "base", Joint.revolute(name="ja")), Link("b", "a", Joint.prismatic(name="jb"))])
_TWO_URDF = to_urdf(_TWO)


def made(seed: int) -> tuple[str, bytes]:
    """The kind of file and the bytes of a seed."""
    r = random.Random(seed)
    kind = r.choice(KINDS) if r.random() > 0.01 else "parquet"
    if kind in ENDINGS:
        return kind, _mutants.xml(r, kind)
    return kind, _mutants.robot_json(r, _JSON) if kind == "json" else _mutants.table(r, kind, _TWO.nq, _TWO.nv)


def outcome(seed: int, folder: Path) -> str:
    """What became of the file of a seed: its kind, and `read` or `refused`; a defect begins with FAILED."""
    found = _outcome(seed, folder)
    return f"FAILED: {found.replace('FAILED: ', '')}" if "FAILED" in found else found


def _outcome(seed: int, folder: Path) -> str:
    kind, data = made(seed)
    path = folder / f"x{ENDINGS.get(kind, f'.{kind}')}"
    path.write_bytes(data)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            if kind in ("csv", "npz", "parquet"):
                states = read_states(path, _TWO, ["q"] if seed % 2 else ["q", "v", "a"])
                sound = all(np.isfinite(x).all() for x in (states.q, states.v, states.a, states.tau, states.time) if x is not None)
                return f"{kind}: read" if sound and len(states) else f"FAILED: {kind}: states that are not finite"
            options = {"base": ("fixed", "free")[seed % 2], "fixed_joints": ("merge", "keep")[seed // 2 % 2]}
            if kind == "srdf":
                return f"srdf: {_used(load(_TWO_URDF, srdf=path), seed)}"
            if kind == "xacro":  # which reads this file, too
                (folder / "data.yaml").write_bytes(_mutants.yaml(random.Random(seed)))
            robot = load(path, **(options if seed % 3 == 0 else {}))
        except CoadjointError as error:
            return f"{kind}: {_judged(str(error), path)}"
        return f"{kind}: {_used(robot, seed)}"


def _judged(message: str, path: Path) -> str:
    if not message.startswith((str(path), str(path.with_name("data.yaml")))):
        return f"FAILED: an error that does not begin with the file: {message[:100]!r}"
    if len(message) > 1500:
        return f"FAILED: an error of {len(message)} characters: {message[:100]!r}"
    return "refused"


def _used(robot: Robot, seed: int) -> str:
    """Whether a robot that was read is sound."""
    if not all(np.isfinite(getattr(robot, key)).all() for key in NUMBERS):
        return "FAILED: a robot with numbers that are not finite"
    if not all(np.isfinite(q).all() for q in robot.poses.values()):
        return "FAILED: a named pose that is not finite"
    if seed % WRITTEN:
        return "read"
    repr(robot), str(robot), robot.warnings, robot._repr_html_()
    if from_json(robot.to_json()) != robot:
        return "FAILED: a robot that JSON does not give back"
    if not np.isfinite(robot.random(seed)).all():
        return "FAILED: random configurations that are not finite"
    for write in (to_urdf, to_mjcf):
        try:
            text = write(robot)
        except CoadjointError:
            continue
        if write is to_urdf and load(text, fixed_joints="keep").joint_names[:1] != robot.joint_names[:1] and robot.links:
            return "FAILED: a URDF that is read as another robot"
    return "read"


def run(seed: int) -> dict[str, int]:
    """The outcome of one seed, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        found = outcome(seed, Path(folder))
    if found.startswith("FAILED"):
        print(f"seed {seed}: {found}")
    return {found: 1}


def run_all(first: int, count: int, seconds: float) -> int:
    """Many seeds in processes with limits; prints the tally and returns 1 if something failed."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        for module in ("mujoco", "pandas", "pyarrow.parquet", "coadjoint.interop.mujoco"):
            with suppress(ImportError):
                import_module(module)  # once, before the processes are forked
        tally = _isolated.tallies(lambda seed: outcome(seed, Path(folder)), first, count, seconds)
    print(f"readers: {sum(tally.values())} inputs")
    for what, n in sorted(tally.items()):
        print(f"{n:10d}  {what}")
    return int(any(what.startswith("FAILED") for what in tally))
