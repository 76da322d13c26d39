"""Loops that are hard to simulate: Bennett's linkage, a parallelogram that passes its singular configuration, tilts and units."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import coadjoint as cj
from coadjoint import Constraint
from coadjoint.constraints import assemble, constraint_rank
from coadjoint.constraints.rank import is_overconstrained
from random_robots import random_pose

native = pytest.mark.native


def turned(a: float) -> np.ndarray:
    T = np.eye(4)
    T[1:3, 1:3] = [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]
    return T


def along(a: float) -> np.ndarray:
    T = np.eye(4)
    T[0, 3] = a
    return T


# --- Bennett's linkage: four axes in space, mobile although its rows say otherwise at every configuration nearby

SHORT, LONG = np.radians(40), np.radians(70)
BARS = [(1.0, SHORT), (np.sin(LONG) / np.sin(SHORT), LONG)] * 2
RATIO = np.sin((LONG + SHORT) / 2) / np.sin((LONG - SHORT) / 2)


def bennett() -> tuple[cj.Robot, Constraint]:
    links = [
        cj.Link.solid(
            f"l{k}",
            "base" if k == 0 else f"l{k - 1}",
            cj.Joint.revolute((0, 0, 1), name=f"j{k}"),
            np.eye(4) if k == 0 else along(BARS[k - 1][0]) @ turned(BARS[k - 1][1]),
            mass=1.0 + k,
            com=(BARS[k][0] / 2, 0.05, 0.02),
            inertia=np.diag([0.02, 0.1, 0.1]),
        )
        for k in range(3)
    ]
    ends = [along(a) @ turned(b) for a, b in BARS[2:]]
    robot = cj.Robot("bennett", links).with_frame("end", "l2", ends[0]).with_frame("pin", "base", np.linalg.inv(ends[1]))
    return robot, Constraint.loop(robot, "pin", "end", "revolute")


def angles(x: float) -> np.ndarray:
    """The closed form: tan(q₁/2) tan(q₀/2) = RATIO."""
    return np.array([x, 2 * np.arctan2(RATIO * np.cos(x / 2), np.sin(x / 2)), -x])


def rates(x: float) -> np.ndarray:
    s, c = np.sin(x / 2), np.cos(x / 2)
    return np.array([1.0, -RATIO / (RATIO**2 * c * c + s * s), -1.0])


X, W, TIMES = 2.02356054, 1.3, np.array([0.0, 0.5, 1.0, 2.0, 3.0])


@cache
def one_freedom() -> np.ndarray:
    """The first angle at TIMES from X on with the rate W, from ½ m(x) ẋ² + U(x) alone."""
    robot, _ = bennett()
    inertia = lambda x: rates(x) @ cj.mass_matrix(robot, angles(x)) @ rates(x)
    height = lambda x: float(cj.potential_energy(robot, angles(x)))

    def slope(t, y):
        h = 1e-4
        change = lambda f: (8 * (f(y[0] + h) - f(y[0] - h)) - f(y[0] + 2 * h) + f(y[0] - 2 * h)) / (12 * h)
        return [y[1], (-0.5 * change(inertia) * y[1] ** 2 - change(height)) / inertia(y[0])]

    return solve_ivp(slope, (0, TIMES[-1]), [X, W], "DOP853", t_eval=TIMES, rtol=1e-11, atol=1e-11).y[0]


@pytest.mark.slow
@native
def test_bennetts_linkage():
    """Against its equation of one freedom, through both stretched positions: by simulate and by steps of every kind."""
    robot, loop = bennett()
    true, times = one_freedom(), TIMES
    start = angles(X), W * rates(X)
    assert np.abs(loop.residual(robot, start[0])).max() < 1e-14
    motion = cj.simulate(robot, *start, times, constraints=loop)
    np.testing.assert_allclose(motion.q[:, 0], true, atol=1e-7)
    assert np.ptp(motion.energy) < 1e-6
    assert motion.drift()[0] < 1e-12
    for method, dt, bound in (("rk4", 1e-3, 2e-6), ("euler", 2.5e-4, 1e-2), ("variational", 5e-4, 1e-5)):
        q, _ = cj.rollout(robot, *start, dt=dt, steps=round(3 / dt), constraints=loop, method=method)
        np.testing.assert_allclose(q[np.round(times / dt).astype(int), 0], true, atol=bound)


@native
@pytest.mark.parametrize("family", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("method", "dt", "bound"), [("rk4", 1e-3, 2e-6), ("euler", 1e-3, 4e-2), ("variational", 5e-4, 1e-5)])
def test_bennetts_linkage_in_steps_alone(method, dt, bound, family):
    """Without a simulation before that finds out what is special about it, and as one of several robots."""
    robot, loop = bennett()
    given = {"parameters": {"masses": np.stack([robot.parameters("masses")] * 2)}} if family else {}
    q, _ = cj.rollout(robot, angles(X), W * rates(X), dt=dt, steps=round(3 / dt), constraints=loop, method=method, **given)
    at = q.reshape(-1, *q.shape[-2:])[-1, np.round(TIMES / dt).astype(int), 0]
    np.testing.assert_allclose(at, one_freedom(), atol=bound)


@pytest.mark.slow
def test_what_is_overconstrained():
    """Bennett's linkage is; a planar loop written in space, and a parallelogram at its singular configuration, are not."""
    robot, loop = bennett()
    cj.simulate(robot, angles(1.0), np.zeros(3), 0.01, constraints=loop)
    assert is_overconstrained(robot, loop.at(robot, angles(1.0)))
    robot = four_bar(1.0)
    loop = Constraint.loop(robot, "pin", "tip", "revolute")
    q = assemble(robot, loop, START)
    cj.simulate(robot, q, np.zeros(3), 0.01, constraints=loop)
    assert not is_overconstrained(robot, loop.at(robot, q))
    robot, loop = parallelogram()
    q = np.array([0, 0, np.pi])
    cj.simulate(robot, q, np.array([-1.0, 1.0, -1.0]), 0.01, constraints=loop)
    assert not is_overconstrained(robot, loop.at(robot, q))


