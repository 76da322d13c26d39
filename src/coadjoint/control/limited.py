"""Controllers that keep limits: the admissible acceleration nearest to the one that a law asks for.

A law asks for forces τ₀, that is for the acceleration a₀ = M⁻¹ (τ₀ - h). The nearest acceleration that keeps the limits is

    least ½ (a - a₀)ᵀ H (a - a₀)    such that    |M a + h| ≤ τ_max  and  bounds of a by velocities and positions,

and τ = M a + h. The metric H says what gives way. With the diagonal of M, a joint at its limit leaves the others' accelerations as they
were asked for. With M itself it is Gauss' principle of least constraint: the joint stops as at a stop of its own, and the others are
dragged along. With a frame to keep, JᵀΛJ is added with a large weight: motions that leave the frame where it is give way first. Velocities
and positions are kept by barrier functions b ≥ 0 (Ames and others 2019) of rate γ,

    b = v_max - v:  db/dt ≥ -γ b                    b = q_max - q:  d²b/dt² + 2γ db/dt + γ² b ≥ 0        and likewise below,

which are bounds of a. A motion that starts with b ≥ 0 and db/dt + γ b ≥ 0 stays there as long as the motors are strong enough; where
they are not, the limits of force hold and the others give way by as little as can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..arguments import a_name, floats, one_of, positive, takes
from ..arrays import Array, concat, like, mv, namespace, solve_spd, transpose
from ..dynamics import bias_force, mass_matrix
from ..errors import CoadjointError, ShapeError
from ..kinematics import jacobian
from ..robot.link import Joint
from ..robot.robot import Robot
from ..words import short
from .controller import Controller
from .projection import project
from .references import beyond_limits

Gains = Mapping[str, Any]
METRICS = ("joints", "kinetic")
SOFT = 1e-7
"""By how much of their multiplier, in scaled units, limits of velocity and position give way where forces do not suffice."""
KEPT = 1e4
"""The weight of leaving the kept frame's motion, beside any other motion."""
SINGULAR, LEAST_MOBILITY = 1e-6, 1e-12
"""Additions to the mobility J M⁻¹ Jᵀ of the kept frame, relative to its mean and at least, with which it has an inverse also where the
arm is singular."""
LARGEST = 10
"""The largest number of freedoms for which the program is compiled: beyond it compiling costs more than it saves, and the law runs as
written."""


@takes(rate=positive, metric=one_of(*METRICS))
def limited(
    controller: Controller,
    *,
    effort: Any = None,
    velocity: Any = None,
    position: Any = None,
    rate: float = 20.0,
    metric: str = "joints",
    keep: str | None = None,
) -> Controller:
    """A controller whose forces keep limits and give the acceleration nearest to what `controller` asks for.

    effort and velocity: numbers or (nv,), by default the robot's own; position: (lower, upper), each (nq,), by default the robot's own;
    False for none. rate: γ [1/s], how fast velocities and positions may approach their limits. metric: "joints", in which other joints are
    not disturbed by one at its limit, or "kinetic", Gauss' principle. keep: the frame whose motion gives way last.
    Joints that have no motor in `controller`, as in `balance`, get none here. Forces never exceed the effort; positions and velocities
    never exceed theirs if the forces suffice. While no limit is touched the forces are those of `controller`.
    """
    if not isinstance(controller, Controller):
        raise CoadjointError(f"controller is {short(controller)}; expected one of `coadjoint.control`, as computed_torque(…).")
    robot = controller.robot
    if keep is not None:
        robot.frame(a_name(keep, "keep"))
    forces = _symmetric(effort, "effort", robot, robot.effort_limit)
    motors = _motors(controller)
    if motors is not None:
        forces = np.where(np.isin(np.arange(robot.nv), motors), forces, np.inf)
    speeds = _symmetric(velocity, "velocity", robot, _own_speeds(robot))
    lower, upper = _positions(position, robot)
    if not any(np.isfinite(x).any() for x in (forces, speeds, lower, upper)):
        raise CoadjointError(f"robot {robot.name!r} has no limits; give effort, velocity or position.")
    if "constraint" in controller.gains and any(np.isfinite(x).any() for x in (speeds, lower, upper)):
        raise CoadjointError(
            f"{controller.name} moves the robot under a constraint, which changes the accelerations that velocities and positions are kept "
            "by; give velocity=False and position=False, and limit the effort only."
        )
    gains = {
        "of": controller,
        "motors": motors,
        "effort": forces,
        "velocity": speeds,
        "position": (lower, upper),
        "rate": float(rate),
        "kinetic": metric == "kinetic",
        "keep": keep,
    }
    own = [name for name, x in (("position", position), ("velocity", velocity)) if x is not False]
    reference = beyond_limits(controller.reference, *own)
    return Controller(robot, f"limited_{controller.name}", _limited, reference, gains, native=robot.nv <= LARGEST)


