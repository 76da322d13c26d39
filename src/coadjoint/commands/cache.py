"""`coadjoint cache`: the compiled kernels kept on disk."""

from __future__ import annotations

import argparse

from ..kernel.runtime import cache

HELP = "show where compiled kernels are kept, and how many there are"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="remove them; they are made again when needed")


def run(args: argparse.Namespace) -> None:
    if args.clear:
        removed = cache.clear()
        print(f"removed {removed} kernel{'' if removed == 1 else 's'}")
    facts = cache.info()
    size = f"{facts['bytes'] / 2**20:.1f} of {facts['limit'] / 2**20:.0f} MiB"
    print(f"{facts['path'] or 'no cache'}: {facts['kernels']} kernels, {size}")
    if facts["disabled"]:
        print(f"not in use: {facts['disabled']}")
