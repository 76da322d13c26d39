"""Joints as screws.

A joint carries a link relative to its parent: the link's frame stands at `placement @ pose(screws, q)` in the parent's.
Every joint is given by the screws of its degrees of freedom, rows (ω, v) in the frame of the link it carries, at home:

    one screw       revolute, continuous, prismatic, helical    exp(S q)                      Park, Bobrow & Ploen (1995), (23)
    two screws      universal                                   exp(S₁ q₁) exp(S₂ q₂)
    a subgroup      spherical, planar, free                     K g(q) K⁻¹, K the frame in which the screws are the axes

The velocity v of a subgroup joint is the body velocity of g, so that its screws stay constant; q of a spherical joint is a
quaternion (x, y, z, w), of a planar joint (x, y, θ), of a free joint (position, quaternion).
"""

from __future__ import annotations

from .groups import Free, Planar, Spherical, axes_and_centre
from .kind import JointKind, nearest_rotation
from .one_screw import Fixed, Helical, Prismatic, Revolute
from .universal import Universal

KINDS: dict[str, JointKind] = {
    "fixed": Fixed(),
    "revolute": Revolute(),
    "continuous": Revolute(),
    "prismatic": Prismatic(),
    "helical": Helical(),
    "universal": Universal(),
    "spherical": Spherical(),
    "planar": Planar(),
    "free": Free(),
}
"""The kinds of joints by name. No algorithm asks for the name: kinds answer for themselves (`JointKind`)."""

__all__ = ["KINDS", "JointKind", "axes_and_centre", "nearest_rotation"]
