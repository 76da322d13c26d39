"""Tests run the algorithms as written, which is quick for robots drawn at random; those marked `native` run machine code."""

from __future__ import annotations

import gc
import os
import re
import signal
from pathlib import Path

import pytest

# One thread of BLAS in each process of tests, before NumPy is imported: the processes share the processors, and BLAS's threads wait for
# each other at every small matrix.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
# What JAX compiles here runs once or twice: XLA's optimizations would take longer than they save.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")


def pytest_addoption(parser):
    parser.addoption("--allow-skips", metavar="REGEX", help="fail if a test is skipped for a reason that does not match")
    parser.addoption("--list-skips", metavar="FILE", help="append the names of tests skipped for want of JAX or PyTorch")
    parser.addoption("--kernels", metavar="FOLDER", help="keep compiled code here, for further runs")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Every process takes its part of the tests in their order, and in the end what another has left: tests that stand together share
    kernels and fixtures, which processes that take them by turns would all make.
    """
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None


def pytest_configure(config):
    config.addinivalue_line("markers", "native: runs compiled kernels")
    config.addinivalue_line("markers", "slow: left out unless asked for by -m 'slow or not slow'")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # started in the background, where processes of tests would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """With --allow-skips, a skip for another reason is a failure: a law that is not tested must not look like one that holds."""
    option, reporter = session.config.getoption, session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    skips = sorted({(str(report.longrepr[2]), report.nodeid) for report in reporter.stats.get("skipped", [])})
    if option("--list-skips") is not None:
        with Path(option("--list-skips")).open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for reason, name in skips if re.search("'(jax|torch)", reason))
    allowed = option("--allow-skips")
    if allowed is None:
        return
    unexpected = [f"{name}: {reason}" for reason, name in skips if not re.search(allowed, reason)]
    if unexpected:
        reporter.write_line("skipped for a reason that is not expected:")
        for line in unexpected:
            reporter.write_line(f"  {line}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def _own_cache(request, tmp_path_factory):
    """Compiled code, and the secret that protects it, go to folders of the test run, one for all its workers, never to the user's."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    root = Path(request.config.getoption("--kernels") or root).absolute()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COADJOINT_CACHE", str(root / "kernels"))
        patch.setenv("XDG_STATE_HOME", str(root / "state"))
        yield


def pytest_collection_finish():
    """What was imported and collected is not garbage, and is not looked through again and again."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(autouse=True)
def _as_written(request, monkeypatch):
    monkeypatch.setenv("COADJOINT_NATIVE", "1" if request.node.get_closest_marker("native") else "0")
