"""Iterations of differential dynamic programming with feasibility, as one program: derivatives, backward pass and line search.

A guess of states and controls that do not fit has gaps; a step of length α leaves the part 1 - α of each (Mastalli et al., 2020). Steps
are accepted by the merit function J + ν Σ |gap|. Hessians are exact, with the dynamics' own second derivatives, where the backward pass
finds them convex, and of Gauss and Newton's kind elsewhere: so convergence is quadratic.
"""

from __future__ import annotations

from ..kernel.programs import Floats, Ints, Kernels, run
from .escape_program import leave
from .layout import (
    BOUNDED,
    BY_VELOCITY,
    CHANGE,
    CONTROLS,
    COST,
    COSTATE,
    CURVATURE,
    DYNAMICS,
    ERROR,
    EXACT,
    EXCHANGE,
    FAILED,
    FIRST_RHO,
    FULL,
    FUNCTIONS,
    G_END,
    GAP,
    GROWTH,
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
    OLD_VIOLATION,
    RESPONSE,
    RHO,
    ROOM,
    ROWS,
    SCALARS,
    SHIFT,
    SLOPE,
    SPAN,
    SPANS,
    STALLED,
    STATUS,
    STEP,
    STEPS,
    SX,
    SZ,
    TABLE,
    TAKEN,
    TOLERANCE,
    TOTAL,
    USED_EXACT,
    VIOLATION,
    G,
    Q,
    R,
    U,
    V,
)
from .limit_programs import add_curves, add_limits, update_multipliers
from .line_search_program import search
from .matrix_programs import add_combination, copy
from .riccati_programs import backward

LEAST_SHIFT, MOST_SHIFT = 1e-9, 1e9
"""The least and the largest shift of Quu; below the least it is 0."""
FEASIBLE = 1e-9
"""The gap up to which second derivatives of the dynamics are taken."""
MOST_RHO = 1e6
"""The largest penalty of limits of states, beside the first."""
ENOUGH = 0.1
"""The penalty grows where the violation has not become so much smaller."""
SETTLED = 1e-2
"""The expected change of the cost, beside it, below which a receding horizon renews multipliers."""
PATIENCE = 5
"""Updates of multipliers in a row that do not halve the violation, after which no motion is taken to keep the limits."""
GOING, OPTIMAL, NOT_CONVEX, STUCK, NO_MEMORY, INFEASIBLE, UPDATED, NO_MINIMUM = 0, 1, 2, 3, 4, 5, 6, 7
"""Why iterations ended; that multipliers are new; that the conditions of first order hold, but not those of second."""
STIFF = 1e3
"""By how much the penalty of limits of states is larger where conditions of second order do not hold with it as it is."""
WIDTH = 7
"""Numbers of a row of the table."""


def derivatives(kernels: Kernels, at: Ints, w: Floats) -> int:
    """Costs, first derivatives, and Hessians of Gauss and Newton's kind; not 0 where there was no memory."""
    failed = 0
    for s in range(at[SPANS]):
        first = int(w[at[SPAN] + s])
        failed += run(kernels, FUNCTIONS * s + MODEL, 0, int(w[at[SPAN] + s + 1]) - first)
    failed += run(kernels, FUNCTIONS * at[SPANS] + MODEL, 0, 1)
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
    failed = 0
    for s in range(at[SPANS]):
        first = int(w[at[SPAN] + s])
        failed += run(kernels, FUNCTIONS * s + CURVATURE, 0, int(w[at[SPAN] + s + 1]) - first)
    failed += run(kernels, FUNCTIONS * at[SPANS] + CURVATURE, 0, 1)
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


def policy(kernels: Kernels, at: Ints, w: Floats) -> int:
    """The backward pass: GOING, NOT_CONVEX or NO_MEMORY.

    Hessians are exact after full steps, and every third time, where that is convex; else of Gauss and Newton's kind, shifted if need be.
    """
    scalars = at[SCALARS]
    exact = (
        w[scalars + EXACT] == 1.0
        and (w[scalars + FULL] == 1.0 or int(w[scalars + TAKEN]) % 3 == 2)
        and w[scalars + FAILED] == 0.0
        and w[scalars + LARGEST_GAP] < FEASIBLE
    )
    w[scalars + FAILED] = 0.0
    w[scalars + USED_EXACT] = 0.0
    if exact:
        if exact_hessians(kernels, at, w) != 0:
            return NO_MEMORY
        if backward(at, w) > 0.0:
            w[scalars + USED_EXACT] = 1.0
            return GOING
        w[scalars + FAILED] = 1.0
        if derivatives(kernels, at, w) != 0:
            return NO_MEMORY
    while not backward(at, w) > 0.0:
        w[scalars + SHIFT] = max(LEAST_SHIFT, 10.0 * w[scalars + SHIFT])
        if w[scalars + SHIFT] > MOST_SHIFT:
            return NOT_CONVEX
    return GOING


