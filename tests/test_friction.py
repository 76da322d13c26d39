"""Dry friction: stick and slip in closed form, the inclusion |f| ≤ μ on random mechanisms, with constraints, contacts and impacts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq

import coadjoint as cj
from coadjoint import Constraint, Contact
from coadjoint.constraints.complementarity import box_complementarity
from coadjoint.motion.friction import box_forces, friction_coefficients, locked
from random_robots import random_robot
from simulated_mechanisms import G, four_bar, four_bar_state

native = pytest.mark.native


def block(mass: float = 1.0, friction: float = 2.0, damping: float = 0.0, axis=(1, 0, 0)) -> cj.Robot:
    joint = cj.Joint.prismatic(axis, name="slide", friction=friction, damping=damping)
    return cj.Robot("block", [cj.Link.solid("block", "base", joint, mass=mass)], [cj.Frame("foot", "block", np.eye(4))])


def kinds(motion: cj.Trajectory) -> list[str]:
    return [x.kind for x in motion.happenings]


def test_a_sliding_block_stops():
    """m = 1, μ = 2 N, v₀ = 1: at rest after 0.5 s and 0.25 m, and there it stays."""
    found = cj.simulate(block(), [0.0], [1.0], 1.0, friction=True)
    assert kinds(found) == ["stick"]
    assert found.happenings[0].time == pytest.approx(0.5, abs=1e-13)
    q, v = found(np.linspace(0.501, 1.0, 7))
    np.testing.assert_allclose(q, 0.25, atol=1e-13)
    np.testing.assert_array_equal(v, 0.0)
    half, speed = found(0.25)
    np.testing.assert_allclose([half[0], speed[0]], [0.25 - 0.0625, 0.5], atol=1e-13)


def forced_block(F: float, w: float, mu: float, end: float) -> tuple[list[float], list[float]]:
    """The times at which sticking or slipping of a block of 1 kg under F sin(w t) begins, with its places there."""
    times, places = [], []
    t, x = 0.0, 0.0
    while True:
        s = t
        if abs(F * np.sin(w * t)) < mu:  # it waits until |F sin(w s)| grows to mu
            options = [k * np.pi / w + np.arcsin(mu / F) / w for k in range(1000)]
            s = next(y for y in options if y > t)
        sign = np.sign(np.sin(w * s))
        speed = lambda y, s=s, sign=sign: F / w * (np.cos(w * s) - np.cos(w * y)) - sign * mu * (y - s)
        if s > end:
            return times, places
        grid = s + np.linspace(0, 2 * np.pi / w, 2001)[1:]
        k = int(np.argmax(sign * speed(grid) < 0))
        stop = brentq(speed, grid[k - 1], grid[k], xtol=1e-15)
        times += [s, stop]
        lasts = stop - s
        way = F / w * np.cos(w * s) * lasts - F / w**2 * (np.sin(w * stop) - np.sin(w * s)) - sign * mu / 2 * lasts**2
        places += [x, x + way]
        t, x = stop, places[-1]


@native
@pytest.mark.parametrize("F", [2.5, 3.5, 9.0])
def test_stick_and_slip_of_a_forced_block(F):
    """Under F sin(w t), with stops between the strokes for small F and with reversals for a large one."""
    w, mu = 3.0, 2.0
    times, places = forced_block(F, w, mu, 8.0)
    found = cj.simulate(block(), [0.0], [0.0], 8.0, lambda robot, q, v, t: [F * np.sin(w * t)], friction=True)
    for t, x in zip(times, places, strict=True):
        if t < 8.0:
            q, v = found(t)
            assert abs(q[0] - x) < 1e-9
            assert abs(v[0]) < 1e-9
    happened = [x.time for x in found.happenings[1:]]
    if F == 9.0:  # it turns without rest: nothing to tell
        assert len(happened) == 1
    else:
        np.testing.assert_allclose(happened, [t for t in times if t < 8.0], atol=1e-9)


@native
def test_a_spring_ends_where_friction_holds_it():
    """Every half swing of a spring loses 2 μ/k; it ends where k |x| ≤ μ."""
    k, mu, x = 40.0, 2.0, 1.02
    found = cj.simulate(block(friction=mu), [x], [0.0], 10.0, lambda robot, q, v, t: -k * q, friction=True)
    half = np.pi / np.sqrt(k)
    swings = 0
    while abs(k * x) > mu:
        x = -np.sign(x) * (abs(x) - 2 * mu / k)
        swings += 1
        q, v = found(swings * half)
        assert abs(q[0] - x) < 1e-9
        assert abs(v[0]) < 1e-8
    assert found.happenings[-1].kind == "stick"
    assert found.happenings[-1].time == pytest.approx(swings * half, abs=1e-9)
    assert abs(found.q[-1, 0] - x) < 1e-9
    assert found.v[-1, 0] == 0.0


@native
def test_stick_slip_of_a_block_drawn_by_a_spring():
    """The end of a spring moves with V: the block waits for k V t = μ, jumps by V(1 - cos), grazes rest and jumps again."""
    k, V, mu = 50.0, 0.3, 2.0
    found = cj.simulate(block(), [0.0], [0.0], 6.0, lambda robot, q, v, t: k * (V * t - q), friction=True)
    t = np.linspace(0, 6, 301)
    s = np.maximum(t - mu / (k * V), 0.0)
    q, _ = found(t)
    np.testing.assert_allclose(q[:, 0], V * s - V / np.sqrt(k) * np.sin(np.sqrt(k) * s), atol=1e-9)
    assert found.happenings[1].time == pytest.approx(mu / (k * V), abs=1e-9)


@native
def test_stick_slip_on_a_belt():
    """A block held by a spring on a belt that moves with V, its friction relative to the belt; from rest on the belt and from a push."""
    k, V, mu, m = 30.0, 0.4, 2.0, 1.0
    belt = cj.Link.solid("belt", "base", cj.Joint.prismatic((1, 0, 0), name="belt"), mass=3.0)
    top = cj.Link.solid("top", "belt", cj.Joint.prismatic((1, 0, 0), name="top", friction=mu), mass=m)
    robot = cj.Robot("belt", [belt, top], gravity=(0, 0, 0))
    # in the frame of the belt the block at y = x - V t has the force -k (y + V t): the belt stands still
    alone = block(mass=m, friction=mu)
    found = cj.simulate(alone, [0.0], [0.0], 5.0, lambda robot, q, v, t: -k * (q + V * t), friction=True)
    w, start = np.sqrt(k / m), mu / (k * V)
    t = np.linspace(0, 5, 101)
    s = np.maximum(t - start, 0.0)
    x = np.where(t < start, V * t, V * start + V / w * np.sin(w * s))  # in space: about the place k x = μ
    np.testing.assert_allclose(found(t)[0][:, 0] + V * t, x, atol=1e-9)
    # both bodies move, the belt freely with the reaction: momentum and the relative law
    both = cj.simulate(robot, [0.0, 0.0], [1.0, -2.0], 3.0, friction=True)
    stick = both.happenings[0]
    a = mu * (1 / m + 1 / 3.0)
    assert stick.time == pytest.approx(2.0 / a, abs=1e-12)
    np.testing.assert_allclose(both.q[-1, 1], -2.0 * stick.time / 2, atol=1e-11)
    np.testing.assert_allclose(both.v[-1], [(3.0 * 1.0 + m * (1.0 - 2.0)) / 4.0, 0.0], atol=1e-11)


def holds_friction(robot: cj.Robot, motion: cj.Trajectory, tau, rows=None) -> tuple[int, int]:
    """M a + h + d v - τ is a friction: within ±μ, opposing v where that is not zero. How often joints stuck and slipped."""
    damping, mu = friction_coefficients(robot)
    stuck = slipped = 0
    marks = np.array([x.time for x in motion.happenings])
    for t in np.linspace(motion.time[0], motion.time[-1], 203)[1:-1]:
        h = 1e-4
        q, v = motion(t)
        far = [motion(t + k * h)[1] for k in (-2, -1, 1, 2)]
        if np.any(np.abs(marks - t) < 3 * h) or any(np.any(x * v < 0) for x in far):  # a joint sticks, breaks loose or turns back
            continue
        a = (far[0] - 8 * far[1] + 8 * far[2] - far[3]) / (12 * h)
        force = cj.inverse_dynamics(robot, q, v, a) + damping * v - tau(robot, q, v, t)
        slips = np.abs(v) > 1e-6
        if rows is not None:  # some force of the constraint brings it into the set
            A = rows.jacobian(robot, q)
            G = A @ A.T
            known = slips | (mu == 0)
            lam = np.linalg.lstsq(A.T[known], (force + mu * np.sign(v))[known], rcond=None)[0] if known.any() else np.zeros(len(G))
            force = force - A.T @ lam
        scale = 1.0 + np.abs(force).max()
        np.testing.assert_allclose(force[slips], -(mu * np.sign(v))[slips], atol=2e-6 * scale)
        if rows is None:
            assert np.all(np.abs(force) <= mu + 2e-6 * scale)
        held = (v == 0) & (mu > 0)
        stuck += int(held.sum())
        slipped += int((slips & (mu > 0)).sum())
    return stuck, slipped


@native
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(k, marks=pytest.mark.slow) for k in (3, 4, 5))])
def test_the_law_of_friction_on_random_mechanisms(seed):
    """Several joints stick and slip, break loose, and turn back; the force lies in the set at every time."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4, ("revolute", "prismatic", "universal"), tree=True)
    for joint, link in zip(robot.joint_names, robot.links, strict=True):
        n = link.joint.screws.shape[0]
        robot = robot.with_joint(joint, friction=rng.uniform(0.3, 3.0, n) if n > 1 else float(rng.uniform(0.3, 3.0)), damping=0.1)
    drive, phase = rng.uniform(1, 6, robot.nv), rng.uniform(0, 6, robot.nv)
    tau = lambda robot, q, v, t: drive * np.sin(4 * t + phase) - 2.0 * q - 0.2 * v
    motion = cj.simulate(robot, robot.neutral(), 0.5 * rng.normal(size=robot.nv), 2.0, tau, friction=True)
    assert not motion.stopped
    stuck, slipped = holds_friction(robot, motion, tau)
    assert stuck > 0
    assert slipped > 20
    assert {"stick", "slip"} <= set(kinds(motion))


