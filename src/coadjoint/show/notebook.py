"""The page of a robot or a motion where it is looked at: in a notebook, in a browser."""

from __future__ import annotations

import tempfile
import webbrowser
from html import escape
from pathlib import Path

from ..errors import CoadjointError
from ..motion.trajectory import Trajectory
from ..robot import text
from ..robot.robot import Robot
from .report import page_text, report


def robot_html(robot: Robot) -> str:
    """The page in a frame of its own; a table for a robot whose numbers are variables, that has no links, or that cannot be drawn."""
    if not robot.has_plain_numbers or not robot.n_links:
        return text.html(robot)
    try:
        return _frame(page_text(robot, light=True))
    except CoadjointError:
        return text.html(robot)


def motion_html(motion: Trajectory) -> str | None:
    """The page that plays a motion; None for a batch of motions."""
    if motion.q.ndim != 2 or not len(motion):
        return None
    return _frame(page_text(motion.robot, motion=motion, light=True))


def _frame(page: str) -> str:
    """A frame that may run the page's script and nothing else: it cannot reach the notebook."""
    look = "border: 1px solid #8884; border-radius: 8px; width: 100%; height: 540px"
    return f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" loading="lazy" style="{look}"></iframe>'


def show_motion(motion: Trajectory, path: str | Path | None = None) -> Path:
    """Write the page that plays a motion and open it in a browser."""
    if motion.q.ndim != 2:
        raise CoadjointError("a batch of motions cannot be shown; take one of them.")
    target = Path(tempfile.mkdtemp(prefix="coadjoint-")) / "motion.html" if path is None else Path(path)
    report(motion.robot, target, motion=motion)
    webbrowser.open(target.resolve().as_uri())
    return target
