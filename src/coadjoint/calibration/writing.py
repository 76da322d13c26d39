"""URDF and MJCF with calibrated origins: the source's text, in which only the places of the joints are others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..files import check_output, read_text, replacing
from ..lie import quaternion, se3
from ..robot.mjcf import compile_file
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
    """True if a joint's element describes a joint: transmissions and controllers also name joints."""
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


# --- MJCF

TURNED = ("pos", "quat", "axisangle", "euler", "xyaxes", "zaxis")
"""Attributes that say where a body is."""


def write_mjcf(cal: Any, source: str | Path, path: str | Path) -> None:
    """Write the source with the pose of every calibrated joint's body times exp(η) exp(S δ₀), and all else as it stands there."""
    text = read_text(source)
    check_output(path, source)
    model, _ = compile_file(source)
    twists, offset = cal.fit.state.twists(cal.chain), cal.offset
    names = [model.joint(k).name for k in range(model.njnt)]
    for k, name in enumerate(cal.chain.names):
        if name not in names:
            raise CoadjointError(f"{source}: no joint is named {short(name)}; expected the file that the robot was read from.")
        body = int(model.jnt_bodyid[names.index(name)])
        if model.body_jntnum[body] != 1:
            raise CoadjointError(
                f"{source}: the body of joint {short(name)} has {model.body_jntnum[body]} joints; their errors are no pose of the body: "
                "save cal.robot as .json, or as .xml of its own."
            )
        T = np.array(se3.pose(np.asarray(quaternion.to_matrix(np.roll(model.body_quat[body], -1))), model.body_pos[body]))
        change = np.asarray(se3.exp(twists[k])) @ np.asarray(se3.exp(cal.chain.screws[k] * offset[k]))
        text = _with_pose(text, name, T, T @ change, str(source))
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _with_pose(text: str, joint: str, old: np.ndarray, new: np.ndarray, source: str) -> str:
    """The text with another pose of the body that a joint is in."""
    bare = re.sub(r"<!--.*?-->", lambda m: " " * len(m[0]), text, flags=re.S)
    found = [m for m in re.finditer(rf"<joint\b[^>]*\bname\s*=\s*([\"']){re.escape(joint)}\1", bare) if _encloses(bare, m.start())]
    if len(found) != 1:
        raise CoadjointError(
            f"{source}: joint {short(joint)} is found {len(found)} times inside a body; expected once, in this file itself."
        )
    start = _encloses(bare, found[0].start())
    assert start is not None
    stop = bare.index(">", start)
    tag = text[start:stop]
    written = re.search(r"\bpos\s*=\s*[\"']([^\"']*)[\"']", tag)
    stated = np.zeros(3) if written is None else np.array([float(x) for x in written[1].split()])
    if np.abs(stated - old[:3, 3]).max() > 1e-9 * (1.0 + np.abs(stated).max()):
        raise CoadjointError(
            f"{source}: the body of joint {short(joint)} is placed by more than its own pose (a frame, or a default)."
        )
    for key in TURNED:
        tag = re.sub(rf"\s+\b{key}\s*=\s*([\"']).*?\1", "", tag, flags=re.S)
    quat = np.roll(np.asarray(quaternion.from_matrix(new[:3, :3])), 1)
    slash = tag.endswith("/")
    tag = f'{tag.rstrip("/").rstrip()} pos="{_written(new[:3, 3])}" quat="{_written(quat)}"' + ("/" if slash else "")
    return text[:start] + tag + text[stop:]


def _encloses(text: str, at: int) -> int | None:
    """The position at which the tag of the body around a place begins; None outside of bodies."""
    open_bodies: list[int] = []
    for m in re.finditer(r"<(/?)body\b[^>]*?(/?)>", text[:at]):
        if m[1]:
            if open_bodies:
                open_bodies.pop()
        elif not m[2]:
            open_bodies.append(m.start())
    return open_bodies[-1] if open_bodies else None
