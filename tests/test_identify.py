"""Identification: exact data return exactly, real logs are fitted by possible bodies, intervals cover, bad logs are named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, LogWarning
from coadjoint.identification import doubts
from coadjoint.identification.arrangements import left_over
from coadjoint.identification.consistency import ConsistentFit, consistent, divergence, geodesic_distance
from coadjoint.identification.friction import direction
from coadjoint.identification.preparation import Prepared, prepare
from coadjoint.lie import inertia, se3
from recorded_motions import moved_frames, perturbed, simulated, smooth_motion

DATA = Path(__file__).parents[2] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no shared data here")


@pytest.fixture(scope="module")
def arm():
    robot = cj.load("ur5e")
    return robot.lock(dict.fromkeys(robot.joint_names[3:], 0.3))


def test_exact_data_return_exactly(arm):
    truth = perturbed(arm)
    fit = cj.identify(arm, simulated(truth, friction=0.7))
    base = cj.base_parameters(arm)
    assert np.abs(base.values(fit.robot) - base.values(truth)).max() < 1e-8 * np.abs(base.values(truth)).max()
    _, q, v, a = smooth_motion(arm, seed=5)
    expected = np.asarray(cj.inverse_dynamics(truth, q, v, a)) + 0.7 * v
    assert np.abs(fit.torque(q, v, a) - expected).max() < 1e-7 * np.abs(expected).max()
    assert np.abs(fit.robot.damping - 0.7).max() < 1e-6
    assert all(not inertia.violations(x) for x in fit.robot.inertias)


def test_separate_states_return_exactly(arm):
    """Random states with their accelerations and forces are rows as good as a motion's: none is filtered, with noise or without."""
    truth, rng = perturbed(arm), np.random.default_rng(0)
    q, (v, a) = arm.random(rng, (300,)), rng.normal(size=(2, 300, arm.nv))
    log = {"time": 0.01 * np.arange(300), "q": q, "v": v, "a": a, "tau": np.asarray(cj.inverse_dynamics(truth, q, v, a)) + 0.7 * v}
    with pytest.warns(LogWarning, match="separate states"):
        fit = cj.identify(arm, log)
    base = cj.base_parameters(arm)
    assert np.abs(base.values(fit.robot) - base.values(truth)).max() < 1e-8 * np.abs(base.values(truth)).max()
    assert np.abs(fit.torque(q, v, a) - log["tau"]).max() < 1e-8 * np.abs(log["tau"]).max()
    assert any("not filtered" in note for note in fit.notes)
    with pytest.warns(LogWarning), pytest.raises(CoadjointError, match="no slopes"):
        cj.identify(arm, {name: x for name, x in log.items() if name != "a"})


def test_exact_data_of_thin_bodies_return_exactly():
    """Bodies of the Panda are thin, one a thousandth as wide as long: a fit must go along the boundary of the possible to the truth."""
    panda, rng = cj.load("panda"), np.random.default_rng(3)
    truth = perturbed(panda)
    q, (v, a) = panda.random(rng, (200,)), rng.normal(size=(2, 200, 7))
    log = {"time": 0.01 * np.arange(200), "q": q, "v": v, "a": a, "tau": np.asarray(cj.inverse_dynamics(truth, q, v, a)) + 0.3 * v}
    with pytest.warns(LogWarning):
        fit = cj.identify(panda, log, friction=("offset", "viscous"), gravity="fixed")
    base = cj.base_parameters(panda)
    assert np.abs(base.values(fit.robot) - base.values(truth)).max() < 1e-8 * np.abs(base.values(truth)).max()


def test_an_exact_motion_of_thin_bodies_returns_exactly():
    """Weights of joints do not settle elsewhere, nor are spurious gains taken, though the truth is far from the prior."""
    panda = cj.load("panda")
    truth, base = perturbed(panda, seed=2), cj.base_parameters(panda)
    fit = cj.identify(panda, simulated(truth, friction=0.3))
    assert {term for _, term in fit.unknowns} == {"offset", "viscous"}
    assert np.abs(base.values(fit.robot) - base.values(truth)).max() < 1e-8 * np.abs(base.values(truth)).max()
    _, q, v, a = smooth_motion(panda, seed=5)
    expected = np.asarray(cj.inverse_dynamics(truth, q, v, a)) + 0.3 * v
    assert np.abs(fit.torque(q, v, a) - expected).max() < 1e-8 * np.abs(expected).max()


@pytest.mark.parametrize("slip", [0.0, 2e-3])
def test_dry_friction_and_springs_return_exactly(arm, slip):
    """Dry friction that reverses at once or after a slip, springs, rotors: the forces of another motion to 1e-8, and the coefficients."""
    truth = perturbed(arm)
    log = simulated(truth)
    speed, acceleration = (np.sqrt((log[name] ** 2).mean(0)) for name in ("v", "a"))
    slips = slip * speed**2 / acceleration

    def friction(q, v, a):
        dry = direction(v, a, 1e-9 * speed, slips) if slip else np.sign(v)
        return 0.9 * dry + 0.4 * v + 0.7 * q + 0.2 * a

    log["tau"] = log["tau"] + friction(log["q"], log["v"], log["a"])
    fit = cj.identify(arm, log, gravity="fixed")
    assert np.allclose(fit.friction.shape.slips, slips, rtol=1e-12, atol=0.0)
    _, q, v, a = smooth_motion(arm, seed=5)
    expected = np.asarray(cj.inverse_dynamics(truth, q, v, a)) + friction(q, v, a)
    assert np.abs(fit.torque(q, v, a) - expected).max() < 1e-7 * np.abs(expected).max()
    for name, value in (("coulomb", 0.9), ("viscous", 0.4), ("spring", 0.7)):
        assert np.abs(fit.friction.coefficients[name] - value).max() < 1e-6


@pytest.mark.native
def test_the_speed_of_stribecks_friction_is_found(arm):
    """Joint by joint, on a log of forty seconds, to the steps in which it is tried; and the forces of another motion."""
    truth, speeds = perturbed(arm), np.array([0.08, 0.2, 0.4])

    def friction(v):
        return 2.0 * np.sign(v) + 3.0 * np.sign(v) * np.exp(-np.abs(v) / speeds) + 0.5 * v

    logs = [simulated(truth, noise=0.02, seed=seed) for seed in range(4)]
    fit = cj.identify(
        arm, [x | {"tau": x["tau"] + friction(x["v"])} for x in logs], friction=("offset", "viscous", "coulomb", "stribeck")
    )
    assert np.all(np.abs(np.log(fit.friction.shape.speeds / speeds)) < np.log(1.5))
    assert np.abs(fit.friction.coefficients["stribeck"] - 3.0).max() < 0.5
    _, q, v, a = smooth_motion(arm, seed=5)
    expected = np.asarray(cj.inverse_dynamics(truth, q, v, a)) + friction(v)
    assert np.linalg.norm(fit.torque(q, v, a) - expected) < 2e-3 * np.linalg.norm(expected)


