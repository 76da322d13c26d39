"""The array namespace of symbols: NumPy's names on arrays whose elements are symbols and plain numbers.

A `Symbols` array is a NumPy array of objects on which operators, comparisons and NumPy's elementwise functions do what
they do on numbers, constants folding as they come, and on which the result of a reduction is again an array. The functions
here take it, plain arrays, numbers and single symbols; of numbers alone they are NumPy's own.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import TraceError
from ..ops import OPS
from . import functions
from .expr import Expr

Array = Any
pi = np.pi
inf = np.inf
nan = np.nan
newaxis = None
float64 = np.float64


class Symbols(np.ndarray):
    """A NumPy array of symbols and plain floats."""

    __coadjoint_symbol__ = True
    __hash__ = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        mine = _FUNCTIONS.get(function)
        if getattr(function, "__module__", "") == "numpy.linalg" and function.__name__ in _REFUSED:
            raise TraceError(
                f"np.linalg.{function.__name__} cannot be traced. Write coadjoint.arrays.solve_spd(A, B) for A⁻¹B "
                "with A symmetric positive definite."
            )
        return super().__array_function__(function, types, args, options) if mine is None else mine(*args, **options)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth value of an array with more than one element is ambiguous")
        return bool(self.item())


def symbols(x: Any) -> Symbols:
    """x, an array or a scalar, as an array of symbols."""
    if type(x) is Symbols:
        return x
    if isinstance(x, np.ndarray):
        return (x if x.dtype == object else x.astype(object)).view(Symbols)
    if isinstance(x, Expr) or not hasattr(x, "__len__"):
        array = np.empty((), dtype=object)
        array[()] = x if isinstance(x, Expr) else float(x)
        return array.view(Symbols)
    return np.asarray(x, dtype=object).view(Symbols)


def apply(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """The result of NumPy's `ufunc` (or of its method, such as "reduce") on symbols."""
    operation = _OPERATORS.get(ufunc)
    if operation is not None and method == "__call__" and not options:
        x, y = inputs
        if type(x) is Symbols and type(y) is Symbols and not x.ndim and not y.ndim:  # most often so: shortest here
            return _boxed(operation(x.item(), y.item())).view(Symbols)
    if ufunc not in _NATIVE:
        try:
            ufunc = _UFUNCS[ufunc]
        except KeyError:
            name = getattr(ufunc, "__name__", str(ufunc))
            known = ", ".join(sorted(f.__name__ for f in (*_NATIVE, *_UFUNCS)))
            raise TraceError(f"np.{name} cannot be traced. Supported: {known}; use coadjoint.where instead of np.where.") from None
        options.pop("dtype", None)
    if "out" in options:
        options["out"] = tuple(x.view(np.ndarray) if type(x) is Symbols else x for x in options["out"])
    plain = [x.view(np.ndarray) if type(x) is Symbols else _boxed(x) if isinstance(x, Expr) else x for x in inputs]
    if method == "reduce" and ufunc in _ANY_ORDER:
        result = _reduced(ufunc, plain[0], **options)
    else:
        result = ufunc(*plain, **options) if method == "__call__" else getattr(ufunc, method)(*plain, **options)
    if type(result) is np.ndarray:
        return result.view(Symbols)
    return symbols(result)


def _reduced(ufunc: Any, x: np.ndarray, axis: Any = 0, keepdims: bool = False, **options: Any) -> Any:
    """ufunc.reduce over any number of axes, one after the other: NumPy does not know that their order does not matter."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) < 2 or options.get("where", True) is not True:
        return ufunc.reduce(x, axis=axis, keepdims=keepdims, **options)
    for k in axes:
        x = ufunc.reduce(x, axis=k, keepdims=True, **options)
    return x if keepdims else np.squeeze(x, axis=tuple(axes))


def _plain(x: Any) -> np.ndarray:
    """x as NumPy's own kind of array of objects."""
    return symbols(x).view(np.ndarray)


def _filled(values: list[Any]) -> Symbols:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.view(Symbols)


_OPERATORS = {np.multiply: operator.mul, np.add: operator.add, np.subtract: operator.sub}


def _boxed(x: Any) -> np.ndarray:
    array = np.empty((), dtype=object)
    array[()] = x
    return array


