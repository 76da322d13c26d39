"""Adaptive control, observers and sampled closed loops."""

import pickle

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from coadjoint.control.adaptive import slotine_li_regressor
from coadjoint.lie import inertia
from random_robots import random_robot, random_velocity

ARM = cj.Robot(
    "arm",
    [
        cj.Link.solid(
            "upper", "base", cj.Joint.revolute((0, 0, 1)), mass=2.0, com=(0.25, 0, 0), inertia=np.diag([0.01, 0.05, 0.05])
        ),
        cj.Link.solid(
            "lower",
            "upper",
            cj.Joint.revolute((0, 1, 0)),
            cj.lie.se3.pose(np.eye(3), np.array([0.5, 0, 0])),
            mass=1.0,
            com=(0.2, 0, 0),
            inertia=np.diag([0.005, 0.02, 0.02]),
        ),
    ],
)
REFERENCE = control.sinusoid(ARM, [0.2, -0.4], [0.8, 0.7], [0.5, 0.8])


def loaded(mass=1.5):
    return ARM.with_payload("lower", mass=mass, com=(0.4, 0.0, 0.03), inertia=0.002)


@pytest.mark.parametrize("kinds", [["revolute", "spherical", "prismatic"], ["free", "revolute"], ["planar", "spherical", "free"]])
def test_the_regressor_is_that_of_the_christoffel_form(kinds):
    """Y φ = M a_r + C(q, v) v_r + g, by the matrices themselves; for v_r = v it is the regressor of the inverse dynamics."""
    robot, rng = random_robot(3, 4, kinds), np.random.default_rng(0)
    q, v, v_r, a_r = robot.random(rng), *(random_velocity(robot, rng) for _ in range(3))
    force = cj.mass_matrix(robot, q) @ a_r + cj.coriolis_matrix(robot, q, v) @ v_r + cj.gravity_force(robot, q)
    Y = slotine_li_regressor(robot, q, v, v_r, a_r)
    np.testing.assert_allclose(Y @ robot.inertial_parameters, force, atol=1e-10)
    np.testing.assert_allclose(slotine_li_regressor(robot, q, v, v, a_r), cj.regressor(robot, q, v, a_r), atol=1e-10)


def test_with_true_parameters_it_is_the_passivity_based_law():
    """Also for drives with armature, which no inertial parameter holds."""
    robot = ARM.with_joint("upper_joint", armature=0.7).with_joint("lower_joint", armature=0.3)
    q, v, gains = np.array([0.3, -0.8]), np.array([0.5, 1.0]), {"rate": 4.0, "damping": 3.0}
    one = control.adaptive(robot, REFERENCE, adaptation=1.0, **gains)
    expected = control.passivity_based(robot, REFERENCE, **gains).force(q, v, 0.4)
    np.testing.assert_allclose(one.step(q, v, 0.4, one.initial)[0], expected, rtol=1e-12)


def divergence(P, true):
    ratio = np.linalg.solve(P, true)
    return -np.log(np.linalg.det(ratio)) + np.trace(ratio) - 4


