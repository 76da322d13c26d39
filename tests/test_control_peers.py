"""The same laws by other libraries, in one run: MuJoCo's servos and its Cartesian actuators, pink's inverse kinematics."""

import warnings
from functools import cache

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from coadjoint.errors import ModelWarning
from coadjoint.lie import se3
from models import urdf_files

HOME = {
    "xarm7.urdf": np.array([0.1, -0.6, 0.2, 1.0, 0.1, 1.6, 0.5]),
    "ur5_robot.urdf": np.array([0.3, -1.1, 1.4, -0.6, 0.9, -0.2]),
}


@cache
def arm(name):
    files = [path for path in urdf_files().values() if path.name == name]
    if not files:
        pytest.skip("example-robot-data is not installed")
    return cj.load(files[0])


# ---- MuJoCo -------------------------------------------------------------------------------------------------------------------------


def in_mujoco(robot, goal, add):
    """MuJoCo's model of a robot whose weight it compensates, with a frame "goal" in space and the actuators that `add` gives."""
    mujoco = pytest.importorskip("mujoco")
    with warnings.catch_warnings(action="ignore", category=ModelWarning):  # MJCF has no limits of velocity
        spec = mujoco.MjSpec.from_string(cj.interop.mujoco.to_mjcf(robot))
    spec.option.timestep, spec.option.integrator = 1e-3, mujoco.mjtIntegrator.mjINT_RK4
    for one in spec.joints:
        one.actfrclimited = False  # our law is compared, not its limits
    for one in spec.bodies:
        one.gravcomp = 1.0
    site = spec.worldbody.add_site(name="goal", pos=goal[:3, 3])
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, goal[:3, :3].ravel())
    site.quat = quaternion
    add(mujoco, spec)
    model = spec.compile()
    return mujoco, model, mujoco.MjData(model)


def servo(actuator, kp, kd):
    """MuJoCo's `position` actuator: kp (ctrl - length) - kd velocity."""
    actuator.biastype, actuator.gainprm[0], actuator.biasprm[1], actuator.biasprm[2] = 1, kp, -kp, -kd


@pytest.mark.parametrize("name", HOME)
def test_servos_of_mujoco_with_its_gravity_compensation_are_pd(name):
    robot, rng = arm(name), np.random.default_rng(0)
    kp, kd, goal = rng.uniform(20, 200, robot.nv), rng.uniform(2, 9, robot.nv), HOME[name]
    ours = control.pd(robot, goal, kp=kp, kd=kd)

    def add(mujoco, spec):
        for k, joint in enumerate(robot.joint_names):
            servo(spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT), kp[k], kd[k])

    mujoco, model, data = in_mujoco(robot, np.eye(4), add)
    data.ctrl[:] = goal
    for _ in range(5):
        q, v = goal + 0.01 * rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        theirs = data.qfrc_actuator + data.qfrc_gravcomp
        np.testing.assert_allclose(ours.force(q, v, 0.0), theirs, atol=1e-10 * np.abs(theirs).max())


