"""Rollouts and inverse kinematics as functions that other libraries differentiate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arguments import check_inputs
from ..arrays import Array, concat, like, mv, namespace, stack, transpose
from ..errors import CoadjointError, ShapeError
from ..kernel.passes.evaluate import evaluate
from ..kernel.passes.simplify import simplify
from ..kernel.runtime import native
from ..kernel.runtime.function import run_steps
from ..kernel.trace.trace import trace as graph_of
from ..lie import so3
from ..robot.robot import Robot
from ._programs import Program, program

METHODS = ("euler", "rk4")


def step_program(robot: Robot, dt: float, method: str, friction: bool, parameters: Sequence[str]) -> Program:
    """One step (q, v, tau, *parameters) -> q', v' of a rollout."""
    from ..dynamics import forward_dynamics
    from ..dynamics.steps import euler_step, rk4_step

    if method not in METHODS:
        raise CoadjointError(f"method is {method!r}; rollouts that are differentiated choose from {', '.join(METHODS)}.")
    if not isinstance(dt, int | float | np.number) or not 0 < dt < np.inf:
        raise CoadjointError(f"dt is {dt!r}; expected a positive number of seconds.")
    if friction and np.any(np.asarray(robot.friction) != 0):
        raise CoadjointError("dry friction has no derivative; a rollout that is differentiated takes viscous friction only.")
    take = euler_step if method == "euler" else rk4_step

    def step(robot: Robot, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        def acceleration(q: Array, v: Array, _: Array) -> Array:
            return forward_dynamics(robot, q, v, tau, friction=friction)

        return take(robot, q, v, tau, acceleration, float(dt))

    return program(step, robot, None, parameters, {})


class NativeRollout:
    """A rollout and its adjoint as native loops over time, on NumPy arrays.

    The step's transposed derivative runs backward in time: weights of the states on the way come in, those of the forces go out, and those
    of the state before and of the robot's numbers are handed on.
    """

    def __init__(self, step: Program, dtype: Any) -> None:
        self.step, self.dtype = step, np.dtype(dtype)
        self.nq, self.nv = step.graph.input_shapes[0][0], step.graph.input_shapes[1][0]
        self.numbers = step.graph.input_shapes[3:]

    def forward(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, *numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States (N, steps + 1, nq) and (N, steps + 1, nv) from (N, nq), (N, nv) under tau (N, steps, nv) and numbers (N, ...)."""
        N, steps = tau.shape[:2]
        qs, vs = np.empty((N, steps + 1, self.nq), self.dtype), np.empty((N, steps + 1, self.nv), self.dtype)
        qs[:, 0], vs[:, 0] = q, v
        if steps and N:
            given = [qs[:, :-1], vs[:, :-1], np.ascontiguousarray(tau), *(np.ascontiguousarray(x)[:, None] for x in numbers)]
            run_steps(self.step.call(self.dtype), given, [qs[:, 1:], vs[:, 1:]])
        return qs, vs

    @functools.cached_property
    def _adjoint(self) -> Any:
        pulled = self.step.pulled_back(tuple(range(3 + len(self.numbers))))
        g = pulled.graph
        n = len(g.input_names) - 2
        carried = {"q_bar": (self.nq,), "v_bar": (self.nv,)} | {f"bar{k}": shape for k, shape in enumerate(self.numbers)}
        shapes = dict(zip(g.input_names, g.input_shapes, strict=True)) | carried

        def run(*arrays: Array) -> tuple[Array, ...]:
            inputs, weights, (q_bar, v_bar, *bars) = arrays[:n], arrays[n : n + 2], arrays[n + 2 :]
            q, v, tau, *by = evaluate(g, *inputs, weights[0] + q_bar, weights[1] + v_bar)
            return (q, v, *(x + y for x, y in zip(by, bars, strict=True)), tau)

        return native.build(simplify(graph_of(run, shapes, f"{g.name}_loop")), self.dtype).call

    def adjoint(
        self, qs: np.ndarray, vs: np.ndarray, tau: np.ndarray, numbers: Sequence[np.ndarray], q_bar: np.ndarray, v_bar: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Weights of q, v, tau and the numbers, from those of all states."""
        N, steps = tau.shape[:2]
        carried = [np.zeros((N, steps + 1, *shape), self.dtype) for shape in ((self.nq,), (self.nv,), *self.numbers)]
        tau_bar = np.empty((N, steps, self.nv), self.dtype)
        q_bar, v_bar = np.ascontiguousarray(q_bar), np.ascontiguousarray(v_bar)
        if steps and N:
            back = [x[:, ::-1] for x in carried]
            states = [x[:, ::-1] for x in (qs[:, :-1], vs[:, :-1], np.ascontiguousarray(tau))]
            constant = [np.ascontiguousarray(x)[:, None] for x in numbers]
            weights = [x[:, 1:][:, ::-1] for x in (q_bar, v_bar)]
            inputs = [*states, *constant, *weights, *(x[:, :-1] for x in back)]
            run_steps(self._adjoint, inputs, [*(x[:, 1:] for x in back), tau_bar[:, ::-1]])
        found = [x[:, 0] for x in carried]
        return found[0] + q_bar[:, 0], found[1] + v_bar[:, 0], tau_bar, *found[2:]


def implicit_weights(robot: Robot, q: Array, J: Array, X: Array, weights: Array) -> Array:
    """The weights (..., 4, 4) of the pose X of a frame with the body Jacobian J (..., 6, nv) at q, from those (..., nq) of q, for a
    solution q of T(q) = X.

    A twist ξ = (X⁻¹ dX)^∨ of the target moves the solution by dq = J⁺ ξ, the shortest way. With (μ, f) = J⁺ᵀ q̄ the weights are
    R̄ = ½ R μ^, p̄ = R f.
    """
    xp, n = namespace(q, weights), robot.nv
    along = stack([robot.rate(q, like(np.eye(n)[k], q)) for k in range(n)])
    covector = mv(transpose(xp.linalg.pinv(J)), mv(transpose(along), weights))
    R = X[..., :3, :3]
    turn, push = 0.5 * R @ so3.hat(covector[..., :3]), mv(R, covector[..., 3:])
    upper = concat([turn, push[..., None]])
    return transpose(concat([transpose(upper), transpose(0.0 * upper[..., :1, :])]))


class Inputs:
    """The arrays that a function takes, by name with their core shapes: of numbers of the robot, those of the program that reads them."""

    def __init__(self, robot: Robot, made: Program, named: Sequence[str], parameters: Sequence[str]) -> None:
        self.robot, self.named, self.parameters = robot, tuple(named), tuple(parameters)
        shapes = made.graph.input_shapes
        self.numbers = shapes[len(shapes) - len(self.parameters) :]

    def check_count(self, given: Sequence[Any]) -> None:
        """Raise an error unless there are as many sets of numbers as the function was made for."""
        if len(given) != len(self.parameters):
            raise ShapeError(
                f"{len(given)} sets of numbers were given after {self.named[-1]}; expected {len(self.parameters)}: "
                f"{', '.join(self.parameters)}."
            )

    def of_rollout(self, q: Any, v: Any, tau: Any, *numbers: Any) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        """The common batch axes, and the core shape of every array."""
        if tau.ndim < 2 or tau.shape[-1] != self.robot.nv:
            raise ShapeError(f"tau has shape {tuple(tau.shape)}; expected (..., steps, {self.robot.nv}).")
        return self._common([(self.robot.nq,), (self.robot.nv,), tuple(tau.shape[-2:])], q, v, tau, *numbers)

    def of_inverse(self, target: Any, q0: Any, *numbers: Any) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        """The inputs of inverse kinematics."""
        if tuple(target.shape[-2:]) != (4, 4):
            raise ShapeError(f"target has shape {tuple(target.shape)}; expected poses (..., 4, 4).")
        return self._common([(4, 4), (self.robot.nq,)], target, q0, *numbers)

    def _common(self, cores: list[tuple[int, ...]], *arrays: Any) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        cores = [*cores, *self.numbers]
        return check_inputs((*self.named, *self.parameters), cores, arrays), cores


def pose_program(robot: Robot, frame: str, parameters: Sequence[str]) -> Program:
    """(q, *parameters) -> the pose of a frame."""
    from ..kinematics import pose

    return program(pose, robot, None, parameters, {"frame": frame})


def solver(robot: Robot, frame: str, parameters: Sequence[str], options: dict[str, Any]) -> Callable[..., np.ndarray]:
    """(targets, q0, *numbers) -> configurations, NaN where a target was not reached."""
    from ..kinematics.inverse import inverse_kinematics

    def solve(target: np.ndarray, q0: np.ndarray, *numbers: np.ndarray) -> np.ndarray:
        given = dict(zip(parameters, numbers, strict=True)) or None
        target = np.asarray(target, dtype=float)
        found = inverse_kinematics(robot, target, frame, q0=np.asarray(q0, dtype=float), parameters=given, **options)
        return np.where(found.success[..., None], found.q, np.nan)

    return solve
