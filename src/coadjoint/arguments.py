"""Checks of the arguments of public functions, before any work: a wrong argument is a CoadjointError that names it.

    @takes(robot=a_robot, A=numbers, dt=positive)
    def discretize(robot, A, B, dt): …

A check takes the argument and its name, and returns the argument, converted if need be. None is not checked where it is the
default. Kernels check their own arrays (`kernel/dispatch.py`), functions on Lie groups theirs (`lie/_arguments.py`).
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from .arrays import Array, asfloat, not_real
from .errors import CoadjointError, ShapeError
from .words import short

F = TypeVar("F", bound=Callable[..., Any])
Check = Callable[[Any, str], Any]


def takes(**checks: Check) -> Callable[[F], F]:
    """A decorator that checks the named arguments of a function."""

    def decorate(fn: F) -> F:
        signature = inspect.signature(fn)
        optional = {name for name in checks if signature.parameters[name].default is None}

        @wraps(fn)
        def checked(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            for name, check in checks.items():
                if name in given.arguments and not (given.arguments[name] is None and name in optional):
                    given.arguments[name] = check(given.arguments[name], name)
            return fn(*given.args, **given.kwargs)

        return checked  # type: ignore[return-value]

    return decorate


def a_robot(x: Any, name: str) -> Any:
    """x, if it is a robot, of numbers or of symbols."""
    if not hasattr(x, "links") or not hasattr(x, "nv"):
        raise CoadjointError(f"{name} is {short(x)}; expected a Robot, as from coadjoint.load('panda').")
    return x


def a_name(x: Any, name: str) -> str:
    """x, if it is a string."""
    if not isinstance(x, str):
        raise CoadjointError(f"{name} is {short(x)}; expected text.")
    return x


def names(x: Any, name: str) -> Any:
    """x, if it is a string or a list of strings."""
    if isinstance(x, str):
        return x
    found = sequence(x, name)
    if not all(isinstance(y, str) for y in found):
        raise CoadjointError(f"{name} is {short(x)}; expected text, or a list of texts.")
    return found


def some_names(x: Any, name: str) -> Any:
    """x, if it is a string or a list of strings that is not empty."""
    if isinstance(found := names(x, name), list) and not found:
        raise CoadjointError(f"{name} is empty; expected text, or a list of texts.")
    return found


def one_of(*choices: str) -> Check:
    """A check that an argument is one of these strings."""

    def check(x: Any, name: str) -> str:
        if not isinstance(x, str) or x not in choices:
            words = " or ".join([", ".join(map(repr, choices[:-1])), repr(choices[-1])])
            raise CoadjointError(f"{name} is {short(x)}; choose {words}.")
        return x

    return check


def a_function(x: Any, name: str) -> Any:
    """x, if it is a function whose signature can be read."""
    try:
        inspect.signature(x)
    except (TypeError, ValueError):
        raise CoadjointError(f"{name} is {short(x)}; expected a function fn(robot, *arrays).") from None
    return x


def numbers(x: Any, name: str) -> Array:
    """x as an array of real numbers, of any array library, or of symbols."""
    try:
        array = asfloat(x, name)
        if type(array) is np.ndarray and array.dtype.kind == "O":
            if not all(isinstance(y, float | int) or hasattr(y, "__coadjoint_symbol__") for y in array.flat):
                raise not_real(name, x)
            if array.size and not any(hasattr(y, "__coadjoint_symbol__") for y in array.flat):
                array = array.astype(np.float64)
    except (OverflowError, RuntimeError):  # an integer too large for a number; more axes than NumPy has
        raise ShapeError(f"{name} is {short(x)}; expected real numbers.") from None
    return array


def a_number(x: Any, name: str) -> Any:
    """x, if it is one finite real number."""
    array = numbers(x, name)
    if array.ndim or not np.isfinite(array):
        raise CoadjointError(f"{name} is {short(x)}; expected one finite number.")
    return x


def positive(x: Any, name: str) -> Any:
    """x, if it is one finite positive number."""
    if not a_number(x, name) > 0:
        raise CoadjointError(f"{name} is {short(x)}; expected a positive number.")
    return x


def whole(x: Any, name: str) -> int:
    """x as an int, if it is an integer."""
    if isinstance(x, bool | np.bool_) or not hasattr(x, "__index__") or np.ndim(x):
        raise CoadjointError(f"{name} is {short(x)}; expected a whole number.")
    return operator.index(x)


def sequence(x: Any, name: str) -> list[Any]:
    """x as a list, if it is iterable and not a string."""
    if isinstance(x, str | bytes) or not isinstance(x, Iterable) or (isinstance(x, np.ndarray) and not x.ndim):
        raise CoadjointError(f"{name} is {short(x)}; expected a list.")
    return list(x)


def a_type(x: Any, name: str) -> Any:
    """x, if it is a floating-point dtype."""
    try:
        if np.dtype(x).kind == "f":
            return x
    except TypeError:
        pass
    raise CoadjointError(f"{name} is {short(x)}; expected numpy.float64 or numpy.float32.")
