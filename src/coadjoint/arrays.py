"""The arrays the library runs on: NumPy, JAX, PyTorch, and NumPy arrays of symbols.

Every algorithm is written once on arrays whose leading axes are batch axes. What differs between the array
libraries stands here and nowhere else: which namespace an array belongs to, constants lifted to its type, and
stacking of parts whose batch axes differ.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from .errors import CoadjointError, ShapeError

Array: TypeAlias = np.ndarray | Any
"""A NumPy, JAX or PyTorch array, or a NumPy array of symbols.

Type checkers see NumPy's array, with the attributes that all of these share, or one that is unknown: so the result does not depend on which
of the libraries are installed.
"""


class OtherArray(Protocol):
    """An array of any library, by the attributes that all of them have."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> Any: ...


Numbers = (
    float
    | np.number
    | np.ndarray
    | Sequence[float]
    | Sequence[np.ndarray]
    | Sequence[Sequence[float]]
    | Sequence[Sequence[Sequence[float]]]
)
"""A number, a NumPy array, or nested lists of numbers: anything that becomes a NumPy array of real numbers."""

ArrayLike = Numbers | OtherArray
"""The type that public functions accept as an array: numbers for NumPy, or an array of another library."""


def namespace(*arrays: Array) -> Any:
    """The array namespace that the arguments share; plain numbers and lists count as NumPy.

    The order of precedence is PyTorch, JAX, symbols, NumPy: so NumPy constants can be mixed with any of the others.
    """
    found: Any = np
    for x in arrays:
        kind = type(x)
        if kind is np.ndarray:
            if x.dtype == object:
                found = _symbols()
        elif kind in (float, int) or isinstance(x, np.generic):
            continue
        elif _is_torch(x):
            import array_api_compat.torch as torch_namespace

            return torch_namespace
        elif _is_jax(x):
            import jax.numpy as jax_namespace

            found = jax_namespace
        elif hasattr(x, "__coadjoint_symbol__"):
            found = _symbols()
    return found


def _symbols() -> Any:
    from .kernel.trace import symbols

    return symbols


