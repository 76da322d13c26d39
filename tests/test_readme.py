"""What README and getting-started show is true: the commands are what they are said to be, the Python runs, the links exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "docs/getting-started.md"]


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[list[str]]:
    """The commands of a shell line joined by &&, as words."""
    line = block.strip()
    assert "\n" not in line, "one command, on one line"
    return [shlex.split(part) for part in line.split("&&")]


def extras() -> dict[str, list[str]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def installed_extras(command: list[str]) -> set[str]:
    """The extras that a pip command installs from this folder; all of them must exist."""
    assert command[:2] == [".venv/bin/pip", "install"]
    (folder,) = [word for word in command[2:] if not word.startswith("-")]
    chosen = set(re.fullmatch(r"\.\[(.+)\]", folder)[1].split(","))
    assert chosen <= extras().keys()
    return chosen


def test_the_first_shell_block_installs_and_runs_the_main_job():
    venv, install, run = commands(blocks("README.md", "sh")[0])
    assert venv == ["python3", "-m", "venv", ".venv"]
    assert "plot" in installed_extras(install)
    assert run[:2] == [".venv/bin/coadjoint", "dynamics"]


def test_the_main_job_runs_as_the_readme_says(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from coadjoint.cli import main

    monkeypatch.chdir(tmp_path)
    *_, run = commands(blocks("README.md", "sh")[0])
    assert main(run[1:]) == 0
    assert (tmp_path / run[run.index("--plot") + 1]).stat().st_size > 10_000


def test_the_second_shell_block_installs_and_runs_the_tests():
    venv, install, run = commands(blocks("README.md", "sh")[1])
    assert venv == ["python3", "-m", "venv", ".venv"]
    assert "test" in installed_extras(install)
    assert run[:3] == [".venv/bin/python", "-m", "pytest"]
    names = {re.split(r"[<>=\[]", requirement)[0] for requirement in extras()["test"]}
    assert {"pytest", "pytest-xdist"} <= names  # what the command itself needs


def test_the_third_shell_block_opens_a_robot_in_the_browser():
    venv, install, run = map(shlex.split, blocks("README.md", "sh")[2].splitlines())
    assert venv == ["python3", "-m", "venv", ".venv"]
    assert install == [".venv/bin/pip", "install", "-q", "."]
    assert run == [".venv/bin/coadjoint", "studio", "panda"]


def test_every_other_command_parses():
    """Commands shown without being run: the names of their options exist."""
    from coadjoint.cli import parser

    shown = [line for page in PAGES for block in blocks(page, "sh")[page == "README.md" and 3 :] for line in block.splitlines()]
    ours = [shlex.split(line, comments=True)[1:] for line in shown if line.startswith("coadjoint ")]
    assert ours
    for command in ours:
        parser().parse_args(command)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A function that runs all Python of a page in one go, in a fresh process and folder, and returns the folder."""
    pytest.importorskip("matplotlib")
    folders: dict[str, Path] = {}

    def run(page: str) -> Path:
        if page not in folders:
            folders[page] = folder = tmp_path_factory.mktemp("page")
            # JAX and PyTorch are shown, but need not be installed.
            code = [x for x in blocks(page, "python") if all(map(find_spec, re.findall(r"^import (jax|torch)$", x, re.MULTILINE)))]
            assert len(code) >= 3
            (folder / "page.py").write_text("\n".join(code), encoding="utf-8")
            options = {"cwd": folder, "env": os.environ | {"MPLBACKEND": "Agg"}, "timeout": 300}
            done = subprocess.run([sys.executable, "page.py"], capture_output=True, text=True, **options)
            assert done.returncode == 0, done.stderr
        return folders[page]

    return run


@pytest.mark.native
@pytest.mark.parametrize("page", PAGES)
def test_python_runs_and_draws(page, ran):
    assert (ran(page) / "torques.png").stat().st_size > 5_000


@pytest.mark.native
def test_the_tutorial_commands_take_what_the_tutorial_made(ran, monkeypatch, capsys):
    """The URDF and the table of getting-started, given to the commands that it shows."""
    from coadjoint.cli import main

    page = "docs/getting-started.md"
    folder = ran(page)
    monkeypatch.chdir(folder)
    for shown in [x for block in blocks(page, "sh") for x in block.splitlines() if x.startswith("coadjoint")]:
        assert main(shlex.split(shown)[1:]) == 0
    assert "shoulder" in capsys.readouterr().out
    assert (folder / "result.csv").read_text().startswith("time,q1,q2,v1,v2,a1,a2,tau1,tau2\n")
    assert "<svg" in (folder / "result.html").read_text()
    assert (folder / "arm.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), target
