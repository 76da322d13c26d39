"""Native kernels inside JAX: `jit`, `vmap`, `grad`, `jacfwd`, `hessian`, `scan`, of any order.

    torque = cj.interop.jax.function(cj.inverse_dynamics, robot)
    jax.jit(jax.grad(lambda q: (torque(q, v, a) ** 2).sum()))(q)

On processors XLA calls the machine code directly (`_xla.py`); elsewhere, as on GPUs, the function runs as written. Derivatives are
kernels too (`_programs`): exact, and compiled at their first use. Those by q are by its entries, as JAX has no tangent vectors: for
quaternions they are the derivatives of the formulas, of which `robot.rate` takes the tangent part.

`rollout` and `inverse_kinematics` are functions with derivatives of their own.
"""

from ._jax_functions import function
from ._jax_rollouts import inverse_kinematics, rollout

__all__ = ["function", "inverse_kinematics", "rollout"]
