"""What holds of Altafini's theorem and what does not; paths followed, drift, self-motion, figures and the command."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import redundancy as rd
from coadjoint.cli import main
from coadjoint.errors import CoadjointError
from coadjoint.geometry import inner_product
from coadjoint.redundancy.conditions import regular_configurations
from laws import close
from redundant_robots import PLANAR, balanced_3r, case_24, panda_circle, ppr_with_rotor, pprr, redundant, with_wheels

# --- the counterexamples of Altafini's claims, and the example for them


def test_counterexample_a_chain_is_no_riemannian_submersion():
    """Proposition II.1: J M⁻¹ Jᵀ of a 9-joint chain is not 1, and differs from configuration to configuration."""
    case = case_24()
    J, M = cj.jacobian(case.robot, case.inputs.q, "tool"), cj.mass_matrix(case.robot, case.inputs.q)
    off = J @ np.linalg.solve(M, J.T) - np.eye(6)
    assert np.max(np.abs(off)) > 0.8
    report = rd.submersion(case.robot, "tool", metric=np.eye(6), configurations=6)
    assert not report.riemannian
    assert report.along_fibres > 1e-3
    assert not rd.submersion(case.robot, "tool", configurations=6).riemannian  # onto no other left-invariant metric either
    assert "not a Riemannian submersion" in str(report)


@pytest.mark.slow
@pytest.mark.native
def test_counterexample_flat_robots_drift():
    """Corollary III.2: a balanced planar 3R is flat, its mass matrix constant, and its lift of the tip's position is not integrable."""
    robot = balanced_3r()
    assert cj.is_flat(robot)
    report = rd.repeatability(robot, "tip", (3, 4))
    assert not report.repeatable
    assert report.largest > 0.1
    q = np.array([0.3, 0.9, -0.5])
    T = cj.pose(robot, q, "tip")
    path = cj.circle_path(T, T[:3, 3] - [0.4, 0, 0], [0, 0, 1], duration=10.0)
    track = rd.follow(robot, q, path, "tip", (3, 4))
    assert np.max(track.error) < 1e-12
    assert np.max(np.abs(track.drift)) > 0.01
    # By hand, without the library's following: many small steps of dq = L dx, and Stokes: a tenth of the circle drifts less.
    J = lambda x: cj.jacobian(robot, x, "tip", "world")[[3, 4]]
    M = cj.mass_matrix(robot, q)
    x, n = q, 4000
    for k in range(n):
        d = path((k + 0.5) * 10 / n)[1][3:]
        dx = (path(0.0)[0][:3, :3] @ d)[:2] * 10 / n
        middle = x
        for _ in range(2):
            Y = np.linalg.solve(M, J(middle).T)
            step = Y @ np.linalg.solve(J(middle) @ Y, dx)
            middle = x + step / 2
        x = x + step
    np.testing.assert_allclose(x - q, track.drift, atol=1e-5)
    small = cj.circle_path(T, T[:3, 3] - [0.04, 0, 0], [0, 0, 1], duration=10.0)
    ratio = np.linalg.norm(rd.follow(robot, q, small, "tip", (3, 4)).drift) / np.linalg.norm(track.drift)
    assert 0.001 < ratio < 0.05  # as the area, 1/100


@pytest.mark.native
def test_drift_of_a_small_loop_is_the_vertical_bracket_times_its_area():
    """[L_x, L_y]ᵛ times the area, round a small loop from x to y."""
    robot, q, r = balanced_3r(), np.array([0.3, 0.9, -0.5]), 0.002
    task = rd.Task("tip", (3, 4), "world")
    T = cj.pose(robot, q, "tip")
    track = rd.follow(robot, q, cj.circle_path(T, T[:3, 3] + [r, 0, 0], [0, 0, 1], duration=10.0), task)
    V = rd.vertical_brackets(robot, 0.5 * (q + track.q[200]), task)[:, 0, 1]
    assert np.linalg.norm(track.drift - V * np.pi * r * r) < 0.01 * np.linalg.norm(track.drift)


