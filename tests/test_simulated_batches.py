"""Simulations of many robots in one call: what each would do alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Constraint
from coadjoint.motion.dormand_prince import DormandPrince
from random_robots import random_robot

NATIVE = pytest.mark.parametrize("native", [pytest.param(True, marks=pytest.mark.native), False])

WHEEL = cj.Robot(
    "wheel",
    [cj.Link.solid("rim", "base", cj.Joint.revolute(name="j", damping=1.0), mass=1.0, inertia=(1.0, 1.0, 1.0))],
    gravity=(0, 0, 0),
)


def changed(robot, parameters, k):
    for name, x in parameters.items():
        robot = robot.with_parameters(name, x[k])
    return robot


def assert_same(motion, one, tolerance=1e-8):
    assert np.array_equal(motion.time, one.time)
    assert np.abs(motion.q - one.q).max() < tolerance
    assert np.abs(motion.v - one.v).max() < tolerance * 10
    assert np.abs(motion.tau - one.tau).max() < tolerance * 100


def hold(robot, q, v, t):
    return 0.5 * cj.gravity_force(robot, q) - 0.3 * v + np.sin(3 * t)


@NATIVE
@pytest.mark.parametrize("control", [None, hold])
def test_every_member_moves_as_alone(native, control):
    """States, masses and gravity all differ; there are quaternions."""
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 2, ("revolute", "spherical"), tree=False)
    own = robot.parameters("masses")
    parameters = {
        "masses": own * rng.uniform(0.7, 1.3, (3, len(own))),
        "gravity": np.array([0, 0, -9.81]) + rng.normal(size=(3, 3)),
    }
    q, v = robot.random(rng, 3), rng.normal(size=(3, robot.nv))
    motions = cj.simulate(robot, q, v, 0.1, control, parameters=parameters)
    assert motions.q.shape == (3, 201, robot.nq)
    assert (motions.stopped == "").all()
    for k in range(3):
        alone = changed(robot, parameters, k)
        one = cj.simulate(alone, q[k], v[k], 0.1, control)
        assert_same(motions[k], one)
        assert motions[k].robot.parameters("masses") == pytest.approx(parameters["masses"][k])
        assert motions.energy[k] == pytest.approx(one.energy, abs=1e-7)
        # between the wanted times both are interpolated, to fourth order here
        assert np.abs(motions(0.01234)[0][k] - one(0.01234)[0]).max() < 1e-6
    assert np.abs(motions.q[0] - motions.q[1]).max() > 1e-3


@pytest.mark.native
def test_steps_are_those_of_each():
    """A slow and a fast member: energy is kept by both, as alone."""
    robot = cj.load("planar2r")
    v = np.array([[0.1, 0.0], [30.0, -10.0]])
    motions = cj.simulate(robot, np.zeros(2), v, [0.0, 0.5, 1.0])
    assert motions.q.shape == (2, 3, 2)
    assert np.abs(motions.energy - motions.energy[:, :1]).max() < 1e-6
    for k in range(2):
        assert_same(motions[k], cj.simulate(robot, np.zeros(2), v[k], [0.0, 0.5, 1.0]))


def test_batch_axes_broadcast():
    rng = np.random.default_rng(0)
    robot = cj.load("planar2r")
    masses = robot.parameters("masses") * rng.uniform(0.8, 1.2, size=(4, 1, 2))
    q, force = rng.normal(size=(3, 2)), rng.normal(size=(4, 1, 2))
    motions = cj.simulate(robot, q, np.zeros(2), 0.2, force, parameters={"masses": masses})
    assert motions.batch == (4, 3)
    assert motions.tau[1, 2, 7] == pytest.approx(force[1, 0])
    own = robot.with_parameters("masses", masses[2, 0])
    assert_same(motions[2, 1], cj.simulate(own, q[1], np.zeros(2), 0.2, force[2, 0]))
    assert_same(motions[2][1], motions[2, 1], 1e-15)
    none = cj.simulate(robot, np.zeros((0, 2)), np.zeros((0, 2)), 1.0)
    assert none.q.shape == (0, 201, 2)
    one = cj.simulate(robot, q[0], np.zeros(2), 0.2, parameters={"masses": masses[0, 0]})
    assert_same(one, cj.simulate(robot.with_parameters("masses", masses[0, 0]), q[0], np.zeros(2), 0.2))


def test_more_members_than_go_together(monkeypatch):
    monkeypatch.setattr("coadjoint.motion.together.MEMBERS", 3)
    robot, rng, parts = WHEEL, np.random.default_rng(1), []
    q = rng.normal(size=(7, 1))
    motions = cj.simulate(robot, q, np.ones(1), 0.3, lambda robot, q, v, t: -q, report=parts.append)
    for k in range(7):
        assert_same(motions[k], cj.simulate(robot, q[k], np.ones(1), 0.3, lambda robot, q, v, t: -q))
    assert parts == sorted(parts)
    assert parts[-1] == pytest.approx(1.0)


def test_constraints_are_those_of_each_robot():
    rng = np.random.default_rng(1)
    robot = cj.load("planar3r")
    lengths = robot.parameters("lengths") * rng.uniform(0.9, 1.1, (2, len(robot.parameters("lengths"))))
    held = Constraint.point(robot, "tip", "y", at=0.9)
    each = [robot.with_parameters("lengths", x) for x in lengths]
    q = np.array([cj.constraints.assemble(x, held, [0.4, 0.9, -0.7]) for x in each])
    motions = cj.simulate(robot, q, np.zeros(3), 0.3, constraints=held, parameters={"lengths": lengths})
    assert max(motions.drift()) < 1e-9
    for k, own in enumerate(each):
        assert_same(motions[k], cj.simulate(own, q[k], np.zeros(3), 0.3, constraints=held))
    with pytest.raises(cj.CoadjointError, match="q is off the constraint in state 1"):
        cj.simulate(robot, q[0], np.zeros(3), 0.3, constraints=held, parameters={"lengths": lengths})


@pytest.mark.parametrize("method", ["variational", "symplectic"])
def test_variational_methods_take_batches(method):
    rng = np.random.default_rng(2)
    robot = cj.load("planar2r")
    masses = robot.parameters("masses") * rng.uniform(0.8, 1.2, size=(2, 2))
    q = rng.normal(size=(2, 2))
    options = {"t": [0.0, 0.05, 0.1], "control": hold, "method": method, "step": 1e-2}
    motions = cj.simulate(robot, q, np.zeros(2), parameters={"masses": masses}, **options)
    for k in range(2):
        assert_same(motions[k], cj.simulate(robot.with_parameters("masses", masses[k]), q[k], np.zeros(2), **options), 1e-11)


def test_a_stiff_member_goes_on_by_itself():
    """Gains that differ by 10⁶: the stiff one takes the implicit method, as alone; both equal the closed form."""
    damping = np.array([[1.0], [1e6]])
    motions = cj.simulate(
        WHEEL, np.zeros((2, 1)), np.ones(1), 1.0, np.array([[0.0], [1e6]]), friction=True,
        parameters={"damping": damping},
    )  # fmt: skip
    t = motions.time[:, None]
    assert motions.v[0] == pytest.approx(np.exp(-t), abs=1e-9)
    assert motions.v[1] == pytest.approx(np.ones_like(t), abs=1e-9)
    motions = cj.simulate(
        WHEEL, np.zeros((2, 1)), np.ones(1), 0.5, lambda robot, q, v, t: -robot.damping * v, parameters={"damping": damping}
    )
    assert motions.v[1, 1:] == pytest.approx(np.zeros((200, 1)), abs=1e-9)
    assert motions.v[0, -1] == pytest.approx(np.exp(-0.5), abs=1e-9)


@pytest.mark.native
def test_events_and_contacts_of_each():
    robot = cj.Robot("ball", [cj.Link.solid("b", "base", cj.Joint.prismatic((0, 0, 1), name="z"), mass=1.0)])
    floor = Constraint.holonomic(lambda q: q)
    v = np.array([[1.0], [3.0], [4.0]])
    apex = cj.Event(lambda q, v, t: v[0], name="apex", terminal=True, direction=-1)
    motions = cj.simulate(robot, np.zeros(1), v, 0.35, events=[apex])
    assert list(motions.stopped) == ["apex", "apex", ""]
    assert motions[0].happenings[0].time == pytest.approx(1.0 / 9.81, abs=1e-12)
    gone = motions.time > 1.0 / 9.81
    assert np.isnan(motions.q[0, gone]).all()
    assert np.isnan(motions.tau[0, gone]).all()
    assert np.isfinite(motions.q[0, ~gone]).all()
    assert np.isfinite(motions.q[2]).all()
    bounced = cj.simulate(robot, [[1.0], [0.5]], np.zeros(1), 1.0, events=[cj.Contact(floor, restitution=0.5)])
    for k, height in enumerate((1.0, 0.5)):
        one = cj.simulate(robot, [height], [0.0], 1.0, events=[cj.Contact(floor, restitution=0.5)])
        assert_same(bounced[k], one, 1e-12)
        assert len(bounced[k].impacts) == len(one.impacts) > 0
    assert "2 of them stopped early" in str(motions)


def test_dry_friction_of_each():
    """Blocks that slide to rest: v₀ / μ seconds, as for one."""
    robot = cj.Robot("block", [cj.Link.solid("b", "base", cj.Joint.prismatic((1, 0, 0), name="x", friction=2.0), mass=1.0)])
    motions = cj.simulate(robot, np.zeros(1), [[1.0], [0.5]], 1.0, friction=True)
    assert motions.q[:, -1, 0] == pytest.approx([0.25, 0.0625], abs=1e-10)


def test_a_member_that_cannot_go_on_is_named_and_the_others_are_kept():
    """A wheel under v³ is at infinity at 1/(2 v₀²)."""
    with pytest.raises(cj.CoadjointError, match=r"member 1: .* cannot be continued beyond t = 0\.05555.*kept") as caught:
        cj.simulate(WHEEL, np.zeros(1), [[0.1], [3.0]], 0.2, lambda robot, q, v, t: v**3)
    motions = caught.value.motion
    assert list(motions.stopped) == ["", "error"]
    assert np.isfinite(motions.q[0]).all()
    assert np.isnan(motions.q[1, -1]).all()
    assert len(motions[1]) < 201


def test_interrupted_motions_are_kept(monkeypatch):
    robot, turns = cj.load("planar2r"), []

    def advance(self, write, original=DormandPrince.advance):
        turns.append(1)
        if len(turns) > 3:
            raise KeyboardInterrupt
        original(self, write)

    monkeypatch.setattr(DormandPrince, "advance", advance)
    motions = cj.simulate(robot, np.zeros((2, 2)), np.ones(2), 1.0)
    assert list(motions.stopped) == ["interrupted"] * 2
    reached = np.isfinite(motions.q[0, :, 0])
    assert 1 < reached.sum() < 201
    assert_same(motions[0], cj.simulate(robot, np.zeros(2), np.ones(2), motions.time[: reached.sum()]))


def test_they_pickle():
    robot = cj.load("planar2r")
    motions = cj.simulate(robot, np.zeros((2, 2)), np.ones(2), 0.1, parameters={"masses": [[1.0, 1.0], [2.0, 1.0]]})
    again = pickle.loads(pickle.dumps(motions))
    assert np.array_equal(again.q, motions.q)
    assert again[1].energy == pytest.approx(motions.energy[1])


def test_dask_arrays_and_dataarrays_stay_what_they_are():
    da, xr = pytest.importorskip("dask.array"), pytest.importorskip("xarray")
    robot, rng = cj.load("planar2r"), np.random.default_rng(3)
    q, masses = rng.normal(size=(6, 2)), rng.uniform(1, 2, size=(6, 2))
    eager = cj.simulate(robot, q, np.zeros(2), 0.1, parameters={"masses": masses})
    chunks = lambda x, n: da.from_array(x, chunks=(n, 2))
    for states, numbers in ((chunks(q, 4), masses), (q, chunks(masses, 3)), (chunks(q, 4), chunks(masses, 3))):
        lazy = cj.simulate(robot, states, np.zeros(2), 0.1, parameters={"masses": numbers})
        assert isinstance(lazy.q, da.Array)
        assert np.abs(lazy.q.compute() - eager.q).max() < 1e-13
        assert (lazy.stopped.compute() == "").all()
        assert_same(lazy[4], eager[4], 1e-13)
        qs, _ = cj.rollout(robot, states, np.zeros(2), dt=1e-2, steps=3, parameters={"masses": numbers})
        assert isinstance(qs, da.Array)
        assert np.array_equal(qs.compute(), cj.rollout(robot, q, np.zeros(2), dt=1e-2, steps=3, parameters={"masses": masses})[0])
    named = lambda x: xr.DataArray(x, dims=("arm", "joint"))
    found = cj.simulate(robot, named(q), np.zeros(2), 0.1, parameters={"masses": xr.DataArray(masses, dims=("arm", "link"))})
    assert found.q.dims == ("arm", "time", "joint")
    assert np.abs(found.q.values - eager.q).max() < 1e-13
    with pytest.raises(cj.CoadjointError, match="is one state"):
        cj.simulate(robot, da.zeros(2), np.zeros(2), 0.1)


def test_errors():
    robot, zero = cj.load("planar2r"), np.zeros((3, 2))
    for arguments, message in (
        ({"v": np.zeros((2, 2))}, r"batch axes do not broadcast: q \(3,\), v \(2,\)"),
        ({"control": np.zeros((4, 2))}, r"batch axes do not broadcast: .*control \(4,\)"),
        ({"parameters": {"masses": np.ones((5, 2))}}, r"parameters\['masses'\] \(5,\)"),
        ({"parameters": {"mases": np.ones(2)}}, "masses"),
    ):
        with pytest.raises(cj.CoadjointError, match=message):
            cj.simulate(**{"robot": robot, "q": zero, "v": zero, "t": 0.1} | arguments)
    motions = cj.simulate(robot, zero, zero, [0.0, 0.1])
    for use in (lambda: motions.plot("x.png"), lambda: motions.save("x.csv"), lambda: motions.animate("x.gif")):
        with pytest.raises(cj.CoadjointError, match=r"one motion.*motions\[0\]"):
            use()
    with pytest.raises(cj.CoadjointError, match=r"no motion 5"):
        motions[5]
