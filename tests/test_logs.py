"""Logs as people have them: names, delimiters, units, gaps; bags; measured against computed forces."""

from __future__ import annotations

import gzip
import io
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, LogWarning, ReadError
from coadjoint.motion.bags import decode_joint_state
from coadjoint.motion.filtering import resample, zero_phase

DATA = Path(__file__).parents[2] / "shared" / "data"
ROBOT = cj.load("planar2r")
JOINTS = ROBOT.joint_names


def motion(n: int = 60) -> dict[str, np.ndarray]:
    """Positions, their exact velocities and accelerations, and some forces."""
    t = np.linspace(0, 3, n)[:, None]
    w = np.array([1.3, 2.1])
    return {"time": t[:, 0], "q": np.sin(w * t), "v": w * np.cos(w * t), "a": -(w**2) * np.sin(w * t), "tau": np.cos(t) * w}


def text(header: list[str], columns: list[np.ndarray], delimiter: str = ",", decimal: str = ".") -> str:
    rows = [delimiter.join(repr(float(x)).replace(".", decimal) for x in row) for row in np.stack(columns, axis=1)]
    return "\n".join([delimiter.join(header), *rows]) + "\n"


def columns(m: dict[str, np.ndarray], *what: str) -> list[np.ndarray]:
    return [c for x in what for c in (m[x][:, None] if m[x].ndim == 1 else m[x]).T]


def same(log: cj.Log, m: dict[str, np.ndarray], *what: str) -> None:
    for x in ("time", "q", "v", "a", "tau"):
        if x in what:
            np.testing.assert_allclose(getattr(log, x), m[x], rtol=1e-12, atol=1e-12, err_msg=x)
        else:
            assert getattr(log, x) is None, x


A, B = JOINTS


@pytest.mark.parametrize(
    "header",
    [
        ["time", "q1", "q2", "v1", "v2", "tau1", "tau2"],
        ["t", "position_0", "position_1", "dq0", "dq1", "torque_0", "torque_1"],
        ["timestamp", "q[0]", "q[1]", "qd[0]", "qd[1]", "tau_J[0]", "tau_J[1]"],
        ["T", "actual_q_0", "actual_q_1", "actual_qd_0", "actual_qd_1", "Effort 0", "Effort 1"],
        ["time", f"q.{A}", f"q.{B}", f"v.{A}", f"v.{B}", f"tau.{A}", f"tau.{B}"],
        ["t", A, B, f"{A}_velocity", f"{B}_velocity", f"effort_{A}", f"effort_{B}"],
        ["header.stamp", *(f"/robot/joint_states/{j}/{x}" for x in ("position", "velocity", "effort") for j in (A, B))],
        ["time", "joint1_pos", "joint2_pos", "joint1_vel", "joint2_vel", "joint1_torque", "joint2_torque"],
        ["time [s]", "q1 [rad]", "q2 [rad]", "v1 [rad/s]", "v2 [rad/s]", "tau1 [Nm]", "tau2 [Nm]"],
    ],
)
def test_names_people_use(tmp_path, header):
    m = motion()
    (tmp_path / "log.csv").write_text(text(header, columns(m, "time", "q", "v", "tau")))
    same(cj.read_log(tmp_path / "log.csv", ROBOT), m, "time", "q", "v", "tau")


@pytest.mark.parametrize(
    ("delimiter", "decimal"), [(",", "."), (";", ","), ("\t", ","), ("\t", "."), (" ", "."), ("|", ","), ("  ", ",")]
)
def test_delimiters_and_decimals(tmp_path, delimiter, decimal):
    m = motion()
    content = text(["time", "q1", "q2", "note1"], [*columns(m, "time", "q"), np.arange(60.0)], delimiter, decimal)
    (tmp_path / "log.txt").write_text(content)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("log.txt", "log.csv.gz"):
        log = cj.read_log(tmp_path / name, ROBOT)
        same(log, m, "time", "q")
        np.testing.assert_array_equal(log.extra["note1"], np.arange(60.0))


