"""Joint kinds answer for themselves: the algebra of their groups, their coordinates, their screws; no algorithm asks for a name."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from coadjoint.arrays import mv, transpose
from coadjoint.lie import se3
from coadjoint.robot.joints import KINDS
from random_robots import random_joint

SOURCE = Path(__file__).parents[1] / "src" / "coadjoint"
GROUPS = sorted(name for name, kind in KINDS.items() if kind.group is not None)


def asks(node: ast.AST) -> bool:
    """Whether a node compares something with the name of a kind of joint, or looks it up by that name."""
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        parts = [x for y in operands for x in (y.elts if isinstance(y, ast.Tuple | ast.List | ast.Set) else [y])]
        named = [x for x in parts if isinstance(x, ast.Constant) and x.value in KINDS]
        return len(named) > 1 or bool(named and any(word in ast.unparse(node) for word in ("kind", "joint")))
    if isinstance(node, ast.Dict):
        return {"spherical", "free"} <= {k.value for k in node.keys if isinstance(k, ast.Constant)}
    return isinstance(node, ast.Subscript) and ast.unparse(node.slice).endswith("joint.kind")


def by_name(text: str) -> list[int]:
    """Lines that ask. Only a text with the name of a kind as a string, or a kind as an index, can have any."""
    if not any(f"{quote}{name}{quote}" in text for name in KINDS for quote in "\"'") and "joint.kind]" not in text:
        return []
    return [node.lineno for node in ast.walk(ast.parse(text)) if asks(node)]


def test_no_algorithm_asks_a_kind_by_its_name():
    own = ("robot", "interop")  # where kinds are defined, and read from and written to files and other libraries' models
    paths = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in own]
    assert len(paths) > 100
    asked = {f"{path.relative_to(SOURCE)}:{line}" for path in paths for line in by_name(path.read_text())}
    assert asked == set()
    for wrong in ('x.kind == "free"', 'k in ("fixed", "planar")', "_AD[joint.kind]", '{"spherical": 1, "planar": 2, "free": 3}'):
        assert by_name(wrong) == [1]


@pytest.mark.parametrize("name", GROUPS)
def test_the_algebra_of_a_group_is_that_of_its_motions(name):
    """bracket, coadjoint action and dexp against differences of `integrate` and `difference`."""
    kind, rng, h = KINDS[name], np.random.default_rng(3), 1e-4
    x, y, p = 0.7 * rng.normal(size=(3, kind.nv))
    q = kind.random(rng, (), np.full(kind.nq, -1.0), np.full(kind.nq, 1.0))
    moved = lambda q, *steps: moved(kind.integrate(q, steps[0]), *steps[1:]) if steps else q
    # Ad_{exp x} y: exp(x) exp(h y) exp(-x)
    Ad = np.stack(
        [kind.difference(q, moved(q, x, h * e, -x)) - kind.difference(q, moved(q, x, -h * e, -x)) for e in np.eye(kind.nv)]
    )
    Ad = Ad.T / (2 * h)
    np.testing.assert_allclose(kind.coadjoint(x, p), Ad.T @ p, atol=1e-7)
    # dexp(x) e: exp(-x) exp(x + h e), in the body
    dexp = np.stack(
        [
            kind.difference(moved(q, x), moved(q, x + h * e)) - kind.difference(moved(q, x), moved(q, x - h * e))
            for e in np.eye(kind.nv)
        ]
    )
    body = dexp.T / (2 * h)
    space = Ad @ body
    found = np.stack([kind.dexp_dual(x, e) for e in np.eye(kind.nv)])
    assert min(np.abs(found - body).max(), np.abs(found - space).max()) < 1e-7
    np.testing.assert_allclose(kind.bracket(x, y), kind.ad(x) @ y, atol=1e-14)
    np.testing.assert_allclose(kind.bracket(x, y), -kind.bracket(y, x), atol=1e-14)
    np.testing.assert_allclose(kind.ad_dual(x, p) @ y, p @ kind.bracket(x, y), atol=1e-13)
    small = lambda s: kind.difference(q, moved(q, s * x, s * y, -s * x, -s * y)) / s**2
    np.testing.assert_allclose(kind.bracket(x, y), (4 * small(5e-4) - small(1e-3)) / 3 * 1.0, atol=1e-2)


@pytest.mark.parametrize("name", GROUPS)
def test_screws_of_a_group_joint_are_those_of_its_rows(name):
    """With axes along the frame's, a velocity of the joint is the body twist that has it in the rows of `group`."""
    kind, joint = KINDS[name], random_joint(np.random.default_rng(0), name)
    assert joint.screws.shape == (kind.nv, 6)
    plain = np.eye(6)[list(kind.group)]
    assert kind.defect(plain) == ""
    x = np.arange(1.0, 1 + kind.nv)
    np.testing.assert_array_equal(kind.twist(x), x @ plain)
    np.testing.assert_array_equal(kind.from_twist(kind.twist(x)), x)
    T = kind.pose(plain, kind.integrate(kind.neutral(), x / 10))
    np.testing.assert_allclose(T, se3.exp(kind.twist(x / 10)), atol=1e-15)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_what_a_kind_says_of_its_coordinates(name):
    kind, rng = KINDS[name], np.random.default_rng(1)
    joint = random_joint(rng, name)
    q, v = kind.random(rng, (), joint.lower, joint.upper), rng.normal(size=kind.nv)
    S = np.broadcast_to(kind.subspace(joint.screws, q), (kind.nv, 6))
    assert len(kind.turns) == kind.nv
    for turns, screw in zip(kind.turns, S, strict=True):
        assert bool(np.linalg.norm(screw[:3]) > 1e-9) == turns
    if kind.quaternion is not None:
        assert kind.normalize(3.0 * q)[kind.quaternion] == pytest.approx(q[kind.quaternion])
        assert np.linalg.norm(q[kind.quaternion]) == pytest.approx(1.0)
    else:
        np.testing.assert_array_equal(kind.normalize(q), q)
    for k, screw in kind.angles:  # a whole turn advances by 2π times the pitch and turns nothing
        turned = q.copy()
        turned[k] += 2 * np.pi
        T = kind.pose(joint.screws, turned) @ se3.inverse(kind.pose(joint.screws, q))
        np.testing.assert_allclose(T[:3, :3], np.eye(3), atol=1e-14)
        advance = 2 * np.pi * abs(kind.pitch(joint.screws) or 0.0)
        assert np.linalg.norm(T[:3, 3]) == pytest.approx(advance, abs=1e-13)
        assert abs(np.linalg.norm(joint.screws[screw, :3]) - 1) < 1e-14
    if kind.group is None:
        np.testing.assert_array_equal(kind.rate(q, v), v)
        assert not kind.bracket(v, v[::-1]).any()
        assert kind.coadjoint(v, v) is v
    assert kind.serial == (kind.bias(joint.screws, q, v) is not None)
    if any(kind.turns):  # screws leave the centre where it is, but for their advance
        c = kind.centre(joint.screws)
        turning = joint.screws[list(kind.turns)][: 1 if kind.serial else None]
        moved = turning[:, 3:] + np.cross(turning[:, :3], c)
        np.testing.assert_allclose(moved, (kind.pitch(joint.screws) or 0.0) * turning[:, :3], atol=1e-13)
    assert mv(transpose(S), v).shape == (6,)
