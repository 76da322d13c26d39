"""Springs that robots carry: their force is the gradient of their energy, everywhere that forces are computed."""

from __future__ import annotations

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.design import studies
from coadjoint.dynamics.kool import inverse_dynamics_by_lines
from coadjoint.dynamics.lagrangian import gravity_force_sum
from laws import close, frame_derivative, rate, relative
from random_robots import MOVING, random_pose, random_robot


def sprung(seed, kinds=MOVING, links=5):
    """A random robot with springs between links, to the base, and about a joint."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, links, kinds)
    names = [robot.base, *robot.link_names]
    for k, name in enumerate(names):
        robot = robot.with_frame(f"end{k}", name, random_pose(rng))
    for k in range(3):
        a, b = rng.choice(len(names), 2, replace=False)
        robot = robot.with_spring(f"end{a}", f"end{b}", stiffness=float(rng.uniform(5, 40)), rest=0.3 * (k % 2), name=f"spring{k}")
    for i, kind in enumerate(robot.kinds):
        if kind.nv == 1:
            return robot.with_spring(robot.joint_names[i], stiffness=7.0, rest=0.4), rng
    return robot, rng


@pytest.mark.parametrize("seed", range(4))
def test_forces_are_the_gradient_of_energy_and_part_of_all_dynamics(seed):
    robot, rng = sprung(seed)
    plain = robot.with_springs([])
    q, v, a = robot.random(rng, (3,)), *rng.normal(size=(2, 3, robot.nv))
    g, force = cj.gravity_force(robot, q), cj.spring_force(robot, q)
    close(g, frame_derivative(robot, lambda q: cj.potential_energy(robot, q), q), 1e-9)
    close(g, cj.gravity_force(plain, q) + force, 1e-12)
    tau = cj.inverse_dynamics(robot, q, v, a)
    close(tau, cj.inverse_dynamics(plain, q, v, a) + force, 1e-12)
    close(cj.bias_force(robot, q, v), cj.bias_force(plain, q, v) + force, 1e-12)
    condition = np.linalg.cond(cj.mass_matrix(robot, q)).max()
    close(cj.forward_dynamics(robot, q, v, tau), a, 1e-14 * condition + 1e-12)
    rest = tau - cj.spring_force(robot.with_springs([x for x in robot.springs if x.joint]), q) - robot.armature * a
    F = cj.joint_reactions(robot, q, v, a)  # along its screw a bearing passes the joint force, less that of springs about the joint
    for i, kind in enumerate(robot.kinds):
        if kind.nv == 1:
            close(F[:, i] @ robot.joint_screws(i)[0], rest[:, robot.v_slice(robot.joint_names[i])][:, 0], 1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_derivatives_are_those_of_differences(seed):
    robot, rng = sprung(seed)
    q, v, a = robot.random(rng), *rng.normal(size=(2, robot.nv))
    tau = lambda q: cj.inverse_dynamics(robot, q, v, a)
    close(cj.inverse_dynamics_derivatives(robot, q, v, a)[0], frame_derivative(robot, tau, q), 1e-8)
    qq = cj.inverse_dynamics_second_derivatives(robot, q, v, a)[0]
    for direction in rng.normal(size=(3, robot.nv)):  # d²/dt² τ(q ⊕ t d) is quadratic in d
        along = lambda t, d=direction: tau(robot.integrate(q, t * d))
        second = rate(lambda t, along=along: rate(lambda s: along(s + t), 4e-3), 4e-3)
        close(np.einsum("rkl,k,l->r", qq, direction, direction), second, 1e-6)
    close(
        cj.forward_dynamics_derivatives(robot, q, v, a)[0],
        frame_derivative(robot, lambda q: cj.forward_dynamics(robot, q, v, a), q),
        1e-6,
    )


@pytest.mark.native
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_native_code_and_the_source_agree(monkeypatch, seed):
    robot, rng = sprung(seed)
    q, v, a = robot.random(rng, (5,)), *rng.normal(size=(2, 5, robot.nv))
    functions = {
        "inverse": lambda: cj.inverse_dynamics(robot, q, v, a),
        "gravity": lambda: cj.gravity_force(robot, q),
        "energy": lambda: cj.potential_energy(robot, q),
        "derivative": lambda: cj.inverse_dynamics_derivatives(robot, q, v, a)[0],
        "changed": lambda: cj.gravity_force(robot.with_parameters("springs", 1.3 * robot.parameters("springs")), q),
    }
    native = {name: fn() for name, fn in functions.items()}
    monkeypatch.setenv("COADJOINT_NATIVE", "0")
    for name, fn in functions.items():
        assert relative(native[name], fn()) < 1e-12, name


def test_the_closed_form_and_line_vectors_know_springs():
    robot, rng = sprung(2, ("revolute", "prismatic", "continuous"))
    q, v, a = robot.random(rng, (3,)), *rng.normal(size=(2, 3, robot.nv))
    close(gravity_force_sum(robot, q), cj.gravity_force(robot, q), 1e-12)
    close(inverse_dynamics_by_lines(robot, q, v, a), cj.inverse_dynamics(robot, q, v, a), 1e-12)


def test_mujoco_has_the_same_forces(tmp_path):
    """Springs of joints and tendons between sites, written and read again."""
    mujoco = pytest.importorskip("mujoco")
    from coadjoint.interop import mujoco as interop

    rng = np.random.default_rng(0)
    robot = cj.load("panda").with_spring("tip", "link2", stiffness=100.0).with_spring("link4", "base", stiffness=50.0, rest=0.1)
    robot = robot.with_spring("joint3", stiffness=3.0, rest=0.4).with_spring("joint3", stiffness=1.0, rest=-0.4)
    bare = robot.with_numbers(damping=0.0 * robot.damping, friction=0.0 * robot.friction).consolidated()
    with pytest.warns(cj.errors.ModelWarning, match="velocity limits"):
        cj.save(bare, tmp_path / "arm.xml")
    again = cj.load(tmp_path / "arm.xml")
    assert not [x for x in again.warnings if "left out" in x]
    q, v, a = robot.random(rng, (4,)), *rng.normal(size=(2, 4, 7))
    tau = cj.inverse_dynamics(robot, q, v, a)
    close(cj.inverse_dynamics(again, q, v, a), tau, 1e-13)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    for k in range(4):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], v[k], a[k]
        mujoco.mj_inverse(model, data)
        close(data.qfrc_inverse, tau[k], 1e-13)
    assert interop.from_mjmodel(model).springs[0].joint == "joint3"


def test_springs_are_kept_by_changes_of_the_robot(tmp_path):
    rng = np.random.default_rng(1)
    arm = cj.load("panda").with_spring("tip", "link2", stiffness=100.0).with_spring("joint3", stiffness=3.0, rest=0.4)
    cj.save(arm, tmp_path / "arm.json")
    again = cj.load(tmp_path / "arm.json")
    assert again == arm
    assert again != arm.with_springs([])
    assert arm.with_parameters("springs", 1.1 * arm.parameters("springs")).springs[0].stiffness == pytest.approx(110.0)
    held = arm.lock({"joint5": 0.7, "joint3": 0.2})
    q = held.random(rng)
    full = np.insert(q, [2, 3], [0.2, 0.7])
    close(cj.gravity_force(held, q), np.delete(cj.gravity_force(arm, full), [2, 4]), 1e-13)
    cart = cj.load("planar2r").attach(arm, "tip", prefix="arm ")
    assert [x.links for x in cart.springs if not x.joint] == [("arm link7", "arm link2")]
    q = np.concatenate([rng.normal(size=2), arm.random(rng)])
    close(cj.spring_force(cart, q), np.concatenate([np.zeros(2), cj.spring_force(arm, q[2:])]), 1e-13)


@pytest.mark.native
def test_geodesics_do_without_springs():
    arm = cj.load("planar2r").with_spring("tip", "base", stiffness=20.0, rest=0.2)
    start, v = [0.3, 0.4], [1.0, -0.5]
    np.testing.assert_allclose(cj.geodesic(arm, start, v, 1.0), cj.geodesic(arm.with_springs([]), start, v, 1.0), rtol=1e-12)


@pytest.mark.native
def test_a_mass_on_a_spring_swings_as_it_must():
    """x(t) = r + A cos(√(k/m) t), adaptively and by the variational method; energy is kept."""
    slide = cj.Link.solid("block", "base", cj.Joint.prismatic((1, 0, 0), name="slide"), mass=2.0, inertia=0.1)
    for robot in (
        cj.Robot("block", [slide]).with_spring("slide", stiffness=50.0, rest=0.3),
        cj.Robot("block", [slide]).with_spring("block", "base", stiffness=50.0, rest=0.3),
    ):
        motion = cj.simulate(robot, [0.5], [0.0], np.linspace(0, 2, 41))
        close(motion.q[:, 0], 0.3 + 0.2 * np.cos(5.0 * motion.time), 1e-8)
        assert np.ptp(motion.energy) < 1e-8
        steps = cj.simulate(robot, [0.5], [0.0], np.linspace(0, 2, 2001), method="variational")
        close(steps.q[:, 0], 0.3 + 0.2 * np.cos(5.0 * steps.time), 1e-4)


def test_other_array_libraries_run_the_same_source():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    robot, rng = sprung(3)
    q = robot.random(rng)
    close(np.asarray(cj.gravity_force(robot, jax.numpy.asarray(q))), cj.gravity_force(robot, q), 1e-12)


def test_stiffnesses_that_balance_gravity_are_found():
    """The closed form of three springs without length; and a cycle takes less effort with springs than without."""
    g, h, l, strut, a, b = 9.81, 0.3, 0.5, 0.15, 0.2, 0.15
    second = 2.5 * g * 0.2 / (h * b)
    known = [(g * (4.0 * 0.25 + 2.5 * l) - second * h * l) / (h * a), second, second * l / strut]
    found = studies.balancing_springs()
    assert found.converged
    np.testing.assert_allclose(list(found.parameters.values()), known, rtol=1e-6)
    q = found.robot.random(np.random.default_rng(5), (20,))
    assert np.abs(cj.gravity_force(found.robot, q)).max() < 1e-6
    cycle = studies.pick_and_place()
    assert cycle.converged
    assert cycle.cost < 0.5 * cycle.start_cost


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.with_spring("tip", stiffness=1.0), "no joint is named 'tip'"),
        (lambda r: r.with_spring("tip", "nope", stiffness=1.0), "no frame is named 'nope'"),
        (lambda r: r.with_spring("tip", "link3", stiffness=1.0), "with both ends"),
        (lambda r: r.with_spring("tip", "base", stiffness=-1.0), "stiffness is -1"),
        (lambda r: r.with_spring("tip", "base", stiffness="x"), "stiffness is 'x'"),
        (lambda r: r.with_spring("tip", "base", stiffness=1.0, rest=-0.1), "rest is -0.1; expected a length"),
        (
            lambda r: r.with_spring("tip", "base", stiffness=1.0, name="a").with_spring("tip", "base", stiffness=1.0, name="a"),
            "two springs",
        ),
        (lambda r: r.with_springs([3]), "springs.0. is 3"),
        (lambda r: r.with_springs([cj.Spring("a", 1.0, joint="joint9")]), "joint for the spring 'a'"),
        (lambda r: cj.identify(r.with_spring("tip", "base", stiffness=1.0), {}), "does without springs"),
        (lambda r: cj.save(r.with_spring("tip", "base", stiffness=1.0), "never.urdf"), "which URDF does not hold"),
    ],
)
def test_what_is_no_spring_is_refused(change, message):
    with pytest.raises(cj.CoadjointError, match=message):
        change(cj.load("planar3r"))


def test_a_spring_about_a_ball_is_refused():
    ball = cj.Robot(
        "ball", [cj.Link.solid("bob", "base", cj.Joint.spherical(name="ball"), mass=1.0, com=(0, 0, -0.5), inertia=0.01)]
    )
    with pytest.raises(cj.CoadjointError, match="needs one with a single freedom"):
        ball.with_spring("ball", stiffness=1.0)
    hung = ball.with_frame("end", "bob", np.eye(4)).with_frame("hook", "base", np.eye(4) + np.eye(4, k=3))
    hung = hung.with_spring("bob", "hook", stiffness=3.0)
    close(cj.gravity_force(hung, hung.neutral()), cj.gravity_force(ball, ball.neutral()), 1e-15)  # it pulls at the centre


def test_springs_of_what_cannot_move():
    """They hold their energy, and there is no joint force."""
    far = np.eye(4)
    far[0, 3] = 0.5
    body = cj.Link("a", "base", cj.Joint.fixed(), placement=far, parameters=np.array([1.0, 0, 0, 0, 1, 0, 0, 1, 0, 1]))
    robot = cj.Robot("post", [body]).with_spring("a", "base", stiffness=3.0, rest=0.2)
    assert cj.spring_force(robot, np.zeros(0)).shape == (0,)
    assert cj.spring_force(robot, np.zeros((3, 0))).shape == (3, 0)
    close(cj.potential_energy(robot, np.zeros((3, 0))), np.full(3, 0.5 * 3.0 * 0.3**2), 1e-14)