def _is_torch(x: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _is_jax(x: object) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def is_dask(x: object) -> bool:
    """True if x is a Dask array."""
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(x, getattr(dask, "Array", ()))


def is_labelled(x: object) -> bool:
    """True if x is an xarray.DataArray."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(x, getattr(xarray, "DataArray", ()))


def is_lazy(x: object) -> bool:
    """True if x is a Dask array or a DataArray, which `scale/deferred.py` handles chunk by chunk."""
    return is_dask(x) or is_labelled(x)


def is_deferred(x: object) -> bool:
    """True if the numbers of x are still to be computed: a Dask array, or a DataArray that holds one."""
    return is_dask(x.data if is_labelled(x) else x)  # type: ignore[attr-defined]


def any_lazy(items: Iterable[object]) -> bool:
    """True if one of the items is lazy."""
    return ("dask.array" in sys.modules or "xarray" in sys.modules) and any(map(is_lazy, items))


def refuse_lazy(x: object, name: str) -> None:
    """Raise an error if x is lazy: computing it here could exhaust the memory."""
    if is_lazy(x):
        raise CoadjointError(
            f"{name} is a {'Dask array' if is_dask(x) else 'DataArray'}, which this function does not take; give {name}"
            f"{'.compute()' if is_dask(x) else '.values'}, or call the function through coadjoint.scale.lazy."
        )


def asfloat(x: Any, name: str = "the array") -> Array:
    """x as an array of floating-point numbers (or symbols); integers and lists become float64, masked entries NaN."""
    refuse_lazy(x, name)
    if _is_torch(x):
        if x.is_complex():
            raise not_real(name, x)
        return x if x.is_floating_point() else x.double()
    if _is_jax(x):
        if x.dtype.kind == "c":
            raise not_real(name, x)
        return x if x.dtype.kind == "f" else x.astype(float)
    try:
        array = np.asanyarray(x)
    except (ValueError, TypeError):  # lists of uneven length
        raise not_real(name, x) from None
    if array.dtype.kind not in "fiubO":
        raise not_real(name, x)
    if array.dtype.kind == "O":  # an array of symbols is a subclass of NumPy's
        if type(array) is np.ndarray and not array.ndim and not hasattr(x, "__coadjoint_symbol__"):
            return _one_number(x, name)
        return array
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    return np.asarray(array, dtype=None if array.dtype.kind == "f" else np.float64)


def _one_number(x: Any, name: str) -> np.ndarray:
    """An integer that is too large for NumPy's integers, or another object that is one number."""
    try:
        return np.asarray(float(x))
    except (TypeError, ValueError, OverflowError):
        raise not_real(name, x) from None


def to_numpy(x: Any, name: str) -> Any:
    """x with JAX arrays and tensors converted to NumPy, for functions that compute in NumPy only, and masked entries as NaN; anything else
    unchanged.

    Raises an error where that would silently lose a trace or a derivative: inside `jit`, `grad` and `vmap`, and for tensors that
    require a gradient.
    """
    if _is_torch(x):
        import torch

        wrapped = torch._C._functorch.is_functorch_wrapped_tensor(x)
        if wrapped or (x.requires_grad and torch.is_grad_enabled()):
            why = "a tensor inside torch.func" if wrapped else "a tensor that requires a gradient"
            raise CoadjointError(f"{name} is {why}, {_NO_DERIVATIVE.format('torch')} For the numbers alone give {name}.detach().")
        return x.detach().cpu().numpy()
    if _is_jax(x):
        import jax

        if isinstance(x, jax.core.Tracer):
            raise CoadjointError(
                f"{name} is an array inside jit, grad or vmap of JAX, {_NO_DERIVATIVE.format('jax')} For the numbers alone call it "
                "outside of these, or through jax.pure_callback."
            )
        return np.asarray(x)
    return unmasked(x)


def unmasked(x: Any) -> Any:
    """x, its masked entries NaN: what is not there is no number."""
    if isinstance(x, np.ma.MaskedArray):
        return np.ma.filled(x.astype(float), np.nan) if np.ma.getmaskarray(x).any() and x.dtype.kind in "fiub" else x.data
    return x


_NO_DERIVATIVE = (
    "but this function computes in NumPy and has no derivative. `coadjoint.interop.{0}.rollout(robot, dt=...)`, "
    "`.inverse_kinematics(robot, frame)` and `.function(coadjoint.forward_dynamics, robot)`, or another of our functions, have derivatives."
)


def not_real(name: str, x: object) -> ShapeError:
    text = " ".join(repr(x).split())
    return ShapeError(f"{name} is {text if len(text) < 80 else f'{text[:60]}… ({type(x).__name__})'}; expected real numbers.")


def like(constant: Any, x: Any) -> Array:
    """The constant as an array with the library, precision and device of x."""
    if _is_torch(x):
        import torch

        if not _is_torch(constant):
            constant = torch.tensor(np.asarray(constant))
        return constant.to(dtype=x.dtype, device=x.device)
    if _is_jax(x):
        # Left as NumPy: JAX makes a constant of it, and nothing made inside one trace outlives it.
        return constant if _is_jax(constant) else np.asarray(constant, dtype=x.dtype)
    if getattr(x, "dtype", None) == np.float32:
        return np.asarray(constant, dtype=np.float32)
    return constant if isinstance(constant, np.ndarray) else np.asarray(constant)


def alike(arrays: Sequence[Array]) -> list[Array]:
    """The arrays converted to the library that `namespace` names, and in PyTorch to the highest precision among the tensors."""
    xp = namespace(*arrays)
    if xp is np or xp.__name__.endswith("symbols"):
        return list(arrays)
    own = [x for x in arrays if namespace(x) is xp]
    if _is_torch(own[0]):
        reference = max(own, key=lambda x: x.dtype.itemsize)
        return [x if _is_torch(x) and x.dtype == reference.dtype else like(x, reference) for x in arrays]
    return [x if namespace(x) is xp else like(x, own[0]) for x in arrays]


def _broadcast(xp: Any, items: Sequence[Array], reference: Array) -> list[Array]:
    """The items broadcast to one shape."""
    arrays = [x if hasattr(x, "shape") else like(x, reference) for x in items]
    if xp.__name__.endswith("torch"):
        arrays = [x if _is_torch(x) else like(x, reference) for x in arrays]
    shapes = {tuple(x.shape) for x in arrays}
    if len(shapes) == 1:
        return arrays
    shape = np.broadcast_shapes(*shapes)
    return [xp.broadcast_to(x, shape) for x in arrays]


def _reference(xp: Any, items: Sequence[Array]) -> Array:
    for x in items:
        if hasattr(x, "dtype") and namespace(x) is xp:
            return x
    return items[0]


def stack(items: Sequence[Array], axis: int = -1) -> Array:
    """Arrays and numbers stacked along a new axis after broadcasting."""
    xp = namespace(*items)
    return xp.stack(_broadcast(xp, items, _reference(xp, items)), axis=axis)


def concat(items: Sequence[Array]) -> Array:
    """Arrays joined along their last axis after broadcasting the leading ones."""
    xp = namespace(*items)
    reference = _reference(xp, items)
    items = [like(x, reference) if xp is not namespace(x) else x for x in items]
    leading = {tuple(x.shape[:-1]) for x in items}
    if len(leading) > 1:
        shape = np.broadcast_shapes(*leading)
        items = [xp.broadcast_to(x, (*shape, x.shape[-1])) for x in items]
    return xp.concat(items, axis=-1)


def matrix(rows: Sequence[Sequence[Array]]) -> Array:
    """A matrix (..., m, n) from nested rows of scalars (...) and plain numbers."""
    flat = stack([x for row in rows for x in row])
    return flat.reshape((*flat.shape[:-1], len(rows), len(rows[0])))


def block(rows: Sequence[Sequence[Array]]) -> Array:
    """A matrix from nested rows of matrices (..., m, n) after broadcasting their leading axes."""
    return transpose(concat([transpose(concat(row)) for row in rows]))


def transpose(a: Array) -> Array:
    """The last two axes exchanged."""
    return a.mT if hasattr(a, "mT") else a.swapaxes(-1, -2)


def mirror(a: Array) -> Array:
    """The symmetric matrix whose upper triangle is that of a (..., n, n); in a traced graph the lower one is never computed."""
    n = a.shape[-1]
    i, j = np.indices((n, n))
    flat = a.reshape((*a.shape[:-2], n * n))
    return flat[..., (np.minimum(i, j) * n + np.maximum(i, j)).reshape(-1)].reshape(a.shape)


def mv(a: Array, x: Array) -> Array:
    """Matrix times vector: (..., m, n), (..., n) -> (..., m)."""
    return (a @ x[..., None])[..., 0]


def dot(x: Array, y: Array) -> Array:
    """Inner product of vectors over the last axis."""
    return (x * y).sum(-1)


def cross(x: Array, y: Array) -> Array:
    """x × y over the last axis."""
    x1, x2, x3 = x[..., 0], x[..., 1], x[..., 2]
    y1, y2, y3 = y[..., 0], y[..., 1], y[..., 2]
    return stack([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1])


def diagonal(x: Array) -> Array:
    """The diagonal matrices (..., n, n) of vectors x (..., n)."""
    return x[..., None] * like(np.eye(x.shape[-1]), x)


def where(condition: Array, x: Array, y: Array) -> Array:
    """x where the condition holds and y elsewhere, for arrays of every kind; both are computed."""
    xp = namespace(condition, x, y)
    if xp.__name__.endswith("torch"):
        reference = next((value for value in (x, y) if _is_torch(value)), None)
        if reference is not None:
            x, y = like(x, reference), like(y, reference)
    try:
        return xp.where(condition, x, y)
    except TypeError:
        raise CoadjointError("x and y are of kinds that one array cannot hold; expected real numbers.") from None
    except OverflowError:
        raise CoadjointError("x or y is an integer that is too large for an array; expected real numbers.") from None
    except (ValueError, RuntimeError):
        try:
            shapes = [tuple(np.shape(value)) for value in (condition, x, y)]
        except ValueError:
            raise ShapeError("condition, x or y has rows of different lengths; expected arrays.") from None
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise ShapeError(f"condition, x and y have shapes {shapes}, which do not fit together.") from None
        raise


def solve_spd(a: Array, b: Array, assume_definite: bool = False) -> Array:
    """A⁻¹B for symmetric positive definite A (..., n, n) and B (..., n, m), by Cholesky's factors.

    Only the lower triangle of A counts. Where A is not positive definite, every entry of the result is NaN. With
    `assume_definite` compiled code leaves that test out: for callers that test the pivots themselves.
    """
    xp = namespace(a, b)
    if xp.__name__.endswith("symbols"):
        return xp.solve_spd(a, b, assume_definite)
    if _is_torch(a) or _is_torch(b):
        import torch

        reference = a if _is_torch(a) else b
        a, b = like(a, reference), like(b, reference)
        factor, failed = torch.linalg.cholesky_ex(a)
        return torch.where((failed == 0)[..., None, None], torch.cholesky_solve(b, factor), torch.nan)
    if xp is not np:
        from jax.scipy.linalg import solve_triangular

        factor = xp.linalg.cholesky(a, symmetrize_input=False)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        factor, b = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (factor, b))
        return solve_triangular(factor, solve_triangular(factor, b, lower=True), lower=True, trans=1)
    try:
        factor, definite = np.linalg.cholesky(a), None
    except np.linalg.LinAlgError:  # some of them: each by itself
        factor, definite = np.broadcast_to(np.eye(a.shape[-1]), a.shape).copy(), np.zeros((*a.shape[:-2], 1, 1), dtype=bool)
        for index in np.ndindex(a.shape[:-2]):
            with contextlib.suppress(np.linalg.LinAlgError):
                factor[index], definite[index] = np.linalg.cholesky(a[index]), True
    solution = np.linalg.solve(transpose(factor), np.linalg.solve(factor, b))
    return solution if definite is None else np.where(definite, solution, np.nan)


MOST_AXES = 24
"""The largest number of batch axes: some functions of NumPy allow 32 axes in all, and algorithms add some of their own."""


def broadcast_batch(**arrays: tuple[Array, int]) -> tuple[int, ...]:
    """The common batch shape of named (array, core_ndim); an error names the arguments that do not fit."""
    shapes = {name: tuple(x.shape[: x.ndim - core]) for name, (x, core) in arrays.items()}
    for name, shape in shapes.items():
        if len(shape) > MOST_AXES:
            raise ShapeError(f"{name} has {len(shape)} batch axes; expected at most {MOST_AXES}.")
    return broadcast_named(shapes)


def broadcast_named(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of named batch axes; an error lists them where they do not broadcast."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listing = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ShapeError(f"batch axes do not broadcast: {listing}. Leading axes must be equal or 1.") from None
