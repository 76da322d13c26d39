"""One controller of each kind, of a small arm."""

import numpy as np

import coadjoint as cj
from coadjoint import control

THREE = cj.load("planar3r")


def small(law):
    """Every controller, of a small arm."""
    robot, q = THREE, np.array([0.3, 0.8, -0.5])
    X = np.asarray(cj.pose(robot, q, "tip"))
    ahead = control.sinusoid(robot, q, 0.2, 0.5)
    moving = control.screw_motion(X, X @ cj.lie.se3.exp([0, 0, 0.3, 0.1, 0.2, 0]), 1.0)
    motors = list(robot.joint_names[1:])
    track = control.computed_torque(robot, ahead, kp=25.0, kd=10.0)
    planar = (2, 3, 4)
    laws = {
        "pd": lambda: control.pd(robot, q, kp=25.0, kd=10.0),
        "computed_torque": lambda: track,
        "pd_plus": lambda: control.pd_plus(robot, ahead, kp=25.0, kd=10.0),
        "passivity_based": lambda: control.passivity_based(robot, ahead, rate=5.0, damping=4.0),
        "log": lambda: control.se3_tracking(robot, "tip", moving, kp=25.0, kd=10.0, rows=planar),
        "double_geodesic": lambda: control.se3_tracking(robot, "tip", moving, kp=25.0, kd=10.0, rows=planar, error="double-geodesic"),
        "hybrid": lambda: control.hybrid(robot, cj.Constraint.point(robot, "tip", axes="y"), ahead, force=[3.0], kp=25.0, kd=10.0),
        "limited": lambda: control.limited(track, effort=20.0, velocity=False, position=False),
        "adaptive": lambda: control.adaptive(robot, ahead, rate=5.0, damping=4.0, adaptation=1.0, metric="base", friction=0.1),
        "adaptive_frame": lambda: control.adaptive(
            cj.load("puma560"), np.eye(4), frame="tip", rate=5.0, damping=4.0, adaptation=1.0, metric="euclidean", links=["link6"]
        ),
        "balance": lambda: control.balance(robot, [np.pi / 2, 0, 0], actuated=motors),
        "h_infinity": lambda: control.h_infinity(robot, [np.pi / 2, 0, 0], actuated=motors),
        "lqr_tracking": lambda: control.lqr_tracking(robot, cj.simulate(robot, q, np.zeros(3), np.linspace(0, 0.1, 5), control=np.ones(3))),
        "swing_up": lambda: control.swing_up(
            robot, [np.pi / 2, 0, 0], actuated=motors, kE=1.0, kd=50.0, kp=1.0, kv=1.0,
            catch=control.balance(robot, [np.pi / 2, 0, 0], actuated=motors),
        ),
        "partial": lambda: control.partial_linearization(robot, ahead, actuated=motors, kp=25.0, kd=10.0),
        "symmetry": lambda: control.controlled_symmetry(robot, (1.0, 0.0, -3.0)),
        "lagrangian": lambda: control.controlled_lagrangian(cj.load("cartpole"), [0.0, 0.0], actuated="slide"),
        "impedance": lambda: control.impedance(cj.load("puma560"), "tip", np.eye(4), stiffness=25.0, damping=10.0),
        "sampled": lambda: control.sampled(track, delay=1),
        "observer": lambda: control.momentum_observer(robot, gain_rate=30.0),
    }  # fmt: skip
    return laws if law is None else laws[law]()
