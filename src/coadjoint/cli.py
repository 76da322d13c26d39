"""The command `coadjoint`. Exit codes: 0 done, 1 wrong input (one line on stderr), 2 wrong usage, 130 interrupted."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NoReturn

from . import __version__
from . import commands as _commands
from .errors import CoadjointError, ModelWarning, nearest
from .words import in_a_shell, printable


class _Parser(argparse.ArgumentParser):
    """An argument parser that says which word was meant."""

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        near = nearest(wrong[1], re.findall(r"[\w-]+", wrong[2])) if wrong else ""
        super().error(message + (f"; did you mean {near!r}?" if near else ""))

    def refuse(self, given: Sequence[str]) -> NoReturn:
        """An error for words that are no arguments of this command."""
        options = [option for option in self._option_string_actions if option.startswith("--")]
        near = next((near for word in given if word.startswith("-") and (near := nearest(word.partition("=")[0], options))), "")
        self.error(f"unrecognized arguments: {' '.join(given)}" + (f"; did you mean {near}?" if near else ""))


def parser(only: str = "") -> _Parser:
    """The argument parser with all commands, or with one of them, which avoids importing the others."""
    wide = lambda prog: argparse.HelpFormatter(prog, max_help_position=16)
    root = _Parser(prog="coadjoint", description="Robot dynamics as geometry.", formatter_class=wide)
    root.add_argument("--version", action="version", version=f"coadjoint {__version__}")
    adding = root.add_subparsers(dest="command", metavar="COMMAND")
    for name, module in commands(only).items():
        help = module.HELP
        own = adding.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        own.set_defaults(parser=own)
        module.add_arguments(own)
    return root


def commands(only: str = "") -> dict[str, Any]:
    """The modules of the commands by name; with `only`, just the one of that name, if it exists."""
    names = [module.name for module in iter_modules(_commands.__path__)]
    names = [only] if only in names else names
    modules = {name: import_module(f".commands.{name}", __package__) for name in names}
    found = {name: module for name, module in modules.items() if hasattr(module, "add_arguments")}
    return found if found or not only else commands()


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without τ shows ? instead of failing
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if argv is None else argv
    chosen = parser(next((word for word in words if not word.startswith("-")), ""))
    args, unknown = chosen.parse_known_args(words)
    if unknown:
        getattr(args, "parser", chosen).refuse(unknown)
    if args.command is None:
        chosen.print_help(sys.stderr)
        raise SystemExit(2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", ModelWarning)
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            commands(args.command)[args.command].run(args)
        sys.stdout.flush()
    except (CoadjointError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output has gone, as with `| head`
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        print(f"coadjoint: error: {_one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ncoadjoint: interrupted; nothing was left half done.", file=sys.stderr)
        return 130
    return 0


def _one_line(message: object) -> str:
    return in_a_shell(printable(" ".join(str(message).split()))) or type(message).__name__


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"coadjoint: warning: {_one_line(message)}", file=sys.stderr)
