"""Arms of industry: PUMA 560, UR5e, a SCARA."""

from __future__ import annotations

import numpy as np

from ..dh import robot_from_dh
from ..robot import Robot

_PI2 = np.pi / 2


def _degrees(*limits: float) -> dict[str, float]:
    lower, upper = np.radians(limits)
    return {"lower": float(lower), "upper": float(upper)}


def puma560() -> Robot:
    """The Unimation PUMA 560, 6 revolute joints, with drives and friction; frame "tip" in the wrist's centre, on link 6.

    Masses, centres of mass and diagonal inertias: Armstrong, Khatib & Burdick, The explicit dynamic model and inertial
    parameters of the PUMA 560 arm, ICRA 1986, brought to standard Denavit–Hartenberg frames and completed (geometry, drives,
    friction) by Corke & Armstrong-Hélouvry, A search for consensus among model parameters reported for the PUMA 560 robot,
    ICRA 1994. The shoulder is the origin of space. Of link 1 only the inertia 0.35 kg m² about its axis is known, so that its
    mass is given as 0 and the other two moments as those of a disc; neither does anything on a base that stands upright. The
    moments measured on link 3 (0.066, 0.086, 0.0125) are not quite those of a body; 0.004 kg m² of mass spread along the
    elbow's axis, which no joint can tell on which side of the elbow it is, are taken from link 2 and given to link 3.
    Armature is G² J of the motor, viscous friction G² B, Coulomb friction |G| times the mean of the two directions'.
    """
    rows = (
        (0.0, 0.0, 0.0, _PI2),
        (0.0, 0.0, 0.4318, 0.0),
        (0.0, 0.15005, 0.0203, -_PI2),
        (0.0, 0.4318, 0.0, _PI2),
        (0.0, 0.0, 0.0, -_PI2),
        (0.0, 0.0, 0.0, 0.0),
    )
    masses = (0.0, 17.4, 4.8, 0.82, 0.34, 0.09)
    coms = (
        (0.0, 0.0, 0.0),
        (-0.3638, 0.006, 0.2275),
        (-0.0203, -0.0141, 0.070),
        (0.0, 0.019, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, 0.0, 0.032),
    )
    moments = (
        (0.175, 0.35, 0.175),
        (0.13 - 0.004, 0.524 - 0.004, 0.539),
        (0.066 + 0.004, 0.086, 0.0125 + 0.004),
        (1.8e-3, 1.3e-3, 1.8e-3),
        (0.3e-3, 0.4e-3, 0.3e-3),
        (0.15e-3, 0.15e-3, 0.04e-3),
    )
    drives = (  # gear ratio, inertia (kg m²), viscous friction (N m s) and Coulomb friction (N m) forth and back, of the motor
        (62.6111, 200e-6, 1.48e-3, 0.395, 0.435),
        (107.815, 200e-6, 0.817e-3, 0.126, 0.071),
        (53.7063, 200e-6, 1.38e-3, 0.132, 0.105),
        (76.0364, 33e-6, 71.2e-6, 11.2e-3, 16.9e-3),
        (71.923, 33e-6, 82.6e-6, 9.26e-3, 14.5e-3),
        (76.686, 33e-6, 36.7e-6, 3.96e-3, 10.5e-3),
    )
    limits = ((-160, 160), (-45, 225), (-225, 45), (-110, 170), (-100, 100), (-266, 266))
    joints = [
        {"armature": G**2 * J, "damping": G**2 * B, "friction": G * (forth + back) / 2} | _degrees(*limit)
        for (G, J, B, forth, back), limit in zip(drives, limits, strict=True)
    ]
    inertias = [np.diag(x) for x in moments]
    return robot_from_dh(rows, masses=masses, coms=coms, inertias=inertias, tool=np.eye(4), joints=joints, name="puma560")


