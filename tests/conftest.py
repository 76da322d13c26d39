"""Tests run the algorithms as written, which is quick for robots drawn at random; those marked `native` run machine code."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "native: runs compiled kernels")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Compiled code goes to a folder of the test run, never to the user's."""
    before = os.environ.get("COADJOINT_CACHE")
    os.environ["COADJOINT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["COADJOINT_CACHE"]
    else:
        os.environ["COADJOINT_CACHE"] = before


@pytest.fixture(autouse=True)
def _as_written(request, monkeypatch):
    monkeypatch.setenv("COADJOINT_NATIVE", "1" if request.node.get_closest_marker("native") else "0")
