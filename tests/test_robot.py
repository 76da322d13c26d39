"""The Robot: what it is made of, how it is changed, kept and shown; and the laws of every kind of joint."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.lie import inertia, quaternion, se3, so3
from coadjoint.robot import storage
from coadjoint.robot import text as text_of
from coadjoint.robot.joints import KINDS
from coadjoint.robot.urdf_write import to_urdf
from random_robots import ALL_KINDS, MOVING, random_inertia, random_joint, random_pose, random_robot


def everything(seed=0, **options):
    """A tree with every kind of joint."""
    return random_robot(seed, 12, armature=True, damping=True, mimic=True, massless=True, **options)


def states(robot, rng=0, shape=(3,)):
    rng = np.random.default_rng(rng)
    return robot.random(rng, shape), *rng.normal(size=(2, *shape, robot.nv))


# --- it cannot be changed


def test_a_robot_cannot_be_changed():
    robot = cj.load("panda")
    with pytest.raises(AttributeError, match=r"a Robot is immutable; `robot.with_…` and `robot.lock` give a changed copy"):
        robot.name = "other"
    with pytest.raises(AttributeError, match="a Robot is immutable"):
        del robot.links
    for key in ("placements", "screws", "inertias", "gravity", "armature", "damping", "friction", "frame_poses"):
        array = getattr(robot, key)
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[..., 0] = 1.0
    link = robot.links[0]
    for array in (link.parameters, link.placement, link.joint.screws, link.joint.lower, robot.frames[0].pose):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        link.joint.armature = 1.0


def test_what_it_was_made_of_may_change_afterwards():
    placement, gravity, parameters = np.eye(4), np.array([0.0, 0.0, -9.81]), np.ones(10)
    robot = cj.Robot("r", [cj.Link("l", "base", cj.Joint.revolute(), placement, parameters)], gravity=gravity)
    before = robot.to_json()
    placement[0, 3], gravity[2], parameters[0] = 5.0, 0.0, 7.0
    assert cj.Robot(robot.name, robot.links, gravity=robot.gravity).to_json() == before == robot.to_json()


# --- names, order, coordinates


def test_joints_keep_the_order_in_which_they_were_described():
    """Children before parents, branches interleaved: the order is that of the description, the numbers do not change."""
    rng = np.random.default_rng(1)
    robot = random_robot(rng, 9, tree=True)
    order = rng.permutation(9)
    shuffled = cj.Robot("random", [robot.links[i] for i in order], robot.frames, robot.gravity)
    assert shuffled.joint_names == tuple(f"j{i}" for i in order)
    q, v, a = states(robot)
    gather = lambda x, part: np.concatenate([x[..., getattr(robot, part)(f"j{i}")] for i in order], axis=-1)
    q2, v2, a2 = gather(q, "q_slice"), gather(v, "v_slice"), gather(a, "v_slice")
    np.testing.assert_allclose(cj.forward_kinematics(shuffled, q2), cj.forward_kinematics(robot, q)[..., order, :, :], atol=1e-14)
    tau = gather(cj.inverse_dynamics(robot, q, v, a), "v_slice")
    np.testing.assert_allclose(cj.inverse_dynamics(shuffled, q2, v2, a2), tau, rtol=1e-11, atol=1e-11)
    rows = np.concatenate([np.arange(robot.nv)[robot.v_slice(f"j{i}")] for i in order])
    M = cj.mass_matrix(robot, q)[..., rows[:, None], rows]
    np.testing.assert_allclose(cj.mass_matrix(shuffled, q2), M, rtol=1e-11, atol=1e-12)


def test_coordinates_are_numbered_joint_after_joint():
    robot = everything(2, shuffle=True)
    nq = nv = 0
    for link in robot.links:
        name, kind = link.joint.name, KINDS[link.joint.kind]
        if link.joint.mimic is None:
            assert robot.q_slice(name) == slice(nq, nq + kind.nq)
            assert robot.v_slice(name) == slice(nv, nv + kind.nv)
            nq, nv = nq + kind.nq, nv + kind.nv
        else:
            assert robot.q_slice(name) == robot.q_slice(link.joint.mimic.joint)
    assert (robot.nq, robot.nv) == (nq, nv)
    for key, size in (("lower", nq), ("upper", nq), ("velocity_limit", nv), ("effort_limit", nv)):
        assert getattr(robot, key).shape == (size,)


def test_limits_stand_where_their_coordinates_are():
    ball = cj.Joint.spherical(name="ball", velocity=(1, 2, 3), effort=4)
    slide = cj.Joint.prismatic(name="slide", lower=-0.1, upper=0.2, velocity=5, effort=6)
    robot = cj.Robot("r", [cj.Link("a", "base", ball), cj.Link("b", "a", slide)])
    np.testing.assert_array_equal(robot.lower, [-np.inf] * 4 + [-0.1])
    np.testing.assert_array_equal(robot.upper, [np.inf] * 4 + [0.2])
    np.testing.assert_array_equal(robot.velocity_limit, [1, 2, 3, 5])
    np.testing.assert_array_equal(robot.effort_limit, [4, 4, 4, 6])


def test_random_configurations_are_within_the_limits_and_repeatable():
    robot = cj.load("panda")
    q = robot.random(0, (50, 2))
    assert q.shape == (50, 2, 7)
    assert np.all((q >= robot.lower) & (q <= robot.upper))
    np.testing.assert_array_equal(q, robot.random(np.random.default_rng(0), (50, 2)))
    assert robot.random(shape=4).shape == (4, 7)
    tree = everything()
    q = tree.random(1, 100)
    for link in tree.links:
        if link.joint.kind in ("spherical", "free"):
            part = q[:, tree.q_slice(link.joint.name)][:, -4:]
            np.testing.assert_allclose(np.linalg.norm(part, axis=-1), 1, atol=1e-14)
            assert np.all(np.abs(part.mean(0)) < 0.25)  # no rotation is preferred


def test_home_is_the_product_of_the_placements():
    robot = random_robot(3, 8, shuffle=True)
    poses = cj.forward_kinematics(robot, robot.neutral())
    for i, link in enumerate(robot.links):
        before = np.eye(4) if robot.parents[i] < 0 else poses[robot.parents[i]]
        np.testing.assert_allclose(poses[i], before @ link.placement, atol=1e-14)


# --- kinds of joints


@pytest.mark.parametrize("kind", MOVING)
def test_integrate_and_difference_are_inverse(kind):
    rng = np.random.default_rng(4)
    robot = cj.Robot("r", [cj.Link("l", "base", random_joint(rng, kind))])
    q0, q1 = robot.random(rng, 50), robot.random(rng, 50)
    pose = lambda q: cj.pose(robot, q, "l")
    step = robot.difference(q0, q1)
    assert step.shape == (50, robot.nv)
    np.testing.assert_allclose(pose(robot.integrate(q0, step)), pose(q1), atol=1e-13)
    dv = rng.uniform(-1, 1, (50, robot.nv))
    np.testing.assert_allclose(robot.difference(q0, robot.integrate(q0, dv)), dv, atol=1e-13)
    np.testing.assert_allclose(robot.difference(q0, q0), np.zeros((50, robot.nv)), atol=1e-15)
    np.testing.assert_allclose(pose(robot.integrate(q0, np.zeros((50, robot.nv)))), pose(q0), atol=1e-14)


@pytest.mark.parametrize("kind", ["spherical", "planar", "free", "revolute", "prismatic", "helical"])
def test_a_step_of_a_group_is_its_exponential(kind):
    """f(q ⊕ dv) = f(q) exp(S dv): the screws of a joint that is a group are its body velocities."""
    rng = np.random.default_rng(5)
    joint = random_joint(rng, kind)
    robot = cj.Robot("r", [cj.Link("l", "base", joint, random_pose(rng))])
    q, dv = robot.random(rng, 20), rng.normal(size=(20, robot.nv))
    expected = cj.pose(robot, q, "l") @ se3.exp(dv @ joint.screws)
    np.testing.assert_allclose(cj.pose(robot, robot.integrate(q, dv), "l"), expected, atol=1e-13)


def motion(joint, q):
    return cj.pose(cj.Robot("r", [cj.Link("l", "base", joint)]), q, "l")


def test_motions_written_out():
    """Each kind about a point that is not the origin."""
    p, q = np.array([0.1, -0.2, 0.3]), np.array([0.7])
    about = lambda R, t=0.0: se3.pose(R, p + t - R @ p)
    z = np.array([0.0, 0.0, 1.0])
    R = so3.exp(0.7 * z)
    np.testing.assert_allclose(motion(cj.Joint.revolute((0, 0, 5), p), q), about(R), atol=1e-15)
    np.testing.assert_allclose(motion(cj.Joint.continuous(z, p), q), about(R), atol=1e-15)
    np.testing.assert_allclose(motion(cj.Joint.prismatic((0, 2, 0)), q), se3.pose(np.eye(3), [0, 0.7, 0]), atol=1e-15)
    np.testing.assert_allclose(motion(cj.Joint.helical(z, 0.25, p), q), about(R, 0.7 * 0.25 * z), atol=1e-15)
    R = so3.exp(np.array([0.3, 0, 0])) @ so3.exp(np.array([0, -0.4, 0]))
    np.testing.assert_allclose(motion(cj.Joint.universal(point=p), [0.3, -0.4]), about(R), atol=1e-15)
    turn = np.array([0.3, -0.5, 0.9])
    x = quaternion.exp(turn)
    np.testing.assert_allclose(motion(cj.Joint.spherical(p), x), about(so3.exp(turn)), atol=1e-15)
    np.testing.assert_allclose(motion(cj.Joint.spherical(p), 3 * x), about(so3.exp(turn)), atol=1e-15)
    T = se3.pose(so3.exp(turn), p)
    np.testing.assert_allclose(motion(cj.Joint.free(), [*p, *x]), T, atol=1e-15)
    R = so3.exp(0.6 * z)
    planar = cj.Joint.planar(z, p)
    np.testing.assert_allclose(motion(planar, [0.1, 0.2, 0.6]), about(R, np.array([0.1, 0.2, 0])), atol=1e-15)
    np.testing.assert_array_equal(motion(cj.Joint.fixed(), []), np.eye(4))


@pytest.mark.parametrize("normal", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (1, -2, 0.5), (1, 0, -2), (1e-5, -1e-5, -1), (1e-9, 0, -1)])
def test_a_planar_joint_stays_in_its_plane(normal):
    n = np.array(normal) / np.linalg.norm(normal)
    point = np.array([0.3, 0.1, -0.2])
    q = np.random.default_rng(6).normal(size=(20, 3))
    T = motion(cj.Joint.planar(normal, point), q)
    np.testing.assert_allclose(T[:, :3, :3] @ n, np.broadcast_to(n, (20, 3)), atol=1e-14)
    moved = T[:, :3, :3] @ point + T[:, :3, 3] - point
    np.testing.assert_allclose(moved @ n, 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=-1), np.hypot(q[:, 0], q[:, 1]), atol=1e-14)
    np.testing.assert_allclose(T[:, :3, :3], so3.exp(q[:, 2:] * n), atol=1e-14)


# --- a mimic joint


def test_a_mimic_joint_is_two_joints_moving_together():
    rng = np.random.default_rng(7)
    robot = random_robot(rng, 6, ("revolute", "helical", "prismatic"))
    free = robot
    robot = robot.with_joint("j4", mimic=cj.Mimic("j1", -0.5, 0.3)).with_joint("j5", mimic=cj.Mimic("j4", 2.0, 0.1))
    assert robot.nq == robot.nv == 4
    q, v, a = states(robot)
    expand = lambda x, offset: np.concatenate([x, -0.5 * x[..., 1:2] + offset, -x[..., 1:2] + 2 * offset], axis=-1)
    q6 = expand(q, 0.3)
    q6[..., 5] += 0.1
    v6, a6 = expand(v, 0.0), expand(a, 0.0)
    np.testing.assert_allclose(cj.forward_kinematics(robot, q), cj.forward_kinematics(free, q6), atol=1e-14)
    tau = cj.inverse_dynamics(free, q6, v6, a6)
    power = (tau * v6).sum(-1)
    np.testing.assert_allclose((cj.inverse_dynamics(robot, q, v, a) * v).sum(-1), power, rtol=1e-10)
    np.testing.assert_allclose(cj.kinetic_energy(robot, q, v), cj.kinetic_energy(free, q6, v6), rtol=1e-12)
    assert robot.q_slice("j5") == robot.q_slice("j1")


# --- changed copies


def test_with_gravity_frame_and_numbers_change_only_that():
    robot = everything(8)
    before = robot.to_json()
    up = robot.with_gravity((0, 0, 1))
    np.testing.assert_array_equal(up.gravity, [0, 0, 1])
    assert up.with_gravity(robot.gravity) == robot
    pose = random_pose(np.random.default_rng(0))
    framed = robot.with_frame("hand", "tip", pose)
    q = robot.random(0)
    np.testing.assert_allclose(cj.pose(framed, q, "hand"), cj.pose(robot, q, "tip") @ pose, atol=1e-14)
    assert framed.frame_names == (*robot.frame_names, "hand")
    parameters = np.array(robot.inertial_parameters)
    assert parameters.shape == (10 * robot.n_links,)
    doubled = robot.with_inertial_parameters(2 * parameters)
    q, v, a = states(robot)
    bare = lambda r: cj.inverse_dynamics(r, q, v, a) - r.from_tree(robot.armature * r.tree_v(a))
    np.testing.assert_allclose(bare(doubled), 2 * bare(robot), rtol=1e-11, atol=1e-11)
    assert robot.with_inertial_parameters(parameters) == robot
    assert robot.to_json() == before


def test_with_inertia_joint_and_placement():
    robot = random_robot(9, 4, ("revolute", "prismatic"), tree=False)
    mass, com, I = random_inertia(np.random.default_rng(0))
    changed = robot.with_inertia("l2", mass=mass, com=com, inertia=I)
    found = inertia.to_body(changed.inertias[2])
    np.testing.assert_allclose(found[0], mass)
    np.testing.assert_allclose(found[1], com)
    np.testing.assert_allclose(found[2], I, atol=1e-15)
    np.testing.assert_array_equal(changed.inertias[[0, 1, 3]], robot.inertias[[0, 1, 3]])
    geared = robot.with_joint("j1", armature=0.7, damping=0.2, friction=0.1, lower=-1, upper=1, velocity=2, effort=3)
    q = robot.random(0)
    np.testing.assert_allclose(cj.mass_matrix(geared, q) - cj.mass_matrix(robot, q), np.diag([0, 0.7, 0, 0]), atol=1e-12)
    joint = geared.links[1].joint
    assert [float(x[0]) for x in (joint.damping, joint.friction, joint.lower, joint.upper, joint.velocity, joint.effort)] == [
        0.2,
        0.1,
        -1.0,
        1.0,
        2.0,
        3.0,
    ]
    moved = robot.with_placement("l0", random_pose(np.random.default_rng(1)))
    assert not np.allclose(cj.pose(moved, q, "tip"), cj.pose(robot, q, "tip"))
    assert moved.with_placement("l0", robot.placements[0]) == robot


@pytest.mark.parametrize("seed", range(4))
def test_locking_holds_joints_and_keeps_all_frames(seed):
    """The locked robot is the robot moved with those joints still, at every name it had."""
    robot = everything(seed, shuffle=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    movers = [x.joint.name for x in robot.links if x.joint.mimic is None and x.joint.kind != "fixed"]
    held = [str(name) for name in rng.choice(movers, 4, replace=False)]
    q, v, a = (x[0] for x in states(robot, seed, (1,)))
    for name in held:
        v[robot.v_slice(name)] = a[robot.v_slice(name)] = 0
    locked = robot.lock({name: q[robot.q_slice(name)] for name in held})
    keep = lambda x, part: np.concatenate(
        [x[getattr(robot, part)(n)] for n in locked.joint_names if locked.links[locked.joint_index(n)].joint.mimic is None]
    )
    q2, v2, a2 = keep(q, "q_slice"), keep(v, "v_slice"), keep(a, "v_slice")
    assert (locked.nq, locked.nv) == (q2.size, v2.size)
    assert set(locked.frame_names) == set(robot.frame_names)
    for frame in robot.frame_names:
        np.testing.assert_allclose(cj.pose(locked, q2, frame), cj.pose(robot, q, frame), atol=1e-12)
        J = np.hstack([np.zeros((6, 0)), cj.jacobian(robot, q, frame) @ v[:, None]])
        np.testing.assert_allclose(cj.jacobian(locked, q2, frame) @ v2[:, None], J, atol=1e-11)
    tau = keep(cj.inverse_dynamics(robot, q, v, a), "v_slice")
    np.testing.assert_allclose(cj.inverse_dynamics(locked, q2, v2, a2), tau, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(cj.kinetic_energy(locked, q2, v2), cj.kinetic_energy(robot, q, v), rtol=1e-11)


def test_locking_a_joint_locks_what_follows_it():
    robot = cj.load("planar3r").with_joint("joint3", mimic=cj.Mimic("joint1", 2.0, 0.1))
    locked = robot.lock({"joint1": 0.4})
    assert locked.joint_names == ("joint2",)
    expected = cj.pose(cj.load("planar3r"), [0.4, 0.7, 0.9], "tip")
    np.testing.assert_allclose(cj.pose(locked, [0.7], "tip"), expected, atol=1e-14)


def test_merging_fixed_joints_changes_no_number():
    robot = everything(10)
    merged = robot.merge_fixed()
    assert "fixed" not in {link.joint.kind for link in merged.links}
    assert set(merged.frame_names) == set(robot.frame_names)
    q, v, a = states(robot)
    np.testing.assert_allclose(cj.inverse_dynamics(merged, q, v, a), cj.inverse_dynamics(robot, q, v, a), rtol=1e-11, atol=1e-11)
    fixed = next(link for link in robot.links if link.joint.kind == "fixed")
    np.testing.assert_allclose(cj.pose(merged, q, fixed.name), cj.pose(robot, q, fixed.name), atol=1e-13)
    # What is fixed to the base carries weight but moves nothing: it is part of the base, and has no mass to count.
    kept = sum(link.parameters[0] for i, link in enumerate(robot.links) if link.joint.kind != "fixed" or robot.parents[i] >= 0)
    assert abs(cj.total_mass(merged) - kept) < 1e-12


def test_attaching_a_hand():
    arm, hand = cj.load("ur5e"), everything(11)
    rng = np.random.default_rng(0)
    pose = random_pose(rng)
    both = arm.attach(hand, "tip", pose, prefix="hand_")
    assert both.joint_names == (*arm.joint_names, *(f"hand_{name}" for name in hand.joint_names))
    assert (both.nq, both.nv) == (arm.nq + hand.nq, arm.nv + hand.nv)
    q1, q2 = arm.random(rng), hand.random(rng)
    q = np.concatenate([q1, q2])
    flange = cj.pose(arm, q1, "tip") @ pose
    for name in hand.frame_names[1:]:
        np.testing.assert_allclose(cj.pose(both, q, f"hand_{name}"), flange @ cj.pose(hand, q2, name), atol=1e-12)
    assert abs(cj.total_mass(both) - cj.total_mass(arm) - cj.total_mass(hand)) < 1e-12
    # On a still arm the hand's torques are its own, with gravity as it sees it.
    turned = hand.with_gravity(flange[:3, :3].T @ arm.gravity)
    v, a = np.random.default_rng(1).normal(size=(2, hand.nv))
    still = np.zeros(arm.nv)
    tau = cj.inverse_dynamics(both, q, np.concatenate([still, v]), np.concatenate([still, a]))
    np.testing.assert_allclose(tau[arm.nv :], cj.inverse_dynamics(turned, q2, v, a), rtol=1e-10, atol=1e-10)


def test_attaching_where_no_name_clashes_needs_no_prefix():
    slide = cj.Robot("tool", [cj.Link("finger", "palm", cj.Joint.prismatic(name="grip"))], base="palm")
    both = cj.load("planar2r").attach(slide, "tip")
    assert both.joint_names == ("joint1", "joint2", "grip")
    assert both.links[-1].parent == "link2"


# --- building


def test_building_link_by_link():
    robot = cj.Robot("arm", [], gravity=(0, -9.81, 0))
    assert (robot.n_links, robot.nq, robot.nv) == (0, 0, 0)
    body = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": (0, 1 / 12, 1 / 12)}
    robot = robot.with_link(cj.Link.solid("link1", "base", cj.Joint.revolute(name="joint1"), **body))
    placement = se3.pose(np.eye(3), [1.0, 0, 0])
    robot = robot.with_link(cj.Link.solid("link2", "link1", cj.Joint.revolute(name="joint2"), placement, **body))
    q, v, a = states(robot)
    np.testing.assert_allclose(cj.inverse_dynamics(robot, q, v, a), cj.inverse_dynamics(cj.load("planar2r"), q, v, a), atol=1e-12)


def test_joints_without_a_name_are_named_after_their_link():
    robot = cj.Robot("r", [cj.Link("arm", "base", cj.Joint.revolute())])
    assert robot.joint_names == ("arm_joint",)


def test_from_screws():
    """Kinds by the screws' pitch, a tree by its parents, the tip on the last link."""
    screws = [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0.2, 0], [1, 0, 0, 0, 0.3, -0.1]]
    rng = np.random.default_rng(12)
    frames = np.stack([random_pose(rng) for _ in range(4)])
    tip = random_pose(rng)
    robot = cj.Robot.from_screws(screws, frames, np.ones(4), np.stack([np.eye(3)] * 4), [-1, 0, 0, 2], tip, (1, 2, 3), "tree")
    assert [link.joint.kind for link in robot.links] == ["revolute", "prismatic", "helical", "revolute"]
    assert robot.parents == (-1, 0, 0, 2)
    assert (robot.name, tuple(robot.gravity)) == ("tree", (1, 2, 3))
    np.testing.assert_allclose(cj.forward_kinematics(robot, np.zeros(4)), frames, atol=1e-14)
    np.testing.assert_allclose(cj.pose(robot, np.zeros(4), "tip"), tip, atol=1e-14)
    S = np.array(screws)
    q = rng.normal(size=4)
    e = [se3.exp(S[i] * q[i]) for i in range(4)]
    np.testing.assert_allclose(cj.pose(robot, q, "tip"), e[0] @ e[2] @ e[3] @ tip, atol=1e-14)
    np.testing.assert_allclose(cj.pose(robot, q, "link2"), e[0] @ e[1] @ frames[1], atol=1e-14)