# --- a parallelogram


def parallelogram() -> tuple[cj.Robot, Constraint]:
    links = [
        cj.Link.solid(
            name,
            parent,
            cj.Joint.revolute((0, 0, 1), name=name),
            along(before),
            mass=1.0,
            com=(length / 2, 0, 0),
            inertia=np.diag([0.01, length**2 / 12, length**2 / 12]),
        )
        for name, parent, before, length in (("a", "base", 0.0, 0.5), ("b", "a", 0.5, 1.0), ("c", "b", 1.0, 0.5))
    ]
    robot = cj.Robot("parallelogram", links, gravity=(0, 0, 0)).with_frame("tip", "c", along(0.5))
    return robot, Constraint.point(robot, "tip", "xy", at=(1.0, 0.0))


@native
def test_dense_output_through_a_singular_configuration():
    """The bars lie on one line at t = 0.7 and go on evenly; states as near to that as can be are those of the motion."""
    robot, loop = parallelogram()
    x, v = 0.7, np.array([-1.0, 1.0, -1.0])
    motion = cj.simulate(robot, [x, -x, x + np.pi], v, 1.0, constraints=loop)
    near = np.array([sign * 10.0**-k for k in range(2, 14) for sign in (-1, 1)] + [0.0])
    q, speed = motion(0.7 + near)
    np.testing.assert_allclose(q[:, 0], x - (0.7 + near), atol=1e-9)
    np.testing.assert_allclose(speed, np.tile(v, (len(near), 1)), atol=1e-6)
    assert np.abs(loop.residual(robot, q)).max() < 1e-10
    np.testing.assert_allclose(motion.q[:, 0], x - motion.time, atol=1e-9)


# --- a four-bar with a tilt, or in another unit

START = [0.9, -0.586625, -2.05976]


