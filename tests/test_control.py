"""Controllers obey the theorems that they are made of."""

import ctypes
import pickle
import shutil
import subprocess
from functools import partial

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.linalg import expm

import coadjoint as cj
from coadjoint import control
from coadjoint.control.tracking_error import error_rate, pulled_back, tracking_error
from coadjoint.control.workspace import frame_error
from coadjoint.errors import CoadjointError
from coadjoint.lie import se3
from laws import rate
from random_robots import random_robot, random_velocity

RNG = np.random.default_rng(11)


def moving(robot, rng):
    """A reference from one random configuration to another."""
    return control.point_to_point(robot, robot.random(rng), robot.random(rng), 2.0)


ROBOTS = {
    "arm": cj.load("planar2r"),
    "tree": random_robot(4, 4, ["revolute", "spherical", "prismatic"]),
    "free": random_robot(2, 2, ["free", "revolute"], tree=False),
    "planar": random_robot(6, 2, ["planar", "revolute"], tree=False),
}


def laws(robot, rng):
    """Controllers, and the rate at which their Lyapunov functions fall."""
    goal, reference, n = robot.random(rng), moving(robot, rng), robot.nv
    factor = rng.normal(size=(n, n))
    full, D = 20 * (factor @ factor.T / n + np.eye(n)), rng.uniform(4, 9, n)
    w = lambda q, v, t: tracking_error(robot, q, v, *reference(t)).velocity
    e = lambda q, t: robot.difference(q, reference(t)[0])
    return {
        "pd": (control.pd(robot, goal, kp=full, kd=D), lambda q, v, t: v @ (D * v)),
        "computed torque": (
            control.computed_torque(robot, reference, kp=full, kd=D),
            lambda q, v, t: w(q, v, t) @ (D * w(q, v, t)),
        ),
        "pd+": (control.pd_plus(robot, reference, kp=full, kd=D), lambda q, v, t: w(q, v, t) @ (D * w(q, v, t))),
        "passivity": (
            control.passivity_based(robot, reference, rate=3.0, damping=D),
            lambda q, v, t: (s := w(q, v, t) + 3.0 * e(q, t)) @ (D * s),
        ),
    }


def _ahead(robot, one, q, v, a, t, h):
    return one.lyapunov(robot.integrate(q, h * v), v + h * a, t + h)


@pytest.mark.parametrize("name", ROBOTS)
def test_lyapunov_functions_fall_as_the_theorems_say(name):
    robot, rng = ROBOTS[name], np.random.default_rng(3)
    for law, (one, fall) in laws(robot, rng).items():
        for _ in range(3):
            t = rng.uniform(0.2, 1.8)
            q = robot.integrate(one.reference(t)[0], 0.4 * rng.normal(size=robot.nv))
            v = random_velocity(robot, rng)
            a = cj.forward_dynamics(robot, q, v, one.force(q, v, t))
            found = rate(partial(_ahead, robot, one, q, v, a, t))
            scale = np.abs(one.lyapunov(q, v, t))
            np.testing.assert_allclose(found, -fall(q, v, t), atol=1e-8 * (1 + scale), err_msg=law)
            assert fall(q, v, t) > 0


@pytest.mark.slow
@pytest.mark.native
def test_the_lyapunov_function_never_increases_along_a_motion():
    arm, rng = ROBOTS["arm"], np.random.default_rng(3)
    one, _ = laws(arm, rng)["pd+"]
    motion = cj.simulate(arm, one.reference(0.0)[0] + [0.3, -0.2], [0.4, -0.7], np.linspace(0, 1.0, 41), control=one)
    found = control.verify(one, motion)
    assert found.holds, str(found)
    assert found.lyapunov[-1] < 0.5 * found.lyapunov[0]


@pytest.mark.native
def test_the_lyapunov_function_of_pd_falls_under_constraints_too():
    arm = cj.load("planar3r")
    held = cj.Constraint.point(arm, "tip", axes="xy", at=(1.2, 0.8))
    start = cj.constraints.assemble(arm, held, [0.3, 0.8, 0.9])
    goal = cj.constraints.assemble(arm, held, [-0.5, 1.5, 0.5])
    one = control.pd(arm, goal, kp=30.0, kd=5.0)
    motion = cj.simulate(arm, start, np.zeros(3), np.linspace(0, 1.5, 61), control=one, constraints=held)
    assert control.verify(one, motion).holds
    assert one.lyapunov(motion.q[-1], motion.v[-1], 1.5) < 0.5 * one.lyapunov(start, np.zeros(3), 0.0)