def test_counterexample_lift_and_pseudoinverse_differ_where_all_else_holds():
    """Theorem III.2: PPRR has constant M and J M⁻¹ Jᵀ = 1, is integrable; the lift of ω is (0, 1), Moore and Penrose's (½, ½)."""
    robot, q = pprr(), np.array([0.3, -0.2, 0.7, 0.4])
    report = rd.submersion(robot, "b", PLANAR, metric=np.eye(3))
    assert report.riemannian
    assert report.along_fibres < 1e-12
    assert report.lift.repeatable
    assert not report.lift_is_pseudoinverse
    close(cj.horizontal_lift(robot, q, "b", PLANAR)[:, 0], [0, 0, 0, 1], 1e-14)
    close(rd.moore_penrose(robot, q, "b", PLANAR)[:, 0], [0, 0, 0.5, 0.5], 1e-14)
    assert cj.is_flat(robot)


@pytest.mark.native
def test_where_the_theorem_holds():
    """PPR and a rotor with its axis in the plane, the tool on link 3: all that Altafini claims is true."""
    robot = ppr_with_rotor()
    report = rd.submersion(robot, "a", PLANAR, metric=np.diag([1.0, 1.0, 1.0]))
    assert report.riemannian
    assert report.lift.repeatable
    assert report.pseudoinverse.repeatable
    assert report.lift_is_pseudoinverse
    q = robot.random(0, 5)
    close(cj.horizontal_lift(robot, q, "a", PLANAR), rd.moore_penrose(robot, q, "a", PLANAR), 1e-13)
    T = cj.pose(robot, q[0], "a")
    path = cj.circle_path(T, T[:3, 3] + [0.4, 0.1, 0], [0, 0, 1], turn=True, duration=5.0)
    for inverse in ("lift", "moore-penrose"):
        drift = rd.follow(robot, q[0], path, "a", PLANAR, inverse=inverse).drift
        close(drift, [0, 0, 2 * np.pi, 0], 1e-9)


@pytest.mark.parametrize("base", ["spherical", "free"])
def test_oneills_formula(base):
    """K of the task = K of the lift + ¾ |[X, Y]ᵛ|², on a body with wheels: a Riemannian submersion onto SO(3) or SE(3) that turns."""
    robot = with_wheels(base)
    rows = (0, 1, 2) if base == "spherical" else tuple(range(6))
    q = robot.random(1)
    report = rd.submersion(robot, "body", rows)
    assert report.riemannian
    assert report.along_fibres < 1e-9
    assert not report.lift.repeatable
    inertia = cj.effective_inertia(robot, q, "body", rows)
    mass = inertia[-1, -1] if base == "free" else 1.0
    I = inertia[:3, :3]
    below = cj.Robot("body", [cj.Link.solid("body", "base", getattr(cj.Joint, base)(), mass=mass, inertia=I)], gravity=(0, 0, 0))
    at = q[: below.nq]
    close(cj.mass_matrix(below, at), inertia, 1e-12)
    H, V = rd.horizontal_basis(robot, q, "body", rows), rd.vertical_brackets(robot, q, "body", rows)
    G = np.linalg.inv(np.linalg.cholesky(inertia)).T  # columns orthonormal below
    sizes = []
    for a in range(len(rows)):
        for b in range(a):
            bracket = np.einsum("nab,a,b->n", V, G[:, a], G[:, b])
            turned = float(inner_product(robot, q, bracket, bracket))
            above = cj.sectional_curvature(robot, q, H[:, a], H[:, b])
            assert cj.sectional_curvature(below, at, G[:, a], G[:, b]) == pytest.approx(above + 0.75 * turned, abs=1e-11)
            sizes.append(turned)
    assert max(sizes) > 0.05


