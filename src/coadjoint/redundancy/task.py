"""Tasks: a map from the configurations of a robot, and the Jacobian J of that map.

A `Task` is some rows of the twist of a frame: all six for its pose, (3, 4, 5) for its position, (2, 3, 4) for a planar chain. A
`MapTask` is any function of the configuration, differentiated by tracing. A redundant robot has more freedoms than its task has rows:
the configurations that do the same make a fibre, and the velocities v with J v = 0 are its tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..arguments import a_name, floats
from ..arrays import Array, concat, mv, namespace, transpose
from ..errors import CoadjointError, ShapeError
from ..kinematics.jacobian import REFERENCES, jacobian, jacobian_rate
from ..kinematics.poses import pose
from ..lie import so3
from ..memo import recent
from ..robot.robot import Robot
from ..traced import Traced, traced
from ..words import short

ALL = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Task:
    """Rows of the twist (ω, v) of a frame.

    reference "body": in the frame's own axes; "world": in those of space, at the frame's origin, so that rows 3, 4, 5 are the rates of the
    coordinates of its position. The spaces of horizontal and vertical velocities are the same for both where the rows are all of ω, all
    of v, or both. Single coordinates of a position are rows of "world".
    """

    frame: str
    rows: tuple[int, ...] = ALL
    reference: str = "body"

    def __post_init__(self) -> None:
        try:
            rows = tuple(int(x) for x in self.rows)
        except (TypeError, ValueError, OverflowError, np.ma.MaskError):
            rows = ()
        if not rows or rows != tuple(self.rows) or len(set(rows)) < len(rows) or not set(rows) <= set(ALL):
            raise CoadjointError(
                f"rows is {self.rows!r}; expected different numbers from 0 to 5: rows of the twist (ω, v), as (3, 4, 5) for the position."
            )
        object.__setattr__(self, "rows", rows)
        if not isinstance(self.reference, str) or self.reference not in REFERENCES:
            raise CoadjointError(f"reference is {short(self.reference)}; choose from {', '.join(REFERENCES)}.")

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def key(self) -> Any:
        """A key that identifies this task within the process."""
        return self

    @property
    def groups(self) -> list[list[int]]:
        """The rows of one unit: those of ω, those of v."""
        parts = [[k for k, row in enumerate(self.rows) if (row < 3) == turning] for turning in (True, False)]
        return [part for part in parts if part]

    def __str__(self) -> str:
        which = "" if self.rows == ALL else f", rows {self.rows}"
        return f"{self.frame!r}{which}{'' if self.reference == 'body' else f' ({self.reference})'}"

    def _chosen(self, J: Array) -> Array:
        return J if self.rows == ALL else J[..., list(self.rows), :]

    def jacobian(self, robot: Robot, q: Array) -> Array:
        """J (..., size, nv)."""
        return self._chosen(jacobian(robot, q, self.frame, self.reference))

    def jacobian_rate(self, robot: Robot, q: Array, v: Array) -> Array:
        """dJ/dt (..., size, nv) along the velocity v."""
        return self._chosen(jacobian_rate(robot, q, v, self.frame, self.reference))

    @property
    def target_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the values of a path: a pose and its body twist."""
        return (4, 4), (6,)

    def gap(self, robot: Robot, q: Array, target: Array) -> Array:
        """The error with respect to a pose (..., 4, 4): (log RᵀR', Rᵀ(p' - p)) or the same in the axes of space, the rows of the
        task.
        """
        T = pose(robot, q, self.frame)
        R, turn = T[..., :3, :3], so3.log(transpose(T[..., :3, :3]) @ target[..., :3, :3])
        way = target[..., :3, 3] - T[..., :3, 3]
        gap = concat([turn, mv(transpose(R), way)]) if self.reference == "body" else concat([mv(R, turn), way])
        return gap if self.rows == ALL else gap[..., list(self.rows)]

    def wanted(self, robot: Robot, q: Array, target: Array, twist: Array) -> Array:
        """The rows of the velocity of a target pose (..., 4, 4) that moves with a body twist (..., 6), as this robot sees it."""
        if self.reference == "space":
            raise CoadjointError("a path is followed by a task in reference 'body' or 'world', not 'space'.")
        axes = target[..., :3, :3]
        if self.reference == "body":
            axes = transpose(pose(robot, q, self.frame)[..., :3, :3]) @ axes
        seen = concat([mv(axes, twist[..., :3]), mv(axes, twist[..., 3:])])
        return seen if self.rows == ALL else seen[..., list(self.rows)]


@dataclass(frozen=True)
class OfRobot:
    """A user's function of a robot and q, as it was when it was traced for that robot."""

    computed: Traced

    @staticmethod
    def now(fn: Callable[[Robot, Array], Array], robot: Robot) -> OfRobot:
        return OfRobot(traced(lambda q: fn(robot, q), {"q": (robot.nq,)}, getattr(fn, "__name__", "function")))

    def __call__(self, robot: Robot, q: Array) -> Array:
        return self.computed(q)


