"""Constraints: rows, values and rates agree with each other; dynamics under them obeys its laws in every form."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
import laws
from acceptance import check, load
from coadjoint import Constraint, constraints
from coadjoint.constraints import ConstraintError, PseudoVelocities
from coadjoint.errors import CoadjointError, ShapeError, UnknownNameError
from coadjoint.lie import so3
from constraint_robots import at, four_bar, free_body
from laws import close
from random_robots import MOVING, ONE_SCREW, random_robot, random_velocity


def robot_of(seed: int, kinds=MOVING, n: int = 9, **options) -> cj.Robot:
    return random_robot(seed, n, kinds, **options)


def knife(q):
    return np.array([[-np.sin(q[2]), np.cos(q[2]), 0.0]])


MADE = {
    "point": lambda r: Constraint.point(r, "tip", "xz", at=(0.3, -0.2)),
    "frame": lambda r: Constraint.frame(r, "tip", at=at(0.1, 0.2, 0.3)),
    "frame, some directions": lambda r: Constraint.frame(r, "tip", "rx rz y", at=at(0.1, 0.2, 0.3)),
    "loop": lambda r: Constraint.loop(r, "l0", "tip"),
    "revolute loop": lambda r: Constraint.loop(r, "l0", "tip", "revolute"),
    "prismatic loop": lambda r: Constraint.loop(r, "l0", "tip", "prismatic"),
    "cylindrical loop": lambda r: Constraint.loop(r, "mount", "tip", "cylindrical"),
    "universal loop": lambda r: Constraint.loop(r, "l0", "tip", "universal"),
    "spherical loop": lambda r: Constraint.loop(r, "l0", "tip", "spherical"),
    "planar loop": lambda r: Constraint.loop(r, "l0", "tip", "planar"),
    "cable": lambda r: Constraint.cable(r, ["mount", "l0", "tip"], 2.0),
    "function": lambda r: Constraint.holonomic(lambda q: cj.pose(r, q, "tip")[:2, 3] * q[1] - np.array([0.1, 0.2])),
    "rows": lambda r: Constraint.from_jacobian(lambda q: cj.jacobian(r, q, "tip", "world")[3:5] * q[0]),
    "twist": lambda r: Constraint.twist(r, "tip", "y rz"),
    "twist in space": lambda r: Constraint.twist(r, "tip", "rx z", "world"),
    "ball": lambda r: Constraint.rolling(r, "tip", 0.2, on="l0"),
    "wheel": lambda r: Constraint.rolling(r, "tip", 0.2, axle=(0.2, 1.0, 0.3)),
}
NONHOLONOMIC = ("rows", "twist", "twist in space")
"""They have no value, only rows."""
each = pytest.mark.parametrize("name", MADE)


@each
@pytest.mark.parametrize("seed", [1, 2])
def test_bias_is_the_rate_of_the_rows_along_the_motion(name, seed):
    """Ȧ v by central differences of A(q) v along q̇ = v; also with mimic joints."""
    robot = robot_of(seed, mimic=seed == 2)
    constraint, rng = MADE[name](robot), np.random.default_rng(seed)
    q, v, h = robot.random(rng), random_velocity(robot, rng), 1e-6
    rate = [constraint.jacobian(robot, robot.integrate(q, s * h * v)) @ v for s in (1, -1)]
    found = constraint.bias(robot, q, v)
    assert found.shape == (constraint.size(robot),)
    np.testing.assert_allclose(found, (rate[0] - rate[1]) / (2 * h), rtol=1e-6, atol=1e-6 * (1 + np.abs(found).max()))


@each
def test_rows_are_the_rate_of_the_value_where_it_vanishes(name):
    """A is ∂φ/∂q on the constraint, by central differences."""
    robot = robot_of(4, ("revolute", "prismatic", "spherical"), 12, tree=False)
    constraint = MADE[name](robot)
    if name in NONHOLONOMIC:
        assert constraint.residual(robot, robot.neutral()) is None
        assert not len(constraint.holonomic_rows(robot))
        return
    q = constraints.assemble(robot, constraint)
    assert np.abs(constraint.residual(robot, q)).max() < 1e-12
    A, h = constraint.jacobian(robot, q)[constraint.holonomic_rows(robot)], 1e-6
    up, down = (constraint.residual(robot, robot.integrate(q, s * h * np.eye(robot.nv))) for s in (1, -1))
    np.testing.assert_allclose(A, ((up - down) / (2 * h)).T, atol=2e-8)


def test_rows_of_a_gear_and_a_held_joint():
    robot = cj.load("panda")
    first, second = robot.joint_names[:2]
    gear = Constraint.gear(robot, {first: 1.0, second: -3.0}, 0.25)
    q = np.linspace(-0.5, 0.5, robot.nq)
    np.testing.assert_allclose(gear.residual(robot, q), [q[0] - 3 * q[1] - 0.25])
    np.testing.assert_array_equal(gear.jacobian(robot, q), [[1, -3, *[0] * (robot.nv - 2)]])
    np.testing.assert_array_equal(gear.bias(robot, q, np.ones(robot.nv)), [0.0])


def test_what_is_left_open_is_held_as_it_is():
    robot = robot_of(3)
    q = robot.random(1)
    for constraint in (
        Constraint.point(robot, "tip", "xy"),
        Constraint.frame(robot, "tip"),
        Constraint.frame(robot, "tip", "rx ry z"),
        Constraint.cable(robot, ["mount", "tip"]),
    ):
        assert constraint.residual(robot, q) is None
        held = constraint.at(robot, q)
        np.testing.assert_allclose(held.residual(robot, q), 0, atol=1e-14)
        A, v = held.jacobian(robot, q), np.linspace(-1, 1, robot.nv)
        close(A @ v, laws.derivative(robot, lambda x, held=held: held.residual(robot, x), q, v), 1e-10)
        assert np.abs(held.residual(robot, robot.random(2))).max() > 1e-3
        close(constraint.jacobian(robot, q), A, 1e-13)  # open, it has the rows that it has once it is held there
        assert held == constraint.at(robot, q)
        assert hash(held) == hash(constraint.at(robot, q))
        assert held != constraint


@pytest.mark.parametrize("axes", ["rx ry z", "z", "rz x", "rx ry rz y", "x y z"])
def test_some_directions_of_a_frame_left_open_are_those_of_its_twist(axes):
    """Rows along the frame's own axes, A v and its rate those of the body twist; `at` has the same rows there, for a batch too."""
    robot, rng = robot_of(5), np.random.default_rng(0)
    q, v = robot.random(rng, 3), rng.normal(size=(3, robot.nv))
    constraint, twist = Constraint.frame(robot, "tip", axes), Constraint.twist(robot, "tip", axes)
    np.testing.assert_allclose(constraint.jacobian(robot, q), twist.jacobian(robot, q), atol=1e-14)
    np.testing.assert_allclose(constraint.bias(robot, q, v), twist.bias(robot, q, v), atol=1e-12)
    for x, u in zip(q, v, strict=True):
        held = constraint.at(robot, x)
        np.testing.assert_allclose(held.jacobian(robot, x), constraint.jacobian(robot, x), atol=1e-13)
        h = 1e-5
        rate = [constraint.jacobian(robot, robot.integrate(x, s * h * u)) @ u for s in (1, -1)]
        np.testing.assert_allclose(constraint.bias(robot, x, u), (rate[0] - rate[1]) / (2 * h), rtol=1e-6, atol=1e-6)


