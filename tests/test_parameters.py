"""Named sets of parameters, to a vector and back, and derivatives of any function by them and by its arrays."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.trace.trace import trace
from derivative_helpers import complex_step
from laws import relative, state
from random_robots import ONE_SCREW, random_robot

ALL = (
    "inertial",
    "masses",
    "gravity",
    "armature",
    "damping",
    "friction",
    "drives",
    "lengths",
    "homes",
    "frames",
    "axes",
    "payload:tip",
)
CHANGES = ("homes", "frames", "axes", "payload:tip")
"""Sets that are changes of the robot, so that every robot's own are 0."""


def robot_of_all_kinds(seed, n=6):
    return random_robot(
        seed, n, ("helical", "universal", "spherical", "planar", "revolute", "prismatic"), armature=True, damping=True
    )


def chain(seed):
    return random_robot(seed, 4, ("revolute", "revolute", "prismatic"), tree=False, armature=True)


def torque_and_pose(robot, q, v, a):
    return cj.inverse_dynamics(robot, q, v, a, friction=True), cj.pose(robot, q, "tip")


@pytest.mark.parametrize("name", ALL)
def test_the_same_vector_gives_the_same_robot(name):
    robot = robot_of_all_kinds(1)
    values, names = robot.parameters(name), robot.parameter_names(name)
    assert values.shape == (len(names),)
    assert len(set(names)) == len(names)
    same = robot.with_parameters(name, values)
    q, v, a = state(robot, np.random.default_rng(0))
    for x, y in zip(torque_and_pose(same, q, v, a), torque_and_pose(robot, q, v, a), strict=True):
        assert relative(x, y) < 1e-14
    # What the set holds is what a changed robot has, and its links, joints and frames tell the same as its arrays.
    rng = np.random.default_rng(2)
    changed = robot.with_parameters(name, values + 0.01 * np.abs(rng.normal(size=values.shape)))
    again = cj.Robot(changed.name, changed.links, changed.frames, changed.gravity)
    for x, y in zip(torque_and_pose(changed, q, v, a), torque_and_pose(again, q, v, a), strict=True):
        assert np.array_equal(x, y)
    assert np.any(values) == (name not in CHANGES)
    by = 0.01 * np.abs(np.random.default_rng(2).normal(size=values.shape))
    assert relative(changed.parameters(name) - values, by if name not in CHANGES else 0 * by) < 1e-12


@pytest.mark.parametrize("name", [*ALL, "dh:tip"])
def test_derivatives_by_complex_step(name):
    """By every set, of a torque and a pose, in one function of the user's own."""
    robot = chain(3) if ":" in name and "dh" in name else robot_of_all_kinds(3, 4)
    q, v, a = state(robot, np.random.default_rng(1))
    graph = cj.trace(torque_and_pose, robot, parameters=[name])
    expected = complex_step(graph, 3, q, v, a, robot.parameters(name))
    found = cj.derivative(torque_and_pose, robot, name)(q, v, a)
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape
        assert np.abs(x - y).max() < 1e-12 * max(1.0, np.abs(y).max())


@pytest.mark.parametrize("name", ["inertias", "placements", "screws"])
def test_derivatives_by_whole_arrays(name):
    robot = chain(4)
    q, v, a = state(robot, np.random.default_rng(1))
    graph = cj.trace(cj.inverse_dynamics, robot, parameters=[name])
    (expected,) = complex_step(graph, 3, q, v, a, getattr(robot, name))
    found = cj.derivative(cj.inverse_dynamics, robot, name)(q, v, a)
    assert found.shape == (robot.nv, *getattr(robot, name).shape)
    assert relative(found, expected) < 1e-12


