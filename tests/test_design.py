"""Designs: exact gradients, known optima, possible bodies, and clear refusals."""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.cli import main
from coadjoint.design import objectives, optimize, studies
from coadjoint.design.optimize import _Problem
from coadjoint.design.variables import variables
from coadjoint.lie import inertia
from laws import rate
from models import urdf_files

RNG = np.random.default_rng(0)


def motion(robot, n=20, seed=0):
    rng = np.random.default_rng(seed)
    return {"q": robot.random(rng, (n,)), "v": rng.normal(size=(n, robot.nv)), "a": rng.normal(size=(n, robot.nv))}


@pytest.mark.parametrize("sets", [["masses", "lengths"], ["inertial", "axes"]])
@pytest.mark.parametrize("name", ["effort", "base_reaction", "variation", "curvature"])
def test_gradients_are_those_of_central_differences(name, sets):
    robot, fn = studies.planar_chain((0.5, 0.4, 0.3)), getattr(objectives, name)
    arrays = {k: x for k, x in motion(robot, 5).items() if k in fn.__code__.co_varnames[: fn.__code__.co_argcount]}
    space = variables(robot, sets, {})
    problem = _Problem(robot, space, fn, (), arrays)
    chart = space.chart({})
    z = chart.start + 0.05 * RNG.normal(size=chart.start.size)
    slope = problem.evaluate(chart.values(z))[1][0] @ chart.jacobian(z)
    h = 1e-5
    value = lambda z: problem.evaluate(chart.values(z))[0][0]
    known = np.array([(value(z + h * d) - value(z - h * d)) / (2 * h) for d in np.eye(z.size)])
    np.testing.assert_allclose(slope, known, atol=1e-6 * np.abs(known).max())


def test_a_linear_problem_has_the_solution_of_its_normal_equations():
    """τ is linear in inertias, so that a least-squares objective of some of them is solved by linear algebra, too."""
    robot = studies.planar_chain((0.5, 0.4))
    given = motion(robot)
    tau = np.asarray(cj.inverse_dynamics(robot.with_gravity((0, 0, 0)), **given)) * 1.03

    def misfit(robot, q, v, a, tau):
        gap = cj.inverse_dynamics(robot, q, v, a) - tau
        return (gap * gap).sum(-1)

    free = ["inertial:link2.Izz", "inertial:link1.Izz"]
    found = optimize(robot, free, misfit, states=given | {"tau": tau})
    Y = np.asarray(cj.regressor(robot, **given)).reshape(-1, 20)
    known = np.linalg.lstsq(
        Y[:, [9, 19]], tau.reshape(-1) - np.delete(Y, [9, 19], 1) @ np.delete(robot.inertial_parameters, [9, 19]), rcond=None
    )[0]
    assert found.converged
    np.testing.assert_allclose([found.parameters["inertial:link1.Izz"], found.parameters["inertial:link2.Izz"]], known, rtol=1e-6)


def test_a_balanced_linkage_is_the_closed_form():
    """Brockett, Stokes & Park (1993): m_k p_kk = -(Σ_{j>k} m_j) p_{k,k+1}."""
    found = studies.balanced_linkage(4)
    masses, lengths = [1.3, 1.6, 1.9], [0.4, 0.3]
    expected = {"link2": -(masses[1] + masses[2]) * lengths[0], "link3": -masses[2] * lengths[1], "link4": 0.0}
    for link, h in expected.items():
        assert found.parameters[f"inertial:{link}.hx"] == pytest.approx(h, abs=1e-6)
        assert found.parameters[f"inertial:{link}.hy"] == pytest.approx(0.0, abs=1e-6)
    assert cj.design.balance(found.robot).variation < 1e-6
    assert found.converged


@pytest.mark.native
def test_lengths_are_found_from_what_the_arm_should_reach():
    found = studies.reaching_lengths()
    assert found.parameters["lengths:link2.length"] == pytest.approx(0.7, abs=1e-6)
    assert found.parameters["frames:tip.vx"] == pytest.approx(0.1, abs=1e-6)


