"""The cache of compiled kernels: what is kept, what is refused, and that it never costs more than caching."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.runtime import cache, cache_key, native
from coadjoint.kernel.runtime.native import build
from graph_helpers import SMOOTH, random_graph

pytestmark = pytest.mark.native

GRAPH = random_graph(1, 40, shapes=((3,),), out=((4,),), ops=SMOOTH)
X = np.random.default_rng(0).uniform(-1, 1, (9, 3))
posix = pytest.mark.skipif(os.name != "posix", reason="permissions as on Unix")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COADJOINT_CACHE", str(tmp_path / "kernels"))
    native._alive.clear()
    return tmp_path / "kernels"


@pytest.fixture
def compiled(monkeypatch):
    """Counts how often something is compiled."""
    count = []
    original = native.compile_graph
    monkeypatch.setattr(native, "compile_graph", lambda *a: count.append(1) or original(*a))
    return count


def again():
    """The kernel as a new process would make it."""
    native._alive.clear()
    f = build(GRAPH)
    np.testing.assert_allclose(f(X), evaluate(GRAPH, X)[0], rtol=1e-12, atol=1e-12)
    return f


def only_file(folder):
    (path,) = folder.glob("*.kernel")
    return path


def test_a_kernel_is_compiled_once(folder, compiled):
    first = again()
    assert len(compiled) == 1
    second = again()
    assert len(compiled) == 1
    assert second.signature == first.signature
    assert np.array_equal(first(X), second(X))
    build(GRAPH, np.float32)
    assert len(compiled) == 2


def test_a_key_saves_the_graph(folder, compiled):
    traced = []

    def graph():
        traced.append(1)
        return GRAPH

    for _ in range(3):
        native._alive.clear()
        f = build(graph, key="robot and function")
        np.testing.assert_allclose(f(X), evaluate(GRAPH, X)[0], rtol=1e-12, atol=1e-12)
    assert len(traced) == len(compiled) == 1
    build(graph, key="another robot")
    assert len(traced) == 2
    with pytest.raises(TypeError, match="needs a key"):
        build(graph)


def test_loading_needs_no_llvm(folder):
    """Nor tracing, nor lowering."""
    again()
    code = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from graph_helpers import SMOOTH, random_graph
GRAPH = random_graph(1, 40, shapes=((3,),), out=((4,),), ops=SMOOTH)
X = np.random.default_rng(0).uniform(-1, 1, (9, 3))
for name in [m for m in sys.modules if m.startswith("llvmlite.") or "kernel.emit" in m or "kernel.schedule" in m]:
    del sys.modules[name]
from coadjoint.kernel.runtime import elf, native
f = native.build(GRAPH)
f(X)
found = [m for m in sys.modules if m == "llvmlite.binding" or "kernel.emit" in m or "kernel.schedule" in m]
assert not found or not elf.loads_here(), found
"""
    run = subprocess.run(
        [sys.executable, "-c", code.format(tests=os.path.dirname(__file__))], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_the_key_covers_all_that_decides_the_code(monkeypatch):
    base = cache_key.key("x", dtype="float64")
    assert base == cache_key.key("x", dtype="float64")
    assert base != cache_key.key("y", dtype="float64")
    assert base != cache_key.key("x", dtype="float32")
    graphs = [random_graph(seed, 40, shapes=((3,),), out=((4,),)) for seed in (1, 2)]
    assert len({cache_key.of_graph(g) for g in graphs}) == 2
    for name, other in (("_processor", lambda: ["another"]), ("_sources", lambda: [])):
        with monkeypatch.context() as patch:
            patch.setattr(cache_key, name, other)
            cache_key.surroundings.cache_clear()
            assert cache_key.key("x", dtype="float64") != base
    cache_key.surroundings.cache_clear()
    assert cache_key.key("x", dtype="float64") == base


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "longer", "head", "foreign", "text"])
def test_a_damaged_file_is_built_anew(folder, compiled, damage):
    again()
    path = only_file(folder)
    good = path.read_bytes()
    changes = {
        "truncated": good[: len(good) // 2],
        "empty": b"",
        "flipped": good[:-900] + bytes([good[-900] ^ 1]) + good[-899:],
        "longer": good + b"\0",
        "head": b"x" + good[1:],
        "text": b"not a kernel",
    }
    if damage == "foreign":  # the file of another kernel under this one's name
        other = random_graph(2, 40, shapes=((3,),), out=((4,),))
        build(other)
        (theirs,) = set(folder.glob("*.kernel")) - {path}
        path.write_bytes(theirs.read_bytes())
    else:
        path.write_bytes(changes[damage])
    before = len(compiled)
    again()
    assert len(compiled) == before + 1
    assert path.read_bytes() == good
    again()
    assert len(compiled) == before + 1


@posix
def test_files_are_the_users_alone(folder):
    again()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(folder).stat().st_mode) == 0o600