# --- dynamics


CONSTRAINTS = {
    "holonomic": lambda r: Constraint.point(r, "tip", "xy") & Constraint.cable(r, ["mount", "l2"]),
    "nonholonomic": lambda r: Constraint.twist(r, "tip", "y") & Constraint.rolling(r, "l3", 0.2, axle=(0, 1, 0)),
    "functions": lambda r: Constraint.from_jacobian(lambda q: cj.jacobian(r, q, "l2")[2:4]) & MADE["function"](r),
}


@pytest.fixture(params=["as written", pytest.param("native", marks=pytest.mark.native)])
def _way(request):
    """Laws that hold for the algorithms as written and for the machine code made of them."""


LAWS = [(name, seed) for name in CONSTRAINTS for seed in (1, 2)]


@pytest.mark.parametrize(("name", "seed"), [*LAWS, pytest.param("nonholonomic", 3, marks=[pytest.mark.native, pytest.mark.slow])])
def test_laws_of_constrained_motion(name, seed):
    """The equations themselves; P idempotent, symmetric in M, and nothing for A; power without that of the constraint."""
    robot = robot_of(seed, n=5 if seed > 2 else 9, mimic=seed == 2, armature=True)
    constraint, rng = CONSTRAINTS[name](robot), np.random.default_rng(seed)
    q, v, tau = robot.random(rng, 5), random_velocity(robot, rng, (5,)), random_velocity(robot, rng, (5,))
    v = constraints.project_velocity(robot, constraint, q, v)
    a, multipliers = cj.constrained_dynamics(robot, constraint, q, v, tau)
    A, M = constraint.jacobian(robot, q), cj.mass_matrix(robot, q)
    force = np.einsum("...ji,...j->...i", A, multipliers)
    size = 1 + np.abs(force).max() + np.abs(a).max()
    np.testing.assert_allclose(cj.inverse_dynamics(robot, q, v, a), tau + force, atol=1e-10 * size)
    np.testing.assert_allclose(np.einsum("...ij,...j->...i", A, a) + constraint.bias(robot, q, v), 0, atol=1e-10 * size)
    P = cj.constraint_projector(robot, constraint, q)
    np.testing.assert_allclose(P @ P, P, atol=1e-11 * np.abs(P).max())
    np.testing.assert_allclose(A @ P, 0, atol=1e-11 * np.abs(P).max())
    np.testing.assert_allclose(M @ P, np.swapaxes(M @ P, -1, -2), atol=1e-11 * np.abs(M).max() * np.abs(P).max())
    # The force of the constraint does no work: the rate of energy is the power of τ.
    np.testing.assert_allclose(np.sum(force * v, -1), 0, atol=1e-10 * size)
    h = 1e-6
    energy = lambda q, v: cj.kinetic_energy(robot, q, v) + cj.potential_energy(robot, q)
    ahead, behind = (energy(robot.integrate(q, s * h * v), v + s * h * a) for s in (1, -1))
    np.testing.assert_allclose((ahead - behind) / (2 * h), np.sum(tau * v, -1), rtol=1e-5, atol=1e-5 * size)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_multipliers_pseudo_velocities_and_connection_agree(name):
    """Three forms of one motion, to 1e-11: with multipliers (20), pseudo-velocities (22) and the connection (25)."""
    robot = robot_of(5, ONE_SCREW, 6, tree=False)
    constraint, rng = CONSTRAINTS[name](robot), np.random.default_rng(0)
    q, tau = robot.random(rng), random_velocity(robot, rng)
    v = constraints.project_velocity(robot, constraint, q, random_velocity(robot, rng))
    a, _ = cj.constrained_dynamics(robot, constraint, q, v, tau)
    size = 1 + np.abs(a).max()
    G, P = cj.constraint_connection(robot, constraint, q), cj.constraint_projector(robot, constraint, q)
    free = np.linalg.solve(cj.mass_matrix(robot, q), tau - cj.gravity_force(robot, q))
    np.testing.assert_allclose(P @ free - np.einsum("ijk,j,k", G, v, v), a, atol=1e-11 * size)
    reduced = constraints.Reduced(robot, constraint, q)
    rates = v[reduced.s]
    np.testing.assert_allclose(reduced.velocity(q, rates), v, atol=1e-11 * (1 + np.abs(v).max()))
    np.testing.assert_allclose(reduced.dynamics(q, rates, tau), a[reduced.s], atol=1e-11 * size)
    S = constraints.null_space(robot, constraint, q)
    np.testing.assert_allclose(S.T @ cj.mass_matrix(robot, q) @ S, np.eye(S.shape[1]), atol=1e-12)
    np.testing.assert_allclose(constraint.jacobian(robot, q) @ S, 0, atol=1e-12)
    # (22) for that basis, whose rate need not be known: the rest of a is across S.
    np.testing.assert_allclose(S.T @ (cj.inverse_dynamics(robot, q, v, a) - tau), 0, atol=1e-11 * size)


