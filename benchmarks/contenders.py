"""The same computation by us and by the libraries that are installed, on the same robot and states."""

from __future__ import annotations

from collections.abc import Callable
from timeit import Timer
from typing import Any

import numpy as np

import coadjoint as cj

from .timing import Contender

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
        scope = {"fn": fn, "call": call, "robot": robot, "out": out} | dict(zip("qva", one, strict=False))
        names = ", ".join(ARGUMENTS[function])
        return {
            "coadjoint, plain call": (Timer(f"fn(robot, {names})", globals=scope), 1),
            "coadjoint, compiled, out=": (Timer(f"call({names}, out=out)", globals=scope), 1),
        }
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
    calls = {
        "inverse_dynamics": (pin.rnea, "call(model, data, q, v, a)"),
        "forward_dynamics": (pin.aba, "call(model, data, q, v, a)"),
        "mass_matrix": (pin.crba, "call(model, data, q)"),
        "coriolis_matrix": (pin.computeCoriolisMatrix, "call(model, data, q, v)"),
        "forward_kinematics": (pin.forwardKinematics, "call(model, data, q)"),
    }
    call, statement = calls[function]
    scope = {"call": call, "model": model, "data": data, "q": q[0].copy(), "v": v[0].copy(), "a": a[0].copy()}
    found: dict[str, Contender] = {"Pinocchio, from Python": (Timer(statement, globals=scope), 1)}
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
