"""Every controller on every mechanism that it is for: finite forces, a motion that its law promises, and as C without memory of its own."""

import ctypes
import shutil
import subprocess
from itertools import product

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from controllers import small
from random_robots import random_robot

pytestmark = pytest.mark.native

TREE = random_robot(4, 4, ["revolute", "prismatic", "revolute"])
FLOATING = random_robot(2, 4, ["free", "revolute"], tree=True)
ARM = cj.load("panda")
HOME = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5])
ROBOTS = {"arm": ARM, "tree": TREE, "floating base": FLOATING}
EVERYWHERE = ("pd", "computed torque", "pd+", "passivity-based", "adaptive", "limited", "lqr", "h infinity", "lqr tracking")
AT_THE_TIP = ("log", "double geodesic", "hierarchy", "impedance", "chosen inertia")


def start_of(robot):
    return HOME if robot is ARM else np.asarray(robot.neutral())


def made(law, robot, period=1e-3):
    """A controller that brings the robot back to `start_of` it, with about the same rate for all."""
    q, n = start_of(robot), robot.nv
    inertias = np.diag(np.asarray(cj.mass_matrix(robot, q)))
    tip = robot.frame_names[-1]
    X = np.asarray(cj.pose(robot, q, tip))
    rows, own = (3, 4, 5), np.asarray(cj.effective_inertia(robot, q, tip)) if n > 5 else np.eye(6)
    costs = {"state_cost": np.r_[np.full(n, 400.0), np.full(n, 4.0)], "force_cost": 1 / np.maximum(inertias, 0.05) ** 2}
    if law == "lqr tracking":
        tau = np.asarray(cj.gravity_force(robot, q))
        times = np.linspace(0.0, 3.0, 31)
        still = cj.Trajectory(robot, times, np.tile(q, (31, 1)), np.zeros((31, n)), np.tile(tau, (31, 1)))
        return control.lqr_tracking(robot, still, **costs)
    return {
        "pd": lambda: control.pd(robot, q, kp=100 * inertias, kd=20 * inertias),
        "computed torque": lambda: control.computed_torque(robot, q, kp=100.0, kd=20.0),
        "pd+": lambda: control.pd_plus(robot, q, kp=100 * inertias, kd=20 * inertias),
        "passivity-based": lambda: control.passivity_based(robot, q, rate=10.0, damping=20 * inertias),
        "adaptive": lambda: control.adaptive(
            robot, q, rate=10.0, damping=20 * inertias, adaptation=0.1, period=period, links=[robot.link_names[-1]]
        ),
        "limited": lambda: control.limited(
            control.computed_torque(robot, q, kp=100.0, kd=20.0), effort=200.0, velocity=False, position=False
        ),
        "lqr": lambda: control.balance(robot, q, actuated=robot.joint_names, **costs),
        "h infinity": lambda: control.h_infinity(robot, q, attenuation=1e3, **costs),
        "log": lambda: control.se3_tracking(
            robot, tip, X, kp=100.0, kd=20.0, rows=rows, posture=q, posture_kp=50.0, posture_kd=14.0
        ),
        "double geodesic": lambda: control.se3_tracking(
            robot, tip, X, kp=100.0, kd=20.0, rows=rows, error="double-geodesic", posture=q, posture_kp=50.0, posture_kd=14.0
        ),
        "hierarchy": lambda: control.workspace(
            robot,
            [
                control.FrameTask(tip, X, kp=100.0, kd=20.0, rows=rows),
                control.FrameTask(tip, X, kp=100.0, kd=20.0, rows=(0,)),
            ],
            posture=q,
            posture_kp=50.0,
            posture_kd=14.0,
        ),
        "impedance": lambda: control.impedance(robot, tip, X, stiffness=100 * own, damping=20 * own, posture=q, posture_kp=50.0),
        "chosen inertia": lambda: control.impedance(
            robot, tip, X, stiffness=100.0, damping=20.0, inertia=np.eye(6), posture=q, posture_kp=50.0
        ),
    }[law]()


def away(robot, size=0.05):
    rng = np.random.default_rng(7)
    return np.asarray(robot.integrate(start_of(robot), size * rng.normal(size=robot.nv))), 0.1 * rng.normal(size=robot.nv)


