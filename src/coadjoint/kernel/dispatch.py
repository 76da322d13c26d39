"""The decorator where the executions of one source meet.

A function marked `@kernel("nv", q="nq", v="nv")` is written for a robot and arrays whose core shapes are named so, and returns
an array whose core shape is the first. `Kernel.call` checks the arguments and chooses one of four executions:

    native        NumPy arrays: traced once per robot, compiled, and from then on machine code (`pipeline.py`)
    lazily        Dask and xarray arrays: later, chunk after chunk, as NumPy arrays (`scale/deferred.py`)
    as written    JAX and PyTorch arrays, and NumPy arrays where native code is switched off or impossible
    traced        arrays of symbols: as written, on the robot in its canonical form where that gives the same result

The function that users call is `Kernel.function`: a few generated lines that find the machine code made before, else `Kernel.call`.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from ..arguments import Shape, a_flag, check_core, check_labels, check_outs, check_threads
from ..arrays import Array, alike, any_lazy, asfloat, broadcast_batch, like, namespace, not_real
from ..errors import CoadjointError
from ..scale.deferred import call_kernel_lazily
from .mechanism import Mechanism

if TYPE_CHECKING:
    from .runtime.function import CompiledFunction

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
Out = np.ndarray | tuple[np.ndarray, ...]


class KernelFunction(Protocol[P, R]):
    """A kernel for type checkers: its source's arguments, and `out=` and `threads=`."""

    __name__: str
    kernel: Kernel
    source: Callable[..., Any]

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __call__(self, *args: Any, out: Out | None, threads: int | None = None, **kwargs: Any) -> R: ...

    @overload
    def __call__(self, *args: Any, threads: int | None, **kwargs: Any) -> R: ...


KEPT = 512
"""The number of compiled functions that a robot keeps; the oldest goes first, and comes back from the disk."""


def kernel(
    *returns: str,
    joint_space: bool = False,
    no_result: Callable[..., None] | None = None,
    double: bool = False,
    check: Callable[..., None] | None = None,
    largest: float = math.inf,
    **cores: str,
) -> Callable[[Callable[P, R]], KernelFunction[P, R]]:
    """Declare the core shapes of a function's results and array arguments by the robot's sizes: `wrenches="n_links 6"`.

    `joint_space`: the result does not depend on which frames are fixed to the links, so that the robot's canonical form may be used.
    A state without a result has NaN, the last entry of the last result included. Where that happens to NumPy arrays, no_result(robot,
    result=…, **arguments) is called: it raises an error that says why, or writes into the result what it finds by another way, or leaves
    NaN. `double`: only double precision can tell, so NumPy arrays of single precision are computed in double, and results given in single.
    `check` is called with the robot and the arguments that are not arrays
    before anything is traced. `largest`: for a robot with more velocities (nv) the function runs as written, because straight-line
    code would take too long to make.

    The function also takes `out=`, an array to write to, and `threads=`, how many to use for a batch.
    """

    def decorate(source: Callable[P, R]) -> KernelFunction[P, R]:
        function: KernelFunction[P, R] = Kernel(source, returns, cores, joint_space, no_result, double, check, largest).function()
        return function

    return decorate


