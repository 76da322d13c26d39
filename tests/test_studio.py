"""The studio: its answers obey the laws they speak of, and nobody but its own page gets any."""

from __future__ import annotations

import contextlib
import gc
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from browser import Browser, chromium
from coadjoint.errors import LogWarning
from coadjoint.robot.link import Loop
from coadjoint.show.studio import questions
from coadjoint.show.studio.questions import QUESTIONS
from coadjoint.show.studio.server import Studio
from models import body, urdf_files
from recorded_motions import perturbed, simulated

PANDA = cj.load("panda")
Q = np.array([0.1, -0.5, 0.2, -2.0, 0.1, 1.6, 0.3])


@contextlib.contextmanager
def running(robot):
    with Studio(robot) as studio:
        thread = threading.Thread(target=studio.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield studio
        studio.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def studio():
    with running(cj.load("planar2r")) as made:
        yield made


def asked(studio, method, path, body=None, **headers):
    """Status and text of a request whose headers are exactly these."""
    connection = http.client.HTTPConnection("127.0.0.1", studio.server_port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    given = {"Host": f"127.0.0.1:{studio.server_port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else body.encode()
    if data is not None:
        given.setdefault("Content-Length", str(len(data)))
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(data)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, dict(answer.getheaders())


def question(studio, data, **headers):
    usual = {
        "Origin": f"http://127.0.0.1:{studio.server_port}",
        "X_Coadjoint_Token": studio.token,
        "Content_Type": "application/json",
    }
    return asked(studio, "POST", "/ask", json.dumps(data), **(usual | headers))


# --- who may ask


def test_the_page_is_served_to_whoever_has_the_token(studio):
    status, text, headers = asked(studio, "GET", f"/?token={studio.token}")
    assert status == 200
    assert text.startswith("<!doctype html>")
    assert "connect-src &#x27;self&#x27;" in text
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token=%ff%fe", "/?other={token}"])
def test_without_the_token_there_is_no_page(studio, path):
    status, text, _ = asked(studio, "GET", path.format(token=studio.token))
    assert status == 403
    assert studio.token not in text


@pytest.mark.parametrize(
    "path",
    ["/../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/etc/passwd", "/page.js", "/ask", "/%2e%2e/", "/robot.json"],
)
def test_no_file_is_served(studio, path):
    status, text, _ = asked(studio, "GET", f"{path}?token={studio.token}")
    assert status in (403, 404)
    assert "root:" not in text
    assert len(text) < 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]:80", "", None])
def test_other_hosts_are_refused(studio, host):
    """A name that an attacker lets resolve to this machine."""
    status, text, _ = asked(studio, "GET", f"/?token={studio.token}", Host=host)
    assert status == 421
    assert "<html" not in text
    assert question(studio, {"ask": "torus"}, Host=host)[0] == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", None, "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_foreign_origins_are_refused(studio, origin):
    given = origin if origin is None else origin.format(port=studio.server_port)
    assert question(studio, {"ask": "torus"}, Origin=given)[0] == 403


@pytest.mark.parametrize("token", ["", None, "wrong", "é"])
def test_questions_need_the_token(studio, token):
    assert question(studio, {"ask": "torus"}, X_Coadjoint_Token=token and token.encode().decode("latin-1"))[0] == 403


def test_other_methods_paths_and_bodies_are_refused(studio):
    assert asked(studio, "PUT", "/ask")[0] == 501
    assert asked(studio, "OPTIONS", "/ask")[0] == 501  # no page may ask for permission to ask
    good = {
        "Origin": f"http://127.0.0.1:{studio.server_port}",
        "X_Coadjoint_Token": studio.token,
        "Content_Type": "application/json",
    }
    assert asked(studio, "POST", "/other", "{}", **good)[0] == 404
    assert asked(studio, "POST", "/ask", "{", **good)[0] == 400
    assert asked(studio, "POST", "/ask", "[]", **good)[0] == 400
    assert asked(studio, "POST", "/ask", "[" * 100_000, **good)[0] == 400
    assert asked(studio, "POST", "/ask", "{}", **good | {"Content_Type": "text/plain"})[0] == 415
    assert asked(studio, "POST", "/ask", None, **good | {"Content_Length": str(2**30)})[0] == 413
    assert asked(studio, "POST", "/ask", None, **good | {"Content_Length": "-1"})[0] == 413
    assert asked(studio, "POST", "/ask", None, **good | {"Content_Length": "9" * 5000})[0] == 413


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"ask": "nothing"},
        {"ask": ["reach"]},
        {"ask": "__class__"},
        {"ask": "reach"},
        {"ask": "reach", "q": [0.0], "frame": "tip", "position": [1, 1, 0]},
        {"ask": "reach", "q": [0.0, "x"], "frame": "tip", "position": [1, 1, 0]},
        {"ask": "reach", "q": [0.0, float("nan")], "frame": "tip", "position": [1, 1, 0]},
        {"ask": "reach", "q": [0, 0], "frame": "nowhere", "position": [1, 1, 0]},
        {"ask": "reach", "q": [0, 0], "frame": 3, "position": [1, 1, 0]},
        {"ask": "reach", "q": [10**400, 0], "frame": "tip", "position": [1, 1, 0]},
        {"ask": "reach", "q": [0, 0], "frame": "tip", "position": [1, 1, 0], "turn": True, "pose": "x"},
        {"ask": "reach", "q": [0, 0], "frame": "tip", "position": [1, 1, 0], "turn": True, "pose": [[1, 2], [3]]},
        {"ask": "null", "q": [0, 0], "frame": "tip"},
        {"ask": "torus", "q": [0, 0], "points": 1e9},
        {"ask": "torus", "q": [0, 0], "joints": ["a", "b"]},
        {"ask": "motion", "q": [0, 0], "v": [0, 0], "duration": 1e9},
        {"ask": "hold", "q": [0, 0], "v": [0, 0], "bonds": [{"kind": "glue", "a": "tip", "b": "base"}]},
        {"ask": "hold", "q": [0, 0], "v": [0, 0], "bonds": "many"},
        {"ask": "hold", "q": [0, 0], "v": [0, 0], "bonds": [7]},
        {"ask": "phase", "q": [0, 0], "joint": "x"},
        {"ask": "plan", "start": [0, 0], "goal": [1, 1], "frame": "tip", "cost": "beauty"},
        {"ask": "plan", "start": [0, 0], "goal": [1, 1], "frame": "tip", "duration": -1},
        {"ask": "plan", "start": [0, 0], "goal": [1], "frame": "tip"},
        {"ask": "identify"},
        {"ask": "identify", "table": 3},
        {"ask": "identify", "table": "../../etc/passwd"},
        {"ask": "identify", "table": "time,q1,q2\n0,0,0\n0.1,0,0\n"},
    ],
)
def test_wrong_questions_get_a_sentence(studio, data):
    status, text, _ = question(studio, data)
    assert status == 200
    assert list(json.loads(text)) == ["error"], text
    assert "could not be computed" not in text
    assert asked(studio, "GET", f"/?token={studio.token}")[0] == 200


