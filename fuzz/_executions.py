"""A graph in its several executions, each compared with the evaluation of the graph as traced."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coadjoint.errors import KernelWarning
from coadjoint.kernel import export, selftest
from coadjoint.kernel.graph import Graph
from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.runtime import native

SLACK = 1e-9
"""Relative to the largest entry: functions as written round otherwise than their graphs, which know structural zeros."""


def differs(trial: selftest.Trial, results: Sequence[np.ndarray], slack: float = 0.0) -> str:
    """What is wrong about the results of an execution; empty if nothing."""
    shaped = [np.broadcast_to(np.asarray(x, dtype=float), y.shape) for x, y in zip(results, trial.expected, strict=True)]
    if slack:
        for x, y in zip(shaped, trial.expected, strict=True):
            with np.errstate(all="ignore"):
                if not (np.abs(x - y) <= slack * (1.0 + np.abs(y).max(initial=0.0))).all():
                    return trial.described(shaped)
        return ""
    return trial.described(shaped)


def simplified(graph: Graph, trial: selftest.Trial) -> str:
    """The simplified graph, evaluated."""
    return differs(trial, evaluate(graph, *trial.inputs))


def natively(graph: Graph, trial: selftest.Trial) -> str:
    """Machine code: states together, and one by one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelWarning)
        try:
            f = native.build(graph)
        except KernelWarning as warning:
            return str(warning)
    together = f(*trial.inputs)
    alone = [f(*(x[k] for x in trial.inputs)) for k in range(len(trial.inputs[0]))]
    several = isinstance(together, tuple)
    by_one = [np.stack([np.asarray(x[k]) for x in alone]) for k in range(len(graph.outputs))] if several else [np.stack(alone)]
    return differs(trial, together if several else (together,)) or differs(trial, by_one)


@functools.cache
def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def in_c(graph: Graph, trial: selftest.Trial) -> str:
    """Exported C."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "f.c").write_text(export.c(graph))
        flags = ["-std=c99", "-O0", "-shared", "-fPIC", "f.c", "-o", "f.so", "-lm"]
        subprocess.run([str(compiler()), *flags], check=True, cwd=folder, capture_output=True)
        function = ctypes.CDLL(str(Path(folder, "f.so")))[graph.name]
        results = [np.zeros_like(x) for x in trial.expected]
        for k in range(len(trial.inputs[0])):
            arrays = [np.ascontiguousarray(x[k]) for x in trial.inputs] + [x[k : k + 1] for x in results]
            function(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
    return differs(trial, results)
