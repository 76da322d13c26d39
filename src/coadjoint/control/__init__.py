"""Controllers as geometry: tracking in joint space and on SE(3), adaptive and passive, with the functions that prove them."""

from .adaptive import adaptive, estimates
from .closed_loop import ClosedLoop, closed_loop
from .controller import Controller
from .hybrid import hybrid
from .joint_space import computed_torque, passivity_based, pd, pd_plus
from .limited import limited
from .linear import h_infinity, lqr_tracking
from .observer import MomentumObserver, momentum_observer
from .pose_references import screw_motion
from .references import hold, point_to_point, sinusoid
from .sampled import Running, SampledController, sampled
from .shaping import controlled_lagrangian, controlled_metric, controlled_symmetry, partial_linearization
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
    "controlled_lagrangian",
    "controlled_metric",
    "controlled_symmetry",
    "estimates",
    "h_infinity",
    "hold",
    "hybrid",
    "impedance",
    "limited",
    "lqr_tracking",
    "momentum_observer",
    "partial_linearization",
    "passivity_based",
    "pd",
    "pd_plus",
    "point_to_point",
    "sampled",
    "screw_motion",
    "se3_tracking",
    "sinusoid",
    "swing_up",
    "verify",
    "workspace",
]
