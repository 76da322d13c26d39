"""Stops at position limits: impacts in closed form, rest against a stop, joints that follow others, and what the command tells."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.cli import main
from coadjoint.show.plots import in_units
from coadjoint.show.trajectories import trajectory_figure

native = pytest.mark.native


def slide(**options) -> cj.Robot:
    joint = cj.Joint.prismatic((1, 0, 0), name="slide", **options)
    return cj.Robot("block", [cj.Link.solid("block", "base", joint, mass=2.0)])


@native
def test_a_block_between_two_stops():
    """From 0 with 3 m/s between -0.2 and 0.4, restitution 0.5: the speed halves at every impact."""
    found = cj.simulate(slide(lower=-0.2, upper=0.4), [0.0], [3.0], 1.0, stops=0.5)
    assert [x.name for x in found.impacts] == ["upper stop of slide", "lower stop of slide"]
    times = np.cumsum([0.4 / 3.0, 0.6 / 1.5])
    np.testing.assert_allclose([x.time for x in found.impacts], times, atol=1e-12)
    assert found.q[-1, 0] == pytest.approx(-0.2 + 0.75 * (1.0 - times[1]), abs=1e-11)
    free = cj.simulate(slide(lower=-0.2, upper=0.4), [0.0], [3.0], 1.0)
    assert free.q[-1, 0] == pytest.approx(3.0)


@native
def test_rest_against_a_stop_beside_friction():
    """Pushed against a stop it rests there, a pull above the friction takes it away."""
    robot = slide(upper=0.3, friction=2.0)
    push = lambda robot, q, v, t: [5.0 if t < 2 else -5.0 * (t - 2)]
    found = cj.simulate(robot, [0.0], [0.0], 3.0, push, stops=0.0, friction=True)
    assert found.impacts[0].time == pytest.approx(np.sqrt(2 * 0.3 * 2.0 / 3.0), abs=1e-12)
    np.testing.assert_allclose(found(np.linspace(1.0, 2.399, 9))[0], 0.3, atol=1e-14)
    away = [x.time for x in found.happenings if x.kind == "slip"][-1]
    assert away == pytest.approx(2.4, abs=1e-9)  # where the pull passes the friction
    assert found.q[-1, 0] == pytest.approx(0.3 - 5.0 * 0.6**3 / 6 / 2.0, abs=1e-9)


@native
@pytest.mark.parametrize("e", [0.0, 0.6])
def test_an_arm_stays_within_its_limits(e):
    """The Panda, let fall: many impacts of several joints, energy never grows, limits are kept."""
    robot = cj.load("panda")
    start = np.array([0.1, -0.5, 0.2, -1.5, 0.3, 1.2, 0.4])
    found = cj.simulate(robot, start, np.zeros(7), 0.8, stops=e)
    assert found.impacts
    assert np.all(found.q > robot.lower - 1e-9)
    assert np.all(found.q < robot.upper + 1e-9)
    assert np.diff(found.energy).max() < 1e-7
    free = cj.simulate(robot, start, np.zeros(7), 0.8)
    assert np.any((free.q < robot.lower) | (free.q > robot.upper))


@native
def test_followers_stop_their_leaders():
    """q_b = -2 q_a + 0.1 with b above -0.5 stops a at 0.3."""
    a = cj.Joint.prismatic((1, 0, 0), name="a")
    b = cj.Joint.prismatic((0, 1, 0), name="b", mimic=cj.Mimic("a", -2.0, 0.1), lower=-0.5)
    robot = cj.Robot("pair", [cj.Link.solid("A", "base", a, mass=1.0), cj.Link.solid("B", "A", b, mass=1.0)], gravity=(0, 0, 0))
    found = cj.simulate(robot, [0.0], [1.0], 1.0, stops=1.0)
    assert [x.name for x in found.impacts] == ["lower stop of b"]
    assert found.impacts[0].time == pytest.approx(0.3, abs=1e-12)
    assert found.q[-1, 0] == pytest.approx(0.3 - 0.7, abs=1e-11)


def test_stops_that_cannot_be_are_refused():
    joint = cj.Joint.universal((1, 0, 0), (0, 1, 0), name="both", upper=(0.5, 0.5))
    robot = cj.Robot("u", [cj.Link.solid("u", "base", joint, mass=1.0, com=(0, 0, 1), inertia=0.1)])
    with pytest.raises(cj.CoadjointError, match="'both' is universal and has position limits"):
        cj.simulate(robot, [0.0, 0.0], [0.0, 0.0], 1.0, stops=0.5)
    with pytest.raises(cj.CoadjointError, match=r"q of slide is 0\.5, beyond its limits -inf and 0\.3"):
        cj.simulate(slide(upper=0.3), [0.5], [0.0], 1.0, stops=0.5)
    with pytest.raises(cj.CoadjointError, match="restitution is 2"):
        cj.simulate(slide(upper=0.3), [0.0], [0.0], 1.0, stops=2.0)


@native
def test_the_command_tells_position_limits(capsys):
    start = ["--q", "0.1", "-0.5", "0.2", "-1.5", "0.3", "1.2", "0.4", "--duration", "0.8", "--samples", "41"]
    assert main(["simulate", "panda", *start]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("joint")}
    assert rows["joint4"].rstrip().endswith("exceeded")
    assert main(["simulate", "panda", *start, "--stops", "0"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("joint")}
    assert all(rows[f"joint{k}"].rstrip().endswith("kept") for k in range(1, 8))


def test_figures_name_the_units_that_there_are():
    pytest.importorskip("matplotlib")
    for robot, unit in ((slide(), "[m]"), (cj.load("planar2r"), "[rad]"), (cj.load("cartpole"), "[rad, m]")):
        motion = cj.simulate(robot, robot.neutral(), np.zeros(robot.nv), 0.1)
        assert trajectory_figure(motion).axes[0].get_title(loc="left").endswith(unit)
        assert in_units(robot, "joint force").endswith({"[m]": "[N]", "[rad]": "[N m]"}.get(unit, "[N m, N]"))
