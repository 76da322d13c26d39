"""Expressions of xacro, which are Python's, evaluated over their syntax tree: nothing is compiled, and no name leads to Python's own.

Arithmetic, comparisons, conditions, lists, dictionaries, comprehensions, formatted strings, lambdas, and calls of the functions in
`values.py`. Everything else, and every name that begins with two underscores, is refused by name.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ...words import cut, short
from .values import HEAVIEST, METHODS, MOST_BITS, ExpressionError, Work, text, weight

T = TypeVar("T")

LONGEST = 4000
"""The most characters of an expression."""

DEEPEST = 60
"""The most levels of an expression's syntax tree."""

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_WIDE = re.compile(r"\d{4}|\*")
"""A format's width that is refused: a width that is too large, or one that is computed."""


def evaluate(expression: str, names: Callable[[str], Any], work: Work) -> Any:
    """The value of an expression; `names` gives those of names, and raises a KeyError for unknown ones."""
    if len(expression) > LONGEST:
        raise ExpressionError(f"an expression has {len(expression)} characters; at most {LONGEST} are read.")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ExpressionError(f"${{{cut(expression)}}} is not an expression: {reason}.") from None
    except (RecursionError, MemoryError):
        raise ExpressionError(f"${{{cut(expression)}}} is nested without end.") from None
    try:
        return _Evaluation(names, work).value(tree.body, {}, 0)
    except ExpressionError as error:
        raise ExpressionError(f"${{{cut(expression)}}}: {error}") from None
    except RecursionError:
        raise ExpressionError(f"${{{cut(expression)}}} calls itself without end.") from None
    except Exception as error:  # whatever Python's operations raise on values that do not fit
        reason = cut(" ".join(str(error).split()), 200)
        raise ExpressionError(f"${{{cut(expression)}}}: {type(error).__name__}: {reason}.") from None


