"""The questions that the page of the studio asks, each a function of the robot and of JSON values, answered by JSON values."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from ...constraints import Constraint, assemble, constrained_dynamics, project_velocity
from ...constraints.parts import Cable
from ...dynamics import forward_dynamics, gravity_force
from ...errors import CoadjointError, unknown
from ...kinematics import jacobian, pose
from ...kinematics.inverse import inverse_kinematics
from ...motion.equations_of_motion import SimulationError
from ...motion.simulate import simulate
from ...redundancy import vertical_basis
from ...robot.plausibility import massless_joints
from ...robot.robot import Robot
from ..views import Coordinate, comparison, coordinates, pair, sectional_map
from .closing import check_open, closed_reach, with_loops
from .measured import identified
from .planning import planned
from .rods import fixed_rods, new_frame
from .values import finite, frame_of, number, numbers

POSITION = (3, 4, 5)
LONGEST = 30.0
"""The most seconds of one simulated motion."""
MANY = 12
"""Above so many freedoms curvature takes long: the first two coordinates are taken, not the most curved ones."""
PATIENCE = 20.0
"""Seconds of computing after which a motion ends where it is, as one that creeps along a singular state of its bonds."""
PICTURES = 60.0
"""States a second of a motion that is sent to the page."""


# --- inverse kinematics


def reach(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """The configuration next to q that brings a frame to a place, with its orientation kept where `turn` is true."""
    q, frame, place = numbers(data, "q", robot.nq), frame_of(robot, data), numbers(data, "position", 3)
    target: Any = place
    if data.get("turn"):
        target = numbers(data, "pose", 4, 4) if data.get("pose") is not None else pose(robot, q, frame).copy()
        target[:3, 3] = place
    if robot.loops:
        near, off = closed_reach(robot, target, frame, q)
        return {"q": near.tolist(), "off": off, "reached": off < 1e-6}
    found = inverse_kinematics(robot, target, frame, q0=q, starts=1, tolerance=1e-7)
    return {"q": found.q.tolist(), "off": float(found.distances.max()), "reached": bool(found.success)}


def null_motion(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """The configuration a step along the fibre: the frame stays where it is, and the joints move along the direction last taken.

    The step is in √(kg) m, the length of the metric of kinetic energy.
    """
    q, frame = numbers(data, "q", robot.nq), frame_of(robot, data)
    step = number(data, "step", -1.0, 1.0, 0.0)
    check_open(robot, "null motion", "It is there for trees.")
    rows = None if data.get("turn") else POSITION
    goal = numbers(data, "pose", 4, 4)
    if robot.nv <= (6 if rows is None else 3):
        raise CoadjointError(f"{robot.nv} freedoms leave none to spare for this frame.")
    basis = vertical_basis(robot, q, frame, rows)
    before = data.get("direction")
    direction = basis[:, 0] if before is None else basis @ np.linalg.lstsq(basis, numbers(data, "direction", robot.nv))[0]
    size = float(np.linalg.norm(direction))
    if size < 1e-9:
        direction, size = basis[:, 0], float(np.linalg.norm(basis[:, 0]))
    direction = direction * (np.linalg.norm(basis[:, 0]) / size)
    moved = robot.integrate(q, direction * step)
    target: Any = goal if rows is None else goal[:3, 3]
    found = inverse_kinematics(robot, target, frame, q0=moved, starts=1, tolerance=1e-7)
    if not found.success:
        return {"q": q.tolist(), "direction": direction.tolist(), "stopped": "the joints meet their limits"}
    return {"q": found.q.tolist(), "direction": direction.tolist(), "stopped": ""}


# --- geometry of the configurations


def torus(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """Sectional curvature over two coordinates, the others as in q; the most curved pair if none is chosen."""
    q = numbers(data, "q", robot.nq)
    check_open(robot, "curvature", "It is computed for trees.")
    for text in massless_joints(robot):
        raise CoadjointError(f"robot {robot.name!r} has no metric to be curved: {text}")
    chosen, known = data.get("joints"), coordinates(robot)
    if not chosen and robot.nv > MANY and len(known) > 1:  # to look for the most curved pair would take a minute
        chosen = [known[0].name, known[1].name]
    a, b = pair(robot, [str(x) for x in chosen] if chosen else None)
    points = int(number(data, "points", 11, 101, 61))
    return {
        "names": [a.name, b.name],
        "places": [a.q, b.q],
        "units": [a.unit, b.unit],
        "low": [a.lower, b.lower],
        "high": [a.upper, b.upper],
        "points": points,
        "sectional": finite(sectional_map(robot, a, b, q, points)),
        "choices": [x.name for x in known],
    }


def geodesic(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """The shortest geodesic that is found between two configurations beside the straight joint motion, with their energies."""
    start, goal, frame = numbers(data, "start", robot.nq), numbers(data, "goal", robot.nq), frame_of(robot, data)
    check_open(robot, "geodesics", "The sheet Plan with the cost action finds geodesics of closed chains.")
    found = comparison(robot, start, goal, points=121)
    seen = [pose(robot, q, frame)[:, :3, 3].tolist() for q in (found.geodesic, found.straight)]
    return {
        "time": found.time.tolist(),
        "q": [found.geodesic.tolist(), found.straight.tolist()],
        "paths": seen,
        "energies": found.energies.tolist(),
        "means": list(found.means),
    }


def phase(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """The flow of one coordinate and its velocity while all others are held: (q, v) and the acceleration there, up to the velocity
    `fastest`, or beyond the one of `speeds` that is this coordinate's.
    """
    q = numbers(data, "q", robot.nq)
    check_open(robot, "phase portraits", "With all other joints held, a closed chain does not move.")
    chosen = _coordinate(robot, data)
    fastest = number(data, "fastest", 1e-6, 1e6, 5.0)
    if data.get("speeds") is not None:
        fastest = max(fastest, 1.1 * float(numbers(data, "speeds", robot.nv)[chosen.v]))
    x, y = np.linspace(chosen.lower, chosen.upper, 41), np.linspace(-fastest, fastest, 41)
    others = {link.joint.name: q[robot.q_slice(link.joint.name)] for link in _others(robot, chosen)}
    alone = robot.lock(others)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    a = forward_dynamics(alone, grid[:, :1], grid[:, 1:], np.zeros((len(grid), 1)))
    return {
        "name": chosen.name,
        "place": [chosen.q, chosen.v],
        "unit": chosen.unit,
        "low": [chosen.lower, -fastest],
        "high": [chosen.upper, fastest],
        "points": len(x),
        "acceleration": finite(a),
        "choices": [c.name for c in coordinates(robot) if c.name in robot.joint_names],
    }


def _coordinate(robot: Robot, data: dict[str, Any]) -> Coordinate:
    known = [x for x in coordinates(robot) if x.name in robot.joint_names]
    if not known:
        raise CoadjointError(f"robot {robot.name!r} has no joint with one coordinate.")
    weight = np.abs(gravity_force(robot, numbers(data, "q", robot.nq)))
    name = data.get("joint") or max(known, key=lambda x: float(weight[x.v])).name
    match = [x for x in known if x.name == name]
    if not match:
        raise unknown("joint with one coordinate", name, [x.name for x in known])
    return match[0]


def _others(robot: Robot, chosen: Coordinate) -> list[Any]:
    """The joints to be held so that one coordinate is left: none of those that follow it."""
    mine = robot.joint_index(chosen.name)
    free = {mine, *(i for i, (source, _, _) in robot.mimics.items() if source == mine)}
    return [link for i, link in enumerate(robot.links) if i not in free and i not in robot.mimics and robot.kinds[i].nv]


# --- motions under constraints


def bonds(robot: Robot, data: dict[str, Any], q: np.ndarray) -> tuple[Robot, Constraint | None, list[tuple[str, str]]]:
    """The constraint of bonds {kind, a, b}: "rod" keeps the distance of two frames, "ball" their meeting point; its robot and frames.

    No place or length is a number of the constraint: rods have the length that they have, and a place on the base is a frame of the robot;
    so is, for a motion, the length (`fixed_rods`).
    So code is compiled once for all of them, and a studio does not grow with the bonds that it is asked for.
    """
    given = data.get("bonds") or []
    if not isinstance(given, list) or len(given) > 12 or not all(isinstance(bond, dict) for bond in given):
        raise CoadjointError("bonds must be a list of at most 12, each an object of kind, a and b.")
    frames = []
    for bond in given:
        a, b = frame_of(robot, bond, "a"), frame_of(robot, bond, "b")
        if bond.get("kind") not in ("rod", "ball"):
            raise unknown("kind of bond", bond.get("kind"), ("rod", "ball"))
        if bond["kind"] == "ball" and robot.frame(b)[0] < 0:
            place = np.eye(4)
            place[:3, 3] = numbers(bond, "at", 3) if bond.get("at") else pose(robot, q, a)[:3, 3]
            b = new_frame(robot, "pin")
            robot = robot.with_frame(b, robot.base, place)
        elif bond["kind"] == "rod":
            _check_rod(robot, a, b)
        frames.append((a, b))
    made = [
        Constraint.cable(robot, ends) if bond["kind"] == "rod" else Constraint.loop(robot, *ends, "spherical")
        for bond, ends in zip(given, frames, strict=True)
    ]
    return robot, (Constraint.all(made) if made else None), frames


def _check_rod(robot: Robot, a: str, b: str) -> None:
    anywhere = robot.random(np.random.default_rng(0), (8,))
    lengths = np.linalg.norm(pose(robot, anywhere, a)[:, :3, 3] - pose(robot, anywhere, b)[:, :3, 3], axis=-1)
    if np.ptp(lengths) <= 1e-9 * lengths.max():
        raise CoadjointError(f"no joint changes the distance of {a!r} and {b!r}: a rod between them holds nothing.")


def motion(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """The motion from a state without joint forces, under bonds, with friction and stops where they are wanted."""
    q, v = numbers(data, "q", robot.nq), numbers(data, "v", robot.nv)
    duration = number(data, "duration", 1e-3, LONGEST, 2.0)
    robot, held, frames = bonds(robot, data, q)
    constraint = with_loops(robot, held)
    if constraint is not None:
        q = assemble(robot, constraint, q)
        v = project_velocity(robot, constraint, q, v)
    time = np.linspace(0.0, duration, max(2, round(duration * PICTURES) + 1))
    stops = 0.0 if data.get("stops") else None
    ruled, kept = (robot, None) if constraint is None else fixed_rods(robot, constraint, q)
    ended, why = perf_counter() + PATIENCE, ""

    def wait(part: float) -> None:
        if perf_counter() > ended:
            raise SimulationError(f"after {part * duration:.3g} s of motion {PATIENCE:g} s of computing were over.")

    try:
        found = simulate(ruled, q, v, time, constraints=kept, friction=bool(data.get("friction")), stops=stops, report=wait)
    except SimulationError as error:
        if error.motion is None or len(error.motion.time) < 2:
            raise
        found, why = error.motion, str(error)
    answer: dict[str, Any] = {
        "time": found.time.tolist(),
        "q": found.q.tolist(),
        "v": found.v.tolist(),
        "stopped": why or str(found.stopped),
    }
    if held is not None:
        answer["forces"] = [_forces(robot, held, frames, x, y) for x, y in zip(found.q, found.v, strict=True)]
    return answer


def hold(robot: Robot, data: dict[str, Any]) -> dict[str, Any]:
    """The configuration that satisfies the bonds next to q, and the forces in them at that state."""
    q, v = numbers(data, "q", robot.nq), numbers(data, "v", robot.nv)
    robot, held, frames = bonds(robot, data, q)
    constraint = with_loops(robot, held)
    if constraint is not None:
        q = assemble(robot, constraint, q)
        v = project_velocity(robot, constraint, q, v)
    forces = [] if held is None else _forces(robot, held, frames, q, v)
    return {"q": q.tolist(), "v": v.tolist(), "forces": forces}


def _forces(robot: Robot, held: Constraint, frames: list[tuple[str, str]], q: np.ndarray, v: np.ndarray) -> list[list[float]]:
    """The force, in space axes, of every bond on its first frame; the second gets the opposite.

    Σ (J_a - J_b)ᵀ f is the force Aᵀ λ of all bonds: solved for f, the shortest where bonds share what they bear.
    """
    _, multipliers = constrained_dynamics(robot, with_loops(robot, held) or held, q, v, np.zeros(robot.nv))
    total = held.jacobian(robot, q).T @ multipliers[-held.size(robot) :]
    bearing = []
    for (a, b), part in zip(frames, held.parts, strict=True):
        way = pose(robot, q, a)[:3, 3] - pose(robot, q, b)[:3, 3]
        # A rod bears along itself, a ball in every direction.
        ways = (way / max(float(np.linalg.norm(way)), 1e-12))[:, None] if isinstance(part, Cable) else np.eye(3)
        bearing.append(((jacobian(robot, q, a, "world") - jacobian(robot, q, b, "world"))[3:].T @ ways, ways))
    f, *_ = np.linalg.lstsq(np.concatenate([columns for columns, _ in bearing], axis=1), total)
    shares = np.split(f, np.cumsum([ways.shape[1] for _, ways in bearing])[:-1])
    return [(ways @ share).tolist() for (_, ways), share in zip(bearing, shares, strict=True)]


QUESTIONS: dict[str, Callable[[Robot, dict[str, Any]], dict[str, Any]]] = {
    "reach": reach,
    "null": null_motion,
    "torus": torus,
    "geodesic": geodesic,
    "phase": phase,
    "motion": motion,
    "hold": hold,
    "plan": planned,
    "identify": identified,
}
