"""Plain text for the terminal: aligned tables, numbers, progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..words import printable


def table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    """Rows of text in columns two spaces apart, each aligned left (l) or right (r); control characters are escaped."""
    cells = [[printable(text) for text in row] for row in (header, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]

    def pad(text: str, k: int) -> str:
        return text.ljust(widths[k]) if align[k] == "l" else text.rjust(widths[k])

    return "\n".join("  ".join(pad(text, k) for k, text in enumerate(row)).rstrip() for row in cells)


def number(x: Any) -> str:
    """x with four digits; "-" for None and infinity."""
    return "-" if x is None or not np.isfinite(x) else f"{x:.4g}"


def vector(x: Any) -> str:
    """(x, y, z), four digits each; entries that are rounding errors relative to the largest are 0."""
    x = np.asarray(x, dtype=float)
    return "(" + ", ".join(f"{y:.4g}" for y in np.where(np.abs(x) > 1e-12 * np.abs(x).max(), x, 0.0)) + ")"


class Progress:
    """Progress of a long job on stderr: silent in its first second, then one line that is overwritten, or in a log file one line
    every 5 s.
    """

    def __init__(self, label: str) -> None:
        self.label, self.start, self.terminal = label, time.monotonic(), sys.stderr.isatty()
        self.next, self.shown = self.start + 1.0, False

    def __call__(self, part: float) -> None:
        now = time.monotonic()
        if now < self.next or part >= 1.0:
            return
        self.next, self.shown = now + (0.1 if self.terminal else 5.0), True
        left = (now - self.start) * (1 - part) / part if part > 0 else float("inf")
        text = f"{self.label} {100 * part:3.0f} %" + (f", {left:.0f} s left" if np.isfinite(left) else "")
        print(f"\r{text:60}" if self.terminal else text, end="" if self.terminal else "\n", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown and self.terminal:
            print(f"\r{'':60}\r", end="", file=sys.stderr, flush=True)
