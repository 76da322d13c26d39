"""Optimal motions beside CasADi with Ipopt: `python -m benchmarks.optimal_motion [count [theirs]] [compiled]`. Needs `pip install casadi`.

Reaches of the Panda between random configurations, of least effort or least time, within its limits of position, velocity and joint
force. CasADi and Ipopt have the same splines, nodes and limits, the equations of motion exported by this library as expressions, exact
derivatives, and the tolerance 1e-8; with `compiled`, CasADi's functions are compiled by the machine's C compiler, and interpreted without.
Limits are not drawn in between the nodes there, which is more than half of the iterations here.
Times are of the processor, on one thread, without what is compiled or built once.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.optimal.motion_arguments import durations_of, first_guess, limits_of
from coadjoint.optimal.splines import Spline

SPANS = 12
KINDS = ("position", "velocity", "acceleration", "effort", "power", "jerk")


def reaches(robot: cj.Robot, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and goals (count, n) in the middle three fifths of the joints' ranges, at which the robot can rest."""
    rng, found = np.random.default_rng(0), np.zeros((0, 2, robot.nv))
    while len(found) < count:
        q = robot.lower + (robot.upper - robot.lower) * rng.uniform(0.2, 0.8, (count, 2, robot.nv))
        rests = (np.abs(cj.gravity_force(robot, q)) < 0.95 * robot.effort_limit).all((1, 2))
        found = np.concatenate([found, q[rests]])
    return found[:count, 0], found[:count, 1]


class Ipopt:
    """The same problem for CasADi, built once for all reaches."""

    def __init__(self, robot: cj.Robot, cost: str, compiled: bool) -> None:
        import casadi as ca

        spline = self.spline = Spline(SPANS)
        n, K = robot.nv, len(spline.nodes)
        tau = cj.export.casadi(cj.trace(cj.inverse_dynamics, robot)).map(K)
        free = ca.MX.sym("c", n, spline.size - 4)
        ends, T = ca.MX.sym("ends", n, 2), ca.MX.sym("T")
        c = ca.horzcat(ends[:, 0], ends[:, 0], free, ends[:, 1], ends[:, 1])
        q, v, a = (c @ ca.DM(spline.basis[:, order].T) / T**order for order in range(3))
        force = tau(q, v, a)
        inside = ca.vertcat(ca.vec(q), ca.vec(v), ca.vec(force))
        self.free_time = cost == "time"
        f = T if self.free_time else T * ca.sum2(ca.DM(spline.weights).T * ca.sum1(force**2))
        x = ca.vertcat(ca.vec(free), *([T] if self.free_time else []))
        p = ca.vertcat(ca.vec(ends), *([] if self.free_time else [T]))
        options: dict[str, Any] = {"ipopt": {"print_level": 0, "tol": 1e-8, "max_iter": 500}, "print_time": False}
        if compiled:
            options |= {"jit": True, "compiler": "shell", "jit_options": {"flags": ["-O1", "-march=native"]}}
        self.solver = ca.nlpsol("reach", "ipopt", {"x": x, "p": p, "f": f, "g": inside}, options)
        rows = limits_of(robot, dict.fromkeys(KINDS), own=True)
        self.lower = np.concatenate([np.tile(r.lower, K) for r in rows])
        self.upper = np.concatenate([np.tile(r.upper, K) for r in rows])

    def __call__(self, control: np.ndarray, start: np.ndarray, goal: np.ndarray, T: float) -> tuple[bool, float, int]:
        x = control[2:-2].reshape(-1)
        x, p = (np.append(x, T), np.append(start, goal)) if self.free_time else (x, np.concatenate([start, goal, [T]]))
        least = np.append(np.full(control[2:-2].size, -np.inf), 1e-3) if self.free_time else -np.inf
        found = self.solver(x0=x, p=p, lbg=self.lower, ubg=self.upper, lbx=least)
        stats = self.solver.stats()
        return bool(stats["success"]), float(found["f"]), int(stats["iter_count"])


def compare(robot: cj.Robot, cost: str, count: int, theirs: int, compiled: bool) -> None:
    """Print one line: all reaches here in one batch, the first of them there."""
    start, goal = reaches(robot, count)
    options: dict[str, Any] = {"cost": cost, "spans": SPANS}
    cj.optimal_motion(robot, start[:2], goal[:2], **options)
    begin = time.process_time()
    motions = cj.optimal_motion(robot, start, goal, **options)
    ours = (time.process_time() - begin) / count
    iterations = np.mean([len(one.table) for one in motions])
    print(
        f"{cost}: {count} reaches, {100 * motions.converged.mean():.1f} % optimal, {1e3 * ours:.1f} ms each, "
        f"{iterations:.0f} iterations each, largest error {max(one.error for one in motions if one.converged):.1e}, "
        f"largest excess of a limit {max(one.violation for one in motions if one.converged):.1e}"
    )
    rows = limits_of(robot, dict.fromkeys(KINDS), own=True)
    T = durations_of(None, start, goal, rows, (count,))
    control = first_guess(robot, Spline(SPANS), None, start, goal, (count,))
    solver = Ipopt(robot, cost, compiled)
    solver(control[0], start[0], goal[0], T[0])
    begin = time.process_time()
    found = [solver(control[k], start[k], goal[k], T[k]) for k in range(theirs)]
    their = (time.process_time() - begin) / theirs
    both = [k for k in range(theirs) if found[k][0] and motions[k].converged]
    ratio = [motions[k].cost / found[k][1] for k in both]
    how = "compiled" if compiled else "interpreted"
    print(
        f"  CasADi with Ipopt, {how}: {theirs} of them, {100 * np.mean([x[0] for x in found]):.1f} % solved, {1e3 * their:.0f} ms each, "
        f"{np.mean([x[2] for x in found]):.0f} iterations each; times slower: {their / ours:.1f}; "
        f"cost here beside there: median {np.median(ratio):.5f}, from {min(ratio):.3f} to {max(ratio):.3f}",
        flush=True,
    )


def main(count: int = 1000, theirs: int = 30, compiled: bool = False) -> None:
    robot = cj.load("panda")
    for cost in ("effort", "time"):
        compare(robot, cost, count, min(theirs, count), compiled)


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:] if x != "compiled"), compiled="compiled" in sys.argv)
