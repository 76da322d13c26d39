"""LLVM text of the expressions in a sequential program: names, operations, calls, and the functions on vectors of `programs.py`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..runtime.bound import RECORD
from .sequential_module import ARRAYS, LLVM, Module, ProgramError, Value, number, parameters, returned

_ORDERED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_FLOAT = {ast.Add: "fadd contract", ast.Sub: "fsub contract", ast.Mult: "fmul contract", ast.Div: "fdiv"}
_INT = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem"}


class Expressions:
    """The lines of a function, and its local variables; every expression appends its instructions."""

    def __init__(self, module: Module, fn: Callable[..., Any]) -> None:
        assert isinstance(fn, FunctionType)
        self.module, self.fn, self.globals = module, fn, fn.__globals__
        self.slots: dict[str, Value] = {}
        self.allocated: list[str] = []
        self.lines: list[str] = []
        self.count = 0

    # text

    def name(self, hint: str = "t") -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def put(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def label(self, label: str) -> None:
        self.lines += [f"br label %{label}", f"{label}:"]

    def jump(self, label: str) -> None:
        """A jump to a label; what follows is never reached."""
        self.lines += [f"br label %{label}", f"{self.name('dead')[1:]}:"]

    def slot(self, name: str, kind: str) -> str:
        place = f"%var.{name}"
        self.slots[name] = (kind, place)
        self.allocated.append(f"{place} = alloca {LLVM[kind]}, align 64")
        return place

    # expressions

    def expression(self, node: ast.expr) -> Value:
        method: Any = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise ProgramError(f"{self.fn.__name__}: programs have no {ast.unparse(node)}")
        found: Value = method(node)
        return found

    def truth(self, node: ast.expr) -> str:
        kind, value = self.expression(node)
        if kind != "bool":
            raise ProgramError(f"{self.fn.__name__}: {ast.unparse(node)} is no truth")
        return value

    def cast(self, value: Value, kind: str) -> str:
        have, name = value
        if have == kind:
            return name
        if have == "int" and kind == "float":
            return self.put(f"sitofp i64 {name} to double")
        if have in ("int", "float") and kind == "vector":
            return self.splat(self.cast(value, "float"))
        raise ProgramError(f"{self.fn.__name__}: {have} where {kind} is expected, {name}")

    def splat(self, name: str) -> str:
        one = self.put(f"insertelement <8 x double> poison, double {name}, i32 0")
        return self.put(f"shufflevector <8 x double> {one}, <8 x double> poison, <8 x i32> zeroinitializer")

    def of_Constant(self, node: ast.Constant) -> Value:
        return self.constant(node.value)

    def constant(self, x: Any) -> Value:
        if isinstance(x, bool | np.bool_):
            return "bool", "true" if x else "false"
        if isinstance(x, int | np.integer):
            return "int", str(int(x))
        if isinstance(x, float | np.floating):
            return "float", number(float(x))
        raise ProgramError(f"{self.fn.__name__}: {x!r} is no number")

    def of_Name(self, node: ast.Name) -> Value:
        if node.id in self.slots:
            kind, place = self.slots[node.id]
            return (kind, place) if kind in ARRAYS else (kind, self.put(f"load {LLVM[kind]}, ptr {place}"))
        found = self.globals.get(node.id)
        if found is None:
            raise ProgramError(f"{self.fn.__name__}: nothing is named {node.id}")
        return self.module.table(found) if isinstance(found, np.ndarray) else self.constant(found)

    def element(self, kind: str, base: str, index: Value) -> str:
        item = "double" if kind == "floats" else "i64"
        return self.put(f"getelementptr {item}, ptr {base}, i64 {self.cast(index, 'int')}")

    def of_Subscript(self, node: ast.Subscript) -> Value:
        kind, base = self.expression(node.value)
        place = self.element(kind, base, self.expression(node.slice))
        return (
            ("float", self.put(f"load double, ptr {place}, align 8"))
            if kind == "floats"
            else ("int", self.put(f"load i64, ptr {place}, align 8"))
        )

    def together(self, *values: Value) -> tuple[str, list[str]]:
        """Values as one type."""
        kind = self.widest(*values)
        return kind, [self.cast(x, kind) for x in values]

    def widest(self, *values: Value) -> str:
        """The type that all of them can have."""
        for kind in ("vector", "mask", "float", "int", "bool"):
            if any(x[0] == kind for x in values):
                return kind
        raise ProgramError(f"{self.fn.__name__}: {values}")

    def of_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.expression(node.left), self.expression(node.right)
        if "mask" in (left[0], right[0]) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            word = "and" if isinstance(node.op, ast.BitAnd) else "or"
            return "mask", self.put(f"{word} <8 x i1> {left[1]}, {right[1]}")
        kind, (x, y) = self.together(left, right)
        if kind == "int" and isinstance(node.op, ast.Div):
            kind, x, y = "float", self.cast(left, "float"), self.cast(right, "float")
        words = _INT if kind == "int" else _FLOAT
        if type(node.op) not in words:
            raise ProgramError(f"{self.fn.__name__}: {ast.unparse(node)} of {kind}")
        return kind, self.put(f"{words[type(node.op)]} {LLVM[kind]} {x}, {y}")

    def of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        kind, x = self.expression(node.operand)
        if isinstance(node.op, ast.USub):
            if kind == "int":
                return kind, str(-int(x)) if x.lstrip("-").isdigit() else self.put(f"sub i64 0, {x}")
            return kind, self.put(f"fneg {LLVM[kind]} {x}")
        if isinstance(node.op, ast.Not) and kind == "bool":
            return kind, self.put(f"xor i1 {x}, true")
        if isinstance(node.op, ast.Invert) and kind == "mask":
            return kind, self.put(f"xor <8 x i1> {x}, splat (i1 true)")
        raise ProgramError(f"{self.fn.__name__}: {ast.unparse(node)}")

    def of_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            raise ProgramError(f"{self.fn.__name__}: compare two at a time, not {ast.unparse(node)}")
        kind, (x, y) = self.together(self.expression(node.left), self.expression(node.comparators[0]))
        word = _ORDERED[type(node.ops[0])]
        if kind in ("int", "bool"):
            return "bool", self.put(f"icmp {word if word in ('eq', 'ne') else 's' + word} {LLVM[kind]} {x}, {y}")
        word = "une" if word == "ne" else "o" + word
        return ("mask" if kind == "vector" else "bool"), self.put(f"fcmp {word} {LLVM[kind]} {x}, {y}")

    def of_BoolOp(self, node: ast.BoolOp) -> Value:
        """Later parts are looked at only if they decide, as in Python."""
        place, end = self.name("truth"), self.name("end")[1:]
        self.allocated.append(f"{place} = alloca i1")
        for k, part in enumerate(node.values):
            value = self.truth(part)
            self.lines.append(f"store i1 {value}, ptr {place}")
            if k + 1 < len(node.values):
                after = self.name("after")[1:]
                way = (after, end) if isinstance(node.op, ast.And) else (end, after)
                self.lines += [f"br i1 {value}, label %{way[0]}, label %{way[1]}", f"{after}:"]
        self.label(end)
        return "bool", self.put(f"load i1, ptr {place}")

    def of_IfExp(self, node: ast.IfExp) -> Value:
        """The side that is taken, and only it is computed, as in Python: the other may read outside an array, or call what must not run."""
        test = self.truth(node.test)
        then, other, end = (self.name(x)[1:] for x in ("then", "else", "end"))
        self.lines.append(f"br i1 {test}, label %{then}, label %{other}")
        (x, first), (y, second) = self.aside(node.body), self.aside(node.orelse)
        kind, place = self.widest(x, y), self.name("choice")
        self.allocated.append(f"{place} = alloca {LLVM[kind]}, align 64")
        for label, lines, value in ((then, first, x), (other, second, y)):
            self.lines += [f"{label}:", *lines]
            self.lines += [f"store {LLVM[kind]} {self.cast(value, kind)}, ptr {place}", f"br label %{end}"]
        self.lines.append(f"{end}:")
        return kind, self.put(f"load {LLVM[kind]}, ptr {place}")

    def aside(self, node: ast.expr) -> tuple[Value, list[str]]:
        """An expression, and its lines, which are not appended."""
        before, self.lines = self.lines, []
        value = self.expression(node)
        lines, self.lines = self.lines, before
        return value, lines

    def of_Call(self, node: ast.Call) -> Value:
        name = ast.unparse(node.func)
        if node.keywords:
            raise ProgramError(f"{self.fn.__name__}: arguments are given by place, not as in {ast.unparse(node)}")
        special: Any = getattr(self, f"call_{name}", None)
        if special is not None:
            found: Value = special(*(self.expression(x) for x in node.args))
            return found
        fn = self.globals.get(name)
        if not callable(fn):
            raise ProgramError(f"{self.fn.__name__}: no program is named {name}")
        self.module.ask(fn)
        wanted, result = parameters(fn), returned(fn)
        if len(wanted) != len(node.args):
            raise ProgramError(f"{self.fn.__name__}: {name} takes {len(wanted)} arguments, not {len(node.args)}")
        given = [f"{LLVM[k]} {self.cast(self.expression(x), k)}" for x, (_, k) in zip(node.args, wanted, strict=True)]
        call = f"call {'void' if result == 'none' else LLVM[result]} @{name}({', '.join(given)})"
        if result == "none":
            self.lines.append(call)
            return "none", ""
        return result, self.put(call)

    def call_float(self, x: Value) -> Value:
        return "float", self.cast(x, "float")

    def call_int(self, x: Value) -> Value:
        return "int", x[1] if x[0] == "int" else self.put(f"fptosi double {x[1]} to i64")

    def intrinsic(self, name: str, x: Value) -> Value:
        kind = "vector" if x[0] == "vector" else "float"
        suffix = "v8f64" if kind == "vector" else "f64"
        return kind, self.put(f"call {LLVM[kind]} @llvm.{name}.{suffix}({LLVM[kind]} {self.cast(x, kind)})")

    def call_sqrt(self, x: Value) -> Value:
        return self.intrinsic("sqrt", x)

    def call_abs(self, x: Value) -> Value:
        return self.intrinsic("fabs", x)

    def extreme(self, word: str, x: Value, y: Value) -> Value:
        kind, (a, b) = self.together(x, y)
        test = f"icmp s{word} i64" if kind == "int" else f"fcmp o{word} {LLVM[kind]}"
        chosen = self.put(f"{test} {b}, {a}")
        mask = "<8 x i1>" if kind == "vector" else "i1"
        return kind, self.put(f"select {mask} {chosen}, {LLVM[kind]} {b}, {LLVM[kind]} {a}")

    def call_min(self, x: Value, y: Value) -> Value:
        return self.extreme("lt", x, y)

    def call_max(self, x: Value, y: Value) -> Value:
        return self.extreme("gt", x, y)

    call_minimum, call_maximum = call_min, call_max

    def call_where(self, test: Value, x: Value, y: Value) -> Value:
        return "vector", self.put(
            f"select <8 x i1> {test[1]}, <8 x double> {self.cast(x, 'vector')}, <8 x double> {self.cast(y, 'vector')}"
        )

    def call_load(self, array: Value, index: Value) -> Value:
        return "vector", self.put(f"load <8 x double>, ptr {self.element('floats', array[1], index)}, align 8")

    def call_store(self, array: Value, index: Value, x: Value) -> Value:
        self.lines.append(f"store <8 x double> {self.cast(x, 'vector')}, ptr {self.element('floats', array[1], index)}, align 8")
        return "none", ""

    def call_splat(self, x: Value) -> Value:
        return "vector", self.cast(x, "vector")

    def call_least(self, x: Value) -> Value:
        return "float", self.put(f"call nnan double @llvm.vector.reduce.fmin.v8f64(<8 x double> {x[1]})")

    def call_largest(self, x: Value) -> Value:
        return "float", self.put(f"call nnan double @llvm.vector.reduce.fmax.v8f64(<8 x double> {x[1]})")

    def call_total(self, x: Value) -> Value:
        zero = number(0.0)
        return "float", self.put(f"call reassoc double @llvm.vector.reduce.fadd.v8f64(double {zero}, <8 x double> {x[1]})")

    def call_some(self, x: Value) -> Value:
        return "bool", self.put(f"call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> {x[1]})")

    def bound(self, kernels: Value, which: Value) -> list[str]:
        """The record of a bound function (`runtime.bound`)."""
        first = self.put(f"getelementptr [{RECORD} x ptr], ptr {kernels[1]}, i64 {self.cast(which, 'int')}")
        places = [self.put(f"getelementptr ptr, ptr {first}, i64 {k}") for k in range(RECORD)]
        return [self.put(f"load ptr, ptr {place}, align 8") for place in places]

    def call_run(self, kernels: Value, which: Value, start: Value, stop: Value) -> Value:
        function, _, *arrays = self.bound(kernels, which)
        given = ", ".join([*(f"ptr {x}" for x in arrays[:4]), *(f"i64 {self.cast(x, 'int')}" for x in (start, stop))])
        return "int", self.put(f"zext i32 {self.put(f'call i32 {function}({given})')} to i64")

    def call_repeat(self, kernels: Value, which: Value, steps: Value, rows: Value) -> Value:
        _, function, *arrays = self.bound(kernels, which)
        given = ", ".join(
            [*(f"ptr {x}" for x in arrays), f"i64 {self.cast(steps, 'int')}", "i64 0", f"i64 {self.cast(rows, 'int')}"]
        )
        return "int", self.put(f"zext i32 {self.put(f'call i32 {function}({given})')} to i64")