def test_dry_friction_turns_as_dahls_law_says():
    """After a reversal at a constant acceleration: near -1 at first, 0 and with Dahl's slope where half of it has turned, 1 far away."""
    slip, a = 1e-3, np.array(2.0)
    half = np.sqrt(2.0 * slip * a * np.log(2.0))
    found = direction(half * np.array([-3.0, 0.0, 1.0, 4.0]), a, 1e-12, slip)
    assert found[0] == pytest.approx(-1.0, abs=1e-3)
    assert found[1] < -0.85
    assert abs(found[2]) < 1e-8
    assert found[3] == pytest.approx(1.0, abs=1e-3)
    step = 1e-6 * half
    slope = (direction(half + step, a, 1e-12, slip) - direction(half - step, a, 1e-12, slip)) / (2 * step)

    def dahl(v):
        return 1.0 - 2.0 * np.exp(-(v**2) / (2.0 * a * slip))

    assert slope == pytest.approx((dahl(half + step) - dahl(half - step)) / (2 * step), rel=1e-5)
    assert direction(np.zeros(1), np.zeros(1), 0.01, slip) == 0.0
    v = np.linspace(-1, 1, 41)
    assert np.array_equal(direction(-v, -a, 0.01, slip), -direction(v, a, 0.01, slip))
    assert np.array_equal(direction(v, a, 0.01, 0.0), np.tanh(v / 0.01))


def test_used_rows_have_the_dry_friction_of_their_speed_and_acceleration():
    """A joint that slows to rest and goes on as before keeps its dry friction, one that turns back does not: with memory, Dahl's law
    dσ/dx = (1 - σ sign v) / s is a function of v and a where the joint has slipped since it stood, and the other rows are left out."""
    t = np.arange(0, 12, 2e-3)
    v = (
        0.5 * (1 + np.cos(2 * np.pi * t / 4)) * np.where(t < 6, 1, -1)
    )  # goes on after 2 s, and turns back after 6 and goes on after 10 s
    a = np.gradient(v, t)
    q = np.cumsum(v) * 2e-3
    slip, sign = 1e-3 * np.mean(v * v) / np.sqrt(np.mean(a * a)), [1.0]
    for dx in np.diff(q):
        aim = np.sign(dx)
        sign.append(aim + (sign[-1] - aim) * np.exp(-abs(dx) / slip))
    bar = cj.load("planar2r").lock({cj.load("planar2r").joint_names[1]: 0.0})
    log = {"time": t, "q": q[:, None], "v": v[:, None], "a": a[:, None], "tau": np.sin(t)[:, None]}
    used = prepare(bar, log, None).used[:, 0]
    off = np.abs(direction(v, a, 1e-9, slip) - sign)
    assert off.max() > 0.5
    assert off[used].max() < 0.15
    assert used.mean() > 0.7


def test_couplings_of_neighbouring_joints(arm):
    """Sensors that have some of their neighbours' forces: their parts and the prediction return; held-back stretches may ask for them."""
    truth = perturbed(arm)
    part = np.array([[0.0, 0.02, 0.0], [-0.015, 0.0, 0.03], [0.0, 0.01, 0.0]])

    def forces(q, v, a):
        load = np.asarray(cj.inverse_dynamics(truth, q, v, a))
        return load + load @ part.T + 0.4 * v

    logs = [simulated(truth, seed=k) for k in range(6)]
    for log in logs:
        log["tau"] = forces(log["q"], log["v"], log["a"])
    _, q, v, a = smooth_motion(arm, seed=9)
    expected = forces(q, v, a)
    fit = cj.identify(arm, logs[0], friction=("viscous", "previous_load", "next_load"), gravity="fixed")
    assert np.abs(fit.torque(q, v, a) - expected).max() < 1e-6 * np.abs(expected).max()
    assert np.allclose(fit.friction.coefficients["previous_load"], [0.0, part[1, 0], part[2, 1]], atol=1e-6)
    assert np.allclose(fit.friction.coefficients["next_load"], [part[0, 1], part[1, 2], 0.0], atol=1e-6)
    rng = np.random.default_rng(0)
    for log in logs:
        log["tau"] = log["tau"] + 0.1 * rng.normal(size=log["tau"].shape)
    fits = [cj.identify(arm, logs, friction=x, gravity="fixed") for x in ("auto", ("auto", "previous_load", "next_load"))]
    assert {"previous_load", "next_load"} & {x["term"] for x in fits[1].choices}
    errors = [np.abs(fit.torque(q, v, a) - expected).max() for fit in fits]
    assert errors[1] < 0.5 * errors[0]


def test_forces_that_are_recorded_late(arm):
    """A delay between channels is found, told and taken off; a stated one is; without it the model is worse; none is seen where none is."""
    truth, base, late = perturbed(arm), cj.base_parameters(arm), 3
    log = simulated(truth, noise=0.05, friction=0.7, rate=250.0)
    shifted = {name: x[late:] for name, x in log.items()} | {"tau": log["tau"][:-late]}

    def error(fit):
        return np.linalg.norm(base.values(fit.robot) - base.values(truth)) / np.linalg.norm(base.values(truth))

    found = cj.identify(arm, shifted)
    (note,) = (x for x in found.notes if "later than positions" in x)
    assert float(note.split()[3]) == pytest.approx(12.0, abs=0.3)
    stated, ignored, right = (cj.identify(arm, x, delay=y) for x, y in ((shifted, 0.012), (shifted, 0), (log, "auto")))
    assert error(found) < 2.0 * error(right) + 1e-3
    assert error(stated) < 2.0 * error(right) + 1e-3
    assert error(ignored) > 3.0 * error(found)
    for fit in (stated, ignored, right):
        assert not any("later than positions" in x for x in fit.notes)
    with pytest.raises(CoadjointError, match="delay is 'soon'"):
        cj.identify(arm, log, delay="soon")


def test_what_is_not_shown_stays_at_the_prior_and_says_so(arm):
    fit = cj.identify(arm, simulated(perturbed(arm), noise=0.01), friction=("offset", "viscous"))
    name = f"{arm.link_names[0]}.m"
    found = fit.parameters[name]
    assert not found.is_visible
    assert np.isinf(found.upper)
    assert found.value == pytest.approx(found.prior, rel=0.3)
    assert "not shown" in str(fit.parameters)
    visible = [p for p in fit.base if p.is_visible]
    assert len(visible) == len(fit.base)
    assert all(p.lower < p.upper for p in visible)


def test_estimates_do_not_depend_on_link_frames(arm):
    log = simulated(perturbed(arm), noise=0.3)
    fit = cj.identify(arm, log, friction=("offset", "viscous"), prior=3.0)
    rng = np.random.default_rng(3)
    T = se3.exp(rng.normal(size=(arm.n_links, 6)) * 0.4)
    turned = moved_frames(arm, T)
    other = cj.identify(turned, log, friction=("offset", "viscous"), prior=3.0)
    _, q, v, a = smooth_motion(arm, seed=8)
    expected = fit.torque(q, v, a)
    assert np.abs(other.torque(q, v, a) - expected).max() < 1e-6 * np.abs(expected).max()