def cartesian(robot, frame, goal, stiffness, damping):
    """Six actuators of MuJoCo between the frame and the goal, one along or about each axis of the goal."""

    def add(mujoco, spec):
        link, placement = robot.frame(frame)
        site = spec.body(robot.link_names[link]).add_site(name="tip", pos=placement[:3, 3])
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, placement[:3, :3].ravel())
        site.quat = quaternion
        for k in range(6):
            one = spec.add_actuator(name=f"axis{k}", target="tip", trntype=mujoco.mjtTrn.mjTRN_SITE, refsite="goal")
            one.gear = np.eye(6)[k]
            servo(one, stiffness[k // 3], damping[k // 3])  # MuJoCo has the linear part first

    return in_mujoco(robot, goal, add)


@pytest.mark.slow
@pytest.mark.native
def test_cartesian_actuators_of_mujoco_are_an_impedance():
    """On an arm without redundancy the impedance with the robot's own inertia is τ = Jᵀ F + g, and MuJoCo's error is the double-geodesic
    one: equal torques at every state, and the same motion.
    """
    name = "ur5_robot.urdf"
    robot, rng = arm(name), np.random.default_rng(1)
    goal = cj.pose(robot, HOME[name], "tool0") @ se3.exp([0.4, -0.3, 0.5, 0.1, 0.15, -0.1])
    stiffness, damping = (400.0, 30.0), (60.0, 5.0)  # of distances, of angles
    ours = control.impedance(
        robot,
        "tool0",
        goal,
        stiffness=np.repeat(stiffness[::-1], 3),
        damping=np.repeat(damping[::-1], 3),
        error="double-geodesic",
    )
    mujoco, model, data = cartesian(robot, "tool0", goal, stiffness, damping)
    for _ in range(10):
        q, v = HOME[name] + 0.2 * rng.normal(size=6), 0.5 * rng.normal(size=6)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        theirs = data.qfrc_actuator + data.qfrc_gravcomp
        np.testing.assert_allclose(ours.force(q, v, 0.0), theirs, atol=1e-8 * np.abs(theirs).max())
    data.qpos[:], data.qvel[:], data.time = HOME[name], 0.0, 0.0
    motion = cj.simulate(robot, HOME[name], np.zeros(6), [0.0, 0.25, 0.5], control=ours)
    for k in (1, 2):
        while data.time < motion.time[k] - 1e-9:
            mujoco.mj_step(model, data)
        np.testing.assert_allclose(data.qpos, motion.q[k], atol=1e-6)
    assert np.abs(motion.q[-1] - motion.q[0]).max() > 0.1


# ---- pink ---------------------------------------------------------------------------------------------------------------------------


def pink_velocity(robot, frame, q, goal, rate):
    """The joint velocity by which pink's FrameTask makes the pose error decay as exp(-rate t), exactly, with the least kinetic energy.

    The task is a constraint of pink's quadratic program; its objective is a task of the kind that pink lets users write.
    """
    pin, pink = pytest.importorskip("pinocchio"), pytest.importorskip("pink")
    from pink.tasks import FrameTask, Task

    class KineticEnergy(Task):
        def __init__(self):
            super().__init__(cost=1.0, gain=0.0)

        def compute_error(self, configuration):
            return np.zeros(robot.nv)

        def compute_jacobian(self, configuration):
            return np.linalg.cholesky(np.asarray(pin.crba(model, data, configuration.q))).T

        def __repr__(self):
            return "KineticEnergy()"

    model = cj.interop.pinocchio.to_pinocchio(robot)
    data = model.createData()
    configuration = pink.Configuration(model, data, q)
    task = FrameTask(frame, position_cost=1.0, orientation_cost=1.0, gain=0.01)
    task.set_target(pin.SE3(goal))
    dt = task.gain / rate
    with warnings.catch_warnings(action="ignore"):  # dense matrices are made sparse
        return pink.solve_ik(configuration, [KineticEnergy()], dt, "clarabel", damping=0.0, limits=[], constraints=[task])


@pytest.mark.parametrize("name", ["panda", "puma560"])
def test_velocities_of_pink_are_the_horizontal_lift(name):
    """Inverse kinematics by pink's quadratic program, in the kinetic metric, is the lift of the hand's velocity."""
    robot, rng = cj.load(name), np.random.default_rng(2)
    q = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5]) if name == "panda" else np.array([0.3, -0.7, 0.4, 0.5, 0.9, -0.2])
    X = cj.pose(robot, q, "tip")
    goal = X @ se3.exp(0.3 * rng.normal(size=6))
    theirs = pink_velocity(robot, "tip", q, goal, 5.0)
    ours = cj.horizontal_lift(robot, q, "tip") @ (5.0 * se3.log(se3.inverse(X) @ goal))
    np.testing.assert_allclose(ours, theirs, atol=2e-6 * np.abs(theirs).max())


@pytest.mark.parametrize("name", ["panda", "puma560"])
def test_torques_over_velocities_of_pink_are_operational_space_control(name):
    """τ = M Kd (v_pink - v) + h, the computed torque over pink's velocities, beside ours: equal where the law is the same.

    It is the same for a turn of the hand about its origin, without distance, where η and the spring's dexp⁻¹(η)ᵀ η are equal. In motion
    ours has what pink cannot know, an acceleration: the torques then differ by M L J̇ v, which is what keeps the hand's error linear.
    """
    robot, rng = cj.load(name), np.random.default_rng(3)
    q = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5]) if name == "panda" else np.array([0.3, -0.7, 0.4, 0.5, 0.9, -0.2])
    goal = cj.pose(robot, q, "tip") @ se3.exp([*(0.5 * rng.normal(size=3)), 0, 0, 0])
    kp, kd = 100.0, 20.0
    M, lift = np.asarray(cj.mass_matrix(robot, q)), np.asarray(cj.horizontal_lift(robot, q, "tip"))
    v_pink = pink_velocity(robot, "tip", q, goal, kp / kd)
    law = control.se3_tracking(robot, "tip", goal, kp=kp, kd=kd, posture_kd=kd)
    for v in (np.zeros(robot.nv), 0.3 * rng.normal(size=robot.nv)):
        theirs = M @ (kd * (v_pink - v)) + np.asarray(cj.bias_force(robot, q, v))
        curve = M @ lift @ np.asarray(cj.jacobian_rate(robot, q, v, "tip")) @ v
        ours = law.force(q, v, 0.0)
        np.testing.assert_allclose(ours + curve, theirs, atol=2e-6 * np.abs(theirs).max())
        assert np.abs(curve).max() < 1e-12 or not np.allclose(ours, theirs, rtol=1e-3)