def test_the_arm_of_least_curvature_keeps_its_constraint():
    found = studies.least_curvature()
    assert found.converged
    assert found.cost < 0.2 * found.start_cost
    assert sum(x for name, x in found.parameters.items() if name.startswith("masses")) <= 6.0 + 1e-6


def test_inertias_stay_those_of_bodies():
    """Least effort of given motions wants negative masses; the design stays possible, whole links and parts of them alike."""
    robot = studies.planar_chain((0.5, 0.4, 0.3))
    given = motion(robot)
    for free in (["inertial"], ["inertial:link2"], ["inertial:link3.hx", "inertial:link3.Izz"]):
        found = optimize(robot, free, objectives.effort, states=given, iterations=60)
        assert found.cost < found.start_cost
        for row in np.asarray(found.robot.inertial_parameters).reshape(-1, 10):
            assert np.linalg.eigvalsh(inertia.pseudo(row)).min() > 0


def test_values_from_a_list_are_all_tried():
    """The armature of a motor behind one of some gears: the best of the list, by enumeration."""
    robot = cj.load("planar2r")
    given, name = motion(robot), "armature:" + robot.parameter_names("armature")[0]
    wanted = lambda robot: (robot.armature[..., 0] - 0.42) ** 2 + (robot.armature[..., 1] - 0.1) ** 2
    found = optimize(
        robot,
        "armature",
        lambda robot, q: wanted(robot) + 0.0 * q[..., 0],
        states={"q": given["q"]},
        choices={name: [0.0, 0.3, 0.5, 1.0]},
    )
    other = "armature:" + robot.parameter_names("armature")[1]
    assert found.parameters[name] == 0.5
    assert found.parameters[other] == pytest.approx(0.1, abs=1e-5)


def test_bounds_hold_and_hold_the_optimum():
    robot = cj.load("planar2r")
    found = optimize(robot, "lengths", objectives.effort, states=motion(robot), bounds={"lengths": (0.4, 2.0)})
    assert list(found.parameters.values()) == [pytest.approx(0.4)]
    assert found.converged
    assert all(x > 0 for x in found.gradient.values())


def test_bounds_of_whole_bodies_hold():
    """Light links are wanted: the masses end at their bounds, and the rest of the bodies is free."""
    robot = studies.planar_chain((0.5, 0.4))
    bounds = {"inertial:link1.m": (0.9, 1.4), "inertial:link2.m": (0.8, 2.0), "inertial:link2.Izz": (0.2, np.inf)}
    found = optimize(robot, "inertial", objectives.lowest_inertia, states={"q": motion(robot)["q"]}, bounds=bounds, iterations=40)
    for name, (low, high) in bounds.items():
        assert low * (1 - 1e-6) <= found.parameters[name] <= high * (1 + 1e-6)
    assert found.parameters["inertial:link2.Izz"] == pytest.approx(0.2, rel=1e-2)
    assert found.cost < 0.5 * found.start_cost
    with pytest.raises(cj.CoadjointError, match="link2"):  # a number that does not change has no bounds
        optimize(robot, "masses:link1", objectives.lowest_inertia, states={"q": [0.0, 0.0]}, bounds={"masses:link2.m": (1, 2)})
    only = optimize(robot, "masses:link1", objectives.lowest_inertia, states={"q": [0.0, 0.0]}, bounds={"masses:link1": (0.7, 2)})
    assert only.parameters == {"masses:link1.m": pytest.approx(0.7)}
    light = optimize(robot, "masses", objectives.lowest_inertia, states={"q": [0.0, 0.0]}, bounds={"masses": (-1.0, 2.0)})
    assert min(light.parameters.values()) > 0.0


def test_a_start_that_violates_a_constraint_is_left():
    """The robot as it is costs less than any design that is allowed; so does one of the choices."""
    robot = cj.load("planar2r")
    names = ["armature:" + x for x in robot.parameter_names("armature")]
    cost = lambda robot, weight=1.0: weight * (robot.armature * robot.armature).sum(-1) + 1.0
    enough = lambda robot: robot.armature[0] - 0.5
    found = optimize(robot, "armature", cost, constraints=[enough])
    assert found.converged
    assert found.parameters == {names[0]: pytest.approx(0.5), names[1]: pytest.approx(0.0, abs=1e-7)}
    listed = optimize(robot, "armature", cost, constraints=[enough], choices={names[0]: [0.1, 0.6]})
    assert listed.converged
    assert listed.parameters[names[0]] == 0.6