@pytest.mark.slow
@pytest.mark.native
def test_the_loop_is_passive():
    """∫ vᵀf dt ≥ -V(0) for every external force f: what the environment takes out of a PD loop is no more than it held at first."""
    robot, rng = cj.load("planar2r"), np.random.default_rng(8)
    one = control.pd(robot, [0.3, 0.4], kp=50.0, kd=5.0)
    for _ in range(3):
        size, w = 20 * rng.normal(size=2), rng.uniform(1, 9, 2)
        external = lambda t, size=size, w=w: size * np.sin(w * t)
        both = lambda robot, q, v, t: one.force(q, v, t) + external(t)  # noqa: B023
        motion = cj.simulate(robot, [1.0, -0.5], [0.5, 0.5], np.linspace(0, 3, 3001), control=both)
        power = np.sum(motion.v * np.array([external(t) for t in motion.time]), axis=1)
        taken = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(motion.time))])
        start = one.lyapunov(motion.q[0], motion.v[0], 0.0)
        assert taken.min() >= -start
        lost = np.trapezoid(5.0 * np.sum(motion.v**2, axis=1), motion.time)
        np.testing.assert_allclose(one.lyapunov(motion.q[-1], motion.v[-1], 3.0) - start, taken[-1] - lost, rtol=1e-4)


def test_a_function_that_increases_is_found():
    arm = ROBOTS["arm"]
    wrong = control.pd(arm, [0.4, 0.3], kp=30.0, kd=5.0)
    motion = cj.simulate(arm, [0.0, 0.0], [0.0, 0.0], np.linspace(0, 1, 21), control=[3.0, 1.0])
    assert not control.verify(wrong, motion).holds


@pytest.mark.native
def test_computed_torque_leaves_the_linear_error_equation():
    arm = ROBOTS["arm"]
    Kp, Kd = np.array([[40.0, 5.0], [5.0, 30.0]]), np.array([[9.0, -1.0], [-1.0, 7.0]])
    reference = control.sinusoid(arm, [0.2, 0.4], [0.5, 0.3], [0.4, 0.7])
    one = control.computed_torque(arm, reference, kp=Kp, kd=Kd)
    q, v = np.array([0.9, -0.3]), np.array([-0.5, 0.8])
    times = np.linspace(0, 1.5, 16)
    motion = cj.simulate(arm, q, v, times, control=one, tolerance=1e-12)
    system = np.block([[np.zeros((2, 2)), np.eye(2)], [-Kp, -Kd]])
    first = np.concatenate([reference(0.0)[0] - q, reference(0.0)[1] - v])
    for t, x, y in zip(times, motion.q, motion.v, strict=True):
        desired = reference(t)
        np.testing.assert_allclose(np.concatenate([desired[0] - x, desired[1] - y]), expm(system * t) @ first, atol=1e-9)


@pytest.mark.parametrize("name", ["tree", "free", "planar"])
def test_errors_on_groups_are_derivatives_of_each_other(name):
    robot, rng = ROBOTS[name], np.random.default_rng(8)
    reference = moving(robot, rng)
    q = robot.integrate(reference(0.7)[0], 0.5 * rng.normal(size=robot.nv))
    v, a = random_velocity(robot, rng), rng.normal(size=robot.nv)
    at = lambda h: (robot.integrate(q, h * v + 0.0), v + h * a)  # to first order in h, which is what a derivative sees

    def error(h):
        return tracking_error(robot, *at(h), *reference(0.7 + h))

    here = error(0.0)
    e_rate = rate(lambda h: error(h).position)
    np.testing.assert_allclose(e_rate, error_rate(robot, here.position, here.velocity), atol=1e-8)
    seen_rate = rate(lambda h: error(h).reference_velocity)
    np.testing.assert_allclose(seen_rate, here.reference_acceleration, atol=1e-7)
    f = rng.normal(size=robot.nv)
    power = pulled_back(robot, here.position, f) @ here.velocity
    np.testing.assert_allclose(power, f @ error_rate(robot, here.position, here.velocity), rtol=1e-10)


