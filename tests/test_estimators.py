"""Estimators, priors and bounds of identification: exact data return, instruments are less biased, bounds hold, frames do not matter."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, LogWarning
from coadjoint.identification import Identification, output_error
from coadjoint.identification.bounds import bound_rows
from coadjoint.identification.consistency import ConsistentFit
from coadjoint.identification.interior import Program
from coadjoint.identification.priors import PhysicalFit
from coadjoint.lie import inertia, se3
from recorded_motions import moved_frames, perturbed, simulated, smooth_motion

pytestmark = pytest.mark.native

ROWS = ("ordinary", "weighted", "reweighted", "maximum_likelihood")


@pytest.fixture(scope="module")
def arm():
    robot = cj.load("ur5e")
    return robot.lock(dict.fromkeys(robot.joint_names[3:], 0.3))


def two_links():
    robot = cj.load("planar2r")
    for link in robot.link_names:
        robot = robot.with_inertia(link, mass=1.0, com=(0.5, 0.0, 0.0), inertia=0.08)
    return robot


def base_error(fit, truth):
    expected = fit.base_matrix.matrix @ truth.inertial_parameters
    return np.abs(fit.base_matrix.matrix @ fit.rigid.inertial_parameters - expected).max() / np.abs(expected).max()


# --- every estimator returns exact data


@pytest.mark.parametrize("method", [*ROWS, "instrumental_variables"])
def test_exact_data_return_exactly(arm, method):
    truth = perturbed(arm)
    log = simulated(truth, friction=0.7)
    more = {"simulation": {"reference": (log["q"], log["v"], log["a"])}} if method == "instrumental_variables" else {}
    fit = cj.identify(arm, log, method=method, friction=("offset", "viscous"), gravity="fixed", **more)
    assert base_error(fit, truth) < 1e-8
    assert np.abs(fit.robot.damping - 0.7).max() < 1e-7
    expected = fit.base_matrix.matrix @ truth.inertial_parameters
    assert np.abs(fit.estimate[: len(expected)] - expected).max() < 1e-8 * np.abs(expected).max()
    assert all(not inertia.violations(x) for x in fit.robot.inertias)
    assert method.replace("_", " ") in str(fit)


@pytest.mark.parametrize("method", ["output_error", "inverse_output_error"])
def test_simulated_motions_return_exactly(method):
    """The motion is made by the same steps of Runge and Kutta's method, so the truth is the exact optimum."""
    robot = two_links()
    truth, damping = perturbed(robot, size=0.3), np.array([0.4, 0.2])
    t = 0.004 * np.arange(301)
    q_r, v_r = np.stack([np.sin(5 * t), 0.7 * np.cos(7 * t) - 0.7], 1), np.stack([5 * np.cos(5 * t), -4.9 * np.sin(7 * t)], 1)
    kp, kd = np.array([300.0, 200.0]), np.array([20.0, 15.0])
    forces = np.stack([20 * np.sin(9 * t) + 10, 12 * np.cos(13 * t)], 1)

    def force(k, w, q, v):
        if method == "output_error":
            return forces[k]
        x, y = between(t, q_r, v_r, k, w)
        return kp * (x - q) + kd * (y - v)

    q, v = runge_kutta(t, q_r[0], v_r[0], lambda k, w, q, v: cj.forward_dynamics(truth, q, v, force(k, w, q, v) - damping * v))
    inverse = {"reference": (q_r, v_r), "kp": kp, "kd": kd}
    tau = forces if method == "output_error" else kp * (q_r - q) + kd * (v_r - v)
    log = {"time": t, "q": q, "v": v, "tau": tau}
    fit = cj.identify(
        robot,
        log,
        method=method,
        simulation={"hold": "zero"} if method == "output_error" else inverse,
        friction=("viscous",),
        gravity="fixed",
    )
    assert base_error(fit, truth) < 1e-8
    assert np.abs(fit.robot.damping - damping).max() < 1e-8
    expected = np.asarray(cj.inverse_dynamics(truth, q, v, 0 * q)) + damping * v
    assert np.abs(fit.torque(q, v, 0 * q) - expected).max() < 1e-7 * np.abs(expected).max()
    assert isinstance(fit, Identification)
    assert fit.parameters[f"{robot.joint_names[0]}.viscous"].is_visible


