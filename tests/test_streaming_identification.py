"""Logs in parts: the fit is that of the whole log, and memory does not grow with it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, ReadError
from coadjoint.identification import streaming

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def arm():
    return cj.load("planar2r")


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(streaming, "CORE", 10_000)
    monkeypatch.setattr(streaming, "MARGIN", 3_000)
    monkeypatch.setattr(streaming, "SAMPLE", 100)
    monkeypatch.setattr(streaming, "BLOCK", 1000)


def recorded(robot, start, rows, rate=950.0, noise=0.05):
    """Positions and forces without velocities; noise that depends on the row alone, so that any cut gives the same rows."""
    t = (start + np.arange(rows)) / rate
    w = 2 * np.pi * np.array([[0.3, 0.7], [0.23, 1.1]])
    q = np.sin(t[:, None] * w[0]) + 0.5 * np.cos(t[:, None] * w[1])
    v = w[0] * np.cos(t[:, None] * w[0]) - 0.5 * w[1] * np.sin(t[:, None] * w[1])
    a = -(w[0] ** 2) * np.sin(t[:, None] * w[0]) - 0.5 * w[1] ** 2 * np.cos(t[:, None] * w[1])
    e = np.stack([np.random.default_rng(int(k)).normal(size=2) for k in range(start, start + rows)]) if noise else 0.0
    return {"time": t, "q": q, "tau": np.asarray(cj.inverse_dynamics(robot, q, v, a)) + 0.3 * v + noise * e}


def parts(log, size):
    return [{name: x[k : k + size] for name, x in log.items()} for k in range(0, len(log["time"]), size)]


@pytest.fixture(scope="module")
def log(arm):
    heavier = arm.with_payload(arm.link_names[-1], mass=0.5, com=(0.1, 0.05, 0.0), inertia=0.01 * np.eye(3))
    return recorded(heavier, 0, 31_001)


@pytest.mark.parametrize("method", ["ordinary", "weighted", "auto"])
def test_a_log_in_parts_is_fitted_as_the_whole(arm, log, method):
    options = {"method": method, "friction": ("offset", "viscous"), "gravity": "fixed", "prior": 1.0}
    whole = cj.identify(arm, log, **options)
    streamed = cj.identify(arm, cj.LogChunks(parts(log, 4321), arm), **options)
    assert streamed.rows == len(whole.data)
    size = np.abs(whole.estimate).max()
    assert np.abs(streamed.estimate - whole.estimate).max() < (1e-8 if method != "auto" else 1e-6) * size
    assert np.allclose(streamed.rms, whole.rms, rtol=1e-6 if method != "auto" else 1e-3)
    assert streamed.relative_error == pytest.approx(whole.relative_error, rel=1e-3)
    assert np.allclose(np.sqrt(np.diag(streamed.covariance)), np.sqrt(np.diag(whole.covariance)), rtol=0.2)
    _, q, v = (log[k][:200] for k in ("time", "q", "q"))
    assert np.allclose(streamed.torque(q, v, v), whole.torque(q, v, v), rtol=1e-2, atol=1e-2)
    assert any("fitted to all" in note for note in streamed.notes)


def test_a_file_in_parts_is_read_as_the_whole(arm, log, tmp_path):
    rows = np.column_stack([log["time"], log["q"], log["tau"]])[:5000]
    np.savetxt(tmp_path / "log.csv", rows, delimiter=";", header="time;q1;q2;tau1;tau2", comments="", fmt="%.17g")
    chunks = cj.LogChunks(tmp_path / "log.csv", arm, rows=777)
    assert "log.csv" in repr(chunks)
    for _ in range(2):  # a file can be read again
        read = list(chunks)
        assert [len(x) for x in read] == [777] * 6 + [338]
        assert np.array_equal(np.concatenate([x.tau for x in read]), rows[:, 3:])
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    names = ["time", "q1", "q2", "tau1", "tau2"]
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(names, rows.T, strict=True))), tmp_path / "log.parquet")
    assert np.array_equal(np.concatenate([x.q for x in cj.LogChunks(tmp_path / "log.parquet", arm, rows=900)]), rows[:, 1:3])


def test_memory_does_not_grow(arm):
    """The largest memory of a fit to four times as many rows is the same."""
    peaks = []
    for count in (30, 120):
        source = (recorded(arm, 2000 * k, 2000, noise=0.0) for k in range(count))
        tracemalloc.start()
        fit = cj.identify(arm, cj.LogChunks(source, arm), method="weighted", friction=("offset",), gravity="fixed", prior=1.0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert fit.rows > 50 * count
    assert peaks[1] < 1.3 * peaks[0]


def test_wrong_parts_are_named(arm, log):
    with pytest.raises(CoadjointError, match="in memory already"):
        cj.LogChunks(log)
    with pytest.raises(CoadjointError, match="expected a file"):
        cj.LogChunks(7)
    with pytest.raises(CoadjointError, match="rows is 0"):
        cj.LogChunks([log], rows=0)
    with pytest.raises(ReadError, match="times must grow"):
        list(cj.LogChunks([log, log], arm))
    with pytest.raises(CoadjointError, match="has no rows"):
        cj.identify(arm, cj.LogChunks([], arm))
    with pytest.raises(CoadjointError, match="method of a log in parts"):
        cj.identify(arm, cj.LogChunks([log], arm), method="output_error")


def test_currents_in_parts_are_those_of_the_whole(arm, log):
    gains = np.array([3.0, 5.0])
    part = {name: x[:6000] for name, x in log.items()}
    currents = {"time": part["time"], "q": part["q"], "i": part["tau"] / gains}
    options = {"method": "weighted", "friction": ("offset", "viscous")}
    expected = cj.identify(arm, part, **options)
    for named in (currents, currents | {"tau": currents["i"]}):
        table = {k: x for k, x in named.items() if k != "i"} | {f"i{k + 1}": x for k, x in enumerate(named["i"].T)}
        found = cj.identify(arm, cj.LogChunks(parts(table, 1500), arm), gains=gains, **options)
        assert np.allclose(found.estimate, expected.estimate, rtol=1e-6, atol=1e-8)