# --- what it answers


def ask(robot, name, **data):
    return QUESTIONS[name](robot, json.loads(json.dumps(data)))


@pytest.mark.native
def test_the_hand_follows():
    place = cj.pose(PANDA, Q, "tip")
    goal = place[:3, 3] + [0.03, -0.02, 0.04]
    for turn in (True, False):
        found = ask(PANDA, "reach", q=Q.tolist(), frame="tip", position=goal.tolist(), turn=turn)
        reached = cj.pose(PANDA, np.array(found["q"]), "tip")
        assert found["reached"]
        np.testing.assert_allclose(reached[:3, 3], goal, atol=1e-6)
        assert np.abs(np.array(found["q"]) - Q).max() < 0.5  # the next configuration, not another branch
        if turn:
            np.testing.assert_allclose(reached[:3, :3], place[:3, :3], atol=1e-6)
    far = ask(PANDA, "reach", q=Q.tolist(), frame="tip", position=[3.0, 0.0, 0.5])
    assert not far["reached"]
    assert far["off"] > 1.5


@pytest.mark.native
def test_null_motion_leaves_the_frame_where_it_is():
    place, q, direction = cj.pose(PANDA, Q, "tip"), Q.tolist(), None
    for _ in range(5):
        found = ask(PANDA, "null", q=q, frame="tip", pose=place.tolist(), turn=True, direction=direction, step=0.05)
        q, direction = found["q"], found["direction"]
    np.testing.assert_allclose(cj.pose(PANDA, np.array(q), "tip"), place, atol=1e-6)
    way = np.array(q) - Q
    assert np.abs(way).max() > 0.05
    assert np.sqrt(way @ cj.mass_matrix(PANDA, Q) @ way) == pytest.approx(0.25, rel=0.1)  # five steps of the metric's length
    with pytest.raises(cj.CoadjointError, match="leave none to spare"):
        ask(cj.load("ur5e"), "null", q=[0.1] * 6, frame="tip", pose=np.eye(4).tolist(), turn=True, step=0.1)