def test_velocities_beside_positions_are_never_differences():
    m = motion()
    shifted = m["v"] * 1.1
    log = cj.read_log({"t": m["time"], "q1": m["q"][:, 0], "q2": m["q"][:, 1], "dq1": shifted[:, 0], "dq2": shifted[:, 1]}, ROBOT)
    np.testing.assert_array_equal(log.v, shifted)
    assert cj.read_log({"t": m["time"], "q": m["q"]}, ROBOT).v is None


def test_commanded_values_are_not_measured_ones(tmp_path):
    m = motion()
    header = ["time", "q1", "q2", "q_d1", "q_d2", "target_q_1", "target_q_2", "tau_des1", "tau_des2", "i1", "i2"]
    (tmp_path / "log.csv").write_text(text(header, columns(m, "time", "q", "q", "q", "tau", "tau")))
    log = cj.read_log(tmp_path / "log.csv", ROBOT)
    same(log, m, "time", "q")
    assert set(log.extra) == {"q_d", "target_q", "tau_des", "i"}
    np.testing.assert_array_equal(log.extra["i"], m["tau"])


def test_sources_agree(tmp_path):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    m = motion()
    frame = pandas.DataFrame(dict(zip(["time", "q1", "q2", "v1", "v2"], columns(m, "time", "q", "v"), strict=True)))
    np.savez(tmp_path / "log.npz", t=m["time"], position=m["q"], velocity=m["v"])
    parquet.write_table(pyarrow.table(frame), tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.tsv", sep="\t", index=False)
    for source in (
        frame,
        tmp_path / "log.npz",
        tmp_path / "log.parquet",
        tmp_path / "log.tsv",
        {"time": m["time"], "q": m["q"], "v": m["v"]},
    ):
        log = cj.read_log(source, ROBOT)
        same(log, m, "time", "q", "v")
        back = cj.read_log(log.to_dataframe(), ROBOT)
        same(back, m, "time", "q", "v")


def test_a_column_map_and_names_for_a_file_without(tmp_path):
    m = motion()
    (tmp_path / "log.csv").write_text(text(["clock", "left", "right", "x"], [*columns(m, "time", "q"), np.zeros(60)]))
    for given in ({"time": "clock", "q": ["left", "right"]}, {"clock": "time", "left": "q1", "right": "q2"}):
        same(cj.read_log(tmp_path / "log.csv", ROBOT, given), m, "time", "q")
    (tmp_path / "bare.csv").write_text("\n".join(text(["-"] * 3, columns(m, "time", "q")).splitlines()[1:]))
    same(cj.read_log(tmp_path / "bare.csv", ROBOT, ["time", "q1", "q2"]), m, "time", "q")
    (tmp_path / "hash.txt").write_text("# made by a tool\n# " + text(["time", "q1", "q2"], columns(m, "time", "q"), " "))
    same(cj.read_log(tmp_path / "hash.txt", ROBOT), m, "time", "q")
    with pytest.raises(CoadjointError, match=r"no column is named 'lefd'. Did you mean 'left'"):
        cj.read_log(tmp_path / "log.csv", ROBOT, {"time": "clock", "q": ["lefd", "right"]})
    with pytest.raises(CoadjointError, match=r"columns\['lefd'\]: the table has no such column"):
        cj.read_log(tmp_path / "log.csv", ROBOT, {"lefd": "q1"})


def test_columns_that_are_named_are_not_taken_for_another_quantity():
    """Positions that are called a0 … are no accelerations beside."""
    t = np.arange(30) / 100
    q = np.sin(np.outer(t, [1.0, 1.5, 2.0]))
    table = {"clock": t} | {f"a{k}": x for k, x in enumerate(q.T)} | {f"b{k}": x for k, x in enumerate(q.T)}
    log = cj.read_log(table, columns={"time": "clock", "q": "a{}", "tau": "b{}"})
    assert log.a is None
    np.testing.assert_array_equal(log.q, q)
    assert cj.read_log(table, columns={"time": "clock", "q": "b{}"}).a is not None


def test_positions_far_beyond_limits_are_said():
    robot, t = cj.load("panda"), np.arange(60) / 100
    q = 500.0 * np.sin(np.outer(t, np.linspace(2, 4, 7)))
    with pytest.warns(LogWarning, match="are positions in another unit"):
        cj.read_log({"time": t, "q": q}, robot)


def test_units_are_converted_where_stated_and_said_where_suspected(tmp_path):
    m = motion()
    degrees, ms = np.degrees(m["q"]) * 3, m["time"] * 1000
    stated = {"t_ms": ms, "q1_deg": degrees[:, 0], "q2_deg": degrees[:, 1]}
    log = cj.read_log(stated, ROBOT)
    np.testing.assert_allclose(log.q, 3 * m["q"], atol=1e-12)
    np.testing.assert_allclose(log.time, m["time"], atol=1e-12)
    assert any("converted from deg" in note for note in log.notes)
    with pytest.warns(LogWarning, match="suggests degrees"):
        assert np.all(cj.read_log({"time": m["time"], "q": degrees}, ROBOT).q == degrees)
    with pytest.warns(LogWarning, match="suggests ms"):
        cj.read_log({"time": ms, "q": m["q"]}, ROBOT)
    np.testing.assert_allclose(
        cj.read_log({"time": ms, "q": degrees}, ROBOT, units={"q": "deg", "time": "ms"}).q, 3 * m["q"], atol=1e-12
    )
    with pytest.raises(CoadjointError, match=r"units\['q'\] is 'turns'; choose among deg"):
        cj.read_log({"time": ms, "q": degrees}, ROBOT, units={"q": "turns"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m | {"q": np.degrees(m["q"]) / 10, "v": m["v"] / 10}, "positions seem to be degrees"),
        (lambda m: m | {"v": np.degrees(m["v"])}, "velocities seem to be degrees per second"),
        (lambda m: m | {"time": m["time"] * 1e3 / 999 * 8, "v": m["v"] / 8 * 999}, "milliseconds"),
        (lambda m: m | {"v": m["v"] * [1, -1]}, f"velocity of {B} has the opposite sign"),
        (lambda m: m | {"v": m["v"][:, ::-1]}, "are two joints swapped"),
        (lambda m: m | {"v": m["v"] * [1, 2]}, f"slope of {B} is 0.5 times its velocity"),
    ],
)
def test_velocities_that_are_no_slopes_are_said(change, said):
    m = change(motion(600))
    with pytest.warns(LogWarning, match=said):
        cj.read_log({x: m[x] for x in ("time", "q", "v")}, ROBOT)


