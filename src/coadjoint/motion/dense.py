"""Dense output of the adaptive integrator."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from .equations_of_motion import EquationsOfMotion


class Dense:
    """States q (N, nq), v (N, nv) at times (N,) of one step: the integrator's polynomial, brought back to constraints and contacts.

    It does not contain the control, which need not be picklable.
    """

    def __init__(self, mechanics: EquationsOfMotion, polynomial: Any) -> None:
        self.mechanics, self.polynomial = copy(mechanics), polynomial
        self.mechanics.control, self.mechanics.sampled, self.mode = None, None, mechanics.mode

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, n = self.polynomial(t).T, self.mechanics.robot.nq
        return self.mechanics.project(y[:, :n], y[:, n:], self.mode)
