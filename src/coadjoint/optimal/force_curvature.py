"""The curvature of joint forces, summed with weights: what Newton's method asks of the dynamics at every node."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, like, mirror, stack, transpose
from ..dynamics import inverse_dynamics_derivatives, inverse_dynamics_second_derivatives
from ..kernel.dispatch import kernel
from ..robot.robot import Robot


@kernel("9 nv nv", q="nq", v="nv", a="nv", w="nv", d="nv", c="nv", damping="nv", joint_space=True, largest=12)
def force_curvature(robot: Robot, q: Array, v: Array, a: Array, w: Array, d: Array, c: Array, damping: Array) -> Array:
    """Σ_r w_r ∂²τ_r/∂x² + d_r J_r J_rᵀ + c_r (J_r e_rᵀ + e_r J_rᵀ) by x = (q, v, a), (..., 9, nv, nv): blocks qq, qv, qa, vq, …, aa.

    J = ∂τ/∂x with viscous friction, damping (nv,); e_r is the direction of v_r. Tensors of third order are summed where they are
    computed and never stored.
    """
    n = robot.nv
    qq, qv, vv, qa = (_summed(w, x, n) for x in inverse_dynamics_second_derivatives(robot, q, v, a))
    by_q, by_v, by_a = inverse_dynamics_derivatives(robot, q, v, a)
    by_v = by_v + damping[..., None] * like(np.eye(n), q)
    scaled = [d[..., None] * x for x in (by_q, by_v, by_a)]
    on_q, on_v, on_a = (c[..., None] * x for x in (by_q, by_v, by_a))
    first, second, third = (transpose(x) for x in (by_q, by_v, by_a))
    qq = mirror(qq + first @ scaled[0])
    qv = qv + first @ scaled[1] + transpose(on_q)
    qa = qa + first @ scaled[2]
    vv = mirror(vv + second @ scaled[1] + on_v + transpose(on_v))
    va = second @ scaled[2] + on_a
    aa = mirror(third @ scaled[2])
    return stack([qq, qv, qa, transpose(qv), vv, va, transpose(qa), transpose(va), aa], axis=-3)


def _summed(w: Array, H: Array, n: int) -> Array:
    """Σ_r w_r H_r (..., n, n)."""
    flat = H.reshape((*H.shape[:-3], n, n * n))
    return (w[..., None, :] @ flat).reshape((*H.shape[:-3], n, n))