@pytest.mark.usefixtures("_way")
def test_pseudo_velocities_with_a_basis_of_the_users():
    """(21), (22) for a rolling wheel of the textbook: a disk upright on the plane, its place, heading and turn (x, y, θ, φ)."""
    m, r, spin, steer = 2.0, 0.3, 0.09, 0.05
    joints = [("x", cj.Joint.prismatic((1, 0, 0), name="x")), ("y", cj.Joint.prismatic((0, 1, 0), name="y"))]
    joints += [("heading", cj.Joint.revolute((0, 0, 1), name="heading")), ("turn", cj.Joint.revolute((0, 1, 0), name="turn"))]
    links, parent = [], "base"
    for name, joint in joints:
        solid = {"mass": m, "inertia": (steer, spin, steer)} if name == "turn" else {"mass": 0.0}
        links.append(cj.Link.solid(name, parent, joint, at(0, 0, r) if name == "x" else np.eye(4), **solid))
        parent = name
    robot = cj.Robot("wheel", links)
    basis = PseudoVelocities(lambda q: np.array([[r * np.cos(q[2]), 0], [r * np.sin(q[2]), 0], [0, 1], [1, 0]]))
    slip = Constraint.rolling(robot, "turn", r, axle=(0, 1, 0))
    q, eta = np.array([0.1, -0.2, 0.7, 0.3]), np.array([1.2, -0.8])
    basis.check(robot, slip, q)
    v, tau = basis.velocity(robot, q, eta), np.array([0.0, 0.0, 0.4, 0.9])
    np.testing.assert_allclose(basis.of(robot, q, v), eta, atol=1e-14)
    np.testing.assert_allclose(basis.inertia(robot, q), np.diag([spin + m * r**2, steer]), atol=1e-14)
    rate = basis.dynamics(robot, q, eta, tau)
    np.testing.assert_allclose(rate, [0.9 / (spin + m * r**2), 0.4 / steer], rtol=1e-12)
    a, _ = cj.constrained_dynamics(robot, slip, q, v, tau)  # the height is held by the robot itself: a row that is nothing
    np.testing.assert_allclose(a, basis.basis(robot, q) @ rate + basis.rate(robot, q, eta), atol=1e-12)
    with pytest.raises(ConstraintError, match="moves against row 'turn slip"):
        PseudoVelocities(lambda q: np.array([[1.0, 0], [0, 0], [0, 1], [1, 0]])).check(robot, slip, q)
    with pytest.raises(ConstraintError, match="1 columns; the constraint leaves 2"):
        PseudoVelocities(lambda q: np.array([[0.0], [0.0], [1.0], [0.0]])).check(robot, slip, q)
    with pytest.raises(ShapeError, match=r"expected \(4, k\)"):
        PseudoVelocities(lambda q: np.eye(3)).basis(robot, q)


def test_connection_is_that_of_the_definition():
    """(26) from derivatives of P⊥ taken by differences; (27) for fields in D; and compatibility with the metric on D."""
    robot = robot_of(7, ("revolute", "prismatic"), 4, tree=False)
    constraint, q, h = Constraint.point(robot, "tip", "xz"), robot.random(0), 1e-5
    N = lambda x: np.eye(robot.nv) - cj.constraint_projector(robot, constraint, x)
    steps = h * np.eye(robot.nv)
    dN = np.stack([(N(q + s) - N(q - s)) / (2 * h) for s in steps], 1)  # i, j, k
    G = cj.connection(robot, q)
    wanted = G + dN + np.einsum("ijl,lk->ijk", G, N(q)) - np.einsum("il,ljk->ijk", N(q), G)
    found = cj.constraint_connection(robot, constraint, q)
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())
    # A field in D: y(q) = P(q) c. ∇̃_x y = P ∇_x y.
    c, x, P = np.array([1.0, -0.5, 0.3, 0.8]), np.array([0.2, 0.7, -0.4, 0.5]), np.eye(4) - N(q)
    dy = -np.einsum("ijk,k->ij", dN, c)
    along = cj.covariant_derivative(robot, q, x, P @ c, dy)
    np.testing.assert_allclose(dy @ x + np.einsum("ijk,j,k", found, x, P @ c), P @ along, atol=1e-8 * np.abs(wanted).max())


