"""Text with ${expressions} and $(commands) in their values: what names mean in a xacro file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import nearest
from ...words import cut, short
from ..packages import Finder
from .expressions import evaluate
from .scope import Scope, View
from .values import COMMON, MATHEMATICS, PYTHON, XACRO, ExpressionError, Work, literal, text
from .yaml import load_yaml

MOST_FILES = 200

_PIECES = re.compile(r"(?P<escaped>\$\$+[{(])|\$\{(?P<expression>[^}]*)\}|\$\((?P<command>[^)]*)\)|(?P<text>[^$]+|\$(?![{($]))")


def escaped(given: str) -> str:
    """The text that has this value: what stands in a CDATA section is taken as it is."""
    return re.sub(r"\$+(?=[{(])", r"$\g<0>", given)


class Substitution:
    """The values of texts, with the arguments, packages, functions and outermost properties of a description."""

    def __init__(self, arguments: Mapping[str, Any], finder: Finder) -> None:
        self.arguments = {name: text(value) for name, value in arguments.items()}
        self.finder, self.work = finder, Work()
        self.files: list[Path] = []
        self.read = 0
        functions = Scope()
        functions.values |= COMMON | MATHEMATICS | {"True": True, "False": False}
        own = XACRO | {"load_yaml": self._load_yaml, "abs_filename": self._beside, "arg": self._argument}
        functions.values |= {key: own[key] for key in ("load_yaml", "abs_filename", "dotify")}
        for name, members in (("math", MATHEMATICS), ("python", PYTHON), ("xacro", own)):
            functions.values[name] = View(members.__getitem__)
        self.symbols = Scope(functions)

    def _value(self, given: str, symbols: Scope) -> Any:
        """A text with its expressions evaluated: a value of any kind if it is one expression, else text."""
        if "$" not in given:
            return given
        found: list[Any] = []
        at = 0
        while at < len(given):
            piece = _PIECES.match(given, at)
            if piece is None:
                raise ExpressionError(f"{short(given[at:])}: the expression is not closed.")
            at = piece.end()
            self.work.add()
            if piece["expression"] is not None:
                found.append(
                    evaluate(text(self._value(piece["expression"], symbols)), lambda x: self._lookup(x, symbols), self.work)
                )
            elif piece["command"] is not None:
                found.append(self._command(text(self._value(piece["command"], symbols)), symbols))
            else:
                found.append(piece["escaped"][1:] if piece["escaped"] else piece["text"])
        return found[0] if len(found) == 1 else text("".join(text(x) for x in found))

    def _lookup(self, name: str, symbols: Scope) -> Any:
        value = symbols.get(name, self._value)
        return View(lambda key: self._lookup(key, value)) if isinstance(value, Scope) else value

    def _command(self, command: str, symbols: Scope) -> Any:
        """The value of $(command …)."""
        name, _, rest = command.strip().partition(" ")
        words = rest.split()
        if name == "eval":
            return text(evaluate(rest, lambda x: self._lookup_argument(x, symbols), self.work))
        if name in ("dirname", "cwd") and not words:
            return os.path.abspath(self.files[-1].parent if name == "dirname" else ".")
        if name == "optenv" and words:
            return os.environ.get(words[0], " ".join(words[1:]))
        if name in ("find", "arg", "env") and len(words) == 1:
            return {"find": self._find, "arg": self._argument, "env": _environment}[name](words[0])
        known = "find, arg, env, optenv, dirname, cwd and eval"
        raise ExpressionError(
            f"$({cut(command)}) is not understood; the commands are {known}, with one name after the first three."
        )

    def _lookup_argument(self, name: str, symbols: Scope) -> Any:
        if name in self.arguments:
            return literal(self.arguments[name])
        functions = {
            "arg": lambda x: literal(self._argument(x)),
            "env": _environment,
            "find": self._find,
            "true": True,
            "false": False,
        }
        functions["optenv"] = lambda x, default="": os.environ.get(x, default)
        functions["dirname"] = lambda: os.path.abspath(self.files[-1].parent)
        return functions[name] if name in functions else self._lookup(name, self.symbols.around or symbols)

    def _argument(self, name: str) -> str:
        if name not in self.arguments:
            near = nearest(name, self.arguments)
            hint = f" Did you mean {near!r}?" if near else ""
            raise ExpressionError(f"the argument {short(name)} has no value.{hint} Give load(…, arguments={{{name!r}: …}}).")
        return self.arguments[name]

    def _find(self, package: str) -> str:
        found = self.finder.folders(package)
        if not found:
            raise ExpressionError(
                f"the package {short(package)} was not found; give load(…, packages={{{package!r}: folder}}) or set ROS_PACKAGE_PATH."
            )
        return str(found[0])

    def _beside(self, name: Any) -> str:
        """A file named relative to the one that is being read."""
        name = text(name)
        return name if os.path.isabs(name) else os.path.join(os.path.dirname(self.files[-1]), name)

    def _load_yaml(self, name: Any) -> Any:
        path = Path(self._beside(name))
        self.read += 1
        if self.read > MOST_FILES:
            raise ExpressionError(f"more than {MOST_FILES} files are read.")
        return load_yaml(path, lambda x: evaluate(x, lambda key: self._lookup(key, self.symbols), self.work))


def _environment(name: str) -> str:
    if name not in os.environ:
        raise ExpressionError(f"the environment variable {short(name)} is not set.")
    return os.environ[name]