def test_a_tilted_base_is_found(arm):
    tilted = arm.with_gravity(np.array([0.3, -0.2, -9.8]))
    fit = cj.identify(arm, simulated(perturbed(tilted), noise=0.05))
    assert np.abs(fit.robot.gravity - tilted.gravity)[:2].max() < 0.02
    assert "askew" in str(fit)


def test_divergence_and_distance_do_not_depend_on_frames(arm):
    x, y = np.array(arm.inertias), np.array(perturbed(arm).inertias)
    T = se3.exp(np.random.default_rng(1).normal(size=6))
    scale = np.diag([2.0, 2.0, 2.0, 1.0])
    for move in (T, scale, T @ scale):
        moved = [np.asarray(inertia.from_pseudo(move @ np.asarray(inertia.pseudo(z)) @ move.T)) for z in (x, y)]
        assert np.allclose(divergence(moved[1], moved[0]), divergence(y, x), rtol=1e-9)
        assert np.allclose(geodesic_distance(moved[1], moved[0]), geodesic_distance(y, x), rtol=1e-9)
    assert np.abs(divergence(x, x)).max() < 1e-12


def test_newton_finds_the_minimum_and_the_barrier_stays_inside(arm):
    """The gradient vanishes at the minimum; derivatives agree with differences of the objective."""
    rng = np.random.default_rng(0)
    n = 10 * arm.n_links
    X = rng.normal(size=(n // 2, n))
    problem = ConsistentFit(X.T @ X, X.T @ rng.normal(size=len(X)), np.eye(n), arm.inertias)
    x0 = np.array(arm.inertial_parameters)
    g, H = problem.derivatives(x0, 2.0, 0.0)
    d = rng.normal(size=n) * 1e-3 * np.abs(x0)
    numeric = (problem.value(x0 + 1e-3 * d, 2.0, 0.0) - problem.value(x0 - 1e-3 * d, 2.0, 0.0)) / 2e-3
    assert numeric == pytest.approx(g @ d, rel=1e-5)
    x = problem.newton(x0, 2.0, 0.0)
    g, H = problem.derivatives(x, 2.0, 0.0)
    assert g @ np.linalg.solve(H, g) < 1e-12
    edge = problem.constrained(x0)
    assert np.linalg.eigvalsh(np.asarray(inertia.pseudo(problem.inertias(edge)))).min() > 0
    assert problem.value(edge, 0.0, 0.0) <= problem.value(x, 0.0, 0.0)


def test_impossible_inertias_are_projected_with_a_note(arm):
    phi = np.array(arm.inertias)
    phi[1, 0], phi[2, 4] = -4e-17, 10.0
    moved, notes = consistent(phi, arm.link_names)
    assert len(notes) == 2
    assert "-4e-17" in notes[0]
    assert not moved[1].any()
    assert not inertia.violations(moved[2])
    assert np.array_equal(moved[0], phi[0])


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [0.0, 0.8])
def test_intervals_cover(correlated):
    """95 % intervals hold the truth in as many of simulated fits, whatever the prior says, for white and for correlated noise.

    Intervals of one fit depend on each other: the error of the mean is over fits. `python -m benchmarks.coverage` runs a thousand.
    """
    robot = cj.load("planar2r")
    truth, rng = perturbed(robot), np.random.default_rng(100)
    t, q, v, a = smooth_motion(robot, seed=1)
    exact = np.asarray(cj.inverse_dynamics(truth, q, v, a)) + 0.3 * v
    inside = []
    for _ in range(150):
        noise = rng.normal(size=(len(t) + 100, 2))
        for k in range(1, len(noise)):
            noise[k] += correlated * noise[k - 1]
        log = {"time": t, "q": q, "v": v, "a": a, "tau": exact + 0.2 * noise[100:]}
        fit = cj.identify(robot, log, friction=("offset", "viscous"), gravity="fixed")
        expected = fit.base_matrix.matrix @ truth.inertial_parameters
        found = (fit.base.lower < expected) & (expected < fit.base.upper)
        damping = [fit.parameters[f"{name}.viscous"] for name in robot.v_names]
        inside.append([*found, *(x.lower < 0.3 < x.upper for x in damping)])
    mean, error = np.mean(inside), np.mean(inside, axis=1).std() / np.sqrt(len(inside))
    assert abs(mean - 0.95) < 3 * error


def bad_logs(arm):
    log = simulated(arm)
    swapped = log["tau"][:, [0, 2, 1]]
    return {
        "NaN": (log | {"tau": np.where(np.arange(len(log["time"]))[:, None] == 7, np.nan, log["tau"])}, "not a finite number"),
        "unsorted": (log | {"time": log["time"][::-1]}, "times must"),
        "duplicates": (log | {"time": np.repeat(log["time"][::2], 2)}, "repeats the time"),
        "too few": ({k: x[:10] for k, x in log.items()}, "too few"),
        "constant": (log | {"q": 0 * log["q"], "v": 0 * log["v"], "a": 0 * log["a"]}, "constant"),
        "noise": (log | {k: 1e-4 * np.random.default_rng(0).normal(size=log[k].shape) for k in "qva"}, "constant but for noise"),
        "constant forces": (log | {"tau": 0 * log["tau"] + 1}, "forces are constant"),
        "no forces": ({k: x for k, x in log.items() if k != "tau"}, "no measured joint forces"),
        "columns": (log | {"tau": swapped[:, :2]}, "2"),
    }


@pytest.mark.parametrize(
    "case", ["NaN", "unsorted", "duplicates", "too few", "constant", "noise", "constant forces", "no forces", "columns"]
)
@pytest.mark.filterwarnings("ignore::coadjoint.errors.LogWarning")
def test_bad_logs_are_named(arm, case):
    log, words = bad_logs(arm)[case]
    with pytest.raises(CoadjointError, match=words):
        cj.identify(arm, log)


def test_wrong_options_are_named(arm):
    log = simulated(arm)
    for options in (
        {"gravity": "up"},
        {"method": "lsq"},
        {"friction": "coulumb"},
        {"prior": "flat"},
        {"cutoff": -3},
        {"delay": "late"},
    ):
        (name,) = options
        with pytest.raises(CoadjointError, match=f"{name} (is|has) {options[name]!r}"):
            cj.identify(arm, log, **options)


def test_forces_are_those_of_each_row_alone(arm):
    """Friction is a function of v and a: rows in any order, one at a time, or in a batch give the same forces."""
    log = simulated(arm, noise=0.05)
    log["tau"] = log["tau"] + 0.5 * np.sign(log["v"])
    fit = cj.identify(arm, log)
    assert "coulomb" in fit.friction.coefficients
    q, v, a = log["q"], log["v"], log["a"]
    whole = fit.torque(q, v, a)
    order = np.random.default_rng(0).permutation(len(q))
    np.testing.assert_allclose(fit.torque(q[order], v[order], a[order]), whole[order], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fit.torque(q[::7], v[::7], a[::7]), whole[::7], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fit.torque(q[5], v[5], a[5]), whole[5], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fit.torque(q[None, :6], v[None, :6], a[None, :6]), whole[None, :6], rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore::coadjoint.errors.LogWarning")
def test_doubtful_logs_are_noted(arm):
    log = simulated(arm, noise=0.1)
    for change, said in (({"tau": log["tau"] * [1, -1, 1]}, "opposite sign"), ({"tau": log["tau"][:, [0, 2, 1]]}, "swapped")):
        with pytest.warns(LogWarning, match=said):
            fit = cj.identify(arm, log | change, friction=("offset",))
        assert any(said in note for note in fit.notes)
    clipped = np.clip(log["tau"], -20, 20)
    for noise in (0.0, 0.005):  # of a current that is measured at its limit
        tau = clipped + noise * np.random.default_rng(0).normal(size=clipped.shape)
        fit = cj.identify(arm, log | {"tau": tau}, friction=("offset",))
        assert any("saturated" in note for note in fit.notes)
        off = fit.torque(log["q"], log["v"], log["a"]) - cj.inverse_dynamics(arm, log["q"], log["v"], log["a"])
        assert np.sqrt(np.mean(off**2)) < 0.01 * np.abs(log["tau"]).max()
    with pytest.warns(LogWarning, match="equations for .* unknowns: too few"):
        cj.identify(arm, {"time": 0.05 * log["time"][:64], "q": log["q"][:64], "tau": log["tau"][:64]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: {"tau": x["tau"] * [1, 2, 1]}, r"shoulder_lift: the measured force is 2.* times the expected one"),
        (lambda x: {k: y[:-20] if k != "tau" else y[20:] for k, y in x.items()}, r"0\.4 s earlier .* delay=-0\.4"),
        (lambda x: {"tau": -x["tau"]}, "all measured forces have the opposite sign"),
        (lambda x: {"tau": x["tau"][:, [1, 2, 0]]}, "that of shoulder_pan stands in the column of elbow"),
        (lambda x: {"tau": 1000 * x["tau"]}, "1e[+]03 times those that the description expects: are they in N m"),
        (lambda x: {k: x[k] * [1, -1, 1] for k in "qva"}, "the other sign of the position of shoulder_lift"),
        (lambda x: {k: x[k][:, [0, 2, 1]] for k in "qva"}, "positions of shoulder_lift and elbow swapped"),
        (
            lambda x: {k: x[k][:, [1, 2, 0]] for k in "qva"},
            r"positions in another order \(that of shoulder_pan stands in the column of elbow",
        ),
        (lambda x: {k: x[k] * [1, 1, -1] for k in ("q", "v", "a", "tau")}, "sign of the position and the force of elbow"),
        (
            lambda x: {k: x[k][:, ::-1] for k in ("q", "v", "a", "tau")},
            "positions and the forces of shoulder_pan and elbow swapped",
        ),
    ],
    ids=[
        "one unit",
        "late",
        "all signs",
        "order of forces",
        "unit",
        "sign of a position",
        "two positions",
        "order of positions",
        "sign of a joint",
        "order of joints",
    ],
)
@pytest.mark.filterwarnings("ignore::coadjoint.errors.LogWarning")
def test_orders_signs_and_units_are_recognised(arm, change, said):
    """Each mistake alone has its own sentence, and a log without any has none of them."""
    log = simulated(perturbed(arm, size=0.05), noise=0.1)
    fit = cj.identify(arm, log | change(log), friction=("offset",))
    assert [note for note in fit.notes if re.search(said, note)], fit.notes
    assert not [note for note in cj.identify(arm, log, friction=("offset",)).notes if re.search(said, note)]


def test_units_of_torques_are_recognised(arm):
    """Forces of all joints are the expected ones times one factor."""
    log = simulated(arm, noise=0.1)
    with pytest.warns(
        LogWarning, match="all joints are 0.73. times those that the description expects, as they would be in lbf ft"
    ):
        cj.identify(arm, log | {"tau": log["tau"] / 1.3558}, friction=("offset",))


def _stands(x):
    """A sensor that keeps its value for two seconds."""
    return np.concatenate([x[:100], np.repeat(x[100:101], 100, axis=0), x[200:]])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: _stands(x), r"shoulder_lift: the measured force stands at .* from [12].* s to [34].* s while"),
        (lambda x: np.minimum(x, np.quantile(x, 0.6)) + 0.1 * np.random.default_rng(0).normal(size=len(x)), "are they saturated"),
        (lambda x: x + 300.0 * (np.arange(len(x)) % 100 == 7), "a tenth of the rows has 9. % .*method='reweighted'"),
    ],
    ids=["sensor stopped", "saturated", "spikes"],
)
@pytest.mark.filterwarnings("ignore::coadjoint.errors.LogWarning")
def test_what_a_fit_does_not_explain_is_said(arm, change, said):
    """Of one joint's force, by one sentence that names the joint."""
    log = simulated(perturbed(arm, size=0.05), noise=0.1)
    tau = log["tau"].copy()
    tau[:, 1] = change(tau[:, 1])
    notes = cj.identify(arm, log | {"tau": tau}, friction=("offset",), delay=0).notes
    assert [note for note in notes if re.search(said, note) and note.startswith("shoulder_lift: ")], notes
    assert not [note for note in notes if note.startswith("shoulder_pan: ")]


