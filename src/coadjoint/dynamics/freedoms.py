"""The freedoms of a robot: which links each one moves, and their screws in the links' frames."""

from __future__ import annotations

from itertools import pairwise

from ..arrays import Array, stack
from ..lie import se3
from ..memo import per_structure
from ..robot.robot import Robot
from .blocks import rows


class Freedoms:
    """The order of the freedoms in a robot's tree: the link of each, and the freedoms before it."""

    def __init__(self, robot: Robot) -> None:
        self.count = robot.tree_nv
        self.link = [i for i in range(robot.n_links) for _ in range(robot.kind(i).nv)]
        self.group = [robot.kind(i).group is not None for i in self.link]
        self.above: list[set[int]] = [set() for _ in range(robot.n_links)]
        self.path: list[list[int]] = [[] for _ in range(robot.n_links)]
        for i in robot.order:
            own = list(range(robot.tree_v_slices[i].start, robot.tree_v_slices[i].stop))
            parent = robot.parents[i]
            self.above[i] = self.above[parent] | {parent} if parent >= 0 else set()
            self.path[i] = [*(self.path[parent] if parent >= 0 else []), *own]

    def before(self, i: int, j: int) -> bool:
        """True if ∂_i ∂_j x is ŝ_i ŝ_j x alone: i nearer the base than j. Freedoms of one group move together."""
        if self.link[i] == self.link[j]:
            return i < j and not self.group[i]
        return self.link[i] in self.above[self.link[j]]

    def on_one_path(self, *freedoms: int) -> bool:
        """True if some link is moved by all of these freedoms."""
        links = sorted({self.link[k] for k in freedoms}, key=lambda i: len(self.above[i]))
        return all(a in self.above[b] for a, b in pairwise(links))


@per_structure
def freedoms(robot: Robot) -> Freedoms:
    """The freedoms of a robot."""
    return Freedoms(robot)


def path_screws(robot: Robot, f: list[Array], S: list[Array]) -> list[Array]:
    """The screws (..., p, 6), for every link in its frame, of the p freedoms that move it, base outward."""
    A: list[Array] = [None] * robot.n_links
    for i in robot.order:
        parent = robot.parents[i]
        A[i] = S[i]
        if parent >= 0 and A[parent].shape[-2]:
            carried = se3.Ad_inv_act(f[i][..., None, :, :], A[parent])
            A[i] = rows(carried, S[i]) if S[i].shape[-2] else carried
    return A


def from_tree_axes(robot: Robot, a: Array, axes: int) -> Array:
    """a with its last axes transformed from the velocities of the tree to those of the robot."""
    if not robot.mimics:
        return a
    for _ in range(axes):  # each is last once
        a = robot.from_tree_columns(a)
        a = stack([a[..., k] for k in range(a.shape[-1])], axis=-axes)
    return a
