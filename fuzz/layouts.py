"""Compiled functions and derivatives of random functions: arrays of every layout and batch, results that share memory with inputs,
single precision, and derivatives against each other and against differences.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.errors import CoadjointError, KernelWarning

from .functions import Step, call, program

ROBOT = cj.load("planar1r")
CLOSE = 1e-9


def function(steps: list[Step]) -> Callable[..., Any]:
    def fn(robot: cj.Robot, x: Any) -> Any:
        return call(steps, x)

    return fn


def arranged(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """The same numbers in another layout of memory."""
    kind = int(rng.integers(8))
    if kind == 1:
        return np.asfortranarray(x)
    if kind == 2:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if kind == 3:
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    if kind == 4:
        x = x.copy()
        x.flags.writeable = False
    if kind == 5:
        return np.frombuffer(b"\0" + np.ascontiguousarray(x).tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)  # not aligned
    if kind == 6:
        return x.astype(x.dtype.newbyteorder())
    if kind == 7:
        return np.ascontiguousarray(np.moveaxis(x, -1, 0)).transpose(*range(1, x.ndim), 0)
    return x


def batches(rng: np.random.Generator) -> tuple[int, ...]:
    shape = [(), (int(rng.integers(0, 10)),), (1, int(rng.integers(1, 10))), (3, int(rng.integers(1, 6))), (2, 1, 5)]
    return shape[int(rng.integers(len(shape)))]


def same(x: Any, y: Any, slack: float = 0.0) -> bool:
    """Equal, or as close beside the largest entry."""
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        return False
    with np.errstate(all="ignore"):
        size = float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))
        near = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= slack * (1.0 + size))
    return bool(near.all())


def layouts(f: Callable[..., Any], x: np.ndarray, rng: np.random.Generator) -> str:
    """What differs between a call on many states and calls of one; empty if nothing."""
    wanted = np.stack([f(one) for one in x.reshape(-1, x.shape[-1])]) if x[..., 0].size else None
    wanted = None if wanted is None else wanted.reshape(*x.shape[:-1], *wanted.shape[1:])
    if not same(f(arranged(rng, x)), f(x)):
        return "another layout"
    if wanted is None:
        return "" if f(x).shape[: x.ndim - 1] == x.shape[:-1] else "the shape of an empty batch"
    if not same(f(x), wanted):
        return f"a batch {x.shape[:-1]}"
    for threads in (1, 3):
        out = np.full(wanted.shape, 7.0)
        if f(x, out=out, threads=threads) is not out or not same(out, wanted):
            return f"out=, {threads} threads"
    return shared(f, x, wanted)


def shared(f: Callable[..., Any], x: np.ndarray, wanted: np.ndarray) -> str:
    """Results written into memory that holds the inputs: refused, or right."""
    memory = np.full(2 * wanted.size + x.size, 7.0)
    for start in (0, 1, wanted.size // 2, wanted.size):
        out = memory[start : start + wanted.size].reshape(wanted.shape)
        given = memory[wanted.size // 2 : wanted.size // 2 + x.size].reshape(x.shape)
        given[...] = x
        try:
            f(given, out=out)
        except CoadjointError:
            continue
        if not same(out, wanted):
            return f"out= that shares memory with the input, from {start - wanted.size // 2}"
    return ""


def derivatives(fn: Callable[..., Any], x: np.ndarray, rng: np.random.Generator) -> str:
    """What is wrong about the derivatives at states x (N, n)."""
    full = cj.derivative(fn, ROBOT, "x", shapes={"x": x.shape[1:]})(x)
    along = cj.jvp(fn, ROBOT, "x", shapes={"x": x.shape[1:]})
    back = cj.vjp(fn, ROBOT, "x", shapes={"x": x.shape[1:]})
    d, w = rng.normal(size=x.shape), rng.normal(size=full.shape[:-1])
    finite = np.isfinite(full).all((-1, -2))
    for name, found, wanted in (
        ("jvp", along(x, d), np.einsum("nij,nj->ni", full, d)),
        ("vjp", back(x, w), np.einsum("nij,ni->nj", full, w)),
    ):
        told = np.isfinite(found).all(-1)  # 0 ∞ in a branch of `where` that is not chosen is NaN: told, not wrong
        if not same(found[finite & told], wanted[finite & told], CLOSE):
            return f"{name} is not that of the derivative"
    f = cj.compile(fn, ROBOT, shapes={"x": x.shape[1:]})  # as written 0 · NaN is not 0, which may decide a `where`
    differences = [_differences(f, x, d, h) for h in (1e-5, 2e-5, 4e-5)]
    steady = np.isfinite(np.stack(differences)).all(0) & finite[:, None]
    size = 1e-4 * (1.0 + np.abs(differences[0]))
    with np.errstate(all="ignore"):
        for y in differences[1:]:  # smooth there, and not steep
            steady &= np.abs(y - differences[0]) < size
        wrong = steady & (np.abs(along(x, d) - differences[0]) > 20 * size)
    if wrong.any():
        k, i = np.argwhere(wrong)[0]
        found, wanted = along(x, d)[k, i], differences[0][k, i]
        return f"the derivative of result {i} at {x[k].tolist()} along {d[k].tolist()} is {found}, by differences {wanted}"
    return ""


def _differences(f: Callable[..., Any], x: np.ndarray, d: np.ndarray, h: float) -> np.ndarray:
    return np.asarray((f(x + h * d) - f(x - h * d)) / (2 * h))


def run(seed: int) -> dict[str, int]:
    """One random function."""
    rng = np.random.default_rng(seed)
    inputs = int(rng.integers(1, 6))
    fn = function(program(rng, inputs))
    tally: dict[str, int] = {}

    def note(what: str, wrong: str) -> None:
        if wrong:
            print(f"FAILED layouts --seed {seed}: {what}: {wrong}")
        outcome = f"FAILED {what}" if wrong else what
        tally[outcome] = tally.get(outcome, 0) + 1

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error", KernelWarning)
            for dtype in ("float64", "float32"):
                f = cj.compile(fn, ROBOT, shapes={"x": (inputs,)}, dtype=dtype)
                for _ in range(6):
                    x = rng.normal(size=(*batches(rng), inputs)).astype(dtype)
                    if rng.random() < 0.2 and x.size:
                        x.reshape(-1)[rng.integers(x.size)] = rng.choice([np.nan, np.inf, 0.0, -0.0])
                    note(f"layouts, {dtype}", layouts(f, x, rng) if dtype == "float64" else single(f, x))
            note("derivatives", derivatives(fn, rng.normal(size=(7, inputs)), rng))
    except Exception as error:
        traceback.print_exc()
        print(f"FAILED layouts --seed {seed}: {type(error).__name__}: {error}")
        tally[f"FAILED by {type(error).__name__}"] = 1
    return tally


def single(f: Callable[..., Any], x: np.ndarray) -> str:
    """Single precision: a batch is as its states one by one."""
    if not x[..., 0].size:
        return ""
    wanted = np.stack([f(one) for one in x.reshape(-1, x.shape[-1])])
    return "" if same(f(x).reshape(wanted.shape), wanted) and f(x).dtype == np.float32 else f"a batch {x.shape[:-1]}"
