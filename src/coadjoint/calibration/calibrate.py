"""`calibrate`: the geometry of a robot from configurations and measurements at them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..arguments import a_function_of, a_name, a_robot, numbers, one_of, sequence, takes
from ..arrays import Array, unmasked
from ..blas import on_one_thread
from ..errors import CoadjointError, LogWarning, ShapeError
from ..robot.robot import Robot
from ..words import short
from . import start
from .camera import first_guess
from .chain import Chain, chain
from .fit import FINEST, Fit, Problem, State, covariance, fit, held_back, reduced, restricted
from .measured import Distances, Measured, Planes, Points, Poses
from .result import Calibration
from .said import approach, doubts, far_off
from .terms import GROUPS, Terms, all_terms

OPTIONAL = ("compliance", "scale", "harmonics 1", "harmonics 2")
"""Groups of terms that are fitted where configurations held back are predicted better with them, tried in this order."""

GAIN = 0.002
"""By how much of the error, at least."""

SURE = 2.0
"""By how many of the gain's own standard errors over configurations, at least: chance alone predicts some noise better."""


@takes(
    robot=a_robot,
    q=numbers,
    frame=a_name,
    loss=one_of("robust", "squares"),
    mounted=one_of("hand", "fixed"),
    report=a_function_of("part"),
)
@on_one_thread
def calibrate(
    robot: Robot,
    q: Any,
    *,
    points: Any = None,
    poses: Any = None,
    distances: Any = None,
    planes: Any = None,
    corners: Any = None,
    board: Any = None,
    camera: Any = None,
    mounted: str = "hand",
    frame: str = "tip",
    terms: Sequence[str] | None = None,
    loss: str = "robust",
    report: Callable[[float], None] | None = None,
) -> Calibration:
    """The geometry of a robot from configurations q (N, nq) and one kind of measurement at them:

    points      (N, k, 3) of k points of unknown place on the frame, in an unknown fixed frame (a laser tracker)
    poses       (N, 4, 4) of a tool or camera at an unknown pose on the frame, in an unknown fixed frame (a camera that sees a board)
    distances   (N, k) from an unknown point of the frame to k unknown fixed points (a ball bar)
    planes      (N,) whole numbers: which of several unknown planes an unknown point of the frame touches
    corners     (N, k, 2) pixels of the corners of a `board` (k, 2) in metres, seen by a camera on the frame (mounted="hand"; the board is
                fixed) or by a fixed one (mounted="fixed"; the board is on the frame); its matrix is `camera`, or unknown like the rest

    Fitted are the joints' screws (four numbers for a revolute, two for a prismatic joint), their zero offsets, and, of scale,
    harmonics of the encoder and deflection under gravity, what predicts configurations held back better; `terms` names those instead,
    of "scale", "harmonics 1", "harmonics 2", "compliance". What the measurements do not show stays where the description has it.
    Configurations far off count little (loss="squares": all the same). Metres and radians.
    """
    chain_ = chain(robot, frame)
    q = _checked_configurations(robot, q)
    given = {"points": points, "poses": poses, "distances": distances, "planes": planes, "corners": corners}
    kinds = [name for name, x in given.items() if x is not None]
    if len(kinds) != 1:
        raise CoadjointError(
            f"{' and '.join(kinds) or 'nothing'} is given; expected one of points=, poses=, distances=, planes= and corners=."
        )
    wanted = _wanted(terms)
    nominal = np.asarray(
        chain_.poses(
            q[:, list(chain_.coordinates)], np.zeros((len(chain_.links), 6)), np.zeros((len(q), len(chain_.links))), np.eye(4)
        )[2]
    )
    measured: Measured
    if kinds[0] == "corners":
        measured, base = first_guess(_rows("corners", corners, len(q)), nominal, len(q), board, camera, mounted)
    else:
        measured, base = _start(kinds[0], given[kinds[0]], nominal, len(q))
    state = State(np.zeros(sum(len(d) for d in chain_.directions)), np.zeros(0), base, measured)
    notes = doubts(chain_, q, nominal, measured)
    for note in notes:
        warnings.warn(note, LogWarning, stacklevel=3)
    warned = bool(notes)
    groups = ("offset", *(wanted if wanted is not None else OPTIONAL))
    everything = all_terms(chain_, q, tuple(x for x in GROUPS if x in groups))
    everything = _few_enough(everything, q, measured, len(state.eta))
    _check_count(q, measured, chain_)
    problem = Problem(chain_, everything, q, everything.design(q))
    state = State(state.eta, np.zeros(len(everything.names)), base, measured)
    found = fit(problem, state, loss)
    tried: list[tuple[str, float]] = []
    if wanted is None:
        chosen, tried = _choose(found)
        if chosen.groups != everything.groups:
            found = fit(reduced(found, chosen), restricted(found.state, everything, chosen), loss)
    if report:
        report(1.0)
    every = np.arange(found.jacobian.shape[2])
    notes += approach(found)
    if not found.converged and np.any(found.scale > FINEST):
        notes.append(f"the fit did not come to rest in {found.iterations} steps: its numbers may not be the most likely ones.")
    result = Calibration(robot, frame, found, held_back(found, every), tuple(tried), tuple(notes), covariance(found))
    if missed := far_off(measured, result.errors(result.residuals)):
        if not warned:  # which else may say why
            warnings.warn(missed, LogWarning, stacklevel=3)
        return replace(result, notes=(*result.notes, missed))
    return result


