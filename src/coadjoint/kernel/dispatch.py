"""The decorator where the executions of one source meet.

A function marked `@kernel("nv", q="nq", v="nv")` is written for a robot and arrays whose core shapes are named so, and returns
an array whose core shape is the first. It runs

    natively     for NumPy arrays: traced once per robot, compiled, and from then on machine code (`compiled.py`)
    lazily       for Dask and xarray arrays: chunk after chunk, later, as for NumPy arrays (`scale/deferred.py`)
    as written   for JAX and PyTorch arrays, for symbols, and for NumPy where native code is switched off or impossible

with the same checks and the same errors.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array, alike, any_lazy, asfloat, broadcast_batch, like, namespace, not_real
from ..errors import CoadjointError, ShapeError
from ..lie import se3
from ..scale.deferred import call_kernel_lazily
from .runtime.arguments import check_out

F = TypeVar("F", bound=Callable[..., Any])


def kernel(
    *returns: str,
    joint_space: bool = False,
    explain: Callable[..., None] | None = None,
    largest: float = math.inf,
    **cores: str,
) -> Callable[[F], F]:
    """Declare the core shapes of a function's results and array arguments by the robot's sizes: `wrenches="n_links 6"`.

    `joint_space`: the result does not depend on which frames are fixed to the links, so that the robot's canonical form may be used.
    A function whose result is nan where there is none gives `explain`, which is called with the robot and the arrays when that
    happens to NumPy arrays, to raise an error that says why. `largest`: for a robot with more velocities (nv) the function runs as
    written, because straight-line code would take too long to make.

    The function also takes `out=`, an array to write to, and `threads=`, how many to use for a batch.
    """

    def decorate(source: F) -> F:
        return Kernel(source, returns, cores, joint_space, explain, largest).function()  # type: ignore[return-value]

    return decorate


def as_written(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The source of a kernel, to be run on arrays as it stands, without checks."""
    return fn.source  # type: ignore[attr-defined]


