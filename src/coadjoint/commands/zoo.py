"""`coadjoint zoo`: the bundled robots."""

from __future__ import annotations

import argparse

from ..show.terminal import table

HELP = "list the bundled robots"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(args: argparse.Namespace) -> None:
    from ..robot import zoo

    rows = []
    for name in zoo.names():
        robot = zoo.make(name)
        about = (getattr(zoo, name).__doc__ or "").strip().splitlines()[0]
        rows.append((name, str(robot.n_links), str(robot.nv), about))
    print(table(("robot", "links", "nv", ""), rows, "lrrl"))
    print("\nplanarNr is the planar arm with N links, N from 1 to 999: planar7r has seven.")
