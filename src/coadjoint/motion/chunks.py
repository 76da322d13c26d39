"""Logs that are longer than memory: read a part at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import whole
from ..errors import CoadjointError, LogWarning, ReadError
from ..robot.robot import Robot
from ..words import cut, short
from .delimited import Csv
from .logs import Log, read_log
from .table_readers import Parquet
from .tables import open_file

ROWS = 100_000
"""Rows of a text or Parquet file that are read at once."""


class LogChunks:
    """A log in parts, one after the other: iterating over it gives a `Log` for each. It may be gone through once more if its source may."""

    def __init__(
        self,
        source: str | Path | Callable[[], Iterable[Any]] | Iterable[Any],
        robot: Robot | None = None,
        *,
        rows: int = ROWS,
        **reading: Any,
    ) -> None:
        if whole(rows, "rows") < 1:
            raise CoadjointError(f"rows is {rows}; expected 1 or more.")
        self.source, self.robot, self.rows, self.reading = source, robot, rows, reading
        if isinstance(source, Mapping | Log) or hasattr(source, "columns"):
            raise CoadjointError("this log is in memory already: give it to identify, or read_log, as it is.")
        if isinstance(source, str | Path):
            if not isinstance(open_file(source), Csv | Parquet):
                raise CoadjointError(
                    f"{cut(str(source), 300)}: of files, text (.csv, .tsv, .txt, .gz) and Parquet are read in parts."
                )
        elif not callable(source) and not isinstance(source, Iterable):
            raise CoadjointError(
                f"source is {short(source)}; expected a file, logs one after the other, or a function that returns them."
            )

    def __iter__(self) -> Iterator[Log]:
        last, first = -np.inf, True
        for part in self._parts():
            with warnings.catch_warnings():
                if not first:  # what is doubtful is said once
                    warnings.simplefilter("ignore", LogWarning)
                log = read_log(part, self.robot, **self.reading)
            if not log.time[0] > last:
                label = cut(str(self.source), 300) if isinstance(self.source, str | Path) else "the log"
                raise ReadError(f"{label}: a part begins at {log.time[0]:g} s after one that ends at {last:g} s; times must grow.")
            last, first = float(log.time[-1]), False
            yield log

    def _parts(self) -> Iterator[Any]:
        source: Any = self.source
        if not isinstance(source, str | Path):
            yield from source() if callable(source) else source
            return
        reader: Any = open_file(source)
        yield from reader.blocks(self.rows)

    def __repr__(self) -> str:
        name = cut(Path(self.source).name) if isinstance(self.source, str | Path) else "parts"
        return f"<LogChunks of {name}>"
