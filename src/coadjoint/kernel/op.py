"""An operation's properties, and the functions with which its entry in the table (`ops.py`) is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .emit.llvm import Body

Emit = Callable[..., str]
"""f(body, *values): the name of the result, its instructions written to the body."""
Partial = Callable[..., Any]
"""f(node, *arguments): ∂node/∂argument on symbols."""


@dataclass(frozen=True, kw_only=True)
class Op:
    """An operation on scalars."""

    arity: int
    number: Callable[..., Any]
    """The operation on Python floats, with infinities and NaN as in NumPy: for constant folding."""
    numpy: Any
    """The operation on NumPy arrays: a ufunc, or np.where."""
    array: str
    """Its name in array libraries."""
    cost: int = 1
    """The approximate number of instructions: the cost model of the simplifier and the scheduler."""
    commutative: bool = False
    truth: bool = False
    """True if the result is a truth value; only and, or, not and where may use it."""
    parity: Literal["odd", "even"] | None = None
    """f(-x) = -f(x), or f(x)."""
    partials: tuple[Partial, ...] = ()
    """∂/∂argument for each argument; empty for piecewise constant operations."""
    choice: Callable[[Any, Any], Any] | None = None
    """The condition, for min and max, under which the result is the first argument."""
    llvm: Emit | None = None
    """The emitter of LLVM code; None for sin and cos, which are computed together, several angles at a time."""
    called: bool = False
    """True if the machine code is long enough for a separate function."""
    c: str
    js: str = ""
    """The form in JavaScript; without one, that in C, whose functions JavaScript has in `Math`."""
    wasm: int | None = None
    """The instruction of WebAssembly; without one, the function of JavaScript is called."""
    latex: str = ""
    r"""A form with {}, other braces doubled; or a function's name, `\sin`, or a relation's sign. Sums, products and
    quotients have forms of their own."""
    sympy: Callable[[Any], Callable[..., Any]] | None = None
    """From the module to the function; without one `number` serves."""
    casadi: Callable[[Any], Callable[..., Any]] | None = None


def safe(function: Callable[[float], float], overflow: float = math.nan) -> Callable[[float], float]:
    """A function of `math` that returns NumPy's value where `math` raises an error."""

    def guarded(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return overflow if x == 0.0 else math.nan
        except OverflowError:
            return overflow

    return guarded


def quotient(x: Any, y: Any) -> Any:
    """x / y with NumPy's values for y = 0: ±inf or NaN."""
    if type(y) is float and y == 0.0 and type(x) is float:
        return math.copysign(math.inf, x) * math.copysign(1.0, y) if x and not math.isnan(x) else math.nan
    return x / y


def extremum(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """Python's min or max, NaN where an argument is NaN."""
    return lambda x, y: math.nan if math.isnan(x) or math.isnan(y) else choose(x, y)


def instruction(name: str) -> Emit:
    """An emitter of one LLVM instruction on numbers, as `fadd`."""
    return lambda body, *values: body.op(name, *values)


def intrinsic(name: str) -> Emit:
    """An emitter of a call of one of LLVM's intrinsic functions, as `sqrt`."""
    return lambda body, *values: body.intrinsic(name, *values)


def comparison(relation: str) -> Emit:
    """An emitter of LLVM's `fcmp` with a relation, as `olt`."""
    return lambda body, x, y: body.compare(relation, x, y)


def bitwise(name: str) -> Emit:
    """An emitter of one LLVM instruction on truth values."""
    return lambda body, x, y: body.new(f"{name} {body.lanes.bools} {x}, {y}")


def elementary(name: str) -> Emit:
    """An emitter that is a function of `emit/elementary.py`."""

    def emit(body: Body, *values: str) -> str:
        from .emit import elementary

        return str(getattr(elementary, name)(body, *values))

    return emit


def on_symbols(name: str) -> Callable[..., Any]:
    """A function of `trace/functions.py`, for derivatives, which are written on symbols."""

    def function(*args: Any) -> Any:
        from .trace import functions

        return getattr(functions, name)(*args)

    return function
