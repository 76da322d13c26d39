"""What is wrong is said before any work is done: what, its value, what is expected, what to do."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import Frame, Joint, Link, Mimic, Robot
from coadjoint.errors import CoadjointError, ModelError, ReadError, ShapeError, SingularMassMatrixError, UnknownNameError
from coadjoint.robot import storage
from coadjoint.words import in_a_shell

NAN = float("nan")
Z6, Z7 = np.zeros(6), np.zeros(7)


@pytest.fixture(scope="module")
def panda():
    return cj.load("panda")


def robot(*links, **options):
    return Robot("r", links, **options)


def revolute(name, parent="base", **options):
    return Link(name, parent, Joint.revolute(name=f"{name}_joint", **options))


def raises(kind, message, fn):
    """The error is of that kind, is a CoadjointError and a ValueError, and says exactly this."""
    with pytest.raises(kind) as caught:
        fn()
    assert isinstance(caught.value, CoadjointError)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == message


# --- arrays

ARRAYS = {
    "q has shape (6,); expected (..., 7) for robot 'panda' (nq = 7).": lambda p: cj.pose(p, Z6, "tip"),
    "q has shape (); expected (..., 7) for robot 'panda' (nq = 7).": lambda p: cj.gravity_force(p, 1.0),
    "v has shape (2, 6); expected (..., 7) for robot 'panda' (nv = 7).": lambda p: cj.bias_force(p, Z7, np.zeros((2, 6))),
    "a has shape (6,); expected (..., 7) for robot 'panda' (nv = 7).": lambda p: cj.inverse_dynamics(p, Z7, Z7, Z6),
    "tau has shape (8,); expected (..., 7) for robot 'panda' (nv = 7).": lambda p: cj.forward_dynamics(p, Z7, Z7, np.zeros(8)),
    "wrenches has shape (6, 6); expected (..., 7, 6) for robot 'panda' (n_links = 7).": lambda p: cj.inverse_dynamics(
        p, Z7, Z7, Z7, np.zeros((6, 6))
    ),
    "batch axes do not broadcast: q (2,), v (3,), a (). Leading axes must be equal or 1.": lambda p: cj.inverse_dynamics(
        p, np.zeros((2, 7)), np.zeros((3, 7)), Z7
    ),
    "batch axes do not broadcast: q (2,), dv (3,). Leading axes must be equal or 1.": lambda p: p.integrate(
        np.zeros((2, 7)), np.zeros((3, 7))
    ),
    "batch axes do not broadcast: q0 (2,), q1 (3,). Leading axes must be equal or 1.": lambda p: p.difference(
        np.zeros((2, 7)), np.zeros((3, 7))
    ),
    "q is 'abc'; expected real numbers.": lambda p: cj.pose(p, "abc", "tip"),
    "q is [[1, 2], [3]]; expected real numbers.": lambda p: cj.pose(p, [[1, 2], [3]], "tip"),
    "q is ['0', '0']; expected real numbers.": lambda p: cj.gravity_force(p, ["0", "0"]),
    "q is None; expected real numbers.": lambda p: cj.gravity_force(p, None),
    "dv has shape (3,); expected (..., 7).": lambda p: p.integrate(Z7, np.zeros(3)),
    "dv is 'abc'; expected real numbers.": lambda p: p.integrate(Z7, "abc"),
    "q is array([0.+1.j, 0.+1.j]); expected real numbers.": lambda p: cj.load("planar2r").rate(1j * np.ones(2), Z7),
    "batch axes do not broadcast: q (2,), v (3,). Leading axes must be equal or 1.": lambda p: p.rate(
        np.zeros((2, 7)), np.zeros((3, 7))
    ),
    "xi is 'abc'; expected real numbers.": lambda p: cj.lie.se3.exp("abc"),
    "w is [[1], [2, 3]]; expected real numbers.": lambda p: cj.lie.so3.exp([[1], [2, 3]]),
    "screws is 'abc'; expected real numbers.": lambda p: cj.product_of_exponentials("abc", np.eye(4), Z7),
    "q1 has shape (); expected (..., 7).": lambda p: p.difference(Z7, 1.0),
    "parameters has shape (3,); expected (70,), ten per link.": lambda p: p.with_inertial_parameters(np.zeros(3)),
}


@pytest.mark.parametrize("message", ARRAYS)
def test_wrong_shapes(message, panda):
    raises(ShapeError, message, lambda: ARRAYS[message](panda))


def test_complex_numbers_are_not_cut_down(panda):
    with pytest.raises(ShapeError, match=r"^q is array.*; expected real numbers\.$"):
        cj.pose(panda, Z7 + 1j, "tip")


def test_arrays_of_other_classes(panda):
    """A matrix is an array like any other, and what is masked is not a number."""
    q = np.linspace(0, 1, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        found = cj.gravity_force(panda, np.matrix(q))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, cj.gravity_force(panda, q[None]))
    objects = cj.gravity_force(panda, q.astype(object))  # as a table of mixed columns gives them
    assert objects.dtype == np.float64
    np.testing.assert_array_equal(objects, found[0])
    rows = np.ma.masked_array([q, q], mask=[[False] * 7, [False] * 6 + [True]])
    found = cj.gravity_force(panda, rows)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found[0], cj.gravity_force(panda, q))
    assert np.isnan(found[1]).any()


def test_the_first_argument_is_a_robot():
    message = "the first argument is ndarray; expected a Robot, as from coadjoint.load('panda')."
    raises(CoadjointError, message, lambda: cj.pose(Z7, Z7, "tip"))


def test_nan_in_gives_nan_out(panda):
    """A state that is not a number is no error in a batch, but its row is not a number, and no other row is touched."""
    q = np.zeros((3, 7))
    q[1, 2] = NAN
    tau = cj.inverse_dynamics(panda, q, Z7, Z7)
    assert np.isnan(tau[1]).any()
    np.testing.assert_allclose(tau[[0, 2]], cj.inverse_dynamics(panda, Z7, Z7, Z7)[None].repeat(2, 0), atol=1e-12)


# --- names


def test_unknown_names_are_suggested(panda):
    frames = "base, link1, link2, link3, link4, link5, link6, link7, flange, tip"
    joints = "joint1, joint2, joint3, joint4, joint5, joint6, joint7"
    for fn in (lambda: cj.pose(panda, Z7, "tipp"), lambda: cj.jacobian(panda, Z7, "tipp"), lambda: panda.frame("tipp")):
        raises(UnknownNameError, f"no frame is named 'tipp'. Did you mean 'tip'? Expected one of: {frames}.", fn)
    for name in (3, [1, 2], None):
        raises(UnknownNameError, f"no frame is named {name!r}. Expected one of: {frames}.", lambda name=name: panda.frame(name))
        raises(
            UnknownNameError, f"no frame is named {name!r}. Expected one of: {frames}.", lambda name=name: cj.pose(panda, Z7, name)
        )
        raises(UnknownNameError, f"no joint is named {name!r}. Expected one of: {joints}.", lambda name=name: panda.q_slice(name))
    for fn in (
        lambda: panda.q_slice("joint11"),
        lambda: panda.v_slice("joint11"),
        lambda: panda.lock({"joint11": 0.0}),
        lambda: panda.with_joint("joint11", armature=1.0),
    ):
        raises(UnknownNameError, f"no joint is named 'joint11'. Did you mean 'joint1'? Expected one of: {joints}.", fn)
    links = "link1, link2, link3, link4, link5, link6, link7, base"
    message = f"no link is named 'lnk1'. Did you mean 'link1'? Expected one of: {links}."
    raises(UnknownNameError, message, lambda: panda.with_inertia("lnk1", mass=1.0))
    assert isinstance(UnknownNameError("x"), KeyError)


def test_long_lists_of_names_are_cut():
    chain = cj.load("planar50r")
    with pytest.raises(UnknownNameError, match=r"link39, … \(52 in all\)\.$"):
        cj.pose(chain, np.zeros(50), "zzz")


# --- links and joints

LINKS = {
    "link 'a': mass is nan; every number must be finite.": {"mass": NAN},
    "link 'a': mass is -1 kg; a mass must not be negative.": {"mass": -1},
    "link 'a': mass is 'heavy'; expected numbers of shape ().": {"mass": "heavy"},
    "link 'a': centre of mass is [nan, 0.0, 0.0]; every number must be finite.": {"com": (NAN, 0, 0)},
    "link 'a': centre of mass is (0, 0); expected three numbers.": {"com": (0, 0)},
    "link 'a': centre of mass is 0.5; expected three numbers.": {"com": 0.5},
    "link 'a': inertia is (1, 1); expected numbers of shape (3,).": {"inertia": (1, 1)},
    "link 'a': inertia is [[1, 2], [3, 4]]; expected numbers of shape (3, 3).": {"inertia": [[1, 2], [3, 4]]},
    "link 'a': inertia is [[nan, 0.0, 0.0], [0.0, nan, 0.0], [0.0, 0.0, nan]]; every number must be finite.": {"inertia": NAN},
    "link 'a': the inertia [[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] is not symmetric.": {
        "inertia": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]
    },
    "link 'a': a principal moment of inertia is -1 kg m²; no body has a negative one. "
    "Give the inertia about the centre of mass, not about another point.": {"inertia": (-1, 1, 1)},
}


@pytest.mark.parametrize("message", LINKS)
def test_unphysical_bodies(message, panda):
    body = {"mass": 1.0} | LINKS[message]
    raises(ModelError, message, lambda: Link.solid("a", "base", Joint.fixed(), **body))
    raises(ModelError, message.replace("'a'", "'link1'"), lambda: panda.with_inertia("link1", **body))


def test_wrong_parameters_and_placements():
    for value, message in (
        (-1.0, "link 'a': mass is -1 kg; a mass must not be negative."),
        (NAN, f"link 'a': inertial parameters is {[NAN] * 10}; every number must be finite."),
    ):
        raises(ModelError, message, lambda value=value: Link("a", "base", Joint.fixed(), parameters=np.full(10, value)))
    for pose in (2 * np.eye(4), np.diag([1.0, 1.0, -1.0, 1.0])):
        message = f"link 'a': placement is {pose.tolist()}; expected a rotation, a position and the last row 0 0 0 1."
        raises(ModelError, message, lambda pose=pose: Link("a", "base", Joint.fixed(), pose))
    message = "link 'a': placement is array([1., 0., 0.]); expected numbers of shape (4, 4)."
    raises(ModelError, message, lambda: Link("a", "base", Joint.fixed(), np.eye(3)[0]))
    with pytest.raises(ModelError, match=r"frame 'f': pose is .*nan.*; every number must be finite\."):
        Frame("f", "base", np.full((4, 4), NAN))


JOINTS = {
    "axis is [0.0, 0.0, 0.0]; an axis must not be zero.": lambda: Joint.revolute((0, 0, 0)),
    "axis is [nan, 0.0, 0.0]; every number must be finite.": lambda: Joint.prismatic((NAN, 0, 0)),
    "axis is (1, 0); expected three numbers.": lambda: Joint.helical((1, 0), 0.1),
    "axis is 1; expected three numbers.": lambda: Joint.continuous(1),
    "second_axis is [0.0, 0.0, 0.0]; an axis must not be zero.": lambda: Joint.universal((1, 0, 0), (0, 0, 0)),
    "normal is [0.0, 0.0, 0.0]; an axis must not be zero.": lambda: Joint.planar((0, 0, 0)),
    "point is (1,); expected three numbers.": lambda: Joint.spherical((1,)),
    "point is [nan, 0.0, 0.0]; every number must be finite.": lambda: Joint.revolute(point=(NAN, 0, 0)),
    "joint 'j': armature is [-1.0]; it must not be negative.": lambda: Joint.revolute(name="j", armature=-1),
    "joint 'j': damping is [nan]; every number must be finite.": lambda: Joint.revolute(name="j", damping=NAN),
    "joint 'j': friction is (1, 2); expected numbers of shape (1,).": lambda: Joint.revolute(name="j", friction=(1, 2)),
    "joint 'j': lower is [nan]; use ±inf where there is no limit.": lambda: Joint.revolute(name="j", lower=NAN),
    "joint 'j': lower limit [1.0] is above upper limit [0.0].": lambda: Joint.revolute(name="j", lower=1, upper=0),
    "joint 'j' is spherical and cannot mimic 'k': only a joint with one screw can.": lambda: Joint.spherical(
        name="j", mimic=Mimic("k")
    ),
    "joint 'j' mimics nan · k + 0.0; numbers must be finite.": lambda: Joint.revolute(name="j", mimic=Mimic("k", NAN)),
}


@pytest.mark.parametrize("message", JOINTS)
def test_wrong_joints(message):
    raises(ModelError, message, JOINTS[message])


def test_unknown_kind_of_joint():
    kinds = "fixed, revolute, continuous, prismatic, helical, universal, spherical, planar, free"
    message = f"no kind of joint is named 'revolut'. Did you mean 'revolute'? Expected one of: {kinds}."
    raises(UnknownNameError, message, lambda: Joint("revolut", np.eye(6)[:1]))


E = np.eye(6)
SWAPPED = E[[0, 1, 2, 4, 3, 5]]
SCREWS = {
    "of a revolute joint |ω| must be 1.": ("revolute", 2 * E[:1]),
    "of a helical joint |ω| must be 1.": ("helical", E[3:4]),
    "of a continuous joint ω·v must be 0: it turns without advance.": ("continuous", E[:1] + E[3:4]),
    "of a universal joint |ω| must be 1.": ("universal", E[2:4]),
    "of a prismatic joint ω must be 0 and |v| 1.": ("prismatic", E[:1]),
    "of a spherical joint the axes must be three orthogonal unit vectors, right-handed: make it with `Joint.spherical`.": (
        "spherical",
        E[[1, 0, 2]],
    ),
    "of a spherical joint the axes must meet in one point, slides go along them: make it with `Joint.spherical`.": (
        "spherical",
        E[:3] + np.outer([1, 0, 0], E[3]),
    ),
    "of a planar joint the axes must be three orthogonal unit vectors, right-handed: make it with `Joint.planar`.": (
        "planar",
        E[:3],
    ),
    "of a planar joint the axes must meet in one point, slides go along them: make it with `Joint.planar`.": (
        "planar",
        E[[2, 3, 4]] + np.outer([1, 0, 0], E[5]),
    ),
    "of a free joint the axes must meet in one point, slides go along them: make it with `Joint.free`.": (
        "free",
        SWAPPED,
    ),
}


@pytest.mark.parametrize("message", SCREWS)
def test_screws_that_are_not_of_their_kind(message):
    """Each would give wrong motions without a word."""
    kind, screws = SCREWS[message]
    raises(ModelError, f"joint 'j': screws are {screws.tolist()}; {message}", lambda: Joint(kind, screws, name="j"))


# --- robots


def test_cycles():
    links = [revolute("a", "c"), revolute("b", "a"), revolute("c", "b"), revolute("d")]
    message = "the links of robot 'r' form a cycle: a → b → c → a. A robot is a tree that grows from its base."
    raises(ModelError, message, lambda: robot(*links))
    message = "the links of robot 'r' form a cycle: a → a. A robot is a tree that grows from its base."
    raises(ModelError, message, lambda: robot(revolute("b"), revolute("a", "a")))


def test_duplicate_and_empty_names(panda):
    twice = "robot 'r' has two links or frames named 'a'; names must differ."
    raises(ModelError, twice, lambda: robot(revolute("a"), Link("a", "base", Joint.fixed())))
    raises(ModelError, twice, lambda: robot(revolute("a"), frames=[Frame("a", "a", np.eye(4))]))
    raises(ModelError, twice.replace("'a'", "'base'"), lambda: robot(revolute("base")))
    message = "robot 'r' has two joints named 'x'; names must differ."
    raises(ModelError, message, lambda: robot(*(Link(n, "base", Joint.fixed(name="x")) for n in "ab")))
    message = "robot 'panda' has two links or frames named 'tip'; names must differ."
    raises(ModelError, message, lambda: panda.with_frame("tip", "link1", np.eye(4)))
    message = "one of the links or frames of robot 'r' is named ''; a name is text and not empty."
    raises(ModelError, message, lambda: robot(revolute("")))


def test_parts_that_are_nowhere(panda):
    message = "no link for the parent of 'a' is named 'bse'. Did you mean 'base'? Expected one of: a, base."
    raises(UnknownNameError, message, lambda: robot(revolute("a", "bse")))
    message = "no link for the frame 'f' is named 'b'. Expected one of: a, base."
    raises(UnknownNameError, message, lambda: robot(revolute("a"), frames=[Frame("f", "b", np.eye(4))]))
    with pytest.raises(UnknownNameError, match=r"no frame is named 'hand'\."):
        panda.with_frame("f", "hand", np.eye(4))
    raises(ModelError, "links[0] of robot 'r' is 'a'; expected a Link.", lambda: robot("a"))


@pytest.mark.parametrize("gravity", [(0, -9.81), (0, 0, NAN), "down", 9.81])
def test_bad_gravity(gravity, panda):
    message = f"gravity is {gravity!r}; expected three numbers, the acceleration of free fall in the space frame."
    raises(ModelError, message, lambda: panda.with_gravity(gravity))


def test_mimic_circles():
    a, b = revolute("a", mimic=Mimic("b_joint")), revolute("b", mimic=Mimic("a_joint"))
    raises(ModelError, "joints a_joint → b_joint → a_joint mimic each other in a circle.", lambda: robot(a, b))
    message = "joints a_joint → a_joint mimic each other in a circle."
    raises(ModelError, message, lambda: robot(revolute("a", mimic=Mimic("a_joint"))))
    message = "no joint for 'a_joint' to mimic is named 'c_joint'. Did you mean 'a_joint'? Expected one of: a_joint."
    raises(UnknownNameError, message, lambda: robot(revolute("a", mimic=Mimic("c_joint"))))
    ball = Link("ball", "base", Joint.spherical(name="ball_joint"))
    message = "joint 'a_joint' mimics 'ball_joint', a spherical joint; only a joint with one screw can be followed."
    raises(ModelError, message, lambda: robot(ball, revolute("a", mimic=Mimic("ball_joint"))))


def from_screws(**changes):
    parts = {"screws": [E[2], E[2]], "com_frames": [np.eye(4)] * 2, "masses": [1, 1], "inertias": [np.eye(3)] * 2}
    return Robot.from_screws(**(parts | changes))


FROM_SCREWS = {
    "screws[1] is [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]: a joint that turns needs |ω| = 1; divide by 2.": {"screws": [E[2], 2 * E[2]]},
    "screws[0] is [0.0, 0.0, 0.0, 3.0, 0.0, 0.0]: a prismatic joint (ω = 0) needs |v| = 1; divide by 3.": {
        "screws": [3 * E[3], E[2]]
    },
    "screws[1] is zero; a joint moves along or about something.": {"screws": [E[2], Z6]},
    "screws[0] is [0.0, 0.0, nan, 0.0, 0.0, 0.0]; every number must be finite.": {"screws": [[0, 0, NAN, 0, 0, 0], E[2]]},
    "screws has shape (2, 5); expected (2, 6) for 2 joints.": {"screws": np.zeros((2, 5))},
    "masses has shape (3,); expected (2,) for 2 joints.": {"masses": [1, 1, 1]},
    "com_frames has shape (1, 4, 4); expected (2, 4, 4) for 2 joints.": {"com_frames": [np.eye(4)]},
    "inertias has shape (2, 3); expected (2, 3, 3) for 2 joints.": {"inertias": np.ones((2, 3))},
    f"com_frames[0] is {(2 * np.eye(4)).tolist()}; expected a rotation, a position and the last row 0 0 0 1.": {
        "com_frames": [2 * np.eye(4), np.eye(4)]
    },
    "parents is [-1, 2]; expected 2 link numbers from -1 (the base) to 1.": {"parents": [-1, 2]},
    "parents is [-1]; expected 2 link numbers from -1 (the base) to 1.": {"parents": [-1]},
    "the links of robot 'robot' form a cycle: link1 → link2 → link1. A robot is a tree that grows from its base.": {
        "parents": [1, 0]
    },
    "link 1: mass is -1 kg; a mass must not be negative.": {"masses": [1, -1]},
    "link 0: a principal moment of inertia is -1 kg m²; no body has a negative one. "
    "Give the inertia about the centre of mass, not about another point.": {"inertias": [-np.eye(3), np.eye(3)]},
    f"tip is {np.zeros((4, 4)).tolist()}; expected a rotation, a position and the last row 0 0 0 1.": {"tip": np.zeros((4, 4))},
}


@pytest.mark.parametrize("message", FROM_SCREWS)
def test_bad_screws(message):
    raises(ShapeError if "has shape" in message else ModelError, message, lambda: from_screws(**FROM_SCREWS[message]))


# --- changes

CHANGES = {
    "joint 'joint1' is to be locked at nan; it takes 1 finite number(s).": lambda p: p.lock({"joint1": NAN}),
    "joint 'joint1' is to be locked at [0, 1]; it takes 1 finite number(s).": lambda p: p.lock({"joint1": [0, 1]}),
    "joint 'joint1' is to be locked at 'up'; it takes 1 finite number(s).": lambda p: p.lock({"joint1": "up"}),
    "lock takes a dictionary of joints and the coordinates to hold them at, not ['joint1'].": lambda p: p.lock(["joint1"]),
    "joint 'joint2' follows 'joint1' and cannot be locked by itself; lock 'joint1'.": lambda p: p.with_joint(
        "joint2", mimic=Mimic("joint1")
    ).lock({"joint2": 0}),
    "joint 'free' is to be locked at (0, 0, 0, 0, 0, 0, 0); a quaternion must not be zero (0 0 0 1 is no rotation).": lambda p: (
        cj.load("floating_body").lock({"free": (0,) * 7})
    ),
    "'base' is the base of robot 'panda', which has neither inertia nor placement; name a link.": lambda p: p.with_inertia(
        "base", mass=1
    ),
    "joint 'joint1' has no option 'armatur'; choose from armature, damping, friction, lower, upper, velocity, effort, mimic.": (
        lambda p: p.with_joint("joint1", armatur=1)
    ),
    "joint 'joint1': armature is [-1.0]; it must not be negative.": lambda p: p.with_joint("joint1", armature=-1),
    "both robots have link1, link2, joint1, joint2, tip; give a prefix, as in attach(hand, 'tip', prefix='hand_').": lambda p: (
        p.attach(cj.load("planar2r"), "tip")
    ),
    "what is to be attached is 'hand'; expected a Robot.": lambda p: p.attach("hand", "tip"),
}


@pytest.mark.parametrize("message", CHANGES)
def test_changes_that_cannot_be(message, panda):
    raises(CoadjointError, message, lambda: CHANGES[message](panda))


# --- what a robot without mass cannot do


def test_a_singular_mass_matrix_is_named():
    empty = robot(revolute("a"))
    message = (
        "the mass matrix of robot 'r' is singular: joint 'a_joint' moves no mass. "
        "Give link 'a' (or what it carries) mass and inertia, the joint an armature, or lock the joint."
    )
    raises(SingularMassMatrixError, message, lambda: cj.forward_dynamics(empty, [0.0], [0.0], [0.0]))
    raises(SingularMassMatrixError, message, lambda: cj.mass_matrix_inverse(empty, [0.0]))
    raises(ModelError, "robot 'r' has no mass and so no centre of mass.", lambda: cj.center_of_mass(empty, [0.0]))


# --- JSON

JSON = {
    "the text: line 1: not JSON: Expecting property name enclosed in double quotes.": "{",
    'the text: not a robot; expected a JSON object with "format": "coadjoint robot".': "[]",
    "the text: version 9 of the format; this library reads version 1.": '{"format": "coadjoint robot", "version": 9}',
    "the text: robot: the key 'links' is missing.": '{"format": "coadjoint robot", "version": 1}',
    "the text: links[0]: the key 'joint' is missing.": '{"format": "coadjoint robot", "version": 1, "links": [{}]}',
}


@pytest.mark.parametrize("message", JSON)
def test_wrong_json(message):
    raises(ReadError, message, lambda: storage.from_json(JSON[message]))


WRONG_JSON = {
    "robot: 'name' is 3; expected text.": ("name", 3),
    "robot: 'links' is null; expected a list.": ("links", None),
    "links[0] is 1; expected an object in braces.": ("links", [1]),
    "robot: 'gravity' is \"down\"; expected numbers of shape (3,).": ("gravity", "down"),
    "links[0]: 'parameters' is 1.0; expected numbers of shape (10,).": ("links", 0, "parameters", 1.0),
    "links[0]: 'placement' is [[1, 0], [0]]; expected numbers of shape (4, 4).": ("links", 0, "placement", [[1, 0], [0]]),
    "links[0]: 'joint' is []; expected an object in braces.": ("links", 0, "joint", []),
    "links[0]: joint: 'kind' is null; expected text.": ("links", 0, "joint", "kind", None),
    "links[0]: joint: 'screws' is [[0, 0, 1]]; expected numbers of shape (1, 6).": ("links", 0, "joint", "screws", [[0, 0, 1]]),
    "links[0]: joint: 'lower' is [true]; expected numbers of shape (1,).": ("links", 0, "joint", "lower", [True]),
    "links[0]: joint 'joint1': lower is [nan]; use ±inf where there is no limit.": ("links", 0, "joint", "lower", [NAN]),
    "links[1]: joint: 'mimic' is \"joint1\"; expected an object in braces.": ("links", 1, "joint", "mimic", "joint1"),
    "links[1]: joint: mimic: the key 'joint' is missing.": ("links", 1, "joint", "mimic", {}),
    "robot: no link for the frame 'tip' is named 'zz'. Expected one of: link1, link2, base.": ("frames", 0, "link", "zz"),
}


@pytest.mark.parametrize("message", WRONG_JSON)
def test_json_with_wrong_values_names_the_place_and_the_value(message):
    data = json.loads(cj.load("planar2r").to_json())
    *path, key, value = WRONG_JSON[message]
    part = data
    for step in path:
        part = part[step]
    part[key] = value
    raises(ReadError, f"the text: {message}", lambda: storage.from_json(json.dumps(data)))


def test_json_nested_without_end():
    message = "the text: not a robot; its lists are nested without end."
    raises(ReadError, message, lambda: storage.from_json("[" * 100_000))


@pytest.mark.parametrize("source", [3, None, b"panda", ""])
def test_what_is_neither_name_nor_file(source):
    expected = "expected the name of a bundled one, the path of a file, or the text of a URDF."
    raises(CoadjointError, f"{source!r} is not a robot; {expected}", lambda: cj.load(source))


def test_json_of_an_impossible_robot_says_where(panda):
    text = panda.to_json().replace("4.970684", "-4.970684")
    raises(
        ReadError,
        "the text: links[0]: link 'link1': mass is -4.97068 kg; a mass must not be negative.",
        lambda: storage.from_json(text),
    )
    text = panda.to_json().replace('"revolute"', '"revolut"', 1)
    with pytest.raises(ReadError, match=r"the text: links\[0\]: no kind of joint is named 'revolut'\. Did you mean 'revolute'\?"):
        storage.from_json(text)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("units={'q': 'deg'} converts positions", "--units q=deg converts positions"),
        ("gains= scales them; give gains=, the force", "--gains scales them; give --gains, the force"),
        ("fit without them (terms=()).", "fit without them (--terms none)."),
        ("delay=-0.37 shifts them.", "--delay -0.37 shifts them."),
        *(
            (x, x)
            for x in ("/data/rate=100/log.csv: line 3", "rate=100.csv: there is no such file", "my-gains=2.csv", "a/units={'q': 1}")
        ),
    ],
)
def test_remedies_name_options_in_a_shell_and_files_keep_their_names(said, shown):
    assert in_a_shell(said) == shown
