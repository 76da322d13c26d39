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

from ..arguments import a_number, a_robot, one_of, positive, takes
from ..arrays import Array, concat, like, mv, transpose
from ..differentiating import differential
from ..dynamics import coriolis_matrix, gravity_force, mass_matrix
from ..errors import CoadjointError
from ..identification.base_parameters import base_parameters
from ..lie import inertia
from ..robot.robot import Robot
from .controller import gain, times
from .joint_space import sliding
from .references import as_reference
from .sampled import SampledController

Gains = Mapping[str, Any]
METRICS = ("natural", "euclidean", "base")


@takes(robot=a_robot, metric=one_of(*METRICS), adaptation=positive)
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
) -> SampledController:
    """Adaptive tracking: τ = Y φ̂ + K s, with inertial parameters estimated from those of `robot` on.

    rate Λ and damping K as for `passivity_based`; reference(t) -> q, v, a; `adaptation`: γ, the speed at which estimates follow. metric:
    "natural", whose estimates are always inertias of bodies; "euclidean"; or "base", with as few numbers as the forces show
    (`base_parameters`), of all links. links: those whose inertia is adapted, all by default;
    as the last one for a payload. friction: the speed γ at which viscous and Coulomb friction of every joint are adapted; 0 for not at all.
    The state is `estimates(controller, state)`.
    """
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
        "rate": gain(rate, "rate", robot.nv),
        "damping": gain(damping, "damping", robot.nv),
        "adaptation": float(adaptation),
        "natural": metric == "natural",
        "links": chosen,
        "friction": float(friction),
        "base": base,
    }
    losses = np.zeros(2 * robot.nv if friction else 0)
    start = known[chosen].reshape(-1) if base is None else base.values(robot)
    initial = np.concatenate([start, losses])
    return SampledController(robot, "adaptive", _adaptive, as_reference(robot, reference), gains, period, initial)


def estimates(controller: SampledController, state: Array) -> Robot:
    """The robot with the inertias that the state (k,) of an adaptive controller holds.

    Base parameters leave many inertias possible: those nearest to the controller's own are given.
    """
    robot, chosen, base = controller.robot, controller.gains["links"], controller.gains["base"]
    parameters = robot.inertial_parameters.reshape(-1, 10).copy()
    if base is not None:
        change = np.asarray(state, dtype=float)[: base.rank] - base.values(robot)
        return robot.with_inertial_parameters(robot.inertial_parameters + np.linalg.pinv(base.matrix) @ change)
    parameters[chosen] = np.asarray(state, dtype=float)[: 10 * len(chosen)].reshape(-1, 10)
    return robot.with_inertial_parameters(parameters.reshape(-1))


def slotine_li_force(robot: Robot, q: Array, v: Array, v_r: Array, a_r: Array) -> Array:
    """M(q) a_r + C(q, v) v_r + g(q) (..., nv), with the Christoffel matrix C."""
    return mv(mass_matrix(robot, q), a_r) + mv(coriolis_matrix(robot, q, v), v_r) + gravity_force(robot, q)


slotine_li_regressor = differential(slotine_li_force, "inertial")
"""Y (..., nv, 10 n_links): slotine_li_regressor(robot, q, v, v_r, a_r) @ robot.inertial_parameters is `slotine_li_force`."""


def _adaptive(gains: Gains, period: float, robot: Robot, q: Array, v: Array, state: Array, *desired: Array) -> tuple[Array, Array]:
    v_r, a_r, s = sliding(gains["rate"], robot, q, v, *desired)
    Y = slotine_li_regressor(robot, q, v, v_r, a_r)
    tau, moved = (_by_links if gains["base"] is None else _by_base)(gains, period, robot, Y, s, state)
    tau = tau + times(gains["damping"], s)
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
    from ..arrays import namespace

    return namespace(v).tanh(v / width)
