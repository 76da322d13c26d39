"""Tests run the algorithms as written, which is quick for robots drawn at random; those marked `native` run machine code."""

from __future__ import annotations

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "native: runs compiled kernels")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Compiled code, and the secret that protects it, go to folders of the test run, never to the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COADJOINT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _as_written(request, monkeypatch):
    monkeypatch.setenv("COADJOINT_NATIVE", "1" if request.node.get_closest_marker("native") else "0")
