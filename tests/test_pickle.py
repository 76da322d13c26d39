"""Everything pickles: functions, compiled functions, robots; to other processes of every kind."""

from __future__ import annotations

import copy
import functools
import io
import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import coadjoint as cj

pytestmark = pytest.mark.native

ROBOT = cj.load("planar2r")
Q = np.random.default_rng(0).standard_normal((5, 2))


def repeat(robot, q, gain):
    """A user's function whose name is that of a method of ours."""
    return gain * cj.gravity_force(robot, q) + q


MADE = {
    "compile": lambda: (cj.compile(cj.gravity_force, ROBOT), (Q,)),
    "option": lambda: (cj.compile(cj.pose, ROBOT, frame="link2"), (Q,)),
    "own": lambda: (cj.compile(repeat, ROBOT, shapes={"gain": ()}), (Q, np.array(2.0))),
    "partial": lambda: (cj.compile(functools.partial(repeat, gain=3.0), ROBOT), (Q,)),
    "parameters": lambda: (cj.compile(cj.gravity_force, ROBOT, parameters=["gravity"]), (Q, np.array([0.0, 1.0, 2.0]))),
    "single": lambda: (cj.compile(cj.gravity_force, ROBOT, dtype=np.float32), (Q.astype(np.float32),)),
    "several": lambda: (cj.compile(cj.inverse_dynamics_derivatives, ROBOT), (Q, Q, Q)),
    "derivative": lambda: (cj.derivative(cj.gravity_force, ROBOT), (Q,)),
    "jvp": lambda: (cj.jvp(cj.gravity_force, ROBOT), (Q, Q)),
    "vjp": lambda: (cj.vjp(cj.inverse_dynamics, ROBOT, ["q", "v"]), (Q, Q, Q, Q)),
    "second": lambda: (cj.derivative(cj.differential(cj.kinetic_energy, "v"), ROBOT, "v"), (Q, Q)),
}


def same(a, b):
    for x, y in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,), strict=True):
        assert x.dtype == y.dtype
        assert np.array_equal(x, y)


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_compiled_functions(kind, protocol):
    f, arrays = MADE[kind]()
    again = pickle.loads(pickle.dumps(f, protocol))
    assert type(again) is type(f)
    same(again(*arrays), f(*arrays))
    assert (again.__name__, again.__doc__) == (f.__name__, f.__doc__)
    thrice = pickle.loads(pickle.dumps(again, protocol))
    same(thrice(*arrays), f(*arrays))
    assert copy.deepcopy(f) is not None


def test_compiled_functions_go_where_there_is_no_native_code_and_back(monkeypatch):
    f, arrays = MADE["compile"]()
    there = pickle.dumps(f)
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    written = pickle.loads(there)
    assert "as written" in repr(written)
    np.testing.assert_allclose(written(*arrays), f(*arrays), rtol=1e-12)
    back = pickle.dumps(written)
    same(pickle.loads(back)(*arrays), written(*arrays))
    monkeypatch.setenv("COADJOINT_NATIVE", "1")
    same(pickle.loads(back)(*arrays), f(*arrays))


def test_every_public_function_and_class():
    for name in cj.__all__:
        thing = getattr(cj, name)
        if callable(thing):
            assert pickle.loads(pickle.dumps(thing)) is thing, name


def test_a_lambda_says_that_it_cannot():
    f = cj.compile(lambda robot, q: q, ROBOT)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(f)


@pytest.mark.parametrize("fn", [cj.gravity_force, repeat, functools.partial(repeat, gain=2.0), cj.differential(cj.gravity_force)])
def test_differentials(fn):
    made = cj.differential(fn)
    again = pickle.loads(pickle.dumps(made))
    options = {"gain": np.array(3.0)} if fn is repeat else {}
    same(again(ROBOT, Q, **options), made(ROBOT, Q, **options))
    assert repr(again) == repr(made)
    assert getattr(again, "__doc__", None) == getattr(made, "__doc__", None)


def test_a_differential_of_a_lambda_says_that_it_cannot():
    text = """
import pickle, coadjoint as cj
try:
    pickle.dumps(cj.differential(lambda robot, q: q))
except cj.CoadjointError as error:
    assert "<lambda> by q> cannot be pickled" in str(error) and "named function of a module" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", text], check=True)


def test_robots():
    again = pickle.loads(pickle.dumps(ROBOT))
    assert again == ROBOT
    assert again.fingerprint == ROBOT.fingerprint
    cj.mass_matrix(again, Q)
    assert pickle.loads(pickle.dumps(again)) == ROBOT  # what was compiled for it stays here


def test_dask_knows_a_robot_by_its_fingerprint():
    tokenize = pytest.importorskip("dask.base").tokenize
    assert tokenize(cj.load("panda")) == tokenize(cj.load("panda"))
    assert tokenize(cj.load("panda")) != tokenize(cj.load("planar2r"))
    assert tokenize(cj.load("panda").with_gravity((0, 0, 0))) != tokenize(cj.load("panda"))
    assert cj.load("panda").__dask_tokenize__() == cj.load("panda").fingerprint


def test_a_module_of_pytorch_that_holds_one():
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(2, 2)
    module.forces, module.robot = cj.compile(cj.gravity_force, ROBOT), ROBOT
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    same(again.forces(Q), module.forces(Q))
    assert again.robot == ROBOT


def _call(f, *arrays):
    return f(*arrays)


@pytest.mark.parametrize("method", [m for m in ("spawn", "fork", "forkserver") if m in multiprocessing.get_all_start_methods()])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")
def test_processes(method):
    functions = [cj.compile(cj.gravity_force, ROBOT), functools.partial(cj.gravity_force, ROBOT)]
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.starmap_async(_call, [(f, Q) for f in functions]).get(timeout=120)
    for x, f in zip(found, functions, strict=True):
        same(x, f(Q))


def test_joblib():
    joblib = pytest.importorskip("joblib")
    f = cj.compile(cj.gravity_force, ROBOT)
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(f)(Q + k) for k in range(3))
    for k, x in enumerate(found):
        same(x, f(Q + k))


def test_another_process_that_has_not_imported_us():
    f = cj.compile(cj.gravity_force, ROBOT)
    code = "import pickle, sys, numpy as np; f = pickle.load(sys.stdin.buffer); print(f(np.ones(2)).tolist())"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(f), capture_output=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.decode().strip() == str(f(np.ones(2)).tolist())
