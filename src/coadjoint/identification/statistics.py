"""The statistics of residuals: their correlation, and the covariance of estimates."""

from __future__ import annotations

import numpy as np

EXPECTATIONS = 8
"""Steps towards the spectrum that returns itself."""


def correlation_sum(x: np.ndarray, stretch: np.ndarray) -> float:
    """1 + 2 Σ ρ_k, summed over pairs of lags as long as the pairs are positive (Geyer): the rows that count as one independent one."""
    if len(x) < 8:
        return 1.0
    x = x - x.mean()
    total = float(x @ x)
    if not total > 0:
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


def autoregression(x: np.ndarray, stretch: np.ndarray, order: int, fitted: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """(coefficients, variance of the innovations) of x_t = Σ a_k x_{t-k} + e_t, by Yule and Walker's equations.

    `fitted` (N, K): residuals x = (1 - U Uᵀ) e of a fit lack what the fit took, most at the low frequencies of its columns. Their expected
    power is S (N - |Û|²), so |x̂|² + S |Û|² is that of e, and S the one that returns itself.
    """
    powers, taken = [], []
    for s in np.unique(stretch):
        own = stretch == s
        part = x[own] - (x.mean() if fitted is None else 0.0)
        size = 1 << int(np.ceil(np.log2(2 * len(part))))
        powers.append(np.abs(np.fft.rfft(part, size)) ** 2)
        taken.append(0.0 * powers[-1] if fitted is None else (np.abs(np.fft.rfft(fitted[own], size, axis=0)) ** 2).sum(1))
    return returning(powers, taken, len(x), order, 1 if fitted is None else EXPECTATIONS)


def returning(
    powers: list[np.ndarray], taken: list[np.ndarray], rows: int, order: int, turns: int = EXPECTATIONS
) -> tuple[np.ndarray, float]:
    """The autoregression of residuals with these powers |x̂|², each on the frequencies of twice its stretch, of which a fit took S |Û|²."""
    a, variance = np.zeros(order), sum(float(np.fft.irfft(power)[0]) for power in powers) / rows
    for _ in range(turns):
        rho = np.zeros(order + 1)
        for power, gone in zip(powers, taken, strict=True):
            size = 2 * (len(power) - 1)
            S = spectrum(a, variance, size) if gone.any() else 0.0
            lags = np.fft.irfft(power + S * gone, size)[: order + 1]
            rho[: len(lags)] += lags
        a, variance = yule_walker(rho / rows)
    return a, variance


def yule_walker(r: np.ndarray) -> tuple[np.ndarray, float]:
    """(coefficients, sum of squared innovations) of the autoregression with lagged products r; of mean products, their variance."""
    order = len(r) - 1
    if not r[0] > 0:
        return np.zeros(order), 0.0
    R = r[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))] + 1e-10 * r[0] * np.eye(order)
    a = np.linalg.solve(R, r[1:])
    return a, float(max(r[0] - a @ r[1:], 1e-12 * r[0]))


def spectrum(a: np.ndarray, variance: float, size: int) -> np.ndarray:
    """The spectral density of an autoregression at the frequencies of `rfft` of so many rows: its mean over one cycle is the variance."""
    whitening = np.zeros(max(size, 1))
    np.add.at(whitening, np.arange(len(a) + 1) % max(size, 1), np.concatenate([[1.0], -a]))
    return np.asarray(variance / np.abs(np.fft.rfft(whitening)) ** 2)


def meat(X: np.ndarray, residual: np.ndarray, stretch: np.ndarray, order: int, fitted: np.ndarray) -> np.ndarray:
    """E[(Xᵀ e)(Xᵀ e)ᵀ] (P, P) of columns X (N, P), e having the autocorrelation of the residuals: Σ over frequencies of S |X̂|²."""
    return spectral(X, stretch, *autoregression(residual, stretch, order, fitted), wraps=True)


def spectral(X: np.ndarray, stretch: np.ndarray, a: np.ndarray, variance: float, wraps: bool = False) -> np.ndarray:
    """E[(Xᵀ e)(Xᵀ e)ᵀ] for residuals e of an autoregression: Σ over frequencies of S |X̂|²; `wraps`: each stretch as if it were periodic."""
    out = np.zeros((X.shape[1], X.shape[1]))
    for s in np.unique(stretch):
        part = X[stretch == s]
        size = len(part) if wraps else 2 * len(part)
        S = spectrum(a, variance, size)
        F = np.fft.rfft(part, size, axis=0)
        weight = np.full(len(S), 2.0)
        weight[0] = 1.0
        if size % 2 == 0:
            weight[-1] = 1.0
        W = F * np.sqrt(S * weight / size)[:, None]
        out += (W.conj().T @ W).real
    return out
