"""All solutions in closed form: each reaches the pose, none is missing, and arms are known by their axes."""

from __future__ import annotations

import importlib.metadata
import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import ModelWarning
from coadjoint.kinematics.closed_form import recognise
from coadjoint.kinematics.exponentials import space_screws
from coadjoint.lie import se3

try:
    UR = [
        Path(str(f.locate()))
        for f in distribution("example-robot-data").files or []
        if f.match("ur_description/urdf/ur*_robot.urdf")
    ]
except PackageNotFoundError:
    UR = []
both_ways = pytest.mark.parametrize("native", [pytest.param(True, marks=pytest.mark.native), False])


def apart(q, other):
    """The largest angle between the angles of configurations."""
    return np.abs(np.angle(np.exp(1j * (q - other)))).max(-1)


def arm(axes, points, tip=None):
    """A 6R arm by directions of its axes and points on them."""
    w = np.array(axes, dtype=float)
    w /= np.linalg.norm(w, axis=-1, keepdims=True)
    screws = np.concatenate([w, np.cross(np.array(points, dtype=float), w)], axis=-1)
    end = se3.exp(np.array([0.3, 0.2, -0.4, 0.9, 0.3, 0.2])) if tip is None else tip
    return cj.Robot.from_screws(screws, np.tile(np.eye(4), (6, 1, 1)), np.ones(6), np.tile(np.eye(3), (6, 1, 1)), tip=end)


def wrist(rng, first):
    """A spherical wrist with axes at any angles behind three axes (directions, points)."""
    axes, points = first
    centre = rng.normal(size=3)
    three = rng.normal(size=(3, 3))
    three[1] -= (
        three[0] * (three[0] @ three[1]) / (three[0] @ three[0])
    )  # 4 across 5, and 6 across 5: every rotation can be reached
    three[2] -= three[1] * (three[1] @ three[2]) / (three[1] @ three[1])
    return arm([*axes, *three], [*points, *(centre + rng.normal() * x for x in three)])


def arms(rng):
    """An arm of every kind that has a closed form, with random sizes."""
    x, y, z = rng.normal(size=(3, 3))
    a, b, c = rng.normal(size=(3, 3))
    return {
        "wrist, 2 ∥ 3": wrist(rng, ([x, y, -y], [a, b, c])),
        "wrist, 1 ∥ 2": wrist(rng, ([x, x, y], [a, b, c])),
        "wrist, 1 meets 2": wrist(rng, ([x, y, z], [a + x, a - y, c])),
        "wrist, 2 meets 3": wrist(rng, ([x, y, z], [a, b + y, b - z])),
        "three parallel": arm([x, y, y, -y, z, rng.normal(size=3)], [a, b, c, rng.normal(size=3), a - b, a - b]),
    }


@pytest.mark.native
@pytest.mark.parametrize(("name", "kind"), [("ur5e", "three parallel"), ("puma560", "wrist, 2 ∥ 3")])
def test_ten_thousand_poses(name, kind):
    """100 %: every solution reaches its pose to 1e-9, and the configuration that made it is among them, within the limits."""
    robot = cj.load(name)
    assert recognise(robot, "tip").kind == kind
    q = robot.random(1, 10_000)
    T = cj.pose(robot, q, "tip")
    for limits in (True, False):
        found = cj.inverse_kinematics_solutions(robot, T, "tip", limits=limits)
        assert found.q.shape == (10_000, 8, 6)
        assert found.count.min() >= 1
        assert np.nanmin(apart(found.q, q[:, None]), axis=-1).max() < 1e-6
        reached = cj.pose(robot, found.q[found.valid], "tip")
        wanted = np.broadcast_to(T[:, None], (10_000, 8, 4, 4))[found.valid]
        assert np.abs(reached - wanted).max() < 1e-9
        assert np.all(np.isnan(found.q[~found.valid]))
        if limits:
            inside = found.q[found.valid]
            assert np.all((inside >= robot.lower) & (inside <= robot.upper))
    pin = pytest.importorskip("pinocchio")
    model = cj.interop.pinocchio.to_pinocchio(robot)
    data, frame = model.createData(), model.getFrameId("tip")
    for k in range(0, 10_000, 1000):
        for solution in found.of(k):
            pin.framesForwardKinematics(model, data, solution)
            assert np.abs(data.oMf[frame].homogeneous - T[k]).max() < 1e-9


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(0, marks=[pytest.mark.native, pytest.mark.slow], id="native")]
)
def test_every_kind_of_arm(seed):
    """With random axes: the configuration that made a pose is found, all solutions reach it, and they are distinct."""
    rng = np.random.default_rng(seed)
    for kind, robot in arms(rng).items():
        assert recognise(robot, "tip").kind == kind
        q = rng.uniform(-np.pi, np.pi, (200, 6))
        T = cj.pose(robot, q, "tip")
        found = cj.inverse_kinematics_solutions(robot, T, "tip")
        assert np.nanmin(apart(found.q, q[:, None]), axis=-1).max() < 1e-5, kind
        wanted = np.broadcast_to(T[:, None], (200, 8, 4, 4))[found.valid]
        assert np.abs(cj.pose(robot, found.q[found.valid], "tip") - wanted).max() < 1e-8, kind
        assert np.mean([len(found.of(k)) == found.count[k] for k in range(200)]) > 0.95


