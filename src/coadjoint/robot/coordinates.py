"""The coordinates of a robot: their indices, names and limits, and how they change with velocities.

A joint that mimics another has no coordinate of its own. The algorithms run on the coordinates of the tree, in which it does;
`tree_q`, `tree_v` and `from_tree` convert between both, and are identities for a robot without such joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arguments import a_generator, argument, arguments, check_labels, sequence, whole
from ..arrays import Array, broadcast_batch, concat, like, mv, namespace
from ..errors import CoadjointError, unknown
from ..words import short
from .joints import JointKind
from .link import Link


class Coordinates:
    """The part of `Robot` about the coordinates q, v and those of its tree; `layout` sets the attributes."""

    links: tuple[Link, ...]
    kinds: tuple[JointKind, ...]
    mimics: dict[int, tuple[int, float, float]]
    nq: int
    nv: int
    tree_nq: int
    tree_nv: int
    tree_q_slices: tuple[slice, ...]
    tree_v_slices: tuple[slice, ...]
    _joint_index: dict[str, int]
    _q_slices: tuple[slice, ...]
    _v_slices: tuple[slice, ...]
    _q_map: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    _v_map: np.ndarray | None

    # --- names, places and limits

    @property
    def q_names(self) -> tuple[str, ...]:
        """A name for every coordinate of q: that of its joint, with a suffix if the joint has several, as `base.qx`."""
        return self._coordinate_names("q_parts")

    @property
    def v_names(self) -> tuple[str, ...]:
        """A name for every coordinate of v, a and τ; joints that are fixed or mimic others have none."""
        return self._coordinate_names("v_parts")

    def _coordinate_names(self, key: str) -> tuple[str, ...]:
        names: list[str] = []
        for i, kind in enumerate(self.kinds):
            joint, parts = self.links[i].joint.name, getattr(kind, key)
            if i not in self.mimics and kind.nv:
                names += [f"{joint}.{part}" for part in parts] or [joint]
        return tuple(names)

    @property
    def lower(self) -> np.ndarray:
        """Lower limits of q (nq,); -inf where there is none."""
        return self._per_coordinate("lower", self._q_slices, self.nq)

    @property
    def upper(self) -> np.ndarray:
        """Upper limits of q (nq,); inf where there is none."""
        return self._per_coordinate("upper", self._q_slices, self.nq)

    @property
    def velocity_limit(self) -> np.ndarray:
        """Limits of |v| (nv,)."""
        return self._per_coordinate("velocity", self._v_slices, self.nv)

    @property
    def effort_limit(self) -> np.ndarray:
        """Limits of |τ| (nv,)."""
        return self._per_coordinate("effort", self._v_slices, self.nv)

    def _per_coordinate(self, key: str, slices: Sequence[slice], size: int) -> np.ndarray:
        values = np.empty(size)
        for i, link in enumerate(self.links):
            if i not in self.mimics:
                values[slices[i]] = getattr(link.joint, key)
        return values

    def joint_index(self, joint: str) -> int:
        """The index of a joint, which is that of the link it carries."""
        if not isinstance(joint, str) or joint not in self._joint_index:
            raise unknown("joint", joint, self._joint_index)
        return self._joint_index[joint]

    def q_slice(self, joint: str) -> slice:
        """The slice of a joint's coordinates in q; for a mimic joint, that of the joint it follows."""
        return self._q_slices[self.joint_index(joint)]

    def v_slice(self, joint: str) -> slice:
        """The slice of a joint's velocities in v."""
        return self._v_slices[self.joint_index(joint)]

    # --- the configuration manifold

    def neutral(self) -> np.ndarray:
        """Home: q (nq,) with every joint at zero."""
        parts = [kind.neutral() for i, kind in enumerate(self.kinds) if i not in self.mimics]
        return np.concatenate([np.zeros(0), *parts])

    def random(self, rng: np.random.Generator | int | None = None, shape: int | tuple[int, ...] = ()) -> np.ndarray:
        """Random configurations (*shape, nq): within the limits where there are any, rotations uniformly distributed."""
        rng = a_generator(rng, "rng")
        shape = tuple(
            whole(n, "shape") for n in (sequence(shape, "shape") if not hasattr(shape, "__index__") or np.ndim(shape) else [shape])
        )
        if any(n < 0 for n in shape):
            raise CoadjointError(f"shape is {shape}; expected sizes of 0 or more.")
        try:
            parts = [np.empty((*shape, self.nq))[..., :0]]
        except (ValueError, MemoryError):
            raise CoadjointError(f"shape is {short(shape)}; an array of so many configurations does not fit into memory.") from None
        for i, kind in enumerate(self.kinds):
            if i not in self.mimics:
                parts.append(kind.random(rng, shape, self.links[i].joint.lower, self.links[i].joint.upper))
        return np.concatenate(parts, axis=-1)

    def integrate(self, q: Array, dv: Array) -> Array:
        """q (..., nq) moved by the tangent vector dv (..., nv): for an angle q + dv, for a free base T(q) exp(dv)."""
        q, dv = self._pair(("q", q, self.nq), ("dv", dv, self.nv))
        return self._jointwise(lambda kind, i: kind.integrate(q[..., self._q_slices[i]], dv[..., self._v_slices[i]]), q)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The tangent vector (..., nv) that moves q0 to q1: `integrate(q0, difference(q0, q1))` is q1."""
        q0, q1 = self._pair(("q0", q0, self.nq), ("q1", q1, self.nq))
        return self._jointwise(lambda kind, i: kind.difference(q0[..., self._q_slices[i]], q1[..., self._q_slices[i]]), q0)

    def rate(self, q: Array, v: Array) -> Array:
        """dq/dt (..., nq) at velocity v (..., nv): v itself where every joint has one screw, ½ q ⊗ (ω, 0) for a quaternion."""
        q, v = self._pair(("q", q, self.nq), ("v", v, self.nv))
        return self._jointwise(lambda kind, i: kind.rate(q[..., self._q_slices[i]], v[..., self._v_slices[i]]), q)

    def normalize(self, q: Array) -> Array:
        """q (..., nq) with every quaternion of length one."""
        q = self._checked(q, "q", self.nq)
        return self._jointwise(lambda kind, i: kind.normalize(q[..., self._q_slices[i]]), q)

    def _jointwise(self, part: Any, example: Array) -> Array:
        parts = [part(kind, i) for i, kind in enumerate(self.kinds) if i not in self.mimics and kind.nq]
        return concat(parts) if parts else example[..., :0]

    def velocitywise(self, part: Callable[..., Array], *arrays: Array) -> Array:
        """(..., nv): part(kind, *velocities) of every joint with velocities of its own; arrays (..., nv)."""
        own = [(kind, self._v_slices[i]) for i, kind in enumerate(self.kinds) if i not in self.mimics and kind.nv]
        parts = [part(kind, *(x[..., place] for x in arrays)) for kind, place in own]
        return concat(parts) if parts else arrays[0]

    @property
    def quaternions(self) -> list[tuple[str, slice]]:
        """The joints with a quaternion, and its slice in q."""
        found = []
        for i, kind in enumerate(self.kinds):
            if kind.quaternion is not None:
                start = self._q_slices[i].start
                found.append((self.links[i].joint.name, slice(start + kind.quaternion.start, start + kind.quaternion.stop)))
        return found

    def _checked(self, x: Array, name: str, size: int) -> Array:
        check_labels(name, x, self)
        return argument(name, x, size)

    def _pair(self, *named: tuple[str, Array, int]) -> list[Array]:
        """Two arrays (..., size) of one array library, with the same batch axes."""
        for name, x, _ in named:
            check_labels(name, x, self)
        arrays = arguments(*((name, x, (size,)) for name, x, size in named))
        batch = broadcast_batch(**{name: (x, 1) for (name, _, _), x in zip(named, arrays, strict=True)})
        xp = namespace(*arrays)
        return [x if x.shape[:-1] == batch else xp.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]

    # --- the coordinates of the tree, in which a mimic joint has its own

    def tree_q(self, q: Array) -> Array:
        if self._q_map is None:
            return q
        index, ratio, offset = self._q_map
        return q[..., index] * like(ratio, q) + like(offset, q)

    def tree_v(self, v: Array) -> Array:
        return v if self._v_map is None else mv(like(self._v_map, v), v)

    def from_tree(self, tau: Array) -> Array:
        """Generalised forces of the tree pulled back to the robot's coordinates."""
        return tau if self._v_map is None else mv(like(self._v_map.T, tau), tau)

    def from_tree_columns(self, a: Array) -> Array:
        """a with its last axis transformed from the velocities of the tree to those of the robot: A G where v_tree = G v."""
        return a if self._v_map is None else a @ like(self._v_map, a)
