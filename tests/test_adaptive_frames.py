"""Adaptive tracking of a frame on SE(3)."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from coadjoint.control.frame_sliding import frame_sliding
from coadjoint.lie import inertia, se3

pytestmark = pytest.mark.native
PANDA = cj.load("panda")
HOME = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.5])
TIP = PANDA.frame_names[-1]
X0 = np.asarray(cj.pose(PANDA, HOME, TIP))


def turning(t):
    """A pose that goes round and turns: X0 exp(a sin(t) ξ), whose body twist is a cos(t) ξ."""
    xi = np.array([0.3, -0.2, 0.4, 0.1, 0.15, -0.1])
    xp = np if not hasattr(t, "__coadjoint_symbol__") else cj.arrays.namespace(t)
    return X0 @ se3.exp(xp.sin(t) * xi), xp.cos(t) * xi, -xp.sin(t) * xi


def made(posture=HOME, **options):
    given = {"rate": 5.0, "damping": 10.0, "adaptation": 0.5, "links": [PANDA.link_names[-1]]} | options
    return control.adaptive(PANDA, turning, frame=TIP, posture=posture, **given)


@pytest.mark.parametrize("posture", [HOME, None])
def test_the_reference_acceleration_is_the_derivative_of_the_reference_velocity(posture):
    """And the frame moves as it should: J v_r = V_r, J s = w + Λ η."""
    one, rng, h = made(posture), np.random.default_rng(0), 1e-5
    q, v, a, t = HOME + 0.2 * rng.normal(size=7), rng.normal(size=7), rng.normal(size=7), 0.7
    at = lambda h: frame_sliding(one.gains, PANDA, q + h * v + 0.5 * h * h * a, v + h * a, *turning(t + h))
    _, a_r, s = at(0.0)
    np.testing.assert_allclose(a_r, (at(h)[0] - at(-h)[0]) / (2 * h), atol=1e-6)
    X, V, (X_d, V_d, _) = cj.pose(PANDA, q, TIP), cj.jacobian(PANDA, q, TIP) @ v, turning(t)
    between = np.linalg.inv(X) @ X_d
    wanted = se3.Ad(between) @ V_d - V + 5.0 * se3.log(between)
    np.testing.assert_allclose(cj.jacobian(PANDA, q, TIP) @ s, wanted, atol=1e-10)


@pytest.mark.slow
def test_the_lyapunov_function_with_the_distance_of_estimates_falls():
    """d/dt (½ sᵀMs + distance) = -sᵀKs on the true robot, whose hand holds 2 kg more than the controller knows."""
    gamma, K, h = 0.5, 10.0, 1e-5
    plant = PANDA.with_payload(PANDA.link_names[-1], mass=2.0, com=(0.02, 0, 0.1), inertia=0.004)
    one, rng = made(adaptation=gamma, period=h), np.random.default_rng(1)
    true = inertia.pseudo(plant.inertial_parameters.reshape(-1, 10)[-1])

    def value(q, v, t, state):
        s = frame_sliding(one.gains, PANDA, q, v, *turning(t))[2]
        ratio = np.linalg.solve(inertia.pseudo(state), true)
        return cj.kinetic_energy(plant, q, s) + (np.trace(ratio) - 4 - np.log(np.linalg.det(ratio))) / gamma, s

    for _ in range(3):
        q, v, t = HOME + 0.1 * rng.normal(size=7), 0.5 * rng.normal(size=7), rng.uniform(0, 2)
        tau, after = one.step(q, v, t, one.initial)
        a = cj.forward_dynamics(plant, q, v, tau)
        s = value(q, v, t, one.initial)[1]
        ends = [
            value(q + x * v + 0.5 * x * x * a, v + x * a, t + x, one.initial + (x / h) * (after - one.initial))[0] for x in (h, -h)
        ]
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * h), -K * s @ s, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_a_hand_with_an_unknown_load_follows_its_pose():
    """At 1 kHz, one sample late: the error of the pose falls tenfold while the law without adaptation keeps it.

    Forces that come one sample h late are stable for damping K < λ_min(M) / h: 8.6 for this arm and load.
    """
    plant = PANDA.with_payload(PANDA.link_names[-1], mass=2.0, com=(0.0, 0, 0.08), inertia=0.004)

    def largest(one):
        loop = control.closed_loop(plant, one, HOME, np.zeros(7), 10.0, delay=1)
        errors = [np.linalg.norm(se3.log(np.linalg.inv(cj.pose(PANDA, q, TIP)) @ turning(t)[0])) for t, q in zip(loop.time, loop.q)]
        seconds = np.array(errors[:-1]).reshape(10, -1).max(-1)
        return seconds, loop

    adapted, loop = largest(made(adaptation=2.0, damping=5.0))
    fixed, _ = largest(made(adaptation=1e-9, damping=5.0))
    assert adapted[-1] < 0.1 * adapted[:2].max()
    assert adapted[-1] < 0.1 * fixed[-1]
    assert (np.linalg.eigvalsh(inertia.pseudo(loop.state))[:, 0] > 0).all()


def test_wrong_arguments_are_refused():
    for options, message in (
        ({"frame": "nowhere"}, "nowhere"),
        ({"posture": [0.0]}, r"posture has shape \(1,\)"),
        ({"frame": None}, "posture is given without frame"),
        ({"posture_rate": -1.0}, "posture_rate is -1"),
        ({"rate": np.ones(7)}, r"rate has shape \(7,\)"),
    ):
        given = {"frame": TIP, "posture": HOME, "rate": 5.0, "damping": 10.0, "adaptation": 0.5} | options
        with pytest.raises(cj.CoadjointError, match=message):
            control.adaptive(PANDA, turning, **given)
    with pytest.raises(cj.CoadjointError, match="3 freedoms; a frame on SE"):
        control.adaptive(cj.load("planar3r"), np.eye(4), frame="tip", rate=5.0, damping=10.0, adaptation=0.5)