def rounded(robot, rng, by):
    """The robot with every axis moved at random, by so many radians and metres."""
    screws, home = space_screws(robot, "tip")
    screws = np.array([se3.Ad_act(se3.exp(by * rng.uniform(-1, 1, 6)), screw) for screw in screws])
    return cj.Robot.from_screws(screws, np.tile(np.eye(4), (6, 1, 1)), np.ones(6), np.tile(np.eye(3), (6, 1, 1)), tip=home)


@pytest.mark.parametrize(
    "by", [1e-12, pytest.param(1e-10, marks=pytest.mark.slow), pytest.param(3e-8, marks=pytest.mark.slow), 4e-6]
)
def test_axes_that_are_rounded_are_recognised(by):
    """As π/2 written 1.5707963 or 1.5708 makes them: every pose is solved, and solutions are those of the robot, not of the ideal one."""
    rng = np.random.default_rng(0)
    for kind, ideal in arms(rng).items():
        robot = rounded(ideal, rng, by)
        assert recognise(robot, "tip").kind == kind
        q = rng.uniform(-np.pi, np.pi, (100, 6))
        T = cj.pose(robot, q, "tip")
        found = cj.inverse_kinematics_solutions(robot, T, "tip")
        assert found.count.min() >= 1
        wanted = np.broadcast_to(T[:, None], (100, 8, 4, 4))[found.valid]
        assert np.abs(cj.pose(robot, found.q[found.valid], "tip") - wanted).max() < 1e-9
        regular = np.linalg.svd(cj.jacobian(robot, q, "tip"), compute_uv=False)[:, -1] > 2e-2
        assert regular.mean() > 0.3
        assert np.nanmin(apart(found.q, q[:, None]), axis=-1)[regular].max() < 1e-8


def test_axes_that_are_not_nearly_parallel_are_not_taken_for_such():
    rng = np.random.default_rng(0)
    robot = rounded(arms(rng)["three parallel"], rng, 1e-3)
    with pytest.raises(cj.CoadjointError, match="nor are axes 2, 3, 4 parallel"):
        recognise(robot, "tip")


@pytest.mark.native
@pytest.mark.parametrize("path", UR, ids=lambda path: path.stem)
def test_universal_robots_as_their_files_write_them(path):
    """π/2 is 1.57079632679 there: every pose is solved, the configuration that made it among the solutions."""
    robot = cj.load(path)
    q = robot.random(0, 1000)
    T = cj.pose(robot, q, "tool0")
    found = cj.inverse_kinematics_solutions(robot, T, "tool0")
    assert np.nanmin(apart(found.q, q[:, None]), axis=-1).max() < 1e-6
    wanted = np.broadcast_to(T[:, None], (1000, 8, 4, 4))[found.valid]
    assert np.abs(cj.pose(robot, found.q[found.valid], "tool0") - wanted).max() < 1e-9


@pytest.mark.native
def test_no_solution_is_missing():
    """What Newton's method finds from many starts is what the closed form has, and no more."""
    robot = cj.load("ur5e")
    rng = np.random.default_rng(3)
    for T in cj.pose(robot, robot.random(rng, 3), "tip"):
        all_of_them = cj.inverse_kinematics_solutions(robot, T, "tip").of()
        numerical = cj.inverse_kinematics(robot, np.broadcast_to(T, (150, 4, 4)), "tip", q0=robot.random(rng, 150), starts=1)
        nearest = apart(numerical.q[numerical.success][:, None], all_of_them)
        assert nearest.min(-1).max() < 1e-6
        assert set(nearest.argmin(-1)) == set(range(len(all_of_them)))


@pytest.mark.native
def test_native_is_as_written(monkeypatch):
    robot = cj.load("puma560")
    T = cj.pose(robot, robot.random(5, 30), "tip")
    native = cj.inverse_kinematics_solutions(robot, T, "tip")
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    written = cj.inverse_kinematics_solutions(cj.load("puma560"), T, "tip")
    assert np.array_equal(native.valid, written.valid)
    assert np.abs(native.q - written.q)[native.valid].max() < 1e-9


