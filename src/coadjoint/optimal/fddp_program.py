"""Iterations of differential dynamic programming with feasibility, as one program: derivatives, backward pass and line search.

A guess of states and controls that do not fit has gaps; a step of length α leaves the part 1 - α of each (Mastalli et al., 2020). Steps
are accepted by the merit function J + ν Σ |gap|. Hessians are exact, with the dynamics' own second derivatives, where the backward pass
finds them convex, and of Gauss and Newton's kind elsewhere: so convergence is quadratic.
"""

from __future__ import annotations

from ..kernel.programs import Floats, Ints, Kernels
from .escape_program import leave
from .expansion_program import costates, derivatives, exact_hessians
from .layout import (
    BOUNDED,
    CHANGE,
    ERROR,
    EXACT,
    FAILED,
    FIRST_RHO,
    FULL,
    GROWTH,
    INNER,
    LARGEST_GAP,
    OLD_VIOLATION,
    RHO,
    ROOM,
    ROWS,
    SCALARS,
    SHIFT,
    STALLED,
    STATUS,
    STEP,
    TABLE,
    TAKEN,
    TOLERANCE,
    TOTAL,
    USED_EXACT,
    VIOLATION,
)
from .limit_programs import add_curves, update_multipliers
from .line_search_program import search
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
"""The status of the iterations: the reason of their end, new multipliers, or conditions of first order that hold without those of
second."""
STIFF = 1e3
"""By how much the penalty of limits of states is larger where conditions of second order do not hold with it as it is."""
WIDTH = 7
"""Numbers of a row of the table."""


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
    """OPTIMAL if all conditions hold; else new multipliers and a larger penalty for the limits of states, where the rest holds."""
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


def verified(kernels: Kernels, at: Ints, w: Floats, given: int) -> int:
    """OPTIMAL, with the exact gains, if a motion that meets the conditions of first order is a minimum; else NO_MINIMUM, or NO_MEMORY.

    Exact Hessians are computed, or given in their places, without limits of states.
    """
    scalars = at[SCALARS]
    rho = w[scalars + RHO]
    for turn in range(2 + at[BOUNDED]):
        w[scalars + SHIFT] = 0.0 if turn == 0 else LEAST_SHIFT  # controls that change nothing
        w[scalars + RHO] = rho if turn < 2 else STIFF * rho
        if given == 0:
            if exact_hessians(kernels, at, w) != 0:
                return NO_MEMORY
        elif at[BOUNDED] == 1 and turn != 1:
            add_curves(at, w)
        least = backward(at, w)
        w[scalars + RHO] = rho
        if least > 0.0:
            return OPTIMAL
    return NO_MINIMUM


def judge(kernels: Kernels, at: Ints, w: Floats, row: int, last: int, given: int) -> int:
    """The status of a motion that meets the conditions of first order; a motion that is no minimum is left, GOING, unless it is the
    last."""
    scalars = at[SCALARS]
    status = verified(kernels, at, w, given)
    w[row + 5] = 1.0
    if status != NO_MINIMUM:
        return status
    length = 0.0 if last == 1 else leave(kernels, at, w)
    w[row + 3] = length
    w[scalars + SHIFT] = 0.0
    w[scalars + FULL] = 0.0
    w[scalars + FAILED] = 1.0
    if length > 0.0:
        w[scalars + STEP] = length
        w[scalars + TAKEN] += 1.0
        return GOING
    if length < 0.0 or derivatives(kernels, at, w) != 0 or policy(kernels, at, w) == NO_MEMORY:
        return NO_MEMORY
    return NO_MINIMUM  # with gains of Gauss and Newton's kind


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
        if w[scalars + EXACT] == 1.0:
            return judge(kernels, at, w, row, last, 0)
        w[scalars + SHIFT] = 0.0
        status = policy(kernels, at, w)
        return OPTIMAL if status == GOING else status
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
    """Run the iterations, and with `last` compute the conditions and gains where they end.

    Without an iteration it says what a motion that meets the conditions of first order is, by the Hessians that are given in their places.
    """
    status = GOING
    if iterations == 0:
        row = at[TABLE] + WIDTH * int(max(w[at[SCALARS] + ROWS] - 1.0, 0.0))
        status = judge(kernels, at, w, row, last, 1)
        w[at[SCALARS] + STATUS] = float(status)
        return status
    for _ in range(iterations):
        status = iterate(kernels, at, w, 0)
        w[at[SCALARS] + STATUS] = float(status)
        if status != GOING:
            return status
    if last == 1:
        status = iterate(kernels, at, w, 1)
        w[at[SCALARS] + STATUS] = float(status)
    return status
