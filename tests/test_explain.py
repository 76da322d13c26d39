"""cj.explain shows every stage; COADJOINT_DUMP writes them to a folder."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import KernelWarning
from coadjoint.kernel.emit.sequential import module_of
from coadjoint.kernel.graph import verify
from coadjoint.kernel.passes import simplify as passes
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.pipeline import compile_graph
from coadjoint.optimal import path_work, riccati_programs, tracking, workspace

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


def test_of_compiled_functions_and_controllers():
    robot = cj.load("planar2r")
    own = cj.explain(cj.mass_matrix, robot)
    for dtype in (np.float64, np.float32):
        e = cj.explain(cj.compile(cj.mass_matrix, robot, dtype=dtype))
        assert e.counts() == own.counts()
        assert f"x {np.dtype(dtype).name}" in str(e)
    assert cj.explain(cj.jvp(cj.mass_matrix, robot, "q")).graph.input_names == ("q", "dq")
    turn = lambda t: (np.array([1.0, 0.5]) * np.sin(t), np.array([1.0, 0.5]) * np.cos(t), np.array([-1.0, -0.5]) * np.sin(t))
    law = cj.control.computed_torque(robot, turn, kp=1.0, kd=1.0)
    e = cj.explain(law)
    assert e.graph.input_names == ("q", "v", "t")
    q, v = np.array([0.3, -0.2]), np.array([0.1, 0.4])
    np.testing.assert_allclose(evaluate(e.graph, q, v, np.zeros(1))[0], law.force(q, v, 0.0), rtol=1e-12)


def test_of_sequential_programs():
    robot = cj.load("planar2r")
    e = cj.explain(cj.time_varying_lqr, robot)
    assert e.functions[0] is riccati_programs.backward
    assert len(e.functions) == e.llvm.count("\ndefine ")
    assert e.llvm == module_of(riccati_programs.backward).text()
    assert cj.explain(riccati_programs.backward).llvm == e.llvm
    text = str(e)
    for word in (
        "backward(",
        "called by time_varying_lqr",
        *(fn.__name__ for fn in e.functions),
        f"{len(e.code)} bytes",
        e.target.cpu,
    ):
        assert word in text
    with pytest.raises(cj.CoadjointError, match="backward is a program with loops and branches and has no graph"):
        _ = e.graph
    assert isinstance(cj.explain(lambda robot, q: q, robot), cj.explaining.Explanation)


@pytest.mark.parametrize(
    ("function", "runs"),
    [
        (cj.time_optimal, path_work.time_paths),
        (cj.optimal_control, workspace.solve),
        (cj.receding_horizon, workspace.solve),
        (cj.time_varying_lqr, tracking.backward),
    ],
)
def test_public_functions_name_the_program_that_they_run(function, runs):
    assert function.program is runs


def test_of_functions_that_iterate():
    robot = cj.load("planar2r")
    q, v = np.array([0.3, -0.2]), np.zeros(2)
    cj.rollout(robot, q, v, dt=1e-3, steps=3)  # what was compiled before makes no difference
    e = cj.explain(cj.rollout, robot, q=q, v=v, dt=1e-3, steps=3, method="rk4")
    assert [kernel.graph.name for kernel in e.kernels] == ["step"]
    step = e.kernels[0]
    np.testing.assert_allclose(
        evaluate(step.graph, q, v, np.zeros(1))[0],
        cj.rollout(robot, q, v, dt=1e-3, steps=1, method="rk4")[0][1],
        rtol=1e-12,
    )
    assert e.counts() == step.counts()
    operations = sum(after for _, after in step.counts().values())
    for word in ("rollout runs 1 kernel:", f"{operations}", f"{len(step.code)}", "q (2,), v (2,), t (1,)", step.target.cpu):
        assert word in str(e)
    with pytest.raises(cj.CoadjointError, match=r"rollout has no plan of its own; see that of kernels\[k\]"):
        _ = e.plan


def test_all_kernels_of_a_call_are_listed():
    robot = cj.load("planar2r")
    e = cj.explain(cj.simulate, robot, q=[0.3, -0.2], v=[0.0, 0.0], t=0.1)
    assert len(e.kernels) >= 1
    assert all(kernel.graph.name in str(e) for kernel in e.kernels)
    found = cj.explain(
        cj.inverse_kinematics, robot, target=cj.pose(robot, np.array([0.4, 0.5]), robot.link_names[-1]), frame=robot.link_names[-1]
    )
    assert sum(after for _, after in found.counts().values()) == sum(
        after for kernel in found.kernels for _, after in kernel.counts().values()
    )


def test_without_native_code(monkeypatch):
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    robot = cj.load("planar2r")
    assert cj.explain(cj.compile(cj.mass_matrix, robot)).counts() == cj.explain(cj.mass_matrix, robot).counts()
    with pytest.raises(cj.CoadjointError, match="this call of rollout compiled nothing: native code is switched off"):
        cj.explain(cj.rollout, robot, q=[0.3, -0.2], v=[0.0, 0.0], dt=1e-3, steps=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda robot: (cj.compile(cj.mass_matrix, robot), robot), "explain it alone"),
        (lambda robot: (cj.mass_matrix,), "needs a robot"),
        (lambda robot: (cj.simulate, robot), "simulate cannot be explained: .* give all arguments of a call"),
        (lambda robot: (cj.base_parameters, robot), "this call of base_parameters compiled nothing"),
        (lambda robot: (lambda robot, x: x, robot), "^the shape of argument 'x'"),
        (lambda robot: (cj.control.pd, 3), "robot is 3; expected a Robot"),
    ],
    ids=["compiled", "robot", "simulate", "no array", "shape", "number"],
)
def test_what_cannot_be_explained_is_said(arguments, message):
    with pytest.raises(cj.CoadjointError, match=message):
        cj.explain(*arguments(cj.load("planar2r")))


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