class _Evaluation:
    def __init__(self, names: Callable[[str], Any], work: Work) -> None:
        self.names, self.work = names, work

    def value(self, node: ast.AST, local: Mapping[str, Any], depth: int) -> Any:
        self.work.add()
        if depth > DEEPEST:
            raise ExpressionError(f"it is nested deeper than {DEEPEST} levels.")
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise ExpressionError(f"{_called(node)} is not allowed in a robot description.")
        return method(node, local, depth + 1)

    def _kept(self, value: T) -> T:
        """A value that has been made, weighed."""
        self.work.add(weight(value) // 16)
        return value

    # --- values

    def _constant(self, node: ast.Constant, local: Mapping[str, Any], depth: int) -> Any:
        if node.value is not None and not isinstance(node.value, bool | int | float | str):
            raise ExpressionError(f"{short(node.value)} is not a value of a robot description.")
        return self._kept(node.value)

    def _name(self, node: ast.Name, local: Mapping[str, Any], depth: int) -> Any:
        if node.id.startswith("__"):
            raise ExpressionError(f"the name {short(node.id)} is not allowed in a robot description.")
        if node.id in local:
            return local[node.id]
        try:
            return self.names(node.id)
        except KeyError:
            raise ExpressionError(f"no property is named {short(node.id)} here.") from None

    def _list(self, node: ast.List, local: Mapping[str, Any], depth: int) -> list[Any]:
        return self._kept([self.value(x, local, depth) for x in node.elts])

    def _tuple(self, node: ast.Tuple, local: Mapping[str, Any], depth: int) -> tuple[Any, ...]:
        return self._kept(tuple(self.value(x, local, depth) for x in node.elts))

    def _set(self, node: ast.Set, local: Mapping[str, Any], depth: int) -> set[Any]:
        return self._kept({self.value(x, local, depth) for x in node.elts})

    def _dict(self, node: ast.Dict, local: Mapping[str, Any], depth: int) -> dict[Any, Any]:
        pairs = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key is not None]
        return self._kept({self.value(key, local, depth): self.value(value, local, depth) for key, value in pairs})

    def _joinedstr(self, node: ast.JoinedStr, local: Mapping[str, Any], depth: int) -> str:
        return self._kept("".join(text(self.value(x, local, depth)) for x in node.values))

    def _formattedvalue(self, node: ast.FormattedValue, local: Mapping[str, Any], depth: int) -> str:
        value = self.value(node.value, local, depth)
        form = text(self.value(node.format_spec, local, depth)) if node.format_spec is not None else ""
        value = {115: text, 114: repr, 97: ascii}.get(node.conversion, lambda x: x)(value)
        if not isinstance(value, int | float | str):
            value = text(value)
        if _WIDE.search(form):
            raise ExpressionError(f"the format {short(form)} is too wide.")
        return format(value, form)

    # --- operations

    def _binop(self, node: ast.BinOp, local: Mapping[str, Any], depth: int) -> Any:
        a, b = self.value(node.left, local, depth), self.value(node.right, local, depth)
        if type(node.op) not in _BINARY:
            raise ExpressionError(f"{_called(node.op)} is not allowed in a robot description.")
        self._check_size(type(node.op), a, b)
        return self._kept(_BINARY[type(node.op)](a, b))

    def _check_size(self, op: type[ast.AST], a: Any, b: Any) -> None:
        """Refuse, before it is computed, what would be too large."""
        whole = isinstance(a, int) and isinstance(b, int)
        if op is ast.Pow and whole and b > 0 and a.bit_length() * b > MOST_BITS:
            raise ExpressionError(f"{short(a)} ** {short(b)} is too large.")
        if op is ast.LShift and whole and b + a.bit_length() > MOST_BITS:
            raise ExpressionError(f"{short(a)} << {short(b)} is too large.")
        if op is ast.Mult:
            for x, n in ((a, b), (b, a)):
                if isinstance(x, str | list | tuple) and isinstance(n, int) and len(x) * n > HEAVIEST:
                    raise ExpressionError(f"{n} times a sequence of {len(x)} is too long.")
        if op is ast.Mod and isinstance(a, str) and _WIDE.search(a):
            raise ExpressionError(f"the format {short(a)} is too wide.")
        if op is ast.Mod and isinstance(a, str):
            weight(b)

    def _unaryop(self, node: ast.UnaryOp, local: Mapping[str, Any], depth: int) -> Any:
        return _UNARY[type(node.op)](self.value(node.operand, local, depth))

    def _boolop(self, node: ast.BoolOp, local: Mapping[str, Any], depth: int) -> Any:
        ends_at = isinstance(node.op, ast.Or)
        result = None
        for part in node.values:
            result = self.value(part, local, depth)
            if bool(result) is ends_at:
                break
        return result

    def _compare(self, node: ast.Compare, local: Mapping[str, Any], depth: int) -> Any:
        left = self.value(node.left, local, depth)
        result: Any = True
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part, local, depth)
            self._kept(right)
            result = _COMPARE[type(op)](left, right)
            if not result:
                return result
            left = right
        return result

    def _ifexp(self, node: ast.IfExp, local: Mapping[str, Any], depth: int) -> Any:
        return self.value(node.body if self.value(node.test, local, depth) else node.orelse, local, depth)

    # --- parts

    def _subscript(self, node: ast.Subscript, local: Mapping[str, Any], depth: int) -> Any:
        return self._kept(self.value(node.value, local, depth)[self.value(node.slice, local, depth)])

    def _slice(self, node: ast.Slice, local: Mapping[str, Any], depth: int) -> slice:
        return slice(*(None if x is None else self.value(x, local, depth) for x in (node.lower, node.upper, node.step)))

    def _attribute(self, node: ast.Attribute, local: Mapping[str, Any], depth: int) -> Any:
        value, name = self.value(node.value, local, depth), node.attr
        if name.startswith("__"):
            raise ExpressionError(f"the attribute {short(name)} is not allowed in a robot description.")
        if hasattr(value, "names_of_scope"):
            try:
                return value.names_of_scope(name)
            except KeyError:
                raise ExpressionError(f"{short(name)} is not defined there.") from None
        if isinstance(value, dict) and name in value:
            return value[name]
        for kind, methods in METHODS.items():
            if isinstance(value, kind) and name in methods:
                return getattr(value, name)
        what = f"has no entry {short(name)}" if isinstance(value, dict) else f"has no {short(name)} that a description may use"
        raise ExpressionError(f"{short(value)} {what}.")

    def _call(self, node: ast.Call, local: Mapping[str, Any], depth: int) -> Any:
        fn = self.value(node.func, local, depth)
        if not callable(fn):
            raise ExpressionError(f"{cut(ast.unparse(node.func))} is not a function.")
        args: list[Any] = []
        for part in node.args:
            if isinstance(part, ast.Starred):
                args += self._kept(list(self.value(part.value, local, depth)))
            else:
                args.append(self.value(part, local, depth))
        options = {part.arg: self.value(part.value, local, depth) for part in node.keywords if part.arg is not None}
        self.work.add(sum(weight(x) for x in (*args, *options.values())))
        if getattr(fn, "__name__", "") == "replace" and len(args) >= 2 and len(args[1]) * (1 + len(fn.__self__)) > HEAVIEST:
            raise ExpressionError("the text would be too long.")
        if getattr(fn, "__name__", "") == "join" and args:
            args[0] = list(args[0])
            if len(fn.__self__) * len(args[0]) > HEAVIEST:
                raise ExpressionError("the text would be too long.")
        result = fn(*args, **options)
        return self._kept(list(result) if isinstance(result, Iterator) or type(result).__name__.startswith("dict_") else result)

    def _lambda(self, node: ast.Lambda, local: Mapping[str, Any], depth: int) -> Callable[..., Any]:
        names = [x.arg for x in node.args.args]

        def call(*args: Any) -> Any:
            if len(args) != len(names):
                raise ExpressionError(f"a lambda takes {len(names)} argument(s), not {len(args)}.")
            return self.value(node.body, {**local, **dict(zip(names, args, strict=True))}, depth)

        return call

    # --- comprehensions

    def _listcomp(self, node: ast.ListComp, local: Mapping[str, Any], depth: int) -> list[Any]:
        return self._kept([self.value(node.elt, inner, depth) for inner in self._rounds(node.generators, local, depth)])

    def _generatorexp(self, node: ast.GeneratorExp, local: Mapping[str, Any], depth: int) -> list[Any]:
        return self._kept([self.value(node.elt, inner, depth) for inner in self._rounds(node.generators, local, depth)])

    def _setcomp(self, node: ast.SetComp, local: Mapping[str, Any], depth: int) -> set[Any]:
        return self._kept({self.value(node.elt, inner, depth) for inner in self._rounds(node.generators, local, depth)})

    def _dictcomp(self, node: ast.DictComp, local: Mapping[str, Any], depth: int) -> dict[Any, Any]:
        rounds = self._rounds(node.generators, local, depth)
        return self._kept({self.value(node.key, inner, depth): self.value(node.value, inner, depth) for inner in rounds})

    def _rounds(self, generators: list[ast.comprehension], local: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
        if not generators:
            yield local
            return
        first, *rest = generators
        for item in self._kept(list(self.value(first.iter, local, depth))):
            self.work.add()
            inner = {**local, **dict(_bound(first.target, item))}
            if all(self.value(test, inner, depth) for test in first.ifs):
                yield from self._rounds(rest, inner, depth)


def _bound(target: ast.AST, value: Any) -> Iterator[tuple[str, Any]]:
    """The names that a target of a comprehension gives to the parts of a value."""
    if isinstance(target, ast.Name):
        if target.id.startswith("__"):
            raise ExpressionError(f"the name {short(target.id)} is not allowed in a robot description.")
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        for inner, part in zip(target.elts, value, strict=True):
            yield from _bound(inner, part)
    else:
        raise ExpressionError(f"{_called(target)} is not allowed in a robot description.")


def _called(node: ast.AST) -> str:
    return f"Python's {type(node).__name__}"