@posix
def test_a_folder_that_others_may_write_to_is_refused(folder, compiled):
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    again()
    assert not list(folder.iterdir())
    assert "can be written by others" in cache.info()["disabled"]
    folder.chmod(0o700)
    again()
    again()
    assert len(compiled) == 2
    folder.chmod(0o777)  # what is there is not trusted, either
    again()
    assert len(compiled) == 3


@posix
def test_a_folder_or_file_of_another_user_is_refused(folder, compiled, monkeypatch):
    again()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    again()
    assert len(compiled) == 2
    assert "belongs to another user" in cache.info()["disabled"]
    assert cache.clear() == 0


@posix
def test_a_file_that_others_may_write_to_or_a_link_is_refused(folder, compiled, tmp_path):
    again()
    path = only_file(folder)
    path.chmod(0o666)
    again()
    assert len(compiled) == 2
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    again()
    assert len(compiled) == 3


def test_no_folder_only_costs_caching(folder, compiled):
    folder.write_text("a file is in the way")
    again()
    again()
    assert len(compiled) == 2
    assert folder.read_text() == "a file is in the way"


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_home_only_costs_caching(tmp_path, monkeypatch, compiled):
    monkeypatch.delenv("COADJOINT_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    tmp_path.chmod(0o500)
    again()
    again()
    assert len(compiled) == 2


def test_a_full_disk_only_costs_caching(folder, compiled, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    again()
    again()
    assert len(compiled) == 2
    assert not list(folder.iterdir())


def test_switched_off(monkeypatch, compiled, tmp_path):
    monkeypatch.setenv("COADJOINT_CACHE", "off")
    monkeypatch.setenv("HOME", str(tmp_path))
    again()
    again()
    assert len(compiled) == 2
    assert not list(tmp_path.iterdir())
    assert "COADJOINT_CACHE" in cache.info()["disabled"]
    assert cache.clear() == 0


def test_standard_places(monkeypatch, tmp_path):
    monkeypatch.delenv("COADJOINT_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.place()[0] == tmp_path / "xdg" / "coadjoint"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.place()[0] == tmp_path / ".cache" / "coadjoint"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.place()[0] == tmp_path / "Library" / "Caches" / "coadjoint"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache.place()[0] == tmp_path / "local" / "coadjoint" / "Cache"


def test_what_was_not_used_for_longest_goes(folder, monkeypatch):
    keys = [f"{k:064x}" for k in range(6)]
    for age, key in enumerate(keys):
        assert cache.store(key, {}, bytes(1000))
        used = time.time() - 1000 + age
        os.utime(folder / f"{key}.kernel", (used, used))
    assert cache.load(keys[0]) == ({}, bytes(1000))  # used just now
    size = cache.info()["bytes"] // 6
    monkeypatch.setattr(cache, "LIMIT", 4 * size)
    cache.store("f" * 64, {}, bytes(1000))
    left = {path.stem for path in folder.glob("*.kernel")}
    assert left == {keys[0], keys[4], keys[5], "f" * 64}


def test_what_killed_processes_leave_goes(folder):
    cache.store("a" * 64, {}, b"")
    for name, age in ((".young.tmp", 10), (".old.tmp", 10_000)):
        path = folder / name
        path.write_bytes(b"half")
        used = time.time() - age
        os.utime(path, (used, used))
    cache.store("b" * 64, {}, b"")
    assert sorted(p.name for p in folder.glob(".*")) == [".young.tmp"]


def test_info_and_clear(folder):
    assert cache.info() == {"path": str(folder), "kernels": 0, "bytes": 0, "limit": cache.LIMIT, "disabled": ""}
    assert cache.clear() == 0
    again()
    found = cache.info()
    assert (found["kernels"], found["bytes"]) == (1, only_file(folder).stat().st_size)
    note = folder / "mine.txt"
    note.write_text("not a kernel")
    assert cache.clear() == 1
    assert list(folder.iterdir()) == [note]
