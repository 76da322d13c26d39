"""Functions that compute in NumPy take JAX arrays and tensors as numbers, and say so where a derivative would be lost."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj

ROBOT = cj.load("planar2r")
CALLS = {
    "rollout": lambda x: cj.rollout(ROBOT, x, np.zeros(2), dt=0.01, steps=3)[0],
    "rollout tau": lambda x: cj.rollout(ROBOT, np.zeros(2), np.zeros(2), x[None], dt=0.01)[0],
    "rollout parameters": lambda x: cj.rollout(ROBOT, [0, 0], [0, 0], dt=0.01, steps=3, parameters={"masses": x + 1.0})[0],
    "simulate": lambda x: cj.simulate(ROBOT, x, np.zeros(2), [0.0, 0.1]).q,
    "simulate control": lambda x: cj.simulate(ROBOT, [0, 0], [0, 0], [0.0, 0.1], x).q,
    "geodesic": lambda x: cj.geodesic(ROBOT, x, np.ones(2), [0.0, 0.1])[0],
    "lqr": lambda x: cj.lqr(x[:, None] * x, np.eye(2), np.eye(2), np.eye(2))[0],
    "lqr weight": lambda x: cj.lqr(np.eye(2), np.eye(2), x + 1.0, np.eye(2))[0],
    "inverse_kinematics q0": lambda x: cj.inverse_kinematics(ROBOT, [1.0, 1.0, 0.0], "tip", q0=x).q,
    "inverse_kinematics": lambda x: cj.inverse_kinematics(ROBOT, _position(x), "tip").q,
}
GIVEN = np.array([0.3, 0.2])


def _position(x):
    if type(x) is np.ndarray:
        return np.array([x[0], x[1], 0.0])
    if type(x).__module__.startswith("torch"):
        import torch

        return torch.cat([x, 0.0 * x[:1]])
    import jax.numpy as jnp

    return jnp.concatenate([x, 0.0 * x[:1]])


@pytest.mark.parametrize("name", CALLS)
def test_jax(name):
    jax = pytest.importorskip("jax")
    call = CALLS[name]
    found = call(jax.numpy.asarray(GIVEN))
    assert type(found) is np.ndarray
    assert np.abs(found - call(GIVEN)).max() < 1e-5  # JAX rounds to single precision
    for transform in (jax.jit, jax.grad, jax.vmap):
        given = GIVEN[None] if transform is jax.vmap else GIVEN
        with pytest.raises(cj.CoadjointError, match=r"jit, grad or vmap of JAX.*coadjoint\.interop\.jax\.rollout.*\.function\("):
            transform(lambda x: call(x).sum())(given)


@pytest.mark.parametrize("name", CALLS)
def test_torch(name):
    torch = pytest.importorskip("torch")
    call = CALLS[name]
    found = call(torch.tensor(GIVEN))
    assert type(found) is np.ndarray
    assert np.abs(found - call(GIVEN)).max() < 1e-12
    variable = torch.tensor(GIVEN, requires_grad=True)
    with pytest.raises(cj.CoadjointError, match=r"requires a gradient.*coadjoint\.interop\.torch\.rollout.*\.function\(.*detach"):
        call(variable)
    with torch.no_grad():
        assert np.array_equal(call(variable), found)
    with pytest.raises(cj.CoadjointError, match=r"inside torch\.func"):
        torch.func.grad(lambda x: torch.tensor(call(x)).sum())(torch.tensor(GIVEN))
