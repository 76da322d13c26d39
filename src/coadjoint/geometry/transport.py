"""Parallel transport along a curve, and Jacobi fields along a geodesic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import a_function_of, a_robot, states, takes, times
from ..arrays import Array, ArrayLike, mv
from ..dynamics.articulated import mass_matrix_inverse
from ..dynamics.coriolis import coriolis_matrix
from ..dynamics.singular import explain_singular
from ..errors import CoadjointError
from ..kernel.dispatch import kernel
from ..robot.robot import Robot
from ..words import short
from . import flow
from .gauss import curvature_operator
from .metric import covariant_derivative


@takes(robot=a_robot, curve=a_function_of("t"))
def parallel_transport(robot: Robot, curve: Callable[[float], tuple[Any, Any]], x: ArrayLike, t: ArrayLike) -> np.ndarray:
    """x(t) (..., *t.shape, nv), parallel along a curve, ∇_v x = 0, with x (..., nv) at t = 0: M dx/dt = -C(q, v) x.

    `curve(t)` gives q (nq,) and the velocity v (nv,) at a time; a `Geodesic` is one. Lengths and angles of parallel vectors stay
    constant.
    """
    (x,) = states(robot, x=(x, robot.nv))
    still = np.zeros((robot.nv, robot.nv))
    first = curve(0.0)
    if not isinstance(first, tuple | list) or len(first) != 2:
        raise CoadjointError(f"curve(t) gave {short(first)}; expected two arrays: q ({robot.nq},) and v ({robot.nv},).")
    for part, size in zip(first, (robot.nq, robot.nv), strict=True):
        if np.shape(part) != (size,):
            raise CoadjointError(f"the curve gives q or v of shape {np.shape(part)} at t = 0; expected one state, ({size},).")

    def rate(t: float, y: list[np.ndarray]) -> list[np.ndarray]:
        q, v = (np.asarray(a, dtype=float) for a in curve(t))
        return [-covariant_derivative(robot, q, v, y[0], still)]

    t = times(t)
    return flow.Solution(rate, [x], t, "the transport")(t)[0]


@kernel("nv", "nv", q="nq", v="nv", j="nv", dj="nv", no_result=explain_singular, joint_space=True)
def jacobi_rate(robot: Robot, q: Array, v: Array, j: Array, dj: Array) -> tuple[Array, Array]:
    """d/dt of a Jacobi field and of its covariant rate: ∇_v J = D, ∇_v D = -R(J, v) v."""
    turn = mass_matrix_inverse(robot, q) @ coriolis_matrix(robot, q, v)
    return dj - mv(turn, j), -curvature_operator(robot, q, j, v, v) - mv(turn, dj)


@takes(robot=a_robot)
def jacobi_field(
    robot: Robot, q: ArrayLike, v: ArrayLike, j: ArrayLike, dj: ArrayLike, t: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """J(t) and ∇_v J(t) (..., *t.shape, nv) along the geodesic from q, v, with J = j and ∇_v J = dj at t = 0.

    J is how a geodesic from a neighbouring configuration (j), with a neighbouring velocity (dj), comes to lie beside it:
    ∇_v ∇_v J = -R(J, v) v. So curvature tells how sensitive a motion is to its start.
    """
    q, v, j, dj = states(robot, q=(q, robot.nq), v=(v, robot.nv), j=(j, robot.nv), dj=(dj, robot.nv))
    rate = lambda t, y: [*flow.geodesic_rate(robot, y[0], y[1]), *jacobi_rate(robot, *y)]
    t = times(t)
    _, _, J, D = flow.Solution(rate, [q, v, j, dj], t, "the Jacobi field")(t)
    return J, D