def _motors(controller: Controller) -> list[int] | None:
    """The freedoms that the law drives, None for all."""
    gains = controller.gains
    if "of" in gains:
        return _motors(gains["of"])
    motors = sorted({gains["motor"]} if "motor" in gains else set(gains.get("motors", range(controller.robot.nv))))
    return motors if len(motors) < controller.robot.nv else None


def _symmetric(given: Any, name: str, robot: Robot, own: np.ndarray) -> np.ndarray:
    """Limits ± (nv,), infinite where there are none."""
    if given is False:
        return np.full(robot.nv, np.inf)
    limits = floats(own if given is None else given, name)
    if limits.shape not in ((), (robot.nv,)):
        raise ShapeError(f"{name} has shape {limits.shape}; expected a number or ({robot.nv},).")
    limits = np.broadcast_to(limits, (robot.nv,)).copy()
    if not (limits > 0).all():
        k = int(np.flatnonzero(~(limits > 0))[0])
        raise CoadjointError(f"{name} of {robot.v_names[k]} is {limits[k]:g}; expected a positive limit, or False for none.")
    return limits


def _own_speeds(robot: Robot) -> np.ndarray:
    """The robot's limits of velocity (nv,), with those of joints that follow others."""
    speeds = np.array(robot.velocity_limit, dtype=float)
    for k, ratio, _, joint in _mimics(robot):
        speeds[k] = min(speeds[k], float(joint.velocity[0]) / abs(ratio))
    return speeds


