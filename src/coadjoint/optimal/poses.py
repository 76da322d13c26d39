"""A path of poses as a joint path: q' = J⁺(q) X along it, X its body twist, joined by a spline of fifth degree."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import PPoly, make_interp_spline

from ..errors import CoadjointError
from ..kinematics.inverse import inverse_kinematics
from ..kinematics.jacobian import jacobian
from ..kinematics.paths import Path
from ..kinematics.poses import pose
from ..robot.robot import Robot
from ..words import short

MET = 1e-7
"""Largest distance, in metres and in entries of the rotation, of the frame from its path."""
STILL = 1e-12
"""Largest way of a joint, in radians or metres, that is none."""
BETWEEN = 1e-6
"""The same between the pieces of the spline."""
STEPS = 256
"""Pieces of the spline."""
MOST = 10000
"""Evaluations of q' beyond which the integration is given up: a regular path takes some hundreds."""


def joint_path(robot: Robot, path: Any, frame: str, q: Any = None) -> Any:
    """q(s), 0 ≤ s ≤ 1, with which the frame follows a path of poses, from the solution of inverse kinematics near `q` on.

    Of all motions of a redundant robot it is the one of least |q'| at each place.
    """
    if not isinstance(path, Path):
        raise CoadjointError(
            f"path is {short(path)}; with frame= expected a path of poses, as from coadjoint.spline_path or coadjoint.geodesic_path."
        )
    ends = path.curve(np.array([0.0, 1.0]))[0]
    first = inverse_kinematics(robot, ends[0], frame, q0=robot.neutral() if q is None else q)
    if not np.all(first.success):
        raise CoadjointError(
            f"frame {frame!r} cannot reach the start of its path, {_place(ends[0])}: move the path, or begin from another q."
        )

    count = 0

    def rate(s: float, q: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        if count > MOST:
            raise _singular(frame, s)
        twist = path.curve(np.array(s))[1]
        return np.asarray(np.linalg.lstsq(np.asarray(jacobian(robot, q, frame)), twist, rcond=1e-8)[0])

    s = np.linspace(0.0, 1.0, STEPS + 1)
    found = solve_ivp(rate, (0.0, 1.0), np.asarray(first.q), method="DOP853", t_eval=s, rtol=1e-11, atol=1e-12, max_step=0.05)
    done = found.y.T
    gap = np.abs(np.asarray(pose(robot, done, frame)) - path.curve(s[: len(done)])[0]).max(axis=(1, 2))
    if not found.success or gap.max() > MET:
        at = s[min(int(np.argmax(gap > MET)) if (gap > MET).any() else len(done) - 1, STEPS)]
        raise _singular(frame, at)
    if np.ptp(done, axis=0).max() <= STILL:
        raise CoadjointError(f"the path of frame {frame!r} does not move.")
    spline = make_interp_spline(s, done, k=5)
    middle = (s[:-1] + s[1:]) / 2
    gap = np.abs(np.asarray(pose(robot, spline(middle), frame)) - path.curve(middle)[0]).max(axis=(1, 2))
    if gap.max() > BETWEEN:
        raise _singular(frame, middle[int(np.argmax(gap))])
    breaks = np.unique(spline.t)
    return PPoly(np.stack([spline(breaks[:-1], k) / factorial(k) for k in range(5, -1, -1)]), breaks)


def _singular(frame: str, s: float) -> CoadjointError:
    return CoadjointError(
        f"frame {frame!r} cannot follow its path near s = {s:.4g}: the robot is singular there, or out of reach. Lead the path "
        "elsewhere, or begin from another q."
    )


def _place(T: np.ndarray) -> str:
    return "at (" + ", ".join(f"{x:.4g}" for x in T[:3, 3]) + ")"
