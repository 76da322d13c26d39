"""Joint states in ROS bags (.bag, .db3, a folder of ROS 2) and MCAP files, read by optional packages of pure Python.

Messages of sensor_msgs/JointState name their joints; a message that has only some of them (a gripper's own publisher) is put beside the
latest values of the others only where all come in every message: joints that are not in all messages of a topic are an error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import CoadjointError, MissingPackageError, ReadError
from ..words import cut, short
from .table_readers import Arrays

BAGS = (".bag", ".db3", ".mcap")
KINDS = ("sensor_msgs/msg/JointState", "sensor_msgs/JointState")


class Message(NamedTuple):
    """A JointState: its stamp in nanoseconds, names, and values or empty lists; when it was recorded."""

    stamp: int
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    recorded: int = 0


def read_bag(path: Path, topic: str | None = None) -> Arrays:
    """The joint states of a bag as columns: time, q.JOINT, v.JOINT, tau.JOINT. Time starts with the first message."""
    try:
        messages = list(_mcap(path, topic) if path.suffix.lower() == ".mcap" else _rosbag(path, topic))
    except (CoadjointError, MemoryError):
        raise
    except Exception as error:  # of a damaged file the libraries may say anything
        raise ReadError(
            f"{path}: the bag cannot be read: {cut(' '.join(str(error).split()), 200) or type(error).__name__}"
        ) from None
    if not messages:
        raise ReadError(f"{path}: the topic has no messages.")
    return Arrays(path, _columns(path, messages))


def _columns(path: Path, messages: list[Message]) -> dict[str, np.ndarray]:
    names = messages[0].names
    for k, message in enumerate(messages):
        if set(message.names) != set(names):
            other = ", ".join(sorted(set(message.names) ^ set(names))[:8])
            raise ReadError(
                f"{path}: message {k + 1} has other joints than the first ({cut(other)}); choose a topic of one publisher."
            )
    stamps = [m.stamp for m in messages]
    if len(set(stamps)) == 1:  # publishers that leave the header empty
        stamps = [m.recorded for m in messages]
    table = {"time": np.array([(stamp - stamps[0]) * 1e-9 for stamp in stamps])}
    for what, key in (("q", "position"), ("v", "velocity"), ("tau", "effort")):
        sizes = {len(getattr(m, key)) for m in messages}
        if sizes == {len(names)} and names:
            x = np.array([_ordered(m, key, names) for m in messages])
            table |= {f"{what}.{name}": x[:, j] for j, name in enumerate(names)}
        elif sizes - {0}:
            raise ReadError(f"{path}: some messages have another number of values in {key!r} than of names.")
    return table


def _ordered(message: Message, key: str, names: tuple[str, ...]) -> np.ndarray:
    x: np.ndarray = getattr(message, key)
    if message.names == names:
        return x
    result: np.ndarray = x[[message.names.index(name) for name in names]]
    return result


def _topic(path: Path, topics: list[str], topic: str | None) -> str:
    """The topic to read."""
    if topic is not None and topic in topics:
        return topic
    listing = ", ".join(cut(x) for x in topics[:12]) or "none"
    if topic is not None:
        raise ReadError(f"{path}: no topic {short(topic)} of joint states; the file has: {listing}.")
    if len(topics) != 1:
        raise ReadError(f"{path}: {len(topics)} topics of sensor_msgs/JointState ({listing}); choose one with topic=.")
    return topics[0]


def _rosbag(path: Path, topic: str | None) -> Iterator[Message]:
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingPackageError(f"{path}: ROS bags need rosbags, which is not installed: pip install rosbags") from None
    folder = path.parent if path.suffix.lower() == ".db3" and (path.parent / "metadata.yaml").is_file() else path
    with AnyReader([folder], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as bag:
        found = [x for x in bag.connections if x.msgtype in KINDS]
        chosen = _topic(path, sorted({x.topic for x in found}), topic)
        for connection, recorded, data in bag.messages([x for x in found if x.topic == chosen]):
            m: Any = bag.deserialize(data, connection.msgtype)
            stamp = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec
            position, velocity, effort = (np.asarray(x, dtype=float) for x in (m.position, m.velocity, m.effort))
            yield Message(stamp, tuple(m.name), position, velocity, effort, recorded)


def _mcap(path: Path, topic: str | None) -> Iterator[Message]:
    try:
        from mcap.reader import make_reader
    except ImportError:
        raise MissingPackageError(f"{path}: MCAP files need mcap, which is not installed: pip install mcap") from None
    with open(path, "rb") as file:
        reader = make_reader(file)
        summary = reader.get_summary()
        if summary is None:
            raise ReadError(f"{path}: the file has no summary; `mcap recover` writes one.")
        of_kind = [
            c for c in summary.channels.values() if c.schema_id in summary.schemas and summary.schemas[c.schema_id].name in KINDS
        ]
        chosen = _topic(path, sorted({c.topic for c in of_kind}), topic)
        for _, channel, message in reader.iter_messages(topics=[chosen]):
            if channel.message_encoding not in ("cdr", "ros1"):
                raise ReadError(f"{path}: messages are encoded as {cut(channel.message_encoding)!r}; cdr and ros1 are read.")
            yield decode_joint_state(message.data, channel.message_encoding == "cdr")._replace(recorded=message.log_time)


def decode_joint_state(data: bytes, cdr: bool) -> Message:
    """A JointState as ROS 2 (CDR, aligned, strings end with 0) or ROS 1 (packed, header with a sequence number) writes it."""
    start = 4 if cdr else 0
    little = data[1] & 1 if cdr else 1
    order, at = "<" if little else ">", start

    def take(code: str, count: int = 1) -> tuple[Any, ...]:
        nonlocal at
        size = struct.calcsize("<" + code)
        if cdr and count:
            at = start + -(-(at - start) // size) * size
        values = struct.unpack_from(f"{order}{count}{code}", data, at)
        at += size * count
        return values

    def text() -> str:
        nonlocal at
        (size,) = take("I")
        at += size
        return data[at - size : at].rstrip(b"\0").decode("utf-8")

    if not cdr:
        take("I")
    seconds, nanoseconds = (*take("i" if cdr else "I"), *take("I"))
    text()
    names = tuple(text() for _ in range(take("I")[0]))
    position, velocity, effort = (np.array(take("d", take("I")[0])) for _ in range(3))
    return Message(seconds * 10**9 + nanoseconds, names, position, velocity, effort)
