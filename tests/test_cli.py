"""The command line: what it prints and writes, its exit codes, and that wrong input touches no file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Joint, Link, Robot
from coadjoint.cli import main
from coadjoint.motion import States, read_states, smooth_motion, write_states
from coadjoint.robot.urdf_write import to_urdf
from random_robots import MOVING, random_robot


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A fresh working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(robot: Robot, path) -> Robot:
    path.write_text(robot.to_json())
    return robot


def files(folder) -> dict[str, bytes]:
    """All files in a folder with what is in them."""
    return {x.name: x.read_bytes() for x in folder.iterdir() if x.is_file()}


def two_links(**options) -> Robot:
    placement = np.eye(4)
    placement[2, 3] = 0.4
    shoulder, elbow = (Joint.revolute((0, 1, 0), name=name, **options) for name in ("shoulder", "elbow"))
    upper = Link.solid("upper", "base", shoulder, mass=2.0, com=(0, 0, 0.2), inertia=0.02)
    lower = Link.solid("lower", "upper", elbow, placement, mass=1.0, com=(0, 0, 0.2), inertia=0.01)
    return Robot("two", [upper, lower])


# --- names in the terminal

EVIL = "a\x1b]0;owned\x07\nfake line\u202e\x9b31m"


@pytest.mark.parametrize(
    "command",
    [
        *("info", "info --json", "dynamics", "equations", "redundancy --rows 3", "convert", "simulate"),
        pytest.param("geometry", marks=pytest.mark.slow),
    ],
)
def test_names_cannot_command_the_terminal(here, capsys, command):
    first, second = (Joint.revolute((0, 1, 0), name=f"{k}{EVIL}", lower=-1.0, upper=1.0, velocity=0.01) for k in "jk")
    upper = Link.solid(f"u{EVIL}", f"b{EVIL}", first, mass=2.0, com=(0, 0, 0.2), inertia=0.02)
    placement = np.eye(4)
    placement[2, 3] = 0.4
    lower = Link.solid(f"l{EVIL}", f"u{EVIL}", second, placement, mass=1.0, com=(0, 0, 0.2), inertia=(0.01, 0.01, 3.0))
    robot = Robot(f"r{EVIL}", [upper, lower], base=f"b{EVIL}", notes=[f"n{EVIL}"]).with_frame(f"f{EVIL}", lower.name, placement)
    save(robot, here / "r.json")
    name, *options = command.split()
    options += ["out.json"] if name == "convert" else ["--duration", "0.01"] if name == "simulate" else []
    main([name, "r.json", *options])
    for text in capsys.readouterr():
        assert not [c for c in text if not c.isprintable() and c != "\n"]
        assert not any(line.startswith("fake") for line in text.splitlines())


def test_errors_cannot_command_the_terminal(here, capsys):
    (here / "r.json").write_text(json.dumps({"format": EVIL}))
    for source in ("r.json", f"{EVIL}.json", f"{EVIL}"):
        assert main(["info", source]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert error[:-1].isprintable()


def test_without_a_command_the_list_of_commands_is_shown(capsys):
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2
    text = capsys.readouterr().err
    for name in ("info", "dynamics", "equations", "geometry", "redundancy", "simulate", "convert", "zoo", "cache"):
        assert f"\n  {name} " in text or f"\n    {name}" in text


# --- info, zoo, version


def test_info_tells_masses_limits_and_frames(here, capsys):
    robot = two_links(lower=-1.5, upper=2.5, velocity=3.25, effort=40.5).with_frame("hand", "lower", np.eye(4))
    save(robot, here / "two.json")
    assert main(["info", "two.json"]) == 0
    text = capsys.readouterr().out
    for expected in ("shoulder", "revolute", "-1.5 … 2.5", "3.25", "40.5", "total mass 3 kg", "(0, 0, 0.3333)", "hand"):
        assert expected in text


def test_info_as_json_agrees_with_the_robot(here, capsys):
    robot = save(random_robot(0, 9, mimic=True, armature=True, damping=True), here / "r.json")
    assert main(["info", "r.json", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["nq"] == robot.nq
    assert facts["nv"] == robot.nv
    assert [joint["name"] for joint in facts["joints"]] == list(robot.joint_names)
    assert facts["total_mass"] == pytest.approx(cj.total_mass(robot), rel=1e-12)
    np.testing.assert_allclose(facts["center_of_mass_at_home"], cj.center_of_mass(robot, robot.neutral()), rtol=1e-12)


def test_info_names_inertias_that_no_body_has(here, capsys):
    robot = two_links()
    parameters = robot.inertial_parameters.copy()
    parameters[14:20] = [0.01, 0, 0, 0.01, 0, 5.0]
    save(robot.with_inertial_parameters(parameters), here / "odd.json")
    assert main(["info", "odd.json"]) == 0
    text = capsys.readouterr().out
    assert text.count("triangle inequality") == 1
    assert re.search(r"link 'lower': .*triangle inequality: the largest exceeds the sum of the others by", text)


@pytest.mark.parametrize("command", ["info odd.urdf", "dynamics odd.urdf", "convert odd.urdf out.json"])
def test_doubts_about_a_robot_are_reported_once(here, capsys, command):
    """By every command, and an inertia that no body has among it."""
    text = to_urdf(two_links()).replace('izz="0.01"', 'izz="5.0"').replace('type="revolute"', 'type="prismatic"', 1)
    (here / "odd.urdf").write_text(re.sub("<limit[^>]*>", "", text, count=1))
    assert main(command.split()) == 0
    captured = capsys.readouterr()
    said = captured.out if command.startswith("info") else captured.err
    assert said.count("link 'lower': the principal moments") == 1
    assert said.count("joint 'shoulder' is prismatic and has no <limit>") == 1
    assert "ModelWarning" not in captured.err


def test_mjcf_is_warned_of_once(here, capsys):
    pytest.importorskip("mujoco")
    (
        here / "a.xml"
    ).write_text("""<mujoco><worldbody><body name="b"><joint name="j" type="ball" stiffness="3"/><geom size=".1"/></body></worldbody>
        <actuator><motor name="push" joint="j"/></actuator></mujoco>""")
    assert main(["convert", "a.xml", "a.json"]) == 0
    error = capsys.readouterr().err
    assert error.count("not of a hinge or slide, (1): 'j'") == 1
    assert error.count("actuators (1): 'push'") == 1


def test_info_tells_a_free_base(here, capsys):
    save(two_links(), here / "two.json")
    assert main(["info", "two.json", "--base", "free"]) == 0
    assert "free" in capsys.readouterr().out


def test_zoo_lists_robots_that_load(capsys):
    assert main(["zoo"]) == 0
    rows, _, rule = capsys.readouterr().out.partition("\n\n")
    assert "planar7r" in rule
    lines = rows.splitlines()[1:]
    assert "panda" in {line.split()[0] for line in lines}
    for line in lines:
        name, links, nv, *about = line.split()
        robot = cj.load(name)
        assert (robot.n_links, robot.nv) == (int(links), int(nv))
        assert about


@pytest.mark.parametrize(("text", "told"), [("0.1,0.2", "separate numbers by spaces"), ("up", "expected a number")])
def test_numbers_that_are_none_are_told(capsys, text, told):
    with pytest.raises(SystemExit):
        main(["simulate", "planar2r", "--q", text])
    assert f"{text!r}: {told}" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out.strip() == f"coadjoint {cj.__version__}"


def test_cache_tells_and_clears(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COADJOINT_CACHE", str(tmp_path / "kernels"))
    (tmp_path / "kernels").mkdir(mode=0o700)
    for name in "abc":
        (tmp_path / "kernels" / f"{name * 64}.kernel").write_bytes(bytes(2**20))
    assert main(["cache"]) == 0
    assert f"{tmp_path / 'kernels'}: 3 kernels, 3.0 of" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    text = capsys.readouterr().out
    assert "removed 3 kernels" in text
    assert ": 0 kernels" in text
    monkeypatch.setenv("COADJOINT_CACHE", "off")
    assert main(["cache"]) == 0
    assert "not in use: switched off" in capsys.readouterr().out


# --- dynamics


@pytest.mark.parametrize("extension", ["csv", "npz", "parquet"])
def test_dynamics_writes_the_torques_of_the_states(here, extension, capsys):
    if extension == "parquet":
        pytest.importorskip("pyarrow")
    robot = save(random_robot(2, 9, MOVING, mimic=True, armature=True), here / "r.json")
    rng = np.random.default_rng(0)
    v, a = rng.normal(size=(2, 40, robot.nv))
    states = States(robot.random(rng, 40), v, a, time=np.linspace(0, 1, 40))
    write_states(f"in.{extension}", robot, states)
    assert main(["dynamics", "r.json", "--states", f"in.{extension}", "--out", f"out.{extension}"]) == 0
    result = read_states(f"out.{extension}", robot)
    for key in ("time", "q", "v", "a"):
        np.testing.assert_array_equal(getattr(result, key), getattr(states, key))
    np.testing.assert_allclose(result.tau, cj.inverse_dynamics(robot, states.q, v, a), rtol=1e-12, atol=1e-12)
    assert "joint forces for 40 states over 1 s" in capsys.readouterr().out


def test_forward_dynamics_is_the_inverse_of_inverse_dynamics(here, capsys):
    robot = save(random_robot(3, 8, MOVING, damping=True), here / "r.json")
    for option in ([], ["--friction"]):
        assert main(["dynamics", "r.json", "--out", "tau.npz", *option]) == 0
        assert main(["dynamics", "r.json", "--states", "tau.npz", "--forward", "--out", "a.npz", *option]) == 0
        given, back = np.load("tau.npz"), np.load("a.npz")
        np.testing.assert_allclose(back["a"], given["a"], atol=1e-9)
    assert main(["dynamics", "r.json", "--forward", "--out", "a.npz"]) == 0
    np.testing.assert_allclose(np.load("a.npz")["a"], smooth_motion(robot).a, atol=1e-9)
    assert "accelerations for 1001 states" in capsys.readouterr().out


def test_many_chunks_give_the_same_as_one(here, monkeypatch):
    save(two_links(), here / "two.json")
    assert main(["dynamics", "two.json", "--out", "one.npz"]) == 0
    monkeypatch.setattr("coadjoint.commands.dynamics.CHUNK", 97)
    assert main(["dynamics", "two.json", "--out", "many.npz"]) == 0
    np.testing.assert_allclose(np.load("one.npz")["tau"], np.load("many.npz")["tau"], rtol=1e-13, atol=1e-13)


def test_the_summary_has_maximum_rms_and_exceeded_limits(here, capsys):
    robot = save(two_links(effort=5.0, lower=-0.3, upper=0.3, velocity=0.01), here / "two.json")
    q, zero = np.array([[0.6, 0.0], [0.0, 0.0], [-0.2, 0.1]]), np.zeros((3, 2))
    write_states("in.csv", robot, States(q, zero, zero))
    assert main(["dynamics", "two.json", "--states", "in.csv"]) == 0
    lines = {line.split()[0].rstrip(":"): line for line in capsys.readouterr().out.splitlines() if line}
    tau = cj.gravity_force(robot, q)[:, 1]
    assert lines["elbow"].split()[1:] == [f"{np.abs(tau).max():.4g}", f"{np.sqrt(np.mean(tau**2)):.4g}", "N", "m", "5", "kept"]
    assert main(["dynamics", "two.json", "--states", "in.csv"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"shoulder .* 5 +exceeded in 1 row\n", text)
    assert "shoulder: position outside its limits -0.3 … 0.3 in 1 row" in text


def test_missing_accelerations_are_named_and_estimated_where_asked(here, capsys):
    """A log with time, q, v, tau, as robots write it; the estimate is that of a known motion."""
    robot = save(two_links(), here / "two.json")
    motion = smooth_motion(robot, rate=1000)
    write_states("log.csv", robot, States(motion.q, motion.v, None, np.zeros_like(motion.v), motion.time, numbered=True))
    assert main(["dynamics", "two.json", "--states", "log.csv"]) == 1
    error = capsys.readouterr().err
    assert "accelerations of robot 'two' are missing: expected a1 … a2" in error
    assert "--differentiate" in error
    assert main(["dynamics", "two.json", "--states", "log.csv", "--differentiate", "--out", "out.csv"]) == 0
    text = capsys.readouterr().out
    assert "a: estimated by central differences" in text
    assert "the tau of the table was not used" in text
    assert (here / "out.csv").read_text().startswith("time,q1,q2,v1,v2,a1,a2,tau1,tau2\n")
    result = read_states("out.csv", robot)
    np.testing.assert_allclose(result.a, motion.a, atol=1e-4)
    np.testing.assert_allclose(result.tau, cj.inverse_dynamics(robot, motion.q, motion.v, motion.a), atol=1e-3)


def test_positions_alone_are_enough_with_differentiate(here):
    robot = save(random_robot(5, 6, MOVING), here / "r.json")
    motion = smooth_motion(robot, rate=1000)
    write_states("q.npz", robot, States(motion.q, time=motion.time))
    assert main(["dynamics", "r.json", "--states", "q.npz", "--differentiate", "--out", "out.npz"]) == 0
    inner = slice(2, -2)  # a, twice differenced, is of first order at the two ends
    np.testing.assert_allclose(np.load("out.npz")["v"], motion.v, atol=1e-4)
    np.testing.assert_allclose(np.load("out.npz")["a"][inner], motion.a[inner], atol=1e-3)


# --- figures


@pytest.mark.parametrize(
    ("extension", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml"), ("html", b"<!doctype html>")]
)
def test_figures_are_drawn(here, extension, start):
    pytest.importorskip("matplotlib")
    save(two_links(effort=5.0), here / "two.json")
    assert main(["dynamics", "two.json", "--plot", f"f.{extension}"]) == 0
    assert (here / f"f.{extension}").read_bytes().startswith(start)


class _Links(HTMLParser):
    """Everything a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        places = [value or "" for key, value in attrs if key in ("src", "href", "xlink:href")]
        self.fetched += [place for place in places if not place.startswith("#")]