@cache
def braked():
    """A four-bar whose joints have friction, its loop, and its motion until it rests."""
    robot, loop = four_bar()
    for name in robot.joint_names:
        robot = robot.with_joint(name, friction=0.4)
    return robot, loop, cj.simulate(robot, four_bar_state(0.3), np.zeros(3), 4.0, constraints=loop, friction=True)


@native
def test_friction_under_a_constraint():
    """A four-bar whose joints have friction comes to rest away from equilibrium, and stays; energy only falls."""
    robot, loop, motion = braked()
    assert np.diff(motion.energy).max() < 1e-9
    assert motion.drift()[0] < 1e-12
    assert motion.drift()[1] < 1e-10
    np.testing.assert_allclose(motion.v[-1], 0.0, atol=1e-15)
    late = motion.time > motion.happenings[-1].time
    assert late.sum() > 10
    assert np.ptp(motion.q[late], axis=0).max() < 1e-13
    holds_friction(robot, motion, lambda *x: np.zeros(3), loop)


@native
def test_friction_of_all_joints_holds_a_loop_beyond_what_one_could():
    """One-freedom loop: it sticks exactly as long as Σ μᵢ |dqᵢ/ds| ≥ |dU/ds|, the forces of all joints together."""
    robot, loop = four_bar()
    q = four_bar_state(0.3)
    A = loop.jacobian(robot, q)
    along = np.linalg.svd(A)[2][-1]
    pull = abs(cj.gravity_force(robot, q) @ along)
    for factor, moves in ((0.99, True), (1.01, False)):
        mu = factor * pull / np.abs(along).sum()
        held = robot
        for name in robot.joint_names:
            held = held.with_joint(name, friction=float(mu))
        motion = cj.simulate(held, q, np.zeros(3), 0.5, constraints=loop, friction=True)
        assert (np.abs(motion.v[-1]).max() > 1e-6) == moves


