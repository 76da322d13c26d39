"""xarray: results get the dimensions and coordinates of the arguments.

The last dimensions of a DataArray are its core axes, whatever they are called; all others are batch dimensions, which broadcast by name
and must have equal coordinates. The core dimensions of a result are named after what they enumerate (`NAMES`), with the names of
joints and
links as coordinates; where an argument has the same core, its own name and coordinates are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import is_labelled
from ..errors import CoadjointError, ShapeError
from .task import fields, whole

NAMES = {
    "nv": ("joint",),
    "nq": ("coordinate",),
    "n_links": ("link",),
    "tree_nv": ("freedom",),
    "2nv": ("state",),
    "parameters": ("parameter",),
    "task": ("task_row",),
    "m": ("constraint_row",),
    "k": ("freedom",),
    "lines": ("line",),
    "3": ("axis",),
    "4": ("row", "column"),
    "6": ("component",),
}
"""The names of the core dimensions of results; a second one of the same kind takes the next name, or gets a number: joint_2."""

LABELS = {"nv": "v_names", "nq": "q_names", "n_links": "link_names"}
"""The names of the robot that are the coordinates of a core axis."""


def call_labelled(
    robot: Any,
    name: str | None,
    arrays: Mapping[str, Any],
    cores: Mapping[str, str],
    returns: Sequence[str] | None,
    run: Callable[[dict[str, Any]], Any],
) -> Any:
    """The results of `run`, which takes plain arrays by name, as DataArrays called `name`."""
    import xarray

    own = {key: _core_dims(robot, key, x, cores[key]) for key, x in arrays.items() if is_labelled(x)}
    batch = _batch(arrays, own, cores)
    labels = {key: _labels(robot, key, arrays[key], dims, cores[key]) for key, dims in own.items()}
    plain = {key: _plain(key, x, batch.dims, own.get(key), cores[key]) for key, x in arrays.items()}
    result = run(plain)
    found = []
    if returns is None:
        returns = [" ".join(f"dim_{k}" for k in range(x.ndim - len(batch.dims))) for x in fields(result)]
    for x, core in zip(fields(result), returns, strict=True):
        dims, coords = _result_core(robot, core, own, labels, cores, set(batch.dims))
        coords = {dim: index for dim, index in coords.items() if len(index) == x.shape[len(batch.dims) + dims.index(dim)]}
        found.append(xarray.DataArray(x, dims=(*batch.dims, *dims), coords={**batch.coords, **coords}, name=name))
    return whole(result, tuple(found), robot)


def _core_dims(robot: Any, name: str, x: Any, core: str) -> tuple[Any, ...]:
    """The last dimensions; an error if an earlier one has the name or the labels of a core dimension."""
    n = len(core.split())
    if x.ndim < n:
        raise ShapeError(f"{name} has the dimensions {x.dims}; expected {n} or more, the last the core ({core}).")
    joints = [list(robot.q_names), list(robot.v_names)] if robot is not None else []
    for dim in x.dims[: x.ndim - n]:
        if dim in ("joint", "coordinate") or (dim in x.indexes and x.indexes[dim].tolist() in joints):
            raise CoadjointError(
                f"{name} has the dimensions {x.dims}; the core comes last, and {dim!r} seems to be of it: {name}.transpose(..., {dim!r})."
            )
    return tuple(x.dims[x.ndim - n :])


def _batch(arrays: Mapping[str, Any], own: Mapping[str, tuple[Any, ...]], cores: Mapping[str, str]) -> Any:
    """A placeholder DataArray with the batch dimensions of all arguments, in the order of first appearance, and their
    coordinates.
    """
    import xarray

    shells = []
    for name, dims in own.items():
        x = arrays[name]
        for other, its in own.items():
            if shared := [d for d in x.dims[: x.ndim - len(dims)] if d in its]:
                raise CoadjointError(
                    f"{name} has the dimensions {x.dims} and {other} {arrays[other].dims}: {shared[0]!r} is a batch dimension of the "
                    f"one and a core dimension of the other. Core dimensions come last: {name}.transpose(…, {shared[0]!r})."
                )
        shape = x.shape[: x.ndim - len(dims)]
        coords = {key: c for key, c in x.coords.items() if not set(c.dims) & set(dims)}
        shells.append(xarray.DataArray(np.broadcast_to(0.0, shape), dims=x.dims[: len(shape)], coords=coords))
    try:
        return xarray.apply_ufunc(
            lambda *data: np.broadcast_to(0.0, np.broadcast_shapes(*(x.shape for x in data))), *shells, join="exact"
        )
    except ValueError as error:
        text = " ".join(str(error).split())
        raise CoadjointError(f"the batch dimensions of {', '.join(own)} do not fit together: {text}") from None


def _labels(robot: Any, name: str, x: Any, dims: tuple[Any, ...], core: str) -> list[Any]:
    """The coordinates of each core dimension, None where there are none; an error if they are the robot's names in another order."""
    found = []
    for dim, size in zip(dims, core.split(), strict=True):
        index = x.indexes.get(dim)
        expected = list(getattr(robot, LABELS[size])) if size in LABELS and robot is not None else None
        if index is not None and expected is not None and index.dtype.kind in "OUT":
            given = index.values.tolist()
            known = set(expected) | (set(robot.joint_names) if size != "n_links" else set())
            if given != expected and set(given) <= known and sorted(given) == sorted(expected):
                raise CoadjointError(
                    f"{name}: the coordinates of {dim!r} are {given}; robot {robot.name!r} has them in the order {expected}. "
                    f"Reorder them: {name}.sel({{{dim!r}: {expected}}})."
                )
        found.append(index)
    return found