# Where solutions fall together, or are too many


@pytest.mark.native
@pytest.mark.parametrize("name", ["ur5e", "puma560"])
def test_nowhere_near_a_singularity_a_pose_is_missed(name):
    """Stretched, straight and folded arms, exactly, nearly and all at once: every pose has a solution, and all reach it."""
    robot = cj.load(name)
    rng = np.random.default_rng(2)
    q = rng.uniform(-np.pi, np.pi, (20_000, 6))
    special = rng.random(q.shape) < 0.4
    near = [0.0, np.pi / 2, -np.pi / 2, np.pi, 1e-12, 1e-9, 1e-7, 1e-6, -1e-5, 1e-3, np.pi - 1e-7, np.pi / 2 + 1e-8]
    q[special] = rng.choice(near, special.sum())
    T = cj.pose(robot, q, "tip")
    found = cj.inverse_kinematics_solutions(robot, T, "tip", limits=False)
    assert found.count.min() >= 1
    wanted = np.broadcast_to(T[:, None], (*found.valid.shape, 4, 4))[found.valid]
    assert np.abs(cj.pose(robot, found.q[found.valid], "tip") - wanted).max() <= 1.01e-9
    regular = np.linalg.svd(cj.jacobian(robot, q, "tip"), compute_uv=False)[:, -1] > 1e-6
    assert 0.3 < regular.mean() < 0.9
    assert np.nanmin(apart(found.q[regular], q[regular][:, None]), axis=-1).max() < 1e-3


@both_ways
def test_a_straight_wrist(native):
    """q₄ and q₆ turn about one axis: of the line of solutions one is given, and it reaches the pose."""
    for name, straight, joint in (("puma560", (0.3, 0.9, -0.4, 0.7, 0.0, -0.2), 4), ("ur5e", (0.3, -0.9, 1.4, 0.7, 0.0, -0.2), 4)):
        robot = cj.load(name)
        T = cj.pose(robot, straight, "tip")
        found = cj.inverse_kinematics_solutions(robot, T, "tip").of()
        assert len(found)
        assert np.abs(cj.pose(robot, found, "tip") - T).max() < 1e-9
        bent = np.abs(np.sin(found[:, joint]))
        assert bent.min() < 1e-6


@both_ways
def test_a_stretched_arm(native):
    """Elbow up and elbow down fall together; close by they are two."""
    robot = cj.load("ur5e")
    for elbow in (0.0, 1e-9, 1e-5, 1e-3):
        q = np.array([0.4, -1.1, elbow, -0.6, 0.8, 0.2])
        T = cj.pose(robot, q, "tip")
        found = cj.inverse_kinematics_solutions(robot, T, "tip").of()
        assert np.abs(cj.pose(robot, found, "tip") - T).max() < 1e-9
        assert apart(found, q).min() < 1e-7 + 1e-15 / max(elbow, 1e-9)
        assert (apart(found, q) < 5e-3).sum() == (2 if elbow >= 1e-5 else 1)


@both_ways
def test_the_wrist_over_the_shoulder(native):
    """An arm without an offset whose wrist is on the first axis: the first angle may be any."""
    _, y, z = np.eye(3)
    robot = arm([z, y, y, z, y, z], [0 * z, z, 2 * z, 3 * z, 3 * z, 3 * z], tip=se3.exp(np.array([0, 0, 0, 0, 0, 3.2])))
    q = np.array([0.5, 0.7, -1.4, 0.3, 0.9, 0.1])
    q[2] = -2 * q[1]  # an isosceles triangle: the wrist is over the shoulder
    T = cj.pose(robot, q, "tip")
    assert np.abs((T @ [0, 0, -0.2, 1])[:2]).max() < 1e-12
    found = cj.inverse_kinematics_solutions(robot, T, "tip").of()
    assert len(found)
    assert np.abs(cj.pose(robot, found, "tip") - T).max() < 1e-9


def test_out_of_reach_there_is_none():
    robot = cj.load("ur5e")
    T = cj.pose(robot, np.zeros((2, 6)) + 0.3, "tip")
    T[1, :3, 3] *= 10
    found = cj.inverse_kinematics_solutions(robot, T, "tip")
    assert found.count[0] > 0
    assert found.count[1] == 0
    assert found.of(1).shape == (0, 6)


# Limits and turns


@both_ways
def test_whole_turns_within_the_limits(native):
    robot = cj.load("ur5e")
    T = cj.pose(robot, robot.random(6), "tip")
    found = cj.inverse_kinematics_solutions(robot, T, "tip")
    once, turns = found.of(), found.of(turns=True)
    assert len(turns) == 64 * len(once)  # ±2π: every angle twice
    assert len(np.unique(turns.round(6), axis=0)) == len(turns)
    assert np.all((turns >= robot.lower) & (turns <= robot.upper))
    assert np.abs(cj.pose(robot, turns, "tip") - T).max() < 1e-9