@native
def test_friction_with_contact_and_impact():
    """A block falls in a guide with friction onto a floor: it arrives later, bounces lower, rests; then a force lifts it."""
    mu, m, h, e = 4.0, 2.0, 1.0, 0.5
    robot = block(m, mu, axis=(0, 0, 1))
    floor = Constraint.point(robot, "foot", "z", at=[0.0])
    down, up = G - mu / m, G + mu / m
    lift = lambda robot, q, v, t: [0.0 if t < 3 else 20.0 * (t - 3)]
    motion = cj.simulate(robot, [h], [0.0], 6.0, lift, events=Contact(floor, e), friction=True)
    first, second = motion.impacts[:2]
    fall = np.sqrt(2 * h / down)
    assert first.time == pytest.approx(fall, abs=1e-12)
    rebound = e * down * fall
    rise = rebound**2 / (2 * up)
    assert second.time == pytest.approx(fall + rebound / up + np.sqrt(2 * rise / down), abs=1e-9)
    assert motion(2.9)[0][0] == pytest.approx(0.0, abs=1e-12)
    loose = [x.time for x in motion.happenings if x.kind == "slip"][-1]
    assert loose == pytest.approx(3 + (m * G + mu) / 20.0, abs=1e-6)  # weight and friction
    t = 6.0 - loose
    assert motion.q[-1, 0] == pytest.approx(20.0 * t**3 / 6 / m, abs=1e-6)