def test_no_flat_robot_with_an_integrable_lift_onto_se3():
    """O'Neill's formula forbids it, as SE(3) has no flat left-invariant metric: K of some plane is not 0 for any of 20 metrics."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.normal(size=(3, 3))
        I = np.diag(np.sort(rng.uniform(1.0, 1.9, 3)))
        robot = cj.Robot("b", [cj.Link.solid("b", "base", cj.Joint.free(), mass=rng.uniform(0.5, 2), com=0.1 * A[0], inertia=I)])
        assert np.max(np.abs(cj.curvature(robot.with_gravity((0, 0, 0)), robot.random(rng)))) > 1e-3


# --- repeatability of any inverse


@pytest.mark.native
def test_repeatability_of_any_inverse():
    robot = cj.load("planar_nr")
    task = rd.Task("tip", (3, 4))
    for inverse in ("lift", "moore-penrose", np.array([1.0, 2.0, 3.0]), np.diag([1.0, 0.5, 2.0])):
        assert not rd.repeatability(robot, task, inverse=inverse, configurations=4).repeatable
    # The first joint held still: the others alone do the task, so what they did they undo.
    world = rd.Task("tip", (3, 4), "world")

    def held(robot, q):
        J = world.jacobian(robot, q)
        det = J[..., 0, 1] * J[..., 1, 2] - J[..., 0, 2] * J[..., 1, 1]
        zero = 0.0 * det
        rows = [[zero, zero], [J[..., 1, 2] / det, -J[..., 0, 2] / det], [-J[..., 1, 1] / det, J[..., 0, 1] / det]]
        return cj.arrays.matrix(rows)

    report = rd.repeatability(robot, world, inverse=held, configurations=4)
    assert report.repeatable, report
    assert "held: repeatable" in str(report)
    q = np.array([0.2, 0.8, 0.9])
    T = cj.pose(robot, q, "tip")
    path = cj.circle_path(T, T[:3, 3] - [0.1, 0.1, 0], [0, 0, 1], duration=3.0)
    close(rd.follow(robot, q, path, world, inverse=held).drift, np.zeros(3), 1e-9)
    assert np.max(np.abs(rd.follow(robot, q, path, world).drift)) > 1e-3
    with pytest.raises(CoadjointError, match="is no inverse of the Jacobian"):
        rd.repeatability(robot, world, inverse=lambda robot, q: 2 * held(robot, q))
    for wrong in ("pinv", np.eye(2), -np.ones(3), [1, 2]):
        with pytest.raises(CoadjointError, match="inverse is"):
            rd.repeatability(robot, world, inverse=wrong)


def test_at_the_wrist_of_a_puma_the_pseudoinverse_repeats_and_the_lift_does_not():
    """The wrist's centre depends on three joints; J⁺ moves only these, the lift the wrist too, by inertia."""
    robot = cj.load("puma560")
    report = rd.submersion(robot, "tip", (3, 4, 5), configurations=8)
    assert report.pseudoinverse.repeatable
    assert not report.lift.repeatable
    assert report.lift.largest > 1e-4


def test_the_lift_is_the_pseudoinverse_where_m_keeps_the_kernel():
    robot, q = redundant(3)
    defect = rd.pseudoinverse_defect(robot, q, "tip")
    assert defect > 1e-3
    P = np.linalg.pinv(J := cj.jacobian(robot, q, "tip")) @ J
    M = cj.mass_matrix(robot, q)
    assert defect == pytest.approx(np.linalg.norm(P @ M - P @ M @ P) / np.linalg.norm(M), rel=1e-9)
    assert np.max(rd.pseudoinverse_defect(ppr_with_rotor(), np.zeros((3, 4)), "a", PLANAR)) < 1e-15
    with pytest.raises(CoadjointError, match="configurations is 0"):
        regular_configurations(robot, rd.Task("tip"), 0)
    with pytest.raises(rd.SingularTaskError, match="nearly everywhere"):
        rd.submersion(cj.load("planar_nr"), "tip", (0, 3))


# --- following


@pytest.fixture(scope="module")
def tracks():
    import os

    before = os.environ.get("COADJOINT_NATIVE")
    os.environ["COADJOINT_NATIVE"] = "1"
    robot, q, path = panda_circle()
    found = {inverse: rd.follow(robot, q, path, "tip", inverse=inverse) for inverse in ("lift", "moore-penrose")}
    os.environ["COADJOINT_NATIVE"] = before or "1"
    return found


@pytest.mark.native
def test_a_closed_path_of_ten_seconds_on_the_panda(tracks):
    """Below 1e-9 throughout, between the steps too; start and end on one fibre; horizontal; drift that no step size changes."""
    for inverse, track in tracks.items():
        robot, path = track.robot, track.path
        t = np.linspace(0, 10, 3001)
        q = track(t)
        assert np.max(np.abs(cj.pose(robot, q, "tip") - path(t)[0])) < 1e-12
        assert np.max(track.error) < 1e-12
        raw = np.moveaxis(track.solution(t), 0, -1)
        assert np.max(np.abs(cj.pose(robot, raw, "tip") - path(t)[0])) < 1e-9  # before it is brought onto the path
        assert np.max(np.abs(raw - q)) < 1e-8
        assert np.max(np.abs(cj.pose(robot, track.q[-1], "tip") - cj.pose(robot, track.q[0], "tip"))) < 1e-12
        v = track.velocity(t)
        close(np.einsum("zij,zj->zi", cj.jacobian(robot, q, "tip"), v), path(t)[1], 1e-10)
        if inverse == "lift":
            assert np.max(np.abs(rd.split_velocity(robot, q, v, "tip")[1])) < 1e-9
        assert 0.01 < np.linalg.norm(track.drift) < 0.5
        assert "followed by" in str(track)
    assert np.max(np.abs(tracks["lift"].drift - tracks["moore-penrose"].drift)) > 0.01
    energies = [cj.kinetic_energy(x.robot, x.q, x.velocity(x.time)) for x in tracks.values()]
    assert energies[0][0] <= energies[1][0]  # from the same start the lift takes the least