class Kernel:
    """A function written once, and the ways to run it."""

    def __init__(
        self,
        source: Callable[..., Any],
        returns: tuple[str, ...],
        cores: dict[str, str],
        joint_space: bool,
        explain: Callable[..., None] | None,
        largest: float,
    ) -> None:
        self.source, self.returns, self.cores = source, returns, cores
        self.joint_space, self.explain, self.largest = joint_space, explain, largest
        self.last: Any = (..., *(-1 for _ in returns[-1].split()))
        self.signature = inspect.signature(source)
        parameters = list(self.signature.parameters.values())[1:]
        required = [p.name for p in parameters if p.default is inspect.Parameter.empty]
        self.required = [name for name in required if name in cores]
        self.statics = [p.name for p in parameters if p.name not in cores]
        # Called with the required arrays alone, the compiled function is found by the source, and by what else must be given.
        self.keyed = len(self.required) < len(required)
        self.optional = {p.name for p in parameters if p.default is None}

    def function(self) -> Callable[..., Any]:
        """The function that users call.

        It is written out with the source's own arguments, as dataclasses write their methods: that is the quickest way to the compiled
        function, and Python itself says what is wrong with a call.
        """
        parameters = list(self.signature.parameters.values())[1:]
        defaults = {f"_{p.name}": p.default for p in parameters if p.default is not inspect.Parameter.empty}
        heads = [p.name if f"_{p.name}" not in defaults else f"{p.name}=_{p.name}" for p in parameters]
        names = ", ".join(p.name for p in parameters)
        ordinary = [p.name for p in parameters if p.name not in self.required and not (self.keyed and p.name in self.statics)]
        conditions = " and ".join(f"{name} is _{name}" for name in ordinary) or "True"
        arrays = ", ".join(self.required)
        key = f"(_source, {', '.join(self.statics)})" if self.keyed else "_source"
        text = f"""
def {self.source.__name__}(robot, {", ".join(heads)}, *, out=None, threads=None):
    if {conditions}:
        try:
            fast = robot._fast[{key}]
        except (KeyError, AttributeError, TypeError):
            pass  # not compiled yet; or not a robot, or a name that is none: the check says so
        else:
            {"return" if self.explain is None else "result ="} fast({arrays}) if out is None and threads is None else \
                fast({arrays}, out=out, threads=threads)
            {self._look()}
    return _general(robot, {names}, out=out, threads=threads)
"""
        scope: dict[str, Any] = defaults | {"_source": self.source, "_general": self.general}
        scope |= {"_lacking": self._lacking, "_ndarray": np.ndarray}
        exec(text, scope)
        call: Any = functools.update_wrapper(scope[self.source.__name__], self.source)
        call.kernel = self
        self.call = call
        call.source = self.source
        return call

    def general(self, robot: Any, *args: Any, out: Any = None, threads: int | None = None, **options: Any) -> Any:
        """Check, choose a way, run."""
        bound = self.signature.bind(robot, *args, **options)
        if any_lazy(bound.arguments.values()):
            return call_kernel_lazily(self, bound.arguments | {"out": out, "threads": threads})
        bound.apply_defaults()
        left_out = {name for name in self.optional if bound.arguments[name] is None}
        named = {name: (bound.arguments[name], core) for name, core in self.cores.items() if name not in left_out}
        arrays, batch = check(robot, named)
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise CoadjointError(f"threads is {threads!r}; expected a whole number, 1 or more.")
        reference = next(iter(arrays.values()))
        statics = {name: x for name, x in bound.arguments.items() if name not in self.cores and name != "robot"}
        native = None
        if robot.nv and all(type(x) is np.ndarray and x.dtype != object for x in arrays.values()):
            native = self.native(robot, arrays, statics)
        if native is not None:
            result = native.general.compute(*arrays.values(), out=out, threads=threads)
        else:
            robot_like = robot.like(reference)
            if self.joint_space and namespace(*arrays.values()).__name__.endswith("symbols") and robot.has_plain_numbers:
                robot_like = self._canonical(robot, arrays)
            bound.arguments.update(arrays, robot=robot_like)
            result = _written_to(out, self._spread(self.source(*bound.args, **bound.kwargs), batch, reference))
        if self.explain is not None and self._lacking(result):
            self.explain(robot, **arrays)
        return result

    def _canonical(self, robot: Any, arrays: dict[str, Any]) -> Any:
        """The robot in the frames that make a trace cheapest, and the wrenches, in place, as seen in them."""
        form = robot.canonical
        if "wrenches" in arrays:
            arrays["wrenches"] = se3.Ad_dual_act(form.frames, arrays["wrenches"])
        return form.robot

    def native(self, robot: Any, arrays: dict[str, Any], statics: dict[str, Any]) -> Any:
        """The compiled function for these arguments, or None where there is none."""
        if robot.nv > self.largest:
            return None
        single = all(x.dtype == np.float32 for x in arrays.values())
        key = (self.source, tuple(arrays), tuple(statics.items()), single)
        try:
            found = robot._fast.get(key, key)
        except TypeError:
            return None  # a static argument that cannot be a key
        if found is not key:
            return found
        from .pipeline import compiled

        found = compiled(self, robot, tuple(arrays), statics, np.float32 if single else np.float64)
        robot._fast[key] = found
        if (
            found is not None
            and robot.nv
            and not single
            and list(arrays) == self.required
            and (self.keyed or statics == self._defaults())
        ):

            def general(*given: Any, **options: Any) -> Any:  # arrays by name: what else is given may stand before them
                return self.general(robot, **dict(zip(self.required, given, strict=True)), **statics, **options)

            found.general.slow = general
            robot._fast[(self.source, *statics.values()) if self.keyed else self.source] = found.call
        return found

    def _defaults(self) -> dict[str, Any]:
        return {n: p.default for n, p in list(self.signature.parameters.items())[1:] if n not in self.cores}

    def _look(self) -> str:
        """Lines of the function users call that look whether there is a result, quickly for one state, before they return it."""
        if self.explain is None:
            return ""
        return f"""
            last = result[-1] if type(result) is tuple else result
            if type(last) is _ndarray and last.ndim == {len(self.last) - 1}:
                last = last.item(-1)
                if type(last) is not float or last == last:
                    return result
            elif not _lacking(result):
                return result
"""

    def _lacking(self, result: Any) -> bool:
        """Whether some state of NumPy arrays has no result: then the last entry of the last one is nan."""
        x = result[-1] if type(result) is tuple else result
        if type(x) is not np.ndarray or x.dtype == object or not x.size:
            return False
        return x.item(-1) != x.item(-1) if x.ndim == len(self.last) - 1 else bool(np.isnan(x[self.last]).any())

    def _spread(self, result: Any, batch: tuple[int, ...], reference: Array) -> Any:
        if len(self.returns) == 1:
            return spread(result, batch, len(self.returns[0].split()), reference)
        return tuple(spread(x, batch, len(c.split()), reference) for x, c in zip(result, self.returns, strict=True))


