"""Pages in a browser: what they compute is what the library computes, and nothing else ever happens in them."""

from __future__ import annotations

import base64
import io
import json
import os
from html import unescape
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import scipy.linalg

import coadjoint as cj
from browser import Browser, chromium
from coadjoint.show.page import programs
from coadjoint.show.page.bundle import bundle
from coadjoint.show.page.html import as_json
from coadjoint.show.page.model import visuals
from coadjoint.show.report import FEW_TRIANGLES
from models import body, urdf_files
from random_robots import random_robot

EVIL = "</script><img src=x onerror=alert(1)>"

STATES = 1000


@pytest.fixture(scope="module")
def browser():
    if chromium() is None:
        pytest.skip("no chromium")
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def page(browser):
    made = browser.page()
    made.size(1280, 800)
    yield made
    made.call("Page.close")
    made.connection.close()


def opened(page, tmp_path, robot, **options):
    path = tmp_path / "robot.html"
    cj.report(robot, path, **options)
    page.open(path.as_uri())
    return path


# --- the numbers

_VALUES = """
((text, nq, nv) => {
  const numbers = new Float64Array(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
  const { mechanism } = coadjoint, s = new coadjoint.state.constructor(mechanism), width = nq + 3 * nv + 6, found = {};
  for (let k = 0; k < numbers.length; k += width) {
    const part = (from, size) => Array.from(numbers.slice(k + from, k + from + size));
    s.set({ q: part(0, nq), v: part(nq, nv), a: part(nq + nv, nv), wrench: part(nq + 3 * nv, 6) });
    const tau = part(nq + 2 * nv, nv), all = { poses: s.poses, frame: s.framePose, T: s.kinetic, U: s.potential, jacobian: s.jacobian,
      twist: s.twist, tau: s.tau, mass: s.mass, reactions: s.reactions, ...s.terms };
    if (s.com) all.com = s.com;
    for (const [name, A] of Object.entries(s.ellipsoids)) all["ellipsoid " + name] = A ?? new Array(9).fill(NaN);
    all.manipulability = mechanism.manipulability(s.jacobian.slice(3));
    all.forward = mechanism.acceleration(s.q, s.v, tau);
    if (mechanism.programs.residual) all.residual = mechanism.programs.residual(s.q);
    for (const [name, x] of Object.entries(all)) (found[name] ??= []).push(...[x].flat(Infinity));
  }
  const packed = x => { const b = new Uint8Array(new Float64Array(x).buffer); let t = ""; for (let i = 0; i < b.length; i += 8192)
    t += String.fromCharCode(...b.subarray(i, i + 8192)); return btoa(t); };
  return Object.fromEntries(Object.entries(found).map(([name, x]) => [name, packed(x)]));
})"""


