"""The backward pass of differential dynamic programming, as programs.

Near a trajectory the next state deviates by x' = D z, z = (x, u), and a step costs ½ zᵀ H z + gᵀ z. From the value ½ x'ᵀ V x' + pᵀ x' of
the next state, with `gap` what the step misses of it,

    Q = H + Dᵀ V D,    r = g + Dᵀ (p + V gap),    u = k + K x,    K = -Quu⁻¹ Qux,   k = -Quu⁻¹ ru

and V = Qxx + Qxu K, p = rx + Qxu k. Where the velocity after a step is chosen in the place of its control, z = (δq, δv, δw) and
x' = (δq + h δw, δw). Under limits on the controls k minimises the same quadratic between them, by projected Newton steps (Bertsekas, 1982;
Tassa, Mansard & Todorov, 2014), and controls at a limit have no feedback.
"""

from __future__ import annotations

from ..kernel.programs import Floats, Ints
from .layout import (
    BOX,
    BY_VELOCITY,
    CHANGE,
    CONTROLS,
    CURVED,
    DYNAMICS,
    FACTOR,
    FEEDFORWARD,
    G_END,
    G_TURNED,
    GAINS,
    GAP,
    H_END,
    H_STEP,
    HALF,
    HIGH,
    LEAST,
    LIMITED,
    LOW,
    NV,
    NX,
    NZ,
    PIVOT,
    SCALARS,
    SHIFT,
    STEPS,
    STOPPED,
    SX,
    SZ,
    VALUE,
    WORK,
    G,
    H,
    P,
    R,
    U,
)
from .matrix_programs import (
    add_combination,
    add_product,
    clear,
    copy,
    factorise,
    mirror_rows,
    solve_factored,
    substitute_backward,
    substitute_forward,
)

PROJECTED = 30
"""The most projected Newton steps for the limits of one control."""