def test_massless_links_do_not_matter():
    """A chain through links without mass is the chain without them."""
    robot = cj.load("planar2r")
    between = [
        robot.links[0],
        cj.Link("ghost", "link1", cj.Joint.fixed(), se3.pose(np.eye(3), [0.4, 0, 0])),
        cj.Link("link2", "ghost", robot.links[1].joint, se3.pose(np.eye(3), [0.6, 0, 0]), robot.links[1].parameters),
    ]
    ghostly = cj.Robot("ghostly", between, gravity=robot.gravity)
    q, v, a = states(robot)
    np.testing.assert_allclose(cj.inverse_dynamics(ghostly, q, v, a), cj.inverse_dynamics(robot, q, v, a), atol=1e-12)
    np.testing.assert_allclose(cj.forward_dynamics(ghostly, q, v, a), cj.forward_dynamics(robot, q, v, a), rtol=1e-9)


# --- kept, compared, shown


@pytest.mark.parametrize("seed", range(3))
def test_json_loses_nothing(seed):
    robot = everything(seed, shuffle=True)
    robot = cj.Robot("r ü\n", robot.links, robot.frames, robot.gravity, robot.base, ["one", "two"])
    text = robot.to_json()
    assert not {"NaN", "Infinity", "-Infinity"} & set(text.replace(",", " ").split())
    back = storage.from_json(text)
    assert back == robot
    assert back.to_json() == text
    assert back.notes == ("one", "two")
    for key in ("placements", "screws", "inertias", "armature", "frame_poses", "lower", "upper", "velocity_limit"):
        np.testing.assert_array_equal(getattr(back, key), getattr(robot, key))
    q, v, a = states(robot)
    np.testing.assert_array_equal(cj.inverse_dynamics(back, q, v, a), cj.inverse_dynamics(robot, q, v, a))


