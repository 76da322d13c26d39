"""Examples on which the program of timing proves itself: two coordinates along a curve, with rows written by hand."""

from __future__ import annotations

import numpy as np

from ..kernel.program_trial import Called, Example
from ..kernel.programs import WIDTH
from ..kernel.runtime.bound import Kernels
from .cell_programs import stride
from .collocation import FROM_REST, LINEAR, POINTS, TO_REST
from .halving_programs import SPAN
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
    """Examples of `path_program.time_paths`: a path from rest to rest, without and with friction."""
    return [_timing(False), _timing(True)]


def _timing(curved: bool) -> Example:
    s = np.linspace(0.0, 1.0, CELLS + 1)
    spans = np.stack([s[:-1], s[1:]], axis=1)
    points = spans[:, :1] + (spans[:, 1:] - spans[:, :1]) * POINTS
    rows, W = np.zeros((CELLS, 10, 4 * R + V)), 4 * R + V
    bound = Kernels([Called(_rows, [POLYNOMIAL[None, None], points[..., None]], [rows], stepped=True)])
    whole = np.concatenate([spans, np.zeros((CELLS, SPAN - 2))], axis=1)
    kinds, constants = np.full(CELLS, float(LINEAR)), np.zeros((3, R))
    if curved:
        kinds[0], kinds[-1] = FROM_REST, TO_REST
        constants[0, 2:4], constants[1, 2:4] = 0.05, 0.03
    told, out = np.zeros((1, 4)), np.zeros((MOST, RECORD))
    work = (np.zeros((MOST + 2) * stride(R, V)), np.zeros(10 * (2 * R + V)), np.zeros(max(6 * (MOST + 8), W)))
    given = (bound, 1, CELLS, whole, kinds, POLYNOMIAL, points, 0, rows, np.zeros((1, 2)), constants, R, V, int(curved))
    return Example((*given, *work, out, len(out), told, np.array([1.0, SMOOTH]), MOST), (told[:, ::3],))


def _rows(c: Array, d: Array) -> Array:
    """Limits of both accelerations, of two forces with weight, and of both speeds."""
    q, dq, ddq = c[:, 0], 0.0 * c[:, 0], 0.0 * c[:, 0]
    for k in range(1, c.shape[1]):
        ddq, dq, q = ddq * d + 2.0 * dq, dq * d + q, q * d + c[:, k]
    found = np.zeros((len(d), 4 * R + V))
    inertia = np.stack([1.3 + 0.4 * np.cos(q[:, 1]), 0.8 + 0.0 * q[:, 1]], axis=-1)
    for place, x in ((0, dq), (R, ddq), (2 * R, 0.0 * q)):
        found[:, place : place + 2] = x / 6.0
    for place, x in ((2, inertia * dq), (R + 2, inertia * ddq + 0.3 * dq[:, ::-1] ** 2), (2 * R + 2, 2.0 * np.sin(q))):
        found[:, place : place + 2] = x / 7.0
    found[:, 3 * R + 2 : 3 * R + 4] = dq
    found[:, 4 * R : 4 * R + 2] = (dq / 2.5) ** 2
    return found
