"""Mass matrix, Christoffel symbols and curvature of a chain in 60 digits, by their definitions and finite differences alone."""

from __future__ import annotations

import numpy as np
from mpmath import mp, mpf

DIGITS = 60


def _hat(w):
    return mp.matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def _exp(screw, x):
    """exp of a revolute or helical screw: R = 1 + sin [w] + (1 - cos) [w]², p = (x 1 + (1 - cos) [w] + (x - sin) [w]²) v."""
    W, v = _hat(screw[:3]), mp.matrix(screw[3:])
    R = mp.eye(3) + mp.sin(x) * W + (1 - mp.cos(x)) * W * W
    p = (x * mp.eye(3) + (1 - mp.cos(x)) * W + (x - mp.sin(x)) * W * W) * v
    T = mp.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def _velocity(dT, T):
    """The body twist of T⁻¹ dT as a vector."""
    R = T[:3, :3]
    W, v = R.T * dT[:3, :3], R.T * dT[:3, 3]
    return mp.matrix([W[2, 1], W[0, 2], W[1, 0], v[0], v[1], v[2]])


class Chain:
    """A chain as `Robot.from_screws` takes it, its numbers taken as exact."""

    def __init__(self, screws, com_frames, masses, inertias):
        exact = lambda x: [mpf(float(y)) for y in x]
        self.screws = []
        for s in screws:  # directions to 60 digits: |w| = 1 to double precision is not enough
            s = exact(s)
            size = mp.sqrt(sum(x * x for x in s[:3]))
            self.screws.append([x / size for x in s])
        self.frames = [mp.matrix([exact(row) for row in T]) for T in np.asarray(com_frames)]
        self.masses, self.inertias = exact(masses), [mp.matrix([exact(row) for row in x]) for x in np.asarray(inertias)]
        self.n = len(self.screws)

    def mass_matrix(self, q):
        """Σ Jᵀ diag(I, m) J with the columns of J from T⁻¹ ∂T."""
        n, M = self.n, mp.zeros(self.n)
        E = [_exp(s, x) for s, x in zip(self.screws, q, strict=True)]
        hats = []
        for s in self.screws:
            X = mp.zeros(4)
            X[:3, :3], X[:3, 3] = _hat(s[:3]), mp.matrix(s[3:])
            hats.append(X)
        for p in range(n):
            before = [mp.eye(4)]
            for k in range(p + 1):
                before.append(before[-1] * E[k])
            T = before[-1] * self.frames[p]
            after = self.frames[p]
            columns = [None] * (p + 1)
            for k in reversed(range(p + 1)):
                after = E[k] * after
                columns[k] = _velocity(before[k] * hats[k] * after, T)
            for i in range(p + 1):
                w = self.inertias[p] * columns[i][:3]
                v = self.masses[p] * columns[i][3:]
                for j in range(i, p + 1):
                    M[i, j] += (columns[j][:3].T * w)[0] + (columns[j][3:].T * v)[0]
        return mp.matrix(n, n) + mp.matrix([[M[min(i, j), max(i, j)] for j in range(n)] for i in range(n)])

    def tensors(self, q):
        """M, Γ_ijk of (52) and R_ijkl of (66), as arrays of floats, from central differences of M with steps of 1e-15."""
        with mp.workdps(DIGITS):
            q, h, n = [mpf(float(x)) for x in q], mpf(10) ** -15, self.n
            r = range(n)

            def at(*steps):
                x = list(q)
                for k, s in steps:
                    x[k] += s * h
                return np.array(self.mass_matrix(x).tolist())

            M = at()
            plus, minus = [at((k, 1)) for k in r], [at((k, -1)) for k in r]
            d = [(plus[k] - minus[k]) / (2 * h) for k in r]
            dd = [[None] * n for _ in r]
            for k in r:
                dd[k][k] = (plus[k] - 2 * M + minus[k]) / h**2
                for l in range(k):
                    corners = sum(s * t * at((k, s), (l, t)) for s in (1, -1) for t in (1, -1))
                    dd[k][l] = dd[l][k] = corners / (4 * h**2)
            first = lambda i, j, k: (d[i][k, j] + d[j][k, i] - d[k][i, j]) / 2
            G = np.array([[[first(i, j, k) for k in r] for j in r] for i in r])
            dG = lambda i, j, k, m: (dd[i][m][k, j] + dd[j][m][k, i] - dd[k][m][i, j]) / 2
            inverse = np.array((mp.matrix(M.tolist()) ** -1).tolist())
            up = np.einsum("kh,ijh->kij", inverse, G)
            R = np.empty((n,) * 4, dtype=object)
            for i, j, k, l in np.ndindex(*R.shape):
                R[i, j, k, l] = dG(j, l, i, k) - dG(j, k, i, l) + G[i, l] @ up[:, j, k] - G[i, k] @ up[:, j, l]
            return tuple(x.astype(float) for x in (M, G, R))
