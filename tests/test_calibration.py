"""Calibration returns what was disturbed, knows what it cannot see, and says how sure it is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.calibration.chain import chain, corrected
from coadjoint.errors import CoadjointError, LogWarning, ModelWarning, ShapeError, UnknownNameError
from coadjoint.lie import se3

DATA = Path(__file__).parents[2] / "shared" / "data"


def arm(joints: str = "rrr", seed: int = 0) -> cj.Robot:
    """A chain of revolute (r) and prismatic (p) joints with axes in all directions and a frame "tip"."""
    rng = np.random.default_rng(seed)
    links = []
    for k, kind in enumerate(joints):
        axis = rng.normal(size=3)
        joint = (cj.Joint.revolute if kind == "r" else cj.Joint.prismatic)(axis / np.linalg.norm(axis), name=f"j{k + 1}")
        M = np.asarray(se3.exp(rng.normal(size=6) * [0.5, 0.5, 0.5, 0.2, 0.2, 0.2]))
        links.append(cj.Link.solid(f"l{k + 1}", f"l{k}" if k else "base", joint, M, mass=1.0, com=(0.1, 0, 0.05), inertia=0.01))
    return cj.Robot("arm", links).with_frame("tip", f"l{len(joints)}", se3.exp(rng.normal(size=6) * 0.1))


def disturbed(robot: cj.Robot, size: float = 3e-3, seed: int = 1) -> cj.Robot:
    rng, c = np.random.default_rng(seed), chain(robot, "tip")
    eta = np.array([size * rng.normal(size=len(d)) @ d for d in c.directions])
    return corrected(c, eta, size * rng.normal(size=len(c.links)))


def some_pose(seed: int) -> np.ndarray:
    return np.asarray(se3.exp(np.random.default_rng(seed).normal(size=6)))


def axes_apart(robot: cj.Robot) -> np.ndarray:
    """What no choice of frames changes: the angle and the distance between the axes of neighbouring revolute joints."""
    S = np.asarray(cj.space_screws(robot, "tip")[0])
    w, p = S[:, :3], np.cross(S[:, :3], S[:, 3:])
    n = np.cross(w[1:], w[:-1])
    sine = np.linalg.norm(n, axis=1)
    return np.concatenate([sine, np.sum(n * (p[1:] - p[:-1]), axis=1) / sine])


# --- the disturbance comes back


@pytest.mark.parametrize("joints", ["rrrrrr", "rprr", "rrprrr"])
@pytest.mark.parametrize("kind", ["points", "one point", "poses"])
def test_a_disturbed_robot_is_found_again(joints, kind):
    """Without noise: predictions at other configurations to 1e-9, and what is between neighbouring axes."""
    robot = arm(joints)
    real, B, X = disturbed(robot), some_pose(2), some_pose(3)
    rng = np.random.default_rng(4)
    q, other = robot.random(rng, 80), robot.random(rng, 20)
    places = 0.3 * rng.normal(size=(1 if kind == "one point" else 3, 3))

    def measure(q):
        T = B @ cj.pose(real, q, "tip")
        return T @ X if kind == "poses" else places @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3]

    cal = cj.calibrate(robot, q, **{"poses" if kind == "poses" else "points": measure(q)}, terms=())
    assert cal.fit.converged
    np.testing.assert_allclose(cal.predict(other), measure(other), atol=1e-9)
    if "p" not in joints:
        np.testing.assert_allclose(axes_apart(cal.robot), axes_apart(real), atol=1e-8)
        assert np.abs(axes_apart(robot) - axes_apart(real)).max() > 1e-3


@pytest.mark.parametrize("joints", ["rr", "rrp", "ppp"])
@pytest.mark.parametrize("kind", ["points", "poses"])
def test_robots_whose_axes_are_parallel(joints, kind):
    """Rotations about one direction do not tell base and tool apart; places do, and no term is chosen for rounding."""
    links = []
    for k, letter in enumerate(joints):
        axis = np.eye(3)[k] if joints == "ppp" else [0, 0, 1]
        joint = (cj.Joint.revolute if letter == "r" else cj.Joint.prismatic)(axis, name=f"j{k + 1}")
        links.append(cj.Link.solid(f"l{k + 1}", f"l{k}" if k else "base", joint, np.asarray(se3.pose(np.eye(3), [0.4, 0, 0.1]))))
    robot = cj.Robot("parallel", links).with_frame("tip", links[-1].name, some_pose(1))
    real, B, X, rng = disturbed(robot), some_pose(2), some_pose(3), np.random.default_rng(4)
    q, other, places = rng.uniform(-2, 2, (60, len(joints))), rng.uniform(-2, 2, (20, len(joints))), 0.1 * rng.normal(size=(3, 3))

    def measure(q):
        T = B @ cj.pose(real, q, "tip")
        return T @ X if kind == "poses" else places @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3]

    cal = cj.calibrate(robot, q, **{kind: measure(q)})
    np.testing.assert_allclose(cal.predict(other), measure(other), atol=1e-9)
    assert cal.terms.groups == ("offset",)


def test_noise_chooses_no_terms():
    """Distances with noise, and nothing in the joints but offsets: what predicts better by chance is left out."""
    robot, found = arm("rrrr"), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q, anchors = robot.random(rng, 200), rng.normal(size=(1, 3))
        exact = np.linalg.norm(cj.pose(disturbed(robot, 1e-3), q, "tip")[:, None, :3, 3] - anchors, axis=2)
        found += cj.calibrate(robot, q, distances=exact + 1e-5 * rng.normal(size=exact.shape)).terms.groups[1:]
    assert len(found) <= 1


def test_terms_of_the_joints_are_found_again():
    """Scale, harmonics and deflection under gravity of a robot whose masses are not those described."""
    robot = arm("rrrr")
    real, B = disturbed(robot), some_pose(2)
    heavy = robot.with_inertial_parameters(robot.inertial_parameters * np.repeat([3.0, 0.5, 2.0, 4.0], 10))
    rng = np.random.default_rng(5)
    q, other = robot.random(rng, 150), robot.random(rng, 20)
    places = 0.3 * rng.normal(size=(3, 3))

    def measure(q):
        sagged = q + 1e-3 * q + 5e-4 * np.sin(q + 0.3) - 1e-5 * cj.gravity_force(heavy, q)
        T = B @ cj.pose(real, sagged, "tip")
        return places @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3]

    cal = cj.calibrate(robot, q, points=measure(q))
    assert {"scale", "harmonics 1", "compliance"} <= set(cal.terms.groups)
    np.testing.assert_allclose(cal.predict(other), measure(other), atol=2e-9)
    T = cal.base @ cj.pose(cal.robot, cal.correct(other), "tip")
    np.testing.assert_allclose(T, cal.pose(other), atol=1e-12)


def test_distances_and_planes():
    robot = arm("rrrr")
    real = disturbed(robot, 1e-3)
    rng = np.random.default_rng(6)
    q, other = robot.random(rng, 200), robot.random(rng, 10)
    place, anchors = np.array([0.02, -0.03, 0.05]), rng.normal(size=(3, 3))
    point = lambda robot, q: cj.pose(robot, q, "tip")[..., :3, :3] @ place + cj.pose(robot, q, "tip")[..., :3, 3]
    measure = lambda q: np.linalg.norm(point(real, q)[:, None] - anchors, axis=2)
    cal = cj.calibrate(robot, q, distances=measure(q), terms=())
    np.testing.assert_allclose(cal.predict(other), measure(other), atol=1e-9)
    # planes: configurations moved along the gradient until the real point touches
    normals, heights = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([0.1, -0.2, 0.15])
    which, x = np.arange(200) % 3, q.copy()
    for _ in range(60):
        gap = np.sum(point(real, x) * normals[which], axis=1) - heights[which]
        J = cj.jacobian(real, x, "tip", "space")
        J = J[:, 3:] - np.cross(point(real, x)[:, :, None], J[:, :3], axis=1)
        g = np.einsum("na,nai->ni", normals[which], J)
        x = x - np.clip(gap / np.sum(g * g, axis=1), -0.3, 0.3)[:, None] * g
    touching = np.abs(gap) < 1e-12
    assert touching.sum() > 120
    cal = cj.calibrate(robot, x[touching], planes=which[touching], terms=())
    np.testing.assert_allclose(cal.residuals, 0.0, atol=1e-9)


# --- what the choice of frames does not change, and what cannot be seen


def test_base_and_tool_frames_do_not_matter():
    robot, rng = arm("rrrr"), np.random.default_rng(7)
    real = disturbed(robot)
    q = robot.random(rng, 60)
    T = cj.pose(real, q, "tip") @ se3.exp(1e-4 * rng.normal(size=(60, 6)))
    results = [cj.calibrate(robot, q, poses=some_pose(k) @ T, terms=(), loss="squares") for k in (1, 2)]
    other = robot.random(rng, 10)
    moved = some_pose(1) @ se3.inverse(some_pose(2))
    np.testing.assert_allclose(moved @ results[1].predict(other), results[0].predict(other), atol=1e-9)
    np.testing.assert_allclose(results[0].fit.state.eta, results[1].fit.state.eta, atol=1e-9)


def test_what_cannot_be_seen_is_named_and_stays():
    """The last joint's offset with an unknown tool; the first one's with an unknown base; a joint that does not move."""
    robot, rng = arm("rrrr"), np.random.default_rng(8)
    q = robot.random(rng, 60)
    poses = cj.pose(disturbed(robot), q, "tip") @ se3.exp(1e-5 * rng.normal(size=(60, 6)))
    cal = cj.calibrate(robot, q, poses=poses, terms=())
    for name in ("j4 offset", "j1 offset", "j1 tilt 1", "j1 shift 2"):
        assert cal.parameters[name][1] == np.inf, name
        assert abs(cal.parameters[name][0]) < 1e-6
    # 4 n + 6 numbers are seen, of the 5 n + 12 that are fitted
    assert len(cal.unseen) == 5 * 4 + 12 - (4 * 4 + 6)
    assert any("j4 offset" in text for text in cal.unseen)
    with pytest.warns(LogWarning, match="joint 'j3' does not move"):
        still = cj.calibrate(robot, np.where(np.arange(4) == 2, 0.3, q), poses=poses, terms=())
    assert len(still.unseen) > len(cal.unseen)


def test_distances_alone_do_not_see_the_base():
    robot, rng = arm("rrr"), np.random.default_rng(9)
    q = robot.random(rng, 80)
    origin = cj.pose(robot, q, "tip")[:, :3, 3]
    cal = cj.calibrate(robot, q, distances=np.linalg.norm(origin[:, None] - rng.normal(size=(3, 3)), axis=2), terms=("scale",))
    np.testing.assert_array_equal(cal.base, np.eye(4))
    assert cal.parameters["j1 offset"][1] == np.inf


# --- how sure


def test_intervals_cover():
    """95 % intervals of predictions and of a parameter that is seen, in simulated fits with noise of Gauss."""
    robot, rng = arm("rrr"), np.random.default_rng(10)
    real = disturbed(robot, 1e-3)
    q, other = robot.random(rng, 40), robot.random(rng, 6)
    places = 0.2 * rng.normal(size=(3, 3))
    exact = lambda q: places @ np.swapaxes(cj.pose(real, q, "tip")[:, :3, :3], 1, 2) + cj.pose(real, q, "tip")[:, None, :3, 3]
    y, truth, inside = exact(q), exact(other), []
    for _ in range(50):
        cal = cj.calibrate(robot, q, points=y + 1e-4 * rng.normal(size=y.shape), terms=(), loss="squares")
        z = (cal.predict(other) - truth).reshape(6, 9) / cal.uncertainty(other)
        inside.append(np.abs(z) < 1.96)
    assert 0.90 < np.mean(inside) < 0.985


def test_outliers_count_little_and_are_said():
    robot, rng = arm("rrrr"), np.random.default_rng(11)
    real = disturbed(robot)
    q, other = robot.random(rng, 120), robot.random(rng, 20)
    T = cj.pose(real, q, "tip")
    y = T[:, None, :3, 3] + 1e-5 * rng.normal(size=(120, 1, 3)) + 0.1 * (T[:, None, :3, 0])
    wrong = rng.choice(120, 10, replace=False)
    y[wrong] += 0.02 * rng.normal(size=(10, 1, 3))
    robust, squares = (cj.calibrate(robot, q, points=y, terms=(), loss=loss) for loss in ("robust", "squares"))
    error = lambda cal: np.abs(
        cal.predict(other)[:, 0] - (lambda T: T[:, :3, 3] + 0.1 * T[:, :3, 0])(cj.pose(real, other, "tip"))
    ).max()
    assert error(robust) < 5e-5 < 5e-4 < error(squares)
    assert set(wrong) <= set(robust.outliers)
    assert "configurations are far off and count little" in str(robust)


def test_chosen_postures_tell_more_than_others():
    robot, rng = arm("rrrr"), np.random.default_rng(12)
    q, pool = robot.random(rng, 20) * 0.2, robot.random(rng, 200)
    measure = lambda q: cj.pose(robot, q, "tip")[:, None, :3, 3] + 0.2 * cj.pose(robot, q, "tip")[:, None, :3, 0]
    cal = cj.calibrate(robot, q, points=measure(q) + 1e-4 * rng.normal(size=(20, 1, 3)), terms=(), loss="squares")
    best = cal.next_postures(pool, 8)
    assert len(set(best)) == 8

    def information(rows):
        more = np.concatenate([q, pool[rows]])
        found = cj.calibrate(
            robot, more, points=measure(more) + 1e-4 * np.random.default_rng(0).normal(size=(28, 1, 3)), terms=(), loss="squares"
        )
        J = found.fit.jacobian.reshape(-1, found.fit.jacobian.shape[2]) / 1e-4
        return np.linalg.slogdet(J.T @ J + np.eye(J.shape[1]))[1]

    assert information(best) > 1.0 + max(information(rng.choice(200, 8, replace=False)) for _ in range(8))


# --- files and words


def test_a_calibrated_urdf_keeps_everything_else(tmp_path):
    robot = arm("rrr")
    cj.save(robot, tmp_path / "arm.urdf")
    text = (tmp_path / "arm.urdf").read_text().replace("<link", "<!-- kept --><link", 1)
    (tmp_path / "arm.urdf").write_text(text)
    loaded, rng = cj.load(tmp_path / "arm.urdf"), np.random.default_rng(13)
    q = loaded.random(rng, 60)
    frame = loaded.links[-1].name
    poses = cj.pose(disturbed(robot), q, robot.links[-1].name)
    cal = cj.calibrate(loaded, q, poses=poses, frame=frame, terms=())
    cal.write_urdf(tmp_path / "arm.urdf", tmp_path / "new.urdf")
    assert "<!-- kept -->" in (tmp_path / "new.urdf").read_text()
    back = cj.load(tmp_path / "new.urdf")
    np.testing.assert_allclose(cal.base @ cj.pose(back, q, frame) @ cal.tool, poses, atol=1e-9)
    np.testing.assert_allclose(cj.pose(back, q, frame), cj.pose(cal.robot, q, frame), atol=1e-12)
    cj.save(cal.robot, tmp_path / "new.xml")
    dh = cj.to_dh(*cj.space_screws(cal.robot, frame))
    assert dh is not None


def test_a_calibrated_mjcf_keeps_everything_else(tmp_path):
    """Bodies with Euler angles, a joint away from the body's origin, remarks and options: only poses of bodies change."""
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text("""<mujoco model="arm"><compiler angle="degree"/><option timestep="0.004"/>
      <worldbody><!-- <body pos="9 9 9"><joint name="j2"/></body> -->
        <body name="a" pos="0 0 0.3" euler="10 20 30"><joint name="j1" axis="0 0 1" pos="0.02 0 0.1"/><geom size="0.05"/>
          <body name="b" pos="0.2 0 0.1"><geom size="0.03"/>
            <joint name="j2" type="hinge" axis="0 1 0"/>
            <body name="c" pos="0.1 0.3 0" quat="0.9 0.1 0.3 0.2"><joint name="j3" axis="1 0 0.2"/><geom size="0.04" pos="0.1 0 0"/></body>
          </body>
        </body>
      </worldbody></mujoco>""")
    robot, rng = cj.load(tmp_path / "arm.xml"), np.random.default_rng(13)
    frame, q = robot.links[-1].name, rng.uniform(-1.5, 1.5, size=(60, 3))
    real = robot
    for link in robot.links:
        real = real.with_placement(link.name, link.placement @ np.asarray(se3.exp(2e-3 * rng.normal(size=6))))
    poses = cj.pose(real, q, frame)
    cal = cj.calibrate(robot, q, poses=poses, frame=frame, terms=())
    cal.write_mjcf(tmp_path / "arm.xml", tmp_path / "new.xml")
    text = (tmp_path / "new.xml").read_text()
    assert '<!-- <body pos="9 9 9"><joint name="j2"/></body> -->' in text
    assert 'timestep="0.004"' in text
    back = cj.load(tmp_path / "new.xml")
    np.testing.assert_allclose(cal.base @ cj.pose(back, q, frame) @ cal.tool, poses, atol=1e-8)
    np.testing.assert_allclose(cj.pose(back, q, frame), cj.pose(cal.robot, q, frame), atol=1e-12)
    (tmp_path / "other.xml").write_text((tmp_path / "arm.xml").read_text().replace("j3", "k3"))
    with pytest.raises(CoadjointError, match="no joint is named"):
        cal.write_mjcf(tmp_path / "other.xml", tmp_path / "x.xml")


