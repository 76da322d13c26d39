"""A function of a robot on more states than fit into memory: chunk by chunk from a source to a Zarr group, here or on a cluster.
The memory needed is that of a few chunks. After any crash, the same call continues where it stopped (`store.py`); results do not
depend on which process computed which chunk.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from ..arguments import a_dictionary, a_function_of, a_robot, floats, takes, whole
from ..errors import CoadjointError, MissingPackageError, ReadError
from ..files import as_path
from ..words import short
from .identities import text_of
from .reduction import Reduction
from .sources import FileSource, Source, check_source, import_zarr, open_source
from .store import DONE, checksum, chunks, is_done, missing_chunks, open_store, write_chunk
from .task import Task, check_robot, fields, kernel_of, library_digest, name_of

if TYPE_CHECKING:
    from ..robot.robot import Robot

CHUNK_BYTES = 1 << 25
"""Size of a chunk's inputs and results together, unless the caller chooses."""
AHEAD = 2
"""Tasks submitted per thread of a cluster: one runs, one waits."""
TASK_SECONDS = 0.75
"""Processor time of a task on a cluster: a task gets as many chunks as fit, to keep its overhead small."""
MOST = 64
"""The most chunks of a task."""
RETRIES = 100
"""The number of times that a chunk is retried when its worker dies."""


@takes(robot=a_robot, report=a_function_of("part"))
def stream(
    fn: Callable[..., Any],
    robot: Robot,
    source: str | Path | Source,
    out: str | Path,
    *,
    names: tuple[str, ...] | None = None,
    chunk: int | None = None,
    reduce: Callable[..., np.ndarray] | None = None,
    scheduler: Any = None,
    report: Callable[[float], None] | None = None,
    **options: Any,
) -> Any:
    """The Zarr group `out` with fn(robot, **states, **options) of all states; chunks that exist already are not computed again.

    source: a file (.parquet, .zarr, .npy) or an object as `sources.py` describes. The group has an array for each result, called `names`
    or after the function. reduce, such as numpy.sum: keep only reduce(result, axis=0) of every chunk, a row of real numbers. scheduler:
    the address of a Dask scheduler or a distributed.Client, whose workers must see the files under the same names; without it this
    process computes. report is called with the completed fraction, from 0 to 1. An output that was begun with another robot, function,
    reduction, version or input is refused: where a stream is continued, the states of a file that were used already are read again and
    compared by their checksums; those of another source are taken to be what its identity says.
    """
    check_robot(robot)
    needs = _needs(fn)
    if isinstance(source, str | Path):
        source = open_source(source, robot, needs)
    rows = check_source(source)
    task = Task(fn, robot, needs, options, alone=True)
    empty = _no_states(source, needs)
    sample = [np.asarray(x) for x in fields(task.result(*empty))]
    names = _checked_names(names, _name(fn), len(sample))
    if chunk is None:
        width = sum(int(np.prod(x.shape[1:])) for x in (*empty, *sample))
        chunk = 1 << max(0, int(np.log2(CHUNK_BYTES / (8 * width))))
    if whole(chunk, "chunk") < 1:
        raise CoadjointError(f"chunk is {chunk}; expected how many states to compute at once, 1 or more.")
    kept = None if reduce is None else Reduction(reduce)
    if not (scheduler is None or isinstance(scheduler, str) or hasattr(scheduler, "submit")):
        raise CoadjointError(f"scheduler is {short(scheduler)}; expected the address of one, or a distributed.Client.")
    description = {
        "robot": f"{robot.name} {robot.fingerprint}",
        "function": " ".join(name_of(fn) or (getattr(fn, "__module__", ""), _name(fn))),
        "names": list(names),
        "options": {key: text_of(x, robot) for key, x in sorted(options.items()) if key != "threads"},
        "reduce": "" if kept is None else kept.identity(sample),
        "version": library_digest(),
        "input": source.identity,
        "rows": rows,
        "chunk": min(int(chunk), rows),
    }
    path = as_path(out).absolute()
    arrays = {name: (x.shape[1:], x.dtype) for name, x in zip(names, sample, strict=True)}
    compared = isinstance(source, FileSource)
    open_store(path, description, arrays, reduce is not None, len(needs) if compared else 0)
    shapes = {name: x.shape[1:] for name, x in zip(needs, empty, strict=True)}
    work = Work(task, source, shapes, path, description, names, kept)
    left, inputs = missing_chunks(path, description, arrays)
    if compared:
        for k, checks in inputs.items():
            work.check_input(k, checks)
    total = chunks(description)

    def say(left: int) -> None:
        if report is not None:
            report((total - left) / total)

    say(len(left))
    if scheduler is None:
        if options.get("threads") is None:
            task.options.pop("threads", None)  # as many as the chunk is worth
        for n, k in enumerate(left):
            work(k)
            say(len(left) - n - 1)
    elif left:
        _on_cluster(work, left, scheduler, say)
    if isinstance(source, FileSource):
        source.check_unchanged()
    return import_zarr().open_group(str(path), mode="r")


