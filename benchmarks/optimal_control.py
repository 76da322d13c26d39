"""Optimal control beside Crocoddyl: iterations, minima, processor time of an iteration; a receding horizon; many problems at once.

    python -m benchmarks.optimal_control [--crocoddyl PYTHON]

Crocoddyl 3.2.1 needs pin==4.0.0 and libpinocchio==4.0.0, and so an environment of its own, whose Python is given; both run in turn. Robots
are those of the package example-robot-data. Times are of the processor, one thread, medians.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.arrays import namespace

ROUNDS = 5

PEER = """
import json, sys, time
import crocoddyl, example_robot_data, numpy as np, pinocchio

def kinova():
    model = example_robot_data.load("kinova").model
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    x0 = np.concatenate([model.referenceConfigurations["arm_up"], np.zeros(model.nv)])
    goal = pinocchio.SE3(np.eye(3), np.array([0.6, 0.2, 0.5]))
    frame = model.getFrameId("j2s6s200_end_effector")
    pose = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelFramePlacement(state, frame, goal))
    running, terminal = crocoddyl.CostModelSum(state), crocoddyl.CostModelSum(state)
    running.addCost("pose", pose, 1.0)
    running.addCost("state", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, x0)), 0.1)
    running.addCost("control", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state)), 0.1)
    terminal.addCost("pose", pose, 1e3)
    models = [crocoddyl.IntegratedActionModelEuler(crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, c), h)
              for c, h in ((running, 0.01), (terminal, 0.0))]
    problem = crocoddyl.ShootingProblem(x0, [models[0]] * 100, models[1])
    problem.nthreads = 1
    return problem

def pendulum():
    from crocoddyl.utils.pendulum import ActuationModelDoublePendulum, CostModelDoublePendulum
    state = crocoddyl.StateMultibody(example_robot_data.load("double_pendulum").model)
    actuation = ActuationModelDoublePendulum(state, actLink=1)
    weights = crocoddyl.ActivationModelWeightedQuad(np.array([1.0] * 4 + [0.1] * 2))
    goal = CostModelDoublePendulum(state, weights, 1)
    effort = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, 1))
    running, terminal = crocoddyl.CostModelSum(state, 1), crocoddyl.CostModelSum(state, 1)
    running.addCost("u", effort, 1e-4 / 0.01)
    running.addCost("x", goal, 1e-5 / 0.01)
    terminal.addCost("x", goal, 100.0)
    models = [crocoddyl.IntegratedActionModelEuler(crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, c), 0.01)
              for c in (running, terminal)]
    return crocoddyl.ShootingProblem(np.array([3.14, 0.0, 0.0, 0.0]), [models[0]] * 100, models[1])

def judged(given):
    # A motion of the Kinova in Crocoddyl's own problem: its cost there, what its states miss, and where Crocoddyl goes from it.
    problem = kinova()
    joints = list(problem.runningModels[0].state.pinocchio.joints)[1:]
    turned = [np.concatenate([[np.cos(q[j.idx_v]), np.sin(q[j.idx_v])] if j.nq == 2 else [q[j.idx_v]] for j in joints])
              for q in np.array(given["q"])]
    xs, us = [np.concatenate(x) for x in zip(turned, np.array(given["v"]))], list(np.array(given["u"]))
    cost = problem.calc(xs, us)
    state = problem.runningModels[0].state
    gap = max(np.abs(state.diff(x, data.xnext)).max() for x, data in zip(xs[1:], problem.runningDatas))
    solver = crocoddyl.SolverFDDP(problem)
    solver.solve(xs, us, 200)
    return {"cost": cost, "gap": gap, "iterations": solver.iter, "after": solver.cost}

for line in sys.stdin:
    if line[0] == "{":
        print(json.dumps(judged(json.loads(line))), flush=True)
        continue
    name, start = line.split()
    problem = kinova() if name == "kinova" else pendulum()
    solver = crocoddyl.SolverFDDP(problem)
    states = [problem.x0] * 101
    guess = (states, problem.quasiStatic(states[:-1]), 200) if start == "quasi-static" else ()
    begin = time.process_time()
    solver.solve(*guess)
    took = time.process_time() - begin
    print(json.dumps({"iterations": solver.iter, "cost": solver.cost, "time": took / solver.iter,
                      "v": np.array(solver.xs)[:, problem.runningModels[0].state.nq:].tolist(),
                      "u": np.array(solver.us).tolist()}), flush=True)
