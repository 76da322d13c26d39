"""Checks of the arguments of public functions, before any work: a wrong argument is a CoadjointError that names it.

    @takes(robot=a_robot, A=numbers, dt=positive)
    def discretize(robot, A, B, dt): …

A check takes the argument and its name, and returns the argument, converted if need be. None is not checked where it is the default.
Arrays with batch axes in front are checked by their core shapes: `arguments` for functions of arrays of any library, `states`
for functions that compute with NumPy, `check_inputs`, `check_outs` and `check_threads` for kernels.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from .arrays import MOST_AXES, Array, alike, asfloat, broadcast_batch, not_real, to_numpy
from .errors import CoadjointError, ShapeError, UnknownKeywordError, nearest
from .words import short

F = TypeVar("F", bound=Callable[..., Any])
Check = Callable[[Any, str], Any]
Shape = tuple[int, ...]


def takes(**checks: Check) -> Callable[[F], F]:
    """A decorator that checks the named arguments of a function."""

    def decorate(fn: F) -> F:
        parameters = inspect.signature(fn).parameters
        optional = {name for name in checks if _may_be_none(parameters[name])}
        place = {name: k for k, (name, x) in enumerate(parameters.items()) if x.kind is not x.KEYWORD_ONLY}

        known = frozenset(name for name, x in parameters.items() if x.kind is not x.POSITIONAL_ONLY)
        open_ended = any(x.kind is x.VAR_KEYWORD for x in parameters.values())

        @wraps(fn)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if not open_ended and not kwargs.keys() <= known:
                refuse_keywords(fn.__name__, kwargs, known)
            given = list(args)
            robot = kwargs.get("robot", args[0] if args else None)
            for name, check in checks.items():
                if check in (numbers, floats) and hasattr(robot, "q_names"):
                    check_labels(name, given[place[name]] if place.get(name, len(given)) < len(given) else kwargs.get(name), robot)
                k = place.get(name, len(given))
                if k < len(given):
                    if not (given[k] is None and name in optional):
                        given[k] = check(given[k], name)
                elif name in kwargs and not (kwargs[name] is None and name in optional):
                    kwargs[name] = check(kwargs[name], name)
            return fn(*given, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate


def refuse_keywords(name: str, given: Iterable[str], known: Iterable[str]) -> None:
    """An error if a keyword that was given to the function of this name is none that is known."""
    known = sorted(known)
    for key in given:
        if key not in known:
            near = nearest(key, known)
            hint = f"; did you mean {near!r}?" if near else f"; it takes {', '.join(known)}."
            raise UnknownKeywordError(f"{name}() takes no argument {short(key)}{hint}")


def keywords(fn: Callable[..., Any]) -> set[str]:
    """The names of arguments that a function takes."""
    return {name for name, x in inspect.signature(fn).parameters.items() if x.kind is not x.VAR_KEYWORD}


def _may_be_none(parameter: inspect.Parameter) -> bool:
    return parameter.default is None or "None" in str(parameter.annotation)


def a_robot(x: Any, name: str) -> Any:
    """x, if it is a robot, of numbers or of symbols."""
    if not hasattr(x, "links") or not hasattr(x, "nv"):
        raise CoadjointError(f"{name} is {short(x)}; expected a Robot, as from coadjoint.load('panda').")
    return x


def a_moving_robot(x: Any, name: str) -> Any:
    """A robot with a joint that moves."""
    if not a_robot(x, name).nv:
        raise CoadjointError(f"robot {x.name!r} has no joint that moves.")
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


def a_function_of(*arguments: str) -> Check:
    """A check that an argument is a function that can be called with so many."""

    def check(x: Any, name: str) -> Any:
        usage = f"a function {name}({', '.join(arguments)})"
        if not callable(x):
            raise CoadjointError(f"{name} is {short(x)}; expected {usage}.")
        try:
            signature = inspect.signature(x)
        except (TypeError, ValueError):  # of a built-in function; it says itself what it is called with
            return x
        try:
            signature.bind(*arguments)
        except TypeError:
            raise CoadjointError(f"{name} takes {signature}; expected {usage}.") from None
        return x

    return check


def a_generator(x: Any, name: str) -> np.random.Generator:
    """NumPy's random generator that x is, or is the seed of."""
    try:
        return np.random.default_rng(x)
    except (TypeError, ValueError):
        raise CoadjointError(f"{name} is {short(x)}; expected numpy's random generator, or a seed, 0 or more.") from None


def a_dictionary(x: Any, name: str) -> Any:
    """x, if it is a mapping."""
    if not isinstance(x, Mapping):
        raise CoadjointError(f"{name} is {short(x)}; expected a dictionary.")
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


