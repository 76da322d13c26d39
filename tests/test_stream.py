"""Streams: what was interrupted and resumed equals what was not, and another computation is refused."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.cli import main
from coadjoint.errors import CoadjointError, ReadError
from coadjoint.scale import store
from coadjoint.scale.reduction import Reduction
from coadjoint.scale.task import Task

zarr = pytest.importorskip("zarr")
ROBOT = cj.load("planar2r")
N = 1003
RNG = np.random.default_rng(0)
Q, V, A = ROBOT.random(RNG, N), *RNG.normal(size=(2, N, 2))


class States:
    """States in memory; reading beyond a row of many is interrupted."""

    def __init__(self, identity="states", fail_from=None):
        self.rows, self.identity, self.fail_from = N, identity, fail_from
        self.reads = []

    def read(self, start, stop):
        self.reads.append(start)
        if self.fail_from is not None and stop > self.fail_from and stop - start > 1:
            raise KeyboardInterrupt
        return {"q": Q[start:stop], "v": V[start:stop], "a": A[start:stop]}


def one_call(q, v, a):
    """The torques by one call in this process, with the robot's own kernel, as tasks have it."""
    return Task(cj.inverse_dynamics, ROBOT, ("q", "v", "a"), {}, alone=True)(q, v, a)


@pytest.fixture
def files(tmp_path):
    """The same states in every kind of file."""
    np.save(tmp_path / "states.npy", np.concatenate([Q, V, A], axis=1))
    group = zarr.create_group(str(tmp_path / "states.zarr"))
    for name, x in (("q", Q), ("v", V), ("a", A)):
        group.create_array(name, data=x, chunks=(97, 2))
    import pyarrow
    import pyarrow.parquet

    columns = {f"{name}{k + 1}": x[:, k] for name, x in (("q", Q), ("v", V), ("a", A)) for k in range(2)}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "states.parquet", row_group_size=300)
    return tmp_path


def stream(source, out, **options):
    return cj.scale.stream(cj.inverse_dynamics, ROBOT, source, out, **({"chunk": 128} | options))


@pytest.mark.native
@pytest.mark.parametrize("kind", ["npy", "zarr", "parquet"])
def test_every_file_gives_the_bits_of_one_call(files, kind):
    shares = []
    found = stream(files / f"states.{kind}", files / "out.zarr", report=shares.append)
    np.testing.assert_array_equal(found["inverse_dynamics"][:], one_call(Q, V, A))
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)


