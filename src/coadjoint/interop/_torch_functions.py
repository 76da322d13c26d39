"""Native kernels inside PyTorch: functions of a robot as autograd functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..arguments import check_inputs
from ..arrays import alike, asfloat
from ..errors import CoadjointError
from ..kernel.passes.evaluate import evaluate
from ..kernel.runtime import native
from ..robot.robot import Robot
from ._common import engine
from ._programs import Program
from ._programs import program as program_of

torch = engine("torch")
Tensor: TypeAlias = Any
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
        tensors = checked(made.signature.bind(*args, **named).arguments)
        batch = check_inputs(g.input_names, g.input_shapes, tensors)
        if not compiled or any(x.device.type != "cpu" for x in tensors):
            return made.written(*tensors)
        whole = [x.expand(batch + core) for x, core in zip(tensors, g.input_shapes, strict=True)]
        found = _Run.apply(made, *whole)
        return found if len(found) != 1 else found[0]

    call.__signature__ = made.signature  # type: ignore[attr-defined]
    return call


def checked(given: Mapping[str, Any]) -> list[Tensor]:
    """The arrays converted to tensors of one floating-point type."""
    tensors = [asfloat(x if isinstance(x, torch.Tensor) else torch.as_tensor(x), name) for name, x in given.items()]
    for name, x in zip(given, tensors, strict=True):
        if x.dtype not in DTYPES:
            raise CoadjointError(f"{name} has dtype {x.dtype}; kernels are of float64 or float32: convert it, as in x.float().")
    return alike(tensors)


class _Run(_Function):  # type: ignore[misc]
    """The autograd function that runs a program on tensors with a common batch."""

    @staticmethod
    def forward(program: Program, *tensors: Tensor) -> tuple[Tensor, ...]:
        arrays = [x.detach().numpy() for x in tensors]
        try:
            found = program.call(arrays[0].dtype)(*arrays)
        except native.NativeError:
            found = tuple(x.astype(arrays[0].dtype) for x in evaluate(program.graph, *arrays))
        return tuple(torch.from_numpy(x) for x in (found if isinstance(found, tuple) else (found,)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.program = inputs[0]
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *weights: Tensor | None) -> tuple[Tensor | None, ...]:
        inputs = tuple(k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
        outputs = tuple(k for k, w in enumerate(weights) if w is not None)
        found: list[Tensor | None] = [None] * len(ctx.needs_input_grad)
        if inputs and outputs:
            pulled_back = ctx.program.pulled_back(inputs, outputs)
            gradients = _Run.apply(pulled_back, *ctx.saved_tensors, *(weights[k] for k in outputs))
            for k, x in zip(inputs, gradients, strict=True):
                found[k + 1] = x
        return tuple(found)

    @staticmethod
    def jvp(ctx: Any, _: None, *directions: Tensor | None) -> tuple[Tensor, ...]:
        inputs = tuple(k for k, d in enumerate(directions) if d is not None)
        result: tuple[Any, ...] = _Run.apply(ctx.program.along(inputs), *ctx.saved_tensors, *(directions[k] for k in inputs))
        return result

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], program: Program, *tensors: Tensor) -> tuple[Any, Any]:
        moved = [
            x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis in zip(tensors, axes[1:], strict=True)
        ]
        return _Run.apply(program, *moved), (0,) * len(program.graph.output_shapes)
