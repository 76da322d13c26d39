"""Costs of a stage of an optimal control problem, `cj.costs`: sums of terms in the state and the control.

A term is a residual r with weights w, whose cost is ½ Σ w r², or a function whose value is the cost. References and weights are inputs of
the compiled code: to change them costs nothing. Their leading axes broadcast with (*problems, steps), so that a reference may follow
time, as (steps, ...), or differ from problem to problem, as (problems, 1, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..arguments import a_function, a_name, numbers, takes
from ..arrays import Array, concat, to_numpy
from ..errors import CoadjointError, ShapeError
from ..kinematics import pose as frame_pose
from ..lie import se3
from ..robot.robot import Robot
from ..traced import check_pickles

__all__ = ["Term", "control", "function", "pose", "position", "residual", "state"]

Values = tuple[tuple[str, np.ndarray, tuple[int, ...]], ...]
"""Name, numbers (..., *core) and core shape of every array that a term reads."""


@dataclass(frozen=True, eq=False)
class Term:
    """One term of a cost."""

    name: str
    of: Callable[..., Any]
    """of(robot, q, v, u, *values): the residual (k,), or the cost itself."""
    values: Callable[[Robot, int], Values]
    """The references that the term reads besides q, v and u, for a robot and a number of controls."""
    weight: np.ndarray | None
    """(..., 1) or (..., k) of a residual; None for a function whose value is the cost."""

    def __reduce__(self) -> Any:
        check_pickles(self.of, f"the cost {self.name!r}")
        return Term, (self.name, self.of, self.values, self.weight)

    def __repr__(self) -> str:
        return f"<cost {self.name}>"


def state(q: Any, v: Any = None, weight: Any = 1.0) -> Term:
    """½ Σ w r² of the deviation r = (q ⊖ reference, v - reference) (2 nv,) from a state; v is at rest by default."""
    return Term("state", _off_state, partial(_states, q, v), _weight(weight))


def _states(q: Any, v: Any, robot: Robot, m: int) -> Values:
    return _value("q", q, robot.nq), _value("v", np.zeros(robot.nv) if v is None else v, robot.nv)


def _off_state(robot: Robot, q: Array, v: Array, u: Array, q0: Array, v0: Array) -> Array:
    return concat([robot.difference(q0, q), v - v0])


def control(weight: Any = 1.0, reference: Any = 0.0) -> Term:
    """½ Σ w r² of the deviation r = u - reference (m,) of the control."""
    return Term("control", _off_control, partial(_controls, reference), _weight(weight))


def _controls(reference: Any, robot: Robot, m: int) -> Values:
    return (_value("reference", np.broadcast_to(reference, m) if np.ndim(reference) == 0 else reference, m),)


def _off_control(robot: Robot, q: Array, v: Array, u: Array, u0: Array) -> Array:
    return u - u0


@takes(frame=a_name)
def pose(frame: str, target: Any, weight: Any = 1.0) -> Term:
    """½ Σ w r² of the body twist r = log(X⁻¹ T) (6,), angular part first, from the target X (..., 4, 4) to the frame's pose T."""
    return Term(f"pose of {frame}", partial(_off_pose, frame), partial(_poses, frame, target), _weight(weight))


def _poses(frame: str, target: Any, robot: Robot, m: int) -> Values:
    X = np.asarray(to_numpy(target, "target"), dtype=float)
    if X.shape[-2:] != (4, 4):
        raise ShapeError(f"the target of the cost pose({frame!r}) has shape {X.shape}; expected (..., 4, 4).")
    R = X[..., :3, :3]
    if not (np.allclose(R @ R.swapaxes(-1, -2), np.eye(3), atol=1e-6) and np.allclose(X[..., 3, :], [0, 0, 0, 1])):
        raise CoadjointError(
            f"the target of the cost pose({frame!r}) is no pose: its rotation is not orthogonal, or its last row wrong."
        )
    _known_frame(robot, frame)
    return (_value("target", X[..., :3, :].reshape(*X.shape[:-2], 12), 12),)