def four_bar(scale: float, tilt: float = 0.0, seed: int | None = None) -> cj.Robot:
    """Lengths times scale, the second axis tilted; with a seed the frames of all links stand anyhow, as from a drawing."""
    rng = None if seed is None else np.random.default_rng(seed)
    pose = lambda: np.eye(4) if rng is None else random_pose(rng, 0.3 * scale)
    lengths = scale * np.array([0.4, 0.9, 0.6])
    world, frames = pose(), [pose() for _ in range(3)]
    links = []
    for k, name in enumerate(("crank", "coupler", "rocker")):
        ideal = along(lengths[k - 1]) @ (turned(tilt) if k == 1 else np.eye(4)) if k else np.eye(4)
        place = (world if k == 0 else np.linalg.inv(frames[k - 1])) @ ideal @ frames[k]
        back = np.linalg.inv(frames[k])
        U, _, V = np.linalg.svd(place[:3, :3])
        place[:3, :3] = U @ V
        inertia = back[:3, :3] @ np.diag([0.01 * scale**2, lengths[k] ** 2 / 12, lengths[k] ** 2 / 12]) @ back[:3, :3].T
        links.append(
            cj.Link.solid(
                name,
                "base" if k == 0 else ("crank", "coupler")[k - 1],
                cj.Joint.revolute(back[:3, 2], back[:3, 3], name=name),
                place,
                mass=1.0,
                com=(back @ [lengths[k] / 2, 0, 0, 1])[:3],
                inertia=(inertia + inertia.T) / 2,
            )
        )
    robot = cj.Robot("four-bar", links, gravity=world[:3, :3] @ [0, -9.81 * scale, 0])
    ends = np.linalg.inv(frames[2]) @ along(lengths[2]), world @ along(scale)
    return robot.with_frame("tip", "rocker", ends[0]).with_frame("pin", "base", ends[1])


ROUNDED = pytest.mark.parametrize(
    ("scale", "tilt", "seed"),
    [(1.0, 1e-13, None), (1e-3, 0.0, 0), (1.0, 1e-12, None), (1000.0, 0.0, 0), (1000.0, 0.0, 1), (1.0, 0.0, 2)],
)


@ROUNDED
def test_rounding_does_not_lock_a_loop(scale, tilt, seed):
    """Rows across the plane that are rounding in a unit, or by a tilt, change neither the rank nor the accelerations."""
    plain = four_bar(1.0)
    loop = Constraint.loop(plain, "pin", "tip", "revolute")
    true, _ = cj.constrained_dynamics(plain, loop, assemble(plain, loop, START), np.zeros(3), np.zeros(3))
    robot = four_bar(scale, tilt, seed)
    loop = Constraint.loop(robot, "pin", "tip", "revolute")
    q = assemble(robot, loop, START)
    assert constraint_rank(robot, loop, q).rank == 2
    a, multipliers = cj.constrained_dynamics(robot, loop, q, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(a, true, rtol=1e-5)
    assert np.abs(multipliers).max() < 1e3 * scale
    assert np.trace(cj.constraint_projector(robot, loop, q)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
@native
@ROUNDED
def test_rounding_does_not_lock_the_motion_of_a_loop(scale, tilt, seed):
    """Simulated and in steps, it ends where the loop without rounding does."""
    plain = four_bar(1.0)
    loop = Constraint.loop(plain, "pin", "tip", "revolute")
    end = cj.simulate(plain, assemble(plain, loop, START), np.zeros(3), 0.5, constraints=loop).q[-1]
    robot = four_bar(scale, tilt, seed)
    loop = Constraint.loop(robot, "pin", "tip", "revolute")
    q = assemble(robot, loop, START)
    np.testing.assert_allclose(cj.simulate(robot, q, np.zeros(3), 0.5, constraints=loop).q[-1], end, atol=1e-5)
    found, _ = cj.rollout(robot, q, np.zeros(3), dt=1e-3, steps=500, constraints=loop, method="rk4")
    np.testing.assert_allclose(found[-1], end, atol=1e-5)
