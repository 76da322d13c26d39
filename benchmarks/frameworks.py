"""`python -m benchmarks.frameworks [steps …] [frax] [mjx] [written]`: the gradient of Σ|τ|² along a trajectory of the Panda, through JAX.

By q, v and a of all steps, in double precision, jitted and warmed up, one processor thread for XLA. Engines that are installed take part,
or those that are named: our native kernels (the torques, with the cost in JAX, and the cost as a kernel of its own), our functions as
written, frax, MuJoCo MJX. XLA takes minutes to compile the last.
Each engine's torques are checked against ours for its own model before it is timed.

Ratios are of the best rounds, with the quartiles of the rounds' own ratios: where these lie far from it the machine was disturbed, and
the figure says little. With the cost in JAX XLA's own small operations, and the threads it gives them to, take most of our time.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj

from .timing import measure

STEPS = [200, 4096]
"""Steps of one trajectory; and of many side by side."""

Torques = Callable[..., Any]


def torque_cost(robot: cj.Robot, q: Any, v: Any, a: Any) -> Any:
    """|τ|² of one step."""
    tau = cj.inverse_dynamics(robot, q, v, a)
    return (tau * tau).sum(-1)


def ours(jax: Any) -> Iterator[tuple[str, cj.Robot, Torques, Torques | None]]:
    robot = cj.load("panda")
    cost = cj.interop.jax.function(torque_cost, robot)
    torques = cj.interop.jax.function(cj.inverse_dynamics, robot)
    yield "coadjoint, cost native", robot, torques, cost
    yield "coadjoint, torques native", robot, torques, None


def written(jax: Any) -> Iterator[tuple[str, cj.Robot, Torques, None]]:
    robot = cj.load("panda")
    yield "coadjoint as written", robot, lambda q, v, a: cj.inverse_dynamics(robot, q, v, a), None


def frax(jax: Any) -> Iterator[tuple[str, cj.Robot, Torques, None]]:
    from frax.assets import FRANKA_ASSETS_DIR
    from frax.robots.franka_panda import load_panda

    theirs, gravity = load_panda(), jax.numpy.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    robot = cj.load(str(Path(FRANKA_ASSETS_DIR) / "panda.urdf"))
    yield "frax", robot, jax.vmap(lambda q, v, a: theirs.rnea(q, v, a, gravity, None)), None


def mjx(jax: Any) -> Iterator[tuple[str, cj.Robot, Torques, None]]:
    import mujoco
    from mujoco import mjx

    robot = cj.load("panda")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panda.xml"
        cj.save(robot, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # no limits of joints
    model.dof_damping[:] = 0.0
    model.dof_frictionloss[:] = 0.0
    put, data = mjx.put_model(model), mjx.make_data(model)
    one = lambda q, v, a: mjx.inverse(put, data.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse
    yield "MuJoCo MJX", robot, jax.vmap(one), None


ENGINES = {"frax": frax, "mjx": mjx, "written": written}


def contenders(steps: int, chosen: list[str]) -> dict[str, Callable[[], object]]:
    """The gradient with each engine, as a call without arguments."""
    import jax

    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    # As a trajectory is: smooth in time.
    t = np.linspace(0.0, 2.0, steps)[:, None]
    phase, rate = rng.uniform(0, 6, 7), rng.uniform(1, 3, 7)
    states = [np.sin(rate * t + phase), rate * np.cos(rate * t + phase), -(rate**2) * np.sin(rate * t + phase)]
    arrays = [jax.numpy.asarray(x) for x in states]
    calls = {}
    for engine in (ours, *(ENGINES[name] for name in chosen)):
        try:
            for name, robot, torques, cost in engine(jax):
                expected = cj.inverse_dynamics(robot, *states)
                error = np.abs(np.asarray(jax.jit(torques)(*arrays)) - expected).max() / np.abs(expected).max()
                if error > 1e-9:
                    print(f"{name}: torques differ by {error:.1e} of the largest; left out.", file=sys.stderr)
                    continue
                total = lambda *x, f=torques: (f(*x) ** 2).sum()
                if cost is not None:
                    total = lambda *x, f=cost: f(*x).sum()
                gradient = jax.jit(jax.grad(total, (0, 1, 2)))
                calls[name] = lambda g=gradient: jax.block_until_ready(g(*arrays))
        except ImportError as error:
            print(f"{engine.__name__} is not installed ({error}); left out.", file=sys.stderr)
    return calls


def main() -> None:
    warnings.simplefilter("ignore")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    print("Times slower: best to best (quartiles of the rounds)\n")
    print("| steps | engine | gradient of Στ² | than torques native | than cost native |\n|---|---|---|---|---|")
    chosen = [x for x in sys.argv[1:] if x in ENGINES] or list(ENGINES)
    for steps in [int(x) for x in sys.argv[1:] if x not in ENGINES] or STEPS:
        timings = measure({name: (call, 1) for name, call in contenders(steps, chosen).items()}, 15)
        for name, timing in timings.items():
            ratios = [timing.ratio_to(timings[f"coadjoint, {x} native"]) for x in ("torques", "cost")]
            text = " | ".join(f"**{middle:.1f}** ({low:.1f} … {high:.1f})" for middle, low, high in ratios)
            print(f"| {steps} | {name} | {1e6 * timing.best:.0f} µs | {text} |", flush=True)


if __name__ == "__main__":
    main()
