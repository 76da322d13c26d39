"""The messages of a calibration: doubts about its input, numbers that the data do not determine, and the result as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..kinematics import pose
from ..lie import so3
from ..words import printable
from .camera import Corners
from .chain import Chain
from .fit import Fit
from .measured import Measured, Planes, Points, Poses

COIN = 5.0
"""Standard deviations by which signs must not be those of a coin."""


def doubts(chain: Chain, q: Array, T: Array, measured: Measured) -> list[str]:
    """Degrees, millimetres, joints that did not move, and the wrong robot."""
    found = []
    own = q[:, list(chain.coordinates)]
    turns = chain.turns
    if turns.any() and np.abs(own[:, turns]).max() > 4 * np.pi:
        found.append(
            f"q reaches {np.abs(own[:, turns]).max():.4g} rad in a revolute joint, which suggests degrees: give numpy.radians(q)."
        )
    for k, name in enumerate(chain.names):
        if np.ptp(own[:, k]) < 1e-6:
            found.append(f"joint {printable(name)!r} does not move in the configurations; its errors cannot be told from others.")
    if isinstance(measured, Planes | Corners):
        return found
    if isinstance(measured, Points | Poses):
        values = measured.value[:, :, :] if isinstance(measured, Points) else measured.value[:, None, :3, 3]
        spread = float(np.linalg.norm(np.std(values.mean(axis=1), axis=0)))
    else:
        spread = float(np.mean(measured.value))
    if isinstance(measured, Points | Poses):
        found += _flat(values.mean(axis=1))
    reach = float(np.linalg.norm(np.std(T[:, :3, 3], axis=0))) + 1e-12
    if spread > 100 * reach:
        found.append(
            f"what was measured spreads over {spread:.4g}, the frame over {reach:.4g} m, which suggests millimetres: divide by 1000."
        )
    return found


def far_off(measured: Measured, errors: Array) -> str:
    """A warning if residuals are a tenth of the measurements' spread or more, as for no real robot; else ""."""
    if not isinstance(measured, Points | Poses):
        return ""
    points = isinstance(measured, Points)
    places = measured.value.mean(axis=1) if points else measured.value[:, :3, 3]
    spread, error = float(np.linalg.norm(np.std(places, axis=0))), float(np.median(errors if points else errors[:, 1]))
    if error < 0.1 * spread:
        return ""
    return (
        f"the fitted robot misses what was measured by {error:.3g} m, which spreads over {spread:.3g} m: "
        "are the columns of q in the order of the joints, their signs right, and its rows those of the measurement?"
    )


def _flat(x: Array) -> list[str]:
    """True if measured places lie on a line or in a plane."""
    size = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    if len(x) < 4 or size[2] > 1e-4 * size[0]:
        return []
    shape = "on a line" if size[1] <= 1e-4 * size[0] else "in a plane"
    return [f"what was measured lies {shape}; postures that fill space show more of the geometry."]


def approach(fit: Fit) -> list[str]:
    """A warning that errors lie along the motion from the configuration before, as of a robot that was read before it stood still, or of
    play.

    cᵢ is the multiple of qᵢ - qᵢ₋₁ that explains most of the i-th residual. Without such a cause its sign is that of a coin.
    """
    problem, state = fit.problem, fit.state
    T, _, by_delta, _ = problem.chain.jacobian(problem.own, state.twists(problem.chain), problem.delta(state), state.base)
    twist, _ = state.measured.derivatives(T)
    along = np.einsum("nij,nj->ni", (twist @ by_delta)[1:], np.diff(problem.own, axis=0)) / fit.scale
    agrees = (along * fit.residual[1:] / fit.scale).sum(axis=1)
    agrees = agrees[np.abs(agrees) > 0]
    share = float(np.mean(agrees > 0)) if len(agrees) else 0.5
    if abs(share - 0.5) * 2.0 * np.sqrt(len(agrees)) < COIN:
        return []
    late = "further along the motion from the row before than q says: was q read before the robot stood still?"
    short_of_it = "behind on the motion from the row before: have its gears play, or was it measured before it stood still?"
    part, words = (share, late) if share > 0.5 else (1.0 - share, short_of_it)
    return [f"in {100 * part:.0f} % of the rows the robot is {words} No geometry explains that."]