@pytest.mark.native
def test_the_drift_by_another_integrator(tracks):
    """Runge and Kutta's classical method with 8,000 steps, and none of ours but the lift."""
    track = tracks["lift"]
    robot, path, q, n = track.robot, track.path, track.q[0], 8000
    h = 10.0 / n
    times = np.arange(2 * n + 1) * h / 2
    X = path(times)[1]
    rate = lambda q, k: cj.horizontal_lift(robot, q, "tip") @ X[k]
    for k in range(n):
        a = rate(q, 2 * k)
        b = rate(q + h / 2 * a, 2 * k + 1)
        c = rate(q + h / 2 * b, 2 * k + 1)
        q = q + h / 6 * (a + 2 * b + 2 * c + rate(q + h * c, 2 * k + 2))
    np.testing.assert_allclose(q - track.q[0], track.drift, atol=1e-10)


@pytest.mark.slow
@pytest.mark.native
def test_many_starts_at_once():
    """Starts on one fibre, and splines; each as by itself."""
    robot = cj.load("panda")
    q = np.array([0.3, -0.4, 0.2, -2.0, 0.3, 1.7, 0.5])
    starts = rd.self_motion(robot, q, np.ones(7), np.array([0.0, 1.0, 3.0]), "tip")
    T = cj.pose(robot, q, "tip")
    path = cj.spline_path(
        [T, T @ cj.lie.se3.exp([0.1, 0, 0.2, 0.05, 0, 0]), T @ cj.lie.se3.exp([0, 0.2, 0, 0, 0.05, 0.05])], 4.0, closed=True
    )
    track = rd.follow(robot, starts, path, "tip", points=51)
    assert track.q.shape == (3, 51, 7)
    assert track.drift.shape == (3, 7)
    assert np.max(track.error) < 1e-12
    np.testing.assert_allclose(track.q[1], rd.follow(robot, starts[1], path, "tip", points=51).q, atol=1e-9)


@pytest.mark.native
def test_a_path_of_ones_own_task():
    robot = cj.load("planar_nr")
    own = rd.MapTask(lambda robot, q: cj.pose(robot, q, "tip")[..., :2, 3], 2, "xy")
    q = np.array([0.2, 0.8, 0.9])
    p = cj.pose(robot, q, "tip")[:2, 3]
    line = lambda t: (p + np.multiply.outer(t, [0.1, -0.05]), np.broadcast_to([0.1, -0.05], (*np.shape(t), 2)))
    track = rd.follow(robot, q, line, own, duration=2.0)
    same = rd.follow(robot, q, lambda t: _pose_line(robot, q, t), rd.Task("tip", (3, 4), "world"), duration=2.0)
    np.testing.assert_allclose(track.q, same.q, atol=1e-9)
    other = rd.MapTask(lambda robot, q: 2.0 * cj.pose(robot, q, "tip")[..., :2, 3], 2, "xy")  # of the same name
    twice = lambda t: tuple(2 * x for x in line(t))
    np.testing.assert_allclose(rd.follow(robot, q, twice, other, duration=2.0).q, track.q, atol=1e-9)
    with pytest.raises(CoadjointError, match="duration is None"):
        rd.follow(robot, q, line, own)


def _pose_line(robot, q, t):
    T = np.broadcast_to(cj.pose(robot, q, "tip"), (*np.shape(t), 4, 4)).copy()
    T[..., :2, 3] += np.multiply.outer(t, [0.1, -0.05])
    v = np.broadcast_to(T[..., :3, :3].swapaxes(-1, -2) @ np.array([0.1, -0.05, 0.0]), (*np.shape(t), 3))
    return T, np.concatenate([np.zeros_like(v), v], -1)