def test_forces_of_another_motion_are_said(arm):
    """A mean force that is large, as of a load that hangs, explains nothing of what changes."""
    log = simulated(arm)
    tau = log["tau"][np.random.default_rng(0).permutation(len(log["tau"]))] + [0.0, 150.0, 0.0]
    with pytest.warns(LogWarning, match="100 % of what changes in them"):
        cj.identify(arm, log | {"tau": tau}, friction=("offset",))


@pytest.mark.filterwarnings("error")
def test_a_joint_without_motion_or_without_a_sensor_is_said_and_left_out(arm):
    """The rest is fitted as if it were not there: forces of the other joints return exactly."""
    truth = perturbed(arm)
    log = simulated(truth)
    deaf = log | {"tau": log["tau"] * [1, 1, 0]}
    fit = cj.identify(arm, deaf, friction=("offset", "viscous", "coulomb"), gravity="fixed")
    assert any("elbow: the measured force is 0 in every row" in note for note in fit.notes)
    off = np.abs(fit.torque(log["q"], log["v"], log["a"]) - log["tau"])[:, :2]
    assert off.max() < 1e-6 * np.abs(log["tau"]).max()
    for key, value in (("q", 0.4), ("v", 0.0), ("a", 0.0)):
        log[key][:, 2] = value
    log["tau"] = np.asarray(cj.inverse_dynamics(truth, log["q"], log["v"], log["a"]))
    still = cj.identify(arm, log, friction=("offset", "viscous", "coulomb"), gravity="fixed")
    assert any("elbow: the joint does not move" in note for note in still.notes)
    assert np.all(np.isfinite(still.robot.damping))
    assert still.robot.damping[2] == still.robot.friction[2] == 0.0
    assert np.abs(still.torque(log["q"], log["v"], log["a"]) - log["tau"]).max() < 1e-6 * np.abs(log["tau"]).max()


