"""Interleaved timing: in every round each contender is measured once, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Timing:
    """Seconds per evaluation of one contender, a number for each round."""

    name: str
    seconds: np.ndarray

    @property
    def best(self) -> float:
        return float(self.seconds.min())

    def ratio_to(self, ours: Timing) -> tuple[float, float, float]:
        """How many times slower than ours: best against best, and the lower and upper quartile of the rounds' own ratios.

        What else runs on a machine only ever adds time, and to code that fills the processor more than to code that waits: the
        quickest rounds say what the code takes, the quartiles how much the machine was disturbed.
        """
        low, high = np.percentile(self.seconds / ours.seconds, [25, 75])
        return self.best / ours.best, float(low), float(high)


def measure(contenders: dict[str, tuple[Callable[[], object], int]], rounds: int = 15, least: float = 4e-3) -> dict[str, Timing]:
    """Time each contender: name -> (function, evaluations per call)."""
    loops = {}
    for name, (fn, _) in contenders.items():
        fn()
        start = time.perf_counter()
        fn()
        once = max(time.perf_counter() - start, 1e-8)
        loops[name] = max(1, int(least / once))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, (fn, evaluations) in contenders.items():
                n = loops[name]
                start = time.perf_counter()
                for _ in range(n):
                    fn()
                seconds[name].append((time.perf_counter() - start) / (n * evaluations))
    finally:
        gc.enable()
    return {name: Timing(name, np.array(values)) for name, values in seconds.items()}
