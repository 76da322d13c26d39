"""The Python expression that loads a robot, for programs that a page offers."""

from __future__ import annotations


def source_of(name: str, base: str = "fixed", fixed_joints: str = "merge") -> str:
    """`cj.load(…)` with the options that are not the default."""
    options = [repr(str(name))]
    options += [f"base={base!r}"] if base != "fixed" else []
    options += [f"fixed_joints={fixed_joints!r}"] if fixed_joints != "merge" else []
    return f"cj.load({', '.join(options)})"