def in_page(page, robot, *columns):
    """Everything that the page computes at states, by name, (N, numbers)."""
    table, found = np.concatenate(columns, axis=1), {}
    for rows in np.array_split(table, max(1, table.size * robot.nv // 250_000)):
        text = base64.b64encode(np.ascontiguousarray(rows).tobytes()).decode()
        for name, data in page.run(f"{_VALUES}({json.dumps(text)}, {robot.nq}, {robot.nv})").items():
            found.setdefault(name, []).append(np.frombuffer(base64.b64decode(data)).reshape(len(rows), -1))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def in_library(robot, frame, constraints, q, v, a, tau, wrench):
    link, pose = robot.frame(frame)
    T = cj.pose(robot, q, frame)
    world = cj.jacobian(robot, q, frame, "world")
    load = np.einsum("nij,ni->nj", world, wrench)
    wrenches = np.zeros((len(q), robot.n_links, 6))
    if link >= 0:
        seen = np.concatenate([np.einsum("nji,nj->ni", T[:, :3, :3], x) for x in (wrench[:, :3], wrench[:, 3:])], axis=1)
        wrenches[:, link] = cj.lie.se3.Ad_inv_dual_act(pose, seen)
    M = cj.mass_matrix(robot, q)
    found = {
        "poses": cj.forward_kinematics(robot, q),
        "frame": T,
        "T": cj.kinetic_energy(robot, q, v),
        "U": cj.potential_energy(robot, q),
        "jacobian": cj.jacobian(robot, q, frame),
        "twist": np.einsum("nij,nj->ni", cj.jacobian(robot, q, frame), v),
        "mass": M,
        "M a": np.einsum("nij,nj->ni", M, a),
        "C v": np.einsum("nij,nj->ni", cj.coriolis_matrix(robot, q, v), v),
        "g": cj.gravity_force(robot.with_springs([]), q),
        "springs": cj.gravity_force(robot, q) - cj.gravity_force(robot.with_springs([]), q),
        "friction": cj.inverse_dynamics(robot, q, v, a, friction=True) - cj.inverse_dynamics(robot, q, v, a),
        "−Jᵀf": -load,
        "tau": cj.inverse_dynamics(robot, q, v, a, wrenches, friction=True),
        "reactions": cj.joint_reactions(robot, q, v, a, wrenches),
        "com": cj.center_of_mass(robot, q),
        "manipulability": cj.redundancy.manipulability(robot, q, frame, rows=(3, 4, 5)),
    }
    for kind in ("velocity", "mobility", "inertia"):
        found[f"ellipsoid {kind}"] = cj.redundancy.ellipsoid(robot, q, frame, (3, 4, 5), kind).matrix
    if constraints is None:
        found["forward"] = cj.forward_dynamics(robot, q, v, tau)
    else:
        found["forward"] = cj.constrained_dynamics(robot, constraints, q, v, tau)[0]
        found["residual"] = constraints.residual(robot, q)
        found |= of_the_mechanism(cj.jacobian(robot, q, frame)[:, 3:], M, constraints.jacobian(robot, q))
    return found


def of_the_mechanism(J, M, A):
    """Ellipsoids of what the constraints leave: J N along the null space of A, by the mass matrix Nᵀ M N."""
    N = np.stack([scipy.linalg.null_space(x) for x in A])
    J, M = J @ N, N.swapaxes(1, 2) @ M @ N
    velocity, mobility = J @ J.swapaxes(1, 2), J @ np.linalg.inv(M) @ J.swapaxes(1, 2)
    return {"ellipsoid velocity": velocity, "ellipsoid mobility": mobility}


def compare(page, robot, constraints=None, q=None, count=STATES, skip=()):
    """The largest relative error of every quantity, of its largest value at that state; by the condition of M where it is inverted."""
    rng = np.random.default_rng(7)
    q = robot.random(rng, count) if q is None else q
    v, a, tau = rng.normal(size=(3, len(q), robot.nv))
    wrench = rng.normal(size=(len(q), 6))
    frame = page.run("coadjoint.model.frames[coadjoint.state.frame].name")
    mine, theirs = in_page(page, robot, q, v, a, tau, wrench), in_library(robot, frame, constraints, q, v, a, tau, wrench)
    condition = np.linalg.cond(cj.mass_matrix(robot, q))
    errors = {}
    for name in mine.keys() - set(skip):
        expected = np.asarray(theirs[name]).reshape(len(q), -1)
        assert np.isfinite(expected).all(), name
        scale = np.maximum(np.abs(expected).max(axis=1, initial=0.0), np.abs(expected).max(initial=0.0) * 1e-3) + 1e-300
        error = np.abs(mine[name] - expected).max(axis=1, initial=0.0) / scale
        if name in ("forward", "ellipsoid mobility", "ellipsoid inertia"):
            error = error / np.maximum(1.0, 0.02 * condition)
        if name == "manipulability":  # the root of what is left when large terms cancel: the determinant is exact beside them
            size = np.trace(theirs["ellipsoid velocity"], axis1=-2, axis2=-1) ** 3
            error = (np.abs(mine[name] ** 2 - expected**2)[:, 0]) / (size + 1e-300)
        errors[name] = float(error.max())
    return errors


def closed_chain():
    arm = cj.load("planar3r")
    return arm, cj.Constraint.point(arm, "tip", axes="xy", at=(1.2, 0.8))


@pytest.mark.parametrize("name", ["panda", "ur5e", "free body"])
def test_what_the_page_shows_is_what_the_library_computes(page, tmp_path, name):
    robot = cj.load(name) if name != "free body" else body(cj.Joint.free(damping=0.1), 1.3, (0.01, 0.02, 0.025)).with_frame(
        "corner", "body", cj.lie.se3.exp([0.3, 0.2, 0.1, 0.1, 0.2, 0.3]))  # fmt: skip
    opened(page, tmp_path, robot)
    errors = compare(page, robot)
    assert max(errors.values()) < 1e-12, errors
    assert len(errors) >= 19


def test_webassembly_in_a_page(page, tmp_path, monkeypatch):
    """Large functions are WebAssembly; here those of a Panda are taken as large."""
    assert "wasm-unsafe-eval" not in opened(page, tmp_path, cj.load("panda")).read_text()
    monkeypatch.setattr(programs, "LARGE", 200)
    text = opened(page, tmp_path, cj.load("panda")).read_text()
    assert "WebAssembly.instantiate" in text
    assert "'wasm-unsafe-eval'" in unescape(text)
    assert page.run("coadjoint.mechanism.programs.forward.toString().includes('exports')")
    errors = compare(page, cj.load("panda"), count=200)
    assert max(errors.values()) < 1e-12, errors
    assert page.errors == []


def sprung():
    """A Panda with a spring from its base to its forearm, one without length, and one about a joint."""
    robot = cj.load("panda").with_frame("post", "base", cj.lie.se3.exp([0, 0, 0, 0.3, 0.1, 0.9]))
    robot = robot.with_spring("post", "link5", stiffness=300.0, rest=0.4).with_spring("base", "link4", stiffness=50.0)
    return robot.with_spring("joint2", stiffness=20.0, rest=0.3)


def test_springs_are_counted_once_and_drawn(page, tmp_path):
    """Joint forces by term, reactions, energies and accelerations of a robot with springs; the springs are seen."""
    robot = sprung()
    opened(page, tmp_path, robot)
    errors = compare(page, robot, count=200)
    assert max(errors.values()) < 1e-12, errors
    assert "springs" in errors
    page.settle()
    before = picture(page)[100:, :850]
    page.run("coadjoint.model.springs.length = 0; coadjoint.scene.dirty = true")
    page.settle()
    assert (np.abs(picture(page)[100:, :850] - before).max(axis=-1) > 0.2).sum() > 500
    assert page.errors == []


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 8))])
def test_joints_of_every_kind(page, tmp_path, seed):
    robot = random_robot(np.random.default_rng(seed), 6)
    opened(page, tmp_path, robot)
    errors = compare(page, robot, count=100, skip=("ellipsoid inertia",))
    assert max(errors.values()) < 1e-12, errors