@pytest.mark.parametrize("metric", ["natural", "euclidean", "base"])
def test_the_lyapunov_function_with_the_distance_of_estimates_falls(metric):
    """d/dt (½ sᵀMs + distance) = -sᵀKs: one short step of estimates, to first order."""
    plant, rng = loaded(), np.random.default_rng(1)
    gamma, K, h = 2.0, np.array([5.0, 3.0]), 1e-6
    one = control.adaptive(ARM, REFERENCE, rate=4.0, damping=K, adaptation=gamma, period=h, metric=metric)
    true = plant.inertial_parameters.reshape(-1, 10)

    def value(q, v, t, state):
        q_d, v_d, _ = REFERENCE(t)
        s = v_d - v + 4.0 * (q_d - q)
        if metric == "base":
            base = cj.base_parameters(ARM)
            return cj.kinetic_energy(plant, q, s) + np.sum((state - base.values(plant)) ** 2) / (2 * gamma), s
        parts = state.reshape(-1, 10)
        if metric == "natural":
            distance = sum(divergence(inertia.pseudo(x), inertia.pseudo(y)) for x, y in zip(parts, true, strict=True)) / gamma
        else:
            distance = np.sum((parts - true) ** 2) / (2 * gamma)
        return cj.kinetic_energy(plant, q, s) + distance, s

    for _ in range(3):
        q, v, t = rng.normal(size=2), rng.normal(size=2), rng.uniform(0, 2)
        tau, after = one.step(q, v, t, one.initial)
        a = cj.forward_dynamics(plant, q, v, tau)
        _, s = value(q, v, t, one.initial)
        back = 2 * one.initial - after  # a central difference, whose error is of second order
        later, _ = value(q + h * v, v + h * a, t + h, after)
        earlier, _ = value(q - h * v, v - h * a, t - h, back)
        np.testing.assert_allclose((later - earlier) / (2 * h), -s @ (K * s), rtol=2e-4, atol=1e-3)


def test_base_parameters_are_few_and_start_with_the_same_forces():
    rng = np.random.default_rng(5)
    few, all_of_them = (
        control.adaptive(ARM, REFERENCE, rate=4.0, damping=3.0, adaptation=1.0, metric=metric) for metric in ("base", "euclidean")
    )
    assert few.initial.size == cj.base_parameters(ARM).rank < all_of_them.initial.size
    q, v = rng.normal(size=2), rng.normal(size=2)
    np.testing.assert_allclose(few.step(q, v, 0.2, few.initial)[0], all_of_them.step(q, v, 0.2, all_of_them.initial)[0], rtol=1e-10)
    state = few.initial + 1e-3 * rng.normal(size=few.initial.size)
    np.testing.assert_allclose(cj.base_parameters(ARM).values(control.estimates(few, state)), state, atol=1e-12)
    with pytest.raises(cj.CoadjointError, match="leave links out"):
        control.adaptive(ARM, REFERENCE, rate=4.0, damping=3.0, adaptation=1.0, metric="base", links=["lower"])


def test_natural_estimates_are_inertias_whatever_the_gain():
    rng = np.random.default_rng(2)
    for gamma in (1.0, 1e3, 1e6):
        one = control.adaptive(ARM, REFERENCE, rate=4.0, damping=3.0, adaptation=gamma, period=1e-2)
        state = one.initial
        for _ in range(20):
            _, state = one.step(rng.normal(size=2), rng.normal(size=2), 0.0, state)
            if not np.isfinite(state).all() or np.abs(state).max() > 1e12:
                break
            for part in state.reshape(-1, 10):
                values = np.linalg.eigvalsh(inertia.pseudo(part))
                assert values[0] > -1e-14 * values[-1]


def test_natural_estimates_do_not_depend_on_the_unit_of_length():
    """In millimetres lengths are 1000 times larger: energies 10⁶ times, and γ 10⁻⁶ times as large gives the same motion of estimates."""
    unit = 1000.0
    scale = np.array([1, unit, unit, unit, *[unit**2] * 6])
    long = cj.Robot(
        "arm",
        [
            cj.Link.solid(x.name, x.parent, x.joint, cj.lie.se3.pose(x.placement[:3, :3], unit * x.placement[:3, 3]), **body)
            for x, body in zip(
                ARM.links,
                [
                    {"mass": 2.0, "com": (0.25 * unit, 0, 0), "inertia": np.diag([0.01, 0.05, 0.05]) * unit**2},
                    {"mass": 1.0, "com": (0.2 * unit, 0, 0), "inertia": np.diag([0.005, 0.02, 0.02]) * unit**2},
                ],
                strict=True,
            )
        ],
        gravity=(0, 0, -9.81 * unit),
    )
    q, v = np.array([0.3, -0.8]), np.array([0.5, 1.0])
    options = {"rate": 4.0, "period": 1e-3}
    short = control.adaptive(ARM, REFERENCE, damping=3.0, adaptation=5.0, **options)
    far = control.adaptive(long, REFERENCE, damping=3.0 * unit**2, adaptation=5.0 / unit**2, **options)
    tau, state = short.step(q, v, 0.4, short.initial)
    tau_long, state_long = far.step(q, v, 0.4, far.initial)
    np.testing.assert_allclose(tau_long, tau * unit**2, rtol=1e-10)
    np.testing.assert_allclose(state_long.reshape(-1, 10), state.reshape(-1, 10) * scale, rtol=1e-9, atol=1e-9)


