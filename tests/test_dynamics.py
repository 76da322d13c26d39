"""Laws that the recursive dynamics obey on random chains and trees with joints of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from laws import derivative, rate, relative
from random_robots import random_robot

SEEDS = range(12)


@pytest.fixture(params=SEEDS)
def case(request):
    """A random robot with states, batch shape (3, 2)."""
    rng = np.random.default_rng(request.param)
    robot = random_robot(rng, 7, tree=True, mimic=request.param % 3 == 2, armature=request.param % 2 == 1)
    q = robot.random(rng, (3, 2))
    v, a = rng.normal(size=(2, 3, 2, robot.nv))
    wrenches = rng.normal(size=(3, 2, robot.n_links, 6))
    return robot, q, v, a, wrenches


def test_inverse_dynamics_is_affine_in_acceleration_with_the_mass_matrix(case):
    robot, q, v, a, wrenches = case
    tau = cj.inverse_dynamics(robot, q, v, a, wrenches)
    affine = (cj.mass_matrix(robot, q) @ a[..., None])[..., 0] + cj.bias_force(robot, q, v, wrenches)
    assert relative(tau, affine) < 1e-12


def test_forward_dynamics_inverts_inverse_dynamics(case):
    robot, q, v, a, wrenches = case
    tau = cj.inverse_dynamics(robot, q, v, a, wrenches)
    assert relative(cj.forward_dynamics(robot, q, v, tau, wrenches), a) < 1e-9


def test_friction_opposes_motion_and_dissipates(case):
    robot, q, v, a, _ = case
    for name in robot.joint_names:
        if robot.links[robot.joint_index(name)].joint.kind != "fixed":
            robot = robot.with_joint(name, damping=0.3, friction=0.7)
    tau = cj.inverse_dynamics(robot, q, v, a, friction=True)
    lost = ((tau - cj.inverse_dynamics(robot, q, v, a)) * v).sum(-1)
    tree_v = robot.tree_v(v)
    assert relative(lost, (0.3 * tree_v**2 + 0.7 * np.abs(tree_v)).sum(-1)) < 1e-12
    assert relative(cj.forward_dynamics(robot, q, v, tau, friction=True), a) < 1e-9


def test_mass_matrix_is_symmetric_positive_and_gives_the_kinetic_energy(case):
    robot, q, v, _, _ = case
    M = cj.mass_matrix(robot, q)
    assert np.array_equal(M, M.swapaxes(-1, -2))
    assert np.linalg.eigvalsh(M).min() > 0
    assert relative(cj.kinetic_energy(robot, q, v), 0.5 * np.einsum("...i,...ij,...j", v, M, v)) < 1e-12


def test_inverse_of_the_mass_matrix(case):
    robot, q, *_ = case
    product = cj.mass_matrix(robot, q) @ cj.mass_matrix_inverse(robot, q)
    assert np.max(np.abs(product - np.eye(robot.nv))) < 1e-9


def test_mass_matrix_is_the_pullback_of_the_links_metrics(case):
    """M = Σ Jᵢᵀ 𝒥ᵢ Jᵢ over the links, Park, Bobrow & Ploen (1995), section 4.4."""
    robot, q, *_ = case
    v_map = robot._v_map if robot._v_map is not None else np.eye(robot.nv)
    M = v_map.T @ np.diag(robot.armature) @ v_map
    for i, link in enumerate(robot.link_names):
        J = cj.jacobian(robot, q, link)
        M = M + J.swapaxes(-1, -2) @ cj.lie.inertia.spatial(robot.inertias[i]) @ J
    assert relative(cj.mass_matrix(robot, q), M) < 1e-12


def test_gravity_is_the_differential_of_the_potential(case):
    robot, q, v, *_ = case
    rate = derivative(robot, lambda x: cj.potential_energy(robot, x), q, v)
    assert relative((cj.gravity_force(robot, q) * v).sum(-1), rate) < 1e-9


def test_gravity_force_is_the_bias_at_rest(case):
    robot, q, *_ = case
    assert relative(cj.gravity_force(robot, q), cj.bias_force(robot, q, np.zeros(robot.nv))) < 1e-12


def test_power_of_the_joint_forces_is_the_rate_of_energy(case):
    """d(T + U)/dt = τ·v along the motion with velocity v and acceleration a."""
    robot, q, v, a, _ = case

    def energy(t):
        # v(t) = v + t a; to first order in t the configuration moves along v, and U, T are functions of the state alone.
        x = robot.integrate(q, t * v)
        return cj.kinetic_energy(robot, x, v + t * a) + cj.potential_energy(robot, x)

    assert relative((cj.inverse_dynamics(robot, q, v, a) * v).sum(-1), rate(energy, 1e-3)) < 1e-8


def test_generalized_force_is_the_pullback_of_wrenches(case):
    robot, q, v, a, wrenches = case
    pulled = sum(
        np.einsum("...ij,...i->...j", cj.jacobian(robot, q, link), wrenches[..., i, :]) for i, link in enumerate(robot.link_names)
    )
    assert relative(cj.generalized_force(robot, q, wrenches), pulled) < 1e-12
    without = cj.inverse_dynamics(robot, q, v, a)
    assert relative(cj.inverse_dynamics(robot, q, v, a, wrenches), without - pulled) < 1e-12


def test_reactions_hold_the_joint_forces(case):
    robot, q, v, a, wrenches = case
    F = cj.joint_reactions(robot, q, v, a, wrenches)
    from coadjoint.dynamics.newton_euler import subspaces

    S = subspaces(robot, robot.tree_q(q))
    tau = np.concatenate(
        [
            np.einsum("...ki,...i->...k", np.broadcast_to(S[i], (3, 2, *S[i].shape[-2:])), F[..., i, :])
            for i in range(robot.n_links)
        ],
        -1,
    )
    tau = robot.from_tree(tau + robot.armature * robot.tree_v(a))
    assert relative(tau, cj.inverse_dynamics(robot, q, v, a, wrenches)) < 1e-12


def test_momentum_changes_by_what_acts_from_outside(case):
    """d(momentum)/dt = weight + the reaction of the base, here with wrenches zero: Σ over the joints at the base."""
    robot, q, v, a, _ = case
    momentum = lambda t: cj.momentum(robot, robot.integrate(q, t * v), v + t * a)
    F, poses = cj.joint_reactions(robot, q, v, a), cj.forward_kinematics(robot, q)
    outside = 0
    for i, parent in enumerate(robot.parents):
        if parent < 0:
            outside = outside + cj.lie.se3.Ad_inv_dual_act(poses[..., i, :, :], F[..., i, :])
    weight = cj.total_mass(robot) * robot.gravity
    c = cj.center_of_mass(robot, q)
    outside = outside + np.concatenate([np.cross(c, weight), np.broadcast_to(weight, c.shape)], -1)
    assert relative(outside, rate(momentum, 1e-3)) < 1e-8


def test_centroidal_momentum(case):
    robot, q, v, *_ = case
    h = cj.centroidal_momentum(robot, q, v)
    assert relative((cj.centroidal_momentum_matrix(robot, q) @ v[..., None])[..., 0], h) < 1e-12
    velocity = derivative(robot, lambda x: cj.center_of_mass(robot, x), q, v)
    assert relative(cj.total_mass(robot) * velocity, h[..., 3:]) < 1e-8


def test_batches_broadcast(case):
    robot, q, v, a, wrenches = case
    tau = cj.inverse_dynamics(robot, q[:, :1], v[0, 0], a[:1], wrenches[:, :1])
    assert tau.shape == (3, 2, robot.nv)
    one = cj.inverse_dynamics(robot, q[2, 0], v[0, 0], a[0, 1], wrenches[2, 0])
    assert relative(tau[2, 1], one) < 1e-13
    assert cj.pose(robot, q, robot.base).shape == (3, 2, 4, 4)


def test_a_robot_that_moves_no_mass_says_so():
    massless = cj.Robot("ghost", [cj.Link("link", "base", cj.Joint.revolute(name="hinge"))])
    with pytest.raises(cj.errors.SingularMassMatrixError, match="joint 'hinge' moves no mass"):
        cj.forward_dynamics(massless, [0.1], [0.2], [0.3])
    assert cj.inverse_dynamics(massless, [0.1], [0.2], [0.3]) == pytest.approx([0.0])


def test_a_singular_configuration_says_so():
    """A point mass on a universal joint at its pole, where one axis passes through the mass."""
    arm = cj.Link.solid("bob", "base", cj.Joint.universal((0, 0, 1), (0, 1, 0)), mass=1.3, com=(0.7, 0, 0))
    robot = cj.Robot("pendulum", [arm])
    regular, pole = [0.3, 0.5], [0.3, np.pi / 2]
    assert np.all(np.isfinite(cj.forward_dynamics(robot, regular, [0.1, 0.2], [0.0, 0.0])))
    for call in (lambda q: cj.forward_dynamics(robot, q, [0.1, 0.2], [0.0, 0.0]), lambda q: cj.mass_matrix_inverse(robot, q)):
        with pytest.raises(cj.errors.SingularMassMatrixError, match="bob_joint"):
            call(pole)
        with pytest.raises(cj.errors.SingularMassMatrixError, match="state 1"):
            call([regular, pole])


def test_a_motion_of_several_joints_that_moves_no_mass_says_so():
    """A base without mass may turn one way and the arm's first joint the other: neither alone moves nothing."""
    robot = cj.load("panda", base="free")
    message = r"joint 'root_joint' and others, moving together, move no mass in state 1, q = \[.*\]\. Give link 'base' \(or"
    with pytest.raises(cj.errors.SingularMassMatrixError, match=message):
        cj.forward_dynamics(robot, np.stack([np.full(14, np.nan), robot.neutral()]), np.zeros(13), np.zeros(13))
    steady = robot.with_inertia("base", mass=3.0, inertia=0.1)
    states = np.stack([steady.neutral(), np.full(14, np.nan), np.zeros(14)])
    with np.errstate(invalid="ignore"):
        found = cj.forward_dynamics(steady, states, np.zeros(13), np.zeros(13))
    assert np.isfinite(found).all(-1).tolist() == [True, False, False]
