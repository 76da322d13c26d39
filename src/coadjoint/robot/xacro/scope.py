"""Names and their values: properties, blocks and macros, looked up from the inside out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import arrows
from .values import ExpressionError, literal


class Scope:
    """Names of one file, namespace or call of a macro; unknown ones are looked for in the scope around it.

    A property is evaluated when it is first used, in the scope that has it.
    """

    def __init__(self, around: Scope | None = None, namespace: bool = False) -> None:
        self.around, self.namespace = around, namespace
        self.values: dict[str, Any] = {}
        self.waiting: set[str] = set()
        self.evaluating: list[str] = []

    @property
    def top(self) -> Scope:
        """The outermost scope that is not that of the functions."""
        scope = self
        while scope.around is not None and scope.around.around is not None:
            scope = scope.around
        return scope

    def has(self, name: str) -> bool:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return True
            scope = scope.around
        return False

    def get(self, name: str, evaluate: Callable[[str, Scope], Any]) -> Any:
        """The value of a name; a KeyError where it has none."""
        scope: Scope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.around
        if scope is None:
            raise KeyError(name)
        if name in scope.waiting:
            if name in scope.evaluating:
                raise ExpressionError(f"properties are defined by each other: {arrows([*scope.evaluating, name])}.")
            scope.evaluating.append(name)
            try:
                scope.values[name] = literal(evaluate(scope.values[name], scope))
            finally:
                scope.evaluating.remove(name)
            scope.waiting.discard(name)
        return scope.values[name]

    def set(self, name: str, value: Any, later: bool = False) -> None:
        """Define a name; text is evaluated at its first use if `later`, unless it is a number."""
        self.values[name] = value = literal(value)
        if later and isinstance(value, str):
            self.waiting.add(name)
        else:
            self.waiting.discard(name)

    def remove(self, name: str) -> None:
        """Forget a name here and in all scopes around, but not the functions."""
        scope: Scope | None = self
        while scope is not None and scope.around is not None:
            scope.values.pop(name, None)
            scope.waiting.discard(name)
            scope = scope.around


class View:
    """A namespace as expressions see it: `namespace.name`."""

    def __init__(self, get: Callable[[str], Any]) -> None:
        self.names_of_scope = get
