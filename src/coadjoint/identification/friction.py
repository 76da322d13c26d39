"""Friction and drives: what a joint adds to the forces of the rigid bodies, as columns that are linear in their coefficients.

offset        1                            a sensor's zero, a spring's mean
viscous       v                            ≥ 0
coulomb       σ = tanh((v - d a) / w)      ≥ 0; dry friction, smooth within the speed w near standstill, turning d seconds late
root          v / √(|v| + w)               ≥ 0; viscous friction that grows less than in proportion, as of grease
stribeck      σ exp(-|v| / s)              more (or less) friction at low speeds
load          |load| σ                     ≥ 0; dry friction in proportion to the force that the gear carries
asymmetry     |σ|                          another dry friction in one direction than in the other
spring        q                            cables, hoses, seals
armature      a                            ≥ 0; the rotor's inertia as seen at the joint
gain          load                         a sensor's or drive's scale error: measured = (1 + gain) load + …

Dry friction does not change its sign with the speed but when the contact has slipped by some micrometres, so a reversal is seen late: d.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

TERMS = ("offset", "viscous", "armature", "coulomb", "root", "load", "stribeck", "asymmetry", "spring", "gain")
POSITIVE = frozenset({"viscous", "armature", "coulomb", "root", "load"})
"""Terms whose coefficients are not negative."""
DRY = frozenset({"coulomb", "load", "stribeck", "asymmetry"})
"""Terms that reverse with the direction of motion, with a width and a lag."""


@dataclass(frozen=True)
class Shape:
    """How friction depends on speed, joint by joint (nv,)."""

    widths: np.ndarray
    """Speeds w within which dry friction is smooth."""
    lags: np.ndarray
    """Seconds d by which it reverses late."""
    speeds: np.ndarray
    """Speeds s of Stribeck's term."""

    def direction(self, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """σ: the direction of dry friction, between -1 and 1."""
        return np.asarray(np.tanh((v - self.lags * a) / self.widths))

    def column(
        self, name: str, q: np.ndarray | None, v: np.ndarray, a: np.ndarray, load: np.ndarray, sign: np.ndarray | None = None
    ) -> np.ndarray:
        """The column of a term: the force that a coefficient of one gives; arrays (..., nv). `sign` is σ where it is at hand."""
        if name == "offset":
            return np.ones_like(v)
        if name == "viscous":
            return v
        if name == "armature":
            return a
        if name == "root":
            return np.asarray(v / np.sqrt(np.abs(v) + self.widths))
        if name == "spring":
            return np.zeros_like(v) if q is None or q.shape != v.shape else q
        if name == "gain":
            return load
        if name not in DRY:
            raise ValueError(f"no term of friction is called {name!r}: {', '.join(TERMS)}")
        sign = self.direction(v, a) if sign is None else sign
        if name == "load":
            return np.asarray(np.abs(load) * sign)
        if name == "stribeck":
            return np.asarray(sign * np.exp(-np.abs(v) / self.speeds))
        return np.asarray(np.abs(sign)) if name == "asymmetry" else sign


@dataclass(frozen=True)
class Friction:
    """Friction, armature, springs, offsets and gains of joints: coefficients (nv,) by term, and how they depend on speed."""

    names: tuple[str, ...]
    shape: Shape
    coefficients: Mapping[str, np.ndarray]

    def __call__(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, load: np.ndarray) -> np.ndarray:
        """The forces (..., nv) at states, accelerations and forces of the rigid bodies (..., nv)."""
        total = np.zeros(np.broadcast_shapes(np.shape(v), np.shape(a), np.shape(load)))
        v, a, load = (np.broadcast_to(x, total.shape) for x in (v, a, load))
        q = np.broadcast_to(q, total.shape) if np.shape(q)[-1:] == total.shape[-1:] else None  # type: ignore[assignment]
        for name, x in self.coefficients.items():
            if np.any(x):
                total = total + x * self.shape.column(name, q, v, a, load)
        return total

    def columns(self, names: Sequence[str], q: np.ndarray, v: np.ndarray, a: np.ndarray, load: np.ndarray) -> np.ndarray:
        """(..., nv, nv len(names)): the regressor of the coefficients of these terms, joint after joint for each term."""
        one = np.eye(len(self.names))
        return np.concatenate([self.shape.column(name, q, v, a, load)[..., None] * one for name in names], axis=-1)

    def __str__(self) -> str:
        used = [name for name in TERMS if name in self.coefficients and np.any(self.coefficients[name])]
        rows = [f"{'joint':<20}" + "".join(f"{name:>12}" for name in used)]
        for k, joint in enumerate(self.names):
            rows.append(f"{joint[:19]:<20}" + "".join(f"{self.coefficients[name][k]:>12.4g}" for name in used))
        return "\n".join(rows)
