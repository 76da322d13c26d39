"""Examples on which the programs of optimal control prove themselves: pendulums without coupling, their functions written by hand."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..kernel.program_trial import Called, Example
from ..kernel.runtime.bound import Kernels
from . import layout
from .layout import Memory

N, FREEDOMS = 4, 5
STEP, GOAL, DAMPING = 0.1, 0.7, 0.2
WEIGHTS = 3.0, 0.5, 0.1
"""Weights of positions, velocities and controls."""
END = 20.0
"""The weight of the end, beside that of a step."""
ITERATIONS = 3
DIP = 0.01
"""By how much the Hessian of a saddle falls in one direction of the controls."""
WIDE = layout.filled(3 * FREEDOMS)


def backward_examples() -> list[Example]:
    """Examples of `riccati_programs.backward`: dynamics and costs of any numbers, with and without limits of controls."""
    found = []
    for limited in (False, True):
        memory = _memory(False, limited, False)
        x = _numbers(memory["H"].shape)
        memory["H"][:] = x @ x.swapaxes(-1, -2)[..., :, : x.shape[-2]] @ np.eye(x.shape[-2], x.shape[-1])
        memory["H"][:, np.arange(x.shape[-2]), np.arange(x.shape[-2])] += 2.0
        memory["DYNAMICS"][..., : 3 * FREEDOMS] = 0.5 * _numbers((N, 2 * FREEDOMS, 3 * FREEDOMS))
        memory["H_END"][0, :, : 2 * FREEDOMS] = np.eye(2 * FREEDOMS)
        for name, width in (("G", 3 * FREEDOMS), ("GAP", 2 * FREEDOMS), ("G_END", 2 * FREEDOMS)):
            memory[name][:, :width] = _numbers((len(memory[name]), width))
        memory["LOW"][:], memory["HIGH"][:] = -0.3, 0.2
        found.append(Example((memory.at, memory.numbers), _of(memory, "GAINS", "FEEDFORWARD", "VALUE", "P")))
    return found


def solve_examples() -> list[Example]:
    """Examples of `fddp_program.solve`: some iterations, by control and by velocity, with limits of states, and with those of controls
    too; and a motion that is taken for stationary, and is no minimum.
    """
    return [
        _problem(False, False),
        _problem(False, True),
        _problem(True, False),
        _problem(True, True),
        _problem(False, False, True),
    ]


def _problem(by_velocity: bool, bounded: bool, saddle: bool = False) -> Example:
    limited = bounded and not by_velocity
    memory = _memory(by_velocity, limited, bounded)
    memory["SPAN"][:] = 0.0, N
    memory["H_STEP"][:] = STEP
    memory["Q"][:], memory["V"][:], memory["U"][:] = (0.4 * _numbers(memory[name].shape) for name in "QVU")
    memory["LOW"][:], memory["HIGH"][:] = -2.0, 2.5
    memory["LOW_X"][:], memory["HIGH_X"][:] = -np.inf, np.inf
    memory["HIGH_X"][FREEDOMS] = 0.5
    memory["PLACE_X"][:FREEDOMS] = range(FREEDOMS)
    scalars = memory["SCALARS"]
    scalars[layout.EXACT], scalars[layout.FULL], scalars[layout.TRIES], scalars[layout.GROWTH] = 1.0, 1.0, 12.0, 10.0
    scalars[layout.FIRST_RHO], scalars[layout.INNER], scalars[layout.OLD_VIOLATION] = 1e-2, 1e-3, np.inf
    if saddle:
        scalars[layout.TOLERANCE] = 1e3
    bound = _by_velocity(memory) if by_velocity else _by_control(memory, limited, DIP if saddle else 0.0)
    given = (Kernels([*bound, *_end(memory)]), memory.at, memory.numbers, ITERATIONS, 1)
    return Example(given, (*_of(memory, "Q", "V", "U", "GAINS"), memory["TABLE"][:ITERATIONS, 0]))


def _memory(by_velocity: bool, limited: bool, bounded: bool) -> Memory:
    sizes = {"spans": 1, "together": 1 if by_velocity else 8, "room": ITERATIONS + 2}
    return Memory(N, *[FREEDOMS] * 3, by_velocity=by_velocity, limited=limited, bounded=bounded, **sizes)


def _numbers(shape: tuple[int, ...]) -> Array:
    """Between -1 and 1, irregular."""
    k = np.arange(1.0, 1.0 + np.prod(shape))
    return (2.0 * (k * k * 0.6180339887498949 % 1.0) - 1.0).reshape(shape)


def _of(memory: Memory, *names: str) -> tuple[Array, ...]:
    return tuple(memory[name] for name in names)


# q'' = u - sin q - d q', a semi-implicit step, and costs ½ (w₀ (q - goal)² + w₁ v² + w₂ u²)


def _step(q: Array, v: Array, u: Array) -> tuple[Array, Array]:
    w = v + STEP * (u - np.sin(q) - DAMPING * v)
    return q + STEP * w, w


def _cost(q: Array, v: Array, u: Array) -> Array:
    return 0.5 * sum(w * (x * x).sum(-1, keepdims=True) for w, x in zip(WEIGHTS, (q - GOAL, v, u), strict=True))


def _slope(q: Array, v: Array, u: Array) -> Array:
    return np.concatenate([w * x for w, x in zip(WEIGHTS, (q - GOAL, v, u), strict=True)], -1)


def _diagonals(*blocks: tuple[int, int, Array | float], rows: int, count: int) -> Array:
    """Matrices (count, rows · freedoms, WIDE) with blocks that are diagonal."""
    found, i = np.zeros((count, rows * FREEDOMS, WIDE)), np.arange(FREEDOMS)
    for row, column, x in blocks:
        found[:, row * FREEDOMS + i, column * FREEDOMS + i] += x
    return found


def _curve(count: int) -> Array:
    return _diagonals(*((k, k, STEP * w) for k, w in enumerate(WEIGHTS)), rows=3, count=count)


def _by_control(memory: Memory, limited: bool, dip: float) -> list[Called]:
    def model(q: Array, v: Array, u: Array, q1: Array, v1: Array) -> tuple[Array, ...]:
        moved = _step(q, v, u)
        gap = np.concatenate([moved[0] - q1, moved[1] - v1], -1)
        return STEP * _cost(q, v, u), STEP * _slope(q, v, u), _curve(len(q)), _dynamics(q), gap

    def curvature(q: Array, costate: Array) -> Array:
        weight = STEP * (STEP * costate[:, :FREEDOMS] + costate[:, FREEDOMS:])
        found = _curve(len(q)) + _diagonals((0, 0, weight * np.sin(q)), rows=3, count=len(q))
        way = np.arange(1.0, 1.0 + FREEDOMS)
        found[:, nx:, nx:nz] -= dip * np.outer(way, way)
        return found

    def forward(q: Array, v: Array, cost: Array, q0: Array, v0: Array, u: Array, *rest: Array) -> tuple[Array, ...]:
        K, k, gap, length, *box = rest
        away = np.concatenate([q - q0, v - v0], -1)
        u = u + length * k + (K[..., : 2 * FREEDOMS] @ away[..., None])[..., 0]
        u = np.clip(u, *box) if box else u
        missed = (1.0 - length) * gap
        q1, v1 = _step(q, v, u)
        return q1 - missed[..., :FREEDOMS], v1 - missed[..., FREEDOMS:], cost + STEP * _cost(q, v, u), u

    m, nx, nz = memory, 2 * FREEDOMS, 3 * FREEDOMS
    found = [m["COST"][:N], m["G"][:, :nz], m["H"], m["DYNAMICS"], m["GAP"][:, :nx]]
    states = _of(m, "NEW_Q", "NEW_V", "NEW_COST")
    old = [m[name][None, :N] for name in ("Q", "V", "U", "GAINS", "FEEDFORWARD")]
    box = [m[name][None] for name in ("LOW", "HIGH")] if limited else []
    given = [*(x[:, :N] for x in states), *old, m["GAP"][None, :, :nx], m["LENGTH"][:, None], *box]
    return [
        Called(model, [m["Q"][:N], m["V"][:N], m["U"], m["Q"][1:], m["V"][1:]], found),
        Called(curvature, [m["Q"][:N], m["COSTATE"][1:, :nx]], [m["H"]]),
        Called(forward, given, [*(x[:, 1:] for x in states), m["NEW_U"]], stepped=True),
    ]


def _dynamics(q: Array) -> Array:
    """∂(q', v')/∂(q, v, u)."""
    by: tuple[Array, ...] = (-STEP * np.cos(q), 1.0 - STEP * DAMPING, STEP)
    blocks = [(1, k, x) for k, x in enumerate(by)] + [(0, k, STEP * x) for k, x in enumerate(by)]
    return _diagonals(*blocks, (0, 0, 1.0), rows=2, count=len(q))


def _by_velocity(memory: Memory) -> list[Called]:
    def control(q: Array, v: Array, w: Array) -> Array:
        return (w - v) / STEP + np.sin(q) + DAMPING * v

    def exchange(q: Array) -> Array:
        return _diagonals((0, 0, np.cos(q)), (0, 1, DAMPING - 1.0 / STEP), (0, 2, 1.0 / STEP), rows=1, count=len(q))

    def turned(q: Array) -> Array:
        E, E_q = exchange(q), _curve(len(q))
        E_q[:, 2 * FREEDOMS :] = 0.0
        return E_q + STEP * WEIGHTS[2] * (E.swapaxes(-1, -2) @ E)[:, : 3 * FREEDOMS]

    def model(q: Array, v: Array, w: Array) -> tuple[Array, ...]:
        u, E = control(q, v, w), exchange(q)
        slope = STEP * _slope(q, v, u)
        by_u = slope[:, 2 * FREEDOMS :]
        by_w = (by_u[:, None] @ E)[:, 0, : 3 * FREEDOMS]
        by_w[:, : 2 * FREEDOMS] += slope[:, : 2 * FREEDOMS]
        response = np.broadcast_to(STEP * np.eye(FREEDOMS), (len(q), FREEDOMS, FREEDOMS))
        return STEP * _cost(q, v, u), u, slope, by_w, turned(q), E, response

    def curvature(q: Array, slope: Array) -> Array:
        return turned(q) - _diagonals((0, 0, slope[:, 2 * FREEDOMS :] * np.sin(q)), rows=3, count=len(q))

    def forward(q: Array, v: Array, w: Array) -> tuple[Array, Array]:
        u = control(q, v, w)
        return u, STEP * _cost(q, v, u)

    m, nz = memory, 3 * FREEDOMS
    given = [m["Q"][:N], m["V"][:N], m["V"][1:]]
    slopes = m["G"][:, :nz]
    found = [m["COST"][:N], m["U"], slopes, m["G_TURNED"][:, :nz], *_of(m, "H", "EXCHANGE", "RESPONSE")]
    new = [m["NEW_Q"][0, :N], m["NEW_V"][0, :N], m["NEW_V"][0, 1:]]
    return [
        Called(model, given, found),
        Called(curvature, [m["Q"][:N], slopes], [m["H"]]),
        Called(forward, new, [m["NEW_U"][0], m["NEW_COST"][0, :N]]),
    ]


def _end(memory: Memory) -> list[Called]:
    nx = 2 * FREEDOMS

    def model(q: Array, v: Array) -> tuple[Array, ...]:
        none, curve = 0.0 * q, _curve(len(q))[:, :nx, : layout.filled(nx)] / STEP
        return END * _cost(q, v, none), END * _slope(q, v, none)[:, :nx], END * curve

    m = memory
    given = [m["Q"][N:], m["V"][N:]]
    return [
        Called(model, given, [m["COST"][N:], m["G_END"][:, :nx], m["H_END"]]),
        Called(lambda q, v: model(q, v)[2], given, [m["H_END"]]),
        Called(lambda q, v: model(q, v)[0], [m["NEW_Q"][:, N], m["NEW_V"][:, N]], [m["NEW_COST"][:, N]]),
    ]
