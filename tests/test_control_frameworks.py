"""Every controller in JAX, under jit, vmap and grad, and in PyTorch: the forces of the native step, and their derivatives."""

import numpy as np
import pytest

from coadjoint import control
from controllers import small

pytestmark = [
    pytest.mark.native,
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]
QUICK = ("computed_torque", "adaptive", "log", "swing_up")
LAWS = [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in small(None)]
AS_WRITTEN = ("limited", "adaptive_frame")
"""Those whose derivative, 25,000 operations, XLA does not compile within minutes: it is evaluated operation by operation."""
TIME = 0.05


def forces(one):
    """(q, v) -> the forces, and what controllers with a state make of it, as one array; on arrays of any library."""
    start = np.concatenate([0.1 * np.ones(one.robot.nv), np.ones(one.robot.nv)])

    def of(xp, q, v):
        if isinstance(one, control.MomentumObserver):
            return one.update(q, v, 0.3 + 0.0 * v, xp.asarray(start))
        if isinstance(one, control.SampledController):
            return xp.concatenate(one.step(q, v, TIME, xp.asarray(one.initial)), -1)
        return one.force(q, v, TIME)

    return of


def states(robot, n=3):
    rng = np.random.default_rng(4)
    return 0.3 * rng.normal(size=(n, robot.nq)) + 0.2, rng.normal(size=(n, robot.nv))


def slope(of, q, v, h=1e-6):
    """The derivative of the sum of the forces by v."""
    total = lambda v: of(np, q, v).sum()
    return np.array([(total(v + h * e) - total(v - h * e)) / (2 * h) for e in np.eye(v.size)])


def native(of, q, v):
    return np.stack([of(np, *x) for x in zip(q, v, strict=True)])


def agree(found, expected, tolerance):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("law", LAWS)
def test_every_controller_in_jax(law):
    jax = pytest.importorskip("jax")
    one = small(law)
    of, (q, v) = forces(one), states(one.robot)
    jax.config.update("jax_enable_x64", True)
    try:
        inside = lambda q, v: of(jax.numpy, q, v)
        agree(jax.jit(jax.vmap(inside))(q, v), native(of, q, v), 1e-9)
        gradient = jax.grad(lambda v: inside(q[0], v).sum())
        gradient = gradient if law in AS_WRITTEN else jax.jit(gradient)
        agree(gradient(v[0]), slope(of, q[0], v[0]), 1e-5)
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("law", LAWS)
def test_every_controller_in_pytorch(law):
    torch = pytest.importorskip("torch")
    one = small(law)
    of, (q, v) = forces(one), states(one.robot)
    for k in range(len(q)):
        agree(of(torch, torch.tensor(q[k]), torch.tensor(v[k])), native(of, q[k : k + 1], v[k : k + 1])[0], 1e-9)
    moving = torch.tensor(v[0], requires_grad=True)
    of(torch, torch.tensor(q[0]), moving).sum().backward()
    agree(moving.grad, slope(of, q[0], v[0]), 1e-5)
