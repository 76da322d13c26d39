"""`coadjoint control`."""

import numpy as np
import pytest

from coadjoint.cli import main


@pytest.mark.slow
@pytest.mark.native
def test_a_motion_is_tracked_written_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = ["--out", "m.csv", "--plot", "m.svg", "--animate", "m.gif"]
    assert main(["control", "planar2r", "--duration", "0.5", "--rate", "20", *files]) == 0
    said = capsys.readouterr().out
    assert "does not increase" in said
    assert "joint1" in said
    assert (tmp_path / "m.gif").read_bytes().startswith(b"GIF8")
    drawn = (tmp_path / "m.svg").read_text()
    for words in ("error  [rad]", "joint force  [", "Lyapunov function  [1/s²]", "time [s]"):
        assert words in drawn
    assert np.isfinite(np.loadtxt("m.csv", delimiter=",", skiprows=1)).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rate", "-1"], "--rate is -1; expected a positive number"),
        (["--to", "1"], "--to has 1 numbers; the configuration of robot 'planar2r' has 2"),
        (["--plot", "m.txt"], "m.txt: figures end in"),
        (["--controller", "se3-tracking"], "call coadjoint.control.se3_tracking from Python"),
        (["--controller", "computed-troque"], "Did you mean 'computed-torque'?"),
    ],
)
def test_wrong_arguments_are_reported_before_any_work(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["control", "planar2r", *words]) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.native
def test_a_figure_needs_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["control", "planar2r", "--duration", "0.5", "--plot"]) == 0
    assert (tmp_path / "control.png").read_bytes().startswith(b"\x89PNG")
