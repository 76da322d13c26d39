"""The public names of the library, and the example of each: what the reference shows, and what `tests/test_reference.py` requires.

An example of a function or class is the first short statement of an executed page that calls it. An example of a method is the first such
statement that uses it in a section of the pages `examples*.md` whose title is its class.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coadjoint as cj

HERE = Path(__file__).parent
MODULES = (
    "constraints",
    "control",
    "costs",
    "design",
    "design.objectives",
    "design.studies",
    "errors",
    "export",
    "geometry",
    "identification",
    "interop",
    "lie.inertia",
    "lie.quaternion",
    "lie.screw",
    "lie.se3",
    "lie.so3",
    "redundancy",
    "scale",
)
"""The modules whose names the reference shows under the module's name, beside those of the package."""
INTERNAL = {
    "Constraint": {"frozen", "identity"},
    "Event": {"value", "crossed"},
    "Robot": {
        "canonical",
        "canonical_arguments",
        "consolidated",
        "derived",
        "from_tree",
        "from_tree_columns",
        "has_plain_numbers",
        "kind",
        "like",
        "member",
        "numbers",
        "original",
        "packed_meshes",
        "quaternions",
        "skeleton",
        "tree_q",
        "tree_v",
        "velocitywise",
        "with_numbers",
    },
    "Spring": {"numbers", "with_numbers"},
    "Target": {"checked", "flat", "key", "size"},
    "Trajectories": {"plot", "animate"},
    "constraints.PseudoVelocities": {"frozen", "identity"},
    "control.Controller": {"outside"},
    "control.SampledController": {"outside"},
    "redundancy.MapTask": {"frozen", "gap", "groups", "jacobian", "jacobian_rate", "key", "target_shapes", "wanted"},
    "redundancy.Task": {"gap", "groups", "key", "target_shapes", "wanted"},
}
"""Members that the library uses itself: not in the reference."""


def resolved(name: str) -> Any:
    """What a dotted name stands for, as `control.pd`."""
    found: Any = cj
    for part in name.split("."):
        found = getattr(found, part)
    return found


def parts() -> dict[str, list[str]]:
    """The public functions and classes, for each part of the library: names without `coadjoint.`, sorted."""
    found: dict[str, list[str]] = {}
    seen: set[int] = set()
    for name in cj.__all__:
        thing = getattr(cj, name)
        if not inspect.ismodule(thing):
            seen.add(id(thing))
            found.setdefault(thing.__module__.split(".")[1], []).append(name)
    for part in MODULES:
        module = resolved(part)
        for name in getattr(module, "__all__", None) or own(module):
            if part == "interop" and name != "convert_states":
                continue  # the modules for other packages, which may not be installed
            thing = getattr(module, name)
            if id(thing) not in seen and not inspect.ismodule(thing):
                found.setdefault(part, []).append(f"{part}.{name}")
    return {part: sorted(names, key=str.lower) for part, names in sorted(found.items())}


def own(module: Any) -> list[str]:
    """The public names that a module without `__all__` defines itself: of errors the classes, elsewhere the functions too."""
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and getattr(thing, "__module__", None) == module.__name__
        and (inspect.isclass(thing) or (callable(thing) and module is not cj.errors))
    ]


def methods(name: str) -> list[str]:
    """The methods that the reference shows of a class: those of its own, and those of bases that are no public names."""
    found: dict[str, None] = {}
    for base in bases(name):
        for key, value in vars(base).items():
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if not key.startswith("_") and inspect.isfunction(function) and inspect.getdoc(function):
                found[key] = None
    return [key for key in found if key not in INTERNAL.get(name, ())]


def bases(name: str) -> list[type]:
    """A class, and its bases in the library that have no entry of their own."""
    public = {id(resolved(other)) for names in parts().values() for other in names if other != name}
    return [x for x in resolved(name).__mro__ if x.__module__.startswith("coadjoint.") and id(x) not in public]


def wanted() -> list[str]:
    """Every name that must have an example: functions, classes, and methods as `Robot.lock`."""
    names = [name for part in parts().values() for name in part]
    return names + [f"{name}.{key}" for name in names if inspect.isclass(resolved(name)) for key in methods(name)]


def examples() -> dict[str, tuple[str, str]]:
    """The example of each name, as text, and the page that runs it."""
    names, found = set(wanted()), dict[str, tuple[str, str]]()
    pages = sorted(HERE.glob("*.md"), key=lambda path: (not path.stem.startswith("examples"), path.stem == "examples", path.stem))
    for page in pages:
        for statement, text, used, title in statements(page):
            if title in names:  # the section of a class: its first statement makes one
                found.setdefault(title, (text, page.stem))
                used = {*used, *(f"{title}.{x.attr}" for x in ast.walk(statement) if isinstance(x, ast.Attribute))}
            for name in used & names:
                found.setdefault(name, (text, page.stem))
    return found


def statements(page: Path) -> Iterator[tuple[ast.stmt, str, set[str], str]]:
    """The short statements that a page runs: tree, text, the public names that are called, and the title of the section."""
    aliases: dict[str, str] = {}
    title = ""
    for heading, block in re.findall(
        r"^#+ `?(.*?)`?$|^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        title = heading or title
        for statement in ast.parse(block).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                aliases.update(imported(statement))
                continue
            text = ast.get_source_segment(block, statement) or ""
            if text.count("\n") < 8:
                yield statement, text, set(filter(None, (dotted(x, aliases) for x in ast.walk(statement)))), title


def imported(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import of the library makes, and what they stand for: `cj` for the package, which is ``."""
    origin = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
    for alias in statement.names:
        full = f"{origin}.{alias.name}" if origin else alias.name
        if full.split(".")[0] == "coadjoint":
            yield alias.asname or alias.name, full.removeprefix("coadjoint").removeprefix(".")


def dotted(node: ast.AST, aliases: dict[str, str]) -> str:
    """The name of the library that an expression as `cj.control.pd` is, or nothing."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join(filter(None, [aliases[node.id], *path]))
