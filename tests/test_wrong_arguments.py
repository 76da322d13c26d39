"""Arguments of the wrong kind: a CoadjointError that names them, from every public function that is no kernel."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import CoadjointError, Joint, Link, Robot
from coadjoint.arguments import (
    a_function,
    a_name,
    a_number,
    a_robot,
    a_type,
    names,
    numbers,
    one_of,
    positive,
    sequence,
    takes,
    whole,
)
from fuzz import _calls

R2 = cj.load("planar2r")
A, B, Q, R = np.array([[0, 1.0], [0, 0]]), np.array([[0.0], [1.0]]), np.eye(2), np.eye(1)
SCREWS, HOME = cj.space_screws(cj.load("panda"), "tip")
POSE = np.eye(4)
ZERO = np.zeros(2)
MOVING: dict = {"position": (-1, 1), "velocity": 1.0, "acceleration": 1.0}
TABLE = {name: np.linspace(0, 1, 20) for name in ("time", "q1", "q2")}
CALLS = {
    "inverse_kinematics": (cj.inverse_kinematics, {"robot": R2, "target": POSE, "frame": "tip", "tolerance": 1e-9}),
    "inverse_kinematics_solutions": (cj.inverse_kinematics_solutions, {"robot": R2, "target": POSE, "frame": "tip"}),
    "simulate": (cj.simulate, {"robot": R2, "q": ZERO, "v": ZERO, "t": 0.01, "method": "adaptive"}),
    "geodesic": (cj.geodesic, {"robot": R2, "q": ZERO, "v": ZERO, "t": 0.1}),
    "lqr": (cj.lqr, {"A": A, "B": B, "Q": Q, "R": R}),
    "discretize": (cj.discretize, {"A": A, "B": B, "dt": 0.1}),
    "controllability": (cj.controllability, {"A": A, "B": B}),
    "equilibrium_force": (cj.equilibrium_force, {"robot": R2, "q": ZERO}),
    "total_mass": (cj.total_mass, {"robot": R2}),
    "is_flat": (cj.is_flat, {"robot": R2}),
    "is_balanced": (cj.is_balanced, {"robot": R2}),
    "triangle": (cj.triangle, {"a": np.eye(3)}),
    "from_triangle": (cj.from_triangle, {"x": np.arange(6.0)}),
    "space_screws": (cj.space_screws, {"robot": R2, "frame": "tip"}),
    "body_screws": (cj.body_screws, {"robot": R2, "frame": "tip"}),
    "relative_screws": (cj.relative_screws, {"robot": R2, "frame": "tip"}),
    "product_of_exponentials": (cj.product_of_exponentials, {"screws": SCREWS, "home": HOME, "q": np.zeros(7), "form": "space"}),
    "to_dh": (cj.to_dh, {"screws": SCREWS, "home": HOME}),
    "from_dh": (cj.from_dh, {"rows": np.zeros((3, 4)), "convention": "standard"}),
    "robot_from_dh": (
        cj.robot_from_dh,
        {"rows": np.zeros((1, 4)), "masses": [1.0], "coms": np.zeros((1, 3)), "inertias": np.eye(3)[None]},
    ),
    "circle_path": (cj.circle_path, {"start": POSE, "center": np.zeros(3), "axis": [0, 0, 1.0], "angle": 1.0, "duration": 1.0}),
    "geodesic_path": (cj.geodesic_path, {"start": POSE, "goal": POSE, "duration": 1.0, "kind": "screw"}),
    "spline_path": (cj.spline_path, {"poses": np.stack([POSE, POSE]), "duration": 1.0}),
    "equations": (cj.equations, {"robot": R2, "what": ["M"], "parameters": "numeric"}),
    "compile": (cj.compile, {"fn": cj.mass_matrix, "robot": R2, "dtype": np.float64}),
    "trace": (cj.trace, {"fn": cj.mass_matrix, "robot": R2}),
    "derivative": (cj.derivative, {"fn": cj.gravity_force, "robot": R2, "wrt": "q"}),
    "jvp": (cj.jvp, {"fn": cj.gravity_force, "robot": R2, "wrt": "q"}),
    "vjp": (cj.vjp, {"fn": cj.gravity_force, "robot": R2, "wrt": "q"}),
    "point": (cj.Constraint.point, {"robot": R2, "frame": "tip", "axes": "x"}),
    "save": (cj.save, {"robot": R2}),
    "Joint": (Joint, {"kind": "revolute", "screws": np.array([[0, 0, 1.0, 0, 0, 0]])}),
    "helical": (Joint.helical, {"axis": (0, 0, 1), "pitch": 0.1}),
    "Link": (Link, {"joint": Joint.revolute(), "placement": POSE, "parameters": np.ones(10)}),
    "solid": (Link.solid, {"joint": Joint.revolute(), "mass": 1.0, "com": (0, 0, 0), "inertia": (1, 1, 1)}),
    "Robot": (Robot, {"name": "r", "links": [], "frames": [], "gravity": (0, 0, -9.0), "base": "base"}),
    "parameters": (R2.parameters, {"name": "masses"}),
    "with_inertial_parameters": (R2.with_inertial_parameters, {"parameters": R2.inertial_parameters}),
    "frame": (R2.frame, {"name": "tip"}),
    "attach": (R2.attach, {"other": R2, "frame": "tip", "prefix": "x"}),
}
PLACES = {f"{name}, {key}": (fn, given, key) for name, (fn, given) in CALLS.items() for key in given}
ODD = [object(), {"a": 1}, 1j, b"b", np.array([object()]), [[1], [1, 2]], np.array("a"), ..., 10**400]
MORE = {"Link": {"name": "a", "parent": "base"}, "solid": {"name": "a", "parent": "base"}, "save": {"path": "never/written.json"}}


@pytest.mark.parametrize(("fn", "given", "key"), PLACES.values(), ids=PLACES)
def test_arguments_of_the_wrong_kind_are_named(fn, given, key):
    name = next(name for name, (f, g) in CALLS.items() if g is given)
    for odd in ODD:
        with pytest.raises(CoadjointError):
            fn(**MORE.get(name, {}), **given | {key: odd})


def test_messages_name_the_argument():
    for call, words in (
        (lambda: cj.total_mass(5), "robot is 5; expected a Robot"),
        (lambda: cj.discretize(A, B, [1, 2]), "dt is .1, 2.; expected one finite number"),
        (lambda: cj.discretize(A, B, np.inf), "dt is inf; expected one finite number"),
        (lambda: cj.discretize(A, B, -1.0), "dt is -1.0; expected a positive number"),
        (lambda: cj.geodesic(R2, ZERO, ZERO, 1j), "t is 1j; expected real numbers"),
        (lambda: cj.triangle(np.zeros(3)), "the matrix has shape"),
        (lambda: R2.random("x"), "rng is 'x'"),
        (lambda: R2.random(0, [1, -1]), "shape is"),
        (lambda: cj.equations(R2).latex("x.tex"), "digits is 'x.tex'; expected a whole number. The equations are returned as text"),
        (lambda: cj.equations(R2).text(0), "digits is 0"),
    ):
        with pytest.raises(CoadjointError, match=words):
            call()


def test_checks_return_what_is_right():
    assert a_robot(R2, "x") is R2
    assert a_name("a", "x") == "a"
    assert names(("a", "b"), "x") == ["a", "b"]
    assert one_of("a", "b")("b", "x") == "b"
    assert a_function(len, "x") is len
    np.testing.assert_array_equal(numbers([1, 2], "x"), [1.0, 2.0])
    assert a_number(np.float32(2), "x") == 2
    assert positive(1, "x") == 1
    assert whole(np.int64(3), "x") == 3
    assert sequence(range(2), "x") == [0, 1]
    assert a_type("float32", "x") == "float32"


def test_a_function_that_takes_checked_arguments_stays_itself():
    @takes(n=whole, name=a_name)
    def f(n, *rest, name=None, **more):
        """What it does."""
        return n, rest, name, more

    assert f(1, 2, 3, other=4) == (1, (2, 3), None, {"other": 4})
    assert f(n=np.int8(1), name=None) == (1, (), None, {})
    assert list(inspect.signature(f).parameters) == ["n", "rest", "name", "more"]
    assert f.__doc__ == "What it does."
    with pytest.raises(TypeError):
        f()


def test_unknown_keywords_are_named_with_the_one_that_is_meant():
    robot = cj.load("planar2r")
    q = np.zeros((9, 2))
    log = {"time": np.arange(9.0), "q": q, "tau": q}
    for call, wrong, meant in (
        (lambda **k: cj.identify(robot, log, **k), "fricton", "friction"),
        (lambda **k: cj.identify(robot, log, **k), "unit", "units"),
        (lambda **k: cj.compare(robot, log, **k), "cutof", "cutoff"),
        (lambda **k: cj.read_log(log, **k), "colums", "columns"),
        (lambda **k: cj.calibrate(robot, q, **k), "poits", "points"),
        (lambda **k: cj.excitation(robot, **k), "harmonic", "harmonics"),
    ):
        for kind in (cj.CoadjointError, TypeError):
            with pytest.raises(kind, match=rf"{wrong!r}; did you mean {meant!r}"):
                call(**{wrong: 1})
    read = cj.read_log(log, robot, units={"time": "s"})
    with pytest.raises(cj.CoadjointError, match="units is of a log that is not read yet"):
        cj.identify(robot, read, units={"q": "deg"})


@pytest.mark.parametrize("robot", [True, np.zeros((0, 2)), "planar2r"])
def test_rollouts_ask_for_a_robot(robot):
    with pytest.raises(CoadjointError, match="robot is"):
        cj.rollout(robot, ZERO, ZERO, dt=0.01, steps=2)


@pytest.mark.parametrize("dt", [0, -1.0, np.nan, np.inf, "1", None])
def test_rollouts_ask_for_a_positive_step(dt):
    with pytest.raises(CoadjointError, match="dt is"):
        cj.rollout(R2, ZERO, ZERO, dt=dt, steps=2)


@pytest.mark.parametrize("rows", [np.full((2, 3), np.nan), [[3], [4]], 3, "ab"])
def test_rows_of_a_task_are_numbers(rows):
    with pytest.raises(CoadjointError, match="rows is"):
        cj.horizontal_lift(R2, ZERO, "tip", rows=rows)


@pytest.mark.parametrize("wrong", [None, 0, [[]], np.zeros((2, 2)), "x"])
def test_a_rotation_is_made_of_vectors(wrong):
    with pytest.raises(CoadjointError, match="u "):
        cj.lie.quaternion.rotation(wrong, np.ones(3), np.ones(3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: R2.random(0, 10**50), "shape is"),
        (lambda: cj.rollout(R2, ZERO, ZERO, dt=10**400, steps=2), "dt is"),
        (lambda: cj.rollout(R2, ZERO, ZERO, dt=0.1, steps=2, method=np.zeros((0, 7))), "method is"),
        (lambda: Joint.revolute(name=np.zeros(3)), "the name of a joint is"),
        (lambda: cj.where(np.ones(2), range(3), np.zeros(1)), "do not fit together"),
        (lambda: cj.simulate(R2, ZERO, ZERO, 0.1, control=lambda q, v, t: v), r"control takes \(q, v, t\)"),
        (
            lambda: cj.rollout(R2, ZERO, ZERO, dt=0.1, steps=2, control=lambda: 0),
            r"control takes \(\); expected a function control",
        ),
        (lambda: cj.gravity_force(R2, 10**400), "q is"),
        (lambda: cj.export.js(5), "expected a graph"),
        (lambda: cj.geometry.distance(5, ZERO, ZERO), "robot is 5"),
        (lambda: cj.geometry.geodesics_between(R2, ZERO, ZERO, rng="x"), "rng is 'x'"),
        (lambda: cj.constraints.constraint_rank(5, None, ZERO), "robot is 5"),
        (lambda: cj.redundancy.optimize_self_motion(R2, ZERO, 5, "tip"), "function is 5"),
        (lambda: cj.save(R2, "a" * 5000 + ".json"), "too long"),
        (lambda: cj.compile(cj.mass_matrix, R2, shapes=5), "shapes is 5"),
        (lambda: cj.jvp(cj.gravity_force, R2, dtype=np.zeros(3)), "dtype is"),
        (lambda: cj.jacobian(R2, ZERO, "tip", np.zeros(3)), "reference is"),
        (
            lambda: cj.excitation(R2, 2.0, velocity=1.0, acceleration=1.0, report=5),
            r"report is 5; expected a function report\(part\)",
        ),
        (lambda: cj.excitation(R2, 2.0, velocity=1.0, acceleration=1.0, drives=np.zeros(2)), "drives is"),
        (lambda: cj.design.optimize(R2, "masses", cj.total_mass, report="x"), "report is 'x'"),
        (lambda: cj.export.latex(cj.trace(cj.gravity_force, R2), digits=-5), "digits is -5"),
        (lambda: cj.Shape("link1", "box", name=np.zeros(2)), r"name is array\(\[0., 0.\]\); expected text"),
        (lambda: cj.control.h_infinity(R2, np.zeros((2, 2, 2))), r"goal has shape \(2, 2, 2\)"),
        (lambda: cj.motion.filtering.zero_phase(np.zeros((9, 1)), 100.0, 1e-300), "the cut-off frequency is 1e-300 Hz"),
        (lambda: cj.identification.recursive_least_squares(R2, prior=1e300), "prior is 1e.300, whose square overflows"),
        (lambda: cj.control.FrameTask("tip", POSE, 1.0, 1.0, rows=np.array("a")), "rows is array"),
        (lambda: cj.simulate(R2, ZERO, ZERO, 0.1, report=np.ones(2)), r"report is .*expected a function report\(part\)"),
        (lambda: cj.calibrate(R2, np.zeros((9, 2)), "tip", points=np.zeros((9, 3)), report=np.ones(2)), "report is "),
        (
            lambda: cj.optimal_motion(R2, ZERO, goal=ZERO + 0.1, duration=1.0, report=lambda: 0),
            r"a function report\(count, error\)",
        ),
        (lambda: cj.time_optimal(R2, [ZERO, ZERO + 1], velocity=1.0, acceleration=5.0, report=5), "report is 5"),
        (lambda: cj.read_log({"time": [0.0]}, R2, report=5), "report is 5"),
        (lambda: cj.design.counterweights(R2, max_mass=lambda: 0), "max_mass of 'link1' is <function"),
        (lambda: cj.design.counterweights(R2, max_mass=[1e300] * 3), r"max_mass of 'link1' is .1e.300, 1e.300"),
        (lambda: cj.design.counterweights(R2, max_mass=np.nan), "max_mass of 'link1' is nan"),
        (lambda: cj.design.counterweights(R2, grid=10**9), "grid is 1000000000; expected at most 100"),
        (lambda: cj.design.optimize(R2, "masses", cj.total_mass, constraints=[1.0]), r"constraints\[0\] is 1.0"),
        (lambda: cj.design.optimize(R2, "masses", cj.total_mass, choices=ZERO), "choices is array"),
        (lambda: cj.design.optimize(R2, "masses", cj.total_mass, states=lambda: 0), r"states takes \(\)"),
        (lambda: cj.design.optimize(R2, "masses", lambda: 0), "takes no arguments"),
        (lambda: cj.design.optimize(R2, "masses", lambda *a: None), "gave None for one state"),
        (lambda: cj.excitation(R2, 2.0, position=(-1.0, 1.0), velocity=1.0, acceleration=1.0, planes=True), "planes is True"),
        (lambda: cj.excitation(R2, 2.0, position=(-1.0, 1.0), velocity=1.0, acceleration=1.0, start=len), "start is <built-in"),
        (
            lambda: cj.excitation(R2, 2.0, position=(-1.0, 1.0), velocity=1.0, acceleration=1.0, harmonics=10**9),
            "harmonics is 1000000000; expected at most",
        ),
        (lambda: cj.excitation(R2, 1e-300, position=(-1.0, 1.0), velocity=1.0, acceleration=1.0), "duration is 1e-300 s"),
        (lambda: cj.excitation(R2, 2.0, position=(-1.0, 1.0), velocity=1.0, acceleration=1.0, seed=-1), "seed is -1"),
        (lambda: cj.Event(lambda q, v, t: q[0], direction=ZERO), "direction array"),
        (lambda: cj.Contact(cj.Constraint.point(R2, "tip", axes="x"), restitution=[[1], [1, 2]]), "restitution is"),
        (lambda: cj.Shape("link1", "box", role=ZERO), "no role of a shape"),
        (lambda: Robot("r", [], poses=ZERO), "poses is array"),
        (lambda: cj.simulate(R2, ZERO, ZERO, 0.1, delay=ZERO), "delay is array"),
        (lambda: cj.simulate(R2, ZERO, ZERO, 0.1, events=np.array(0.5)), "events have array"),
        (lambda: cj.identify(R2, {"time": [0.0]}, cutoff=ZERO), "cutoff is array"),
        (lambda: cj.identify(R2, {"time": [0.0]}, cutoff=10**50), "cutoff is 1000"),
        (lambda: cj.rollout(R2, ZERO, ZERO, dt=0.1, steps=2, friction=ZERO), "friction is array"),
        (lambda: cj.motion.smooth_motion(R2, 1e9), "too many rows"),
        (
            lambda: cj.impact(R2, cj.Constraint.point(R2, "tip", axes="x"), ZERO, ZERO, unilateral=[[1], [1, 2]]),
            "unilateral is",
        ),
        (lambda: cj.robot_from_dh(np.zeros((3, 4)), joints=[0, 0, 0]), r"joints\[0\] is 0; expected a dictionary"),
        (lambda: cj.lqr(A, B, Q, [0.0]), "there is no stabilising regulator"),
        (lambda: cj.lie.se3.exp_screw(np.zeros(6), np.zeros((1,) * 40)), "q has 40 batch axes"),
        (lambda: cj.redundancy.follow(R2, ZERO, len, "tip", [3], duration=1.0, damping=1e300), "whose square is finite"),
        (lambda: cj.redundancy.lift_function(R2, ZERO, np.array(["2020-01-01"], "M8[D]"), "tip", [3]), "eta is"),
        (lambda: cj.redundancy.task_torque(R2, [0.3, 0.9], ZERO, np.array([object()]), "tip", [3]), "acceleration is"),
        (lambda: cj.redundancy.vertical_basis(R2, ZERO * np.nan, "tip", [3]), "q has entries that are not finite"),
        (
            lambda: cj.redundancy.self_motion(R2, [0.3, 0.9], lambda: 0, [0.1], cj.redundancy.Task("tip", [3], "world")),
            "velocity takes",
        ),
        (lambda: cj.geometry.distance(R2, ZERO, ZERO + 1, attempts=10**9), "attempts is 1000000000; expected at most"),
        (lambda: cj.export.latex(cj.trace(cj.gravity_force, R2), digits=10**9), "digits is"),
        (lambda: cj.export.latex(cj.trace(cj.gravity_force, R2), outputs=[ZERO]), "expected a list of texts"),
        (lambda: cj.optimal_motion(R2, ZERO, ZERO + 1, [[1], [1, 2]]), "duration is"),
        (lambda: cj.optimal_motion(R2, ZERO, ZERO + 1, 1.0, cost=lambda: 0), r"cost takes \(\)"),
        (lambda: cj.costs.residual(lambda robot, q, v, u, r: q - r, reference=[[1], [1, 2]]), "reference is"),
        (lambda: cj.constraints.project_velocity(R2, cj.Constraint.point(R2, "tip", axes="x"), ZERO, [[1], [1, 2]]), "v is"),
        (lambda: cj.control.controlled_symmetry(R2, "x"), "gravity is 'x'"),
        (
            lambda: cj.control.closed_loop(
                R2, cj.control.pd(R2, cj.control.hold(R2, ZERO), kp=1.0, kd=1.0), ZERO, ZERO, 1.0, period=1e-300
            ),
            "too many samples",
        ),
        (lambda: cj.design.counterweights(R2, box=len), "the box on 'link1' is <built-in function len>"),
        (lambda: cj.export.latex(cj.trace(cj.gravity_force, R2), outputs="f"), "outputs is 'f'"),
        (lambda: cj.export.latex(cj.trace(cj.gravity_force, R2), outputs=["f", "g"]), "outputs has 2 names; expected 1"),
        (lambda: cj.identify(R2, {"time": [0.0]}, gains=object()), "gains is <object"),
        (lambda: cj.identify(R2, {"time": [0.0]}, friction=np.ones(2)), "friction is array"),
        (lambda: cj.design.optimize(R2, "masses", cj.total_mass, states=np.ones(2)), "states is array"),
        (
            lambda: cj.redundancy.inverse_brackets(
                R2, ZERO, lambda robot, q: cj.jacobian(robot, q, "tip")[..., :1, :].T, "tip", (3, 4)
            ),
            r"inverse gives shape \(2, 1\); expected \(2, 2\)",
        ),
        (lambda: cj.redundancy.optimize_self_motion(R2, ZERO, cj.potential_energy, "tip", maximize=ZERO), "maximize is array"),
        (lambda: cj.arrays.where(True, [[1], [1, 2]], 0.0), "rows of different lengths"),
        (lambda: cj.calibrate(R2, np.zeros((90, 2)), frame="tip", points=np.zeros((90, 1, 3)), terms=np.eye(2)), "terms has array"),
        (lambda: cj.optimal_control(R2, cj.Stage(2, cj.costs.control()), ZERO, iterations=10**49), "iterations is 1000"),
        (
            lambda: cj.redundancy.self_motion(cj.load("planar3r"), np.zeros(3), np.zeros((2, 3)), 0.1, "tip", [3, 4]),
            r"velocity has shape \(2, 3\); expected one that broadcasts with \(3,\)",
        ),
        (lambda: cj.jvp(cj.gravity_force, R2, dtype="\ud800"), "dtype is"),
        (lambda: cj.jvp(cj.gravity_force, R2, dtype="f8,,"), "dtype is"),
        (
            lambda: cj.constraints.null_space(R2, cj.Constraint.point(R2, "tip", axes="x"), np.zeros((0, 2))),
            "q is an empty batch",
        ),
        (lambda: cj.lie.inertia.from_body(np.array([object()]), np.zeros(3), np.eye(3)), "mass is"),
        (lambda: cj.control.limited(cj.control.pd(R2, cj.control.hold(R2, ZERO), kp=1.0, kd=1.0), effort=cj), "effort is"),
        (lambda: cj.redundancy.task_acceleration(R2, ZERO, ["a", "b"], ZERO, "tip", [3]), "v is"),
        (lambda: cj.redundancy.self_motion(R2, [0.3, 0.9], "x", [0.1], cj.redundancy.Task("tip", [3], "world")), "velocity is 'x'"),
        (lambda: cj.redundancy.submersion(R2, "tip", [3], metric="x"), "metric is 'x'"),
        (lambda: cj.redundancy.submersion(R2, "tip", [3], metric=[[np.inf]]), "metric has entries"),
        (lambda: cj.forward_dynamics(R2, ZERO, ZERO, ZERO, friction=np.zeros(2)), "friction is .*expected True or False"),
        (lambda: cj.forward_dynamics(R2, ZERO, ZERO, ZERO, friction="no"), "friction is 'no'"),
        (lambda: cj.where(np.ones(1) > 0, np.array(["2020-01-01"], "M8[D]"), 1.0), "x and y are of kinds"),
        (lambda: cj.where(np.ones(1) > 0, 10**400, 1.0), "an integer that is too large"),
        (lambda: cj.simulate(R2, ZERO, ZERO, 0.05, method="variational", tolerance=10**400), "tolerance is"),
        (lambda: cj.export.latex(cj.trace(cj.gravity_force, R2), {"q": []}), r"names\['q'\] is \[\]; expected text"),
        (lambda: cj.export.sympy(cj.trace(cj.gravity_force, R2), {"q": 1}), r"names\['q'\] is 1; expected text"),
        (
            lambda: cj.excitation(R2, 2.0, position=(-1, 1), velocity={"joint1": "x"}),
            r"velocity\['joint1'\] is 'x'; expected a number",
        ),
        (lambda: cj.excitation(R2, 2.0, **MOVING, effort={"joint1": [1.0, 2.0]}), r"effort\['joint1'\] is \[1.0, 2.0\]"),
        (lambda: cj.excitation(R2, 2.0, tries=10**9), "tries is 1000000000; expected at most"),
        (
            lambda: cj.design.optimize(R2, "masses", lambda robot: cj.total_mass(robot), states={"q": "x"}),
            r"states\['q'\] is 'x'; expected real numbers",
        ),
        (lambda: cj.read_log(TABLE, columns={"a": 1}), r"columns\['a'\] is 1; expected a list"),
        (lambda: cj.read_log(TABLE, columns={"q": [[1], [2]]}), r"columns\['q'\] is \[\[1\], \[2\]\]"),
        (lambda: cj.read_log(TABLE, columns={"time": []}), r"columns\['time'\] names 0 columns"),
        (lambda: cj.read_log(TABLE, columns={"time": ["time", "q1"]}), r"columns\['time'\] names 2 columns"),
        (lambda: cj.compile(cj.gravity_force, R2, shapes={"q": 2}), r"shapes\['q'\] is 2; expected a list"),
        (lambda: cj.trace(cj.gravity_force, R2, shapes={"q": ["x"]}), r"shapes\['q'\] is 'x'; expected a whole number"),
        (lambda: cj.derivative(cj.gravity_force, R2, shapes={"q": (-1,)}), r"shapes\['q'\] is -1; expected 0 or a positive"),
        (lambda: R2.with_parameters("lengths", [None]), "parameters 'lengths' is"),
        (lambda: cj.lqr(A, B, Q, R, discrete=np.zeros(3)), "discrete is .*expected True or False"),
        (lambda: cj.lqr(A, B, [np.nan, 1.0], R), "Q has entries that are not finite"),
        (lambda: cj.rollout(R2, ZERO, ZERO, dt=0.1, steps=10**49), "steps is"),
        (lambda: cj.effective_inertia(R2, ZERO, "tip", [np.inf, 3]), "rows is"),
        (lambda: cj.simulate(R2, ZERO, np.ones(2), 1e300), "would take about .* steps"),
        pytest.param(  # 5,000 evaluations tell
            lambda: cj.geodesic(R2, ZERO, np.ones(2), 1e300), "until t = 1e.300 takes too many steps", marks=pytest.mark.native
        ),
    ],
)
def test_what_the_fuzzer_found(call, words):
    with pytest.raises(CoadjointError, match=words):
        call()


def test_accelerations_of_what_is_no_number_are_none():
    """Also for one state alone, and where it is a wrench that is no number."""
    constraint, q = cj.Constraint.point(R2, "tip", axes="x"), np.ma.masked_array([1.0, 2.0], [True, False])
    assert np.isnan(cj.constrained_dynamics(R2, constraint, q, ZERO, ZERO)[0]).all()
    wrenches = np.zeros((2, R2.n_links, 6))
    wrenches[1] = np.nan
    a, _ = cj.constrained_dynamics(R2, constraint, [0.3, 0.4], ZERO, ZERO, wrenches=wrenches)
    assert np.isfinite(a[0]).all()
    assert np.isnan(a[1]).all()


def test_velocities_of_any_buffer_are_numbers():
    found = cj.redundancy.task_acceleration(R2, ZERO, memoryview(bytes([1, 2])), ZERO, "tip", [3])
    assert found == pytest.approx(cj.redundancy.task_acceleration(R2, ZERO, [1.0, 2.0], ZERO, "tip", [3]))


def test_flags_are_true_or_false():
    """Of every public function: an array has no truth value, and a text or another number was taken for True."""
    found = []
    for name, fn in _calls.published().items():
        for p in inspect.signature(fn).parameters.values():
            if not isinstance(p.default, bool) or name not in _calls.calls():
                continue
            found.append(f"{name} {p.name}")
            given = _calls.calls()[name][1]
            for odd in ("no", np.zeros(2), 5, 1.5, object()):
                with pytest.raises(CoadjointError):
                    fn(**given | {p.name: odd})
    assert len(found) > 20