@native
def test_an_impact_breaks_a_joint_loose():
    """Impulses are stronger than any friction: a sticking block that is hit moves, and stops again."""
    slide = lambda k, mu: cj.Link.solid(f"b{k}", "base", cj.Joint.prismatic((1, 0, 0), name=f"s{k}", friction=mu), mass=1.0)
    robot = cj.Robot("two", [slide(0, 0.0), slide(1, 3.0)], gravity=(0, 0, 0))
    gap = Contact(Constraint.holonomic(lambda q: q[1:] - q[:1] - 0.1), 1.0)
    motion = cj.simulate(robot, [0.0, 1.1], [2.0, 0.0], 3.0, events=gap, friction=True)
    assert motion.impacts[0].time == pytest.approx(0.5, abs=1e-12)
    np.testing.assert_allclose(motion.q[-1], [1.0, 1.1 + 4 / 6], atol=1e-11)
    np.testing.assert_array_equal(motion.v[-1][1], 0.0)


@native
def test_the_puma_with_its_friction():
    """Falls from home with five joints or more at rest at times, and loses energy only."""
    robot = cj.load("puma560")
    motion = cj.simulate(robot, robot.neutral(), np.zeros(6), 1.0, friction=True)
    assert motion.time[-1] == 1.0
    assert np.diff(motion.energy).max() < 1e-9
    holds_friction(robot, motion, lambda *x: np.zeros(6))


def test_mimics_share_friction():
    """The dry friction of a joint that follows with ratio r counts |r| times, its damping r² times."""
    joint = cj.Joint.revolute((0, 0, 1), name="a", friction=1.0, damping=0.1)
    other = cj.Joint.revolute((0, 0, 1), name="b", friction=2.0, damping=0.2, mimic=cj.Mimic("a", -3.0))
    links = [cj.Link.solid(x, y, z, mass=1.0, com=(1, 0, 0)) for x, y, z in (("A", "base", joint), ("B", "A", other))]
    robot = cj.Robot("pair", links)
    damping, dry = friction_coefficients(robot)
    np.testing.assert_allclose(damping, [0.1 + 9 * 0.2])
    np.testing.assert_allclose(dry, [1.0 + 3 * 2.0])


METHODS = ("euler", "rk4", "variational")


@native
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dt", [0.01, 0.0073])
def test_steps_of_fixed_length_stop_a_block(method, dt):
    """It stops within a step of 0.5 s, exactly in place for constant friction where the method is not of first order, and stays."""
    n = int(1.0 / dt)
    q, v = cj.rollout(block(), [0.0], [1.0], steps=n, dt=dt, method=method, friction=True)
    stop = int(np.argmax(v[:, 0] == 0))
    assert 0.5 <= stop * dt < 0.5 + dt
    np.testing.assert_array_equal(v[stop:], 0.0)
    np.testing.assert_array_equal(q[stop:], np.tile(q[stop], (n + 1 - stop, 1)))
    assert abs(q[-1, 0] - 0.25) < (dt if method == "euler" else 1e-12)