def _choose(found: Fit) -> tuple[Terms, list[tuple[str, float]]]:
    """The groups of terms with which configurations held back are predicted best, and the error with each that was tried."""
    terms, tried = found.problem.terms, []
    geometry = len(found.state.eta)
    group = np.array([*["geometry"] * geometry, *terms.group])
    rest = np.arange(len(group), found.jacobian.shape[2])
    robust = found.weights / np.max(found.weights)

    def errors(groups: Sequence[str]) -> Array:
        """The weighted error of every configuration held back, whose mean is that of the table."""
        columns = np.concatenate([np.flatnonzero(np.isin(group, ["geometry", "offset", *groups])), rest])
        left = held_back(found, columns) / found.scale
        size = np.mean(found.scale) / np.sqrt(left.shape[1])
        return np.asarray(np.linalg.norm(left, axis=1) * robust / np.mean(robust) * size)

    chosen: list[str] = []
    best = errors(chosen)
    tried.append(("geometry", float(np.mean(best))))
    for name in OPTIONAL:
        if name in terms.group and np.mean(best) > FINEST:
            now = errors([*chosen, name])
            tried.append((" + ".join(["geometry", *chosen, name]), float(np.mean(now))))
            gain = best - now
            if np.mean(gain) > max(GAIN * np.mean(best), SURE * np.std(gain) / np.sqrt(len(gain))):
                chosen, best = [*chosen, name], now
    return terms.chosen(("offset", *chosen)), tried


def _few_enough(terms: Terms, q: Array, measured: Measured, geometry: int) -> Terms:
    """Fewer groups where there are fewer configurations: at most half as many unknowns as numbers."""
    size = len(q) * min(len(measured.groups), 6)
    groups = list(terms.groups)
    while len(groups) > 1 and geometry + len(terms.names) > 0.5 * size:
        groups.pop()
        terms = terms.chosen(tuple(groups))
    return terms