@pytest.mark.native
def test_an_unknown_payload_is_learned():
    plant = loaded()
    q, v, _ = REFERENCE(0.0)
    error = lambda loop: np.abs(loop.q - np.array([REFERENCE(t)[0] for t in loop.time])).max(1)
    fixed = error(control.closed_loop(plant, control.passivity_based(ARM, REFERENCE, rate=8.0, damping=5.0), q, v, 6.0))
    one = control.adaptive(ARM, REFERENCE, rate=8.0, damping=5.0, adaptation=10.0, links=["lower"])
    loop = control.closed_loop(plant, one, q, v, 6.0)
    assert error(loop)[-1000:].max() < 0.1 * fixed[-1000:].max()
    for state in loop.state[::50]:
        assert np.linalg.eigvalsh(inertia.pseudo(state)).min() > 0
    learned = control.estimates(one, loop.state[-1])
    assert abs(learned.parameters("masses")[1] - plant.parameters("masses")[1]) < 0.2
    # the same in `simulate`, sample by sample
    running = pickle.loads(pickle.dumps(one)).start()
    motion = cj.simulate(plant, q, v, np.linspace(0, 0.2, 3), control=running, period=one.period)
    np.testing.assert_allclose(motion.q[-1], loop.q[200], atol=1e-6)
    np.testing.assert_allclose(running.states[199], loop.state[199], atol=1e-6)


@pytest.mark.native
@pytest.mark.slow
def test_a_panda_learns_what_it_holds():
    """2 kg that it does not know: in 10 s the error falls to a tenth. Natural estimates are always inertias; Euclidean ones are not."""
    panda, home = cj.load("panda"), np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5])
    last, own = panda.link_names[-1], np.diag(cj.mass_matrix(panda, home))
    plant = panda.with_payload(last, mass=2.0, com=(0.02, 0.01, 0.1), inertia=0.005)
    reference = control.sinusoid(panda, home, [0.5, 0.3, 0.5, 0.3, 0.5, 0.5, 0.5], [0.3, 0.4, 0.5, 0.4, 0.6, 0.5, 0.7])
    error, least = {}, {}
    for metric in ("natural", "euclidean"):
        one = control.adaptive(
            panda, reference, rate=20.0, damping=20 * np.maximum(own, 0.02), adaptation=2.0, links=[last], metric=metric
        )
        loop = control.closed_loop(plant, one, *reference(0.0)[:2], 10.0)
        error[metric] = np.abs(loop.q - np.array([reference(t)[0] for t in loop.time])).max(1)
        least[metric] = np.linalg.eigvalsh(inertia.pseudo(loop.state)).min(-1)
    assert error["natural"][-1000:].max() < 0.1 * error["natural"][:1000].max()
    assert least["natural"].min() > 0 > least["euclidean"].min()


@pytest.mark.native
def test_an_adaptation_too_fast_for_the_samples_is_told():
    one = control.adaptive(ARM, REFERENCE, rate=8.0, damping=5.0, adaptation=1e4, links=["lower"])
    with pytest.raises(cj.CoadjointError, match="choose a smaller adaptation"):
        control.closed_loop(loaded(), one, *REFERENCE(0.0)[:2], 6.0)