def test_gains_turn_currents_into_forces(arm):
    log = simulated(perturbed(arm), noise=0.01)
    gains = np.arange(1.0, 4.0)
    fit = cj.identify(arm, log | {"tau": log["tau"] / gains}, gains=gains, friction=("offset",))
    assert np.abs(fit.torque(log["q"], log["v"], log["a"]) - log["tau"]).max() < 0.5
    with pytest.raises(CoadjointError, match="gains"):
        cj.identify(arm, log, gains=[1.0])


def test_gains_are_identified_with_a_known_payload(arm):
    """Currents of two motions, in one of which the robot carries what is known: gains and base parameters return to 1e-8."""
    truth, gains = perturbed(arm), np.array([12.0, 9.0, 11.0])
    payload = {"frame": arm.link_names[-1], "mass": 4.0, "com": (0.1, 0.02, 0.05), "inertia": 0.02 * np.eye(3)}
    logs = []
    for seed, robot in ((0, truth), (3, truth.with_payload(**payload))):
        log = simulated(robot, seed=seed, friction=0.8)
        logs.append(log | {"tau": log["tau"] / gains})
    assumed = gains * [1.3, 0.8, 1.1]
    fit = cj.identify(arm, logs, gains=assumed, payloads=[None, payload], friction=("offset", "viscous"), gravity="fixed")
    assert np.abs(assumed * fit.gains / gains - 1).max() < 1e-8
    base = cj.base_parameters(arm)
    assert np.abs(base.values(fit.robot) - base.values(truth)).max() < 1e-7 * np.abs(base.values(truth)).max()
    found = fit.parameters[f"{arm.v_names[0]}.gain"]
    assert found.upper - found.lower < 1e-9
    for wrong in ([None], [None, None], [None, {"link": "x"}]):
        with pytest.raises(CoadjointError, match="payloads"):
            cj.identify(arm, logs, payloads=wrong)


def test_gains_are_identified_with_desired_forces(arm):
    gains = np.array([12.0, 9.0, 11.0])
    log = simulated(perturbed(arm))
    v = log["v"]
    currents = (log["tau"] + 0.9 * np.sign(v) + 0.4 * v + 0.3) / gains
    found = cj.identification.drive_gains(arm, log | {"tau": currents, "tau_des": log["tau"]})
    assert np.abs(found.values / gains - 1).max() < 1e-8
    rng, inside = np.random.default_rng(0), []
    for _ in range(8):
        noise = 0.02 * currents.std(0) * rng.normal(size=v.shape)
        found = cj.identification.drive_gains(arm, log | {"tau": currents + noise, "tau_des": log["tau"]})
        inside += list((found.lower < gains) & (gains < found.upper))
    assert sum(inside) >= 20  # of 24: fewer in one of 140 cases
    assert "95 %" in str(found)
    hidden = cj.identification.drive_gains(arm, log | {"tau": currents, "tau_des": log["tau"] * [1, 0, 1]})
    assert np.isnan(hidden.values[1])
    assert "not shown" in str(hidden)
    with pytest.raises(CoadjointError, match="known forces"):
        cj.identification.drive_gains(arm, log)


def test_currents_are_found_by_their_names(arm, tmp_path):
    gains = np.array([12.0, 9.0, 11.0])
    log = simulated(perturbed(arm), noise=0.05)
    tau = log.pop("tau")
    expected = cj.identify(arm, log | {"tau": tau}, friction=("offset",))
    for name in ("i", "current", "actual_current"):
        columns = {f"{name}_{k}": x for k, x in enumerate((tau / gains).T)}
        desired = {f"i_des_{k}": x for k, x in enumerate(tau.T)}
        found = cj.identify(arm, log | desired | columns, gains=gains, friction=("offset",))
        assert np.allclose(found.estimate, expected.estimate, rtol=1e-8, atol=1e-10)
        assert any("currents" in note for note in found.notes)
        with pytest.raises(CoadjointError, match=r"For the currents .* give gains="):
            cj.identify(arm, log | columns)
    with pytest.raises(CoadjointError, match="no measured joint forces"):
        cj.identify(arm, log | desired, gains=gains)
    columns["actual_current_1"] = np.where(np.arange(len(tau)) == 6, np.nan, tau[:, 1])
    with pytest.raises(CoadjointError, match="no finite number in row 7"):
        cj.identify(arm, log | columns, gains=gains)


@pytest.mark.filterwarnings("ignore::coadjoint.errors.LogWarning")
def test_a_model_that_explains_little_says_so(arm):
    log = simulated(perturbed(arm), noise=0.05)
    assert not any("explains little" in note for note in cj.identify(arm, log, friction=("offset",)).notes)
    other = {"tau": simulated(perturbed(arm), seed=7)["tau"]}  # of another motion
    with pytest.warns(LogWarning, match="explains little"):
        assert "order of the robot's joints" in str(cj.identify(arm, log | other, friction=("offset",)))


DEGREES = 180.0 / np.pi


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: {"q": DEGREES * x["q"], "v": None, "a": None}, "suggests degrees"),
        (lambda x: {k: DEGREES * x[k] for k in "qva"}, "suggests degrees"),
        (lambda x: {"v": DEGREES * x["v"], "a": None}, "velocities seem to be degrees per second"),
        (lambda x: {"time": 1e3 * x["time"], "v": None, "a": None}, "suggests ms"),
        (lambda x: {"tau": x["tau"][:, [1, 0, 2]]}, "shoulder_pan and shoulder_lift: each one's force is like"),
        (lambda x: {"tau": x["tau"] * [1, -1, 1]}, "shoulder_lift: the measured force has the opposite sign"),
        (lambda x: {k: x[k][:, [1, 0, 2]] for k in "qva"}, "positions of shoulder_pan and shoulder_lift swapped"),
    ],
    ids=["degrees", "degrees, all", "degrees a second", "milliseconds", "two forces", "sign", "two positions"],
)
def test_one_cause_has_one_message(arm, change, said):
    """What follows from it, such as forces that are too small or that a model does not explain, is not asked beside it."""
    log = simulated(perturbed(arm, size=0.05), noise=0.1)
    changed = {name: x for name, x in (log | change(log)).items() if x is not None}
    with pytest.warns(LogWarning, match=said) as told:
        cj.identify(arm, changed, friction=("offset",))
    assert len(told) == 1


def test_no_motion_is_advised_for_what_rotors_hide(arm):
    """The inertia of the first link about its axis and the rotor's act as their sum."""
    log = simulated(perturbed(arm), noise=0.05)
    log["tau"] = log["tau"] + 2.0 * log["a"]
    fit = cj.identify(arm, log, friction=("offset", "armature"))
    hidden = [p.name for p in fit.base if not p.is_visible]
    told = [x for x in fit.advice if "armature" in x]
    assert hidden
    assert len(told) == 1
    assert all(name in told[0] for name in hidden)
    assert not any("move these joints together" in x for x in fit.advice)
    assert not any("armature" in x for x in cj.identify(arm, log, friction=("offset", "viscous")).advice)


