"""Energy, forces and derivatives of the springs that a robot carries.

Let d be the vector between the ends of a spring, e = d·d and U = φ(e) = ½ k (√e - r)². By the freedoms i, j, l

    τ_i = φ' e_i,   e_i = 2 d·d_i,   ∂_j τ_i = φ'' e_i e_j + φ' e_ij,   e_ij = 2 (d_i·d_j + d·d_ij),

and once more. A point x that the screws s move has ∂_i x = ŝ_i x and ∂_i ∂_j x = ŝ_i ŝ_j x for i nearer the base than j; among freedoms of
one spherical, planar or free joint the one by which is differentiated later stands first. All is seen from the last link that
carries both ends: joints before it do not change e.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array, concat, cross, dot, like, mv, namespace, transpose
from ..kernel.dispatch import kernel
from ..kinematics.poses import relative_poses
from ..lie import se3
from ..robot.robot import Robot
from .blocks import Blocks, rows
from .freedoms import freedoms


def _paths(robot: Robot, a: int, b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The links from the last one that carries both a and b, itself not counted, to a and to b."""
    path_a, path_b = robot.path(a), robot.path(b)
    common = sum(1 for i, j in zip(path_a, path_b) if i == j)
    return path_a[common:], path_b[common:]


def _pose(f: list[Array], path: tuple[int, ...], q: Array) -> Array:
    """The pose of the end of a path in its beginning."""
    T = like(np.eye(4), q)
    for k, i in enumerate(path):
        T = f[i] if k == 0 else T @ f[i]
    return T


def _moved(T: Array, x: Array) -> Array:
    return mv(T[..., :3, :3], x) + T[..., :3, 3]


class _Stretched(NamedTuple):
    """A spring between two links: the poses of these, the points in them, and the vector d from the first to the second."""

    poses: tuple[Array, Array]
    points: tuple[Array, Array]
    d: Array
    stiffness: Array
    rest: Array | None
    """None for a spring without length, which exerts a force in proportion to d."""

    def energy(self) -> Array:
        e = dot(self.d, self.d)
        stretch = e if self.rest is None else (namespace(e).sqrt(e) - self.rest) ** 2
        return 0.5 * self.stiffness * stretch

    def slopes(self) -> tuple[Array, Array | None, Array | None]:
        """φ', φ'' and φ''' (...), None for zero."""
        k, r, e = self.stiffness, self.rest, dot(self.d, self.d)
        if r is None:
            return 0.5 * k + 0.0 * e, None, None
        length = namespace(e).sqrt(e)
        return 0.5 * k * (1.0 - r / length), 0.25 * k * r / (e * length), -0.375 * k * r / (e * e * length)


def _stretched(robot: Robot, f: list[Array], q: Array, k: int) -> _Stretched:
    ends, numbers = robot.spring_ends[k], like(robot.spring_numbers[k], q)
    paths = _paths(robot, ends.a, ends.b)
    A, B = (_pose(f, path, q) for path in paths)
    a, b = numbers[2:5], numbers[5:8]
    return _Stretched((A, B), (a, b), _moved(B, b) - _moved(A, a), numbers[0], numbers[1] if ends.long else None)


def spring_energy(robot: Robot, q: Array, f: list[Array]) -> Array | float:
    """The potential energy (...) of all springs, for q of the tree and the poses f of links in their parents."""
    total: Array | float = 0.0
    for k, ends in enumerate(robot.spring_ends):
        if ends.joint >= 0:
            numbers, x = like(robot.spring_numbers[k], q), q[..., robot.tree_q_slices[ends.joint].start]
            total = total + 0.5 * numbers[0] * (x - numbers[1]) ** 2
        else:
            total = total + _stretched(robot, f, q, k).energy()
    return total


