"""Tables of states come back as they were written, wrong ones are refused by name, and the bundled motion is a motion."""

from __future__ import annotations

import builtins
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from coadjoint import Joint, Link, Robot
from coadjoint.errors import CoadjointError, ReadError
from coadjoint.files import check_output, replacing
from coadjoint.motion import States, differentiate, read_states, smooth_motion, write_states
from coadjoint.motion.states import column_names
from random_robots import MOVING, random_robot


def arm(n: int = 2, **options) -> Robot:
    """A chain of n revolute joints, called elbow1, elbow2, …"""
    links = []
    for k in range(n):
        joint = Joint.revolute((0, 1, 0), name=f"elbow{k + 1}", **options)
        placement = np.eye(4)
        placement[2, 3] = 0.4 * (k > 0)
        parent = f"arm{k}" if k else "base"
        links.append(Link.solid(f"arm{k + 1}", parent, joint, placement, mass=1.0, com=(0, 0, 0.2), inertia=0.01))
    return Robot("arm", links)


# --- the bundled motion


@pytest.mark.parametrize("seed", range(4))
def test_velocities_and_accelerations_of_the_smooth_motion_are_its_derivatives(seed):
    """By central differences of fourth order on the configuration manifold, for joints of every kind."""
    robot = random_robot(seed, 10, MOVING, mimic=True)
    rate = 400.0
    motion = smooth_motion(robot, duration=2.0, rate=rate)
    ahead = lambda k: robot.difference(motion.q[2:-2], np.roll(motion.q, -k, axis=0)[2:-2])
    v = (8 * (ahead(1) - ahead(-1)) - (ahead(2) - ahead(-2))) * rate / 12
    x = motion.v
    a = (8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) * rate / 12
    np.testing.assert_allclose(v, motion.v[2:-2], atol=1e-6)
    np.testing.assert_allclose(a, motion.a[2:-2], atol=1e-5)
    assert np.abs(motion.v).max(axis=0).min() > 0.01  # every coordinate moves


@pytest.mark.parametrize("limits", [(-2.0, -1.0), (0.5, np.inf), (-np.inf, -3.0), (-np.inf, np.inf), (-0.01, 0.02)])
def test_the_smooth_motion_keeps_limits_and_rests_at_both_ends(limits):
    joints = [Joint.revolute, Joint.prismatic, Joint.planar]
    links = [
        Link.solid(f"l{k}", f"l{k - 1}" if k else "base", make(lower=limits[0], upper=limits[1], velocity=0.3), mass=1.0)
        for k, make in enumerate(joints)
    ]
    robot = Robot("limited", links)
    motion = smooth_motion(robot)
    assert np.all(motion.q >= robot.lower)
    assert np.all(motion.q <= robot.upper)
    assert np.all(np.abs(motion.v) <= robot.velocity_limit)
    for x in (motion.v, motion.a):
        np.testing.assert_allclose(x[[0, -1]], 0.0, atol=1e-12)


# --- differences


def test_differences_are_of_second_order_for_uneven_times():
    """Halving the steps divides the error by four: v from q on the manifold, a from v."""
    robot = random_robot(0, 10, MOVING)
    errors = []
    for n in (200, 400):
        full = smooth_motion(robot, rate=n)
        keep = np.arange(len(full)) % 3 != 2  # so the steps are uneven
        q, v, a, time = (x[keep] for x in (full.q, full.v, full.a, full.time))
        from_q, made = differentiate(robot, States(q, time=time, a=a))
        assert made == ["v"]
        from_v, made = differentiate(robot, States(q, v=v, time=time))
        assert made == ["a"]
        errors.append([np.abs(from_q.v - v).max(), np.abs(from_v.a - a).max()])
    ratio = np.divide(*errors)
    assert np.all(ratio > 3.5), errors


