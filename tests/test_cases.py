"""The acceptance cases in `cases/`: models and numbers from an independent reference, each read by its number."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from acceptance import check, load
from coadjoint.lie import inertia, screw, se3
from laws import central


@pytest.fixture(autouse=True, params=["as written", pytest.param("native", marks=[pytest.mark.native, pytest.mark.slow])])
def _way(request):
    """Every case holds for the algorithms as written and for the machine code made of them."""


def test_01_exponentials_of_small_angles():
    case = load(1)
    T = se3.exp(case.inputs.twists)
    check(case, exp=T)
    back = se3.log(T)
    for found, twist in zip(back, case.inputs.twists, strict=True):
        for part in (slice(3), slice(3, 6)):
            assert np.linalg.norm((found - twist)[part]) <= case.tolerance["log_rtol"] * np.linalg.norm(twist[part])


def test_03_screws_of_twists_and_wrenches():
    case = load(3)
    for read, back, inputs, expected in (
        (screw.from_twist, screw.Screw.twist, case.inputs.twists, case.expected["twist_screws"]),
        (screw.from_wrench, screw.Screw.wrench, case.inputs.wrenches, case.expected["wrench_screws"]),
    ):
        found = read(inputs)
        for key in ("point", "direction", "pitch", "magnitude"):
            wanted = np.array([np.asarray(x[key], dtype=float) for x in expected])
            np.testing.assert_allclose(getattr(found, key), wanted, **case.close, err_msg=key)
        np.testing.assert_allclose(back(found), inputs, rtol=1e-14, atol=1e-15)


def test_04_three_forms_of_the_product_of_exponentials():
    case = load(4)
    robot, q = case.robot, case.inputs.q
    last = robot.link_names[-1]
    check(
        case,
        fk_com=cj.forward_kinematics(robot, q),
        fk_com_zero=cj.forward_kinematics(robot, case.inputs.q_zero),
        body_screws_B_of_last=cj.body_screws(robot, last)[0],
        relative_screws_P=cj.relative_screws(robot, last)[0],
        jac_body_last=cj.jacobian(robot, q, last),
        jac_space_last=cj.jacobian(robot, q, last, "space"),
    )
    np.testing.assert_allclose(cj.space_screws(robot, last)[0], case.model["A"], atol=1e-14)
    pose = np.array(case.expected["fk_com"])[-1]
    for form, screws in (("space", cj.space_screws), ("body", cj.body_screws), ("relative", cj.relative_screws)):
        np.testing.assert_allclose(cj.product_of_exponentials(*screws(robot, last), q, form), pose, rtol=0, atol=1e-13)


def test_05_planar_2r():
    case = load(5)
    robot, q, v, a = case.robot, case.inputs.q, case.inputs.qd, case.inputs.qdd
    tau = np.array(case.expected["tau"])
    check(
        case,
        M=cj.mass_matrix(robot, q),
        gravity=cj.gravity_force(robot, q),
        tau=cj.inverse_dynamics(robot, q, v, a),
        qdd_from_tau=cj.forward_dynamics(robot, q, v, tau),
    )
    rest = robot.with_gravity((0, 0, 0))
    np.testing.assert_allclose(cj.bias_force(rest, q, v), np.array(case.expected["C"]) @ v, **case.close)


def with_link_frames(robot: cj.Robot, homes: np.ndarray, frames: np.ndarray) -> cj.Robot:
    """The same mechanism with the links' frames elsewhere: frames (n, 4, 4) instead of homes (n, 4, 4), both at home."""
    links = []
    for i, link in enumerate(robot.links):
        parent = robot.parents[i]
        change = se3.inverse(frames[i]) @ homes[i]  # the present frame in the new one
        before = np.eye(4) if parent < 0 else frames[parent]
        joint = cj.Joint(link.joint.kind, se3.Ad_act(change, link.joint.screws), name=link.joint.name)
        placement = se3.inverse(before) @ frames[i]
        links.append(cj.Link(link.name, link.parent, joint, placement, inertia.transform(change, link.parameters)))
    return cj.Robot(robot.name, links, gravity=robot.gravity)


