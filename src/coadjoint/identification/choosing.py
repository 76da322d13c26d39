"""The choice of the terms of friction by held-back stretches, with a Gaussian in the place of the entropic prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .equations import Equations
from .friction import POSITIVE, TERMS
from .model import Choice, Collapsed, Fit, Fitter, floored

ENOUGH = 3.0
"""The least gain of held-back log-likelihood for which a term is taken."""
SMALL = 1e-6
"""The part of a force that no term is taken for."""
GAMMA = 3.0
"""The weight of the prior in this choice."""
MOST = 7
"""Terms of a joint beside its offset."""


@dataclass
class Judge:
    """Judges models by blocks of rows that are held back, at the tilt, the base parameters and the variances of a fit."""

    fitter: Fitter
    eq: Equations
    fit: Fit

    def __post_init__(self) -> None:
        own = self.fitter.collapse((self.eq.G, self.eq.c, self.eq.yy), self.fit.tilt, self.fit.x[: self.fitter.s.rank])
        self.own = own
        total = Collapsed(*(x.sum(0) for x in own))
        self.rest = Collapsed(*(np.concatenate([t[None] - x, t[None]]) for x, t in zip(own, total, strict=True)))
        self.rows = self.eq.count.sum(0)
        self.H, self.h = self.fitter.gaussian(GAMMA)

    def __call__(self, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
        """(nv,): log-likelihoods of blocks by models fitted to the others; whether what must be positive is so without being forced."""
        f, none = self.fitter, np.zeros(len(self.rows))
        r, hidden = f.s.rank, f.hidden
        A, b = f.weighted(self.rest, choice, self.fit.tilt, none, self.fit.variance)
        keep = np.r_[0:r, r + hidden : A.shape[-1]]
        A, b = A[:, keep[:, None], keep], b[:, keep]
        A[:, :r, :r] += self.H
        b[:, :r] += self.h
        x = np.zeros((len(A), f.size(choice)))
        x[:, keep] = _ridge(A, b)
        squares = np.zeros(len(none))
        for j, (index, G, c, yy) in enumerate(f.assemble(self.own, choice, none)):
            z = x[:-1, index]
            squares[j] = (yy - 2.0 * (c * z).sum(-1) + ((G @ z[..., None])[..., 0] * z).sum(-1)).sum()
        good = np.ones(len(none), dtype=bool)
        for (j, number), value in zip(choice.unknowns, x[-1, r + hidden :], strict=False):
            good[j] &= TERMS[number] not in POSITIVE or value > 0
        mean = floored(squares / self.rows.clip(1), self.eq.yy.sum(0) / self.rows.clip(1), SMALL)
        return np.asarray(-0.5 * self.rows / f.correlation * np.log(mean)), good


def choose(judges: Sequence[tuple[Judge, bool]], allowed: tuple[str, ...]) -> tuple[Choice, list[dict[str, object]]]:
    """The model that held-back stretches ask for, and a table of what each choice gained; judges without and with a free gravity."""
    found = [choose_terms(judge, allowed, turned) for judge, turned in judges]
    gain = found[-1][2] - found[0][2]
    choice, table, _ = found[-1] if gain > ENOUGH else found[0]
    return choice, [*table, *([{"joint": "base", "term": "tilt", "gain": gain}] if choice.tilt else [])]


def choose_terms(judge: Judge, allowed: tuple[str, ...], tilt: bool) -> tuple[Choice, list[dict[str, object]], float]:
    """The terms of friction of each joint: forward, the term that gains most held-back likelihood, as long as one gains enough."""
    choice = Choice(((TERMS.index("offset"),) if "offset" in allowed else (),) * len(judge.rows), tilt)
    best, _ = judge(choice)
    names, table = judge.fitter.s.robot.v_names, list[dict[str, object]]()
    for _ in range(MOST):
        found: list[tuple[float, int] | None] = [None] * len(best)
        for number, name in enumerate(TERMS):
            able = [name in allowed and _able(own, number) for own in choice.local]
            if not any(able):
                continue
            trial = replace(choice, local=tuple((*own, number) if ok else own for own, ok in zip(choice.local, able, strict=True)))
            value, good = judge(trial)
            gain = value - best
            for j in range(len(gain)):
                least = ENOUGH if (f := found[j]) is None else f[0]
                if able[j] and good[j] and gain[j] > least:
                    found[j] = (float(gain[j]), number)
        if not any(found):
            break
        choice = replace(choice, local=tuple((*own, f[1]) if f else own for own, f in zip(choice.local, found, strict=True)))
        best, _ = judge(choice)
        table += [{"joint": names[j], "term": TERMS[f[1]], "gain": f[0]} for j, f in enumerate(found) if f]
    return choice, table, float(best.sum())


def _able(own: tuple[int, ...], number: int) -> bool:
    """Whether a joint can take a term: not twice, and not without what it adds to."""
    name, has = TERMS[number], {TERMS[k] for k in own}
    if name in has or (name in ("load", "stribeck", "asymmetry") and "coulomb" not in has):
        return False
    return not {name} | has >= {"root", "stribeck"}  # they would cancel each other, and not at other speeds


def _ridge(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A⁻¹ b of matrices (..., n, n), whose columns are scaled to one."""
    scale = 1.0 / np.sqrt(np.einsum("...ii->...i", A).clip(1e-300))
    S = A * scale[..., None] * scale[..., None, :] + 1e-10 * np.eye(A.shape[-1])
    return np.asarray(scale * np.linalg.solve(S, (scale * b)[..., None])[..., 0])
