"""Linear models of a robot about a state or along a motion, and regulators made of them.

About a motion q, v that τ drives, let q ⊕ δ be a neighbour (⊕ as in `robot.integrate`) and x = (δ, change of v), u the change of τ.
To first order

    dx/dt = A x + B u,    A = [[-ad_v, 1], [∂a/∂q, ∂a/∂v]],    B = [[0], [∂a/∂τ]].

ad_v is the bracket with the velocity of the same spherical, planar or free joint, in whose moving frame δ is measured; for joints with
one screw it is zero and δ = q' - q.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import a_flag, a_robot, finite, numbers, positive, takes
from ..arrays import Array, ArrayLike, block, like, to_numpy, transpose
from ..dynamics.blocks import Blocks
from ..dynamics.derivatives import forward_dynamics_derivatives
from ..dynamics.newton_euler import bias_force
from ..dynamics.singular import explain_singular
from ..errors import CoadjointError, ShapeError
from ..kernel.dispatch import kernel
from ..robot.robot import Robot


@kernel(
    "2nv 2nv", "2nv nv", q="nq", v="nv", tau="nv", wrenches="n_links 6", no_result=explain_singular, joint_space=True, largest=20
)
def linearize(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Array | None = None, friction: bool = False
) -> tuple[Array, Array]:
    """A (..., 2 nv, 2 nv) and B (..., 2 nv, nv) of the motion at a state, or at each of many: dx/dt = A x + B u, x = (δ, change of v)."""
    by_q, by_v, by_tau = forward_dynamics_derivatives(robot, q, v, tau, wrenches, friction)
    n = robot.nv
    bracket = Blocks((n, n), like(np.zeros(1), q))
    for i, kind in enumerate(robot.kinds):
        if kind.group is not None:
            dofs = robot._v_slices[i]
            places = range(dofs.start, dofs.stop)
            bracket.put((places, places), -kind.ad(v[..., dofs]))
    one, zero = like(np.eye(n), q), like(np.zeros((n, n)), q)
    return block([[bracket.array(), one], [by_q, by_v]]), block([[zero], [by_tau]])


@takes(robot=a_robot, q=numbers)
def equilibrium_force(robot: Robot, q: ArrayLike, wrenches: ArrayLike | None = None) -> Array:
    """τ (..., nv) that holds the robot still at q (..., nq) under gravity and wrenches (..., n_links, 6) on its links."""
    return bias_force(robot, q, like(np.zeros(robot.nv), q), wrenches)


@takes(A=numbers, B=numbers, dt=positive)
def discretize(A: ArrayLike, B: ArrayLike, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """x' = A_d x + B_d u over a step dt with u held, exactly: exp([[A, B], [0, 0]] dt); batch axes in front. NumPy arrays."""
    from scipy.linalg import expm

    A, B = _system(A, B)
    n, m = B.shape[-2:]
    whole = np.zeros((*np.broadcast_shapes(A.shape[:-2], B.shape[:-2]), n + m, n + m))
    whole[..., :n, :n], whole[..., :n, n:] = A, B
    step = expm(whole * dt)
    return step[..., :n, :n], step[..., :n, n:]


@takes(A=numbers, B=numbers)
def controllability(A: ArrayLike, B: ArrayLike) -> np.ndarray:
    """(B, A B, …, Aⁿ⁻¹ B) (..., n, n m), of rank n where u can bring x anywhere."""
    A, B = _system(A, B)
    blocks = [B]
    for _ in range(A.shape[-1] - 1):
        blocks.append(A @ blocks[-1])
    return np.concatenate(np.broadcast_arrays(*blocks), axis=-1)


@takes(A=numbers, B=numbers, Q=numbers, R=numbers, discrete=a_flag)
def lqr(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, discrete: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """K (..., m, n) and P (..., n, n): u = -K x makes ∫ xᵀ Q x + uᵀ R u dt (the sum over steps if discrete) least, namely x₀ᵀ P x₀.

    Q (n, n) or its diagonal (n,), positive semidefinite; R (m, m) or its diagonal (m,), positive definite. The results are NumPy arrays.
    """
    from scipy.linalg import solve_continuous_are, solve_discrete_are

    A, B = _system(A, B)
    n, m = B.shape[-2:]
    Q, R = _weight("Q", Q, n), _weight("R", R, m)
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A, B = np.broadcast_to(A, (*batch, n, n)), np.broadcast_to(B, (*batch, n, m))
    P = np.empty((*batch, n, n))
    for k in np.ndindex(*batch):
        try:
            if not is_stabilizable(A[k], B[k], discrete):
                raise np.linalg.LinAlgError("by the rank of A - λ, B")
            P[k] = (solve_discrete_are if discrete else solve_continuous_are)(A[k], B[k], Q, R)
        except ValueError as error:  # a singular matrix, or one of NumPy's or SciPy's LinAlgError
            state = f" in state {k}" if k else ""
            raise CoadjointError(
                f"there is no stabilising regulator{state} ({error}): some motion that does not die out is beyond the reach of u, "
                "or Q does not see it. `controllability(A, B)` shows by its rank what u reaches."
            ) from None
    Bt = transpose(B)
    K = np.linalg.solve(R + Bt @ P @ B, Bt @ P @ A) if discrete else np.linalg.solve(R, Bt @ P)
    return K, P


def is_stabilizable(A: np.ndarray, B: np.ndarray, discrete: bool = False) -> bool:
    """True if u reaches every motion that does not die out: (A - λ, B) has full rank for its eigenvalues λ (Hautus 1969).

    Solvers of Riccati equations see this by the sign of numbers that rounding moves off zero.
    """
    size = float(np.linalg.norm(A, 2)) or 1.0
    reach = B * (size / max(float(np.linalg.norm(B, 2)), 1e-300))
    for x in np.linalg.eigvals(A):
        dies = abs(x) < 1.0 - 1e-8 if discrete else x.real < -1e-8 * size
        if not dies and np.linalg.svd(np.hstack([A - x * np.eye(len(A)), reach]), compute_uv=False)[-1] <= 1e-11 * size:
            return False
    return True


def _system(A: Any, B: Any) -> tuple[np.ndarray, np.ndarray]:
    A, B = np.asarray(to_numpy(A, "A"), dtype=float), np.asarray(to_numpy(B, "B"), dtype=float)
    if A.ndim < 2 or B.ndim < 2 or A.shape[-1] != A.shape[-2] or B.shape[-2] != A.shape[-1]:
        raise ShapeError(f"A has shape {A.shape} and B {B.shape}; expected (..., n, n) and (..., n, m), as from `linearize`.")
    return A, B


def _weight(name: str, x: Any, n: int) -> np.ndarray:
    numbers = np.asarray(to_numpy(x, name), dtype=float)
    weight = np.diag(numbers) if numbers.ndim == 1 else numbers
    if weight.shape != (n, n):
        raise ShapeError(f"{name} has shape {numbers.shape}; expected ({n}, {n}) or its diagonal ({n},).")
    return finite(weight, name)
