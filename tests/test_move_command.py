"""`coadjoint move`."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.cli import main


@pytest.mark.native
def test_a_motion_is_found_written_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--from", "-1.5", "0.2", "--to", "0.3", "0.4", "--duration", "1", "--spans", "6", "--out", "m.npz", "--plot", "m.svg"]
    assert main(["move", "planar2r", *words]) == 0
    said = capsys.readouterr().out
    arm = cj.load("planar2r")
    motion = cj.optimal_motion(arm, [-1.5, 0.2], [0.3, 0.4], 1.0, spans=6)
    assert f"cost {motion.cost:.9g}, optimal after" in said
    assert "joint2" in said
    assert "<svg" in (tmp_path / "m.svg").read_text()
    again = cj.Trajectory.load("m.npz", arm)
    np.testing.assert_allclose(again.q, motion.q, atol=1e-12)
    np.testing.assert_allclose(again.tau, motion.tau, atol=1e-9)


@pytest.mark.native
def test_obstacles_are_kept_clear_of(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [
        "--from",
        "-0.9",
        "0.3",
        "0.3",
        "--to",
        "0.9",
        "0.3",
        "0.3",
        "--duration",
        "1",
        "--cost",
        "acceleration",
        "--spans",
        "8",
    ]
    words += ["--obstacle", "2.2", "0.3", "0", "0.3", "--obstacle", "0", "4", "0", "1", "4", "0", "0.1", "--clearance", "0.01"]
    assert main(["move", "planar3r", *words, "--plot", "m.svg"]) == 0
    said = capsys.readouterr().out
    assert "optimal after" in said
    assert "NOT" not in said
    assert "least distance of links and obstacles: 0.01" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "1", "1", "--duration", "-1"], "--duration is -1; expected a positive number of seconds, or free"),
        (["--to", "1", "1", "--duration", "soon"], "--duration is soon"),
        (["--to", "1", "1", "--obstacle", "1", "2"], "--obstacle has 2 numbers; expected 4"),
        (["--to", "1"], "--to has 1 numbers; the configuration of robot 'planar2r' has 2"),
        (["--to", "1", "1", "--spans", "0"], "spans is 0"),
        (["--to", "1", "1", "--cost", "time"], "nothing limits the speed"),
        (["--to", "1", "1", "--plot", "m.txt"], "m.txt: figures end in"),
        (["--to", "1", "1", "--out", "m.txt"], "m.txt"),
    ],
)
def test_wrong_arguments_are_reported_before_any_work(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["move", "planar2r", *words]) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
