"""Identification on recorded logs, judged on what was held back: `python -m benchmarks.identification_splits FOLDER [panda|lwr|ur]`.

Every outer split fits the rest with `cj.identify`, whose own choices (terms of friction, widths, slips, tilt, weight of the prior) use
inner splits of the training rows only, and judges it on rows that it never saw: blocks of time, whole logs, fast stretches by slow ones.
"As a motion" is its prediction with `time=`, by which dry friction at rest is what the motion before left. Beside both stands plain
weighted least squares (base parameters, viscous, Coulomb friction and offsets; rotors for motor currents).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.signal import butter, sosfiltfilt

import coadjoint as cj

ASKED = np.array([0.15, 0.22, 0.17, 0.16, 0.065, 0.045, 0.045])
"""Of the Panda, N m."""
UR_GAINS = np.array([14.87, 13.26, 11.13, 10.62, 11.03, 11.47])
"""Published, N m/A."""
Log = dict[str, np.ndarray]


def read(path: Path, joints: int, keys: tuple[str, ...]) -> Log:
    with path.open() as file:
        head = file.readline().strip().split(",")
    table = dict(zip(head, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))
    return {"time": table["time"]} | {k: np.stack([table[f"{k}{j}"] for j in range(1, joints + 1)], axis=1) for k in keys}


def rows(log: Log, k: np.ndarray | slice) -> Log:
    return {name: x[k] for name, x in log.items()}


def stretches(log: Log, keep: np.ndarray) -> list[Log]:
    """The runs of rows that are kept."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], keep.astype(int), [0]])))
    return [rows(log, slice(i, j)) for i, j in zip(edges[::2], edges[1::2], strict=True)]


def smooth(log: Log, rate: float, cutoff: float = 10.0, ends: float = 0.3) -> Log:
    """Even times, zero-phase low-pass, a as the derivative of v, without the ends."""
    if "a" in log:
        return log
    t = np.arange(log["time"][0], log["time"][-1], 1 / rate)
    sections = butter(4, cutoff, fs=rate, output="sos")

    def even(x: np.ndarray) -> np.ndarray:
        return sosfiltfilt(sections, np.stack([np.interp(t, log["time"], y) for y in x.T], axis=1), axis=0)

    made = {name: even(x) for name, x in log.items() if name != "time"}
    made["a"] = np.gradient(made["v"], 1 / rate, axis=0)
    cut = int(ends * rate)
    return rows({"time": t} | made, slice(cut, len(t) - cut))


class Plain:
    """Weighted least squares without any prior."""

    def __init__(self, robot: cj.Robot, logs: list[Log], drives: bool) -> None:
        self.robot, self.drives, self.pivots = robot, drives, list(cj.base_parameters(robot).pivots)
        X = np.concatenate([self.columns(x) for x in logs])
        tau, weight = np.concatenate([x["tau"] for x in logs]), np.ones(robot.nv)
        for _ in range(4):
            flat = (X / weight[:, None]).reshape(-1, X.shape[-1])
            self.x = np.linalg.lstsq(flat, (tau / weight).ravel(), rcond=1e-11)[0]
            weight = np.sqrt(((tau - X @ self.x) ** 2).mean(0))

    def columns(self, log: Log) -> np.ndarray:
        q, v, a, one = log["q"], log["v"], log["a"], np.eye(self.robot.nv)
        own = [v, np.tanh(v / 0.01), np.ones_like(v), *([a] if self.drives else [])]
        Y = np.asarray(cj.regressor(self.robot, q, v, a))[..., self.pivots]
        return np.concatenate([Y, *(x[..., None] * one for x in own)], axis=-1)

    def torque(self, log: Log) -> np.ndarray:
        return self.columns(log) @ self.x


def blocks(log: Log, count: int) -> Iterator[tuple[str, np.ndarray]]:
    number = np.arange(len(log["time"])) * count // len(log["time"])
    for k in range(count):
        yield f"block {k + 1} of {count}", number == k


def ends(log: Log, shares: tuple[float, ...]) -> Iterator[tuple[str, np.ndarray]]:
    place = np.arange(len(log["time"])) / len(log["time"])
    for share in shares:
        yield f"last {100 * share:.0f} %", place >= 1 - share


def fast(log: Log, seconds: float, share: float) -> Iterator[tuple[str, np.ndarray]]:
    """The fastest windows."""
    window = ((log["time"] - log["time"][0]) / seconds).astype(int)
    speed = np.abs(log["v"]) / np.sqrt((log["v"] ** 2).mean(0))
    mean = np.array([speed[window == k].mean() for k in range(window.max() + 1)])
    yield f"fastest {100 * share:.0f} %", mean[window] > np.quantile(mean, 1 - share)