def core_shape(core: str, robot: Any) -> tuple[int, ...]:
    """The sizes that a core such as "n_links 6" names."""
    return tuple(int(size) if size.isdigit() else getattr(robot, size) for size in core.split())


def check(robot: Any, named: dict[str, tuple[Any, str]]) -> tuple[dict[str, Array], tuple[int, ...]]:
    """Each array as floating-point numbers of one array library, its last axes as declared; and the batch shape of all."""
    if not hasattr(robot, "links"):
        raise CoadjointError(f"the first argument is {type(robot).__name__}; expected a Robot, as from coadjoint.load('panda').")
    arrays: dict[str, Array] = {}
    batches: dict[str, tuple[Array, int]] = {}
    for name, (x, core) in named.items():
        x = asfloat(x, name)
        if x.dtype == object:
            numbers = [isinstance(e, float | int) for e in x.flat]
            if not all(n or hasattr(e, "__coadjoint_symbol__") for n, e in zip(numbers, x.flat, strict=True)):
                raise not_real(name, x)
            x = x.astype(np.float64) if all(numbers) and type(x) is np.ndarray else x
        wanted = core_shape(core, robot)
        if tuple(x.shape[-len(wanted) :]) != wanted:
            sizes = ", ".join(map(str, wanted))
            meaning = ", ".join(f"{size} = {n}" for size, n in zip(core.split(), wanted, strict=True) if not size.isdigit())
            raise ShapeError(f"{name} has shape {tuple(x.shape)}; expected (..., {sizes}) for robot {robot.name!r} ({meaning}).")
        arrays[name] = x
        batches[name] = (x, len(wanted))
    batch = broadcast_batch(**batches)
    arrays = dict(zip(arrays, alike(list(arrays.values())), strict=True))
    return arrays, batch


def spread(x: Array, batch: tuple[int, ...], core: int, reference: Array) -> Array:
    """The result with all batch axes, also where it does not depend on the arguments that have them."""
    xp = namespace(x, reference)
    if not hasattr(x, "shape") or namespace(x) is not xp:
        x = xp.asarray(x) if xp.__name__.startswith("jax") else like(x, reference)
    shape = (*batch, *x.shape[x.ndim - core :])
    if tuple(x.shape) == shape:
        return x
    x = xp.broadcast_to(x, shape)
    return x.copy() if xp is np else x


def _written_to(out: Any, result: Any) -> Any:
    """The result, copied to `out` where that is given."""
    if out is None:
        return result
    results, outs = (result, out) if isinstance(result, tuple) else ((result,), (out,))
    for k, (x, y) in enumerate(zip(results, outs, strict=True)):
        check_out("out" if len(outs) == 1 else f"out[{k}]", y, x.shape, x.dtype)
        y[...] = x
    return out
