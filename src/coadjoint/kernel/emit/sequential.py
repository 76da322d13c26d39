"""LLVM text of sequential programs: functions in a small part of Python, with loops and branches on values (`programs.py`).

Every local variable is a slot on the stack, which LLVM's own passes turn into registers. Types are those of the first value that
a variable is given: float, int, bool, and vectors of eight floats or of eight truths.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .sequential_expressions import Expressions
from .sequential_module import ARRAYS, LLVM, Module, ProgramError, Value, parameters, returned, tree


def module_of(entry: Callable[..., Any]) -> Module:
    """The module of a program and of all it calls."""
    module = Module()
    module.ask(entry)
    while module.waiting:
        fn = module.waiting.pop()
        module.parts.append(_Function(module, fn, exported=fn is entry).text())
    return module


class _Function(Expressions):
    """The statements of a program."""

    def __init__(self, module: Module, fn: Callable[..., Any], exported: bool) -> None:
        super().__init__(module, fn)
        self.tree, self.returns, self.exported = tree(fn), returned(fn), exported
        self.loops: list[tuple[str, str]] = []

    def text(self) -> str:
        arguments = []
        for name, kind in parameters(self.fn):
            arguments.append(f"{LLVM[kind]} %arg.{name}")
            if kind in ARRAYS:
                self.slots[name] = (kind, f"%arg.{name}")
            else:
                self.lines.append(f"store {LLVM[kind]} %arg.{name}, ptr {self.slot(name, kind)}")
        self.block(self.tree.body)
        result = "void" if self.returns == "none" else LLVM[self.returns]
        self.lines.append({"none": "ret void", "float": "ret double 0.0"}.get(self.returns, f"ret {result} 0"))
        linkage = "" if self.exported else "internal "
        head = f"define {linkage}{result} @{self.fn.__name__}({', '.join(arguments)}) #0 {{\nentry:"
        return "\n".join([head, *self.allocated, *self.lines, "}"])

    # statements

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            method: Any = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                raise ProgramError(f"{self.fn.__name__}: programs have no {ast.unparse(statement)}")
            if isinstance(statement, ast.For | ast.While) and statement.orelse:
                raise ProgramError(f"{self.fn.__name__}: loops have no else, as {ast.unparse(statement.orelse[0])}")
            method(statement)

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Tuple) or len(node.targets) > 1:
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
