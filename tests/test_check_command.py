"""`coadjoint check`."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.checking import check
from coadjoint.cli import main
from coadjoint.robot.plausibility import doubtful_numbers
from random_robots import random_robot


@pytest.mark.parametrize("seed", range(3))
def test_random_robots_obey_the_laws_and_other_engines_agree(seed):
    robot = random_robot(seed, 4, ["revolute", "prismatic", "spherical", "free"][: 4 - seed % 2], tree=True)
    found = check(robot)
    assert all(x.holds for x in found), found
    assert len(found) >= 5


def test_a_file_is_read_by_the_other_engine_too(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    cj.save(cj.load("ur5e"), path)
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "every law holds" in said
    if "Pinocchio" in said:
        assert "it read the file itself" in said


def test_a_broken_law_is_an_error(monkeypatch, capsys):
    from coadjoint import checking

    true = checking.gravity_force
    monkeypatch.setattr(checking, "gravity_force", lambda robot, q: 1.001 * true(robot, q))
    assert main(["check", "planar2r"]) == 1
    said = capsys.readouterr()
    assert "BROKEN" in said.out
    assert "breaks: gravity is the gradient of the potential energy" in said.err


def test_doubts_are_listed(tmp_path, capsys):
    body = {"mass": 1.0, "com": (1, 0, 0), "inertia": np.diag([1.0, 1.0, 3.0])}
    thin = cj.Robot("thin", [cj.Link.solid("a", "base", cj.Joint.revolute((0, 0, 1)), **body)])
    path = tmp_path / "thin.json"
    path.write_text(thin.to_json())
    assert main(["check", str(path)]) == 0
    assert "doubts about the description" in capsys.readouterr().out


def test_slips_of_units_and_numbers_never_filled_in_are_doubts():
    def of(inertia, mass=1.0, **joint):
        turn = cj.Joint.revolute((0, 1, 0), name="j", **joint)
        return doubtful_numbers(cj.Robot("r", [cj.Link("a", "base", turn, parameters=from_body(mass, inertia))]))

    def from_body(mass, inertia):
        row = np.array([mass, 0, 0, 0.2 * mass, *np.zeros(6)])
        row[[4, 7, 9]] = np.add(inertia, [0.04 * mass, 0.04 * mass, 0.0])
        return row

    body = (0.01, 0.01, 0.002)
    assert of(body) == []
    assert of((0.0, 0.0, 0.0)) == []  # a point, which is meant
    for text, found in [
        ("radius of gyration of 3.16 m, and the whole robot reaches 0.2 m", of((10.0, 10.0, 2.0))),  # of kg and dm, not m
        ("of 1 kg has a radius of gyration of 1.0e-04 m, almost a point", of((1e-8, 1e-8, 2e-9))),
        ("moments of inertia and no mass", of(body, mass=0.0)),
        ("'j' has a limit of effort of 0", of(body, effort=0.0)),
        ("'j' has a limit of 180 rad: are the limits in degrees?", of(body, lower=-180, upper=180)),
    ]:
        assert [text in x for x in found] == [True], (text, found)