def left(robot, loop):
    """How far from `start_of` it a loop is, at first and at the end."""
    e = np.asarray(robot.difference(start_of(robot), loop.q))
    return np.abs(e[0]).max(), np.abs(e[-1]).max()


def run(robot, one, duration=2.0):
    """The loop at 1 kHz, late by one sample, with noise of 1 mrad/s, and with encoders of 17 bits where all joints have one coordinate."""
    noise = 1e-3 * np.random.default_rng(1).normal(size=(round(duration / 1e-3), robot.nv))
    resolution = 2 * np.pi / 2**17 if robot.nq == robot.nv else 0.0
    return control.closed_loop(robot, one, *away(robot), duration, delay=1, resolution=resolution, noise=noise)


FEW = ("tree", "computed torque"), ("tree", "adaptive"), ("tree", "h infinity")


@pytest.mark.parametrize(
    ("name", "law"),
    [
        x if x in FEW else pytest.param(*x, marks=pytest.mark.slow)
        for x in product(ROBOTS, EVERYWHERE)
        if x[1] != "limited" or x[0] == "tree"
    ],
)
def test_loops_at_a_kilohertz_are_stable(name, law):
    """With all that a real loop has, the error falls to a twentieth within 2 s."""
    robot = ROBOTS[name]
    first, last = left(robot, run(robot, made(law, robot)))
    assert last < 0.05 * first


@pytest.mark.slow
@pytest.mark.parametrize(("name", "law"), list(product(["arm", "floating base"], AT_THE_TIP)))
def test_loops_of_the_hand_at_a_kilohertz_are_stable(name, law):
    """The same for controllers of the tip; the posture follows more slowly."""
    robot = ROBOTS[name]
    tip, loop = robot.frame_names[-1], run(robot, made(law, robot))
    place = lambda q: np.asarray(cj.pose(robot, q, tip))[:3, 3]
    assert np.linalg.norm(place(loop.q[-1]) - place(start_of(robot))) < 2e-3
    first, last = left(robot, loop)
    assert last < 0.2 * first


MATH = {
    "sin",
    "cos",
    "sincos",
    "tan",
    "atan2",
    "sqrt",
    "exp",
    "log",
    "pow",
    "tanh",
    "floor",
    "fmin",
    "fmax",
    "fabs",
    "acos",
    "asin",
}


def inputs_of(one, rng):
    """Arrays for the graph of a controller, and what the controller itself says to them."""
    robot = one.robot
    q, v, t = 0.3 * rng.normal(size=robot.nq), rng.normal(size=robot.nv), np.array([0.05])
    if isinstance(one, control.MomentumObserver):
        given = [q, v, rng.normal(size=robot.nv), rng.normal(size=2 * robot.nv)]
        return given, one.update(*given)
    if isinstance(one, control.SampledController):
        return [q, v, t, one.initial], np.concatenate(one.step(q, v, 0.05, one.initial))
    known = "t" in one.graph().input_names
    return [q, v, *([t] if known else [np.ascontiguousarray(x) for x in one.reference(0.05)])], one.force(q, v, 0.05)


