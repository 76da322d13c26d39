"""A log of the real robot, for the page: measured joint forces, those of the description and those of the fitted model."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ...dynamics import inverse_dynamics
from ...errors import CoadjointError, LogWarning
from ...identification import identify
from ...motion.states import force_units
from ...robot.robot import Robot

ROWS = 1200
"""The most rows that are sent to the page."""


def identified(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """The result of `identify` on the text of a table: forces measured, of the description, and of the fit; rms of the residuals."""
    text = data.get("table")
    if not isinstance(text, str) or not text.strip():
        raise CoadjointError("table must be the text of a log: columns time, q1 …, tau1 ….")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        path = Path(folder) / "log.csv"
        path.write_text(text, encoding="utf-8")
        try:
            fit = identify(robot, path)
        except CoadjointError as error:
            raise CoadjointError(str(error).replace(str(path), "the table")) from None
        saved = fit.robot.to_json()
    log = fit.data
    before = np.asarray(inverse_dynamics(robot, log.q, log.v, log.a, friction=True)) + log.known
    rows = np.unique(np.linspace(0, len(log) - 1, min(len(log), ROWS)).round().astype(int))

    def rms(x: np.ndarray) -> list[float]:
        return list(np.sqrt((x**2 * log.used).sum(axis=0) / log.used.sum(axis=0).clip(1)))

    said = [str(x.message).replace(str(path), "the table") for x in doubts if issubclass(x.category, LogWarning)]
    return {
        "time": (rows * log.step).tolist(),
        "q": log.q[rows].tolist(),
        "v": log.v[rows].tolist(),
        "measured": log.tau[rows].tolist(),
        "before": before[rows].tolist(),
        "after": fit.predicted[rows].tolist(),
        "names": list(robot.v_names),
        "units": list(force_units(robot)),
        "rms": {"measured": rms(log.tau), "before": rms(log.tau - before), "after": list(fit.rms)},
        "relative": fit.relative_error,
        "says": str(fit),
        "advice": [*dict.fromkeys([*said, *fit.advice])],
        "robot": saved,
    }