@pytest.mark.parametrize("kind", ["log", "double-geodesic"])
def test_errors_of_frames_are_derivatives_of_each_other(kind):
    rng = np.random.default_rng(2)
    X, V, A = se3.exp(rng.normal(size=6)), rng.normal(size=6), rng.normal(size=6)
    reference = control.screw_motion(se3.exp(rng.normal(size=6)), se3.exp(rng.normal(size=6)), 1.7)
    error = lambda h: frame_error(kind, X @ se3.exp(h * V), V + h * A, *reference(0.6 + h))
    here = error(0.0)
    np.testing.assert_allclose(rate(lambda h: error(h).velocity), here.acceleration - A, atol=1e-8)
    f = np.concatenate([rng.normal(size=3), np.zeros(3)]) if kind != "log" else rng.normal(size=6)
    e_rate = rate(lambda h: error(h).position)
    np.testing.assert_allclose(here.spring(f) @ here.velocity, f @ e_rate, atol=1e-8)


@pytest.mark.parametrize("kind", ["log", "double-geodesic"])
def test_the_error_of_a_frame_is_that_of_the_workspace_feedback(kind):
    """Altafini (2004), section IV: the lift gives the frame the acceleration that is asked for, whatever the rest of the robot does."""
    robot, rng = cj.load("panda"), np.random.default_rng(5)
    q0 = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5])
    X = cj.pose(robot, q0, "tip")
    reference = control.screw_motion(X @ se3.exp(0.2 * rng.normal(size=6)), X @ se3.exp(0.3 * rng.normal(size=6)), 1.0)
    v = 0.4 * rng.normal(size=7)
    accelerations = []
    for posture in (None, rng.normal(size=7)):
        one = control.se3_tracking(robot, "tip", reference, kp=[30, 20, 25, 40, 50, 60], kd=8.0, error=kind, posture=posture)
        a = cj.forward_dynamics(robot, q0, v, one.force(q0, v, 0.4))
        accelerations.append(a)
        V = cj.jacobian(robot, q0, "tip") @ v
        error = frame_error(kind, X, V, *reference(0.4))
        wanted = error.acceleration + 8.0 * error.velocity + error.spring(np.array([30, 20, 25, 40, 50, 60]) * error.position)
        found = cj.jacobian(robot, q0, "tip") @ a + cj.jacobian_rate(robot, q0, v, "tip") @ v
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    assert np.abs(accelerations[0] - accelerations[1]).max() > 1e-2


def test_operational_space_torques_are_those_written_with_pinocchio():
    pin = pytest.importorskip("pinocchio")
    robot, rng = cj.load("panda"), np.random.default_rng(9)
    model = cj.interop.pinocchio.to_pinocchio(robot)
    data = model.createData()
    q, v = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5]), 0.3 * rng.normal(size=7)
    X = cj.pose(robot, q, "tip")
    goal = X @ se3.exp(0.2 * rng.normal(size=6))
    kp, kd = 50.0, 12.0
    ours = control.se3_tracking(robot, "tip", goal, kp=kp, kd=kd, error="double-geodesic").force(q, v, 0.0)

    frame = model.getFrameId("tip")
    swap = np.r_[3:6, 0:3]
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.nonLinearEffects(model, data, q, v)
    pin.computeJointJacobians(model, data, q)
    pin.forwardKinematics(model, data, q, v, np.zeros(7))
    J = pin.getFrameJacobian(model, data, frame, pin.LOCAL)[swap]
    drift = pin.getFrameAcceleration(model, data, frame, pin.LOCAL).vector[swap]
    V = J @ v
    turn = pin.log3(X[:3, :3].T @ goal[:3, :3])
    way = X[:3, :3].T @ (goal[:3, 3] - X[:3, 3])
    from coadjoint.lie import so3

    A = np.concatenate([so3.dexp_inverse(turn).T @ (kp * turn), kp * way]) - kd * V
    W = np.linalg.inv(M)
    L = W @ J.T @ np.linalg.inv(J @ W @ J.T)
    theirs = M @ (L @ (A - drift) + (np.eye(7) - L @ J) @ (-6.0 * v)) + h
    np.testing.assert_allclose(ours, theirs, atol=1e-9 * np.abs(theirs).max())