def test_geodesics_keep_energy_and_the_constraint():
    robot = robot_of(8, ("revolute",), 4, tree=False)
    q = robot.random(3)
    constraint = Constraint.point(robot, "tip", "xy").at(robot, q)
    v = constraints.project_velocity(robot, constraint, q, np.array([0.5, -1.0, 0.4, 0.2]))
    t = np.linspace(0, 0.5, 3)
    qs, vs = constraints.constrained_geodesic(robot, constraint, q, v, t)
    np.testing.assert_allclose(cj.kinetic_energy(robot, qs, vs), cj.kinetic_energy(robot, q, v), rtol=1e-11)
    np.testing.assert_allclose(constraint.residual(robot, qs), 0, atol=1e-11)
    with pytest.raises(ConstraintError, match=r"v violates the constraint: row 'tip x' is .*project_velocity"):
        constraints.constrained_geodesic(robot, constraint, q, v + 0.1, t)


@pytest.mark.parametrize("name", [*CONSTRAINTS, pytest.param("nonholonomic", marks=[pytest.mark.native, pytest.mark.slow])])
def test_derivatives_are_those_of_differences(name):
    robot = robot_of(9, ("revolute", "prismatic", "spherical"), 4)
    constraint, rng = CONSTRAINTS[name](robot), np.random.default_rng(1)
    q, v, tau = robot.random(rng), random_velocity(robot, rng), random_velocity(robot, rng)
    found = constraints.constrained_dynamics_derivatives(robot, constraint, q, v, tau)
    h, e = 1e-6, 1e-6 * np.eye(robot.nv)
    moved = [lambda e: (robot.integrate(q, e), v, tau), lambda e: (q, v + e, tau), lambda e: (q, v, tau + e)]
    for which, state in enumerate(moved):
        up, down = (cj.constrained_dynamics(robot, constraint, *state(s * e)) for s in (1, -1))
        for derivative, y1, y0 in ((found[which], up[0], down[0]), (found[3 + which], up[1], down[1])):
            size = 1 + np.abs(derivative).max() + np.abs(y1).max()
            np.testing.assert_allclose(derivative, ((y1 - y0) / (2 * h)).T, atol=1e-7 * size)


def test_derivatives_of_no_states():
    robot = cj.load("planar2r")
    found = constraints.constrained_dynamics_derivatives(
        robot, Constraint.point(robot, "tip", "x"), *(np.zeros((0, 2)) for _ in range(3))
    )
    assert [x.shape for x in found] == [(0, 2, 2)] * 3 + [(0, 1, 2)] * 3


def _turned(robot, rows="spherical"):
    """A planar loop whose rows stand askew to its plane, so that they depend on each other with weights that change with q."""
    T = np.eye(4)
    T[:3, :3] = so3.exp(np.array([0.4, 0.7, -0.3]))
    robot = robot.with_frame("pin'", "pin", T).with_frame("tip'", "tip", T)
    return robot, Constraint.loop(robot, "pin'", "tip'", rows)


@pytest.mark.parametrize("name", ["askew", "twice", "with a gear", "cylindrical"])
def test_derivatives_of_the_shortest_multipliers(name):
    """Redundant rows share their load by their lengths, which change with q: ∂λ is that of the λ that `constrained_dynamics` gives."""
    robot, askew = _turned(four_bar(), "cylindrical" if name == "cylindrical" else "spherical")
    loop = Constraint.loop(robot, "pin", "tip", "revolute")
    constraint = {"twice": askew & askew, "with a gear": askew & Constraint.gear(robot, {"crank": 2.0}, None)}.get(name, askew)
    q = constraints.assemble(robot, loop, [0.9, -0.5, -2.0], fixed="crank")
    v, tau = constraints.project_velocity(robot, constraint, q, np.array([1.7, 0.0, 0.0])), np.array([0.3, -0.2, 0.1])
    assert constraints.constraint_rank(robot, constraint, q).redundant
    found = constraints.constrained_dynamics_derivatives(robot, constraint, np.stack([q, q]), v, tau)
    h, run = 1e-5, lambda *state: cj.constrained_dynamics(robot, constraint, *state)[1]
    for k, e in enumerate(h * np.eye(3)):
        for derivative, up, down in (
            (found.dlambda_dq, run(q + e, v, tau), run(q - e, v, tau)),
            (found.dlambda_dv, run(q, v + e, tau), run(q, v - e, tau)),
            (found.dlambda_dtau, run(q, v, tau + e), run(q, v, tau - e)),
        ):
            np.testing.assert_allclose(derivative[1, :, k], (up - down) / (2 * h), atol=1e-7 * (1 + np.abs(derivative).max()))