def test_terms_without_a_place_in_a_file_are_told(tmp_path):
    """By name, and with the size that the written robot is off: against what was measured of a robot whose encoders have a scale."""
    pytest.importorskip("mujoco")
    robot, rng = arm("rrr"), np.random.default_rng(13)
    for name in ("arm.urdf", "arm.xml"):
        cj.save(robot, tmp_path / name)
    q = robot.random(rng, 60)
    for name, write in (("arm.urdf", "write_urdf"), ("arm.xml", "write_mjcf"), ("", "dh")):
        loaded = cj.load(tmp_path / (name or "arm.urdf"))
        frame = loaded.links[-1].name
        poses = cj.pose(disturbed(robot), 1.01 * q, robot.links[-1].name)
        cal = cj.calibrate(loaded, q, poses=poses, frame=frame, terms=("scale", "harmonics 1"))
        paths = (tmp_path / name, tmp_path / f"new_{name}") if name else ()
        with pytest.warns(ModelWarning, match="has no place for scale, harmonics 1, without which") as said:
            getattr(cal, write)(*paths)
        assert len(said) == 1
        mean, most, turned = (float(x) for x in re.findall(r"([\d.e+-]+) m(?:m|rad)", str(said[0].message)))
        back = cal.robot if write == "dh" else cj.load(paths[1])
        off = np.linalg.inv(cal.base @ cj.pose(back, q, frame) @ cal.tool) @ poses
        tool = np.linalg.norm((cal.base @ cj.pose(back, q, frame) - poses @ np.linalg.inv(cal.tool))[:, :3, 3], axis=1)
        assert mean > 1.0
        np.testing.assert_allclose([mean, most], [1e3 * tool.mean(), 1e3 * tool.max()], rtol=6e-3)
        np.testing.assert_allclose(turned, 1e3 * np.linalg.norm(se3.log(off)[:, :3], axis=1).mean(), rtol=6e-3)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_denavit_hartenberg_parameters_lose_nothing(convention):
    robot, rng = arm("rrrr"), np.random.default_rng(18)
    q = robot.random(rng, 60)
    cal = cj.calibrate(robot, q, poses=cj.pose(disturbed(robot), q, "tip"), terms=())
    dh = cal.dh(convention)
    screws, frames = cj.from_dh(dh.rows, convention, dh.kinds, dh.base)
    found = frames[-1] @ dh.tool
    for k in reversed(range(4)):
        found = se3.exp(screws[k] * q[:, k : k + 1]) @ found
    np.testing.assert_allclose(found, cj.pose(cal.robot, q, "tip"), atol=1e-9)