def test_every_kind_of_joint_is_kept():
    rng = np.random.default_rng(13)
    links = [cj.Link(f"l{i}", "base", random_joint(rng, kind)) for i, kind in enumerate(ALL_KINDS)]
    robot = cj.Robot("zoo", links)
    assert storage.from_dict(json.loads(robot.to_json())) == robot


def test_equality_is_of_content():
    one, two = everything(14), everything(14)
    assert one is not two
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two, everything(15)}) == 2
    assert one != one.with_gravity((0, 0, 0))
    moving = next(link.joint.name for link in one.links if link.joint.kind != "fixed")
    assert one != one.with_joint(moving, effort=5.0)
    assert one != "random"


def test_pickle_and_copy():
    robot = everything(16)
    for same in (pickle.loads(pickle.dumps(robot)), copy.copy(robot), copy.deepcopy(robot)):
        assert same == robot
        np.testing.assert_array_equal(cj.mass_matrix(same, robot.random(0)), cj.mass_matrix(robot, robot.random(0)))


def test_replaced_numbers_are_kept():
    """A robot whose arrays were replaced is the same as one that was made with them, whatever is done with it."""
    panda = cj.load("panda")
    made = panda.with_inertial_parameters(2 * panda.inertial_parameters).with_gravity((0, 0, -1))
    replaced = panda.with_numbers(inertias=2 * panda.inertias, gravity=np.array([0, 0, -1.0]))
    assert replaced == made != panda
    assert hash(replaced) == hash(made)
    hand = cj.load("planar2r")
    for change in (
        lambda r: storage.from_json(r.to_json()),
        lambda r: pickle.loads(pickle.dumps(r)),
        copy.copy,
        copy.deepcopy,
        lambda r: r.lock({"joint3": 0.2}),
        lambda r: r.with_frame("f", "tip", np.eye(4)),
        lambda r: r.with_joint("joint2", armature=0.1),
        lambda r: r.with_placement("link2", np.eye(4)),
        lambda r: r.with_link(cj.Link("tool", "link7", cj.Joint.fixed())),
        lambda r: r.attach(hand, "tip", prefix="h_"),
        lambda r: hand.attach(r, "tip", prefix="h_"),
        lambda r: cj.load(to_urdf(r)),
    ):
        assert change(replaced) == change(made)
    assert str(replaced) == str(made)
    symbolic = panda.with_numbers(gravity=np.array([None] * 3))
    assert "? kg" in str(symbolic)
    for change in (lambda: symbolic.lock({"joint1": 0.0}), symbolic.to_json, lambda: pickle.dumps(symbolic)):
        with pytest.raises(cj.CoadjointError, match="the numbers of robot 'panda' are variables; give them values"):
            change()


