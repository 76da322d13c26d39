"""The acceptance cases in `cases/`: models and numbers from an independent reference. Each is read by its number."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import coadjoint as cj

FOLDER = Path(__file__).parent / "cases"


def read(number: int) -> dict[str, Any]:
    """The file of a case as it stands."""
    (path,) = FOLDER.glob(f"{number:02d}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


def load(number: int) -> SimpleNamespace:
    """A case: model, robot (or None), inputs as arrays, expected, tolerance, and close, its rtol and atol."""
    data = read(number)
    case = SimpleNamespace(**{key: data[key] for key in ("model", "tolerance", "expected")}, inputs=arrays(data["inputs"]))
    case.robot = robot(data["model"]) if data["model"] is not None else None
    case.close = {key: data["tolerance"][key] for key in ("rtol", "atol")}
    return case


def robot(model: dict[str, Any], **options: Any) -> cj.Robot:
    """The robot of a case's model."""
    return cj.Robot.from_screws(
        model["A"], model["M"], model["mass"], model["inertia"], model["parent"], gravity=model["gravity"], **options
    )


def arrays(inputs: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**{key: np.array(value, dtype=float) for key, value in inputs.items() if not isinstance(value, str)})


def check(case: SimpleNamespace, **found: Any) -> None:
    """The values found are those the case expects, within its tolerance."""
    for key, value in found.items():
        np.testing.assert_allclose(value, case.expected[key], **case.close, err_msg=key)