# --- cameras


def pictures(robot, q, B, X, intrinsics, board, on_hand):
    """Pixels (N, k, 2) by the formula, written again: one point at a time."""
    out = np.zeros((len(q), len(board), 2))
    for n, T in enumerate(B @ cj.pose(robot, q, "tip") @ X):
        C = np.linalg.inv(T) if on_hand else T
        for k, p in enumerate(board):
            x, y, z, _ = C @ np.array([*p, 0.0, 1.0])
            a, b = x / z, y / z
            s = 1 + intrinsics[4] * (a * a + b * b) + intrinsics[5] * (a * a + b * b) ** 2
            out[n, k] = intrinsics[0] * a * s + intrinsics[2], intrinsics[1] * b * s + intrinsics[3]
    return out


@pytest.mark.parametrize("on_hand", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_camera_and_a_board(on_hand, known):
    """Hand-eye pose, base, camera and joints from pixels: predictions at other configurations are exact."""
    robot, rng = arm("rrrr"), np.random.default_rng(19)
    real = disturbed(robot, 2e-3)
    board = np.stack(np.meshgrid(np.arange(5), np.arange(4)), axis=-1).reshape(-1, 2) * 0.03
    intrinsics = np.array([900.0, 880.0, 640.0, 360.0, *((0.0, 0.0) if known else (-0.1, 0.03))])
    q = 0.3 * rng.normal(size=(600, 4))
    middle = np.asarray(cj.pose(real, np.zeros(4), "tip"))
    X = np.asarray(se3.exp(np.array([0.2, -0.1, 0.3, 0.02, 0.03, 0.05])))
    centre = np.asarray(se3.pose(np.eye(3), np.array([0.06, 0.045, 0.0])))
    away = np.asarray(se3.pose(np.diag([1.0, -1.0, -1.0]), np.array([0.0, 0.0, 0.8])))
    # the base in the board's frame (a camera on the hand) or in the camera's, such that the camera looks at the board
    B = (centre @ away if on_hand else away @ np.linalg.inv(centre)) @ np.linalg.inv(middle @ X)
    seen = pictures(real, q, B, X, intrinsics, board, on_hand)
    inside = np.flatnonzero(((seen > 0) & (seen < [1280, 720])).all(axis=(1, 2)))[:90]
    q, seen = q[inside], seen[inside]
    assert len(q) == 90
    camera = np.array([[900.0, 0, 640], [0, 880, 360], [0, 0, 1]]) if known else None
    options = {"board": board, "camera": camera, "mounted": "hand" if on_hand else "fixed", "terms": ()}
    cal = cj.calibrate(robot, q[:80], corners=seen[:80], **options)
    assert cal.fit.converged
    np.testing.assert_allclose(cal.predict(q[80:]), seen[80:], atol=1e-5)
    np.testing.assert_allclose(cal.camera, [[900, 0, 640], [0, 880, 360], [0, 0, 1]], atol=1e-3)
    np.testing.assert_allclose(cal.distortion, intrinsics[4:], atol=1e-5)
    assert cal.predict(q[0]).shape == (20, 2)
    assert "px" in str(cal)
    noisy = cj.calibrate(robot, q, corners=seen + 0.2 * rng.normal(size=seen.shape), **options)
    assert np.mean(noisy.errors(noisy.held_back)) < 0.5
    assert noisy.uncertainty(q[:3]).shape == (3, 40)


def test_pose_intervals_cover():
    """Standard deviations of predicted poses, where base and tool are seen up to what the description fixes."""
    robot, rng = arm("rrr"), np.random.default_rng(20)
    real = disturbed(robot, 1e-3)
    q, other = robot.random(rng, 40), robot.random(rng, 6)
    exact, inside = cj.pose(real, q, "tip"), []
    for _ in range(20):
        cal = cj.calibrate(robot, q, poses=exact @ se3.exp(1e-4 * rng.normal(size=(40, 6))), terms=(), loss="squares")
        found = se3.log(se3.inverse(cal.predict(other)) @ cj.pose(real, other, "tip"))
        inside.append(np.abs(found) < 1.96 * cal.uncertainty(other))
        deviation = cal.pose_uncertainty(other)
        assert deviation.shape == (6, 6)
        assert np.all(np.isfinite(deviation) & (deviation > 0))
    assert 0.88 < np.mean(inside) < 0.99


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"board": None}, "without board="),
        ({"board": np.zeros((3, 2))}, r"board has shape \(3, 2\)"),
        ({"board": np.ones((6, 3))}, "not flat"),
        ({"board": np.arange(12.0).reshape(6, 2)}, "lie on a line"),
        ({"camera": np.eye(2)}, "expected the matrix"),
        ({"mounted": "ceiling"}, "mounted is 'ceiling'"),
        ({"corners": np.zeros((40, 3, 2))}, "at least four corners"),
    ],
)
def test_wrong_pictures_are_named(change, message):
    robot, rng = arm("rrr"), np.random.default_rng(21)
    options = {"corners": rng.uniform(0, 500, size=(40, 6, 2)), "board": rng.normal(size=(6, 2))} | change
    with pytest.raises((CoadjointError, ShapeError), match=message):
        cj.calibrate(robot, robot.random(rng, 40), **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x | {"frame": "hand"}, "no frame is named 'hand'"),
        (lambda x: x | {"q": x["q"][:, :2]}, r"q has shape \(60, 2\); expected \(N, 3\)"),
        (lambda x: x | {"q": x["q"][:2], "points": x["points"][:2]}, "2 configurations are too few for 3 joints; measure at least"),
        (lambda x: x | {"points": x["points"][:50]}, r"points has shape \(50, 2, 3\); q has 60 rows"),
        (lambda x: x | {"points": x["points"][..., :2]}, r"expected \(60, k, 3\)"),
        (lambda x: x | {"points": x["points"].reshape(60, 6)}, r"has shape \(60, 6\); .* points.reshape\(60, -1, 3\)"),
        (lambda x: x | {"points": None, "poses": np.tile(np.eye(4) + np.eye(4, k=-3), (60, 1, 1))}, "transposed"),
        (lambda x: x | {"points": np.where(np.arange(60)[:, None, None] == 7, np.nan, x["points"])}, "not finite in row 8"),
        (lambda x: x | {"poses": np.zeros((60, 4, 4))}, "points and poses is given; expected one"),
        (lambda x: x | {"points": None, "poses": np.zeros((60, 4, 4))}, "has no rotation"),
        (lambda x: x | {"points": None}, "nothing is given"),
        (lambda x: x | {"terms": ["backlash"]}, "terms has 'backlash'; choose among"),
        (lambda x: x | {"points": None, "planes": np.zeros(60)}, "whole numbers"),
        (lambda x: x | {"points": None, "planes": np.full(60, 10**9)}, "no contact is with plane 0, the last plane is 1000000000"),
        (lambda x: x | {"points": None, "planes": np.arange(60) // 57}, "plane 1 is touched 3 times"),
        (lambda x: x | {"loss": "huber"}, "loss is 'huber'"),
    ],
)
def test_wrong_input_is_named(change, message):
    robot, rng = arm("rrr"), np.random.default_rng(14)
    q = robot.random(rng, 60)
    points = cj.pose(robot, q, "tip")[:, None, :3, 3] + np.zeros((60, 2, 3))
    given = change({"q": q, "points": points, "frame": "tip"})
    with pytest.raises((CoadjointError, ShapeError, UnknownNameError), match=message):
        cj.calibrate(robot, given.pop("q"), **given)


