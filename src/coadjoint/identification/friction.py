"""Friction and drives: what a joint adds to the forces of the rigid bodies, as columns that are linear in their coefficients.

offset        1                            a sensor's zero, a spring's mean
viscous       v                            ≥ 0
coulomb       σ, in [-1, 1]                ≥ 0; dry friction, smooth within the speed w near standstill, turning after the slip s
root          v / √(|v| + w)               ≥ 0; viscous friction that grows less than in proportion, as of grease
stribeck      σ exp(-|v| / v_s)            more (or less) friction at low speeds
load          |load| σ                     ≥ 0; dry friction in proportion to the force that the gear carries
asymmetry     |σ|                          another dry friction in one direction than in the other
spring        q                            cables, hoses, seals
armature      a                            ≥ 0; the rotor's inertia as seen at the joint
previous_load load of the joint before     couplings: what a sensor or a gear has of the neighbouring joints
next_load     load of the joint after
gain          load                         a sensor's or drive's scale error: measured = (1 + gain) load + …

Dry friction does not change its sign with the speed but when the contact has slipped by some micrometres. After a reversal at the
acceleration a, Dahl's law (1968) is σ = sign(a) (1 - 2 exp(-x / s)) at the displacement x = v² / 2|a|: a function of v / √(2 s |a|),
which is zero at √log 2 and has the slope 2 √log 2 there. Smooth within the speed w, and without a jump at rest, this is

    σ = tanh((v - √log 2 c) / (w + |c| / (2 √log 2))),   c = sign(a) (√(w² + 2 s |a|) - w).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from ..words import printable

TERMS = (
    "offset",
    "viscous",
    "armature",
    "coulomb",
    "root",
    "load",
    "stribeck",
    "asymmetry",
    "spring",
    "previous_load",
    "next_load",
    "gain",
)
LOADED = frozenset({"load", "previous_load", "next_load"})
"""Terms whose columns depend on the forces of the rigid bodies."""
POSITIVE = frozenset({"viscous", "armature", "coulomb", "root", "load"})
"""Terms whose coefficients are not negative."""
DRY = frozenset({"coulomb", "load", "stribeck", "asymmetry"})
"""Terms that reverse with the direction of motion, with a width and a lag."""
BRAKING = ("root", "load", "previous_load", "next_load", "stribeck")
"""Terms beside viscous and Coulomb friction that oppose motion."""


HALF = np.sqrt(np.log(2.0))
"""v / √(2 s |a|) where friction is zero after a reversal."""


def direction(v: np.ndarray, a: np.ndarray, width: np.ndarray | float, slip: np.ndarray | float) -> np.ndarray:
    """σ: the direction of dry friction, between -1 and 1."""
    c = np.copysign(np.sqrt(width * width + 2.0 * slip * np.abs(a)) - width, a)
    return np.asarray(np.tanh((v - HALF * c) / (width + np.abs(c) / (2.0 * HALF))))


@dataclass(frozen=True)
class Shape:
    """The dependence of friction on speed, joint by joint (nv,)."""

    widths: np.ndarray
    """Speeds w within which dry friction is smooth."""
    slips: np.ndarray
    """Displacements s by which a contact slips before its friction has turned."""
    speeds: np.ndarray
    """Speeds v_s of Stribeck's term."""

    def direction(self, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """σ: the direction of dry friction, between -1 and 1."""
        return direction(v, a, self.widths, self.slips)

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
        if name == "previous_load":
            return np.concatenate([np.zeros_like(load[..., :1]), load[..., :-1]], axis=-1)
        if name == "next_load":
            return np.concatenate([load[..., 1:], np.zeros_like(load[..., :1])], axis=-1)
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

    def __call__(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, load: np.ndarray, sign: np.ndarray | None = None) -> np.ndarray:
        """The forces (..., nv) at states, accelerations and forces of the rigid bodies (..., nv); `sign` is σ where it is at hand."""
        total = np.zeros(np.broadcast_shapes(np.shape(v), np.shape(a), np.shape(load)))
        v, a, load = (np.broadcast_to(x, total.shape) for x in (v, a, load))
        q = np.broadcast_to(q, total.shape) if np.shape(q)[-1:] == total.shape[-1:] else None  # type: ignore[assignment]
        for name, x in self.coefficients.items():
            if np.any(x):
                total = total + x * self.shape.column(name, q, v, a, load, sign)
        return total

    def plain(self, v: np.ndarray, a: np.ndarray, load: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Viscous and Coulomb coefficients (nv,) ≥ 0 whose d v + c sign(v) is nearest to all terms that brake, in the rows `used`.

        A robot's joints have these two. Where no other term was fitted they are the coefficients themselves.
        """
        found = self.coefficients
        viscous, coulomb = (np.array(found.get(name, np.zeros(len(self.names)))) for name in ("viscous", "coulomb"))
        others = [found[name] for name in BRAKING if name in found]
        for j in np.flatnonzero(np.sum(np.abs(others), axis=0)) if others else ():
            rows = used[:, j]
            braking = {name: found[name] for name in ("viscous", "coulomb", *BRAKING) if name in found}
            force = Friction(self.names, self.shape, braking)(v[rows], v[rows], a[rows], load[rows])[:, j]
            viscous[j], coulomb[j] = nnls(np.stack([v[rows, j], np.sign(v[rows, j])], axis=1), force)[0]
        return viscous, coulomb

    def columns(self, names: Sequence[str], q: np.ndarray, v: np.ndarray, a: np.ndarray, load: np.ndarray) -> np.ndarray:
        """(..., nv, nv len(names)): the regressor of the coefficients of these terms, joint after joint for each term."""
        one = np.eye(len(self.names))
        return np.concatenate([self.shape.column(name, q, v, a, load)[..., None] * one for name in names], axis=-1)

    def __str__(self) -> str:
        used = [name for name in TERMS if name in self.coefficients and np.any(self.coefficients[name])]
        wide = [max(12, len(name) + 2) for name in used]
        rows = [f"{'joint':<20}" + "".join(f"{name:>{n}}" for name, n in zip(used, wide, strict=True))]
        for k, joint in enumerate(self.names):
            numbers = (f"{self.coefficients[name][k]:>{n}.4g}" for name, n in zip(used, wide, strict=True))
            rows.append(f"{printable(joint)[:19]:<20}" + "".join(numbers))
        return "\n".join(rows)