def test_the_model_stands_still(arm):
    """At rest there are gravity and offsets, finite, whatever the shape; the saved robot has the rigid part of them."""
    log = simulated(perturbed(arm), noise=0.05)
    log["tau"] = log["tau"] + 0.5 * np.tanh(50 * log["v"]) + 0.3 * log["v"] + [0.2, -0.1, 0.3]
    fit = cj.identify(arm, log)
    rest = np.zeros((2, 3, 3))
    q = log["q"][:6].reshape(2, 3, 3)
    tau = fit.torque(q, rest, rest)
    assert tau.shape == (2, 3, 3)
    assert np.allclose(tau[1, 2], fit.torque(q[1, 2], np.zeros(3), np.zeros(3)), atol=1e-12)
    assert np.abs(tau - cj.inverse_dynamics(perturbed(arm), q, rest, rest) - [0.2, -0.1, 0.3]).max() < 0.1
    assert fit.torque(q[:0], rest[:0], rest[:0]).shape == (0, 3, 3)
    assert "in fit.torque, not in fit.robot" in str(fit)


@pytest.mark.filterwarnings("ignore::coadjoint.errors.ModelWarning")  # what a format does not hold: limits, who else reads armature
@pytest.mark.parametrize("suffix", [".json", ".urdf", ".xml"])
def test_the_saved_robot_has_the_friction_and_the_mounting(arm, suffix, tmp_path):
    """Saved and loaded it gives the forces of the truth: viscous friction, rotors, a base askew; offsets belong to the sensors. And dry
    friction, which cannot be told exactly on a base askew, as it was fitted."""
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    truth = perturbed(arm).with_gravity((0.3, -0.2, -9.81))
    log = simulated(truth)
    log["tau"] = log["tau"] + 0.4 * log["v"] + 0.2 * log["a"] + [0.2, -0.1, 0.3]
    _, q, v, a = smooth_motion(arm, seed=5)
    expected = np.asarray(cj.inverse_dynamics(truth, q, v, a)) + 0.4 * v + 0.2 * a
    for dry in (0.0, 0.9):
        fit = cj.identify(
            arm, log | {"tau": log["tau"] + dry * np.sign(log["v"])}, friction=("offset", "viscous", "coulomb", "armature")
        )
        assert (fit.robot.friction >= 0.5 * dry).all()
        cj.save(fit.robot, tmp_path / f"arm{suffix}")
        found = cj.inverse_dynamics(cj.load(tmp_path / f"arm{suffix}"), q, v, a, friction=True)
        size = np.abs(expected).max()
        assert np.abs(found - cj.inverse_dynamics(fit.robot, q, v, a, friction=True)).max() < 1e-12 * size
        assert np.abs(found - expected - dry * np.sign(v)).max() < (1e-6 if dry == 0 else 0.05) * size


def test_friction_that_a_robot_cannot_have_is_replaced_by_the_nearest_it_can(arm):
    """d v + c sign(v) of the robot's joints is nearest to all terms that brake: what is left is orthogonal to both columns."""
    log = simulated(perturbed(arm), noise=0.01)
    load = np.asarray(cj.inverse_dynamics(perturbed(arm), log["q"], log["v"], log["a"]))
    v = log["v"]
    log["tau"] = log["tau"] + (0.3 + 0.04 * np.abs(load) + 0.5 * np.exp(-np.abs(v) / 0.3)) * np.tanh(v / 0.01) + 0.4 * v
    terms = ("offset", "viscous", "coulomb", "load", "stribeck")
    fit = cj.identify(arm, log, friction=terms)
    d = fit.data
    rigid = np.asarray(cj.inverse_dynamics(fit.rigid, d.q, d.v, d.a))
    law = fit.friction(d.q, d.v, d.a, rigid) - fit.friction.coefficients["offset"]
    left = (law - fit.robot.damping * d.v - fit.robot.friction * np.sign(d.v)) * d.used
    for column in (d.v, np.sign(d.v)):
        assert np.all(np.abs((left * column).sum(0)) < 1e-8 * np.abs(law * column).sum(0))
    dropped = law - fit.friction.coefficients["viscous"] * d.v - fit.friction.coefficients["coulomb"] * np.sign(d.v)
    assert np.all((left**2).sum(0) < 0.5 * ((dropped * d.used) ** 2).sum(0))
    assert "nearest to it along the log" in str(fit)
    assert "load, stribeck" in str(fit)


def test_command_and_report(arm, tmp_path, monkeypatch, capsys):
    from coadjoint.cli import main

    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    cj.save(arm, "arm.json")
    log = simulated(perturbed(arm), noise=0.05)
    names = ["time", *(f"{x}{k + 1}" for x in ("q", "v", "a", "tau") for k in range(3))]
    rows = np.column_stack([log[x] for x in ("time", "q", "v", "a", "tau")])
    np.savetxt("log.csv", rows, delimiter=",", header=",".join(names), comments="")
    assert main(["identify", "arm.json", "log.csv", "--out", "robot.json", "--report", "fit.html"]) == 0
    assert "relative error" in capsys.readouterr().out
    page = Path("fit.html").read_text()
    assert "<svg" in page
    assert "What to record next" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("https://matplotlib.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")
    found = cj.load("robot.json")
    assert found.nv == 3
    assert main(["identify", "arm.json", "log.csv", "--report", "fit.pdf"]) == 1


