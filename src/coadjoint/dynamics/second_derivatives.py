"""Second derivatives of inverse and forward dynamics by the state, exact, in O(n · depth²).

The bodies beyond a joint z pass the wrench F to it, in the frame of its link, and with it s_rᵀ F to τ_r of every joint r on the path.
Nothing else depends on the freedoms of z. By the freedoms k and l on the path, with "k before l" when k lies nearer the base
(freedoms of one spherical, planar or free joint are not before each other), all in that frame and with the rates of `derivatives`,

    ∂_l s_k = [s_k, s_l],  ∂_l ds_k = [ds_k, s_l],  ∂_l dds_k = [dds_k, s_l]      k before l
    ∂_l s_k = 0,           ∂_l ds_k = [ds_l, s_k],  ∂_l dds_k = [dds_l, s_k] + 2 [ds_l, ds_k]      else
    ∂_k F = J dds_k + 2 B ds_k,   ∂F/∂v_k = J by_v_k + 2 B s_k,   ∂_l B = B of the bodies J moving with ds_l,  ∂B/∂v_l with s_l

where z is the farthest of r, k and l, and the rest is the product rule. For freedoms of one spherical, planar or free joint the second
derivative is that of δ ↦ τ(q ⊕ δ) at 0, ⊕ as in `robot.integrate`: the mean of both orders of differentiation.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, cross, like, mirror, namespace, stack, transpose
from ..kernel.dispatch import kernel
from ..lie import inertia, se3
from ..robot.robot import Robot
from .blocks import Blocks, chosen
from .christoffel import mass_matrix_derivative
from .derivatives import Rates, Variations, acceleration, inverse_dynamics_derivatives, variations
from .freedoms import Freedoms, freedoms, from_tree_axes, path_screws
from .moving import moving
from .singular import explain_singular
from .springs import spring_second_derivatives


def tree_second_derivatives(robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """∂²τ_r/∂q_k∂q_l, ∂²τ_r/∂q_k∂v_l and ∂²τ_r/∂v_k∂v_l (..., n, n, n), r first, in the coordinates of the tree."""
    x, n = variations(robot, q, v, a, None), robot.tree_nv
    if not n:
        return (like(np.zeros((0, 0, 0)), q),) * 3
    qq, qv, vv = (Blocks((n, n, n), like(np.zeros(1), q)) for _ in range(3))
    along = Rates(*(path_screws(robot, x.f, list(rates)) for rates in zip(*x.rates, strict=True)))
    for z in range(robot.n_links):
        if robot.kind(z).nv:
            _Farthest(freedoms(robot), z, x, Rates(*(rates[z] for rates in along))).put(qq, qv, vv)
    tau_qq = qq.array()
    if robot.spring_ends:
        tau_qq = tau_qq + spring_second_derivatives(robot, q, x.f, [rates.s for rates in x.rates])
    return tau_qq, qv.array(), vv.array()


class _Farthest:
    """The entries in which the freedoms of one joint z are the farthest of r, k and l, in the frame of its link."""

    def __init__(self, here: Freedoms, z: int, x: Variations, rates: Rates) -> None:
        path = here.path[z]
        self.own = [k for k in path if here.link[k] == z]
        self.inner, self.path = [k for k in path if here.link[k] != z], path
        self.m = len(self.inner)
        self.before = np.array([[here.before(k, l) for l in path] for k in path])
        self.group = here.group[self.own[0]]
        self.s, self.ds, self.dds, self.by_v = rates
        self.w, self.dw = self.s[..., :3], self.ds[..., :3]
        self.F, self.J, self.B = x.F[z][..., None, :], x.J[z][..., None, :], x.B[z]
        self.F_q = inertia.apply(self.J, self.dds) + 2.0 * self.B.wrench(self.dw)
        self.F_v = inertia.apply(self.J, self.by_v) + 2.0 * self.B.wrench(self.w)

    def put(self, qq: Blocks, qv: Blocks, vv: Blocks) -> None:
        own, inner, path, m = self.own, self.inner, self.path, self.m
        by_own = [self._by_own(m + j) for j in range(len(own))]
        for blocks, parts in ((qq, [x[0] for x in by_own]), (vv, [x[2] for x in by_own])):
            H = stack(parts, axis=-1)  # r, k, l
            here = H[..., m:, :]
            other = here.swapaxes(-1, -2)
            symmetric = 0.5 * (here + other) if self.group and len(own) > 1 else mirror(here)
            blocks.put((path, own, own), symmetric)
            if inner:
                blocks.put((path, inner, own), H[..., :m, :])
                blocks.put((path, own, inner), H[..., :m, :].swapaxes(-1, -2))
        qv.put((path, own, path), stack([x[1] for x in by_own], axis=-2))
        if inner:
            qv.put((path, inner, own), stack([self._by_own_velocity(m + j) for j in range(len(own))], axis=-1))
            for j, r in enumerate(own):
                for blocks, H in zip((qq, qv, vv), self._of_own(m + j), strict=True):
                    blocks.put(([r], inner, inner), H[..., None, :, :])

    def _by_own(self, l: int) -> tuple[Array, Array, Array]:
        """By (r, k): ∂²τ_r/∂q_k∂q_l for k up to l, ∂²τ_r/∂q_l∂v_k for all k, ∂²τ_r/∂v_k∂v_l for k up to l; l a freedom of z."""
        one = slice(l, l + 1)
        s_l, ds_l, F_l = self.s[..., one, :], self.ds[..., one, :], self.F_q[..., one, :]
        varied, moved = moving(self.J[..., 0, :], 2.0 * ds_l[..., 0, :]), moving(self.J[..., 0, :], 2.0 * s_l[..., 0, :])
        r_before_l = np.broadcast_to(self.before[:, l, None], self.before.shape)

        force = self._transported(self.dds, self.ds, s_l) + varied.wrench(self.dw)
        turned = force - se3.ad_dual_act(s_l, self.F_q)
        turned_twice = turned - se3.ad_dual_act(self.s, F_l - se3.ad_dual_act(s_l, self.F))
        qq = chosen(self.before, self._dot(turned_twice), chosen(r_before_l, self._dot(turned), self._dot(force)))

        before = self._transported(self.by_v, self.s, s_l) + varied.wrench(self.w)
        after = inertia.apply(self.J, 2.0 * se3.ad_act(ds_l, self.s)) + varied.wrench(self.w)
        force = chosen(np.broadcast_to(self.before[:, l, None], (len(self.path), 6)), before, after)
        qv = chosen(r_before_l, self._dot(force - se3.ad_dual_act(s_l, self.F_v)), self._dot(force))
        return qq, qv, self._dot(moved.wrench(self.w))

    def _by_own_velocity(self, k: int) -> Array:
        """∂²τ_r/∂q_l∂v_k by (r, l), for a freedom k of z and all l before z."""
        m = self.m
        moved = moving(self.J[..., 0, :], 2.0 * self.s[..., k, :])
        force = moved.wrench(self.dw[..., :m, :])
        turned = force - se3.ad_dual_act(self.s[..., :m, :], self.F_v[..., k : k + 1, :])
        return chosen(self.before[:, :m], self._dot(turned), self._dot(force))

    def _of_own(self, r: int) -> tuple[Array, Array, Array]:
        """∂²τ_r/∂q_k∂q_l, ∂²τ_r/∂q_k∂v_l, ∂²τ_r/∂v_k∂v_l by (k, l), for a freedom r of z and all k, l before z."""
        m, before = self.m, self.before[: self.m, : self.m]
        s_r, s, ds, w, dw = self.s[..., r : r + 1, :], *(x[..., : self.m, :] for x in (self.s, self.ds, self.w, self.dw))
        pull = -se3.ad_dual_act(s, inertia.apply(self.J, s_r))
        J = self.J[..., None, 0, :]
        with_ds, with_s = (moving(J, 2.0 * y).turning(s_r[..., None, :, :])[..., 0, :] for y in (ds, s))
        turn = cross(w, 2.0 * self.B.turning(s_r)) + with_ds
        qq = self.dds[..., :m, :] @ transpose(pull) + dw @ transpose(turn)
        qv = self.by_v[..., :m, :] @ transpose(pull) + w @ transpose(turn)  # k by v, l by q, k before l
        vq = dw @ transpose(with_s)  # l by q, k by v, else
        return self._symmetric(qq, before), chosen(before.T, transpose(qv), vq), self._symmetric(w @ transpose(with_s), before)

    def _transported(self, acceleration: Array, twist: Array, s_l: Array) -> Array:
        """J [acceleration, s_l] + 2 B [twist, s_l], for all k."""
        turn = cross(twist[..., :3], s_l[..., :3])
        return inertia.apply(self.J, se3.ad_act(acceleration, s_l)) + 2.0 * self.B.wrench(turn)

    def _dot(self, force: Array) -> Array:
        """s_r · force_k by (r, k)."""
        return self.s @ transpose(force)

    def _symmetric(self, H: Array, before: np.ndarray) -> Array:
        """H (k, l), right for k before l, for all k and l: its mirror image, or the mean of both in a group."""
        same = np.eye(self.m, dtype=bool)
        return chosen(before | same, H, chosen(before.T, transpose(H), 0.5 * (H + transpose(H))))


@kernel("nv nv nv", "nv nv nv", "nv nv nv", "nv nv nv", q="nq", v="nv", a="nv", joint_space=True, largest=12)
def inverse_dynamics_second_derivatives(robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array, Array]:
    """∂²τ_r by (q_k, q_l), (q_k, v_l), (v_k, v_l) and (q_k, a_l), each (..., r, k, l) of sizes nv; by (v, a) and (a, a) there is none.

    The last is ∂M_rl/∂q_k. By q along the tangent vectors of `robot.integrate`: ∂²/∂q_k∂q_l is that of δ ↦ τ(q ⊕ δ) at 0.
    """
    qq, qv, vv = tree_second_derivatives(robot, robot.tree_q(q), robot.tree_v(v), robot.tree_v(a))
    qq, qv, vv = (from_tree_axes(robot, x, 3) for x in (qq, qv, vv))
    return qq, qv, vv, mass_matrix_derivative(robot, q).swapaxes(-1, -2)


@kernel(*["nv nv nv"] * 4, q="nq", v="nv", tau="nv", no_result=explain_singular, joint_space=True, largest=10)
def forward_dynamics_second_derivatives(robot: Robot, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array, Array]:
    """∂²a_r by (q_k, q_l), (q_k, v_l), (v_k, v_l) and (q_k, τ_l), each (..., r, k, l) of sizes nv; by (v, τ) and (τ, τ) there is none.

    Differentiating τ(q, v, a(q, v, τ)) = τ twice: a_xy = -M⁻¹ (τ_xy + τ_xa a_y + τ_ya a_x), where τ_qa = ∂M/∂q and τ_va = 0.
    """
    a, inverse = acceleration(robot, q, v, tau)
    by_q, by_v, _ = inverse_dynamics_derivatives(robot, q, v, a)
    a_q, a_v = -(inverse @ by_q), -(inverse @ by_v)
    qq, qv, vv, qa = inverse_dynamics_second_derivatives(robot, q, v, a)
    mixed = qa @ a_q[..., None, :, :]
    forces = (qq + mixed + mixed.swapaxes(-1, -2), qv + qa @ a_v[..., None, :, :], vv, qa @ inverse[..., None, :, :])
    n, xp = robot.nv, namespace(a)
    by_qq, by_qv, by_vv, last = (-(inverse @ x.reshape((*x.shape[:-3], n, n * n))).reshape(x.shape) for x in forces)
    regular = xp.abs(a[..., :1]) < np.inf  # where there is no acceleration
    return by_qq, by_qv, by_vv, xp.where(regular[..., None, None], last, np.nan) if n else last
