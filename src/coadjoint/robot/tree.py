"""The tree of links that a robot is: its names, its arrays of numbers, and the path from the base to a link.

Link i is carried by joint i; joints and links keep the order in which they were described, whatever the shape of the tree.
What the algorithms read are plain arrays:

    placements (n, 4, 4)     pose of each link's frame in its parent's, at home: Mᵢ of Park, Bobrow & Ploen (1995), (23)
    screws (…, 6)            screws of all freedoms, joint after joint, in the frame of the link they carry: Sᵢ
    inertias (n, 10)         m, m c, inertia about the frame's origin, in the link's frame: Jᵢ of (21)
    gravity (3,)             the acceleration of free fall in the space frame
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..errors import unknown
from .coordinates import Coordinates
from .joints import JointKind
from .link import Frame, Link, Loop
from .shape import Shape
from .spring import Ends, Spring

NUMBERS = ("placements", "screws", "inertias", "gravity", "armature", "damping", "friction", "frame_poses", "spring_numbers")
"""The arrays of numbers a robot has beside its structure; any of them may be variables."""


class Tree(Coordinates):
    """The part of `Robot` that is read from its links, frames and numbers."""

    name: str
    base: str
    links: tuple[Link, ...]
    frames: tuple[Frame, ...]
    notes: tuple[str, ...]
    """Remarks of the reader on the description."""
    shapes: tuple[Shape, ...]
    """Visual and collision shapes, each on a link or the base; no dynamics depends on them."""
    parents: tuple[int, ...]
    order: tuple[int, ...]
    placements: Array
    screws: Array
    inertias: Array
    gravity: Array
    armature: Array
    damping: Array
    friction: Array
    frame_poses: Array
    loops: tuple[Loop, ...]
    """Joints of its description that close loops; they hold nothing unless `Constraint.loops(robot)` is given to a function."""
    springs: tuple[Spring, ...]
    """The springs that it carries: see `with_spring`."""
    spring_numbers: Array
    """(…, 8): stiffness, rest and the two points of every spring."""
    spring_ends: tuple[Ends, ...]
    _link_index: dict[str, int]

    @property
    def n_links(self) -> int:
        """Number of links, the base not counted."""
        return len(self.links)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(link.joint.name for link in self.links)

    @property
    def link_names(self) -> tuple[str, ...]:
        return tuple(link.name for link in self.links)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every name that `pose` and `jacobian` take: the base, the links, and the frames on them."""
        return (self.base, *self.link_names, *(x.name for x in self.frames))

    @property
    def inertial_parameters(self) -> Array:
        """(10 n_links,): per link m, m c (3), inertia about the frame's origin xx xy xz yy yz zz."""
        return self.inertias.reshape(-1)

    @property
    def visuals(self) -> tuple[Shape, ...]:
        """The shapes that are seen."""
        return tuple(shape for shape in self.shapes if shape.role == "visual")

    @property
    def collisions(self) -> tuple[Shape, ...]:
        """The shapes that may collide."""
        return tuple(shape for shape in self.shapes if shape.role == "collision")

    def link_index(self, link: str) -> int:
        """The number of a link; -1 is the base."""
        if not isinstance(link, str) or link not in self._link_index:
            raise unknown("link", link, self._link_index)
        return self._link_index[link]

    def _link_name(self, i: int) -> str:
        return self.links[i].name if i >= 0 else self.base

    def frame(self, name: str) -> tuple[int, Array]:
        """(index of the link, -1 for the base; pose in that link) of a frame, a link or the base."""
        if isinstance(name, str) and name in self._link_index:
            return self._link_index[name], np.eye(4)
        for k, frame in enumerate(self.frames if isinstance(name, str) else ()):
            if frame.name == name:
                return self._link_index[frame.link], self.frame_poses[k]
        raise unknown("frame", name, self.frame_names)

    def path(self, link: int) -> tuple[int, ...]:
        """The indices of the links from the base to a link, inclusive; () for the base, -1."""
        found: list[int] = []
        while link >= 0:
            found.append(link)
            link = self.parents[link]
        return tuple(reversed(found))

    def kind(self, i: int) -> JointKind:
        return self.kinds[i]

    def joint_screws(self, i: int) -> Array:
        """The screws (nv, 6) of joint i."""
        return self.screws[..., self.tree_v_slices[i], :]

    @property
    def has_plain_numbers(self) -> bool:
        """True if all its numbers are constants of double precision, so that code can be compiled for them."""
        return all(type(x := getattr(self, key)) is np.ndarray and x.dtype == np.float64 for key in NUMBERS)
