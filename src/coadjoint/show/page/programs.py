"""The functions of a robot that a page carries, as JavaScript."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array, like, stack
from ...compiling import as_written
from ...constraints import constrained_dynamics
from ...constraints.constraint import Constraint
from ...dynamics import (
    bias_force,
    center_of_mass,
    forward_dynamics,
    gravity_force,
    joint_reactions,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)
from ...dynamics.newton_euler import friction_force, subspaces
from ...errors import SingularMassMatrixError
from ...kernel.export.js import CHECK, SPD_SOLVE, js_function
from ...kernel.export.wasm import wasm_functions
from ...kernel.graph import Graph
from ...kinematics import forward_kinematics
from ...lie import se3
from ...robot.robot import Robot

LARGEST = 3_300_000
"""About the most characters of all functions of one page; those that would exceed it are left out."""

LARGE = 2500
"""Functions of more operations than this are WebAssembly, which is 17 to 70 times faster there: compilers of JavaScript do not optimise so
long a function. Below, JavaScript is as fast or faster, and needs no permission."""

ENCODED = 10
"""Characters that an operation takes as WebAssembly, about."""

LIGHT = ("poses", "columns", "potential", "gravity", "springs", "com", "normalize", "integrate", "rate")
"""The functions that a page in a notebook has of a large robot."""


class Programs(NamedTuple):
    """The JavaScript of an object with the functions by name, the names of those that were left out, and whether it contains WebAssembly:
    then the text is that of a promise.
    """

    text: str
    left_out: tuple[str, ...]
    wasm: bool


def programs(robot: Robot, constraints: Constraint | None = None, only: tuple[str, ...] | None = None) -> Programs:
    """The functions of the robot as one JavaScript expression, an object.

    poses(q), columns(q), normalize(q), rate(q, v), integrate(q, dv), potential(q), gravity(q), com(q), kinetic(q, v), mass(q),
    coriolis(q, v), friction(v), forward(q, v, tau), reactions(q, v, a, wrenches); with springs springs(q), which gravity and coriolis do
    not contain; with constraints residual(q), rows(q), bias(q, v) and constrained(q, v, tau).
    """
    parts, large, left, size = [], dict[str, Graph](), [], 0
    for name, make in _functions(robot, constraints):
        if only is not None and name not in only:
            continue
        try:
            graph = make() if size < LARGEST else None
        except SingularMassMatrixError:  # a joint that moves no mass: the page says so among the doubts
            continue
        if graph is None or size + ENCODED * len(graph) > LARGEST:
            left.append(name)
        elif len(graph) > LARGE:
            large[name] = graph
            size += ENCODED * len(graph)
        else:
            parts.append(f"{json.dumps(name)}: {js_function(graph)}")
            size += len(parts[-1])
    head, more = (
        (f"(async () => {{\n{CHECK}{SPD_SOLVE}{wasm_functions(large)}", ["...functions"])
        if large
        else (f"(() => {{\n{CHECK}{SPD_SOLVE}", [])
    )
    return Programs(head + "return {\n" + ",\n".join([*parts, *more]) + "\n};\n})()", tuple(left), bool(large))


def _functions(robot: Robot, constraints: Constraint | None) -> Iterator[tuple[str, Callable[[], Graph]]]:
    """Names and graphs, what a picture needs first. They are as written: algebra would take three times as long as all the rest, to save
    some per cent of functions of microseconds.
    """

    def of(fn: Callable[..., Any], on: Robot = robot, **options: Any) -> Callable[[], Graph]:
        return partial(as_written, fn, on, **options)

    yield "poses", of(forward_kinematics)
    if not robot.nv:
        return
    yield "columns", of(columns)
    yield "normalize", of(lambda robot, q: robot.normalize(q))
    yield "rate", of(lambda robot, q, v: robot.rate(q, v))
    yield "integrate", of(lambda robot, q, dv: robot.integrate(q, dv))
    yield "potential", of(potential_energy)
    bare, still = robot.with_springs([]), (0.0, 0.0, 0.0)
    yield "gravity", of(gravity_force, bare)
    if robot.springs:
        yield "springs", of(gravity_force, robot.with_gravity(still))
    if float(np.sum(robot.inertias[:, 0])) > 0:
        yield "com", of(center_of_mass)
    yield "kinetic", of(kinetic_energy)
    yield "mass", of(mass_matrix)
    yield "friction", of(lambda robot, v: robot.from_tree(friction_force(robot, robot.tree_v(v))))
    yield "coriolis", of(bias_force, bare.with_gravity(still))
    if constraints is not None:
        if len(constraints.holonomic_rows(robot)):
            yield "residual", of(lambda robot, q: constraints.residual(robot, q))
        yield "rows", of(lambda robot, q: constraints.jacobian(robot, q))
        yield "bias", of(lambda robot, q, v: constraints.bias(robot, q, v))
        yield "constrained", of(lambda robot, q, v, tau: constrained_dynamics(robot, constraints, q, v, tau))
    yield "forward", of(forward_dynamics)
    yield "reactions", of(joint_reactions, shapes={"wrenches": (robot.n_links, 6)})


def columns(robot: Robot, q: Array) -> Array:
    """(tree_nv, 6): the twist, in the space frame, of every freedom of the tree moving alone."""
    poses, S = forward_kinematics(robot, q), subspaces(robot, robot.tree_q(q))
    found = [se3.Ad_act(poses[..., i, :, :], S[i][..., k, :]) for i in range(robot.n_links) for k in range(S[i].shape[-2])]
    return stack(found, axis=-2) if found else like(np.zeros((0, 6)), q)