@pytest.mark.slow
def test_the_page_is_whole_without_a_network(here):
    pytest.importorskip("matplotlib")
    save(random_robot(1, 9, MOVING), here / "r.json")
    assert main(["dynamics", "r.json", "--forward", "--plot", "f.html"]) == 0
    page = _Links()
    page.feed((here / "f.html").read_text())
    assert page.fetched == []
    assert {"svg", "table", "path"} <= page.tags
    assert "script" not in page.tags


def test_the_figure_shows_every_force_with_its_limit(here):
    pytest.importorskip("matplotlib")
    from coadjoint.commands.dynamics import compute
    from coadjoint.show.plots import states_figure

    robot = two_links(effort=5.0)
    states = compute(robot, smooth_motion(robot), False, False)
    figure = states_figure(robot, states)
    for k, name in enumerate(("shoulder", "elbow")):
        axes = figure.axes[k]
        assert axes.get_title("left") == f"{name}  [N m]"
        np.testing.assert_array_equal(axes.lines[1].get_ydata(), states.tau[:, k])
        assert any(abs(line.get_ydata()[0]) == 5.0 for line in axes.lines[2:]) == (np.abs(states.tau[:, k]).max() > 2.5)
        assert [x.get_text() for x in axes.texts] == ["exceeds 5" if np.abs(states.tau[:, k]).max() > 5.0 else "limit 5"]


