"""What a cached kernel depends on besides its graph: this library's code generator, LLVM, and the processor."""

from __future__ import annotations

import functools
import hashlib
import platform
from pathlib import Path
from typing import Any

import numpy as np

from ..._version import __version__
from ..graph import Graph


@functools.cache
def surroundings() -> str:
    """A digest of all that decides which code a graph becomes here."""
    import llvmlite

    digest = hashlib.blake2b(digest_size=16)
    parts = [__version__, llvmlite.__version__, np.__version__, platform.python_version(), *_processor()]
    for part in parts:
        digest.update(part.encode() + b"\0")
    for path in _sources():
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources() -> list[Path]:
    """All of this package: what a graph becomes is decided in most of its files."""
    return sorted(Path(__file__).parents[1].rglob("*.py"))


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