def spring_wrenches(robot: Robot, q: Array, f: list[Array]) -> dict[int, Array]:
    """The wrench (..., 6) of the springs between links on every link that they pull at, in its frame."""
    found: dict[int, Array] = {}
    for k, ends in enumerate(robot.spring_ends):
        if ends.joint >= 0:
            continue
        one = _stretched(robot, f, q, k)
        pull = 2.0 * one.slopes()[0][..., None] * one.d
        for link, T, x, force in zip((ends.a, ends.b), one.poses, one.points, (pull, -pull), strict=True):
            if link >= 0:
                local = mv(transpose(T[..., :3, :3]), force)
                wrench = concat([cross(x, local), local])
                found[link] = wrench if link not in found else found[link] + wrench
    return found


def joint_spring_force(robot: Robot, q: Array) -> Array | float:
    """The forces k (q - rest) (..., tree_nv) that hold joints against the springs about them; 0.0 without any."""
    zero = 0.0 * q[..., :1]
    parts = [zero] * robot.tree_nv
    held = False
    for k, ends in enumerate(robot.spring_ends):
        if ends.joint >= 0:
            numbers, at = like(robot.spring_numbers[k], q), robot.tree_q_slices[ends.joint].start
            dof = robot.tree_v_slices[ends.joint].start
            parts[dof] = parts[dof] + numbers[0] * (q[..., at : at + 1] - numbers[1])
            held = True
    return concat(parts) if held else 0.0


class _Variation:
    """The derivatives by the freedoms of the spring's two paths of the vector d between its ends."""

    def __init__(self, robot: Robot, q: Array, f: list[Array], S: list[Array], k: int) -> None:
        ends, here = robot.spring_ends[k], freedoms(robot)
        self.one = _stretched(robot, f, q, k)
        self.freedoms: list[int] = []
        turns, moves = [], []
        self.branch: list[int] = []
        for branch, (path, x, sign) in enumerate(zip(_paths(robot, ends.a, ends.b), self.one.points, (-1.0, 1.0), strict=True)):
            T, seen = like(np.eye(4), q), []
            for i in path:
                T = T @ f[i]
                if S[i].shape[-2]:
                    seen.append(se3.Ad_act(T[..., None, :, :], S[i]))
                    own = range(robot.tree_v_slices[i].start, robot.tree_v_slices[i].stop)
                    self.freedoms += own
                    self.branch += [branch] * len(own)
            if seen:
                s = seen[0] if len(seen) == 1 else rows(*seen)
                turns.append(s[..., :3])
                moves.append(sign * (cross(s[..., :3], _moved(T, x)[..., None, :]) + s[..., 3:]))
        self.count = len(self.freedoms)
        if self.count:
            self.w, self.d1 = (x[0] if len(x) == 1 else rows(*x) for x in (turns, moves))
        self._before = [[here.before(i, j) for j in self.freedoms] for i in self.freedoms]

    def _word(self, *order: int) -> tuple[int, ...] | None:
        """The freedoms in the order in which their screws stand before x, differentiated one after the other; None if d does not
        depend on all of them together.
        """
        if len({self.branch[i] for i in order}) > 1:
            return None
        word: list[int] = []
        for i in order:
            outer = sum(1 for j in word if self._before[j][i])
            word.insert(outer, i)
        return tuple(word)

    def _ordered(self, products: Array, times: int) -> Array:
        """From ŝ_i … ŝ_j x by all i … j, the derivatives of d by all freedoms in the order of differentiation."""
        m = self.count
        words = [self._word(*order) for order in np.ndindex(*[m] * times)]
        index = np.array([word or (0,) * times for word in words]).reshape((*[m] * times, times))
        some = np.array([word is not None for word in words], dtype=float).reshape([m] * times)
        return products[(..., *np.moveaxis(index, -1, 0), slice(None))] * like(some[..., None], products)

    def first(self) -> tuple[Array, Array]:
        """e_i (..., m) and d_i (..., m, 3)."""
        return 2.0 * dot(self.one.d[..., None, :], self.d1), self.d1

    def second(self) -> tuple[Array, Array]:
        """e_ij and d_ij (..., m, m, 3), i first."""
        d, d1 = self.one.d, self.d1
        d2 = self._ordered(cross(self.w[..., :, None, :], d1[..., None, :, :]), 2)
        return 2.0 * (d1 @ transpose(d1) + dot(d[..., None, None, :], d2)), d2

    def third(self, d2: Array) -> Array:
        """e_ijl (..., m, m, m), i first and l last."""
        d, d1, w = self.one.d, self.d1, self.w
        products = cross(w[..., :, None, None, :], cross(w[..., None, :, None, :], d1[..., None, None, :, :]))
        d3 = self._ordered(products, 3)
        mixed = dot(d2[..., :, :, None, :], d1[..., None, None, :, :])  # d_ij · d_l
        others = dot(d2[..., :, None, :, :], d1[..., None, :, None, :]) + dot(d1[..., :, None, None, :], d2[..., None, :, :, :])
        return 2.0 * (mixed + others + dot(d[..., None, None, None, :], d3))