@pytest.mark.parametrize("pair", [(1, 2), (3, 5), (0, 3)])
@pytest.mark.parametrize("velocities", [True, False])
def test_swapped_columns_are_not_taken_for_degrees(pair, velocities):
    """Of a Panda, by its limits where only one exchange mends them, by slopes where velocities stay in order."""
    robot = cj.load("panda")
    i, j = pair
    time = np.arange(400) / 100
    middle, half = 0.5 * (robot.upper + robot.lower), 0.45 * (robot.upper - robot.lower)
    w = np.linspace(2, 4, 7)
    q, v = middle + half * np.sin(time[:, None] * w), half * w * np.cos(time[:, None] * w)
    swapped = q.copy()
    swapped[:, [i, j]] = q[:, [j, i]]
    log = {"time": time, "q": swapped} | ({"v": v} if velocities else {})
    with pytest.warns(LogWarning, match="swapped") as told:
        cj.read_log(log, robot)
    assert all(f"joint{k + 1}" in str(told[0].message) for k in pair)
    assert not any("degrees" in str(x.message) for x in told)


def test_columns_in_order_raise_no_suspicion_and_degrees_still_do():
    robot = cj.load("panda")
    time = np.arange(400) / 100
    middle, half = 0.5 * (robot.upper + robot.lower), 0.52 * (robot.upper - robot.lower)  # a little beyond its limits
    q = middle + half * np.sin(time[:, None] * np.linspace(2, 4, 7))
    assert not cj.read_log({"time": time, "q": q}, robot).notes
    with pytest.warns(LogWarning, match="suggests degrees"):
        cj.read_log({"time": time, "q": np.degrees(q)}, robot)


