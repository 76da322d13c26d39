"""`coadjoint calibrate`: the geometry of a robot from a table of configurations and of what was measured."""

from __future__ import annotations

import argparse
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..calibration import calibrate
from ..calibration.said import left_out
from ..calibration.writing import write_mjcf, write_urdf
from ..errors import CoadjointError, LogWarning, ReadError
from ..files import check_output
from ..lie import quaternion
from ..motion.logs import Table, read_table
from ..robot.save import save
from ..show.terminal import Progress
from ..words import in_a_shell
from .logs import add_log_options, log_options
from .robots import add_robot, read_robot, tell

HELP = "fit a robot's geometry to measured points, poses, distances, contacts or pictures of a board"

KINDS = ("points", "poses", "distances", "planes", "corners")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    kinds = "points x1, y1, z1, x2 … (or x1_mm …), poses x, y, z, qx, qy, qz, qw, distances d1, d2 … (or d1_mm …) or the number of a plane"
    table = f"joint positions q1… (or q1_deg…) and {kinds}; .npz: q and points, poses, distances, planes or corners with board (and camera)"
    parser.add_argument("measured", metavar="TABLE", help=table)
    terms = (
        'errors of angles beside offsets: "none", or of scale, harmonics 1, harmonics 2, compliance, with commas (default: chosen)'
    )
    parser.add_argument("--terms", metavar="NAMES", help=terms)
    parser.add_argument("--frame", metavar="NAME", help="the frame that was measured (default: tip, or the last link)")
    parser.add_argument(
        "--mounted", choices=("hand", "fixed"), default="hand", help="where the camera of corners is (default: hand)"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write the calibrated robot: .urdf, .xml (of a file of that kind only origins change), .json"
    )
    parser.add_argument("--report", metavar="FILE", help="write a page with errors, parameters and what is not seen: .html")
    add_log_options(parser)


def run(args: argparse.Namespace) -> None:
    inputs = (args.measured, args.robot if Path(args.robot).is_file() else None)
    for path in (args.out, args.report):
        if path:
            check_output(path, *inputs)
    if args.report and Path(args.report).suffix.lower() != ".html":
        raise CoadjointError(f"{args.report}: reports end in .html.")
    robot = read_robot(args.robot, args.base, args.fixed_joints)
    tell(robot.notes)
    frame = args.frame or ("tip" if "tip" in robot.frame_names else robot.links[-1].name if robot.n_links else "")
    with Progress(f"reading {args.measured}") as report:
        extra = Path(args.measured).suffix.lower() != ".npz"  # other arrays may have other lengths: a board's corners
        table = read_table(args.measured, robot, needs=("q",), extra=extra, **log_options(args), report=report)
    measured = _measured(args.measured, table)
    terms = None if args.terms is None else () if args.terms == "none" else tuple(x.strip() for x in args.terms.split(","))
    with Progress("fitting"), warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # its notes are printed
        cal = calibrate(robot, table.arrays["q"], frame=frame, terms=terms, mounted=args.mounted, **measured)
    for note in table.notes:
        print(in_a_shell(note))
    print(in_a_shell(str(cal)))
    if args.out:
        _write(args, cal)
        lost = in_a_shell(left_out(cal))
        print(f"wrote {args.out}{', with geometry and offsets; ' * bool(lost)}{lost}")
    if args.report:
        cal.report(args.report)
        print(f"wrote {args.report}")


def _write(args: argparse.Namespace, cal: Any) -> None:
    kind = Path(args.out).suffix.lower()
    same = Path(args.robot).suffix.lower() == kind and Path(args.robot).is_file()
    if same and kind == ".urdf":
        write_urdf(cal, args.robot, args.out)
    elif same and kind == ".xml":
        write_mjcf(cal, args.robot, args.out)
    else:
        save(cal.robot, args.out)


def _measured(path: str, table: Table) -> dict[str, Any]:
    """What was measured, by its name in `calibrate`: one of `KINDS`, with `board` and `camera` beside corners."""
    if Path(path).suffix.lower() == ".npz":
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in KINDS if name in file.files}
            if len(found) != 1:
                raise ReadError(f"{path}: expected one of the arrays {', '.join(map(repr, KINDS))} beside 'q'.")
            return found | {name: file[name] for name in ("board", "camera") if "corners" in found and name in file.files}
    if all(name in table.extra for name in ("x", "y", "z", "qx", "qy", "qz", "qw")):
        position, turn = (np.stack([table.extra[name] for name in names], axis=1) for names in ("xyz", ("qx", "qy", "qz", "qw")))
        poses = np.tile(np.eye(4), (len(position), 1, 1))
        poses[:, :3, :3] = quaternion.to_matrix(turn / np.linalg.norm(turn, axis=1, keepdims=True))
        poses[:, :3, 3] = position
        return {"poses": poses}
    columns = {name: x for key, x in table.extra.items() for name, x in _flat(key, x)}
    points: dict[int, dict[str, np.ndarray]] = {}
    distances: dict[int, np.ndarray] = {}
    for name, x in columns.items():
        if name.lower() == "plane":
            if np.any(x != np.round(x)):
                raise ReadError(
                    f"{path}: the column {name!r} has a number that is not whole; expected the plane that was touched, from 0."
                )
            return {"planes": x.astype(int)}
        if match := re.fullmatch(r"d(?:istance)?_?(\d*)(_mm|_m|)", name.lower()):
            distances[int(match[1] or 1)] = x * (1e-3 if match[2] == "_mm" else 1.0)
        match = re.fullmatch(r"([xyz])_?(\d*)(_mm|_m|)", name.lower())
        if match:
            points.setdefault(int(match[2] or 1), {})[match[1]] = x * (1e-3 if match[3] == "_mm" else 1.0)
    if distances and not points:
        return {"distances": np.stack([distances[k] for k in sorted(distances)], axis=1)}
    if not points or any(set(point) != set("xyz") for point in points.values()):
        raise ReadError(
            f"{path}: expected points x1, y1, z1, … (or x1_mm …), poses x, y, z, qx, qy, qz, qw, distances d1, … or plane. {table.has}"
        )
    return {"points": np.stack([np.stack([points[k][axis] for axis in "xyz"], axis=1) for k in sorted(points)], axis=1)}


def _flat(key: str, x: np.ndarray) -> list[tuple[str, np.ndarray]]:
    return [(key, x)] if x.ndim == 1 else [(f"{key}{k + 1}", x[:, k]) for k in range(x.shape[1])]