@pytest.mark.native
def test_singularities_are_reported_and_damped_at_a_price():
    """A straight line out of reach: an error that says when; damped, the arm stays behind by what `error` tells."""
    robot = cj.load("planar_nr")
    q = np.array([0.0, 0.6, -0.9])
    T = cj.pose(robot, q, "tip")
    far = T.copy()
    far[:3, 3] = T[:3, 3] * 1.3
    path = cj.geodesic_path(T, far, 5.0)
    with pytest.raises(rd.SingularTaskError, match=r"is singular where the path is met at t = .* of 5 s"):
        rd.follow(robot, q, path, "tip", (3, 4))
    damped = rd.follow(robot, q, path, "tip", (3, 4), damping=0.05)
    reach = np.linalg.norm(cj.pose(robot, np.zeros(3), "tip")[:3, 3])
    assert damped.error[-1] == pytest.approx(np.linalg.norm(far[:3, 3]) - reach, rel=0.05)
    assert "damped by 0.05, at the price" in str(damped)
    bent = [0.0, 0.01, -0.006]
    near = rd.follow(robot, bent, cj.geodesic_path(*_shift(robot, bent), 2.0), "tip", (3, 4))
    assert near.near_singular
    assert "near a singularity" in str(near)
    with pytest.raises(rd.TrackingError, match=r"starts 0.*away"):
        rd.follow(robot, q + 0.1, path, "tip", (3, 4))
    with pytest.raises(CoadjointError, match="damping is -1"):
        rd.follow(robot, q, path, "tip", (3, 4), damping=-1)


def _shift(robot, q):
    T = cj.pose(robot, np.array(q), "tip")
    goal = T.copy()
    goal[:3, 3] *= 0.9
    return T, goal


# --- self-motion


@pytest.mark.native
def test_self_motion_leaves_the_task():
    robot, q, _ = panda_circle()
    T = cj.pose(robot, q, "tip")
    found = rd.self_motion(robot, q, lambda x: np.ones(7), np.linspace(0, 2, 5), "tip")
    assert np.max(np.abs(cj.pose(robot, found, "tip") - T)) < 1e-12
    assert np.max(np.abs(found[-1] - q)) > 0.02
    curve = rd.fibre(robot, q, "tip")
    assert np.max(np.abs(cj.pose(robot, curve, "tip") - T)) < 1e-12
    turns = (curve[-1] - curve[0]) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-12)  # it closes
    with pytest.raises(CoadjointError, match="nothing is left to move"):
        rd.self_motion(cj.load("puma560"), np.zeros(6), np.ones(6), 1.0, "tip")
    with pytest.raises(CoadjointError, match="needs 4"):
        rd.fibre(robot, q, "tip", (3, 4, 5))


@pytest.mark.slow
@pytest.mark.native
def test_the_best_on_a_fibre():
    """Manipulability at the optimum is the largest nearby on the fibre, walked along by itself."""
    robot, q, _ = panda_circle()

    def skill(robot, q):
        return rd.manipulability(robot, q, "tip")

    found = rd.optimize_self_motion(robot, q, skill, "tip", maximize=True)
    assert found.converged
    assert found.value > found.start
    assert np.max(np.abs(cj.pose(robot, found.q, "tip") - cj.pose(robot, q, "tip"))) < 1e-12
    values = skill(robot, rd.fibre(robot, found.q, "tip", step=0.01)[:40])
    assert np.all(np.diff(values) < 1e-12)
    lowest = rd.optimize_self_motion(robot, q, lambda robot, q: q[..., 3] ** 2, rd.Task("tip", (3, 4, 5)), iterations=400)
    assert lowest.value <= lowest.start + 1e-12


# --- figures and the command


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_the_command_tells_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["redundancy", "planar_nr", "--loops", "2", "--plot", "arm.svg"]) == 0
    said = capsys.readouterr().out
    assert "2 rows of 3 freedoms, 1 to spare" in said
    assert "not repeatable" in said
    assert "drew arm.svg" in said
    assert (tmp_path / "arm.svg").stat().st_size > 20_000
    assert main(["redundancy", "planar2r"]) == 1
    assert "is not redundant" in capsys.readouterr().err
    assert main(["redundancy", "planar_nr", "--rows", "3"]) == 1
    assert "choose two or three of the rows" in capsys.readouterr().err
    assert main(["redundancy", "planar_nr", "--frame", "hand"]) == 1
    assert main(["redundancy", "planar_nr", "--plot", "arm.txt"]) == 1
    assert "figures end in" in capsys.readouterr().err


