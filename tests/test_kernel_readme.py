"""The page of the compiler, `kernel/README.md`: the files, folders, names and fields that it mentions are there, and its example runs."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.kernel.dispatch import Kernel
from coadjoint.kernel.graph import Graph
from coadjoint.kernel.op import Op
from coadjoint.kernel.passes import simplify
from coadjoint.kernel.passes.rewrite import Rewrite
from coadjoint.kernel.runtime.target import Target

KERNEL = Path(cj.__file__).with_name("kernel")
PLACES = (KERNEL, *(path for path in KERNEL.iterdir() if path.is_dir()), KERNEL.parent, KERNEL.parents[1], KERNEL.parents[2])
TEXT = (KERNEL / "README.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE)))
PATHS = sorted(word for word in WORDS if re.fullmatch(r"[\w/]+(\.py|/)", word))
NAMES = sorted(
    {word.partition("(")[0] for word in WORDS if re.fullmatch(r"[\w/]+(\.\w+)+(\(.*\)|\[\w+\])?", word)} - {*PATHS, "math.log"}
)
CLASSES = sorted(word for word in WORDS if re.fullmatch(r"([A-Z][a-z]+)+", word) and word not in ("Math", "None"))
THINGS = {"Kernel": Kernel, "graph": Graph, "robot": cj.Robot, "target": Target, "work": Rewrite, "cj": cj}
"""What begins a dotted name and is no module."""


def found(path: str) -> list[Path]:
    """Where a path of the page leads: in the compiler, one of its stages, the library or the repository."""
    return [place / path for place in PLACES if (place / path).exists()]


def in_repository(path: str) -> bool:
    return (KERNEL.parents[2] / "tests").exists() or not path.startswith("tests/")


@pytest.mark.parametrize("path", PATHS)
def test_files_and_folders_are_there(path):
    if not in_repository(path):
        pytest.skip("the tests are not at hand")
    assert len(found(path)) >= 1


@pytest.mark.parametrize("name", NAMES)
def test_names_are_there(name):
    """Each is a member of a module, which is named by its file, or of a thing: `dispatch.Kernel.call`, `graph.traced`."""
    first, *members = re.sub(r"\[\w+\]$", "", name).split(".")
    things = [THINGS[first]] if first in THINGS else []
    for path in found(f"{first}.py"):
        dotted = ".".join(path.relative_to(KERNEL.parents[1]).with_suffix("").parts)
        things.append(importlib.import_module(dotted))

    def has(thing: object) -> bool:
        for member in members:
            fields = {f.name for f in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
            known = {*dir(thing), *getattr(thing, "__annotations__", ()), *getattr(thing, "__slots__", ()), *fields}
            if member not in known:
                return False
            thing = getattr(thing, member, None)
        return True

    assert any(map(has, things))


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_there(name):
    sources = (*KERNEL.rglob("*.py"), KERNEL.parent / "errors.py")
    assert any(re.search(rf"^class {name}\b", path.read_text(encoding="utf-8"), re.MULTILINE) for path in sources)


def test_no_stage_and_no_file_beside_the_stages_is_left_out():
    stages = {f"{path.name}/" for path in KERNEL.iterdir() if path.is_dir() and path.name != "__pycache__"}
    files = {path.name for path in KERNEL.glob("*.py")} - {"__init__.py"}
    assert (stages | files) - WORDS == set()


def test_an_operation_has_the_fields_that_the_page_lists():
    table = TEXT.partition("**An operation**")[2].partition("**A pass**")[0]
    listed = {word for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)}
    assert listed | {"called"} == {field.name for field in dataclasses.fields(Op)}


def test_the_passes_stand_in_the_order_of_the_page(monkeypatch):
    called = []
    for name in ("expand_sums", "refactor_sums", "share_sums", "reassociate"):
        change = getattr(simplify, name)
        monkeypatch.setattr(simplify, name, lambda *a, change=change, name=name: (called.append(name), change(*a))[1])
    cj.trace(cj.mass_matrix, cj.load("planar2r"))
    order = [re.sub(r"_", " ", name) for name in dict.fromkeys(called)]
    places = [TEXT.index(f"*{name}*") for name in order]
    assert len(order) == 4
    assert places == sorted(places)


@pytest.mark.native
def test_the_example_runs():
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    names = {"cj": cj, "robot": cj.load("planar2r")}
    exec(block, names)
    assert isinstance(names["e"].graph, Graph)
    assert np.all(names["e"].graph.output_shapes == ((2,),))
