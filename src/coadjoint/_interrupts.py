"""Ctrl-C while the command `coadjoint` is still importing: one line and exit code 130, as later, in the place of a traceback.

The package imports this module before all others, which take most of a second; programs that import the package are left alone.
"""

import os
import sys
from itertools import pairwise
from types import TracebackType


def is_the_command(program: str, given: list[str]) -> bool:
    """True if this process is the command, judged by the name of the program and the arguments of Python."""
    name = os.path.splitext(os.path.basename(program))[0]
    return name in ("coadjoint", "coadjoint-script") or ("-m", "coadjoint") in pairwise(given)


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    print("\ncoadjoint: interrupted before it began.", file=sys.stderr, flush=True)
    os._exit(130)


if is_the_command(sys.argv[0] if sys.argv else "", sys.orig_argv):
    sys.excepthook = _told