def runge_kutta(t, q, v, acceleration):
    """q and v (..., N, n) at times t, a step of fourth order between two; acceleration(k, w, q, v) at part w of step k."""
    qs, vs = [q], [v]
    for k, h in enumerate(np.diff(t)):
        v1, a1 = v, acceleration(k, 0.0, q, v)
        v2, a2 = v + 0.5 * h * a1, acceleration(k, 0.5, q + 0.5 * h * v1, v + 0.5 * h * a1)
        v3, a3 = v + 0.5 * h * a2, acceleration(k, 0.5, q + 0.5 * h * v2, v + 0.5 * h * a2)
        v4, a4 = v + h * a3, acceleration(k, 1.0, q + h * v3, v + h * a3)
        q, v = q + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        qs.append(q)
        vs.append(v)
    return np.stack(qs, axis=-2), np.stack(vs, axis=-2)


def between(t, q, v, k, w):
    """The cubic curve through positions and velocities at both ends of step k."""
    h, d = t[k + 1] - t[k], q[k + 1] - q[k]
    at = q[k] + (3 * w**2 - 2 * w**3) * d + h * ((w**3 - 2 * w**2 + w) * v[k] + (w**3 - w**2) * v[k + 1])
    return at, (6 * w - 6 * w**2) * d / h + (3 * w**2 - 4 * w + 1) * v[k] + (3 * w**2 - 2 * w) * v[k + 1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the model explains little")  # noise is most of these forces
def test_instruments_are_less_biased_where_the_loop_feeds_noise_back():
    """Encoder noise enters the controller's forces and the regressor: least squares is biased, IDIM-IV is not. Means of 8 runs."""
    robot = two_links()
    rng, runs, t = np.random.default_rng(0), 8, 0.01 * np.arange(501)
    kp, kd = np.array([400.0, 150.0]), np.array([25.0, 10.0])
    w = 2 * np.pi * np.array([[0.4, 0.9], [0.55, 1.3]])
    q_r = np.sin(t[:, None] * w[0]) + 0.4 * np.cos(t[:, None] * w[1])
    v_r = w[0] * np.cos(t[:, None] * w[0]) - 0.4 * w[1] * np.sin(t[:, None] * w[1])
    noise = 4e-3 * rng.normal(size=(runs, len(t), 2))

    def acceleration(k, w, q, v):
        x, y = between(t, q_r, v_r, k, w)
        return cj.forward_dynamics(robot, q, v, kp * (x - q - noise[:, k]) + kd * (y - v))

    first = np.broadcast_to(q_r[0], (runs, 2)), np.broadcast_to(v_r[0], (runs, 2))
    q, v = runge_kutta(t, *first, acceleration)
    u = kp * (q_r - q - noise) + kd * (v_r - v)
    truth = cj.base_parameters(robot).values(robot)
    found = {"weighted": [], "instrumental_variables": []}
    for k in range(runs):
        log = {"time": t, "q": q[k] + noise[k], "tau": u[k]}
        for method, values in found.items():
            simulation = {"reference": (q_r, v_r), "kp": kp, "kd": kd} if method == "instrumental_variables" else None
            fit = cj.identify(
                robot, log, method=method, simulation=simulation, cutoff=20.0, friction=("offset",), gravity="fixed", prior=1.0
            )
            values.append(fit.estimate[: len(truth)])
    bias = {method: np.abs(np.mean(x, axis=0) - truth) / np.abs(truth).max() for method, x in found.items()}
    assert np.linalg.norm(bias["instrumental_variables"]) < 0.3 * np.linalg.norm(bias["weighted"])


@pytest.mark.slow
def test_covariances_know_correlated_residuals(arm):
    """Over noisy logs the estimates scatter as the covariance says, for noise that lasts for many rows."""
    t, q, v, a = smooth_motion(arm, seconds=8.0)
    exact = np.asarray(cj.inverse_dynamics(arm, q, v, a))
    rng, scores = np.random.default_rng(1), {"weighted": [], "maximum_likelihood": []}
    for _ in range(12):
        e = rng.normal(size=exact.shape)
        for k in range(1, len(e)):
            e[k] = 0.9 * e[k - 1] + np.sqrt(1 - 0.81) * e[k]
        log = {"time": t, "q": q, "v": v, "a": a, "tau": exact + 0.3 * e}
        for method, found in scores.items():
            fit = cj.identify(arm, log, method=method, friction=("offset",), gravity="fixed", prior=1.0)
            truth = fit.base_matrix.matrix @ arm.inertial_parameters
            found.append((fit.estimate[: len(truth)] - truth) / np.sqrt(np.diag(fit.covariance)[: len(truth)]))
    for found in scores.values():
        assert 0.7 < np.sqrt(np.mean(np.square(found))) < 1.35


def test_reweighting_resists_rows_that_are_far_off(arm):
    log = simulated(arm, noise=0.05)
    wild = np.random.default_rng(2).random(log["tau"].shape) < 0.03
    log["tau"] = np.where(wild, log["tau"] + 40.0, log["tau"])
    options = {"friction": ("offset",), "gravity": "fixed", "prior": 1.0}
    with pytest.warns(LogWarning) as told:
        plain = cj.identify(arm, log, method="weighted", **options)
    assert all(" a tenth of the rows has 9" in str(x.message) for x in told)
    robust = cj.identify(arm, log, method="reweighted", **options)  # warns of nothing
    truth = plain.base_matrix.matrix @ arm.inertial_parameters
    error = [np.abs(x.estimate[: len(truth)] - truth).max() for x in (plain, robust)]
    assert error[1] < 0.1 * error[0]


# --- priors


@pytest.mark.parametrize("kind", ["entropic", "riemannian", "euclidean"])
def test_derivatives_of_priors_are_those_of_their_values(arm, kind):
    rng, n = np.random.default_rng(0), 10 * arm.n_links
    near = np.array(perturbed(arm, size=0.1).inertial_parameters)
    C, d = bound_rows(arm, {"total_mass": (1.0, 100.0), "box": {arm.link_names[0]: ((-1, -1, -1), (1, 1, 1))}})
    problem = PhysicalFit(np.eye(n), near, np.eye(n), arm.inertias, np.array([0]), kind=kind, C=C, d=d)
    g, H = problem.derivatives(near, 2.0, 0.3)
    for _ in range(3):
        step = rng.normal(size=n) * 1e-4 * np.abs(near)
        ahead, behind = (problem.value(near + s * step, 2.0, 0.3) for s in (0.1, -0.1))
        assert 5.0 * (ahead - behind) == pytest.approx(g @ step, rel=1e-5, abs=1e-9)
        ahead, behind = (problem.value(near + s * step, 2.0, 0.3) for s in (1.0, -1.0))
        middle = problem.value(near, 2.0, 0.3)
        assert ahead + behind - 2 * middle == pytest.approx(step @ H @ step, rel=2e-2, abs=1e-9)


@pytest.mark.parametrize("prior", ["entropic", "riemannian"])
def test_invariant_priors_do_not_depend_on_frames(arm, prior):
    log = simulated(perturbed(arm), noise=0.3)
    options = {"friction": ("offset", "viscous"), "prior": prior, "weight": 3.0, "gravity": "fixed"}
    fit = cj.identify(arm, log, **options)
    T = se3.exp(np.random.default_rng(3).normal(size=(arm.n_links, 6)) * 0.4)
    other = cj.identify(moved_frames(arm, T), log, **options)
    _, q, v, a = smooth_motion(arm, seed=8)
    expected = fit.torque(q, v, a)
    assert np.abs(other.torque(q, v, a) - expected).max() < 1e-5 * np.abs(expected).max()


def test_estimates_do_not_depend_on_units(arm):
    """A robot in millimetres and milligrams, forces scaled alike: the same inertias."""
    log = simulated(perturbed(arm), noise=0.3)
    mass, length = 50.0, 20.0
    scale = np.tile(mass * length ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2.0]), arm.n_links)
    placements = np.array(arm.placements)
    placements[:, :3, 3] *= length
    screws = np.array(arm.screws)
    screws[:, 3:] *= length
    large = arm.with_numbers(placements=placements, screws=screws, gravity=length * np.asarray(arm.gravity)).consolidated()
    large = large.with_inertial_parameters(scale * np.asarray(arm.inertial_parameters))
    options = {"friction": ("offset", "viscous"), "gravity": "fixed", "prior": 3.0}
    fit = cj.identify(arm, log, **options)
    other = cj.identify(large, log | {"tau": mass * length**2 * log["tau"]}, **options)
    _, q, v, a = smooth_motion(arm, seed=8)
    expected = mass * length**2 * fit.torque(q, v, a)
    assert np.abs(other.torque(q, v, a) - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("prior", ["riemannian", "euclidean"])
def test_weights_are_chosen_by_held_back_stretches(arm, prior):
    truth = perturbed(arm)
    fit = cj.identify(arm, simulated(truth, noise=0.2), friction=("offset",), prior=prior, gravity="fixed")
    assert fit.gamma in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    assert prior in str(fit)
    assert all(not inertia.violations(x) for x in fit.robot.inertias)
    assert fit.relative_error < 0.05


# --- bounds


def test_bounds_hold_and_are_reached(arm):
    log = simulated(perturbed(arm), noise=0.05)
    masses = np.array(arm.inertias)[:, 0]
    first, last = arm.link_names[0], arm.link_names[-1]
    bounds = {
        "mass": {first: (1.3 * masses[0], 2.0 * masses[0])},
        "total_mass": 1.2 * masses.sum(),
        "ellipsoid": {last: ((0, 0, 0), (0.3, 0.3, 0.3))},
        "box": {arm.link_names[1]: ((-0.6, -0.2, -0.2), (0.1, 0.2, 0.3))},
    }
    for options in ({}, {"method": "weighted"}, {"prior": "euclidean", "weight": 1.0}):
        fit = cj.identify(arm, log, friction=("offset",), gravity="fixed", bounds=bounds, **options)
        C, d = bound_rows(arm, bounds)
        assert (C @ fit.robot.inertial_parameters - d).min() > 0
        found = np.array(fit.robot.inertias)[:, 0]
        assert found.sum() == pytest.approx(1.2 * masses.sum(), rel=1e-5)
        assert all(not inertia.violations(x) for x in fit.robot.inertias)
        assert fit.relative_error < 0.1


def test_mass_inside_fulfils_the_inequalities_and_mass_outside_does_not(arm):
    """Points of mass in a box or an ellipsoid; a speck far outside breaks them."""
    rng, link = np.random.default_rng(0), arm.link_names[0]
    lower, upper = np.array([-0.1, -0.2, 0.0]), np.array([0.3, 0.1, 0.2])
    axes = rng.normal(size=(3, 3)) * 0.2
    bounds = {"box": {link: (lower, upper)}, "ellipsoid": {link: (0.5 * (lower + upper), axes)}}
    for kind in bounds:
        C, _ = bound_rows(arm, {kind: bounds[kind]})
        for _ in range(50):
            z = rng.uniform(-1, 1, size=(4, 3))
            x = 0.5 * (lower + upper) + (z * 0.5 * (upper - lower) if kind == "box" else z @ axes.T / np.sqrt(3.0))
            h = np.concatenate([x, np.ones((4, 1))], axis=1) * np.sqrt(rng.random(4))[:, None]
            phi = np.zeros(10 * arm.n_links)
            phi[:10] = np.asarray(inertia.from_pseudo(h.T @ h))
            assert (C @ phi).min() > -1e-12
        h = np.append(x[0] + 5.0, 1.0)
        phi[:10] += np.asarray(inertia.from_pseudo(np.outer(h, h)))
        assert (C @ phi).min() < 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method is 'magic'"),
        ({"prior": "flat"}, "prior is 'flat'"),
        ({"prior": "euclidean", "weight": -1.0}, "weight of the prior is -1.0"),
        ({"bounds": {"volume": 1}}, "bounds has 'volume'"),
        ({"bounds": {"mass": {"tail": (0, 1)}}}, "no link is named 'tail'"),
        ({"bounds": {"total_mass": (3, 2)}}, "least < most"),
        ({"bounds": {"box": {"upper_arm_link": ((0, 0, 0), (1, -1, 1))}}}, "every lower coordinate"),
        ({"bounds": {"ellipsoid": {"upper_arm_link": ((0, 0, 0), (1, 0, 1))}}}, "semi-axes"),
        ({"method": "instrumental_variables"}, "needs the motion that the robot was told"),
        ({"method": "instrumental_variables", "simulation": {"reference": np.zeros((3, 3))}}, r"shape \(3, 3\)"),
        ({"method": "instrumental_variables", "simulation": {"gain": 3}}, "simulation has 'gain'"),
        ({"method": "output_error", "simulation": {"speed": 3}}, "simulation has 'speed'"),
        ({"bounds": {"total_mass": (0.1, 0.2), "mass": {"upper_arm_link": (1, 2)}}}, "no possible bodies"),
    ],
)
def test_wrong_options_are_named(arm, options, message):
    names = arm.link_names
    text = str(options).replace("upper_arm_link", names[1])
    if "upper_arm_link" in str(options):
        options = eval(text)
    with pytest.raises(CoadjointError, match=message):
        cj.identify(arm, simulated(arm, noise=0.01), friction=("offset",), gravity="fixed", **options)


