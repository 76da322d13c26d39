"""Optimal motions that keep clear of spheres and capsules: at every time, and no farther than they must."""

import re

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError
from coadjoint.optimal.capsules import around, bodies_of, link_capsules
from coadjoint.optimal.certificate import proved
from coadjoint.optimal.clearance import Clearances
from coadjoint.optimal.segments import closest
from coadjoint.optimal.splines import Spline
from laws import derivatives_of, rate
from models import urdf_files

ARM = cj.load("planar3r").with_gravity((0, 0, 0))
START, GOAL = np.array([-0.9, 0.3, 0.3]), np.array([0.9, 0.3, 0.3])
IN_THE_WAY = cj.Sphere((2.2, 0.3, 0.0), 0.3)


def apart(robot, motion, obstacles, **options):
    """The least distance at 20,001 times, computed anew."""
    rows = Clearances(robot, bodies_of(robot, obstacles, options.get("bodies"), options.get("self_collision", False)), 0.0)
    return rows.gaps(motion(np.linspace(0.0, motion.duration, 20001))[0]).value.min()


def test_the_nearest_points_of_segments_are_the_nearest():
    """Also of points and of parallel segments; the conditions of first order decide, and places along both."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300, 2, 3))
    b[:40, 1], a[20:60, 1] = b[:40, 0], a[20:60, 0]
    b[60:80, 1] = b[60:80, 0] + (a[60:80, 1] - a[60:80, 0]) * rng.normal(size=(20, 1))
    near = closest(a, b)
    s = np.linspace(0, 1, 101)[:, None]
    first, second = (x[:, None, 0] + s * (x[:, 1] - x[:, 0])[:, None] for x in (a, b))
    places = np.linalg.norm(first[:, :, None] - second[:, None], axis=-1).min((1, 2))
    assert (near.distance <= places + 1e-12).all()
    gap = a[:, 0] + near.s[:, None] * near.along - b[:, 0] - near.t[:, None] * near.beside
    np.testing.assert_allclose(gap, near.distance[:, None] * near.normal, atol=1e-12)
    for x, along, sign in ((near.s, near.along, 1.0), (near.t, near.beside, -1.0)):
        slope = sign * (along * near.normal).sum(1)
        np.testing.assert_allclose(np.clip(x - slope, 0, 1), x, atol=1e-9)


def test_distances_have_exact_derivatives():
    robot, rng = cj.load("panda"), np.random.default_rng(1)
    obstacles = [cj.Sphere((0.4, 0.1, 0.5), 0.1), cj.Capsule((0.5, -0.5, 0.4), (0.4, 0.5, 0.5), 0.05)]
    rows = Clearances(robot, bodies_of(robot, obstacles, None, True), 0.0)
    q = np.asarray(robot.random(rng, (6,)))
    dq, w = rng.normal(size=q.shape), rng.normal(size=(6, len(rows.names)))
    here = rows.gaps(q)
    np.testing.assert_allclose(
        np.einsum("kpi,ki->kp", here.gradient, dq), rate(lambda h: rows.gaps(q + h * dq).value, 1e-4), atol=1e-6
    )
    turned = rate(lambda h: np.einsum("kp,kpi->ki", w, rows.gaps(q + h * dq).gradient), 1e-4)
    H = here.curvature(w, np.zeros_like(w))
    np.testing.assert_allclose(np.einsum("kij,kj->ki", H, dq), turned, atol=1e-4 * np.abs(turned).max())
    outer = here.curvature(np.zeros_like(w), np.ones_like(w))
    np.testing.assert_allclose(outer, np.einsum("kpi,kpj->kij", here.gradient, here.gradient), atol=1e-9)


@pytest.mark.native
@pytest.mark.parametrize("cost", ["effort", "time", "acceleration"])
def test_the_motion_keeps_clear_at_all_times(cost):
    options = {"velocity": 4.0, "effort": 60.0, "spans": 8} if cost == "time" else {"duration": 1.0}
    free = cj.optimal_motion(ARM, START, GOAL, cost=cost, **options)
    ball = cj.Sphere(cj.pose(ARM, free(0.5 * free.duration)[0], "tip")[:3, 3], 0.1)
    motion = cj.optimal_motion(ARM, START, GOAL, cost=cost, obstacles=ball, **options)
    assert motion.converged, motion.message
    assert motion.error < 1e-8
    assert apart(ARM, free, ball) < -0.1
    least = apart(ARM, motion, ball)
    assert -1e-9 <= least < 2e-3  # it touches: the obstacle is in the way
    np.testing.assert_allclose(motion.clearance, least, atol=1e-5)
    assert motion.cost > free.cost
    assert motion.multipliers["clearance"].min() < 0


@pytest.mark.native
def test_what_is_not_in_the_way_changes_nothing():
    free = cj.optimal_motion(ARM, START, GOAL, 1.0)
    motion = cj.optimal_motion(ARM, START, GOAL, 1.0, obstacles=[cj.Sphere((0.0, -4.0, 0.0), 0.5)])
    np.testing.assert_allclose(motion.cost, free.cost, rtol=1e-8)
    np.testing.assert_allclose(motion.q, free.q, atol=1e-5)
    assert np.isinf(free.clearance)
    assert motion.clearance > 0.4


@pytest.mark.native
def test_the_mirror_image_of_a_problem_has_the_mirror_image_as_its_motion():
    wall = cj.Capsule((1.6, 0.9, 0.0), (2.6, 0.7, 0.0), 0.1)
    mirrored = cj.Capsule((1.6, -0.9, 0.0), (2.6, -0.7, 0.0), 0.1)
    motion = cj.optimal_motion(ARM, START, GOAL, 1.0, obstacles=wall, clearance=0.01)
    other = cj.optimal_motion(ARM, -START, -GOAL, 1.0, obstacles=mirrored, clearance=0.01, guess=-motion.q)
    assert motion.converged, motion.message
    assert other.converged, other.message
    assert motion.clearance >= 0.01
    np.testing.assert_allclose(other.cost, motion.cost, rtol=1e-3)
    np.testing.assert_allclose(other.q, -motion.q, atol=1e-2)


@pytest.mark.native
def test_a_sphere_is_a_capsule_without_length_and_a_larger_one_costs_more():
    options = {"cost": "acceleration", "spans": 12}
    motion = cj.optimal_motion(ARM, START, GOAL, 1.0, obstacles=IN_THE_WAY, **options)
    same = cj.Capsule(IN_THE_WAY.start, IN_THE_WAY.end, 0.2)
    thicker = cj.optimal_motion(ARM, START, GOAL, 1.0, obstacles=same, clearance=0.1, guess=motion, **options)
    np.testing.assert_allclose(thicker.cost, motion.cost, rtol=1e-4)  # 0.2 and 0.1 m are 0.3 m
    assert thicker.clearance == pytest.approx(0.1, abs=2e-3)
    larger = cj.optimal_motion(ARM, START, GOAL, 1.0, obstacles=cj.Sphere(IN_THE_WAY.start, 0.35), guess=motion, **options)
    assert larger.cost > motion.cost * 1.001


@pytest.mark.native
def test_where_there_is_no_way_the_motion_says_so():
    """The first link cannot pass what stands in its circle."""
    post, guess = cj.Sphere((0.9, 0.0, 0.0), 0.05), np.linspace(START, GOAL, 9)
    motion = cj.optimal_motion(ARM, START, GOAL, 1.0, obstacles=post, spans=6, iterations=20, guess=guess)
    assert not motion.converged
    assert re.search(r"link\d and obstacles\[0\] come as near as -", motion.message)  # which link: where the iterations end
    assert "perhaps there is no way around" in motion.message


@pytest.mark.native
@pytest.mark.slow
def test_random_reaches_of_the_panda_go_around_what_is_in_their_way():
    robot, rng = cj.load("panda"), np.random.default_rng(4)
    found = []
    while len(found) < 3:
        start, goal = (robot.lower + (robot.upper - robot.lower) * rng.uniform(0.2, 0.8, 7) for _ in range(2))
        balls = [cj.Sphere(cj.pose(robot, start + x * (goal - start), "tip")[:3, 3], 0.1) for x in (0.35, 0.6)]
        rows = Clearances(robot, bodies_of(robot, balls, None, False), 0.0)
        rests = (np.abs(cj.gravity_force(robot, [start, goal])) < 0.9 * robot.effort_limit).all()
        if rests and rows.gaps(np.array([start, goal])).value.min() > 0.02:
            found.append(cj.optimal_motion(robot, start, goal, obstacles=balls, spans=12))
            assert found[-1].converged, found[-1].message
            assert apart(robot, found[-1], balls) >= -1e-9


@pytest.mark.native
def test_links_keep_apart_from_each_other():
    start, goal = [0.2, 2.3, 2.4], [0.2, -2.3, -2.4]
    straight = cj.optimal_motion(ARM, start, goal, 1.0, guess=np.linspace(start, goal, 9), limits=False)
    motion = cj.optimal_motion(ARM, [0.2, 2.3, 1.2], [0.2, 0.5, 2.6], 1.0, self_collision=True, limits=False)
    assert motion.converged, motion.message
    assert apart(ARM, motion, (), self_collision=True) >= -1e-9
    assert np.isinf(straight.clearance)


@pytest.mark.slow
@pytest.mark.native
def test_the_proof_is_one():
    """It never says that pairs keep apart where a finer look finds them nearer, and its bound of accelerations holds."""
    robot, rng = cj.load("panda"), np.random.default_rng(3)
    for spline in (Spline(4), Spline(6, 4, 3, smooth=1)):
        for _ in range(3):
            c = np.cumsum(0.15 * rng.normal(size=(spline.size, robot.nv)), axis=0) + np.array([0, 0, 0, -1.5, 0, 1.5, 0])
            s = np.linspace(0, 1, 4001)
            q = spline.curve(c, 1.0, s)[0]
            ball = cj.Sphere(np.asarray(cj.pose(robot, q[2000], "tip"))[:3, 3] + rng.normal(size=3) * 0.1, 0.02)
            rows = Clearances(robot, bodies_of(robot, ball, None, False), 0.0)
            least = rows.gaps(q).value.min()
            rows.lower[:] = least + 1e-5
            assert not proved(rows, spline, c, 1.0).holds
            rows.lower[:] = least - 1e-3
            found = proved(rows, spline, c, 1.0)
            assert found.holds
            assert found.distance > least - 1e-3


def test_capsules_enclose_shapes():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 3)) * [0.1, 0.5, 0.2] + [1.0, 2.0, 3.0]
    ends, radius = around(points)
    inside = closest(np.stack([points, points], axis=1), np.broadcast_to(ends, (200, 2, 3))).distance
    assert inside.max() <= radius * (1 + 1e-9)
    pose = cj.lie.se3.exp([0.3, -0.5, 0.2, 0.1, 0.2, 0.3])
    for kind, size in (
        ("box", (0.2, 0.6, 0.3)),
        ("cylinder", (0.1, 0.5)),
        ("ellipsoid", (0.1, 0.4, 0.2)),
        ("capsule", (0.1, 0.4)),
        ("sphere", (0.2,)),
    ):
        robot = cj.Robot(
            "one",
            [cj.Link.solid("arm", "base", cj.Joint.revolute([0, 0, 1]), mass=1.0)],
            shapes=[cj.Shape("arm", kind, pose, size)],
        )
        ((_, ends, radius, _),) = link_capsules(robot)
        corners = np.concatenate([part.vertices for part in robot.visuals[0].triangles()])
        off = closest(np.stack([corners, corners], axis=1), np.broadcast_to(ends, (len(corners), 2, 3))).distance
        assert off.max() <= radius * (1 + 1e-6)
        assert radius <= 1.5 * np.sort(size)[-2:].max()


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.parametrize("name", [x for x in urdf_files() if x.endswith("ur5_robot.urdf")])
def test_robots_from_elsewhere_go_around_obstacles(name):
    robot = cj.load(urdf_files()[name])
    bodies = [
        cj.Capsule((0, 0, 0), tuple(p), 0.05, frame=link)
        for link, p in (("upper_arm_link", (0, 0, 0.4)), ("forearm_link", (0, 0, 0.4)), ("wrist_3_link", (0, 0.1, 0)))
    ]
    start, goal = np.array([-0.8, -1.2, 1.4, -0.5, 0.3, 0.0]), np.array([0.8, -1.2, 1.4, -0.5, 0.3, 0.0])
    through = np.asarray(cj.pose(robot, 0.5 * (start + goal), "wrist_3_link"))[:3, 3]
    post = cj.Capsule((*through[:2], 0.0), through, 0.05)
    motion = cj.optimal_motion(robot, start, goal, obstacles=[post], bodies=bodies)
    assert motion.converged, motion.message
    assert apart(robot, motion, [post], bodies=bodies) >= -1e-9


def test_wrong_obstacles_are_named():
    move = lambda **options: cj.optimal_motion(ARM, START, GOAL, 1.0, **options)
    for call, words in [
        (lambda: move(obstacles=3), "obstacles is 3; expected a list"),
        (lambda: move(obstacles=[(0, 0, 0, 1)]), r"obstacles\[0\] is"),
        (lambda: move(obstacles=[cj.Sphere((0, 3, 0), 0.1, frame="link2")]), r"obstacles\[0\] is on 'link2', which moves"),
        (lambda: move(obstacles=[cj.Sphere((0, 3, 0), 0.1, frame="hand")]), "hand"),
        (lambda: move(bodies=[]), "bodies goes with obstacles"),
        (lambda: move(obstacles=IN_THE_WAY, bodies=[]), "nothing that moves"),
        (lambda: move(obstacles=IN_THE_WAY, clearance=-1.0), "clearance is -1.0"),
        (lambda: move(obstacles=cj.Sphere((1.0, -1.0, 0.0), 0.4)), "the start is not clear: the distance of link2 and obstacles.0. is -"),
        (lambda: cj.Sphere((0, 0), 0.1), "expected a point"),
        (lambda: cj.Sphere((0, 0, 0), -0.1), "the radius of a sphere or capsule is -0.1"),
    ]:  # fmt: skip
        with pytest.raises(CoadjointError, match=words):
            call()


@pytest.mark.native
def test_derivatives_of_an_optimum_between_obstacles_are_those_of_problems_solved_again():
    """By masses; lengths would move the bodies, and are refused."""
    options = {"obstacles": IN_THE_WAY, "spans": 8, "cost": {"effort": 0.1, "acceleration": 1.0}, "tolerance": 1e-11}
    motion = cj.optimal_motion(ARM, START, GOAL, 1.0, **options)
    assert motion.converged, motion.message
    found, h = derivatives_of(motion, "masses"), 1e-4
    costs = []
    for sign in (1, -1):
        heavier = ARM.with_parameters("masses", ARM.parameters("masses") + sign * h * np.eye(3)[1])
        other = cj.optimal_motion(heavier, START, GOAL, 1.0, guess=motion, **options)
        assert other.converged, other.message
        costs.append(other.cost)
    np.testing.assert_allclose((costs[0] - costs[1]) / (2 * h), found.cost[1], rtol=1e-5)
    with pytest.raises(CoadjointError, match="'lengths' moves the robot's bodies"):
        motion.sensitivity("lengths")


@pytest.mark.native
def test_ctrl_c_while_a_way_is_sought_or_clearance_proved_returns_what_is_there(monkeypatch):
    chain = cj.load("planar3r").with_gravity((0, 0, 0))
    given = {"obstacles": cj.Sphere((2.2, 0.3, 0.0), 0.3), "clearance": 0.01, "spans": 8}
    ends = ([-0.9, 0.3, 0.3], [0.9, 0.3, 0.3], 1.0)

    def stop(*_):
        raise KeyboardInterrupt

    def stop_the_search_for_a_way(k, error):
        assert (k, error) == (0, np.inf)
        stop()

    motion = cj.optimal_motion(chain, *ends, **given, report=stop_the_search_for_a_way)
    assert not motion.converged
    assert motion.message.startswith("interrupted before the search began; link3 and obstacles[0] come as near as")
    np.testing.assert_allclose(motion.q[[0, -1]], ends[:2], atol=1e-12)
    rough = lambda k, error: stop() if error < 1e-4 else None
    motion = cj.optimal_motion(chain, *ends, **given, report=rough)
    assert motion.error > 1e-8
    assert not motion.converged
    assert motion.message.startswith("interrupted: this is the best so far")
    monkeypatch.setattr("coadjoint.optimal.certificate._bounds", stop)
    motion = cj.optimal_motion(chain, *ends, **given)
    assert not motion.converged
    assert motion.error < 1e-8
    assert motion.message.startswith("interrupted before clearance was proved: at the nodes link")