@pytest.mark.parametrize("extension", ["png", "html"])
def test_names_that_look_like_something_else_are_drawn_as_they_are(here, extension):
    pytest.importorskip("matplotlib")
    names = [r"$\bad{$", "_hidden"]
    links = [
        Link.solid(f"<i>{k}", "base", Joint.revolute((0, 1, 0), name=name), mass=1.0, inertia=1.0) for k, name in enumerate(names)
    ]
    save(Robot("<script>alert(1)</script>", links), here / "r.json")
    assert main(["dynamics", "r.json", "--plot", f"f.{extension}"]) == 0
    if extension == "html":
        page = _Links()
        page.feed((here / "f.html").read_text(encoding="utf-8"))
        assert not {"script", "i"} & page.tags


def test_every_joint_is_in_the_legend():
    pytest.importorskip("matplotlib")
    from coadjoint.commands.dynamics import compute
    from coadjoint.show.plots import states_figure

    links = [Link.solid(name, "base", Joint.revolute((0, 1, 0), name=name), mass=1.0, inertia=1.0) for name in ("_a", "b")]
    robot = Robot("r", links)
    figure = states_figure(robot, compute(robot, smooth_motion(robot), False, False))
    assert [text.get_text().strip() for text in figure.axes[-1].get_legend().get_texts()] == ["_a", "b"]


