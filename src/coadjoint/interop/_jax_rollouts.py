"""Rollouts and inverse kinematics inside JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..kinematics import jacobian
from ..robot.robot import Robot
from ._common import engine
from ._jax_functions import function, function_of
from ._rollouts import Inputs, implicit_weights, pose_program, solver, step_program

jax = engine("jax")
jnp = jax.numpy


def rollout(
    robot: Robot, *, dt: float, method: str = "euler", friction: bool = False, parameters: Sequence[str] = ()
) -> Callable[..., Any]:
    """A function of JAX arrays, f(q, v, tau, *parameters) -> q (..., steps + 1, nq), v (..., steps + 1, nv), as `coadjoint.rollout`.

    q (..., nq), v (..., nv), tau (..., steps, nv); `parameters` names numbers of the robot that become inputs, with batch axes of their
    own if need be. Steps are native kernels in a `scan`, and so are their derivatives, of any order.
    """
    made = step_program(robot, dt, method, friction, parameters)
    step, inputs = function_of(made), Inputs(robot, made, ("q", "v", "tau"), parameters)

    def run(q: Any, v: Any, tau: Any, *given: Any) -> tuple[Any, Any]:
        inputs.check_count(given)
        q, v, tau, *numbers = (jnp.asarray(x, dtype=jnp.result_type(float)) for x in (q, v, tau, *given))
        batch, _ = inputs.of_rollout(q, v, tau, *numbers)
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
    made = pose_program(robot, frame, parameters)
    at, turning = function_of(made), function(jacobian, robot, parameters=parameters, frame=frame)
    inputs = Inputs(robot, made, ("target", "q0"), parameters)
    solve = solver(robot, frame, parameters, options)

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def solved(target: Array, q0: Array, *numbers: Array) -> Array:
        like = jax.ShapeDtypeStruct((*target.shape[:-2], robot.nq), target.dtype)
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
        inputs.check_count(given)
        arrays = [jnp.asarray(x, dtype=jnp.result_type(float)) for x in (target, q0, *given)]
        batch, cores = inputs.of_inverse(*arrays)
        return solved(*(jnp.broadcast_to(x, (*batch, *core)) for x, core in zip(arrays, cores, strict=True)))

    return run
