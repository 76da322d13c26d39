"""The coordinate that each column of a table holds: `q1`, `position_0`, `dq1`, `elbow_velocity`, `/joint_states/elbow/effort`, `t_ms` …

A name is cut into words; what remains without fillers ("actual", "joint") must be a spelling of a quantity and a number or a joint.
Columns of commanded values ("desired", "target") are never taken for measured ones. A unit at the end of a name is applied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arguments import names as some_texts
from ..errors import CoadjointError, ReadError, unknown
from ..words import cut, short

SPELLINGS = {
    "time": ("time", "t", "timestamp", "stamp", "sec", "secs", "seconds", "header.stamp", "elapsed", "time.stamp", "elapsed.time"),
    "q": ("q", "pos", "position", "positions", "angle", "angles", "theta"),
    "v": ("v", "dq", "qd", "vel", "velocity", "velocities", "speed", "qdot", "q.dot", "dtheta"),
    "a": ("a", "ddq", "qdd", "acc", "accel", "acceleration", "accelerations", "qddot", "q.ddot", "q.dot.dot", "ddtheta"),
    "tau": ("tau", "torque", "torques", "effort", "efforts", "force", "forces"),
}
FILLERS = {
    "actual",
    "measured",
    "meas",
    "state",
    "states",
    "feedback",
    "msg",
    "act",
    "joint",
    "joints",
    "j",
    "axis",
    "jointstate",
    "field",
}
COMMANDED = {"desired", "des", "target", "command", "commanded", "cmd", "ref", "reference", "setpoint", "goal", "planned"}

RADIANS = math.pi / 180.0
_ANGLE = {"deg": RADIANS, "degree": RADIANS, "degrees": RADIANS, "°": RADIANS, "rad": 1.0, "m": 1.0, "mm": 1e-3}
_RATE = {f"{unit}{per}s": x for unit, x in _ANGLE.items() for per in ("/", "_", "p", "")} | {"rpm": math.pi / 30.0}
UNITS = {
    "time": {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "nsec": 1e-9, "min": 60.0},
    "q": _ANGLE,
    "v": _RATE,
    "a": {f"{unit}{two}": x for unit, x in _RATE.items() if unit != "rpm" for two in ("2", "^2", "²")},
    "tau": {"nm": 1.0, "n": 1.0, "mnm": 1e-3, "n.m": 1.0, "n m": 1.0, "n*m": 1.0},
}
"""The known units of every quantity, as factors to SI."""


@dataclass(frozen=True)
class Name:
    """The meaning of a column's name."""

    what: str
    index: int | None
    """The number of the coordinate as written, or its place among the robot's joints; None for time."""
    by_joint: bool
    group: str
    """Columns of one group belong together: the same spelling, the same prefix."""
    unit: str = ""


@dataclass(frozen=True)
class Place:
    """The columns of a quantity, in the order of coordinates, and the unit that their names state."""

    columns: list[int]
    unit: str = ""
    zero_based: bool = False
    by_joint: bool = False


def words(name: str) -> list[str]:
    return [x for x in re.split(r"[^0-9a-zµ°]+", name.lower()) if x]


def _without_unit(name: str, what: str) -> list[tuple[str, str]]:
    """The name, and the name without a unit of this quantity at its end."""
    found = [(name, "")]
    match = re.fullmatch(r"(.+?)\s*[\[(]\s*([^\])]+?)\s*[\])]", name.strip())
    if match and match[2].lower() in UNITS[what]:
        return [(match[1], match[2].lower())]
    lower = name.lower()
    for unit in sorted(UNITS[what], key=len, reverse=True):
        if lower.endswith("_" + unit) and len(lower) > len(unit) + 1:
            return [*found, (name[: -len(unit) - 1], unit)]
    return found


def read_name(name: str, what: str, joints: Mapping[str, int]) -> Name | None:
    """The part of a quantity that a column holds; None if it holds none. `joints`: coordinates by their names, cut into words."""
    for text, unit in _without_unit(name, what):
        parts = [x for x in text.split("/") if x]
        for k in range(len(parts)):
            before = set(words(" ".join(parts[:k])))
            if before & COMMANDED:
                continue
            found = _read_words(words(" ".join(parts[k:])), what, joints)
            if found is not None:
                index, by_joint, spelling = found
                return Name(what, index, by_joint, "/".join([*parts[:k], spelling]), unit)
    return None