def test_other_units_are_suspected():
    robot, rng = arm("rrrr"), np.random.default_rng(15)
    q = robot.random(rng, 60)
    points = cj.pose(robot, q, "tip")[:, None, :3, 3]
    with pytest.warns(LogWarning, match="suggests millimetres"):
        cj.calibrate(robot, q, points=1000 * points, terms=())
    with pytest.warns(LogWarning, match="suggests degrees"):
        cj.calibrate(robot, np.degrees(q), points=points, terms=())


def test_configurations_of_another_order_are_suspected():
    robot, rng = arm("rrrr"), np.random.default_rng(15)
    q = robot.random(rng, 60)
    T = cj.pose(robot, q, "tip")
    for given in ({"points": T[:, None, :3, 3]}, {"poses": T}):
        assert not cj.calibrate(robot, q, **given, terms=()).notes
        with pytest.warns(LogWarning, match="columns of q in the order of the joints"):
            cal = cj.calibrate(robot, q[:, [1, 0, 2, 3]], **given, terms=())
        assert "order of the joints" in str(cal)


@pytest.mark.parametrize("terms", [(), None])
def test_predictions_have_the_shape_of_configurations(terms):
    robot, rng = arm("rrrr"), np.random.default_rng(15)
    q, places = robot.random(rng, 60), rng.normal(size=(2, 3))
    T = cj.pose(robot, q, "tip")
    cal = cj.calibrate(robot, q, points=places @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3], terms=terms)
    for shape in ((), (0,), (1,), (3,), (2, 3), (0, 3)):
        x = rng.normal(size=(*shape, 4))
        assert cal.predict(x).shape == (*shape, 2, 3)
        assert cal.uncertainty(x).shape == (*shape, 6)
        assert cal.pose(x).shape == (*shape, 4, 4)
        assert cal.correct(x).shape == x.shape
    assert np.allclose(cal.predict(q[3]), cal.predict(q)[3], atol=1e-14)


