"""The layers of CONTRIBUTING.md: imports point downward, and what must reach up imports when it is called, at places listed here."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "coadjoint"

LAZY_UPWARD = {
    ("arrays", "kernel"),  # the namespace of symbols
    ("identification.excitation", "show"),  # figures
    ("identification.result", "show"),  # reports
    ("motion.trajectory", "show"),  # Trajectory.plot, .animate, .show
    ("robot.robot", "show"),  # its page in notebooks
    ("motion.compare", "show"),  # Comparison.plot
    ("calibration.result", "show"),  # Calibration.report
    ("scale.sources", "motion"),  # the names of columns in tables
    ("robot.mjcf", "interop"),  # read by MuJoCo's own compiler
    ("interop._rollouts", "dynamics"),  # the step of a rollout
    ("robot.structure", "dynamics"),  # the size of pivots, an input of kernels that robots share
    ("robot.parameters", "kinematics"),  # the sets "dh:…" and "homes"
}
"""(module, package above): imports inside functions that reach up. Each needs a reason to exist."""


class Import(NamedTuple):
    module: str
    target: str
    name: str
    top: bool
    """Whether it is carried out when the module is imported."""


def modules() -> dict[str, Path]:
    """Dotted names below the package, "" for the package itself."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def targets(node: ast.Import | ast.ImportFrom, module: str) -> list[tuple[str, str]]:
    """The modules of the package that an import statement names, and the names that it takes from them."""
    if isinstance(node, ast.Import):
        inside = [alias.name for alias in node.names if alias.name.split(".")[0] == "coadjoint"]
        return [(name.partition(".")[2], "") for name in inside]
    if node.level == 0:
        if (node.module or "").split(".")[0] != "coadjoint":
            return []
        base = node.module.partition(".")[2]
    else:
        package = module.split(".") if MODULES[module].name == "__init__.py" else module.split(".")[:-1]
        package = [part for part in package if part]
        base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
    found = []
    for alias in node.names:
        inner = f"{base}.{alias.name}" if base else alias.name
        found.append((inner, "") if inner in MODULES else (base, alias.name))
    return found


def imports(module: str) -> list[Import]:
    found: list[Import] = []

    def visit(node: ast.AST, top: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child, top)
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.extend(Import(module, target, name, top) for target, name in targets(node, module) if target != module)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # in which there are no statements
                visit(child, top and not inside)

    visit(ast.parse(MODULES[module].read_text(encoding="utf-8")), True)
    return found


@functools.cache
def all_imports() -> list[Import]:
    return [x for module in MODULES for x in imports(module)]


def layers() -> list[list[str]]:
    """The rows of CONTRIBUTING.md, from the top: the names of folders and files before the two spaces."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## The layers\n")[2].partition("\n## ")[0]
    rows = [line[4:] for line in section.splitlines() if line.startswith("    ")]
    assert rows, "CONTRIBUTING.md has no table of layers"
    names = [re.split(r"\s{2,}", row)[0] for row in rows if not row.startswith(" ")]
    return [[name.strip("/").removesuffix(".py") for name in re.split(r"[,\s]+", row) if name] for row in names]


HEIGHT = {name: -k for k, row in enumerate(layers()) for name in row}


def height(module: str) -> int:
    """0 for the top row, to which the package itself and `python -m coadjoint` belong, then downward."""
    return 0 if module in ("", "__main__") else HEIGHT[module.split(".")[0]]


def test_every_folder_and_file_has_its_layer():
    there = {module.split(".")[0] for module in MODULES if module} - {"__main__"}
    assert there - set(HEIGHT) == set(), "put it into the table of CONTRIBUTING.md"
    assert set(HEIGHT) - there == set(), "the table of CONTRIBUTING.md names what is not there"


def test_imports_point_downward():
    upward = [f"{x.module} imports {x.target}" for x in all_imports() if x.top and height(x.target) > height(x.module)]
    assert upward == []


def test_what_reaches_up_when_called_is_listed():
    upward = {(x.module, x.target.split(".")[0]) for x in all_imports() if not x.top and height(x.target) > height(x.module)}
    assert upward == LAZY_UPWARD


def test_no_module_imports_itself_through_others():
    """At the time of import; a cycle would make the result depend on which module is imported first."""
    below: dict[str, set[str]] = {module: set() for module in MODULES}
    for x in all_imports():
        if x.top:
            below[x.module].add(x.target)
    done: set[str] = set()

    def follow(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " imports ".join([*path[path.index(module) :], module])
        if module not in done:
            for target in below[module]:
                follow(target, (*path, module))
            done.add(module)

    for module in MODULES:
        follow(module, ())


def test_no_test_imports_a_test():
    """What two tests need stands in a module of its own."""
    names = {path.stem for path in Path(__file__).parent.glob("test_*.py")}

    def named(node: ast.AST) -> set[object]:
        if isinstance(node, ast.ImportFrom):
            return {node.module}
        if isinstance(node, ast.Import):
            return {alias.name for alias in node.names}
        if isinstance(node, ast.Call) and "import" in ast.unparse(node.func):  # importorskip, import_module
            return {x.value for x in node.args if isinstance(x, ast.Constant)}
        return set()

    texts = {path.name: path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")}
    wrong = [
        f"{name}:{node.lineno}"
        for name, text in texts.items()
        if re.search(r"import.*\btest_|\btest_\w+ import|import\w*\(\s*$", text, re.MULTILINE)
        for node in ast.walk(ast.parse(text))
        if names & named(node)
    ]
    assert wrong == []


def test_no_module_imports_a_private_name_of_another():
    """What two modules use has a public name; a leading underscore means: this file alone."""
    private = [x for x in all_imports() if x.name.startswith("_") and not x.name.startswith("__")]
    assert [f"{x.module}: {x.name} of {x.target}" for x in private] == []