_abs = np.frompyfunc(functions.absolute, 1, 1)
_and = np.frompyfunc(functions.logical_and, 2, 1)
_or = np.frompyfunc(functions.logical_or, 2, 1)
_not = np.frompyfunc(functions.logical_not, 1, 1)
_where = np.frompyfunc(functions.where, 3, 1)

# What NumPy's own loops over objects do rightly with the operators of Python.
_NATIVE = {np.add, np.subtract, np.multiply, np.negative, np.positive, np.matmul, np.conjugate, np.vecdot}
_UFUNCS: dict[Any, Any] = {
    op.numpy: np.frompyfunc(functions.OPERATIONS[name], op.arity, 1)
    for name, op in OPS.items()
    if isinstance(op.numpy, np.ufunc) and op.numpy not in _NATIVE
}
_UFUNCS |= {
    np.power: np.frompyfunc(functions.power, 2, 1),
    np.square: np.frompyfunc(lambda x: x * x, 1, 1),
    np.reciprocal: np.frompyfunc(lambda x: functions.divide(1.0, x), 1, 1),
    np.floor_divide: np.frompyfunc(functions.floor_divide, 2, 1),
    np.remainder: np.frompyfunc(functions.remainder, 2, 1),
    np.tan: np.frompyfunc(functions.tan, 1, 1),
    np.arcsin: np.frompyfunc(functions.asin, 1, 1),
    np.arccos: np.frompyfunc(functions.acos, 1, 1),
    np.arctan: np.frompyfunc(functions.atan, 1, 1),
    np.hypot: np.frompyfunc(functions.hypot, 2, 1),
    np.fabs: _abs,
    np.ceil: np.frompyfunc(functions.ceil, 1, 1),
    np.sign: np.frompyfunc(functions.sign, 1, 1),
    np.greater: np.frompyfunc(lambda x, y: functions.less(y, x), 2, 1),
    np.greater_equal: np.frompyfunc(lambda x, y: functions.less_equal(y, x), 2, 1),
    np.not_equal: np.frompyfunc(lambda x, y: functions.logical_not(functions.equal(x, y)), 2, 1),
    np.bitwise_and: _and,
    np.bitwise_or: _or,
    np.invert: _not,
}

_ANY_ORDER = {_UFUNCS[f] for f in (np.maximum, np.minimum, np.logical_and, np.logical_or)}


def _elementwise(ufunc: np.ufunc) -> Callable[..., Array]:
    def function(*inputs: Array) -> Array:
        for x in inputs:
            if isinstance(x, Expr) or getattr(x, "dtype", None) == Expr.dtype:
                return apply(ufunc, "__call__", inputs, {})
        return ufunc(*inputs)

    function.__name__ = function.__qualname__ = ufunc.__name__
    function.__doc__ = f"numpy.{ufunc.__name__} of numbers and symbols."
    return function


add, subtract, multiply, negative = (_elementwise(f) for f in (np.add, np.subtract, np.multiply, np.negative))
divide, square, reciprocal = (_elementwise(f) for f in (np.true_divide, np.square, np.reciprocal))
power = pow = _elementwise(np.power)
floor_divide, remainder = _elementwise(np.floor_divide), _elementwise(np.remainder)
sin, cos, tan = (_elementwise(f) for f in (np.sin, np.cos, np.tan))
asin, acos, atan, atan2 = (_elementwise(f) for f in (np.arcsin, np.arccos, np.arctan, np.arctan2))
arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
exp, log, sqrt, hypot = (_elementwise(f) for f in (np.exp, np.log, np.sqrt, np.hypot))
abs = absolute = fabs = _elementwise(np.absolute)
floor, ceil, sign = (_elementwise(f) for f in (np.floor, np.ceil, np.sign))
minimum, maximum = _elementwise(np.minimum), _elementwise(np.maximum)
less, less_equal, greater, greater_equal, equal, not_equal = (
    _elementwise(f) for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
)
logical_and, logical_or, logical_not = (_elementwise(f) for f in (np.logical_and, np.logical_or, np.logical_not))
matmul = _elementwise(np.matmul)
globals().update({op.array: _elementwise(op.numpy) for op in OPS.values() if op.numpy in _UFUNCS and op.array not in globals()})


