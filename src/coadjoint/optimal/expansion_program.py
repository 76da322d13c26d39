"""The expansion of an optimal control problem about a trajectory, as programs: costs, first derivatives, Hessians, costates."""

from __future__ import annotations

from ..kernel.programs import Floats, Ints, Kernels, run
from .layout import (
    BOUNDED,
    BY_VELOCITY,
    CONTROLS,
    COST,
    COSTATE,
    CURVATURE,
    DYNAMICS,
    EXCHANGE,
    FIRST_RHO,
    FUNCTIONS,
    G_END,
    GAP,
    H_STEP,
    HIGH,
    INNER,
    LARGEST_GAP,
    LIMITED,
    LOW,
    MISSED,
    MODEL,
    NV,
    NX,
    RESPONSE,
    RHO,
    SCALARS,
    SLOPE,
    SPAN,
    SPANS,
    STEPS,
    SX,
    SZ,
    TOTAL,
    VIOLATION,
    G,
    Q,
    R,
    U,
    V,
)
from .limit_programs import add_curves, add_limits
from .matrix_programs import add_combination, copy


def run_everywhere(kernels: Kernels, at: Ints, w: Floats, function: int) -> int:
    """Run one of the compiled functions, MODEL or CURVATURE, at all steps and at the end; not 0 where there was no memory."""
    failed = 0
    for s in range(at[SPANS]):
        first = int(w[at[SPAN] + s])
        failed += run(kernels, FUNCTIONS * s + function, 0, int(w[at[SPAN] + s + 1]) - first)
    failed += run(kernels, FUNCTIONS * at[SPANS] + function, 0, 1)
    return failed


def derivatives(kernels: Kernels, at: Ints, w: Floats) -> int:
    """Costs, first derivatives, and Hessians of Gauss and Newton's kind; not 0 where there was no memory."""
    failed = run_everywhere(kernels, at, w, MODEL)
    n = at[NV]
    sx = at[SX]
    scalars = at[SCALARS]
    if at[BY_VELOCITY] == 1:
        for t in range(at[STEPS]):
            for i in range(n):
                q = at[Q] + t * n + i
                w[at[GAP] + t * sx + i] = w[q] + w[at[H_STEP] + t] * w[at[V] + (t + 1) * n + i] - w[q + n]
    total = 0.0
    missed = 0.0
    largest = 0.0
    for t in range(at[STEPS]):
        total += w[at[COST] + t]
        for i in range(at[NX]):
            gap = abs(w[at[GAP] + t * sx + i])
            missed += gap
            largest = gap if not gap <= largest else largest
    w[scalars + TOTAL] = total + w[at[COST] + at[STEPS]]
    w[scalars + MISSED] = missed
    w[scalars + LARGEST_GAP] = largest
    w[scalars + VIOLATION] = 0.0
    if at[BOUNDED] == 1:
        if w[scalars + RHO] == 0.0:
            size = max(abs(w[scalars + TOTAL]), 1e-12)
            w[scalars + FIRST_RHO] *= size
            w[scalars + RHO] = w[scalars + FIRST_RHO]
            w[scalars + INNER] *= size
        w[scalars + VIOLATION] = add_limits(at, w)
    return failed


def exact_hessians(kernels: Kernels, at: Ints, w: Floats) -> int:
    """Put the exact Hessians in the place of Gauss and Newton's."""
    failed = run_everywhere(kernels, at, w, CURVATURE)
    if at[BOUNDED] == 1:
        add_curves(at, w)
    return failed


def costates(at: Ints, w: Floats) -> float:
    """∂J/∂x and ∂J/∂u along the trajectory; the largest ∂J/∂u, less what limits hold back."""
    n = at[NV]
    m = at[CONTROLS]
    nx = at[NX]
    sx = at[SX]
    sz = at[SZ]
    r = at[R]
    y = r + sz
    copy(w, at[G_END], at[COSTATE] + at[STEPS] * sx, sx // 8)
    largest = 0.0
    for t in range(at[STEPS] - 1, -1, -1):
        after = at[COSTATE] + (t + 1) * sx
        copy(w, at[G] + t * sz, r, sz // 8)
        if at[BY_VELOCITY] == 1:
            h = w[at[H_STEP] + t]
            for j in range(m):
                x = 0.0
                for i in range(n):
                    x += w[at[RESPONSE] + (t * n + i) * m + j] * (w[after + n + i] + h * w[after + i])
                w[y + j] = x
            add_combination(w, y, at[EXCHANGE] + t * m * sz, sz, r, m, sx // 8, -1.0)
            for i in range(n):
                w[r + i] += w[after + i]
            for j in range(m):
                w[r + nx + j] = w[at[G] + t * sz + nx + j] + w[y + j]
        else:
            add_combination(w, after, at[DYNAMICS] + t * nx * sz, sz, r, nx, sz // 8, 1.0)
        copy(w, r, at[COSTATE] + t * sx, sx // 8)
        for j in range(m):
            slope = w[r + nx + j]
            w[at[SLOPE] + t * m + j] = slope
            if at[LIMITED] == 1:
                u = w[at[U] + t * m + j]
                there = max(u - slope, w[at[LOW] + t * m + j])
                there = min(there, w[at[HIGH] + t * m + j])
                slope = u - there
            largest = abs(slope) if not abs(slope) <= largest else largest
    return largest
