"""The same computation by us and by the libraries that are installed, on the same robot and states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import coadjoint as cj

Contender = tuple[Callable[[], object], int]

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "coriolis_matrix", "forward_kinematics")
ARGUMENTS = {
    "inverse_dynamics": "qva",
    "forward_dynamics": "qva",
    "mass_matrix": "q",
    "coriolis_matrix": "qv",
    "forward_kinematics": "q",
}


def states(robot: cj.Robot, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    v, a = rng.normal(size=(2, count, robot.nv))
    return {"q": robot.random(rng, count), "v": v, "a": a}


def ours(function: str, robot: cj.Robot, batch: int) -> dict[str, Contender]:
    """One state: the plain call, and compiled with `out=`. A batch: compiled with `out=` on one thread."""
    fn = getattr(cj, function)
    x = states(robot, max(batch, 1))
    arrays = [np.ascontiguousarray(x[key]) for key in ARGUMENTS[function]]
    if batch == 1:
        one = [y[0].copy() for y in arrays]
        out = np.array(fn(robot, *one))
        call = cj.compile(fn, robot)
        q, v, a = (*one, None, None)[:3]
        calls = {  # written out, as a user would: unpacking a tuple of arguments costs as much as the call
            1: (lambda: fn(robot, q), lambda: call(q, out=out)),
            2: (lambda: fn(robot, q, v), lambda: call(q, v, out=out)),
            3: (lambda: fn(robot, q, v, a), lambda: call(q, v, a, out=out)),
        }
        plain, compiled = calls[len(one)]
        return {"coadjoint, plain call": (plain, 1), "coadjoint, compiled, out=": (compiled, 1)}
    out = fn(robot, *arrays)
    return {"coadjoint": (lambda: fn(robot, *arrays, out=out, threads=1), batch)}


def pinocchio(function: str, robot: cj.Robot, batch: int) -> dict[str, Contender]:
    """Called from Python state by state, and its pool with one thread."""
    try:
        import pinocchio as pin
    except ImportError:
        return {}
    p = cj.interop.pinocchio
    model = p.to_pinocchio(robot)
    data = model.createData()
    x = states(robot, max(batch, 1))
    q = p.q_to_pinocchio(robot, model, x["q"])
    v, a = (p.v_to_pinocchio(robot, model, x[key]) for key in "va")
    q0, v0, a0 = q[0].copy(), v[0].copy(), a[0].copy()
    calls = {
        "inverse_dynamics": lambda: pin.rnea(model, data, q0, v0, a0),
        "forward_dynamics": lambda: pin.aba(model, data, q0, v0, a0),
        "mass_matrix": lambda: pin.crba(model, data, q0),
        "coriolis_matrix": lambda: pin.computeCoriolisMatrix(model, data, q0, v0),
        "forward_kinematics": lambda: pin.forwardKinematics(model, data, q0),
    }
    found: dict[str, Contender] = {"Pinocchio, from Python": (calls[function], 1)}
    pools = {"inverse_dynamics": pin.rneaInParallel, "forward_dynamics": pin.abaInParallel}
    if batch > 1 and function in pools:
        pool = pin.ModelPool(model, 1)
        columns = [np.asfortranarray(y.T) for y in (q, v, a)]
        result = np.empty((model.nv, batch), order="F")
        found["Pinocchio, pool, 1 thread"] = (lambda: pools[function](1, pool, *columns, result), batch)
    return found


def mujoco(function: str, robot: cj.Robot, batch: int) -> dict[str, Contender]:
    """Called from Python state by state."""
    try:
        import mujoco as mj
    except ImportError:
        return {}
    m = cj.interop.mujoco
    try:
        model = m.to_mjmodel(robot)
    except cj.CoadjointError:
        return {}
    model.opt.disableflags |= mj.mjtDisableBit.mjDSBL_CONTACT | mj.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mj.MjData(model)
    M = np.zeros((model.nv, model.nv))

    def bias_and_acceleration() -> None:
        mj.mj_rne(model, data, 1, M[0])

    def prepared(fn: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> None:
            mj.mj_kinematics(model, data)
            mj.mj_comPos(model, data)
            fn()

        return run

    def inverse() -> None:
        mj.mj_comVel(model, data)
        bias_and_acceleration()

    calls = {
        "inverse_dynamics": prepared(inverse),
        "forward_kinematics": lambda: mj.mj_kinematics(model, data),
        "forward_dynamics": lambda: mj.mj_forward(model, data),
        "mass_matrix": prepared(lambda: mj.mj_makeM(model, data) if hasattr(mj, "mj_makeM") else mj.mj_crb(model, data)),
    }
    return {"MuJoCo, from Python": (calls[function], 1)} if function in calls else {}


def contenders(function: str, robot: cj.Robot, batch: int) -> dict[str, Contender]:
    """All that are installed; batch 1 is one state."""
    return ours(function, robot, batch) | pinocchio(function, robot, batch) | mujoco(function, robot, batch)
