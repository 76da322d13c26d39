"""From and to MuJoCo's `MjModel`, and states both ways.

    robot = from_mjmodel(model)                          model = to_mjmodel(robot)
    qpos = q_to_mujoco(robot, model, q)                  q = q_from_mujoco(robot, model, qpos)
    qvel = v_to_mujoco(robot, model, q, v)               v = v_from_mujoco(robot, model, qpos, qvel)
    qacc = a_to_mujoco(robot, model, q, v, a)            a = a_from_mujoco(robot, model, qpos, qvel, qacc)
    qfrc = force_to_mujoco(robot, model, q, tau)         tau = force_from_mujoco(robot, model, qpos, qfrc)

MuJoCo turns a body's frame by its joints one after the other, each given in that frame, from where it stands at `qpos0`: a
hinge or slide with the screw S moves it by exp(S (qpos - qpos0)). A link of the robot has the frame of its body, and q = qpos
for hinges and slides, so exp(-S qpos0) is part of the link's placement.
"""

from __future__ import annotations

import warnings as _warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ModelError, ModelWarning
from ..lie import inertia, se3
from ..robot.link import Frame, Joint, Link
from ..robot.mjcf_write import to_mjcf
from ..robot.robot import Robot
from ..robot.urdf import check_options
from ..words import cut
from ._common import Names, chain, check_model, engine, listing
from ._mujoco_shapes import body_pose, shapes_of
from ._mujoco_springs import joint_springs, springs_of, tendon_springs
from ._mujoco_states import (
    a_from_mujoco,
    a_to_mujoco,
    decoded,
    force_from_mujoco,
    force_to_mujoco,
    joint_names,
    names_of,
    q_from_mujoco,
    q_to_mujoco,
    v_from_mujoco,
    v_to_mujoco,
    velocity_map,
)

__all__ = [
    "a_from_mujoco",
    "a_to_mujoco",
    "force_from_mujoco",
    "force_to_mujoco",
    "from_mjmodel",
    "q_from_mujoco",
    "q_to_mujoco",
    "to_mjmodel",
    "v_from_mujoco",
    "v_to_mujoco",
    "velocity_map",
]

FREE, BALL, SLIDE, HINGE = range(4)
"""MuJoCo's numbers of the joint types."""


def compiled(load: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The model that `load` compiles, and MuJoCo's messages, which it would otherwise write to the terminal and to a file."""
    mujoco = engine("mujoco")
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: said.append(f"MuJoCo: {message.strip()}."))
    try:
        return load(), said
    finally:
        mujoco.set_mju_user_warning(before)


def to_mjmodel(robot: Robot) -> Any:
    """The robot as a compiled `mujoco.MjModel`; see `coadjoint.robot.mjcf_write.to_mjcf` for what MuJoCo cannot hold.

    MuJoCo orders joints depth-first, the robot as described; the conversions of states account for that.
    """
    mujoco = engine("mujoco")
    text = to_mjcf(robot)
    try:
        return compiled(lambda: mujoco.MjModel.from_xml_string(text))[0]
    except Exception as error:  # MuJoCo raises ValueError for what it understands, and anything for what it does not
        raise ModelError(f"robot {robot.name!r}: MuJoCo refuses it: {cut(' '.join(str(error).split()), 300)}") from None


def from_mjmodel(model: Any, base: str = "fixed", fixed_joints: str = "merge") -> Robot:
    """The robot in a compiled `mujoco.MjModel`.

    Links are the bodies, with their frames; several joints on one body become a chain whose links between are massless and named
    after body and joint. Named sites become frames. A body without joints is part of what carries it, and a frame of it, or with
    fixed_joints="keep" a link. What is fixed to the world, mocap bodies included, has no share in the dynamics. base="free" lets
    the one body that is welded to the world move freely; a model that has its own free joint stays as it is.

    Features that a Robot cannot represent are listed in `robot.warnings`. Where that changes the motion (tendons that are not straight
    springs, equality constraints, actuators, gravity compensation, fluids and the like) one ModelWarning says so as well.
    """
    check_options(base, fixed_joints)
    check_model(model, "body_parentid", "mujoco.MjModel")
    name = decoded(model.names.split(b"\0", 1)[0]) or "robot"
    left_out = _left_out(model)
    bodies = _body_names(model)
    floating = _floating_body(model, bodies) if base == "free" else 0
    links, frames = _links(model, bodies, floating), []
    names, renamed = Names(*bodies, *(link.name for link in links)), []
    for k, site in enumerate(names_of(model, "site")):
        link, pose = bodies[model.site_bodyid[k]], body_pose(model.site_pos[k], model.site_quat[k])
        if not site or (site == link and np.array_equal(pose, np.eye(4))):
            continue
        if site in names.taken:
            renamed.append(site)
            site += "_site"
        frames.append(Frame(names.take(site), link, pose))
    notes = [f"left out: {text}." for text, _ in left_out]
    if renamed:
        notes.append(
            f"sites that have the name of a body ({len(renamed)}) are frames with `_site` after the name: {listing(renamed)}."
        )
    gravity_off = model.opt.disableflags & int(engine("mujoco").mjtDisableBit.mjDSBL_GRAVITY)
    gravity = np.zeros(3) if gravity_off else np.array(model.opt.gravity)
    changing = [text for text, changes in left_out if changes]
    if changing:
        message = f"model {name!r} has what a Robot does not hold, which moves as if it were not there: {'; '.join(changing)}."
        _warnings.warn(message, ModelWarning, stacklevel=2)
    springs = springs_of(model, joint_names(model), bodies, names_of(model, "tendon"))
    robot = Robot(name, links, frames, gravity, bodies[0], notes, shapes_of(model, bodies), springs=springs)
    return robot.merge_fixed() if fixed_joints == "merge" else robot