def test_inverse_dynamics_and_free_torques():
    robot = four_bar()
    constraint = Constraint.loop(robot, "pin", "tip", "revolute")
    q = constraints.assemble(robot, constraint, [0.9, -0.6, -2.0], fixed="crank")
    reduced = constraints.Reduced(robot, constraint, q, ["crank"])
    v, tau = reduced.velocity(q, [1.7]), np.array([0.3, -0.2, 0.5])
    a, _ = cj.constrained_dynamics(robot, constraint, q, v, tau)
    for actuated in (None, ["crank"], ["rocker", "coupler"]):
        found, multipliers = constraints.constrained_inverse_dynamics(robot, constraint, q, v, a, actuated)
        again, forces = cj.constrained_dynamics(robot, constraint, q, v, found)
        np.testing.assert_allclose(again, a, rtol=1e-9)
        force = np.einsum("ji,j->i", constraint.jacobian(robot, q), multipliers - forces)
        np.testing.assert_allclose(force, 0, atol=1e-9)
        free = constraints.free_torques(robot, constraint, q, actuated)
        assert free.shape == (3, 2 if actuated is None else len(actuated) - 1)
        moved, _ = cj.constrained_dynamics(robot, constraint, q, v, found + free @ np.ones(free.shape[1]))
        np.testing.assert_allclose(moved, a, rtol=1e-9)
        np.testing.assert_allclose(free.T @ found, 0, atol=1e-9)  # the smallest of them
        assert not np.any(np.delete(found, [robot.v_names.index(x) for x in actuated or robot.v_names]))
    with pytest.raises(ConstraintError, match=r"a violates the constraint: row 'pin to tip x'"):
        constraints.constrained_inverse_dynamics(robot, constraint, q, v, a + 1)
    with pytest.raises(ConstraintError, match=r"needs a force of .* which has no drive"):
        constraints.constrained_inverse_dynamics(robot, constraint, q, v, a, [])


@pytest.mark.parametrize("seed", [1, 2])
def test_frames_held_as_by_pinocchio(seed):
    """Two frames of a tree with a free base held, and wrenches of the constraint, against Pinocchio's constraint dynamics."""
    pin = pytest.importorskip("pinocchio")
    base = cj.Link.solid("trunk", "base", cj.Joint.free(name="root"), np.eye(4), mass=5.0, inertia=0.3 * np.ones(3))
    limbs = robot_of(seed, ("revolute", "prismatic"), 12, tree=False)
    robot = cj.Robot("figure", [base]).attach(limbs, "trunk", at(0.2), "a ").attach(limbs, "trunk", at(-0.2), "b ")
    feet = ("a tip", "b tip")
    constraint = Constraint.all(Constraint.frame(robot, foot) for foot in feet)
    rng = np.random.default_rng(seed)
    q, v, tau = robot.random(rng), random_velocity(robot, rng), random_velocity(robot, rng)
    a, multipliers = cj.constrained_dynamics(robot, constraint, q, v, tau)
    interop = cj.interop.pinocchio
    model = interop.to_pinocchio(robot)
    data, models, datas = model.createData(), pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for foot in feet:
        frame = model.frames[model.getFrameId(foot)]
        contact = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_6D, model, frame.parentJoint, frame.placement, pin.ReferenceFrame.LOCAL
        )
        models.append(contact)
        datas.append(contact.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    state = [interop.q_to_pinocchio(robot, model, q), *(interop.v_to_pinocchio(robot, model, x) for x in (v, tau))]
    found = pin.constraintDynamics(model, data, *state, models, datas, pin.ProximalSettings(1e-14, 0.0, 1))
    np.testing.assert_allclose(interop.v_from_pinocchio(robot, model, found), a, atol=1e-9 * np.abs(a).max())
    theirs = np.concatenate([np.concatenate([x.contact_force.angular, x.contact_force.linear]) for x in datas])
    np.testing.assert_allclose(theirs, multipliers, atol=1e-8 * np.abs(multipliers).max())


# --- rows that depend on each other


@pytest.mark.parametrize(
    "_way", ["as written", pytest.param("native", marks=[pytest.mark.native, pytest.mark.slow])], indirect=True
)
def test_redundant_rows_change_no_motion(_way):
    robot = robot_of(1, ("revolute", "spherical"), 4, tree=False)
    once = Constraint.twist(robot, "tip", "x y z", "world") & Constraint.twist(robot, "l2", "rx")
    twice = once & Constraint.point(robot, "tip", "xyz")
    q, v, tau = robot.random(2, 3), random_velocity(robot, 3, (3,)), random_velocity(robot, 4, (3,))
    a, multipliers = cj.constrained_dynamics(robot, once, q, v, tau)
    b, shared = cj.constrained_dynamics(robot, twice, q, v, tau)
    np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())
    np.testing.assert_allclose(shared[:, :3] + shared[:, 4:], multipliers[:, :3], rtol=1e-8, atol=1e-8 * np.abs(shared).max())
    np.testing.assert_allclose(shared[:, :3], shared[:, 4:], rtol=1e-8, atol=1e-8 * np.abs(shared).max())  # each bears half
    P = [cj.constraint_projector(robot, x, q) for x in (once, twice)]
    np.testing.assert_allclose(P[0], P[1], atol=1e-9 * np.abs(P[0]).max())
    rank = constraints.constraint_rank(robot, twice, q[0])
    assert (rank.rank, rank.freedoms, rank.redundant) == (4, robot.nv - 4, ("tip x", "tip y", "tip z"))
    assert str(rank) == f"rank 4, {robot.nv - 4} freedoms; implied by other rows: tip x, tip y, tip z"


