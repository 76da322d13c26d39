"""Names that a browser would run do nothing in any figure, film or report that is written."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import control
from coadjoint.commands.control import tracking
from coadjoint.design import counterweights, objectives, optimize
from coadjoint.show.balance import draw_balance
from coadjoint.show.control import draw_control
from coadjoint.show.design import draw_design
from coadjoint.show.excitation import draw_excitation
from coadjoint.show.geometry import draw_geometry, geometry
from coadjoint.show.optimal import draw_optimal
from coadjoint.show.redundancy import draw_redundancy, redundancy
from coadjoint.show.timing import draw_timing
from recorded_motions import simulated

pytest.importorskip("matplotlib")

EVIL = "</script><img src=x onerror=alert(1)>"
HOME, GOAL = np.array([0.1, 0.2]), np.array([0.6, -0.4])


def evil_arm(joints=2):
    """Two joints or more; the robot, its links, joints and frames have names that a page must not run."""
    ends = np.eye(4)
    ends[0, 3] = 0.5
    limits = {"lower": -2.0, "upper": 2.0, "velocity": 3.0, "effort": 60.0}
    links = []
    for k in range(joints):
        joint = cj.Joint.revolute((0, 1, 0) if k else (0, 0, 1), name=f"{k}{EVIL}", **limits)
        place = ends if k else None
        links.append(cj.Link.solid(f"{k + 1}" + EVIL, f"{k}" + EVIL, joint, place, mass=1.0, com=(0.2, 0, 0.1), inertia=0.1))
    return cj.Robot(EVIL, links, base="0" + EVIL).with_frame("tip" + EVIL, f"{joints}" + EVIL, ends)


class Elements(HTMLParser):
    """What a browser would make of a page: names and attributes of its elements."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def hostile(path):
    """Elements of a page or a drawing that a name made."""
    elements = Elements(path.read_text()).found
    return [x for x in elements if x[1].get("src") == "x" or any(key.startswith("on") for key in x[1])]


def test_what_a_name_made_is_found(tmp_path):
    (tmp_path / "page.html").write_text(f"<script>{EVIL}</script>")
    assert hostile(tmp_path / "page.html")


@pytest.mark.slow
def test_names_are_never_code_in_figures_and_reports(tmp_path):
    robot = evil_arm()
    motion, log = cj.simulate(robot, HOME, [0.0, 0.0], 0.2), simulated(robot, noise=0.01)
    q = robot.random(np.random.default_rng(0), 40)
    robot.plot(path=tmp_path / "robot.html")
    motion.plot(tmp_path / "motion.html")
    motion.animate(tmp_path / "film.html")
    cj.compare(robot, log).plot(tmp_path / "compared.html")
    cj.identify(robot, log).report(tmp_path / "fit.html")
    cj.calibrate(robot, q, poses=cj.pose(robot, q, "tip" + EVIL), frame="tip" + EVIL).report(tmp_path / "calibration.html")
    pages = sorted(tmp_path.glob("*.html"))
    assert len(pages) == 6
    assert not [x for page in pages for x in hostile(page)]


def designed(robot):
    q = robot.random(np.random.default_rng(0), 20)
    return optimize(robot, "inertial", objectives.effort, states={"q": q, "v": 0.1 * q, "a": 0.1 * q}, iterations=3)


def controlled(robot):
    controller = control.pd(robot, HOME, kp=40.0, kd=8.0)
    motion = cj.simulate(robot, GOAL, np.zeros(2), np.linspace(0.0, 0.2, 21), control=controller)
    return controller, motion, tracking(controller, motion)


STUDIES = {
    "balance": (draw_balance, lambda robot: [counterweights(robot, goals="gravity")]),
    "design": (draw_design, lambda robot: [designed(robot)]),
    "redundancy": (draw_redundancy, lambda robot: [redundancy(evil_arm(4), "tip" + EVIL, (3, 4, 5), loops=1)]),
    "timing": (draw_timing, lambda robot: [cj.time_optimal(robot, [HOME, GOAL])]),
    "excitation": (draw_excitation, lambda robot: [cj.excitation(robot, 2.0, harmonics=3, tries=1)]),
    "geometry": (draw_geometry, lambda robot: [geometry(robot)]),
    "optimal": (draw_optimal, lambda robot: [cj.optimal_motion(robot, HOME, GOAL, 1.0, "effort", spans=8)]),
    "control": (draw_control, controlled),
}


@pytest.mark.native
@pytest.mark.parametrize(
    "which", [which if which == "control" else pytest.param(which, marks=pytest.mark.slow) for which in STUDIES]
)
def test_names_are_never_code_in_figures_of_studies(tmp_path, which):
    """As a page and as SVG, which is well formed; the name of the robot stands in the page as text."""
    draw, study = STUDIES[which]
    shown = study(evil_arm())
    for suffix in ("html", "svg"):
        draw(tmp_path / f"figure.{suffix}", *shown)
        assert not hostile(tmp_path / f"figure.{suffix}")
    assert escape(EVIL, quote=False) in (tmp_path / "figure.html").read_text()
    ElementTree.parse(tmp_path / "figure.svg")
