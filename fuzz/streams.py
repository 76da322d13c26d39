"""Streams of states with a history: runs that are killed, whose writes fail, whose files are damaged or changed, that are asked for another
computation; and the same stream again.

After any history the result is that of one plain call, bit for bit, or there is one error of ours that names a file, a row or an argument;
where nothing but deaths and failing writes happened, it is the result. No file of the user's is lost.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.cli import main
from coadjoint.errors import CoadjointError
from coadjoint.scale import store
from coadjoint.scale.task import Task, fields

from ._isolated import Slow

LONGEST = 30.0
"""Seconds of the clock for one run of a stream in a process of its own."""
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "inverse_dynamics": ("q", "v", "a"),
    "forward_dynamics": ("q", "v", "tau"),
    "mass_matrix": ("q",),
    "bias_force": ("q", "v"),
    "kinetic_energy": ("q", "v"),
    "pose": ("q",),
}
"""Functions, and the arrays that they take."""
LOST = ("notes.txt", "x.partial", ".out.zarr.1.part")
"""Files of the user's beside the output and within it."""


@cache
def robots() -> list[cj.Robot]:
    arm, cart = cj.load("planar2r"), cj.load("cartpole")
    heavy = arm.with_inertia(arm.link_names[0], mass=1.7, inertia=0.3)
    return [arm, heavy, cart, cj.load("floating_body")]


@cache
def heavier(robot: cj.Robot) -> cj.Robot:
    return robot.with_inertia(robot.link_names[-1], mass=9.0, inertia=1.0)


class Source:
    """States in memory, which may be wrong from some row on."""

    def __init__(self, arrays: dict[str, np.ndarray], fault: str, r: random.Random) -> None:
        self.arrays, self.fault, self.identity = arrays, fault, "states"
        self.rows = len(next(iter(arrays.values())))
        self.at = r.randrange(self.rows)

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]:
        found = {name: x[start:stop] for name, x in self.arrays.items()}
        if self.fault and start <= self.at < stop:
            name = sorted(found)[self.at % len(found)]
            x = found[name]
            found[name] = {
                "short": x[:-1],
                "long": np.concatenate([x, x]),
                "wide": np.concatenate([x, x], axis=1),
                "text": x.astype(str),
                "complex": x + 1j,
                "nothing": None,
                "single": x.astype(np.float32),
            }[self.fault]
        return found


