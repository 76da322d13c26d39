"""Steps of fixed length with dry friction, in straight code: joints that stick do not move at all, and there is no chatter.

euler          the friction is an impulse within ±h μ at the end of the step, implicit: it stops what it can stop
rk4, variational    at the start of a step it is decided which joints stick: these are locked through the step. Friction of the others
               keeps its direction, and an impulse at the end stops those that it would have turned back
"""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array, like, mv, namespace
from ..constraints.constraint import Constraint
from ..constraints.metric_rows import inverse
from ..dynamics import mass_matrix
from ..dynamics.newton_euler import bias_force
from ..robot.robot import Robot
from . import variational
from .constraint_projection import ConstraintRows, nearest_state
from .friction import box_forces, friction_coefficients, locked

STILL = 1e-11
"""A velocity below this, relative to the largest, is zero up to rounding."""

Force = Callable[[Array, Array, Array], Array]
"""Joint forces (nv,) from q, v and t (1,)."""


class Frictional:
    """A robot with dry friction under forces and a constraint, in steps of length h."""

    def __init__(self, robot: Robot, constraint: Constraint | None, force: Force, h: Array) -> None:
        self.robot, self.constraint, self.h = robot, constraint, h
        self.damping, self.dry = friction_coefficients(robot)
        self.force: Force = lambda q, v, t: force(q, v, t) - self.damping * v

    def _mobility(self, q: Array, held: Array | None = None) -> tuple[Array, ConstraintRows | None]:
        """M⁻¹ with held joints locked, and the constraint there."""
        W = inverse(mass_matrix(self.robot, q))
        rows = None if self.constraint is None else ConstraintRows(self.robot, self.constraint, q, W, held)
        return W if held is None else locked(W, held), rows

    def acceleration(
        self, q: Array, v: Array, t: Array, W: Array, rows: ConstraintRows | None, direction: Array | float = 0.0
    ) -> Array:
        """a (..., nv) with that mobility; joints slip in the direction."""
        a = mv(W, self.force(q, v, t) - self.dry * direction - bias_force(self.robot, q, v))
        if rows is not None:
            bias = rows.constraint.bias(self.robot, q, v)
            for _ in range(rows.turns):
                a = a + mv(W, rows.impulse(mv(rows.A, a) + bias))
        return a

    def decide(self, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
        """1 for joints that stick, and the signs of slipping of the others, 0 for those without friction; both (..., nv)."""
        xp, (W, rows) = namespace(v), self._mobility(q)
        one, zero, dry = 1.0 + 0.0 * v, 0.0 * v, like(self.dry, v) + 0.0 * v
        still = (xp.abs(v) <= STILL * (1.0 + xp.abs(v).sum(-1)[..., None])) & (dry > 0.0)
        sign = xp.where(v > 0.0, one, -one)
        lower, upper = xp.where(still, -dry, -dry * sign), xp.where(still, dry, -dry * sign)
        x = box_forces(_projected(W, rows), self.acceleration(q, v, t, W, rows), lower, upper)
        sticks = still & (x > -dry) & (x < dry)
        slips = xp.where(still, xp.where(x < 0.0, one, -one), sign)
        return xp.where(sticks, one, zero), xp.where(sticks | (dry <= 0.0), zero, slips)

    def stop(self, q: Array, v: Array, before: Array, held: Array, direction: Array) -> tuple[Array, Array]:
        """The state at the end of a step, from that (q, v) which friction of constant direction makes: what turned back is corrected.

        Where v turned, evenly from `before` on, friction had the wrong sign for the part -v / (before - v) of the step. What it can be in
        that part, either way, is an impulse; the impulse moves q by half of the part as well.
        """
        xp, zero = namespace(v), 0.0 * v
        turned = v * direction < 0.0
        part = xp.where(turned, -v / xp.where(turned, before - v, 1.0 + zero), zero)
        impulse = 2.0 * self.h * self.dry * part
        lower, upper = xp.where(direction < 0.0, -impulse, zero), xp.where(direction > 0.0, impulse, zero)
        W = _projected(*self._mobility(q, held))
        x = box_forces(W, v, lower, upper)
        after, rest = _at_rest(v + mv(W, x), ((x > lower) & (x < upper)) | (held > 0.5))
        q = self.robot.integrate(q, 0.5 * self.h * part * (after - v))
        return self._kept(q, after, rest)

    def _kept(self, q: Array, v: Array, rest: Array) -> tuple[Array, Array]:
        """The state projected onto the constraint, joints at rest unchanged."""
        if self.constraint is None:
            return self.robot.normalize(q), v
        held = namespace(v).where(rest, 1.0 + 0.0 * v, 0.0 * v)
        return nearest_state(self.robot, self.constraint, q, v, held)

    # --- steps

    def euler(self, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
        """One semi-implicit step."""
        W, rows = self._mobility(q)
        u, limit = v + self.h * self.acceleration(q, v, t, W, rows), self.h * self.dry + 0.0 * v
        W = _projected(W, rows)
        x = box_forces(W, u, -limit, limit)
        v, rest = _at_rest(u + mv(W, x), (x > -limit) & (x < limit))
        return self._kept(self.robot.integrate(q, self.h * v), v, rest)

    def rk4(self, q: Array, v: Array, t: Array, step: Callable[..., tuple[Array, Array]]) -> tuple[Array, Array]:
        """One step of `rk4_step`, given."""
        held, direction = self.decide(q, v, t)
        free = lambda q, v, t: self.acceleration(q, v, t, *self._mobility(q, held), direction)
        return self.stop(*step(self.robot, q, v * (1.0 - held), t, free, self.h), v, held, direction)

    def variational(self, q: Array, p: Array, w: Array, t: Array) -> tuple[Array, Array, Array, Array]:
        """One step of `variational.step`, with the same results."""
        v = mv(inverse(mass_matrix(self.robot, q)), p)
        held, direction = self.decide(q, v, t)
        force = lambda q, v: self.force(q, v, t) - self.dry * direction
        q, p, w, left = variational.step(self.robot, q, p, w * (1.0 - held), self.h, force, self.constraint, held=held)
        q, v = self.stop(q, mv(locked(inverse(mass_matrix(self.robot, q)), held), p), v, held, direction)
        return q, mv(mass_matrix(self.robot, q), v), w, left


def _projected(W: Array, rows: ConstraintRows | None) -> Array:
    """The mobility W for motions that the constraint allows."""
    return W if rows is None else rows.mobility()


def _at_rest(v: Array, held: Array) -> tuple[Array, Array]:
    """v with exact zeros for held joints, and which these are."""
    xp = namespace(v)
    rest = held & (xp.abs(v) <= 1e2 * STILL * (1.0 + xp.abs(v).sum(-1)[..., None]))
    return xp.where(rest, 0.0 * v, v), rest