def _plain(name: str, x: Any, batch: tuple[Any, ...], own: tuple[Any, ...] | None, core: str) -> Any:
    """The array with its batch axes in the order of `batch`, of size 1 where it has none."""
    if own is None:
        if np.ndim(x) != len(core.split()):
            raise ShapeError(
                f"{name} has shape {np.shape(x)}; beside a DataArray its batch axes have no names: give a DataArray, or one "
                f"({core}) for all."
            )
        return x
    mine = [d for d in batch if d in x.dims]
    data = x.transpose(*mine, *own).data
    return data[tuple(slice(None) if d in mine else None for d in batch)] if batch else data


def _result_core(
    robot: Any,
    core: str,
    own: Mapping[str, tuple[Any, ...]],
    labels: Mapping[str, list[Any]],
    cores: Mapping[str, str],
    taken: set[Any],
) -> tuple[list[Any], dict[Any, Any]]:
    """Names and coordinates of the core dimensions of a result."""
    dims: list[Any] = []
    coords: dict[Any, Any] = {}
    for size in core.split():
        dim, index = _inherited(robot, size, own, labels, cores)
        if dim is None:
            dim = NAMES.get(size, (size,))[0]
        if index is None and size in LABELS and robot is not None:
            index = list(getattr(robot, LABELS[size]))
        dim = _free(dim, NAMES.get(size, ()), {*dims, *taken})
        dims.append(dim)
        if index is not None:
            coords[dim] = np.asarray(index)
    return dims, coords


def _inherited(
    robot: Any, size: str, own: Mapping[str, tuple[Any, ...]], labels: Mapping[str, list[Any]], cores: Mapping[str, str]
) -> tuple[Any, Any]:
    """Name and coordinates of the core dimension of the first argument that has this size; those of q are used where nq = nv."""
    alike = {size, *(("nq", "nv") if size in ("nq", "nv") and robot is not None and robot.q_names == robot.v_names else ())}
    for key, dims in own.items():
        for dim, index, other in zip(dims, labels[key], cores[key].split(), strict=True):
            if other in alike and not other.isdigit():
                return dim, index
    return None, None


def _free(dim: Any, further: Sequence[str], taken: set[Any]) -> Any:
    """The name, or the next one that is not taken."""
    candidates = [dim, *further[1:], *(f"{dim}_{k}" for k in range(2, 2 + len(taken)))]
    return next(name for name in candidates if name not in taken)