def unseen(fit: Fit) -> tuple[str, ...]:
    """Directions of the unknowns that change no prediction: those in which the data tell less than the prior."""
    A, _ = fit.scaled
    X = A.reshape(-1, A.shape[2])
    _, sizes, rows = np.linalg.svd(np.linalg.qr(X, mode="r"))
    values, vectors = sizes[::-1] ** 2, rows[::-1].T
    names = fit.problem.names(fit.state)
    deviations = fit.problem.deviations(fit.state)
    count = len(fit.state.eta) + len(fit.state.coefficients)
    texts = []
    for value, vector in zip(values, vectors.T, strict=True):
        if value > 1.0:
            break
        size = np.abs(vector[:count])
        size = size if size.max() > 1e-6 else np.abs(vector)
        order = [k for k in np.argsort(-size)[:3] if size[k] > 0.3 * size.max()]
        parts = " ".join(
            f"{'+' if vector[k] > 0 else '-'} {vector[k] * np.sign(vector[k]) * deviations[k]:.2g} {printable(names[k])}"
            for k in order
        )
        texts.append(parts.removeprefix("+ "))
    return tuple(texts)


def described(cal: Any) -> str:
    """The calibration as a readable table."""
    fit, chain = cal.fit, cal.chain
    kind = type(fit.state.measured).__name__.lower()
    lines = [f"{printable(cal.nominal.name)} to {printable(cal.frame)!r}: {len(fit.weights)} configurations, {kind}", ""]
    for label, r in (("fitted", cal.residuals), ("held back", cal.held_back)):
        e = cal.errors(r)
        columns = {"angle [mrad]": e[:, 0], "origin [mm]": e[:, 1]} if isinstance(fit.state.measured, Poses) else {"error [mm]": e}
        columns = {"error [px/1000]": e} if isinstance(fit.state.measured, Corners) else columns
        lines += [
            f"{label:<10} {what:<13} mean {1e3 * np.mean(x):.4g}  median {1e3 * np.median(x):.4g}  95 % {1e3 * np.percentile(x, 95):.4g}"
            for what, x in columns.items()
        ]
    if len(cal.outliers):
        rows = ", ".join(str(k + 1) for k in cal.outliers[:12]) + (" …" if len(cal.outliers) > 12 else "")
        lines.append(f"{len(cal.outliers)} configurations are far off and count little: rows {rows}")
    lines += [
        "",
        f"terms: geometry, {', '.join(cal.terms.groups)}; tried, with the weighted error held back in thousandths:",
        *(f"  {name}: held back {1e3 * x:.4g}" for name, x in cal.tried),
    ]
    lines += ["", f"{'joint':<20}{'tilts [mrad]':>24}{'shifts [mm]':>24}{'offset [mrad]':>24}"]
    parameters = cal.parameters
    for name in chain.names:
        cell = {key: _cell(parameters.get(f"{name} {key}")) for key in ("tilt 1", "tilt 2", "shift 1", "shift 2", "offset")}
        pairs = [f"{cell[f'{what} 1']} {cell[f'{what} 2']}" for what in ("tilt", "shift")]
        lines.append(f"{printable(name)[:19]:<20}{pairs[0]:>24}{pairs[1]:>24}{cell['offset']:>24}")
    lines.append("±: 95 %; ±inf: not seen by this measurement, stays at the description")
    blind = cal.unseen
    if blind:
        lines += [
            "",
            f"{len(blind)} combinations are not seen:",
            *(f"  {text}" for text in blind[:8]),
            *(["  …"] if len(blind) > 8 else []),
        ]
    return "\n".join([*lines, *cal.notes])


def left_out(cal: Any) -> str:
    """What descriptions of robots have no place for, and how far the frame is off without it where it was measured; "" if there is none."""
    groups = [name for name in cal.terms.groups if name != "offset" and name in cal.terms.group]
    if not groups:
        return ""
    q = cal.fit.problem.q
    with_them, without = cal.pose(q), cal.base @ np.asarray(pose(cal.robot, q, cal.frame))
    off = np.linalg.norm(with_them[:, :3, 3] - without[:, :3, 3], axis=1)
    turned = np.linalg.norm(so3.log(np.swapaxes(without[:, :3, :3], 1, 2) @ with_them[:, :3, :3]), axis=-1)
    return (
        f"it has no place for {', '.join(groups)}, without which it is {1e3 * off.mean():.3g} mm off on average, {1e3 * off.max():.3g} mm "
        f"at most, and turned by {1e3 * turned.mean():.3g} mrad: give it corrected angles (Calibration.correct), or fit without them "
        "(terms=())"
    )


def _cell(parameter: tuple[float, float] | None) -> str:
    """A displacement in thousandths with its 95 % interval."""
    return "" if parameter is None else f"{1e3 * parameter[0]:.3f}±{1.96e3 * parameter[1]:.2g}"
