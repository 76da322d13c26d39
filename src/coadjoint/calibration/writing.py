"""A URDF with calibrated origins: the source's text, in which only the numbers of the joints' origins are others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..files import check_output, read_text, replacing
from ..lie import se3
from ..words import short


def write_urdf(cal: Any, source: str | Path, path: str | Path) -> None:
    """Write the source with the origin of every calibrated joint times exp(η) exp(S δ₀), and all else as it stands there."""
    text = read_text(source)
    check_output(path, source)
    twists, offset = cal.fit.state.twists(cal.chain), cal.offset
    for k, name in enumerate(cal.chain.names):
        change = np.asarray(se3.exp(twists[k])) @ np.asarray(se3.exp(cal.chain.screws[k] * offset[k]))
        text = _with_origin(text, name, change, str(source))
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _with_origin(text: str, joint: str, change: np.ndarray, source: str) -> str:
    """The text with the origin of one joint multiplied from the right."""
    opening = re.compile(rf"<joint\b[^>]*\bname\s*=\s*([\"']){re.escape(joint)}\1[^>]*>")
    found = [m for m in opening.finditer(text) if _is_own(text, m.end())]
    if len(found) != 1:
        raise CoadjointError(
            f"{source}: {len(found)} joints are named {short(joint)} with a parent and a child; expected one, as plain URDF."
        )
    start = found[0].end()
    stop = text.index("</joint>", start)
    body = text[start:stop]
    origin = re.search(r"<origin\b[^>]*?(/>|>\s*</origin\s*>)", body)
    xyz, rpy = (_numbers(origin[0] if origin else "", key) for key in ("xyz", "rpy"))
    T = np.asarray(se3.pose(_rotation(rpy), xyz)) @ change
    new = f'<origin xyz="{_written(T[:3, 3])}" rpy="{_written(_angles(T[:3, :3]))}"/>'
    body = body[: origin.start()] + new + body[origin.end() :] if origin else f"\n    {new}{body}"
    return text[:start] + body + text[stop:]


def _is_own(text: str, at: int) -> bool:
    """Whether a joint's element describes a joint: transmissions and controllers also name joints."""
    stop = text.find("</joint>", at)
    return stop > 0 and "<parent" in text[at:stop] and "<child" in text[at:stop] and "<joint" not in text[at:stop]


def _numbers(origin: str, key: str) -> np.ndarray:
    found = re.search(rf"\b{key}\s*=\s*[\"']([^\"']*)[\"']", origin)
    return np.zeros(3) if found is None else np.array([float(x) for x in found[1].split()])


def _written(x: np.ndarray) -> str:
    return " ".join(repr(float(y)) for y in x)


def _rotation(rpy: np.ndarray) -> np.ndarray:
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _angles(R: np.ndarray) -> np.ndarray:
    """Roll, pitch and yaw; roll is 0 where pitch is a right angle."""
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    if np.hypot(R[0, 0], R[1, 0]) < 1e-9:
        return np.array([0.0, pitch, np.arctan2(-R[0, 1], R[1, 1])])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])
