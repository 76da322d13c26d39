"""A robot against MuJoCo's model of it: kinematics, Jacobians, dynamics, energies and momentum at random states."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import coadjoint as cj
from coadjoint.interop import mujoco as interop
from coadjoint.interop._mujoco_springs import joint_springs, tendon_springs

TOLERANCE = 1e-10


def bare(model: Any) -> Any:
    """A copy of the model with all forces but gravity, inertia and the springs that a Robot holds switched off."""
    import mujoco

    model = copy.copy(model)
    for key in ("CONSTRAINT", "ACTUATION"):
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{key}"))
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    model.opt.density = model.opt.viscosity = 0.0
    model.jnt_stiffness[~joint_springs(model)] = 0.0
    model.tendon_stiffness[~tendon_springs(model)] = 0.0
    others = ("body_gravcomp", "dof_damping", "dof_dampingpoly", "tendon_damping", "tendon_dampingpoly", "jnt_stiffnesspoly")
    for key in (*others, "actuator_damping", "actuator_dampingpoly"):
        if hasattr(model, key):  # which there are depends on the version
            getattr(model, key)[:] = 0.0
    return model


def full_mass_matrix(model: Any, data: Any) -> np.ndarray:
    import mujoco

    M = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, M)
    except TypeError:  # before version 4
        mujoco.mj_fullM(model, M, data.qM)
    return M


def evaluate(model: Any, qpos: np.ndarray, qvel: np.ndarray, qacc: np.ndarray, qfrc: np.ndarray) -> dict[str, np.ndarray]:
    """What MuJoCo says of every state, in its own coordinates."""
    import mujoco

    data = mujoco.MjData(model)
    rows: list[dict[str, Any]] = []
    for x, v, a, f in zip(qpos, qvel, qacc, qfrc, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:], data.qfrc_applied[:] = x, v, a, 0.0
        mujoco.mj_inverse(model, data)
        inverse = data.qfrc_inverse.copy()
        data.qfrc_applied[:] = f
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        jacobians = np.zeros((model.nbody + model.nsite, 2, 3, model.nv))
        for k in range(model.nbody):
            mujoco.mj_jacBody(model, data, jacobians[k, 1], jacobians[k, 0], k)
        for k in range(model.nsite):
            mujoco.mj_jacSite(model, data, jacobians[model.nbody + k, 1], jacobians[model.nbody + k, 0], k)
        rows.append(
            {
                "inverse": inverse,
                "bias": data.qfrc_bias - data.qfrc_passive,
                "forward": data.qacc.copy(),
                "mass": full_mass_matrix(model, data),
                "potential": data.energy[0],
                "kinetic": data.energy[1],
                "positions": np.concatenate([data.xpos, data.site_xpos]),
                "rotations": np.concatenate([data.xmat, data.site_xmat]).reshape(-1, 3, 3),
                "jacobians": jacobians.reshape(-1, 6, model.nv),
                "com": data.subtree_com[0].copy(),
                "momentum": np.concatenate([data.subtree_angmom[0], model.body_subtreemass[0] * data.subtree_linvel[0]]),
            }
        )
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def assert_close(ours: Any, theirs: Any, what: str, tolerance: float = TOLERANCE) -> None:
    """The largest difference is below the tolerance times the largest magnitude over all states."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, what
    assert np.isfinite(ours).all(), what
    error = np.max(np.abs(ours - theirs), initial=0.0) / (np.max(np.abs(theirs), initial=0.0) or 1.0)
    assert error < tolerance, f"{what}: relative error {error:.1e}"


def assert_agrees(robot: cj.Robot, model: Any, states: int = 100, seed: int = 0, frames: int = 6) -> None:
    """The robot, with fixed links kept, and the model have the same motion. Mimic joints are not MuJoCo's: none here."""
    rng = np.random.default_rng(seed)
    model = bare(model)
    q = robot.random(rng, states)
    v, a, tau = rng.normal(size=(3, states, robot.nv))
    qpos, qvel = interop.q_to_mujoco(robot, model, q), interop.v_to_mujoco(robot, model, q, v)
    qacc, qfrc = interop.a_to_mujoco(robot, model, q, v, a), interop.force_to_mujoco(robot, model, q, tau)
    theirs = evaluate(model, qpos, qvel, qacc, qfrc)
    G = interop.velocity_map(robot, model, q)
    assert_close(
        cj.inverse_dynamics(robot, q, v, a), interop.force_from_mujoco(robot, model, qpos, theirs["inverse"]), "inverse dynamics"
    )
    resting = interop.a_from_mujoco(robot, model, qpos, qvel, np.zeros(model.nv))  # qacc = 0 is not a = 0 for a free joint
    bias = interop.force_from_mujoco(robot, model, qpos, theirs["bias"])
    ours = cj.mass_matrix(robot, q)
    assert_close(cj.bias_force(robot, q, v), bias - (ours @ resting[..., None])[..., 0], "bias force")
    assert_close(ours, G.mT @ theirs["mass"] @ G, "mass matrix")
    assert_close(
        cj.forward_dynamics(robot, q, v, tau),
        interop.a_from_mujoco(robot, model, qpos, qvel, theirs["forward"]),
        "forward dynamics",
    )
    assert_close(cj.kinetic_energy(robot, q, v), theirs["kinetic"], "kinetic energy")
    assert_close(cj.potential_energy(robot, q), theirs["potential"], "potential energy")
    assert_close(cj.center_of_mass(robot, q), theirs["com"], "centre of mass")
    assert_close(cj.centroidal_momentum(robot, q, v), theirs["momentum"], "momentum")
    names = [*interop.names_of(model, "body"), *interop.names_of(model, "site")]
    known = [k for k, name in enumerate(names) if name in robot.frame_names and names.index(name) == k]
    poses = {k: cj.pose(robot, q, names[k]) for k in known}
    for k, T in poses.items():
        assert_close(T[:, :3, 3], theirs["positions"][:, k], f"position of {names[k]}")
        assert_close(T[:, :3, :3], theirs["rotations"][:, k], f"rotation of {names[k]}")
    for k in rng.permutation(known)[:frames]:
        J = cj.jacobian(robot, q, names[k], "world")
        assert_close(J, theirs["jacobians"][:, k] @ G, f"Jacobian of {names[k]}")
