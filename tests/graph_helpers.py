"""Graphs made by hand and at random, processors to compile them for, and distances in units in the last place."""

from __future__ import annotations

import dataclasses
import platform
import random

import mpmath as mp
import numpy as np

from coadjoint.kernel.emit.llvm import Lanes
from coadjoint.kernel.emit.lower import lower, widths
from coadjoint.kernel.graph import Graph
from coadjoint.kernel.runtime.function import CompiledFunction, Kernel
from coadjoint.kernel.runtime.native import compile_graph
from coadjoint.kernel.runtime.target import host
from coadjoint.kernel.schedule.plan import plan


class Maker:
    """Writes a graph node by node."""

    def __init__(self, *shapes):
        self.op, self.args, self.value = [], [], []
        self.shapes = shapes
        self.inputs = [[self("input", value=(a, c)) for c in range(int(np.prod(s)))] for a, s in enumerate(shapes)]

    def __call__(self, op, *args, value=None):
        self.op.append(op)
        self.args.append(tuple(args))
        self.value.append(value)
        return len(self.op) - 1

    def const(self, x):
        return self("const", value=float(x))

    def graph(self, *outputs, shapes=None, name="made"):
        shapes = shapes or [(len(o),) for o in outputs]
        names = tuple(f"x{a}" for a in range(len(self.shapes)))
        return Graph(name, names, tuple(self.shapes), self.op, self.args, self.value, tuple(map(tuple, outputs)), tuple(shapes))


def of_one_node(op, n=1):
    """The graph of an operation on scalars."""
    make = Maker(*[()] * n)
    return make.graph([make(op, *[x[0] for x in make.inputs])], shapes=[()], name=op)


SMOOTH = ["add", "sub", "mul", "mul", "neg", "sin", "cos", "root", "quotient", "atan2", "exp", "log"]
ALL = [*SMOOTH, "abs", "floor", "min", "max", "lt", "le", "eq", "and", "or", "not", "where"]


def random_graph(seed, nodes, shapes=((7,), (5,), (2, 2)), out=((9,), (3, 3)), ops=ALL):
    """A graph whose values stay of moderate size for inputs of moderate size."""
    rng = random.Random(seed)
    make = Maker(*shapes)
    values = [x for row in make.inputs for x in row] + [make.const(rng.uniform(-1, 1)) for _ in range(5)]
    truths = [make("lt", values[0], values[1])]

    def pick():
        return rng.choice(values[-40:] if rng.random() < 0.8 else values)

    while len(make.op) < nodes:
        op = rng.choice(ops)
        if op in ("lt", "le", "eq"):
            truths.append(make(op, pick(), pick()))
            continue
        if op in ("and", "or", "not"):
            truths.append(make(op, *[rng.choice(truths) for _ in range(1 if op == "not" else 2)]))
            continue
        if op == "where":
            new = make(op, rng.choice(truths), pick(), pick())
        elif op == "mul":
            new = make(op, pick(), make(rng.choice(["sin", "cos"]), pick()) if rng.random() < 0.3 else rng.choice(values[:20]))
        elif op == "root":
            new = make("sqrt", make("abs", pick()))
        elif op == "quotient":
            new = make("div", pick(), make("add", make("abs", pick()), make.const(1.5)))
        elif op == "exp":
            new = make("exp", make("sin", pick()))
        elif op == "log":
            new = make("log", make("add", make("abs", pick()), make.const(0.5)))
        else:
            new = make(op, *[pick() for _ in range(1 if op in ("neg", "sin", "cos", "abs", "floor") else 2)])
        values.append(new)
    outputs = [[rng.choice(values[-60:]) for _ in range(int(np.prod(s)))] for s in out]
    return make.graph(*outputs, shapes=out)


def targets():
    """Processors whose code this one can run."""
    here = host()
    found = {"host": here, "one lane": dataclasses.replace(here, vector_bits=64)}
    if platform.machine().lower() in ("x86_64", "amd64"):
        old = "+sse2,-sse3,-ssse3,-sse4.1,-sse4.2,-avx,-avx2,-fma,-avx512f"
        found["sse2"] = dataclasses.replace(here, cpu="x86-64", features=old, vector_bits=128, fma=False, rounding=False)
    return found


def lowered(graph, dtype, target):
    """(module, plan) of the graph."""
    lanes = Lanes(dtype, target.lanes(dtype))
    scheme = plan(graph, target.fma, widths(lanes))
    return lower(graph, scheme, lanes, target), scheme


def native(graph, dtype="float64", target=None):
    """The graph compiled for a processor, past the cache."""
    return CompiledFunction(Kernel(*compile_graph(graph, dtype, target)))


def ulps(got, exact):
    """Largest distance of floating-point numbers from exact ones (mpmath's), in units in the last place."""
    bits, smallest, top = (53, -1074, 1024) if got.dtype == np.float64 else (24, -149, 128)
    worst = 0.0
    for x, y in zip(got.tolist(), exact, strict=True):
        unit = mp.ldexp(1, max(int(mp.frexp(y)[1]) - bits, smallest)) if y else mp.ldexp(1, smallest)
        if np.isinf(x) and abs(y) > mp.ldexp(1, top) - mp.ldexp(1, top - bits - 1):
            continue  # it overflows
        worst = max(worst, float(abs(mp.mpf(x) - y) / unit))
    return worst
