"""Controllers as geometry: tracking in joint space and on SE(3), adaptive and passive, with the functions that prove them."""

from .adaptive import adaptive, estimates
from .closed_loop import ClosedLoop, closed_loop
from .controller import Controller
from .joint_space import computed_torque, passivity_based, pd, pd_plus
from .observer import MomentumObserver, momentum_observer
from .pose_references import screw_motion
from .references import hold, point_to_point, sinusoid
from .sampled import Running, SampledController
from .underactuated import balance, swing_up
from .verify import Verification, verify
from .workspace import FrameTask, impedance, se3_tracking, workspace

__all__ = [
    "ClosedLoop",
    "Controller",
    "FrameTask",
    "MomentumObserver",
    "Running",
    "SampledController",
    "Verification",
    "adaptive",
    "balance",
    "closed_loop",
    "computed_torque",
    "estimates",
    "hold",
    "impedance",
    "momentum_observer",
    "passivity_based",
    "pd",
    "pd_plus",
    "point_to_point",
    "screw_motion",
    "se3_tracking",
    "sinusoid",
    "swing_up",
    "verify",
    "workspace",
]
