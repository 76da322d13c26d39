"""States in the conventions of other libraries: against the libraries, by the laws that define their velocities, and there and back."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError
from coadjoint.interop import convert_states
from coadjoint.interop.states import LIBRARIES
from coadjoint.lie import quaternion, se3
from models import urdf_files

OTHERS = [x for x in LIBRARIES if x != "coadjoint"]
SOLID = {"mass": 2.0, "com": (0.1, -0.2, 0.3), "inertia": (0.3, 0.2, 0.25)}


def flying(spherical: bool = False, planar: bool = False) -> cj.Robot:
    links = [
        cj.Link.solid("trunk", "world", cj.Joint.free(name="root"), **SOLID),
        cj.Link.solid("a", "trunk", cj.Joint.revolute((0, 1, 0), name="ja"), **SOLID),
        cj.Link.solid("b", "a", cj.Joint.continuous((1, 0, 0), name="jb"), **SOLID),
        cj.Link.solid("c", "b", cj.Joint.prismatic((0, 0, 1), name="jc", mimic=cj.Mimic("ja", 0.5, 0.1)), **SOLID),
    ]
    if spherical:
        links.append(cj.Link.solid("d", "trunk", cj.Joint.spherical(name="jd"), **SOLID))
    if planar:
        links.append(cj.Link.solid("e", "trunk", cj.Joint.planar((0, 0, 1), name="je"), **SOLID))
    return cj.Robot("flying", links, base="world")


def states(robot: cj.Robot, shape=(5,)) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return robot.random(rng, shape), rng.normal(size=(*shape, robot.nv))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)])
def test_there_and_back(library, shape) -> None:
    robot = flying(library in ("pinocchio", "mujoco"), library in ("pinocchio", "mujoco", "drake"))
    q, v = states(robot, shape)
    theirs = convert_states(robot, q, v, to=library, check=False)
    back = convert_states(robot, *theirs, from_=library, check=False)
    turned = np.angle(np.exp(1j * (back[0] - q)))  # a continuous angle may come back in another turn
    sign = robot.difference(back[0], q) if q.size else turned
    assert np.abs(sign).max(initial=0) < 1e-12 or np.abs(turned).max() < 1e-12
    np.testing.assert_allclose(back[1], v, atol=1e-12)
    np.testing.assert_array_equal(convert_states(robot, q, to=library), theirs[0])


@pytest.mark.parametrize("library", ["mujoco", "drake", "pybullet"])
def test_velocities_are_the_rates_of_positions(library) -> None:
    """ṗ is the rate of the position; ω, in space or in the link, is that of the rotation; other numbers those of their coordinates."""
    robot, h = flying(planar=library != "pybullet"), 1e-6
    q, v = states(robot)
    theirs_q, theirs_v = convert_states(robot, q, v, to=library)
    before, after = (convert_states(robot, robot.integrate(q, s * h * v), to=library) for s in (-1, 1))
    place, turn = (slice(4, 7), slice(0, 4)) if library == "drake" else (slice(0, 3), slice(3, 7))
    dp, w = (theirs_v[:, 3:6], theirs_v[:, :3]) if library == "drake" else (theirs_v[:, :3], theirs_v[:, 3:6])
    np.testing.assert_allclose((after - before)[:, place] / (2 * h), dp, atol=1e-8)
    order = slice(None) if library == "pybullet" else [1, 2, 3, 0]
    R0, R1 = (quaternion.to_matrix(x[:, turn][:, order]) for x in (before, after))
    change = R0.swapaxes(-1, -2) @ R1 if library == "mujoco" else R1 @ R0.swapaxes(-1, -2)
    np.testing.assert_allclose(cj.lie.so3.log(change) / (2 * h), w, atol=1e-8)
    np.testing.assert_allclose((after - before)[:, 7:] / (2 * h), theirs_v[:, 6:], atol=1e-8)
    if library == "pybullet":
        T = cj.pose(robot, q, "trunk")
        np.testing.assert_allclose(theirs_q[:, :3], (T @ [*SOLID["com"], 1.0])[:, :3], atol=1e-12)


@pytest.mark.parametrize("name", ["solo_description/robots/solo12.urdf", "talos_data/robots/talos_reduced.urdf"])
def test_pinocchio_sees_the_same_motion(name) -> None:
    """Poses and velocities of every link are those that Pinocchio computes from the converted state, joints in its own order."""
    pin = pytest.importorskip("pinocchio")
    path = urdf_files()[name]
    robot, model = cj.load(path, base="free"), pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer(), mimic=True)
    data = model.createData()
    q, v = states(robot)
    theirs_q, theirs_v = convert_states(robot, q, v, to="pinocchio", joints=list(model.names)[1:])
    V, T = cj.link_velocities(robot, q, v), cj.forward_kinematics(robot, q)
    for k in range(len(q)):
        pin.forwardKinematics(model, data, theirs_q[k], theirs_v[k])
        pin.updateFramePlacements(model, data)
        for i, link in enumerate(robot.link_names):
            frame = model.getFrameId(link)
            np.testing.assert_allclose(data.oMf[frame].homogeneous, T[k, i], atol=1e-12)
            twist = pin.getFrameVelocity(model, data, frame)
            np.testing.assert_allclose(np.r_[twist.angular, twist.linear], V[k, i], atol=1e-10)
    back = convert_states(robot, theirs_q, theirs_v, from_="pinocchio", joints=list(model.names)[1:])
    np.testing.assert_allclose(robot.difference(back[0], q), 0, atol=1e-12)
    np.testing.assert_allclose(back[1], v, atol=1e-12)


def test_mujoco_has_the_same_vectors() -> None:
    mujoco = pytest.importorskip("mujoco")
    robot = flying(spherical=True)
    model = cj.interop.mujoco.to_mjmodel(robot)
    q, v = states(robot)
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(model.njnt)]
    theirs_q, theirs_v = convert_states(robot, q, v, to="mujoco", joints=names)
    np.testing.assert_allclose(theirs_q, cj.interop.mujoco.q_to_mujoco(robot, model, q), atol=1e-13)
    np.testing.assert_allclose(theirs_v, cj.interop.mujoco.v_to_mujoco(robot, model, q, v), atol=1e-13)
    data, T = mujoco.MjData(model), cj.forward_kinematics(robot, q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = theirs_q[k], theirs_v[k]
        mujoco.mj_forward(model, data)
        for i, link in enumerate(robot.link_names):
            np.testing.assert_allclose(data.body(link).xpos, T[k, i, :3, 3], atol=1e-12)


def test_from_one_library_to_another() -> None:
    """Through Drake, PyBullet and Pinocchio the state of MuJoCo comes back."""
    robot = flying()
    q, v = states(robot)
    first = now = convert_states(robot, q, v, to="mujoco")
    for here, there in (("mujoco", "drake"), ("drake", "pybullet"), ("pybullet", "pinocchio"), ("pinocchio", "mujoco")):
        now = convert_states(robot, *now, from_=here, to=there)
    np.testing.assert_allclose(now[0][:, [0, 1, 2, 7, 9]], first[0][:, [0, 1, 2, 7, 9]], atol=1e-12)
    np.testing.assert_allclose(now[1], first[1], atol=1e-12)


def test_a_quaternion_in_the_wrong_order_is_suspected() -> None:
    robot = flying()
    q, v = np.tile(robot.neutral(), (10, 1)), np.zeros((10, robot.nv))
    q[:, 3:7] = quaternion.normalize(np.array([0.1, 0.05, -0.1, 1.0]))
    swapped = convert_states(robot, q, v, to="mujoco")
    ours = swapped[0][:, : robot.nq]
    with pytest.raises(
        CoadjointError, match="joint 'root': read as x y z w, the order of coadjoint, the quaternions turn the base upside"
    ):
        convert_states(robot, ours, from_="coadjoint", to="pinocchio")
    convert_states(robot, ours, from_="coadjoint", to="pinocchio", check=False)
    drake = convert_states(robot, q + np.eye(robot.nq)[0] * 3, v, to="drake")
    with pytest.raises(
        CoadjointError, match=r"not of length one \(one has .*\) in the order of mujoco; as those of drake they would be"
    ):
        convert_states(robot, *drake, from_="mujoco")
    q[0, 3:7] = 0
    with pytest.raises(CoadjointError, match="normalise them first"):
        convert_states(robot, q)
    with pytest.raises(CoadjointError, match="not of length one"):
        convert_states(robot, np.full(robot.nq, np.nan))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: convert_states(r, np.zeros(3)), "q has 3 numbers; in the convention of coadjoint the robot has 9"),
        (lambda r: convert_states(r, r.neutral(), np.zeros(3)), "v has 3 numbers"),
        (lambda r: convert_states(r, r.neutral(), from_="ode"), "from_ is 'ode'; choose"),
        (lambda r: convert_states(r, r.neutral(), to="mujoco", joints=["root", "ja"]), "joints lacks 'jb'"),
        (lambda r: convert_states(r, r.neutral(), to="mujoco", joints=["root", "ja", "ja", "jb"]), "a name twice"),
        (lambda r: convert_states(r, "q"), "expected numbers"),
        (lambda r: convert_states(r, 1.0), "expected a vector"),
        (lambda r: convert_states(3, [1.0]), "expected a Robot"),
        (lambda r: convert_states(flying(spherical=True), flying(spherical=True).neutral(), to="drake"), "joint 'jd' is spherical"),
    ],
)
def test_wrong_arguments_are_named(call, message) -> None:
    with pytest.raises(CoadjointError, match=message):
        call(flying())


def test_a_free_joint_may_stand_anywhere() -> None:
    """The pose that other libraries have is that of the link in space, wherever the joint's own axes are."""
    X = se3.exp(np.array([0.3, -0.2, 0.5, 1.0, 2.0, 3.0]))
    robot = cj.Robot("r", [cj.Link.solid("a", "world", cj.Joint.free(name="root"), X, **SOLID)], base="world")
    q, v = states(robot)
    theirs, _ = convert_states(robot, q, v, to="pinocchio")
    T = cj.pose(robot, q, "a")
    np.testing.assert_allclose(theirs[:, :3], T[:, :3, 3], atol=1e-12)
    np.testing.assert_allclose(quaternion.to_matrix(theirs[:, 3:7]), T[:, :3, :3], atol=1e-12)
