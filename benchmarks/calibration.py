"""Calibration: errors on configurations held back, time of a fit beside finite differences, coverage of intervals.

    python -m benchmarks.calibration FOLDER

FOLDER has `irb120_calibration/measured.csv` (joint angles in degrees, three reflectors in millimetres) and
`franka_calibration/measured.npz` (q, poses of a camera).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import coadjoint as cj
from coadjoint.calibration.chain import chain, corrected
from coadjoint.calibration.fit import fit
from coadjoint.calibration.terms import PRIOR
from coadjoint.lie import se3


def irb120(folder: Path) -> tuple[cj.Robot, np.ndarray, np.ndarray]:
    axes = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]], dtype=float)
    origins = np.cumsum([(0, 0, 0), (0, 0, 0.29), (0, 0, 0.27), (0, 0, 0.07), (0.302, 0, 0), (0.072, 0, 0)], axis=0)
    frames = np.tile(np.eye(4), (6, 1, 1))
    frames[:, :3, 3] = origins
    screws = np.hstack([axes, -np.cross(axes, origins)])
    robot = cj.Robot.from_screws(screws, frames, np.ones(6), np.tile(0.01 * np.eye(3), (6, 1, 1)), tip=frames[-1])
    table = np.loadtxt(folder / "irb120_calibration" / "measured.csv", delimiter=",", skiprows=1)
    return robot, np.radians(table[:, :6]), 1e-3 * table[:, 6:].reshape(-1, 3, 3)


def folds(n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    order = np.random.default_rng(seed).permutation(n)
    return [(np.setdiff1d(order, order[k::5]), order[k::5]) for k in range(5)]


def held_back(robot: cj.Robot, q: np.ndarray, points: np.ndarray) -> None:
    choices = {"as described": None, "geometry": (), "geometry, scale": ("scale",), "chosen by held-back configurations": "default"}
    for label, terms in choices.items():
        error = np.zeros((2, len(q), 3))
        for seed in range(2):
            for train, test in folds(len(q), seed):
                options = {} if terms in (None, "default") else {"terms": terms}
                cal = cj.calibrate(robot, q[train], points=points[train], frame="tip", **options)
                cal = cal.nominal_fit() if terms is None else cal
                error[seed, test] = 1e3 * np.linalg.norm(cal.predict(q[test]) - points[test], axis=2)
        print(f"IRB 120, {label}: held back mean {error.mean():.3f} mm, median {np.median(error):.3f} mm")


def random_splits(robot: cj.Robot, q: np.ndarray, points: np.ndarray, count: int = 12) -> None:
    """A fifth of the configurations at random, held back: how far single splits differ."""
    found = []
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(len(q))
        train, test = np.sort(order[len(q) // 5 :]), order[: len(q) // 5]
        cal = cj.calibrate(robot, q[train], points=points[train], frame="tip")
        error = 1e3 * np.linalg.norm(cal.predict(q[test]) - points[test], axis=2)
        found.append((error.mean(), np.median(error)))
    means, medians = np.array(found).T
    print(
        f"IRB 120, {count} splits at random: mean {means.mean():.3f} ({means.min():.3f} … {means.max():.3f}), "
        f"median {medians.mean():.3f} ({medians.min():.3f} … {medians.max():.3f}) mm"
    )


def speed(robot: cj.Robot, q: np.ndarray, points: np.ndarray) -> None:
    """A fit of about 60 unknowns from the description on, with exact derivatives and with differences."""
    cal = cj.calibrate(robot, q, points=points, frame="tip", terms=("scale", "harmonics 1"), loss="squares")
    start = cal.nominal_fit().fit.state
    problem = cal.fit.problem
    zeros = type(start)(np.zeros_like(cal.fit.state.eta), np.zeros(len(problem.terms.names)), start.base, start.measured)
    times = []
    for _ in range(7):
        begin = time.process_time()
        found = fit(problem, zeros, "squares")
        times.append(time.process_time() - begin)
    size = found.jacobian.shape[2]
    begin = time.process_time()
    for k in range(size):
        step = np.zeros(size)
        step[k] = 1e-7
        moved = zeros.moved(step)
        moved.measured.residual(problem.poses(moved))
    differences = (time.process_time() - begin) * found.iterations
    whole = []
    for _ in range(3):
        begin = time.process_time()
        cj.calibrate(robot, q, points=points, frame="tip")
        whole.append(time.process_time() - begin)
    print(f"{len(q)} × {points.shape[1]} points, {size} unknowns: {1e3 * min(times):.0f} ms a fit ({found.iterations} steps)")
    print(f"  Jacobians by differences for the same steps: {1e3 * differences:.0f} ms")
    print(f"  calibrate with choice of terms, held-back errors and intervals: {1e3 * min(whole):.0f} ms")


def camera(folder: Path) -> None:
    data, robot = np.load(folder / "franka_calibration" / "measured.npz"), cj.load("panda")
    q = np.zeros((len(data["q"]), robot.nq))
    q[:, :7] = data["q"]
    frame, error = robot.links[6].name, np.zeros((len(q), 2, 2))
    for train, test in folds(len(q), 0):
        cal = cj.calibrate(robot, q[train], poses=data["camera"][train], frame=frame)
        for k, one in enumerate((cal.nominal_fit(), cal)):
            off = np.linalg.inv(one.predict(q[test])) @ data["camera"][test]
            error[test, k, 0] = 1e3 * np.linalg.norm(off[:, :3, 3], axis=1)
            error[test, k, 1] = np.degrees(np.arccos(np.clip((np.trace(off[:, :3, :3], axis1=1, axis2=2) - 1) / 2, -1, 1)))
    for k, label in enumerate(("as described", "calibrated")):
        print(f"Franka, {label}: held back mean {error[:, k, 0].mean():.2f} mm {error[:, k, 1].mean():.3f}°")


def coverage(fits: int = 1000) -> None:
    """How often 95 % intervals of predictions, of parameters that are seen, and of poses hold the truth; another robot each time."""
    rng, robot = np.random.default_rng(0), cj.load("puma560")
    frame, size = robot.link_names[-1], PRIOR["tilt"]
    c, q, other, places = chain(robot, frame), robot.random(rng, 40), robot.random(rng, 5), 0.2 * rng.normal(size=(3, 3))
    for kind in ("points", "poses"):
        predictions, parameters = [], []
        for _ in range(fits // 2):
            eta, offset = [size * rng.normal(size=len(d)) for d in c.directions], size * rng.normal(size=len(c.links))
            real = corrected(c, np.array([x @ d for x, d in zip(eta, c.directions, strict=True)]), offset)
            T, there = np.asarray(cj.pose(real, q, frame)), np.asarray(cj.pose(real, other, frame))
            if kind == "points":
                measured = seen(places, T) + 1e-4 * rng.normal(size=(len(q), 3, 3))
            else:
                measured = T @ se3.exp(1e-4 * rng.normal(size=(len(q), 6)))
            cal = cj.calibrate(robot, q, **{kind: measured}, frame=frame, terms=(), loss="squares")
            if kind == "points":
                error = (cal.predict(other) - seen(places, there)).reshape(5, 9)
            else:
                error = se3.log(se3.inverse(cal.predict(other)) @ there)
            predictions.append(np.abs(error) < 1.96 * cal.uncertainty(other))
            found = np.array(list(cal.parameters.values()))
            shown = np.isfinite(found[:, 1])
            off = found[:, 0] - np.concatenate([*eta, offset])
            parameters.append(np.abs(off[shown]) < 1.96 * found[shown, 1])
        print(
            f"95 % intervals from {kind} hold the truth: predictions {100 * np.mean(predictions):.1f} %, parameters that are seen "
            f"{100 * np.mean(np.concatenate(parameters)):.1f} % ({len(predictions)} fits)"
        )


def seen(places: np.ndarray, T: np.ndarray) -> np.ndarray:
    return places @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3]


def main() -> None:
    folder = Path(sys.argv[1])
    robot, q, points = irb120(folder)
    speed(robot, q, points)
    held_back(robot, q, points)
    random_splits(robot, q, points)
    for note in cj.calibrate(robot, q, points=points, frame="tip").notes:
        print(f"  {note}")
    camera(folder)
    coverage()


if __name__ == "__main__":
    main()
