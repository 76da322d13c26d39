"""The choice of the terms of friction and of Stribeck's speeds by held-back stretches, a Gaussian being the entropic prior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .equations import STRIBECK, Equations, Rows, with_speeds
from .friction import POSITIVE, TERMS
from .model import NOTHING, TILT, Choice, Collapsed, Fit, Fitter, floored

ENOUGH = 3.0
"""The least gain of held-back log-likelihood for which a term is taken."""
SMALL = 1e-6
"""The part of a force that no term is taken for."""
GAMMA = 3.0
"""The weight of the prior in this choice, unless residuals are all but nothing, as of simulated forces: then, if that is less, the one with
which the fit is likeliest. A prior that is far from the truth would ask for terms that stand in its place."""
USUAL = ("offset", "viscous", "armature", "coulomb", "spring")
"""Terms that are tried together."""
MOST = 7
"""Terms of a joint beside its offset."""
SPEEDS = (0.25, 0.5, 2.0)
"""Speeds of Stribeck's term that are tried, relative to the usual one."""
NEEDS = {"load": "coulomb", "stribeck": "coulomb", "asymmetry": "coulomb", "root": "viscous"}
"""Terms that add to another: friction in proportion to the root of speed alone would be far off at other speeds."""


@dataclass
class Judge:
    """Judges models by blocks of rows that are held back, at the tilt, the base parameters and the variances of a fit."""

    fitter: Fitter
    eq: Equations
    fit: Fit

    def __post_init__(self) -> None:
        f, s = self.fitter, self.fitter.s
        own = f.collapse((self.eq.G, self.eq.c, self.eq.yy), self.fit.tilt, self.fit.x[: s.rank], turned=len(self.fit.tilt) > 0)
        self.own = own
        total = Collapsed(*(x.sum(0) for x in own))
        weight = 1.0 / (self.fit.variance * f.correlation)
        self.G, self.c = (
            np.concatenate([t[None] - x, t[None]]) * weight.reshape(-1, *[1] * (x.ndim - 2))
            for x, t in zip(own[:2], total[:2], strict=True)
        )
        self.sums = self.G.sum(1), self.c.sum(1)
        self.rows = self.eq.count.sum(0)
        self.H, self.h = f.gaussian(1.0)
        gamma = GAMMA
        size = self.eq.yy.sum(0) / self.rows.clip(1)
        if np.median(self.fit.variance / np.maximum(size, 1e-6 * size.max())) < NOTHING**2:
            far = self.fit.x[: s.rank] - f.start[: s.rank]
            gamma = min(GAMMA, s.rank / max(float(far @ self.H @ far), 1e-300))
        self.H, self.h = gamma * self.H, gamma * self.h

    def __call__(self, choice: Choice) -> tuple[np.ndarray, set[tuple[int, int]]]:
        """(nv,): log-likelihoods of blocks by models fitted to the others; and what must be positive but is not without being forced."""
        r, last = self.fitter.s.rank, self.fitter.s.rank + len(TERMS) + 1
        common = np.r_[0:r, last : last + 2] if choice.tilt else np.arange(r)
        A, b = self._equations(choice, common)
        x = _ridge(A, b)
        z = np.zeros(self.own.c.shape)
        z[..., common] = x[:-1, None, : len(common)]
        bad = set()
        for k, (j, number) in enumerate(choice.unknowns, len(common)):
            z[:, j, r + number] = x[:-1, k]
            if TERMS[number] in POSITIVE and not x[-1, k] > 0:
                bad.add((j, number))
        squares = (self.own.yy - 2.0 * (self.own.c * z).sum(-1) + ((self.own.G @ z[..., None])[..., 0] * z).sum(-1)).sum(0)
        mean = floored(squares / self.rows.clip(1), self.eq.yy.sum(0) / self.rows.clip(1), SMALL)
        return np.asarray(-0.5 * self.rows / self.fitter.correlation * np.log(mean)), bad

    def _equations(self, choice: Choice, common: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A (blocks + 1, n, n) and b of fits to all blocks but one, and to all: common unknowns first, then those of friction."""
        r, n, m = self.fitter.s.rank, len(common), len(common) + len(choice.unknowns)
        A, b = np.zeros((len(self.G), m, m)), np.zeros((len(self.G), m))
        A[:, :n, :n] = self.sums[0][:, common[:, None], common]
        b[:, :n] = self.sums[1][:, common]
        A[:, :r, :r] += self.H
        b[:, :r] += self.h
        if choice.tilt:
            k = np.array([r, r + 1])
            A[:, k, k] += 1.0 / TILT**2
            b[:, k] -= self.fit.tilt / TILT**2
        at = n
        for j, terms in enumerate(choice.local):
            k = r + np.array(terms, dtype=int)
            own = slice(at, at + len(k))
            columns = self.G[:, j][:, :, k]
            A[:, :n, own] = columns[:, common]
            A[:, own, :n] = np.swapaxes(columns[:, common], 1, 2)
            A[:, own, own] = columns[:, k]
            b[:, own] = self.c[:, j, k]
            at += len(k)
        A[:, n:, n:] += self.fitter.expected(choice)
        return A, b


def choose_terms(judge: Judge, allowed: tuple[str, ...], tilt: bool) -> tuple[Choice, list[dict[str, object]]]:
    """The terms of friction of each joint, and a table of what each gained.

    Forward: the term that gains most held-back likelihood, as long as one gains enough. Of viscous and Coulomb friction that gain alike,
    Coulomb: beyond the speeds of the log it stays what it was.
    """
    choice = Choice(((TERMS.index("offset"),) if "offset" in allowed else (),) * len(judge.rows), tilt)
    best, _ = judge(choice)
    names, table = judge.fitter.s.robot.v_names, list[dict[str, object]]()
    viscous, coulomb = TERMS.index("viscous"), TERMS.index("coulomb")
    for _ in range(MOST):
        found: list[dict[int, float]] = [{} for _ in best]
        for number, name in enumerate(TERMS):
            able = [name in allowed and _able(own, number) for own in choice.local]
            if not any(able):
                continue
            trial = replace(choice, local=tuple((*own, number) if ok else own for own, ok in zip(choice.local, able, strict=True)))
            value, bad = judge(trial)
            gain, worse = value - best, {j for j, _ in bad}
            for j in range(len(gain)):
                if able[j] and j not in worse and gain[j] > ENOUGH:
                    found[j][number] = float(gain[j])
        if not any(found):
            break
        most = [max(f, key=f.__getitem__) if f else None for f in found]
        most = [
            coulomb if k == viscous and f.get(coulomb, -np.inf) > f[k] - ENOUGH else k for k, f in zip(most, found, strict=True)
        ]
        choice = replace(choice, local=tuple(own if k is None else (*own, k) for own, k in zip(choice.local, most, strict=True)))
        best, _ = judge(choice)
        table += [{"joint": names[j], "term": TERMS[k], "gain": found[j][k]} for j, k in enumerate(most) if k is not None]
    return _together(judge, choice, best, allowed, table), table


def choose_speeds(rows: Rows, fitter: Fitter, eq: Equations, fit: Fit, choice: Choice, folds: np.ndarray) -> Equations:
    """The equations with the speeds of Stribeck's terms, joint by joint, by which held-back stretches are predicted best."""
    s, joints = rows.structure, [j for j, own in enumerate(choice.local) if STRIBECK in own]
    if not joints:
        return eq
    first = s.shape.speeds
    best, speeds = Judge(fitter, eq, fit)(choice)[0] + ENOUGH, first.copy()
    made = with_speeds(eq, rows, fit.x[: s.rank], folds, joints, [factor * first for factor in SPEEDS])
    found = eq
    for factor, other in zip(SPEEDS, made, strict=True):
        value = Judge(fitter, other, fit)(choice)[0]
        better = np.isin(np.arange(len(best)), joints) & (value > best)
        best, speeds = np.where(better, value, best), np.where(better, factor * first, speeds)
        found = replace(found, G=np.where(better[:, None, None], other.G, found.G), c=np.where(better[:, None], other.c, found.c))
    s.shape = replace(s.shape, speeds=speeds)
    return found


def _together(judge: Judge, choice: Choice, best: np.ndarray, allowed: tuple[str, ...], table: list[dict[str, object]]) -> Choice:
    """The choice, with several terms at once for joints to which each of them alone is of little use."""
    usual = [TERMS.index(name) for name in USUAL if name in allowed]
    full = replace(choice, local=tuple((*own, *(k for k in usual if k not in own)) for own in choice.local))
    _, bad = judge(full)
    full = replace(full, local=tuple(tuple(k for k in own if (j, k) not in bad) for j, own in enumerate(full.local)))
    value, bad = judge(full)
    worse = {j for j, _ in bad}
    local = list(choice.local)
    for j in range(len(best)):
        new = [TERMS[k] for k in full.local[j] if k not in local[j]]
        if new and j not in worse and value[j] > best[j] + ENOUGH * len(new):
            table.append({"joint": judge.fitter.s.robot.v_names[j], "term": " + ".join(new), "gain": float(value[j] - best[j])})
            local[j] = full.local[j]
    return replace(choice, local=tuple(local))


def _able(own: tuple[int, ...], number: int) -> bool:
    """True if a joint can take a term: not twice, and not without what it adds to."""
    name, has = TERMS[number], {TERMS[k] for k in own}
    if name in has or NEEDS.get(name, name) not in {name} | has:
        return False
    return not {name} | has >= {"root", "stribeck"}  # they would cancel each other, and not at other speeds


def _ridge(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A⁻¹ b of matrices (..., n, n), whose columns are scaled to one."""
    diagonal = np.einsum("...ii->...i", A)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    S = A * scale[..., None] * scale[..., None, :] + 1e-10 * np.eye(A.shape[-1])
    return np.asarray(scale * np.linalg.solve(S, (scale * b)[..., None])[..., 0])