def test_a_thinned_line_keeps_its_extremes():
    from coadjoint.show.plots import POINTS, thin

    rng = np.random.default_rng(0)
    x, y = np.arange(100_001.0), rng.normal(size=100_001)
    xs, ys = thin(x, y)
    assert len(xs) <= POINTS + 2
    assert np.all(np.diff(xs) > 0)
    np.testing.assert_array_equal(ys, y[xs.astype(int)])
    assert ys.max() == y.max()
    assert ys.min() == y.min()
    assert (xs[0], xs[-1]) == (x[0], x[-1])


# --- convert


@pytest.mark.parametrize("extension", ["json", "urdf", "xml"])
def test_convert_keeps_the_dynamics(here, extension, capsys):
    if extension == "xml":
        pytest.importorskip("mujoco")
    robot = save(two_links(lower=-1.0, upper=2.0, effort=7.0), here / "two.json")
    assert main(["convert", "two.json", f"out.{extension}"]) == 0
    other = cj.load(here / f"out.{extension}")
    rng = np.random.default_rng(0)
    q, (v, a) = robot.random(rng, 5), rng.normal(size=(2, 5, 2))
    np.testing.assert_allclose(cj.inverse_dynamics(other, q, v, a), cj.inverse_dynamics(robot, q, v, a), rtol=1e-12, atol=1e-12)
    assert other.joint_names == robot.joint_names
    np.testing.assert_array_equal(other.lower, robot.lower)