def test_what_ended_a_design_is_told():
    robot = cj.load("planar2r")
    cost = lambda robot: (robot.armature * robot.armature).sum(-1) + robot.armature[0] * robot.armature[1] + robot.armature[0]

    def enough(robot):
        return robot.armature[1] - 0.5

    heavy = optimize(
        robot, "armature", cost, constraints=[lambda robot: robot.armature[0], enough], bounds={"armature": (0.0, 0.2)}
    )
    assert not heavy.converged
    assert heavy.message.startswith("constraint 2 (enough) is violated: its mean is -0.3 ")
    bananas = lambda robot: (1.0 - robot.armature[0]) ** 2 + 100.0 * (robot.armature[1] - robot.armature[0] ** 2) ** 2
    assert optimize(robot, "armature", bananas, iterations=3).message.startswith("stopped after 3 iterations, not an optimum")


def test_impossible_bodies_are_not_chosen():
    """A moment of inertia from a list: the smaller ones cost less, but no body has them."""
    robot = studies.planar_chain((0.5, 0.4))
    given, name = {"q": motion(robot)["q"]}, "inertial:link2.Izz"
    for free in (name, "inertial:link2"):
        found = optimize(robot, free, objectives.lowest_inertia, states=given, choices={name: [-0.5, 0.5, 0.7]}, iterations=30)
        assert found.parameters[name] == 0.5
    alone = optimize(robot, name, objectives.lowest_inertia, states=given, choices={name: [1e-4]})
    assert not alone.converged
    assert "violated" in alone.message


def test_a_cost_of_zero_can_fall():
    robot = cj.load("planar2r")
    home = robot.frame_poses[-1][0, 3]
    shift = lambda robot: robot.frame_poses[-1][0, 3] - home
    found = optimize(robot, "frames", lambda robot: shift(robot) + shift(robot) ** 2)
    assert found.converged
    assert found.cost == pytest.approx(-0.25)


@pytest.mark.native
@pytest.mark.skipif(not urdf_files(), reason="needs example-robot-data")
@pytest.mark.parametrize(
    "sets",
    [
        ["axes", "inertial:forearm_link"],
        *(pytest.param(x, marks=pytest.mark.slow) for x in (["homes", "frames", "masses"], ["lengths", "armature"])),
    ],
)
def test_the_robot_that_is_given_is_the_one_that_was_evaluated(sets):
    """The cost of `Design.robot`, computed anew by plain calls, is `Design.cost`: a robot of an arm maker's own file."""
    robot = cj.load(next(path for name, path in urdf_files().items() if name.endswith("ur5_robot.urdf")))
    given = motion(robot, 3)
    found = optimize(robot, sets, objectives.effort, states=given, iterations=3)
    assert found.cost < found.start_cost
    assert np.mean(objectives.effort(found.robot, **given)) == pytest.approx(found.cost, rel=1e-9)


def test_an_interrupt_ends_all_choices():
    robot, calls = cj.load("planar2r"), []
    name = "armature:" + robot.parameter_names("armature")[0]

    def stop(x):
        calls.append(x)
        raise KeyboardInterrupt

    cost = lambda robot: ((robot.armature - 1.0) ** 2).sum(-1)
    found = optimize(robot, "armature", cost, choices={name: [0.1, 0.2, 0.3]}, report=stop)
    assert "interrupted" in found.message
    assert len(calls) == 1


def test_an_interrupt_keeps_the_best():
    robot, calls = studies.planar_chain((0.5, 0.4, 0.3)), []

    def stop(x):
        calls.append(x)
        if len(calls) == 3:
            raise KeyboardInterrupt

    found = optimize(robot, "inertial", objectives.variation, states={"q": motion(robot)["q"]}, report=stop)
    assert "interrupted" in found.message
    assert not found.converged
    assert found.cost < found.start_cost


