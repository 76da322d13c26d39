"""Functions of a robot inside CasADi: for `Opti`, `nlpsol`, integrators and code generation.

    torque = cj.interop.casadi.function(cj.inverse_dynamics, robot)
    opti.subject_to(opti.bounded(-87, torque(q, v, a), 87))

They are CasADi's own expressions, made from the trace, so that its exact first and second derivatives with their sparsity, `map`, C code
and every solver work on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..compiling import trace
from ..kernel.export.casadi import casadi
from ..robot.robot import Robot
from ._common import engine

__all__ = ["function"]


def function(
    fn: Callable[..., Any],
    robot: Robot,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    parameters: Sequence[str] = (),
    **options: Any,
) -> Any:
    """A casadi.Function of the arrays and parameters of fn, by their names; results are out0, out1, …

    Arguments are those of `coadjoint.compile`. Vectors are columns; arrays with more than two axes become matrices, all axes but
    the last joined. For many
    states call `.map(n)`, which takes and gives one column (or block of columns) for each.
    """
    engine("casadi")
    return casadi(trace(fn, robot, shapes=shapes, parameters=parameters, **options))