class Case:
    """One stream in a folder."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.r, self.folder = random.Random(seed), folder
        rng = np.random.default_rng(seed)
        self.robot = self.r.choice(robots())
        self.name = self.r.choice(list(FUNCTIONS))
        self.needs, self.fn = FUNCTIONS[self.name], getattr(cj, self.name)
        self.options: dict[str, Any] = {"frame": self.robot.link_names[-1]} if self.name == "pose" else {}
        n = self.r.choice([1, 2, 7, 40, 101, 200])
        widths = {what: self.robot.nq if what == "q" else self.robot.nv for what in self.needs}
        self.arrays = {what: rng.normal(size=(n, width)) for what, width in widths.items()}
        self.arrays["q"] = self.robot.random(rng, n)
        self.chunk: int | None = self.r.choice([1, 3, 16, 64, 100, 10**9, None]) if n > 20 else self.r.choice([1, 3, None])
        if n > 60 and self.chunk == 1:
            self.chunk = 5
        self.reduce = np.sum if self.r.random() < 0.15 else None
        self.kind = self.r.choice(["npy", "npy", "zarr", "parquet", "parquet", "memory"])
        self.fault = (
            self.r.choice(["short", "long", "wide", "text", "complex", "nothing", "single"]) if self.r.random() < 0.3 else ""
        )
        self.out, self.single = folder / "out.zarr", False
        self.source = self._source()

    def _source(self) -> Any:
        path, r = self.folder / f"states.{self.kind}", self.r
        n = len(self.arrays["q"])
        if self.kind == "memory":
            self.single = self.fault == "single"
            return Source(self.arrays, self.fault, r)
        if self.kind == "npy":
            table = np.concatenate([self.arrays[x] for x in self.needs], axis=1)
            np.save(path, r.choice([np.ascontiguousarray, np.asfortranarray])(table))
        elif self.kind == "zarr":
            import zarr

            group = zarr.create_group(str(path))
            for name, x in self.arrays.items():
                group.create_array(name, data=x, chunks=(r.randint(1, n), x.shape[1]), compressors=r.choice(["auto", None]))
        else:
            import pyarrow
            import pyarrow.parquet

            columns = {f"{name}{k + 1}": x[:, k] for name, x in self.arrays.items() for k in range(x.shape[1])}
            columns["more"] = np.zeros(n)
            pyarrow.parquet.write_table(
                pyarrow.table(columns), path, row_group_size=r.randint(1, n), compression=r.choice(["NONE", "snappy"])
            )
        self.fault = ""
        return path

    def call(self, **other: Any) -> np.ndarray:
        """The stream: its result, all of it."""
        given = {
            "fn": self.fn,
            "robot": self.robot,
            "source": self.source,
            "out": self.out,
            "chunk": self.chunk,
            "reduce": self.reduce,
        }
        given |= other
        found = cj.scale.stream(**given, **(self.options | {"threads": self.r.choice([1, None])}))
        return found[other.get("names", (self.name,))[0]][:]

    def command(self) -> np.ndarray:
        """The same by the command line, with chunks of its own size."""
        quantity = "a" if self.name == "forward_dynamics" else "tau"
        words = ["dynamics", "--states", str(self.source), "--out", str(self.out)]
        path = self.folder / "robot.json"
        cj.save(self.robot, path)
        with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            code = main([words[0], str(path), *words[1:], *(["--forward"] if quantity == "a" else [])])
        if code:
            raise CoadjointError("the command told an error")
        import zarr

        return zarr.open_group(str(self.out), mode="r")[quantity][:]

    def expected(self) -> np.ndarray:
        """The result of one plain call with the states that stand in the files now."""
        arrays = [self.arrays[x] for x in self.needs]
        if self.single:
            arrays = [x.copy() for x in arrays]
            source = self.source
            k = sorted(self.arrays)[source.at % len(self.arrays)]
            chunk = min(self.chunk or 10**9, source.rows)
            start = source.at // chunk * chunk
            x = arrays[self.needs.index(k)]
            x[start : start + chunk] = x[start : start + chunk].astype(np.float32)
        whole = fields(Task(self.fn, self.robot, self.needs, self.options, alone=True)(*arrays))[0]
        if self.reduce is None:
            return whole
        chunk = min(self.chunk or 10**9, len(whole))
        return np.array([self.reduce(whole[k : k + chunk], axis=0) for k in range(0, len(whole), chunk)])


# --- what happens


def _child(work: Callable[[], Any], kill_after: float | None = None) -> str:
    """The outcome of work in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "nothing"
        try:
            os.close(read)
            signal.alarm(int(LONGEST))
            work()
            said = "a result"
        except CoadjointError as error:
            said = "refused" if str(error).strip() else "an empty error"
        except (KeyboardInterrupt, MemoryError):
            said = "interrupted"
        except BaseException as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
        finally:
            os.write(write, said.encode("utf-8", "replace"))
            os._exit(0)
    os.close(write)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    said = os.read(read, 400).decode("utf-8", "replace")
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return said or ("killed" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}")
    return said


def _raised(error: BaseException) -> Callable[[], None]:
    def fault() -> None:
        raise error

    return fault


FAULTS: dict[str, Callable[[], None]] = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "no space": _raised(OSError(28, "No space left on device")),
    "no permission": _raised(PermissionError(13, "Permission denied")),
    "interrupted": _raised(KeyboardInterrupt()),
    "no memory": _raised(MemoryError()),
}