def _off_pose(frame: str, robot: Robot, q: Array, v: Array, u: Array, X: Array) -> Array:
    rows = X.reshape((*X.shape[:-1], 3, 4))
    last = np.broadcast_to(np.array([[0.0, 0.0, 0.0, 1.0]]), (*X.shape[:-1], 1, 4))
    whole = concat([rows.swapaxes(-1, -2), last.swapaxes(-1, -2)]).swapaxes(-1, -2)
    return se3.log(se3.inverse(whole) @ frame_pose(robot, q, frame))


@takes(frame=a_name)
def position(frame: str, target: Any, weight: Any = 1.0) -> Term:
    """½ Σ w r² of the distance r (3,) of a frame's origin from the point `target` (..., 3), in space coordinates."""
    return Term(f"position of {frame}", partial(_off_position, frame), partial(_positions, frame, target), _weight(weight))


def _positions(frame: str, target: Any, robot: Robot, m: int) -> Values:
    _known_frame(robot, frame)
    return (_value("target", target, 3),)


def _off_position(frame: str, robot: Robot, q: Array, v: Array, u: Array, x: Array) -> Array:
    return frame_pose(robot, q, frame)[..., :3, 3] - x


@takes(fn=a_function)
def residual(fn: Callable[..., Any], weight: Any = 1.0, reference: Any = None) -> Term:
    """½ Σ w r² of a user's residual r = fn(robot, q, v, u) (k,), written with array operations.

    With a reference (..., n) it is fn(robot, q, v, u, reference).
    """
    return Term(_called(fn), fn, _own(reference), _weight(weight))


@takes(fn=a_function)
def function(fn: Callable[..., Any], reference: Any = None) -> Term:
    """The cost fn(robot, q, v, u), a number that need not be a sum of squares, written with array operations.

    With a reference (..., n) it is fn(robot, q, v, u, reference).
    """
    return Term(_called(fn), fn, _own(reference), None)


def _own(reference: Any) -> Callable[[Robot, int], Values]:
    if reference is None:
        return _nothing
    numbers(reference, "reference")
    size = np.shape(reference)[-1] if np.ndim(reference) else 0
    if not size:
        raise ShapeError(f"the reference of a cost has shape {np.shape(reference)}; expected (..., n).")
    return partial(_references, reference, size)


def _nothing(robot: Robot, m: int) -> Values:
    return ()


def _references(reference: Any, size: int, robot: Robot, m: int) -> Values:
    return (_value("reference", reference, size),)


def _called(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", "function")).replace("<lambda>", "function")


def _known_frame(robot: Robot, frame: str) -> None:
    frame_pose(robot, robot.neutral(), frame)  # an error names the frames there are


def _value(name: str, x: Any, size: int) -> tuple[str, np.ndarray, tuple[int, ...]]:
    given = to_numpy(x, f"{name} of a cost")
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{name} of a cost is {type(x).__name__}; expected numbers (..., {size}).") from None
    if found.ndim < 1 or found.shape[-1] != size:
        raise ShapeError(f"{name} of a cost has shape {found.shape}; expected (..., {size}).")
    if not np.isfinite(found).all():
        raise CoadjointError(f"{name} of a cost has entries that are not finite numbers.")
    return name, found, (size,)


def _weight(weight: Any) -> np.ndarray:
    given = to_numpy(weight, "the weight of a cost")
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(
            f"the weight of a cost is {type(weight).__name__}; expected a number, or one for every residual."
        ) from None
    found = found[None] if found.ndim == 0 else found
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise CoadjointError("the weight of a cost has an entry that is negative or not finite; a weight is 0 or more.")
    return found


def terms(given: Term | Sequence[Term], what: str) -> tuple[Term, ...]:
    """The terms of a sum."""
    found = (given,) if isinstance(given, Term) else tuple(given) if isinstance(given, Sequence) else (given,)
    for term in found:
        if not isinstance(term, Term):
            raise CoadjointError(f"{what} has {type(term).__name__} in it; expected costs, such as cj.costs.control(0.1).")
    return found
