"""The test of second order where the conditions of first order hold, as programs: whether the motion is a minimum, and a way on if it is
not.

With exact Hessians a motion is a minimum where Quu of every step is positive in the backward pass. Where that of a step is not, there is d
with dᵀ Quu d < 0: the cost falls along d, to either side, if the steps after it follow their feedback.
"""

from __future__ import annotations

from ..kernel.programs import Floats, Ints, Kernels
from .layout import (
    BY_VELOCITY,
    CHANGE,
    CONTROLS,
    FACTOR,
    FEEDFORWARD,
    GAINS,
    LIMITED,
    NX,
    PIVOT,
    SCALARS,
    STEPS,
    STOPPED,
    SX,
    SZ,
    TOTAL,
    WORK,
    R,
    U,
    V,
)
from .line_search_program import search
from .matrix_programs import factorise, solve_factored

FALL = 1e-6
"""The fall of the cost, beside it, that is expected of a step away from a motion that is no minimum."""


def falling_direction(at: Ints, w: Floats) -> None:
    """d as the feedforward of the step at which the backward pass stopped, in the size of what it changes; 0 in all others."""
    m = at[CONTROLS]
    t = int(w[at[SCALARS] + STOPPED])
    a = at[WORK] + at[NX] * at[SZ] + at[NX]
    lda = at[SZ]
    if at[LIMITED] == 1:  # of the controls that are free alone
        a = at[WORK] + at[SZ] * at[SZ]
        lda = m
    size = 1
    while size < m and factorise(w, a, lda, size, 0.0, at[FACTOR], at[PIVOT]) > 0.0:
        size += 1
    before = size - 1
    d = at[R]
    for i in range(before):
        w[d + i] = -w[a + before * lda + i]
    factorise(w, a, lda, before, 0.0, at[FACTOR], at[PIVOT])
    solve_factored(w, at[FACTOR], at[PIVOT], before, d)
    w[d + before] = 1.0
    changed = at[V] + (t + 1) * m if at[BY_VELOCITY] == 1 else at[U] + t * m
    largest = 1.0
    scale = 1.0
    for i in range(size):
        largest = max(largest, abs(w[d + i]))
    for i in range(m):
        scale = max(scale, abs(w[changed + i]))
    for i in range(at[STEPS] * m):
        w[at[FEEDFORWARD] + i] = 0.0
    for i in range(size):
        w[at[FEEDFORWARD] + t * m + i] = scale * w[d + i] / largest
    for i in range(m * at[SX]):
        w[at[GAINS] + t * m * at[SX] + i] = 0.0


def leave(kernels: Kernels, at: Ints, w: Floats) -> float:
    """Go down from a motion that is no minimum: the length of the step, 0 if the cost fell nowhere, less if there was no memory."""
    scalars = at[SCALARS]
    falling_direction(at, w)
    w[scalars + CHANGE] = -FALL * (1.0 + abs(w[scalars + TOTAL]))
    return search(kernels, at, w)
