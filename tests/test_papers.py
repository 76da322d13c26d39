"""docs/papers.md is true: its functions and tests exist, its misprints are shown to fail, and no equation is missing."""

from __future__ import annotations

import ast
import importlib
import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
COLUMNS = ["equation", "says", "function", "test", "misprint"]


class Paper(NamedTuple):
    name: str
    equations: set[int]
    to_come: set[int]
    rows: list[dict[str, str]]


def numbers(text: str) -> set[int]:
    """The equations in "(1), (5)-(7)"."""
    found: set[int] = set()
    for first, last in re.findall(r"\((\d+)\)(?:-\((\d+)\))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def table(section: str) -> list[dict[str, str]]:
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("|")]
    header, rule, *rows = [[cell.strip() for cell in line] for line in lines]
    assert header == COLUMNS
    assert set("".join(rule)) == {"-"}
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def papers() -> list[Paper]:
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        (equations,) = re.findall(r"^Equations: (.*)$", section, re.MULTILINE)
        (to_come,) = re.findall(r"^To come: (.*)$", section, re.MULTILINE)
        found.append(Paper(section.partition(":")[0], numbers(equations), numbers(to_come), table(section)))
    return found


PAPERS = papers()
ROWS = [pytest.param(row, id=f"{paper.name} {row['equation']}") for paper in PAPERS for row in paper.rows]
each_paper = pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)


def own_numbers(row: dict[str, str]) -> set[int]:
    """The equations of a row; a section is none, though it may name one that it follows."""
    return set() if row["equation"].startswith("sec.") else numbers(row["equation"])


def resolve(name: str) -> object:
    """What a dotted name stands for: a module is imported as far as it goes, the rest are attributes."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            thing = getattr(thing, part)
        return thing
    raise ModuleNotFoundError(name)


def named_tests(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_the_papers_are_all_there():
    assert [paper.name for paper in PAPERS] == ["PBP", "BSP", "Review", "ZB", "A", "K"]
    assert [paper.equations for paper in PAPERS] == [set(range(1, n + 1)) for n in (83, 8, 51, 31, 24, 10)]


@each_paper
def test_every_equation_is_in_a_row_or_to_come(paper):
    in_rows = [n for row in paper.rows for n in own_numbers(row)]
    assert sorted([*in_rows, *paper.to_come]) == sorted(paper.equations), "each equation once: in one row, or to come"


@pytest.mark.parametrize("row", ROWS)
def test_functions_and_tests_exist(row):
    functions, tests = (re.findall(r"`([^`]+)`", row[key]) for key in ("function", "test"))
    assert re.fullmatch(r"(\(\d+\).*|sec\. .+)", row["equation"])
    assert row["says"]
    assert functions
    assert tests
    assert ", ".join(f"`{name}`" for name in functions) == row["function"]
    assert ", ".join(f"`{name}`" for name in tests) == row["test"]
    for name in functions:
        assert name.startswith("coadjoint.")
        assert callable(resolve(name)), name
    for test in tests:
        file, name = test.split("::")
        assert name in named_tests(file), test


@pytest.mark.parametrize("row", [row for row in ROWS if row.values[0]["misprint"]])
def test_misprints_are_shown_to_fail(row):
    """A misprint is told as printed / corrected and has a test that shows both; a matter of notation has nothing to compute."""
    if not row["misprint"].startswith("notation:"):
        assert re.search(r"`tests/test_misprints\w*\.py::", row["test"])


@each_paper
def test_the_papers_have_these_equations(paper):
    """The numbers in the paper itself, where its text is at hand."""
    files = sorted((ROOT.parent / "shared" / "papers").glob("*.txt"))
    if not files:
        pytest.skip("the papers' texts are not at hand")
    text = files[{"PBP": 0, "BSP": 1, "Review": 2, "ZB": 3, "A": 4, "K": 4}[paper.name]].read_text(encoding="utf-8")
    text = unicodedata.normalize("NFKC", text)  # one number is in superscripts
    if paper.name in ("A", "K"):  # both are in one file
        before, _, after = text.partition("An Analytical Expression for the Generalized Forces")
        text = before if paper.name == "A" else after
    tags = re.findall(r"(?:\\quad|\$\$)\s*\((\d+)\)|\((\d+)\)\$\$|\\tag\{(\d+)\}|^\((\d+)\)$", text, re.MULTILINE)
    assert {int(number) for tag in tags for number in tag if number} == paper.equations