def test_a_closed_chain_is_kept_closed(page, tmp_path):
    robot, constraint = closed_chain()
    robot = robot.with_frame("middle", "link2", cj.lie.se3.pose(np.eye(3), np.array([0.5, 0, 0])))
    opened(page, tmp_path, robot, constraints=constraint)
    assert page.run("document.getElementById('head').textContent").split("·")[1].strip() == "1 freedom"
    middle = "coadjoint.model.frames.findIndex((x) => x.name === 'middle')"
    page.run(f"coadjoint.state.set({{ frame: coadjoint.model.frame = {middle} }})")
    rng = np.random.default_rng(1)
    first = rng.uniform(-0.8, 1.9, STATES)
    way = np.array([1.2, 0.8]) - np.stack([np.cos(first), np.sin(first)], axis=-1)
    bend = np.arccos(np.linalg.norm(way, axis=-1) / 2) * rng.choice([-1, 1], STATES)  # two links of one metre reach the place
    q = np.stack([first, np.arctan2(way[:, 1], way[:, 0]) - bend - first, 2 * bend], axis=-1)
    assert np.abs(constraint.residual(robot, q)).max() < 1e-14
    errors = compare(page, robot, constraint, q, skip=("residual", "ellipsoid inertia"))
    assert max(errors.values()) < 1e-12, errors
    before = page.run("coadjoint.state.q")
    x, y = page.middle(".slider input[type=range]")
    page.drag((x - 8, y), (x + 18, y))
    after = np.array(page.run("coadjoint.state.q"))
    assert np.abs(after - before).max() > 0.01
    assert np.abs(constraint.residual(robot, after)).max() < 1e-12
    page.click(".segmented button:nth-child(2)")
    x, y = page.middle(".slider input[type=range]")
    page.drag((x, y), (x + 20, y))
    v, a = np.array(page.run("[coadjoint.state.v, coadjoint.state.a]"))
    assert abs(v[0]) > 0.1
    assert np.abs(constraint.jacobian(robot, after) @ v).max() < 1e-12
    assert np.abs(constraint.jacobian(robot, after) @ a + constraint.bias(robot, after, v)).max() < 1e-9
    assert page.errors == []


@pytest.mark.slow
def test_a_humanoid(page, tmp_path):
    files = [path for name, path in urdf_files().items() if name.endswith("talos_reduced.urdf")]
    if not files:
        pytest.skip("no example-robot-data")
    robot = cj.load(files[0], base="free")
    path = opened(page, tmp_path, robot)
    assert path.stat().st_size < 4e6
    assert "WebAssembly" in path.read_text()
    errors = compare(page, robot)
    assert max(errors.values()) < 1e-12, errors
    assert page.errors == []


# --- the page


def picture(page):
    return matplotlib.image.imread(io.BytesIO(page.picture()), format="png")[..., :3]


