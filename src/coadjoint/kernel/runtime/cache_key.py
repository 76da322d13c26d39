"""The things that a cached kernel depends on besides its graph: the content of this library's code, LLVM, and the processor."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..graph import Graph
from . import STARTED


@functools.cache
def surroundings() -> str:
    """A digest of all that decides which code a graph becomes here."""
    import llvmlite

    digest = hashlib.sha256()  # which processors compute themselves
    parts = [llvmlite.__version__, np.__version__, platform.python_version(), *_processor()]
    for part in parts:
        digest.update(part.encode() + b"\0")
    for name, content in _sources():
        digest.update(f"{name} {len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _sources() -> Iterator[tuple[str, bytes]]:
    """(name, content) of every file of this library that holds code: which function a name stands for is decided in all of them."""
    root = str(Path(__file__).parents[2])
    try:
        yield from _files(root) if os.path.isdir(root) else _modules([root], __name__.partition(".")[0])
    except (ImportError, OSError, AttributeError):  # nothing that can be read: kernels of this process are its own
        yield "unknown", os.urandom(16)


def _files(folder: str) -> Iterator[tuple[str, bytes]]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name.endswith((".py", ".pyc")):
            with open(entry.path, "rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_ctime > STARTED:  # not what was imported: this process keeps to itself
                    yield "changed", os.urandom(16)
                yield entry.name, file.read()
        elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
            yield entry.name, b""
            yield from _files(entry.path)


def _modules(paths: list[str], package: str) -> Iterator[tuple[str, bytes]]:
    """The modules of a library in an archive."""
    import pkgutil

    for found in sorted(pkgutil.iter_modules(paths, package + "."), key=lambda x: x.name):
        loader: Any = found.module_finder.find_spec(found.name, None).loader  # type: ignore[union-attr]
        yield found.name, loader.get_data(loader.get_filename(found.name))
        if found.ispkg:
            yield from _modules([os.path.join(path, found.name.rpartition(".")[2]) for path in paths], found.name)


def _processor() -> list[str]:
    """The processor's type and features. Linux tells them without LLVM, whose import takes longer than all the rest."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            first = file.read(8192).split("\n\n")[0]
    except OSError:
        first = ""
    telling = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU implementer", "CPU part", "Features")
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in telling]
    if any(line.startswith(("flags", "Features")) for line in lines):
        return [platform.machine(), platform.system(), *lines]
    from .target import host

    return [platform.machine(), platform.system(), repr(host())]


def of_graph(graph: Graph) -> str:
    """A digest of a graph's content."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (
        (graph.name, graph.input_names, graph.input_shapes, graph.outputs, graph.output_shapes),
        tuple(graph.op),
        tuple(graph.args),
        tuple(graph.value),
    ):
        digest.update(repr(part).encode() + b"\0")
    return digest.hexdigest()


def key(content: str, **settings: Any) -> str:
    """The name of a kernel in the cache."""
    digest = hashlib.blake2b(digest_size=32)
    digest.update(f"{surroundings()}|{sorted(settings.items())}|{content}".encode())
    return digest.hexdigest()
