"""`coadjoint equations`: what it prints and writes, its exit codes, and that wrong input touches no file."""

from __future__ import annotations

import re

import pytest

import coadjoint as cj
from coadjoint import Joint, Link, Robot
from coadjoint.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_text(capsys):
    assert main(["equations", "planar2r", "--parameters", "symbolic"]) == 0
    text = capsys.readouterr().out
    assert "M_22 = m_2 r_2^2 + I_2zz" in text
    assert "C_21 = m_2 l_1 r_2 sin(q_2) v_1" in text
    assert "g_2 = m_2 g r_2 cos(q_1 + q_2)" in text
    assert re.search(r"^I_2zz +0\.08333 +inertia of link 'link2'", text, re.MULTILINE)
    assert "coordinates: q_1 joint1, q_2 joint2" in text
    assert "U =" not in text


def test_numbers_are_the_default(capsys):
    assert main(["equations", "planar2r", "--what", "M", "gamma"]) == 0
    text = capsys.readouterr().out
    assert "M_11 = 1.6667 + cos(q_2)" in text
    assert "Γ_112 = 0.5 sin(q_2)" in text
    assert "C_" not in text


def test_large_equations_say_that_they_are_in_steps(capsys):
    assert main(["equations", "panda", "--what", "M", "g"]) == 0
    text = capsys.readouterr().out
    assert "Written out, M would fill pages" in text
    assert "x_1 = " in text
    assert main(["equations", "puma560"]) == 0
    assert "would fill pages" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("form", "sign"), [("latex", r"\begin{aligned}"), ("sympy", "from sympy import"), ("c", "#include <math.h>")]
)
def test_formats_print_nothing_else(form, sign, capsys):
    assert main(["equations", "cartpole", "--format", form]) == 0
    text = capsys.readouterr().out
    e = cj.equations(cj.load("cartpole"))
    expected = {"latex": e.latex, "sympy": e.python, "c": e.c}[form]()
    assert text.rstrip("\n") == expected.rstrip("\n")
    assert sign in text


def test_python_runs(here):
    pytest.importorskip("sympy")
    assert main(["equations", "cartpole", "--format", "sympy", "--parameters", "symbolic", "--out", "cartpole.py"]) == 0
    names: dict = {}
    exec((here / "cartpole.py").read_text(), names)
    assert names["M"][0, 0] == names["m_1"] + names["m_2"]


def test_files_are_written_whole(here, capsys):
    assert main(["equations", "planar2r", "--format", "latex", "--out", "arm.tex"]) == 0
    assert capsys.readouterr().out == "wrote arm.tex\n"
    assert (here / "arm.tex").read_text().endswith("\\end{aligned}\n")
    assert [x.name for x in here.iterdir()] == ["arm.tex"]


def test_wrong_input_touches_nothing(here, capsys):
    robot = Robot("still", [Link("a", "base", Joint.fixed())])
    (here / "still.json").write_text(robot.to_json())
    for command, message in (
        (["equations", "planar2r", "--out", "missing/arm.tex"], "does not exist"),
        (["equations", "still.json", "--fixed-joints", "keep", "--out", "a.tex"], "no joint that moves"),
        (["equations", "still.json", "--out", "still.json"], "read and written at once"),
        (["equations", "nothing"], "nothing"),
    ):
        assert main(command) == 1
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit:
        main(["equations", "planar2r", "--what", "X"])
    assert exit.value.code == 2
    assert [x.name for x in here.iterdir()] == ["still.json"]
    assert (here / "still.json").read_text() == robot.to_json()
