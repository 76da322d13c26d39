"""The forward pass and the line search of differential dynamic programming, as programs.

A step of length α takes the controls u + α k + K δx, and leaves the part 1 - α of every gap. It is accepted by the merit function
J + ν Σ |gap|.
"""

from __future__ import annotations

from ..kernel.programs import Floats, Ints, Kernels, repeat, run
from .layout import (
    BOUNDED,
    BY_VELOCITY,
    CHANGE,
    CONTROLS,
    FEEDFORWARD,
    FORCED,
    FORWARD,
    FUNCTIONS,
    GAINS,
    GAP,
    H_STEP,
    LENGTH,
    MISSED,
    NEW_COST,
    NEW_Q,
    NEW_TOTAL,
    NEW_U,
    NEW_V,
    NQ,
    NV,
    NX,
    PENALTY,
    SCALARS,
    SPAN,
    SPANS,
    STEPS,
    SX,
    TOGETHER,
    TOTAL,
    TRIES,
    WORK,
    P,
    Q,
    R,
    U,
    V,
)
from .limit_programs import limits_cost
from .matrix_programs import copy, row_product


def roll_by_velocity(at: Ints, w: Floats, length: float) -> None:
    """The states of a step of this length, in row 0 of the new trajectories."""
    n = at[NV]
    sx = at[SX]
    away = at[WORK]
    copy(w, at[Q], at[NEW_Q], (n + 7) // 8)
    copy(w, at[V], at[NEW_V], (n + 7) // 8)
    for j in range(at[NX], sx):
        w[away + j] = 0.0
    for t in range(at[STEPS]):
        for i in range(n):
            w[away + i] = w[at[NEW_Q] + t * n + i] - w[at[Q] + t * n + i]
            w[away + n + i] = w[at[NEW_V] + t * n + i] - w[at[V] + t * n + i]
        h = w[at[H_STEP] + t]
        for i in range(n):
            here = (t + 1) * n + i
            x = w[at[V] + here] + length * w[at[FEEDFORWARD] + t * n + i]
            x += row_product(w, at[GAINS] + (t * n + i) * sx, away, sx // 8)
            w[at[NEW_V] + here] = x
            w[at[NEW_Q] + here] = w[at[NEW_Q] + t * n + i] + h * x - (1.0 - length) * w[at[GAP] + t * sx + i]


def forward(kernels: Kernels, at: Ints, w: Floats, first: float) -> int:
    """New trajectories of lengths first, first / 2, …, as many as are tried together, with their costs (NEW_COST, last entries)."""
    N = at[STEPS]
    failed = 0
    if at[BY_VELOCITY] == 1:
        roll_by_velocity(at, w, first)
        w[at[LENGTH]] = first
    else:
        for k in range(at[TOGETHER]):
            w[at[LENGTH] + k] = first
            first *= 0.5
            for i in range(at[NQ]):
                w[at[NEW_Q] + k * (N + 1) * at[NQ] + i] = w[at[Q] + i]
            for i in range(at[NV]):
                w[at[NEW_V] + k * (N + 1) * at[NV] + i] = w[at[V] + i]
            w[at[NEW_COST] + k * (N + 1)] = 0.0
    for s in range(at[SPANS]):
        steps = int(w[at[SPAN] + s + 1]) - int(w[at[SPAN] + s])
        if at[BY_VELOCITY] == 1:
            failed += run(kernels, FUNCTIONS * s + FORWARD, 0, steps)
        else:
            failed += repeat(kernels, FUNCTIONS * s + FORWARD, steps, at[TOGETHER])
    if at[BY_VELOCITY] == 1:
        added = 0.0
        for t in range(N):
            added += w[at[NEW_COST] + t]
        w[at[NEW_COST] + N] = added
    for k in range(at[TOGETHER]):
        w[at[R] + k] = w[at[NEW_COST] + k * (N + 1) + N]
    failed += run(kernels, FUNCTIONS * at[SPANS] + FORWARD, 0, at[TOGETHER])
    for k in range(at[TOGETHER]):
        end = at[NEW_COST] + k * (N + 1) + N
        w[end] += w[at[R] + k]
        if at[BOUNDED] == 1:
            w[end] += limits_cost(at, w, k)
    return failed


def take(at: Ints, w: Floats, row: int) -> None:
    """A new trajectory becomes the present one."""
    N = at[STEPS]
    for k in range((N + 1) * at[NQ]):
        w[at[Q] + k] = w[at[NEW_Q] + row * (N + 1) * at[NQ] + k]
    for k in range((N + 1) * at[NV]):
        w[at[V] + k] = w[at[NEW_V] + row * (N + 1) * at[NV] + k]
    w[at[SCALARS] + NEW_TOTAL] = w[at[NEW_COST] + row * (N + 1) + N]
    for k in range(N * at[CONTROLS]):
        w[at[U] + k] = w[at[NEW_U] + row * N * at[CONTROLS] + k]


def search(kernels: Kernels, at: Ints, w: Floats) -> float:
    """Take the best of the first lengths that lower the merit function enough; its length, 0 if there was none, less if no memory."""
    N = at[STEPS]
    scalars = at[SCALARS]
    needed = 0.0
    for t in range(N + 1):
        for i in range(at[NX]):
            needed = max(needed, abs(w[at[P] + t * at[SX] + i]))
    if w[scalars + MISSED] > 0.0:
        w[scalars + PENALTY] = max(w[scalars + PENALTY], 2.0 * needed)
    weight = w[scalars + PENALTY] * w[scalars + MISSED]
    slope = min(w[scalars + CHANGE], 0.0) - 0.5 * weight
    before = w[scalars + TOTAL] + weight
    if at[BOUNDED] == 1:
        before += limits_cost(at, w, -1)
    noise = 1e-13 * (1.0 + abs(before))
    length = 1.0
    tried = 0
    fallback = 0.0
    over = 0.0
    while tried < int(w[scalars + TRIES]):
        if forward(kernels, at, w, length) != 0:
            return -1.0
        best = -1
        lowest = 0.0
        for k in range(at[TOGETHER]):
            one = w[at[LENGTH] + k]
            merit = w[at[NEW_COST] + k * (N + 1) + N] + (1.0 - one) * weight
            if merit <= before + 1e-4 * one * slope + noise and (best < 0 or merit < lowest):
                best = k
                lowest = merit
            if abs(merit) < 1e300 and (fallback == 0.0 or merit < over):
                fallback = one
                over = merit
        if best >= 0:
            take(at, w, best)
            return float(w[at[LENGTH] + best])
        tried += at[TOGETHER]
        length = 0.5 * w[at[LENGTH] + at[TOGETHER] - 1]
    if w[scalars + FORCED] == 1.0 and fallback > 0.0:
        if forward(kernels, at, w, fallback) != 0:
            return -1.0
        take(at, w, 0)
        return fallback
    return 0.0
