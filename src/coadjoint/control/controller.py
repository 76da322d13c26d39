"""Controllers: objects with force(q, v, t), for `simulate`, `rollout`, `compile` and real-time loops.

A controller is a law on arrays and a reference. The law is traced and compiled at the first call with NumPy arrays; on symbols, and
on arrays of JAX and PyTorch, it runs as it is written. So a controller can stand inside a rollout, which then runs natively as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..arrays import Array, like, mv, namespace
from ..errors import CoadjointError, ShapeError, TraceError
from ..families import built
from ..kernel.graph import Graph
from ..robot.robot import Robot
from ..words import short

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
        if type(t) is float and type(q) is np.ndarray and "force" in self._native:  # one state of a loop: as little as can be
            return self._native["force"](q, v, np.array([t]))
        if namespace(q, v) is np and not hasattr(t, "__coadjoint_symbol__"):
            return self._run("force", self._law, q, v, t)
        return self._law(self.gains, self.robot, q, v, *self.reference(t))

    def lyapunov(self, q: Array, v: Array, t: Any) -> Array:
        """The Lyapunov function (...) of this law at a state: it does not increase along motions of the robot under the control."""
        if self._lyapunov is None:
            raise CoadjointError(f"no Lyapunov function is known for {self.name}.")
        if namespace(q, v) is np:
            return self._run("lyapunov", self._lyapunov, q, v, t)
        return self._lyapunov(self.gains, self.robot, q, v, *self.reference(t))

    def graph(self) -> Graph:
        """The expression graph of force(q, v, t), t of shape (1,): for `coadjoint.export.c` and `coadjoint.export.js`."""
        from ..kernel.passes.simplify import simplify
        from ..kernel.trace.trace import trace

        return simplify(trace(self._whole(self._law), self._shapes, self.name))

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"q": (self.robot.nq,), "v": (self.robot.nv,), "t": (1,)}

    def _whole(self, law: Law) -> Callable[..., Array]:
        return lambda q, v, t: law(self.gains, self.robot, q, v, *self.reference(t[..., 0]))

    def _run(self, name: str, law: Law, q: Array, v: Array, t: Any) -> Array:
        """The law by machine code, with the reference inside it where that can be traced."""
        if name not in self._native:
            self._native[name] = self._compiled(name, law)
        t = np.asarray(t, dtype=float)
        return self._native[name](q, v, np.array([t]) if not t.ndim else t[..., None])

    def _compiled(self, name: str, law: Law) -> Callable[..., Array]:
        if not self._is_native:
            return self._as_written(law)
        try:
            return built(self.robot, self._whole(law), self._shapes, f"{self.name}_{name}")
        except (TraceError, TypeError, ValueError, AttributeError):
            return self._with_given_reference(name, law)

    def _with_given_reference(self, name: str, law: Law) -> Callable[..., Array]:
        """The law for a reference that is computed outside of it, as splines of SciPy are."""
        desired = [np.asarray(x, dtype=float) for x in self.reference(0.0)]
        shapes = {"q": (self.robot.nq,), "v": (self.robot.nv,)} | {f"desired{k}": x.shape for k, x in enumerate(desired)}
        run = built(self.robot, lambda q, v, *given: law(self.gains, self.robot, q, v, *given), shapes, f"{self.name}_{name}")
        return lambda q, v, t: run(q, v, *self._at(t[..., 0]))

    def _as_written(self, law: Law) -> Callable[..., Array]:
        """The law on NumPy arrays, each function of the robot in it by its own machine code."""

        def run(q: Array, v: Array, t: np.ndarray) -> Array:
            q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
            return np.asarray(law(self.gains, self.robot, q, v, *self._at(t[..., 0])))

        return run

    def _at(self, times: np.ndarray) -> list[np.ndarray]:
        """The reference at times (...), one after the other: a function of one time may decide by an `if`."""
        each = [[np.asarray(x, dtype=float) for x in self.reference(float(t))] for t in times.reshape(-1)]
        return [np.stack(x).reshape(*times.shape, *x[0].shape) for x in zip(*each, strict=True)]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_native": {}}

    def __repr__(self) -> str:
        return f"<{self.name} of {self.robot.name!r}>"


def gain(x: Any, name: str, n: int, zero: bool = False) -> np.ndarray:
    """A gain as a matrix (n, n): a number, a diagonal (n,), or a symmetric positive definite matrix; semidefinite if `zero`."""
    try:
        array = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise CoadjointError(f"{name} is {short(x)}; expected a number, {n} numbers or a matrix ({n}, {n}).") from None
    if array.shape not in ((), (n,), (n, n)):
        raise ShapeError(f"{name} has shape {array.shape}; expected a number, ({n},) or ({n}, {n}).")
    if array.ndim < 2:
        values, whole = np.broadcast_to(array, (n,)), np.diag(np.broadcast_to(array, (n,)))
    else:
        if not np.allclose(array, array.T, rtol=1e-10, atol=0.0):
            raise CoadjointError(f"{name} is not symmetric; a gain must be a symmetric positive definite matrix.")
        values, whole = np.linalg.eigvalsh(array) if np.isfinite(array).all() else np.array([np.nan]), array
    if not np.isfinite(values).all() or (values < 0).any() or (not zero and (values == 0).any()):
        worst = int(np.argmin(np.where(np.isfinite(values), values, -np.inf)))
        what = f"{name} has the eigenvalue" if array.ndim == 2 else f"{name}[{worst}] is" if array.ndim else f"{name} is"
        raise CoadjointError(f"{what} {values[worst]:g}; gains must be {'zero or ' if zero else ''}positive and finite.")
    return whole


def times(matrix: np.ndarray, x: Array) -> Array:
    """matrix @ x, by entries where the matrix is diagonal."""
    diagonal = np.diag(matrix)
    return like(diagonal, x) * x if not (matrix - np.diag(diagonal)).any() else mv(like(matrix, x), x)