@pytest.mark.native
def test_friction_is_learned():
    plant = ARM.with_joint(ARM.joint_names[0], damping=2.0).with_joint(ARM.joint_names[1], damping=1.0)
    q, v, _ = REFERENCE(0.0)
    one = control.adaptive(ARM, REFERENCE, rate=8.0, damping=5.0, adaptation=1e-6, links=["lower"], friction=3.0)
    loop = control.closed_loop(plant, one, q, v, 8.0, friction=True)
    error = np.abs(loop.q - np.array([REFERENCE(t)[0] for t in loop.time])).max(1)
    assert error[-1000:].max() < 0.2 * error[:2000].max()
    np.testing.assert_allclose(loop.state[-1][10:12], [2.0, 1.0], atol=0.5)


@pytest.mark.native
def test_the_residual_of_the_observer_is_the_external_force_filtered():
    rate, h = 30.0, 1e-3
    observer = control.momentum_observer(ARM, gain_rate=rate, period=h)
    one = control.computed_torque(ARM, REFERENCE, kp=100.0, kd=20.0)
    push = np.array([3.0, -2.0])
    q, v, _ = REFERENCE(0.0)
    state = observer.state(q, v)
    for k in range(200):
        tau = one.force(q, v, k * h)
        motion = cj.simulate(ARM, q, v, np.array([0.0, h]), control=tau + push)
        q, v = motion.q[-1], motion.v[-1]
        state = observer.update(q, v, tau, state)
        expected = push * (1 - (1 + h * rate) ** -(k + 1.0))
        np.testing.assert_allclose(observer.residual(state), expected, atol=0.03)
    assert np.abs(observer.residual(state) - push).max() < 0.03
    assert observer.collided(state, [2.9, 9.0])
    assert not observer.collided(state, 3.2)
    assert not observer.collided(observer.state(q, v), 1e-3)
    with pytest.raises(cj.CoadjointError, match="threshold is -1"):
        observer.collided(state, -1.0)


@pytest.mark.native
def test_delays_encoders_and_noise_cost_what_they_should():
    """Stated degradation at 1 kHz: tracking within 1e-3 rad ideal, 3e-3 with all of them together; no instability."""
    one = control.computed_torque(ARM, REFERENCE, kp=100.0, kd=20.0)
    q, v, _ = REFERENCE(0.0)
    noise = 1e-2 * np.random.default_rng(3).normal(size=(2000, 2))
    wanted = np.array([REFERENCE(t)[0] for t in 1e-3 * np.arange(2001)])
    error = lambda **options: np.abs(control.closed_loop(ARM, one, q, v, 2.0, **options).q - wanted)[500:].max()
    assert error() < 1e-3
    assert error(delay=1, resolution=2 * np.pi / 2**17, noise=noise) < 3e-3


@pytest.mark.native
def test_closed_loops_are_batched_over_states_and_robots():
    one = control.computed_torque(ARM, REFERENCE, kp=100.0, kd=20.0)
    q, v = np.zeros((3, 2)), np.zeros((3, 2))
    masses = np.array([[2.0, 1.0], [2.0, 1.5], [2.5, 0.7]])
    many = control.closed_loop(ARM, one, q, v, 0.1, parameters={"masses": masses}, limits=[30.0, 8.0])
    for k in range(3):
        alone = control.closed_loop(ARM.with_parameters("masses", masses[k]), one, q[k], v[k], 0.1, limits=[30.0, 8.0])
        np.testing.assert_allclose(many.q[k], alone.q, atol=1e-12)
        assert np.abs(alone.tau).max(0)[1] <= 8.0
    first = control.closed_loop(ARM, one, q[0], v[0], 0.1)
    motion = cj.simulate(ARM, q[0], v[0], np.linspace(0, 0.1, 3), control=one, period=1e-3)
    np.testing.assert_allclose(first.q[-1], motion.q[-1], atol=1e-7)