def test_shown_as_text_and_html():
    robot = cj.load("panda").attach(cj.load("planar2r"), "tip", prefix="<b>")
    assert repr(robot) == "Robot('panda', 9 links, nq=9, nv=9, 18.06 kg)"
    lines = str(robot).splitlines()
    assert lines[:3] == [repr(robot), "base", "└─ link1  (joint1: revolute, -2.897 … 2.897, 4.971 kg)"]
    assert len(lines) == 2 + robot.n_links
    html = text_of.html(robot)  # for robots whose numbers are variables; others show their page, tests/test_page.py
    assert "<b>link2" not in html
    assert "&lt;b&gt;link2" in html
    assert html.count("<tr>") == 1 + robot.n_links
    assert "<b>link2" not in robot._repr_html_()
    tree = everything(17)
    text = str(tree)
    assert all(name in text for name in (*tree.link_names, *tree.joint_names, "·"))


def test_a_tree_is_drawn_as_a_tree():
    joint = cj.Joint.fixed
    links = [
        cj.Link("left", "base", joint(name="a")),
        cj.Link("right", "base", joint(name="b")),
        cj.Link("hand", "left", joint(name="c")),
    ]
    drawn = [line.split("  (")[0] for line in str(cj.Robot("r", links)).splitlines()[1:]]
    assert drawn == ["base", "├─ left", "│  └─ hand", "└─ right"]


def test_steps_broadcast_and_take_what_is_a_number():
    """A rate has the batch axes of both arguments, also where it does not depend on one of them."""
    for robot in (cj.load("planar2r"), cj.load("floating_body")):
        rng = np.random.default_rng(0)
        q, v = robot.random(rng, (3, 1)), rng.normal(size=(4, robot.nv))
        for step in (robot.rate, robot.integrate):
            assert step(q, v).shape == (3, 4, robot.nq)
            np.testing.assert_array_equal(step(q, v)[1, 2], step(q[1, 0], v[2]))
            assert step(list(q[0, 0]), [0] * robot.nv).shape == (robot.nq,)
        assert robot.difference(q, robot.random(rng, 4)).shape == (3, 4, robot.nv)