def test_tasks_in_order_and_a_posture():
    robot, rng = cj.load("panda"), np.random.default_rng(1)
    q, v = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5]), 0.2 * rng.normal(size=7)
    X = cj.pose(robot, q, "tip")
    first = control.FrameTask("tip", X @ se3.exp(0.1 * rng.normal(size=6)), kp=30.0, kd=9.0, rows=(3, 4, 5))
    second = control.FrameTask("link4", cj.pose(robot, q, "link4") @ se3.exp(0.1 * rng.normal(size=6)), kp=20.0, kd=5.0, rows=(4,))
    both = control.workspace(robot, [first, second], posture=q + 0.1)
    a = cj.forward_dynamics(robot, q, v, both.force(q, v, 0.0))
    for one in (first, second):
        error = frame_error("log", cj.pose(robot, q, one.frame), cj.jacobian(robot, q, one.frame) @ v, *one.reference(0.0))
        A = error.acceleration + one.kd @ error.velocity + error.spring(one.kp @ error.position)
        found = cj.jacobian(robot, q, one.frame) @ a + cj.jacobian_rate(robot, q, v, one.frame) @ v
        np.testing.assert_allclose(found[list(one.rows)], A[list(one.rows)], atol=1e-8)


def test_an_impedance_is_a_spring_at_rest():
    robot, rng = cj.load("puma560"), np.random.default_rng(6)
    q = np.array([0.3, -0.8, 0.4, 0.5, 0.9, -0.2])
    stiffness = np.diag([20, 30, 40, 300, 400, 500.0])
    goal = cj.pose(robot, q, "tip") @ se3.exp(0.1 * rng.normal(size=6))
    one = control.impedance(robot, "tip", goal, stiffness=stiffness, damping=20.0)
    eta = se3.log(se3.inverse(cj.pose(robot, q, "tip")) @ goal)
    wrench = -se3.dexp_inverse(eta).T @ (stiffness @ eta)  # that of the world which keeps the frame there
    tau = one.force(q, np.zeros(6), 0.0) + cj.jacobian(robot, q, "tip").T @ wrench
    np.testing.assert_allclose(cj.forward_dynamics(robot, q, np.zeros(6), tau), np.zeros(6), atol=1e-8)


def test_the_energy_of_an_impedance_falls():
    robot, rng = cj.load("puma560"), np.random.default_rng(7)
    q, v, t = np.array([0.3, -0.8, 0.4, 0.5, 0.9, -0.2]), rng.normal(size=6), 0.3
    X = cj.pose(robot, q, "tip")
    reference = control.screw_motion(X @ se3.exp(0.1 * rng.normal(size=6)), X @ se3.exp(0.2 * rng.normal(size=6)), 0.6)
    D = np.array([9, 8, 7, 90, 80, 70.0])
    one = control.impedance(robot, "tip", reference, stiffness=[50, 40, 30, 500, 400, 300], damping=D)
    a = cj.forward_dynamics(robot, q, v, one.force(q, v, t))
    w = frame_error("log", X, cj.jacobian(robot, q, "tip") @ v, *reference(t)).velocity
    found = rate(lambda h: one.lyapunov(q + h * v, v + h * a, t + h))
    np.testing.assert_allclose(found, -w @ (D * w), rtol=1e-8)


