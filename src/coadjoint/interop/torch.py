"""Native kernels inside PyTorch: autograd of any order, forward mode, `torch.func.vmap`, `grad`, `jacrev`, `hessian`.

    torque = cj.interop.torch.function(cj.inverse_dynamics, robot)
    (torque(q, v, a) ** 2).sum().backward()

Tensors in the processor's memory are read where they lie, by machine code; those on other devices go through the function as written.
Derivatives are kernels too (`_programs`), exact, and made when they are first asked for; those by q are by its entries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import check_inputs
from ..arrays import Array, alike, asfloat
from ..errors import CoadjointError
from ..kernel.passes.evaluate import evaluate
from ..kernel.runtime import native
from ..robot.robot import Robot
from ._common import engine
from ._programs import Program
from ._programs import program as program_of

__all__ = ["function"]

torch = engine("torch")
_Function: Any = torch.autograd.Function
DTYPES = {torch.float64: np.float64, torch.float32: np.float32}


def function(
    fn: Callable[..., Any],
    robot: Robot,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    parameters: Sequence[str] = (),
    **options: Any,
) -> Callable[..., Any]:
    """A function of tensors, f(*arrays, *parameters), that runs fn(robot, *arrays, **options) as machine code.

    Arguments are those of `coadjoint.compile`: fn is one of our functions or a user's own, and `parameters` names numbers of the robot
    that become inputs, to be differentiated by. Tensors may have any batch axes in front; of two precisions the higher is taken. Where
    native code is impossible, and on other devices, fn runs as written.
    """
    made = program_of(fn, robot, shapes, parameters, options)
    g = made.graph
    compiled = native.available()

    @functools.wraps(fn)
    def call(*args: Any, **named: Any) -> Any:
        tensors = _checked(made.signature.bind(*args, **named).arguments)
        batch = check_inputs(g.input_names, g.input_shapes, tensors)
        if not compiled or any(x.device.type != "cpu" for x in tensors):
            return made.written(*tensors)
        whole = [x.expand(batch + core) for x, core in zip(tensors, g.input_shapes, strict=True)]
        found = _Run.apply(made, *whole)
        return found if len(found) != 1 else found[0]

    call.__signature__ = made.signature  # type: ignore[attr-defined]
    return call


def _checked(given: Mapping[str, Any]) -> list[Array]:
    """The arrays as tensors of one floating-point type."""
    tensors = [asfloat(x if isinstance(x, torch.Tensor) else torch.as_tensor(x), name) for name, x in given.items()]
    for name, x in zip(given, tensors, strict=True):
        if x.dtype not in DTYPES:
            raise CoadjointError(f"{name} has dtype {x.dtype}; kernels are of float64 or float32: convert it, as in x.float().")
    return alike(tensors)


class _Run(_Function):
    """A program on tensors that all have the whole batch."""

    @staticmethod
    def forward(program: Program, *tensors: Array) -> tuple[Array, ...]:
        arrays = [x.detach().numpy() for x in tensors]
        try:
            found = program.call(arrays[0].dtype)(*arrays)
        except native.NativeError:
            found = tuple(x.astype(arrays[0].dtype) for x in evaluate(program.graph, *arrays))
        return tuple(torch.from_numpy(x) for x in (found if isinstance(found, tuple) else (found,)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Array, ...]) -> None:
        ctx.program = inputs[0]
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *weights: Array | None) -> tuple[Array | None, ...]:
        inputs = tuple(k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
        outputs = tuple(k for k, w in enumerate(weights) if w is not None)
        found: list[Array | None] = [None] * len(ctx.needs_input_grad)
        if inputs and outputs:
            pulled_back = ctx.program.pulled_back(inputs, outputs)
            gradients = _Run.apply(pulled_back, *ctx.saved_tensors, *(weights[k] for k in outputs))
            for k, x in zip(inputs, gradients, strict=True):
                found[k + 1] = x
        return tuple(found)

    @staticmethod
    def jvp(ctx: Any, _: None, *directions: Array | None) -> tuple[Array, ...]:
        inputs = tuple(k for k, d in enumerate(directions) if d is not None)
        return _Run.apply(ctx.program.along(inputs), *ctx.saved_tensors, *(directions[k] for k in inputs))

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], program: Program, *tensors: Array) -> tuple[Any, Any]:
        moved = [
            x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis in zip(tensors, axes[1:], strict=True)
        ]
        return _Run.apply(program, *moved), (0,) * len(program.graph.output_shapes)