@pytest.mark.native
@pytest.mark.parametrize("done", [0, 1, 5, 7])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, done):
    broken, again, last = States(fail_from=128 * done + 1), States(), States()
    with pytest.raises(KeyboardInterrupt):
        stream(broken, tmp_path / "out.zarr")
    found = stream(again, tmp_path / "out.zarr")
    np.testing.assert_array_equal(found["inverse_dynamics"][:], one_call(Q, V, A))
    chunks = [start // 128 for start in again.reads]
    assert chunks[-(8 - done) :] == list(range(done, 8))
    stream(last, tmp_path / "out.zarr")
    assert set(last.reads) == {0}  # only looked at
    assert not list(tmp_path.glob(".*"))


def test_reduced_streams_keep_one_row_a_chunk(tmp_path):
    found = stream(States(), tmp_path / "out.zarr", reduce=np.sum, names=("tau",))
    tau = one_call(Q, V, A)
    sums = [tau[k : k + 128].sum(0) for k in range(0, N, 128)]
    np.testing.assert_allclose(found["tau"][:], sums, rtol=1e-12)


def test_reductions_of_other_kinds_are_numbers_or_refused(tmp_path):
    found = stream(States(), tmp_path / "count.zarr", reduce=np.count_nonzero, names=("tau",))  # integers
    np.testing.assert_array_equal(found["tau"][:-1], 128.0)
    for k, (reduce, words) in enumerate(
        {
            (lambda x, axis: x.mean()): r"float64 of shape \(\)",
            (lambda x, axis: x.sum(axis) + 0j): "complex128",
            (lambda x, axis: x): r"of shape \(256, 2\) .*expected real numbers of shape \(2,\)",
        }.items()
    ):
        with pytest.raises(CoadjointError, match=words):
            stream(States(), tmp_path / f"{k}.zarr", reduce=reduce)
        assert not list(tmp_path.glob(f"*{k}.zarr"))


def test_a_stream_is_not_continued_with_another_reduction_of_the_same_name(tmp_path):
    scale = 2.0

    def reduce(x, axis):
        return scale * x.sum(axis)

    with pytest.raises(KeyboardInterrupt):
        stream(States(fail_from=300), tmp_path / "out.zarr", reduce=reduce)
    scale = 3.0
    with pytest.raises(CoadjointError, match="begun with another reduce"):
        stream(States(), tmp_path / "out.zarr", reduce=reduce)
    scale = 2.0
    found = stream(States(), tmp_path / "out.zarr", reduce=reduce)["inverse_dynamics"][:]
    np.testing.assert_allclose(found[0], 2.0 * one_call(Q, V, A)[:128].sum(0), rtol=1e-12)


BOUND = 0.0


def beyond_global(x, axis):
    return (abs(x) > BOUND).sum(axis)


def beyond(x, axis, bound):
    return (abs(x) > bound).sum(axis)


class Beyond:
    def __init__(self, bound):
        self.bound = bound

    def __call__(self, x, axis):
        return self.count(x, axis)

    def count(self, x, axis):
        return beyond(x, axis, self.bound)


BEYOND = {
    "global": lambda bound: beyond_global,
    "closure": lambda bound: lambda x, axis: (abs(x) > bound).sum(axis),
    "default": lambda bound: lambda x, axis, bound=bound: (abs(x) > bound).sum(axis),
    "constant": lambda bound: eval(f"lambda x, axis: (abs(x) > {bound}).sum(axis)"),
    "helper": lambda bound: lambda x, axis: BEYOND["closure"](bound)(x, axis),
    "partial": lambda bound: functools.partial(beyond, bound=np.array(bound)),
    "object": Beyond,
    "method": lambda bound: Beyond(bound).count,
}
"""Functions that count what is beyond a bound."""


@pytest.mark.parametrize("kind", BEYOND)
def test_reductions_are_known_by_the_numbers_that_they_hold(kind, monkeypatch):
    """Examples alone do not tell close bounds apart."""

    def identity(bound):
        monkeypatch.setitem(globals(), "BOUND", bound)
        return Reduction(BEYOND[kind](bound)).identity([np.zeros((0, 2))])

    assert identity(50.0) == identity(50.0)
    assert len({identity(50.0 + 1e-9 * k) for k in range(8)}) == 8


def in_small_batches(x, axis):
    return x.sum(axis) * (str(len(x)) in {"1", "2", "256"})


def identities():
    some = [np.sum, np.mean, np.add.reduce, in_small_batches, *(make(1.0) for make in BEYOND.values())]
    return "\n".join(Reduction(fn).identity([np.zeros((0, 2))]) for fn in some)


@pytest.mark.slow
def test_reductions_are_known_in_every_process():
    command = [sys.executable, "-c", "import test_stream; print(test_stream.identities())"]
    there = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    assert subprocess.run(command, capture_output=True, text=True, check=True, env=there).stdout.strip() == identities()


def test_a_stream_is_not_continued_with_another_option_that_looks_alike(tmp_path):
    """As a data frame, whose text rounds its numbers and leaves out the middle."""

    class Table:
        def __init__(self, array):
            self.array = array

        def __array__(self, *_, **__):
            return self.array

        def __repr__(self):
            return "a table"

    wrenches = np.ones((2, 6))
    with pytest.raises(KeyboardInterrupt):
        stream(States(fail_from=300), tmp_path / "out.zarr", wrenches=Table(wrenches))
    with pytest.raises(CoadjointError, match="begun with another options"):
        stream(States(), tmp_path / "out.zarr", wrenches=Table(2 * wrenches))
    stream(States(), tmp_path / "out.zarr", wrenches=Table(wrenches.copy()))


def test_derivatives_of_kernels_are_not_taken_for_kernels(tmp_path):
    """They were streamed as the function itself, whose `out=` they did not write to."""
    with pytest.raises(CoadjointError, match="not a function of states that can be streamed"):
        cj.scale.stream(cj.differential(cj.inverse_dynamics), ROBOT, States(), tmp_path / "out.zarr", chunk=128)


def test_another_computation_is_refused(tmp_path, monkeypatch):
    out = tmp_path / "out.zarr"
    stream(States(), out)
    heavier = ROBOT.with_inertia(ROBOT.link_names[0], mass=9.0, inertia=1.0)
    for match, call in {
        "another robot": lambda: cj.scale.stream(cj.inverse_dynamics, heavier, States(), out, chunk=128),
        "another function": lambda: cj.scale.stream(cj.bias_force, ROBOT, States(), out, chunk=128),
        "another options": lambda: stream(States(), out, friction=True),
        "another input": lambda: stream(States("others"), out),
        "another size of chunks": lambda: stream(States(), out, chunk=64),
        "another reduce": lambda: stream(States(), out, reduce=np.sum),
    }.items():
        with pytest.raises(CoadjointError, match=match):
            call()
    monkeypatch.setattr("coadjoint.scale.streaming.library_digest", lambda: "0.0.1+other")
    with pytest.raises(CoadjointError, match="another version of this library"):
        stream(States(), out)


def test_damaged_and_unmarked_chunks_are_computed_again(tmp_path):
    out = tmp_path / "out.zarr"
    whole = stream(States(), out)["inverse_dynamics"][:]
    (out / "inverse_dynamics" / "c" / "2" / "0").write_bytes(b"short")
    (out / store.DONE / "c" / "5" / "0").unlink()
    (out / store.DONE / "c" / "7" / "0").write_bytes(bytes(store.BYTES + 4))
    again = States()
    np.testing.assert_array_equal(stream(again, out)["inverse_dynamics"][:], whole)
    assert sorted(set(again.reads) - {0}) == [2 * 128, 5 * 128, 7 * 128]


def test_wrong_inputs_are_reported(tmp_path, files):
    (tmp_path / "x.csv").write_text("q1\n1\n")
    (tmp_path / "broken.npy").write_bytes(b"no")
    (tmp_path / "broken.zarr").mkdir()
    with pytest.raises(ReadError, match="no such file"):
        stream(tmp_path / "none.npy", tmp_path / "x.zarr")
    with pytest.raises(ReadError, match="csv"):
        stream(tmp_path / "x.csv", tmp_path / "x.zarr")
    with pytest.raises(ReadError, match=r"expected numbers of shape \(N, 21\)"):
        cj.scale.stream(cj.inverse_dynamics, cj.load("panda"), files / "states.npy", tmp_path / "x.zarr")
    with pytest.raises(ReadError, match=r"'q' has shape \(1003, 2\)"):
        cj.scale.stream(cj.inverse_dynamics, cj.load("panda"), files / "states.zarr", tmp_path / "x.zarr")
    with pytest.raises(ReadError, match="joint forces"):
        cj.scale.stream(cj.forward_dynamics, ROBOT, files / "states.parquet", tmp_path / "x.zarr")
    with pytest.raises(ReadError, match="no array 'tau'"):
        cj.scale.stream(cj.forward_dynamics, ROBOT, files / "states.zarr", tmp_path / "x.zarr")
    with pytest.raises(ReadError, match="not an array"):
        stream(tmp_path / "broken.npy", tmp_path / "x.zarr")
    with pytest.raises(ReadError, match="not a Zarr group"):
        stream(tmp_path / "broken.zarr", tmp_path / "x.zarr")
    with pytest.raises(ReadError, match="not the output of a stream"):
        stream(States(), files / "states.zarr")
    with pytest.raises(CoadjointError, match="does not exist"):
        stream(States(), tmp_path / "none" / "x.zarr")
    with pytest.raises(CoadjointError, match="chunk is 0"):
        stream(States(), tmp_path / "x.zarr", chunk=0)
    with pytest.raises(CoadjointError, match="not a function of states"):
        cj.scale.stream(len, ROBOT, States(), tmp_path / "x.zarr")
    assert not (tmp_path / "x.zarr").exists()
    table = np.concatenate([Q, V, A], axis=1)
    table[700, 3] = np.nan
    np.save(tmp_path / "nan.npy", table)
    with pytest.raises(CoadjointError, match="row 701: v is not finite"):
        stream(tmp_path / "nan.npy", tmp_path / "x.zarr")
    body = cj.load("floating_body")
    states = np.concatenate([body.random(RNG, 9), RNG.normal(size=(9, 12))], axis=1)
    states[5, 3:7] *= 2
    np.save(tmp_path / "long.npy", states)
    with pytest.raises(CoadjointError, match=r"row 6: the quaternion \(x, y, z, w\) of joint .* has length 2"):
        cj.scale.stream(cj.inverse_dynamics, body, tmp_path / "long.npy", tmp_path / "long.zarr")


@pytest.mark.native
def test_a_cluster_gives_the_same_bits_and_tells_errors(files):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        found = stream(files / "states.npy", files / "out.zarr", scheduler=client)
        np.testing.assert_array_equal(found["inverse_dynamics"][:], one_call(Q, V, A))
        table = np.concatenate([Q, V, A], axis=1)
        table[700, 3] = np.nan
        np.save(files / "nan.npy", table)
        with pytest.raises(CoadjointError, match="row 701: v is not finite"):
            stream(files / "nan.npy", files / "nan.zarr", scheduler=client)


class Reused(States):
    """States scaled by a number, read into the same arrays again; it counts how often it is unpacked."""

    unpacked = 0

    def __init__(self, scale):
        super().__init__(f"reused {scale}")
        self.scale, self.kept = scale, {}

    def __setstate__(self, state):
        Reused.unpacked += 1
        self.__dict__.update(state, kept={name: np.empty((N, 2)) for name in "qva"})

    def read(self, start, stop):
        for name, x in super().read(start, stop).items():
            np.multiply(x, self.scale, out=self.kept.setdefault(name, np.empty((N, 2)))[: stop - start])
        return {name: x[: stop - start] for name, x in self.kept.items()}


@pytest.mark.native
def test_threads_of_a_worker_unpack_a_stream_once_and_keep_streams_apart(tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        for k, scale in enumerate((1.0, 0.5, 1.0)):
            Reused.unpacked = 0
            found = stream(Reused(scale), tmp_path / f"{k}.zarr", scheduler=client, chunk=20)
            assert 1 <= Reused.unpacked <= 2
            expected = one_call(scale * Q, scale * V, scale * A)
            np.testing.assert_array_equal(found["inverse_dynamics"][:], expected)


@pytest.mark.native
def test_the_command(files, capsys):
    arguments = ["dynamics", "planar2r", "--states", str(files / "states.parquet"), "--out", str(files / "out.zarr")]
    for _ in range(2):
        assert main(arguments) == 0
        assert "joint forces for 1003 states" in capsys.readouterr().out
    tau = zarr.open_group(str(files / "out.zarr"), mode="r")["tau"]
    np.testing.assert_array_equal(tau[:], one_call(Q, V, A))
    assert main([*arguments, "--friction"]) == 1
    assert "another options" in capsys.readouterr().err
    for wrong, text in (
        (["dynamics", "planar2r", "--out", str(files / "x.zarr")], "needs --states"),
        ([*arguments, "--plot", "x.png"], "--plot"),
        (["dynamics", "planar2r", "--scheduler", "tcp://127.0.0.1:1"], "needs --out"),
    ):
        assert main(wrong) == 1
        assert text in capsys.readouterr().err


@pytest.mark.native
def test_the_bits_do_not_depend_on_what_the_process_did_before(tmp_path):
    """A process that has used another robot of the structure has a kernel that both share; tasks do not take it."""
    cj.inverse_dynamics(ROBOT, Q, V, A)
    for mass in (3.0, 4.0):
        other = ROBOT.with_inertia(ROBOT.link_names[0], mass=mass, inertia=1.0)
        before = cj.inverse_dynamics(other, Q, V, A)
    found = cj.scale.stream(cj.inverse_dynamics, other, States(), tmp_path / "out.zarr", chunk=128)["inverse_dynamics"][:]
    text = (
        "import coadjoint as cj, numpy as np, sys\n"
        "print(cj.inverse_dynamics(cj.load(sys.argv[2]), *np.load(sys.argv[1])).tobytes().hex())\n"
    )
    np.save(tmp_path / "x.npy", np.stack([Q, V, A]))
    cj.save(other, tmp_path / "other.json")
    environment = os.environ | {"PYTHONPATH": str(Path(cj.__file__).parents[1])}
    fresh = subprocess.run(
        [sys.executable, "-c", text, tmp_path / "x.npy", tmp_path / "other.json"], env=environment, capture_output=True, check=True
    )
    assert fresh.stdout.decode().strip() == found.tobytes().hex()
    np.testing.assert_allclose(before, found, rtol=1e-12, atol=1e-12)


@pytest.mark.native
def test_killed_anywhere_and_resumed(tmp_path):
    """The command is killed at random moments until it is through; the result is that of one call."""
    many = 40_000
    rng = np.random.default_rng(1)
    states = rng.normal(size=(many, 6))
    np.save(tmp_path / "states.npy", states)
    text = (
        "import coadjoint as cj, sys\n"
        "cj.scale.stream(cj.inverse_dynamics, cj.load('planar2r'), sys.argv[1], sys.argv[2], chunk=100, threads=1)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(cj.__file__).parents[1])}
    out, kills = tmp_path / "out.zarr", 0
    while True:
        run = subprocess.Popen([sys.executable, "-c", text, str(tmp_path / "states.npy"), str(out)], env=environment)
        while not out.exists() and run.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.4))
        if kills < 4 and run.poll() is None:
            run.send_signal(signal.SIGKILL)
            kills += run.wait() == -signal.SIGKILL
            continue
        assert run.wait() == 0
        break
    assert kills
    found = zarr.open_group(str(out), mode="r")["inverse_dynamics"][:]
    np.testing.assert_array_equal(found, one_call(*np.split(states, 3, axis=1)))