class _Half:
    """A file of which only a part is written when the fault comes."""

    def __init__(self, file: Any, fault: Callable[[], None], part: float) -> None:
        self.file, self.fault, self.part = file, fault, part

    def __enter__(self) -> _Half:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> None:
        self.file.write(data[: int(self.part * len(data))])
        self.file.flush()
        self.fault()


def _faulty(case: Case) -> str:
    """A run in which one call that touches a file fails, or is the last of the process."""
    r = case.r
    kind, at, part = r.choice(list(FAULTS)), r.randint(1, 40), r.random()
    fault, interrupted = FAULTS[kind], kind == "interrupted"  # which only the main thread is
    half = r.random() < 0.4
    count = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == at and (threading.current_thread() is threading.main_thread() or not interrupted):
                if half and function is open:
                    return _Half(open(*args, **options), fault, part)
                fault()
            return function(*args, **options)

        return run

    def work() -> None:
        store.open = counted(open)  # type: ignore[attr-defined]
        for name in ("replace", "rename", "mkdir", "unlink"):
            setattr(os, name, counted(getattr(os, name)))
        case.call()

    return _child(work)


def _killed(case: Case) -> str:
    return _child(case.call, kill_after=case.r.uniform(0.0, 0.1))


def _another(case: Case) -> str:
    """Another computation with the same output: an error, unless the output is not there."""
    if not case.out.exists():
        return "nothing"
    other: dict[str, Any] = case.r.choice(
        [
            {"robot": heavier(case.robot)},
            {"names": ("x",)},
            {"names": ("done",)},
            {"names": "x"},
            {"reduce": np.max},
            {"chunk": 4},
            {"chunk": True},
            {"chunk": -1},
            {"source": case.folder / "none.npy"},
            {"source": 5},
            {"out": case.folder},
            {"scheduler": 5},
            {"reduce": 5},
            {"fn": cj.gravity_force},
        ]
    )
    if other == {"chunk": 4} and (case.chunk == 4 or len(case.arrays["q"]) <= 4):
        return "nothing"
    if "fn" in other and case.name == "pose":
        return "nothing"
    said = _child(lambda: case.call(**other))
    return "a computation that was begun otherwise was taken" if said == "a result" else said


def _files(case: Case) -> list[Path]:
    own = {case.out / name for name in LOST}
    return sorted(x for x in case.out.rglob("*") if x.is_file() and x not in own) if case.out.exists() else []


def _damaged(case: Case) -> str:
    """A file of the output is damaged."""
    if not (files := _files(case)):
        return "nothing"
    r = case.r
    described = [x for x in files if x.name == "zarr.json"]
    file = r.choice(described if described and r.random() < 0.2 else files)
    data = file.read_bytes()
    how = r.choice(["flip", "flip", "cut", "empty", "gone", "more", "folder", "zeros"])
    if how == "flip" and data:
        k = r.randrange(len(data))
        file.write_bytes(data[:k] + bytes([data[k] ^ (1 << r.randrange(8))]) + data[k + 1 :])
    elif how == "cut":
        file.write_bytes(data[: r.randrange(len(data) + 1)])
    elif how == "more":
        file.write_bytes(data + b"more")
    elif how == "zeros":
        file.write_bytes(bytes(len(data)))
    elif how == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
        if how == "folder":
            file.mkdir()
    return "damaged description" if file.name == "zarr.json" or how == "folder" else "damaged"


