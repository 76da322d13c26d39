"""A graph in its several executions, each compared with the evaluation of the graph as traced."""

from __future__ import annotations

import atexit
import ctypes
import dataclasses
import functools
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coadjoint.errors import KernelWarning
from coadjoint.kernel import export
from coadjoint.kernel.graph import Graph
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.runtime import native
from coadjoint.kernel.trial import Trial

SLACK = 1e-9
"""Relative to the largest entry: functions as written round otherwise than their graphs, which know structural zeros."""


def differs(trial: Trial, results: Sequence[np.ndarray], slack: float = 0.0) -> str:
    """What is wrong about the results of an execution; empty if nothing."""
    shaped = [np.broadcast_to(np.asarray(x, dtype=float), y.shape) for x, y in zip(results, trial.expected, strict=True)]
    with np.errstate(all="ignore"):
        wider = [x + slack * (1.0 + np.abs(y).max(initial=0.0)) for x, y in zip(trial.allowed, trial.expected, strict=True)]
    return dataclasses.replace(trial, allowed=wider).described(shaped)


def simplified(graph: Graph, trial: Trial) -> str:
    """The simplified graph, evaluated."""
    return differs(trial, evaluate(graph, *trial.inputs))


def proves_itself(graph: Graph, dtype: str) -> str:
    """What the kernel's own test says when it is made; empty if nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelWarning)
        try:
            native.build(graph, dtype)
        except KernelWarning as warning:
            return str(warning)
    return ""


def natively(graph: Graph, trial: Trial) -> str:
    """Machine code: states together, and one by one."""
    wrong = proves_itself(graph, "float64")
    if wrong:
        return wrong
    f = native.build(graph)
    together = f(*trial.inputs)
    alone = [f(*(x[k] for x in trial.inputs)) for k in range(len(trial.inputs[0]))]
    several = isinstance(together, tuple)
    by_one = [np.stack([np.asarray(x[k]) for x in alone]) for k in range(len(graph.outputs))] if several else [np.stack(alone)]
    return differs(trial, together if several else (together,)) or differs(trial, by_one)


@functools.cache
def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def in_c(graph: Graph, trial: Trial) -> str:
    """Exported C."""
    stem = f"f{len(list(_folder().glob('*.so')))}"  # a name of its own: a loaded library is known by its file
    (_folder() / f"{stem}.c").write_text(export.c(graph))
    flags = ["-std=c99", "-O0", "-shared", "-fPIC", f"{stem}.c", "-o", f"{stem}.so", "-lm"]
    subprocess.run([str(compiler()), *flags], check=True, cwd=_folder(), capture_output=True)
    function = ctypes.CDLL(str(_folder() / f"{stem}.so"))[graph.name]
    results = [np.zeros(x.shape) for x in trial.expected]
    for k in range(len(trial.inputs[0])):
        arrays = [np.ascontiguousarray(x[k]) for x in trial.inputs] + [x[k : k + 1] for x in results]
        function(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
    return differs(trial, results)


@functools.cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="coadjoint-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
