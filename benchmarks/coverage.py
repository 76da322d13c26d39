"""Coverage of intervals: `python -m benchmarks.coverage [FITS] [METHOD …]`. How many 95 % intervals hold the truth in simulated fits.

Each fit sees the same motion with other noise, white or correlated over some ten rows, and a prior that is wrong. The intervals are those
of `fit.base` and of the coefficients of friction; the standard error is over fits, since intervals of one fit are not independent.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
from scipy.signal import lfilter

import coadjoint as cj
from coadjoint.lie import inertia

VISCOUS, COULOMB = 0.3, 0.2


def arm(name: str) -> cj.Robot:
    robot = cj.load(name)
    return robot.lock(dict.fromkeys(robot.joint_names[3:], 0.3)) if robot.nv > 3 else robot


def motion(robot: cj.Robot, rows: int = 500, step: float = 0.02) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    t = np.arange(rows) * step
    w = 2 * np.pi * np.arange(1, 5) / t[-1]
    s, c = rng.normal(size=(2, robot.nv, len(w))) * 0.35
    sin, cos = np.sin(w * t[:, None]), np.cos(w * t[:, None])
    return {
        "time": t,
        "q": sin @ s.T + cos @ c.T,
        "v": (cos * w) @ s.T - (sin * w) @ c.T,
        "a": -(sin * w**2) @ s.T - (cos * w**2) @ c.T,
    }


def covered(robot: cj.Robot, fits: int, correlated: float, seed: int = 0, method: str = "auto") -> np.ndarray:
    """(fits, parameters): whether the interval holds the truth; noise is an autoregression with this coefficient."""
    rng = np.random.default_rng(seed)
    sigma = np.asarray(inertia.pseudo(robot.inertias))
    G = np.eye(4) + 0.1 * rng.normal(size=(robot.n_links, 4, 4))
    truth = robot.with_inertial_parameters(np.asarray(inertia.from_pseudo(G @ sigma @ np.swapaxes(G, -1, -2))).reshape(-1))
    log = motion(robot)
    exact = np.asarray(cj.inverse_dynamics(truth, log["q"], log["v"], log["a"])) + VISCOUS * log["v"] + COULOMB * np.sign(log["v"])
    size = 0.02 * np.sqrt((exact**2).mean(0)) * np.sqrt(1 - correlated**2)
    expected = np.concatenate(
        [cj.base_parameters(robot).values(truth), np.tile([0.0, VISCOUS, COULOMB], robot.nv)]
    )  # joint by joint: offset, viscous, coulomb
    found = []
    for _ in range(fits):
        noise = lfilter([1.0], [1.0, -correlated], rng.normal(size=(len(exact) + 200, robot.nv)), axis=0)[200:]
        terms = ("offset", "viscous", "coulomb")
        options = {"simulation": {"reference": (log["q"], log["v"], log["a"])}} if method == "instrumental_variables" else {}
        fit = cj.identify(robot, log | {"tau": exact + size * noise}, friction=terms, gravity="fixed", method=method, **options)
        own = list(fit.parameters)[10 * robot.n_links :]
        low = np.concatenate([fit.base.lower, [x.lower for x in own]])
        high = np.concatenate([fit.base.upper, [x.upper for x in own]])
        found.append((low <= expected) & (expected <= high))
    return np.array(found)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name, method, correlated in product(("planar2r", "ur5e"), sys.argv[2:] or ["auto"], (0.0, 0.8)):
        inside = covered(arm(name), count, correlated, method=method)
        spread = inside.mean(1).std() / np.sqrt(count)
        each = 100 * inside.mean(0)
        print(
            f"{name}, {method}, noise correlated by {correlated:g}: {100 * inside.mean():.2f} % ± {100 * spread:.2f} of "
            f"{inside.size} intervals in {count} fits (each parameter {each.min():.1f} … {each.max():.1f} %)",
            flush=True,
        )