class MapTask:
    """A task that a user writes: fn(robot, q) -> (size,), with array operations; its Jacobian comes from a trace.

    fn is traced each time the task is used (once for a whole path or optimisation), and sees the present values of the variables that it
    reads; `frozen` keeps those of one moment. Functions of a MapTask run as written around a compiled Jacobian, or natively through
    `coadjoint.compile(horizontal_lift, robot, frame=task)`.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, fn: Callable[[Robot, Array], Array], size: int, name: str | None = None) -> None:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise CoadjointError(f"size is {size!r}; expected how many numbers the task has, 1 or more.")
        self.fn, self.size = fn, size
        self.name = name or getattr(fn, "__name__", "map")

    @property
    def key(self) -> Any:
        """A key that identifies this task, which must be `frozen`, within the process."""
        return self.fn, self.size

    def frozen(self, robot: Robot) -> MapTask:
        """This task for one robot with its function as traced now: later changes of the variables that it reads have no effect."""
        if isinstance(self.fn, OfRobot) or not robot.has_plain_numbers:
            return self
        return MapTask(OfRobot.now(self.fn, robot), self.size, self.name)

    @property
    def groups(self) -> list[list[int]]:
        """One group of all rows, which count as of one unit."""
        return [list(range(self.size))]

    def __str__(self) -> str:
        return f"{self.name!r}"

    def _run(self, robot: Robot, order: int, q: Array) -> Array:
        """fn (order 0) or its derivative of first or second order: on symbols as a graph, on numbers compiled."""
        from ..differentiating import derivative, differential

        symbols = namespace(q).__name__.endswith("symbols")
        if not symbols and namespace(q) is not np:
            raise CoadjointError(
                f"task {self} is a function of yours whose derivatives are compiled, for NumPy arrays only, not for {type(q).__name__}; "
                "take a `Task` of a frame, or NumPy arrays."
            )
        if symbols or not robot.has_plain_numbers:
            fn = self.fn
            for _ in range(order):
                fn = differential(fn)
            return fn(robot, q)
        from ..compiling import compile

        now = self.frozen(robot).fn
        make = (compile, derivative, lambda fn, robot: derivative(differential(fn), robot))[order]
        found = recent(robot, ("task", now, order), lambda: make(now, robot))(floats(q, "q"))
        core = (self.size,) + order * (robot.nv,)
        if tuple(found.shape[found.ndim - len(core) :]) != core:
            raise ShapeError(f"task {self} gives {found.shape[found.ndim - 1 - order :][:1]} numbers; expected {self.size}.")
        return found

    def jacobian(self, robot: Robot, q: Array) -> Array:
        return self._run(robot, 1, q)

    def jacobian_rate(self, robot: Robot, q: Array, v: Array) -> Array:
        return mv(self._run(robot, 2, q), v[..., None, :])

    @property
    def target_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the values of a path: a value and its rate."""
        return (self.size,), (self.size,)

    def gap(self, robot: Robot, q: Array, target: Array) -> Array:
        """The error with respect to a value (..., size)."""
        return target - self._run(robot, 0, q)

    def wanted(self, robot: Robot, q: Array, target: Array, rate: Array) -> Array:
        return rate


AnyTask = Task | MapTask


@lru_cache(maxsize=256)
def _frame_task(frame: str, rows: tuple[int, ...] | None) -> Task:
    return Task(frame) if rows is None else Task(frame, rows)


def task_of(frame: str | AnyTask, rows: Sequence[int] | None = None) -> AnyTask:
    """The task that a frame and rows of its body twist are; a task is itself."""
    if not isinstance(frame, Task | MapTask):
        return _frame_task(a_name(frame, "frame"), None if rows is None else _rows(rows))
    if rows is not None:
        raise CoadjointError(f"rows is {rows!r} beside a task, which has its own; leave one of them out.")
    return frame


def _rows(rows: Any) -> tuple[Any, ...]:
    try:
        found = tuple(x.item() if isinstance(x, np.generic) else x for x in rows)
        hash(found)  # a row may be an array, which no kernel can be found by
        return found
    except TypeError:
        raise CoadjointError(f"rows is {rows!r}; expected rows of the twist (ω, v), such as (3, 4, 5) for the position.") from None


def has_fibres(robot: Robot, task: AnyTask) -> bool:
    """True if the rows of a task are rates of coordinates, so that there are configurations with the same task value.

    Along body axes d/dt Rᵀ(p' - p) = -v - ω × Rᵀ(p' - p): a coordinate of v that is left out, and a rotation, change those that are not.
    The same with coordinates of ω that are left out. What the robot never moves counts as being there.
    """
    if isinstance(task, MapTask) or task.rows == ALL:
        return True
    J = np.asarray(jacobian(robot, robot.random(0, 4), task.frame, task.reference))
    moves = [bool(np.max(np.abs(J[..., k, :]), initial=0.0) > 1e-12) for k in ALL]
    left_out = [k for k in ALL if k not in task.rows and moves[k]]
    chosen = [k for k in task.rows if moves[k]]
    if task.reference == "space":
        return not left_out
    turns = any(k < 3 for k in left_out) and any(k < 3 for k in chosen)
    pairs = [(k - 3, c - 3) for k in chosen for c in left_out if k > 2 and c > 2]
    return not turns and (task.reference == "world" or not any(moves[3 - sum(pair)] for pair in pairs))


def check_fibres(robot: Robot, task: AnyTask) -> None:
    """Raise an error if a task has no fibres."""
    if not has_fibres(robot, task):
        rows, reference = task.rows, task.reference  # type: ignore[union-attr]
        raise CoadjointError(
            f"the rows {rows} of task {task} in reference {reference!r} are no rates of coordinates, so there are no configurations that "
            "do the same. Take all rows of ω or of v, or rows of v in reference 'world'."
        )
