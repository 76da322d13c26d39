"""Sequential programs: machine code and plain Python agree, and what programs do not have is refused."""

from __future__ import annotations

import numpy as np
import pytest

from coadjoint.kernel.emit.sequential import ProgramError, module_text
from coadjoint.kernel.programs import (
    Floats,
    empty,
    largest,
    least,
    load,
    maximum,
    minimum,
    native_program,
    some,
    splat,
    sqrt,
    store,
    total,
    where,
)
from coadjoint.optimal.path_program import time_paths

TABLE = np.linspace(-1.0, 2.0, 16)
COUNT = 16


def weighted(x: Floats, n: int) -> float:
    """Σ xₖ tₖ, but for some."""
    added = 0.0
    for k in range(n):
        if k == 3 or (k > 10 and not x[k] < 1.0):
            continue
        if k == 14:
            break
        added += x[k] * TABLE[k]
    return added


def newton(a: float) -> float:
    x = max(a, 1.0)
    turns = 0
    while abs(x * x - a) > 1e-14 * a and turns < 50:
        x = 0.5 * (x + a / x)
        turns += 1
    return x if turns < 50 else -1.0


def everything(x: Floats, n: int, out: Floats) -> int:
    buffer = empty(COUNT)
    v = load(x, 0) * 2.0 + load(x, 8)
    far = (v > 3.0) & ~(v > 4.0) | (v < 0.5)
    store(buffer, 0, where(far, -v, maximum(minimum(v, 2.5), 1.0)))
    store(buffer, 8, sqrt(abs(v)) - splat(0.25))
    out[0] = least(v)
    out[1] = largest(v)
    out[2] = total(load(buffer, 0))
    out[3] = weighted(buffer, n)
    out[4] = newton(abs(out[3]))
    out[5] = 1.0 if some(far) else 0.0
    for k in range(n - 1, -1, -2):
        out[6] = float(k) + out[6] / 2.0
    out[7] = float(7 // 2 + 7 % 4 - int(3.9))
    if out[0] < 0.0:
        return 1
    elif out[1] > 3.0:
        return 2
    return 3


@pytest.mark.native
@pytest.mark.parametrize("seed", range(4))
def test_machine_code_is_what_is_written(seed):
    x = np.random.default_rng(seed).uniform(-0.5 if seed % 2 else 0, 3, 16)
    native, plain = np.zeros(8), np.zeros(8)
    assert native_program(everything)(x, 16, native) == everything(x, 16, plain)
    np.testing.assert_allclose(native, plain, rtol=1e-14)


def test_a_timing_as_written_is_that_of_machine_code(monkeypatch):
    import coadjoint as cj

    robot = cj.Robot.from_screws([[0, 0, 1, 0, 0, 0]], [np.eye(4)], [1.0], [np.eye(3) * 0.3])
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    timing = cj.time_optimal(robot, [[0.0], [2.0]], velocity=2.0, effort=1.5)
    assert timing.duration == pytest.approx(2 / 2.0 + 2.0 * 0.3 / 1.5, abs=1e-9)


def unknown(x: Floats) -> float:
    return undefined(x)  # type: ignore[name-defined]  # noqa: F821


def listing(x: Floats) -> float:
    found = [x[0]]
    return found[0]


def changing(x: Floats) -> float:
    a = 1
    a = x[0]
    return a


@pytest.mark.parametrize(
    ("fn", "message"),
    [(unknown, "no program is named undefined"), (listing, r"no \[x\[0\]\]"), (changing, "float where int is expected")],
)
def test_what_programs_do_not_have_is_told(fn, message):
    with pytest.raises(ProgramError, match=message):
        module_text(fn)


def test_the_program_of_timing_has_no_symbols_from_outside():
    """So that it is linked without LLVM (`runtime/elf.py`)."""
    text = module_text(time_paths)
    assert not [line for line in text.splitlines() if line.startswith("declare") and "@llvm." not in line]
