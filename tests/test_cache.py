"""The cache of compiled kernels: what is kept, what is refused, and that it never costs more than caching."""

from __future__ import annotations

import compileall
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import coadjoint as cj
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.runtime import cache, cache_key, native
from coadjoint.kernel.runtime.folder import Folder
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
    for name, other in (("_processor", lambda: ["another"]), ("_sources", lambda: iter([]))):
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
    def full(*_, **__):
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


def test_the_directory_is_read_again_after_a_part_of_the_limit(folder, monkeypatch):
    """Not for every kernel, which would cost more the more there are; what several processes hold is bounded all the same."""
    limit = 64_000
    monkeypatch.setattr(cache, "LIMIT", limit)
    reads = []
    files = Folder.files
    monkeypatch.setattr(Folder, "files", lambda self: reads.append(self) or files(self))
    rooms = [{} for _ in range(3)]
    for k in range(600):
        monkeypatch.setattr(cache, "_room", rooms[k % 3])  # as in one of three processes
        assert cache.store(f"{k:064x}", {}, bytes(80))
        sizes = [path.stat().st_size for path in folder.glob("*.kernel")]
        assert sum(sizes) <= limit + 3 * (limit // cache.PART + sizes[0])
    assert len(sizes) < 600  # something had to go
    assert len(reads) <= 3 + 600 / (limit // cache.PART / sizes[0])


def test_what_killed_processes_leave_goes(folder, monkeypatch):
    cache.store("a" * 64, {}, b"")
    monkeypatch.setattr(cache, "_room", {})  # as in a new process
    young, old = "." + "1" * 24 + ".tmp", "." + "2" * 24 + ".tmp"
    for name, age in ((young, 10), (old, 10_000)):
        path = folder / name
        path.write_bytes(b"half")
        used = time.time() - age
        os.utime(path, (used, used))
    cache.store("b" * 64, {}, b"")
    assert sorted(p.name for p in folder.glob(".*")) == [young]


def test_info_and_clear(folder, monkeypatch):
    assert cache.info() == {"path": str(folder), "kernels": 0, "bytes": 0, "limit": cache.LIMIT, "disabled": ""}
    assert cache.clear() == 0
    again()
    found = cache.info()
    assert (found["kernels"], found["bytes"]) == (1, only_file(folder).stat().st_size)
    names = ("mine.txt", "thesis.tmp", ".old.tmp", "my.kernel", "f" * 63 + ".kernel", "F" * 64 + ".kernel")
    notes = sorted(folder / name for name in names)
    for note in notes:
        note.write_text("not a kernel")
        os.utime(note, (0, 0))
    monkeypatch.setattr(cache, "_room", {})  # as in a new process
    cache.store("a" * 64, {}, b"")  # prunes
    assert cache.clear() == 2
    assert sorted(folder.iterdir()) == notes


def secret_file():
    return Path(os.environ["XDG_STATE_HOME"]) / "coadjoint" / cache.SECRET


@pytest.fixture
def state(folder, tmp_path, monkeypatch):
    """A place of its own for the secret."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "coadjoint"


@posix
def test_the_secret_is_made_once_and_the_users_alone(state, compiled):
    again()
    first = secret_file().read_bytes()
    assert (len(first), stat.S_IMODE(secret_file().stat().st_mode)) == (32, 0o600)
    assert [p.name for p in state.iterdir()] == [cache.SECRET]
    again()
    build(GRAPH, np.float32)
    assert secret_file().read_bytes() == first


def test_a_kernel_that_another_user_made_is_refused(state, compiled):
    """Whoever can only put files into the folder knows the names and all public keys, but not the secret."""
    again()
    again()
    assert len(compiled) == 1
    secret_file().unlink()
    again()  # as for a user with another secret
    assert len(compiled) == 2
    again()
    assert len(compiled) == 2


@posix
@pytest.mark.parametrize("fault", ["short", "readable", "link", "pipe", "folder"])
def test_a_secret_that_is_none_only_costs_caching(state, compiled, fault, tmp_path):
    again()
    path = secret_file()
    if fault == "short":
        path.write_bytes(b"x")
    elif fault == "readable":
        path.chmod(0o644)
    else:
        path.rename(tmp_path / "elsewhere")
        {"link": lambda: path.symlink_to(tmp_path / "elsewhere"), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[fault]()
    again()
    again()
    assert len(compiled) == 3
    assert cache.info()["disabled"]


def test_no_home_for_the_secret_only_costs_caching(folder, compiled, monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")

    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    again()
    again()
    assert len(compiled) == 2
    assert "XDG_STATE_HOME" in cache.info()["disabled"]


@pytest.mark.parametrize("chosen", ["kernels", "./kernels", "../kernels", "~nobody_of_that_name/kernels"])
def test_only_absolute_paths(chosen, compiled, tmp_path, monkeypatch):
    """A folder that is named from where a program happens to be started may be somebody else's checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COADJOINT_CACHE", chosen)
    again()
    again()
    assert len(compiled) == 2
    assert not list(tmp_path.iterdir())
    assert cache.info()["disabled"]


def test_a_home_that_is_not_absolute_only_costs_caching(folder, compiled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.setenv("USERPROFILE", "relative")
    for chosen in (str(folder), ""):
        monkeypatch.setenv("COADJOINT_CACHE", chosen)
        before = len(compiled)
        again()
        again()
        assert len(compiled) == before + 2
        assert not (tmp_path / "relative").exists()


def test_the_home_directory_by_its_sign(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("COADJOINT_CACHE", "~/kernels")
    assert cache.place() == (tmp_path / "kernels", "")


def test_a_relative_standard_place_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("COADJOINT_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache.place()[0] == tmp_path / ".cache" / "coadjoint"


@posix
def test_links_on_the_way_are_refused(compiled, tmp_path, monkeypatch):
    (tmp_path / "real" / "inner").mkdir(parents=True, mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for path in (tmp_path / "link", tmp_path / "link" / "inner"):
        monkeypatch.setenv("COADJOINT_CACHE", str(path))
        before = len(compiled)
        again()
        again()
        assert len(compiled) == before + 2
        assert "is a link" in cache.info()["disabled"]
    assert not list((tmp_path / "real" / "inner").iterdir())


@posix
def test_every_ancestor_is_checked(compiled, tmp_path, monkeypatch):
    open_to_all = tmp_path / "open"
    (open_to_all / "mine").mkdir(parents=True, mode=0o700)
    open_to_all.chmod(0o777)
    monkeypatch.setenv("COADJOINT_CACHE", str(open_to_all / "mine"))
    again()
    again()
    assert len(compiled) == 2
    assert f"{open_to_all} can be written by others" in cache.info()["disabled"]
    open_to_all.chmod(0o1777)  # nobody else can rename what is mine
    again()
    again()
    assert len(compiled) == 3


@posix
@pytest.mark.parametrize("thing", ["pipe", "folder", "large", "device"])
def test_what_is_no_kernel_is_neither_waited_for_nor_read(folder, compiled, thing, monkeypatch):
    again()
    path = only_file(folder)
    path.unlink()
    if thing == "pipe":
        os.mkfifo(path)
    elif thing == "folder":
        path.mkdir()
    elif thing == "large":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
        path.chmod(0o600)
    elif thing == "device":
        path.symlink_to("/dev/zero")
    again()
    assert len(compiled) == 2


def test_equal_robots_compile_once(compiled, monkeypatch):
    """While one of them lives, also without a cache on disk."""
    monkeypatch.setenv("COADJOINT_CACHE", "off")
    robots = [cj.load("planar2r") for _ in range(5)]
    for robot in robots:
        cj.mass_matrix(robot, np.zeros((3, 2)))
    assert len(compiled) == 1


LIBRARY = Path(cj.__file__).parent


def computed(library: Path, cache: Path) -> str:
    code = "import coadjoint as cj, numpy as np; print(cj.__file__, cj.gravity_force(cj.load('planar2r'), np.ones(2))[0])"
    env = os.environ | {"PYTHONPATH": str(library), "COADJOINT_CACHE": str(cache), "COADJOINT_NATIVE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env, cwd=library.parent)
    assert done.returncode == 0, done.stderr
    file, number = done.stdout.split()
    assert file.startswith(str(library))
    return number


@pytest.mark.parametrize("form", ["files", *(pytest.param(x, marks=pytest.mark.slow) for x in ("bytecode", "archive"))])
def test_two_builds_of_equal_size_and_time_do_not_share_kernels(form, tmp_path):
    """As reproducible images, Nix and containers make them; also where there is only byte code, and in an archive."""
    source = LIBRARY / "dynamics" / "newton_euler.py"
    found = []
    for build_name in ("one", "two"):
        root = tmp_path / build_name
        shutil.copytree(LIBRARY, root / "coadjoint", ignore=shutil.ignore_patterns("__pycache__"))
        if build_name == "two":  # the sign of gravity
            text = source.read_text()
            assert "-robot.gravity" in text
            (root / "coadjoint" / "dynamics" / "newton_euler.py").write_text(text.replace("-robot.gravity", "+robot.gravity"))
        for path in sorted(root.rglob("*.py")):
            os.utime(path, (4e8, 4e8))
        if form == "bytecode":
            assert compileall.compile_dir(root, legacy=True, quiet=1)
            for path in root.rglob("*.py"):
                path.unlink()
            for path in root.rglob("*.pyc"):
                os.utime(path, (4e8, 4e8))
        elif form == "archive":
            shutil.make_archive(str(tmp_path / build_name), "zip", root)
            root = tmp_path / f"{build_name}.zip"
        found.append([computed(root, tmp_path / "cache") for _ in range(2)])
    one, two = found
    assert one[0] == one[1]
    assert two[0] == two[1]
    assert float(one[0]) == -float(two[0]) != 0


def test_files_that_changed_after_import_are_not_trusted(folder, monkeypatch):
    """A process that runs the code of before an upgrade must not leave its kernels to the code of after it."""
    monkeypatch.setattr(cache_key, "STARTED", 0.0)
    cache_key.surroundings.cache_clear()
    first = cache_key.surroundings()
    cache_key.surroundings.cache_clear()
    assert cache_key.surroundings() != first
    monkeypatch.undo()
    cache_key.surroundings.cache_clear()