@pytest.mark.native
def test_the_geodesic_has_less_energy_than_the_straight_line():
    robot = cj.load("planar2r")
    found = ask(robot, "geodesic", start=[0.0, 0.5], goal=[1.0, 2.0], frame="tip")
    geodesic, straight = np.array(found["energies"])
    assert np.ptp(geodesic) < 1e-8 * geodesic.mean()
    assert found["means"][0] < found["means"][1]
    np.testing.assert_allclose(found["q"][0][-1], [1.0, 2.0], atol=1e-8)
    np.testing.assert_allclose(found["paths"][0], cj.pose(robot, np.array(found["q"][0]), "tip")[:, :3, 3])
    assert np.ptp(straight) > 0


@pytest.mark.native
def test_the_torus_is_coloured_by_sectional_curvature():
    robot = cj.load("planar2r")
    found = ask(robot, "torus", q=[0.3, 0.4], points=11)
    x, y = (np.linspace(found["low"][k], found["high"][k], 11) for k in range(2))
    q = np.stack(np.meshgrid(x, y), axis=-1)
    K = cj.sectional_curvature(robot, q, [1.0, 0.0], [0.0, 1.0])
    np.testing.assert_allclose(np.array(found["sectional"]).reshape(11, 11), K, atol=1e-10)


def test_the_phase_portrait_is_that_of_the_joint_alone():
    robot = cj.load("planar2r")
    found = ask(robot, "phase", q=[0.3, 0.4], joint="joint2", fastest=3.0)
    alone = robot.lock({"joint1": 0.3})
    x, y = (np.linspace(found["low"][k], found["high"][k], 41) for k in range(2))
    a = np.array(found["acceleration"]).reshape(41, 41)
    assert a[7, 5] == pytest.approx(float(cj.forward_dynamics(alone, [x[5]], [y[7]], [0.0])[0]), rel=1e-12)
    # Its height is that of this coordinate's speed, not of another's.
    assert ask(robot, "phase", q=[0.3, 0.4], joint="joint2", fastest=3.0, speeds=[90.0, 4.0])["high"][1] == pytest.approx(4.4)


@pytest.mark.native
@pytest.mark.parametrize("kind", ["rod", "ball"])
def test_bonds_hold_and_their_arrows_are_their_forces(kind):
    robot = cj.load("planar3r")
    q = np.array([0.3, 0.8, 0.9])
    bond = {"kind": kind, "a": "tip", "b": "base"}
    held = ask(robot, "hold", q=q.tolist(), v=[0, 0, 0], bonds=[bond])
    force = np.array(held["forces"][0])
    # The same without the bond, with its force as a load.
    J = cj.jacobian(robot, q, "tip", "world")[3:]
    a = cj.forward_dynamics(robot, q, np.zeros(3), J.T @ force)
    at = cj.pose(robot, q, "tip")[:3, 3]
    tip = J @ a
    if kind == "rod":
        assert abs(at @ tip) < 1e-9
        assert np.linalg.norm(np.cross(force, at)) < 1e-9
    else:
        assert np.abs(tip).max() < 1e-9
    assert np.linalg.norm(force) > 1.0
    moved = ask(robot, "motion", q=q.tolist(), v=[0, 0, 0], bonds=[bond], duration=0.5)
    there = cj.pose(robot, np.array(moved["q"]), "tip")[:, :3, 3]
    gap = np.linalg.norm(there, axis=-1) - np.linalg.norm(at) if kind == "rod" else there - at
    assert np.abs(gap).max() < 1e-9
    assert len(moved["forces"]) == len(moved["time"]) == 31
    np.testing.assert_allclose(moved["forces"][0], [force], atol=1e-8)