def _read_words(given: list[str], what: str, joints: Mapping[str, int]) -> tuple[int | None, bool, str] | None:
    """The coordinate, whether it is named, and the spelling."""
    if what == "time":
        rest = ".".join(given)
        return (None, False, rest) if rest in SPELLINGS["time"] else None
    for size in range(len(given), 0, -1):  # the longest joint's name first: "arm" is in "arm_elbow"
        for start in range(len(given) - size + 1):
            joint = joints.get(".".join(given[start : start + size]))
            if joint is not None and (spelling := _spelling(given[:start] + given[start + size :], what)):
                return joint, True, spelling
    letters: list[str] = []
    numbers: list[int] = []
    for word in given:
        match = re.fullmatch(r"([a-zµ°]*)(\d+)", word)
        if match:
            numbers.append(int(match[2]))
        letters += [match[1]] if match and match[1] else [] if match else [word]
    spelling = _spelling(letters, what)
    return (numbers[0], False, spelling) if spelling and len(numbers) == 1 else None


def _spelling(rest: list[str], what: str) -> str:
    text = ".".join(x for x in rest if x not in FILLERS)
    return text if text in SPELLINGS[what] else ""


class Header:
    """The names of a table's columns."""

    def __init__(self, header: Sequence[str], source: str, robot_name: str = "") -> None:
        self.header, self.source, self.robot_name = list(header), source, robot_name
        self.index = {name: k for k, name in enumerate(self.header)}

    def locate(self, what: str, names: Sequence[str] | None, given: Any = None) -> Place | None:
        """The columns of a quantity; None if there are none; an error if there are only some, or two sets of them."""
        if given is not None:
            return self._given(what, names, given)
        joints = {".".join(words(x)): k for k, x in enumerate(names or ())}
        groups: dict[str, dict[int, tuple[int, Name]]] = {}
        for column, text in enumerate(self.header):
            found = read_name(text, what, joints)
            if found is not None:
                members = groups.setdefault(f"{found.group}{' of joints' if found.by_joint else ''}", {})
                index = -1 if found.index is None else found.index
                if index in members:
                    both = f"{short(self.header[members[index][0]])} and {short(text)}"
                    raise ReadError(f"{self.source}: the columns {both} mean the same; say which with columns={{{what!r}: …}}.")
                members[index] = column, found
        return self._choose(what, names, groups)

    def _choose(self, what: str, names: Sequence[str] | None, groups: dict[str, dict[int, tuple[int, Name]]]) -> Place | None:
        if not groups:
            return self._bare(names) if what == "q" and names else None
        if len(groups) > 1:
            for exact in ("time", what, f"{what} of joints"):  # our own names come first
                if exact in groups:
                    groups = {exact: groups[exact]}
                    break
            else:
                shown = " and ".join(self._shown(x) for x in groups.values())
                raise ReadError(f"{self.source}: {shown} may both be {what}; say which with columns={{{what!r}: [names]}}.")
        ((_, members),) = groups.items()
        units = {name.unit for _, name in members.values()}
        if len(units) > 1:
            raise ReadError(f"{self.source}: the columns {self._shown(members)} state different units.")
        unit, by_joint = units.pop(), next(iter(members.values()))[1].by_joint
        if what == "time":
            return Place([members[-1][0]], unit)
        first = 0 if by_joint or 0 in members else 1
        size = len(names) if names is not None else max(members) + 1 - first
        self._check_size(what, members, first, size, names)
        return Place([members[first + k][0] for k in range(size)], unit, first == 0 and not by_joint, by_joint)

    def _check_size(
        self, what: str, members: Mapping[int, tuple[int, Name]], first: int, size: int, names: Sequence[str] | None
    ) -> None:
        """Refuse columns beyond the robot's joints, and joints without a column."""
        if max(members) >= first + size:
            count = f"{len(members)} columns {self._shown(members)}; robot {self.robot_name!r} has {size}"
            raise ReadError(f"{self.source}: {count}. Name those to take with columns={{{what!r}: [names]}}.")
        absent = [k for k in range(first, first + size) if k not in members]
        if absent:
            one_column, one = next(iter(members.values()))
            pattern = self.header[one_column]
            expected = [f"{what}.{names[k]}" if one.by_joint and names else _renumbered(pattern, k) for k in absent[:8]]
            more = f", … ({len(absent)} in all)" if len(absent) > 8 else ""
            owner = "columns" if names is None else f"columns of robot {self.robot_name!r}"
            raise ReadError(f"{self.source}: {owner} are missing: {', '.join(expected)}{more}. {self.has()}")

    def _bare(self, names: Sequence[str] | None) -> Place | None:
        """Columns called like the joints themselves are positions."""
        index = {".".join(words(name)): k for k, name in enumerate(self.header)}
        columns = [index.get(".".join(words(name))) for name in names or ()]
        return Place([k for k in columns if k is not None], by_joint=True) if columns and None not in columns else None

    def _given(self, what: str, names: Sequence[str] | None, given: Any) -> Place:
        """Columns as the caller names them: one name, a list, or a pattern with {} for the joint's name or its number."""
        if isinstance(given, str) and "{}" in given:
            texts = self._pattern(given, names)
        else:
            texts = [given] if isinstance(given, str) else some_texts(given, f"columns[{what!r}]")
        if what == "time" and len(texts) != 1:
            raise CoadjointError(f"columns['time'] names {len(texts)} columns; expected one.")
        for text in texts:
            if text not in self.index:
                raise unknown("column", text, self.header)
        if names is not None and what != "time" and len(texts) != len(names):
            raise CoadjointError(f"columns[{what!r}] names {len(texts)} columns; robot {self.robot_name!r} has {len(names)}.")
        units = {unit for text in texts for _, unit in _without_unit(text, what)[-1:]}
        return Place([self.index[text] for text in texts], units.pop() if len(units) == 1 else "")

    def _pattern(self, pattern: str, names: Sequence[str] | None) -> list[str]:
        choices = [[pattern.replace("{}", name) for name in names]] if names is not None else []
        for first in (0, 1):
            count = len(names) if names is not None else 0
            while names is None and pattern.replace("{}", str(first + count)) in self.index:
                count += 1
            choices.append([pattern.replace("{}", str(first + k)) for k in range(count)])
        for texts in choices:
            if texts and all(text in self.index for text in texts):
                return texts
        return choices[0] or [pattern]

    def _shown(self, members: Mapping[int, tuple[int, Name]]) -> str:
        ordered = [cut(self.header[members[k][0]]) for k in sorted(members)]
        return ordered[0] if len(ordered) == 1 else f"{ordered[0]} … {ordered[-1]}"

    def has(self) -> str:
        shown = ", ".join(cut(x) for x in self.header[:12]) + (f", … ({len(self.header)} in all)" if len(self.header) > 12 else "")
        return f"The table has the columns {shown}."


def _renumbered(name: str, number: int) -> str:
    """The name with another number: the last in it."""
    return re.sub(r"\d+(?!.*\d)", str(number), name)


def families(header: Sequence[str], taken: Iterable[int]) -> dict[str, list[int]]:
    """The columns that are left, those with numbers together: i1 … i6 are `i`, tau_des_0 … are `tau_des`."""
    used = set(taken)
    found: dict[str, dict[int, int]] = {}
    for k, name in enumerate(header):
        if k in used:
            continue
        match = re.fullmatch(r"(.*?[^\W\d_])[_.\[ ]*(\d+)\]?", name)
        if match:
            found.setdefault(match[1], {})[int(match[2])] = k
        else:
            found.setdefault(name, {})[0] = k
    result: dict[str, list[int]] = {}
    for name, members in found.items():
        first = min(members)
        whole = sorted(members) == list(range(first, first + len(members))) and len(members) > 1 and first in (0, 1)
        result |= {name: [members[k] for k in sorted(members)]} if whole else {header[k]: [k] for k in members.values()}
    return result
