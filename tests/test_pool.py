"""Memory of large results is used again, and never while somebody still looks at it."""

from __future__ import annotations

import gc
import pickle
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import coadjoint as cj
from coadjoint.kernel.runtime import pool

pytestmark = pytest.mark.native
DOUBLE = np.dtype(float)


@pytest.fixture(autouse=True)
def _empty():
    pool.clear()
    yield
    pool.clear()


def address(x):
    return x.__array_interface__["data"][0]


def test_memory_comes_again_when_the_last_view_is_gone():
    x = pool.empty((100, 1000), DOUBLE)
    place = address(x)
    assert place % pool.ALIGNMENT == 0
    view = x[3:, ::2].T
    del x
    assert address(pool.empty((100, 1000), DOUBLE)) != place
    view[...] = 1.0
    other = pool.empty((100, 1000), DOUBLE)
    other[...] = 2.0
    assert (view == 1.0).all()
    del view
    gc.collect()
    assert place in (address(pool.empty((100, 1000), DOUBLE)), address(pool.empty((100, 1000), DOUBLE)))


def test_arrays_are_ordinary():
    robot = cj.load("planar2r")
    q = np.random.default_rng(0).standard_normal((60_000, 2))
    found = cj.mass_matrix(robot, q)
    assert found.nbytes > pool.SMALL
    assert type(found) is np.ndarray
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert sys.getrefcount(found) == 2
    assert found.shape == (60_000, 2, 2)
    assert np.array_equal(pickle.loads(pickle.dumps(found)), found)
    assert np.array_equal(found, cj.mass_matrix(robot, q, out=np.empty((60_000, 2, 2))))


def test_results_that_are_kept_keep_their_numbers():
    robot = cj.load("panda")
    f = cj.compile(cj.inverse_dynamics_derivatives, robot)
    rng = np.random.default_rng(0)
    kept = []
    for k in range(12):
        q = rng.standard_normal((900 + 10 * (k % 3), 7))
        found = f(q, q, q)
        assert len(found) == 3
        kept.append((q, found))
        if k % 4 == 3:
            del kept[0]
    for q, found in kept:
        outs = tuple(np.empty(x.shape) for x in found)
        for x, y in zip(found, f(q, q, q, out=outs), strict=True):
            assert np.array_equal(x, y)


def test_what_waits_is_bounded(monkeypatch):
    monkeypatch.setattr(pool, "LIMIT", 1 << 22)
    kept = [pool.empty((50_000 + 20_000 * k,), DOUBLE) for k in range(20)]
    assert not pool._free
    del kept
    assert 0 < sum(size for size, _, _ in pool._free) <= 1 << 22
    assert pool.empty((10**6,), DOUBLE).base is None  # larger than what is kept
    assert pool.empty((100,), DOUBLE).base is None


def test_threads_never_share_a_block():
    """Each writes its own number and finds it again, while arrays die in other threads."""
    wrong, passed = [], []

    def work(number):
        mine = []
        for turn in range(150):
            x = pool.empty((40_000 + 500 * (turn % 4),), DOUBLE)
            x[::97] = number
            mine.append(x)
            passed.append(x)  # dies in whichever thread takes it out
            if len(mine) > 3:
                old = mine.pop(0)
                wrong.extend([number] * (not (old[::97] == number).all()))
            if len(passed) > 8:
                passed.pop(0)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_no_memory_is_an_error(monkeypatch):
    def none(*_):
        raise MemoryError("none")

    monkeypatch.setattr(pool, "empty", none)
    with pytest.raises(MemoryError):
        cj.mass_matrix(cj.load("planar2r"), np.zeros((60_000, 2)))
