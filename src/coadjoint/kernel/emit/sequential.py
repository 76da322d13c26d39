"""LLVM text of sequential programs: functions in a small part of Python, with loops and branches on values (`programs.py`).

Every local variable is a slot on the stack, which LLVM's own passes turn into registers. Types are those of the first value that
a variable is given: float, int, bool, and vectors of eight floats or of eight truths.
"""

from __future__ import annotations

import ast
import functools
import inspect
import struct
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

WIDTH = 8
LLVM = {"float": "double", "int": "i64", "bool": "i1", "vector": "<8 x double>", "mask": "<8 x i1>", "floats": "ptr", "ints": "ptr"}
_ANNOTATED = {"float": "float", "int": "int", "bool": "bool", "None": "none", "Floats": "floats", "Ints": "ints"}
_ORDERED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_FLOAT = {ast.Add: "fadd contract", ast.Sub: "fsub contract", ast.Mult: "fmul contract", ast.Div: "fdiv"}
_INT = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem"}

Value = tuple[str, str]
"""A type and the name or constant in the text."""


class ProgramError(TypeError):
    """Something that these programs do not have."""


def module_text(entry: Callable[..., Any]) -> str:
    """The module of a program and of all it calls."""
    module = _Module()
    module.function(entry, exported=True)
    while module.waiting:
        module.function(module.waiting.pop(), exported=False)
    return module.text()


def parameters(fn: Callable[..., Any]) -> list[tuple[str, str]]:
    """(name, type) of a program's arguments."""
    return [(x.arg, _annotated(x.annotation)) for x in _tree(fn).args.args]


def returned(fn: Callable[..., Any]) -> str:
    """The type of a program's result."""
    return _annotated(_tree(fn).returns)


@functools.cache
def _tree(fn: Callable[..., Any]) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise ProgramError(f"{fn} is not written as a function")
    return tree


def _annotated(node: ast.expr | None) -> str:
    name = "None" if node is None or isinstance(node, ast.Constant) else ast.unparse(node)
    if name not in _ANNOTATED:
        raise ProgramError(f"{name} is no type of a program")
    return _ANNOTATED[name]


def number(x: float) -> str:
    """A double in LLVM's words, exactly."""
    return f"0x{struct.unpack('>Q', struct.pack('>d', x))[0]:016X}"


class _Module:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.tables: dict[int, tuple[str, str, Any]] = {}
        self.known: dict[str, Callable[..., Any]] = {}
        self.waiting: list[Callable[..., Any]] = []

    def function(self, fn: Callable[..., Any], exported: bool) -> None:
        self.known[fn.__name__] = fn
        self.parts.append(_Function(self, fn, exported).text())

    def ask(self, fn: Callable[..., Any]) -> None:
        if self.known.setdefault(fn.__name__, fn) is not fn:
            raise ProgramError(f"two programs are named {fn.__name__}")
        if not any(f"@{fn.__name__}(" in x.split("{", 1)[0] for x in self.parts) and fn not in self.waiting:
            self.waiting.append(fn)

    def table(self, array: np.ndarray) -> Value:
        """A constant array."""
        if id(array) not in self.tables:
            flat = np.ascontiguousarray(array).ravel()
            whole = flat.dtype.kind == "i"
            items = ", ".join(f"i64 {x}" if whole else f"double {number(float(x))}" for x in flat)
            name, kind = f"@table{len(self.tables)}", "i64" if whole else "double"
            text = f"{name} = internal constant [{len(flat)} x {kind}] [{items}], align 64"
            self.tables[id(array)] = (name, text, array)
        name = self.tables[id(array)][0]
        return ("ints" if array.dtype.kind == "i" else "floats"), name

    def text(self) -> str:
        head = [x[1] for x in self.tables.values()]
        declared = [
            "declare double @llvm.sqrt.f64(double)",
            "declare double @llvm.fabs.f64(double)",
            "declare <8 x double> @llvm.sqrt.v8f64(<8 x double>)",
            "declare <8 x double> @llvm.fabs.v8f64(<8 x double>)",
            "declare double @llvm.vector.reduce.fmin.v8f64(<8 x double>)",
            "declare double @llvm.vector.reduce.fmax.v8f64(<8 x double>)",
            "declare double @llvm.vector.reduce.fadd.v8f64(double, <8 x double>)",
            "declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)",
        ]
        return "\n".join(
            ["@context = global i64 0", *head, *declared, *self.parts, 'attributes #0 = { "no-builtins" nounwind }', ""]
        )