def test_differences_need_growing_times_and_three_rows():
    robot, q = arm(), np.zeros((4, 2))
    with pytest.raises(CoadjointError, match="needs the column 'time'"):
        differentiate(robot, States(q))
    with pytest.raises(CoadjointError, match="at least 3 rows; the table has 2"):
        differentiate(robot, States(q[:2], time=np.arange(2.0)))
    with pytest.raises(CoadjointError, match=r"row 3 has 0\.5 after 1"):
        differentiate(robot, States(q, time=np.array([0.0, 1.0, 0.5, 2.0])))


# --- there and back


@pytest.mark.parametrize("extension", ["csv", "npz", "parquet"])
@pytest.mark.parametrize("numbered", [False, True])
def test_a_table_comes_back_to_the_last_bit(tmp_path, extension, numbered):
    if extension == "parquet":
        pytest.importorskip("pyarrow")
    robot = random_robot(1, 9, MOVING, mimic=True)
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.integers(-12, 12, (5, robot.nv))
    v, a, tau = rng.normal(size=(3, 5, robot.nv)) * scale
    states = States(robot.random(rng, 5), v, a, tau, np.cumsum(rng.uniform(size=5)), numbered)
    path = tmp_path / f"table.{extension}"
    write_states(path, robot, states)
    back = read_states(path, robot)
    for key in ("q", "v", "a", "tau", "time"):
        np.testing.assert_array_equal(getattr(back, key), getattr(states, key), err_msg=key)
    assert back.numbered == (numbered and extension != "npz")
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


def test_a_table_has_what_the_states_have(tmp_path):
    robot = arm()
    write_states(tmp_path / "q.csv", robot, States(np.zeros((3, 2))))
    assert (tmp_path / "q.csv").read_text().splitlines()[0] == "q.elbow1,q.elbow2"
    states = read_states(tmp_path / "q.csv", robot, needs=["q"])
    assert states.v is None
    assert states.time is None


def test_names_of_coordinates_are_those_of_the_joints_and_differ():
    robot = random_robot(3, 12, MOVING, mimic=True)
    assert len(robot.q_names) == robot.nq
    assert len(robot.v_names) == robot.nv
    body = Robot(
        "r", [Link("a", "base", Joint.free(name="f")), Link("b", "a", Joint.fixed()), Link("c", "b", Joint.planar(name="p"))]
    )
    assert body.q_names == ("f.x", "f.y", "f.z", "f.qx", "f.qy", "f.qz", "f.qw", "p.x", "p.y", "p.angle")
    assert body.v_names == ("f.wx", "f.wy", "f.wz", "f.vx", "f.vy", "f.vz", "p.w", "p.vx", "p.vy")
    for quantity in ("q", "v", "a", "tau"):
        names = column_names(robot, quantity, False)
        assert len(set(names)) == len(names)
        assert all(name.split(".")[1] in robot.joint_names for name in names)


