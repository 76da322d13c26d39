"""Operation counts of traced functions, beside the literature's."""

from __future__ import annotations

import coadjoint as cj
from coadjoint.kernel.graph import Graph


def operations(graph: Graph) -> tuple[int, int, int]:
    """Multiplications, additions (negations are free: they ride on them), and other arithmetic operations."""
    counts = graph.count()
    total = lambda *names: sum(counts.get(name, 0) for name in names)
    return total("mul"), total("add", "sub"), total("div", "sqrt", "sin", "cos")


def literature(n: int) -> tuple[int, int]:
    """Featherstone's count for the inverse dynamics of n links: 130n - 68 multiplications and 101n - 56 additions."""
    return 130 * n - 68, 101 * n - 56


def traced(function: str, robot: cj.Robot) -> Graph:
    """The graph that is compiled for a plain call."""
    from coadjoint.kernel.pipeline import traced as graph_of

    kernel = getattr(cj, function).kernel
    required = tuple(kernel.required)
    defaults = {p.name: p.default for p in kernel.parameters if p.name in kernel.statics}
    return graph_of(kernel, robot, required, defaults)
