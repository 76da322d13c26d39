"""Friction and drives: what a joint adds to the forces of the rigid bodies, as columns that are linear in their coefficients.

offset        1                            a sensor's zero, a spring's mean
viscous       v                            ≥ 0
coulomb       tanh(v / w)                  ≥ 0; dry friction, smooth within the speed w near standstill
root          v / √(|v| + w)               ≥ 0; viscous friction that grows less than in proportion, as of grease
stribeck      tanh(v / w) exp(-|v| / s)    more (or less) friction at low speeds, s = 10 w
load          |load| tanh(v / w)           ≥ 0; dry friction in proportion to the force that the gear carries
asymmetry     |tanh(v / w)|                another dry friction in one direction than in the other
armature      a                            ≥ 0; the rotor's inertia as seen at the joint
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

TERMS = ("offset", "viscous", "armature", "coulomb", "root", "load", "stribeck", "asymmetry")
POSITIVE = frozenset({"viscous", "armature", "coulomb", "root", "load"})
"""Terms whose coefficients are not negative."""
WIDTHS = (0.01, 0.03, 0.1)
"""Speeds w that are tried, relative to the root-mean-square speed of the joint."""


def term(name: str, v: np.ndarray, a: np.ndarray, load: np.ndarray, width: np.ndarray | float) -> np.ndarray:
    """The column of a term: the force that a coefficient of one gives; arrays of one shape."""
    sign = np.asarray(np.tanh(v / width))
    if name == "offset":
        return np.ones_like(v)
    if name == "viscous":
        return v
    if name == "armature":
        return a
    if name == "coulomb":
        return sign
    if name == "root":
        return np.asarray(v / np.sqrt(np.abs(v) + width))
    if name == "load":
        return np.asarray(np.abs(load) * sign)
    if name == "stribeck":
        return np.asarray(sign * np.exp(-np.abs(v) / (10.0 * width)))
    if name == "asymmetry":
        return np.asarray(np.abs(sign))
    raise ValueError(f"no term of friction is called {name!r}: {', '.join(TERMS)}")


@dataclass(frozen=True)
class Friction:
    """Friction, armature and offsets of joints: coefficients (nv,) by term; dry friction is smooth within the speeds `widths` (nv,)."""

    names: tuple[str, ...]
    widths: np.ndarray
    coefficients: Mapping[str, np.ndarray]

    def __call__(self, v: np.ndarray, a: np.ndarray, load: np.ndarray) -> np.ndarray:
        """The forces (..., nv) at velocities, accelerations and forces of the rigid bodies (..., nv)."""
        total = np.zeros(np.broadcast_shapes(np.shape(v), np.shape(a), np.shape(load)))
        for name, x in self.coefficients.items():
            if np.any(x):
                total = total + x * term(name, v, a, load, self.widths)
        return total

    def columns(self, names: Sequence[str], v: np.ndarray, a: np.ndarray, load: np.ndarray) -> np.ndarray:
        """(..., nv, nv len(names)): the regressor of the coefficients of these terms, joint after joint for each term."""
        one = np.eye(len(self.names))
        return np.concatenate([term(name, v, a, load, self.widths)[..., None] * one for name in names], axis=-1)

    def __str__(self) -> str:
        used = [name for name in TERMS if name in self.coefficients and np.any(self.coefficients[name])]
        rows = [f"{'joint':<20}" + "".join(f"{name:>12}" for name in used)]
        for k, joint in enumerate(self.names):
            rows.append(f"{joint[:19]:<20}" + "".join(f"{self.coefficients[name][k]:>12.4g}" for name in used))
        return "\n".join(rows)