def test_wrapped_positions_and_velocities_that_are_all_zero_are_said():
    """A whole turn between two rows is no motion; steps of some degrees are not taken for one."""
    time = np.arange(400) / 100
    q = 4.0 * np.sin(np.outer(time, [1.0, 1.5, 2.0]))
    with pytest.warns(LogWarning, match=r"jumps by a turn of 2π in row \d+ .*it is wrapped"):
        cj.read_log({"time": time, "q": (q + np.pi) % (2 * np.pi) - np.pi})
    with pytest.warns(LogWarning, match="turn of 360"):
        cj.read_log({"time": time, "q": (np.degrees(q) + 180) % 360 - 180}, units={"time": "s"})
    with pytest.warns(LogWarning, match="velocities of 1, 2, 3 are 0 in every row"):
        cj.read_log({"time": time, "q": q, "v": 0 * q})


def test_positions_that_jump_are_said():
    """Where a sensor fails for a row, and where rows are missing though the times go on."""
    time = 0.01 * np.arange(500)
    q = np.stack([np.sin(time), np.cos(2 * time)], 1)
    failed = q.copy()
    failed[120, 1] = 0.0
    for x, row in ((failed, 121), (np.delete(np.concatenate([q, q[-1:] + np.zeros((100, 2))]), slice(120, 220), axis=0), 121)):
        with pytest.warns(LogWarning, match=rf"jumps by .* in row {row}.*two logs"):
            cj.read_log({"time": time, "q": x})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cj.read_log({"time": time, "q": np.round(q, 2)})
        time = 0.01 * np.arange(12_000)  # a move of 0.6 s in two minutes at rest is fast, and no jump
        s = ((time - 60.0) / 0.6).clip(0.0, 1.0)
        cj.read_log({"time": time, "q": 0.2 + np.outer(s**3 * (10 - 15 * s + 6 * s**2), [1.0, -0.5])})


def test_a_velocity_of_another_joint_is_said_though_it_is_somewhat_like_its_own():
    time = np.arange(400) / 100
    v = np.stack([np.cos(3 * time), np.cos(3 * time + 2.0)], axis=1)  # correlated by -0.4
    q = np.stack([np.sin(3 * time), np.sin(3 * time + 2.0)], axis=1) / 3
    with pytest.warns(LogWarning, match="swapped"):
        cj.read_log({"time": time, "q": q[:, ::-1], "v": v}, ROBOT)


def test_times_gaps_and_empty_cells_each_have_their_message(tmp_path):
    m = motion()
    log = lambda time, **options: cj.read_log({"time": time, "q": m["q"]}, ROBOT, **options)
    back, twice = m["time"].copy(), m["time"].copy()
    back[7], twice[9] = back[3] + 1e-3, twice[8]
    with pytest.raises(ReadError, match=r"times must increase; row 8 has .* after .* \(1 rows go back\).* times='sort'"):
        log(back)
    with pytest.raises(ReadError, match="row 10 repeats the time"):
        log(twice)
    found = log(back, times="sort")
    assert np.all(np.diff(found.time) > 0)
    np.testing.assert_array_equal(found.q, m["q"][np.argsort(back)])
    assert len(log(twice, times="sort")) == 59
    late = m["time"] + (np.arange(60) > 30)
    assert any("a gap of 1.05 s after" in note for note in log(late).notes)
    assert list(log(late).gaps) == [30]
    with pytest.raises(ReadError, match="no column of time"):
        cj.read_log({"q": m["q"]}, ROBOT)
    np.testing.assert_allclose(cj.read_log({"q": m["q"]}, ROBOT, rate=100.0).time, np.arange(60) / 100)
    rows = text(["time", "q1", "q2", "v1"], [*columns(m, "time", "q"), np.ones(60)]).splitlines()
    rows[5] = rows[5].rsplit(",", 2)[0] + ", ,1"
    rows[9] = "9," + rows[9].split(",", 1)[1].replace(rows[9].split(",")[2], "NaN")
    (tmp_path / "log.csv").write_text("\n".join(rows))
    with pytest.raises(ReadError, match=r"columns of robot .* are missing: v2"):
        cj.read_log(tmp_path / "log.csv", ROBOT)
    (tmp_path / "log.csv").write_text("\n".join(rows).replace("v1", "i"))
    with pytest.raises(ReadError, match=r"line 6, column 'q2': the cell is empty \(2 such"):
        cj.read_log(tmp_path / "log.csv", ROBOT)
    dropped = cj.read_log(tmp_path / "log.csv", ROBOT, missing="drop")
    assert len(dropped) == 58
    assert any("2 rows with empty cells or NaN were left out" in note for note in dropped.notes)


