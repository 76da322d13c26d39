"""Second derivatives of an optimal control problem by central differences of exact first ones: for steps whose own are not compiled.

In exponential coordinates z about a point, the second derivative of a function is the symmetric part of the derivative of its gradient in
the moving frame, since that of the exponential map is skew there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .workspace import Workspace

STEP = 1e-5
"""The step of the differences."""


def put_hessians(room: Workspace) -> None:
    """The Hessians of cost + costate · step of all steps, and of the terminal cost, in the places of Gauss and Newton's."""
    mem, problem = room.memory, room.problem
    robot, n = problem.robot, problem.robot.nv
    for span, numbers in zip(problem.spans, room.numbers, strict=True):
        at, after = slice(span.start, span.stop), slice(span.start + 1, span.stop + 1)
        steps = span.steps
        z = _displacements(steps.nz)
        q, v = robot.integrate(mem["Q"][at], z[..., :n]), mem["V"][at] + z[..., n : 2 * n]
        if problem.is_by_velocity:
            slope = steps.model(q, v, mem["V"][after] + z[..., 2 * n :], numbers)[3]
        else:
            ends = mem["Q"][after], mem["V"][after]
            _, slope, _, dynamics, _ = steps.model(q, v, mem["U"][at] + z[..., 2 * n :], numbers, *ends)
            costate = mem["COSTATE"][after, : steps.nx, None]
            slope = slope + (np.swapaxes(dynamics[..., : steps.nz], -1, -2) @ costate)[..., 0]
        mem["H"][at, :, : steps.nz] = _derivative(slope)
    z, nx = _displacements(2 * n), problem.nx
    end = robot.integrate(mem["Q"][-1:], z[..., :n]), mem["V"][-1:] + z[..., n:]
    slope = problem.final.model(*end, np.zeros((1, problem.m)), room.final_numbers)[1]
    mem["H_END"][:, :, :nx] = _derivative(slope)


def _displacements(size: int) -> np.ndarray:
    """± STEP along every axis: (2, size, 1, size)."""
    one = STEP * np.eye(size)[:, None]
    return np.stack([one, -one])


def _derivative(slope: np.ndarray) -> np.ndarray:
    """(N, size, size) of gradients (2, size, N, size) at the displacements."""
    found = ((slope[0] - slope[1]) / (2.0 * STEP)).swapaxes(0, 1)
    return np.asarray(0.5 * (found + found.swapaxes(-1, -2)))
