"""Graphs and plans as text: for `coadjoint.explain`, and for the folder that COADJOINT_DUMP names."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from .graph import Graph

if TYPE_CHECKING:
    from .pipeline import Compilation
    from .schedule.plan import Plan


def graph_text(graph: Graph) -> str:
    """The graph as text, one node per line: t7 = mul t3 t5."""
    lines = [f"{graph.name}({', '.join(f'{n}{list(s)}' for n, s in zip(graph.input_names, graph.input_shapes, strict=True))})"]
    for k, (op, args, value) in enumerate(zip(graph.op, graph.args, graph.value, strict=True)):
        if op == "input":
            shown = f"{graph.input_names[value[0]]}[{value[1]}]"
        else:
            shown = " ".join([op, *(f"t{j}" for j in args), *([] if value is None else [repr(value)])])
        lines.append(f"  t{k} = {shown}")
    for number, (shape, nodes) in enumerate(zip(graph.output_shapes, graph.outputs, strict=True)):
        lines.append(f"  out{number}{list(shape)} = {' '.join(f't{k}' for k in nodes)}")
    return "\n".join(lines) + "\n"


def plan_text(scheme: Plan) -> str:
    """The steps of every chunk, and the slots of values that later chunks read."""
    lines = [
        f"{len(scheme.chunks)} chunks, {scheme.n_slots} slots, {len(scheme.fused)} fused multiply-adds, weight {scheme.weight}"
    ]
    for number, chunk in enumerate(scheme.chunks):
        lines.append(f"chunk {number}: {len(chunk.steps)} steps")
        for step in chunk.steps:
            made = " ".join(f"t{k}" for k in step.defs)
            used = " ".join(f"t{k}" for k in step.uses)
            kept = " ".join(f"t{k}->{chunk.keep[k]}" for k in step.defs if k in chunk.keep)
            lines.append(f"  {step.kind:5} {made} <- {used}" + (f"  keeps {kept}" if kept else ""))
    return "\n".join(lines) + "\n"


def dump(made: Compilation, folder: Path) -> None:
    """Write the graphs, the plan and the LLVM text of a compilation to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{made.graph.name}-{hashlib.blake2b(made.llvm.encode(), digest_size=4).hexdigest()}"
    texts = {"graph": graph_text(made.graph), "plan": plan_text(made.plan), "ll": made.llvm}
    if made.graph.traced is not None:
        texts["traced"] = graph_text(made.graph.traced)
    for kind, text in texts.items():
        (folder / f"{stem}.{kind}").write_text(text, encoding="utf-8")
