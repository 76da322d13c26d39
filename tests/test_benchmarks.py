"""The benchmarks' command runs, on the smallest robot and few rounds; what it measures is not looked at."""

import sys

import coadjoint as cj
from benchmarks import __main__ as command
from benchmarks import page
from benchmarks.operations import operations, traced


def test_operations_are_those_of_the_compiled_graph():
    counts = cj.explain(cj.inverse_dynamics, cj.load("planar2r")).graph.count()
    mul, add, _ = operations(traced("inverse_dynamics", cj.load("planar2r")))
    assert (mul, add) == (counts["mul"], counts["add"] + counts.get("sub", 0))


def test_the_command(monkeypatch, tmp_path, capsys):
    words = ["--robots", "planar2r", "--functions", "mass_matrix", "--batches", "64", "--rounds", "1", "--out"]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words, str(tmp_path / "r.json")])
    monkeypatch.setattr(command, "compile_table", lambda names: [])  # first calls in fresh processes take long
    assert command.main() == 0
    assert (tmp_path / "r.json").exists()
    assert "| planar2r | mass_matrix | 64 |" in capsys.readouterr().out


def test_every_section_has_its_marks():
    text = page.PAGE.read_text(encoding="utf-8")
    for name in page.SECTIONS:
        assert page.replaced(text, name, "new") != text