@pytest.mark.parametrize(
    "_way", ["as written", pytest.param("native", marks=[pytest.mark.native, pytest.mark.slow])], indirect=True
)
def test_redundant_rows_along_other_axes_change_no_motion(_way):
    """A frame's origin held by its own axes and by those of space: for velocities that satisfy both, one motion and one force."""
    robot = robot_of(1, ("revolute", "spherical"), 4, tree=False)
    once = Constraint.frame(robot, "tip", "x y z") & Constraint.twist(robot, "l2", "rx")
    twice = once & Constraint.point(robot, "tip", "xyz")
    q, tau = robot.random(2, 3), random_velocity(robot, 4, (3,))
    v = constraints.project_velocity(robot, once, q, random_velocity(robot, 3, (3,)))
    a, multipliers = cj.constrained_dynamics(robot, once, q, v, tau)
    b, shared = cj.constrained_dynamics(robot, twice, q, v, tau)
    np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())
    turned = lambda x: np.einsum("kij,kj->ki", cj.pose(robot, q, "tip")[:, :3, :3], x)
    np.testing.assert_allclose(
        turned(shared[:, :3]) + shared[:, 4:], turned(multipliers[:, :3]), rtol=1e-8, atol=1e-8 * np.abs(shared).max()
    )
    assert constraints.constraint_rank(robot, twice, q[0]).redundant == ("tip x", "tip y", "tip z")


@pytest.mark.usefixtures("_way")
def test_a_state_that_loses_rank_does_not_disturb_the_others_of_its_batch():
    """The tip of a stretched arm is held: along the arm it cannot move anyway."""
    robot = four_bar()
    constraint = Constraint.point(robot, "tip", "xy")
    q = np.array([[0.3, 0.4, -0.6], [0.0, 0.0, 0.0], [0.1, -0.9, 0.8]])
    assert [constraints.constraint_rank(robot, constraint, x).rank for x in q] == [2, 1, 2]
    tau = np.array([0.1, 0.2, 0.3])
    whole = cj.constrained_dynamics(robot, constraint, q, np.zeros(3), tau)
    for k in range(3):
        for x, y in zip(cj.constrained_dynamics(robot, constraint, q[k], np.zeros(3), tau), whole, strict=True):
            np.testing.assert_allclose(x, y[k], rtol=1e-12, atol=1e-12)


def test_rows_that_vanish_almost_everywhere_are_not_forgotten():
    """A stop that sets in at an angle which none of the configurations reaches that were tried beforehand."""
    robot = four_bar()
    stop = Constraint.from_jacobian(lambda q: np.array([[cj.where(q[0] > 20.0, 1.0, 0.0), 0.0, 0.0]]))
    q = np.array([[0.3, 0.2, 0.1], [21.0, 0.2, 0.1]])
    a, multipliers = cj.constrained_dynamics(robot, stop, q, np.zeros(3), np.zeros(3))
    free = cj.forward_dynamics(robot, q, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(a[0], free[0], rtol=1e-12)
    assert abs(a[1, 0]) < 1e-12 < abs(free[1, 0])
    assert multipliers[0] == 0 != multipliers[1]
    P = cj.constraint_projector(robot, stop, q)
    np.testing.assert_array_equal(P[0], np.eye(3))
    np.testing.assert_allclose(P[1][0], 0, atol=1e-15)


def test_contradicting_rows_are_named():
    robot = four_bar()
    tip = Constraint.point(robot, "tip", "x")
    # Twice the same row, of which one has a rate that the other has not.
    other = Constraint.from_jacobian(lambda q: cj.jacobian(robot, q, "tip", "world")[3:4] * (1.0 + q[0] - 0.9))
    q, v = np.array([0.9, -0.6, -2.0]), np.array([1.0, 0.3, 0.2])
    with pytest.raises(ConstraintError, match=r"contradict: the acceleration .* cannot hold in tip x \(by .*, row \(by"):
        cj.constrained_dynamics(robot, tip & other, q, v, np.zeros(3))
    apart = Constraint.point(robot, "tip", "x", at=1.0) & Constraint.point(robot, "tip", "x", at=1.1)
    with pytest.raises(ConstraintError, match=r"does not close: the smallest gap found is 0\.05 \(tip x by"):
        constraints.assemble(robot, apart, q)


def test_rows_that_are_not_numbers_are_named():
    """A cable without length has no direction."""
    robot = four_bar()
    cable = Constraint.cable(robot, ["crank", "base"])
    with np.errstate(all="ignore"), pytest.raises(ConstraintError, match=r"row 'cable crank base' is not a number at q ="):
        cj.constrained_dynamics(robot, cable, robot.neutral(), np.zeros(3), np.zeros(3))


def test_states_that_are_not_numbers_stay_so():
    robot = four_bar()
    constraint, q = Constraint.point(robot, "tip", "xy"), np.array([[0.9, -0.6, -2.0], [np.nan, 0, 0]])
    a, multipliers = cj.constrained_dynamics(robot, constraint, q, np.zeros(3), np.zeros(3))
    assert np.isfinite(a[0]).all()
    assert np.isnan(a[1]).all()
    assert np.isnan(multipliers[1]).all()


# --- the ways to run


@pytest.mark.native
@pytest.mark.parametrize("part", range(4))
def test_native_is_as_written(part, monkeypatch):
    """Every kind of constraint, several at once."""
    robot = robot_of(6, ("revolute", "prismatic", "spherical"), 5)
    constraint, rng = Constraint.all(make(robot) for make in list(MADE.values())[part::4]), np.random.default_rng(0)
    q, v = robot.random(rng, (2, 3)), random_velocity(robot, rng, (3,))
    run = lambda: [
        constraint.residual(robot, q),
        constraint.jacobian(robot, q),
        constraint.bias(robot, q, v),
    ]
    native = run()
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    other = robot.with_gravity(robot.gravity)  # a robot that remembers no code
    assert not other._fast
    robot = other
    for x, y in zip(native, run(), strict=True):
        assert x.shape == y.shape
        assert x.shape[:2] == (2, 3)
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9 * (1 + np.abs(y).max()))