def test_convert_names_what_is_lost(here, capsys):
    save(two_links(armature=0.5), here / "two.json")
    assert main(["convert", "two.json", "out.urdf"]) == 0
    assert re.search(r"coadjoint: warning: .*'shoulder'.* armature", capsys.readouterr().err)
    pytest.importorskip("mujoco")
    save(two_links(velocity=3.0), here / "two.json")
    assert main(["convert", "two.json", "out.xml"]) == 0
    assert re.search(r"coadjoint: warning: .*velocity limits of 'shoulder'", capsys.readouterr().err)


def test_convert_refuses_what_a_format_cannot_say(here, capsys):
    nut = Link.solid("nut", "base", Joint.helical(pitch=0.1, name="thread"), mass=1.0, inertia=0.1)
    save(Robot("screw", [nut]), here / "s.json")
    before = files(here)
    for out in ("out.urdf", "out.xml"):
        assert main(["convert", "s.json", out]) == 1
        error = capsys.readouterr().err
        assert "'thread' is helical" in error
        assert error.count("\n") == 1
    assert files(here) == before


def test_convert_overwrites_only_by_force(here, capsys):
    save(two_links(), here / "two.json")
    (here / "out.json").write_text("precious")
    assert main(["convert", "two.json", "out.json"]) == 1
    assert "out.json exists already; --force overwrites it" in capsys.readouterr().err
    assert (here / "out.json").read_text() == "precious"
    assert main(["convert", "two.json", "out.json", "--force"]) == 0
    assert (here / "out.json").read_text().startswith("{")