def test_other_columns_quotes_blank_lines_and_any_order_are_taken(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffnote, v1 ,q2,"q1",v2,time\n"a, b",1,2,3,4,0\n\nx,5,6,7,8,1\n\n', encoding="utf-8")
    states = read_states(path, arm(), needs=["q", "v"])
    np.testing.assert_array_equal(states.q, [[3, 2], [7, 6]])
    np.testing.assert_array_equal(states.v, [[1, 4], [5, 8]])
    np.testing.assert_array_equal(states.time, [0, 1])


# --- refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv: the file is empty"),
        ("q1,q2,v1,v2\n", "a header but no rows"),
        ("q1,q2,v1,v2\n0,0,0,nan\n", "line 2, column 'v2': nan is not a finite number"),
        ("q1,q2,v1,v2\n0,0,0,0\n\n0,-inf,inf,0\n", "line 4, column 'q2': -inf is not a finite number"),
        ("q1,q2,v1,v2\n0,0,0,0\n0,zero,0,0\n", "line 3, column 'q2': 'zero' is not a number"),
        ("q1,q2,v1,v2\n0,,0,0\n", "line 2, column 'q2': the cell is empty; missing='drop'"),
        ("q1,q2,v1,v2\n0,0,0\n", "line 2 has 3 cells; the header has 4"),
        ("q1,q2,v1,v2\n0,0,0,0\n0,5,0,0,0\n", "line 3 has 5 cells; the header has 4"),
        ("q1,q1,v1,v2\n0,0,0,0\n", "two columns are called 'q1'"),
        ("q1,v1,v2\n0,0,0\n", "columns of robot 'arm' are missing: q2. The table has the columns q1, v1, v2"),
        ("q.elbow2,v1,v2\n0,0,0\n", "are missing: q.elbow1"),
        ("q1,q2,q3,v1,v2\n0,0,0,0,0\n", "3 columns q1 … q3; robot 'arm' has 2"),
        ("q1,q2\n0,0\n", r"velocities of robot 'arm' are missing: expected v1 … v2 \(or v.elbow1 … v.elbow2\)"),
        ("q1;q2;v1;v2\n0;0,5;0.5;0\n", "line 2, column 'v1': '0.5' is not a number"),
        ("0,0,0,0\n0,0,0,0\n", "line 1 has numbers; expected a first line of column names"),
        ("X1,X2\n0,0\n", "the positions and velocities of robot 'arm' are missing: .* The table has the columns X1, X2"),
        ("q1,q2,v1,v2\n0,1_0,0,0\n", "line 2, column 'q2': '1_0' is not a number"),
        ("q1,q2,v1,v2,time\n0,0,0,0,nan\n", "line 2, column 'time': nan"),
        (b"\xff\xfe\x00\x01", "not a text file"),
    ],
)
def test_a_wrong_csv_is_refused_with_its_place(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ReadError, match=message):
        read_states(path, arm(), needs=["q", "v"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"q": np.zeros((3, 2))}, "velocities of robot 'arm' are missing.*has the arrays q"),
        ({"q": np.zeros((3, 3)), "v": np.zeros((3, 2))}, r"'q' has shape \(3, 3\); expected \(N, 2\)"),
        ({"q": np.zeros(2), "v": np.zeros(2)}, r"'q' has shape \(2,\)"),
        ({"q": np.zeros((3, 2)), "v": np.zeros((4, 2))}, "'v' has 4 rows; 'q' has 3"),
        ({"q": np.zeros((3, 2)), "v": np.zeros((3, 2)), "time": np.zeros(2)}, "'time' has 2 rows"),
        ({"q": np.zeros((3, 2)), "v": np.full((3, 2), np.nan)}, r"row 1, column 'v1': nan .*6 such numbers"),
        ({"q": np.zeros((3, 2)), "v": np.full((3, 2), "x")}, "'v' is of type <U1"),
        ({"q": np.zeros((0, 2)), "v": np.zeros((0, 2))}, "the table has no rows"),
    ],
)
def test_a_wrong_npz_is_refused_with_its_array(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ReadError, match=message):
        read_states(tmp_path / "t.npz", arm(), needs=["q", "v"])


@pytest.mark.parametrize("name", ["t.npz", "t.parquet"])
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text("q1,q2\n0,0\n")
    with pytest.raises(ReadError, match="not a"):
        read_states(tmp_path / name, arm())


def test_objects_in_npz_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "t.npz", q=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ReadError, match="'q' cannot be read"):
        read_states(tmp_path / "t.npz", arm(), needs=["q"])


@pytest.mark.parametrize("extension", ["npz", "parquet"])
def test_a_damaged_file_is_named(tmp_path, extension):
    """Wherever a byte is wrong, it is our error with the file's name, or the numbers are read."""
    if extension == "parquet":
        pytest.importorskip("pyarrow")
    path, rng = tmp_path / f"t.{extension}", np.random.default_rng(0)
    write_states(path, arm(), States(np.zeros((3, 2)), np.zeros((3, 2))))
    whole, said = path.read_bytes(), []
    for place in rng.integers(len(whole), size=300):
        path.write_bytes(whole[:place] + bytes([rng.integers(256)]) + whole[place + 1 :])
        try:
            read_states(path, arm(), needs=["q", "v"])
        except ReadError as error:
            said.append(str(error))
    assert len(said) > 50
    assert all(text.startswith(f"{path}: ") and "\n" not in text for text in said)


