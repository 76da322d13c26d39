"""The balance conditions of Brockett, Stokes & Park (1993), section 5: as printed they fail, corrected they hold."""

from __future__ import annotations

import numpy as np

import coadjoint as cj
from coadjoint import Robot

LENGTHS = np.array([0.5, 0.4, 0.3, 0.2])
MASSES = np.array([2.0, 1.5, 1.0, 0.7])


def chain(moments: np.ndarray) -> Robot:
    """A planar chain, stretched along x, whose links have the first moments m_k p_kk (along the link) about their joints."""
    joints = np.concatenate([[0.0], np.cumsum(LENGTHS[:-1])])
    screws = [[0, 0, 1, 0, -x, 0] for x in joints]
    frames = np.tile(np.eye(4), (4, 1, 1))
    frames[:, 0, 3] = joints + moments / MASSES
    return Robot.from_screws(screws, frames, MASSES, np.tile(0.1 * np.eye(3), (4, 1, 1)))


def variation(robot: Robot) -> float:
    M = cj.mass_matrix(robot, robot.random(0, 20))
    return float(np.max(np.abs(M - M[0])))


def test_balance_of_a_planar_chain():
    beyond = np.array([MASSES[k + 1 :].sum() for k in range(4)])
    corrected = -beyond * LENGTHS
    assert variation(chain(corrected)) < 1e-14
    assert cj.is_balanced(chain(corrected))

    printed = beyond * LENGTHS  # the sign
    assert variation(chain(printed)) > 0.1

    # p_{k,k+1} as the text has it: the centre of mass of link k + 1, seen from joint k, not joint k + 1
    to_centres = np.zeros(4)
    for k in (3, 2, 1, 0):
        centre = LENGTHS[k] + (to_centres[k + 1] / MASSES[k + 1] if k < 3 else 0.0)
        to_centres[k] = -beyond[k] * centre
    assert variation(chain(to_centres)) > 0.05


def test_the_two_readings_agree_for_three_links():
    """The last link's centre of mass is at its joint: only from the fourth link on does it matter which is meant."""
    three = chain(np.array([0.3, -0.7 * 0.4, 0.0, 0.0]))
    reduced = Robot("three", three.links[:3])
    tip = MASSES[2]
    moments = np.array([0.3, -tip * LENGTHS[1], 0.0, 0.0])
    assert cj.is_balanced(Robot("three", chain(moments).links[:3]))
    assert not cj.is_balanced(reduced)
