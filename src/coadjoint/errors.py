"""The errors of the library. Each message names what is wrong, its value, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from .words import LONGEST, cut, short


class CoadjointError(ValueError):
    """Every error that bad input to this library raises."""


class ShapeError(CoadjointError):
    """An array has the wrong shape, or batch axes that do not broadcast."""


class UnknownNameError(CoadjointError, KeyError):
    """A joint, link, frame or bundled robot of that name does not exist."""

    def __str__(self) -> str:  # KeyError would show the message quoted
        return str(self.args[0])


class UnknownKeywordError(CoadjointError, TypeError):
    """A function was given a keyword that it does not take; the message suggests the one that is meant."""


class ModelError(CoadjointError):
    """The mechanism cannot exist: its links form a cycle, a name is used twice, or an inertia is not physical."""


class ReadError(CoadjointError):
    """A robot description cannot be read; the message names file, line, element and what is expected."""


class MissingPackageError(CoadjointError, ImportError):
    """A function needs a package that is not installed; the message gives the command that installs it."""


class ModelWarning(UserWarning):
    """A robot description and `Robot` cannot represent the same things; the message names what was lost or assumed."""


class LogWarning(UserWarning):
    """A log seems to be in other units, or to have joints or signs swapped; the message says which and what to do."""


class KernelWarning(UserWarning):
    """A compiled kernel disagrees with its source and is not used; the message names a file for a bug report."""


class SingularMassMatrixError(CoadjointError):
    """The mass matrix is singular: some motion of the robot moves no mass."""


class TraceError(CoadjointError, TypeError):
    """A traced function branched on, or converted, the value of a symbol, which has none while tracing."""


def nearest(name: object, known: Iterable[str]) -> str:
    """The known name that is most similar to this one; "" if none is similar, or if it is too long to compare quickly."""
    if not isinstance(name, str) or len(name) > LONGEST:
        return ""
    return next(iter(difflib.get_close_matches(name, [x for x in known if len(x) <= LONGEST], n=1)), "")


def arrows(names: Sequence[str], most: int = 12) -> str:
    """The names joined by arrows; if there are many, the first and the last ones."""
    shown = [*names[: most // 2], f"… ({len(names)} in all) …", *names[-most // 2 :]] if len(names) > most else names
    return " → ".join(cut(x) for x in shown)


def unknown(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """The error for an unknown name: it lists the known names and suggests the most similar one."""
    names = list(known)
    near = nearest(name, names)
    hint = f" Did you mean {near!r}?" if near else ""
    listing = ", ".join(cut(x) for x in names[:40]) + (f", … ({len(names)} in all)" if len(names) > 40 else "")
    known_names = f"Expected one of: {listing}." if names else "There are none."
    return UnknownNameError(f"no {kind} is named {short(name)}.{hint} {known_names}")
