"""Native kernels inside PyTorch: autograd of any order, forward mode, `torch.func.vmap`, `grad`, `jacrev`, `hessian`.

    torque = cj.interop.torch.function(cj.inverse_dynamics, robot)
    (torque(q, v, a) ** 2).sum().backward()

Machine code reads tensors on the CPU in place; for tensors on other devices the function runs as written.
Derivatives are kernels too (`_programs`): exact, and compiled at their first use; derivatives by q are by its entries.

`rollout` and `inverse_kinematics` are functions with derivatives of their own.
"""

from ._torch_functions import function
from ._torch_rollouts import inverse_kinematics, rollout

__all__ = ["function", "inverse_kinematics", "rollout"]