def spring_derivatives(robot: Robot, q: Array, f: list[Array], S: list[Array]) -> Array | float:
    """∂τ_i/∂q_j (..., n, n) of the forces against all springs, in the coordinates of the tree; 0.0 without any."""
    total: Array | float = 0.0
    n = robot.tree_nv
    for k, ends in enumerate(robot.spring_ends):
        blocks = Blocks((n, n), like(np.zeros(1), q))
        if ends.joint >= 0:
            at = robot.tree_v_slices[ends.joint].start
            blocks.put(([at], [at]), (like(robot.spring_numbers[k, 0], q) + 0.0 * q[..., :1])[..., None])
        elif (x := _Variation(robot, q, f, S, k)).count:
            slope, bend, _ = x.one.slopes()
            by = slope[..., None, None] * x.second()[0]
            if bend is not None:
                e, _ = x.first()
                by = by + bend[..., None, None] * e[..., :, None] * e[..., None, :]
            blocks.put((x.freedoms, x.freedoms), by)
        total = total + blocks.array()
    return total


def spring_second_derivatives(robot: Robot, q: Array, f: list[Array], S: list[Array]) -> Array | float:
    """∂²τ_i/∂q_j∂q_l (..., n, n, n) of the forces against all springs, the mean of both orders, in the coordinates of the tree."""
    total: Array | float = 0.0
    n = robot.tree_nv
    for k, ends in enumerate(robot.spring_ends):
        if ends.joint >= 0 or not (x := _Variation(robot, q, f, S, k)).count:
            continue
        slope, bend, twist = x.one.slopes()
        e2, d2 = x.second()
        by = slope[..., None, None, None] * x.third(d2)
        if bend is not None and twist is not None:
            e, _ = x.first()
            i, j, l = e[..., :, None, None], e[..., None, :, None], e[..., None, None, :]
            pairs = e2[..., :, :, None] * l + e2[..., :, None, :] * j + e2[..., None, :, :] * i
            by = by + bend[..., None, None, None] * pairs + twist[..., None, None, None] * (i * j * l)
        blocks = Blocks((n, n, n), like(np.zeros(1), q))
        blocks.put((x.freedoms, x.freedoms, x.freedoms), 0.5 * (by + by.swapaxes(-1, -2)))
        total = total + blocks.array()
    return total


def against_springs(robot: Robot, q: Array, f: list[Array], F: list[Array]) -> list[Array]:
    """The wrenches F that pass through the links, less those that springs between links exert."""
    pulls = spring_wrenches(robot, q, f)
    return [x - pulls[i] if i in pulls else x for i, x in enumerate(F)]


@kernel("nv", q="nq", joint_space=True)
def spring_force(robot: Robot, q: Array) -> Array:
    """The joint forces (..., nv) that hold the robot against its springs: ∂U/∂q of their energy, a part of `gravity_force`."""
    from .newton_euler import pull_back, subspaces

    q = robot.tree_q(q)
    f, S = relative_poses(robot, q), subspaces(robot, q)
    zero = like(np.zeros(6), q) + 0.0 * q[..., :1] if robot.tree_nq else like(np.zeros(6), q)
    F = against_springs(robot, q, f, [zero] * robot.n_links)
    return robot.from_tree(pull_back(robot, f, S, F) + joint_spring_force(robot, q))
