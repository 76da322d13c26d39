"""Examples on which the program of timing proves itself: two coordinates along a curve, with rows written by hand."""

from __future__ import annotations

import numpy as np

from ..kernel.program_trial import Called, Example
from ..kernel.programs import WIDTH
from ..kernel.runtime.bound import Kernels
from .cell_programs import stride
from .collocation import FROM_REST, LINEAR, POINTS, TO_REST
from .halving_programs import SPAN
from .limits import horner
from .path_program import RECORD

CELLS, MOST = 3, 60
"""Coarse cells of a path; most cells after cuts."""
R = V = WIDTH
SMOOTH = 0.1
"""The error that polynomials of rows may have: nothing is asked of the cells of an example."""
POLYNOMIAL = np.array([[0.3, -0.7], [1.1, 0.9], [0.2, 0.4], [0.0, 1.0]])
"""(order, coordinates), highest power first."""
Array = np.ndarray


def timing_examples() -> list[Example]:
    """Examples of `path_program.time_paths`: a path from rest to rest, without and with friction; paths that stand still after a third."""
    resting = [np.array([[1.0, -2.0], [-1.0, 2.0], [1 / 3, -2 / 3], [0.3, 0.7]]) * k for k in (1.0, -1.5)]  # slopes 3 (s - 1/3)²
    return [
        _timing(POLYNOMIAL, False, True),
        _timing(POLYNOMIAL, True, False),
        _timing(resting[0], False, True),
        _timing(resting[1], True, False),
    ]


def _timing(polynomial: Array, curved: bool, spread: bool) -> Example:
    """spread: the path has a polynomial at each point, else one for each cell."""
    s = np.linspace(0.0, 1.0, CELLS + 1)
    spans = np.stack([s[:-1], s[1:]], axis=1)
    points = spans[:, :1] + (spans[:, 1:] - spans[:, :1]) * POINTS
    rows, W = np.zeros((CELLS, 10, 4 * R + V)), 4 * R + V
    bound = Kernels([Called(_rows, [polynomial[None, None], points[..., None]], [rows], stepped=True)])
    whole = np.concatenate([spans, np.zeros((CELLS, SPAN - 2))], axis=1)
    kinds, constants = np.full(CELLS, float(LINEAR)), np.zeros((3, R))
    if curved:
        kinds[0], kinds[-1] = FROM_REST, TO_REST
        constants[0, 2:4], constants[1, 2:4] = 0.05, 0.03
    told, out = np.zeros((1, 4)), np.zeros((MOST, RECORD))
    work = (np.zeros((MOST + 2) * stride(R, V)), np.zeros(10 * (2 * R + V)), np.zeros(max(6 * (MOST + 8), 2 * W)))
    if spread:
        q, dq, ddq = horner(list(polynomial[:, None, None]), points[..., None])
        path = (np.stack([ddq / 2, dq, q], axis=-2), 0.0 * points, 0, 3, 2)
    else:
        path = (np.tile(polynomial, (CELLS, 1, 1)), points, polynomial.size, *polynomial.shape)
    given = (bound, 1, CELLS, whole, kinds, *path, rows, np.zeros((1, 2)), constants, R, V, int(curved))
    found = told[:, ::3] if polynomial is POLYNOMIAL else told
    return Example((*given, *work, out, len(out), told, np.array([1.0, SMOOTH]), MOST), (found,))


def _rows(c: Array, d: Array) -> Array:
    """Limits of both accelerations, of two forces with weight, and of both speeds."""
    q, dq, ddq = horner([c[:, k] for k in range(c.shape[1])], d)
    found = np.zeros((len(d), 4 * R + V))
    inertia = np.stack([1.3 + 0.4 * np.cos(q[:, 1]), 0.8 + 0.0 * q[:, 1]], axis=-1)
    for place, x in ((0, dq), (R, ddq), (2 * R, 0.0 * q)):
        found[:, place : place + 2] = x / 6.0
    for place, x in ((2, inertia * dq), (R + 2, inertia * ddq + 0.3 * dq[:, ::-1] ** 2), (2 * R + 2, 2.0 * np.sin(q))):
        found[:, place : place + 2] = x / 7.0
    found[:, 3 * R + 2 : 3 * R + 4] = dq
    found[:, 4 * R : 4 * R + 2] = (dq / 2.5) ** 2
    return found
