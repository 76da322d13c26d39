"""The laws that a robot must obey, evaluated at random states, and other engines' numbers beside ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .dynamics import (
    coriolis_matrix,
    forward_dynamics,
    gravity_force,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)
from .errors import CoadjointError, ModelWarning
from .robot.robot import Robot

STATES = 20
_WEIGHTS = ((1, 8 / 5), (2, -2 / 5), (3, 8 / 105), (4, -1 / 140))
"""f'(0) = Σ w (f(k h) - f(-k h)) / 2h up to terms of order h⁸."""


@dataclass(frozen=True)
class Check:
    """One law or comparison: its relative error, what is allowed, and a remark."""

    name: str
    error: float
    allowed: float
    remark: str = ""

    @property
    def holds(self) -> bool:
        """True if the error is allowed; a check that could not be made does not count."""
        return not self.error > self.allowed


def check(robot: Robot, source: str | Path | None = None, seed: int = 0) -> list[Check]:
    """The laws of a robot at random states, and the numbers of Pinocchio and MuJoCo where they are installed.

    source: the file that the robot was read from; another engine then reads it by itself where it can.
    """
    if not robot.nv:
        raise CoadjointError(f"robot {robot.name!r} has no joint that moves.")
    rng = np.random.default_rng(seed)
    q = robot.random(rng, STATES)
    v, a = rng.normal(size=(2, STATES, robot.nv))
    return [*_laws(robot, q, v, a), *_peers(robot, source, q, v, a)]


def _relative(x: Any, y: Any) -> float:
    scale = float(np.max(np.abs(y), initial=0.0))
    return float(np.max(np.abs(np.asarray(x) - y), initial=0.0)) / (scale or 1.0)


def _rate(fn: Callable[[float], np.ndarray], h: float = 2e-3) -> np.ndarray:
    return np.asarray(sum(w * (fn(k * h) - fn(-k * h)) for k, w in _WEIGHTS) / (2 * h))


def _laws(robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[Check]:
    M, C = mass_matrix(robot, q), coriolis_matrix(robot, q, v)
    values = np.linalg.eigvalsh(M)
    singular = bool((values[:, 0] <= 1e-12 * values[:, -1]).any())
    least = "" if not singular else "some motion moves no mass"
    found = [Check("the mass matrix is positive definite", float((values[:, 0] <= 0).mean()), 0.0, least)]
    tau = inverse_dynamics(robot, q, v, a)
    if singular:
        found.append(Check("forward dynamics undoes inverse dynamics", np.nan, 0.0, "not for a singular mass matrix"))
    else:
        again = forward_dynamics(robot, q, v, tau)
        condition = float((values[:, -1] / values[:, 0]).max())
        found.append(Check("forward dynamics undoes inverse dynamics", _relative(again, a), max(1e-9, 1e-14 * condition)))
    slope = _rate(lambda h: potential_energy(robot, robot.integrate(q[:, None], h * np.eye(robot.nv))))
    gravity = gravity_force(robot, q)
    found.append(
        Check("gravity is the gradient of the potential energy", _relative(slope, gravity) if gravity.any() else 0.0, 1e-7)
    )

    def energy(h: float) -> np.ndarray:
        moved, fast = robot.integrate(q, h * v), v + h * a
        return kinetic_energy(robot, moved, fast) + potential_energy(robot, moved)

    found.append(Check("power is the rate of energy", _relative(np.einsum("kn,kn->k", tau, v), _rate(energy)), 1e-7))
    skew = _rate(lambda h: mass_matrix(robot, robot.integrate(q, h * v))) - 2.0 * C
    size = float(np.abs(C).max())
    found.append(Check("dM/dt - 2C is skew", float(np.abs(skew + skew.swapaxes(-1, -2)).max()) / (size or 1.0), 1e-6))
    return found


def _peers(robot: Robot, source: str | Path | None, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[Check]:
    found = []
    for name, module, compare in (("Pinocchio", "pinocchio", _pinocchio), ("MuJoCo", "mujoco", _mujoco)):
        if find_spec(module) is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)  # limits and the like, which change no force
                theirs, how = compare(robot, source, q, v, a)
        except Exception as error:
            found.append(
                Check(f"joint forces are those of {name}", np.nan, 0.0, f"not compared: {' '.join(str(error).split())[:120]}")
            )
            continue
        found.append(Check(f"joint forces are those of {name}", _relative(inverse_dynamics(robot, q, v, a), theirs), 1e-8, how))
    return found


def _pinocchio(robot: Robot, source: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, str]:
    from .interop import pinocchio as own
    from .interop._common import engine

    pin = engine("pinocchio")

    own_reader = source is not None and str(source).endswith(".urdf") and not robot.mimics
    free = any(kind.group is not None for kind in robot.kinds)
    if own_reader:
        model = pin.buildModelFromUrdf(str(source), pin.JointModelFreeFlyer()) if free else pin.buildModelFromUrdf(str(source))
        model.gravity.linear = np.asarray(robot.gravity)
    else:
        model = own.to_pinocchio(robot)
    data = model.createData()
    q, v, a = own.q_to_pinocchio(robot, model, q), own.v_to_pinocchio(robot, model, v), own.v_to_pinocchio(robot, model, a)
    tau = np.array([pin.rnea(model, data, x, y, z) for x, y, z in zip(q, v, a, strict=True)])
    return own.v_from_pinocchio(robot, model, tau), "it read the file itself" if own_reader else "the robot was converted"


def _mujoco(robot: Robot, source: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, str]:
    from .interop import mujoco as own
    from .interop._common import engine

    mujoco = engine("mujoco")

    plain = robot.with_numbers(damping=0.0 * robot.damping, friction=0.0 * robot.friction).consolidated()
    model = own.to_mjmodel(plain)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, found = mujoco.MjData(model), []
    for x, y, z in zip(q, v, a, strict=True):
        data.qpos[:], data.qvel[:] = own.q_to_mujoco(robot, model, x), own.v_to_mujoco(robot, model, x, y)
        data.qacc[:] = own.a_to_mujoco(robot, model, x, y, z)
        mujoco.mj_inverse(model, data)
        found.append(own.force_from_mujoco(robot, model, data.qpos.copy(), data.qfrc_inverse.copy()))
    return np.array(found), "the robot was converted"
