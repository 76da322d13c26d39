"""Writes `src/coadjoint/__init__.pyi`: the public names with their types, kernels with `out=` and `threads=`.

A kernel is two overloads: NumPy arrays and lists of numbers give NumPy arrays, arrays of other libraries give theirs. All other names are
imported from where they are defined. `test_typing.py` keeps the file true; run this one to renew it.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import coadjoint as cj
from coadjoint.kernel.dispatch import Kernel

STUB = Path(cj.__file__).with_name("__init__.pyi")

HEAD = """# Written by tests/stub_of_the_api.py from the functions themselves.

from typing import Any, overload

import numpy as np

from .arrays import ArrayLike, Numbers
"""


def stub() -> str:
    """The text of the stub."""
    imports: list[str] = []
    kernels: list[str] = []
    for name in sorted({*cj.__all__, *cj._MODULES}):
        thing = getattr(cj, name)
        found = getattr(thing, "kernel", None)
        if isinstance(thing, ModuleType):
            home = thing.__name__.removeprefix("coadjoint").rpartition(".")[0] or "."
            imports.append(f"from {home} import {name} as {name}")
        elif isinstance(found, Kernel):
            kernels += [_kernel(name, found, "Numbers", True), _kernel(name, found, "ArrayLike", False)]
        else:
            imports.append(f"from .{thing.__module__.removeprefix('coadjoint.')} import {thing.__name__} as {name}")
    names = "".join(f'    "{name}",\n' for name in cj.__all__)
    return "\n".join([HEAD + "\n".join(sorted(imports)), "", "__version__: str", *kernels, f"__all__ = [\n{names}]\n"])


def _kernel(name: str, kernel: Kernel, arrays: str, numpy: bool) -> str:
    lines = ["    robot: Robot,"]
    for p in kernel.parameters:
        kind = p.annotation if p.name not in kernel.cores else arrays + (" | None" if p.default is None else "")
        lines.append(f"    {p.name}: {kind}{'' if p.default is inspect.Parameter.empty else f' = {p.default!r}'},")
    several = len(kernel.returns)
    one = "np.ndarray" if several == 1 else f"tuple[{', '.join(['np.ndarray'] * several)}]"
    lines += ["    *,", f"    out: {one} | None = None,", "    threads: int | None = None,"]
    result = one if numpy else "Any" if several == 1 else f"tuple[{', '.join(['Any'] * several)}]"
    return "\n".join(["@overload", f"def {name}(", *lines, f") -> {result}: ..."])


if __name__ == "__main__":
    STUB.write_text(stub())