@pytest.mark.native
def test_what_is_drawn_is_true():
    from coadjoint.show.redundancy import redundancy, suggest

    robot = cj.load("planar_nr")
    shown = redundancy(robot, loops=2)
    assert shown.task == rd.Task("tip", (3, 4))
    np.testing.assert_allclose(shown.split.sum(0), 1, rtol=1e-12)
    M = cj.mass_matrix(robot, shown.start)
    after = robot.difference(shown.start, shown.tracks[0][1].q[-1])
    assert shown.drifts[0, 2] == pytest.approx(np.sqrt(after @ M @ after), rel=1e-12)
    assert suggest(cj.load("panda")) == rd.Task("tip")
    assert suggest(cj.load("puma560")) == rd.Task("tip", (3, 4, 5))
    assert suggest(cj.load("scara")).size < 4
    with pytest.raises(CoadjointError, match="loops is 0"):
        redundancy(robot, loops=0)
    at = lambda *p: np.block([[np.eye(3), np.array([p]).T], [0, 0, 0, 1]])
    links = [cj.Link.solid("a", "base", cj.Joint.revolute(name="a"), mass=1.0, inertia=np.eye(3))]
    links += [
        cj.Link.solid(x, y, cj.Joint.revolute((0, 1, 0), name=x), at(0.5, 0, 0), mass=1.0, inertia=np.eye(3))
        for x, y in ("ba", "cb")
    ]
    with pytest.raises(CoadjointError, match="is not redundant"):  # two coordinates along body axes are no task in space
        suggest(cj.Robot("spatial", links).with_frame("tip", "c", at(0.5, 0, 0)))


def test_a_position_is_no_riemannian_submersion_where_turning_changes_its_inertia():
    """A floating body's point beside its centre of mass: Λ is constant in the body's axes, but not in space, and turning is vertical."""
    link = cj.Link.solid("b", "base", cj.Joint.free(), mass=1.0, com=(0.3, 0.1, 0), inertia=np.diag([1.0, 1.2, 1.5]))
    report = rd.submersion(cj.Robot("body", [link], gravity=(0, 0, 0)), "b", (3, 4, 5), configurations=4)
    assert report.from_metric < 1e-12
    assert report.along_fibres > 0.01
    assert not report.riemannian
    assert "which turn along fibres" in str(report)
    centred = cj.Link.solid("b", "base", cj.Joint.free(), mass=2.0, inertia=np.diag([1.0, 1.2, 1.5]))
    assert rd.submersion(cj.Robot("body", [centred], gravity=(0, 0, 0)), "b", (3, 4, 5), configurations=4).riemannian


@pytest.mark.parametrize(
    ("rows", "reference"), [((3,), "body"), ((3, 4), "body"), ((2,), "world"), ((0, 1, 3, 4, 5), "body"), ((3, 4, 5), "space")]
)
def test_rows_without_fibres_are_refused(rows, reference):
    """Single rows of a body twist are no rates of coordinates: no configurations do the same, and nothing can stay."""
    robot, q = cj.load("panda"), np.array([0.3, -0.4, 0.2, -2.0, 0.3, 1.7, 0.5])
    task = rd.Task("tip", rows, reference)
    T = cj.pose(robot, q, "tip")
    for call in (
        lambda: rd.self_motion(robot, q, np.ones(7), 1.0, task),
        lambda: rd.optimize_self_motion(robot, q, lambda robot, q: q[..., 0] ** 2, task),
        lambda: rd.follow(robot, q, cj.circle_path(T, T[:3, 3] + [0.1, 0, 0], [0, 0, 1]), task),
    ):
        with pytest.raises(CoadjointError, match="are no rates of coordinates"):
            call()


