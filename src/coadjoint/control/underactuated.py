"""Robots with fewer motors than freedoms: swing-up by energy shaping, and the regulator that balances at the top.

Let the actuated joints be A, the others passive. The energy E = T + U changes by the motors alone, dE/dt = v_Aᵀ τ_A, so that along

    V = ½ kE (E - E*)² + ½ kd |v_A|² + ½ kp |q_A - q*_A|²,      dV/dt = v_Aᵀ (kE (E - E*) τ_A + kd a_A + kp (q_A - q*_A)),

and a_A = W τ_A - (M⁻¹ h)_A with W = (M⁻¹)_AA. The law makes the bracket -kv v_A, so that dV/dt = -kv |v_A|²:

    (kE (E - E*) + kd W) τ_A = kd (M⁻¹ h)_A - kp (q_A - q*_A) - kv v_A.

Fantoni & Lozano (2002), Non-linear control for underactuated mechanical systems. The matrix on the left must stay regular: kd W must
outweigh kE times the energy that is missing. Close to the goal a linear-quadratic regulator takes over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import a_number, a_robot, positive, sequence, takes
from ..arrays import Array, concat, dot, like, mv, namespace, solve_spd
from ..dynamics import bias_force, kinetic_energy, mass_matrix, potential_energy
from ..errors import CoadjointError
from ..motion.linearize import equilibrium_force, linearize, lqr
from ..robot.robot import Robot
from ..words import short
from .controller import Controller, gain
from .references import hold

Gains = Mapping[str, Any]


@takes(robot=a_robot)
def balance(robot: Robot, goal: Any, *, actuated: Sequence[str], state_cost: Any = 1.0, force_cost: Any = 1.0) -> Controller:
    """The linear-quadratic regulator about rest at `goal` (nq,), with the motors of the joints `actuated` only.

    state_cost: of (error, velocity), a number, a diagonal (2 nv,) or a matrix; force_cost: of the motors' forces likewise. The goal must
    be an equilibrium that these motors can hold. The Lyapunov function is xᵀ P x of the linear model, which holds near the goal.
    """
    motors, reference = motors_of(robot, actuated), hold(robot, goal)
    q = reference(0.0)[0]
    tau = resting_force(robot, q, motors)
    A, B = linearize(robot, q, np.zeros(robot.nv), tau)
    K, P = lqr(
        A, B[:, motors], gain(state_cost, "state_cost", 2 * robot.nv, zero=True), gain(force_cost, "force_cost", len(motors))
    )
    gains = {"motors": motors, "K": K, "P": P, "tau": tau}
    return Controller(robot, "balance", regulate, reference, gains, value_of)


@takes(robot=a_robot, kE=positive, kd=positive, kv=positive, capture=positive)
def swing_up(
    robot: Robot,
    goal: Any,
    *,
    actuated: Sequence[str],
    kE: float,
    kd: float,
    kp: float,
    kv: float,
    catch: Controller | None = None,
    capture: float = 1.0,
) -> Controller:
    """Swing-up to rest at `goal` (nq,) by energy shaping, with the motors of the joints `actuated` only.

    kE, kd, kp, kv: the gains of the module's law. catch: a controller such as `balance` that takes over where its Lyapunov function is
    below `capture`.
    """
    motors, reference = motors_of(robot, actuated), hold(robot, goal)
    q = reference(0.0)[0]
    if robot.nq != robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has joints with quaternions; `swing_up` takes joints with one coordinate each.")
    if not (a_number(kp, "kp") >= 0):
        raise CoadjointError(f"kp is {kp:g}; gains must be zero or positive and finite.")
    resting_force(robot, q, motors)
    if catch is not None:
        _check_catch(catch, robot, q)
    energy = float(potential_energy(robot, q))
    gains = {"motors": motors, "kE": kE, "kd": kd, "kp": float(kp), "kv": kv, "energy": energy, "catch": catch, "capture": capture}
    return Controller(robot, "swing_up", _swing_up, reference, gains, _shaped_energy)


def _check_catch(catch: Any, robot: Robot, q: np.ndarray) -> None:
    """An error for a controller that cannot take over at q: it is judged by its Lyapunov function about that goal."""
    if not isinstance(catch, Controller) or catch._lyapunov is None:
        raise CoadjointError(f"catch is {short(catch)}; expected a controller with a Lyapunov function, as `balance`.")
    aim = np.asarray(catch.reference(0.0)[0])
    if catch.robot.nq != robot.nq or np.abs(aim - q).max() > 1e-9:
        raise CoadjointError(f"catch aims at {short(aim)}; expected the goal of the swing-up, {short(q)}.")


def motors_of(robot: Robot, actuated: Sequence[str]) -> list[int]:
    found = (
        [] if isinstance(actuated, str) else [k for x in sequence(actuated, "actuated") for k in range(robot.nv)[robot.v_slice(x)]]
    )
    if not found:
        raise CoadjointError(f"actuated is {actuated!r}; expected a list of joints that have motors.")
    for k in found:
        if found.count(k) > 1:
            raise CoadjointError(f"actuated has {robot.v_names[k]!r} twice; expected every joint once.")
    return found


def resting_force(robot: Robot, q: np.ndarray, motors: list[int]) -> np.ndarray:
    tau = equilibrium_force(robot, q)
    passive = [k for k in range(robot.nv) if k not in motors]
    scale = max(1.0, float(np.abs(tau).max(initial=0.0)))
    for k in passive:
        if abs(tau[k]) > 1e-6 * scale:
            raise CoadjointError(
                f"robot {robot.name!r} does not rest at the goal: {robot.v_names[k]} needs {tau[k]:.3g} and has no motor. Choose an "
                "equilibrium, such as the upright configuration."
            )
    return tau


def _spread(motors: list[int], n: int, forces: Array) -> Array:
    """The motors' forces (..., m) as joint forces (..., nv)."""
    return mv(like(np.eye(n)[:, motors], forces), forces)


