"""Adaptive control: tracking with unknown inertias, which are estimated while the robot moves.

The forces M a_r + C v_r + g are Y(q, v, v_r, a_r) φ, linear in the inertial parameters φ (Park, Bobrow & Ploen (1995), section 5). With
estimates φ̂ in place of φ, τ = Y φ̂ + K s, the Lyapunov function ½ sᵀMs + (distance of φ̂ to φ) falls by sᵀK s if the estimates follow

    Euclidean     dφ̂/dt = γ Yᵀ s                      distance |φ̂ - φ|² / 2γ                            Slotine & Li (1987)
    base          dβ̂/dt = γ Y_bᵀ s                     distance |β̂ - β|² / 2γ, β the base parameters, Y_b their columns of Y
    natural       dP/dt = γ P G P                     distance Σ (log det P/P* + tr(P⁻¹P*) - 4) / γ      Lee, Kwon & Park (2018)

where P (4, 4) is the pseudo-inertia of a link and G the matrix with tr(G P) = sᵀ Y φ̂ for that link. The natural law is the gradient
in the affine-invariant metric of positive definite matrices: it does not depend on frames or units of length, and P stays positive
definite. A step of length h multiplies by A = 1 + X/2 + X²/8 ≈ exp(X/2), X = γ h P G: P' = A P Aᵀ. X has real eigenvalues x, and
1 + x/2 + x²/8 is at least ½, so that A is invertible and P' is positive definite whatever the gain and the data are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import a_name, a_number, a_robot, floats, names, one_of, positive, takes
from ..arrays import Array, concat, like, mv, namespace, transpose
from ..dynamics import mass_matrix, regressor, spring_force
from ..errors import CoadjointError, ShapeError
from ..identification.base_parameters import base_parameters
from ..lie import inertia
from ..robot.robot import Robot
from ..words import short
from .controller import gain, times
from .frame_sliding import frame_sliding
from .joint_space import sliding
from .pose_references import as_pose_reference
from .references import as_reference
from .sampled import SampledController
from .tracking_error import bracket
from .workspace import TWIST, as_posture

Gains = Mapping[str, Any]
METRICS = ("natural", "euclidean", "base")


@takes(robot=a_robot, metric=one_of(*METRICS), adaptation=positive, links=names)
def adaptive(
    robot: Robot,
    reference: Any,
    *,
    rate: Any,
    damping: Any,
    adaptation: float,
    period: float = 1e-3,
    metric: str = "natural",
    links: Sequence[str] | None = None,
    friction: float = 0.0,
    frame: str | None = None,
    posture: Any = None,
    posture_rate: float = 1.0,
) -> SampledController:
    """Adaptive tracking: τ = Y φ̂ + K s, with inertial parameters estimated from those of `robot` on.

    rate Λ and damping K as for `passivity_based`; reference(t) -> q, v, a; `adaptation`: γ, the speed at which estimates follow. metric:
    "natural", whose estimates are always inertias of bodies; "euclidean"; or "base", with as few numbers as the forces show
    (`base_parameters`), of all links. links: those whose inertia is adapted, all by default;
    as the last one for a payload. friction: the speed γ at which viscous and Coulomb friction of every joint are adapted; 0 for not at all.
    The state is `estimates(controller, state)`.

    frame: track its pose on SE(3) in place of the joints. Then reference(t) -> X, V, A or a pose (4, 4) as for `se3_tracking`, rate is
    that of the frame's error, a number, (6,) or (6, 6), and what the frame leaves free goes to the `posture` (nq,) with posture_rate
    [1/s], or is damped without one. The forces are NaN where the frame is singular.
    """
    if posture is not None and frame is None:
        raise CoadjointError("posture is given without frame; joints that are tracked leave nothing free.")
    of_frame = {} if frame is None else _of_frame(robot, frame, posture, posture_rate)
    if not (a_number(friction, "friction") >= 0):
        raise CoadjointError(f"friction is {friction:g}; expected a speed of adaptation that is zero or positive.")
    chosen = [robot.link_index(x) for x in (robot.link_names if links is None else links)]
    if metric == "base" and links is not None:
        raise CoadjointError("links is given, but metric='base' adapts combinations over all links; leave links out.")
    if not chosen:
        raise CoadjointError("links is empty; expected at least one link to adapt.")
    known = robot.inertial_parameters.reshape(-1, 10)
    if metric == "natural":
        for k in chosen:
            if np.linalg.eigvalsh(inertia.pseudo(known[k])).min() <= 0:
                raise CoadjointError(
                    f"link {robot.link_names[k]!r} has no positive definite pseudo-inertia, which the natural metric needs; give it a mass "
                    "and an inertia of a body with volume, leave it out of `links`, or choose metric='euclidean'."
                )
    base = base_parameters(robot) if metric == "base" else None
    gains = {
        "rate": gain(rate, "rate", *((robot.nv, False, robot.v_names) if frame is None else (6, False, TWIST))),
        "damping": gain(damping, "damping", robot.nv, of=robot.v_names),
        "adaptation": float(adaptation),
        "natural": metric == "natural",
        "links": chosen,
        "friction": float(friction),
        "base": base,
        "frame": frame,
    } | of_frame
    losses = np.zeros(2 * robot.nv if friction else 0)
    start = known[chosen].reshape(-1) if base is None else base.values(robot)
    initial = np.concatenate([start, losses])
    desired = as_reference(robot, reference) if frame is None else as_pose_reference(reference)
    return SampledController(robot, "adaptive", _adaptive, desired, gains, period, initial)


def _of_frame(robot: Robot, frame: str, posture: Any, posture_rate: float) -> dict[str, Any]:
    """The arguments of `frame_sliding`."""
    robot.frame(a_name(frame, "frame"))
    if robot.nv < 6:
        raise CoadjointError(f"robot {robot.name!r} has {robot.nv} freedoms; a frame on SE(3) needs 6. Leave frame out.")
    q = as_posture(robot, posture)
    W = np.asarray(mass_matrix(robot, robot.neutral() if q is None else q))
    return {"posture": q, "posture_rate": float(positive(posture_rate, "posture_rate")), "flat": np.linalg.inv(W)}


def estimates(controller: SampledController, state: Array) -> Robot:
    """The robot with the inertias that the state (k,) of an adaptive controller holds.

    Base parameters leave many inertias possible: those nearest to the controller's own are given.
    """
    gains = getattr(controller, "gains", {})
    gains = getattr(gains.get("of"), "gains", gains)  # of one that is `sampled`
    if "adaptation" not in gains:
        raise CoadjointError(f"controller is {short(controller)}; expected one from control.adaptive(…).")
    robot, chosen, base, state = controller.robot, gains["links"], gains["base"], floats(state, "state")
    least = 10 * len(chosen) if base is None else base.rank
    if state.ndim != 1 or len(state) < least:
        raise ShapeError(f"state has shape {state.shape}; expected one state ({controller.initial.size},), as `loop.state[-1]`.")
    parameters = robot.inertial_parameters.reshape(-1, 10).copy()
    if base is not None:
        change = state[: base.rank] - base.values(robot)
        return robot.with_inertial_parameters(robot.inertial_parameters + np.linalg.pinv(base.matrix) @ change)
    parameters[chosen] = state[: 10 * len(chosen)].reshape(-1, 10)
    return robot.with_inertial_parameters(parameters.reshape(-1))


def slotine_li_regressor(robot: Robot, q: Array, v: Array, v_r: Array, a_r: Array) -> Array:
    """Y (..., nv, 10 n_links) with Y @ robot.inertial_parameters = M a_r + C(q, v) v_r + g, without armature and springs.

    C(q, v) w = ∇_v w is torsion-free, ∇_v w - ∇_w v = [v, w], and its symmetric part is that of the bias force c(v) = C(q, v) v:
    C(q, v) w = ¼ (c(v + w) - c(v - w)) + ½ M [v, w].
    """
    still = 0.0 * v
    at_rest = regressor(robot, q, still, a_r + 0.5 * bracket(robot, v, v_r))
    return at_rest + 0.25 * (regressor(robot, q, v + v_r, still) - regressor(robot, q, v - v_r, still))


def _adaptive(gains: Gains, period: float, robot: Robot, q: Array, v: Array, state: Array, *desired: Array) -> tuple[Array, Array]:
    v_r, a_r, s = (
        sliding(gains["rate"], robot, q, v, *desired) if gains["frame"] is None else frame_sliding(gains, robot, q, v, *desired)
    )
    Y = slotine_li_regressor(robot, q, v, v_r, a_r)
    tau, moved = (_by_links if gains["base"] is None else _by_base)(gains, period, robot, Y, s, state)
    tau = tau + times(gains["damping"], s) + robot.from_tree(like(robot.armature, s) * robot.tree_v(a_r))
    if robot.spring_ends:
        tau = tau + spring_force(robot, q)
    if gains["friction"]:
        n = robot.nv
        loss = state[..., -2 * n :]
        signs = _smooth_sign(v_r)
        tau = tau + loss[..., :n] * v_r + loss[..., n:] * signs
        moved.append(loss + period * gains["friction"] * concat([v_r * s, signs * s]))
    return tau, concat(moved)


def _by_links(gains: Gains, period: float, robot: Robot, Y: Array, s: Array, state: Array) -> tuple[Array, list[Array]]:
    """Y φ̂ (..., nv) and the parameters of each adapted link after one step."""
    columns = [Y[..., 10 * k : 10 * k + 10] for k in gains["links"]]
    parts = [state[..., 10 * k : 10 * k + 10] for k in range(len(columns))]
    tau, known = 0.0 * s, like(robot.inertial_parameters, s)
    for y, part in zip(columns, parts, strict=True):
        tau = tau + mv(y, part)
    for k in range(robot.n_links):
        if k not in gains["links"]:
            tau = tau + mv(Y[..., 10 * k : 10 * k + 10], known[..., 10 * k : 10 * k + 10])
    return tau, [_moved(gains, period, part, mv(transpose(y), s)) for y, part in zip(columns, parts, strict=True)]


def _by_base(gains: Gains, period: float, robot: Robot, Y: Array, s: Array, state: Array) -> tuple[Array, list[Array]]:
    """Y_b β̂ (..., nv) and the base parameters after one step."""
    own, beta = Y[..., list(gains["base"].pivots)], state[..., : gains["base"].rank]
    return mv(own, beta), [beta + period * gains["adaptation"] * mv(transpose(own), s)]


def _moved(gains: Gains, period: float, parameters: Array, g: Array) -> Array:
    """Ten parameters of a link after one step along the gradient g (..., 10)."""
    step = period * gains["adaptation"]
    if not gains["natural"]:
        return parameters + step * g
    P = inertia.pseudo(parameters)
    X = step * (P @ inertia.pseudo_dual(g))
    A = like(np.eye(4), g) + 0.5 * X + 0.125 * (X @ X)
    return inertia.from_pseudo(A @ P @ transpose(A))


def _smooth_sign(v: Array, width: float = 0.02) -> Array:
    """tanh(v / width): Coulomb friction without a jump."""
    return namespace(v).tanh(v / width)