def test_what_cannot_be_designed_is_named():
    robot = cj.load("planar2r")
    given = motion(robot)
    for wrong, options, message in [
        ("mases", {}, "no set of parameters is named 'mases'"),
        ("masses:link9", {}, "link9"),
        ([], {}, "parameters is empty"),
        ("inertial", {}, "bodies with volume"),
        (["masses", "inertial"], {}, "the same numbers"),
        ("payload:tip", {}, "a payload begins as nothing"),
        ("masses", {"bounds": {"length": (0, 1)}}, "length"),
        ("masses", {"bounds": {"masses": (2, 1)}}, "lower <= upper"),
        ("masses", {"choices": {"masses:link1.m": []}}, "one finite number"),
        ("masses", {"choices": {"masses:link1.m": 3}}, "one finite number"),
        ("masses", {"choices": {"masses:link1.m": [2.0]}, "bounds": {"masses": (0.5, 1)}}, "within 0.5 … 1"),
        ("masses", {"bounds": {"masses": (-2, -1)}}, "cannot be less"),
        ("masses", {"bounds": [("masses", 1, 2)]}, "expected a mapping"),
        ("masses", {"choices": [("masses", 1, 2)]}, "expected a mapping"),
    ]:
        with pytest.raises(cj.CoadjointError, match=message):
            optimize(robot, wrong, objectives.effort, states=given, **options)
    with pytest.raises(cj.CoadjointError, match="which states does not give"):
        optimize(robot, "masses", objectives.effort, states={"q": given["q"]})
    for wrong, message in [(np.zeros((0, 2)), "no state at all"), (np.full((20, 2), np.nan), "not finite")]:
        with pytest.raises(cj.CoadjointError, match=message):
            optimize(robot, "masses", objectives.effort, states=given | {"q": wrong})
    with pytest.raises(cj.CoadjointError, match="expected one number"):
        optimize(robot, "masses", lambda robot: [robot.inertias[0, 0]])
    with pytest.raises(cj.CoadjointError, match=r"expected \(\.\.\., 2\)"):
        optimize(robot, "masses", objectives.effort, states=given | {"q": np.zeros((20, 3))})


def test_the_command_designs_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["design", "planar2r", "--parameters", "lengths", "--bounds", "lengths", "0.5", "2"]
    assert main([*words, "--out", "r.json", "--plot", "d.svg"]) == 0
    assert "lengths:link2.length" in capsys.readouterr().out
    assert cj.load(tmp_path / "r.json").parameters("lengths") == pytest.approx(0.5)
    assert "<svg" in (tmp_path / "d.svg").read_text()
    assert main(["design", "balanced-linkage"]) == 0
    for more in (["--parameters", "masses"], ["--objective", "curvature"]):
        assert main(["design", "balanced-linkage", *more]) == 1
        assert "numbers of its own" in capsys.readouterr().err
    assert main(["design", "planar2r"]) == 1
    assert "--parameters" in capsys.readouterr().err


def test_softness_is_the_sum_of_the_natural_frequencies_inverse_squares():
    """By the eigenvalues of M⁻¹ K, K by differences of the forces at rest, with springs and gravity; a design raises the lowest."""
    arm = cj.load("planar2r").with_spring("joint1", stiffness=90.0, rest=0.2).with_spring("joint2", stiffness=40.0, rest=-0.1)
    q = np.array([-1.1, 0.3])
    stiffness = np.stack([rate(lambda h, k=k: cj.gravity_force(arm, q + h * np.eye(2)[k]), 1e-4) for k in range(2)], axis=1)
    squares = lambda robot, K: np.sort(np.linalg.eigvals(np.linalg.solve(cj.mass_matrix(robot, q), K)))
    np.testing.assert_allclose(objectives.softness(arm, q), (1 / squares(arm, stiffness)).sum(), rtol=1e-8)
    free = arm.with_gravity((0, 0, 0))
    found = optimize(free, "masses", objectives.softness, states={"q": q[None]}, bounds={"masses": (0.5, 2.0)})
    assert found.converged
    K = np.diag([90.0, 40.0])
    assert squares(found.robot, K)[0] == pytest.approx(2 * squares(free, K)[0])  # half of the masses