def test_sliders_are_moved_by_hand(page, tmp_path):
    robot = cj.load("panda")
    path = opened(page, tmp_path, robot)
    assert path.stat().st_size < 1e6
    page.settle()
    before = picture(page)[100:, :850]
    assert before.std() > 0.02
    q = np.array(page.run("coadjoint.state.q"))
    x, y = page.middle(".slider:nth-child(2) input[type=range]")
    page.drag((x, y), (x + 30, y))
    page.settle()
    moved = np.array(page.run("coadjoint.state.q"))
    assert moved[1] > q[1] + 0.3
    assert np.array_equal(np.delete(moved, 1), np.delete(q, 1))
    assert np.abs(picture(page)[100:, :850] - before).max() > 0.2
    page.click("#tab-Forces")
    page.settle()
    shown = page.run("[...document.querySelectorAll('tbody tr td:last-child')].slice(0, 7).map(x => x.textContent)")
    expected = cj.gravity_force(robot, moved)
    for text, value in zip(shown, expected, strict=True):
        assert float(text.replace("−", "-")) == pytest.approx(value, rel=1e-2, abs=1e-3)
    assert page.errors == []
    assert page.requests == [path.as_uri()]


def test_shapes_of_the_robot_are_drawn(page, tmp_path):
    plain = cj.load("planar2r")
    shapes = [cj.Shape("link1", "box", size=(0.5, 0.4, 0.4), colour=(1, 0, 0)), cj.Shape("link2", "sphere", size=0.2)]
    opened(page, tmp_path, plain.with_shapes(shapes))
    assert page.run("coadjoint.scene.figure.visuals.map(x => x.link)") == [0, 1]
    page.settle()
    red = lambda x: ((x[..., 0] > 0.5) & (x[..., 1] < 0.25) & (x[..., 2] < 0.25)).sum()
    assert red(picture(page)[100:, :850]) > 2000
    page.run("coadjoint.show.set('visuals', false)")
    page.settle()
    assert red(picture(page)[100:, :850]) < 1500  # the axis of the floor
    assert page.errors == []


def test_several_robots_stand_in_one_scene(page, tmp_path):
    two = cj.load("panda").attach(cj.load("ur5e"), "base", cj.lie.se3.exp([0, 0, 0, 0, 1.0, 0]), prefix="other_")
    opened(page, tmp_path, two)
    errors = compare(page, two, count=20, skip=("ellipsoid inertia", "ellipsoid mobility"))
    assert max(errors.values()) < 1e-12, errors
    assert page.run("document.querySelectorAll('#sheets .slider').length") == 13
    assert page.errors == []


@pytest.mark.slow
def test_the_whole_robot_is_seen(page, tmp_path):
    """Also along a motion that leaves the place where it begins."""
    robot = cj.load("planar2r")
    motion = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], 2.0)
    for size in ((1280, 800), (390, 844)):
        page.size(*size)
        opened(page, tmp_path, robot, motion=motion)
        left, top, wide, high = page.run(
            "(b => [b.left, b.top, b.width, b.height])(coadjoint.scene.canvas.getBoundingClientRect())"
        )
        assert top + high <= page.run("document.getElementById('transport').getBoundingClientRect().top")
        for place in cj.pose(robot, motion(np.linspace(0, 2, 9))[0], "tip")[:, :3, 3]:
            x, y = page.run(f"coadjoint.scene.camera.project({place.tolist()}, coadjoint.scene.canvas)")
            assert left < x < left + wide
            assert top < y < top + high


CORNERS = """(() => {
  const { scene, state } = coadjoint, box = scene.canvas.getBoundingClientRect();
  return Math.max(...scene.corners(state.poses).map((p) => scene.camera.project(p, scene.canvas)).map(([x, y]) =>
    Math.max(Math.abs((2 * (x - box.left)) / box.width - 1), Math.abs((2 * (y - box.top)) / box.height - 1))));
})()"""
"""How far out in the picture the robot reaches, 1 at its edge."""


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["wide", "tall"])
def test_a_robot_that_moves_stays_in_the_picture(page, tmp_path, size):
    """The camera steps back, without a turn; not while something is dragged, nor where whoever looks came nearer."""
    page.size(*size)
    opened(page, tmp_path, cj.load("panda"))
    distance, turned = (
        page.run("coadjoint.scene.camera.distance"),
        "[coadjoint.scene.camera.azimuth, coadjoint.scene.camera.elevation]",
    )
    ways = page.run(turned)
    farthest = 0.0
    for q in ([0.0] * 7, [1.6, 1.5, 0, 0, 0, 1.5, 0], [-1.6, 1.5, 0, 0, 0, 1.5, 0], [3.0, -1.6, 0, -0.1, 0, 1.5, 0]):
        page.run(f"coadjoint.state.set({{ q: {q} }})")
        page.settle()
        assert page.run(CORNERS) < 0.97
        assert page.run("coadjoint.scene.camera.distance") >= farthest
        farthest = page.run("coadjoint.scene.camera.distance")
    assert 1.05 * distance < farthest < 2 * distance
    assert page.run(turned) == ways
    page.run("coadjoint.scene.fit()")
    page.settle()
    page.run("coadjoint.scene.canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: -900, cancelable: true }))")
    page.settle()
    near = page.run("coadjoint.scene.camera.distance")
    page.run("coadjoint.state.set({ q: [0, 0, 0, 0, 0, 0, 0] })")
    page.settle()
    assert page.run("coadjoint.scene.camera.distance") == near
    page.run("coadjoint.scene.fit(); coadjoint.scene.held = true; coadjoint.state.set({ q: [1.6, 1.5, 0, 0, 0, 1.5, 0] })")
    still = page.run("coadjoint.scene.camera.distance")
    page.settle()
    assert page.run("coadjoint.scene.camera.distance") == still
    assert page.errors == []


