"""Tables as text: any delimiter, decimal points or commas, names in the first line, compressed or not."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import ReadError
from ..words import cut, short
from .table_readers import ENDLESS, LARGEST, Columns, Report, open_table

LONGEST_LINE = 16 * 2**20
"""The most characters of a line of text."""

EMPTY = {"", "na", "n/a", "nan", "null", "none", "-"}
"""Texts of cells without a number, in small letters."""

_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


class Dialect(NamedTuple):
    """The delimiter and number format of a text."""

    delimiter: str | None
    """None: any white space."""
    decimal: str


class Csv(Columns):
    """Numbers below a line of names. `names`: the names of the columns, where the file has no line of them."""

    def __init__(self, path: Path, names: list[str] | None = None) -> None:
        self.path, self.largest = path, LARGEST
        start = list(islice(self._lines(), 64))
        if not start:
            raise ReadError(f"{path}: the file is empty; expected a first line of column names, such as time,q1,v1,a1.")
        at = self._header_at(start)
        number, line = start[at]
        line = line.lstrip("#% \t") if line.lstrip()[:1] in ("#", "%") else line
        self.dialect = _dialect(line, [text for _, text in start[at + 1 :]])
        cells = self._cells(number, line)
        self.skip = at + 1
        if all(_is_number(cell) for cell in cells):
            if names is None:
                raise ReadError(
                    f"{path}: line {number} has numbers; expected a first line of column names, such as time,q1,v1,a1. "
                    "Without one, columns=[…] names them all."
                )
            if len(names) != len(cells):
                raise ReadError(f"{path}: line {number} has {len(cells)} cells; columns= names {len(names)}.")
            self.skip, cells = at, names
        elif names is not None:
            cells = names if len(names) == len(cells) else self._wrong_names(names, cells)
        self._set_header(path, cells)

    def _wrong_names(self, names: list[str], cells: list[str]) -> list[str]:
        raise ReadError(f"{self.path}: columns= names {len(names)} columns; the file has {len(cells)}.")

    def _header_at(self, start: list[tuple[int, str]]) -> int:
        """The line with the names: the first that is no comment, or the comment just before a line of numbers."""
        remarks = [line.lstrip()[:1] in ("#", "%") for _, line in start]
        if not remarks[0]:
            return 0
        at = remarks.index(False) if False in remarks else len(start) - 1
        first = start[at][1]
        numbers = all(_is_number(cell.replace(",", ".")) for cell in re.split(r"[;|\s]+|,(?!\d)", first.strip()) if cell)
        return at - 1 if at and (numbers or _is_number(re.split(r"[,;|\s]", first.strip())[0])) else at

    # --- lines

    def _lines(self, report: Report | None = None) -> Iterator[tuple[int, str]]:
        """The lines that are not blank, with their numbers."""
        with open_table(self.path, ENDLESS) as binary:
            size, number, total = os.fstat(binary.fileno()).st_size or 1, 0, 0
            packed: Any = gzip.GzipFile(fileobj=binary) if self.path.suffix.lower() == ".gz" else binary
            try:
                with io.TextIOWrapper(packed, encoding="utf-8-sig") as file:
                    while line := file.readline(LONGEST_LINE + 1):
                        number += 1
                        total += len(line)
                        if len(line) > LONGEST_LINE:
                            raise ReadError(f"{self.path}: line {number} has more than {LONGEST_LINE} characters; not a table.")
                        if total > self.largest:
                            raise ReadError(
                                f"{self.path}: more than {LARGEST / 2**30:.3g} GiB of text, which is the most that is read at once; "
                                "coadjoint.LogChunks(path) reads it in parts."
                            )
                        if report and number % 4096 == 0:
                            report(min(1.0, binary.tell() / size))
                        if not line.isspace():
                            yield number, line
            except UnicodeDecodeError:
                raise ReadError(f"{self.path}: not a text file; expected comma-separated values in UTF-8.") from None
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ReadError(f"{self.path}: the compressed file is damaged: {cut(str(error))}") from None

    def _cells(self, number: int, line: str) -> list[str]:
        """The cells of a line."""
        if line.count('"') % 2:
            raise ReadError(f"{self.path}: line {number}: a quotation mark is not closed.")
        if self.dialect.delimiter is None:
            return [cell.strip('"') for cell in line.split()]
        try:
            return [cell.strip() for cell in next(csv.reader([line.rstrip("\r\n")], delimiter=self.dialect.delimiter))]
        except csv.Error as error:
            raise ReadError(f"{self.path}: line {number}: {error}.") from None

    def _rows(self, report: Report | None) -> Iterator[tuple[int, str]]:
        """The lines below the header, each with as many cells as it: numpy would not notice one too many."""
        delimiter, count = self.dialect.delimiter, len(self.header)
        for number, line in islice(self._lines(report), self.skip, None):
            cells = len(line.split()) if delimiter is None else line.count(delimiter) + 1
            if (cells != count or '"' in line) and len(found := self._cells(number, line)) != count:
                raise ReadError(f"{self.path}: line {number} has {len(found)} cells; the header has {count}.")
            yield number, line

    def blocks(self, rows: int) -> Iterator[dict[str, np.ndarray]]:
        """The columns of numbers, block by block; a cell without a number is NaN."""
        order = self.numeric()
        names = [self.header[k] for k in order]
        whole, self.largest = self.largest, ENDLESS
        try:
            lines = self._rows(None)
            while part := list(islice(lines, rows)):
                try:
                    table = self._loaded((self._plain_line(line) for _, line in part), order, self.dialect.delimiter)
                except ValueError:
                    cleaned = (self._cleaned(number, line, order, frozenset()) for number, line in part)
                    table = self._loaded(cleaned, list(range(len(order))), ";")
                yield dict(zip(names, table.T, strict=True))
        finally:
            self.largest = whole

    # --- numbers

    def numeric(self) -> list[int]:
        """The columns whose first cells are numbers or empty."""
        found = set(range(len(self.header)))
        for number, line in islice(self._rows(None), 16):
            cells = self._cells(number, line)
            found = {k for k in found if _is_number(self._plain(cells[k])) or cells[k].lower() in EMPTY}
        return sorted(found)

    def _plain(self, cell: str) -> str:
        """The cell with a decimal point; where decimals stand after a comma, 1.234 may be a thousand and is left unreadable."""
        if self.dialect.decimal != ",":
            return cell
        return f"({cell})" if "." in cell else cell.replace(",", ".")

    def _plain_line(self, line: str) -> str:
        if self.dialect.decimal == "," and "." in line:
            raise ValueError(line)
        return line.replace(",", ".") if self.dialect.decimal == "," else line

    def _table(self, order: list[int], report: Report | None, optional: frozenset[int] = frozenset()) -> np.ndarray:
        open_table(self.path).close()  # not too large to be read at once
        if next(self._rows(None), None) is None:
            raise ReadError(f"{self.path}: the table has a header but no rows.")
        try:
            return self._loaded((self._plain_line(line) for _, line in self._rows(report)), order, self.dialect.delimiter)
        except ReadError:
            raise
        except ValueError:  # some cell is empty, or no number
            cleaned = (self._cleaned(number, line, order, optional) for number, line in self._rows(report))
            return self._loaded(cleaned, list(range(len(order))), ";")

    @staticmethod
    def _loaded(lines: Iterator[str], order: list[int], delimiter: str | None) -> np.ndarray:
        return np.loadtxt(lines, delimiter=delimiter, usecols=order, ndmin=2, comments=None, quotechar='"')

    def _cleaned(self, number: int, line: str, order: list[int], optional: frozenset[int]) -> str:
        """The wanted cells of a line with NaN where they are empty; what is no number is an error, or NaN where it is optional."""
        cells, kept = self._cells(number, line), []
        for column in order:
            cell = self._plain(cells[column])
            if cell.lower() in EMPTY:
                cell = "nan"
            elif not _is_number(cell):
                if column not in optional:
                    place = f"line {number}, column {short(self.header[column])}"
                    raise ReadError(f"{self.path}: {place}: {short(cells[column])} is not a number.")
                cell = "nan"
            kept.append(cell)
        return ";".join(kept)

    def place(self, row: int, column: int) -> str:
        number, _ = next(islice(self._rows(None), row, None))
        return f"line {number}, column {short(self.header[column])}"

    def empty(self, row: int, column: int) -> bool:
        """True if the cell has no text."""
        return not self._cells(*next(islice(self._rows(None), row, None)))[column]


def _dialect(header: str, rows: list[str]) -> Dialect:
    """The delimiter between cells, and the decimal mark."""
    bare = re.sub(r'"[^"]*"', "", header)
    delimiter = next((x for x in "\t;|" if x in bare.strip("\r\n")), None)
    if delimiter is None and "," in bare:
        delimiter = ","
    if delimiter == ",":
        return Dialect(",", ".")
    if delimiter is None and len(bare.split()) < 2:
        return Dialect(",", ".")  # a single column
    cells = [cell.strip(' "') for row in rows for cell in (row.split(delimiter) if delimiter else row.split())]
    return Dialect(delimiter, "," if any(_COMMA_NUMBER.fullmatch(cell.strip()) for cell in cells) else ".")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and cell.isascii()  # 1_000 is a number for Python and not for numpy
