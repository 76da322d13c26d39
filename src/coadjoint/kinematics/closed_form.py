"""All configurations that bring the end of a 6R arm to a pose, in closed form.

f(q) = e^{A₁q₁} ⋯ e^{A₆q₆} M (Park, Bobrow & Ploen 1995, (13)) is to be T; so the product of the exponentials eᵢ is to be g = T M⁻¹. What
the axes of the arm have in common, found from the screws alone, splits it into subproblems of Paden and Kahan, each with two solutions
at most:

    spherical wrist    axes 4, 5, 6 meet in a point c, which they leave where it is: e₁e₂e₃ c = g c gives the arm, then
                       R₄R₅R₆ = (R₁R₂R₃)ᵀ R the wrist. The arm, by the first of these that it has:
          2 ∥ 3        along ω₂ only e₁ moves c: q₁ by subproblem 4; then |e₃c - p₂| is known: q₃ by 3, and q₂ by 1
          1 ∥ 2        along ω₁ only e₃ moves c: q₃ by subproblem 4; then |e₂(e₃c) - p₁|: q₂ by 3, and q₁ by 1
          1 meets 2    |e₃c - p| is known, p where they meet: q₃ by subproblem 3, then q₁, q₂ by 2
          2 meets 3    |e₁⁻¹gc - p| is known: q₁ by subproblem 3, then q₂, q₃ by 2
    three parallel     axes 2 ∥ 3 ∥ 4, and 5 meets 6 in c (UR): along ω₂ only e₁ moves c: q₁ by subproblem 4; the height of ω₆ on ω₂ gives
                       q₅ by 4, the direction of ω₂ seen from the end q₆ by 1; the rest is a planar arm of three links: q₃ by 3, q₂
                       by 1, and q₄ is what they leave of the whole turn

So there are up to eight. Where two of them fall together (arm stretched, wrist straight, wrist over the shoulder) they are found twice,
and where a whole line of configurations has the same pose, one of them: the angle that may be any is 0 (of a straight wrist of an
arm with three parallel axes, it makes the elbow as near to a right angle as can be).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..arrays import Array, cross, dot, like, mv, namespace, stack, transpose
from ..errors import CoadjointError
from ..lie import se3
from ..robot.robot import Robot
from .exponentials import screw_path, space_screws
from .subproblems import Angle, angle, azimuth, back, both, subproblem1, subproblem2, subproblem3, subproblem4, turned, wrapped

STRAIGHT = 1e-10
"""The sine of the angle between parallel axes."""
EXACT, NEARLY = 1e-9, 3e-5
"""Tolerances for axes that are parallel (sine of the angle) or meet (distance relative to the arm's size): to rounding, and nearly,
as in files with angles such as 1.5707963 or 1.5708.
"""


@dataclass(frozen=True, eq=False)
class Arm:
    """The axes of a 6R arm at home, each by its direction and a point on it (6, 3), the end M (4, 4), and how it is solved."""

    w: np.ndarray
    p: np.ndarray
    home: np.ndarray
    kind: str
    centre: np.ndarray
    """The point where the axes of the wrist meet, or axes 5 and 6 of an arm with three parallel ones."""
    meet: np.ndarray
    """The point where axes 1 and 2, or 2 and 3 meet, if that is used."""
    exact: bool = True
    """True if these are the robot's axes to rounding. If not, they are those of an ideal arm nearby, and solutions are to be polished."""


def recognise(robot: Robot, frame: str) -> Arm:
    """The arm that moves the frame, by what its axes have in common; an error says why there is no closed form, and what to do."""
    path, _ = screw_path(robot, frame)
    joints = [robot.links[i].joint for i in path if robot.kind(i).nv]
    remedy = "`inverse_kinematics` finds solutions of any robot numerically."
    if len(joints) != 6 or any(not robot.kind(i).revolute for i in path if robot.kind(i).nv):
        listing = ", ".join(f"{joint.name} ({joint.kind})" for joint in joints) or "none"
        raise CoadjointError(
            f"no closed form for frame {frame!r} of {robot.name!r}: it takes six revolute joints, and on its path are {listing}. {remedy}"
        )
    if any(i in robot.mimics for i in path):
        raise CoadjointError(f"no closed form for frame {frame!r} of {robot.name!r}: a joint on its path mimics another. {remedy}")
    screws, home = space_screws(robot, frame)
    w = _snapped(screws[:, :3] / np.linalg.norm(screws[:, :3], axis=-1, keepdims=True))
    p = _snapped(np.cross(w, screws[:, 3:]))
    arm = _kind(w, p, home, EXACT)
    if isinstance(arm, str):
        nearly = _kind(w, p, home, NEARLY)
        arm = arm if isinstance(nearly, str) else _ideal(nearly)
    if isinstance(arm, str):
        names = ", ".join(joint.name for joint in joints[3:])
        raise CoadjointError(f"no closed form for frame {frame!r} of {robot.name!r}: {arm.format(names=names)}. {remedy}")
    return arm


def _kind(w: np.ndarray, p: np.ndarray, home: np.ndarray, tolerance: float) -> Arm | str:
    """The arm of these axes, by what they have in common to a tolerance; or why there is no closed form."""
    size = float(np.abs(np.concatenate([p, home[:3, 3][None]])).max()) or 1.0

    def parallel(i: int, j: int) -> bool:
        return bool(np.linalg.norm(np.cross(w[i], w[j])) < tolerance)

    def meeting(*axes: int) -> np.ndarray | None:
        """The point where these axes meet, if they do; parallel neighbours do not."""
        if any(parallel(i, j) for i, j in pairwise(axes)):
            return None
        across = [np.eye(3) - np.outer(w[i], w[i]) for i in axes]
        c = np.linalg.solve(sum(across), sum(A @ p[i] for A, i in zip(across, axes, strict=True)))
        off = max(float(np.linalg.norm(A @ (c - p[i]))) for A, i in zip(across, axes, strict=True))
        return _snapped(c) if off < tolerance * size else None

    none = np.zeros(3)
    if (c := meeting(3, 4, 5)) is not None:
        if parallel(1, 2) and not parallel(0, 1):
            return Arm(w, p, home, "wrist, 2 ∥ 3", c, none)
        if parallel(0, 1) and not parallel(1, 2):
            return Arm(w, p, home, "wrist, 1 ∥ 2", c, none)
        if (m := meeting(0, 1)) is not None:
            return Arm(w, p, home, "wrist, 1 meets 2", c, m)
        if (m := meeting(1, 2)) is not None:
            return Arm(w, p, home, "wrist, 2 meets 3", c, m)
        return "its wrist is spherical, but of axes 1, 2, 3 no neighbours are parallel or meet, which makes it an equation of degree four"
    if parallel(1, 2) and parallel(2, 3) and not parallel(0, 1) and not parallel(3, 4) and (c := meeting(4, 5)) is not None:
        return Arm(w, p, home, "three parallel", c, none)
    return "neither do axes 4, 5, 6 ({names}) meet in one point, nor are axes 2, 3, 4 parallel with 5 meeting 6"


def _ideal(arm: Arm) -> Arm:
    """The arm whose axes are parallel and meet exactly where those of this one nearly do; axes that are nearly orthogonal are made
    so.
    """
    w, p = arm.w.copy(), arm.p.copy()
    groups = {"wrist, 2 ∥ 3": (1, 2), "wrist, 1 ∥ 2": (0, 1), "three parallel": (1, 2, 3)}
    first, *others = groups.get(arm.kind, (0,))
    for i in others:
        w[i] = np.sign(w[i] @ w[first]) * w[first]
    for i, j in pairwise(range(6)):
        if 0 < abs(w[i] @ w[j]) < NEARLY and j not in others:
            w[j] -= w[i] * (w[i] @ w[j])
            w[j] /= np.linalg.norm(w[j])
    p[4:] = arm.centre
    if arm.kind != "three parallel":
        p[3] = arm.centre
    if arm.kind == "wrist, 1 meets 2":
        p[:2] = arm.meet
    if arm.kind == "wrist, 2 meets 3":
        p[1:3] = arm.meet
    return Arm(_snapped(w), p, arm.home, arm.kind, arm.centre, arm.meet, exact=False)


def _snapped(x: np.ndarray) -> np.ndarray:
    """x with entries that are integers up to rounding made exact, so that traced code folds them."""
    return np.where(np.abs(x - np.round(x)) < 4e-15, np.round(x), x)


def solve(robot: Robot, target: Array, arm: Arm) -> tuple[Array, Array]:
    """The angles (..., 8, 6) of the joints on the path, and how far each is off (..., 8).

    That is the sum of the squares of what the subproblems left over, which each solves as nearly as it can: of the difference in one
    point and two directions, compared where both sides are known already (of a vector that the last angle turns to where it shall
    be, only what is along its axis can be left). Zero means that the pose is reached.
    """
    w, p = like(arm.w, target), like(arm.p, target)
    g = target @ like(se3.inverse(arm.home), target)
    branches = _three_parallel(arm, w, p, g) if arm.kind == "three parallel" else _wrist(arm, w, p, g)
    q = stack([stack([angle(pair) for pair in pairs]) for pairs, _ in branches], axis=-2)
    return q, stack([off for _, off in branches])


def _apart(*pairs: tuple[Array, Array]) -> Array:
    """The sum of the squares of the distances between pairs of vectors."""
    return sum(dot(x - y, x - y) for x, y in pairs)


def _moved(w: Array, p: Array, i: int, pair: Angle, x: Array) -> Array:
    """eᵢ x for a point x."""
    return p[i] + turned(w[i], pair, x - p[i])


def _wrist(arm: Arm, w: Array, p: Array, g: Array) -> list[tuple[list[Angle], Array]]:
    c, R, aside = like(arm.centre, g), g[..., :3, :3], like(_across(arm.w[5]), g)
    k = mv(R, c) + g[..., :3, 3]
    found = []
    for q1, q2, q3 in _POSITION[arm.kind](arm, w, p, c, k):
        reached = _moved(w, p, 0, q1, _moved(w, p, 1, q2, _moved(w, p, 2, q3, c)))

        def seen(x: Array, q1: Angle = q1, q2: Angle = q2, q3: Angle = q3) -> Array:
            return turned(w[2], back(q3), turned(w[1], back(q2), turned(w[0], back(q1), mv(R, x))))

        end, beside = seen(w[5]), seen(aside)  # R₄R₅R₆ of both
        for q5 in _tilts(arm, w, 3, w[3], end):
            sixth = turned(w[4], q5, w[5])  # R₅ ω₆
            q4 = subproblem1(w[3], sixth, end)
            rest = turned(w[4], back(q5), turned(w[3], back(q4), beside))  # R₆ aside
            q6 = azimuth(w[5], aside, rest)
            off = _apart((reached, k), (turned(w[3], q4, sixth), end)) + dot(w[5], rest) ** 2
            found.append(([q1, q2, q3, q4, q5, q6], off))
    return found


def _tilts(arm: Arm, w: Array, i: int, x: Array, y: Array) -> tuple[Angle, Angle]:
    """Both q₅ with ωᵢ · R₅ω₆ = x · y, for unit vectors x, y: subproblem 4.

    Where ω₅ is orthogonal to ωᵢ and ω₆, x and y are q₅ apart but for a constant, and its sine is |x × y|, which is exact where the
    height x · y,
    near 1, does not tell the angle: by a wrist that is nearly straight.
    """
    if arm.w[4] @ arm.w[i] != 0.0 or arm.w[4] @ arm.w[5] != 0.0:
        return subproblem4(w[4], w[i], w[5], dot(x, y))
    a, b, r = dot(w[i], w[5]), dot(w[i], cross(w[4], w[5])), dot(x, y)
    s = namespace(x, y).sqrt(dot(cross(x, y), cross(x, y)))
    return both(a, b, r, s)


def _across(w: np.ndarray) -> np.ndarray:
    """A unit vector orthogonal to w; along a coordinate axis if w is one."""
    x = np.cross(w, np.eye(3)[np.argmin(np.abs(w))])
    return _snapped(x / np.linalg.norm(x))


def _second_parallel_third(arm: Arm, w: Array, p: Array, c: Array, k: Array) -> list[tuple[Angle, Angle, Angle]]:
    found = []
    for minus in subproblem4(w[0], w[1], k - p[0], dot(w[1], c - p[0])):
        y = _moved(w, p, 0, minus, k)  # e₁⁻¹ k
        found += [(back(minus), *rest) for rest in _planar(w, p, (1, 2), c, y)]
    return found


def _planar(w: Array, p: Array, joints: tuple[int, int], x: Array, y: Array) -> list[tuple[Angle, Angle]]:
    """Both pairs of angles of two parallel joints i, j with eᵢ eⱼ x = y, in the plane orthogonal to their axes."""
    i, j = joints

    def flat(z: Array) -> Array:
        return z - dot(w[i], z)[..., None] * w[i]

    goal = flat(y - p[i])
    found = []
    for qj in subproblem3(w[j], flat(x - p[j]), flat(p[i] - p[j]), dot(goal, goal)):
        found.append((subproblem1(w[i], flat(_moved(w, p, j, qj, x) - p[i]), goal), qj))
    return found


def _first_parallel_second(arm: Arm, w: Array, p: Array, c: Array, k: Array) -> list[tuple[Angle, Angle, Angle]]:
    found = []
    for q3 in subproblem4(w[2], w[0], c - p[2], dot(w[0], k - p[2])):
        found += [(*first, q3) for first in _planar(w, p, (0, 1), _moved(w, p, 2, q3, c), k)]
    return found


def _first_meets_second(arm: Arm, w: Array, p: Array, c: Array, k: Array) -> list[tuple[Angle, Angle, Angle]]:
    m = like(arm.meet, k)
    found = []
    for q3 in subproblem3(w[2], c - p[2], m - p[2], dot(k - m, k - m)):
        found += [(*first, q3) for first in subproblem2(w[0], w[1], _moved(w, p, 2, q3, c) - m, k - m)]
    return found


def _second_meets_third(arm: Arm, w: Array, p: Array, c: Array, k: Array) -> list[tuple[Angle, Angle, Angle]]:
    m = like(arm.meet, k)
    found = []
    for minus in subproblem3(w[0], k - p[0], m - p[0], dot(c - m, c - m)):
        y = _moved(w, p, 0, minus, k)  # e₁⁻¹ k
        found += [(back(minus), *rest) for rest in subproblem2(w[1], w[2], c - m, y - m)]
    return found


_POSITION: dict[str, Callable[..., list[tuple[Angle, Angle, Angle]]]] = {
    "wrist, 2 ∥ 3": _second_parallel_third,
    "wrist, 1 ∥ 2": _first_parallel_second,
    "wrist, 1 meets 2": _first_meets_second,
    "wrist, 2 meets 3": _second_meets_third,
}


def _three_parallel(arm: Arm, w: Array, p: Array, g: Array) -> list[tuple[list[Angle], Array]]:
    c, R, shift, aside = like(arm.centre, g), g[..., :3, :3], g[..., :3, 3], like(_across(arm.w[3]), g)
    k = mv(R, c) + shift
    sign3, sign4 = (float(np.sign(arm.w[1] @ arm.w[i])) for i in (2, 3))
    xp = namespace(g)
    found = []
    for minus in subproblem4(w[0], w[1], k - p[0], dot(w[1], c - p[0])):
        q1 = back(minus)
        seen = mv(transpose(R), turned(w[0], q1, w[1]))  # ω₂ from the end, (R₅R₆)ᵀ ω₂
        for q5 in _tilts(arm, w, 1, w[5], seen):
            fifth = turned(w[4], back(q5), w[1])
            straight = _least_bent(w, p, g, q1, q5)
            free = xp.less(dot(cross(w[5], seen), cross(w[5], seen)), STRAIGHT**2)
            bent = subproblem1(w[5], seen, fifth)
            q6 = Angle(xp.where(free, straight.sin, bent.sin), xp.where(free, straight.cos, bent.cos))

            def undone(x: Array, q5: Angle = q5, q6: Angle = q6) -> Array:
                return _moved(w, p, 5, back(q6), _moved(w, p, 4, back(q5), x))

            def at(x: Array, minus: Angle = minus, undone: Callable[[Array], Array] = undone) -> Array:  # e₂e₃e₄ x
                return _moved(w, p, 0, minus, mv(R, undone(x)) + shift)

            fourth, beside = at(p[3]), at(p[3] + aside)
            total = angle(azimuth(w[1], aside, beside - fourth))  # of the three parallel joints together
            off = _apart((turned(w[5], q6, seen), fifth)) + dot(w[3], beside - fourth) ** 2
            for q2, q3 in _planar(w, p, (1, 2), p[3], fourth):
                q4 = Angle(None, None, wrapped(sign4 * wrapped(total - angle(q2) - sign3 * angle(q3))))
                reached = _moved(w, p, 1, q2, _moved(w, p, 2, q3, p[3]))
                found.append(([q1, q2, q3, q4, q5, q6], off + _apart((reached, fourth))))
    return found


def _least_bent(w: Array, p: Array, g: Array, q1: Angle, q5: Angle) -> Angle:
    """q₆ for a straight wrist, where axis 6 is the fourth parallel one and its angle free: the elbow is brought nearest to a right angle.

    So the rest can be reached if it can be at all: |g e₆⁻¹e₅⁻¹p₄ - e₁p₂|² in the plane orthogonal to ω₆ is to be |p₃ - p₂|² + |p₄ -
    p₃|².
    """

    def flat(i: int, x: Array) -> Array:
        return x - dot(w[i], x)[..., None] * w[i]

    hub = mv(transpose(g[..., :3, :3]), _moved(w, p, 0, q1, p[1]) - g[..., :3, 3])  # g⁻¹ e₁ p₂
    upper, fore = flat(1, p[2] - p[1]), flat(1, p[3] - p[2])
    arm = _moved(w, p, 4, back(q5), p[3])
    first, _ = subproblem3(w[5], flat(5, arm - p[5]), flat(5, hub - p[5]), dot(upper, upper) + dot(fore, fore))
    return back(first)
