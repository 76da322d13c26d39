"""Inverse kinematics of 10,000 random reachable poses, beside the libraries that are installed: `python -m benchmarks.inverse_kinematics`.

Each is asked for what it does best at the same accuracy, 1e-9 in position and rotation, on one core: numerical solvers for one
configuration within the joint limits, closed forms for all that there are. Ours take the whole batch, and so does EAIK (C++, closed form,
all solutions) with one thread; Robotics Toolbox' C solver (Levenberg–Marquardt with Chan's damping, its quickest), OptIK (Rust), Pink (QP
steps on Pinocchio) and ssik (C++, closed form, for the Panda one solution) go pose by pose through the first 200, Pink through five.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import coadjoint as cj

from .timing import measure

POSES, SAMPLE, TOLERANCE = 10_000, 200, 1e-9

Answers = Callable[[], list[np.ndarray]]
"""For every pose of the sample the configurations (m, nq) that were found, none for none."""


def run(rounds: int = 7) -> list[dict]:
    """One table for each robot; the rows as dictionaries."""
    rows = []
    for name in ("panda", "ur5e", "puma560"):
        robot = cj.load(name)
        rng = np.random.default_rng(7)
        q = robot.random(rng, POSES)
        poses = cj.pose(robot, q, "tip")
        contenders: dict[str, tuple[Callable[[], object], int]] = {}
        answers: dict[str, list[np.ndarray]] = {}
        found = cj.inverse_kinematics(robot, poses, "tip", threads=1)
        contenders["coadjoint, numerical"] = (lambda r=robot, T=poses: cj.inverse_kinematics(r, T, "tip", threads=1), POSES)
        answers["coadjoint, numerical"] = [x[None][: int(s)] for x, s in zip(found.q, found.success, strict=True)]
        if name != "panda":
            every = cj.inverse_kinematics_solutions(robot, poses, "tip", limits=False, threads=1)
            call = lambda r=robot, T=poses: cj.inverse_kinematics_solutions(r, T, "tip", limits=False, threads=1)
            contenders["coadjoint, all solutions"] = (call, POSES)
            answers["coadjoint, all solutions"] = [x[v] for x, v in zip(every.q, every.valid, strict=True)]
        for peer in (roboticstoolbox, optik, pink, ssik, eaik):
            with contextlib.suppress(ImportError):
                for title, ask in peer(robot, poses if peer is eaik else poses[:SAMPLE]).items():
                    answers[title] = ask()
                    contenders[title] = (ask, len(answers[title]))
        rows += _table(robot, poses, contenders, answers, rounds)
    return rows


def _table(robot: cj.Robot, poses: np.ndarray, contenders: dict, answers: dict[str, list[np.ndarray]], rounds: int) -> list[dict]:
    timings = measure(contenders, rounds)
    print(
        f"\n| {robot.name}, a pose | time | reached to 1e-9 | solutions within limits | times slower (quartiles) |\n|---|---|---|---|---|"
    )
    rows = []
    for title, timing in timings.items():
        ours = "coadjoint, all solutions" if "all solutions" in title else "coadjoint, numerical"
        ratio = timing.ratio_to(timings[ours])
        reached, count = _reached(robot, poses, answers[title])
        rows.append({"robot": robot.name, "name": title, "seconds": timing.best, "reached": reached, "ratio": ratio})
        many = f"{ratio[0]:.1f} ({ratio[1]:.1f} … {ratio[2]:.1f})"
        print(f"| {title} | {timing.best * 1e6:.2f} µs | {100 * reached:.2f} % | {count:.2f} | {many} |", flush=True)
    return rows


def _reached(robot: cj.Robot, poses: np.ndarray, answers: list[np.ndarray]) -> tuple[float, float]:
    """The part of the poses that one configuration at least brings about within the limits, and how many do on average."""
    counts = []
    for q, T in zip(answers, poses, strict=False):
        near = np.abs(cj.pose(robot, q, "tip") - T).max((-1, -2)) <= TOLERANCE if len(q) else np.zeros(0, dtype=bool)
        turned = q - 2 * np.pi * np.round(
            (q - (robot.lower + robot.upper) / 2) / (2 * np.pi)
        )  # a peer may not care for whole turns
        within = ((turned >= robot.lower - TOLERANCE) & (turned <= robot.upper + TOLERANCE)).all(-1)
        counts.append(int((near & within).sum()))
    return float(np.mean(np.array(counts) > 0)), float(np.mean(counts))


def _urdf(robot: cj.Robot) -> str:
    path = Path(tempfile.mkdtemp()) / f"{robot.name}.urdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what URDF does not hold: none of it is kinematics
        cj.save(robot, path)
    return str(path)


def roboticstoolbox(robot: cj.Robot, poses: np.ndarray) -> dict[str, Answers]:
    import roboticstoolbox as rtb

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain = rtb.ERobot.URDF(_urdf(robot)).ets(end="tip")
    options = {"ilimit": 30, "slimit": 100, "tol": 1e-18, "joint_limits": True, "method": "chan", "k": 0.1}

    def ask() -> list[np.ndarray]:
        return [np.atleast_2d(chain.ik_LM(T, **options).q) for T in poses]

    return {"Robotics Toolbox, ik_LM": ask}


def optik(robot: cj.Robot, poses: np.ndarray) -> dict[str, Answers]:
    from optik import Robot, SolverConfig

    solver = Robot.from_urdf_file(_urdf(robot), robot.base, "tip")
    solver.set_parallelism(1)
    config = SolverConfig(solution_mode="speed", max_time=0.1, max_restarts=1_000_000, tol_f=1e-18, tol_df=-1.0, tol_dx=-1.0)
    starts = robot.random(np.random.default_rng(8), len(poses))

    def ask() -> list[np.ndarray]:
        answers = [solver.ik(config, T, q) for T, q in zip(poses, starts, strict=True)]
        return [np.zeros((0, robot.nq)) if x is None else np.array([x[0]]) for x in answers]

    return {"OptIK, one thread": ask}


def pink(robot: cj.Robot, poses: np.ndarray) -> dict[str, Answers]:
    import pinocchio as pin
    from pink import Configuration, solve_ik
    from pink.tasks import FrameTask

    model = pin.buildModelFromUrdf(_urdf(robot))
    data = model.createData()
    start = np.clip(robot.neutral(), robot.lower + 0.1, robot.upper - 0.1)
    poses = poses[:5]  # thousands of times slower

    def one(T: np.ndarray) -> np.ndarray:
        task = FrameTask("tip", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-6)
        task.set_target(pin.SE3(T))
        configuration = Configuration(model, data, start)
        for _ in range(100):
            if np.linalg.norm(task.compute_error(configuration)) < TOLERANCE:
                break
            configuration.integrate_inplace(solve_ik(configuration, [task], 1.0, solver="quadprog"), 1.0)
        return configuration.q[None]

    def ask() -> list[np.ndarray]:
        return [one(T) for T in poses]

    import quadprog  # noqa: F401  the quickest of the solvers that Pink takes

    return {"Pink, one start": ask}


def ssik(robot: cj.Robot, poses: np.ndarray) -> dict[str, Answers]:
    from importlib import import_module

    own = {"panda": ("franka_panda_ik", {"max_solutions": 1}), "puma560": ("puma560_ik", {"respect_limits": False})}
    if robot.name not in own:
        return {}  # its UR5e has the base elsewhere, and not to the last digit
    module, options = own[robot.name]
    solve = getattr(import_module("ssik.prebuilt"), module).solve
    listed = [np.ascontiguousarray(T) for T in poses]

    def ask() -> list[np.ndarray]:
        return [np.array([x.q for x in solve(T, **options)]).reshape(-1, robot.nq) for T in listed]

    return {"ssik, one solution" if robot.name == "panda" else "ssik, all solutions": ask}


def eaik(robot: cj.Robot, poses: np.ndarray) -> dict[str, Answers]:
    if robot.name == "panda":
        return {}
    from eaik.IK_HP import HPRobot

    screws, home = cj.space_screws(robot, "tip")
    points = np.cross(screws[:, :3], screws[:, 3:])
    ends = np.concatenate([points, home[None, :3, 3]])
    solver = HPRobot(screws[:, :3], np.diff(ends, axis=0, prepend=np.zeros((1, 3))))
    turn = home[:3, :3]
    wanted = poses.copy()
    wanted[:, :3, :3] = poses[:, :3, :3] @ turn.T  # its end has the axes of space at home
    listed = list(wanted)

    def ask() -> list[np.ndarray]:
        return [np.array(x.Q) for x in solver.IK_batched(listed, 1)]

    return {"EAIK, all solutions": ask}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    run(parser.parse_args().rounds)
