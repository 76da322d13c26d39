"""Sequential programs: machine code and plain Python agree, and what programs do not have is refused."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from coadjoint.errors import KernelWarning
from coadjoint.kernel import program_trial, programs
from coadjoint.kernel.emit.sequential import module_of
from coadjoint.kernel.emit.sequential_module import ProgramError
from coadjoint.kernel.program_trial import Called, Example
from coadjoint.kernel.programs import (
    Floats,
    Kernels,
    empty,
    largest,
    least,
    load,
    maximum,
    minimum,
    native_program,
    repeat,
    run,
    some,
    splat,
    sqrt,
    store,
    total,
    where,
)
from coadjoint.optimal import control_examples
from coadjoint.optimal.fddp_program import solve
from coadjoint.optimal.path_program import time_paths
from coadjoint.optimal.riccati_programs import backward
from coadjoint.optimal.timing_examples import timing_examples

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


def some_numbers() -> list[Example]:
    out = np.zeros(8)
    return [Example((np.linspace(0.2, 2.9, 16) ** 1.5, 16, out), (out,))]


@pytest.mark.native
@pytest.mark.parametrize("seed", range(4))
def test_machine_code_is_what_is_written(seed):
    x = np.random.default_rng(seed).uniform(-0.5 if seed % 2 else 0, 3, 16)
    native, plain = np.zeros(8), np.zeros(8)
    assert native_program(everything, some_numbers)(x, 16, native) == everything(x, 16, plain)
    np.testing.assert_allclose(native, plain, rtol=1e-14)


def test_a_timing_as_written_is_that_of_machine_code(monkeypatch):
    import coadjoint as cj

    robot = cj.Robot.from_screws([[0, 0, 1, 0, 0, 0]], [np.eye(4)], [1.0], [np.eye(3) * 0.3])
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    timing = cj.time_optimal(robot, [[0.0], [2.0]], velocity=2.0, effort=1.5)
    assert timing.duration == pytest.approx(2 / 2.0 + 2.0 * 0.3 / 1.5, abs=1e-9)


def changed_emission(monkeypatch):
    """Subtraction as addition."""
    from coadjoint.kernel.emit import sequential_expressions

    monkeypatch.setitem(sequential_expressions._FLOAT, ast.Sub, "fadd")


@pytest.mark.native
def test_wrong_machine_code_of_a_program_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("COADJOINT_CACHE", str(tmp_path))
    changed_emission(monkeypatch)
    programs._code.cache_clear()
    x, native, plain = np.linspace(0.1, 2.5, 16), np.zeros(8), np.zeros(8)
    with pytest.warns(KernelWarning, match="the program everything does not compute what its source does: "):
        compiled = native_program(everything, some_numbers)
    assert compiled(x, 16, native) == everything(x, 16, plain)
    np.testing.assert_array_equal(native, plain)
    assert not list(tmp_path.glob("*.kernel"))
    programs._code.cache_clear()


@pytest.mark.native
def test_a_program_from_the_cache_is_checked_before_it_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("COADJOINT_CACHE", str(tmp_path))
    with monkeypatch.context() as wrong:  # as another processor would compute it
        changed_emission(wrong)
        wrong.setattr(program_trial, "disagreement", lambda *_: "")
        wrong.setattr(program_trial, "sums", lambda *_: [[0.0, 1.0, 1.0]] * 2)
        programs._code.cache_clear()
        native_program(everything, some_numbers)
    programs._code.cache_clear()
    x, native, plain = np.linspace(0.1, 2.5, 16), np.zeros(8), np.zeros(8)
    assert native_program(everything, some_numbers)(x, 16, native) == everything(x, 16, plain)
    np.testing.assert_allclose(native, plain, rtol=1e-14)
    programs._code.cache_clear()


@pytest.mark.native
@pytest.mark.parametrize(
    ("program", "examples"),
    [
        (time_paths, timing_examples),
        (backward, control_examples.backward_examples),
        (solve, control_examples.solve_examples),
    ],
)
def test_examples_of_programs_are_far_from_ties(program, examples):
    """Machine code and plain Python agree to rounding there, not only to the tolerance of a proof."""
    native = program_trial.results(native_program(program, examples), examples())
    for x, y in zip(native, program_trial.results(programs._as_written(program), examples()), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.abs(y).max())


def test_the_examples_of_optimal_control_find_the_optimum():
    """So that their functions, written by hand, are right: iterations converge quadratically, both ways to the same cost."""
    by_control, _, by_velocity, _, _ = (
        program_trial.results(programs._as_written(solve), [x]) for x in control_examples.solve_examples()
    )
    costs = by_control[-1]
    assert 0 < costs[1] - costs[2] < 1e-5 * (costs[0] - costs[1])
    assert by_velocity[-1][-1] == pytest.approx(costs[-1], rel=1e-9)


def counted(kernels: Kernels, w: Floats) -> int:
    failed = run(kernels, 0, 1, 3)
    failed += repeat(kernels, 1, 2, 1)
    w[0] += 1.0
    return failed


def squares() -> list[Example]:
    x, y, z, w = np.arange(4.0)[:, None], np.zeros((4, 1)), np.zeros((1, 3, 1)), np.zeros(1)
    z[0, 0] = 3.0
    first, second = Called(np.square, [x], [y]), Called(np.square, [z[:, :2]], [z[:, 1:]], stepped=True)
    return [Example((Kernels([first, second]), w), (y, z, w))]


@pytest.mark.native
def test_machine_code_calls_python_in_examples():
    _, y, z, w = program_trial.results(native_program(counted, squares), squares())
    assert [x.ravel().tolist() for x in (y, z, w)] == [[0, 1, 4, 0], [3, 9, 81], [1]]


@pytest.mark.native
def test_full_verification_runs_programs_as_written_and_compares_what_they_call(monkeypatch):
    import coadjoint as cj
    from coadjoint.kernel.verified import VerifiedFunction

    monkeypatch.setenv("COADJOINT_VERIFY", "full")
    compared = []
    before = VerifiedFunction._compare
    monkeypatch.setattr(
        VerifiedFunction, "_compare", lambda self, *given: (compared.append(self.signature.name), before(self, *given))
    )
    robot = cj.Robot.from_screws([[0, 0, 1, 0, 0, 0]], [np.eye(4)], [1.0], [np.eye(3) * 0.3])
    assert not isinstance(getattr(native_program(everything, some_numbers), "__self__", None), programs._Code)
    timing = cj.time_optimal(robot, [[0.0], [2.0]], velocity=2.0, effort=1.5)
    assert timing.duration == pytest.approx(2 / 2.0 + 2.0 * 0.3 / 1.5, abs=1e-9)
    assert "timing_rows" in compared


def noted(out: Floats, k: int) -> float:
    out[k] += 1.0
    return float(k)


def chosen(x: Floats, n: int, out: Floats) -> float:
    far = 1000000000 * n
    out[0] = x[far] if far < 2 else -1.0
    out[1] = noted(out, 2) if out[0] > 0.0 else noted(out, 3)
    y = load(x, far) if far == 0 else splat(2.0)
    return total(y) if n > 0 else (1.0 if x[0] > 0.0 else x[far - 1000000000])


def some_choices() -> list[Example]:
    out = np.zeros(4)
    return [Example((1.0 + np.arange(8.0), n, out), (out,)) for n in (1, 0, 2)]


@pytest.mark.native
def test_only_the_chosen_side_of_a_conditional_is_computed():
    """The other side reads far outside the array, or counts."""
    for n in (0, 1, 5):
        native, plain = np.zeros(4), np.zeros(4)
        x = 1.0 + np.arange(8.0)
        assert native_program(chosen, some_choices)(x, n, native) == chosen(x, n, plain)
        np.testing.assert_array_equal(native, plain)


def unknown(x: Floats) -> float:
    return undefined(x)  # type: ignore[name-defined]  # noqa: F821


def listing(x: Floats) -> float:
    found = [x[0]]
    return found[0]


def changing(x: Floats) -> float:
    a = 1
    a = x[0]
    return a


def twice(x: Floats) -> float:
    a = b = x[0]
    return a + b


def searching(x: Floats) -> float:
    for k in range(3):
        if x[k] > 0.0:
            break
    else:
        return 1.0
    return 0.0


def by_name(x: Floats) -> float:
    return noted(x, k=1)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (twice, "one variable at a time, not a = b"),
        (searching, "loops have no else"),
        (by_name, r"by place, not as in noted\(x, k=1\)"),
        (unknown, "no program is named undefined"),
        (listing, r"no \[x\[0\]\]"),
        (changing, "float where int is expected"),
    ],
)
def test_what_programs_do_not_have_is_told(fn, message):
    with pytest.raises(ProgramError, match=message):
        module_of(fn)


def test_the_program_of_timing_has_no_symbols_from_outside():
    """So that it is linked without LLVM (`runtime/elf.py`)."""
    text = module_of(time_paths).text()
    assert not [line for line in text.splitlines() if line.startswith("declare") and "@llvm." not in line]