class Work:
    """The computation of chunks, by index; it is sent to workers. The buffers for results are reused between chunks and tasks:
    fresh memory would be cleared by the operating system each time.
    """

    def __init__(
        self,
        task: Task,
        source: Source,
        shapes: Mapping[str, tuple[int, ...]],
        path: Path,
        description: dict[str, Any],
        names: tuple[str, ...],
        reduce: Reduction | None,
    ) -> None:
        self.task, self.source, self.shapes, self.path, self.description = task, source, shapes, path, description
        self.names, self.reduce = names, reduce
        self.buffers: dict[str, np.ndarray] = {}

    def several(self, chunks: list[int]) -> float:
        """Compute the chunks that are not done yet; the result is the processor time of one, in seconds."""
        if library_digest() != self.description["version"]:
            raise CoadjointError(
                f"a worker has version {library_digest()} of the library and the client {self.description['version']}; install the same."
            )
        begin = time.thread_time()
        left = [k for k in chunks if not is_done(self.path, self.description, k)]
        for k in left:
            self(k)
        return (time.thread_time() - begin) / max(1, len(left))

    def __call__(self, k: int) -> None:
        """Compute one chunk."""
        start, states = self.read(k)
        arrays = list(states.values())
        if "q" in states:
            _check_quaternions(self.task.robot, states["q"], start)
        buffers = self.buffers
        if buffers and len(arrays[0]) == len(buffers[self.names[0]]):
            out = tuple(buffers.values())
            self.task.result(*arrays, out=out if len(out) > 1 else out[0])
        else:
            results = fields(self.task.result(*arrays))
            buffers.update(zip(self.names, map(np.asarray, results), strict=True))
        for x in buffers.values():
            if not np.isfinite(x.sum()):  # quicker than looking at each, which is done only then
                _check_finite(states | {"the result": x}, start)
        found = dict(buffers)
        if self.reduce is not None:
            found = {name: self.reduce(x) for name, x in found.items()}
        checks = b"".join(map(checksum, arrays)) if isinstance(self.source, FileSource) else b""
        write_chunk(self.path, self.description, k, found, self.reduce is not None, checks)

    def read(self, k: int) -> tuple[int, dict[str, np.ndarray]]:
        """The first row of a chunk, and its states as the source gives them, checked."""
        start = k * self.description["chunk"]
        stop = min(start + self.description["chunk"], self.description["rows"])
        found = a_dictionary(self.source.read(start, stop), "what the source gives")
        states = {}
        for name, core in self.shapes.items():
            x = states[name] = floats(found.get(name), name)
            if x.shape != (stop - start, *core):
                raise CoadjointError(
                    f"rows {start + 1} to {stop}: the source gives {name} of shape {x.shape}; expected {(stop - start, *core)}."
                )
        return start, states

    def check_input(self, k: int, checks: bytes) -> None:
        """An error unless the states of a chunk have these checksums."""
        start, states = self.read(k)
        if b"".join(map(checksum, states.values())) != checks:
            rows = f"rows {start + 1} to {start + len(next(iter(states.values())))}"
            raise ReadError(
                f"{rows} of the input are not those from which {self.path} was computed, although size and time of the file are the "
                f"same. Give another output, or remove {self.path} to begin anew."
            )


_RECEIVED = threading.local()


def _compute(pickled: bytes, chunks: list[int]) -> float:
    """Work.several on a worker. Each thread keeps the work it received last, so that robot, source and buffers serve all its tasks."""
    if getattr(_RECEIVED, "pickled", None) != pickled:
        _RECEIVED.__dict__.clear()  # its memory is free before the next is made
        _RECEIVED.work = pickle.loads(pickled)
        _RECEIVED.pickled = pickled
    answer: float = _RECEIVED.work.several(chunks)
    return answer


def _check_finite(arrays: dict[str, np.ndarray], start: int) -> None:
    """Raise an error that names the first row with a number that is not finite."""
    for name, x in arrays.items():
        good = np.isfinite(x.reshape(len(x), -1)).all(axis=1)
        if not good.all():
            raise CoadjointError(
                f"row {start + int(np.argmin(good)) + 1}: {name} is not finite; the state is singular, or its "
                "numbers are wrong or too large."
            )


