"""Errors of joint coordinates as linear terms: δᵢ(q) = Σ cₖ fₖ(q), in groups that a fit may have or not.

offset       1
scale        q
harmonics k  sin kq, cos kq: an eccentric encoder or gear
compliance   deflection under gravity. The torque of joint i is linear in mass and first moments of the links beyond it, τᵢ = Yᵢ(q) φ; the
             deflection is τᵢ times the joint's compliance, so linear in the product, which is fitted. No mass needs to be known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..dynamics import regressor
from .chain import Chain

GROUPS = ("offset", "scale", "harmonics 1", "harmonics 2", "compliance")
PRIOR = {"offset": 2e-2, "scale": 2e-3, "harmonics 1": 1e-3, "harmonics 2": 1e-3, "compliance": 3e-4, "tilt": 3e-3, "shift": 3e-3}
"""Standard deviations [rad, m] of what joints and links have before anything is measured: generous workshop tolerances."""


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of some groups: term k belongs to joint `joint[k]` and is called `names[k]`."""

    chain: Chain
    groups: tuple[str, ...]
    joint: Array
    names: tuple[str, ...]
    group: tuple[str, ...]
    moments: dict[int, Array]
    """The combinations (columns of Y, terms), for each joint with compliance, that are different functions of q."""

    def design(self, q: Array) -> Array:
        """f (N, m) at full configurations q (N, nq)."""
        own = q[:, list(self.chain.coordinates)]
        columns = []
        loads = gravity_columns(self.chain, q) if self.moments else None
        for group in self.groups:
            for i in range(len(self.chain.links)):
                x = own[:, i]
                if group == "offset":
                    columns.append(np.ones((len(q), 1)))
                elif group == "scale":
                    columns.append(x[:, None])
                elif group.startswith("harmonics") and self.chain.turns[i]:
                    k = int(group.split()[1])
                    columns.append(np.stack([np.sin(k * x), np.cos(k * x)], axis=1))
                elif group == "compliance" and i in self.moments:
                    assert loads is not None
                    columns.append(loads[:, i] @ self.moments[i])
        return np.concatenate(columns, axis=1) if columns else np.zeros((len(q), 0))

    def deviations(self) -> Array:
        """Prior standard deviations (m,)."""
        return np.array([PRIOR[group] for group in self.group])

    def chosen(self, groups: tuple[str, ...]) -> Terms:
        """Only these groups."""
        keep = [k for k, group in enumerate(self.group) if group in groups]
        return Terms(
            self.chain,
            tuple(x for x in self.groups if x in groups),
            self.joint[keep],
            tuple(self.names[k] for k in keep),
            tuple(self.group[k] for k in keep),
            self.moments if "compliance" in groups else {},
        )


def gravity_columns(chain: Chain, q: Array) -> Array:
    """Y (N, n, 4 n_links): torques of the chain's joints by mass and first moments of every link, at rest."""
    robot = chain.robot
    rest = np.zeros((len(q), robot.nv))
    Y = np.asarray(regressor(robot, q, rest, rest)).reshape(len(q), robot.nv, robot.n_links, 10)[..., :4]
    rows = [robot.v_slice(name).start for name in chain.names]
    return Y[:, rows].reshape(len(q), len(rows), 4 * robot.n_links)


def all_terms(chain: Chain, q: Array, groups: tuple[str, ...] = GROUPS) -> Terms:
    """The terms of these groups; those of compliance are the different functions that the configurations q show."""
    joint, names, group, moments = [], [], [], {}
    if "compliance" in groups and np.any(np.asarray(chain.robot.gravity)):
        loads = gravity_columns(chain, q)
        for i in range(len(chain.links)):
            basis = _basis(loads[:, i])
            if basis.shape[1]:
                moments[i] = basis
    for kind in groups:
        for i, name in enumerate(chain.names):
            if kind == "compliance":
                labels = [f"{name} deflection {k + 1}" for k in range(moments[i].shape[1])] if i in moments else []
            elif kind.startswith("harmonics"):
                k = kind.split()[1]
                labels = [f"{name} sin {k}q", f"{name} cos {k}q"] if chain.turns[i] else []
            else:
                labels = [f"{name} {kind}"]
            joint += [i] * len(labels)
            names += labels
            group += [kind] * len(labels)
    return Terms(chain, groups, np.array(joint, dtype=int), tuple(names), tuple(group), moments)


def _basis(loads: Array) -> Array:
    """Combinations of columns that vary in a different way over the configurations; constants are left to the offset."""
    size = np.sqrt(np.mean(loads**2, axis=0))
    live = size > 1e-9 * max(size.max(), 1e-30)
    if not live.any() or size.max() < 1e-12:
        return np.zeros((loads.shape[1], 0))
    scale = np.where(live, 1.0 / np.where(live, size, 1.0), 0.0)
    _, values, rows = np.linalg.svd(loads * scale, full_matrices=False)
    keep = values > 1e-6 * values[0]
    return (scale[:, None] * rows[keep].T) * 1.0