def test_coarse_pictures_show_the_same_shapes_with_fewer_triangles(page, tmp_path):
    robot = cj.load("planar2r").with_shapes(
        [cj.Shape("link2", "sphere", size=(0.3,)), cj.Shape("link1", "capsule", size=(0.1, 0.5))]
    )
    opened(page, tmp_path, robot)
    count = """(coarse => {{
      const {{ renderer }} = coadjoint.scene, gl = renderer.gl, draw = gl.drawElements;
      let found = 0;
      gl.drawElements = function (kind, n, ...rest) {{ found += n / 3; draw.call(gl, kind, n, ...rest); }};
      renderer.coarse = coarse;
      coadjoint.scene.draw();
      delete gl.drawElements;
      return found;
    }})({})"""
    full, coarse = page.run(count.format("false")), page.run(count.format("true"))
    assert 0 < coarse < 0.5 * full
    rough = np.array(page.run("""(() => {
      const corners = [], faces = [], n = 24;
      for (let i = 0; i <= n; i++) for (let k = 0; k < 2 * n; k++) {
        const a = Math.PI * i / n, b = Math.PI * k / n;
        corners.push(Math.sin(a) * Math.cos(b), Math.sin(a) * Math.sin(b), Math.cos(a));
        if (i < n) faces.push(2 * n * i + k, 2 * n * i + 2 * n + k, 2 * n * i + 2 * n + (k + 1) % (2 * n));
      }
      const found = modules.meshes.simplified(corners, faces, 0.2);
      return [Array.from(found.corners), Array.from(found.faces)];
    })()"""), dtype=object)  # fmt: skip
    corners, faces = np.reshape(rough[0], (-1, 3)).astype(float), np.reshape(rough[1], (-1, 3)).astype(int)
    assert np.abs(np.linalg.norm(corners, axis=1) - 1).max() < 0.1  # means of corners within a cell of 0.2
    assert len(faces) < 24 * 48 / 2
    assert (faces[:, 0] != faces[:, 1]).all()
    assert faces.max() == len(corners) - 1
    assert page.errors == []


def test_long_names_leave_room_for_the_robot(page, tmp_path):
    joint = cj.Joint.revolute((0, 1, 0), name="j" * 300)
    opened(page, tmp_path, cj.Robot("r" * 300, [cj.Link.solid("l" * 300, "base", joint, mass=1.0, com=(0, 0, 0.5), inertia=0.1)]))
    for name in page.run("coadjoint.sheets.map(x => x.name)"):
        page.run(f"coadjoint.open({name!r})")
        page.settle()
        assert page.run("document.documentElement.scrollWidth") <= 1280
        assert page.run("coadjoint.scene.canvas.clientWidth") < 1000
    page.run("coadjoint.open('State')")
    assert page.run("document.querySelector('.slider label').textContent") == "j" * 300


def test_two_switches_of_one_thing_agree(page, tmp_path):
    """The reactions are switched above the scene, and on the sheet of the forces."""
    opened(page, tmp_path, cj.load("planar2r"))
    page.run("coadjoint.open('Forces')")
    tool = "[...document.querySelectorAll('#tools button')].find((x) => x.textContent === 'reactions')"
    box = "document.querySelector('#sheets .check input')"
    for click, on in ((tool, True), (box, False), (box, True), (tool, False)):
        page.run(f"{click}.click()")
        assert page.run(f"[coadjoint.show.reactions, {tool}.ariaPressed === 'true', {box}.checked]") == [on] * 3