def _changed(case: Case) -> str:
    """Numbers of the input are changed where its size and time stay."""
    if case.kind == "npy":
        before, array = os.stat(case.source), np.load(case.source)
        k = case.r.randrange(len(array))
        array[k] = np.nextafter(array[k], 9.0)
        np.save(case.source, array)
        os.utime(case.source, ns=(before.st_atime_ns, before.st_mtime_ns))
        ends = np.cumsum([case.arrays[x].shape[1] for x in case.needs])[:-1]
        case.arrays = dict(zip(case.needs, np.split(array, ends, axis=1), strict=True))
        return "changed input"
    if case.kind == "memory":
        return "nothing"
    files = [x for x in case.source.rglob("*") if x.is_file()] if case.source.is_dir() else [case.source]
    file = case.r.choice(files)
    data = bytearray(file.read_bytes())
    if not data:
        return "nothing"
    before = os.stat(file)
    how = case.r.choice(["flip", "cut", "touch"])
    if how == "flip":
        data[case.r.randrange(len(data))] ^= 1 << case.r.randrange(8)
    file.write_bytes(data[: case.r.randrange(len(data))] if how == "cut" else data)
    if how != "touch":
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return "damaged input"


STEPS: list[tuple[Callable[[Case], str], int]] = [(_faulty, 5), (_killed, 3), (_another, 3), (_damaged, 4), (_changed, 1)]
FINE = (
    "a result",
    "refused",
    "interrupted",
    "killed",
    "nothing",
    "damaged",
    "damaged description",
    "changed input",
    "damaged input",
)


def _beside(case: Case) -> list[Path]:
    """The user's files: beside the output, and within it if it is there."""
    folders = [case.folder] + ([case.out] if case.out.is_dir() else [])
    files = [folder / name for folder in folders for name in LOST]
    for file in files:
        file.write_text("mine")
    return files


def _history(case: Case) -> str:
    """What came of a stream with a history."""
    mine, met = _beside(case), set()
    steps, weights = zip(*STEPS, strict=True)
    for step in case.r.choices(steps, weights, k=case.r.randint(0, 4)):
        said = step(case)
        mine = sorted({*mine, *_beside(case)})
        if said not in FINE:
            return f"FAILED: {step.__name__}: {said}"
        met.add(said)
    commanded = case.kind in ("npy", "parquet") and case.name in ("inverse_dynamics", "forward_dynamics") and not case.out.exists()
    found: list[np.ndarray] = []
    try:
        with np.errstate(all="ignore"):
            if commanded and case.reduce is None and case.r.random() < 0.3:
                found.append(case.command())
            else:
                found.append(case.call())
    except CoadjointError as error:
        told = str(error)
        if not told or len(told) > 1200:
            return f"FAILED: an error of {len(told)} characters"
        allowed = met & {"damaged description", "changed input", "damaged input"} or case.fault
        if not allowed:
            return f"FAILED: refused after {sorted(met)}: {told[:200]}"
    except Exception as error:
        return f"FAILED: {type(error).__name__} after {sorted(met)} with {case.kind}, {case.fault}: {' '.join(str(error).split())[:200]}"
    if lost := [x.name for x in mine if not x.is_file() or x.read_text() != "mine"]:
        return f"FAILED: lost {lost}"
    if not found:
        return "refused"
    if case.fault and not case.single:
        return f"FAILED: a source with {case.fault} arrays gave a result"
    if "damaged input" in met and not _readable(case):
        return "FAILED: a result of an input that cannot be read"
    if not np.array_equal(found[0], case.expected(), equal_nan=True):
        return f"FAILED: wrong numbers after {sorted(met)} with {case.kind}, {case.fault}"
    return "right"


def _readable(case: Case) -> bool:
    """Whether a damaged input can still be read; what stands in it now is what is expected."""
    from coadjoint.scale.sources import open_source

    try:
        source = open_source(case.source, case.robot, case.needs)
        case.arrays = {name: x.copy() for name, x in source.read(0, source.rows).items()}
    except CoadjointError:
        return False
    return True


def run(seed: int) -> dict[str, int]:
    """The outcome of one seed."""
    folder = Path(tempfile.mkdtemp(prefix="streams"))
    try:
        outcome = _history(Case(seed, folder))
    except Slow:
        raise
    except Exception as error:
        outcome = f"FAILED: the fuzzer: {type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if outcome.startswith("FAILED"):
        print(f"seed {seed}: {outcome}", flush=True)
    return {outcome: 1}
