"""`python -m benchmarks.geometry`: connection and curvature of the Panda beside peers, and their cost against the number of joints.

Peers have neither. What is compared is one Coriolis matrix of Pinocchio called from Python, and JAX's automatic differentiation of
the mass matrix, jitted and mapped over the same states.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import coadjoint as cj

from .robots import robots
from .timing import measure

STATES = 4096


def ours(robot: cj.Robot, states: int) -> dict[str, tuple[Callable[[], object], int]]:
    rng = np.random.default_rng(0)
    q, v = robot.random(rng, states), rng.normal(size=(states, robot.nv))
    found = {}
    for name, arguments in (("coriolis_matrix", (q, v)), ("christoffel", (q,)), ("curvature", (q,))):
        fn = getattr(cj, name)
        out = fn(robot, *arguments)
        found[name] = (lambda fn=fn, a=arguments, out=out: fn(robot, *a, out=out, threads=1), states)
    return found


def pinocchio(robot: cj.Robot) -> dict[str, tuple[Callable[[], object], int]]:
    try:
        import pinocchio as pin
    except ImportError:
        return {}
    model = cj.interop.pinocchio.to_pinocchio(robot)
    data, q, v = model.createData(), np.zeros(model.nq), np.ones(model.nv)
    return {"Pinocchio, one Coriolis matrix": (lambda: pin.computeCoriolisMatrix(model, data, q, v), 1)}


def autodiff(robot: cj.Robot, states: int) -> dict[str, tuple[Callable[[], object], int]]:
    """Γ and R by JAX from the mass matrix alone."""
    try:
        import jax
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)
    q = jax.numpy.asarray(robot.random(np.random.default_rng(0), states))
    M = lambda q: cj.mass_matrix(robot, q)

    def symbols(q: Any) -> Any:
        d = jax.jacfwd(M)(q)
        return 0.5 * (d.transpose(2, 1, 0) + d.transpose(1, 2, 0) - d)

    def tensor(q: Any) -> Any:
        G, dG = symbols(q), jax.jacfwd(symbols)(q)
        up = jax.numpy.einsum("rs,jks->rjk", jax.numpy.linalg.inv(M(q)), G)
        R = dG.transpose(2, 0, 3, 1) - dG.transpose(2, 0, 1, 3)
        product = jax.numpy.einsum("ilr,rjk->ijkl", G, up)
        return R + product - product.transpose(0, 1, 3, 2)

    fns = {"JAX autodiff, Γ": jax.jit(jax.vmap(symbols)), "JAX autodiff, R": jax.jit(jax.vmap(tensor))}
    return {name: (lambda fn=fn: fn(q).block_until_ready(), states) for name, fn in fns.items()}


def main() -> None:
    panda = robots(["panda"])["panda"]
    timings = measure(ours(panda, STATES) | pinocchio(panda) | autodiff(panda, STATES), 9)
    print(f"Panda, batches of {STATES}, one thread, written to arrays that are there (out=)\n")
    others = [name for name in timings if name[0].isupper()]
    print("| | per state | " + " | ".join(others) + " |\n|" + "---|" * (2 + len(others)))
    for name, us in timings.items():
        if name[0].islower():
            ratios = " | ".join(f"{t.ratio_to(us)[0]:.1f}×" for n, t in timings.items() if n[0].isupper())
            print(f"| {name} | {us.best * 1e9:.0f} ns | {ratios} |")
    print("\nChains of revolute joints, in batches: per state\n")
    print("| joints | Coriolis | Γ | R | first calls and timing |\n|---|---|---|---|---|")
    for n in (3, 5, 7, 10, 15, 20, 30):
        chain = robots([f"chain{n}"])[f"chain{n}"]
        start = time.process_time()
        found = measure(ours(chain, 256 if n <= 10 else 4), 5)
        cells = " | ".join(f"{t.best * 1e6:.2f} µs" for t in found.values())
        print(f"| {n} | {cells} | {time.process_time() - start:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
