"""`simulate`: states and dense output, events, contacts and rest, constraints, what is refused, files and the command."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Constraint, Contact, Event
from coadjoint.cli import main
from coadjoint.motion import read_states
from coadjoint.robot.zoo.textbook import planar_nr
from random_robots import random_robot
from simulated_mechanisms import G, at, four_bar, four_bar_state

native = pytest.mark.native


def ball() -> tuple[cj.Robot, Constraint]:
    link = cj.Link.solid("ball", "base", cj.Joint.prismatic((0, 0, 1), name="up"), mass=2.0)
    robot = cj.Robot("ball", [link], [cj.Frame("foot", "ball", np.eye(4))])
    return robot, Constraint.point(robot, "foot", "z", at=[0.0])


def test_free_fall_and_dense_output():
    robot, _ = ball()
    found = cj.simulate(robot, [1.0], [2.0], 1.5)
    assert len(found) == 201
    t = np.linspace(0, 1.5, 37).reshape(1, 37)
    q, v = found(t)
    np.testing.assert_allclose(q[..., 0], 1 + 2 * t - G / 2 * t**2, atol=1e-12)
    np.testing.assert_allclose(v[..., 0], 2 - G * t, atol=1e-12)
    with pytest.raises(cj.CoadjointError, match=r"the motion from 0 to 1\.5 s"):
        found(1.6)


@native
def test_energy_and_momentum_of_a_tree_with_every_joint():
    """A free body that carries joints of all kinds: energy constant, momentum follows gravity, quaternions of length one."""
    rng = np.random.default_rng(6)
    robot = random_robot(rng, 4, ("free", "spherical", "universal", "prismatic"), tree=True)
    q, v = robot.random(rng), 0.5 * rng.normal(size=robot.nv)
    found = cj.simulate(robot, q, v, np.linspace(0, 1, 11), tolerance=1e-11)
    assert np.ptp(found.energy) < 1e-7 * (np.ptp(found.potential_energy) + found.kinetic_energy.max())
    np.testing.assert_allclose(robot.normalize(found.q), found.q, atol=1e-14)
    late, _ = found(0.55)
    again = cj.simulate(robot, found.q[5], found.v[5], [0.5, 0.55], tolerance=1e-11)
    assert np.abs(robot.difference(again.q[-1], late)).max() < 1e-8


@native
def test_interpolation_of_fixed_steps():
    """Of fourth order in the distance of the states for q, third for v."""
    robot = cj.load("planar2r")
    true = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], [0.0, 1.0])
    t, errors = np.linspace(0, 1, 333), []
    for n in (101, 201):
        found = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], np.linspace(0, 1, n), method="symplectic", step=1e-3)
        errors.append([np.abs(a - b).max() for a, b in zip(found(t), true(t), strict=True)])
    ratio = np.log2(errors[0]) - np.log2(errors[1])
    assert ratio[0] > 3.4
    assert ratio[1] > 2.4
    assert errors[1][0] < 1e-6


def test_events_are_found_in_time():
    """Both directions of passing a height, and a terminal event; times in closed form."""
    robot, _ = ball()
    height = lambda q, v, t: q[0] - 1.1
    events = [
        Event(height, name="any"),
        Event(height, 1, name="up"),
        Event(height, -1, name="down"),
        Event(lambda q, v, t: q[0], terminal=True, name="floor"),
    ]
    found = cj.simulate(robot, [1.0], [2.0], 3.0, events=events)
    root = np.sqrt(4 - 2 * G * 0.1)
    times = {name: [x.time for x in found.happenings if x.name == name] for name in ("any", "up", "down", "floor")}
    up, down, floor = (2 - root) / G, (2 + root) / G, (2 + np.sqrt(4 + 2 * G)) / G
    np.testing.assert_allclose(times["any"], [up, down], atol=1e-12)
    np.testing.assert_allclose(times["up"], [up], atol=1e-12)
    np.testing.assert_allclose(times["down"], [down], atol=1e-12)
    np.testing.assert_allclose(times["floor"], [floor], atol=1e-12)
    assert found.stopped == "floor"
    assert found.time[-1] == pytest.approx(floor, abs=1e-12)
    assert "stopped: floor" in str(found)


def test_events_may_change_the_state():
    robot, _ = ball()
    thrown = Event(lambda q, v, t: q[0] - 0.5, -1, then=lambda q, v: (q, -v), name="thrown")
    found = cj.simulate(robot, [1.0], [0.0], 2.0, events=thrown)
    assert np.ptp(found.energy) < 1e-8
    assert len(found.happenings) == 3
    before, after = found.happenings[0].time, np.sqrt(1.0 / G)
    assert before == pytest.approx(after, abs=1e-12)


def shot() -> cj.Robot:
    """A body that flies straight on in a plane: steps of any length are exact."""
    links = [
        cj.Link.solid("along", "base", cj.Joint.prismatic((1, 0, 0), name="x"), mass=0.5),
        cj.Link.solid("body", "along", cj.Joint.prismatic((0, 0, 1), name="z"), mass=1.0),
    ]
    return cj.Robot("shot", links, gravity=(0, 0, 0))


def test_what_is_passed_quickly_is_not_missed():
    """A thin pole in the way of a fast body, and a signal that is on the other side of zero for a thousandth of a step."""
    robot = shot()
    pole = Constraint.holonomic(lambda q: ((q[0] - 10.0) ** 2 + q[1] ** 2) ** 0.5 - 0.05)
    found = cj.simulate(robot, [0.0, 0.0], [10.0, 0.0], 2.0, events=Contact(pole, 1.0))
    assert [x.time for x in found.impacts] == pytest.approx([0.995], abs=1e-12)
    np.testing.assert_allclose(found.q[-1], [-0.1, 0.0], atol=1e-9)
    past = cj.simulate(robot, [0.0, 0.06], [10.0, 0.0], 2.0, events=Contact(pole, 1.0))  # a centimetre past it
    assert not past.happenings
    near = lambda q, v, t: abs(q[0] - 7.03) - 0.01
    for direction, places in ((0, [7.02, 7.04]), (-1, [7.02]), (1, [7.04])):
        found = cj.simulate(robot, [0.0, 0.0], [10.0, 0.0], 2.0, events=Event(near, direction))
        np.testing.assert_allclose([x.q[0] for x in found.happenings], places, atol=1e-9)


@native
@pytest.mark.parametrize("e", [0.2, 0.5, 0.8])
def test_bounces_without_end_come_to_rest(e):
    """Zeno: the bounces of a ball end at t₁ + 2 v e / (g (1 - e))."""
    robot, floor = ball()
    found = cj.simulate(robot, [1.0], [0.0], 6.0, events=Contact(floor, e, name="floor"))
    fall = np.sqrt(2 / G)
    rest = [x for x in found.happenings if x.kind == "rest"]
    assert len(rest) == 1
    assert rest[0].time == pytest.approx(fall + 2 * fall * e / (1 - e), abs=1e-9)
    np.testing.assert_array_equal(found.q[-1], 0.0)
    np.testing.assert_array_equal(found.v[-1], 0.0)
    first, second = found.impacts[:2]
    assert first.time == pytest.approx(fall, abs=1e-12)
    assert second.time == pytest.approx(fall * (1 + 2 * e), abs=1e-11)
    assert found.q.min() >= 0


@native
def test_plastic_contact_holds_until_it_would_pull():
    """Rest on the floor until the lifting force passes the weight; then uniform acceleration with it."""
    robot, floor = ball()
    lift = lambda robot, q, v, t: np.array([9.81 * t])
    found = cj.simulate(robot, [0.5], [0.0], np.linspace(0, 4, 81), lift, events=[Contact(floor)])
    kinds = {x.kind: x.time for x in found.happenings}
    assert list(kinds) == ["impact", "contact", "release"]
    assert kinds["release"] == pytest.approx(2.0, abs=1e-9)  # m g = 9.81 t
    late = found.time > 2
    np.testing.assert_allclose(found.q[late, 0], 9.81 / 2 * (found.time[late] - 2) ** 3 / 6, atol=1e-8)
    np.testing.assert_allclose(found.tau[:, 0], 9.81 * found.time)


@native
def test_a_contact_closed_at_the_start_stays_so():
    robot, floor = ball()
    found = cj.simulate(robot, [0.0], [0.0], 1.0, events=Contact(floor, 0.5))
    np.testing.assert_array_equal(found.q, 0.0)
    assert [x.kind for x in found.happenings] == ["contact"]


@native
def test_bodies_that_touch_and_rest_without_a_force_are_left_alone():
    """Nothing presses them together: no impact, and no step that rounding makes short."""
    slide = lambda k: cj.Link.solid(f"ball{k}", "base", cj.Joint.prismatic((1, 0, 0), name=f"slide{k}"), mass=1.0)
    robot = cj.Robot("balls", [slide(0), slide(1), slide(2)], gravity=(0, 0, 0))
    gaps = Contact(Constraint.holonomic(lambda q: np.stack([q[1] - q[0] - 0.1, q[2] - q[1] - 0.3])), 1.0)
    found = cj.simulate(robot, [0.1, 0.2, 1.0], [0.7, 0.7, 0.0], 3.0, events=gaps)
    assert [x.time for x in found.happenings] == pytest.approx([0.5 / 0.7])  # the third ball is hit by both at once
    np.testing.assert_allclose(found.v[-1], np.array([1, 1, 4]) * 0.7 / 3, atol=1e-12)


@native
def test_contact_beside_a_constraint():
    """A chain hung by its tip falls until its middle meets a bar: the loop is kept through the impact and afterwards."""
    robot = planar_nr(3).with_frame("knee", "link2", at(0.5))
    q = np.array([0.2, -0.5, -0.5])
    held = Constraint.point(robot, "tip", "xy").at(robot, q)
    bar = Constraint.point(robot, "knee", "y", at=[float(cj.pose(robot, q, "knee")[1, 3]) - 0.05])
    found = cj.simulate(robot, q, np.zeros(3), np.linspace(0, 0.6, 61), constraints=held, events=Contact(bar, 0.0))
    assert found.impacts
    assert found.drift()[0] < 1e-12
    assert found.drift()[1] < 1e-10
    assert bar.residual(robot, found.q).min() > -1e-9


@native
@pytest.mark.parametrize("method", ["adaptive", "variational"])
def test_energy_under_an_ideal_constraint(method):
    robot, loop = four_bar()
    q = four_bar_state(0.3)
    found = cj.simulate(robot, q, np.zeros(3), 2.0, constraints=[loop], method=method, step=1e-3)
    bound = 1e-8 if method == "adaptive" else 1e-3
    assert np.ptp(found.energy) < bound * np.ptp(found.potential_energy)
    assert found.drift()[0] < 1e-12
    assert found.drift()[1] < 1e-11
    q = found(np.linspace(0, 2, 77))[0] if method == "adaptive" else found.q
    assert np.abs(loop.residual(robot, q)).max() < 1e-12


@native
def test_control_may_be_an_array_a_function_or_none():
    robot = cj.load("planar2r")
    q, v = np.array([0.3, 0.2]), np.zeros(2)
    still = cj.simulate(robot, q, v, 1.0, lambda robot, q, v, t: cj.gravity_force(robot, q))
    np.testing.assert_allclose(still.q, np.tile(q, (201, 1)), atol=1e-12)
    constant = cj.simulate(robot, q, v, 0.2, [1.0, 2.0])
    called = cj.simulate(robot, q, v, 0.2, lambda robot, q, v, t: [1.0, 2.0])
    np.testing.assert_allclose(constant.q, called.q, atol=1e-14)
    assert np.all(constant.tau == [1.0, 2.0])


@native
def test_interrupted_motions_are_returned():
    robot = cj.load("planar2r")

    def impatient(robot, q, v, t):
        if t > 0.5:
            raise KeyboardInterrupt
        return np.zeros(2)

    found = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], np.linspace(0, 1, 11), lambda *x: impatient(*x) if len(x) else None)
    assert found.stopped == "interrupted"
    assert 0 < found.time[-1] <= 0.6
    whole = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], np.linspace(0, 1, 11))
    n = int(np.sum(whole.time <= found.time[-1]))
    np.testing.assert_allclose(found.q[: n - 1], whole.q[: n - 1], atol=1e-8)


@native
def test_interrupted_variational_motions(monkeypatch):
    robot = cj.load("planar2r")

    def report(part):
        if part > 0.5:
            raise KeyboardInterrupt

    found = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], np.linspace(0, 1, 11), method="variational", report=report)
    assert found.stopped == "interrupted"
    assert len(found) == 6


def test_motions_show_themselves_in_a_line():
    robot, floor = ball()
    free = cj.simulate(robot, [1.0], [0.0], [0.5, 0.75, 1.0])
    assert repr(free) == "<Trajectory of 'ball': 3 states, 0.5 … 1 s, nothing happened>"
    hit = cj.simulate(robot, [1.0], [0.0], 0.8, events=Contact(floor, 0.5))
    assert repr(hit) == "<Trajectory of 'ball': 201 states, 0 … 0.8 s, 1 impact>"
    assert repr(hit.happenings[0]) == "<impact 'foot z' at 0.451523641 s>"
    assert hit != free
    assert [x.shape for x in hit(np.zeros((2, 0)))] == [(2, 0, 1), (2, 0, 1)]


def test_progress_is_reported():
    robot, _ = ball()
    parts: list[float] = []
    cj.simulate(robot, [1.0], [0.0], 2.0, events=Event(lambda q, v, t: t - 1.0), report=parts.append)
    assert parts == sorted(parts)
    assert len(parts) > 2
    assert all(0 <= x <= 1 for x in parts)


def test_bad_input_is_refused():
    robot, floor = ball()
    arm = cj.load("planar2r")
    held = Constraint.point(arm, "tip", "xy", at=[0.5, 0.5])
    start = {"q": [1.0], "v": [0.0], "t": 1.0}
    for options, message in (
        ({"t": -1.0}, "positive duration"),
        ({"t": [0.0, 0.0]}, "increasing times"),
        ({"t": [1.0]}, "two or more"),
        ({"t": "long"}, "t is 'long'"),
        ({"q": [np.nan]}, "q has entries"),
        ({"method": "leapfrog"}, "method is 'leapfrog'"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"step": -1.0}, "step is -1.0"),
        ({"control": [1.0, 2.0]}, "control has shape"),
        ({"control": "x"}, "control is 'x'"),
        ({"tolerance": "x"}, "tolerance is 'x'"),
        ({"events": 3}, "events have 3"),
        ({"control": lambda robot, q, v, t: t, "method": "variational"}, "control gave an array of shape"),
        ({"control": lambda robot, q, v, t: np.zeros(3), "method": "variational"}, "expected 1 joint forces"),
        ({"control": lambda robot, q, v, t: [np.nan]}, "control gave"),
        ({"events": [floor]}, "expected Event or Contact"),
        ({"events": [Contact(floor)], "method": "variational"}, "takes no events"),
        ({"events": [Contact(floor)], "q": [-0.1]}, "is penetrated by 0.1 m at the start"),
        ({"events": [Contact(floor)], "q": [0.0], "v": [-1.0]}, "closes it further"),
        ({"events": [Contact(Constraint.point(robot, "foot", "z"))]}, "has no gap"),
        ({"constraints": "floor"}, "expected a Constraint"),
        ({"constraints": held}, "tip"),
        ({"events": Contact(held)}, "tip"),
        ({"events": Event(lambda q, v, t: np.nan, name="odd")}, "event 'odd' gave nan"),
        ({"events": Event(lambda q, v, t: [q[0], v[0]])}, "expected one finite number"),
        ({"events": Event(lambda q, v, t: None)}, "gave None"),
        ({"events": Event(lambda q, v, t: q[0] - 0.9, then=lambda q, v: q)}, "`then` gave"),
        ({"events": Event(lambda q, v, t: q[0] - 0.9, then=lambda q, v: (q, [np.nan]))}, "expected q .1,. and v"),
        (
            {"events": [Event(lambda q, v, t: q[0] - 0.9, then=lambda q, v: (-q, v)), Contact(floor)]},
            "penetrated by 0.9 m after the event",
        ),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            cj.simulate(robot, **(start | options))
    for make, message in (
        (lambda: Contact(floor, -0.5), "restitution is -0.5"),
        (lambda: Contact(floor, [0.5, 0.5]), "expected one number for a contact"),
        (lambda: Contact(floor, "x"), "restitution is 'x'"),
        (lambda: cj.rollout(robot, [1.0], [0.0], steps=2.5, dt=0.1), "steps is 2.5"),
        (lambda: cj.rollout(robot, [1.0], [0.0], steps=2, dt="x"), "dt is 'x'"),
        (lambda: cj.rollout(robot, [1.0], [0.0], steps=2, dt=0.1, policy=lambda robot, q, v, t: t), "control gave"),
        (lambda: Event("x"), "expected a function of q, v and t"),
        (lambda: Event(lambda q, v, t: t, 2), "direction 2"),
        (lambda: Event(lambda q, v, t: t, then=3), "then = 3"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            make()
    with pytest.raises(cj.CoadjointError, match=r"q is off the constraint.*tip x"):
        cj.simulate(arm, [0.3, 0.2], [0.0, 0.0], 1.0, constraints=held)
    q = cj.constraints.project(arm, held, np.array([1.5, -1.8]))
    with pytest.raises(cj.CoadjointError, match="v violates the constraint"):
        cj.simulate(arm, q, [1.0, 0.0], 1.0, constraints=held)
    kicked = Event(lambda q, v, t: t - 0.1, then=lambda q, v: (q, v + 1.0), name="kick")
    with pytest.raises(cj.CoadjointError, match=r"after the event 'kick', at t = 0\.1: v violates the constraint"):
        cj.simulate(arm, q, np.zeros(2), 1.0, constraints=held, events=kicked)
    with pytest.raises(cj.CoadjointError, match="v violates the constraint"):
        cj.rollout(arm, q, [1.0, 0.0], steps=3, dt=0.1, constraints=held)


@native
def test_motions_that_cannot_go_on_are_reported():
    robot, _ = ball()
    with pytest.raises(cj.CoadjointError, match=r"cannot be continued beyond t = (0\.99|1)"):
        cj.simulate(robot, [1.0], [1.0], 2.0, lambda robot, q, v, t: 2.0 * (v * v + G), tolerance=1e-3)  # v = 1 / (1 - t)


@pytest.mark.parametrize("extension", ["npz", "parquet", "csv"])
def test_saved_states_are_read_back(extension, tmp_path):
    if extension == "parquet":
        pytest.importorskip("pyarrow")
    robot, _ = ball()
    found = cj.simulate(robot, [1.0], [0.0], 0.5, [3.0])
    found.save(tmp_path / f"motion.{extension}")
    states = read_states(tmp_path / f"motion.{extension}", robot, ["q", "v", "tau"])
    for name in ("time", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(states, name), getattr(found, name))


@pytest.mark.slow
def test_figures_and_animations(tmp_path):
    pytest.importorskip("matplotlib")
    robot, floor = ball()
    found = cj.simulate(robot, [0.3], [0.0], 0.4, events=Contact(floor, 0.5))
    found.plot(tmp_path / "motion.svg")
    assert "energy" in (tmp_path / "motion.svg").read_text(encoding="utf-8")
    found.plot(tmp_path / "motion.html")
    assert "impact" in (tmp_path / "motion.html").read_text(encoding="utf-8")
    parts: list[float] = []
    found.animate(tmp_path / "film.gif", frames_per_second=10, report=parts.append)
    assert parts[-1] == 1.0
    from PIL import Image

    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 5
    found.animate(tmp_path / "film.html", frames_per_second=5)
    assert "<script" in (tmp_path / "film.html").read_text(encoding="utf-8")
    for path, options, message in (
        ("film.txt", {}, "animations end in .gif"),
        ("film.gif", {"speed": 0.0}, "speed is 0.0"),
        ("film.gif", {"frames_per_second": 1e5}, "at most 1500"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            found.animate(tmp_path / path, **options)
    assert not list(tmp_path.glob(".*"))


def test_sticks_join_the_joints():
    from coadjoint.show.animation import sticks

    robot = planar_nr(2, [1.0, 0.5])
    lines = sticks(robot, np.array([[0.0, 0.0], [np.pi / 2, 0.0]]))
    assert lines.shape[0] == 2
    np.testing.assert_allclose(lines[1, 1], [[0, 0, 0], [0, 1, 0]], atol=1e-12)
    assert any(np.allclose(line, [[0, 1, 0], [0, 1.5, 0]], atol=1e-12) for line in lines[1])


def test_the_command(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    options = ["--q", "0.3", "0.2", "--duration", "0.3", "--samples", "11"]
    assert main(["simulate", "planar2r", *options, "--out", "a.npz", "--plot", "a.svg", "--animate", "a.gif"]) == 0
    said = capsys.readouterr().out
    assert "11 states from 0 to 0.3 s" in said
    assert "energy" in said
    assert sorted(x.name for x in tmp_path.iterdir()) == ["a.gif", "a.npz", "a.svg"]
    for wrong, message in (
        (["--q", "0.3"], "--q has 1 numbers"),
        (["--duration", "-1"], "--duration is -1"),
        (["--samples", "1"], "--samples is 1"),
        (["--animate", "a.doc"], "animations end in"),
        (["--plot", "b.gif"], "figures end in"),
        (["--out", "a.txt"], "tables end in"),
        (["--plot", "x.html", "--animate", "x.html"], "read and written at once"),
        (["--step", "0", "--method", "variational"], "step is 0.0"),
    ):
        assert main(["simulate", "planar2r", *wrong]) == 1
        assert message in capsys.readouterr().err


@native
def test_the_command_closes_the_loops_of_mjcf(tmp_path, capsys, monkeypatch):
    """A pendulum pair joined at their ends by `connect`."""
    pytest.importorskip("mujoco")
    rod = '<geom type="capsule" fromto="0 0 0 0 0 -1" size=".02" mass="1"/>'
    text = f"""<mujoco><worldbody>
    <body name="a"><joint name="ja" type="hinge" axis="0 1 0"/>{rod}
      <body name="b" pos="0 0 -1"><joint name="jb" type="hinge" axis="0 1 0"/>{rod}</body></body>
    <body name="c" pos="1 0 0"><joint name="jc" type="hinge" axis="0 1 0"/>{rod}</body></worldbody>
    <equality><connect name="pin" body1="b" body2="c" anchor="0 0 -1"/></equality></mujoco>"""
    (tmp_path / "loop.xml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "loop.xml", "--duration", "0.5", "--samples", "11", "--out", "a.npz"]) == 0
    said = capsys.readouterr().out
    assert float(said.split("loops open by")[1].split()[0]) < 1e-12
