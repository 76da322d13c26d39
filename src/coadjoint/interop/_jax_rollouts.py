"""Rollouts and inverse kinematics inside JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ShapeError
from ..kinematics import jacobian, pose
from ..robot.robot import Robot
from ._common import engine
from ._jax_functions import function, function_of
from ._rollouts import check_target, implicit_weights, solver, step_program

jax = engine("jax")
jnp = jax.numpy


def rollout(
    robot: Robot, *, dt: float, method: str = "euler", friction: bool = False, parameters: Sequence[str] = ()
) -> Callable[..., Any]:
    """A function of JAX arrays, f(q, v, tau, *parameters) -> q (..., steps + 1, nq), v (..., steps + 1, nv), as `coadjoint.rollout`.

    q (..., nq), v (..., nv), tau (..., steps, nv); `parameters` names numbers of the robot that become inputs, with batch axes of their
    own if need be. Steps are native kernels in a `scan`, and so are their derivatives, of any order.
    """
    step = function_of(step_program(robot, dt, method, friction, parameters))

    def run(q: Any, v: Any, tau: Any, *given: Any) -> tuple[Any, Any]:
        q, v, tau, *numbers = (jnp.asarray(x, dtype=jnp.result_type(float)) for x in (q, v, tau, *given))
        if tau.ndim < 2 or tau.shape[-1] != robot.nv:
            raise ShapeError(f"tau has shape {tau.shape}; expected (..., steps, {robot.nv}).")
        robot._checked(q, "q", robot.nq)
        robot._checked(v, "v", robot.nv)
        if len(numbers) != len(parameters):
            raise ShapeError(
                f"{len(numbers)} sets of numbers were given after tau; expected {len(parameters)}: {', '.join(parameters)}."
            )
        cores = [np.ndim(robot.parameters(x)) if x not in ("inertias", "placements", "screws") else 2 for x in parameters]
        batches = [
            q.shape[:-1],
            v.shape[:-1],
            tau.shape[:-2],
            *(x.shape[: x.ndim - c] for x, c in zip(numbers, cores, strict=True)),
        ]
        batch = jnp.broadcast_shapes(*batches)
        q, v = jnp.broadcast_to(q, (*batch, robot.nq)), jnp.broadcast_to(v, (*batch, robot.nv))

        def advance(state: tuple[Any, Any], force: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
            after = step(*state, force, *numbers)
            return after, after

        _, (qs, vs) = jax.lax.scan(advance, (q, v), jnp.moveaxis(tau, -2, 0))
        qs, vs = (jnp.concatenate([x[..., None, :], jnp.moveaxis(xs, 0, -2)], axis=-2) for x, xs in ((q, qs), (v, vs)))
        return qs, vs

    return run


def inverse_kinematics(robot: Robot, frame: str, *, parameters: Sequence[str] = (), **options: Any) -> Callable[..., Any]:
    """A function of JAX arrays, f(target (..., 4, 4), q0 (..., nq), *parameters) -> q (..., nq), as `coadjoint.inverse_kinematics`.

    Its derivative is that of the solution of T(q) = target, by the implicit function theorem; where joints are more than six, the solution
    moves the shortest way. q is NaN where a target is not reached. It does not depend on q0, which only chooses the solution.
    """
    at, turning = (function(fn, robot, parameters=parameters, frame=frame) for fn in (pose, jacobian))
    solve = solver(robot, frame, parameters, options)

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def solved(target: Array, q0: Array, *numbers: Array) -> Array:
        shape = (*jnp.broadcast_shapes(target.shape[:-2], q0.shape[:-1]), robot.nq)
        like = jax.ShapeDtypeStruct(shape, target.dtype)
        return jax.pure_callback(
            lambda *x: solve(*map(np.asarray, x)).astype(target.dtype), like, target, q0, *numbers, vmap_method="broadcast_all"
        )

    def forward(target: Array, q0: Array, *numbers: Array) -> tuple[Array, Any]:
        q = solved(target, q0, *numbers)
        return q, (q, q0, numbers)

    def backward(kept: Any, weights: Array) -> tuple[Any, ...]:
        q, q0, numbers = kept
        T, by_numbers = jax.vjp(lambda *numbers: at(q, *numbers), *numbers)
        bar = implicit_weights(robot, q, turning(q, *numbers), T, weights)
        by_numbers = tuple(-x for x in by_numbers(bar))
        return bar, jnp.zeros_like(q0), *by_numbers

    solved.defvjp(forward, backward)

    def run(target: Any, q0: Any, *given: Any) -> Any:
        target, q0, *numbers = (jnp.asarray(x, dtype=jnp.result_type(float)) for x in (target, q0, *given))
        if len(numbers) != len(parameters):
            raise ShapeError(
                f"{len(numbers)} sets of numbers were given after q0; expected {len(parameters)}: {', '.join(parameters)}."
            )
        check_target(target.shape)
        robot._checked(q0, "q0", robot.nq)
        batch = jnp.broadcast_shapes(target.shape[:-2], q0.shape[:-1])
        return solved(jnp.broadcast_to(target, (*batch, 4, 4)), jnp.broadcast_to(q0, (*batch, robot.nq)), *numbers)

    return run