@pytest.mark.slow
def test_command_takes_method_prior_and_bounds(arm, tmp_path, monkeypatch, capsys):
    from coadjoint.cli import main

    monkeypatch.chdir(tmp_path)
    cj.save(arm, "arm.json")
    log = simulated(perturbed(arm), noise=0.05)
    names = ["time", *(f"{x}{k + 1}" for x in ("q", "v", "a", "tau") for k in range(3))]
    rows = np.column_stack([log[x] for x in ("time", "q", "v", "a", "tau")])
    np.savetxt("log.csv", rows, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    last, total = arm.link_names[-1], float(cj.total_mass(arm))
    ends = (1.1 * arm.inertias[-1, 0], 1.2 * arm.inertias[-1, 0])
    words = ["--prior", "riemannian", "--mass", last, *(str(float(x)) for x in ends), "--total-mass", "0", str(1.3 * total)]
    assert main(["identify", "arm.json", "log.csv", "--out", "bound.json", *words]) == 0
    assert "riemannian prior" in capsys.readouterr().out
    bounds = {"mass": {last: ends}, "total_mass": (0, 1.3 * total)}
    expected = cj.identify(arm, "log.csv", prior="riemannian", bounds=bounds)
    found = cj.load("bound.json")
    assert np.allclose(found.inertias, expected.robot.inertias, rtol=1e-9, atol=1e-12)
    assert ends[0] <= found.inertias[-1, 0] <= ends[1]
    assert main(["identify", "arm.json", "log.csv", "--method", "reweighted", "--prior", "3"]) == 0
    out = capsys.readouterr().out
    assert "estimated by reweighted" in out
    assert "entropic prior of weight 3" in out


def test_command_reads_logs_as_people_have_them(arm, tmp_path, monkeypatch, capsys):
    """Columns, units, empty cells and times that are no use as they are: the fit is that of the log in order."""
    from coadjoint.cli import main

    monkeypatch.chdir(tmp_path)
    cj.save(arm, "arm.json")
    log = simulated(perturbed(arm), noise=0.05)
    expected = cj.identify(arm, log, friction=("offset", "viscous"))
    names = ["clock", *(f"{x}{k + 1}" for x in ("bend", "rate", "push", "load") for k in range(3))]
    table = np.column_stack([log["time"], np.degrees(log["q"]), log["v"], log["a"], log["tau"]])
    lines = [",".join(f"{x:.17g}" for x in row) for row in table]
    lines[7], lines[8] = lines[8], lines[7]
    lines.insert(4, lines[4].rsplit(",", 1)[0] + ",")
    Path("log.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    assert main(["identify", "arm.json", "log.csv"]) == 1
    assert "there are no positions" in capsys.readouterr().err
    ways = ["time=clock", "q=bend{}", "v=rate{}", "a=push{}", "tau=load{}"]
    words = [x for way in ways for x in ("--columns", way)] + ["--units", "q=deg", "--missing", "drop", "--times", "sort"]
    words += ["--friction", "offset", "viscous"]
    assert main(["identify", "arm.json", "log.csv", "--out", "found.json", *words]) == 0
    assert np.allclose(cj.load("found.json").inertias, expected.robot.inertias, rtol=1e-6, atol=1e-9)


def as_table(log):
    names = ["time", *(f"{x}{k + 1}" for x in list(log)[1:] for k in range(3))]
    np.savetxt("log.csv", np.column_stack(list(log.values())), delimiter=",", header=",".join(names), comments="", fmt="%.17g")


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.filterwarnings("ignore::coadjoint.errors.LogWarning")
def test_command_takes_estimators_by_simulation(arm, tmp_path, monkeypatch, capsys):
    """The reference is among the log's own columns, in the units that are stated; what is found is what the function finds."""
    from coadjoint.cli import main

    monkeypatch.chdir(tmp_path)
    cj.save(arm, "arm.json")
    log = simulated(perturbed(arm, size=0.05), noise=0.01, friction=0.5, seconds=2.0, rate=100.0)
    commanded = log["q"] + 0.01 * np.sin(3 * log["time"])[:, None]
    rate = np.gradient(commanded, log["time"], axis=0)
    as_table(log | {"q": np.degrees(log["q"]), "q_des": np.degrees(commanded), "w": rate})
    terms = ["--friction", "offset", "viscous", "--units", "q=deg"]
    plain = {"friction": ("offset", "viscous")}
    for method, words, options in (
        ("instrumental_variables", ["--reference", "q_des"], {"reference": commanded}),
        (
            "output_error",
            ["--reference", "q_des", "w{}", "--kp", "20", "--kd", "2"],
            {"reference": (commanded, rate), "kp": 20, "kd": 2},
        ),
        ("output_error", [], {}),
        ("inverse_output_error", ["--kp", "20", "30", "20"], {"kp": [20, 30, 20]}),
    ):
        line = ["identify", "arm.json", "log.csv", "--method", method, "--out", "found.json", *terms, *words]
        assert main(line) == 0, capsys.readouterr().err
        expected = cj.identify(arm, log, method=method, simulation=options, **plain)
        assert np.allclose(cj.load("found.json").inertias, expected.robot.inertias, rtol=1e-5, atol=1e-8)
    assert main(["identify", "arm.json", "log.csv", "--method", "instrumental_variables", "--reference", "w", *terms]) == 1
    assert "of which they are no command" in capsys.readouterr().err
    assert main(["identify", "arm.json", "log.csv", "--method", "instrumental_variables", "--reference", "asked{}", *terms]) == 1
    assert "There are: q_des (3), w (3)" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::coadjoint.errors.LogWarning")
def test_commands_name_options_and_no_arguments_of_functions(arm, tmp_path, monkeypatch, capsys):
    from coadjoint.cli import main

    monkeypatch.chdir(tmp_path)
    cj.save(arm, "arm.json")
    log = simulated(arm, noise=0.05)
    rows = len(log["time"])
    hole = np.where(np.arange(rows)[:, None] == 7, np.nan, log["tau"])
    for change, words, said in (
        ({"time": log["time"][::-1]}, [], "--times sort"),
        ({"tau": hole}, [], "--missing drop"),
        ({"q": np.degrees(log["q"])}, ["--friction", "offset", "--delay", "0"], "--units q=deg"),
        ({"time": 1000 * log["time"]}, ["--friction", "offset", "--delay", "0"], "--units time=ms"),
        ({"tau": 1000 * log["tau"]}, ["--friction", "offset"], "--gains"),
    ):
        as_table(log | change)
        main(["identify", "arm.json", "log.csv", *words])
        told = capsys.readouterr()
        assert said in told.out + told.err, told
        assert not re.search(r"\w=['{]|\b\w+= ", told.out + told.err), told
    Path("log.csv").write_text("clock,bend1,bend2,bend3\n" + "0,0,0,0\n" * 40)
    assert main(["identify", "arm.json", "log.csv"]) == 1
    assert "--columns q=NAMES" in capsys.readouterr().err
    Path("log.csv").write_text("q1,q2,q3\n" + "0,0,0\n" * 40)
    assert main(["identify", "arm.json", "log.csv"]) == 1
    assert "--columns time=NAMES names it, --rate gives rows per second" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::coadjoint.errors.LogWarning")
def test_the_report_counts_what_is_known_by_the_size_of_bodies(arm):
    """Numbers that are zero by symmetry are known where their intervals are narrow beside those of a body of that mass and radius."""
    from coadjoint.show.identification import _motion

    exact = cj.identify(arm, simulated(perturbed(arm), noise=1e-6), friction=("offset", "viscous", "armature"))
    assert exact.beside_rotors
    assert "badly excited" not in _motion(exact)
    vague = cj.identify(arm, simulated(perturbed(arm), noise=200.0), friction=("offset", "viscous"))
    assert _motion(vague).count("badly excited") >= 2
    assert all(name in str(exact.base) for name in exact.base.names)


@pytest.mark.parametrize("noise", [1e-7, pytest.param(1e-5, marks=pytest.mark.slow), pytest.param(1e-4, marks=pytest.mark.slow)])
def test_tiny_noise_on_thin_bodies_is_fitted_as_least_squares_does(noise):
    """Residuals are the noise, whatever its size, and the forces of another motion as near as by least squares, but for further terms."""
    panda = cj.load("panda")
    truth, base = perturbed(panda, seed=2), cj.base_parameters(panda)
    log = simulated(truth, friction=0.3)
    _, *other = smooth_motion(panda, seed=5)
    expected = np.asarray(cj.inverse_dynamics(truth, *other)) + 0.3 * other[1]
    size, one = np.sqrt((log["tau"] ** 2).mean(0)), np.eye(7)

    def columns(q, v, a):
        Y = np.asarray(cj.regressor(panda, q, v, a))[..., list(base.pivots)]
        return np.concatenate([Y, v[..., None] * one, np.ones_like(v)[..., None] * one], axis=-1)

    X = (columns(log["q"], log["v"], log["a"]) / size[:, None]).reshape(-1, base.rank + 14)
    tau = log["tau"] + noise * size * np.random.default_rng(0).normal(size=log["tau"].shape)
    plain = columns(*other) @ np.linalg.lstsq(X, (tau / size).ravel(), rcond=None)[0]
    fit = cj.identify(panda, log | {"tau": tau})
    own, least = (np.sqrt(((x - expected) ** 2).mean()) for x in (fit.torque(*other), plain))
    assert own < 2.0 * least
    assert np.sqrt(((fit.residuals / size) ** 2).mean()) == pytest.approx(noise, rel=0.03)


def test_no_gain_stands_for_bodies_that_are_far_from_the_description():
    """Clean forces of bodies half as large or twice: as near as their noise, though the prior would have them otherwise."""
    panda = cj.load("panda")
    truth, base = perturbed(panda, seed=0, size=0.8), cj.base_parameters(panda)
    log = simulated(truth)
    size = np.sqrt((log["tau"] ** 2).mean(0))
    _, *other = smooth_motion(panda, seed=5)
    expected = np.asarray(cj.inverse_dynamics(truth, *other))
    for noise in (1e-5, 3e-4):
        tau = log["tau"] + noise * size * np.random.default_rng(0).normal(size=log["tau"].shape)
        fit = cj.identify(panda, log | {"tau": tau}, gravity="fixed")
        assert "gain" not in {term for _, term in fit.unknowns}
        assert np.linalg.norm(fit.torque(*other) - expected) < 2.0 * noise * np.linalg.norm(expected)
        assert np.abs(base.values(fit.robot) - base.values(truth)).max() < 10.0 * noise * np.abs(base.values(truth)).max()


def test_friction_that_a_log_cannot_tell_apart_is_dry(arm):
    """At one speed viscous and Coulomb friction are all but the same: the one that does not grow beyond it is taken."""
    t = np.arange(0, 20, 0.02)
    w = np.array([0.9, 1.3, 1.7])
    s, c = np.sin(w * t[:, None]), np.cos(w * t[:, None])
    v = np.tanh(8.0 * s)
    a = 8.0 * w * c * (1.0 - v**2)
    q = np.cumsum(v, axis=0) * 0.02
    exact = np.asarray(cj.inverse_dynamics(arm, q, v, a)) + 0.5 * np.sign(v) + 0.5 * v
    for seed in range(2):
        tau = exact + 4.0 * np.random.default_rng(seed).normal(size=v.shape)
        fit = cj.identify(arm, {"time": t, "q": q, "v": v, "a": a, "tau": tau}, gravity="fixed")
        taken = {(joint, term) for joint, term in fit.unknowns}
        assert all((joint, "coulomb") in taken and (joint, "viscous") not in taken for joint in arm.v_names)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prior", "gaussian"], "gaussian"),
        (["--prior", "-1"], "positive"),
        (["--prior", "nan"], "positive"),
        (["--mass", "hand", "1", "2"], "hand"),
        (["--mass", "{last}", "2", "1"], "least < most"),
        (["--mass", "{last}", "1", "many"], "kg"),
        (["--mass", "{last}", "1", "2", "--mass", "{last}", "1", "3"], "twice"),
        (["--total-mass", "nan", "2"], "least < most"),
        (["--cutoff", "0"], "cutoff"),
        (["--units", "angle=deg"], "q=deg"),
        (["--method", "instrumental_variables"], "--reference q_des"),
        (["--method", "inverse_output_error"], "--kp and --kd"),
        (["--method", "output_error", "--reference", "q_des"], "--reference q_des v_des"),
        (["--method", "output_error", "--kp", "1", "2"], "--kp has 2 numbers"),
        (["--reference", "q_des"], "--method instrumental_variables"),
        (["--friction", "sticky"], "invalid choice"),
        (["--method", "best"], "invalid choice"),
    ],
)
def test_command_refuses_before_any_work(arm, tmp_path, monkeypatch, capsys, words, message):
    from coadjoint.cli import main
    from coadjoint.commands import identify as command

    monkeypatch.chdir(tmp_path)
    cj.save(arm, "arm.json")
    monkeypatch.setattr(command, "identify", lambda *args, **kwargs: pytest.fail("work was begun"))
    line = ["identify", "arm.json", "log.csv", "--out", "found.json", *(x.format(last=arm.link_names[-1]) for x in words)]
    try:
        code = main(line)
    except SystemExit as stop:
        code = stop.code
    assert code
    assert message in capsys.readouterr().err
    assert not Path("found.json").exists()


