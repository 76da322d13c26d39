"""Initial guesses: for each target, the random configuration whose frames are nearest to it."""

from __future__ import annotations

import numpy as np

from ..memo import recent
from ..robot.robot import Robot
from .poses import pose
from .targets import Target

TABLE = 256
"""The number of random configurations from which a start is chosen: searching them costs about as much as one step."""


def table(robot: Robot, targets: list[Target], k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Configurations (TABLE, nq) drawn at random, and the features of the poses there."""
    key = ("starts", k, seed, *(x.key for x in targets))

    def make() -> tuple[np.ndarray, np.ndarray]:
        q = robot.random(np.random.default_rng([seed, k]), TABLE)
        to = [pose(robot, q, x.frame) for x in targets]
        flat = [T[..., :3, :].reshape(-1, 12) if x.size == 12 else T[..., :3, 3] for x, T in zip(targets, to, strict=True)]
        return q, features(targets, np.concatenate(flat, axis=-1))

    return recent(robot, key, make)


def features(targets: list[Target], goal: np.ndarray) -> np.ndarray:
    """Features (N, f) whose Euclidean distance approximates the distance of poses: the entries of R, and p with three times the
    weight.
    """
    parts = []
    offset = 0
    for target in targets:
        x, offset = goal[:, offset : offset + target.size], offset + target.size
        rows = target.rows or ()
        if target.size == 12 and min(rows) < 3:
            parts.append(x.reshape(-1, 3, 4)[..., :3].reshape(-1, 9) / np.sqrt(2.0))
        if max(rows) >= 3:
            parts.append(3.0 * (x[:, 3::4] if target.size == 12 else x))
    return np.concatenate(parts, axis=-1).astype(np.float32)


def closest(wanted: np.ndarray, known: np.ndarray, block: int = 128) -> np.ndarray:
    """The index of the row of `known` nearest to every row of `wanted`: the largest ⟨a, b⟩ - ½ |b|²."""
    columns = np.ascontiguousarray(np.concatenate([known, -0.5 * (known * known).sum(-1, keepdims=True)], axis=-1).T)
    rows = np.concatenate([wanted, np.ones((len(wanted), 1), dtype=np.float32)], axis=-1)
    found = np.empty(len(wanted), dtype=np.intp)
    score = np.empty((min(block, len(wanted)), len(known)), dtype=np.float32)
    for i in range(0, len(wanted), block):
        part = rows[i : i + block]
        found[i : i + block] = np.matmul(part, columns, out=score[: len(part)]).argmax(-1)
    return found