def as_written(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The source of a kernel, to be run on arrays as it stands, without checks."""
    source: Callable[..., Any] = fn.source  # type: ignore[attr-defined]
    return source


KEYWORDS = [
    inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="np.ndarray | tuple[np.ndarray, ...] | None"),
    inspect.Parameter("threads", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="int | None"),
]
"""The arguments that every kernel takes beside those of its source."""


class Kernel:
    """A function written once, and the ways to run it."""

    def __init__(
        self,
        source: Callable[..., Any],
        returns: tuple[str, ...],
        cores: dict[str, str],
        joint_space: bool,
        no_result: Callable[..., None] | None,
        double: bool,
        check: Callable[..., None] | None,
        largest: float,
    ) -> None:
        self.source, self.returns, self.cores = source, returns, cores
        self.joint_space, self.no_result, self.double, self.check, self.largest = joint_space, no_result, double, check, largest
        self.last: Any = (..., *(-1 for _ in returns[-1].split()))
        self.signature = inspect.signature(source)
        self.parameters = list(self.signature.parameters.values())[1:]
        required = [p.name for p in self.parameters if p.default is inspect.Parameter.empty]
        self.required = [name for name in required if name in cores]
        self.statics = [p.name for p in self.parameters if p.name not in cores]
        # Called with the required arrays alone, the compiled function is found by the source, and by what else must be given.
        self.keyed = len(self.required) < len(required)
        self.optional = {p.name for p in self.parameters if p.default is None}
        self.flags = {p.name for p in self.parameters if isinstance(p.default, bool)}

    def call(self, robot: Mechanism, *args: Any, out: Any = None, threads: Any = None, **options: Any) -> Any:
        """Check the arguments, choose an execution, run it."""
        bound = self.signature.bind(robot, *args, **options)
        if any_lazy(bound.arguments.values()):
            return call_kernel_lazily(self, bound.arguments | {"out": out, "threads": threads})
        bound.apply_defaults()
        given = bound.arguments
        named = {
            name: (given[name], core) for name, core in self.cores.items() if not (given[name] is None and name in self.optional)
        }
        arrays, batch = check(robot, named)
        statics = {name: a_flag(given[name], name) if name in self.flags else frozen(given[name], robot) for name in self.statics}
        threads = check_threads(threads)
        if self.double and all(type(x) is np.ndarray and x.dtype == np.float32 for x in arrays.values()):
            wide = {name: x.astype(np.float64) for name, x in arrays.items()}
            found = self.call(robot, **wide, **statics, threads=threads)
            narrow = tuple(x.astype(np.float32) for x in found) if isinstance(found, tuple) else found.astype(np.float32)
            return written_to(out, narrow, self.source.__name__)
        compiled = self.native(robot, arrays, statics)
        if compiled is not None:
            result = compiled.run(list(arrays.values()), batch, out, threads)
        elif namespace(*arrays.values()).__name__.endswith("symbols"):
            result = self.traced(robot, arrays, statics, batch)
        else:
            result = written_to(out, self.as_written(robot, arrays, statics, batch), self.source.__name__)
        if self.no_result is not None and self._has_no_result(result):
            self.no_result(robot, result=result, **arrays, **statics)
        return result

    def native(self, robot: Mechanism, arrays: dict[str, Array], statics: dict[str, Any]) -> CompiledFunction | None:
        """The compiled function for these arguments; None where there is none, or they are not numbers of NumPy's."""
        if not 0 < robot.nv <= self.largest or any(type(x) is not np.ndarray or x.dtype == object for x in arrays.values()):
            return None
        single = all(x.dtype == np.float32 for x in arrays.values())
        key = (self.source, tuple(arrays), tuple(statics.items()), single)
        try:
            found: Any = robot._fast.get(key, key)
        except TypeError:
            return None  # a static argument that cannot be a key
        before = None if found is key else found  # it may serve other robots as well
        if found is key or (before is not None and before.spent):
            from .pipeline import compiled

            found = compiled(self, robot, tuple(arrays), statics, np.float32 if single else np.float64, own=before is not None)
            if found is None and before is not None:  # it cannot be made now
                before.renew()
                found = before
            robot._fast[key] = found
            if len(robot._fast) > KEPT:  # users' functions make new ones without end
                robot._fast.pop(next(iter(list(robot._fast))), None)
            if found is not None and not single:
                self._remember(robot, arrays, statics, found)
        compiled_function: CompiledFunction | None = found
        return compiled_function

    def _remember(self, robot: Mechanism, arrays: dict[str, Array], statics: dict[str, Any], compiled: CompiledFunction) -> None:
        """Let the function that users call find the machine code for calls with the required arguments alone."""
        defaults = {p.name: p.default for p in self.parameters if p.name not in self.cores}
        if list(arrays) != self.required or not (self.keyed or statics == defaults):
            return

        def otherwise(*given: Any, **options: Any) -> Any:  # arrays by name: what else is given may stand before them
            return self.call(robot, **dict(zip(self.required, given, strict=True)), **statics, **options)

        compiled.otherwise = otherwise
        robot._fast[(self.source, *statics.values()) if self.keyed else self.source] = compiled.call

    def in_use(self, robot: Mechanism) -> str:
        """The kernels that calls on a robot use, in words; empty if there are none yet."""
        made = [found for key, found in list(robot._fast.items()) if type(key) is tuple and key[0] is self.source]
        return " and ".join(dict.fromkeys(x.kind for x in made if hasattr(x, "kind")))

    def as_written(self, robot: Mechanism, arrays: dict[str, Array], statics: dict[str, Any], batch: Shape) -> Any:
        """The source itself on these arrays."""
        reference = next(iter(arrays.values()))
        if 0 in batch:  # no state at all: the shapes are those of one
            one = {name: like(np.zeros(core_shape(self.cores[name], robot)), x) for name, x in arrays.items()}
            with np.errstate(all="ignore"):
                result = self._spread(self.source(robot.like(reference), **one, **statics), (), reference)

            def none(x: Array) -> Array:
                return spread(x, (0,), x.ndim, reference).reshape((*batch, *x.shape))

            return tuple(map(none, result)) if isinstance(result, tuple) else none(result)
        return self._spread(self.source(robot.like(reference), **arrays, **statics), batch, reference)

    def traced(self, robot: Mechanism, arrays: dict[str, Array], statics: dict[str, Any], batch: Shape) -> Any:
        """The source on symbols, on the robot in the frames that make the trace cheapest."""
        reference = next(iter(arrays.values()))
        if self.joint_space and robot.has_plain_numbers:
            robot, arrays = robot.canonical_arguments(arrays)
        else:
            robot = robot.like(reference)
        return self._spread(self.source(robot, **arrays, **statics), batch, reference)

    def function(self) -> Any:
        """The function that users call.

        It is written out with the source's own arguments, as dataclasses write their methods: that is the quickest way to the compiled
        function, and Python itself says what is wrong with a call.
        """
        name = self.source.__name__
        text = self._text()
        file = f"<coadjoint.{name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # tracebacks show the lines
        scope: dict[str, Any] = {f"_{p.name}": p.default for p in self.parameters}
        scope |= {"_source": self.source, "_call": self.call, "_check": self.check}
        scope |= {"_has_no_result": self._has_no_result, "_ndarray": np.ndarray}
        exec(compile(text, file, "exec"), scope)
        call: Any = functools.update_wrapper(scope[name], self.source)
        call.__signature__ = self.signature.replace(parameters=[*self.signature.parameters.values(), *KEYWORDS])
        call.kernel = self
        self.public = call
        call.source = self.source
        return call

    def _text(self) -> str:
        heads = [p.name if p.default is inspect.Parameter.empty else f"{p.name}=_{p.name}" for p in self.parameters]
        names = ", ".join(p.name for p in self.parameters)
        ordinary = [p.name for p in self.parameters if p.name not in self.required and not (self.keyed and p.name in self.statics)]
        conditions = " and ".join(f"{name} is _{name}" for name in ordinary) or "True"
        arrays = ", ".join(self.required)
        key = f"(_source, {', '.join(self.statics)})" if self.keyed else "_source"
        look = f"""
            last = result[-1] if type(result) is tuple else result
            if type(last) is _ndarray and last.ndim == {len(self.last) - 1}:  # one state: quickly
                last = last.item(-1)
                if type(last) is not float or last == last:
                    return result
            elif not _has_no_result(result):
                return result
"""
        return f"""
def {self.source.__name__}(robot, {", ".join(heads)}, *, out=None, threads=None):
    if {conditions}:
        try:
            compiled = robot._fast[{key}]
        except (KeyError, AttributeError, TypeError):
            pass  # not compiled yet; or not a robot, or a name that is none: the check says so
        else:
            {"return" if self.no_result is None else "result ="} compiled({arrays}) if out is None and threads is None else \
                compiled({arrays}, out=out, threads=threads)
            {"" if self.no_result is None else look}
    {"" if self.check is None else f"_check(robot, {', '.join(self.statics)})"}
    return _call(robot, {names}, out=out, threads=threads)
"""

    def _has_no_result(self, result: Any) -> bool:
        """True if some state of NumPy arrays has no result: then the last entry of the last one is NaN."""
        x = result[-1] if type(result) is tuple else result
        if type(x) is not np.ndarray or x.dtype == object or not x.size:
            return False
        return x.item(-1) != x.item(-1) if x.ndim == len(self.last) - 1 else bool(np.isnan(x[self.last]).any())

    def _spread(self, result: Any, batch: Shape, reference: Array) -> Any:
        if len(self.returns) == 1:
            return spread(result, batch, len(self.returns[0].split()), reference)
        return tuple(spread(x, batch, len(c.split()), reference) for x, c in zip(result, self.returns, strict=True))


def frozen(x: Any, robot: Mechanism) -> Any:
    """A static argument with users' functions in it as they are now."""
    return x.frozen(robot) if hasattr(x, "frozen") else x


def core_shape(core: str, robot: Mechanism) -> Shape:
    """The sizes that a core such as "n_links 6" names."""
    return tuple(int(size) if size.isdigit() else getattr(robot, size) for size in core.split())


def check_robot(robot: Any) -> None:
    """An error for what is no robot."""
    if not hasattr(robot, "links"):
        raise CoadjointError(f"the first argument is {type(robot).__name__}; expected a Robot, as from coadjoint.load('panda').")


def check(robot: Mechanism, named: dict[str, tuple[Any, str]]) -> tuple[dict[str, Array], Shape]:
    """Each array as floating-point numbers of one array library, its last axes as declared; and the batch shape of all.

    NumPy arrays are of single precision if all of them are, else of double precision, in every execution.
    """
    check_robot(robot)
    arrays: dict[str, Array] = {}
    batches: dict[str, tuple[Array, int]] = {}
    for name, (x, core) in named.items():
        if type(x) is not np.ndarray:
            check_labels(name, x, robot)
        x = asfloat(x, name)
        if x.dtype == object:
            numbers = [isinstance(e, float | int) for e in x.flat]
            if not all(n or hasattr(e, "__coadjoint_symbol__") for n, e in zip(numbers, x.flat, strict=True)):
                raise not_real(name, x)
            x = x.astype(np.float64) if all(numbers) and type(x) is np.ndarray else x
        wanted = core_shape(core, robot)
        meaning = ", ".join(f"{size} = {n}" for size, n in zip(core.split(), wanted, strict=True) if not size.isdigit())
        check_core(name, x, wanted, f" for robot {robot.name!r} ({meaning})")
        arrays[name] = x
        batches[name] = (x, len(wanted))
    batch = broadcast_batch(**batches)
    arrays = dict(zip(arrays, alike(list(arrays.values())), strict=True))
    if all(type(x) is np.ndarray and x.dtype != object for x in arrays.values()):
        dtype = np.float32 if all(x.dtype == np.float32 for x in arrays.values()) else np.float64
        arrays = {name: x.astype(dtype, copy=False) for name, x in arrays.items()}
    return arrays, batch


def spread(x: Array, batch: Shape, core: int, reference: Array) -> Array:
    """The result with all batch axes, also where it does not depend on the arguments that have them."""
    xp = namespace(x, reference)
    if not hasattr(x, "shape") or namespace(x) is not xp:
        x = xp.asarray(x) if xp.__name__.startswith("jax") else like(x, reference)
    shape = (*batch, *x.shape[x.ndim - core :])
    if tuple(x.shape) == shape:
        return x
    x = xp.broadcast_to(x, shape)
    return x.copy() if xp is np else x


def written_to(out: Any, result: Any, name: str) -> Any:
    """The result of the function of that name, copied to `out` where that is given."""
    if out is None:
        return result
    results = result if isinstance(result, tuple) else (result,)
    for x, y in zip(results, check_outs(name, out, [x.shape for x in results], results[0].dtype), strict=True):
        y[...] = x
    return out
