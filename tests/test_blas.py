"""Linear algebra on one thread inside of fits, and on as many as before after them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import blas


@pytest.fixture
def two_threads():
    before = blas.threads()
    if not before:
        pytest.skip("the linear algebra is not OpenBLAS's")
    for _, change in blas._libraries():
        change(2)
    yield [2] * len(before)
    for (_, change), number in zip(blas._libraries(), before, strict=True):
        change(number)


def test_threads_are_one_inside_and_as_before_after(two_threads):
    with blas.one_thread():
        assert set(blas.threads()) == {1}
        with blas.one_thread():
            assert set(blas.threads()) == {1}
        assert set(blas.threads()) == {1}
    assert blas.threads() == two_threads
    with pytest.raises(ZeroDivisionError):
        blas.on_one_thread(lambda: 1 / 0)()
    assert blas.threads() == two_threads


def test_blocks_of_several_threads_overlap(two_threads):
    both = Barrier(2)

    def work(k):
        with blas.one_thread():
            both.wait()
            if k:
                both.wait()
            seen = set(blas.threads())
        if not k:
            both.wait()
        return seen

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, range(2))) == [{1}, {1}]
    assert blas.threads() == two_threads


def test_fits_run_on_one_thread(two_threads, monkeypatch):
    robot, seen = cj.load("planar2r"), []
    monkeypatch.setattr("coadjoint.identification.fitting.doubts", lambda *_: seen.extend(blas.threads()) or ([], False))
    t = np.linspace(0, 4, 200)
    q = np.stack([np.sin(2 * t), np.cos(3 * t)], 1)
    v, a = np.stack([2 * np.cos(2 * t), -3 * np.sin(3 * t)], 1), np.stack([-4 * np.sin(2 * t), -9 * np.cos(3 * t)], 1)
    cj.identify(robot, {"time": t, "q": q, "v": v, "a": a, "tau": cj.inverse_dynamics(robot, q, v, a)})
    assert set(seen) == {1}
    assert blas.threads() == two_threads
