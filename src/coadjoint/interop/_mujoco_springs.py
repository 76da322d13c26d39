"""Springs of MuJoCo: of hinges and slides, and tendons that run straight between two sites."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..robot.spring import Spring
from ._common import Names

SCALAR = (2, 3)  # mjJNT_SLIDE, mjJNT_HINGE
SITE = 3  # mjWRAP_SITE


def joint_springs(model: Any) -> np.ndarray:
    """True for joints with a linear spring that a Robot can carry, (njnt,)."""
    bent = getattr(model, "jnt_stiffnesspoly", np.zeros((model.njnt, 0)))
    linear: np.ndarray = ~np.any(np.asarray(bent, dtype=bool).reshape(model.njnt, -1 if model.njnt else 1), axis=-1)
    linear &= np.isin(model.jnt_type, SCALAR) & (model.jnt_stiffness > 0)
    return linear


def tendon_springs(model: Any) -> np.ndarray:
    """True for tendons that are only a linear spring between sites of two bodies, (ntendon,)."""
    found = np.zeros(model.ntendon, dtype=bool)
    for k in range(model.ntendon):
        first = model.tendon_adr[k]
        straight = model.tendon_num[k] == 2 and all(model.wrap_type[first : first + 2] == SITE)
        rest = model.tendon_lengthspring[k]
        others = ("damping", "frictionloss", "limited", "armature", "stiffnesspoly", "dampingpoly")
        alone = not any(np.any(getattr(model, f"tendon_{key}")[k]) for key in others if hasattr(model, f"tendon_{key}"))
        if straight and alone and rest[0] == rest[1] and model.tendon_stiffness[k] > 0:
            a, b = (model.site_bodyid[model.wrap_objid[first + i]] for i in range(2))
            driven = np.any((model.actuator_trntype == 3) & (model.actuator_trnid[:, 0] == k))  # mjTRN_TENDON
            held = np.any((model.eq_type == 3) & ((model.eq_obj1id == k) | (model.eq_obj2id == k)))  # mjEQ_TENDON
            found[k] = a != b and not driven and not held
    return found


def springs_of(model: Any, joints: list[str], bodies: list[str], tendons: list[str]) -> list[Spring]:
    """The springs of a model that a Robot can carry."""
    names, found = Names(), []
    for j in np.flatnonzero(joint_springs(model)):
        rest = float(model.qpos_spring[model.jnt_qposadr[j]])
        found.append(Spring(names.take(joints[j]), float(model.jnt_stiffness[j]), rest, joint=joints[j]))
    for k in np.flatnonzero(tendon_springs(model)):
        sites = [model.wrap_objid[model.tendon_adr[k] + i] for i in range(2)]
        a, b = (bodies[model.site_bodyid[site]] for site in sites)
        name = names.take(tendons[k] or f"{a} - {b}")
        rest = float(model.tendon_lengthspring[k, 0])
        points = np.array([model.site_pos[site] for site in sites])
        found.append(Spring(name, float(model.tendon_stiffness[k]), rest, links=(a, b), points=points))
    return found