def test_inertial_derivative_is_the_regressor():
    robot = random_robot(5, 5)
    q, v, a = state(robot, np.random.default_rng(1), (3,))
    assert relative(cj.derivative(cj.inverse_dynamics, robot, "inertial")(q, v, a), cj.regressor(robot, q, v, a)) < 1e-13
    link, pose = robot.frame("tip")
    payload = cj.derivative(cj.inverse_dynamics, robot, "payload:tip")(q, v, a)
    carried = robot.with_frame("load", robot.link_names[link], pose)
    heavy = carried.with_parameters("payload:load", np.arange(10) / 10)
    assert (
        relative(payload @ (np.arange(10) / 10), cj.inverse_dynamics(heavy, q, v, a) - cj.inverse_dynamics(robot, q, v, a)) < 1e-12
    )


def test_lengths_and_masses_of_the_panda_by_rebuilding_it():
    """The worked example: derivatives of the torques against robots built anew with other links."""
    robot, h = cj.load("panda"), 1e-5
    q, v, a = state(robot, np.random.default_rng(0))
    for name in ("lengths", "masses"):
        found = cj.derivative(cj.inverse_dynamics, robot, name)(q, v, a)
        for k, label in enumerate(robot.parameter_names(name)):
            link = label.split(".")[0]
            old = robot.links[robot.link_index(link)]
            torques = []
            for sign in (1, -1):
                if name == "lengths":
                    placement = old.placement.copy()
                    placement[:3, 3] *= 1 + sign * h / np.linalg.norm(placement[:3, 3])
                    other = robot.with_placement(link, placement)
                else:
                    mass, com, inertia = cj.lie.inertia.to_body(old.parameters)
                    other = robot.with_inertia(link, mass=mass + sign * h, com=com, inertia=inertia * (1 + sign * h / mass))
                torques.append(cj.inverse_dynamics(other, q, v, a))
            assert relative(found[:, k], (torques[0] - torques[1]) / (2 * h)) < 1e-7, label