def test_07_newton_euler_with_wrenches():
    case = load(7)
    robot, x = case.robot, case.inputs
    check(
        case,
        M=cj.mass_matrix(robot, x.q),
        gravity=cj.gravity_force(robot, x.q),
        C_qd=cj.bias_force(robot.with_gravity((0, 0, 0)), x.q, x.qd),
        tau_no_ext=cj.inverse_dynamics(robot, x.q, x.qd, x.qdd),
        generalized_force_of_wrenches=cj.generalized_force(robot, x.q, x.fext_body_com),
        tau_with_ext=cj.inverse_dynamics(robot, x.q, x.qd, x.qdd, x.fext_body_com),
    )
    # The same torques for any choice of the links' frames.
    homes, frames = np.array(case.model["M"]), x.alt_link_frames_home
    other = with_link_frames(robot, homes, frames)
    wrenches = se3.Ad_inv_dual_act(se3.inverse(frames) @ homes, x.fext_body_com)
    check(
        case,
        M=cj.mass_matrix(other, x.q),
        tau_no_ext=cj.inverse_dynamics(other, x.q, x.qd, x.qdd),
        tau_with_ext=cj.inverse_dynamics(other, x.q, x.qd, x.qdd, wrenches),
    )
    tau = np.array(case.expected["tau_with_ext"])
    np.testing.assert_allclose(cj.forward_dynamics(other, x.q, x.qd, tau, wrenches), x.qdd, rtol=1e-9, atol=1e-9)


def test_09_massless_link():
    case = load(9)
    check(case, M=cj.mass_matrix(case.robot, case.inputs.q))
    assert np.all(np.isfinite(cj.forward_dynamics(case.robot, case.inputs.q, case.inputs.qd, np.zeros(2))))


def test_09_singular_where_the_mass_lies_on_the_axis():
    """An error that names the joint, never a wrong acceleration."""
    case = load(9)
    q = np.array([0.3, np.pi / 2])
    with pytest.raises(cj.errors.SingularMassMatrixError, match="joint 'joint1' moves no mass"):
        cj.forward_dynamics(case.robot, q, case.inputs.qd, np.ones(2))


def test_13_torques_belong_to_their_linearisation():
    """The case gives ∂τ/∂q and ∂τ/∂q̇; differences of our τ, extrapolated, must agree with them."""
    case = load(13)
    robot, x = case.robot, case.inputs

    def by(fn):
        return np.stack([central(fn, np.zeros(5), k, 1e-2) for k in range(5)], axis=-1)

    check(
        case,
        dtau_dq=by(lambda d: cj.inverse_dynamics(robot, x.q + d, x.qd, x.qdd)),
        dtau_dqd=by(lambda d: cj.inverse_dynamics(robot, x.q, x.qd + d, x.qdd)),
    )


def test_case_27_kool():
    """Line vectors are the columns of the spatial Jacobian; p = M v; τ and gravity by Newton and Euler."""
    case = load(27)
    robot, x = case.robot, case.inputs
    last = robot.link_names[-1]
    M = cj.mass_matrix(robot, x.q)
    check(
        case,
        L=cj.jacobian(robot, x.q, last, "space").T,
        Ldot=cj.jacobian_rate(robot, x.q, x.qd, last, "space").T,
        p=M @ x.qd,
        tau=cj.inverse_dynamics(robot, x.q, x.qd, x.qdd),
        gravity=cj.gravity_force(robot, x.q),
    )
    # dp/dt = τ - gravity + ∂E/∂q, Lagrange's equations.
    rest = cj.inverse_dynamics(robot, x.q, x.qd, x.qdd) - cj.gravity_force(robot, x.q) + case.expected["dE_dq"]
    check(case, dp_dt=rest)