@pytest.mark.native
def test_functions_that_differ_have_code_of_their_own():
    robot, q = four_bar(), np.array([0.3, 0.2, 0.1])
    for k in range(3):
        constraint = Constraint.holonomic(lambda q, k=k: q[:1] * (k + 1.0))
        np.testing.assert_array_equal(constraint.jacobian(robot, q), [[k + 1.0, 0, 0]])


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_other_array_libraries(library):
    robot = robot_of(6, ("revolute",), 3, tree=False)
    constraint = Constraint.holonomic(lambda q: np.sin(q[:1]) * q[1:2] - 0.3) & Constraint.point(robot, "tip", "z")
    q, v, tau = robot.random(0, 2), random_velocity(robot, 1, (2,)), random_velocity(robot, 2)
    wanted = cj.constrained_dynamics(robot, constraint, q, v, tau)
    if library == "jax":
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        found = cj.constrained_dynamics(robot, constraint, *map(jax.numpy.asarray, (q, v, tau)))
    else:
        torch = pytest.importorskip("torch")
        found = cj.constrained_dynamics(robot, constraint, *map(torch.tensor, (q, v, tau)))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-9, atol=1e-9 * np.abs(y).max())


@pytest.mark.usefixtures("_way")
def test_constrained_motion_compiles_in_functions_of_users():
    robot = four_bar()
    constraint = Constraint.point(robot, "tip", "xyz")

    def step(robot, q, v):
        return v + 0.01 * cj.constrained_dynamics(robot, constraint, q, v, 0.0 * v)[0]

    q, v = np.array([0.9, -0.6, -2.0]), np.array([1.0, 0.3, 0.2])
    np.testing.assert_allclose(cj.compile(step, robot)(q, v), step(robot, q, v), rtol=1e-12)
    varied = cj.compile(step, robot, parameters=["gravity"])
    np.testing.assert_allclose(varied(q, v, robot.gravity), step(robot, q, v), rtol=1e-12)


@pytest.mark.usefixtures("_way")
def test_single_precision_is_decided_in_double():
    """Rows that depend on each other are told from others by digits that single precision has not."""
    robot = four_bar()
    once, q, v = Constraint.point(robot, "tip", "xy"), np.array([[0.9, -0.6, -2.0]] * 3), np.array([1.0, 0.3, 0.2])
    for constraint in (once, once & Constraint.point(robot, "tip", "x")):
        single = cj.constrained_dynamics(robot, constraint, *(x.astype(np.float32) for x in (q, v, 0 * v)))
        double = cj.constrained_dynamics(robot, constraint, q, v, 0 * v)
        for x, y in zip(single, double, strict=True):
            assert x.dtype == np.float32
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
        assert cj.constraint_projector(robot, constraint, q.astype(np.float32)).dtype == np.float32


# --- cases


@pytest.mark.usefixtures("_way")
def test_19_chaplygin_sleigh():
    case = load(19)
    x, bare = case.inputs, case.robot
    blade = bare.with_frame("blade", bare.link_names[-1], at(-0.4))
    for robot, constraint in ((bare, Constraint.from_jacobian(knife)), (blade, Constraint.twist(blade, "blade", "y"))):
        a, multipliers = cj.constrained_dynamics(robot, constraint, x.q, x.qd, x.Y)
        P, G = cj.constraint_projector(robot, constraint, x.q), cj.constraint_connection(robot, constraint, x.q)
        check(case, qdd=a, lam=multipliers, P=P, constraint_connection=G)
        np.testing.assert_allclose(constraint.jacobian(robot, x.q), x.A, rtol=1e-12, atol=1e-15)
        basis = PseudoVelocities(lambda q: np.array([[np.cos(q[2]), 0.0], [np.sin(q[2]), 0.0], [0.0, 1.0]]))
        check(
            case,
            etadot=basis.dynamics(robot, x.q, x.eta, x.Y),
            etadot_force_free=basis.dynamics(robot, x.q, x.eta, 0 * x.Y),
        )


