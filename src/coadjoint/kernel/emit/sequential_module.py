"""The module of a sequential program: types of values, signatures of programs, constant arrays, and the programs that are called."""

from __future__ import annotations

import ast
import functools
import inspect
import struct
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

LLVM = {"float": "double", "int": "i64", "bool": "i1", "vector": "<8 x double>", "mask": "<8 x i1>", "floats": "ptr", "ints": "ptr"}
LLVM |= {"kernels": "ptr"}
_ANNOTATED = {
    "float": "float",
    "int": "int",
    "bool": "bool",
    "None": "none",
    "Floats": "floats",
    "Ints": "ints",
    "Kernels": "kernels",
}
ARRAYS = ("floats", "ints", "kernels")

Value = tuple[str, str]
"""A type and the name or constant in the text."""


class ProgramError(TypeError):
    """A construct that these programs do not have."""


def parameters(fn: Callable[..., Any]) -> list[tuple[str, str]]:
    """(name, type) of a program's arguments."""
    return [(x.arg, _annotated(x.annotation)) for x in tree(fn).args.args]


def returned(fn: Callable[..., Any]) -> str:
    """The type of a program's result."""
    return _annotated(tree(fn).returns)


@functools.cache
def tree(fn: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of a program."""
    found = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
    if not isinstance(found, ast.FunctionDef):
        raise ProgramError(f"{fn} is not written as a function")
    return found


def _annotated(node: ast.expr | None) -> str:
    name = "None" if node is None or isinstance(node, ast.Constant) else ast.unparse(node)
    if name not in _ANNOTATED:
        raise ProgramError(f"{name} is no type of a program")
    return _ANNOTATED[name]


def number(x: float) -> str:
    """A double in LLVM's words, exactly."""
    return f"0x{struct.unpack('>Q', struct.pack('>d', x))[0]:016X}"


class Module:
    """Functions of LLVM text, the constant arrays they read, and the programs they call that are not written yet."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.tables: dict[int, tuple[str, str, Any]] = {}
        self.known: dict[str, Callable[..., Any]] = {}
        self.waiting: list[Callable[..., Any]] = []

    def ask(self, fn: Callable[..., Any]) -> None:
        """A program that is called, or the first one: it will be written once."""
        if fn.__name__ not in self.known:
            self.waiting.append(fn)
        if self.known.setdefault(fn.__name__, fn) is not fn:
            raise ProgramError(f"two programs are named {fn.__name__}")

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
