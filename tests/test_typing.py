"""The door of the library for type checkers and editors."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import coadjoint as cj
from stub_of_the_api import STUB, stub

LIBRARY = Path(cj.__file__).parent

GOOD = """
import numpy as np
import coadjoint as cj

robot = cj.load("panda")
q = robot.neutral()
tau: np.ndarray = cj.inverse_dynamics(robot, q, q, [0.0] * 7, out=np.zeros(7), threads=2)
M: np.ndarray = cj.mass_matrix(robot, [[0.0, 1.0], [2.0, 3.0]])
dq, dv, da = cj.inverse_dynamics_derivatives(robot, q, q, q)
rows: int = dq.shape[0]
T = cj.pose(robot, q, "tip", out=np.zeros((4, 4)))
g = cj.geometry.gradient(robot, q, q, out=np.zeros(7))
path = cj.simulate(robot, q, [0.0] * 7, [0.0, 1.0, 2.0])
moon = robot.with_gravity([0, 0, -1.62])
states, velocities = cj.rollout(robot, q, q, dt=1e-3, steps=10)
f = cj.compile(cj.gravity_force, robot)
f(q, out=q)
same = cj.lie.se3.exp(np.zeros(6))
"""

BAD = """
import numpy as np
import coadjoint as cj

robot = cj.load("panda")
q = np.zeros(7)
cj.inverse_dynamics(robot, q, q, q, out="result")  # bad
cj.inverse_dynamics(robot, q, q, q, out=[0.0] * 7)  # bad
cj.inverse_dynamics(robot, q, q, q, thread=2)  # bad
cj.inverse_dynamics(robot, q, q, q, threads="two")  # bad
cj.inverse_dynamics(robot, q, q)  # bad
cj.inverse_dynamics(robot, "q", q, q)  # bad
cj.mass_matrix("panda", q)  # bad
cj.mass_matrix(robot, ["a", "b"])  # bad
cj.inverse_dynamics_derivatives(robot, q, q, q, out=q)  # bad
cj.pose(robot, q, 3)  # bad
cj.simulate(robot, q, q, 2.0, constriants=None)  # bad
cj.rollout(robot, q, q, dt=1e-3, step=10)  # bad
cj.simulate(robot, "q", q, 2.0)  # bad
cj.rollout(robot, q, "v", dt=1e-3, steps=10)  # bad
cj.geodesic(robot, q, "v", 1.0)  # bad
cj.redundancy.dexterity(robot, "q", "tip")  # bad
robot.with_gravity("down")  # bad
cj.geometry.gradient(robot, q)  # bad
cj.geometry.gradient(robot, q, q, out="x")  # bad
cj.no_such_function(robot)  # bad
tau: str = cj.inverse_dynamics(robot, q, q, q)  # bad
"""


def checked(folder: Path, text: str) -> list[int]:
    """The lines of a user's file that mypy refuses."""
    (folder / "user.py").write_text(text)
    options = [
        "--cache-dir",
        str(folder / "cache"),
        "--config-file",
        os.devnull,
        "--ignore-missing-imports",
        "--follow-imports",
        "silent",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "user.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(LIBRARY.parent)},
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return sorted({int(line) for line in re.findall(r"^user\.py:(\d+): error", done.stdout, re.MULTILINE)})


def test_a_type_checker_refuses_mistakes_and_nothing_else(tmp_path):
    pytest.importorskip("mypy")
    bad = [number for number, line in enumerate(BAD.splitlines(), 1) if line.endswith("# bad")]
    assert checked(tmp_path, BAD) == bad
    assert checked(tmp_path, GOOD) == []


def test_pyright_agrees(tmp_path):
    """The packaged build of pyright, which needs no download; a line may have several reports."""
    pytest.importorskip("basedpyright")
    settings = {"extraPaths": [str(LIBRARY.parent)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "good.py", "bad.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    reports = json.loads(done.stdout)["generalDiagnostics"]
    found = {(Path(x["file"]).name, x["range"]["start"]["line"] + 1) for x in reports if x["severity"] == "error"}
    assert found == {("bad.py", number) for number, line in enumerate(BAD.splitlines(), 1) if line.endswith("# bad")}


def test_mypy_follows_no_optional_package():
    """What mypy says of the library is the same whichever packages are installed: of them it reads NumPy alone."""
    imported = set()
    known = sys.stdlib_module_names | {"numpy", "coadjoint"}
    for path in LIBRARY.rglob("*.py"):
        text = path.read_text()
        words = re.findall(r"^ *(?:from|import) +(\w.*)", text, re.MULTILINE)
        if all(re.match(r"\w+", x).group() in known and "," not in x.partition(" import ")[0] for x in words):
            continue  # no line that could be an import of another package
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                imported.add(node.module.partition(".")[0])
    settings = LIBRARY.parents[1] / "pyproject.toml"
    if not settings.exists():
        pytest.skip("installed without its pyproject.toml")
    (override,) = tomllib.loads(settings.read_text())["tool"]["mypy"]["overrides"]
    assert override["follow_imports"] == "skip"
    assert imported - known == {x.removesuffix(".*") for x in override["module"]}


def test_the_stub_is_true():
    assert STUB.read_text() == stub(), "run `python tests/stub_of_the_api.py`"


def test_names_do_not_depend_on_what_was_imported():
    code = """
import sys, coadjoint as cj
before = dir(cj)
assert not [name for name in before if "." in name], before
for name in ("motion", "show", "design", "kernel", "identification"):
    assert (name in before) == hasattr(cj, name), name
for name in before:
    getattr(cj, name)
import coadjoint.motion.simulate, coadjoint.show, coadjoint.interop, coadjoint.cli
assert dir(cj) == before, set(dir(cj)) ^ set(before)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_module_is_an_attribute():
    found = {
        path.stem
        for path in LIBRARY.iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or (path.suffix == ".py" and not path.stem.startswith("_"))
    }
    assert found - {"cli", "commands"} == set(cj._MODULES)
