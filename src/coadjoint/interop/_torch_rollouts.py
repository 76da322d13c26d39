"""Rollouts and inverse kinematics inside PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import CoadjointError, ShapeError
from ..kinematics import jacobian, pose
from ..robot.robot import Robot
from ._common import engine
from ._rollouts import NativeRollout, check_target, implicit_weights, solver, step_program
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
    cores = step.graph.input_shapes
    native = {dtype: NativeRollout(step, dtype) for dtype in (np.float64, np.float32)}

    def run(q: Any, v: Any, tau: Any, *numbers: Any) -> tuple[Any, Any]:
        if len(numbers) != len(parameters):
            raise ShapeError(
                f"{len(numbers)} sets of numbers were given after tau; expected {len(parameters)}: {', '.join(parameters)}."
            )
        names = ("q", "v", "tau", *parameters)
        tensors = checked(dict(zip(names, (q, v, tau, *numbers), strict=True)))
        for x, name, core in zip(tensors, names, cores, strict=True):
            if tuple(x.shape[x.ndim - len(core) :]) != core or (name == "tau" and x.ndim < 2):
                wanted = f"(..., steps, {robot.nv})" if name == "tau" else f"(..., {', '.join(map(str, core))})"
                raise ShapeError(f"{name} has shape {tuple(x.shape)}; expected {wanted} for robot {robot.name!r}.")
        steps = tensors[2].shape[-2]
        sizes = [(steps, robot.nv) if name == "tau" else core for name, core in zip(names, cores, strict=True)]
        batch = torch.broadcast_shapes(*(x.shape[: x.ndim - len(size)] for x, size in zip(tensors, sizes, strict=True)))
        flat = [x.expand(*batch, *size).reshape(-1, *size) for x, size in zip(tensors, sizes, strict=True)]
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


def _batched(
    function: Any, size: int, axes: tuple[int | None, ...], made: NativeRollout, tensors: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """An autograd function on tensors with a further batch axis."""
    moved = [x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0) for x, axis in zip(tensors, axes[1:], strict=True)]
    found = function.apply(made, *(x.reshape(-1, *x.shape[2:]) for x in moved))
    return tuple(x.reshape(size, -1, *x.shape[1:]) for x in found), (0,) * len(found)


def inverse_kinematics(robot: Robot, frame: str, *, parameters: Sequence[str] = (), **options: Any) -> Callable[..., Any]:
    """A function of tensors, f(target (..., 4, 4), q0 (..., nq), *parameters) -> q (..., nq), as `coadjoint.inverse_kinematics`.

    Its derivative is that of the solution of T(q) = target, by the implicit function theorem; where joints are more than six, the solution
    moves the shortest way. q is NaN where a target is not reached. It does not depend on q0, which only chooses the solution.
    """
    at, turning = (function(fn, robot, parameters=parameters, frame=frame) for fn in (pose, jacobian))
    solve = solver(robot, frame, parameters, options)

    class Solved(_Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, target: Any, q0: Any, *numbers: Any) -> Any:
            q = torch.from_numpy(solve(*(x.detach().numpy() for x in (target, q0, *numbers)))).to(target.dtype)
            ctx.save_for_backward(q, *numbers)
            return q

        @staticmethod
        def backward(ctx: Any, weights: Any) -> tuple[Any, ...]:
            q, *numbers = ctx.saved_tensors
            bar = implicit_weights(robot, q, turning(q, *numbers), at(q, *numbers), weights)
            if not parameters:
                return bar, None
            by_numbers = torch.func.vjp(lambda *numbers: at(q, *numbers), *numbers)[1](bar)
            return bar, None, *(-x for x in by_numbers)

    def run(target: Any, q0: Any, *given: Any) -> Any:
        if len(given) != len(parameters):
            raise ShapeError(
                f"{len(given)} sets of numbers were given after q0; expected {len(parameters)}: {', '.join(parameters)}."
            )
        target, q0, *numbers = checked(dict(zip(("target", "q0", *parameters), (target, q0, *given), strict=True)))
        check_target(target.shape)
        robot._checked(q0, "q0", robot.nq)
        batch = torch.broadcast_shapes(target.shape[:-2], q0.shape[:-1])
        return Solved.apply(target.expand(*batch, 4, 4), q0.expand(*batch, robot.nq), *numbers)

    return run