@pytest.mark.native
def test_motions_are_those_of_simulate():
    robot = cj.load("planar2r")
    found = ask(robot, "motion", q=[0.3, 0.2], v=[0.1, 0.0], duration=0.5)
    expected = cj.simulate(robot, [0.3, 0.2], [0.1, 0.0], 0.5)
    np.testing.assert_allclose(found["q"], expected(np.array(found["time"]))[0], atol=1e-8)


@pytest.mark.native
def test_a_motion_that_takes_too_long_is_shown_as_far_as_it_came(monkeypatch):
    calls = iter(range(1000))
    monkeypatch.setattr(questions, "perf_counter", lambda: 1e9 * (next(calls) > 8))
    robot = cj.load("planar2r")
    found = ask(robot, "motion", q=[0.3, 0.2], v=[0.1, 0.0], duration=20.0)
    assert "of computing were over" in found["stopped"]
    assert 0.01 < found["time"][-1] < 10.0
    expected = cj.simulate(robot, [0.3, 0.2], [0.1, 0.0], found["time"][-1])
    np.testing.assert_allclose(found["q"][-1], expected.q[-1], atol=1e-7)


@pytest.mark.native
@pytest.mark.parametrize("cost", ["effort", pytest.param("time", marks=pytest.mark.slow), "path"])
def test_planned_motions_are_those_of_the_library(cost):
    robot = limited_arm()
    start, goal = np.array([0.0, 0.5]), np.array([1.0, 1.2])
    found = ask(robot, "plan", start=start.tolist(), goal=goal.tolist(), frame="tip", cost=cost, duration=1.2)
    q, v, tau, time = (np.array(found[key]) for key in ("q", "v", "tau", "time"))
    assert found["found"]
    np.testing.assert_allclose(q[[0, -1]], [start, goal], atol=1e-9)
    np.testing.assert_allclose(v[[0, -1]], 0.0, atol=1e-8)
    np.testing.assert_allclose(found["path"], cj.pose(robot, q, "tip")[:, :3, 3])
    assert np.abs(tau).max() <= 30.0 * (1 + 1e-3)
    if cost == "path":
        assert time[-1] == pytest.approx(cj.time_optimal(robot, np.linspace(start, goal, 5)).duration, rel=1e-9)
        np.testing.assert_allclose((q - start) @ [0.7, -1.0], 0.0, atol=1e-12)  # along (1, 0.7)
        assert np.abs(tau).max() > 29.9
    else:
        assert found["cost"] == pytest.approx(cj.optimal_motion(robot, start, goal, 1.2 if cost == "effort" else None, cost).cost)


def limited_arm():
    arm = cj.load("planar2r").with_gravity((0.0, 0.0, 0.0))
    for name in arm.joint_names:
        arm = arm.with_joint(name, effort=30.0, velocity=5.0)
    return arm


@pytest.mark.native
def test_what_a_log_leaves_before_and_after_a_fit():
    robot = cj.load("planar2r")
    log = simulated(perturbed(robot), noise=0.01)
    text = "time,q1,q2,tau1,tau2\n" + "".join(
        ",".join(map(repr, map(float, row))) + "\n" for row in np.column_stack([log["time"], log["q"], log["tau"]])
    )
    found = ask(robot, "identify", table=text)
    left = {key: np.array(found["rms"][key]) for key in found["rms"]}
    assert (left["after"] < 0.05 * left["measured"]).all()
    assert (left["before"] > 5 * left["after"]).all()
    between = cj.compare(robot, {key: log[key] for key in ("time", "q", "tau")})
    np.testing.assert_allclose(left["before"], np.sqrt(np.mean((between.measured - between.computed) ** 2, axis=0)), rtol=0.1)
    rows = np.array(found["measured"]) - np.array(found["after"])
    np.testing.assert_allclose(np.sqrt(np.mean(rows**2, axis=0)), left["after"], rtol=0.2)
    again = cj.load(json_file(found["robot"]))
    assert again.link_names == robot.link_names
    assert not np.allclose(again.inertial_parameters, robot.inertial_parameters)


def json_file(text):
    path = Path(tempfile.mkdtemp()) / "fitted.json"
    path.write_text(text)
    return path


# --- the command


