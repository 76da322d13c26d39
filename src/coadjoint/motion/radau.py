"""An implicit method for stiff motions: Radau IIA with five stages, of order 9. Hairer & Wanner, Solving ODEs II, IV.5 and IV.8.

The stages y₀ + zᵢ at the times t + cᵢ h satisfy z = h (A ⊗ 1) f(y₀ + z), solved by Newton's method with one matrix 1 - h A ⊗ J,
kept as long as it converges. The error is measured by an embedded formula of order 5, filtered by (1 - h γ₀ J)⁻¹ so that stiff
parts do not count for
more than they are. Between the steps the polynomial through the stages is the solution. A Jacobian J by differences is enough: it decides
how quickly Newton's method converges, not to what.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import DenseOutput, OdeSolver
from scipy.linalg import lu_factor, lu_solve

STAGES = 5
ITERATIONS = 10
"""The most iterations of Newton's method."""
SLOW = 1e-2
"""The rate of convergence above which the Jacobian is recomputed."""
SMALLEST, LARGEST = 0.2, 8.0
"""Bounds of the ratio of successive steps."""


def _tableau(s: int) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """The nodes c (s,), the matrix A (s, s), γ₀, and the weights (s,) of z in the error γ₀ h f(t, y) + Σ eᵢ zᵢ."""
    # the zeros of Pₛ - Pₛ₋₁ on [-1, 1], Legendre's, turned to [0, 1]: the right end is among them
    c = np.sort((np.polynomial.legendre.legroots([0.0] * (s - 1) + [-1.0, 1.0]).real + 1) / 2)
    c[-1] = 1.0
    powers, k = np.vander(c, s, increasing=True), np.arange(1, s + 1)
    A = (c[:, None] ** k / k) @ np.linalg.inv(powers)
    values = np.linalg.eigvals(A)
    gamma = float(values[np.argmin(np.abs(values.imag))].real)  # of an odd number one is real
    weights = np.linalg.solve(powers.T, 1.0 / k - gamma * (k == 1))
    return c, A, gamma, (weights - A[-1]) @ np.linalg.inv(A)


C, A, GAMMA, ERROR = _tableau(STAGES)
NODES = np.concatenate([[0.0], C])
POLYNOMIAL = np.linalg.inv(np.vander(NODES, increasing=True))
"""From values at 0 and the nodes to the coefficients of the polynomial through them."""


def jacobian(f: Callable[[float, np.ndarray], np.ndarray], t: float, y: np.ndarray, value: np.ndarray) -> np.ndarray:
    """∂f/∂y (n, n) by forward differences."""
    J = np.empty((len(y), len(y)))
    for k, x in enumerate(y):
        h = 1.5e-8 * max(1.0, abs(x))
        moved = y.copy()
        moved[k] = x + h
        J[:, k] = (f(t, moved) - value) / (moved[k] - x)
    return J