"""


@functools.cache
def robot(name: str) -> cj.Robot:
    files = metadata.distribution("example-robot-data").files or []
    return cj.load(str(next(Path(str(f.locate())).resolve() for f in files if f.name == f"{name}.urdf")))


UP = np.array([1.5707, 2.618, -1.5707, 3.1415, 2.618, 0.0])
ZERO = np.zeros((101, 6)), np.zeros((101, 6)), np.zeros((100, 6))
"""Crocoddyl's cold start."""
TURNING = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
"""The Kinova's continuous joints."""


def on_circle(robot: cj.Robot, q: Any, v: Any, u: Any) -> Any:
    """The state's deviation as Crocoddyl takes it: of continuous joints the shorter way round."""
    xp = namespace(q)
    far = q - UP
    return xp.concat([TURNING * xp.atan2(xp.sin(far), xp.cos(far)) + (1.0 - TURNING) * far, v], axis=-1)


def kinova(guess: Any = None, circle: bool = False) -> cj.OptimalControl:
    arm, hand, X = robot("kinova"), "j2s6s200_end_effector", np.eye(4)
    X[:3, 3] = 0.6, 0.2, 0.5
    state = cj.costs.residual(on_circle, 0.1) if circle else cj.costs.state(UP, weight=0.1)
    up, stage = UP, cj.Stage(100, [cj.costs.pose(hand, X), state, cj.costs.control(0.1)], 0.01)
    return cj.optimal_control(arm, stage, up, cj.costs.pose(hand, X, 1000.0), guess=guess, threads=1)


def pendulum() -> cj.OptimalControl:
    swing = robot("double_pendulum")

    def upright(robot: cj.Robot, q: Any, v: Any, u: Any) -> Any:
        xp = namespace(q)
        return xp.concat([xp.sin(q), 1.0 - xp.cos(q), v], axis=-1)

    w = np.array([1.0, 1.0, 1.0, 1.0, 0.1, 0.1])
    stage = cj.Stage(100, [cj.costs.control(1e-2), cj.costs.residual(upright, 1e-3 * w)], 0.01)
    motor = [swing.joint_names[0]]
    return cj.optimal_control(swing, stage, [3.14, 0.0], cj.costs.residual(upright, 100.0 * w), actuation=motor, threads=1)