def test_flat_postures_are_said():
    robot, rng = cj.load("planar2r"), np.random.default_rng(17)
    frame, q = robot.link_names[-1], robot.random(rng, 40)
    points = cj.pose(robot, q, frame)[:, None, :3, 3] + 0.1 * cj.pose(robot, q, frame)[:, None, :3, 0]
    with pytest.warns(LogWarning, match="lies in a plane"):
        cal = cj.calibrate(robot, q, points=points, frame=frame, terms=())
    assert any("lies in a plane" in note for note in cal.notes)


def test_a_robot_that_was_read_too_early_is_said():
    """Angles that were read up to 3 % before the end of each motion: errors lie along it. In another order of the rows nothing is said."""
    robot, rng = arm("rrrrrr"), np.random.default_rng(23)
    q = robot.random(rng, 120)
    early = q.copy()
    early[1:] -= 0.03 * rng.uniform(size=(119, 1)) ** 4 * np.diff(q, axis=0)
    T = np.asarray(cj.pose(disturbed(robot), q, "tip"))
    points = 0.1 * np.eye(3) @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3] + 1e-5 * rng.normal(size=(120, 3, 3))
    cal = cj.calibrate(robot, early, points=points, frame="tip", terms=())
    assert any("was q read before the robot stood still?" in note for note in cal.notes)
    order = rng.permutation(120)
    assert not cj.calibrate(robot, early[order], points=points[order], frame="tip", terms=()).notes
    assert not cj.calibrate(robot, q, points=points, frame="tip", terms=()).notes