def tighten(at: Ints, w: Floats, error: float) -> int:
    """Whether all conditions hold: OPTIMAL; else new multipliers and a larger penalty for the limits of states, where the rest holds."""
    scalars = at[SCALARS]
    tolerance = w[scalars + TOLERANCE]
    if error < tolerance and w[scalars + VIOLATION] < tolerance:
        return OPTIMAL
    settled = error < w[scalars + INNER]
    if w[scalars + GROWTH] == 1.0:  # few iterations at a time: the last step says whether they are near their end
        settled = w[scalars + STEP] == 1.0 and -w[scalars + CHANGE] < SETTLED * abs(w[scalars + TOTAL])
    if at[BOUNDED] == 1 and settled:
        growth = 1.0
        if w[scalars + GROWTH] > 1.0:
            if w[scalars + VIOLATION] < 0.5 * w[scalars + OLD_VIOLATION]:
                w[scalars + INNER] = max(tolerance, 0.1 * w[scalars + INNER])
                w[scalars + STALLED] = 0.0
            else:
                w[scalars + STALLED] += 1.0
                if w[scalars + STALLED] >= PATIENCE and w[scalars + VIOLATION] > tolerance:
                    return INFEASIBLE
            if (
                w[scalars + VIOLATION] > ENOUGH * w[scalars + OLD_VIOLATION]
                and w[scalars + RHO] < MOST_RHO * w[scalars + FIRST_RHO]
            ):
                growth = w[scalars + GROWTH]
            w[scalars + OLD_VIOLATION] = w[scalars + VIOLATION]
        update_multipliers(at, w)
        w[scalars + RHO] *= growth
        return UPDATED
    return GOING


def verified(kernels: Kernels, at: Ints, w: Floats) -> int:
    """Whether a motion that meets the conditions of first order is a minimum: OPTIMAL with the exact gains, or NO_MINIMUM, or NO_MEMORY.

    Without exact Hessians it is taken for one.
    """
    scalars = at[SCALARS]
    w[scalars + SHIFT] = 0.0
    w[scalars + USED_EXACT] = w[scalars + EXACT]
    if w[scalars + EXACT] == 0.0:
        status = policy(kernels, at, w)
        return OPTIMAL if status == GOING else status
    rho = w[scalars + RHO]
    for turn in range(2 + at[BOUNDED]):
        w[scalars + SHIFT] = 0.0 if turn == 0 else LEAST_SHIFT  # controls that change nothing
        w[scalars + RHO] = rho if turn < 2 else STIFF * rho
        if exact_hessians(kernels, at, w) != 0:
            return NO_MEMORY
        least = backward(at, w)
        w[scalars + RHO] = rho
        if least > 0.0:
            return OPTIMAL
    return NO_MINIMUM


def descend(kernels: Kernels, at: Ints, w: Floats, row: int) -> int:
    """Leave a motion that is no minimum: GOING, or NO_MINIMUM if the cost is lower nowhere, or NO_MEMORY."""
    scalars = at[SCALARS]
    length = leave(kernels, at, w)
    w[row + 3] = length
    w[scalars + SHIFT] = 0.0
    w[scalars + FULL] = 0.0
    w[scalars + FAILED] = 1.0
    if length > 0.0:
        w[scalars + STEP] = length
        w[scalars + TAKEN] += 1.0
        return GOING
    return NO_MINIMUM if length == 0.0 else NO_MEMORY


def iterate(kernels: Kernels, at: Ints, w: Floats, last: int) -> int:
    """One iteration: GOING, or why it was the last. With `last` the conditions and the gains are computed, and no step is taken."""
    scalars = at[SCALARS]
    if derivatives(kernels, at, w) != 0:
        return NO_MEMORY
    error = costates(at, w)
    error = max(error, w[scalars + LARGEST_GAP])
    w[scalars + ERROR] = max(error, w[scalars + VIOLATION])
    row = at[TABLE] + WIDTH * int(w[scalars + ROWS])
    w[row] = w[scalars + TOTAL]
    w[row + 1] = w[scalars + ERROR]
    w[row + 2] = w[scalars + LARGEST_GAP]
    w[row + 6] = w[scalars + VIOLATION]
    w[scalars + ROWS] = min(w[scalars + ROWS] + 1.0, float(at[ROOM] - 1))
    done = tighten(at, w, error)
    if done == INFEASIBLE:
        return done
    if done == UPDATED and derivatives(kernels, at, w) != 0:
        return NO_MEMORY
    if done == OPTIMAL:
        status = verified(kernels, at, w)
        w[row + 5] = w[scalars + USED_EXACT]
        if status == NO_MINIMUM and last == 0:
            status = descend(kernels, at, w, row)
        if status == NO_MINIMUM and (derivatives(kernels, at, w) != 0 or policy(kernels, at, w) == NO_MEMORY):
            return NO_MEMORY  # gains of Gauss and Newton's kind
        return status
    status = policy(kernels, at, w)
    w[row + 4] = w[scalars + SHIFT]
    w[row + 5] = w[scalars + USED_EXACT]
    if status != GOING:
        return status
    if last == 1:
        return GOING
    length = search(kernels, at, w)
    if length < 0.0:
        return NO_MEMORY
    w[row + 3] = length
    w[scalars + STEP] = length
    w[scalars + FULL] = 1.0 if length == 1.0 else 0.0
    if length > 0.0:
        w[scalars + TAKEN] += 1.0
        if length >= 0.5:
            lower = 0.1 * w[scalars + SHIFT]
            w[scalars + SHIFT] = lower if lower >= LEAST_SHIFT else 0.0
    else:
        w[scalars + SHIFT] = 10.0 * max(w[scalars + SHIFT], LEAST_SHIFT)
        if w[scalars + SHIFT] > MOST_SHIFT:
            return STUCK
    return GOING


def solve(kernels: Kernels, at: Ints, w: Floats, iterations: int, last: int) -> int:
    """So many iterations, and with `last` the conditions and gains where they end."""
    status = GOING
    for _ in range(iterations):
        status = iterate(kernels, at, w, 0)
        w[at[SCALARS] + STATUS] = float(status)
        if status != GOING:
            return status
    if last == 1:
        status = iterate(kernels, at, w, 1)
        w[at[SCALARS] + STATUS] = float(status)
    return status
