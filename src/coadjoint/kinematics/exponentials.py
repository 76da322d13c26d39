"""The product of exponentials in its three forms. Park, Bobrow & Ploen (1995), section 2.4.

For the joints on the path to a frame, each with one screw, base outward:

    relative    f = e^{P₁x₁} M₁ e^{P₂x₂} M₂ ⋯ e^{Pₙxₙ} Mₙ     (12)    Pᵢ in the frame of the link before, Mᵢ link by link at home
    space       f = e^{A₁x₁} ⋯ e^{Aₙxₙ} M                     (13)    Aᵢ in the space frame at home, M the frame at home
    body        f = M e^{B₁x₁} ⋯ e^{Bₙxₙ}                     (14)    Bᵢ in the frame itself at home

and Aᵢ = Ad_M Bᵢ = Ad_{M₁⋯Mᵢ₋₁} Pᵢ. Links of fixed joints are part of what carries them.
"""

from __future__ import annotations

import numpy as np

from ..arguments import a_name, a_robot, check_core, numbers, takes
from ..arrays import Array, ArrayLike, asfloat, broadcast_batch, like, namespace, stack
from ..errors import CoadjointError, ModelError
from ..lie import se3
from ..robot.robot import Robot

FORMS = ("space", "body", "relative")


def screw_path(robot: Robot, frame: str) -> tuple[tuple[int, ...], Array]:
    """The links on the path to a frame, base outward, and the frame's pose in the last; an error for joints of several screws."""
    link, pose = a_robot(robot, "robot").frame(frame)
    path = robot.path(link)
    for i in reversed(path):
        joint = robot.links[i].joint
        if robot.kind(i).nv > 1:
            raise ModelError(
                f"joint {joint.name!r} on the path to {frame!r} is {joint.kind}; a product of exponentials has one screw "
                "for each joint. `pose` and `jacobian` take every kind."
            )
    return path, pose


def space_screws(robot: Robot, frame: str) -> tuple[Array, Array]:
    """A (n, 6) and M (4, 4) of the form (13), for the n joints on the path to a frame; a robot's own order for a chain."""
    path, pose = screw_path(robot, frame)
    home = like(np.eye(4), robot.placements)
    screws = []
    for i in path:
        home = home @ robot.placements[i]
        if robot.kind(i).nv:
            screws.append(se3.Ad_act(home, robot.joint_screws(i)[0]))
    return _rows(screws, robot), home @ pose


def body_screws(robot: Robot, frame: str) -> tuple[Array, Array]:
    """B (n, 6) and M (4, 4) of the form (14): Bᵢ = Ad_{M⁻¹} Aᵢ."""
    screws, home = space_screws(robot, frame)
    return se3.Ad_inv_act(home, screws), home


def relative_screws(robot: Robot, frame: str) -> tuple[Array, Array]:
    """P (n, 6) and Mᵢ (n, 4, 4) of the form (12): Pᵢ in the frame of the link before, in space for the first."""
    path, pose = screw_path(robot, frame)
    screws: list[Array] = []
    homes: list[Array] = []
    placement = like(np.eye(4), robot.placements)
    for i in path:
        placement = placement @ robot.placements[i]
        if robot.kind(i).nv:
            screws.append(se3.Ad_act(placement, robot.joint_screws(i)[0]))
            homes.append(placement)
            placement = like(np.eye(4), robot.placements)
    if not homes:
        raise ModelError(f"frame {frame!r} of robot {robot.name!r} does not move; the form (12) needs a joint on its path.")
    homes[-1] = homes[-1] @ placement @ pose
    return _rows(screws, robot), stack(homes, axis=-3)


def _rows(screws: list[Array], robot: Robot) -> Array:
    return stack(screws, axis=-2) if screws else like(np.zeros((0, 6)), robot.screws)


def path_coordinates(robot: Robot, q: ArrayLike, frame: str) -> Array:
    """The coordinates (..., n) of the joints on the path to a frame, base outward, for q (..., nq); of mimic joints their own."""
    path, _ = screw_path(robot, frame)
    q = asfloat(q, "q")
    check_core("q", q, (robot.nq,), f" for robot {robot.name!r}")
    return robot.tree_q(q)[..., [robot.tree_q_slices[i].start for i in path if robot.kind(i).nv]]


@takes(screws=numbers, home=numbers, q=numbers, form=a_name)
def product_of_exponentials(screws: ArrayLike, home: ArrayLike, q: ArrayLike, form: str = "space") -> Array:
    """The pose (..., 4, 4) of the last frame for screws (..., n, 6), home (..., 4, 4) and q (..., n).

    form "space": (13); "body": (14); "relative": (12), with home (..., n, 4, 4).
    """
    if form not in FORMS:
        raise CoadjointError(f"form is {form!r}; choose 'space' (13), 'body' (14) or 'relative' (12).")
    screws, home, q = asfloat(screws, "screws"), asfloat(home, "home"), asfloat(q, "q")
    xp = namespace(screws, home, q)
    reference = next(x for x in (q, screws, home) if namespace(x) is xp)
    screws, home, q = (x if namespace(x) is xp else like(x, reference) for x in (screws, home, q))
    n = q.shape[-1] if q.ndim else -1
    core = (n, 4, 4) if form == "relative" else (4, 4)
    for what, x, shape in (("screws", screws, (n, 6)), ("home", home, core)):
        check_core(what, x, shape, f" for q {tuple(q.shape)}")
    batch = broadcast_batch(screws=(screws, 2), home=(home, len(core)), q=(q, 1))
    f: Array = home if form == "body" else None
    for i in range(n):
        step = se3.exp_screw(screws[..., i, :], q[..., i])
        if form == "relative":
            step = step @ home[..., i, :, :]
        f = step if f is None else f @ step
    if form == "space":
        f = home if f is None else f @ home
    return xp.broadcast_to(f, (*batch, 4, 4))
