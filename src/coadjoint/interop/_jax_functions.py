"""Native kernels inside JAX: functions of a robot as a primitive."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import check_inputs
from ..arrays import Array, asfloat
from ..errors import CoadjointError
from ..kernel.runtime import native
from ..robot.robot import Robot
from . import _xla
from ._common import engine
from ._programs import Program
from ._programs import program as program_of

jax = engine("jax")
jnp = jax.numpy
ad, batching, mlir = (engine(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir"))


def function(
    fn: Callable[..., Any],
    robot: Robot,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    parameters: Sequence[str] = (),
    **options: Any,
) -> Callable[..., Any]:
    """A function of JAX arrays, f(*arrays, *parameters), that runs fn(robot, *arrays, **options) as machine code.

    Arguments are those of `coadjoint.compile`: fn is one of our functions or a user's own, and `parameters` names numbers of the robot
    that become inputs, to be differentiated by. Arrays may have any batch axes in front. Single precision, which is JAX's default, is
    computed in single precision: `jax.config.update("jax_enable_x64", True)` changes that. Where native code is impossible fn runs as
    written.
    """
    return functools.wraps(fn)(function_of(program_of(fn, robot, shapes, parameters, options)))


def function_of(made: Program) -> Callable[..., Any]:
    """A function of JAX arrays that runs a program."""
    g = made.graph
    # Arrays without numbers have no states to count.
    compiled = native.available() and all(np.prod(shape) for shape in (*g.input_shapes, *g.output_shapes))

    def call(*args: Any, **named: Any) -> Any:
        arrays = _checked(made, made.signature.bind(*args, **named).arguments)
        if not compiled:
            return made.written(*arrays)
        batch = check_inputs(g.input_names, g.input_shapes, arrays)
        found = primitive.bind(*_spread(made, arrays, batch), program=made)
        return tuple(found) if len(found) != 1 else found[0]

    call.__signature__ = made.signature  # type: ignore[attr-defined]
    return call


def _checked(program: Program, given: Mapping[str, Any]) -> list[Array]:
    """The arrays converted to one floating-point type."""
    arrays = [asfloat(jnp.asarray(x), name) for name, x in given.items()]
    for name, x in zip(given, arrays, strict=True):
        if x.dtype not in (np.float32, np.float64):
            raise CoadjointError(
                f"{name} has dtype {x.dtype}; kernels are of float64 or float32: convert it, as in x.astype('float32')."
            )
    arrays = [x.astype(jnp.result_type(*arrays)) for x in arrays]
    check_inputs(program.graph.input_names, program.graph.input_shapes, arrays)
    return arrays


def _batch(program: Program, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The batch shape of the arrays; each must have it whole or have none."""
    batches = {s[: len(s) - len(core)] for s, core in zip(shapes, program.graph.input_shapes, strict=True)} - {()}
    assert len(batches) <= 1
    return batches.pop() if batches else ()


def _spread(program: Program, arrays: Sequence[Array], batch: tuple[int, ...]) -> list[Array]:
    """The arrays broadcast to the whole batch, if there is one."""
    cores = program.graph.input_shapes
    return [x if x.shape == core else jnp.broadcast_to(x, batch + core) for x, core in zip(arrays, cores, strict=True)]


# The primitive: arrays with one batch, or none, and a program.

primitive = engine("jax.extend.core").Primitive("coadjoint")
primitive.multiple_results = True


@functools.lru_cache(maxsize=1024)
def _jitted(program: Program) -> Callable[..., Any]:
    run: Callable[..., Any] = jax.jit(functools.partial(primitive.bind, program=program))
    return run


@primitive.def_impl  # type: ignore[untyped-decorator]
def _run(*arrays: Array, program: Program) -> Any:
    return _jitted(program)(*arrays)


@primitive.def_abstract_eval  # type: ignore[untyped-decorator]
def _shapes(*arrays: Any, program: Program) -> Any:
    batch = _batch(program, [x.shape for x in arrays])
    return [jax.core.ShapedArray(batch + core, arrays[0].dtype) for core in program.graph.output_shapes]


