"""Rollouts and inverse kinematics inside PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..kinematics import jacobian, pose
from ..robot.robot import Robot
from ._common import engine
from ._rollouts import Inputs, NativeRollout, implicit_weights, pose_program, solver, step_program
from ._torch_functions import checked, function

torch = engine("torch")
_Function: Any = torch.autograd.Function


def rollout(
    robot: Robot, *, dt: float, method: str = "euler", friction: bool = False, parameters: Sequence[str] = ()
) -> Callable[..., Any]:
    """A function of tensors, f(q, v, tau, *parameters) -> q (..., steps + 1, nq), v (..., steps + 1, nv), as `coadjoint.rollout`.

    q (..., nq), v (..., nv), tau (..., steps, nv); `parameters` names numbers of the robot that become inputs, with batch axes of their
    own if need be. All steps run in one native loop, and so does the adjoint, which gives the exact gradient. For derivatives of higher
    order, call `function` of a step in a loop.
    """
    step = step_program(robot, dt, method, friction, parameters)
    inputs = Inputs(robot, step, ("q", "v", "tau"), parameters)
    native = {dtype: NativeRollout(step, dtype) for dtype in (np.float64, np.float32)}

    def run(q: Any, v: Any, tau: Any, *numbers: Any) -> tuple[Any, Any]:
        inputs.check_count(numbers)
        tensors = checked(dict(zip(("q", "v", "tau", *parameters), (q, v, tau, *numbers), strict=True)))
        batch, cores = inputs.of_rollout(*tensors)
        steps, count = tensors[2].shape[-2], math.prod(batch)
        flat = [x.expand(*batch, *core).reshape(count, *core) for x, core in zip(tensors, cores, strict=True)]
        made = native[np.float64 if flat[0].dtype == torch.float64 else np.float32]
        qs, vs = _Rollout.apply(made, *flat)
        return qs.reshape(*batch, steps + 1, robot.nq), vs.reshape(*batch, steps + 1, robot.nv)

    return run


class _Rollout(_Function):  # type: ignore[misc]
    """The autograd function of a rollout on tensors with one batch axis."""

    @staticmethod
    def forward(made: NativeRollout, *tensors: Any) -> tuple[Any, Any]:
        qs, vs = made.forward(*(x.detach().numpy() for x in tensors))
        return torch.from_numpy(qs), torch.from_numpy(vs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, Any]) -> None:
        ctx.made = inputs[0]
        ctx.save_for_backward(*output, *inputs[3:])

    @staticmethod
    def backward(ctx: Any, q_bar: Any, v_bar: Any) -> tuple[Any, ...]:
        return None, *_Adjoint.apply(ctx.made, *ctx.saved_tensors, q_bar, v_bar)

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], made: NativeRollout, *tensors: Any) -> tuple[Any, Any]:
        return _batched(_Rollout, info.batch_size, axes, made, tensors)


class _Adjoint(_Function):  # type: ignore[misc]
    """The gradient of a rollout: (states, forces, numbers, weights of all states) -> weights of q, v, tau and the numbers."""

    @staticmethod
    def forward(made: NativeRollout, *tensors: Any) -> tuple[Any, ...]:
        qs, vs, tau, *numbers, q_bar, v_bar = (x.detach().numpy() for x in tensors)
        return tuple(torch.from_numpy(np.ascontiguousarray(x)) for x in made.adjoint(qs, vs, tau, numbers, q_bar, v_bar))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> tuple[Any, ...]:
        raise CoadjointError(
            "a rollout has first derivatives here; for higher ones, call `interop.torch.function` of a step in a loop."
        )

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], made: NativeRollout, *tensors: Any) -> tuple[Any, Any]:
        return _batched(_Adjoint, info.batch_size, axes, made, tensors)


def _moved(size: int, axes: Sequence[int | None], tensors: Sequence[Any]) -> list[Any]:
    """Tensors with a further batch axis in front."""
    return [x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0) for x, axis in zip(tensors, axes, strict=True)]


def _batched(
    function: Any, size: int, axes: tuple[int | None, ...], made: NativeRollout, tensors: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """An autograd function on tensors with a further batch axis."""
    moved = _moved(size, axes[1:], tensors)
    found = function.apply(made, *(x.reshape(-1, *x.shape[2:]) for x in moved))
    return tuple(x.reshape(size, -1, *x.shape[1:]) for x in found), (0,) * len(found)


def inverse_kinematics(robot: Robot, frame: str, *, parameters: Sequence[str] = (), **options: Any) -> Callable[..., Any]:
    """A function of tensors, f(target (..., 4, 4), q0 (..., nq), *parameters) -> q (..., nq), as `coadjoint.inverse_kinematics`.

    Its derivative is that of the solution of T(q) = target, by the implicit function theorem; where joints are more than six, the solution
    moves the shortest way. q is NaN where a target is not reached. It does not depend on q0, which only chooses the solution.
    """
    made = pose_program(robot, frame, parameters)
    at, turning = (function(fn, robot, parameters=parameters, frame=frame) for fn in (pose, jacobian))
    inputs = Inputs(robot, made, ("target", "q0"), parameters)
    solve = solver(robot, frame, parameters, options)

    class Solved(_Function):  # type: ignore[misc]
        @staticmethod
        def forward(target: Any, q0: Any, *numbers: Any) -> Any:
            return torch.from_numpy(solve(*(x.detach().numpy() for x in (target, q0, *numbers)))).to(target.dtype)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.save_for_backward(output, *inputs[2:])

        @staticmethod
        def backward(ctx: Any, weights: Any) -> tuple[Any, ...]:
            q, *numbers = ctx.saved_tensors
            bar = implicit_weights(robot, q, turning(q, *numbers), at(q, *numbers), weights)
            if not parameters:
                return bar, None
            by_numbers = torch.func.vjp(lambda *numbers: at(q, *numbers), *numbers)[1](bar)
            return bar, None, *(-x for x in by_numbers)

        @staticmethod
        def vmap(info: Any, axes: tuple[int | None, ...], *tensors: Any) -> tuple[Any, int]:
            return Solved.apply(*_moved(info.batch_size, axes, tensors)), 0

    def run(target: Any, q0: Any, *given: Any) -> Any:
        inputs.check_count(given)
        tensors = checked(dict(zip(("target", "q0", *parameters), (target, q0, *given), strict=True)))
        batch, cores = inputs.of_inverse(*tensors)
        return Solved.apply(*(x.expand(*batch, *core) for x, core in zip(tensors, cores, strict=True)))

    return run
