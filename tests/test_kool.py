"""Kool's line vectors: case 27, and equal to the recursion, the mass matrix and differences of the energy on random trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coadjoint as cj
from acceptance import load
from coadjoint.dynamics import kool
from coadjoint.errors import ModelError
from coadjoint.lie import se3
from laws import derivative
from random_robots import ONE_SCREW, random_robot, random_velocity


@pytest.mark.parametrize("way", ["as written", pytest.param("native", marks=[pytest.mark.native, pytest.mark.slow])])
def test_case_27(way):
    case = load(27)
    robot, x = case.robot, case.inputs
    found = {
        "L": kool.line_vectors(robot, x.q),
        "Ldot": kool.line_vector_rates(robot, x.q, x.qd),
        "M_i": kool.carried_momenta(robot, x.q, x.qd),
        "p": kool.generalized_momentum(robot, x.q, x.qd),
        "dE_dq": kool.kinetic_energy_gradient(robot, x.q, x.qd),
        "tau": kool.inverse_dynamics_by_lines(robot, x.q, x.qd, x.qdd),
    }
    for key, value in found.items():
        np.testing.assert_allclose(value, case.expected[key], **case.close, err_msg=key)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_lines_give_what_the_recursion_gives(seed, mimic):
    """p = M v, ∂E/∂q by differences, τ by Newton and Euler; trees, fixed and mimic joints, armature."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 6, (*ONE_SCREW, "fixed"), shuffle=True, mimic=mimic, armature=True)
    q = robot.random(rng, 2)
    v, a = random_velocity(robot, rng, (2, 2))
    close = lambda x, y, tol: np.testing.assert_allclose(x, y, rtol=0, atol=tol * max(1, np.max(np.abs(y))))
    close(kool.inverse_dynamics_by_lines(robot, q, v, a), cj.inverse_dynamics(robot, q, v, a), 1e-12)
    close(kool.generalized_momentum(robot, q, v), np.einsum("zij,zj->zi", cj.mass_matrix(robot, q), v), 1e-12)
    energy = lambda x: cj.kinetic_energy(robot, x, v)
    slopes = np.stack([derivative(robot, energy, q, np.broadcast_to(e, v.shape)) for e in np.eye(robot.nv)], -1)
    close(kool.kinetic_energy_gradient(robot, q, v), slopes, 1e-7)
    # Lagrange's equations (1): τ = dp/dt - ∂E/∂q, without gravity
    weightless = robot.with_gravity((0, 0, 0))
    along = lambda s: kool.generalized_momentum(robot, q + s * v + s * s / 2 * a, v + s * a)
    h = 1e-3
    rate = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    close(rate - slopes, cj.inverse_dynamics(weightless, q, v, a), 1e-6)


def test_lines_are_axes():
    """(e, m + h e) with m = r × e, (6); (0, e) for a prismatic joint, (7)."""
    robot = random_robot(2, 5, ("revolute", "prismatic", "helical"), tree=False)
    q = robot.random(0)
    L, poses = kool.line_vectors(robot, q), cj.forward_kinematics(robot, q)
    for i, link in enumerate(robot.links):
        e = L[i, :3]
        if link.joint.kind == "prismatic":
            np.testing.assert_allclose(e, 0, atol=1e-15)
            assert np.linalg.norm(L[i, 3:]) == pytest.approx(1)
            continue
        line = cj.lie.screw.from_twist(link.joint.screws[0])
        r = poses[i][:3, :3] @ line.point + poses[i][:3, 3]
        np.testing.assert_allclose(L[i, 3:], np.cross(r, e) + line.pitch * e, atol=1e-13)
    np.testing.assert_allclose(L, cj.jacobian(robot, q, robot.link_names[-1], "space").T, atol=1e-13)
    v = random_velocity(robot, 0)
    T = se3.Ad_act(poses, cj.link_velocities(robot, q, v))
    np.testing.assert_allclose(kool.line_vector_rates(robot, q, v), se3.ad_act(T, L), atol=1e-13)


def test_joints_of_several_axes_are_named():
    robot = random_robot(0, 2, ("spherical",))
    with pytest.raises(ModelError, match="is spherical; line vectors are of joints with one axis"):
        kool.line_vectors(robot, robot.random(0))