@pytest.mark.native  # as written integration takes long
def test_19_the_path_of_the_sleigh():
    case, basis = load(19), PseudoVelocities(lambda q: np.array([[np.cos(q[2]), 0.0], [np.sin(q[2]), 0.0], [0.0, 1.0]]))
    x, robot = case.inputs, case.robot
    end, v = constraints.constrained_geodesic(robot, Constraint.from_jacobian(knife), x.q, x.qd, 2.0)
    np.testing.assert_allclose(end, case.expected["q_at_T_force_free"], atol=case.tolerance["trajectory_atol"])
    np.testing.assert_allclose(
        basis.of(robot, end, v), case.expected["eta_at_T_force_free"], atol=case.tolerance["trajectory_atol"]
    )


@pytest.mark.usefixtures("_way")
def test_21_four_bar():
    case = load(21)
    x, tip = case.inputs, case.inputs.tip_home
    robot = case.robot.with_frame("pin", "base", at(*x.pin_xy))
    robot = robot.with_frame("tip", robot.link_names[-1], at(tip[0] - case.model["M"][2][0][3]))
    for constraint, rows in (
        (Constraint.point(robot, "tip", "xy", at=x.pin_xy), [0, 1]),
        (Constraint.point(robot, "tip", "xyz", at=[*x.pin_xy, 0.0]), [0, 1]),
        (Constraint.loop(robot, "pin", "tip", "revolute"), [2, 3]),
    ):
        a, multipliers = cj.constrained_dynamics(robot, constraint, x.q, x.qd, x.Y)
        check(case, A=constraint.jacobian(robot, x.q)[rows], qdd=a, lam=multipliers[rows])
        assert not np.delete(multipliers, rows).any()
        reduced = constraints.Reduced(robot, constraint, x.q, [robot.v_names[0]])
        check(
            case,
            S=reduced.basis(x.q)[:, 0],
            reduced_inertia=reduced.inertia(x.q)[0, 0],
            reduced_sdd=reduced.dynamics(x.q, x.qd[:1], x.Y)[0],
        )


# --- bad input


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda r: Constraint.point(r, "tpi"), "no frame is named 'tpi'. Did you mean 'tip'"),
        (lambda r: Constraint.point(r, "tip", "xx"), "axes is 'xx'; expected some of x y z, each once"),
        (lambda r: Constraint.point(r, "tip", "xw"), "axes is 'xw'"),
        (lambda r: Constraint.point(r, "tip", "xy", at=(1.0,)), "at is .* expected 2 numbers"),
        (lambda r: Constraint.frame(r, "tip", "ra"), "axes is 'ra'; expected some of rx ry rz x y z"),
        (lambda r: Constraint.loop(r, "rocker", "tip"), "are on one link: that is no loop"),
        (lambda r: Constraint.loop(r, "pin", "tip", "ball"), "no loop joint is named 'ball'"),
        (lambda r: Constraint.cable(r, ["tip"]), "expected two or more names"),
        (lambda r: Constraint.cable(r, ["pin", "tip"], -1.0), "length is -1.0; expected a positive"),
        (lambda r: Constraint.gear(r, {"crank": 0.0}), "some that are not zero"),
        (lambda r: Constraint.rolling(r, "tip", 0.0), "radius is 0.0"),
        (lambda r: Constraint.rolling(r, "tip", 0.1, axle=(0, 0, 0)), "axle is zero"),
        (lambda r: Constraint.rolling(r, "tip", 0.1, on="rocker"), "on the same link"),
        (lambda r: Constraint.twist(r, "tip", "y", "space"), "reference is 'space'"),
        (lambda r: Constraint.holonomic(3), "expected a function of q, not 3"),
        (lambda r: Constraint.all([]), "no constraint is given"),
        (lambda r: Constraint.point(r, "tip") & 3, "the constraint is int; expected a Constraint"),
        (lambda r: Constraint.from_jacobian(lambda q: q[:2]).names(r), r"returned an array of shape \(1, 2\); expected \(m, 3\)"),
        (lambda r: cj.constrained_dynamics(r, "tip", r.neutral(), [0, 0, 0], [0, 0, 0]), "the constraint is str"),
        (
            lambda r: constraints.check_state(r, Constraint.point(r, "tip", "x", at=0.0), r.neutral(), [0, 0, 0]),
            "q is off .* 'tip x'",
        ),
        (lambda r: constraints.Reduced(r, Constraint.point(r, "tip", "xy"), [0.9, -0.6, -2], ["crnk"]), "Did you mean 'crank'"),
        (
            lambda r: constraints.Reduced(r, Constraint.point(r, "tip", "xy"), [0.9, -0.6, -2], ["crank", "rocker"]),
            "has 1 freedoms",
        ),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(CoadjointError, match=words):
        make(four_bar())


def test_unknown_names_are_key_errors():
    with pytest.raises(UnknownNameError):
        Constraint.gear(four_bar(), {"crnk": 1.0})


def test_a_free_body_with_its_frame_held_does_not_move():
    """The multipliers are the wrench on the frame: weight, and the torque of what is off its centre."""
    robot = free_body(2.0, (0.1, 0.2, 0.3)).with_frame("handle", "body", at(0.5))
    constraint = Constraint.frame(robot, "handle")
    a, wrench = cj.constrained_dynamics(robot, constraint, robot.neutral(), np.zeros(6), np.zeros(6))
    np.testing.assert_allclose(a, 0, atol=1e-12)
    np.testing.assert_allclose(wrench, [0, 0.5 * 2 * 9.81, 0, 0, 0, 2 * 9.81], atol=1e-12)