def table(path):
    with path.open() as file:
        head = file.readline().strip().split(",")
    return dict(zip(head, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))


@needs_data
@pytest.mark.slow
@pytest.mark.native
def test_the_panda_log_is_fitted_by_possible_bodies():
    robot = cj.load("panda")
    fit = cj.identify(robot, DATA / "panda_log" / "excitation.csv")
    assert np.all(fit.rms < [0.17, 0.25, 0.2, 0.25, 0.1, 0.1, 0.07])
    assert all(not inertia.violations(x) for x in fit.robot.inertias)


@needs_data
@pytest.mark.slow
@pytest.mark.native
def test_the_lwr_is_mounted_askew_and_predicts_half_of_its_log_from_the_other():
    with pytest.warns(cj.errors.ModelWarning):
        robot = cj.load(DATA / "lwr4_log" / "lwr4.urdf")
    x = table(DATA / "lwr4_log" / "excitation.csv")
    log = {"time": x["time"]} | {k: np.stack([x[f"{k}{j}"] for j in range(1, 8)], 1) for k in ("q", "v", "a", "tau")}
    half = len(log["time"]) // 2
    fit = cj.identify(robot, {k: y[:half] for k, y in log.items()})
    rest = {k: y[half:] for k, y in log.items()}
    error = np.linalg.norm(fit.torque(rest["q"], rest["v"], rest["a"]) - rest["tau"]) / np.linalg.norm(rest["tau"])
    assert error < 0.03
    assert all(not inertia.violations(y) for y in fit.robot.inertias)


def test_late_forces_are_found_in_a_log_of_any_rate(arm, monkeypatch):
    """Shifts are tried on a sample of the rows, not on all rows for every step of the clock: a log of 1 kHz takes no minutes."""
    looked = []
    monkeypatch.setattr(doubts, "left_over", lambda *x: looked.append(len(x[0])) or left_over(*x))
    time, *motion = smooth_motion(arm, 12.0, 1000.0)
    tau = cj.inverse_dynamics(arm, *motion)[370:]
    time, q, v, a = (x[:-370] for x in (time, *motion))
    used = np.ones(q.shape, dtype=bool)
    data = Prepared(time, q, v, a, tau, used, np.zeros(len(q), dtype=int), 1e-3, np.zeros(q.shape))
    (said,) = doubts._late(arm, data, np.ones(arm.nv, dtype=bool))
    assert "0.37 s earlier" in said
    assert "delay=-0.37 " in said
    assert sum(looked) < 50 * len(q)
