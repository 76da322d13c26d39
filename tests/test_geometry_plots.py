"""What is drawn of a robot's geometry is true: curvature maps, geodesics beside straight motions, spread; figures and command."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Joint, Link, Robot
from coadjoint.cli import main
from coadjoint.design import counterweights
from coadjoint.errors import CoadjointError, UnknownNameError
from coadjoint.robot import zoo
from coadjoint.show.balance import draw_balance
from coadjoint.show.geometry import comparison, curvature_map, draw_geometry, geometry, geometry_figure, pair, spread
from coadjoint.show.views import conjugate

pytestmark = pytest.mark.native  # geodesics call their rate some ten thousand times
needs_matplotlib = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
PLANAR = cj.load("planar2r")


@pytest.fixture(scope="module")
def shown():
    return geometry(PLANAR)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- curvature


def test_maps_are_the_librarys_curvature():
    robot = cj.load("puma560")
    found = curvature_map(robot, ("joint2", "joint3"), points=7)
    assert found.sectional.shape == found.scalar.shape == (7, 7)
    q = found.q[5, 2]
    assert (q[1], q[2]) == (found.x[2], found.y[5])
    e = np.eye(6)
    assert found.sectional[5, 2] == pytest.approx(cj.sectional_curvature(robot, q, e[1], e[2]), rel=1e-12)
    assert found.scalar[5, 2] == pytest.approx(cj.scalar_curvature(robot, q), rel=1e-12)
    assert (found.x[0], found.x[-1]) == pytest.approx((robot.lower[1], robot.upper[1]))


def test_a_spherical_pendulum_has_the_curvature_of_a_sphere():
    """K = 1/(m r²), and none where the rod lies along the first axis and the mass matrix is singular."""
    found = curvature_map(zoo.make("spherical_pendulum", length=0.5, mass=3.0), points=9)
    known = np.isfinite(found.sectional)
    assert np.sum(~known) == 2 * 9  # q₂ = ±π/2
    np.testing.assert_allclose(found.sectional[known], 1 / (3.0 * 0.25), rtol=1e-10)
    np.testing.assert_allclose(found.scalar[known], 2 / (3.0 * 0.25), rtol=1e-10)


def test_flat_robots_have_no_curvature():
    assert not np.any(curvature_map(cj.load("cartpole"), points=5).sectional)


# --- motions


def test_the_geodesic_takes_the_least_energy(shown):
    found = shown.motions
    np.testing.assert_allclose(found.geodesic[[0, -1]], [shown.start, shown.goal], atol=1e-8)
    np.testing.assert_allclose(found.straight[[0, -1]], [shown.start, shown.goal], atol=1e-12)
    np.testing.assert_allclose(found.energies[0], found.energies[0, 0], rtol=1e-9)
    assert found.means[0] < 0.95 * found.means[1]
    middle = cj.kinetic_energy(PLANAR, found.straight[100], shown.goal - shown.start)
    assert found.energies[1, 100] == pytest.approx(middle, rel=1e-12)
    # The mean of a constant plus a parabola, by the trapezoidal rule, against an integral by points as many again
    t = np.linspace(0, 1, 20001)[:, None]
    fine = cj.kinetic_energy(
        PLANAR, shown.start + t * (shown.goal - shown.start), np.broadcast_to(shown.goal - shown.start, (20001, 2))
    )
    assert found.means[1] == pytest.approx(np.trapezoid(fine, t[:, 0]), rel=1e-4)


def test_of_a_balanced_robot_straight_is_geodesic():
    robot = counterweights(PLANAR).robot
    found = comparison(robot, [-1.0, 0.4], [1.2, -0.3], points=11)
    np.testing.assert_allclose(found.geodesic, found.straight, atol=1e-9)
    assert found.means[0] == pytest.approx(found.means[1], rel=1e-10)


def test_spread_on_a_sphere_is_a_sine():
    """|J| = sin(ω t)/ω with ω = √K |v|; neighbours meet after half a great circle."""
    robot = zoo.make("spherical_pendulum", length=0.5, mass=3.0)
    v = np.array([3.3, 0.0])
    found = spread(robot, np.zeros(2), v, np.array([0.0, 1.0]), duration=1.2, rays=3, width=0.1)
    np.testing.assert_allclose(found.distance, np.sin(3.3 * found.time).__abs__() / 3.3, atol=1e-8)
    (k,) = conjugate(found)
    assert found.time[k] == pytest.approx(np.pi / 3.3, abs=0.01)
    np.testing.assert_allclose(found.q[1, :, 0], 3.3 * found.time, atol=1e-8)
    speeds = [cj.kinetic_energy(robot, found.q[i, 0], (found.q[i, 1] - found.q[i, 0]) / found.time[1]) for i in range(3)]
    np.testing.assert_allclose(speeds, speeds[1], rtol=1e-3)


def test_spread_in_flat_space_is_the_time():
    robot = cj.load("cartpole")
    found = spread(robot, [0.1, 0.2], [1.0, 2.0], [1.0, -1.0], rays=3)
    np.testing.assert_allclose(found.distance, found.time, atol=1e-9)
    assert conjugate(found) == []


# --- which joints


def test_joints_by_name_and_number():
    robot = cj.load("puma560")
    a, b = pair(robot, ("joint2", "5"))
    assert (a.name, b.name, b.v) == ("joint2", "joint5", 4)
    assert pair(robot, (2, 5)) == (a, b)
    assert [x.name for x in pair(robot)] == ["joint2", "joint3"], "the most curved, without the first joint, which changes nothing"
    assert [x.name for x in pair(cj.load("spherical_pendulum"))] == ["pivot.1", "pivot.2"]


def test_wrong_joints_are_named():
    with pytest.raises(UnknownNameError, match=r"no joint with one coordinate is named 'elbow'.*1 joint1, 2 joint2"):
        pair(PLANAR, ("joint1", "elbow"))
    with pytest.raises(CoadjointError, match="both joints are 'joint1'"):
        pair(PLANAR, ("joint1", 1))
    with pytest.raises(CoadjointError, match="expected two"):
        pair(PLANAR, ("joint1",))
    with pytest.raises(CoadjointError, match="0 coordinate"):
        pair(cj.load("floating_body"))


# --- figures and the command


@needs_matplotlib
@pytest.mark.parametrize("extension", ["png", "svg", "html"])
def test_figures_are_written_whole(here, shown, extension):
    draw_geometry(f"arm.{extension}", shown)
    content = (here / f"arm.{extension}").read_bytes()
    assert len(content) > 20_000
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype html>"}[extension])
    assert [x.name for x in here.iterdir()] == [f"arm.{extension}"]
    if extension == "html":
        assert b"The geometry of <b>planar2r</b>" in content


@needs_matplotlib
def test_a_figure_without_geodesics_says_so(here, shown):
    figure = geometry_figure(replace(shown, motions=None, spread=None))
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert said == ["they meet a singularity", "no geodesic found"]


@needs_matplotlib
def test_before_and_after_counterweights(here):
    result = counterweights(cj.load("planar3r"), box=[[-0.6, 0, 0], [0, 0, 0]])
    draw_balance("balance.html", result)
    text = (here / "balance.html").read_text(encoding="utf-8")
    assert result.weights
    for weight in result.weights:
        assert str(weight) in text
    with pytest.raises(CoadjointError, match="figures end in"):
        draw_balance("balance.xyz", result)


@pytest.mark.slow
@needs_matplotlib
def test_the_command_tells_and_draws(here, capsys):
    assert main(["geometry", "planar2r", "--joints", "joint1", "2", "--plot", "arm.png"]) == 0
    text = capsys.readouterr().out
    assert "the mass matrix varies by" in text
    assert "not flat" in text
    assert "over joint1 -3.142 … 3.142 rad and joint2" in text
    assert "along the geodesic" in text
    assert "drew arm.png" in text
    assert (here / "arm.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_input_touches_nothing(here, capsys):
    (here / "one.json").write_text(Robot("one", [Link.solid("a", "base", Joint.revolute(), mass=1, inertia=1)]).to_json())
    for command, message in (
        (["geometry", "planar2r", "--plot", "arm.jpg2"], "figures end in"),
        (["geometry", "planar2r", "--plot", "missing/arm.png"], "does not exist"),
        (["geometry", "planar2r", "--joints", "1", "7", "--plot", "arm.png"], "named '7'"),
        (["geometry", "one.json", "--plot", "arm.png"], "two are needed"),
    ):
        assert main(command) == 1
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.out == ""
    assert [x.name for x in here.iterdir()] == ["one.json"]
