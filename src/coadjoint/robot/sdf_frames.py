"""The frames of an SDF model: where links, joints and frames stand, each of which may be placed in any other.

A link stands in the model, a joint in its child, a frame in what it is attached to, unless `relative_to` names another.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import arrows, unknown
from ..lie import se3
from ..words import short
from . import xml
from .sdf_values import content, local_pose

Key = tuple[str, str]
"""The kind of a frame ("link", "frame", "joint", "model") and its name."""

MODEL: Key = ("model", "__model__")
WORLD = "world"
LINKS = ("link", "frame")
ALL = ("link", "frame", "joint")


class Frames:
    """The frames of a model by name; `elements` has those of each tag."""

    def __init__(self, model: xml.Element, elements: dict[str, dict[str, xml.Element]]) -> None:
        self.elements = elements
        self._missed = 0
        self._poses: dict[Key, np.ndarray] = {MODEL: np.eye(4)}
        self._links: dict[Key, str] = {("link", name): name for name in elements["link"]}
        if elements["link"]:
            canonical = model.attributes.get("canonical_link", "") or next(iter(elements["link"]))
            if canonical not in elements["link"]:
                raise model.error(f"canonical_link: {unknown('link', canonical, elements['link'])}")
            self._links[MODEL] = canonical

    def find(self, name: str, at: xml.Element, tags: tuple[str, ...] = ALL) -> Key:
        """The frame with that name, which the element `at` names."""
        if name == MODEL[1]:
            return MODEL
        found = [(tag, name) for tag in tags if name in self.elements[tag]]
        if not found:
            self._missed += 1
            if self._missed > 8:  # of shapes, which stop nothing; a search through all names for each would take long
                raise at.error(f"no {' or '.join(tags)} is named {short(name)}.")
            known = [x for tag in tags for x in self.elements[tag]]
            nested = " Nested models are not read." if "::" in name else ""
            raise at.error(f"{unknown(' or '.join(tags), name, known)}{nested}")
        if len(found) > 1:
            raise at.error(f"{short(name)} is a {found[0][0]} and a {found[1][0]}; give them different names.")
        return found[0]

    def pose(self, key: Key) -> np.ndarray:
        """The pose of a frame in that of the model."""
        path = self._path(key, self._poses, lambda x: self._placed(x)[0])
        for step in reversed(path):
            before, local = self._placed(step)
            self._poses[step] = self._poses[before] @ local
        return self._poses[key]

    def between(self, a: Key, b: Key) -> np.ndarray:
        """The pose of frame b in frame a."""
        result: np.ndarray = np.eye(4) if a == b else se3.inverse(self.pose(a)) @ self.pose(b)
        return result

    def link(self, key: Key) -> str:
        """The link that a frame is attached to."""
        path = self._path(key, self._links, self._attached)
        for step in reversed(path):
            self._links[step] = self._links[self._attached(step)]
        return self._links[key]

    def within(self, element: xml.Element, own: Key) -> np.ndarray:
        """The <pose> of an element that stands in the frame `own`, where it stands unless `relative_to` names another."""
        pose = element.optional("pose")
        if pose is None:
            return np.eye(4)
        other = self._relative(pose)
        return local_pose(pose) if other is None else self.between(own, other) @ local_pose(pose)

    def child(self, joint: xml.Element) -> Key:
        """The link or frame that a joint carries."""
        return self.find(content(joint, "child"), joint.one("child"), LINKS)

    def _relative(self, pose: xml.Element) -> Key | None:
        name = pose.attributes.get("relative_to") or pose.attributes.get("frame")  # which it was called before SDF 1.7
        return self.find(name, pose) if name else None

    def _placed(self, key: Key) -> tuple[Key, np.ndarray]:
        """The frame in which one is placed, and its pose there."""
        element = self.elements[key[0]][key[1]]
        pose = element.optional("pose")
        before = None if pose is None else self._relative(pose)
        if before is None:
            before = self.child(element) if key[0] == "joint" else MODEL if key[0] == "link" else self._attached(key)
        return before, np.eye(4) if pose is None else local_pose(pose)

    def _attached(self, key: Key) -> Key:
        element = self.elements[key[0]][key[1]]
        if key[0] == "joint":
            return self.child(element)
        name = element.attributes.get("attached_to", "")
        return self.find(name, element) if name else MODEL

    def _path(self, key: Key, known: dict[Key, np.ndarray] | dict[Key, str], before: Callable[[Key], Key]) -> list[Key]:
        """The frames from this one to the first that is known, which is left out; iterated, for chains may be long."""
        path: dict[Key, None] = {}
        while key not in known:
            if key in path:
                names = [x[1] for x in path][list(path).index(key) :]
                raise self.elements[key[0]][key[1]].error(
                    f"frames are placed in each other in a circle: {arrows([*names, key[1]])}."
                )
            path[key] = None
            key = before(key)
        return list(path)
