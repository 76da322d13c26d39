"""The equations of small robots, typeset for a page."""

from __future__ import annotations

from html import escape

from ...errors import CoadjointError
from ...robot.robot import Robot

FREEDOMS = 4
LONGEST = 120_000
"""The most freedoms, and the most characters, of equations that a page shows."""


def equations_of(robot: Robot, closed: bool = False) -> str:
    """M, C and g as MathML with a sentence; empty where they would fill pages."""
    if not 0 < robot.nv <= FREEDOMS or any(kind.nv > 1 for kind in robot.kinds):
        return ""
    from ...symbolic import equations

    try:
        found = equations(robot, ("M", "C", "g"))
        text = "" if found.in_steps else found.mathml()
    except CoadjointError:
        return ""
    if not text or len(text) > LONGEST:
        return ""
    names = ", ".join(f"q<sub>{k + 1}</sub> {escape(name)}" for k, name in enumerate(robot.q_names))
    forces = "τ + A(q)ᵀ λ, where A(q) v = 0 keeps the loops closed and the rest is the tree’s" if closed else "τ"
    return f'<p class="note">M(q) a + C(q, v) v + g(q) = {forces}; numbers rounded to five digits; {names}.</p>{text}'