def floats(x: Any, name: str) -> np.ndarray:
    """x as a NumPy array of float64."""
    return np.asarray(numbers(to_numpy(x, name), name), dtype=float)


def a_number(x: Any, name: str) -> Any:
    """x, if it is one finite real number; a float for an integer that no integer type of NumPy holds."""
    array = numbers(x, name)
    if array.ndim or not np.isfinite(array):
        raise CoadjointError(f"{name} is {short(x)}; expected one finite number.")
    return float(array) if type(x) is int and abs(x) >= 2**63 else x  # NumPy takes a larger one for an object


def positive(x: Any, name: str) -> Any:
    """x, if it is one finite positive number."""
    if not (number := a_number(x, name)) > 0:
        raise CoadjointError(f"{name} is {short(x)}; expected a positive number.")
    return number


def whole(x: Any, name: str) -> int:
    """x as an int, if it is an integer."""
    try:
        if not isinstance(x, bool | np.bool_) and not np.ndim(x):
            return operator.index(x)
    except (TypeError, ValueError):
        pass
    raise CoadjointError(f"{name} is {short(x)}; expected a whole number.")


def count_up_to(most: int) -> Check:
    """A check that an argument is an integer, and not larger than what fits into memory and finishes."""

    def check(x: Any, name: str) -> int:
        if (n := whole(x, name)) > most:
            raise CoadjointError(f"{name} is {short(x)}; expected at most {most}.")
        return n

    return check


def zero_or_more(x: Any, name: str) -> int:
    """x as an int, if it is an integer that is not negative, as the seed of a random generator."""
    if (n := whole(x, name)) < 0:
        raise CoadjointError(f"{name} is {short(x)}; expected 0 or a positive whole number.")
    return n


def a_damping(x: Any, name: str) -> Any:
    """x, if it is one number, 0 or more, whose square is finite."""
    number = a_number(x, name)
    if not (number >= 0 and np.isfinite(float(number) * float(number))):
        raise CoadjointError(f"{name} is {short(x)}; expected 0 or a positive number, whose square is finite.")
    return number


def a_flag(x: Any, name: str) -> bool:
    """x as True or False."""
    if not isinstance(x, bool | np.bool_) and (not isinstance(x, int) or x not in (0, 1)):
        raise CoadjointError(f"{name} is {short(x)}; expected True or False.")
    return bool(x)


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
    except (TypeError, ValueError, SyntaxError):  # as np.dtype takes odd texts
        pass
    raise CoadjointError(f"{name} is {short(x)}; expected numpy.float64 or numpy.float32.")


# --- arrays with batch axes in front, by their core shapes


def check_core(name: str, x: Array, core: Shape, whose: str = "") -> None:
    """ShapeError if the last axes of an array are not those of its core; `whose` says why they should be."""
    shape = tuple(x.shape)
    if len(shape) < len(core) or shape[len(shape) - len(core) :] != core:
        expected = f"(..., {', '.join(map(str, core))})" if core else "(...)"
        raise ShapeError(f"{name} has shape {shape}; expected {expected}{whose}.")
    if len(shape) - len(core) > MOST_AXES:
        raise ShapeError(f"{name} has {len(shape) - len(core)} batch axes; expected at most {MOST_AXES}.")


def check_labels(name: str, x: Any, robot: Any) -> None:
    """An error if the columns of a table (or the labels of a pandas.Series) name the robot's coordinates in another order than its own."""
    labels = getattr(x, "columns", getattr(x, "index", None) if getattr(x, "ndim", 0) == 1 else None)
    if labels is None or callable(labels):
        return
    texts = [str(label) for label in labels]
    for names in (robot.q_names, robot.v_names):
        places = _places(texts, names)
        if places and places != sorted(places):
            ordered = [text for _, text in sorted(zip(places, texts, strict=True))]
            raise CoadjointError(
                f"{name} has its columns in the order {short(texts)}; expected the order of robot {robot.name!r}. Give {name}[{ordered!r}]."
            )


def _places(texts: list[str], names: Sequence[str]) -> list[int] | None:
    """The places at which labels stand among the names, or the numbers at their ends; None if they are neither, as times are."""
    if len(texts) != len(names):
        return None
    found = [[(len(n), k) for k, n in enumerate(names) if text == n or text.endswith((f".{n}", f"_{n}"))] for text in texts]
    if not all(found):
        numbers, own = _numbered(texts), _numbered(names)
        if numbers is None or (own is not None and own != sorted(own)):  # the first of them may be that of either
            return None
        return numbers if len(set(numbers)) == len(numbers) else None
    places = [max(x)[1] for x in found]
    return places if len(set(places)) == len(places) else None


