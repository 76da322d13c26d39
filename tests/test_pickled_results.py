"""What the library returns travels: through pickle, to other processes, to files and back."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Constraint
from coadjoint.redundancy import MapTask


def row(q):
    return q[0] + q[1] - 1.0


def halfway(motion):
    """The state in the middle of a motion, from its dense output."""
    return motion(0.5 * (motion.time[0] + motion.time[-1]))


def motions():
    arm = cj.load("planar2r")
    ball = cj.Robot("ball", [cj.Link.solid("foot", "base", cj.Joint.prismatic((0, 0, 1)), mass=1.0)])
    floor = Constraint.point(ball, "foot", "z", at=0)
    yield cj.simulate(arm, [1.0, 0.0], [0.0, 0.0], 0.2)
    yield cj.simulate(arm, [1.0, 0.0], [0.0, 0.0], 0.2, lambda robot, q, v, t: -q)
    yield cj.simulate(arm, [1.0, 0.0], [0.0, 0.0], 0.2, method="variational")
    yield cj.simulate(arm, [0.6, 0.4], [0.0, 0.0], 0.2, constraints=Constraint.holonomic(lambda q: q[0] + q[1] - 1.0))
    yield cj.simulate(ball, [1.0], [0.0], 1.0, events=[cj.Contact(floor, 0.5), cj.Event(lambda q, v, t: q[0] - 0.5)])


def test_trajectories_come_back_whole():
    """Whatever the control, events and constraints were written as: with their dense output, what happened, and their constraints."""
    for motion in motions():
        back = pickle.loads(pickle.dumps(motion))
        assert repr(back) == repr(motion)
        t = np.linspace(motion.time[0], motion.time[-1], 37)
        for x, y in zip(back(t), motion(t), strict=True):
            assert np.array_equal(x, y)
        assert back.drift() == motion.drift()
        assert [str(x) for x in back.happenings] == [str(x) for x in motion.happenings]


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_other_processes_take_and_give_them(start):
    motion = next(motions())
    with multiprocessing.get_context(start).Pool(1) as pool:
        found = pool.apply(halfway, (motion,))
        again = pool.apply(cj.simulate, (motion.robot, [1.0, 0.0], [0.0, 0.0], 0.2))
    assert np.abs(found[0] - halfway(motion)[0]).max() < 1e-14
    assert np.abs(halfway(again)[0] - found[0]).max() < 1e-14


def test_joblib_takes_them():
    joblib = pytest.importorskip("joblib")
    some = list(motions())[:2]
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(halfway)(x) for x in some)
    for (q, _), motion in zip(found, some, strict=True):
        assert np.abs(q - halfway(motion)[0]).max() < 1e-14


def test_constraints_pickle_as_far_as_their_functions_do():
    robot, q = cj.load("planar2r"), np.array([0.3, 0.2])
    written = Constraint.holonomic(lambda q: q[0] + q[1] - 1.0)
    for constraint in (
        Constraint.holonomic(row),
        written.frozen(robot),
        Constraint.point(robot, "tip", "xy") & Constraint.holonomic(row),
    ):
        back = pickle.loads(pickle.dumps(constraint))
        assert back == constraint
        assert back.jacobian(robot, q) == pytest.approx(constraint.jacobian(robot, q))
    text = """
import pickle, coadjoint as cj
try:
    pickle.dumps(cj.Constraint.holonomic(lambda q: q[0]))
except cj.CoadjointError as error:
    assert "named function of a module" in str(error) and "frozen(robot)" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", text], check=True)  # where nothing has imported cloudpickle
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(written)).residual(robot, q) == pytest.approx([-0.5])


@pytest.mark.native
def test_results_pickle_and_are_short_to_read():
    arm, ur = cj.load("planar2r"), cj.load("ur5e")
    T = cj.pose(ur, ur.random(0, 12), "tip")
    made = (
        cj.inverse_kinematics(ur, T, "tip"),
        cj.inverse_kinematics_solutions(ur, T, "tip"),
        cj.Target("tip", T, (3, 4, 5), weight=2.0),
        cj.simulate(arm, [1.0, 0.0], [0.0, 0.0], 0.1, method="variational").states,
        cj.geometry.geodesics_between(arm, [0.1, 0.2], [0.5, 0.4]),
        MapTask(lambda robot, q: q[:1], 1).frozen(arm),
        cj.equations(arm),
    )
    for x in made:
        back = pickle.loads(pickle.dumps(x))
        assert str(back) == str(x) or type(x) is MapTask
        assert type(x) is cj.Equations or len(repr(x)) < 130
    assert repr(made[0]) == "<InverseKinematics: 12 of 12 reached>"
    assert repr(made[2]) == "Target('tip', array (12, 4, 4), rows=(3, 4, 5), weight=2.0)"
    assert repr(made[3]) == "<States: 201 rows of time, q (2), v (2), tau (2)>"
    assert np.array_equal(pickle.loads(pickle.dumps(made[1])).of(3), made[1].of(3))


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet"])
def test_saved_motions_load_again(ending, tmp_path):
    motion = cj.simulate(cj.load("planar2r"), [1.0, 0.0], [0.0, 0.0], 0.2, lambda robot, q, v, t: -q)
    path = tmp_path / f"motion.{ending}"
    motion.save(path)
    back = cj.Trajectory.load(path, motion.robot)
    for name in ("time", "q", "v", "tau"):
        assert np.array_equal(getattr(back, name), getattr(motion, name))
    assert back.energy == pytest.approx(motion.energy)
    assert np.abs(back(0.0503)[0] - motion(0.0503)[0]).max() < 1e-8  # interpolated


def test_tables_that_are_no_motion_are_refused(tmp_path):
    robot = cj.load("planar2r")
    for text, message in (
        ("q1,q2,v1,v2\n0,0,0,0\n", "the column 'time' is missing"),
        ("time,q1,q2\n0,0,0\n", "velocities of robot 'planar2r' are missing"),
        ("time,q1,q2,v1,v2\n0,0,0,0,0\n0,1,1,1,1\n", "times must increase; row 2 has 0 after 0"),
    ):
        path = tmp_path / "table.csv"
        path.write_text(text)
        with pytest.raises(cj.CoadjointError, match=message):
            cj.Trajectory.load(path, robot)


def test_states_as_a_data_frame():
    pytest.importorskip("pandas")
    motion = cj.simulate(cj.load("planar2r"), [1.0, 0.0], [0.0, 0.0], 0.1, method="variational")
    frame = motion.to_dataframe()
    joint = motion.robot.joint_names[0]
    assert list(frame.columns) == ["time", *(f"{x}.{name}" for x in ("q", "v", "tau") for name in motion.robot.q_names)]
    assert np.array_equal(frame[f"v.{joint}"], motion.v[:, 0])
    assert list(motion.states.to_dataframe().columns) == ["time", "q1", "q2", "v1", "v2", "tau1", "tau2"]