def _body_names(model: Any) -> list[str]:
    given = names_of(model, "body")
    names = Names(*given)
    return [name or names.take(f"body{i}") for i, name in enumerate(given)]


def _floating_body(model: Any, bodies: list[str]) -> int:
    """The body that is to move freely; 0 if it does already."""
    roots = [i for i in range(1, model.nbody) if model.body_parentid[i] == 0 and model.body_mocapid[i] < 0]
    if len(roots) != 1:
        raise ModelError(
            f"base='free' needs one body on the world to set free; there are {len(roots)}: {listing([bodies[i] for i in roots])}."
        )
    joints = model.jnt_type[model.jnt_bodyid == roots[0]]
    if len(joints) == 0:
        return roots[0]
    if joints[0] == FREE:
        return 0
    raise ModelError(
        f"base='free' needs a body welded to the world to set free, but joints carry {bodies[roots[0]]!r}. Use base='fixed'."
    )


def _links(model: Any, bodies: list[str], floating: int) -> list[Link]:
    joints, link_names = joint_names(model), Names(*bodies)
    fixed_names = Names(*joints)
    reflected = _reflected(model)
    links: list[Link] = []
    for i in range(1, model.nbody):
        parent, placement = bodies[model.body_parentid[i]], body_pose(model.body_pos[i], model.body_quat[i])
        frame = body_pose(model.body_ipos[i], model.body_iquat[i])
        parameters = inertia.transform(frame, inertia.from_body(model.body_mass[i], np.zeros(3), np.diag(model.body_inertia[i])))
        numbers = range(model.body_jntadr[i], model.body_jntadr[i] + model.body_jntnum[i])
        if i == floating:
            links.append(Link(bodies[i], parent, Joint.free(name=fixed_names.take("root_joint")), placement, parameters))
        elif not numbers:
            links.append(Link(bodies[i], parent, Joint.fixed(name=fixed_names.take(f"{bodies[i]}_joint")), placement, parameters))
        else:
            parts, placements = [], []
            for j in numbers:
                parts.append(_joint(model, j, joints[j], reflected))
                if model.jnt_type[j] == FREE:
                    placement = np.eye(4)  # qpos is the pose in the world
                elif model.jnt_type[j] != BALL:
                    placement = placement @ se3.exp_screw(parts[-1].screws[0], -model.qpos0[model.jnt_qposadr[j]])
                placements.append(placement)
                placement = np.eye(4)
            links += chain(bodies[i], parent, parts, placements, parameters, link_names)
    return links


def _joint(model: Any, j: int, name: str, reflected: dict[str, np.ndarray]) -> Joint:
    kind, dof = model.jnt_type[j], model.jnt_dofadr[j]
    size = {FREE: 6, BALL: 3}.get(kind, 1)
    options: dict[str, Any] = {"name": name}
    for key, source in (("armature", "armature"), ("damping", "damping"), ("friction", "frictionloss")):
        value = np.array(getattr(model, f"dof_{source}")[dof : dof + size])
        if key in reflected:
            value += reflected[key][dof : dof + size]
        if kind == FREE:
            if np.ptp(value[:3]):
                raise ModelError(
                    f"joint {name!r}: {source} is {value[:3].tolist()} along x, y, z of the world; a body twist has no such axes."
                )
            value = np.roll(value, 3)
        options[key] = value
    if kind == FREE:
        return Joint.free(**options)
    if kind == BALL:
        return Joint.spherical(model.jnt_pos[j], **options)
    if model.jnt_limited[j]:
        options["lower"], options["upper"] = model.jnt_range[j]
    if model.jnt_actfrclimited[j]:
        options["effort"] = np.abs(model.jnt_actfrcrange[j]).max()
    if kind == SLIDE:
        return Joint.prismatic(model.jnt_axis[j], **options)
    turn = Joint.revolute if model.jnt_limited[j] else Joint.continuous
    return turn(model.jnt_axis[j], model.jnt_pos[j], **options)


