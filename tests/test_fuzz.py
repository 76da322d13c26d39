"""A fixed thousand of the fuzzers' cheap cases; `python -m fuzz` runs any number, and the slow executions more often."""

import pytest

from fuzz import __main__ as command
from fuzz import _calls, functions, graphs, kernels, mutation, programs, readers


def tally(run, seeds):
    total = {}
    for seed in seeds:
        for outcome, count in run(seed).items():
            total[outcome] = total.get(outcome, 0) + count
    return total


def none_failed(total):
    return not [outcome for outcome in total if outcome.startswith("FAILED")]


@pytest.fixture
def without_compiling(monkeypatch):
    for module in (functions, kernels):
        for name in ("NATIVE", "C", "JAX"):
            monkeypatch.setattr(module, name, 10**9)
    monkeypatch.setattr(kernels, "CALLED", 10**9)


@pytest.mark.parametrize("first", range(0, 800, 200))
def test_graphs(first):
    assert tally(graphs.run, range(first, first + 200)) == {"equal": 200}


def test_functions(without_compiling):
    total = tally(functions.run, range(1, 151))
    assert none_failed(total)
    assert total["NumPy"] == 150


def test_kernels(without_compiling):
    total = tally(kernels.run, range(1, 51))
    assert none_failed(total)
    assert total["as written"] > 40


def test_found_before(without_compiling):
    """Values that are equal but for rounding are compared by ==; 0 // 0; an ill-conditioned mass matrix as written."""
    assert none_failed(tally(functions.run, (710244, 710795, 711929)))
    assert none_failed(tally(kernels.run, (1055555,)))


@pytest.mark.native
def test_compiled_functions(monkeypatch):
    monkeypatch.setattr(functions, "JAX", 10**9)
    total = tally(functions.run, range(0, 24, 8))
    assert none_failed(total)
    assert total["native"] == 3


@pytest.mark.native
def test_sequential_programs():
    """Both once computed the side of a conditional that was not taken."""
    assert tally(programs.run, (3, 18)) == {"the same": 2 * programs.INPUTS}


def test_the_command(capsys):
    assert command.main(["graphs", "--cases", "3", "--seed", "7"]) == 0
    assert "graphs: 3 cases" in capsys.readouterr().out


@pytest.mark.slow
def test_public_functions():
    """Every sound call that the fuzzer starts from works for a function that is cheap, and odd arguments are refused by name."""
    assert len(_calls.calls()) > 240
    for name in ("gravity_force", "lqr", "lie.se3.log", "constraints.constraint_rank", "redundancy.manipulability", "Robot"):
        fn, given = _calls.calls()[name]
        fn(**given)


def test_readers():
    """A few of every kind of file."""
    total = tally(readers.run, range(20_000_000, 20_000_030))
    assert none_failed(total)


@pytest.mark.parametrize("seed", [20000325, 20002456, 20002960, 20008022, 20011968, 20031705])
def test_files_found_before(seed):
    """A root of xacro; lengths that overflow in a page and in pivots; a name too long to include; a URDF with a name that looks like
    xacro; inertias that overflow when links are merged.
    """
    assert none_failed(readers.run(seed))


def test_mutants_are_made_of_what_is_there():
    """Every module of the mutation runs, and every file of tests that judges it, exists; of the folders that it covers, all modules."""
    known = {mutation.PACKAGE / name for name in mutation.TESTS}
    assert not [path for path in known if not path.is_file()]
    assert not [
        name
        for tests in mutation.TESTS.values()
        for name in tests.split()
        if not (mutation.ROOT / f"tests/test_{name}.py").is_file()
    ]
    for folder in ("lie", "dynamics", *(f"kernel/{name}" for name in ("passes", "trace", "schedule", "emit"))):
        there = {path for path in (mutation.PACKAGE / folder).glob("*.py") if path.name != "__init__.py"}
        assert there <= known, there - known
