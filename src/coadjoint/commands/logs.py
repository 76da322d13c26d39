"""The options with which commands read logs."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import CoadjointError
from ..motion.columns import SPELLINGS


def add_log_options(parser: argparse.ArgumentParser, times: bool = False) -> None:
    """How a log is to be read, where its names do not say it; with `times`, also what becomes of times that do not grow."""
    group = parser.add_argument_group("reading tables")
    group.add_argument(
        "--columns", metavar="WHAT=NAMES", action="append", help="time=clock, q=pos_{} or q=a,b,c: columns by their names"
    )
    group.add_argument("--units", metavar="WHAT=UNIT", action="append", help="q=deg, v=deg/s, time=ms: units that no name states")
    group.add_argument(
        "--missing", choices=("error", "drop"), default="error", help="rows with empty cells or NaN (default: error)"
    )
    if times:
        group.add_argument("--times", choices=("error", "sort"), default="error", help="times that do not grow (default: error)")
    group.add_argument("--topic", metavar="NAME", help="topic of joint states in a ROS bag or MCAP file")


def log_options(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `read_log`."""
    columns = {what: names.split(",") if "," in names else names for what, names in _pairs(args.columns, "--columns").items()}
    options = {"columns": columns or None, "units": _pairs(args.units, "--units"), "missing": args.missing, "topic": args.topic}
    return options | ({"times": args.times} if hasattr(args, "times") else {})


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    found = {}
    for text in given or ():
        what, sign, value = text.partition("=")
        if not sign or what not in SPELLINGS or not value:
            raise CoadjointError(f"{option} {text!r}: expected one of {', '.join(SPELLINGS)}, then = and a value, such as q=deg.")
        found[what] = value
    return found