def _check_quaternions(robot: Robot, q: np.ndarray, start: int) -> None:
    for joint, place in robot.quaternions:
        length = np.linalg.norm(q[:, place], axis=1)
        if np.any(wrong := ~(np.abs(length - 1) < 1e-2)):
            row = int(np.argmax(wrong))
            raise CoadjointError(
                f"row {start + row + 1}: the quaternion (x, y, z, w) of joint {joint!r} has length {length[row]:.4g}; expected 1."
            )


def _on_cluster(work: Work, left: list[int], scheduler: Any, say: Callable[[int], None]) -> None:
    """Compute all chunks on the workers of a cluster, a few at a time; those whose worker died are tried again."""
    try:
        import distributed
        from distributed.protocol.pickle import dumps
    except ImportError:
        raise MissingPackageError('Dask is not installed; install it with: pip install "coadjoint[dask]"') from None
    own = isinstance(scheduler, str)
    try:
        client = distributed.Client(scheduler, set_as_default=False) if own else scheduler
    except (OSError, TimeoutError, ValueError) as error:
        raise CoadjointError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    try:
        remaining, size, run = len(left), 1, uuid4().hex
        pickled = dumps(work)  # once; it passes through the scheduler as bytes
        open_tasks: dict[str, tuple[list[int], int]] = {}

        def submit(chunks: list[int], tries: int = 0) -> Any:
            key = f"coadjoint-{chunks[0]}-{tries}-{run}"
            open_tasks[key] = chunks, tries
            return client.submit(_compute, pickled, chunks, key=key)

        def following() -> list[int]:
            nonlocal left
            some, left = left[:size], left[size:]
            return some

        threads = max(1, sum(client.nthreads().values()))
        running = distributed.as_completed([submit(x) for _ in range(AHEAD * threads) if (x := following())], loop=client.loop)
        for future in running:
            chunks, tries = open_tasks.pop(future.key)
            if future.status != "finished":
                _check_only_killed(future, chunks, tries)
                running.add(submit(chunks, tries + 1))
                continue
            remaining -= len(chunks)
            say(remaining)
            size = max(1, min(MOST, int(TASK_SECONDS / max(future.result(), 1e-6)), len(left) // (2 * threads)))
            while running.count() < AHEAD * max(1, sum(client.nthreads().values())) and (x := following()):
                running.add(submit(x))
    finally:
        if own:
            client.close()


def _check_only_killed(future: Any, chunks: list[int], tries: int) -> None:
    """Raise the error of a task, unless its workers were killed."""
    from distributed import KilledWorker

    error = future.exception() if future.status == "error" else None
    if error is not None and not isinstance(error, KilledWorker):
        raise error
    if tries >= RETRIES:
        raise CoadjointError(
            f"chunks {chunks}: their workers died {tries} times; they may have too little memory: take smaller chunks."
        )


def _needs(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arrays that a function takes for every state."""
    kernel = kernel_of(fn)
    if kernel is None:
        raise CoadjointError(f"{_name(fn)} is not a function of states that can be streamed; give one such as inverse_dynamics.")
    return tuple(kernel.required)


def _no_states(source: Source, needs: tuple[str, ...]) -> list[np.ndarray]:
    first = a_dictionary(source.read(0, 1), "what the source gives")
    if lacking := [name for name in needs if name not in first]:
        raise CoadjointError(f"the source has {', '.join(first) or 'nothing'}; {', '.join(lacking)} is needed too.")
    arrays = [floats(first[name], name) for name in needs]
    for name, x in zip(needs, arrays, strict=True):
        if x.shape[:1] != (1,):
            raise CoadjointError(f"row 1: the source gives {name} of shape {x.shape}; expected (1, …).")
    return [x[:0] for x in arrays]


def _checked_names(given: Any, function: str, count: int) -> tuple[str, ...]:
    """The names of the arrays of results, which are names of folders too."""
    if given is None:
        return (function,) if count == 1 else tuple(f"{function}_{k + 1}" for k in range(count))
    names = tuple(given) if isinstance(given, tuple | list) else ()
    if (
        len(names) != count
        or len(set(names)) < count
        or not all(isinstance(x, str) and x.isidentifier() and x != DONE for x in names)
    ):
        raise CoadjointError(
            f"names is {short(given)}; expected a tuple of {count} different words, one for each result, and none that is {DONE!r}."
        )
    return names


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)