def test_references_that_cannot_be_traced_are_evaluated_outside():
    arm = ROBOTS["arm"]
    spline = CubicSpline([0.0, 1.0, 2.0], RNG.normal(size=(3, 2)))
    given = control.computed_torque(arm, lambda t: (spline(t), spline(t, 1), spline(t, 2)), kp=25.0, kd=10.0)
    q, v = RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2))
    for t in (0.0, 0.7, 1.6):
        a = spline(t, 2) + 10.0 * (spline(t, 1) - v) + 25.0 * (spline(t) - q)
        np.testing.assert_allclose(given.force(q, v, t), cj.inverse_dynamics(arm, q, v, a), rtol=1e-12)
    times = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(given.force(q, v, times)[1], given.force(q[1], v[1], 0.2), rtol=1e-12)

    def jump(t):  # of one time only
        return np.array([0.3, -0.2]) if t < 0.15 else np.array([0.7, 0.1]), np.zeros(2), np.zeros(2)

    given = control.pd_plus(arm, jump, kp=25.0, kd=10.0)
    for k in range(3):
        np.testing.assert_allclose(given.lyapunov(q, v, times)[k], given.lyapunov(q[k], v[k], times[k]), rtol=1e-12)


@pytest.mark.native
def test_motions_of_a_batch_are_verified_each_by_itself():
    """Each falls, though every one begins above the one before."""
    arm = ROBOTS["arm"]
    one = control.computed_torque(arm, [0.0, 0.0], kp=100.0, kd=20.0)
    loop = control.closed_loop(arm, one, np.array([[0.1, 0.0], [0.2, 0.0], [0.4, 0.1]]), np.zeros(2), 0.2)
    found = control.verify(one, loop)
    assert found.holds
    assert found.lyapunov.shape == (3, 201)
    assert "in 3 motions" in str(found)


@pytest.mark.native
def test_no_robots_move_nowhere():
    arm = ROBOTS["arm"]
    one = control.computed_torque(arm, [0.0, 0.0], kp=100.0, kd=20.0)
    assert control.closed_loop(arm, one, np.zeros((0, 2)), np.zeros((0, 2)), 0.01).q.shape == (0, 11, 2)


@pytest.mark.native
def test_rollouts_take_controllers_and_pickles_keep_them():
    arm = ROBOTS["arm"]
    one = control.computed_torque(arm, control.sinusoid(arm, 0.3, 0.2, 1.0), kp=25.0, kd=10.0)
    q, v = RNG.normal(size=(4, 2)), RNG.normal(size=(4, 2))
    qs, _ = cj.rollout(arm, q, v, dt=1e-2, steps=40, control=one, method="rk4")
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.force(q, v, 0.2), one.force(q, v, 0.2))
    for k in range(4):
        motion = cj.simulate(arm, q[k], v[k], np.linspace(0, 0.4, 3), control=again)
        np.testing.assert_allclose(qs[k, -1], motion.q[-1], atol=1e-5)


def test_controllers_run_in_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    arm = ROBOTS["arm"]
    one = control.pd_plus(arm, control.sinusoid(arm, 0.3, 0.2, 1.0), kp=25.0, kd=10.0)
    q, v = RNG.normal(size=2), RNG.normal(size=2)
    found = jax.jit(one.force)(q, v, 0.3)
    np.testing.assert_allclose(found, one.force(q, v, 0.3), rtol=1e-12)


def test_controllers_run_in_pytorch():
    torch = pytest.importorskip("torch")
    arm = ROBOTS["arm"]
    one = control.pd_plus(arm, control.sinusoid(arm, 0.3, 0.2, 1.0), kp=25.0, kd=10.0)
    q, v = RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2))
    found = one.force(torch.tensor(q, requires_grad=True), torch.tensor(v), 0.3)
    np.testing.assert_allclose(found.detach().numpy(), one.force(q, v, 0.3), rtol=1e-12)
    assert found.requires_grad


