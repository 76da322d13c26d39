"""Random graphs through the simplifier: the same values as the graph as traced, never at a higher cost."""

from __future__ import annotations

import random
from typing import Any

from coadjoint.kernel import selftest
from coadjoint.kernel.graph import Graph
from coadjoint.kernel.ops import OPS
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.passes.rewrite import cost
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.trace.builder import GraphBuilder
from coadjoint.kernel.trace.functions import folded
from coadjoint.kernel.trace.trace import reachable
from coadjoint.kernel.trial import attempt

UGLY = (
    1.0,
    -1.0,
    0.0,
    0.5,
    2.0,
    0.1,
    0.3,
    1.5707963,
    1.57079632679,
    3.141592653589793,
    1e-12,
    -1e-12,
    6.123233995736766e-17,
    9.81,
    0.25,
)
"""Numbers as they stand in files of robots."""
EXTREME = (1e200, -1e-200, 1e308, 5e-324, float("inf"), -float("inf"), float("nan"))
ARITHMETIC = ("add", "sub", "mul", "neg")
TRUTHS = ("lt", "le", "eq")
LOGIC = ("and", "or", "not")


def random_graph(seed: int) -> Graph:
    """A graph of up to 200 nodes, mostly sums and products of few inputs and repeated constants, as traced."""
    rng = random.Random(seed)
    builder = GraphBuilder()
    values = [builder.node("input", (), (0, k)) for k in range(rng.randint(1, 5))]
    inputs = len(values)
    constants = rng.sample(UGLY, 4) + (rng.sample(EXTREME, 1) if rng.random() < 0.05 else [])
    values += [builder.const(c) for c in constants]
    if rng.random() < 0.6:
        angles = rng.choices(values[:inputs], k=2)
        values += [builder.node(op, (x,)) for x in angles for op in ("sin", "cos")]
    truths = [builder.node("lt", (values[0], values[-1]))]
    others = [op for op in OPS if op not in (*ARITHMETIC, *TRUTHS, *LOGIC)]
    rare = rng.choice((0.0, 0.05, 0.3))

    def pick() -> int:
        return rng.choice(values[-12:] if rng.random() < 0.6 else values)

    for _ in range(rng.choice((5, 15, 40, 120))):
        if rng.random() >= rare:
            op = rng.choice(("add", "sub", "mul", "mul", "neg"))
            values.append(folded(builder, op, (pick(),) if op == "neg" else (pick(), pick()), None))
        elif rng.random() < 0.25:
            op = rng.choice((*TRUTHS, *LOGIC))
            pool = truths if op in LOGIC else values
            truth = folded(builder, op, tuple(rng.choices(pool, k=1 if op == "not" else 2)), None)
            if builder.op[truth] != "const":
                truths.append(truth)
        else:
            values.append(_other(rng, builder, rng.choice(others), pick, truths))
    outputs = [rng.choice(values[-30:]) for _ in range(rng.randint(1, 9))]
    op_, args, value, number = reachable(builder.op, builder.args, builder.value, outputs)
    return Graph("f", ("x",), ((inputs,),), op_, args, value, (tuple(number[k] for k in outputs),), ((len(outputs),),))


def _other(rng: random.Random, builder: GraphBuilder, op: str, pick: Any, truths: list[int]) -> int:
    if op == "where":
        return folded(builder, op, (rng.choice(truths), pick(), pick()), None)
    return folded(builder, op, tuple(pick() for _ in range(OPS[op].arity)), None)


def run(seed: int) -> dict[str, int]:
    """Simplify the graph of the seed and compare values at some states."""
    graph = random_graph(seed)
    try:
        result = simplify(graph)
    except Exception as error:
        print(f"FAILED graphs --seed {seed}: {type(error).__name__}: {error}")
        return {f"FAILED by {type(error).__name__}": 1}
    if cost(result) > cost(graph):
        print(f"FAILED graphs --seed {seed}: cost {cost(graph)} -> {cost(result)}")
        return {"FAILED by cost": 1}
    return {"FAILED by value" if _differs(graph, result, seed) else "equal": 1}


def _differs(graph: Graph, result: Graph, seed: int) -> bool:
    trial = attempt(graph, selftest.states(graph.input_shapes), "float64")
    what = trial.described(evaluate(result, *trial.inputs))
    if what:
        print(f"FAILED graphs --seed {seed}: {what}")
    return bool(what)
