"""What the pages in docs/ show is true: Python runs, sessions print what is shown, calls in tables run, links lead somewhere."""

from __future__ import annotations

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md") if path.name != "getting-started.md")  # that one is in test_readme.py
OPTIONAL = r"^(?:import|from) (pinocchio|mujoco|jax|torch|casadi|dask|xarray|zarr|pydrake|roboticstoolbox|modern_robotics)\b"


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def run(page: str) -> dict:
    """The names that all blocks of a page define, run in their order; blocks that need what is not installed are left out."""
    names: dict = {"__name__": page}
    for language, block in re.findall(r"^```(python|pycon)\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL):
        if not all(map(find_spec, re.findall(OPTIONAL, block, re.MULTILINE))):
            continue
        if language == "python":
            exec(compile(block, f"docs/{page}", "exec"), names)
            continue
        session = doctest.DocTestParser().get_doctest(block, names, page, f"docs/{page}", 0)
        said: list[str] = []
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(session, out=said.append, clear_globs=False)
        assert session.examples
        assert runner.summarize(verbose=False).failed == 0, "".join(said)
        names.update(session.globs)
    return names


LONG = r"geodesic\(|follow\(|simulate\(|interop\.jax|cj\.scale|excitation\(|output_error\(|optimal_control\(|time_optimal\("
"""Pages that integrate motions, or are about machine code, take long as written: they run natively."""
LONGEST = (
    "batches.md",
    "control.md",
    "cookbook.md",
    "examples-geometry.md",
    "examples-identification.md",
    "examples-motion.md",
    "examples.md",
    "inverse-kinematics.md",
    "optimal-control.md",
    "optimal-motion.md",
    "redundancy.md",
    "simulation.md",
    "timing.md",
)
"""Those that take several seconds even so."""
SHOWN = [page for page in PAGES if re.search(r"^```py", text(page), re.MULTILINE)]


def marks(page: str) -> list:
    return [*([pytest.mark.native] if re.search(LONG, text(page)) else []), *([pytest.mark.slow] if page in LONGEST else [])]


@pytest.mark.parametrize("page", [pytest.param(page, marks=marks(page)) for page in SHOWN])
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page)


def test_every_call_in_the_table_of_conventions_runs():
    """Each call of "You have, you want, you call", with the names that the block before it sets."""
    section = text("conventions.md").split("## You have, you want, you call")[1].split("\n## ")[0]
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], names)
    calls = re.findall(r"^\|[^|\n]+\|[^|\n]+\| `([^`]+)`", section, re.MULTILINE)
    assert len(calls) > 30
    for call in calls:
        eval(call, names)


DICTIONARIES = re.split(r"^## ", text("coming-from.md"), flags=re.MULTILINE)


@pytest.mark.parametrize("part", DICTIONARIES[1:], ids=lambda part: part.split("\n")[0])
def test_both_sides_of_every_row_of_a_dictionary_agree(part, tmp_path, monkeypatch):
    """What is called in another library, and here: evaluated where the library is installed, here everywhere."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", DICTIONARIES[0], re.DOTALL)[1], names)
    block = re.search(r"```python\n(.*?)```", part, re.DOTALL)[1]
    rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", part, re.MULTILINE)
    assert len(rows) >= 10
    library = re.search(OPTIONAL, block, re.MULTILINE)[1]
    pytest.importorskip(library)
    exec(block, names)
    for there, here in rows:
        theirs, ours = eval(there, names), eval(here, names)
        pairs = zip(theirs, ours, strict=True) if isinstance(ours, tuple) else [(theirs, ours)]
        for x, y in pairs:
            assert x == y if isinstance(y, str) else np.allclose(x, y, rtol=1e-9, atol=1e-9), there
            assert np.shape(x) == np.shape(y), there


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text(page)):
        if not target.startswith("http"):
            assert (DOCS / target).exists(), target


NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.py"))


@pytest.mark.native
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.slow
def test_notebooks_run(path, tmp_path, monkeypatch):
    """All cells, in their order; each ends with the motion that the gallery shows."""
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": path.stem}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    assert names["motion"].q.shape[-1] == names["motion"].robot.nq


def test_the_gallery_has_every_notebook():
    assert len(NOTEBOOKS) >= 8
    for path in NOTEBOOKS:
        assert f"](notebooks/{path.name})" in text("gallery.md")
        assert path.read_text(encoding="utf-8").startswith("# %% [markdown]\n# # ")