# --- the own solver


def problem(seed, noise=2.0):
    robot = cj.load("panda")
    rng = np.random.default_rng(seed)
    q, v, a = robot.random(rng, (100,)), *rng.normal(size=(2, 100, robot.nv))
    Y = np.asarray(cj.regressor(robot, q, v, a)).reshape(-1, 10 * robot.n_links)
    y = Y @ robot.inertial_parameters + noise * rng.normal(size=len(Y))
    return robot, Y.T @ Y + 1e-6 * np.eye(Y.shape[1]), Y.T @ y


def test_the_constrained_optimum_is_optimal():
    """No feasible step of any kind lowers the objective: the multipliers' residual is small, and random possible bodies are worse."""
    robot, A, b = problem(0)
    x = ConsistentFit(A, b, np.eye(len(b)), robot.inertias).constrained(np.array(robot.inertial_parameters), 1e-9)
    assert np.linalg.eigvalsh(np.asarray(inertia.pseudo(x.reshape(-1, 10)))).min() > 0
    gradient, rng = A @ x - b, np.random.default_rng(1)
    size = abs(0.5 * x @ A @ x - b @ x)
    for _ in range(200):
        H = rng.normal(size=(robot.n_links, 4, 4))
        other = np.asarray(inertia.from_pseudo(H @ np.swapaxes(H, 1, 2))).reshape(-1)
        assert gradient @ (other - x) > -1e-8 * size * (1 + np.linalg.norm(other - x))
    assert abs(gradient @ x) < 1e-7 * size  # a cone: the gradient is normal to the optimum


