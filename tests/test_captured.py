"""What users' functions read is that of the call: gains, targets and attributes that change between two calls count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Constraint
from coadjoint.constraints import PseudoVelocities, assemble, constrained_dynamics
from coadjoint.memo import KEPT, Recent, recent, results

NATIVE = pytest.mark.parametrize("native", [pytest.param(True, marks=pytest.mark.native), False])
GAIN = 10.0


def by_global(robot, q, v, t):
    return -GAIN * q


class Spring:
    """A control with a gain that may be changed, as a function or as an object with a force."""

    def __init__(self, gain):
        self.gain = gain

    def __call__(self, robot, q, v, t):
        return -self.gain * q


class Controller:
    def __init__(self, gain):
        self.gain = gain

    def force(self, q, v, t):
        return -self.gain * q


def controls(monkeypatch):
    """Pairs of a control and a function that changes what it reads."""
    array, cell = np.full(2, 10.0), {"gain": 10.0}

    def nested(robot, q, v, t):
        return by_cell(q)

    def by_cell(q):
        return -cell["gain"] * q

    yield by_global, lambda: monkeypatch.setitem(globals(), "GAIN", 0.0)
    yield lambda robot, q, v, t: -array * q, lambda: array.fill(0.0)
    yield nested, lambda: cell.update(gain=0.0)
    for made in (Spring(10.0), Controller(10.0)):
        yield made, lambda made=made: setattr(made, "gain", 0.0)


@NATIVE
@pytest.mark.parametrize("method", ["euler", "rk4", "variational"])
def test_rollouts_read_the_gains_of_their_call(native, method, monkeypatch):
    robot = cj.load("planar2r").with_gravity((0, 0, 0))
    q, v = np.array([1.0, 0.5]), np.zeros(2)
    for control, change in controls(monkeypatch):
        before = cj.rollout(robot, q, v, dt=1e-2, steps=10, control=control, method=method)[0][-1]
        change()
        after = cj.rollout(robot, q, v, dt=1e-2, steps=10, control=control, method=method)[0][-1]
        assert np.abs(before - q).max() > 1e-3
        assert np.abs(after - q).max() < 1e-14


@NATIVE
@pytest.mark.parametrize("method", ["adaptive", "variational", "symplectic"])
def test_simulations_read_the_gains_of_their_call(native, method, monkeypatch):
    robot = cj.load("planar2r").with_gravity((0, 0, 0))
    q, v = np.array([1.0, 0.5]), np.zeros(2)
    for control, change in controls(monkeypatch):
        before = cj.simulate(robot, q, v, [0, 0.1], control, method=method, step=1e-2).q[-1]
        change()
        after = cj.simulate(robot, q, v, [0, 0.1], control, method=method, step=1e-2).q[-1]
        assert np.abs(before - q).max() > 1e-3
        assert np.abs(after - q).max() < 1e-12


@NATIVE
def test_constraints_read_what_is_there_now(native):
    """φ, A, Ȧ v, the motion and what is assembled follow a number that the functions read."""
    robot, c = cj.load("planar2r"), {"ratio": 1.0, "sum": 1.5}
    q, v, tau = np.array([1.0, 0.5]), np.array([1.0, -1.0]), np.array([0.3, 0.1])
    closed = Constraint.holonomic(lambda q: q[0] ** 2 + c["ratio"] * q[1] - c["sum"])
    rows = Constraint.from_jacobian(lambda q: np.array([1.0, c["ratio"] * q[0]]))
    basis = PseudoVelocities(lambda q: np.array([[1.0], [-c["ratio"] * 2.0 * q[0]]]))
    for ratio in (1.0, 3.0, 1.0):
        c.update(ratio=ratio, sum=1.0 + 0.5 * ratio)
        assert closed.residual(robot, q) == pytest.approx(0.0, abs=1e-15)
        assert closed.jacobian(robot, q) == pytest.approx(np.array([[2.0, ratio]]))
        assert closed.bias(robot, q, v) == pytest.approx([2.0])
        assert rows.jacobian(robot, q) == pytest.approx(np.array([[1.0, ratio]]))
        assert basis.basis(robot, q) == pytest.approx(np.array([[1.0], [-2.0 * ratio]]))
        a, _ = constrained_dynamics(robot, closed, q, v, tau)
        assert np.array([2.0, ratio]) @ a == pytest.approx(-2.0, abs=1e-9)
        c["sum"] = 0.3
        found = assemble(robot, closed, q)
        assert found[0] ** 2 + ratio * found[1] == pytest.approx(0.3, abs=1e-12)
        derivatives = cj.constraints.constrained_dynamics_derivatives(robot, closed, q, v, tau)
        assert np.array([2.0, ratio]) @ derivatives.da_dtau == pytest.approx(np.zeros(2), abs=1e-9)


def test_functions_need_no_hash():
    """A constraint or a control may be an object that compares by value, and so has no hash."""

    @dataclass
    class Level:
        height: float

        def __call__(self, *arrays):
            q = arrays[-1] if len(arrays) == 1 else arrays[1]
            return q[0] + q[1] - self.height if len(arrays) == 1 else -self.height * q

    robot, level = cj.load("planar2r"), Level(1.5)
    closed = Constraint.holonomic(level)
    assert closed.residual(robot, [1.0, 0.5]) == pytest.approx([0.0])
    level.height = 0.5
    assert closed.residual(robot, [1.0, 0.5]) == pytest.approx([1.0])
    assert cj.rollout(robot, [0.3, 0.2], [0.0, 0.0], dt=1e-2, steps=3, control=level, constraints=closed)[0].shape == (4, 2)


def test_a_frozen_constraint_keeps_its_function():
    robot, c = cj.load("planar2r"), {"sum": 1.5}
    closed = Constraint.holonomic(lambda q: q[0] + q[1] - c["sum"])
    before = closed.frozen(robot)
    assert before == closed.frozen(robot)
    assert before.frozen(robot) is before
    c["sum"] = 0.0
    assert before.residual(robot, [1.0, 0.5]) == pytest.approx([0.0])
    assert closed.residual(robot, [1.0, 0.5]) == pytest.approx([1.5])
    assert before != closed.frozen(robot)


@NATIVE
def test_rollouts_and_simulations_keep_the_constraint_of_their_call(native):
    """q₁ + q₂ = c is kept, whatever c is when they start."""
    robot, c = cj.load("planar2r"), {"sum": 1.5}
    closed = Constraint.holonomic(lambda q: q[0] + q[1] - c["sum"])
    for total in (1.5, 0.2):
        c["sum"] = total
        q, v = np.array([total - 0.5, 0.5]), np.zeros(2)
        assert cj.rollout(robot, q, v, dt=1e-2, steps=5, constraints=closed)[0].sum(-1) == pytest.approx(np.full(6, total))
        assert cj.simulate(robot, q, v, [0.0, 0.05], constraints=closed).q.sum(-1) == pytest.approx(np.full(2, total))
    with pytest.raises(cj.CoadjointError, match="q is off the constraint"):
        cj.rollout(robot, [1.0, 0.5], [0.0, 0.0], dt=1e-2, steps=5, constraints=closed)


@pytest.mark.parametrize("native", [pytest.param(True, marks=pytest.mark.native), pytest.param(False, marks=pytest.mark.slow)])
def test_tasks_and_inverses_read_what_is_there_now(native):
    from coadjoint.redundancy import MapTask, follow, horizontal_lift, inverse_brackets

    robot, c = cj.load("planar3r"), {"scale": 1.0}
    task = MapTask(lambda robot, q: c["scale"] * cj.pose(robot, q, "tip")[:2, 3], 2)
    inverse = lambda robot, q: c["scale"] * np.stack([np.sin(q), q * q[0]], axis=-1)
    q, ahead = np.array([0.3, 0.8, -0.4]), np.array([0.1, 0.0])
    J = cj.jacobian(robot, q, "tip", "world")[3:5]
    first = inverse_brackets(robot, q, inverse, "tip", (3, 4))
    for scale in (1.0, 2.0):
        c["scale"] = scale
        assert task.jacobian(robot, q) == pytest.approx(scale * J)
        assert task.jacobian(robot, q) @ horizontal_lift(robot, q, task) == pytest.approx(np.eye(2))
        start = scale * cj.pose(robot, q, "tip")[:2, 3]
        track = follow(robot, q, lambda t, s=start: (s + np.multiply.outer(t, ahead), ahead), task, duration=0.1)
        assert scale * cj.pose(robot, track(0.1), "tip")[:2, 3] == pytest.approx(start + 0.1 * ahead)
        moved = inverse_brackets(robot, q, inverse, "tip", (3, 4))
        assert np.allclose(moved, first) == (scale == 1.0)


def test_controls_see_the_times_of_the_stages():
    """Under a force that is a polynomial of t of third degree, rk4 is exact: its stages stand at t, t + h/2 and t + h."""
    slider = cj.Robot("slider", [cj.Link.solid("cart", "base", cj.Joint.prismatic((1, 0, 0)), mass=2.0)])
    _, v = cj.rollout(slider, [0.0], [0.0], dt=0.1, steps=10, control=lambda robot, q, v, t: 8.0 * t**3 + 0.0 * v, method="rk4")
    assert v[-1, 0] == pytest.approx(1.0, rel=1e-13)


def test_rk4_is_of_fourth_order_in_time_too():
    robot = cj.load("planar2r")
    q, v = np.array([0.3, -0.2]), np.zeros(2)

    def control(robot, q, v, t):
        return np.array([3.0, 1.0]) * np.sin(9.0 * t) - 0.2 * v

    end = {n: cj.rollout(robot, q, v, steps=n, dt=0.4 / n, method="rk4", control=control)[0][-1] for n in (20, 40, 320)}
    order = np.log2(np.abs(end[20] - end[320]).max() / np.abs(end[40] - end[320]).max())
    assert 3.6 < order < 4.6
    exact = cj.simulate(robot, q, v, [0.0, 0.4], control).q[-1]
    assert np.abs(end[320] - exact).max() < 1e-7


def test_what_is_compiled_does_not_pile_up():
    """Every new function or step length is compiled; the longest unused is dropped."""
    robot = cj.load("planar2r")
    for k in range(KEPT + 20):
        cj.rollout(robot, [0.0, 0.0], [0.0, 0.0], dt=1e-3, steps=1, control=lambda robot, q, v, t, k=k: k * q)
        Constraint.holonomic(lambda q, k=k: q[0] - k).jacobian(robot, [0.0, 0.0])
    assert len(results(robot._memo, recent)) == KEPT
    assert len(robot._memo) < 20
    made = Recent(2)
    assert [made.get(key, lambda key=key: [key]) for key in "abac"] == [["a"], ["b"], ["a"], ["c"]]
    assert made.get("a", list) == ["a"]
    assert made.get("b", list) == []


@pytest.mark.native
def test_equal_functions_share_their_code():
    """A function made anew for every call, with the same content, is compiled once."""
    robot = cj.load("planar2r")
    for _ in range(3):
        cj.rollout(robot, [0.1, 0.0], [0.0, 0.0], dt=1e-3, steps=1, control=lambda robot, q, v, t: -7.0 * q)
    assert len(results(robot._memo, recent)) == 1


def test_errors_of_controls():
    robot, zero = cj.load("planar2r"), np.zeros(2)
    for options, message in (
        ({"control": 3.0}, "control is float; expected a function"),
        ({"control": by_global, "policy": by_global}, "policy is an older name"),
        ({"control": lambda robot, q, v, t: q[:1]}, r"control gave an array of shape \(1,\)"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            cj.rollout(robot, zero, zero, dt=0.1, steps=2, **options)
