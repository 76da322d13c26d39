"""A writer of LLVM IR as text: modules, functions, and instructions on vectors of lanes."""

from __future__ import annotations

import copy
import itertools
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field


@dataclass
class Module:
    """The functions of one module; declarations are added as they are needed."""

    declarations: set[str] = field(default_factory=set)
    definitions: dict[str, str] = field(default_factory=dict)
    constants: dict[str, dict[str, int]] = field(default_factory=dict)
    """The constants of each vector type's table, and their indices."""

    def define(self, name: str, text: str) -> None:
        """Add a global or a function unless that name is defined already."""
        self.definitions.setdefault(name, text)

    def text(self) -> str:
        """The whole module."""
        lines = [*sorted(self.declarations), *self.definitions.values(), "!1 = !{}"]
        for type_, table in self.constants.items():
            lines.append(f"{table_of(type_)} = internal constant [{len(table)} x {type_}] [")
            lines.append(",\n".join(f"{type_} {x}" for x in table) + "], align 64")
        return "\n".join([*lines, ""])


def table_of(type_: str) -> str:
    """The name of the table of constants of a type of vectors."""
    return "@constants_" + type_.strip("<>").replace(" x ", "_")


@dataclass(frozen=True)
class Lanes:
    """The type of every value of a kernel: a vector of `count` numbers of type float64 or float32."""

    dtype: str
    count: int

    @property
    def scalar(self) -> str:
        """LLVM's name of one number."""
        return "double" if self.dtype == "float64" else "float"

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return 64 if self.dtype == "float64" else 32

    @property
    def size(self) -> int:
        """Bytes of one number."""
        return self.bits // 8

    @property
    def type(self) -> str:
        """LLVM's name of a vector of numbers."""
        return f"<{self.count} x {self.scalar}>"

    @property
    def ints(self) -> str:
        """LLVM's name of a vector of integers of the same size."""
        return f"<{self.count} x i{self.bits}>"

    @property
    def bools(self) -> str:
        """LLVM's name of a vector of truth values."""
        return f"<{self.count} x i1>"

    @property
    def suffix(self) -> str:
        """The suffix of intrinsic functions of this type."""
        return f"v{self.count}f{self.bits}"

    def number(self, x: float) -> str:
        """One number in LLVM's exact notation."""
        if self.dtype == "float32":
            try:
                x = struct.unpack("f", struct.pack("f", x))[0]
            except OverflowError:
                x = float("inf") if x > 0 else float("-inf")
        return f"0x{struct.unpack('Q', struct.pack('d', x))[0]:016X}"

    def constant(self, x: float) -> str:
        """A vector of one number."""
        item = f"{self.scalar} {self.number(x)}"
        return "<" + ", ".join([item] * self.count) + ">"

    def integer(self, x: int) -> str:
        """A vector of one integer."""
        return "<" + ", ".join([f"i{self.bits} {x}"] * self.count) + ">"