def _positions(given: Any, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits (nv,) of the coordinates of joints that have one, infinite elsewhere."""
    lower, upper = np.full(robot.nv, -np.inf), np.full(robot.nv, np.inf)
    if given is False:
        return lower, upper
    try:
        low, high = (
            np.broadcast_to(floats(x, "position"), (robot.nq,)) for x in ((robot.lower, robot.upper) if given is None else given)
        )
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(
            f"position is {short(given)}; expected (lower, upper), each a number or ({robot.nq},), or False."
        ) from None
    for i in range(robot.n_links):
        at, to = robot._q_slices[i], robot._v_slices[i]
        if i in robot.mimics or to.stop - to.start != 1 or at.stop - at.start != 1:
            continue
        lower[to], upper[to] = low[at], high[at]
    if given is None:
        for k, ratio, offset, joint in _mimics(robot):
            ends = sorted((float(x) - offset) / ratio for x in (joint.lower[0], joint.upper[0]))
            lower[k], upper[k] = max(lower[k], ends[0]), min(upper[k], ends[1])
    for k in np.flatnonzero(~(lower < upper)).tolist():
        raise CoadjointError(f"position of {robot.v_names[k]} is {lower[k]:g} … {upper[k]:g}; expected lower < upper.")
    return lower, upper


def _mimics(robot: Robot) -> list[tuple[int, float, float, Joint]]:
    """The freedom, ratio and offset that move each joint that follows another, and that joint, whose own limits hold, too."""
    return [
        (robot._v_slices[i].start, ratio, offset, robot.links[i].joint) for i, (_, ratio, offset) in robot.mimics.items() if ratio
    ]


def _limited(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    of, effort = gains["of"], gains["effort"]
    plan = _plan(gains, robot, q, v, of._law(of.gains, robot, q, v, *desired))
    strong = np.flatnonzero(np.isfinite(effort)).tolist()
    low, high, bounded = _acceleration_bounds(gains, robot, q, v)
    most = like(effort[strong], q)
    rows = _rows([plan.force[..., strong, :], plan.motion[..., bounded, :]])
    rest, drift = plan.rest[..., strong], plan.drift[..., bounded]
    lower, upper = concat([-most - rest, low - drift]), concat([most - rest, high - drift])
    softness = np.array([0.0] * len(strong) + [SOFT] * len(bounded))
    x = project(plan.metric, plan.wanted, rows, lower, upper, softness)
    found = mv(plan.force, x) + plan.rest
    if not strong:
        return found
    finite = like(np.where(np.isfinite(effort), effort, 1e300), q)
    return namespace(found).minimum(namespace(found).maximum(found, -finite), finite)  # rounding


class _Plan(NamedTuple):
    """The unknowns x (..., k) of the quadratic program, and their metric: forces are force x + rest, accelerations motion x + drift."""

    wanted: Array
    metric: Array
    force: Array
    rest: Array
    motion: Array
    drift: Array


def _plan(gains: Gains, robot: Robot, q: Array, v: Array, tau: Array) -> _Plan:
    """The accelerations are chosen where all joints have motors, else the forces of the motors: passive joints stay passive."""
    M, h, motors = mass_matrix(robot, q), bias_force(robot, q, v), gains["motors"]
    H, net = _metric(gains, robot, q, M), (tau - h)[..., None]
    if motors is None:
        return _Plan(solve_spd(M, net)[..., 0], H, M, h, like(np.eye(robot.nv), M) + 0.0 * M, 0.0 * h)
    select = like(np.eye(robot.nv)[:, motors], q) + 0.0 * net
    found = solve_spd(M, concat([select, net]))
    W, wanted = found[..., :-1], tau[..., motors]
    return _Plan(wanted, transpose(W) @ H @ W, select, tau - mv(select, wanted), W, found[..., -1] - mv(W, wanted))


def _rows(parts: list[Array]) -> Array:
    return transpose(concat([transpose(x) for x in parts if x.shape[-2]]))


def _metric(gains: Gains, robot: Robot, q: Array, M: Array) -> Array:
    H = M if gains["kinetic"] else M * like(np.eye(robot.nv), M)
    if gains["keep"] is None:
        return H
    J, one = jacobian(robot, q, gains["keep"]), like(np.eye(6), q)
    mobility = J @ solve_spd(M, transpose(J))
    each = (mobility * one).sum(-1)
    mean = [each[..., part].mean(-1)[..., None] + like(np.zeros(3), q) for part in (slice(0, 3), slice(3, 6))]
    slack = SINGULAR * concat(mean) + LEAST_MOBILITY
    return H + KEPT * (transpose(J) @ solve_spd(mobility + slack[..., None] * one, J))


def _acceleration_bounds(gains: Gains, robot: Robot, q: Array, v: Array) -> tuple[Array, Array, list[int]]:
    """Bounds (..., k) of the accelerations of the k velocities that have a limit, or whose coordinate has one, and which these are."""
    rate, speed, (lower, upper) = gains["rate"], gains["velocity"], gains["position"]
    bounded = np.flatnonzero(np.isfinite(speed) | np.isfinite(lower) | np.isfinite(upper)).tolist()
    xp, low, high = namespace(q, v), [], []
    for k in bounded:
        above, below = [], []
        if np.isfinite(speed[k]):
            above.append(rate * (speed[k] - v[..., k]))
            below.append(-rate * (speed[k] + v[..., k]))
        position = q[..., _coordinate(robot, k)]
        if np.isfinite(upper[k]):
            above.append(rate * rate * (upper[k] - position) - 2.0 * rate * v[..., k])
        if np.isfinite(lower[k]):
            below.append(rate * rate * (lower[k] - position) - 2.0 * rate * v[..., k])
        high.append(_least(xp.minimum, above, v[..., k], FAR))
        low.append(_least(xp.maximum, below, v[..., k], -FAR))
    empty = v[..., :0]
    return concat([x[..., None] for x in low] or [empty]), concat([x[..., None] for x in high] or [empty]), bounded


FAR = 1e9
"""A bound of accelerations that is none."""


def _least(choose: Any, bounds: list[Array], like_this: Array, none: float) -> Array:
    found = bounds[0] if bounds else 0.0 * like_this + none
    return choose(found, bounds[1]) if len(bounds) > 1 else found


def _coordinate(robot: Robot, k: int) -> int:
    """The coordinate of the joint whose only velocity is k."""
    for i in range(robot.n_links):
        if i not in robot.mimics and robot._v_slices[i] == slice(k, k + 1):
            return int(robot._q_slices[i].start)
    return 0
