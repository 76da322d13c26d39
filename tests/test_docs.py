"""What the pages in docs/ show is true: Python runs, sessions print what is shown, calls in tables run, links lead somewhere."""

from __future__ import annotations

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md") if path.name != "getting-started.md")  # that one is in test_readme.py
OPTIONAL = r"^(?:import|from) (pinocchio|mujoco|jax|torch|casadi|dask|xarray|zarr)\b"


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


LONG = pytest.mark.native  # pages that integrate motions, or are about machine code, take long as written
SHOWN = [page for page in PAGES if re.search(r"^```py", text(page), re.MULTILINE)]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=LONG
            if re.search(
                r"geodesic\(|follow\(|simulate\(|interop\.jax|cj\.scale|excitation\(|output_error\(|optimal_control\(", text(page)
            )
            else (),
        )
        for page in SHOWN
    ],
)
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


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text(page)):
        if not target.startswith("http"):
            assert (DOCS / target).exists(), target
