"""What residuals say: how correlated they are, and the covariance of estimates from them."""

from __future__ import annotations

import numpy as np


def correlation_sum(x: np.ndarray, stretch: np.ndarray) -> float:
    """1 + 2 Σ ρ_k, summed over pairs of lags as long as the pairs are positive (Geyer): the rows that count as one independent one."""
    x = x - x.mean()
    total = float(x @ x)
    if not total > 0 or len(x) < 8:
        return 1.0
    rho = np.zeros(len(x))
    for s in np.unique(stretch):
        part = x[stretch == s]
        size = 1 << int(np.ceil(np.log2(2 * len(part))))
        power = np.abs(np.fft.rfft(part, size)) ** 2
        rho[: len(part)] += np.fft.irfft(power, size)[: len(part)]
    rho /= total
    pairs = rho[: len(rho) // 2 * 2].reshape(-1, 2).sum(1)
    stop = int(np.argmax(pairs <= 0)) if np.any(pairs <= 0) else len(pairs)
    return float(max(2.0 * pairs[:stop].sum() - 1.0, 1.0)) if stop else 1.0


def autoregression(x: np.ndarray, stretch: np.ndarray, order: int) -> tuple[np.ndarray, float]:
    """(coefficients, variance of the innovations) of x_t = Σ a_k x_{t-k} + e_t, by Yule and Walker's equations."""
    x = x - x.mean()
    rho = np.zeros(order + 1)
    for s in np.unique(stretch):
        part = x[stretch == s]
        for k in range(min(order + 1, len(part))):
            rho[k] += part[k:] @ part[: len(part) - k]
    rho /= len(x)
    if not rho[0] > 0:
        return np.zeros(order), 0.0
    R = rho[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))] + 1e-10 * rho[0] * np.eye(order)
    a = np.linalg.solve(R, rho[1:])
    return a, float(max(rho[0] - a @ rho[1:], 1e-12 * rho[0]))


def spectrum(a: np.ndarray, variance: float, frequency: np.ndarray) -> np.ndarray:
    """The spectral density of an autoregression at frequencies in cycles per row: its mean over one cycle is the variance."""
    lags = np.arange(1, len(a) + 1)
    return np.asarray(variance / np.abs(1.0 - np.exp(-2j * np.pi * np.outer(frequency, lags)) @ a) ** 2)


def meat(X: np.ndarray, residual: np.ndarray, stretch: np.ndarray, order: int) -> np.ndarray:
    """E[(Xᵀ e)(Xᵀ e)ᵀ] (P, P) of columns X (N, P), e having the autocorrelation of the residuals: Σ over frequencies of S |X̂|²."""
    a, variance = autoregression(residual, stretch, order)
    out = np.zeros((X.shape[1], X.shape[1]))
    for s in np.unique(stretch):
        part = X[stretch == s]
        size = len(part)
        S = spectrum(a, variance, np.arange(size // 2 + 1) / size)
        F = np.fft.rfft(part, axis=0)
        weight = np.full(len(S), 2.0)
        weight[0] = 1.0
        if size % 2 == 0:
            weight[-1] = 1.0
        W = F * np.sqrt(S * weight / size)[:, None]
        out += (W.conj().T @ W).real
    return out