def ur5e() -> Robot:
    """The Universal Robots UR5e, 6 revolute joints; frame "tip" on its flange.

    Geometry, masses and centres of mass: Universal Robots, DH parameters for calculations of kinematics and dynamics.
    Inertias: the maker's published description of the UR5e (ROS package ur_description, physical parameters of the e-series),
    in the same frames. Limits: UR5e user manual, and the maker's article on maximal joint torques.
    """
    rows = (
        (0.0, 0.1625, 0.0, _PI2),
        (0.0, 0.0, -0.425, 0.0),
        (0.0, 0.0, -0.3922, 0.0),
        (0.0, 0.1333, 0.0, _PI2),
        (0.0, 0.0997, 0.0, -_PI2),
        (0.0, 0.0996, 0.0, 0.0),
    )
    masses = (3.761, 8.058, 2.846, 1.37, 1.3, 0.365)
    coms = (
        (0.0, -0.02561, 0.00193),
        (0.2125, 0.0, 0.11336),
        (0.15, 0.0, 0.0265),
        (0.0, -0.0018, 0.01634),
        (0.0, 0.0018, 0.01634),
        (0.0, 0.0, -0.001159),
    )
    six = (  # xx xy xz yy yz zz
        (0.00700210, 0.00000073, -0.00001053, 0.00648091, 0.00049994, 0.00657286),
        (0.01505885, -0.00005400, 0.00000563, 0.33388086, -0.00000181, 0.33247207),
        (0.00399632, -0.00001365, 0.00137272, 0.07879254, -0.00000660, 0.07848510),
        (0.00165491, -0.00000282, -0.00000438, 0.00135962, 0.00010157, 0.00126279),
        (0.00135617, -0.00000274, 0.00000444, 0.00127827, -0.00005048, 0.00096614),
        (0.00018694, 0.00000006, -0.00000017, 0.00018908, -0.00000092, 0.00025756),
    )
    names = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
    torques = (150.0, 150.0, 150.0, 28.0, 28.0, 28.0)
    joints = [
        {"name": name, "velocity": np.pi, "effort": torque} | _degrees(-360, 360)
        for name, torque in zip(names, torques, strict=True)
    ]
    inertias = [np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) for xx, xy, xz, yy, yz, zz in six]
    return robot_from_dh(rows, masses=masses, coms=coms, inertias=inertias, tool=np.eye(4), joints=joints, name="ur5e")


def scara() -> Robot:
    """The SCARA of robotics courses, R R P R with upright axes, the last two pointing down; frame "tip" at its lower end.

    The arm as Siciliano, Sciavicco, Villani & Oriolo, Robotics: Modelling, Planning and Control (2009), draw it. The figures are
    not in that book but in an exercise that its authors' course in Naples hands out, round numbers and nobody's measurements:
    lengths 0.5 m, column 1 m, masses 20, 20 and 10 kg, inertias 4, 4 and 1 kg m² about the axes, drives k_r = (1, 1, 50, 20),
    I_m = (0.01, 0.01, 0.005, 0.001) kg m², F_m = (5e-5, 5e-5, 0.01, 0.005) N m s. Armature is k_r² I_m, viscous friction k_r² F_m.
    The 10 kg of the slide and the tool together are given to the tool. Moments about level axes, which never act, are those of
    flat bodies.
    """
    rows = ((0.0, 0.0, 0.5, 0.0), (0.0, 0.0, 0.5, np.pi), (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))
    base = np.eye(4)
    base[2, 3] = 1.0
    inertias = [np.diag([x / 2, x / 2, x]) for x in (4.0, 4.0, 0.0, 1.0)]
    coms = ((-0.25, 0.0, 0.0), (-0.25, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    drives = ((1.0, 0.01, 5e-5), (1.0, 0.01, 5e-5), (50.0, 0.005, 0.01), (20.0, 0.001, 0.005))
    joints = [{"armature": k**2 * J, "damping": k**2 * F} for k, J, F in drives]
    masses = (20.0, 20.0, 0.0, 10.0)
    return robot_from_dh(
        rows, kinds="RRPR", masses=masses, coms=coms, inertias=inertias, base=base, tool=np.eye(4), joints=joints, name="scara"
    )