@native
@pytest.mark.parametrize("method", METHODS)
def test_steps_of_fixed_length_hold_a_load_and_let_go(method):
    """A block is held without creeping below the friction, and slides with what exceeds it above."""
    robot = block(mass=2.0, friction=3.0)
    for force in (2.999, -2.999, 0.0):
        q, v = cj.rollout(robot, [0.1], [0.0], np.full((500, 1), force), dt=0.01, method=method, friction=True)
        np.testing.assert_array_equal(q, 0.1)
        np.testing.assert_array_equal(v, 0.0)
    _, v = cj.rollout(robot, [0.1], [0.0], np.full((500, 1), -3.5), dt=0.01, method=method, friction=True)
    np.testing.assert_allclose(v[-1], -0.25 * 5.0, atol=1e-11)


@cache
def driven():
    """A random mechanism with friction, its start, its motion by `simulate`, and the forces in the middles of 500 and 2000 steps."""
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 3, ("revolute", "prismatic"), tree=False)
    for joint in robot.joint_names:
        robot = robot.with_joint(joint, friction=float(rng.uniform(0.5, 3.0)), damping=0.1)
    drive, phase = rng.uniform(1, 6, robot.nv), rng.uniform(0, 6, robot.nv)
    tau = lambda robot, q, v, t: drive * np.sin(4 * t + phase) - 2.0 * q
    start = robot.neutral(), 0.5 * rng.normal(size=robot.nv)
    true = cj.simulate(robot, *start, 2.0, tau, friction=True)
    assert {"stick", "slip"} <= set(kinds(true))
    # a policy is told the time at the beginning of a step: the force in its middle, for all methods
    forces = [np.array([tau(robot, true(t)[0], None, t) for t in (np.arange(n) + 0.5) * 2.0 / n]) for n in (500, 2000)]
    return robot, start, true, forces


@native
@pytest.mark.parametrize("method", METHODS)
def test_steps_of_fixed_length_follow_random_mechanisms(method):
    """Against `simulate`: joints that stick and slip at once; the error falls with the step, joints stick without chatter."""
    robot, start, true, both = driven()
    errors = []
    for forces in both:
        n = len(forces)
        times = np.linspace(0, 2, n + 1)
        q, v = cj.rollout(robot, *start, forces, dt=2.0 / n, method=method, friction=True)
        errors.append(np.abs(q - true(times)[0]).max())
        turns = ((v[1:] * v[:-1]) < -1e-24).sum(0)
        assert turns.max() < 12
    assert errors[1] < (0.02 if method == "euler" else 1e-4)
    assert errors[1] < errors[0] / 2.5


@native
@pytest.mark.parametrize("method", METHODS)
def test_steps_of_fixed_length_with_friction_under_a_constraint(method):
    """The four-bar of above comes to rest at the same place; energy falls, the loop stays closed."""
    robot, loop, true = braked()
    q, v = cj.rollout(robot, four_bar_state(0.3), np.zeros(3), steps=2000, dt=0.002, method=method, constraints=loop, friction=True)
    assert np.abs(q[-1] - true.q[-1]).max() < (2e-2 if method == "euler" else 1e-4)
    assert np.abs(v[-1]).max() < 1e-15
    assert np.abs(loop.residual(robot, q)).max() < 1e-11
    assert np.ptp(q[-100:], axis=0).max() < 1e-14


@native
def test_simulate_by_variational_steps_with_friction():
    found = cj.simulate(block(), [0.0], [1.0], 1.0, friction=True, method="variational", step=0.01)
    assert found.q[-1, 0] == pytest.approx(0.25, abs=1e-12)
    assert abs(found.v[-1, 0]) < 1e-15