def test_the_command_ends_cleanly_at_an_interrupt():
    process = subprocess.Popen(
        [sys.executable, "-m", "coadjoint", "studio", "planar2r", "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ, start_new_session=True,
    )  # fmt: skip
    address = process.stdout.readline().split()[-1]
    port = int(address.split(":")[2].partition("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", address.partition(str(port))[2])
    assert connection.getresponse().status == 200
    connection.close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "closed" in out
    assert err == ""


def test_a_port_that_is_taken_is_an_error(studio):
    with pytest.raises(cj.CoadjointError, match="cannot be used"):
        Studio(cj.load("planar2r"), studio.server_port)


# --- in a browser


@pytest.fixture(scope="module")
def browser():
    if chromium() is None:
        pytest.skip("no chromium")
    made = Browser()
    yield made
    made.close()


@pytest.mark.native
@pytest.mark.slow
def test_the_hand_is_dragged_in_the_page(browser, tmp_path):
    folder = Path(os.environ.get("COADJOINT_PICTURES", tmp_path))
    with running(PANDA) as studio:
        page = browser.page()
        page.size(1280, 760)
        page.open(studio.url)
        page.click("#tab-Reach")
        place = "[0, 1, 2].map(k => coadjoint.state.framePose[k][3])"
        before = np.array(page.run(place))
        x, y = page.run(f"coadjoint.scene.camera.project({place}, coadjoint.scene.canvas)")
        page.drag((x, y), (x - 60, y - 40))
        page.wait(f"Math.hypot(...{place}.map((x, k) => x - {before.tolist()}[k])) > 0.03 && !coadjoint.asking.busy")
        seen = page.run(f"coadjoint.scene.camera.project({place}, coadjoint.scene.canvas)")
        assert np.hypot(seen[0] - (x - 60), seen[1] - (y - 40)) < 6  # the hand is under the pointer
        page.click("#tab-Geometry")
        page.wait("coadjoint.geometry.torus", 90)
        page.settle()
        page.picture(folder / "studio-panda.webp", "webp", quality=82)
        q = page.run("coadjoint.state.q")
        page.drag(page.middle("#torus"), tuple(x + 30 for x in page.middle("#torus")))
        moved = page.run("coadjoint.geometry.torus.places")
        now = page.run("coadjoint.state.q")
        assert sorted(k for k in range(7) if now[k] != q[k]) == sorted(moved)
        assert page.errors == []
        assert {url.partition("?")[0] for url in page.requests} <= {
            f"http://127.0.0.1:{studio.server_port}/{path}" for path in ("", "ask")
        }
        page.call("Page.close")
        page.connection.close()


@pytest.mark.native
@pytest.mark.slow
def test_frames_are_joined_motions_planned_and_logs_fitted_by_hand(browser):
    with running(cj.load("planar3r")) as studio:
        page = browser.page()
        page.size(1280, 760)
        page.open(studio.url)
        page.run("coadjoint.state.set({ q: [0.3, 0.8, 0.9] })")
        page.run("coadjoint.scene.fit()")
        page.click("#tab-Bonds")
        for name in ("tip", "base"):
            place = (
                f"coadjoint.mechanism.framePose(coadjoint.state.poses, coadjoint.model.frames.findIndex(x => x.name === '{name}'))"
            )
            at = page.run(f"coadjoint.scene.camera.project([0, 1, 2].map(k => {place}[k][3]), coadjoint.scene.canvas)")
            page.drag(at, at, steps=1)
        page.wait("coadjoint.bonds.forces.length === 1")
        q = np.array(page.run("coadjoint.state.q"))
        found = ask(studio.robot, "hold", q=q.tolist(), v=[0, 0, 0], bonds=page.run("coadjoint.bonds.bonds"))
        np.testing.assert_allclose(page.run("coadjoint.bonds.forces"), found["forces"], atol=1e-8)
        page.click("#tab-Plan")
        page.click("#plan-start")
        page.run("coadjoint.state.set({ q: [0.9, 0.4, 0.5] })")
        page.click("#plan-goal")
        page.click("#plan")
        page.wait("coadjoint.plan.found", 90)
        np.testing.assert_allclose(page.run("coadjoint.plan.found.q.at(-1)"), [0.9, 0.4, 0.5], atol=1e-9)
        assert page.run("coadjoint.player.motion.name") == "motion of least effort"
        page.click("#tab-Identify")
        log = simulated(perturbed(studio.robot), noise=0.01)
        rows = np.column_stack([log["time"], log["q"], log["tau"]]).tolist()
        text = "time,q1,q2,q3,tau1,tau2,tau3\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows)
        drop = "new DragEvent('drop', { dataTransfer: Object.assign(new DataTransfer()), bubbles: true })"
        page.run(
            f"(() => {{ const e = {drop}; e.dataTransfer.items.add(new File([{json.dumps(text)}], 'log.csv')); dispatchEvent(e); }})()"
        )
        page.wait("coadjoint.measured.found", 90)
        with pytest.warns(LogWarning) as doubts:  # these links are 1.4 times as heavy as described
            fit = cj.identify(studio.robot, {key: log[key] for key in ("time", "q", "tau")})
        assert {str(x.message) for x in doubts} <= set(page.run("coadjoint.measured.found.advice"))
        assert page.run("coadjoint.measured.found.relative") == pytest.approx(fit.relative_error, rel=1e-9)
        assert page.run("document.querySelectorAll('#sheets tbody tr').length") == 3
        assert page.errors == []
        page.call("Page.close")
        page.connection.close()


EVIL = "</script><img src=x onerror=alert(1)>"


def test_names_do_nothing_in_the_studio(browser):
    robot = body(cj.Joint.revolute((0, 1, 0), name=EVIL), 1.0, (0.01, 0.02, 0.025)).with_frame("frame" + EVIL, "body", np.eye(4))
    with running(robot) as studio:
        page = browser.page()
        page.open(studio.url)
        for sheet in page.run("coadjoint.sheets.map(x => x.name)"):
            page.run(f"coadjoint.open({sheet!r})")
            page.settle()
            assert page.run("document.querySelectorAll('img').length") == 0
        page.wait("!coadjoint.asking.busy", 90)
        assert page.errors == []
        page.call("Page.close")
        page.connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur5e", "free body", "humanoid", "closed chain"])
def test_studios_of_other_robots_open(browser, name):
    files = [path for file, path in urdf_files().items() if file.endswith("talos_reduced.urdf")]
    if name == "humanoid" and not files:
        pytest.skip("no example-robot-data")
    robot = {
        "ur5e": lambda: cj.load("ur5e"),
        "free body": lambda: body(cj.Joint.free(), 1.3, (0.01, 0.02, 0.025)),
        "humanoid": lambda: cj.load(files[0], base="free"),
        "closed chain": four_bar,
    }[name]()
    with running(robot) as studio:
        page = browser.page()
        page.size(1280, 760)
        page.open(studio.url)
        for sheet in page.run("coadjoint.sheets.map(x => x.name)"):
            if sheet not in ("Geometry", "Phase") or name in ("ur5e", "free body"):
                page.run(f"coadjoint.open({sheet!r})")
        page.wait("!coadjoint.asking.busy", 90)
        assert page.errors == []
        if name == "closed chain":
            assert page.run("coadjoint.state.gap") < 1e-12
        page.call("Page.close")
        page.connection.close()


def four_bar():
    """Three links whose description holds the end of the last."""
    arm = cj.load("planar3r")
    robot = arm.with_frame("pin", "base", [[1, 0, 0, 1.2], [0, 1, 0, 0.8], [0, 0, 1, 0], [0, 0, 0, 1]])
    return cj.Robot("four bar", robot.links, robot.frames, robot.gravity, loops=[Loop("pin", "pin", "tip", "spherical")])


HELD = {"ask": "hold", "v": [0, 0, 0]}
PIN, ROD = {"kind": "ball", "a": "tip", "b": "base"}, {"kind": "rod", "a": "link3", "b": "base"}


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"ask": "reach", "frame": "tip", "position": [1.2, 0.8, 0.0]}, 300),
        (HELD | {"bonds": [ROD]}, 100),
        (HELD | {"bonds": [PIN]}, 40),  # each time at another place
        (HELD | {"bonds": [PIN, ROD]}, 40),
        (HELD | {"ask": "motion", "duration": 0.1, "bonds": [ROD]}, 40),  # each time of another length
        ({"ask": "phase", "joint": "joint2"}, 40),  # the others are held elsewhere each time
    ],
    ids=["reach", "rod", "ball", "ball and rod", "motion of a rod", "phase"],
)
def test_many_questions_leave_nothing_behind(asked, count):
    """The memory of the server does not grow with the questions that it has answered."""
    import tracemalloc

    with running(cj.load("planar3r")) as studio:
        for k in range(30):
            question(studio, asked | {"q": [0.3, 0.8, 0.9 + 0.001 * k]})
        tracemalloc.start()
        question(studio, asked | {"q": [0.3, 0.8, 0.95]})
        gc.collect()
        before = tracemalloc.take_snapshot()
        for k in range(count):
            assert "error" not in json.loads(question(studio, asked | {"q": [0.3 + 0.001 * k, 0.8, 0.9]})[1])
        time.sleep(0.2)
        gc.collect()
        after = tracemalloc.take_snapshot()
        tracemalloc.stop()
    grown = sum(x.size_diff for x in after.compare_to(before, "filename"))
    assert grown < 200_000