def test_exported_c_is_the_controller(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    arm = cj.load("planar3r")
    one = control.computed_torque(arm, control.sinusoid(arm, 0.3, 0.2, 1.0), kp=25.0, kd=10.0)
    source = cj.export.c(one.graph())
    assert "malloc" not in source
    (tmp_path / "c.c").write_text(source)
    subprocess.run(
        [compiler, "-std=c99", "-Wall", "-Werror", "-O2", "-shared", "-fPIC", tmp_path / "c.c", "-o", tmp_path / "c.so", "-lm"],
        check=True,
    )
    function = ctypes.CDLL(str(tmp_path / "c.so")).computed_torque
    for _ in range(5):
        q, v, t, tau = RNG.normal(size=3), RNG.normal(size=3), RNG.uniform(size=1), np.empty(3)
        function(*(ctypes.c_void_p(x.ctypes.data) for x in (q, v, t, tau)))
        np.testing.assert_allclose(tau, one.force(q, v, float(t[0])), rtol=1e-13, atol=1e-13 * np.abs(tau).max())


def test_wrong_arguments_are_named():
    arm = ROBOTS["arm"]
    goal = [0.1, 0.2]
    for call, words in [
        (lambda: control.pd(arm, goal, kp=-1.0, kd=1.0), "kp is -1; gains must be positive and finite"),
        (lambda: control.pd(arm, goal, kp=1.0, kd=[1.0, 0.0]), r"kd\[1\] is 0; gains must be positive"),
        (lambda: control.pd(arm, goal, kp=[[1.0, 2.0], [2.0, 1.0]], kd=1.0), "kp has the eigenvalue -1"),
        (lambda: control.pd(arm, goal, kp=[1.0, 2.0, 3.0], kd=1.0), "kp has shape"),
        (lambda: control.pd(arm, [1.0, 2.0, 3.0], kp=1.0, kd=1.0), "q has shape"),
        (lambda: control.pd(arm, "home", kp=1.0, kd=1.0), "reference is 'home'; expected a function"),
        (lambda: control.pd(arm, lambda t: goal, kp=1.0, kd=1.0).force(np.zeros(2), np.zeros(2), 0.0), "expected three arrays"),
        (lambda: control.pd(arm, lambda t: (goal, [0.0], goal), kp=1.0, kd=1.0).force(np.zeros(2), np.zeros(2), 0.0), "gave v of shape"),
        (lambda: control.se3_tracking(arm, "tipp", np.eye(4), kp=1.0, kd=1.0), "tipp"),
        (lambda: control.workspace(arm, []), "expected a list of FrameTask"),
        (lambda: control.se3_tracking(arm, "tip", np.eye(4), kp=1.0, kd=1.0), "more rows than robot"),
        (lambda: control.adaptive(arm, goal, rate=1.0, damping=1.0, adaptation=0.0), "adaptation is 0"),
        (lambda: control.closed_loop(arm, 3, goal, goal, 1.0), "controller is int"),
        (lambda: control.closed_loop(arm, control.pd(arm, goal, kp=1.0, kd=1.0), goal, goal, 1.0, resolution=-1.0), "resolution is -1"),
        (lambda: control.closed_loop(arm, control.pd(arm, goal, kp=1.0, kd=1.0), goal, goal, 1.0, substeps=0), "substeps is 0"),
        (lambda: control.pd(arm, [np.nan, 0.0], kp=1.0, kd=1.0), "entries that are not finite"),
        (lambda: control.point_to_point(arm, goal, [np.inf, 0.0], 1.0), "goal has entries that are not finite"),
        (lambda: control.adaptive(arm, goal, rate=1.0, damping=1.0, adaptation=1.0, friction=-1.0), "friction is -1"),
        (lambda: control.sinusoid(arm, np.nan, 1.0, 1.0), "center has entries that are not finite"),
        (lambda: control.pd(arm, lambda t, x: goal, kp=1.0, kd=1.0), r"reference takes \(t, x\); expected a function reference\(t\)"),
        (lambda: control.verify(control.pd(arm, goal, kp=1.0, kd=1.0), None), "motion is None; expected a motion with time, q and v"),
    ]:  # fmt: skip
        with pytest.raises(CoadjointError, match=words):
            call()


@pytest.mark.native
def test_a_force_that_is_not_a_number_ends_the_motion_and_keeps_it():
    arm = ROBOTS["arm"]
    reference = lambda t: (np.array([0.1, 0.2]) * (np.nan if t > 0.2 else 1.0), np.zeros(2), np.zeros(2))
    one = control.computed_torque(arm, reference, kp=25.0, kd=10.0)
    with pytest.raises(cj.SimulationError, match="finite joint forces") as caught:
        cj.simulate(arm, [0.0, 0.0], [0.0, 0.0], 1.0, control=one)
    assert 0.0 < caught.value.motion.time[-1] <= 0.2 + 1e-9