def _numbered(texts: Sequence[str]) -> list[int] | None:
    """The numbers of texts that are one word and a number each, such as q1; None if they are not."""
    found = [re.fullmatch(r"(.*[^\W\d]\D*)(\d+)", text) for text in texts]
    return [int(x[2]) for x in found if x] if all(found) and len({x[1] for x in found if x}) == 1 else None


def arguments(*named: tuple[str, Array, Shape]) -> tuple[Array, ...]:
    """Each (name, array, core shape) as a floating-point array of one array library whose last axes are the core."""
    arrays = [numbers(x, name) for name, x, _ in named]
    for (name, _, core), x in zip(named, arrays, strict=True):
        check_core(name, x, core)
    return tuple(alike(arrays))


def argument(name: str, x: Array, *core: int) -> Array:
    """One array whose last axes are the core shape."""
    return arguments((name, x, core))[0]


def states(robot: Any, **given: tuple[Any, int]) -> list[np.ndarray]:
    """Arrays (..., size) of finite numbers as NumPy arrays of one batch shape; an error names what does not fit."""
    arrays = {}
    for name, (x, size) in given.items():
        check_labels(name, x, robot)
        x = floats(x, name)
        check_core(name, x, (size,), f" for robot {robot.name!r}")
        arrays[name] = finite(x, name)
    batch = broadcast_batch(**{name: (x, 1) for name, x in arrays.items()})
    return [np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays.values()]


def finite(x: np.ndarray, name: str) -> np.ndarray:
    """x; an error where an entry is no finite number."""
    if not np.all(np.isfinite(x)):
        raise CoadjointError(f"{name} has entries that are not finite numbers.")
    return x


def times(t: Any) -> np.ndarray:
    """Times as an array; an error for what is no finite number."""
    found = floats(t, "t")
    if not np.all(np.isfinite(found)):
        raise CoadjointError(f"t is {found}; expected finite times.")
    return found


# --- what kernels are called with


def check_inputs(names: Sequence[str], core_shapes: Sequence[Shape], arrays: Sequence[Array]) -> Shape:
    """The batch shape that the arrays broadcast to; ShapeError names the argument that does not fit."""
    for name, core, x in zip(names, core_shapes, arrays, strict=True):
        check_core(name, x, core)
    batches = {tuple(x.shape)[: len(x.shape) - len(core)] for core, x in zip(core_shapes, arrays, strict=True)}
    if len(batches) == 1:
        return batches.pop()
    return broadcast_batch(**{n: (x, len(c)) for n, c, x in zip(names, core_shapes, arrays, strict=True)})


def real_array(name: str, x: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """x as an array of the kernel's type, masked entries NaN; an error unless it has real numbers."""
    array = asfloat(x, name)
    if array.dtype == object:
        raise not_real(name, x)
    return np.asarray(array, dtype)


def check_threads(threads: Any) -> int | None:
    """The requested number of threads, checked; None for as many as the work is worth."""
    if threads is None:
        return None
    try:
        number = operator.index(threads)
    except TypeError:
        number = 0
    if number < 1:
        raise CoadjointError(f"threads is {threads!r}; expected a whole number, 1 or more.")
    return number


def check_outs(function: str, out: Any, shapes: Sequence[Shape], dtype: Any) -> list[np.ndarray]:
    """The arrays of `out`, one for each result; errors for those that results of these shapes cannot be written to."""
    if len(shapes) == 1:
        outs, names = [out], ["out"]
    else:
        if not isinstance(out, tuple | list) or len(out) != len(shapes):
            raise CoadjointError(f"out must be a tuple of {len(shapes)} arrays: {function} has as many results.")
        outs, names = list(out), [f"out[{k}]" for k in range(len(shapes))]
    for k, (x, shape) in enumerate(zip(outs, shapes, strict=True)):
        _check_out(names[k], x, shape, dtype)
        for other in range(k):
            if _overlap(outs[other], x):
                raise CoadjointError(f"{names[other]} and {names[k]} share memory; results would overwrite each other.")
    return outs


def _check_out(name: str, out: Any, shape: Shape, dtype: Any) -> None:
    if not isinstance(out, np.ndarray):
        raise CoadjointError(f"{name} is a {type(out).__name__}; expected a NumPy array to write to.")
    if out.shape != shape:
        raise ShapeError(f"{name} has shape {out.shape}; the result has shape {shape}.")
    if out.dtype != dtype:
        raise CoadjointError(f"{name} has dtype {out.dtype}; the result has dtype {dtype}.")
    if not out.flags.writeable:
        raise CoadjointError(f"{name} is read-only.")
    if any(n > 1 and stride == 0 for n, stride in zip(out.shape, out.strides, strict=True)):
        raise CoadjointError(f"{name} has the same memory for several entries; results would overwrite each other.")


def _overlap(x: np.ndarray, y: np.ndarray) -> bool:
    try:
        return np.shares_memory(x, y, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