class Body:
    """The body of one function, with a method for each instruction on vectors of lanes."""

    def __init__(self, module: Module, lanes: Lanes, fma: bool = True, rounding: bool = True) -> None:
        self.module = module
        self.lanes = lanes
        self.has_fma, self.has_rounding = fma, rounding
        self.lines: list[str] = []
        self.locals: list[str] = []
        self.block = "entry"
        self.own = lanes.type
        self._loaded: dict[tuple[str, str], str] = {}
        self._count = itertools.count(1)

    def view(self, lanes: Lanes) -> Body:
        """This body for instructions on vectors of another type; both append to the same lines."""
        other = copy.copy(self)
        other.lanes = lanes
        return other

    def new(self, text: str) -> str:
        """Emit an instruction; returns the name of its value."""
        name = f"%t{next(self._count)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Emit an instruction without value."""
        self.lines.append("  " + text)

    def fresh(self, word: str) -> str:
        """A new label."""
        return f"{word}{next(self._count)}"

    def local(self, type_: str, count: int, align: int) -> str:
        """Stack memory for the whole call of the function."""
        name = f"%t{next(self._count)}"
        self.locals.append(f"  {name} = alloca {type_}, i64 {count}, align {align}")
        return name

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.block = name
        self.lines.append(f"{name}:")

    def const(self, x: float) -> str:
        """A vector of one number.

        It is read from a table in memory, which LLVM folds into the instructions that use it; otherwise LLVM would broadcast each
        number by an instruction.
        """
        v = self.lanes
        if x == 0.0 or v.type != self.own:
            return v.constant(x)
        key = (self.block, v.number(x))
        if key not in self._loaded:
            table = self.module.constants.setdefault(v.type, {})
            place = table.setdefault(v.constant(x), len(table))
            width = v.count * v.size
            pointer = f"getelementptr (i8, ptr {table_of(v.type)}, i64 {place * width})"
            self._loaded[key] = self.new(f"load {v.type}, ptr {pointer}, align {width}, !invariant.load !1")
        return self._loaded[key]

    def op(self, name: str, *args: str) -> str:
        """An instruction whose operands are vectors of numbers."""
        return self.new(f"{name} {self.lanes.type} {', '.join(args)}")

    def iop(self, name: str, *args: str) -> str:
        """An instruction whose operands are vectors of integers."""
        return self.new(f"{name} {self.lanes.ints} {', '.join(args)}")

    def intrinsic(self, name: str, *args: str) -> str:
        """LLVM's intrinsic function of vectors of numbers."""
        v = self.lanes.type
        full = f"@llvm.{name}.{self.lanes.suffix}"
        self.module.declarations.add(f"declare {v} {full}({', '.join([v] * len(args))})")
        return self.new(f"call {v} {full}({', '.join(f'{v} {x}' for x in args)})")

    def fma(self, a: str, b: str, c: str) -> str:
        """a·b + c, rounded once where the processor can."""
        if self.has_fma:
            return self.intrinsic("fma", a, b, c)
        return self.op("fadd", self.op("fmul", a, b), c)

    def horner(self, x: str, coefficients: Sequence[float]) -> str:
        """The polynomial c₀ + c₁x + …"""
        value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.fma(value, x, self.const(c))
        return value

    def compare(self, relation: str, a: str, b: str) -> str:
        """A vector of truth values."""
        return self.op(f"fcmp {relation}", a, b)

    def select(self, condition: str, a: str, b: str) -> str:
        """a where the condition holds, else b."""
        v = self.lanes
        return self.new(f"select {v.bools} {condition}, {v.type} {a}, {v.type} {b}")

    def to_bits(self, x: str) -> str:
        """The bits of numbers as integers."""
        return self.new(f"bitcast {self.lanes.type} {x} to {self.lanes.ints}")

    def from_bits(self, x: str) -> str:
        """Numbers of these bits."""
        return self.new(f"bitcast {self.lanes.ints} {x} to {self.lanes.type}")

    def any(self, condition: str) -> str:
        """An i1 that is true if any lane of a vector of truth values is."""
        n = self.lanes.count
        word = self.new(f"bitcast {self.lanes.bools} {condition} to i{n}")
        return self.new(f"icmp ne i{n} {word}, 0")

    def shuffle(self, type_: str, a: str, b: str, mask: Iterable[int]) -> str:
        """A vector of elements of two vectors of one type, selected by index."""
        picked = ", ".join(f"i32 {k}" for k in mask)
        return self.new(f"shufflevector {type_} {a}, {type_} {b}, <{picked.count('i32')} x i32> <{picked}>")

    def load(self, type_: str, pointer: str, align: int) -> str:
        """Read a value."""
        return self.new(f"load {type_}, ptr {pointer}, align {align}")

    def store(self, type_: str, value: str, pointer: str, align: int) -> None:
        """Write a value."""
        self.do(f"store {type_} {value}, ptr {pointer}, align {align}")

    def offset(self, pointer: str, bytes_: int | str) -> str:
        """A pointer moved by bytes."""
        return self.new(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")

    def loop(
        self, start: str, stop: str, step: int, carried: Sequence[str], turn: Callable[[str, Sequence[str]], Sequence[str]]
    ) -> Sequence[str]:
        """for i from start while i < stop (i > stop, if the step is negative): carried = turn(i, carried)."""
        head, inside, after = self.fresh("head"), self.fresh("inside"), self.fresh("after")
        before, v = self.block, self.lanes.type
        self.do(f"br label %{head}")
        self.label(head)
        place = len(self.lines)
        index = f"%t{next(self._count)}"
        names = [f"%t{next(self._count)}" for _ in carried]
        go_on = f"%t{next(self._count)}"
        self.do(f"{go_on} = icmp {'slt' if step > 0 else 'sgt'} i64 {index}, {stop}")
        self.do(f"br i1 {go_on}, label %{inside}, label %{after}")
        self.label(inside)
        results = turn(index, names)
        following = self.new(f"add i64 {index}, {step}")
        phis = [f"  {index} = phi i64 [{start}, %{before}], [{following}, %{self.block}]"]
        for name, old, new in zip(names, carried, results, strict=True):
            phis.append(f"  {name} = phi {v} [{old}, %{before}], [{new}, %{self.block}]")
        self.lines[place:place] = phis
        self.do(f"br label %{head}")
        self.label(after)
        return names

    def function(self, header: str) -> str:
        """The function's text."""
        return "\n".join([f"{header} {{", "entry:", *self.locals, *self.lines, "}"])