@pytest.mark.slow
def test_every_sheet_opens_without_error(page, tmp_path):
    opened(page, tmp_path, cj.load("planar2r"))
    names = page.run("coadjoint.sheets.map(x => x.name)")
    assert names == ["State", "Forces", "Inertia", "Frame", "Motion", "Model", "Equations"]
    for name in names:
        page.click(f"#tab-{name}")
        page.settle()
        assert page.run("document.getElementById('sheets').textContent.length") > 30
    assert page.run("document.querySelectorAll('#sheets math mtr').length") >= 6
    wide = "(x => x.getBoundingClientRect().width)(document.querySelector('#sheets {}'))"
    assert page.run(wide.format("math > mtable")) <= page.run(wide.format(".equations")) + 1  # nothing is beyond the edge
    page.size(390, 844)
    page.settle()
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.errors == []


@pytest.mark.slow
def test_a_fall_keeps_its_energy_and_is_that_of_the_library(page, tmp_path):
    robot = cj.load("panda")
    opened(page, tmp_path, robot)
    page.click("#tab-Motion")
    q = np.array(page.run("coadjoint.state.q"))
    page.click("#fall")
    page.wait("coadjoint.player.motion && coadjoint.player.motion.end > 0.25")
    page.run("coadjoint.player.stop()")
    time, states = page.run("[coadjoint.player.motion.time, coadjoint.player.motion.q]")
    motion = cj.simulate(robot, q, np.zeros(7), time[-1], tolerance=1e-12)
    np.testing.assert_allclose(np.array(states), motion(np.array(time))[0], atol=1e-7)
    assert page.errors == []


def test_a_falling_link_is_grabbed_and_thrown(page, tmp_path):
    robot = cj.load("planar2r").with_gravity((0.0, 0.0, 0.0))
    opened(page, tmp_path, robot)
    page.run("coadjoint.player.fall()")
    x, y = page.run("coadjoint.scene.camera.project([1.5, 0, 0], coadjoint.scene.canvas)")
    page.mouse("mouseMoved", x, y)
    page.mouse("mousePressed", x, y)
    page.mouse("mouseMoved", x + 20, y - 90, buttons=1)
    page.wait("coadjoint.state.pull && Math.hypot(...coadjoint.state.v) > 0.05")
    assert page.run("coadjoint.state.pull.link") == 1
    page.mouse("mouseReleased", x + 20, y - 90)
    page.settle()
    assert page.run("coadjoint.state.pull") is None
    first = page.run("coadjoint.player.motion.time.length")
    page.wait(f"coadjoint.player.motion.time.length > {first} + 12")
    page.run("coadjoint.player.stop()")
    q, v = (np.array(x)[first:] for x in page.run("[coadjoint.player.motion.q, coadjoint.player.motion.v]"))
    energy = cj.kinetic_energy(robot, q, v)
    assert energy[0] > 0  # thrown, it moves on with the energy that the hand gave
    assert np.ptp(energy) < 1e-6 * energy[0]
    assert page.errors == []


@pytest.mark.parametrize("kind", ["free", pytest.param("spherical", marks=pytest.mark.slow)])
def test_rotations_fall_as_in_the_library(page, tmp_path, kind):
    joint = getattr(cj.Joint, kind)()
    robot = cj.Robot("top", [cj.Link.solid("top", "base", joint, mass=1.0, com=(0, 0, 0.3), inertia=np.diag([0.01, 0.02, 0.025]))])
    opened(page, tmp_path, robot)
    v = np.linspace(1.0, 5.0, robot.nv)
    page.run(f"coadjoint.state.set({{ v: {v.tolist()} }}); coadjoint.player.fall()")
    page.wait("coadjoint.player.motion.end > 0.3")
    page.run("coadjoint.player.stop()")
    time, states = page.run("[coadjoint.player.motion.time, coadjoint.player.motion.q]")
    motion = cj.simulate(robot, robot.neutral(), v, time[-1], tolerance=1e-12)
    off = robot.difference(np.array(states), motion(np.array(time))[0])
    assert np.abs(off).max() < 1e-6
    assert page.errors == []


@pytest.mark.slow
def test_a_table_of_states_is_played(page, tmp_path):
    robot = cj.load("planar2r")
    motion = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], 1.0)
    motion.save(tmp_path / "motion.csv")
    opened(page, tmp_path, robot)
    text = (tmp_path / "motion.csv").read_text()
    page.run(f"coadjoint.player.table({json.dumps(text)}, 'motion.csv')")
    page.run("coadjoint.player.seek(0.5)")
    found = np.array(page.run("coadjoint.state.q"))
    np.testing.assert_allclose(found, motion(0.5)[0], atol=2e-3)
    for wrong, message in (
        ("time,x\n0,1\n", "no column q.joint1"),
        ("time,q1,q2\n0,1,a\n", "Row 2"),
        ("time,q1,q2\n0,1,1\n0,1,1\n", "increase"),
    ):
        page.run(f"coadjoint.player.table({json.dumps(wrong)}, 'wrong.csv')")
        assert message in page.run("coadjoint.player.error")
    assert page.errors == []


