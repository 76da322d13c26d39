"""Interleaved timing: in every round each contender is measured once, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from timeit import Timer

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


Contender = tuple[Callable[[], object] | Timer, int]
"""What is timed, and how many evaluations a call of it makes. A `Timer` holds a statement: what takes a fraction of a microsecond
is not to be measured with a function call around it."""


def measure(
    contenders: dict[str, Contender], rounds: int = 15, least: float = 4e-3, clock: Callable[[], float] = time.process_time
) -> dict[str, Timing]:
    """Time each contender, by name; by the processor's time, of all threads, which other work on the machine disturbs least."""
    timers = {name: (fn if isinstance(fn, Timer) else Timer(fn), evaluations) for name, (fn, evaluations) in contenders.items()}
    for timer, _ in timers.values():
        timer.timer = clock
    loops = {}
    for name, (timer, _) in timers.items():
        timer.timeit(1)
        loops[name] = max(1, int(least / max(timer.timeit(3) / 3, 1e-8)))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, (timer, evaluations) in timers.items():
                n = loops[name]
                seconds[name].append(timer.timeit(n) / (n * evaluations))
    finally:
        gc.enable()
    return {name: Timing(name, np.array(values)) for name, values in seconds.items()}
