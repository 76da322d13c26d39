"""Controllers: objects with force(q, v, t), for `simulate`, `rollout`, `compile` and real-time loops.

A controller is a law on arrays and a reference. The law is traced and compiled at the first call with NumPy arrays; on symbols, and
on arrays of JAX and PyTorch, it runs as it is written. So a controller can stand inside a rollout, which then runs natively as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import check_labels, floats
from ..arguments import times as finite_times
from ..arrays import Array, like, mv, namespace
from ..errors import CoadjointError, ShapeError
from ..kernel.graph import Graph
from ..robot.robot import Robot
from ..words import short
from .evaluation import compiled, desired_at, desired_during, graph_of, is_traced
from .references import check_limits

Law = Callable[..., Array]
"""law(gains, robot, q, v, *desired): the joint forces (..., nv), written with array operations. It pickles: a function of a module."""


class Controller:
    """A control law that tracks a reference. It is immutable; what it reads is fixed when it is made."""

    def __init__(
        self,
        robot: Robot,
        name: str,
        law: Law,
        reference: Callable[[Any], tuple[Array, ...]],
        gains: Mapping[str, Any],
        lyapunov: Law | None = None,
        native: bool = True,
    ) -> None:
        self.robot, self.name, self.reference, self.gains = robot, name, reference, dict(gains)
        self._law, self._lyapunov, self._is_native = law, lyapunov, native
        self._native: dict[str, Any] = {}

    def force(self, q: Array, v: Array, t: Any) -> Array:
        """The joint forces τ (..., nv) at the state q (..., nq), v (..., nv) and the time t, a number or (...,)."""
        if type(t) is float and type(q) is type(v) is np.ndarray and "force" in self._native and t - t == 0.0:
            # one state of a loop: as little as can be
            return self._native["force"](q, v, np.array([t]))
        if namespace(q, v) is np and not hasattr(t, "__coadjoint_symbol__"):
            return self._run("force", self._law, q, v, t)
        return self._law(self.gains, self.robot, q, v, *desired_at(self.reference, t, q))

    def lyapunov(self, q: Array, v: Array, t: Any) -> Array:
        """The Lyapunov function (...) of this law at a state: it does not increase along motions of the robot under the control."""
        if self._lyapunov is None:
            raise CoadjointError(f"no Lyapunov function is known for {self.name}.")
        if namespace(q, v) is np:
            return self._run("lyapunov", self._lyapunov, q, v, t)
        return self._lyapunov(self.gains, self.robot, q, v, *desired_at(self.reference, t, q))

    def check_reference(self, times: Any) -> None:
        """An error if the reference leaves the limits of the robot's joints at some of the times (N,).

        `simulate`, `rollout` and `closed_loop` ask before they run.
        """
        check_limits(self.reference, times)

    def outside(self) -> tuple[Law, Callable[[np.ndarray], list[np.ndarray]]] | None:
        """The law as a function of q, v and what is desired, and what is desired at times (N,), (N, ...) each; None where the reference
        can be traced. `rollout` asks.
        """
        if is_traced(self.reference):
            return None
        return self._of(self._law), lambda times: desired_during(self.reference, times)

    def graph(self) -> Graph:
        """The expression graph of force(q, v, t), t of shape (1,): for `coadjoint.export.c` and `coadjoint.export.js`.

        Where the reference cannot be traced, what it gives takes the place of t: the graph is that of force(q, v, desired0, desired1, …).
        """
        return graph_of(self._of(self._law), self.reference, self._shapes, self.name)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"q": (self.robot.nq,), "v": (self.robot.nv,), "t": (1,)}

    def _of(self, law: Law) -> Law:
        return lambda *arrays: law(self.gains, self.robot, *arrays)

    def _run(self, name: str, law: Law, q: Array, v: Array, t: Any) -> Array:
        """The law by machine code, with the reference inside it where that can be traced."""
        for what, x in (("q", q), ("v", v)):
            if type(x) is not np.ndarray:
                check_labels(what, x, self.robot)
        if name not in self._native:
            made = compiled if self._is_native else _as_written
            self._native[name] = made(self.robot, self._of(law), self.reference, self._shapes, f"{self.name}_{name}")
        return self._native[name](q, v, finite_times(t)[..., None])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_native": {}}

    def __repr__(self) -> str:
        return f"<{self.name} of {self.robot.name!r}>"


def _as_written(robot: Robot, law: Law, reference: Law, shapes: Mapping[str, tuple[int, ...]], name: str) -> Callable[..., Array]:
    """The law on NumPy arrays, each function of the robot in it by its own machine code."""

    def run(q: Array, v: Array, t: np.ndarray) -> Array:
        return np.asarray(law(np.asarray(q, dtype=float), np.asarray(v, dtype=float), *desired_during(reference, t[..., 0])))

    return run


def gain(x: Any, name: str, n: int, zero: bool = False, of: Sequence[str] = ()) -> np.ndarray:
    """A gain as a matrix (n, n): a number, a diagonal (n,), or a symmetric positive definite matrix; semidefinite if `zero`.

    of: the names of the n joints or rows, for errors.
    """
    try:
        array = floats(x, name)
    except CoadjointError:
        raise CoadjointError(f"{name} is {short(x)}; expected a number, {n} numbers or a matrix ({n}, {n}).") from None
    if array.shape not in ((), (n,), (n, n)):
        raise ShapeError(f"{name} has shape {array.shape}; expected a number, ({n},) or ({n}, {n}).")
    if array.ndim < 2:
        values, whole = np.broadcast_to(array, (n,)), np.diagflat(np.broadcast_to(array, (n,)))
    else:
        if not np.allclose(array, array.T, rtol=1e-10, atol=0.0):
            raise CoadjointError(f"{name} is not symmetric; a gain must be a symmetric positive definite matrix.")
        values, whole = np.linalg.eigvalsh(array) if np.isfinite(array).all() else np.array([np.nan]), array.copy()
    if not np.isfinite(values).all() or (values < 0).any() or (not zero and (values == 0).any()):
        worst = int(np.argmin(np.where(np.isfinite(values), values, -np.inf)))
        what = f"{name} has the eigenvalue" if array.ndim == 2 else f"{name}[{worst}] is" if array.ndim else f"{name} is"
        whose = f" This one is for {of[worst]}." if of and array.ndim == 1 else ""
        raise CoadjointError(f"{what} {values[worst]:g}; gains must be {'zero or ' if zero else ''}positive and finite.{whose}")
    whole.setflags(write=False)
    return whole


def times(matrix: np.ndarray, x: Array) -> Array:
    """matrix @ x, by entries where the matrix is diagonal."""
    diagonal = np.diag(matrix)
    return like(diagonal, x) * x if not (matrix - np.diag(diagonal)).any() else mv(like(matrix, x), x)