@pytest.mark.slow
def test_loops_of_a_description_stay_closed():
    """Whatever moves the robot keeps its loops; what would leave them open is refused."""
    robot = four_bar()
    loops = cj.Constraint.loops(robot)
    q = cj.constraints.assemble(robot, loops, [0.3, -0.5, 2.6])
    still = {"q": q.tolist(), "v": [0, 0, 0]}
    fall = ask(robot, "motion", **still, duration=0.3)
    assert np.abs(loops.residual(robot, np.array(fall["q"]))).max() < 1e-9
    np.testing.assert_allclose(fall["q"][-1], cj.simulate(robot, q, np.zeros(3), [0, 0.3], constraints=loops).q[-1], atol=1e-7)
    goal = cj.constraints.assemble(robot, loops, q + np.array([0.2, 0, 0]), fixed="joint1")
    place = cj.pose(robot, goal, "link3")[:3, 3]
    found = ask(robot, "reach", q=q.tolist(), frame="link3", position=place.tolist())
    assert found["reached"]
    np.testing.assert_allclose(found["q"], goal, atol=1e-7)
    far = ask(robot, "reach", q=q.tolist(), frame="link3", position=[3.0, 3.0, 0.0])
    assert not far["reached"]
    assert np.abs(loops.residual(robot, np.array(far["q"]))).max() < 1e-9
    # A rod locks the mechanism: it bears what the loop does not.
    held = ask(robot, "hold", **still, bonds=[{"kind": "rod", "a": "link3", "b": "base"}])
    whole = loops & cj.Constraint.cable(robot, ("link3", "base"))
    a, multipliers = cj.constrained_dynamics(robot, whole, q, np.zeros(3), np.zeros(3))
    assert np.abs(a).max() < 1e-9
    assert np.linalg.norm(held["forces"][0]) == pytest.approx(abs(multipliers[3]), rel=1e-9)
    for name in ("torus", "geodesic", "phase", "null"):
        with pytest.raises(cj.CoadjointError, match="leave the loop 'pin'"):
            ask(robot, name, q=q.tolist(), start=q.tolist(), goal=goal.tolist(), frame="tip", joint="joint1")


def test_the_curvature_of_a_robot_without_mass_is_refused_by_name():
    with pytest.raises(cj.CoadjointError, match="'shoulder' moves no mass"):
        ask(cj.Robot("light", [cj.Link("a", "base", cj.Joint.revolute(name="shoulder"))]), "torus", q=[0.0])


@pytest.mark.native
def test_a_ball_holds_where_it_was_made_and_a_rod_keeps_its_length_beside_it():
    robot = cj.load("planar3r")
    q = np.array([0.3, 0.8, 0.9])
    at = cj.pose(robot, q, "tip")[:3, 3]
    bonds = [PIN | {"at": at.tolist()}, {"kind": "rod", "a": "link3", "b": "base"}]
    held = ask(robot, "hold", q=(q + 0.02).tolist(), v=[0, 0, 0], bonds=bonds)
    np.testing.assert_allclose(cj.pose(robot, np.array(held["q"]), "tip")[:3, 3], at, atol=1e-9)
    assert len(held["forces"]) == 2
    with pytest.raises(cj.CoadjointError, match="no joint changes the distance of 'link2' and 'base'"):
        ask(robot, "hold", q=q.tolist(), v=[0, 0, 0], bonds=[{"kind": "rod", "a": "link2", "b": "base"}])