def test_wrong_parquet_columns_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"q1": [0.0, None], "q2": [0.0, 0.0]}), path)
    with pytest.raises(ReadError, match="row 2, column 'q1': nan"):
        read_states(path, arm(), needs=["q"])
    parquet.write_table(pyarrow.table({"q1": ["0", "1"], "q2": [0.0, 0.0]}), path)
    with pytest.raises(ReadError, match="column 'q1' holds string; expected numbers"):
        read_states(path, arm(), needs=["q"])


def test_a_quaternion_that_is_none_is_refused(tmp_path):
    robot = Robot("body", [Link.solid("body", "base", Joint.free(name="root"), mass=1.0, inertia=1.0)])
    path = tmp_path / "t.csv"
    path.write_text("q1,q2,q3,q4,q5,q6,q7\n0,0,0,0,0,0,1\n0,0,0,0,0,0,0.5\n")
    with pytest.raises(ReadError, match=r"row 2: the quaternion \(x, y, z, w\) of joint 'root' has length 0.5"):
        read_states(path, robot, needs=["q"])


def test_unknown_formats_and_missing_files_are_refused(tmp_path, monkeypatch):
    robot = arm()
    with pytest.raises(CoadjointError, match=r"t.xlsx: tables end in .csv, .*.npz, .parquet, .*not in '.xlsx'"):
        read_states(tmp_path / "t.xlsx", robot)
    with pytest.raises(CoadjointError, match="not in 'nothing'"):
        write_states(tmp_path / "t", robot, States(np.zeros((1, 2))))
    with pytest.raises(ReadError, match="there is no such file"):
        read_states(tmp_path / "t.csv", robot)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ReadError, match="this is a directory"):
        read_states(tmp_path / "folder.csv", robot)
    monkeypatch.setattr("coadjoint.motion.tables.find_spec", lambda name: None)
    with pytest.raises(CoadjointError, match="pip install pyarrow"):
        read_states(tmp_path / "t.parquet", robot)
    assert importlib.util.find_spec("numpy")  # only that module's view of it was changed


# --- files appear whole or not at all


def test_a_file_is_replaced_only_when_all_went_well(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as part:
            part.write_text("ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [x.name for x in tmp_path.iterdir()] == ["a.txt"]


def test_an_interrupted_table_leaves_the_old_one(tmp_path, monkeypatch):
    path, robot = tmp_path / "t.csv", arm()
    path.write_text("old")

    def interrupt(x):
        raise KeyboardInterrupt

    monkeypatch.setattr(builtins, "repr", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_states(path, robot, States(np.zeros((3, 2))))
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert [x.name for x in tmp_path.iterdir()] == ["t.csv"]


def test_outputs_are_checked_beforehand(tmp_path, monkeypatch):
    with pytest.raises(CoadjointError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(CoadjointError, match=r"the folder .*absent does not exist"):
        check_output(tmp_path / "absent" / "t.csv")
    (tmp_path / "in.csv").write_text("")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    with pytest.raises(CoadjointError, match="read and written at once"):
        check_output(tmp_path / "link.csv", None, tmp_path / "in.csv")
    assert check_output(tmp_path / "out.csv", tmp_path / "in.csv") == tmp_path / "out.csv"
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "in.csv")
    with pytest.raises(CoadjointError, match=r"in\.csv cannot be written: it is protected"):
        check_output(tmp_path / "in.csv")


def test_an_output_that_cannot_be_made_is_called_by_its_own_name(tmp_path):
    """Not by that of the temporary file, which is not even there."""
    path = tmp_path / "absent" / "t.csv"
    with pytest.raises(OSError, match=r"absent[/\\]+t\.csv'$"), replacing(path) as part:
        part.write_text("x")