def test_limits_choose_the_turn_that_is_allowed():
    """A joint that goes from 200° to 500° is solved there; limits that leave no turn leave no solution."""
    robot = cj.load("ur5e").with_joint("wrist_3", lower=np.radians(200), upper=np.radians(500))
    q = np.array([0.3, -0.9, 1.4, 0.7, 0.5, np.radians(400)])
    T = cj.pose(robot, q, "tip")
    found = cj.inverse_kinematics_solutions(robot, T, "tip")
    assert np.abs(found.of() - q).max(-1).min() < 1e-9
    narrow = cj.load("ur5e").with_joint("wrist_3", lower=0.0, upper=0.1)
    assert cj.inverse_kinematics_solutions(narrow, T, "tip").count == 0


def test_other_joints_stay_at_home():
    """An arm on a body with a second arm: the six joints of its own path from the base are solved for."""
    robot = cj.load("ur5e").attach(cj.load("planar2r"), "base", prefix="other_")
    q = robot.random(9)
    T = cj.pose(robot, q, "tip")
    found = cj.inverse_kinematics_solutions(robot, T, "tip")
    assert found.q.shape == (8, 8)
    assert np.all(found.of()[:, 6:] == 0.0)
    assert np.abs(cj.pose(robot, found.of(), "tip") - T).max() < 1e-9


# Bad input


def test_an_arm_without_a_closed_form_is_reported_why():
    rng = np.random.default_rng(0)
    general = wrist(rng, (rng.normal(size=(3, 3)), rng.normal(size=(3, 3))))
    for robot, message in (
        (cj.load("panda"), "six revolute joints, and on its path are joint1"),
        (cj.load("scara"), r"joint3 \(prismatic\)"),
        (general, "of axes 1, 2, 3 no neighbours are parallel or meet, which makes it an equation of degree four"),
        (arm(rng.normal(size=(6, 3)), rng.normal(size=(6, 3))), "neither do axes 4, 5, 6"),
    ):
        with pytest.raises(cj.CoadjointError, match=f"no closed form.*{message}.*`inverse_kinematics`"):
            cj.inverse_kinematics_solutions(robot, np.eye(4), "tip")


def test_errors():
    robot = cj.load("ur5e")
    T = np.eye(4)
    for args, options, message in (
        ((T, "tipp"), {}, "no frame is named 'tipp'"),
        ((T[:3, 3], "tip"), {}, "is a position; closed forms need poses"),
        ((2 * T, "tip"), {}, "is no rigid motion"),
        ((T, "tip"), {"tolerance": 1.0}, "tolerance is 1.0"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            cj.inverse_kinematics_solutions(robot, *args, **options)
    found = cj.inverse_kinematics_solutions(robot, np.tile(T, (3, 1, 1)), "tip")
    with pytest.raises(cj.CoadjointError, match="give 1 numbers"):
        found.of()


def test_joints_beside_the_arm_stay_within_their_limits():
    """A finger behind the frame stays where its limits are nearest to home; what is no solution is nan throughout."""
    finger = cj.Link.solid("finger", "base", cj.Joint.prismatic((0, 0, 1), name="grip", lower=0.01, upper=0.05), mass=0.1)
    robot = cj.load("puma560").attach(cj.Robot("hand", [finger]), "tip")
    found = cj.inverse_kinematics_solutions(robot, cj.pose(robot, robot.random(0, 5), "tip"), "tip")
    assert found.q.shape == (5, 8, 7)
    assert np.all(found.q[found.valid][:, 6] == 0.01)
    assert not found.valid.all()
    assert np.all(np.isnan(found.q[~found.valid]))


@pytest.mark.native
@pytest.mark.parametrize("name", ["ur3_robot", "ur5_robot", "ur10_robot", "ur5_joint_limited_robot"])
def test_files_that_write_right_angles_by_hand(name):
    """The files of Universal Robots have 1.57079632679 for π/2: sums cancel only nearly."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    path = next(str(f.locate()) for f in files if f.name == f"{name}.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = cj.load(path)
    q = robot.random(np.random.default_rng(0), 500)
    T = cj.pose(robot, q, "tool0")
    found = cj.inverse_kinematics_solutions(robot, T, "tool0")
    assert found.valid.any(-1).all()
    reached = cj.pose(robot, np.where(found.valid[..., None], found.q, 0.0), "tool0")
    error = np.abs(reached - T[:, None]).max((-2, -1))
    assert error[found.valid].max() < 1e-8