def _check_count(q: Array, measured: Measured, chain_: Chain) -> None:
    size, least = len(q) * min(len(measured.groups), 6), 4 * len(chain_.links) + 6
    if size < least:
        need = -(-least // min(len(measured.groups), 6))
        raise CoadjointError(
            f"{len(q)} configurations are too few for {len(chain_.links)} joints; measure at least {need}, better {3 * need}."
        )


def _wanted(terms: Any) -> tuple[str, ...] | None:
    if terms is None:
        return None
    names = sequence(terms, "terms")
    for name in names:
        if not isinstance(name, str) or name not in OPTIONAL:
            raise CoadjointError(f"terms has {short(name)}; choose among {', '.join(map(repr, OPTIONAL))}.")
    return tuple(names)


def _checked_configurations(robot: Robot, q: Any) -> Array:
    q = np.asarray(unmasked(q), dtype=float)
    if q.ndim != 2 or q.shape[1] != robot.nq:
        raise ShapeError(f"q has shape {q.shape}; expected (N, {robot.nq}), a row for each configuration.")
    if not np.all(np.isfinite(q)):
        raise CoadjointError(f"q has a number that is not finite in row {int(np.argmin(np.isfinite(q).all(axis=1))) + 1}.")
    return q


def _rows(kind: str, given: Any, n: int) -> Array:
    """A measurement as finite numbers, a row for each configuration."""
    value = np.asarray(numbers(given, kind), dtype=float)
    if value.shape[:1] != (n,):
        raise ShapeError(f"{kind} has shape {value.shape}; q has {n} rows.")
    bad = ~np.isfinite(value.reshape(n, -1)).all(axis=1)
    if bad.any():
        raise CoadjointError(f"{kind} has a number that is not finite in row {int(np.argmax(bad)) + 1}; leave such rows out.")
    return value


def _start(kind: str, given: Any, T: Array, n: int) -> tuple[Measured, Array]:
    """The measurement with first guesses of its unknowns, and of the base."""
    if kind == "planes":
        which = np.asarray(given)
        if which.shape != (n,) or which.dtype.kind not in "iu" or which.min() < 0:
            raise ShapeError(f"planes has shape {which.shape} and type {which.dtype}; expected ({n},) whole numbers from 0.")
        numbered, contacts = np.unique(which, return_counts=True)
        if numbered[-1] != len(numbered) - 1:
            gap = int(np.argmax(numbered != np.arange(len(numbered))))
            raise CoadjointError(
                f"no contact is with plane {gap}, the last plane is {numbered[-1]}; number planes from 0 without gaps."
            )
        if contacts.min() < 4:
            k = int(np.argmin(contacts))
            raise CoadjointError(
                f"plane {k} is touched {contacts[k]} times; three contacts fit any plane, so measure more, or leave it out."
            )
        normals, heights = start.planes_through(T, which)
        return Planes(which, np.zeros(3), normals, heights), np.eye(4)
    value = _rows(kind, given, n)
    if kind == "points":
        if value.ndim not in (2, 3) or value.shape[-1] != 3:
            rows = value.ndim == 2 and value.shape[1] % 3 == 0
            remedy = f" points.reshape({n}, -1, 3) makes it so if x, y, z of a point stand side by side." if rows else ""
            raise ShapeError(f"points has shape {value.shape}; expected ({n}, k, 3), or ({n}, 3) of one point.{remedy}")
        value = value[:, None] if value.ndim == 2 else value
        base, place = start.base_from_points(T, value)
        return Points(value, place), base
    if kind == "poses":
        if value.shape != (n, 4, 4):
            raise ShapeError(f"poses has shape {value.shape}; expected ({n}, 4, 4).")
        off = np.abs(value[:, :3, :3] @ np.swapaxes(value[:, :3, :3], 1, 2) - np.eye(3)).max(axis=(1, 2))
        if off.max() > 1e-3 or np.any(np.linalg.det(value[:, :3, :3]) < 0):
            raise CoadjointError(f"poses: row {int(np.argmax(off)) + 1} has no rotation in its first three rows and columns.")
        ends = np.abs(value[:, 3] - [0.0, 0.0, 0.0, 1.0]).max(axis=1)
        if ends.max() > 1e-6:
            row = int(np.argmax(ends))
            raise CoadjointError(
                f"poses: the last row of number {row + 1} is {short(value[row, 3].tolist())}; expected 0, 0, 0, 1. "
                "Positions stand in the last column: are the matrices transposed?"
            )
        base, tool = start.base_from_poses(T, value)
        return Poses(value, tool), base
    value = value[:, None] if value.ndim == 1 else value
    if value.ndim != 2 or value.min() < 0:
        raise ShapeError(f"distances has shape {value.shape}; expected ({n}, k), none negative.")
    return Distances(value, np.zeros(3), start.anchors_from_distances(T, value)), np.eye(4)