# --- wrong input: exit code 1, one line, no file touched


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("info absent.urdf", "absent.urdf"),
        ("info pandaa", "Did you mean 'panda'"),
        ("info broken.json", "line 1: not JSON"),
        ("dynamics absent.json", "absent.json"),
        ("dynamics two.json --states absent.csv", "absent.csv: there is no such file"),
        ("dynamics two.json --states two.json", "not in '.json'"),
        ("dynamics two.json --states in.csv --out in.csv", "read and written at once"),
        ("dynamics two.json --states in.csv --out ./../{here}/in.csv", "read and written at once"),
        ("dynamics two.json --out out.txt", "tables end in"),
        ("dynamics two.json --out absent/out.csv", "the folder absent does not exist"),
        ("dynamics two.json --plot f.gif", "figures end in .png, .svg, .pdf, .html, not in '.gif'"),
        ("dynamics two.json --plot absent/f.png", "the folder absent does not exist"),
        ("dynamics two.json --states three.csv --out out.csv", "3 columns q1 … q3; robot 'two' has 2"),
        ("dynamics two.json --states nan.csv --out out.csv", "nan.csv: line 3, column 'v2': nan is not a finite number"),
        ("dynamics two.json --states in.csv --forward", "joint forces of robot 'two' are missing: expected tau1"),
        ("dynamics massless.json --forward --out out.csv", "singular"),
        ("dynamics none.json --out out.csv", "has no joint that moves"),
        ("dynamics two.json --states huge.csv --out out.csv", "row 2: the joint forces are not finite"),
        ("convert two.json two.json", "read and written at once"),
        ("convert two.json out.yaml", "robots are written as .json, .urdf, .xml, not as '.yaml'"),
        ("convert two.json absent/out.json", "the folder absent does not exist"),
    ],
)
def test_wrong_input_is_one_line_and_touches_nothing(here, capsys, command, message):
    save(two_links(), here / "two.json")
    (here / "broken.json").write_text("{ no")
    (here / "in.csv").write_text("q1,q2,v1,v2,a1,a2\n0,0,0,0,0,0\n")
    (here / "three.csv").write_text("q1,q2,q3,v1,v2,a1,a2\n0,0,0,0,0,0,0\n")
    (here / "nan.csv").write_text("q1,q2,v1,v2,a1,a2\n0,0,0,0,0,0\n0,0,0,nan,0,0\n")
    (here / "huge.csv").write_text("q1,q2,v1,v2,a1,a2\n0,0,0,0,0,0\n0,0,1e200,0,1e308,1e308\n")
    save(Robot("none", []), here / "none.json")
    save(Robot("massless", [Link("l", "base", Joint.revolute(name="j"))]), here / "massless.json")
    (here / "out.csv").write_text("precious")
    before = files(here)
    assert main(command.format(here=here.name).split()) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("coadjoint: error: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    assert files(here) == before


@pytest.mark.parametrize(("module", "option"), [("matplotlib", "--plot f.png"), ("pyarrow", "--out t.parquet")])
def test_what_is_not_installed_is_said_before_any_work(here, capsys, monkeypatch, module, option):
    save(two_links(), here / "two.json")
    for user in ("coadjoint.show.plots", "coadjoint.motion.tables"):
        monkeypatch.setattr(f"{user}.find_spec", lambda name: None)
    before = files(here)
    assert main(["dynamics", "two.json", *option.split()]) == 1
    assert re.search(rf"{module}.* pip install {module}", capsys.readouterr().err)
    assert files(here) == before


@pytest.mark.parametrize("command", ["", "fly", "info", "dynamics two.json --nonsense", "info two.json --base loose"])
def test_wrong_usage_is_exit_code_2(here, capsys, command):
    with pytest.raises(SystemExit) as exit:
        main(command.split())
    assert exit.value.code == 2
    assert "usage: coadjoint" in capsys.readouterr().err


# --- as a process


def run(*command: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "coadjoint", *command], stdout=-1, stderr=-1, text=True, **options)


def test_the_process_returns_the_exit_code(here):
    save(two_links(), here / "two.json")
    process = run("info", "absent.json")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert error.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_leaves_no_partial_file(here):
    """SIGINT while a long table is being computed or written: exit code 130, the old output as it was, nothing beside it."""
    robot = save(two_links(), here / "two.json")
    rows = 200_000
    zero = np.zeros((rows, 2))
    write_states("long.npz", robot, States(zero, zero, zero))
    (here / "out.csv").write_text("precious")
    before = files(here).keys()
    process = run("dynamics", "two.json", "--states", "long.npz", "--out", "out.csv", cwd=here)
    for _ in range(1200):  # until the output is being written
        if [*here.glob(".coadjoint-*.part.csv")] or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "interrupted" in error
    assert "Traceback" not in error
    assert (here / "out.csv").read_text() == "precious"
    assert files(here).keys() == before


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_while_the_command_is_imported():
    """SIGINT before the command has begun: exit code 130 and one line, where there was a traceback."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "coadjoint", "info", "panda"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "coadjoint._interrupts" in line:
            process.send_signal(signal.SIGINT)
            break
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "coadjoint: interrupted" in error
    assert "Traceback" not in error


def test_programs_that_import_the_package_keep_their_own_interrupts():
    from coadjoint._interrupts import is_the_command

    assert is_the_command("/usr/bin/coadjoint", ["python", "/usr/bin/coadjoint"])
    assert is_the_command("-m", ["python", "-m", "coadjoint", "info"])
    assert not is_the_command("/home/me/study.py", ["python", "/home/me/study.py", "coadjoint"])
    assert sys.excepthook.__module__ != "coadjoint._interrupts"


def test_progress_is_shown_on_long_tables_only(capsys, monkeypatch):
    from coadjoint.show import terminal

    clock = iter([0.0, 0.5, 2.0, 3.0, 8.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    progress = terminal.Progress("computing")
    progress(0.1)
    assert capsys.readouterr().err == ""
    progress(0.5)
    assert capsys.readouterr().err == "computing  50 %, 2 s left\n"
    progress(0.6)
    assert capsys.readouterr().err == ""
    progress(0.8)
    assert capsys.readouterr().err == "computing  80 %, 2 s left\n"