def where(condition: Array, x: Array, y: Array) -> Symbols:
    """x where the condition holds, y elsewhere; both are computed."""
    plain = [v.view(np.ndarray) if type(v) is Symbols else _boxed(v) if isinstance(v, Expr) else v
             for v in (condition, x, y)]  # fmt: skip
    with np.errstate(invalid="ignore"):  # NaN is a number like any other here
        return symbols(_where(*plain))


_REFUSED = {"inv", "solve", "det", "slogdet", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "svd", "pinv", "lstsq", "qr"}
_FUNCTIONS: dict[Any, Callable[..., Any]] = {np.where: where}
"""NumPy's functions that are neither elementwise operations nor made of them."""


def clip(x: Array, low: Array, high: Array) -> Array:
    """x kept within [low, high]."""
    return minimum(maximum(x, low), high)


# Making and joining arrays


def asarray(x: Any, dtype: Any = None) -> Symbols:
    """x as an array of symbols."""
    return symbols(x)


array = asarray


def _made(make: Callable[..., np.ndarray]) -> Callable[..., Symbols]:
    def function(*args: Any, dtype: Any = None, **options: Any) -> Symbols:
        return symbols(make(*args, **options))

    function.__name__ = function.__qualname__ = make.__name__
    function.__doc__ = f"numpy.{make.__name__} as an array of symbols."
    return function


zeros, ones, eye, full = (_made(f) for f in (np.zeros, np.ones, np.eye, np.full))
arange, linspace = _made(np.arange), _made(np.linspace)


def zeros_like(x: Array, dtype: Any = None) -> Symbols:
    """Zeros in the shape of x."""
    return symbols(np.zeros(np.shape(x)))


def ones_like(x: Array, dtype: Any = None) -> Symbols:
    """Ones in the shape of x."""
    return symbols(np.ones(np.shape(x)))


def full_like(x: Array, value: Any, dtype: Any = None) -> Symbols:
    """The value in the shape of x."""
    return broadcast_to(value, np.shape(x))


def stack(arrays: Sequence[Array], axis: int = 0) -> Symbols:
    """Arrays stacked along a new axis."""
    plain = [_plain(x) for x in arrays]
    if plain and not builtins.any(x.ndim for x in plain):
        return _filled([x.item() for x in plain])
    return np.stack(plain, axis=axis).view(Symbols)


def concat(arrays: Sequence[Array], axis: int = 0) -> Symbols:
    """Arrays joined along an axis."""
    return np.concatenate([_plain(x) for x in arrays], axis=axis).view(Symbols)


concatenate = concat


def broadcast_to(x: Array, shape: tuple[int, ...]) -> Symbols:
    """x repeated to the shape."""
    return np.broadcast_to(_plain(x), shape).view(Symbols)


