"""The mechanism of a URDF written as SDF: in the frames of its joints, or with other link frames and all numbers in the model's."""

import xml.etree.ElementTree as ET

import numpy as np
from scipy.spatial.transform import Rotation


def numbers(element, key, default="0 0 0"):
    return np.array([float(x) for x in (default if element is None else element.get(key, default)).split()])


def pose_of(origin):
    T = np.eye(4)
    T[:3, :3] = Rotation.from_euler("xyz", numbers(origin, "rpy")).as_matrix()
    T[:3, 3] = numbers(origin, "xyz")
    return T


def six(T):
    return " ".join(repr(float(x)) for x in (*T[:3, 3], *Rotation.from_matrix(T[:3, :3]).as_euler("xyz")))


def three(v):
    return " ".join(repr(float(x)) for x in v)


def random_pose(rng):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
    return T


def sdf_of(text, version="1.11", rng=None):
    """The SDF; with `rng` link frames are others than the URDF's, and every pose is written in the frame of the model."""
    robot = ET.fromstring(text)
    joints = robot.findall("joint")
    carried = {j.find("child").get("link"): j for j in joints}
    root = next(x.get("name") for x in robot.findall("link") if x.get("name") not in carried)
    at = {root: np.eye(4)}  # the frames of the URDF's links in the model
    while len(at) <= len(carried):
        for j in joints:
            parent, child = j.find("parent").get("link"), j.find("child").get("link")
            if parent in at and child not in at:
                at[child] = at[parent] @ pose_of(j.find("origin"))
    moved = {name: random_pose(rng) if rng is not None and name != root else np.eye(4) for name in at}  # in the URDF's frames
    lines = [f'<sdf version="{version}"><model name="{robot.get("name")}">']
    for link in robot.findall("link"):
        name = link.get("name")
        if rng is not None:
            pose = f"<pose>{six(at[name] @ moved[name])}</pose>"
        else:
            pose = f'<pose relative_to="{carried[name].get("name")}"/>' if name in carried else ""
        lines += [f'<link name="{name}">{pose}', inertial(link, moved[name]), "</link>"]
    lines += [joint(j, at, moved, version, rng is not None) for j in joints]
    return "\n".join([*lines, "</model></sdf>"])


def inertial(link, moved):
    given = link.find("inertial")
    if given is None:
        return "<inertial><mass>0</mass><inertia><ixx>0</ixx><iyy>0</iyy><izz>0</izz></inertia></inertial>"
    moments = "".join(f"<{k}>{given.find('inertia').get(k)}</{k}>" for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    pose = six(np.linalg.inv(moved) @ pose_of(given.find("origin")))
    return f"<inertial><pose>{pose}</pose><mass>{given.find('mass').get('value')}</mass><inertia>{moments}</inertia></inertial>"


def joint(j, at, moved, version, absolute):
    parent, child, kind = j.find("parent").get("link"), j.find("child").get("link"), j.get("type")
    here = at[child]
    if absolute:
        pose = f"<pose>{six(np.linalg.inv(moved[child]))}</pose>"
    else:
        pose = f'<pose relative_to="{parent}">{six(pose_of(j.find("origin")))}</pose>'
    axis = ""
    if kind != "fixed":
        xyz = numbers(j.find("axis"), "xyz", "1 0 0")
        key, flag = "", ""
        if absolute and version != "1.8":  # where it is written in the joint's frame
            xyz = here[:3, :3] @ xyz
            key = ' expressed_in="__model__"' if version == "1.11" else ""
            flag = "<use_parent_model_frame>1</use_parent_model_frame>" if version in ("1.5", "1.6") else ""
        limit = j.find("limit")
        words = "".join(
            f"<{k}>{limit.get(k)}</{k}>" for k in ("lower", "upper", "velocity", "effort") if limit is not None and limit.get(k)
        )
        axis = f"<axis><xyz{key}>{three(xyz)}</xyz>{flag}<limit>{words}</limit></axis>"
    return f'<joint name="{j.get("name")}" type="{kind}">{pose}<parent>{parent}</parent><child>{child}</child>{axis}</joint>'