def test_a_motion_given_to_the_page_is_played_to_the_last_digit(page, tmp_path):
    robot = cj.load("planar2r")
    motion = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], 1.0)
    opened(page, tmp_path, robot, motion=motion)
    found = page.run("[coadjoint.player.motion.q, coadjoint.player.motion.v]")
    np.testing.assert_array_equal(np.array(found[0]), motion.q)
    np.testing.assert_array_equal(np.array(found[1]), motion.v)
    page.click("#play")
    page.wait("coadjoint.player.now > 0.1")
    assert page.errors == []


def test_what_is_copied_runs(page, tmp_path):
    opened(page, tmp_path, cj.load("panda"), source="cj.load('panda')")
    page.run("coadjoint.state.set({ v: coadjoint.state.v.map((_, k) => k / 7), wrench: [0, 0, 0, 1, 2, 3] })")
    for sheet in ("State", "Forces", "Inertia", "Frame"):
        page.click(f"#tab-{sheet}")
        page.click("#sheets .copy")
        page.wait("document.querySelector('#sheets .code, #sheets .copy[data-copied]')")
        code = page.run(
            "(document.querySelector('#sheets .code') ?? {}).value ?? document.querySelector('#sheets .copy').dataset.copied"
        )
        names = {}
        exec(code, names)
        if sheet == "Forces":
            np.testing.assert_allclose(names["tau"], page.run("coadjoint.state.tau"), rtol=1e-12, atol=1e-12)
        elif sheet == "Inertia":
            np.testing.assert_allclose(names["M"], page.run("coadjoint.state.mass"), rtol=1e-12, atol=1e-12)


# --- nothing else happens


def evil_robot():
    joint = cj.Joint.revolute(name=EVIL)
    follower = cj.Joint.revolute(name=EVIL + "2", mimic=cj.Mimic(EVIL, 2.0))
    links = [
        cj.Link.solid(EVIL, "base" + EVIL, joint, mass=1.0, com=(0.3, 0, 0), inertia=0.1),
        cj.Link(EVIL + "b", EVIL, follower, parameters=np.array([1.0, 0.1, 0, 0, -1.0, 0, 0, 1.0, 0, 1.0])),
    ]
    frame = cj.Frame("frame" + EVIL, EVIL, np.eye(4))
    return cj.Robot(EVIL, links, [frame], base="base" + EVIL, notes=[EVIL, "\u2028<!--<script>"])


@pytest.mark.parametrize("how", ["file", "notebook"])
def test_names_are_never_code(page, tmp_path, how):
    path = tmp_path / "evil.html"
    if how == "file":
        cj.report(evil_robot(), path, source=EVIL)
    else:
        path.write_text(f"<!doctype html><meta charset=utf-8>{evil_robot()._repr_html_()}", encoding="utf-8")
    if how == "file":
        page.open(path.as_uri())
        for name in page.run("coadjoint.sheets.map(x => x.name)"):
            page.run(f"coadjoint.open({name!r})")
            page.settle()
            assert page.run("document.querySelectorAll('img').length") == 0
        page.run("coadjoint.open('Model')")
        assert EVIL in page.run("document.getElementById('sheets').textContent")
        assert page.run("document.querySelector('h1').textContent") == EVIL
        assert page.run("document.scripts.length") == 3
    else:
        page.open(path.as_uri(), "document.querySelector('iframe')")
        page.settle()
    assert page.errors == []
    assert all(url.startswith(("file:", "about:", "data:,")) for url in page.requests), page.requests


def test_data_cannot_leave_its_element():
    text = as_json({"a": EVIL, "b": "<!-- & \u2028", "c": [1.5, None]})
    assert "<" not in text
    assert ">" not in text
    assert "&" not in text
    assert json.loads(text) == {"a": EVIL, "b": "<!-- & \u2028", "c": [1.5, None]}


def test_the_policy_permits_nothing_but_the_script_of_the_page(tmp_path):
    text = cj.report(cj.load("planar2r"))
    policy = unescape(text.partition('Content-Security-Policy" content="')[2].partition('"')[0])
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    assert "http:" not in text.replace("http://www.w3.org", "")


# --- what is refused, and what has no page


