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


class ModelError(CoadjointError):
    """A mechanism that cannot exist: a cycle, a name used twice, an unphysical inertia."""


class ReadError(CoadjointError):
    """A robot description cannot be read; the message names file, line, element and what is expected."""


class MissingPackageError(CoadjointError, ImportError):
    """What was asked for needs a package that is not installed; the message has the command that installs it."""


class ModelWarning(UserWarning):
    """A description holds what a Robot does not, or the other way round; the message names it."""


class LogWarning(UserWarning):
    """A log seems to be in other units, or to have joints or signs swapped; the message says which and what to do."""


class KernelWarning(UserWarning):
    """A compiled kernel does not compute what its source does, and is not used; the message names the file for a report."""


class SingularMassMatrixError(CoadjointError):
    """The mass matrix is singular: some motion of the robot moves no mass."""


class TraceError(CoadjointError, TypeError):
    """A traced function did something that depends on the value of a symbol."""


def nearest(name: object, known: Iterable[str]) -> str:
    """The known name most like this one; "" if none is, or if names are too long to compare quickly."""
    if not isinstance(name, str) or len(name) > LONGEST:
        return ""
    return next(iter(difflib.get_close_matches(name, [x for x in known if len(x) <= LONGEST], n=1)), "")


def arrows(names: Sequence[str], most: int = 12) -> str:
    """Names with arrows between; of many, the first and the last."""
    shown = [*names[: most // 2], f"… ({len(names)} in all) …", *names[-most // 2 :]] if len(names) > most else names
    return " → ".join(cut(x) for x in shown)


def unknown(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """An error that lists what exists and suggests the nearest name."""
    names = list(known)
    near = nearest(name, names)
    hint = f" Did you mean {near!r}?" if near else ""
    listing = ", ".join(cut(x) for x in names[:40]) + (f", … ({len(names)} in all)" if len(names) > 40 else "")
    return UnknownNameError(f"no {kind} is named {short(name)}.{hint} There is: {listing or 'none'}.")