def judged(robot: cj.Robot, training: list[Log], test: list[Log], rate: float, drives: bool = False):
    """Held-back forces, predictions of the fit row by row, as a motion and of plain least squares, and the speeds."""
    fit = cj.identify(robot, training)
    plain = Plain(robot, [smooth(x, rate) for x in training if np.ptp(x["time"]) > 0.8], drives)
    judge = [smooth(x, rate) for x in test if np.ptp(x["time"]) > 0.8]
    found = {
        "identify": [fit.torque(x["q"], x["v"], x["a"]) for x in judge],
        "as a motion": [fit.torque(x["q"], x["v"], x["a"], time=x["time"]) for x in judge],
        "plain": [plain.torque(x) for x in judge],
    }
    tau, v = (np.concatenate([x[name] for x in judge]) for name in ("tau", "v"))
    return tau, {name: np.concatenate(x) for name, x in found.items()}, v


def relative(e: np.ndarray, tau: np.ndarray) -> float:
    return 100 * float(np.linalg.norm(e) / np.linalg.norm(tau))


def panda(folder: Path) -> None:
    robot, log = cj.load("panda"), read(folder / "panda_log" / "excitation.csv", 7, ("q", "v", "tau"))
    print("Panda, rms per joint over the asked one")
    total: list[dict[str, np.ndarray]] = []
    for name, held in [*blocks(log, 5), *ends(log, (0.2, 0.3, 0.4)), *fast(log, 2.5, 0.4)]:
        tau, found, _ = judged(robot, stretches(log, ~held), stretches(log, held), 1000.0)
        total.append({who: np.sqrt(((x - tau) ** 2).mean(0)) for who, x in found.items()})
        for who, x in total[-1].items():
            print(f"  {name:14} {who:12} {np.round(x / ASKED, 2)}", flush=True)
    print(f"  five blocks, N m: asked {ASKED}")
    for who in total[0]:
        print(f"  {who:12} {np.round(np.sqrt(np.mean([x[who] ** 2 for x in total[:5]], axis=0)), 3)}")


def lwr(folder: Path) -> None:
    robot = cj.load(folder / "lwr4_log" / "lwr4.urdf")
    log = read(folder / "lwr4_log" / "excitation.csv", 7, ("q", "v", "a", "tau"))
    print("LWR4+, relative error")
    for name, held in [*blocks(log, 4), *ends(log, (0.5, 0.7)), *fast(log, 1.5, 0.4), *fast(log, 1.5, 0.7)]:
        tau, found, _ = judged(robot, stretches(log, ~held), stretches(log, held), 200.0)
        print(f"  {name:14} " + "   ".join(f"{who} {relative(x - tau, tau):5.2f} %" for who, x in found.items()), flush=True)


def ur(folder: Path) -> None:
    robot = cj.load(folder / "ur10e_log" / "ur10e.urdf")
    logs = []
    for seconds in (20, 30, 40):
        log = read(folder / "ur10e_log" / f"harmonics_{seconds}s.csv", 6, ("q", "v", "i"))
        logs.append({"time": log["time"], "q": log["q"], "v": log["v"], "tau": log["i"] * UR_GAINS})
    print("UR10e, relative errors of all rows, of moving ones, each wrist, and each wrist's slow rows")
    splits = [(f"log {k + 1}", [x for x in logs if x is not logs[k]], [logs[k]]) for k in range(3)]
    slow, quick = [], []
    for log in logs:
        _, held = next(fast(log, 4.0, 0.4))
        slow += stretches(log, ~held)
        quick += stretches(log, held)
    splits += [("fastest 40 %", slow, quick), ("slowest 60 %", quick, slow)]
    for name, training, test in splits:
        tau, found, v = judged(robot, training, test, 100.0, drives=True)
        size = np.sqrt((v**2).mean(0))
        moving = np.abs(v).max(1) > 0.02
        creeping = (np.abs(v) < 0.15 * size) & (np.abs(v) > 0.005)
        for who, x in found.items():
            e = x - tau
            wrists = [relative(e[moving, k], tau[moving, k]) for k in (3, 4, 5)]
            near = [relative(e[creeping[:, k], k], tau[creeping[:, k], k]) for k in (3, 4, 5)]
            print(
                f"  {name:14} {who:12} {relative(e, tau):5.2f} %, {relative(e[moving], tau[moving]):5.2f} %"
                f"   wrists {np.round(wrists, 1)} % slow {np.round(near, 1)} %"
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[2:] or ("panda", "lwr", "ur"):
        {"panda": panda, "lwr": lwr, "ur": ur}[part](Path(sys.argv[1]))
