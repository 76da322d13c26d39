"""Numerical inverse kinematics: targets reached, limits kept, and the nearest pose where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.lie import se3, so3
from coadjoint.robot import zoo
from random_robots import random_robot

NATIVE = [pytest.param(True, marks=pytest.mark.native), False]
both_ways = pytest.mark.parametrize("native", NATIVE)


def apart(T, other):
    """Angle and distance between poses."""
    w = so3.log(np.swapaxes(T[..., :3, :3], -1, -2) @ other[..., :3, :3])
    return np.linalg.norm(w, axis=-1), np.linalg.norm(T[..., :3, 3] - other[..., :3, 3], axis=-1)


def within(robot, q):
    return bool(np.all(q >= robot.lower) and np.all(q <= robot.upper))


# Targets within reach


@pytest.mark.native
@pytest.mark.parametrize("name", ["panda", "ur5e", "puma560"])
def test_ten_thousand_poses(name):
    """Every reachable pose to 1e-9, within the limits; the poses of what is found by Pinocchio as well."""
    robot = cj.load(name)
    T = cj.pose(robot, robot.random(1, 10_000), "tip")
    found = cj.inverse_kinematics(robot, T, "tip")
    assert found.success.mean() >= 0.999
    angle, distance = apart(cj.pose(robot, found.q, "tip"), T)
    assert angle[found.success].max() <= 1.01e-9
    assert distance[found.success].max() <= 1.01e-9
    assert within(robot, found.q)
    pin = pytest.importorskip("pinocchio")
    model = cj.interop.pinocchio.to_pinocchio(robot)
    data, frame = model.createData(), model.getFrameId("tip")
    for k in range(0, 10_000, 500):
        pin.framesForwardKinematics(model, data, found.q[k])
        assert np.abs(data.oMf[frame].homogeneous - T[k]).max() < 2e-9


@both_ways
def test_random_robots_reach_what_they_reached(native):
    """Chains and trees of every kind of joint, free bases too."""
    kinds_of_joints = [("free", "revolute"), ("revolute", "prismatic"), ("revolute", "spherical"), ("planar", "helical")]
    for seed, kinds in enumerate(kinds_of_joints[: 1 if native else None]):
        robot = random_robot(np.random.default_rng(seed), 5, kinds, tree=False)
        frame = robot.link_names[-1]
        T = cj.pose(robot, robot.random(seed, (2, 3)), frame)
        found = cj.inverse_kinematics(robot, T, frame)
        assert found.q.shape == (2, 3, robot.nq)
        assert found.success.all()
        assert np.abs(cj.pose(robot, found.q, frame) - T).max() < 1e-8
        assert np.abs(found.pose - cj.pose(robot, found.q, frame)).max() < 1e-12


@both_ways
def test_planar_arm_by_the_textbook(native):
    """θ₂ = ± arccos((r² - l₁² - l₂²) / 2 l₁ l₂), θ₁ = atan2(y, x) - atan2(l₂ sin θ₂, l₁ + l₂ cos θ₂)."""
    robot = zoo.make("planar2r", lengths=(1.0, 0.7))
    rng = np.random.default_rng(0)
    r, angle = rng.uniform(0.35, 1.65, 40), rng.uniform(-np.pi, np.pi, 40)
    xy = np.stack([r * np.cos(angle), r * np.sin(angle), 0 * r], axis=-1)
    found = cj.inverse_kinematics(robot, xy, "tip")
    assert found.success.all()
    elbow = np.arccos((r**2 - 1.49) / 1.4) * np.sign(np.sin(found.q[:, 1]))
    shoulder = angle - np.arctan2(0.7 * np.sin(elbow), 1 + 0.7 * np.cos(elbow))
    assert np.abs(np.exp(1j * found.q) - np.exp(1j * np.stack([shoulder, elbow], axis=-1))).max() < 1e-7


@both_ways
def test_a_target_far_away(native):
    """A body that floats freely goes a hundred metres from any start."""
    robot = cj.load("floating_body")
    T = se3.exp(np.random.default_rng(0).normal(size=(10, 6)) * [1, 1, 1, 100, 100, 100])
    found = cj.inverse_kinematics(robot, T, robot.link_names[-1], tolerance=1e-8)
    assert found.success.all()
    assert found.starts.max() <= 3
    assert np.abs(found.pose - T).max() < 2e-8


@both_ways
def test_a_start_near_the_solution_leads_to_it(native):
    robot = cj.load("ur5e")
    q = robot.random(3, 20) / 2
    found = cj.inverse_kinematics(robot, cj.pose(robot, q, "tip"), "tip", q0=q + 1e-3)
    assert found.success.all()
    assert np.all(found.starts == 1)
    assert np.median(np.abs(found.q - q).max(-1)) < 1e-8


def test_the_same_seed_finds_the_same():
    robot = cj.load("puma560")
    T = cj.pose(robot, robot.random(4, 5), "tip")
    first, second, other = (cj.inverse_kinematics(robot, T, "tip", seed=seed).q for seed in (0, 0, 1))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.native
def test_native_is_as_written(monkeypatch):
    robot = cj.load("panda")
    T = cj.pose(robot, robot.random(5, 30), "tip")
    native = cj.inverse_kinematics(robot, T, "tip", starts=1)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    written = cj.inverse_kinematics(cj.load("panda"), T, "tip", starts=1)
    assert np.array_equal(native.success, written.success)
    assert np.abs(native.q - written.q)[native.success].max() < 1e-7


@pytest.mark.native
def test_steps_run_in_the_kernel(monkeypatch):
    from coadjoint.kernel.runtime.function import CompiledFunction

    calls = []
    steps = CompiledFunction.steps
    monkeypatch.setattr(CompiledFunction, "steps", lambda self, *args: calls.append(args[1][0].shape[1]) or steps(self, *args))
    robot = cj.load("ur5e")
    cj.inverse_kinematics(robot, cj.pose(robot, robot.random(6, 3000), "tip"), "tip", starts=1)
    assert calls[:3] == [8, 4, 4]
    assert len(calls) <= 3 * 3 + 10


# Chosen rows, weights, several targets


@both_ways
@pytest.mark.parametrize("rows", [(3, 4, 5), (0, 1, 2), (0, 1, 3, 4, 5), (3, 5), (2, 4)])
def test_chosen_rows_are_reached_and_no_others(native, rows):
    robot = cj.load("ur5e")
    T = cj.pose(robot, robot.random(7, 10), "tip")
    found = cj.inverse_kinematics(robot, T, "tip", rows=rows)
    assert found.success.all()
    w = so3.log(np.swapaxes(found.pose[:, :3, :3], -1, -2) @ T[:, :3, :3])
    d = (np.swapaxes(T[:, :3, :3], -1, -2) @ (T[:, :3, 3] - found.pose[:, :3, 3])[..., None])[..., 0]
    difference = np.concatenate([w, d], axis=-1)
    others = [k for k in range(6) if k not in rows]
    assert np.abs(difference[:, rows]).max() < 1.1e-9
    assert np.all(np.abs(difference[:, others]).max(-1) > 1e-4)


@both_ways
def test_two_hands_and_a_base_that_stays(native):
    """Several frames of a tree together, one by its position only; what is not moved by them stays at q0."""
    arm = cj.load("planar3r")
    body = cj.Robot("body", [cj.Link.solid("trunk", "base", cj.Joint.revolute(name="waist"), mass=1.0)])
    lift = np.eye(4)
    lift[1, 3] = 0.2
    robot = body.attach(arm, "trunk", lift, prefix="left_").attach(arm, "trunk", prefix="right_")
    robot = robot.attach(arm, "trunk", prefix="third_")
    q = robot.random(8, 6)
    left, right = cj.pose(robot, q, "left_tip"), cj.pose(robot, q, "right_tip")
    targets = [cj.Target("left_tip", left), cj.Target("right_tip", right[:, :3, 3], weight=2.0)]
    start = robot.random(9)
    found = cj.inverse_kinematics(robot, targets, q0=start)
    assert found.success.all()
    assert np.abs(cj.pose(robot, found.q, "left_tip") - left).max() < 3e-9
    assert np.abs(cj.pose(robot, found.q, "right_tip")[:, :3, 3] - right[:, :3, 3]).max() < 1e-9
    assert found.poses.shape == (6, 2, 4, 4)
    third = [robot.q_slice(name).start for name in robot.joint_names if name.startswith("third_")]
    assert np.all(found.q[:, third] == start[third])
    with pytest.raises(cj.CoadjointError, match="2 frames have targets"):
        _ = found.pose


@both_ways
def test_weights_say_what_is_nearest(native):
    """A slide that two targets pull apart stands at their weighted mean: Σ weight² (x - xᵢ) = 0."""
    slide = cj.Robot("slide", [cj.Link.solid("cart", "base", cj.Joint.prismatic((1, 0, 0)), mass=1.0)])
    slide = slide.with_frame("a", "cart", np.eye(4))
    targets = [cj.Target("cart", (1.0, 0.0, 0.0), weight=2.0), cj.Target("a", (0.0, 0.0, 0.0), weight=1.0)]
    found = cj.inverse_kinematics(slide, targets)
    assert not found.success
    assert found.q[0] == pytest.approx(0.8, abs=1e-9)
    assert found.distances == pytest.approx([0.2, 0.8], abs=1e-9)


@both_ways
def test_frames_that_nothing_moves(native):
    """A frame on the base, and a point on the axis of the only joint before it: J = 0, and the target is met or it is not."""
    robot = cj.load("ur5e")
    found = cj.inverse_kinematics(robot, np.eye(4), "base")
    assert found.success
    assert np.all(found.q == 0.0)
    far = cj.inverse_kinematics(robot, [0.0, 0.0, 1.0], "base", starts=2)
    assert not far.success
    assert far.distances == pytest.approx([1.0])
    on_axis = cj.inverse_kinematics(robot, cj.pose(robot, robot.neutral(), "link1")[:3, 3], "link1")
    assert on_axis.success
    assert on_axis.starts == 1


def test_what_arrives_is_kept_whatever_the_weights_say():
    """By small weights an angle may seem small: a start that failed may cost less than the one that arrived."""
    from coadjoint.families import Family
    from coadjoint.kinematics.inverse import _Solver

    robot = cj.load("planar2r")
    target, family = cj.Target("tip", np.zeros((1, 3))).checked(robot), Family(robot, None)
    solver = _Solver(family, [target], np.zeros((1, 3)), np.zeros((1, 2)), 1e-9, None)
    one = np.array([0])
    for q, cost, worst in ((1.0, 1e-19, 1e-12), (2.0, 1e-18, 1e-18), (3.0, np.nan, np.nan), (4.0, 1.0, 1.0)):
        solver._keep(one, np.full((1, 2), q), np.array([cost]), np.array([worst]))
    assert np.all(solver.q == 2.0)


# Targets out of reach


def gradient(robot, q, targets):
    """∂ ½ Σ (weight · difference)², by central differences, from the poses alone."""

    def cost(q):
        total = 0.0
        for target in targets:
            angle, distance = apart(cj.pose(robot, q, target.frame), np.asarray(target.to))
            total = total + 0.5 * target.weight**2 * (angle**2 + distance**2)
        return total

    h = 1e-5
    return np.array([(cost(q + h * e) - cost(q - h * e)) / (2 * h) for e in np.eye(robot.nq)])


@both_ways
def test_out_of_reach_a_planar_arm_points_at_the_target(native):
    """The nearest point of a disc is the radial projection; of a ring with a hole, that on its inner edge."""
    robot = zoo.make("planar2r", lengths=(1.0, 0.6))
    rng = np.random.default_rng(0)
    angle = rng.uniform(-np.pi, np.pi, 25)
    for r, edge in ((3.0, 1.6), (1.6001, 1.6), (0.2, 0.4), (40.0, 1.6)):
        way = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)
        found = cj.inverse_kinematics(robot, r * way, "tip", starts=3)
        assert not found.success.any()
        assert np.abs(found.pose[:, :3, 3] - edge * way).max() < 1e-8
        assert found.distances[:, 0] == pytest.approx(abs(r - edge), abs=1e-9)


@both_ways
def test_out_of_reach_the_nearest_pose_is_stationary(native):
    """On free joints the gradient is zero; at a limit it presses against it."""
    robot = cj.load("panda")
    T = cj.pose(robot, robot.random(11, 12), "tip")[: None if native else 5]
    T[:, :3, 3] *= 2.5
    found = cj.inverse_kinematics(robot, T, "tip", starts=3)
    assert within(robot, found.q)
    assert (~found.success).mean() > 0.6
    for q, goal in zip(found.q[~found.success], T[~found.success], strict=True):
        slope = gradient(robot, q, [cj.Target("tip", goal)])
        low, high = q <= robot.lower, q >= robot.upper
        assert np.abs(slope[~low & ~high]).max(initial=0.0) < 1e-6
        assert np.all(slope[low] > -1e-6)
        assert np.all(slope[high] < 1e-6)


@both_ways
def test_limits_are_met_and_never_passed(native):
    """A joint that would have to go farther stops at its limit: the nearest point of an arc is its end."""
    robot = zoo.make("planar_nr", n=1).with_joint("joint1", lower=-0.5, upper=1.0)
    found = cj.inverse_kinematics(robot, [np.cos(2.0), np.sin(2.0), 0.0], "tip")
    assert not found.success
    assert found.q == pytest.approx([1.0], abs=1e-12)
    assert "0 of 1 reached" in str(found)
    assert f"{np.linalg.norm([np.cos(2) - np.cos(1), np.sin(2) - np.sin(1)]):.3g} m" in str(found)


@both_ways
def test_limits_of_joints_that_mimic_are_kept(native):
    """The second joint is -2 q + 0.1 and stops at -0.9: so the first stops at ½."""
    second = cj.Joint.revolute(name="b", mimic=cj.Mimic("a", -2.0, 0.1), lower=-0.9, upper=3.0)
    links = [
        cj.Link.solid("upper", "base", cj.Joint.revolute(name="a", lower=-3.0, upper=3.0), mass=1.0),
        cj.Link.solid("lower", "upper", second, se3.exp(np.array([0, 0, 0, 1.0, 0, 0])), mass=1.0),
    ]
    robot = cj.Robot("finger", links).with_frame("tip", "lower", se3.exp(np.array([0, 0, 0, 1.0, 0, 0])))
    found = cj.inverse_kinematics(robot, cj.pose(robot, [[0.4], [1.2]], "tip"), "tip", starts=4)
    assert found.success.tolist() == [True, False]
    assert found.q.ravel() == pytest.approx([0.4, 0.5], abs=1e-9)
    wrong = robot.with_joint("a", lower=0.6)
    with pytest.raises(cj.CoadjointError, match="no position of joint 'a' is within its limits and those of 'b'"):
        cj.inverse_kinematics(wrong, np.eye(4), "tip")


# Bad input


def test_errors():
    robot = cj.load("ur5e")
    T = cj.pose(robot, robot.neutral(), "tip")
    stretched, mirrored, projective = T.copy(), T.copy(), T.copy()
    stretched[:3, 0] *= 1.1
    mirrored[:3, 0] *= -1
    projective[3, 0] = 0.5
    nan = T * np.nan
    for args, options, message in (
        ((T, "tipp"), {}, "no frame is named 'tipp'. Did you mean 'tip'"),
        ((T,), {}, "no frame is given"),
        ((np.eye(3)[:2, :2], "tip"), {}, r"of shape \(2, 2\); expected a pose"),
        (("there", "tip"), {}, "no array of numbers"),
        ((np.stack([T, stretched]), "tip"), {}, r"\[1\] is no rigid motion: RᵀR differs from 1 by 0.21"),
        ((mirrored, "tip"), {}, "a reflection"),
        ((projective, "tip"), {}, "last row"),
        ((nan, "tip"), {}, "not finite"),
        ((T, "tip"), {"rows": (3, 3)}, r"rows \(3, 3\); choose each once"),
        ((T, "tip"), {"rows": ()}, "choose each once"),
        ((T, "tip"), {"rows": 3}, "has rows 3; choose each once"),
        ((T, "tip"), {"rows": (3.0, 4.0)}, "choose each once"),
        ((T[:3, 3], "tip"), {"rows": (0,)}, "from 3 x, 4 y, 5 z"),
        ((T, "tip"), {"q0": np.zeros(5)}, r"q0 has shape \(5,\)"),
        ((T, "tip"), {"q0": np.full(6, np.inf)}, "q0 has entries that are not finite"),
        ((np.stack([T, T]), "tip"), {"q0": np.zeros((3, 6))}, "do not broadcast"),
        ((T, "tip"), {"starts": 0}, "starts is 0"),
        ((T, "tip"), {"tolerance": -1.0}, "tolerance is -1.0"),
        ((T, "tip"), {"seed": -1}, "seed is -1"),
        ((cj.Target("tip", T), "tip"), {}, "has its own frame"),
        ((cj.Target("tip", T, weight=-1.0),), {}, "weight -1.0; expected a positive number, or 6"),
        ((cj.Target("tip", T, rows=(3, 4), weight=(1.0, 1.0, 1.0)),), {}, "expected a positive number, or 2"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            cj.inverse_kinematics(robot, *args, **options)
    with pytest.raises(cj.CoadjointError, match="no joint that moves"):
        cj.inverse_kinematics(cj.Robot("stone", []), np.eye(4), "base")


def test_no_targets_are_no_trouble():
    robot = cj.load("ur5e")
    found = cj.inverse_kinematics(robot, np.zeros((0, 4, 4)), "tip")
    assert found.q.shape == (0, 6)
    assert str(found) == "0 of 0 reached"


def test_a_moved_frame_moves_its_target():
    """Reaching T with a frame is reaching T X with the frame that stands at X in it."""
    robot = cj.load("puma560")
    X = se3.exp(np.array([0.3, -0.2, 0.5, 0.1, 0.2, -0.1]))
    robot = robot.with_frame("tool", "tip", X)
    q = robot.random(12, 4)
    found = cj.inverse_kinematics(robot, cj.pose(robot, q, "tip") @ X, "tool")
    assert found.success.all()
    assert np.abs(cj.pose(robot, found.q, "tip") - cj.pose(robot, q, "tip")).max() < 3e-9