def test_a_log_without_a_robot_and_what_is_no_log(tmp_path):
    m = motion()
    log = cj.read_log({"time": m["time"], "q": m["q"], "torque": m["tau"]})
    assert log.names == ("1", "2")
    np.testing.assert_array_equal(log.tau, m["tau"])
    assert "60 rows over 3 s" in repr(log)
    with pytest.raises(CoadjointError, match="the log is 3; expected a file, a mapping"):
        cj.read_log(3)
    with pytest.raises(ReadError, match="there are no positions"):
        cj.read_log({"time": m["time"], "speed": m["v"]})
    with pytest.raises(ReadError, match="there is nothing to read"):
        cj.read_log({}, ROBOT)
    with pytest.raises(ReadError, match="'position' and 'angle' may both be q"):
        cj.read_log({"time": m["time"], "position": m["q"], "angle": m["q"]}, ROBOT)
    (tmp_path / "bad.csv.gz").write_bytes(gzip.compress(b"q1,q2\n0,0\n" * 99)[:-20])
    with pytest.raises(ReadError, match="the compressed file is damaged"):
        cj.read_log(tmp_path / "bad.csv.gz", ROBOT)


# --- bags


def joint_state(stamp: tuple[int, int], names, values, cdr: bool) -> bytes:
    """A JointState as it stands in a bag, written by the definition of the two encodings."""
    out = io.BytesIO()

    def put(code: str, *xs) -> None:
        size = struct.calcsize("<" + code)
        if cdr:
            out.write(b"\0" * (-out.tell() % size))
        out.write(struct.pack(f"<{len(xs)}{code}", *xs))

    def string(x: str) -> None:
        data = x.encode() + (b"\0" if cdr else b"")
        put("I", len(data))
        out.write(data)

    if not cdr:
        put("I", 7)
    put("I", stamp[0])
    put("I", stamp[1])
    string("base")
    put("I", len(names))
    for name in names:
        string(name)
    for x in values:
        put("I", len(x))
        if len(x):
            put("d", *x)
    return (b"\0\1\0\0" if cdr else b"") + out.getvalue()


@pytest.mark.parametrize("cdr", [True, False])
def test_messages_are_decoded(cdr):
    values = [[1.5, -2.0], [0.25, 1e-9], []]
    found = decode_joint_state(joint_state((12, 5), ["a", "elbow"], values, cdr), cdr)
    assert (found.stamp, found.names) == (12_000_000_005, ("a", "elbow"))
    for x, y in zip((found.position, found.velocity, found.effort), values, strict=True):
        np.testing.assert_array_equal(x, y)