def broadcast_arrays(*arrays: Array) -> list[Symbols]:
    """The arrays repeated to one shape."""
    shape = np.broadcast_shapes(*(np.shape(x) for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


# Rearranging and reducing


def _rearranged(function: Callable[..., Any]) -> Callable[..., Symbols]:
    def on_symbols(x: Array, *args: Any, **options: Any) -> Symbols:
        return symbols(function(symbols(x), *args, **options))

    on_symbols.__name__ = on_symbols.__qualname__ = function.__name__
    on_symbols.__doc__ = f"numpy.{function.__name__} of an array of symbols."
    return on_symbols


reshape, transpose, moveaxis, swapaxes = (_rearranged(f) for f in (np.reshape, np.transpose, np.moveaxis, np.swapaxes))
expand_dims, squeeze, flip, roll = (_rearranged(f) for f in (np.expand_dims, np.squeeze, np.flip, np.roll))
permute_dims, matrix_transpose = transpose, _rearranged(np.matrix_transpose)
take, repeat, tile, diagonal = (_rearranged(f) for f in (np.take, np.repeat, np.tile, np.diagonal))
tril, triu, trace = (_rearranged(f) for f in (np.tril, np.triu, np.trace))
sum, prod, mean, cumsum = (_rearranged(f) for f in (np.sum, np.prod, np.mean, np.cumsum))
max = amax = _rearranged(np.max)
min = amin = _rearranged(np.min)
all, any = _rearranged(np.all), _rearranged(np.any)


def dot(x: Array, y: Array) -> Symbols:
    """numpy.dot of arrays of symbols."""
    return symbols(np.dot(symbols(x), symbols(y)))


def vecdot(x: Array, y: Array) -> Symbols:
    """The inner product over the last axis."""
    return sum(multiply(x, y), -1)


def tensordot(x: Array, y: Array, axes: Any = 2) -> Symbols:
    """numpy.tensordot of arrays of symbols."""
    return symbols(np.tensordot(symbols(x), symbols(y), axes=axes))


def outer(x: Array, y: Array) -> Symbols:
    """The products of all elements of x with all of y."""
    return symbols(symbols(x).reshape(-1, 1) * symbols(y).reshape(1, -1))


def cross(x: Array, y: Array) -> Symbols:
    """x × y over the last axis."""
    x, y = symbols(x), symbols(y)
    (x1, x2, x3), (y1, y2, y3) = (tuple(a[..., k] for k in range(3)) for a in (x, y))
    return stack(broadcast_arrays(x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1), axis=-1)


def einsum(subscripts: str, *operands: Array) -> Symbols:
    """numpy.einsum of arrays of symbols."""
    return symbols(np.einsum(subscripts, *(symbols(x).view(np.ndarray) for x in operands)))


def _nan_to_num(x: Array, *args: Any, **options: Any) -> Symbols:
    """Refused: NumPy would leave symbols as they are."""
    raise TraceError(
        "np.nan_to_num cannot be traced: NaN is not told from a number there. Choose before it arises: coadjoint.where(condition, a, b)."
    )


_FUNCTIONS.update({np.einsum: einsum, np.cross: cross, np.clip: clip, np.nan_to_num: _nan_to_num})


def solve_spd(a: Array, b: Array, assume_definite: bool = False) -> Symbols:
    """A⁻¹B for symmetric positive definite A (..., n, n) and B (..., n, m); NaN where A is not, unless that is assumed.

    Up to a size, the factorisation is unrolled without its structural zeros; beyond, it is a block of loops.
    """
    a, b = symbols(a), symbols(b)
    n, m = b.shape[-2:]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = broadcast_to(a, (*batch, n, n)), broadcast_to(b, (*batch, n, m))
    x = np.empty((*batch, n, m), dtype=object)
    for k in np.ndindex(*batch):
        A, B = a[k].tolist(), b[k].tolist()
        if not n * m:
            solution = []
        elif n > _UNROLLED:
            solution = functions.spd_solve_block(A, B)
        else:
            solution, definite = _unrolled_solve(A, B)
            if not assume_definite:
                solution = [[functions.where(definite, y, nan) for y in row] for row in solution]
        x[k] = np.array([[None] * m] * n, dtype=object)
        for i, row in enumerate(solution):
            x[k][i][:] = row
    return symbols(x)


_UNROLLED = 12


def _unrolled_solve(A: list[list[Any]], B: list[list[Any]]) -> tuple[list[list[Any]], Any]:
    """A⁻¹B by A = LᵀDL, L unit lower triangular, and whether A is positive definite: all of D is positive.

    From the last row to the first, as Featherstone does it: where children are numbered after their parents, the zeros of
    a branched mass matrix stay zeros in L.
    """
    n, m = len(A), len(B[0])
    A = [list(row[: i + 1]) for i, row in enumerate(A)]
    definite: Any = True
    for k in reversed(range(n)):
        definite = functions.logical_and(definite, functions.less(0.0, A[k][k]))
        factors = [functions.divide(x, A[k][k]) for x in A[k][:k]]
        for i in range(k):
            for j in range(i + 1):
                A[i][j] = A[i][j] - factors[i] * A[k][j]
        A[k][:k] = factors
    X = [list(row) for row in B]
    for c in range(m):
        for k in reversed(range(n)):
            for i in range(k):
                X[i][c] = X[i][c] - A[k][i] * X[k][c]
        for k in range(n):
            X[k][c] = functions.divide(X[k][c], A[k][k])  # divided, so that x / x is 1; one reciprocal serves all once simplified
            for i in range(k):
                X[k][c] = X[k][c] - A[k][i] * X[i][c]
    return X, definite
