"""The robot: an immutable tree of links carried by joints.

What it is made of is in `tree.py`, its coordinates in `coordinates.py`; here it is built, changed, converted and compared.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import names, sequence
from ..arrays import Array, ArrayLike, like
from ..errors import CoadjointError
from ..lie import se3
from ..memo import Memo, Recent, per_robot, results
from . import edit, text
from .layout import check_loops, gathered_numbers, layout
from .link import Frame, Link, Loop, as_pose
from .plausibility import impossible_inertias, massless_joints
from .screws import links_of_screws
from .shape import Shape, check_shapes, missing_meshes
from .spring import Spring, ends_of_springs, new_spring
from .srdf import NamedPoses, checked_poses, coordinates, fitting
from .tree import NUMBERS, Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .meshes import Packed


class Robot(Tree):
    """An immutable mechanism. Load one with `coadjoint.load`, or make one from screws or from links."""

    _poses: NamedPoses
    _memo: Memo
    _structure_memo: Memo
    """Cached results that depend on the structure only: shared by `with_numbers`."""
    _overconstrained: Recent
    """The constraints that are known to be overconstrained: `constraints/rank.py`."""
    _fast: dict[Any, Any]
    _replaced: bool
    _original: Robot | None

    def __init__(
        self,
        name: str,
        links: Sequence[Link],
        frames: Iterable[Frame] = (),
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        base: str = "base",
        notes: Iterable[str] = (),
        shapes: Iterable[Shape] = (),
        loops: Iterable[Loop] = (),
        poses: Mapping[str, Any] | None = None,
        springs: Iterable[Spring] = (),
    ) -> None:
        links, frames = tuple(sequence(links, "links")), tuple(sequence(frames, "frames"))
        notes = (notes,) if isinstance(notes, str) else tuple(names(notes, "notes"))
        self.__dict__.update(
            name=name,
            base=base,
            links=links,
            frames=frames,
            notes=notes,
            shapes=tuple(sequence(shapes, "shapes")),
            loops=tuple(sequence(loops, "loops")),
            springs=tuple(sequence(springs, "springs")),
            _structure_memo={},
            _replaced=False,
            **_nothing_kept(),
        )
        self.__dict__.update(layout(name, base, links, frames))
        check_shapes(self.shapes, self._link_index)
        check_loops(self.loops, self.frame_names)
        self.__dict__["spring_ends"] = ends_of_springs(self.springs, links, self._link_index)
        self.__dict__.update(gathered_numbers(links, frames, self.springs, gravity))
        self.__dict__["_poses"] = checked_poses(self, {} if poses is None else poses)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(
            f"a Robot is immutable; `robot.with_…` and `robot.lock` give a changed copy instead of setting {key!r}."
        )

    def __delattr__(self, key: str) -> None:
        raise AttributeError("a Robot is immutable.")

    # --- making one

    @staticmethod
    def from_screws(
        screws: ArrayLike,
        com_frames: ArrayLike,
        masses: ArrayLike,
        inertias: ArrayLike,
        parents: Sequence[int] | None = None,
        tip: ArrayLike | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        name: str = "robot",
    ) -> Robot:
        """A robot of revolute, prismatic and helical joints from the data of Park, Bobrow & Ploen (1995), section 4.

        screws (n, 6): Aᵢ = (ω, v) in the space frame, at home, |ω| = 1, or ω = 0 and |v| = 1.
        com_frames (n, 4, 4): each link's frame, at its centre of mass, at home. masses (n,), inertias (n, 3, 3) in that frame.
        parents: the link that carries each joint, -1 for the base; a chain if None. tip (4, 4): a frame "tip" on the last link.
        """
        links = links_of_screws(screws, com_frames, masses, inertias, parents)
        robot = Robot(name, links, gravity=gravity)
        if tip is None:
            return robot
        last = se3.inverse(np.asarray(com_frames, dtype=float)[-1]) if links else np.eye(4)
        return robot.with_frame("tip", links[-1].name if links else "base", last @ as_pose(tip, "tip"))

    def with_link(self, link: Link) -> Robot:
        """This robot with one more link, for building link by link from `Robot("name", [])`."""
        return self._remade(links=(*self.consolidated().links, link))

    def _remade(self, **changes: Any) -> Robot:
        whole = self if {"links", "frames", "gravity"} <= changes.keys() else self.consolidated()
        parts: dict[str, Any] = {"name": self.name, "links": whole.links, "frames": whole.frames, "gravity": whole.gravity}
        kept: dict[str, Any] = {"base": self.base, "notes": self.notes, "shapes": self.shapes, "loops": self.loops}
        kept["springs"] = whole.springs
        robot = Robot(**(parts | kept | changes))
        if "poses" not in changes and self._poses:
            robot.__dict__["_poses"] = fitting(robot, self._poses)[0]
        return robot

    # --- a changed copy

    def with_frame(self, name: str, link: str, pose: ArrayLike) -> Robot:
        """This robot with a frame `name` that stands at `pose` (4, 4) in the frame of a link, another frame or the base."""
        on, placement = self.frame(link)
        frame = Frame(name, self._link_name(on), placement @ as_pose(pose, f"frame {name!r}: pose"))
        return self._remade(frames=(*self.consolidated().frames, frame))

    def with_shapes(self, shapes: Iterable[Shape]) -> Robot:
        """This robot with these shapes in place of its own; `(*robot.shapes, new)` adds one."""
        return self._remade(shapes=shapes)

    def with_poses(self, poses: Mapping[str, Any]) -> Robot:
        """This robot with named poses in place of its own: {name: q (nq,)} or {name: {joint: coordinates}}."""
        return self._remade(poses=poses)

    def with_spring(self, at: str, to: str | None = None, *, stiffness: float, rest: float = 0.0, name: str | None = None) -> Robot:
        """This robot with one more spring: between the origins of the frames `at` and `to`, or about the joint `at`.

        Between frames at the distance ℓ it pulls with stiffness · (ℓ - rest); about a joint it turns back with stiffness · (q - rest).
        Its energy is part of `potential_energy`, its force of `gravity_force`, dynamics and simulation.
        """
        return self._remade(springs=(*self.consolidated().springs, new_spring(self, at, to, stiffness, rest, name)))

    def with_springs(self, springs: Iterable[Spring]) -> Robot:
        """This robot with these springs in place of its own; `with_springs([])` has none."""
        return self._remade(springs=springs)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """This robot with the gravitational acceleration (3,), in the space frame."""
        return self._remade(gravity=gravity)

    def with_inertia(self, link: str, *, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike = 0.0) -> Robot:
        """This robot with another mass, centre of mass and inertia about it, in the frame of the link."""
        return edit.with_inertia(self.consolidated(), link, mass=mass, com=com, inertia=inertia)

    def with_inertial_parameters(self, parameters: ArrayLike) -> Robot:
        """This robot with the ten parameters of every link replaced by the vector (10 n_links,); as `with_parameters("inertial", …)`."""
        return edit.with_inertial_parameters(self, parameters)

    def with_payload(self, frame: str, *, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike = 0.0) -> Robot:
        """This robot with a body carried by the link of a frame: its centre of mass, and inertia about that, in the frame.

        The link's own inertia grows by that of the body; `attach` adds a body as a link of its own.
        """
        return edit.with_payload(self.consolidated(), frame, mass=mass, com=com, inertia=inertia)

    def with_joint(self, joint: str, **options: Any) -> Robot:
        """This robot with other armature, damping, friction, lower, upper, velocity, effort or mimic of a joint."""
        return edit.with_joint(self.consolidated(), joint, **options)

    def with_placement(self, link: str, placement: ArrayLike) -> Robot:
        """This robot with another pose (4, 4) of a link's frame in its parent's, at home; all that the link carries moves with
        it.
        """
        return edit.with_placement(self.consolidated(), link, placement)

    def lock(self, values: Mapping[str, Any]) -> Robot:
        """This robot with joints held at given coordinates; their links become part of what carries them, and frames of it."""
        return edit.lock(self.consolidated(), values)

    def attach(self, other: Robot, frame: str, pose: ArrayLike | None = None, prefix: str = "") -> Robot:
        """This robot carrying another (a tool, a hand): the other's base stands at `pose` in `frame`.

        `prefix` goes before the other's names where they would clash.
        """
        return edit.attach(self.consolidated(), other, frame, pose, prefix)

    def merge_fixed(self) -> Robot:
        """This robot with the links of fixed joints made part of what carries them, and frames of it."""
        return edit.merge_fixed(self.consolidated())

    # --- named sets of parameters: see `parameters.py`

    def parameters(self, name: str) -> Array:
        """A named set of this robot's free numbers as a vector: "inertial", "masses", "lengths", "axes", "homes", "dh:frame", …"""
        from .parameters import parameter_set

        return parameter_set(self, name).values

    def parameter_names(self, name: str) -> tuple[str, ...]:
        """The meaning of each number of a set: its link or joint, and which of its numbers."""
        from .parameters import parameter_set

        return parameter_set(self, name).names

    def with_parameters(self, name: str, values: Array) -> Robot:
        """This robot with a named set of parameters replaced by a vector; also by traced arrays and symbols."""
        from .parameters import with_parameters

        return with_parameters(self, name, values)

    # --- names and numbers

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reader's remarks, and doubtful properties of the robot: impossible inertias, joints that move no mass."""
        if not self.has_plain_numbers:
            return self.notes
        return (*self.notes, *impossible_inertias(self), *massless_joints(self), *missing_meshes(self.shapes))

    @property
    def poses(self) -> dict[str, np.ndarray]:
        """Its named poses, as an SRDF or the keyframes of an MJCF have them: q (nq,) by name."""
        return {name: coordinates(self, pose) for name, pose in self._poses.items()}

    def packed_meshes(self, most: int = 60_000, role: str = "visual") -> Packed:
        """The triangles of its visuals (or with role="collision" of those), at most about `most`, quantised to 16 bits for a page; what
        cannot be shown is a note of the result.
        """
        from .meshes import packed

        return packed(self, most, role)

    # --- for the algorithms

    def with_numbers(self, **numbers: Array) -> Robot:
        """This robot with some of `NUMBERS` replaced by arrays of any kind, symbols and traced arrays included, unchecked."""
        other = object.__new__(Robot)
        other.__dict__.update(self.__dict__, **numbers, _replaced=True, **_nothing_kept())
        return other

    def derived(self, **numbers: Array) -> Robot:
        """`with_numbers`, for the same mechanism written otherwise: this is its `original`."""
        other = self.with_numbers(**numbers)
        other.__dict__["_original"] = self.original
        return other

    def consolidated(self) -> Robot:
        """This robot with its numbers in its links, checked, where `with_numbers` has put others in their place."""
        if not self._replaced:
            return self
        if not self.has_plain_numbers:
            raise CoadjointError(
                f"the numbers of robot {self.name!r} are variables; give them values before it is changed or saved."
            )
        from .parameters import consolidate

        return consolidate(self, {})

    @property
    def original(self) -> Robot:
        """The robot of which this is the canonical form, or a copy in another array library or precision; else itself."""
        return self if self._original is None else self._original

    @property
    def canonical(self) -> Any:
        """This mechanism in frames in which most constants vanish: see `robot/canonical.py`."""
        from .canonical import canonical

        return canonical(self)

    def canonical_arguments(self, arrays: dict[str, Array]) -> tuple[Robot, dict[str, Array]]:
        """The robot in its canonical form, and arrays of arguments by name, wrenches as seen in its frames."""
        form = self.canonical
        if "wrenches" in arrays:
            arrays = arrays | {"wrenches": se3.Ad_dual_act(form.frames, arrays["wrenches"])}
        return form.robot, arrays

    @property
    def skeleton(self) -> str:
        """Its structure: what it is beside its numbers, see `robot/structure.py`."""
        from .structure import skeleton

        return skeleton(self)

    def numbers(self, joint_space: bool) -> tuple[np.ndarray, np.ndarray]:
        """The robot's numbers in one vector, for `joint_space` those of the canonical form; and which of them are always inputs of
        kernels."""
        from .structure import numbers

        return numbers(self, joint_space)

    def member(self, joint_space: bool, values: np.ndarray, arrays: dict[str, Array]) -> tuple[Robot, dict[str, Array]]:
        """The robot of this structure with other numbers, symbols among them, and arguments as seen in its frames."""
        from .structure import member

        return member(self, joint_space, values, arrays)

    def like(self, x: Array) -> Robot:
        """This robot with its numbers as arrays of the namespace, precision and device of x."""
        if isinstance(x, np.ndarray) and x.dtype != np.float32:
            return self

        def make() -> Robot:
            return self.derived(**{key: like(getattr(self, key), x) for key in NUMBERS})

        if not self.has_plain_numbers:
            return make()
        device = str(getattr(x, "device", "")) if hasattr(x, "is_floating_point") else ""
        return results(self._memo, Robot.like).get((type(x).__module__.partition(".")[0], x.dtype, device), make)

    # --- saving, comparing, showing

    def plot(self, q: ArrayLike | None = None, path: str | os.PathLike[str] | None = None) -> Figure:
        """The figure of the robot at q (nq,), its neutral configuration if None: its visuals and joints. Notebooks show it; it is saved if
        a path is given: .png, .svg, .pdf or .html.
        """
        from ..arguments import states
        from ..show.portrait import draw_robot

        (chosen,) = states(self, q=(self.neutral() if q is None else q, self.nq))
        if chosen.ndim != 1:
            raise CoadjointError(f"q has shape {chosen.shape}; expected one configuration ({self.nq},).")
        return draw_robot(self, chosen, None if path is None else Path(path))

    def to_json(self) -> str:
        """The robot as JSON text, without loss."""
        from . import storage

        return json.dumps(storage.to_dict(self.consolidated()), indent=1)

    @property
    def fingerprint(self) -> str:
        """A hash of the robot's content, notes and shapes not counted; for a robot whose numbers are variables, a hash of its identity."""
        return _fingerprint(self) if self.has_plain_numbers else f"variable {id(self)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Robot) and (self is other or self.fingerprint == other.fingerprint)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __dask_tokenize__(self) -> str:
        return self.fingerprint

    def __copy__(self) -> Robot:
        return self  # nothing of it can change

    def __deepcopy__(self, memo: Any) -> Robot:
        return self

    def __reduce__(self) -> Any:
        whole = self.consolidated()
        described = (whole.name, whole.links, whole.frames, whole.gravity, whole.base, whole.notes)
        return Robot, (*described, whole.shapes, whole.loops, whole._poses, whole.springs)

    def __repr__(self) -> str:
        return text.summary(self)

    def __str__(self) -> str:
        return text.tree(self)

    def _repr_html_(self) -> str:
        from ..show.notebook import robot_html

        return robot_html(self)


def _nothing_kept() -> dict[str, Any]:
    """Attributes of a robot about which nothing is known yet."""
    return {"_memo": {}, "_overconstrained": Recent(), "_fast": {}, "_original": None}


@per_robot
def _fingerprint(robot: Robot) -> str:
    digest = hashlib.sha256(text.structure(robot).encode())
    for array in (*(getattr(robot, key) for key in NUMBERS), *(robot._q_map or ())):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
