"""Prior knowledge of bodies as inequalities that are linear in their parameters.

mass         {link: (least, most)} in kg
total_mass   (least, most), or one number
box          {link: (lower corner, upper corner)} in the link's frame, in m: no mass is outside
ellipsoid    {link: (centre, semi-axes)}: three lengths along the frame's axes, or a matrix (3, 3) with the semi-axes as columns

Mass inside {x : (x, 1)ᵀ Q (x, 1) ≥ 0} has ∫ (x, 1)ᵀ Q (x, 1) dm = tr(Σ Q) ≥ 0. For an ellipsoid this one inequality and Σ ⪰ 0 are also
enough for such a body to exist (Wensing, Kim & Slotine 2017). A box is a product of intervals: for every pair of its six faces the product
of the distances from them has no negative integral. These are necessary; for two coordinates also enough (Anstreicher & Burer 2010).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import CoadjointError, unknown
from ..lie import inertia
from ..robot.robot import Robot
from ..words import short

KINDS = ("mass", "total_mass", "box", "ellipsoid")
EXACT = 1e-6
"""The relative width of a total mass that is one number."""
_BASIS = np.asarray(inertia.pseudo(np.eye(10)))


def bound_rows(robot: Robot, bounds: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray]:
    """(C, d) with C φ ≥ d for the inertial parameters φ (10 n_links,) of bodies within bounds; rows are of the order of 1."""
    if bounds is None:
        return np.zeros((0, 10 * robot.n_links)), np.zeros(0)
    if not isinstance(bounds, Mapping) or (strange := [x for x in bounds if x not in KINDS]):
        what = short(bounds) if not isinstance(bounds, Mapping) else f"bounds has {short(strange[0])}"
        raise CoadjointError(f"{what}; expected a mapping with {', '.join(KINDS)}.")
    rows: list[tuple[np.ndarray, float]] = []
    for link, given in _links(robot, bounds, "mass"):
        lower, upper = _interval(f"bounds['mass'][{link!r}]", given)
        rows += _between(_row(robot, link, np.eye(10)[0]), lower, upper)
    if "total_mass" in bounds:
        given = bounds["total_mass"]
        if isinstance(given, int | float):
            given = ((1 - EXACT) * given, (1 + EXACT) * given)
        lower, upper = _interval("bounds['total_mass']", given)
        rows += _between(np.tile(np.eye(10)[0], robot.n_links), lower, upper)
    for link, given in _links(robot, bounds, "box"):
        rows += [(_row(robot, link, _trace(Q)), 0.0) for Q in box_forms(*_corners(link, given))]
    for link, given in _links(robot, bounds, "ellipsoid"):
        rows.append((_row(robot, link, _trace(ellipsoid_form(*_semi_axes(link, given)))), 0.0))
    if not rows:
        return np.zeros((0, 10 * robot.n_links)), np.zeros(0)
    return np.array([row for row, _ in rows]), np.array([d for _, d in rows])


def ellipsoid_form(centre: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Q (4, 4) with (x, 1)ᵀ Q (x, 1) = 1 - |axes⁻¹ (x - centre)|²."""
    W = np.linalg.inv(axes)
    W = W.T @ W
    Q = np.zeros((4, 4))
    Q[:3, :3], Q[:3, 3], Q[3, :3], Q[3, 3] = -W, W @ centre, W @ centre, 1.0 - centre @ W @ centre
    return Q


def box_forms(lower: np.ndarray, upper: np.ndarray) -> list[np.ndarray]:
    """Q (4, 4) of the products of distances from two faces of a box over the product of their axes' lengths, but for squares."""
    faces = []
    for k in range(3):
        for sign, at in ((1.0, lower[k]), (-1.0, upper[k])):
            face = np.zeros(4)
            face[k], face[3] = sign, -sign * at
            faces.append(face / (upper[k] - lower[k]))
    return [0.5 * (np.outer(f, g) + np.outer(g, f)) for i, f in enumerate(faces) for g in faces[i + 1 :]]


def _trace(Q: np.ndarray) -> np.ndarray:
    """The row (10,) with row · φ = tr(Σ Q)."""
    return np.asarray(np.einsum("kij,ij->k", _BASIS, Q))


def _row(robot: Robot, link: str, own: np.ndarray) -> np.ndarray:
    out = np.zeros((robot.n_links, 10))
    out[robot.link_names.index(link)] = own
    return out.reshape(-1)


def _between(row: np.ndarray, lower: float, upper: float) -> list[tuple[np.ndarray, float]]:
    found = [(row, lower)] if lower > -np.inf else []
    return [*found, (-row, -upper)] if upper < np.inf else found


def _links(robot: Robot, bounds: Mapping[str, Any], kind: str) -> list[tuple[str, Any]]:
    given = bounds.get(kind, {})
    if not isinstance(given, Mapping):
        raise CoadjointError(f"bounds[{kind!r}] is {short(given)}; expected a mapping from names of links.")
    for link in given:
        if link not in robot.link_names:
            raise unknown("link", link, robot.link_names)
    return list(given.items())


def _interval(label: str, given: Any) -> tuple[float, float]:
    try:
        lower, upper = (float(x) for x in given)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"{label} is {short(given)}; expected (least, most) in kg.") from None
    if not (lower < upper and upper > 0):
        raise CoadjointError(f"{label} is {short(given)}; expected least < most, and most above 0.")
    return max(lower, 0.0), upper


def _vectors(label: str, given: Any, words: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        first, second = (np.asarray(x, dtype=float) for x in given)
    except (TypeError, ValueError, OverflowError):
        raise CoadjointError(f"{label} is {short(given)}; expected {words}.") from None
    if first.shape != (3,) or not np.isfinite(first).all() or not np.isfinite(second).all():
        raise CoadjointError(f"{label} is {short(given)}; expected {words}.")
    return first, second


def _corners(link: str, given: Any) -> tuple[np.ndarray, np.ndarray]:
    label = f"bounds['box'][{link!r}]"
    lower, upper = _vectors(label, given, "(lower corner, upper corner), three numbers each")
    if upper.shape != (3,) or not (lower < upper).all():
        raise CoadjointError(f"{label} is {short(given)}; expected every lower coordinate below the upper one.")
    return lower, upper


def _semi_axes(link: str, given: Any) -> tuple[np.ndarray, np.ndarray]:
    label = f"bounds['ellipsoid'][{link!r}]"
    centre, axes = _vectors(label, given, "(centre, semi-axes): three numbers, and three lengths or a matrix (3, 3)")
    axes = np.diag(axes) if axes.shape == (3,) else axes
    if axes.shape != (3, 3) or abs(np.linalg.det(axes)) <= 1e-12 * np.linalg.norm(axes) ** 3:
        raise CoadjointError(f"{label} is {short(given)}; expected three semi-axes that are not 0 and not in a plane.")
    return centre, axes
