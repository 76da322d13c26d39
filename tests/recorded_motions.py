"""Smooth motions, robots with other inertias, and simulated logs, for tests of identification."""

from __future__ import annotations

import numpy as np

import coadjoint as cj
from coadjoint.lie import inertia, se3


def smooth_motion(robot, seconds=10.0, rate=50.0, seed=0):
    """Times, positions, velocities and accelerations of a smooth motion of all joints."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, seconds, 1 / rate)
    w = 2 * np.pi * np.arange(1, 5) / seconds
    s, c = rng.normal(size=(2, robot.nv, len(w))) * 0.35
    sin, cos = np.sin(w * t[:, None]), np.cos(w * t[:, None])
    return t, sin @ s.T + cos @ c.T, (cos * w) @ s.T - (sin * w) @ c.T, -(sin * w**2) @ s.T - (cos * w**2) @ c.T


def perturbed(robot, seed=0, size=0.2):
    """The robot with other, possible inertias: pseudo-inertias G Σ Gᵀ for random G near 1."""
    rng = np.random.default_rng(seed)
    sigma = np.asarray(inertia.pseudo(robot.inertias))
    G = np.eye(4) + size * rng.normal(size=(robot.n_links, 4, 4)) * 0.5
    return robot.with_inertial_parameters(np.asarray(inertia.from_pseudo(G @ sigma @ np.swapaxes(G, -1, -2))).reshape(-1))


def simulated(robot, noise=0.0, seed=0, friction=0.0, **options):
    """A log of a smooth motion with viscous friction and white noise."""
    t, q, v, a = smooth_motion(robot, seed=seed, **options)
    tau = np.asarray(cj.inverse_dynamics(robot, q, v, a)) + friction * v
    tau = tau + noise * np.random.default_rng(seed + 1).normal(size=tau.shape)
    return {"time": t, "q": q, "v": v, "a": a, "tau": tau}


def moved_frames(robot, T):
    """The same robot whose link frames stand at T in the old ones."""
    inverse = se3.inverse(T)
    placements, screws, inertias = np.array(robot.placements), np.array(robot.screws), np.array(robot.inertias)
    for i in range(robot.n_links):
        parent = robot.parents[i]
        placements[i] = (inverse[parent] if parent >= 0 else np.eye(4)) @ robot.placements[i] @ T[i]
        screws[robot.tree_v_slices[i]] = se3.Ad_inv_act(T[i], robot.screws[robot.tree_v_slices[i]])
        inertias[i] = inertia.transform(inverse[i], robot.inertias[i])
    return robot.with_numbers(placements=placements, screws=screws, inertias=inertias).consolidated()
