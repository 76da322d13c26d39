"""Public functions with arguments of the wrong kind: the outcome is a result, or an error of ours.

A sound call of a random function gets one or two odd arguments, also for parameters that the sound call leaves out. The seeds below
`len(singles())` are every single odd argument of every parameter once, in a random order; larger ones are drawn at random.
"""

from __future__ import annotations

import inspect
import random
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.errors import CoadjointError

from . import _isolated
from ._calls import CART, R, calls

LONGEST = 40.0
"""Seconds of computing: motions are optimized and logs are fitted."""
UNTOUCHED = {"out", "threads", "path"}
"""Parameters of which `tests/test_arguments.py` has the cases; names of files to write."""


class OwnError(Exception):
    """What a function of the caller's raises, which is not for us to judge."""


class Own:
    """A function of the caller's that has no signature, as many written in C, and makes an error of what it is given."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    @property
    def __signature__(self) -> Any:
        raise ValueError("no signature")

    def __call__(self, *args: Any, **options: Any) -> Any:
        try:
            return self.fn(*args, **options)
        except Exception as error:
            raise OwnError(str(error)) from None


KEYS = ("q", "time", "masses", "lengths", "link1", "joint1", "tip", "velocity")
"""Keys that dictionaries among the arguments have: names of arrays, of sets of parameters, of what a robot consists of, of limits."""


def odd() -> list[Any]:
    """Arguments that most functions have no use for; made anew, because some can be used up or changed."""
    return [
        *({key: x} for key in KEYS for x in (1, "x", None, [], [[1]], np.full(2, np.nan), object())),
        *(None, True, False, 0, -1, 5, 1.5, -0.0, 1e300, 1e-300, float("nan"), float("inf"), 1j, 10**9, -(10**9), 10**50, 10**400),
        *(
            "",
            "x",
            "q",
            "M",
            "tip",
            "space",
            "revolute",
            "nope",
            "\0",
            "a" * 10000,
            "\ud800",
            b"bytes",
            np.str_("tip"),
            np.float32(1),
        ),
        *(
            [],
            {},
            (),
            set(),
            [[]],
            [1, "a"],
            [[1], [1, 2]],
            [0, 0, 0],
            [1e300] * 3,
            {"a": 1},
            {1: 2},
            {1, 2},
            range(3),
            iter([1, 2]),
        ),
        *(np.zeros(n) for n in (0, 1, 2, 3, 6, 7)),
        *(np.zeros(shape) for shape in ((0, 2), (2, 2), (5, 2), (3, 4, 4), (4, 4), (6, 6), (2, 2, 2), (1,) * 40)),
        *(
            np.full(2, np.nan),
            np.full((3, 2), np.inf),
            np.eye(4) * 2,
            np.full((4, 4), np.nan),
            np.full(2, 1e300),
            np.full(2, 1e-300),
        ),
        *(
            np.array("a"),
            np.array([object()]),
            np.zeros(2, complex),
            np.ones(2, bool),
            np.ones(2, np.float16),
            np.array(["a", "b"]),
        ),
        *(
            np.ma.masked_array([1.0, 2.0], [True, False]),
            np.zeros(2, [("a", float)]),
            np.array(0.5),
            np.array(["2020-01-01"], "M8[D]"),
        ),
        *(
            object(),
            object,
            NotImplemented,
            ...,
            slice(None),
            Path("none"),
            Own(type),
            Own(int),
            Own(len),
            lambda *a: None,
            lambda: 0,
            lambda *a: "x",
            R,
            CART,
        ),
        *(cj, cj.Joint.revolute(), ValueError("x"), (x for x in "ab"), [R, CART], [None], [lambda: 0], memoryview(b"ab")),
    ]


def parameters(name: str) -> list[str]:
    """The parameters of a function that get odd arguments."""
    every = inspect.signature(calls()[name][0]).parameters.values()
    return [p.name for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in UNTOUCHED]


@cache
def singles() -> list[tuple[str, str, int]]:
    """Every function, parameter and number of an odd argument, in a random order."""
    found = [(name, key, k) for name in calls() for key in parameters(name) for k in range(len(odd()))]
    random.Random(0).shuffle(found)
    return found


def drawn(seed: int) -> tuple[str, dict[str, Any]]:
    """The function of a seed, and its odd arguments."""
    if seed < len(singles()):
        name, key, k = singles()[seed]
        return name, {key: odd()[k]}
    r = random.Random(seed)
    name = r.choice(list(calls()))
    given, changed = calls()[name][1], {}
    for _ in range(r.choice([1, 1, 1, 2])):
        if choice := parameters(name):
            key = r.choice(choice if r.random() < 0.3 else [key for key in choice if key in given] or choice)
            changed[key] = r.choice(odd())
    return name, changed


def outcome(seed: int) -> str:
    """What became of the call of a seed: `a result` or `refused`; a defect begins with FAILED."""
    name, changed = drawn(seed)
    fn, given = calls()[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            fn(**given | changed)
        except CoadjointError:
            return "refused"
        except OwnError:
            return "an error of the caller's function"
        except Exception as error:
            ours = [x for x in traceback.extract_tb(error.__traceback__) if "coadjoint" in x.filename and "fuzz" not in x.filename]
            where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "the call"
            told = " ".join(f"{type(error).__name__}: {error}".split())[:100]
            return f"FAILED: {name}({', '.join(f'{k}={_shown(v)}' for k, v in changed.items())}): {told} at {where}"
    return "a result"


def _shown(x: Any) -> str:
    return " ".join(repr(x).encode("ascii", "backslashreplace").decode().split())[:50]


def run(seed: int) -> dict[str, int]:
    """The outcome of one seed, in this process."""
    found = outcome(seed)
    if found.startswith("FAILED"):
        print(f"seed {seed}: {found}")
    return {found: 1}


def run_all(first: int, count: int, seconds: float) -> int:
    """Many seeds in processes with limits; prints the tally and returns 1 if something failed."""
    calls()
    tally = _isolated.tallies(outcome, first, count, seconds, LONGEST)
    print(f"api: {sum(tally.values())} calls of {len(calls())} functions")
    for what, n in sorted(tally.items()):
        print(f"{n:10d}  {what}")
    return int(any(what.startswith("FAILED") for what in tally))