def _state(robot: Robot, q: Array, v: Array, q_d: Array) -> Array:
    """x = (q - q*, v) (..., 2 nv); angles without limits are those of the nearest turn."""
    e = -robot.difference(q, q_d)
    free = np.zeros(robot.nv)
    for i, kind in enumerate(robot.kinds):
        if kind.revolute and i not in robot.mimics and not np.isfinite(robot.lower[robot._q_slices[i]]).any():
            free[robot._v_slices[i]] = 2.0 * np.pi
    turn = namespace(e).floor(e / (2.0 * np.pi) + 0.5)
    return concat([e - like(free, e) * turn, v])


def regulate(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    x = _state(robot, q, v, desired[0])
    return like(gains["tau"], q) - _spread(gains["motors"], robot.nv, mv(like(gains["K"], q), x))


def value_of(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    x = _state(robot, q, v, desired[0])
    return dot(x, mv(like(gains["P"], q), x))


def _missing(gains: Gains, robot: Robot, q: Array, v: Array) -> Array:
    """E - E* (...)."""
    return kinetic_energy(robot, q, v) + potential_energy(robot, q) - gains["energy"]


def _shaping_force(gains: Gains, robot: Robot, q: Array, v: Array, q_d: Array) -> Array:
    motors, n = gains["motors"], robot.nv
    select = like(np.eye(n)[:, motors], q)
    found = solve_spd(mass_matrix(robot, q), concat([select, bias_force(robot, q, v)[..., None] + 0.0 * select[..., :1]]))
    W, drift = found[..., motors, :-1], found[..., motors, -1]
    one = like(np.eye(len(motors)), q)
    left = gains["kE"] * _missing(gains, robot, q, v)[..., None, None] * one + gains["kd"] * W
    right = gains["kd"] * drift - gains["kp"] * (q - q_d)[..., motors] - gains["kv"] * v[..., motors]
    if len(motors) == 1:
        return _spread(motors, n, right / left[..., 0, :])
    return _spread(motors, n, solve_spd(left, right[..., None])[..., 0])


def _swing_up(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    tau = _shaping_force(gains, robot, q, v, desired[0])
    catch = gains["catch"]
    if catch is None:
        return tau
    near = catch._lyapunov(catch.gains, robot, q, v, *desired) < gains["capture"]
    return namespace(tau).where(near[..., None], catch._law(catch.gains, robot, q, v, *desired), tau)


def _shaped_energy(gains: Gains, robot: Robot, q: Array, v: Array, *desired: Array) -> Array:
    motors = gains["motors"]
    missing, away, speed = _missing(gains, robot, q, v), (q - desired[0])[..., motors], v[..., motors]
    return 0.5 * (gains["kE"] * missing * missing + gains["kd"] * dot(speed, speed) + gains["kp"] * dot(away, away))
