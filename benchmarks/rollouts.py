"""Steps of a simulated Panda without contacts, beside `mujoco.rollout`."""

from __future__ import annotations

import numpy as np

import coadjoint as cj

from .timing import measure

ROBOTS, STEPS, DT = 256, 100, 1e-3


def rollouts(rounds: int) -> list[dict]:
    """Times a step of one robot, many robots rolled out together, by one thread."""
    robot = cj.load("panda")
    rng = np.random.default_rng(0)
    q, v = robot.random(rng, ROBOTS), 0.1 * rng.normal(size=(ROBOTS, 7))
    tau = rng.normal(size=(ROBOTS, STEPS, 7))
    contenders = {}
    for method in ("euler", "rk4"):
        contenders[f"coadjoint, {method}"] = (
            lambda m=method: cj.rollout(robot, q, v, tau, dt=DT, method=m, threads=1),
            ROBOTS * STEPS,
        )
    contenders |= _mujoco(robot, q, v, tau)
    timings = measure(contenders, rounds)
    print("\n| Panda, a step of one robot | time | times slower than ours of the same order (quartiles) |\n|---|---|---|")
    rows = []
    for name, timing in timings.items():
        ratio = timing.ratio_to(timings["coadjoint, rk4" if "RK4" in name else "coadjoint, euler"])
        rows.append({"name": name, "seconds": timing.best, "ratio": ratio})
        print(f"| {name} | {timing.best * 1e9:.0f} ns | {ratio[0]:.1f} ({ratio[1]:.1f} … {ratio[2]:.1f}) |", flush=True)
    return rows


def _mujoco(robot: cj.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> dict:
    try:
        import mujoco
        from mujoco import rollout
    except ImportError:
        return {}
    off = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    state = np.concatenate([np.zeros((ROBOTS, 1)), q, v], axis=1)
    applied = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    found = {}
    for name, integrator in (("MuJoCo, Euler", mujoco.mjtIntegrator.mjINT_EULER), ("MuJoCo, RK4", mujoco.mjtIntegrator.mjINT_RK4)):
        own = cj.interop.mujoco.to_mjmodel(robot)
        own.opt.timestep, own.opt.disableflags, own.opt.integrator = DT, int(off), int(integrator)
        size = mujoco.mj_stateSize(own, int(mujoco.mjtState.mjSTATE_FULLPHYSICS))
        start = np.concatenate([state, np.zeros((ROBOTS, size - state.shape[1]))], axis=1)
        call = lambda m=own, d=mujoco.MjData(own), s=start: rollout.rollout(m, d, s, tau, control_spec=applied)
        found[name] = (call, ROBOTS * STEPS)
    return found