def quadratic_by_control(at: Ints, w: Floats, t: int) -> None:
    """Q and r of step t."""
    nx = at[NX]
    sx = at[SX]
    sz = at[SZ]
    value = at[VALUE] + (t + 1) * nx * sx
    dynamics = at[DYNAMICS] + t * nx * sz
    r = at[R]
    work = at[WORK]
    product = work + sz * sz
    copy(w, at[P] + (t + 1) * sx, r + sz, sx // 8)
    add_combination(w, at[GAP] + t * sx, value, sx, r + sz, nx, sx // 8, 1.0)
    copy(w, at[G] + t * sz, r, sz // 8)
    add_combination(w, r + sz, dynamics, sz, r, nx, sz // 8, 1.0)
    clear(w, product, nx * sz // 8)
    add_product(w, value, sx, dynamics, sz, product, sz, nx, nx, sz // 8, 1.0)
    copy(w, at[H] + t * at[NZ] * sz, work, at[NZ] * sz // 8)
    add_product(w, dynamics, sz, product, sz, work, sz, at[NZ], nx, sz // 8, 1.0)


def quadratic_by_velocity(at: Ints, w: Floats, t: int) -> None:
    """Q and r of step t."""
    n = at[NV]
    nx = at[NX]
    sx = at[SX]
    sz = at[SZ]
    h = w[at[H_STEP] + t]
    value = at[VALUE] + (t + 1) * nx * sx
    r = at[R]
    next_p = r + sz
    copy(w, at[P] + (t + 1) * sx, next_p, sx // 8)
    add_combination(w, at[GAP] + t * sx, value, sx, next_p, nx, sx // 8, 1.0)
    copy(w, at[G_TURNED] + t * sz, r, sz // 8)
    work = at[WORK]
    copy(w, at[H] + t * at[NZ] * sz, work, at[NZ] * sz // 8)
    for i in range(n):
        w[r + i] += w[next_p + i]
        w[r + nx + i] += h * w[next_p + i] + w[next_p + n + i]
        of_q = value + i * sx
        of_v = value + (n + i) * sx
        row_q = work + i * sz
        row_w = work + (nx + i) * sz
        for j in range(n):
            x = h * w[of_q + j] + w[of_v + j]
            w[row_q + j] += w[of_q + j]
            w[row_w + j] += x
            w[row_w + nx + j] += h * x + h * w[of_q + n + j] + w[of_v + n + j]


def limited_control(at: Ints, w: Floats, t: int) -> float:
    """k of step t between its limits, and which of its entries are free, in BOX; the least pivot of Quu on what was free."""
    m = at[CONTROLS]
    nx = at[NX]
    sz = at[SZ]
    quu = at[WORK] + nx * sz + nx
    ru = at[R] + nx
    shift = w[at[SCALARS] + SHIFT]
    k = at[FEEDFORWARD] + t * m
    low = at[LOW] + t * m
    high = at[HIGH] + t * m
    u = at[U] + t * m
    free = at[BOX]
    slope = free + m
    step = slope + m
    trial = step + m
    least = 1.0
    for i in range(m):
        w[k + i] = 0.0
        w[free + i] = 1.0
    height = 0.0
    for turn in range(PROJECTED):
        changed = 0
        size = 0.0
        for i in range(m):
            x = w[ru + i] + shift * w[k + i]
            for j in range(m):
                x += w[quu + i * sz + j] * w[k + j]
            w[slope + i] = x
            size = max(size, abs(w[ru + i]))
            held = (w[k + i] <= w[low + i] - w[u + i] and x > 0.0) or (w[k + i] >= w[high + i] - w[u + i] and x < 0.0)
            now = 0.0 if held else 1.0
            if now != w[free + i]:
                changed = 1
            w[free + i] = now
        rest = 0.0
        for i in range(m):
            rest = max(rest, abs(w[slope + i]) * w[free + i])
        if turn > 0 and changed == 0 and rest <= 1e-13 * size:
            break
        least = masked_factor(at, w, quu, sz, m, shift, free)
        if not least > 0.0:
            return least
        for i in range(m):
            w[step + i] = -w[slope + i] * w[free + i]
        solve_factored(w, at[FACTOR], at[PIVOT], m, step)
        length = 1.0
        better = 0
        for _ in range(20):
            for i in range(m):
                x = w[k + i] + length * w[step + i] * w[free + i]
                x = max(x, w[low + i] - w[u + i])
                w[trial + i] = min(x, w[high + i] - w[u + i])
            over = 0.0
            for i in range(m):
                x = w[ru + i] + 0.5 * shift * w[trial + i]
                for j in range(m):
                    x += 0.5 * w[quu + i * sz + j] * w[trial + j]
                over += x * w[trial + i]
            if over < height:
                better = 1
                height = over
                break
            length *= 0.5
        if better == 0:
            break
        for i in range(m):
            w[k + i] = w[trial + i]
    return masked_factor(at, w, quu, sz, m, shift, free)


def masked_factor(at: Ints, w: Floats, quu: int, sz: int, m: int, shift: float, free: int) -> float:
    """The factor of Quu + shift 1 where rows and columns are free, of 1 elsewhere; its least pivot."""
    masked = at[WORK] + sz * sz
    for i in range(m):
        for j in range(m):
            both = w[free + i] * w[free + j]
            w[masked + i * m + j] = w[quu + i * sz + j] * both
        w[masked + i * m + i] += 1.0 - w[free + i] + shift * w[free + i] - shift
    return factorise(w, masked, m, m, shift, at[FACTOR], at[PIVOT])


def eliminate(at: Ints, w: Floats, t: int) -> float:
    """K, k of step t, V and p of its state, from Q and r; the least pivot of Quu, which must be positive."""
    m = at[CONTROLS]
    nx = at[NX]
    sx = at[SX]
    sz = at[SZ]
    work = at[WORK]
    r = at[R]
    scalars = at[SCALARS]
    shift = w[scalars + SHIFT]
    k = at[FEEDFORWARD] + t * m
    limited = at[LIMITED] == 1
    qux = work + nx * sz
    factor = at[FACTOR]
    pivot = at[PIVOT]
    if limited:  # noqa: SIM108 (in programs an expression with if computes both of its sides)
        least = limited_control(at, w, t)
    else:
        least = factorise(w, qux + nx, sz, m, shift, factor, pivot)
    if not least > 0.0:
        return least
    half = at[HALF]
    gains = at[GAINS] + t * m * sx
    if limited:
        free = at[BOX]
        masked = work + sz * sz
        for i in range(m):
            for j in range(nx):
                w[masked + i * sz + j] = w[qux + i * sz + j] * w[free + i]
        substitute_forward(w, factor, pivot, m, masked, sz, half, sx, sx // 8)
    else:
        for i in range(m):
            w[k + i] = -w[r + nx + i]
        solve_factored(w, factor, pivot, m, k)
        substitute_forward(w, factor, pivot, m, qux, sz, half, sx, sx // 8)
    substitute_backward(w, factor, pivot, m, half, sx, gains, sx, sx // 8)
    for i in range(m):
        for j in range(nx, sx):
            w[gains + i * sx + j] = 0.0
    value = at[VALUE] + t * nx * sx
    for i in range(nx):
        copy(w, work + i * sz, value + i * sx, sx // 8)
    add_product(w, half, sx, half, sx, value, sx, nx, m, sx // 8, -1.0)
    p = at[P] + t * sx
    copy(w, r, p, sx // 8)
    linear = 0.0
    curved = 0.0
    for i in range(m):
        x = shift * w[k + i]
        for j in range(m):
            x += w[qux + i * sz + nx + j] * w[k + j]
        linear += w[k + i] * w[r + nx + i]
        curved += w[k + i] * x
    add_combination(w, k, qux, sz, p, m, sx // 8, 1.0)
    mirror_rows(w, value, sx, nx)
    w[scalars + CHANGE] += linear
    w[scalars + CURVED] += curved
    return least


def backward(at: Ints, w: Floats) -> float:
    """Gains, feedforward and value of all steps from H, g and the dynamics; the least pivot, not positive where that is not convex."""
    nx = at[NX]
    sx = at[SX]
    N = at[STEPS]
    scalars = at[SCALARS]
    copy(w, at[H_END], at[VALUE] + N * nx * sx, nx * sx // 8)
    copy(w, at[G_END], at[P] + N * sx, sx // 8)
    w[scalars + CHANGE] = 0.0
    w[scalars + CURVED] = 0.0
    least = 1e300
    for t in range(N - 1, -1, -1):
        if at[BY_VELOCITY] == 1:
            quadratic_by_velocity(at, w, t)
        else:
            quadratic_by_control(at, w, t)
        now = eliminate(at, w, t)
        if not now > 0.0:
            w[scalars + LEAST] = now
            w[scalars + STOPPED] = float(t)
            return now
        least = min(least, now)
    w[scalars + LEAST] = least
    return least