def test_an_infeasible_start_is_no_obstacle():
    robot, A, b = problem(1)
    C, d = bound_rows(robot, {"total_mass": (5.0, 6.0)})
    program = Program(A, b, np.eye(len(b)), C=C, d=d)
    x = program.solve(np.array(robot.inertial_parameters))
    assert program.feasible
    assert 5.0 <= x.reshape(-1, 10)[:, 0].sum() <= 6.0 + 1e-6


@pytest.mark.slow
def test_the_optimum_is_clarabels():
    pytest.importorskip("clarabel")
    from benchmarks.identification import clarabel_optimum

    for seed in range(10):
        robot, A, b = problem(seed)
        x = ConsistentFit(A, b, np.eye(len(b)), robot.inertias).constrained(np.array(robot.inertial_parameters))
        value, other = 0.5 * x @ A @ x - b @ x, clarabel_optimum(A, b, robot.n_links)[1].obj_val
        assert abs(value - other) < 1e-6 * abs(other)
        assert np.linalg.eigvalsh(np.asarray(inertia.pseudo(x.reshape(-1, 10)))).min() > 0


def test_stretches_give_output_error_its_scatter():
    """With many stretches the covariance knows residuals that are correlated within one; for independent noise both agree."""
    robot = two_links()
    t = 0.004 * np.arange(501)
    forces = np.stack([9 * np.sin(9 * t), 5 * np.cos(13 * t)], 1)
    q, v = cj.rollout(robot, np.zeros(2), np.zeros(2), forces[:-1], dt=0.004, method="rk4")
    q = q + 1e-5 * np.random.default_rng(0).normal(size=q.shape)
    log = {"time": t, "q": q, "v": v, "tau": forces}
    many = output_error(robot, log, horizon=0.05, hold="zero")
    few = output_error(robot, log, horizon=0.4, hold="zero")
    for fit in (many, few):
        assert np.all(np.abs(fit.values - cj.base_parameters(robot).values(robot)) < 4 * fit.deviation)
    assert np.all(many.deviation > 0.5 * few.deviation)