class Radau(OdeSolver):  # type: ignore[misc]
    """The integrator, with the interface of SciPy's solvers."""

    def __init__(
        self,
        fun: Callable[[float, np.ndarray], np.ndarray],
        t0: float,
        y0: np.ndarray,
        t_bound: float,
        *,
        rtol: float,
        atol: float,
        first_step: float | None = None,
        **extraneous: Any,
    ) -> None:
        self.t: float
        self.y: np.ndarray
        super().__init__(fun, t0, y0, t_bound, vectorized=False)
        self.rtol, self.atol = rtol, atol
        self.f = fun(t0, self.y)
        self.h_abs = min(t_bound - t0, 1e-4 if first_step is None else first_step)
        self.J: np.ndarray | None = None
        self.factored: tuple[float, Any, Any] = (0.0, None, None)
        """The step of these factors: of 1 - h A ⊗ J, and of 1 - h γ₀ J."""
        self.before: tuple[float, np.ndarray] | None = None
        """Length and polynomial of the last step, from which stages are guessed."""

    def _factors(self, h: float) -> tuple[Any, Any]:
        if self.J is not None and self.factored[0] != h:
            n = len(self.y)
            whole, part = np.eye(STAGES * n) - h * np.kron(A, self.J), np.eye(n) - h * GAMMA * self.J
            self.factored = (h, lu_factor(whole), lu_factor(part))
            self.nlu += 1
        return self.factored[1:]

    def _guess(self, h: float) -> np.ndarray:
        """z (s, n) by the polynomial of the last step, continued."""
        if self.before is None:
            return np.zeros((STAGES, len(self.y)))
        length, coefficients = self.before
        at = np.vander(1.0 + C * h / length, STAGES + 1, increasing=True) @ coefficients
        result: np.ndarray = at - coefficients.sum(0)
        return result

    def _stages(self, t: float, h: float, factors: Any, scale: np.ndarray) -> tuple[np.ndarray, float] | None:
        """z (s, n), and the rate of convergence of Newton's method; None if it diverged."""
        z, last, rate = self._guess(h), np.inf, 0.0
        n = len(self.y)
        for k in range(ITERATIONS):
            f = np.array([self.fun(t + c * h, self.y + x) for c, x in zip(C, z, strict=True)])
            if not np.isfinite(f).all():
                return None
            change = lu_solve(factors, (h * A @ f - z).ravel(), check_finite=False).reshape(STAGES, n)
            size = float(np.sqrt(np.mean((change / scale) ** 2)))
            rate = size / last if k else 0.0
            if rate >= 1.0 and size > 1e-6:
                return None
            z = z + change
            if size == 0.0 or size * (rate / (1 - rate) if 0 < rate < 1 else 1.0) < 1e-3 or rate >= 1.0:
                return z, rate
            last = size
        return None

    def _step_impl(self) -> tuple[bool, str | None]:
        t, y, fresh = self.t, self.y, False
        if self.J is None:
            self.J, fresh = jacobian(self.fun, t, y, self.f), True
            self.njev += 1
        while True:
            h = min(self.h_abs, self.t_bound - t)
            if h < 10 * np.spacing(max(abs(t), 1e-300)):
                return False, self.TOO_SMALL_STEP
            factors, part = self._factors(h)
            scale = self.atol + self.rtol * np.abs(y)
            found = self._stages(t, h, factors, scale)
            if found is None:
                if fresh:
                    self.h_abs = h / 4
                    self.before = None
                else:
                    self.J, fresh = jacobian(self.fun, t, y, self.f), True
                    self.njev += 1
                    self.factored = (0.0, None, None)
                continue
            z, rate = found
            error = lu_solve(part, GAMMA * h * self.f + ERROR @ z)
            size = float(np.sqrt(np.mean((error / scale) ** 2)))
            if size > 1 and (self.before is None or fresh):  # once more filtered: Hairer & Wanner (8.20)
                error = lu_solve(part, GAMMA * h * self.fun(t, y + error) + ERROR @ z)
                size = float(np.sqrt(np.mean((error / scale) ** 2)))
            factor = float(np.clip(0.9 * max(size, 1e-12) ** (-1.0 / (STAGES + 1)), SMALLEST, LARGEST))
            if size <= 1:
                break
            self.h_abs = h * factor
        self.t, self.y = t + h if h < self.t_bound - t else self.t_bound, y + z[-1]
        self.before = (h, POLYNOMIAL @ np.concatenate([np.zeros((1, len(y))), z]))
        self.start = y
        self.f = self.fun(self.t, self.y)
        if rate > SLOW:
            self.J = None
            self.factored = (0.0, None, None)
        if not 0.9 < factor < 1.3 and h == self.h_abs:
            self.h_abs = h * factor
        return True, None

    def _dense_output_impl(self) -> DenseOutput:
        assert self.before is not None
        return _Polynomial(self.t_old, self.t, self.start, self.before[1])


class _Polynomial(DenseOutput):  # type: ignore[misc]
    """The polynomial of a step."""

    def __init__(self, t_old: float, t: float, y: np.ndarray, coefficients: np.ndarray) -> None:
        super().__init__(t_old, t)
        self.y, self.coefficients, self.length = y, coefficients, t - t_old

    def _call_impl(self, t: np.ndarray) -> np.ndarray:
        s = np.atleast_1d((t - self.t_old) / self.length)
        y = self.y[:, None] + (np.vander(s, STAGES + 1, increasing=True) @ self.coefficients).T
        result: np.ndarray = y if np.ndim(t) else y[:, 0]
        return result