def test_mcap(tmp_path):
    writer = pytest.importorskip("mcap.writer").Writer
    m = motion(30)
    with open(tmp_path / "log.mcap", "wb") as file:
        out = writer(file)
        out.start()
        schema = out.register_schema("sensor_msgs/msg/JointState", "ros2msg", b"")
        channel = out.register_channel("/joint_states", "cdr", schema)
        for k in range(30):
            nanoseconds = round(m["time"][k] * 1e9) + 5 * 10**9
            order = [1, 0] if k % 2 else [0, 1]
            values = [[9.0, *m[x][k][order]] for x in ("q", "v", "tau")]
            names = ["finger", *(JOINTS[j] for j in order)]
            data = joint_state((nanoseconds // 10**9, nanoseconds % 10**9), names, values, True)
            out.add_message(channel, log_time=nanoseconds, publish_time=nanoseconds, data=data)
        out.finish()
    log = cj.read_log(tmp_path / "log.mcap", ROBOT)
    np.testing.assert_allclose(log.time, m["time"], atol=1e-9)
    for x in ("q", "v", "tau"):
        np.testing.assert_array_equal(getattr(log, x), m[x])
    with pytest.raises(ReadError, match="no topic '/other' of joint states; the file has: /joint_states"):
        cj.read_log(tmp_path / "log.mcap", ROBOT, topic="/other")


def test_rosbag(tmp_path):
    pytest.importorskip("rosbags")
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store, m = get_typestore(Stores.ROS2_HUMBLE), motion(30)
    kind = "sensor_msgs/msg/JointState"
    with Writer(tmp_path / "bag", version=9) as bag:
        connection = bag.add_connection("/joint_states", kind, typestore=store)
        for k in range(30):
            nanoseconds = round(m["time"][k] * 1e9)
            stamp = store.types["builtin_interfaces/msg/Time"](nanoseconds // 10**9, nanoseconds % 10**9)
            header = store.types["std_msgs/msg/Header"](stamp, "base")
            message = store.types[kind](header, list(JOINTS), m["q"][k], m["v"][k], m["tau"][k])
            bag.write(connection, nanoseconds, store.serialize_cdr(message, kind))
    log = cj.read_log(tmp_path / "bag", ROBOT)
    for x in ("q", "v", "tau"):
        np.testing.assert_array_equal(getattr(log, x), m[x])
    np.testing.assert_allclose(log.time, m["time"], atol=1e-9)
    (tmp_path / "broken.bag").write_bytes(b"#ROSBAG V2.0\n")
    with pytest.raises(ReadError, match=r"broken.bag: the bag cannot be read"):
        cj.read_log(tmp_path / "broken.bag", ROBOT)


# --- measured against computed


def test_the_filter_delays_nothing_and_halves_at_the_cutoff():
    t = np.arange(4000) / 500
    middle = slice(1500, 2500)
    for frequency, expected in ((1.0, 1.0), (10.0, 0.5), (50.0, 0.0)):
        x = np.sin(2 * np.pi * frequency * t)[:, None]
        np.testing.assert_allclose(zero_phase(x, 500.0, 10.0)[middle], expected * x[middle], atol=3e-3)
    with pytest.raises(CoadjointError, match="half the rate, 250 Hz"):
        zero_phase(x, 500.0, 300.0)


def test_uneven_times_are_made_even():
    t = np.cumsum(np.random.default_rng(0).uniform(0.5e-3, 1.5e-3, 5000))
    q = np.stack([np.sin(t), np.cos(2 * t)], axis=1)
    even = resample(cj.read_log({"time": t, "q": q}, ROBOT))
    np.testing.assert_allclose(np.diff(even.time), np.diff(even.time)[0])
    np.testing.assert_allclose(even.q, np.stack([np.sin(even.time), np.cos(2 * even.time)], axis=1), atol=1.2e-6)  # h²/8 |q̈|


def test_computed_forces_of_the_robot_that_was_measured_agree(tmp_path):
    """A log made by inverse dynamics, noise-free: the only difference is that of the filter; with another load it shows."""
    t = np.arange(0, 6, 2e-3)[:, None]
    w = np.array([1.3, 2.1])
    q, v, a = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
    tau = cj.inverse_dynamics(ROBOT, q, v, a)
    for log in ({"time": t[:, 0], "q": q, "tau": tau}, {"time": t[:, 0], "q": q, "v": v, "a": a, "tau": tau}):
        result = cj.compare(ROBOT, log)
        assert result.total < 1e-3
        np.testing.assert_allclose(result.residuals, result.measured - result.computed)
    assert "zero-phase low-pass at 10 Hz" in str(result)
    assert cj.compare(ROBOT, {"time": t[:, 0], "q": q, "tau": 1.5 * tau}).total == pytest.approx(1 / 3, abs=1e-3)
    exact = cj.compare(ROBOT, {"time": t[:, 0], "q": q, "v": v, "a": a, "tau": tau}, cutoff=None)
    assert exact.total < 1e-12
    with pytest.raises(CoadjointError, match="no measured joint forces"):
        cj.compare(ROBOT, {"time": t[:, 0], "q": q})
    pytest.importorskip("matplotlib")
    result.plot(tmp_path / "fit.html")
    assert "relative error" in (tmp_path / "fit.html").read_text()


def test_the_command_compares(tmp_path, capsys):
    from coadjoint.cli import main

    t = np.arange(0, 4, 5e-3)[:, None]
    q = np.sin(t * [1.0, 2.0])
    tau = cj.inverse_dynamics(ROBOT, q, np.cos(t * [1.0, 2.0]) * [1, 2], -np.sin(t * [1.0, 2.0]) * [1, 4])
    table = text(["t", "pos_1", "pos_2", "torque_1", "torque_2"], [t[:, 0], *q.T, *tau.T], ";", ",")
    (tmp_path / "log.csv").write_text(table)
    assert main(["dynamics", "planar2r", str(tmp_path / "log.csv"), "--measured"]) == 0
    shown = capsys.readouterr().out
    assert "all joints: relative error 0.0" in shown
    assert main(["dynamics", "planar2r", "--states", str(tmp_path / "log.csv"), "--differentiate"]) == 0
    assert main(["dynamics", "planar2r", "--measured"]) == 1
    assert "--measured needs a table" in capsys.readouterr().err
    assert main(["dynamics", "planar2r", str(tmp_path / "log.csv"), "--measured", "--units", "q:deg"]) == 1
    assert "--units 'q:deg': expected one of" in capsys.readouterr().err


@pytest.mark.native
def test_a_saved_trajectory_becomes_a_log(tmp_path):
    run = cj.simulate(ROBOT, np.array([0.3, 0.4]), np.zeros(2), np.linspace(0, 1, 30))
    for name in ("run.csv", "run.npz"):
        run.save(tmp_path / name)
        back = cj.Trajectory.load(tmp_path / name, ROBOT)
        np.testing.assert_array_equal(back.q, run.q)
        np.testing.assert_array_equal(cj.read_log(tmp_path / name, ROBOT).v, run.v)
    pytest.importorskip("pandas")
    np.testing.assert_array_equal(cj.read_log(run.to_dataframe(), ROBOT).tau, run.tau)


@pytest.mark.parametrize("name", ["panda_log/excitation.csv", "lwr4_log/excitation.csv", "ur10e_log/harmonics_20s.csv"])
def test_real_logs_raise_no_doubts(name):
    if not DATA.is_dir():
        pytest.skip("no shared data here")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = cj.read_log(DATA / name, times="sort")
    table = np.loadtxt(DATA / name, delimiter=",", skiprows=1)
    assert len(log) > 0.99 * len(table)
    n = log.q.shape[1]
    np.testing.assert_array_equal(log.q[0], table[0, 1 : n + 1])
    np.testing.assert_array_equal(log.v[-1], table[-1, n + 1 : 2 * n + 1])
    if name.startswith("ur10e"):
        assert log.tau is None
        np.testing.assert_array_equal(log.extra["i"][-1], table[-1, 13:19])
        assert log.extra["tau_des"].shape == (len(log), 6)


def test_rounding_below_zero_goes_back_into_a_robot():
    """A least-squares result with a mass of -4e-17 becomes the nearest body, with a note; a mass that is wrong stays an error."""
    robot = cj.load("panda")
    parameters = robot.inertial_parameters.copy()
    parameters[:10] = [-4e-17, 1e-17, 0, 0, 0, 0, 0, 0, 0, 0]
    back = robot.with_inertial_parameters(parameters)
    assert any("mass of -4e-17 kg was rounding" in note for note in back.notes)
    np.testing.assert_allclose(back.inertial_parameters, parameters, atol=1e-15)
    assert back.inertial_parameters[0] >= 0
    np.testing.assert_array_equal(
        cj.load("panda").with_inertial_parameters(robot.inertial_parameters).inertial_parameters, robot.inertial_parameters
    )
    parameters[0] = -0.1
    with pytest.raises(CoadjointError, match="a mass must not be negative"):
        robot.with_inertial_parameters(parameters).consolidated()