def test_denavit_hartenberg():
    """The rows that a robot was made of, and the robot that other rows make."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(-1, 1, 4), rng.uniform(0.1, 0.5, (4, 2)), rng.uniform(0.3, 1.2, 4)])
    bodies = {"masses": [1.0, 2.0, 1.5, 0.5], "coms": rng.normal(size=(4, 3)) * 0.1, "inertias": np.eye(3) * 0.02}
    make = lambda rows: cj.robot_from_dh(rows, "modified", "RPRR", tool=np.eye(4), **bodies)
    robot, changed = make(rows), rows + 0.05 * rng.normal(size=(4, 4))
    found = robot.parameters("dh:tip").reshape(-1, 4)
    assert robot.parameter_names("dh:tip")[:5] == ("joint1.theta", "joint1.d", "joint1.a", "joint1.alpha", "joint2.theta")
    # Steps of the first and last rows, and of prismatic ones, can be made in other frames: what counts is where the axes are.
    q, v, a = state(robot, rng)
    other = robot.with_parameters("dh:tip", found.reshape(-1))
    assert relative(cj.inverse_dynamics(other, q, v, a), cj.inverse_dynamics(robot, q, v, a)) < 1e-12
    assert relative(cj.pose(other, q, "tip"), cj.pose(robot, q, "tip")) < 1e-12
    revolute = cj.robot_from_dh(rows, "modified", tool=np.eye(4), **bodies)
    inner = revolute.parameters("dh:tip").reshape(-1, 4)
    assert relative(inner[1:, 2:], rows[1:, 2:]) < 1e-12  # lengths and twists between axes
    assert relative(inner[1:3, 1], rows[1:3, 1]) < 1e-12  # offsets along inner axes
    longer = inner.copy()
    longer[1:, 2:] += changed[1:, 2:] - rows[1:, 2:]
    expected = rows.copy()
    expected[1:, 2:] = changed[1:, 2:]
    expected = cj.robot_from_dh(expected, "modified", tool=np.eye(4), **bodies)
    q, v, a = state(revolute, rng)
    mine = revolute.with_parameters("dh:tip", longer.reshape(-1))
    assert relative(cj.inverse_dynamics(mine, q, v, a), cj.inverse_dynamics(expected, q, v, a)) < 1e-11
    assert relative(cj.pose(mine, q, "tip"), cj.pose(expected, q, "tip")) < 1e-11


def test_axes_stay_on_the_surface_of_their_kind():
    """Large displacements: screws remain those of their joints, and every number of the set moves something."""
    robot = robot_of_all_kinds(6)
    rng = np.random.default_rng(0)
    names = robot.parameter_names("axes")
    moved = robot.with_parameters("axes", rng.normal(size=len(names)))  # `Joint` would refuse screws of another kind
    assert not np.allclose(moved.screws, robot.screws)
    counts = {
        link.joint.kind: sum(x.startswith((f"{link.joint.name}.", f"{link.joint.name}[")) for x in names) for link in robot.links
    }
    assert counts == {"helical": 5, "universal": 8, "spherical": 6, "planar": 5, "revolute": 4, "prismatic": 2}
    S = cj.derivative(lambda robot, q: robot.screws + 0.0 * q[0], robot, "axes")(robot.neutral())
    assert np.linalg.matrix_rank(S.reshape(-1, len(names))) == len(names)


def test_parameters_as_inputs_and_batches():
    robot = chain(7)
    rng = np.random.default_rng(0)
    q, v, a = state(robot, rng, (5,))
    f = cj.derivative(cj.inverse_dynamics, robot, "q", parameters=["inertial", "lengths"])
    other = robot.with_parameters("inertial", robot.parameters("inertial") * 1.1).with_parameters(
        "lengths", robot.parameters("lengths") * 0.9
    )
    expected = cj.inverse_dynamics_derivatives(other, q, v, a)[0]
    assert relative(f(q, v, a, other.parameters("inertial"), other.parameters("lengths")), expected) < 1e-12
    g = cj.derivative(cj.inverse_dynamics, robot, "lengths", parameters=["lengths"])
    x = robot.parameters("lengths") * rng.uniform(0.8, 1.2, (5, 4))  # another robot for each state
    for k in range(5):
        expected = cj.derivative(cj.inverse_dynamics, robot.with_parameters("lengths", x[k]), "lengths")(q[k], v[k], a[k])
        assert relative(g(q, v, a, x)[k], expected) < 1e-12


@pytest.mark.parametrize("kind", ["one screw", "groups"])
def test_derivatives_by_state_of_many_functions(kind):
    """What has no function of its own: energies, momentum, gravity, M⁻¹, the Coriolis matrix; q along the tangent."""
    rng = np.random.default_rng(8)
    robot = (
        random_robot(rng, 4, ONE_SCREW, tree=False)
        if kind == "one screw"
        else random_robot(rng, 3, ("spherical", "planar", "universal"))
    )
    q, v, _ = state(robot, rng)
    for fn, args in (
        (cj.kinetic_energy, (q, v)),
        (cj.potential_energy, (q,)),
        (cj.centroidal_momentum, (q, v)),
        (cj.gravity_force, (q,)),
        (cj.mass_matrix_inverse, (q,)),
        (cj.coriolis_matrix, (q, v)),
    ):
        found = cj.derivative(fn, robot, "q")(*args)
        sizes = {"q": (robot.nq,), "dq": (robot.nv,), "v": (robot.nv,)}
        names = ["q", "dq", "v"][: len(args) + 1]
        graph = trace(lambda q, dq, *v, fn=fn: fn(robot, robot.integrate(q, dq), *v), {name: sizes[name] for name in names})
        (expected,) = complex_step(graph, 1, q, np.zeros(robot.nv), *args[1:])
        assert relative(found, expected) < 1e-11, fn.__name__
    assert relative(cj.derivative(cj.potential_energy, robot, "q")(q), cj.gravity_force(robot, q)) < 1e-12
    assert relative(cj.derivative(cj.kinetic_energy, robot, "v")(q, v), cj.mass_matrix(robot, q) @ v) < 1e-12


def test_derivatives_by_wrenches_and_twice():
    rng = np.random.default_rng(9)
    robot = random_robot(rng, 4, ONE_SCREW)
    q, v, a = state(robot, rng)
    w = rng.normal(size=(robot.n_links, 6))
    by_w = cj.derivative(cj.inverse_dynamics, robot, "wrenches", shapes={"wrenches": w.shape})(q, v, a, w)
    assert relative(np.einsum("...ij,ij->...", by_w, w), -cj.generalized_force(robot, q, w)) < 1e-12
    second = cj.derivative(cj.differential(cj.inverse_dynamics, "q"), robot, "v")(q, v, a)
    assert relative(second, cj.inverse_dynamics_second_derivatives(robot, q, v, a)[1]) < 1e-12
    assert (
        relative(cj.differential(cj.inverse_dynamics, "v")(robot, q, v, a), cj.inverse_dynamics_derivatives(robot, q, v, a)[1])
        < 1e-12
    )


def test_traces_of_differentials_are_graphs():
    robot = cj.load("planar2r")
    graph = cj.trace(cj.differential(cj.gravity_force, "q"), robot)
    q = np.array([0.3, -0.4])
    assert relative(evaluate(graph, q)[0], cj.inverse_dynamics_derivatives(robot, q, 0 * q, 0 * q)[0]) < 1e-13


@pytest.mark.native
def test_native_equals_node_by_node(monkeypatch):
    robot = random_robot(10, 3, ("revolute", "prismatic"), tree=False)
    q, v, a = state(robot, np.random.default_rng(0), (6,))
    for name in ("q", "lengths"):
        f = cj.derivative(cj.forward_dynamics, robot, name)
        out = np.empty_like(f(q, v, a))
        assert f(q, v, a, out=out) is out
        with monkeypatch.context() as m:
            m.setenv("COADJOINT_NATIVE", "0")
            g = cj.derivative(cj.forward_dynamics, robot, name)
            assert relative(out, g(q, v, a)) < 1e-11
            assert np.array_equal(g(q, v, a, out=np.empty_like(out)), g(q, v, a))


def test_jax_through_the_parameters():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    try:
        robot = random_robot(11, 1, ("revolute",))
        q, v, a = state(robot, np.random.default_rng(0))
        for name in ("lengths", "axes"):
            x = jax.numpy.asarray(robot.parameters(name))
            torque = lambda x, name=name: cj.inverse_dynamics(robot.with_parameters(name, x), *map(jax.numpy.asarray, (q, v, a)))
            found = jax.jit(jax.jacfwd(torque))(x)
            assert relative(np.asarray(found), cj.derivative(cj.inverse_dynamics, robot, name)(q, v, a)) < 1e-12
    finally:
        jax.config.update("jax_enable_x64", False)


def masses_twice(robot):
    return {name: robot.parameters(name) for name in ("masses", "inertial")}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.parameters("inertia"), "no set of parameters is named 'inertia'.*Did you mean 'inertial'"),
        (lambda r: r.parameters("payload"), "belong to a frame; name it, as in 'payload:tip'"),
        (lambda r: r.parameters("masses:tip"), "belong to the whole robot; leave out ':tip'"),
        (lambda r: r.parameters("payload:tp"), "no frame is named 'tp'"),
        (lambda r: r.parameters("payload:mount"), "stands on the base"),
        (lambda r: r.with_parameters("gravity", [1.0, 2.0]), r"has shape \(2,\); expected \(3,\)"),
        (lambda r: r.with_parameters("masses", -r.parameters("masses")), "a mass must not be negative"),
        (lambda r: cj.derivative(cj.inverse_dynamics, r, "qq"), "no argument of the function or number of a robot is named 'qq'"),
        (lambda r: cj.derivative(cj.pose, r, "dh:tp", frame="tip"), "no frame is named 'tp'"),
        (lambda r: r.parameters("dh:tip"), "has several|one screw|universal"),
        (lambda r: cj.trace(cj.mass_matrix, r, parameters=["masses", "inertial"]), "'inertial' replaces all that 'masses' says"),
        (lambda r: cj.trace(cj.mass_matrix, r, parameters=["drives", "armature"]), "'drives' replaces all that 'armature' says"),
        (
            lambda r: cj.vjp(cj.mass_matrix, r, ["payload:tip", "inertial"]),
            "'inertial' replaces all that 'payload:tip' says",
        ),
        (
            lambda r: cj.rollout(r, r.neutral(), np.zeros(r.nv), dt=0.1, steps=1, parameters=masses_twice(r)),
            "'masses' and 'inertial'",
        ),
    ],
)
def test_errors(call, message):
    robot = random_robot(0, 3, ("universal", "revolute", "prismatic"), tree=False)
    with pytest.raises(cj.CoadjointError, match=message):
        call(robot)


def test_sets_that_change_each_other_further():
    """Masses after all inertial numbers are those masses, of bodies whose shapes those numbers give; in the other order they were lost."""
    robot = random_robot(3, 3)
    rng = np.random.default_rng(0)
    q, masses = robot.random(rng), robot.parameters("masses") * rng.uniform(0.5, 2.0, 3)
    numbers = robot.parameters("inertial") * 1.5
    expected = cj.mass_matrix(robot.with_parameters("inertial", numbers).with_parameters("masses", masses), q)
    found = cj.compile(cj.mass_matrix, robot, parameters=["inertial", "masses"])(q, numbers, masses)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["one screw", "groups"])
def test_products_without_matrices(kind):
    rng = np.random.default_rng(12)
    robot = random_robot(rng, 4, ONE_SCREW if kind == "one screw" else ("free", "planar", "spherical", "revolute"))
    q, v, a = state(robot, rng, (3,))
    dq, dv, da, weights = rng.normal(size=(4, 3, robot.nv))
    by_q, by_v, by_a = cj.inverse_dynamics_derivatives(robot, q, v, a)
    expected = sum((J @ d[..., None])[..., 0] for J, d in ((by_q, dq), (by_v, dv), (by_a, da)))
    assert relative(cj.jvp(cj.inverse_dynamics, robot, ["q", "v", "a"])(q, v, a, dq, dv, da), expected) < 1e-12
    gradients = cj.vjp(cj.inverse_dynamics, robot, ("q", "v", "a"))(q, v, a, weights)
    for x, J in zip(gradients, (by_q, by_v, by_a), strict=True):
        assert relative(x, (weights[..., None, :] @ J)[..., 0, :]) < 1e-12
    p = rng.normal(size=10 * robot.n_links)
    assert relative(cj.jvp(cj.inverse_dynamics, robot, "inertial")(q, v, a, p), cj.regressor(robot, q, v, a) @ p) < 1e-12
    pulled = cj.vjp(cj.inverse_dynamics, robot, "inertial")(q, v, a, weights)
    assert relative(pulled, (weights[..., None, :] @ cj.regressor(robot, q, v, a))[..., 0, :]) < 1e-12


def test_products_with_options_and_parameters_as_inputs():
    rng = np.random.default_rng(13)
    robot = chain(13)
    q = robot.random(rng)
    J = cj.jacobian(robot, q, "tip", "space")
    T, dq = cj.pose(robot, q, "tip"), rng.normal(size=robot.nv)
    found = cj.jvp(cj.pose, robot, frame="tip")(q, dq)
    assert relative(found, cj.lie.se3.hat(J @ dq) @ T) < 1e-12
    other = robot.with_parameters("lengths", 1.2 * robot.parameters("lengths"))
    f = cj.vjp(cj.potential_energy, robot, ["q", "lengths"], parameters=["lengths"])
    by_q, by_length = f(q, np.ones(()), other.parameters("lengths"))
    assert relative(by_q, cj.gravity_force(other, q)) < 1e-12
    assert relative(by_length, cj.derivative(cj.potential_energy, other, "lengths")(q)) < 1e-12
    with pytest.raises(cj.CoadjointError, match="has 3 results; `vjp` takes a function of one"):
        cj.vjp(cj.inverse_dynamics_derivatives, robot)