# --- a real robot


def irb120() -> tuple[cj.Robot, np.ndarray, np.ndarray]:
    """The robot by its nominal geometry, joint angles, and three reflectors in metres."""
    if not DATA.is_dir():
        pytest.skip("no shared data here")
    axes = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]], dtype=float)
    origins = np.cumsum([(0, 0, 0), (0, 0, 0.29), (0, 0, 0.27), (0, 0, 0.07), (0.302, 0, 0), (0.072, 0, 0)], axis=0)
    frames = np.tile(np.eye(4), (6, 1, 1))
    frames[:, :3, 3] = origins
    screws = np.hstack([axes, -np.cross(axes, origins)])
    robot = cj.Robot.from_screws(screws, frames, np.ones(6), np.tile(0.01 * np.eye(3), (6, 1, 1)), tip=frames[-1])
    table = np.loadtxt(DATA / "irb120_calibration" / "measured.csv", delimiter=",", skiprows=1)
    return robot, np.radians(table[:, :6]), 1e-3 * table[:, 6:].reshape(-1, 3, 3)


@pytest.mark.slow
def test_a_real_robot_is_predicted_where_it_was_not_measured():
    """IRB 120 and a laser tracker: configurations held back."""
    robot, q, points = irb120()
    order, error = np.random.default_rng(3).permutation(500), np.zeros((500, 3))
    for k in range(5):
        test = order[k::5]
        train = np.setdiff1d(order, test)
        cal = cj.calibrate(robot, q[train], points=points[train], frame="tip")
        error[test] = np.linalg.norm(cal.predict(q[test]) - points[test], axis=2)
    assert np.mean(error) < 0.37e-3
    assert np.median(error) < 0.25e-3


