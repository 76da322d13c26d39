"""One limit along one cell of a path: a linear differential equation, solved by Radau collocation.

Along a path q(s) with x = ṡ² and u = s̈ = ½ dx/ds every limit is a row a(s) u + b(s) x ≤ γ(s). Where it is active and a > 0,

    ½ a dx/ds + b x = γ,

so that x at the end of a cell is an affine function of x at its start, x₁ = x₀ + P x₀ + Q. Five Radau points (order 9) find P and Q; the
method is L-stable, which is what the cell after a point of zero inertia, a = 0, needs: there the solution forgets x₀. The same
equation read backwards gives x₀ from x₁.

A cell has ten points: those of the backward rule and those of the forward rule, both ends among them. A profile on a cell is
the polynomial of degree nine through its values there.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import roots_jacobi

STAGES = 5
COUNT = 2 * STAGES
GROWTH = 2.0
"""Growth over one cell, as an exponent, beyond which a row is left out: it is found violated there, and the cell divided."""
LARGE = 1e30
"""Stands for no limit."""

RADAU = np.append(np.sort((roots_jacobi(STAGES - 1, 1, 0)[0] + 1) / 2), 1.0)
"""Radau points (the last is 1) of a forward step; a backward step has 1 - c."""
POINTS = np.concatenate([np.sort(1 - RADAU), RADAU])
"""The points of a cell: first those of the backward rule, from 0 on, then those of the forward rule, to 1; not in order, but symmetric."""
START, END = 0, COUNT - 1
BACKWARD, FORWARD = tuple(range(STAGES - 1, -1, -1)), tuple(range(STAGES, COUNT))
"""Places of the points in the order in which a rule goes through them."""


def _lagrange(nodes: np.ndarray) -> list[Polynomial]:
    """The polynomials of τ = 2σ - 1 that are 1 at one node σ and 0 at the others."""
    t = 2 * nodes - 1
    return [Polynomial.fromroots(np.delete(t, k)) / np.prod(x - np.delete(t, k)) for k, x in enumerate(t)]


def _values(basis: list[Polynomial], at: np.ndarray) -> np.ndarray:
    return np.stack([p(2 * at - 1) for p in basis], axis=-1)


def powers(sigma: np.ndarray) -> np.ndarray:
    """(..., COUNT): powers of 2σ - 1."""
    return (2 * np.asarray(sigma)[..., None] - 1) ** np.arange(COUNT)


_STEP = _lagrange(np.append(0.0, RADAU))[1:]
DERIVATIVE = 2 * _values([p.deriv() for p in _STEP], RADAU)
"""dy/dσ at the Radau points from the values of y there; y vanishes at σ = 0."""
MONOMIALS = np.array([np.pad(p.coef, (0, COUNT - len(p.coef))) for p in _lagrange(POINTS)]).T
"""Coefficients of powers of 2σ - 1, lowest first, of the polynomial through values at the points."""
_SLOPE = _lagrange(POINTS[1:])
INTEGRAL = np.stack([0.5 * (p.integ()(2 * POINTS - 1) - p.integ()(-1.0)) for p in _SLOPE], axis=-1)
"""(COUNT, COUNT - 1): ∫ from 0 to the points of the polynomial through values at all points but the first."""
AT_START = _values(_SLOPE, np.zeros(1))[0]
"""Its value at σ = 0."""

LINEAR, FROM_REST, TO_REST = 0, 1, 2
"""The course of s over a cell: s₀ + h σ; s₀ + h σ², in which √x is smooth where x grows from 0; s₀ + h σ (2 - σ), where it falls to 0."""


def place(kind: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """(s - s₀) / h at σ."""
    return np.where(kind == LINEAR, sigma, np.where(kind == FROM_REST, sigma**2, sigma * (2 - sigma)))


WEIGHTS = np.stack([np.ones(COUNT), 2 * POINTS, 2 * (1 - POINTS)])
"""d((s - s₀)/h)/dσ at the points, for every kind of cell."""
