"""Limits of states by an augmented Lagrangian, as programs.

A coordinate x between its limits, with a multiplier λ (positive at the upper limit) and a penalty ρ, adds to the cost

    (max(0, y₊)² + min(0, y₋)² - λ²) / 2ρ,    y₊ = λ + ρ (x - upper),  y₋ = λ + ρ (x - lower),

whose derivative is the multiplier that a solution must have: y₊, y₋ or 0. |y - λ| / ρ measures what the limits and complementarity miss.
"""

from __future__ import annotations

from ..kernel.programs import Floats, Ints
from .layout import (
    BY_VELOCITY,
    G_END,
    G_TURNED,
    H_END,
    HIGH_X,
    LOW_X,
    MULTIPLIER,
    NEW_Q,
    NEW_V,
    NQ,
    NV,
    NX,
    NZ,
    PLACE_X,
    RHO,
    SCALARS,
    STEPS,
    SX,
    SZ,
    G,
    H,
    Q,
    V,
)


def pressed(low: float, high: float, multiplier: float, rho: float, x: float) -> float:
    """The multiplier of a coordinate at x."""
    above = multiplier + rho * (x - high)
    if above > 0.0:
        return above
    below = multiplier + rho * (x - low)
    return below if below < 0.0 else 0.0


def coordinate(at: Ints, w: Floats, q: int, v: int, t: int, i: int) -> float:
    """Entry i of the state of step t, of configurations and velocities that begin at q and v."""
    n = at[NV]
    if i < n:
        return float(w[q + t * at[NQ] + int(w[at[PLACE_X] + i])])
    return float(w[v + t * n + i - n])


def add_limits(at: Ints, w: Floats) -> float:
    """Add the first and second derivatives of all limits to those of the costs; the largest |y - λ| / ρ."""
    nx = at[NX]
    N = at[STEPS]
    sx = at[SX]
    sz = at[SZ]
    rho = w[at[SCALARS] + RHO]
    largest = 0.0
    for t in range(1, N + 1):
        for i in range(nx):
            low = w[at[LOW_X] + i]
            high = w[at[HIGH_X] + i]
            if low > -1e300 or high < 1e300:
                old = w[at[MULTIPLIER] + t * nx + i]
                y = pressed(low, high, old, rho, coordinate(at, w, at[Q], at[V], t, i))
                largest = max(largest, abs(y - old) / rho)
                curve = rho if y != 0.0 else 0.0
                if t == N:
                    w[at[G_END] + i] += y
                    w[at[H_END] + i * sx + i] += curve
                else:
                    w[at[G] + t * sz + i] += y
                    w[at[H] + t * at[NZ] * sz + i * sz + i] += curve
                    if at[BY_VELOCITY] == 1:
                        w[at[G_TURNED] + t * sz + i] += y
    return largest


def add_curves(at: Ints, w: Floats) -> None:
    """Add the second derivatives alone, to Hessians computed anew."""
    nx = at[NX]
    N = at[STEPS]
    rho = w[at[SCALARS] + RHO]
    for t in range(1, N + 1):
        for i in range(nx):
            low = w[at[LOW_X] + i]
            high = w[at[HIGH_X] + i]
            if low > -1e300 or high < 1e300:
                x = coordinate(at, w, at[Q], at[V], t, i)
                if pressed(low, high, w[at[MULTIPLIER] + t * nx + i], rho, x) != 0.0:
                    if t == N:
                        w[at[H_END] + i * at[SX] + i] += rho
                    else:
                        w[at[H] + t * at[NZ] * at[SZ] + i * at[SZ] + i] += rho


def limits_cost(at: Ints, w: Floats, row: int) -> float:
    """The penalty of the limits for a new trajectory; for the present one if row is -1."""
    nx = at[NX]
    N = at[STEPS]
    rho = w[at[SCALARS] + RHO]
    q = at[Q] if row < 0 else at[NEW_Q] + row * (N + 1) * at[NQ]
    v = at[V] if row < 0 else at[NEW_V] + row * (N + 1) * at[NV]
    added = 0.0
    for t in range(1, N + 1):
        for i in range(nx):
            low = w[at[LOW_X] + i]
            high = w[at[HIGH_X] + i]
            if low > -1e300 or high < 1e300:
                old = w[at[MULTIPLIER] + t * nx + i]
                y = pressed(low, high, old, rho, coordinate(at, w, q, v, t, i))
                added += y * y - old * old
    return float(0.5 * added / rho)


def update_multipliers(at: Ints, w: Floats) -> None:
    """λ ← y."""
    nx = at[NX]
    rho = w[at[SCALARS] + RHO]
    for t in range(1, at[STEPS] + 1):
        for i in range(nx):
            low = w[at[LOW_X] + i]
            high = w[at[HIGH_X] + i]
            if low > -1e300 or high < 1e300:
                place = at[MULTIPLIER] + t * nx + i
                w[place] = pressed(low, high, w[place], rho, coordinate(at, w, at[Q], at[V], t, i))