def test_a_camera_on_a_hand():
    """Franka: the camera's poses are predicted better on configurations held back than by the robot as described."""
    if not DATA.is_dir():
        pytest.skip("no shared data here")
    data = np.load(DATA / "franka_calibration" / "measured.npz")
    robot = cj.load("panda")
    q = np.zeros((len(data["q"]), robot.nq))
    q[:, :7] = data["q"]
    frame = robot.links[6].name
    train, test = np.arange(114) % 3 != 0, np.arange(114) % 3 == 0
    cal = cj.calibrate(robot, q[train], poses=data["camera"][train], frame=frame)
    there = np.linalg.norm(cal.predict(q[test])[:, :3, 3] - data["camera"][test, :3, 3], axis=1)
    plain = cal.nominal_fit()
    before = np.linalg.norm(plain.predict(q[test])[:, :3, 3] - data["camera"][test, :3, 3], axis=1)
    assert np.median(there) < 0.8 * np.median(before)


def test_the_command(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    from coadjoint.cli import main

    robot, rng = arm("rrr"), np.random.default_rng(16)
    cj.save(robot, tmp_path / "arm.urdf")
    q, places = robot.random(rng, 60), 0.2 * rng.normal(size=(2, 3))
    T = cj.pose(disturbed(robot), q, "l3")
    points = places @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3] + 1e-5 * rng.normal(size=(60, 2, 3))
    header = ",".join([*(f"q{k}_deg" for k in (1, 2, 3)), *(f"{axis}{k}_mm" for k in (1, 2) for axis in "xyz")])
    np.savetxt(
        tmp_path / "log.csv", np.hstack([np.degrees(q), 1e3 * points.reshape(60, 6)]), delimiter=",", header=header, comments=""
    )
    paths = [str(tmp_path / x) for x in ("arm.urdf", "log.csv", "new.urdf", "cal.html")]
    assert main(["calibrate", *paths[:2], "--frame", "l3", "--out", paths[2], "--report", paths[3]]) == 0
    assert "held back  error [mm]" in capsys.readouterr().out
    assert "not seen" in (tmp_path / "cal.html").read_text()
    back = cj.load(paths[2])
    np.testing.assert_allclose(axes_apart(back), axes_apart(disturbed(robot)), atol=2e-4)
    np.savetxt(
        tmp_path / "log.csv",
        np.hstack([np.degrees(q) * 1.01, 1e3 * points.reshape(60, 6)]),
        delimiter=",",
        header=header,
        comments="",
    )
    assert main(["calibrate", *paths[:2], "--frame", "l3", "--out", paths[2]]) == 0
    assert re.search("it has no place for .*scale.*, without which it is .* mm off", capsys.readouterr().out)
    assert main(["calibrate", *paths[:2], "--frame", "l3", "--out", paths[2], "--terms", "none"]) == 0
    assert "no place" not in capsys.readouterr().out
    assert main(["calibrate", paths[0], paths[1], "--frame", "l9"]) == 1
    assert "no frame is named 'l9'" in capsys.readouterr().err
    (tmp_path / "bad.csv").write_text("q1,q2,q3,x1\n0,0,0,0\n")
    assert main(["calibrate", paths[0], str(tmp_path / "bad.csv")]) == 1
    assert "expected points x1, y1, z1" in capsys.readouterr().err