def test_rows_with_fibres_are_not_refused():
    """In space single coordinates are; along body axes those of robots that do not turn the others into them."""
    from coadjoint.redundancy.task import check_fibres

    panda, scara, planar = cj.load("panda"), cj.load("scara"), cj.load("planar_nr")
    for rows in ((3,), (4, 5), (0, 1, 2), (0, 1, 2, 5)):
        check_fibres(panda, rd.Task("tip", rows, "world"))
    for robot, rows in (
        (panda, (3, 4, 5)),
        (panda, (0, 1, 2)),
        (planar, (3, 4)),
        (planar, (2, 3, 4)),
        (planar, (2,)),
        (scara, (5,)),
    ):
        check_fibres(robot, rd.Task("tip", rows))
    q = scara.random(0)
    height = cj.pose(scara, q, "tip")[2, 3]
    assert cj.pose(scara, rd.self_motion(scara, q, np.ones(4), 0.5, "tip", (5,)), "tip")[2, 3] == pytest.approx(height, abs=1e-12)
    with pytest.raises(CoadjointError, match="are no rates of coordinates"):
        check_fibres(planar, rd.Task("tip", (3,)))


@pytest.mark.native
def test_rates_that_are_not_the_paths_own_are_reported():
    """A path with the twist of space for that of the body, or none: brought onto its poses it would look followed, and not be a lift."""
    robot, q = cj.load("planar_nr"), np.array([0.2, 0.8, 0.9])
    T = cj.pose(robot, q, "tip")
    path = cj.circle_path(T, T[:3, 3] - [0.1, 0.1, 0], [0, 0, 1], duration=2.0, turn=True)
    for wrong in (lambda T, X: 0.0 * X, lambda T, X: cj.lie.se3.Ad_act(T, X)):
        with pytest.raises(rd.TrackingError, match=r"rate is not d\(target\)/dt"):
            rd.follow(robot, q, lambda t, wrong=wrong: (path(t)[0], wrong(*path(t))), "tip", (3, 4), duration=2.0)


@pytest.mark.native
def test_limits_that_are_left_are_reported():
    robot, q = cj.load("planar_nr").with_joint("joint2", upper=0.85), np.array([0.2, 0.8, 0.9])
    T = cj.pose(robot, q, "tip")
    track = rd.follow(robot, q, cj.circle_path(T, T[:3, 3] - [0.3, 0.3, 0], [0, 0, 1], duration=2.0), "tip", (3, 4))
    assert track.beyond_limits == ["joint2"]
    assert "beyond the limits of joint2" in str(track)


def test_bad_input_is_named():
    robot, q = cj.load("planar_nr"), np.array([0.2, 0.8, 0.9])
    T = cj.pose(robot, q, "tip")
    path, square = cj.circle_path(T, T[:3, 3] - [0.1, 0, 0], [0, 0, 1]), lambda robot, q: q[..., 0] ** 2
    at = ("tip", (3, 4))
    for call, message in (
        (lambda: rd.fibre(robot, [q, q], *at), r"q has shape \(2, 3\); expected one configuration \(3,\)"),
        (lambda: rd.fibre(robot, q * np.nan, *at), "not finite"),
        (lambda: rd.fibre(robot, q, *at, step=0.0), "step is 0.0"),
        (lambda: rd.optimize_self_motion(robot, [q, q], square, *at), "expected one configuration"),
        (lambda: rd.optimize_self_motion(robot, q, lambda robot, q: q, *at), "function gives an array"),
        (lambda: rd.self_motion(robot, q, np.ones(2), 1.0, *at), r"velocity has shape \(2,\)"),
        (lambda: rd.follow(robot, q, path, *at, points=1), "points is 1"),
        (lambda: rd.weighted_inverse(robot, q, rd.Task(*at), weight=-np.eye(3)), "not symmetric positive definite"),
        (lambda: rd.lift_function(robot, q, [1.0, 2.0, 3.0], *at), r"eta has shape \(3,\); expected \(..., 2\)"),
        (lambda: rd.task_torque(robot, q, q, [1.0, 2.0, 3.0], *at), "acceleration has shape"),
        (lambda: rd.prioritized_torque(robot, q, q, [rd.Task(*at)], [[1.0]]), "acceleration has shape"),
        (lambda: cj.circle_path(T, "here", [0, 0, 1]), "center is 'here'"),
        (lambda: cj.circle_path(T, [0, 0, 0], [0, 0, 1], angle=np.inf), "angle is inf"),
    ):
        with pytest.raises(CoadjointError, match=message):
            call()
    stretched = rd.ellipsoid(robot, np.zeros(3), *at, "force")
    assert stretched.lengths[0] == np.inf
    assert np.isfinite(stretched.lengths[1])