@pytest.mark.parametrize("seed", range(10))
def test_locked_inverse(seed):
    """The inverse of the mass matrix without the locked rows and columns, zero there."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(2, 5, 7))
    M = B @ np.swapaxes(B, -1, -2)
    held = rng.integers(0, 2, (2, 5)).astype(float)
    found = locked(np.linalg.inv(M), held)
    for k in range(2):
        free = held[k] == 0
        np.testing.assert_allclose(found[k][np.ix_(free, free)], np.linalg.inv(M[k][np.ix_(free, free)]), rtol=1e-9, atol=1e-11)
        assert not found[k][~free].any()


@pytest.mark.parametrize("seed", range(20))
def test_box_forces_are_those_of_complementarity(seed):
    """Straight code finds what the active-set method finds, for regular and for singular matrices (the motion, there)."""
    rng = np.random.default_rng(seed)
    n, rank = 6, (6, 4)[seed % 2]
    B = rng.normal(size=(n, rank)) * rng.uniform(0.3, 3.0, (n, 1))
    W, u = B @ B.T, 3 * B @ rng.normal(size=rank)
    upper = rng.uniform(0.1, 2.0, n)
    lower = np.where(rng.random(n) < 0.3, upper, -upper)
    found, true = box_forces(W, u, lower, upper), box_complementarity(W, u, lower, upper)
    np.testing.assert_allclose(W @ found, W @ true, atol=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_box_complementarity(seed):
    """Every row at a bound pushes the right way, every other has w = 0; also where rows are redundant."""
    rng = np.random.default_rng(seed)
    m, rank = 7, int(rng.integers(3, 8))
    B = rng.normal(size=(m, rank))
    b = B @ rng.normal(size=rank) if seed % 2 else B @ (3 * rng.normal(size=rank))
    upper = rng.choice([0.0, 0.3, 2.0, np.inf], size=m)
    lower = np.where(rng.random(m) < 0.4, 0.0, -upper)
    lam = box_complementarity(B @ B.T, b, lower, upper)
    w = B @ (B.T @ lam) + b
    assert np.all((lam >= lower) & (lam <= upper))
    inside = (lam > lower) & (lam < upper)
    fixed = lower == upper
    assert np.abs(w[inside]).max(initial=0.0) < 1e-9
    assert np.all(w[(lam == lower) & ~fixed] > -1e-9)
    assert np.all(w[(lam == upper) & ~fixed] < 1e-9)


@pytest.mark.parametrize("limits", [(0.1, 1.9), (1.9, 0.1), (1.0, 1.0), (0.0, 2.0)])
def test_joints_that_a_constraint_moves_together_share_their_friction(limits):
    """Two sliders move as one, x₁ = x₂: a force that grows with time holds until it is μ₁ + μ₂, in whichever of them friction is."""
    slides = [cj.Joint.prismatic((1, 0, 0), friction=x) for x in limits]
    robot = cj.Robot("two", [cj.Link.solid(f"s{k}", "base", x, mass=1.0 + k) for k, x in enumerate(slides)])
    together = cj.Constraint.holonomic(lambda q: q[:1] - q[1:])
    push = lambda robot, q, v, t: np.array([t, 0.0])
    times = np.linspace(0.0, 3.0, 7)
    motion = cj.simulate(robot, [0.0, 0.0], [0.0, 0.0], times, control=push, constraints=together, friction=True)
    true = np.maximum(times - 2.0, 0.0) ** 3 / 6 / 3.0
    np.testing.assert_allclose(motion.q, np.stack([true, true], -1), atol=1e-9)


@pytest.mark.slow
def test_a_held_arm_comes_to_rest():
    """The tip of an arm may move up and down only: both joints stick at once, and the motion ends there."""
    below = np.eye(4)
    below[2, 3] = -1.0
    arm = cj.Robot(
        "arm",
        [
            cj.Link.solid(
                "a", "base", cj.Joint.revolute((0, 1, 0), friction=1.0, damping=0.1), mass=1.0, com=(0, 0, -0.5), inertia=0.02
            ),
            cj.Link.solid("b", "a", cj.Joint.revolute((0, 1, 0), friction=0.5), below, mass=1.0, com=(0, 0, -0.5), inertia=0.02),
        ],
    ).with_frame("tip", "b", below)
    q = np.array([0.9, -0.4])
    held = cj.Constraint.point(arm, "tip", axes="x").at(arm, q)
    v = cj.constraints.project_velocity(arm, held, q, [1.0, -0.5])
    motion = cj.simulate(arm, q, v, 2.0, constraints=held, friction=True)
    assert motion.end == 2.0
    assert np.all(motion.v[-1] == 0)
    steps = cj.rollout(arm, q, v, dt=1e-3, steps=2000, constraints=held, friction=True, method="rk4")[0]
    np.testing.assert_allclose(steps[-1], motion.q[-1], atol=1e-5)
