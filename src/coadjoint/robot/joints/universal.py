"""Universal joints."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array, stack
from ...lie import se3
from .kind import line
from .one_screw import Revolute


class Universal(Revolute):
    """Two revolute joints in a row: exp(S₁ q₁) exp(S₂ q₂)."""

    nq, nv = 2, 2
    turns, angles = (True, True), ((0, 0), (1, 1))
    revolute, serial = False, True
    q_parts, v_parts = ("1", "2"), ("1", "2")

    def pose(self, screws: Array, q: Array) -> Array:
        return se3.exp_screw(screws[..., 0, :], q[..., 0]) @ se3.exp_screw(screws[..., 1, :], q[..., 1])

    def subspace(self, screws: Array, q: Array) -> Array:
        second = se3.exp_screw(screws[..., 1, :], q[..., 1])
        return stack([se3.Ad_inv_act(second, screws[..., 0, :]), screws[..., 1, :]], axis=-2)

    def bias(self, screws: Array, q: Array, v: Array) -> Array:
        S = self.subspace(screws, q)
        return se3.ad_act(S[..., 0, :], S[..., 1, :]) * (v[..., :1] * v[..., 1:])

    def home_screws(self, **geometry: Any) -> np.ndarray:
        return np.stack([line(geometry[key], geometry["point"]) for key in ("axis", "second_axis")])
