"""The page's own JavaScript modules as one script: a file that opens from disk cannot import others."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{ ([^}]*) \} from "\./([a-z_]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|const|class|let) ([A-Za-z_$][\w$]*))", re.MULTILINE)


@cache
def bundle(entry: str) -> str:
    """The module and all that it imports, each in a function of its own, in the order of need.

    Modules import by name from files beside them, `import { a, b } from "./file.js";` on one line, and export where they declare.
    """
    done: dict[str, str] = {}

    def add(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ValueError(f"modules import each other: {' -> '.join([*path, name])}.")
        if name in done:
            return
        source = asset(f"{name}.js")
        for _, needed in _IMPORT.findall(source):
            add(needed, (*path, name))
        body = _IMPORT.sub(lambda found: f"const {{ {found[1]} }} = modules.{found[2]};\n", source)
        exports = [name for _, name in _EXPORT.findall(body)]
        body = _EXPORT.sub(lambda found: found[1], body)
        done[name] = f"modules.{name} = (() => {{\n{body}\nreturn {{ {', '.join(exports)} }};\n}})();\n"

    add(entry, ())
    return '"use strict";\nconst modules = {};\n' + "".join(done.values())


@cache
def asset(name: str) -> str:
    """The text of a file of the page."""
    return (files(__package__) / name).read_text(encoding="utf-8")