class _Function:
    def __init__(self, module: _Module, fn: Callable[..., Any], exported: bool) -> None:
        self.module, self.fn, self.tree = module, fn, _tree(fn)
        assert isinstance(fn, FunctionType)
        self.globals = fn.__globals__
        self.returns = returned(fn)
        self.slots: dict[str, Value] = {}
        self.allocated: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []
        self.exported = exported

    def text(self) -> str:
        arguments = []
        for name, kind in parameters(self.fn):
            arguments.append(f"{LLVM[kind]} %arg.{name}")
            if kind in ("floats", "ints"):
                self.slots[name] = (kind, f"%arg.{name}")
            else:
                self.lines.append(f"store {LLVM[kind]} %arg.{name}, ptr {self.slot(name, kind)}")
        self.block(self.tree.body)
        result = "void" if self.returns == "none" else LLVM[self.returns]
        self.lines.append({"none": "ret void", "float": "ret double 0.0"}.get(self.returns, f"ret {result} 0"))
        linkage = "" if self.exported else "internal "
        head = f"define {linkage}{result} @{self.fn.__name__}({', '.join(arguments)}) #0 {{\nentry:"
        return "\n".join([head, *self.allocated, *self.lines, "}"])

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
        """To a label; what follows is never reached."""
        self.lines += [f"br label %{label}", f"{self.name('dead')[1:]}:"]

    def slot(self, name: str, kind: str) -> str:
        place = f"%var.{name}"
        self.slots[name] = (kind, place)
        self.allocated.append(f"{place} = alloca {LLVM[kind]}, align 64")
        return place

    # statements

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            method: Any = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                raise ProgramError(f"{self.fn.__name__}: programs have no {ast.unparse(statement)}")
            method(statement)

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            raise ProgramError(f"{self.fn.__name__}: one variable at a time, not {ast.unparse(node)}")
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "empty":
            self.local_array(target, node.value)
            return
        self.assign(target, self.expression(node.value))

    def local_array(self, target: ast.expr, call: ast.Call) -> None:
        assert isinstance(target, ast.Name)
        size = eval(compile(ast.Expression(call.args[0]), "size", "eval"), dict(self.globals))  # a constant of the module
        self.allocated.append(f"%array.{target.id} = alloca [{int(size)} x double], align 64")
        self.slots[target.id] = ("floats", f"%array.{target.id}")

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        value = ast.BinOp(ast.parse(ast.unparse(node.target), mode="eval").body, node.op, node.value)
        self.assign(node.target, self.expression(value))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Subscript):
            kind, base = self.expression(target.value)
            place = self.element(kind, base, self.expression(target.slice))
            item = "double" if kind == "floats" else "i64"
            self.lines.append(f"store {item} {self.cast(value, 'float' if kind == 'floats' else 'int')}, ptr {place}, align 8")
            return
        if not isinstance(target, ast.Name):
            raise ProgramError(f"{self.fn.__name__}: {ast.unparse(target)} cannot be assigned")
        place = self.slots[target.id][1] if target.id in self.slots else self.slot(target.id, value[0])
        kind = self.slots[target.id][0]
        self.lines.append(f"store {LLVM[kind]} {self.cast(value, kind)}, ptr {place}")

    def do_Return(self, node: ast.Return) -> None:
        if node.value is None:
            self.lines.append("ret void")
        else:
            self.lines.append(f"ret {LLVM[self.returns]} {self.cast(self.expression(node.value), self.returns)}")
        self.lines.append(f"{self.name('dead')[1:]}:")

    def do_If(self, node: ast.If) -> None:
        other, end = (self.name(x)[1:] for x in ("else", "end"))
        then = self.name("then")[1:]
        self.lines += [f"br i1 {self.truth(node.test)}, label %{then}, label %{other}", f"{then}:"]
        self.block(node.body)
        self.lines += [f"br label %{end}", f"{other}:"]
        self.block(node.orelse)
        self.label(end)

    def do_While(self, node: ast.While) -> None:
        head, body, end = (self.name(x)[1:] for x in ("while", "body", "end"))
        self.label(head)
        self.lines += [f"br i1 {self.truth(node.test)}, label %{body}, label %{end}", f"{body}:"]
        self.loops.append((head, end))
        self.block(node.body)
        self.loops.pop()
        self.lines += [f"br label %{head}", f"{end}:"]

    def do_For(self, node: ast.For) -> None:
        call, target = node.iter, node.target
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and isinstance(target, ast.Name)):
            raise ProgramError(f"{self.fn.__name__}: loops go over range(…), not {ast.unparse(node.iter)}")
        given = [self.cast(self.expression(x), "int") for x in call.args]
        first, last, step = ("0", given[0], "1") if len(given) == 1 else (*given, "1")[:3]
        down = isinstance(call.args[-1], ast.UnaryOp) and len(given) == 3
        head, body, ahead, end = (self.name(x)[1:] for x in ("for", "body", "next", "end"))
        counter = self.name("counter")
        self.allocated.append(f"{counter} = alloca i64")
        self.lines.append(f"store i64 {first}, ptr {counter}")
        self.label(head)
        now = self.put(f"load i64, ptr {counter}")
        inside = self.put(f"icmp {'sgt' if down else 'slt'} i64 {now}, {last}")
        self.lines += [f"br i1 {inside}, label %{body}, label %{end}", f"{body}:"]
        self.assign(target, ("int", now))
        self.loops.append((ahead, end))
        self.block(node.body)
        self.loops.pop()
        self.label(ahead)
        self.lines.append(f"store i64 {self.put(f'add i64 {now}, {step}')}, ptr {counter}")
        self.lines += [f"br label %{head}", f"{end}:"]

    def do_Break(self, node: ast.Break) -> None:
        self.jump(self.loops[-1][1])

    def do_Continue(self, node: ast.Continue) -> None:
        self.jump(self.loops[-1][0])

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
            return (kind, place) if kind in ("floats", "ints") else (kind, self.put(f"load {LLVM[kind]}, ptr {place}"))
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
        for kind in ("vector", "mask", "float", "int", "bool"):
            if any(x[0] == kind for x in values):
                return kind, [self.cast(x, kind) for x in values]
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
        test = self.truth(node.test)
        kind, (x, y) = self.together(self.expression(node.body), self.expression(node.orelse))
        return kind, self.put(f"select i1 {test}, {LLVM[kind]} {x}, {LLVM[kind]} {y}")

    def of_Call(self, node: ast.Call) -> Value:
        name = ast.unparse(node.func)
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