def test_the_command_takes_every_kind_of_measurement(tmp_path, capsys):
    from coadjoint.cli import main

    robot, rng = arm("rrr"), np.random.default_rng(16)
    cj.save(robot, tmp_path / "arm.urdf")
    q, anchors = robot.random(rng, 80), rng.normal(size=(2, 3))
    T = cj.pose(disturbed(robot), q, "l3")
    distances = np.linalg.norm(T[:, None, :3, 3] - anchors, axis=2)
    np.savetxt(tmp_path / "d.csv", np.hstack([q, 1e3 * distances]), delimiter=",", header="q1,q2,q3,d1_mm,d2_mm", comments="")
    np.savetxt(tmp_path / "p.csv", np.hstack([q, 0.5 + q[:, :1]]), delimiter=",", header="q1,q2,q3,plane", comments="")
    board, intrinsics = 0.05 * np.array([[0.0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]), np.array([800.0, 800, 320, 240, 0, 0])
    there = se3.pose(np.eye(3), [0, 0, 5.0]) @ se3.inverse(cj.pose(robot, q[:1], "l3")[0])  # the board, seen from afar
    facing = np.array([x for x in q if np.abs(cj.pose(robot, x, "l3")[:3, 3]).max() < 1.0])
    back = np.linalg.inv(cj.pose(robot, q[0], "tip")) @ cj.pose(robot, q[0], "l3")
    pixels = pictures(robot, facing, there, back, intrinsics, board, False)
    matrix = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
    np.savez(tmp_path / "c.npz", q=facing, corners=pixels, board=board, camera=matrix)
    np.savez(tmp_path / "two.npz", q=q, poses=T, distances=distances)
    for name, said in {"d.csv": "80 configurations, distances", "c.npz": f"{len(facing)} configurations, corners"}.items():
        mounted = ["--mounted", "fixed"] if name == "c.npz" else []
        assert main(["calibrate", str(tmp_path / "arm.urdf"), str(tmp_path / name), "--frame", "l3", *mounted]) == 0
        assert said in capsys.readouterr().out
    for name, said in {
        "p.csv": "a number that is not whole",
        "two.npz": "expected one of the arrays 'points', 'poses', 'distances'",
    }.items():
        assert main(["calibrate", str(tmp_path / "arm.urdf"), str(tmp_path / name), "--frame", "l3"]) == 1
        assert said in capsys.readouterr().err