def _on_scalar_joint(model: Any, actuator: int) -> int:
    """The hinge or slide that an actuator drives through its gear; -1 if it drives something else."""
    joint = int(model.actuator_trnid[actuator, 0])
    driven = model.actuator_trntype[actuator] in (0, 1) and joint >= 0  # mjTRN_JOINT, mjTRN_JOINTINPARENT
    return joint if driven and model.jnt_type[joint] in (SLIDE, HINGE) else -1


def _reflected(model: Any) -> dict[str, np.ndarray]:
    """Armature and damping of drives on hinges and slides, reflected to the joint: gear² times the drive's own."""
    result = {}
    for key in ("armature", "damping"):
        own = getattr(model, f"actuator_{key}", np.zeros(0))  # MuJoCo before 3.5 has none
        result[key] = np.zeros(model.nv)
        for k in np.flatnonzero(own).tolist():
            if (joint := _on_scalar_joint(model, k)) >= 0:
                result[key][model.jnt_dofadr[joint]] += model.actuator_gear[k, 0] ** 2 * own[k]
    return result


def _left_out(model: Any) -> list[tuple[str, bool]]:
    """The features of the model that a Robot cannot represent, one sentence each, and whether they change the motion."""
    found: list[tuple[str, bool]] = []

    def note(what: str, which: Any, names: list[str], changes: bool = True) -> None:
        numbers = np.flatnonzero(which)
        if len(numbers):
            shown = [names[k] or f"number {k}" for k in numbers]
            found.append((f"{what} ({len(numbers)}): {listing(shown)}", changes))

    def everything(n: int) -> np.ndarray:
        return np.ones(n, dtype=bool)

    def optional(key: str, rows: int) -> np.ndarray:
        given: np.ndarray = getattr(model, key, np.zeros(rows))
        present: np.ndarray = np.any(given.astype(bool).reshape(rows, -1 if rows else 1), axis=-1)
        return present

    joints, bodies = joint_names(model), _body_names(model)
    actuators, tendons = names_of(model, "actuator"), names_of(model, "tendon")
    stiff = (model.jnt_stiffness != 0) | optional("jnt_stiffnesspoly", model.njnt)
    note("springs of joints that are not linear or not of a hinge or slide,", stiff & ~joint_springs(model), joints)
    bent = np.bincount(model.dof_jntid[optional("dof_dampingpoly", model.nv)], minlength=model.njnt)
    note("the part of damping that is not linear, of joints", bent, joints)
    fixed_axes = np.zeros(model.njnt, dtype=bool)
    for j in np.flatnonzero(model.jnt_type == FREE):
        first = model.jnt_dofadr[j]
        fixed_axes[j] = model.dof_armature[first : first + 3].any() or model.dof_frictionloss[first : first + 3].any()
    note("the axes of armature and friction, those of the world and not of the link, of free joints", fixed_axes, joints)
    note("tendons", ~tendon_springs(model), tendons)
    note("equality constraints, which `coadjoint.constraints.mjcf` keeps,", everything(model.neq), names_of(model, "eq"))
    note("actuators", everything(len(actuators)), actuators)
    elsewhere = np.array([_on_scalar_joint(model, k) < 0 for k in range(len(actuators))], dtype=bool)
    drives = optional("actuator_armature", len(actuators)) | optional("actuator_damping", len(actuators))
    note("armature and damping of actuators that drive no hinge or slide", drives & elsewhere, actuators)
    note("the part of damping that is not linear, of actuators", optional("actuator_dampingpoly", len(actuators)), actuators)
    note("gravity compensation of bodies", model.body_gravcomp != 0, bodies)
    note("flexible bodies", everything(model.nflex), names_of(model, "flex") if model.nflex else [])
    note("plugins", everything(model.nplugin), names_of(model, "plugin") if model.nplugin else [])
    if model.opt.density or model.opt.viscosity:
        found.append((f"a fluid of density {model.opt.density:g} and viscosity {model.opt.viscosity:g}", True))
    note("the motion of mocap bodies", model.body_mocapid >= 0, bodies, False)
    collide = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    if collide.any() or model.npair:
        found.append((f"contacts of {int(collide.sum())} geoms and {model.npair} pairs", False))
    note("limits of ball joints", (model.jnt_limited != 0) & (model.jnt_type == BALL), joints, False)
    uneven = (model.jnt_actfrclimited != 0) & (model.jnt_actfrcrange.sum(-1) != 0)
    note("the smaller of two force limits that differ by direction", uneven, joints, False)
    note("sensors", everything(model.nsensor), names_of(model, "sensor"), False)
    flags = engine("mujoco").mjtDisableBit
    off = [key for key in ("PASSIVE", "DAMPER", "FRICTIONLOSS", "LIMIT") if hasattr(flags, f"mjDSBL_{key}")]
    off = [key.lower() for key in off if model.opt.disableflags & int(getattr(flags, f"mjDSBL_{key}"))]
    if off:
        found.append((f"that the model disables {', '.join(off)}", False))
    return found
