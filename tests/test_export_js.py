"""JavaScript modules, plain and with WebAssembly, compute what the graph computes: node runs them."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import arrays
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.passes.simplify import simplify
from coadjoint.kernel.trace.trace import trace
from random_robots import random_robot

FORMS = [cj.export.js, cj.export.wasm]
RNG = np.random.default_rng(5)

_RUN = """
import * as module from %s;
const f = module.default, states = %s;
console.log(JSON.stringify(states.map((x) => f(...x)), (key, x) => Number.isFinite(x) || typeof x !== "number" ? x : String(x)));
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A function that calls a module's default export with each of several lists of arguments."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("no node")
    folder = tmp_path_factory.mktemp("js")

    def call(source, states, run=_RUN):
        path = folder / f"f{len(list(folder.iterdir()))}.mjs"
        path.write_text(source)
        main = folder / f"run{len(list(folder.iterdir()))}.mjs"
        main.write_text(run % (json.dumps(str(path)), json.dumps(states)))
        done = subprocess.run([program, str(main)], capture_output=True, text=True, check=False)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    return call


def everything(x, m):
    """Every operation of a graph, with constants of all kinds."""
    y = np.where((x[0] > x[1]) | ~(x[2] <= 0.5) & (x[0] != 0.25), x * -0.75, np.minimum(x, -1.0))
    z = np.sqrt(np.abs(y) + 2) - np.exp(-x) * np.log(x * x + 1 / 3) / 7 + np.floor(3 * x) + np.tanh(x) + np.log1p(x * x)
    return (
        np.arctan2(z, np.maximum(y, -0.5)) * np.cos(x[0] + x[1]),
        m @ np.sin(x) - 1e-7,
        -x[0],
        np.array([[-2.5, 1e9], [-0.0, 1e300]]),
        x[1] == x[2],
    )


def solve(x):
    """A linear solve that is kept as a block."""
    a = x * x[:, None] * 0.1 + np.eye(13) * 3
    return arrays.solve_spd(a, np.stack([x, np.sin(x)], axis=-1))


@pytest.mark.parametrize(("fn", "shapes"), [(everything, {"x": (3,), "m": (2, 3)}), (solve, {"x": (13,)})])
@pytest.mark.parametrize("change", [lambda graph: graph, simplify])
@pytest.mark.parametrize("form", FORMS)
def test_modules_compute_what_the_graph_computes(node, fn, shapes, change, form):
    graph = change(trace(fn, shapes, "my function"))
    states = [[RNG.normal(size=shape) for shape in shapes.values()] for _ in range(5)]
    found = node(form(graph), [[x.tolist() for x in state] for state in states])
    for state, results in zip(states, found, strict=True):
        for mine, theirs in zip(results if len(graph.outputs) > 1 else [results], evaluate(graph, *state), strict=True):
            assert np.shape(mine) == np.shape(theirs)
            np.testing.assert_allclose(np.array(mine, dtype=float), theirs, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_nan_and_odd_names_are_kept(node, form):
    graph = trace(lambda x, y, t: (np.minimum(x, y), np.maximum(x, y), t * np.inf, np.nan, x / 0.0),
                  {"function": (), "t1": (), "out0": ()}, "Math")  # fmt: skip
    for x, y in ((math.nan, 1.0), (1.0, math.nan), (2.0, 1.0), (-math.inf, 0.0)):
        with np.errstate(all="ignore"):
            expected = evaluate(graph, x, y, -1.0)
        (found,) = node(form(graph), [[x, y, -1.0]])
        np.testing.assert_array_equal(np.array([float(z) for z in found]), np.array(expected))


@pytest.mark.parametrize("form", FORMS)
def test_wrong_lengths_are_refused(node, form):
    graph = trace(lambda x: x + 1.0, {"x": (3,)}, "f")
    run = _RUN.replace("f(...x)", "{ try { return f(...x); } catch (error) { return error.message; } }")
    found = node(form(graph), [[[1, 2, 3]], [[1, 2]], [None]], run)
    assert found == [[2, 3, 4], "x has 2 numbers; expected 3, shape [3].", "x has 0 numbers; expected 3, shape [3]."]


@pytest.mark.parametrize("robot", [cj.load("panda"), random_robot(np.random.default_rng(8), 5)], ids=["panda", "random"])
@pytest.mark.parametrize("form", FORMS)
def test_dynamics_in_javascript_are_those_of_the_library(node, robot, form):
    shapes = {"q": robot.nq, "v": robot.nv, "a": robot.nv}
    graph = cj.trace(cj.inverse_dynamics, robot)
    q, v, a = (robot.random(RNG, (20,)), *(RNG.normal(size=(20, n)) for n in list(shapes.values())[1:]))
    states = [[x.tolist() for x in state] for state in zip(q, v, a, strict=True)]
    expected = cj.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(node(form(graph), states), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_webassembly_is_javascript_to_the_last_bit(node):
    """At 50 states of a robot whose functions need many local variables, and for a linear system that is solved in loops."""
    robot = random_robot(np.random.default_rng(3), 9)
    states = [[x.tolist() for x in (robot.random(RNG), *RNG.normal(size=(2, robot.nv)))] for _ in range(50)]
    for graph, inputs in (
        (cj.trace(cj.forward_dynamics, robot), states),
        (trace(solve, {"x": (13,)}, "f"), RNG.normal(size=(20, 1, 13)).tolist()),
    ):
        assert node(cj.export.wasm(graph), inputs) == node(cj.export.js(graph), inputs)


def test_a_graph_without_outputs_or_inputs_is_a_module(node):
    empty = trace(lambda x: (np.zeros((2, 0)) + 0.0 * x[0], 2.5), {"x": (1,)}, "f")
    for form in FORMS:
        assert node(form(empty), [[[1.0]]]) == [[[[], []], 2.5]]
