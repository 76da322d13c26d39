"""cj.explain shows every stage; COADJOINT_DUMP writes them to a folder."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import KernelWarning
from coadjoint.kernel.graph import verify
from coadjoint.kernel.passes import simplify as passes
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.pipeline import compile_graph

pytestmark = pytest.mark.native


def test_the_stages_are_there():
    robot = cj.load("planar2r")
    e = cj.explain(cj.inverse_dynamics, robot)
    assert e.traced.name == e.graph.name == "inverse_dynamics"
    assert e.graph is not e.traced
    before, after = e.counts()["mul"]
    assert before == e.traced.count()["mul"]
    assert after == e.graph.count()["mul"]
    x = [np.linspace(0.1, 0.7, 2)] * 3
    np.testing.assert_allclose(evaluate(e.graph, *x)[0], evaluate(e.traced, *x)[0], rtol=1e-12)
    assert "define" in e.llvm
    assert "run:" in e.assembly
    assert len(e.graph_text().splitlines()) == len(e.graph) + 2
    assert "chunk 0" in e.plan_text()
    text = str(e)
    for word in ("as traced", "mul", "chunks", "slots", "spills", "bytes", "processor", e.target.cpu):
        assert word in text


def test_of_users_functions_and_options():
    robot = cj.load("planar2r")
    e = cj.explain(lambda robot, q, gain: gain * np.sin(q), robot, shapes={"gain": ()}, dtype=np.float32)
    assert e.graph.input_names == ("q", "gain")
    assert "x float32" in str(e)


def test_dump(monkeypatch, tmp_path):
    monkeypatch.setenv("COADJOINT_DUMP", str(tmp_path / "dump"))
    compile_graph(cj.trace(cj.mass_matrix, cj.load("planar2r")), "float64")
    assert {path.suffix for path in (tmp_path / "dump").iterdir()} == {".graph", ".plan", ".ll", ".traced"}


@pytest.mark.parametrize("function", [cj.inverse_dynamics, cj.forward_dynamics, cj.coriolis_matrix])
def test_graphs_are_sound_between_passes(function, monkeypatch):
    seen = []
    for name in ("expand_sums", "refactor_sums", "share_sums"):
        change = getattr(passes, name)
        monkeypatch.setattr(passes, name, lambda work, change=change: (change(work), seen.append(verify(work.graph())))[0])
    verify(cj.trace(function, cj.load("panda")))
    assert len(seen) == 3


def test_a_pass_that_fails_is_reported(monkeypatch):
    monkeypatch.setattr(passes, "share_sums", lambda work: 1 / 0)
    with pytest.warns(KernelWarning, match="could not be simplified .ZeroDivisionError"):
        graph = cj.trace(cj.gravity_force, cj.load("planar2r"))
    assert graph.traced is None