def _jvp(primals: Sequence[Array], tangents: Sequence[Array], program: Program) -> Any:
    results = primitive.bind(*primals, program=program)
    moving = tuple(k for k, t in enumerate(tangents) if type(t) is not ad.Zero)
    if set(moving) <= set(program.linear):
        places = [ad.instantiate_zeros(tangents[k]) if k in program.linear else x for k, x in enumerate(primals)]
        return results, primitive.bind(*places, program=program)
    return results, primitive.bind(*primals, *(tangents[k] for k in moving), program=program.along(moving))


def _transpose(weights: Sequence[Any], *arrays: Any, program: Program) -> Any:
    linear = tuple(k for k, x in enumerate(arrays) if ad.is_undefined_primal(x))
    outputs = tuple(k for k, w in enumerate(weights) if type(w) is not ad.Zero)
    found: list[Any] = [None] * len(arrays)
    if outputs:
        transposed, known = program.transposed(linear, outputs)
        results = primitive.bind(*(arrays[k] for k in known), *(weights[k] for k in outputs), program=transposed)
        for k, x in zip(linear, results, strict=True):
            more = x.ndim - arrays[k].aval.ndim  # what all states share has the sum of their weights
            found[k] = x.sum(axis=tuple(range(more))) if more else x
    return found


def _vmapped(arrays: Sequence[Array], axes: Sequence[int | None], program: Program) -> Any:
    cores = program.graph.input_shapes
    size = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
    moved = [x if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in zip(arrays, axes, strict=True)]
    inner = _batch(program, [x.shape if axis is None else x.shape[1:] for x, axis in zip(moved, axes, strict=True)])
    for k, axis in enumerate(axes):
        x, core = moved[k], cores[k]
        if axis is not None and x.ndim == 1 + len(core):
            moved[k] = x.reshape(size, *(1 for _ in inner), *core)
    batch = (size, *inner)
    return primitive.bind(*_spread(program, moved, batch), program=program), (0,) * len(program.graph.output_shapes)


def _on_processors(ctx: Any, *operands: Any, program: Program) -> Any:
    dtype = ctx.avals_in[0].dtype
    try:
        name = _xla.target(program, dtype)
    except native.NativeError:
        return _elsewhere(ctx, *operands, program=program)
    if name is None:  # Python calls the kernel: of an XLA that we do not know, or to compare every call
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in ctx.avals_out]

        def compute(*arrays: Array) -> Any:
            found = program.call(dtype)(*map(np.asarray, arrays))
            return found if isinstance(found, tuple) else (found,)

        called_back = lambda *arrays: jax.pure_callback(compute, tuple(shapes), *arrays)
        return mlir.lower_fun(called_back, multiple_results=True)(ctx, *operands)
    return jax.ffi.ffi_lowering(name)(ctx, *operands)


def _elsewhere(ctx: Any, *operands: Any, program: Program) -> Any:
    return mlir.lower_fun(functools.partial(_as_written, program), multiple_results=True)(ctx, *operands)


def _as_written(program: Program, *arrays: Array) -> tuple[Array, ...]:
    """The program's results by the function as written, with JAX's own derivatives."""
    if program.origin is None:
        found = program.written(*arrays)
        return found if isinstance(found, tuple) else (found,)
    kind, base, inputs, outputs = program.origin
    batch = _batch(program, [x.shape for x in arrays])
    arrays = tuple(jnp.broadcast_to(x, batch + core) for x, core in zip(arrays, program.graph.input_shapes, strict=True))
    n = len(base.graph.input_names)

    def of(*chosen: Array) -> tuple[Array, ...]:
        given = list(arrays[:n])
        for k, x in zip(inputs, chosen, strict=True):
            given[k] = x
        found = _as_written(base, *given)
        return tuple(found[k] for k in outputs)

    at = tuple(arrays[k] for k in inputs)
    if kind == "along":
        rates: tuple[Array, ...] = jax.jvp(of, at, arrays[n:])[1]
    else:
        rates = jax.vjp(of, *at)[1](arrays[n:])
    return rates


ad.primitive_jvps[primitive] = _jvp
ad.primitive_transposes[primitive] = _transpose
batching.primitive_batchers[primitive] = _vmapped
mlir.register_lowering(primitive, _on_processors, platform="cpu")
mlir.register_lowering(primitive, _elsewhere)
