"""Exciting motions: exact gradients, limits that hold everywhere, information that is that of the regressor."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.identification.excitation import _kept, base_regressor, log_information
from coadjoint.identification.excitation_basis import Basis
from coadjoint.identification.excitation_design import Design
from coadjoint.identification.excitation_limits import Limits, read_planes, read_spheres

SPHERES = [("link2", (0.9, 0.0, 0.0), 0.1), ("base", (0.3, 1.5, 0.0), 0.2)]
LIMITS = {"position": (-2.0, 2.0), "velocity": 3.0, "effort": 60.0}


@pytest.fixture(scope="module")
def arm():
    return cj.load("planar2r")


def problem(robot, kind="fourier", normalized=False, drives=False):
    base = cj.base_parameters(robot, drives=drives)
    X = base_regressor(robot, base)
    n, ones = robot.nv, np.ones(robot.nv)
    spheres = read_spheres(robot, SPHERES)
    limits = Limits(robot, -1.5 * ones, 1.5 * ones, 1.0 * ones, 3.0 * ones, 20.0 * ones, spheres, read_planes([((0, 1, 0), -0.5)]))
    basis = Basis(kind, 4, 3.0, True, False)
    t = np.linspace(0, 3, 24)[:-1]
    rng = np.random.default_rng(0)
    K = rng.normal(size=(base.rank, base.rank))
    native, pulled = cj.compile(X, robot), cj.vjp(X, robot, ["q", "v", "a"])
    scale = rng.uniform(0.5, 2, base.rank)
    args = (
        limits,
        basis,
        0.1 * ones,
        native,
        pulled,
        rng.uniform(1, 2, n),
        scale,
        K @ K.T,
        normalized,
        t,
        np.full(len(t), 3 / len(t)),
    )
    return Design(*args), rng


@pytest.mark.parametrize(
    ("kind", "normalized", "drives"), [("fourier", False, False), ("bspline", True, False), ("fourier", False, True)]
)
def test_gradients_of_criterion_and_penalty_are_exact(arm, kind, normalized, drives):
    robot = arm.with_joint("joint1", friction=0.3, damping=0.2) if drives else arm
    design, rng = problem(robot, kind, normalized, drives)
    x = rng.normal(size=design.basis.free().shape[1] * robot.nv) * (0.4 if kind == "fourier" else 2.0)
    margins = {"velocity": 0.1, "distance": 0.2}
    rows = design.rows(*design.motion(x), margins)
    assert {"position", "velocity", "acceleration", "torque", "distance"} == set(rows)
    assert all((g > 0).any() for g in rows.values())  # every kind of limit is exceeded, so that its gradient counts
    multipliers = {kind: rng.uniform(0, 0.1, g.shape) for kind, g in rows.items()}
    for fn in (design.criterion, lambda x: design.lagrangian(x, multipliers, margins, 3.0)):
        direction = rng.normal(size=len(x))
        h = 1e-5
        central = (fn(x + h * direction)[0] - fn(x - h * direction)[0]) / (2 * h)
        np.testing.assert_allclose(fn(x)[1] @ direction, central, rtol=2e-7, atol=1e-8)


@pytest.mark.parametrize("kind", ["fourier", "bspline"])
def test_curves_have_their_derivatives_and_rest_at_both_ends(kind):
    basis = Basis(kind, 4, 3.0, True, True)
    t, h = np.linspace(0.1, 2.9, 7), 1e-5
    _, d, dd = basis.at(t)
    before, after = basis.at(t - h), basis.at(t + h)
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), d, atol=1e-7)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), dd, atol=1e-6)
    ends = basis.at(np.array([0.0, 3.0]))
    np.testing.assert_allclose(np.concatenate(ends[1:]), 0.0, atol=1e-11)
    np.testing.assert_allclose(ends[0][0], 0.0, atol=1e-12)


@pytest.fixture(scope="module")
def designed(arm):
    return cj.excitation(arm, 4.0, harmonics=3, spheres=SPHERES, planes=[((0, 1, 0), -1.5)], clearance=0.05, tries=1, **LIMITS)


@pytest.mark.native
def test_a_design_keeps_every_limit(arm, designed):
    t = np.random.default_rng(1).uniform(0, 4, 3000)
    q, v, a = designed(t)
    slack = 1e-4  # between the times that were checked
    assert np.abs(q).max() <= 2.0 + slack
    assert np.abs(v).max() <= 3.0 + slack
    assert np.abs(cj.inverse_dynamics(arm, q, v, a)).max() <= 60.0 + slack
    T = cj.forward_kinematics(arm, q)[:, arm.link_index("link2")]
    hand = T[:, :3, :3] @ np.array([0.9, 0, 0]) + T[:, :3, 3]
    assert np.linalg.norm(hand - [0.3, 1.5, 0], axis=1).min() >= 0.3 + 0.05 - slack
    assert hand[:, 1].min() >= -1.5 + 0.1 + 0.05 - slack
    assert designed.slack >= 0
    for x in (designed.v, designed.a):
        np.testing.assert_allclose(x[[0, -1]], 0.0, atol=1e-10)
    np.testing.assert_allclose(designed.q[0], designed.q[-1], atol=1e-10)


@pytest.mark.native
def test_its_information_is_that_of_the_regressor(arm, designed):
    t = np.linspace(0, 4, 4001)[:-1]
    base = designed.base
    X = cj.regressor(arm, *designed(t)) @ np.linalg.pinv(base.matrix)
    np.testing.assert_allclose(np.einsum("nik,nij->kj", X, X) * 1e-3, designed.information, rtol=1e-6, atol=1e-6)
    flat = X.reshape(-1, base.rank)
    np.testing.assert_allclose(designed.condition, np.linalg.cond(flat / np.linalg.norm(flat, axis=0)), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.native
def test_it_shows_more_than_motions_at_random(arm, designed):
    """Random coefficients, drawn towards the posture by the same rule, within the same limits."""
    rng, found = np.random.default_rng(2), []
    native, scale = cj.compile(base_regressor(arm, designed.base), arm), np.ones(designed.base.rank)
    t = np.linspace(0, 4, 121)[:-1]
    fixed = (designed.limits, designed.basis, designed.center, native, None, np.ones(2), scale, np.zeros((6, 6)), False)
    design = Design(*fixed, t, np.full(len(t), 4 / 120))
    for _ in range(20):
        x = _kept(design, rng.normal(size=designed.coefficients.size))
        found.append(np.linalg.slogdet(design.information(*design.motion(x))[0])[1])
    assert designed.log_det > max(found) + 1.0


@pytest.mark.native
def test_it_complements_logs(arm, designed):
    still = {"time": np.linspace(0, 100, 500), "q": np.zeros((500, 2)), "v": np.zeros((500, 2)), "a": np.zeros((500, 2))}
    other = cj.excitation(arm, 4.0, harmonics=3, tries=1, logs=[designed.states, still], start=(0.3, -0.2), **LIMITS)
    np.testing.assert_allclose(other.q[0], (0.3, -0.2), atol=1e-12)
    known = log_information(arm, other.base, [designed.states, still], np.ones(2))
    own = log_information(arm, other.base, other.states, np.ones(2))
    np.testing.assert_allclose(other.information, known + own, rtol=1e-4, atol=1e-5 * np.abs(known).max())
    assert other.log_det > np.linalg.slogdet(known)[1]


@pytest.mark.native
def test_tables_and_figures(arm, designed, tmp_path):
    designed.save(tmp_path / "motion.csv")
    again = cj.Trajectory.load(tmp_path / "motion.csv", arm)
    np.testing.assert_array_equal(again.q, designed.q)
    assert "condition number" in str(designed)
    assert len(designed) == 401
    pytest.importorskip("matplotlib")
    designed.plot(tmp_path / "motion.svg")


@pytest.mark.native
@pytest.mark.slow
def test_the_panda_and_its_friction():
    motion = cj.excitation(cj.load("panda"), 20.0, drives=True, tries=1)
    assert motion.seen == motion.base.rank == 62
    assert motion.slack >= 0
    plain = cj.excitation(cj.load("panda"), 20.0, criterion="condition", tries=1, kind="bspline")
    assert plain.condition < 20


def test_bad_input(arm):
    free = dataclasses.replace(arm.links[0].joint, lower=-np.inf, upper=np.inf)
    unlimited = cj.Robot("unlimited", [dataclasses.replace(arm.links[0], joint=free)])
    for options, match in [
        ({"duration": 0.0}, "positive"),
        ({"harmonics": 2}, "3 or more"),
        ({"spheres": [("hand", (0, 0, 0), 0.1)]}, "'hand'"),
        ({"spheres": [("link1", (0, 0), 0.1)]}, r"spheres\[0\]"),
        ({"planes": [(0, 0, 1)]}, r"planes\[0\]"),
        ({"start": (5.0, 0.0)}, "position of joint 'joint1'"),
        ({"start": (1.0,)}, "expected 2"),
        ({"effort": 1e-3}, "no posture.*torque of joint"),
        ({"velocity": {"joint1": -1.0}}, "joint1"),
        ({"position": {"elbow": (0, 1)}}, "elbow"),
        ({"position": (1.0, -1.0)}, "lower limit"),
        ({"logs": [{"time": [0.0, 1.0]}]}, "no positions|positions"),
        ({"spheres": [("link2", (0, 0, 0), 5.0), ("base", (0, 0, 0), 1.0)]}, "no posture.*sphere 0 on 'link2'"),
    ]:
        given = {"duration": 4.0} | LIMITS | options
        with pytest.raises(cj.CoadjointError, match=match):
            cj.excitation(arm, **given)
    with pytest.raises(cj.CoadjointError, match=r"no limits of position.*position="):
        cj.excitation(unlimited, 4.0)
    with pytest.raises(cj.CoadjointError, match="base='fixed'"):
        cj.excitation(cj.Robot("body", [cj.Link.solid("body", "base", cj.Joint.free(), mass=1.0, inertia=0.1)]), 4.0)