def test_wrong_names_are_refused_before_any_work(tmp_path):
    robot = cj.load("planar2r")
    with pytest.raises(cj.CoadjointError, match="a report is an HTML page"):
        cj.report(robot, tmp_path / "robot.pdf")
    with pytest.raises(cj.CoadjointError, match="does not exist"):
        cj.report(robot, tmp_path / "nowhere" / "robot.html")
    with pytest.raises(cj.CoadjointError, match="motion is 3; expected a Trajectory"):
        cj.report(robot, motion=3)
    with pytest.raises(cj.CoadjointError, match="source is None"):
        cj.report(robot, source=None)
    with pytest.raises(cj.CoadjointError, match="not of 'planar2r'"):
        cj.report(robot, motion=cj.simulate(cj.load("planar3r"), np.zeros(3), np.zeros(3), 0.1))


@pytest.mark.slow
def test_robots_without_freedoms_or_mass_have_a_page(page, tmp_path):
    stone = cj.Robot("stone", [cj.Link.solid("stone", "base", cj.Joint.fixed(), mass=1.0)])
    light = cj.Robot("light", [cj.Link("arm", "base", cj.Joint.revolute())])
    for robot in (stone, light, cj.Robot("nothing", [])):
        opened(page, tmp_path, robot)
        for name in page.run("coadjoint.sheets.map(x => x.name)"):
            page.run(f"coadjoint.open({name!r})")
            page.settle()
        assert page.errors == [], robot


def test_the_page_is_made_of_modules_that_need_each_other_in_order():
    text = bundle("page")
    assert "import " not in "\n".join(line for line in text.splitlines() if line.startswith("import"))
    assert text.index("modules.linear =") < text.index("modules.mechanism =") < text.index("modules.page =")


def test_robots_and_motions_show_their_page_in_notebooks():
    robot = cj.load("planar2r")
    motion = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], 0.2)
    for thing in (robot, motion):
        text = thing._repr_html_()
        assert text.startswith("<iframe")
        assert 'sandbox="allow-scripts allow-downloads"' in text
        assert "planar2r" in text
    batch = cj.simulate(robot, np.zeros((2, 2)), np.zeros((2, 2)), 0.1)
    assert batch._repr_html_() is None
    assert "<table>" in cj.Robot("nothing", [])._repr_html_()


def test_show_opens_the_page(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("webbrowser.open", seen.append)
    robot = cj.load("planar2r")
    path = cj.simulate(robot, [0.3, 0.2], [0.0, 0.0], 0.2).show(tmp_path / "motion.html")
    assert seen == [path.resolve().as_uri()]
    assert path.read_text().startswith("<!doctype html>")


# --- the pictures of the documentation


@pytest.mark.slow
def test_pictures_of_the_documentation(page, tmp_path):
    """Written to the folder that COADJOINT_PICTURES names."""
    folder = Path(os.environ.get("COADJOINT_PICTURES", tmp_path))
    opened(page, tmp_path, cj.load("panda"))
    page.size(1280, 760)
    page.run(
        "coadjoint.state.set({ q: [0.4, -0.5, 0.2, -1.9, 0.3, 1.9, 0.6], a: [1, 2, 0, 1, 0, 0, 0] }); coadjoint.open('Forces')"
    )
    page.run("coadjoint.show.set('ellipsoid', 'mobility')")
    page.settle()
    page.picture(folder / "report-panda.webp", "webp", quality=82)
    page.size(1280, 760, dark=True)
    page.run("coadjoint.show.set('ellipsoid', 'none'); coadjoint.show.set('reactions', true); coadjoint.scene.recolour()")
    page.settle()
    page.picture(folder / "report-dark.webp", "webp", quality=82)
    assert (folder / "report-panda.webp").stat().st_size > 10_000


# --- all robots of a package

WITHOUT_VISUALS = {"ur3.urdf", "simple_humanoid.urdf", "simple_humanoid_classical.urdf"}
"""They have no <visual>."""
OF_ANOTHER_INSTALLATION = {"romeo_laas_small.urdf"}
"""It names meshes that the package does not have."""


@pytest.mark.slow
@pytest.mark.skipif(not urdf_files(), reason="example-robot-data is not installed")
def test_every_example_robot_is_shown_with_its_meshes(recwarn):
    """Every link with a visual has triangles in the data that the page carries."""
    bare, partly = set(), set()
    for path in urdf_files().values():
        merged = cj.load(path).consolidated()
        parts, _ = visuals(merged, FEW_TRIANGLES)
        shown = {part["link"] for part in parts if part["faces"]}
        wanted = {merged.link_index(x.link) for x in merged.shapes if x.role == "visual"}
        assert shown <= wanted
        if not wanted:
            bare.add(path.name)
        elif shown < wanted:
            partly.add(path.name)
    assert len(urdf_files()) >= 69
    assert bare == WITHOUT_VISUALS
    assert partly == OF_ANOTHER_INSTALLATION