@pytest.mark.parametrize(
    "law", [x if x in ("computed_torque", "lqr_tracking") else pytest.param(x, marks=pytest.mark.slow) for x in small(None)]
)
def test_exported_c_is_every_controller(law, tmp_path):
    """One C file that compiles without a warning, needs nothing but functions of <math.h>, and agrees to 1e-13."""
    compiler, symbols = shutil.which("cc") or shutil.which("gcc"), shutil.which("nm")
    if compiler is None or symbols is None:
        pytest.skip("no C compiler")
    one = small(law)
    graph = one.graph()
    (tmp_path / "c.c").write_text(cj.export.c(one))
    flags = ["-std=c99", "-Wall", "-Werror", "-O1", "-fPIC"]
    subprocess.run([compiler, *flags, "-c", tmp_path / "c.c", "-o", tmp_path / "c.o"], check=True)
    needed = subprocess.run([symbols, "-u", tmp_path / "c.o"], check=True, capture_output=True, text=True).stdout.split()
    assert set(needed) - {"U", "_GLOBAL_OFFSET_TABLE_"} <= MATH
    subprocess.run([compiler, "-shared", tmp_path / "c.o", "-o", tmp_path / "c.so", "-lm"], check=True)
    function = getattr(ctypes.CDLL(str(tmp_path / "c.so")), graph.name)
    given, expected = inputs_of(one, np.random.default_rng(4))
    found = [np.empty(shape) for shape in graph.output_shapes]
    function(*(ctypes.c_void_p(x.ctypes.data) for x in (*given, *found)))
    flat = np.concatenate([x.ravel() for x in found])
    assert np.isfinite(flat).all()
    np.testing.assert_allclose(flat, np.ravel(expected), rtol=1e-13, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize(
    "law", [x if x in ("computed_torque", "adaptive", "observer") else pytest.param(x, marks=pytest.mark.slow) for x in small(None)]
)
def test_compiled_controllers_are_the_controllers(law):
    """compile(controller) is a function of arrays that gives the same forces, for one state and for a batch."""
    one = small(law)
    function = cj.compile(one)
    given, expected = inputs_of(one, np.random.default_rng(4))
    flat = lambda found: np.concatenate([np.ravel(x) for x in (found if isinstance(found, tuple) else (found,))])
    np.testing.assert_allclose(flat(function(*given)), np.ravel(expected), rtol=1e-13, atol=1e-13 * np.abs(expected).max())
    many = function(*(np.stack([x, x]) for x in given))
    np.testing.assert_allclose(flat(many[0] if not isinstance(many, tuple) else tuple(x[1] for x in many)), flat(function(*given)))
    with pytest.raises(cj.CoadjointError, match="compile it alone"):
        cj.compile(one, shapes={"t": (1,)})


CHAIN = cj.load("planar4r")


def closed_chain():
    """A five-bar linkage: four joints whose tip is held at a point, two freedoms; and where it rests in the middle."""
    held = cj.Constraint.point(CHAIN, "tip", axes="xy", at=(1.5, 0.9))
    return held, cj.constraints.assemble(CHAIN, held, [0.2, 0.7, 0.6, 0.8])


@pytest.mark.parametrize(
    "law",
    [
        "computed torque",
        *(
            pytest.param(x, marks=pytest.mark.slow)
            for x in ("pd", "pd+", "passivity-based", "adaptive", "limited", "impedance", "hybrid")
        ),
    ],
)
def test_a_closed_chain_comes_back(law):
    """Under the loop's constraint, sampled at 1 kHz: forces that the loop takes up do not disturb the motion."""
    held, q = closed_chain()
    inertias = np.diag(np.asarray(cj.mass_matrix(CHAIN, q)))
    elbow = "link3"
    one = {
        "pd": lambda: control.pd(CHAIN, q, kp=100 * inertias, kd=20 * inertias),
        "computed torque": lambda: control.computed_torque(CHAIN, q, kp=100.0, kd=20.0),
        "pd+": lambda: control.pd_plus(CHAIN, q, kp=100 * inertias, kd=20 * inertias),
        "passivity-based": lambda: control.passivity_based(CHAIN, q, rate=10.0, damping=20 * inertias),
        "adaptive": lambda: control.adaptive(CHAIN, q, rate=10.0, damping=20 * inertias, adaptation=0.1, metric="base"),
        "limited": lambda: control.limited(
            control.pd(CHAIN, q, kp=100 * inertias, kd=20 * inertias), effort=400.0, velocity=False, position=False
        ),
        "impedance": lambda: control.se3_tracking(
            CHAIN, elbow, cj.pose(CHAIN, q, elbow), kp=100.0, kd=20.0, rows=(3, 4), posture=q, posture_kp=100.0, posture_kd=20.0
        ),
        "hybrid": lambda: control.hybrid(CHAIN, held, q, force=[3.0, -2.0], kp=100.0, kd=20.0),
    }[law]()
    away = cj.constraints.assemble(CHAIN, held, q + np.array([0.1, -0.05, 0.0, 0.0]))
    control_of_it = one.start() if law == "adaptive" else one
    motion = cj.simulate(CHAIN, away, np.zeros(4), [0.0, 1.5], control=control_of_it, constraints=held, period=1e-3)
    assert motion.drift()[0] < 1e-8
    assert np.abs(motion.q[-1] - q).max() < 0.02 * np.abs(away - q).max()
