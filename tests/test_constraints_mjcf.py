"""Equality elements of MJCF against MuJoCo's own rows and values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.constraints import assemble, constraint_rank
from coadjoint.constraints.mjcf import from_mjmodel, read_mjcf
from coadjoint.errors import ModelWarning, ReadError
from coadjoint.interop import mujoco as interop

mujoco = pytest.importorskip("mujoco")

ARMS = """<mujoco model="arms"><compiler angle="radian"/><worldbody>
  <body name="a" pos="0 0 1"><joint name="a1" axis="0 0 1" ref="0.2"/><joint name="a2" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/>
    <body name="b" pos="0.5 0 0.1" euler="0.3 0.2 0"><joint name="b1" axis="1 0 0"/><joint name="b2" type="slide" axis="0 1 1"/>
      <geom size="0.1" mass="2"/><site name="grip" pos="0.1 0.2 0" euler="0 0.4 0.1"/></body></body>
  <body name="c" pos="1 0.3 1"><joint name="c1" axis="0 0 1" ref="-0.1"/><joint name="c2" axis="0 1 0"/><joint name="c3" axis="1 0 0"/>
    <geom size="0.1" pos="0 0 0.3"/><site name="knob" pos="0 0 0.4"/></body>
</worldbody><equality>{}</equality></mujoco>"""
ELEMENTS = {
    "connect": '<connect name="pin" body1="b" body2="c" anchor="0.1 0.2 0.3"/>',
    "connect to the world": '<connect body1="b" anchor="0.1 0.2 0.3"/>',
    "connect by sites": '<connect site1="grip" site2="knob"/>',
    "weld": '<weld body1="b" body2="c" anchor="0.1 0 0.2"/>',
    "weld with a pose": '<weld body1="c" body2="b" relpose="0.1 0.2 0.3 0.9 0.1 0.2 0.3"/>',
    "weld by sites": '<weld site1="grip" site2="knob"/>',
    "joint": '<joint joint1="a1" joint2="c1" polycoef="0.1 0.7 0.2 -0.3 0.05"/>',
    "joint held": '<joint joint1="b2" polycoef="0.15 0 0 0 0"/>',
    "two": '<connect body1="b" body2="c" anchor="0.1 0.2 0.3"/><joint joint1="a1" joint2="c1"/>',
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_equality_elements_are_those_of_mujoco(name):
    """At a configuration that closes, the rows span what MuJoCo's do; away from it, gaps of points and joints are the same."""
    model = mujoco.MjModel.from_xml_string(ARMS.format(ELEMENTS[name]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left out
        robot, constraint = from_mjmodel(model)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)

    def theirs(q):
        data.qpos[:] = interop.q_to_mujoco(robot, model, q)
        mujoco.mj_forward(model, data)
        G = interop.velocity_map(robot, model, q)
        return data.efc_pos[: data.ne].copy(), data.efc_J.reshape(-1, model.nv)[: data.ne] @ G

    q = 0.3 * rng.normal(size=robot.nq)
    if "weld" not in name:
        np.testing.assert_allclose(np.linalg.norm(constraint.residual(robot, q)), np.linalg.norm(theirs(q)[0]), rtol=1e-12)
    q = assemble(robot, constraint, q)
    value, J = theirs(q)
    A = constraint.jacobian(robot, q)
    assert A.shape == J.shape
    np.testing.assert_allclose(value, 0, atol=1e-11)
    np.testing.assert_allclose(np.linalg.pinv(A) @ A, np.linalg.pinv(J) @ J, atol=1e-8)


def test_a_planar_loop_from_a_file(tmp_path):
    """A four-bar of hinges with `connect`: z of the pin is redundant."""
    path = tmp_path / "fourbar.xml"
    path.write_text(
        """<mujoco><option gravity="0 -9.81 0"/><worldbody><body name="crank"><joint name="crank" axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02"/><body name="coupler" pos="0.4 0 0"><joint name="coupler" axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0.9 0 0" size="0.02"/></body></body>
        <body name="rocker" pos="1 0 0"><joint name="rocker" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.6 0 0" size="0.02"/>
        <site name="end" pos="0.6 0 0"/></body></worldbody>
        <equality><connect name="pin" site1="tip" site2="end"/></equality></mujoco>""".replace(
            '<body name="coupler" pos="0.4 0 0">', '<body name="coupler" pos="0.4 0 0"><site name="tip" pos="0.9 0 0"/>'
        ),
        encoding="utf-8",
    )
    robot, constraint = read_mjcf(path)
    q = assemble(robot, constraint, [0.9, -0.5, 1.8], fixed="crank")
    rank = constraint_rank(robot, constraint, q)
    assert (rank.rank, rank.freedoms, rank.redundant) == (2, 1, ("pin 1 to pin 2 z",))
    assert cj.constrained_dynamics(robot, constraint, q, np.zeros(3), np.zeros(3))[1].shape == (3,)


def test_what_is_not_held_is_said(tmp_path):
    text = """<mujoco><worldbody><body name="a"><joint name="a"/><geom size="0.1"/></body></worldbody>
    <tendon><fixed name="cord"><joint joint="a" coef="1"/></fixed></tendon><equality><tendon tendon1="cord"/></equality></mujoco>"""
    with pytest.warns(ModelWarning, match="none of connect, weld and joint"):
        _, constraint = from_mjmodel(mujoco.MjModel.from_xml_string(text))
    assert constraint is None
    path = tmp_path / "bad.xml"
    path.write_text("<mujoco><worldbody><body mass='x'/></worldbody></mujoco>", encoding="utf-8")
    with pytest.raises(ReadError, match="MuJoCo"):
        read_mjcf(path)
