"""The memory of one optimal control problem while it is solved: one array of numbers, and where in it what stands.

Programs read `at`, whole numbers: sizes first, then places. Rows of matrices are filled up to multiples of eight, SX for states and
SZ for deviations z = (state, control), so that they are read in whole vectors.
"""

from __future__ import annotations

import numpy as np

SIZES = ("STEPS", "NQ", "NV", "CONTROLS", "NX", "NZ", "SX", "SZ", "SPANS", "BY_VELOCITY", "LIMITED", "BOUNDED", "TOGETHER", "ROOM")
(STEPS, NQ, NV, CONTROLS, NX, NZ, SX, SZ, SPANS, BY_VELOCITY, LIMITED, BOUNDED, TOGETHER, ROOM) = range(14)
"""Steps; numbers of a configuration, velocity, control, state, deviation; rows of states and of deviations in memory; spans; whether the
velocity after a step is chosen in the place of its control; whether controls are limited; whether states are; lengths of steps that
are tried together; rows of the table."""

PLACES = (
    *("Q", "V", "U", "NEW_Q", "NEW_V", "NEW_U", "NEW_COST", "COST", "H_STEP", "GAP"),
    *("G", "G_TURNED", "H", "G_END", "H_END", "DYNAMICS", "EXCHANGE", "RESPONSE"),
    *("GAINS", "FEEDFORWARD", "VALUE", "P", "COSTATE", "SLOPE", "LOW", "HIGH"),
    *(
        "LOW_X",
        "HIGH_X",
        "PLACE_X",
        "MULTIPLIER",
        "LENGTH",
        "WORK",
        "FACTOR",
        "PIVOT",
        "HALF",
        "R",
        "BOX",
        "SCALARS",
        "TABLE",
        "SPAN",
    ),
)
(Q, V, U, NEW_Q, NEW_V, NEW_U, NEW_COST, COST, H_STEP, GAP) = range(14, 24)
(G, G_TURNED, H, G_END, H_END, DYNAMICS, EXCHANGE, RESPONSE) = range(24, 32)
(GAINS, FEEDFORWARD, VALUE, P, COSTATE, SLOPE, LOW, HIGH) = range(32, 40)
(LOW_X, HIGH_X, PLACE_X, MULTIPLIER, LENGTH, WORK, FACTOR, PIVOT, HALF, R, BOX, SCALARS, TABLE, SPAN) = range(40, 54)

TOTAL, ERROR, MISSED, LARGEST_GAP, VIOLATION = range(5)
"""Scalars: the cost; the violation of the conditions of first order; the sum and the largest of the gaps; what limits of states miss."""
TOLERANCE, EXACT, TRIES, FORCED = range(5, 9)
"""The tolerance; whether exact Hessians are wanted; lengths of steps that are tried at most; whether the best of them is taken anyway."""
SHIFT, PENALTY, FULL, FAILED = range(9, 13)
"""The shift of Quu; the weight of gaps in the merit function; whether the last step was of full length; whether exact Hessians were not
convex last time."""
RHO, FIRST_RHO, GROWTH, INNER, OLD_VIOLATION, STALLED = range(13, 19)
"""Numbers of limits of states: the penalty, its first value beside the cost, and the factor by which it grows; the error at which
multipliers are renewed, at first beside the cost; the violation at the last time; how often it was not halved."""
LEAST, CHANGE, CURVED, STEP, USED_EXACT, NEW_TOTAL = range(19, 25)
"""The least pivot; the expected change of the cost, linear and quadratic; the length of the step; whether exact Hessians were used; the
cost after the step."""
TAKEN, ROWS, STATUS, STOPPED, SCALAR_COUNT = range(25, 30)
"""Steps taken; rows of the table; why it ended; the step at which a backward pass stopped; how many scalars there are."""

MODEL, CURVATURE, FORWARD, FUNCTIONS = range(4)
"""The functions of a span of steps in the order in which they are bound, and how many they are; after all spans come those of the end."""

COLUMNS = ("cost", "error", "gap", "step", "shift", "exact", "violation")
"""The columns of the table."""


def filled(n: int) -> int:
    """n, up to a multiple of eight."""
    return -(-n // 8) * 8


class Memory:
    """`numbers` and `at` for N steps, with views of what stands there."""

    def __init__(
        self,
        N: int,
        nq: int,
        nv: int,
        m: int,
        *,
        spans: int,
        by_velocity: bool,
        limited: bool,
        bounded: bool,
        together: int,
        room: int,
    ) -> None:
        nx, nz = 2 * nv, 2 * nv + m
        sx, sz = filled(nx), filled(nz)
        A = together
        shapes: dict[str, tuple[int, ...]] = {
            "Q": (N + 1, nq),
            "V": (N + 1, nv),
            "U": (N, m),
            "NEW_Q": (A, N + 1, nq),
            "NEW_V": (A, N + 1, nv),
            "NEW_U": (A, N, m),
            "NEW_COST": (A, N + 1, 1),
            "COST": (N + 1, 1),
            "H_STEP": (N,),
            "GAP": (N, sx),
            "G": (N, sz),
            "G_TURNED": (N if by_velocity else 0, sz),
            "H": (N, nz, sz),
            "G_END": (1, sx),
            "H_END": (1, nx, sx),
            "DYNAMICS": (0 if by_velocity else N, nx, sz),
            "EXCHANGE": (N if by_velocity else 0, m, sz),
            "RESPONSE": (N if by_velocity else 0, nv, m),
            "GAINS": (N, m, sx),
            "FEEDFORWARD": (N, m),
            "VALUE": (N + 1, nx, sx),
            "P": (N + 1, sx),
            "COSTATE": (N + 1, sx),
            "SLOPE": (N, m),
            "LOW": (N, m),
            "HIGH": (N, m),
            "LOW_X": (nx,),
            "HIGH_X": (nx,),
            "PLACE_X": (nx,),
            "MULTIPLIER": (N + 1, nx),
            "LENGTH": (A, 1),
            "WORK": (2, sz, sz),
            "FACTOR": (m, m),
            "PIVOT": (m,),
            "HALF": (m, sx),
            "R": (2, sz),
            "BOX": (6, m),
            "SCALARS": (SCALAR_COUNT,),
            "TABLE": (room, len(COLUMNS)),
            "SPAN": (spans + 1,),
        }
        self.at = np.zeros(len(SIZES) + len(PLACES), dtype=np.int64)
        self.at[: len(SIZES)] = N, nq, nv, m, nx, nz, sx, sz, spans, by_velocity, limited, bounded, A, room
        places, end = {}, 0
        for name in PLACES:
            places[name], end = (
                end,
                end + filled(int(np.prod(shapes[name]))) + 8 * sz,
            )  # blocks of four rows, and vectors, may reach beyond
        self.at[len(SIZES) :] = [places[name] for name in PLACES]
        whole = np.empty(end + 8)
        whole.fill(0.0)  # so that the pages are there before the first iteration
        first = -(whole.ctypes.data // 8) % 8
        self.numbers = whole[first : first + end]
        self.views: dict[str, np.ndarray] = {
            name: self.numbers[places[name] : places[name] + int(np.prod(shape))].reshape(shape) for name, shape in shapes.items()
        }

    def __getitem__(self, name: str) -> np.ndarray:
        return self.views[name]

    def scalar(self, place: int) -> float:
        return float(self.views["SCALARS"][place])