class Peer:
    """Crocoddyl in its own Python, asked line by line."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen([python, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, name: str, start: str) -> dict[str, Any]:
        return self._answer(f"{name} {start}")

    def judge(self, motion: cj.OptimalControl) -> dict[str, Any]:
        """What Crocoddyl says of our motion."""
        return self._answer(json.dumps({"q": motion.q.tolist(), "v": motion.v.tolist(), "u": motion.u.tolist()}))

    def _answer(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def beside(python: str | None) -> None:
    peer = Peer(python) if python else None
    problems: list[tuple[str, str, Callable[[], cj.OptimalControl]]] = [
        ("kinova", "quasi-static", kinova),
        ("kinova", "zero", lambda: kinova(ZERO)),
        ("double pendulum", "zero", pendulum),
    ]
    print("| problem | start | ours: iterations, cost, ms an iteration | Crocoddyl: the same | ratio |\n|---|---|---|---|---|")
    for name, start, run in problems:
        run()  # compile
        ours, theirs = [], []
        for _ in range(ROUNDS):
            found = run()
            # What is traced and checked before the first iteration is not part of it.
            ours.append(found.solve_time / max(1, found.iterations))
            if peer:
                other = peer(name.split()[-1], start)
                theirs.append(other["time"])
        text = f"{found.iterations}, {found.cost:.7g}, {1e3 * np.median(ours):.3g}"
        if not peer:
            print(f"| {name} | {start} | {text} | | |")
            continue
        told = f"{other['iterations']}, {other['cost']:.7g}, {1e3 * np.median(theirs):.3g}"
        print(f"| {name} | {start} | {text} | {told} | {np.median(theirs) / np.median(ours):.2g} |")
    if peer:
        cold = peer("kinova", "zero")
        v = np.array(cold["v"])
        q = UP + np.concatenate([np.zeros((1, 6)), np.cumsum(0.01 * v[1:], axis=0)])  # angles, however often joints have turned
        there = kinova((q, v, np.array(cold["u"])), circle=True)
        print(
            f"\nCrocoddyl's minimum from zero, with deviations on the circle as it takes them, is {there.cost:.10g} here after "
            f"{there.iterations} iterations, conditions of first order {there.error:.1e}; its joints turn by up to "
            f"{np.abs(q - UP).max():.3g} rad, at up to {np.abs(v).max():.3g} rad/s."
        )
        own = kinova(ZERO, circle=True)
        told = peer.judge(own)
        print(
            f"Our minimum from zero of the same costs is {own.cost:.10g} after {own.iterations} iterations; in Crocoddyl's own "
            f"problem it costs {told['cost']:.10g} (gaps {told['gap']:.1e}), and Crocoddyl, started there, stops at "
            f"{told['after']:.10g} after {told['iterations']}."
        )
    reached = next(k for k, row in enumerate(found.table) if row["cost"] <= 2.0587508e-2)
    print(f"\nThe double pendulum is below Crocoddyl's cost after {reached} iterations, and goes on to a lower minimum.")


def receding() -> None:
    arm, start = cj.load("panda"), np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
    X = np.array(cj.pose(arm, start, "tip"))
    X[:3, 3] += [0.1, 0.2, -0.1]
    costs = [cj.costs.pose("tip", X, 10.0), cj.costs.state(start, weight=0.01), cj.costs.control(1e-4)]
    choices: dict[str, dict[str, Any]] = {
        "no limits": {},
        "limits of effort": {"effort": "robot"},
        "limits of effort, velocity (0.5 rad/s) and position": {"effort": "robot", "velocity": 0.5, "position": "robot"},
    }
    for name, limits in choices.items():
        spent, fastest, wall = [], 0.0, 0.0
        for _ in range(ROUNDS):
            controller = cj.receding_horizon(arm, cj.Stage(50, costs, 0.02), start, cj.costs.pose("tip", X, 100.0), **limits)
            q, v, took = start, np.zeros(7), np.zeros(300)
            for k in range(300):
                took[k], u = seconds(lambda: controller.step(q, v))
                qs, vs = cj.rollout(arm, q, v, u[None], dt=0.02)
                q, v, fastest = qs[1], vs[1], max(fastest, float(np.abs(vs[1]).max()))
            spent.append(took)
            wall = max(wall, controller.worst_time)
        each = np.min(spent, axis=0)  # the work of a sample is the same in all rounds: what differs is the machine's
        print(
            f"receding horizon, Panda, 50 steps, {name}: {1e3 * np.median(spent):.3g} ms an iteration, "
            f"at most {1e3 * np.max(spent):.3g} ms (processor), {1e3 * wall:.3g} ms (wall) in {ROUNDS} rounds; the quickest of the "
            f"rounds at every sample: at most {1e3 * each.max():.3g} ms (sample {each.argmax()}); fastest joint {fastest:.4g} rad/s"
        )


def many(count: int = 1000) -> None:
    arm, rng = cj.load("panda"), np.random.default_rng(0)
    start = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8]) + rng.uniform(-0.3, 0.3, (count, 7))
    goal = cj.pose(arm, start + rng.uniform(-0.5, 0.5, (count, 7)), "tip")[:, None]
    stage = cj.Stage(50, [cj.costs.pose("tip", goal), cj.costs.state(start[:, None], weight=0.01), cj.costs.control(1e-4)], 0.02)
    for names in ((), ("effort",), ("velocity",), ("effort", "velocity")):
        limits: dict[str, Any] = dict.fromkeys(names, "robot")
        end = cj.costs.pose("tip", goal, 100.0)
        solve = functools.partial(cj.optimal_control, arm, stage, start, end, threads=1, **limits)
        solve()
        spent, found = seconds(solve)
        print(
            f"{count} reaches of the Panda, 50 steps, limits: {', '.join(names) or 'none'}: {int(found.converged.sum())} "
            f"converged, {1e3 * spent / count:.3g} ms a problem, {found.iterations.mean():.3g} iterations"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crocoddyl", metavar="PYTHON", help="the Python of an environment with crocoddyl")
    beside(parser.parse_args().crocoddyl)
    receding()
    many()


if __name__ == "__main__":
    main()
