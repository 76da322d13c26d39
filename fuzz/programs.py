"""Random sequential programs (`coadjoint.kernel.programs`): machine code against plain Python, to the last bit.

Numbers are eighths of bounded size, and only they are multiplied, so that no operation rounds and a branch cannot depend on how.
Some inputs are NaN or infinite.
"""

from __future__ import annotations

import linecache
import traceback
from types import FunctionType
from typing import Any

import numpy as np

from coadjoint.kernel import programs
from coadjoint.kernel.programs import _Code, _compiled

SIZE = 16
INPUTS = 4
HEAD = """
from coadjoint.kernel.programs import Floats, Ints, empty, largest, least, load, maximum, minimum, some, splat, sqrt, store, total, where

TABLE = np.arange(-8, 8) / 4.0
PLACES = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 0])
FACTOR = 0.5


def kept(x: float) -> float:
    if not abs(x) < 4096.0:
        return 1.0
    return float(int(x * 8.0)) / 8.0


def whole(x: float) -> int:
    return int(abs(x)) if abs(x) < 1000.0 else 3


def pushed(out: Floats, i: int, x: float) -> float:
    out[i % 16] = x
    return x
"""


class Writer:
    """The text of a program."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.loops = self.counters = 0
        self.held: set[str] = set()

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    # expressions

    def leaf(self) -> str:
        return str(
            self.pick(
                "a",
                f"f{self.rng.integers(4)}",
                f"f{self.rng.integers(4)}",
                f"x[{self.index()}]",
                f"out[{self.index()}]",
                f"TABLE[{self.index()}]",
                "FACTOR",
                repr(float(self.rng.integers(-20, 20)) / 8),
                f"float(i{self.rng.integers(3)})",
            )
        )

    def index(self) -> str:
        return str(
            self.pick(f"{self.rng.integers(SIZE)}", f"i{self.rng.integers(3)} % 16", f"PLACES[i{self.rng.integers(3)} % 16]")
        )

    def number(self, depth: int = 2) -> str:
        """A number; products and quotients are of leaves."""
        if not depth:
            return self.leaf()
        form = self.pick(
            "({x} + {y})",
            "({x} - {y})",
            "({x} + {y})",
            "{a} * {b}",
            "kept({a} / (abs({b}) + 0.5))",
            "kept(sqrt(abs({a})))",
            "min({x}, {y})",
            "max({x}, {y})",
            "-{a}",
            "({x} if {test} else {y})",
            "(x[{i} * 1000000] if {i} < 1 else {x})",
            "pushed(out, {i}, kept({x}))",
        )
        x, y, test = (self.number(depth - 1), self.number(depth - 1), self.truth(depth - 1))
        return str(form.format(x=x, y=y, a=self.leaf(), b=self.leaf(), test=test, i=self.whole(depth - 1)))

    def whole(self, depth: int = 1) -> str:
        i, j = f"i{self.rng.integers(3)}", f"i{self.rng.integers(3)}"
        form = self.pick(
            "{i} + {j}", "{i} * 2", "{i} % 7", "{i} // 2", "max({i} - {j}, 0)", "min({i}, {j})", "k[0] % 5 + k[1]", "4", "i1"
        )
        if depth and self.rng.random() < 0.3:
            form = self.pick("whole({x})", "({i} if {test} else {j})").format(
                i="{i}", j="{j}", x=self.number(depth - 1), test=self.truth(depth - 1)
            )
        return "(" + str(form).format(i=i, j=j) + ")"

    def truth(self, depth: int = 2) -> str:
        sign = self.pick("<", "<=", ">", ">=", "==", "!=")
        if not depth or self.rng.random() < 0.5:
            return f"{self.leaf()} {sign} {self.leaf()}" if self.rng.random() < 0.7 else f"i0 {sign} {self.whole(0)}"
        form = self.pick("({x} and {y})", "({x} or {y})", "not ({x})", "({a} {sign} {b})")
        x, y, a = self.truth(depth - 1), self.truth(depth - 1), self.number(depth - 1)
        return str(form.format(x=x, y=y, a=a, sign=sign, b=self.leaf()))

    def vector(self) -> str:
        v, w = f"v{self.rng.integers(2)}", f"v{self.rng.integers(2)}"
        e = self.pick(
            *(f"{v} + {w}", f"{v} - {self.leaf()}", f"{v} * {self.pick('0.5', '2.0', '-1.0')}", f"-{v}", f"abs({v})"),
            *(f"load(x, i{self.rng.integers(3)} % 8)", f"splat({self.leaf()})", f"minimum({v}, {w})", f"maximum({v}, {w})"),
            *(
                f"where({self.mask()}, {v}, {w})",
                f"where({self.mask()}, {self.leaf()}, {w})",
                f"load(buffer, i{self.rng.integers(3)} % 8)",
            ),
        )
        return f"{e}"

    def mask(self) -> str:
        v, w, sign = f"v{self.rng.integers(2)}", f"v{self.rng.integers(2)}", self.pick("<", "<=", ">", ">=", "==", "!=")
        one = f"({v} {sign} {self.pick(w, '1.0', self.leaf())})"
        return one if self.rng.random() < 0.6 else f"({one} {self.pick('&', '|')} ~({w} < 0.5))"

    # statements

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, depth: int, length: int) -> None:
        for _ in range(length):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        kinds = ["float"] * 4 + ["int", "out", "vector", "vector", "reduce", "store", "augment"]
        kinds += ["if", "for", "while"] * (depth < 4) + ["jump"] * (self.loops > 0) + ["return"] * (depth > 1)
        getattr(self, f"_{self.pick(*kinds)}")(depth)

    def _float(self, depth: int) -> None:
        self.say(depth, f"f{self.rng.integers(4)} = kept({self.number()})")

    def _int(self, depth: int) -> None:
        self.say(depth, f"i{self.rng.integers(3)} = ({self.whole()}) % 1000")

    def _out(self, depth: int) -> None:
        self.say(depth, f"{self.pick('out', 'out', 'buffer')}[{self.index()}] = kept({self.number()})")

    def _augment(self, depth: int) -> None:
        self.say(depth, f"out[{self.index()}] {self.pick('+=', '-=')} {self.leaf()}")
        self.say(depth, f"f0 {self.pick('+=', '-=')} {self.leaf()}")
        self.say(depth, "f0 = kept(f0)")

    def _vector(self, depth: int) -> None:
        name = f"v{self.rng.integers(2)}"
        self.say(depth, f"{name} = {self.vector()}")
        self.say(depth, f"{name} = where(abs({name}) < 256.0, {name}, {self.pick('0.25', 'splat(0.5)')})")

    def _reduce(self, depth: int) -> None:
        v = f"v{self.rng.integers(2)}"
        form = self.pick(f"least({v})", f"largest({v})", f"total({v})", f"(1.0 if some({self.mask()}) else 2.0)")
        self.say(depth, f"f{self.rng.integers(4)} = kept({form})")

    def _store(self, depth: int) -> None:
        self.say(depth, f"store({self.pick('buffer', 'out')}, i{self.rng.integers(3)} % 8, v{self.rng.integers(2)})")

    def _if(self, depth: int) -> None:
        self.say(depth, f"if {self.truth()}:")
        self.block(depth + 1, int(self.rng.integers(1, 4)))
        if self.rng.random() < 0.3:
            self.say(depth, f"elif {self.truth()}:")
            self.block(depth + 1, int(self.rng.integers(1, 3)))
        if self.rng.random() < 0.5:
            self.say(depth, "else:")
            self.block(depth + 1, int(self.rng.integers(1, 3)))

    def _for(self, depth: int) -> None:
        self.counters += 1
        i = self.pick(f"j{self.counters}", f"i{self.rng.integers(3)}")
        spans = self.pick(
            f"{self.rng.integers(5)}", f"i{self.rng.integers(3)} % 5", f"1, n, {self.rng.integers(2, 6)}", "6, -1, -2", "4, 1, -1"
        )
        self.say(depth, f"for {i} in range({spans}):")
        self._body(depth)

    def _while(self, depth: int) -> None:
        self.counters += 1
        counter = f"c{self.counters}"
        self.say(depth, f"{counter} = 0")
        self.say(depth, f"while {counter} < {self.rng.integers(1, 6)} and {self.truth()}:")
        self.say(depth + 1, f"{counter} += 1")
        self._body(depth)

    def _body(self, depth: int) -> None:
        self.loops += 1
        self.block(depth + 1, int(self.rng.integers(1, 4)))
        self.loops -= 1

    def _jump(self, depth: int) -> None:
        self.say(depth, f"if {self.truth()}:")
        self.say(depth + 1, self.pick("break", "continue"))

    def _return(self, depth: int) -> None:
        self.say(depth, f"if {self.truth()} and {self.truth()}:")
        self.say(depth + 1, f"return {self.number()}")

    def text(self) -> str:
        self.say(1, f"buffer = empty({SIZE})")
        self.say(1, "store(buffer, 0, splat(0.5))")
        self.say(1, "store(buffer, 8, load(x, 0))")
        for k in range(4):
            self.say(1, f"f{k} = kept(x[{k}])")
        for k in range(3):
            self.say(1, f"i{k} = {self.rng.integers(9)}")
        for k in range(2):
            self.say(1, f"v{k} = load(buffer, {k})")
        self.block(1, int(self.pick(5, 15, 40)))
        self.say(1, f"return {self.number()}")
        return (
            HEAD + "\n\ndef program(x: Floats, k: Ints, n: int, a: float, out: Floats) -> float:\n" + "\n".join(self.lines) + "\n"
        )


def made(seed: int) -> FunctionType:
    """The program of a seed, whose source `inspect` finds."""
    text, name = Writer(seed).text(), f"<program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"np": np, "__name__": "fuzz.programs"}
    exec(compile(text, name, "exec"), space)
    result: FunctionType = space["program"]
    return result


def inputs(rng: np.random.Generator, wild: bool) -> tuple[Any, ...]:
    x = rng.integers(-40, 40, SIZE) / 8.0
    if wild:
        x[rng.integers(0, SIZE, 3)] = rng.choice([np.nan, np.inf, -np.inf, -0.0], 3)
    return x, rng.integers(0, 9, 2), int(rng.integers(1, 9)), float(rng.integers(-8, 8)) / 8, rng.integers(-8, 8, SIZE) / 8.0


def run(seed: int) -> dict[str, int]:
    """One random program, with a few inputs."""
    program = made(seed)
    try:
        code = _Code("program", *_compiled(program))
    except Exception as error:
        traceback.print_exc()
        print(f"FAILED programs --seed {seed}: {type(error).__name__}: {error}")
        return {"FAILED to compile": 1}
    tally: dict[str, int] = {}
    for n in range(INPUTS):
        given = inputs(np.random.default_rng([seed, n]), wild=n % 2 == 1)
        other = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in given)
        wanted = programs._as_written(program)(*given)
        found = code.call(*other)
        same = all(
            np.array_equal(np.asarray(x), np.asarray(y), equal_nan=True)
            for x, y in zip((found, *other), (wanted, *given), strict=True)
        )
        outcome = "the same" if same else "FAILED"
        if not same:
            print(
                f"FAILED programs --seed {seed}: input {n}: {found!r}, as written {wanted!r}; out {other[-1]}, as written {given[-1]}"
            )
        tally[outcome] = tally.get(outcome, 0) + 1
    return tally
