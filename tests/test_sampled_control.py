"""Sampled controllers: the same loop in `simulate`, `rollout`, `closed_loop`, by hand and as C."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from coadjoint.errors import CoadjointError

ARM = cj.load("planar2r")
Q, V, H = np.array([0.3, -0.2]), np.array([0.1, 0.4]), 1e-3
AHEAD = control.sinusoid(ARM, 0.1, 0.2, 0.5)


def by_hand(law, steps, delay, resolution, noise):
    """The loop written with a motion of `simulate` for every period."""
    q, v, held, last, found = Q, V, np.zeros(2), None, []
    for k in range(steps):
        seen, speed = q, v
        if resolution:
            seen = np.floor(q / resolution + 0.5) * resolution
            speed = np.zeros(2) if last is None else (seen - last) / H
            last = seen
        asked = law.force(seen, speed + noise(k * H), k * H)
        tau, held = (held, asked) if delay else (asked, asked)
        motion = cj.simulate(ARM, q, v, [0.0, H], control=tau)
        q, v = motion.q[-1], motion.v[-1]
        found.append(q)
    return np.array(found)


@pytest.mark.native
@pytest.mark.parametrize(("delay", "resolution", "noisy"), [(0, 0.0, False), (1, 0.0, True), (1, 2e-4, True)])
def test_every_loop_is_the_one_by_hand(delay, resolution, noisy):
    law, steps = control.computed_torque(ARM, AHEAD, kp=100.0, kd=20.0), 12
    noise = (lambda t: 1e-2 * np.sin(900.0 * t) * np.ones(2)) if noisy else (lambda t: np.zeros(2))
    one = control.sampled(law, delay=delay, resolution=resolution, noise=noise if noisy else None)
    expected = by_hand(law, steps, delay, resolution, noise)
    times = H * np.arange(steps + 1)
    simulated = cj.simulate(ARM, Q, V, times, control=one)
    np.testing.assert_allclose(simulated.q[1:], expected, atol=1e-9)
    both = cj.rollout(ARM, np.stack([Q, Q]), V, dt=H, steps=steps, control=one, method="rk4")[0]
    np.testing.assert_allclose(both[:, 1:], [expected, expected], atol=1e-9)
    many = cj.simulate(ARM, np.stack([Q, Q]), V, times, control=one)  # every motion begins anew
    np.testing.assert_allclose(many.q[:, 1:], [expected, expected], atol=1e-9)
    table = np.array([noise(t) for t in times[:-1]])
    loop = control.closed_loop(ARM, law, Q, V, steps * H, delay=delay, resolution=resolution, noise=table)
    np.testing.assert_allclose(loop.q[1:], expected, atol=1e-9)
    np.testing.assert_allclose(control.closed_loop(ARM, one, Q, V, steps * H).q, loop.q, atol=1e-12)


@pytest.mark.native
def test_adaptive_controllers_run_in_rollouts():
    plant = ARM.with_payload(ARM.link_names[-1], mass=0.5)
    learning = control.adaptive(ARM, AHEAD, rate=5.0, damping=4.0, adaptation=1.0, metric="euclidean")
    loop = control.closed_loop(plant, learning, Q, V, 0.05)
    q, v = cj.rollout(plant, Q, V, dt=H, steps=50, control=learning, method="rk4")
    np.testing.assert_allclose(q, loop.q, atol=1e-12)
    np.testing.assert_allclose(v, loop.v, atol=1e-12)
    late = control.sampled(learning, delay=1, resolution=1e-4)
    expected = control.closed_loop(plant, learning, Q, V, 0.05, delay=1, resolution=1e-4)
    found = control.closed_loop(plant, late, Q, V, 0.05)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-12)
    of_it = [control.estimates(one, x.state[-1]).inertial_parameters for one, x in ((learning, expected), (late, found))]
    np.testing.assert_array_equal(*of_it)
    heavy, light = (
        cj.rollout(ARM, Q, V, dt=H, steps=50, control=learning, parameters={"masses": m})[0] for m in ([9.0, 9.0], [1.0, 1.0])
    )
    assert np.abs(heavy - light).max() > 1e-4


def test_rollouts_and_simulations_sample_as_the_controller_was_made():
    one = control.sampled(control.pd(ARM, Q, kp=9.0, kd=3.0), 2e-3)
    for call, words in [
        (lambda: cj.rollout(ARM, Q, V, dt=1e-3, steps=3, control=one), r"dt is 0\.001; the controller was made for samples every 0\.002 s"),
        (lambda: cj.rollout(ARM, Q, V, dt=2e-3, steps=3, control=one, method="variational"), "Choose 'euler' or 'rk4'"),
        (lambda: cj.simulate(ARM, Q, V, 0.1, control=one, period=1e-3), r"made for samples every 0\.002 s"),
        (lambda: cj.simulate(ARM, Q, V, 0.1, control=one, method="variational"), "takes no period"),
        (lambda: control.sampled(one, 1e-3), r"the controller was made for 0\.002 s"),
        (lambda: control.sampled(one, delay=2), "delay is 2"),
        (lambda: control.sampled(3), "controller is 3"),
        (lambda: control.sampled(one, noise=[1.0, 2.0, 3.0]), "noise is .* expected 2 finite velocities"),
        (lambda: one.start([0.0, 0.0]), "state has shape"),
        (lambda: control.verify(one, None), "sampled"),
    ]:  # fmt: skip
        with pytest.raises(CoadjointError, match=words):
            call()
