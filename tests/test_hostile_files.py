"""JSON, MJCF and tables that are no robots and no tables: one error of ours each, short, with the place, and soon."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.constraints.mjcf import read_mjcf
from coadjoint.errors import CoadjointError, ModelError, ModelWarning, ReadError
from coadjoint.motion import read_states
from coadjoint.robot import mjcf_size
from coadjoint.robot.joints import KINDS
from coadjoint.robot.layout import LONGEST_NAME
from coadjoint.words import LONGEST, cut, printable, short
from fuzz import readers as fuzz
from random_robots import random_robot

# --- texts of messages


LARGE = ["x" * 10**6, b"x" * 10**6, 10**5000, [1.0] * 10**6, {"a": "b" * 10**6}, [[[[[[1]]]]]], 3, "a\nb", None]


@pytest.mark.parametrize("value", LARGE, ids=range(len(LARGE)))
def test_a_value_in_a_message_is_short(value):
    assert len(short(value)) < LONGEST + 30
    assert short(value).isprintable()


def test_text_that_is_printed_is_printable():
    assert printable("é 日本 💥") == "é 日本 💥"
    assert printable("\x1b[31m\n\u202e\ud800\x9b") == "\\x1b[31m\\n\\u202e\\ud800\\x9b"
    assert len(cut("y\n" * 10**6)) < 3 * LONGEST


LONG = "x" * 10**6


def joined(name: str = "j", kind: str = "fixed", parent: str = "a") -> str:
    ends = f'<parent link="{parent}"/><child link="b"/>'
    return f'<robot name="r"><link name="a"/><link name="b"/><joint name="{name}" type="{kind}">{ends}</joint></robot>'


LONG_VALUES = {
    "number": f'<robot name="r"><link name="a"><inertial><mass value="{LONG}"/></inertial></link></robot>',
    "two names": f'<robot name="r"><link name="{LONG}"/><link name="{LONG}"/></robot>',
    "joint": joined(name=LONG),
    "type": joined(kind=LONG),
    "parent": joined(parent=LONG),
    "name": f'<robot name="r"><link name="{LONG}"/></robot>',
    "tag": f"<{LONG}/>",
    "no XML": f'<{LONG} name="{LONG}"',
}


@pytest.mark.parametrize("text", LONG_VALUES.values(), ids=LONG_VALUES)
def test_messages_do_not_repeat_whole_values(text, tmp_path):
    (tmp_path / "r.urdf").write_text(text)
    for source in (text, tmp_path / "r.urdf"):
        with pytest.raises(CoadjointError) as raised:
            cj.load(source)
        assert len(str(raised.value)) < 1500


@pytest.mark.parametrize("links", ["", '<link name="a"/>'])
def test_a_long_name_in_a_file_is_refused_with_the_line(links):
    with pytest.raises(cj.errors.ReadError, match=r"line 1: <robot.*70000 characters"):
        cj.load(f'<robot name="{"y" * 70_000}">{links}</robot>')


def test_long_names_are_refused_by_the_robot():
    link = cj.Link("a" * (LONGEST_NAME + 1), "base", cj.Joint.revolute())
    with pytest.raises(ModelError, match=r"has 1001 characters: 'aaa.*at most 1000"):
        cj.Robot("r", [link])
    assert cj.Robot("r", [cj.Link("a" * (LONGEST_NAME - 10), "base", cj.Joint.revolute(name="j"))]).n_links == 1


# --- costs that grow with the file and no faster: what took minutes takes a moment


def chain(n: int, mimic: str = "", backwards: bool = False) -> str:
    """A chain of n joints, each of which but the first may mimic the one before."""
    joints = [
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f"{mimic.format(i - 1) if i else ''}</joint>"
        for i in range(n)
    ]
    links = "".join(f'<link name="l{i}"/>' for i in range(n + 1))
    return f'<robot name="r">{links}{"".join(reversed(joints) if backwards else joints)}</robot>'


def test_a_number_of_many_digits():
    for digits in ("1" * 100_000 + "x", "1" * 100_000 + "." + "1" * 100_000 + "e", "," * 100_000):
        with pytest.raises(ReadError, match="is not a number"):
            cj.load(f'<robot name="r"><link name="a"><inertial><mass value="{digits}"/></inertial></link></robot>')


@pytest.mark.parametrize("backwards", [False, True])
def test_a_chain_of_mimics(backwards):
    robot = cj.load(chain(1500, '<mimic joint="j{}" multiplier="-1" offset="1"/>', backwards))
    assert robot.nv == 1
    first = robot.joint_index("j0")
    assert robot.mimics[robot.joint_index("j1")] == (first, -1.0, 1.0)
    assert robot.mimics[robot.joint_index("j1000")] == (first, 1.0, 0.0)  # q → 1 - q, an even number of times


def test_mimics_of_nothing():
    with pytest.warns(ModelWarning, match="which does not exist"):
        robot = cj.load(chain(1500, '<mimic joint="no{}"/>'))
    assert robot.nv == 1500


def test_a_deep_tree_is_described_in_text_of_its_own_size():
    robot = cj.load(chain(1500, backwards=True))
    text = str(robot)
    assert len(text) < 1500 * 250
    assert all(f"l{i} " in text for i in range(1, 1501))
    assert robot.order == tuple(reversed(range(1500)))


@pytest.mark.parametrize("seed", range(5))
def test_links_are_ordered_as_by_passes_through_the_list(seed):
    """The order that `_parents_first` documents, by the passes themselves."""
    robot = random_robot(seed, 12)
    shuffled = np.random.default_rng(seed).permutation(robot.n_links)
    mixed = cj.Robot("r", [robot.links[i] for i in shuffled], base=robot.base)
    order: list[int] = []
    while len(order) < mixed.n_links:
        for i, parent in enumerate(mixed.parents):
            if i not in order and (parent < 0 or parent in order):
                order.append(i)
    assert mixed.order == tuple(order)


def test_many_columns(tmp_path):
    names = [f"x{k}" for k in range(20_000)]
    (tmp_path / "t.csv").write_text(",".join(["q1", *names]) + "\n" + ",".join(["0"] * 20_001))
    assert read_states(tmp_path / "t.csv", cj.load("planar1r"), ["q"]).q.shape == (1, 1)


def test_xml_with_too_many_elements(monkeypatch):
    from coadjoint.robot import xml

    monkeypatch.setattr(xml, "MOST_ELEMENTS", 100)
    with pytest.raises(ReadError, match="line 1: the file has more than 100 elements"):
        cj.load(f'<robot name="r">{"<a/>" * 100}</robot>')


# --- harmless faults of real files


def test_of_two_origins_the_first_counts():
    text = """<robot name="r"><link name="a"/><link name="b"/>
    <joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/><limit effort="1" velocity="1"/>
    <origin xyz="1 2 3"/>
    <origin xyz="4 5 6"/></joint></robot>"""
    with pytest.warns(ModelWarning, match=r'line 4: <joint name="j"> has a second <origin>; the first counts, which is in line 3'):
        robot = cj.load(text)
    np.testing.assert_array_equal(robot.placements[0, :3, 3], [1, 2, 3])
    assert sum("second <origin>" in note for note in robot.warnings) == 1


def test_the_published_lwr4_loads_as_for_pinocchio():
    path = Path(__file__).parents[2] / "shared" / "data" / "lwr4_log" / "lwr4.urdf"
    if not path.is_file():
        pytest.skip("no shared data here")
    pin = pytest.importorskip("pinocchio")
    with pytest.warns(ModelWarning, match="second <origin>"):
        robot = cj.load(path)
    model = pin.buildModelFromUrdf(str(path))
    q, v, a = (np.random.default_rng(k).normal(size=robot.nv) for k in range(3))
    assert list(model.names)[1:] == list(robot.v_names)
    tau = pin.rnea(model, model.createData(), q, v, a)
    np.testing.assert_allclose(cj.inverse_dynamics(robot, q, v, a) - robot.armature * a, tau, rtol=1e-9, atol=1e-9)


def test_comments_with_two_hyphens():
    """XML forbids them, many files have them, and other readers do not mind."""
    text = '<robot name="r">\n<!-- a -- b\n-----> <link name="a"/><!----><link/></robot>'
    with pytest.raises(ReadError, match="line 3: <link>: the attribute"):
        cj.load(text)
    assert cj.load(text.replace("<link/>", "")).base == "a"
    with pytest.raises(ReadError, match="not XML"):
        cj.load('<robot name="r"><!-- <!-- <link name="a"/></robot>')


# --- numbers


def test_axes_of_any_length():
    for length in ("1e200", "1e308", "1e-11", "3"):
        text = f"""<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>
        <child link="b"/><axis xyz="{length} 0 {length}"/></joint></robot>"""
        np.testing.assert_allclose(cj.load(text).screws[0, :3], [0.5**0.5, 0, 0.5**0.5], rtol=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_few_digits_do_not_bend_a_robot(seed):
    """Screws and rotations of JSON with seven digits are made exact; those with all digits come back bit for bit."""
    robot = random_robot(seed, 8, mimic=False)
    assert cj.robot.storage.from_json(robot.to_json()) == robot
    data = json.loads(robot.to_json())
    rounded = lambda x: [rounded(y) for y in x] if isinstance(x, list) else round(x, 7)
    for link in data["links"]:
        link["placement"], link["joint"]["screws"] = rounded(link["placement"]), rounded(link["joint"]["screws"])
    again = cj.robot.storage.from_json(json.dumps(data))
    for old, new in zip(robot.links, again.links, strict=True):
        R = new.placement[:3, :3]
        np.testing.assert_allclose(R @ R.T, np.eye(3), rtol=0, atol=1e-14)
        np.testing.assert_allclose(new.placement, old.placement, rtol=0, atol=1e-6)
        np.testing.assert_allclose(new.joint.screws, old.joint.screws, rtol=0, atol=1e-6)
        T = KINDS[new.joint.kind].pose(new.joint.screws, KINDS[new.joint.kind].neutral())
        np.testing.assert_allclose(T, np.eye(4), rtol=0, atol=1e-15 * 10)
        if new.joint.kind not in ("fixed", "prismatic", "planar", "free"):
            np.testing.assert_allclose(np.linalg.norm(new.joint.screws[:, :3], axis=1), 1, rtol=4e-16)
        if new.joint.kind in ("revolute", "continuous", "universal"):
            w, v = new.joint.screws[:, :3], new.joint.screws[:, 3:]
            np.testing.assert_allclose(np.sum(w * v, axis=1), 0, atol=1e-15)
    assert cj.robot.storage.from_json(again.to_json()) == again


@pytest.mark.parametrize(
    ("lower", "upper"), [(-1e308, 1e308), (5.0, np.inf), (-np.inf, -7.0), (1e308, np.inf), (2.0, 2.0), (-np.inf, np.inf)]
)
def test_random_configurations_within_any_limits(lower, upper):
    robot = cj.Robot("r", [cj.Link("a", "base", cj.Joint.revolute(lower=lower, upper=upper))])
    q = robot.random(0, 100)
    assert np.all((q >= lower) & (q <= upper))
    assert np.isfinite(q).all()


@pytest.mark.parametrize(("lower", "upper"), [(np.inf, np.inf), (-np.inf, -np.inf)])
def test_limits_that_leave_no_position(lower, upper):
    with pytest.raises(ModelError, match="leave no position"):
        cj.Joint.revolute(lower=lower, upper=upper)


def test_inertias_too_large_for_a_number(tmp_path):
    """A mass, a place and moments each of which is a number, but not what is computed from them."""
    text = """<robot name="r"><link name="base"/><link name="a"><inertial><origin xyz="1e300 1e300 0"/><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
    <joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint></robot>"""
    with pytest.raises(ReadError, match=r'line 3: <joint name="j">: link .a.: inertial parameters'):
        cj.load(text)
    swapped = text.replace('parent link="base"', 'parent link="a"').replace('child link="a"', 'child link="base"')
    with pytest.raises(ReadError, match=r'line 1: <link name="a">: link .a.: inertial parameters'):
        cj.load(swapped, base="free")
    link = cj.Link("a", "base", cj.Joint.revolute(), parameters=np.array([1e-300, 1e300, 0, 0, 1, 0, 0, 1, 0, 1]))
    robot = cj.Robot("r", [link])
    assert "too large for a number" in robot.warnings[0] or "not a finite number" in robot.warnings[0]
    with pytest.raises(ModelError, match="MuJoCo refuses"):
        cj.save(robot, tmp_path / "r.xml")


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_a_body_too_far_away_for_its_inertia():
    """What needs its moments about the centre of mass, or the mass matrix, says so; it was NumPy's eigenvalues that did not converge."""
    arm = cj.load("planar2r")
    robot = arm.with_inertial_parameters(np.append(arm.inertial_parameters[:10], [1, 0, 2e299, 0, 0, 0, 0, 0, 0, 0]))
    assert "too large for a number" in robot.warnings[0]
    for call in (cj.mass_matrix_inverse, cj.curvature):
        with pytest.raises(ModelError, match="'joint1' of robot 'planar2r' carries has an inertia that is too large for a number"):
            call(robot, np.array([0.3, 0.2]))
    with pytest.raises(CoadjointError, match="not finite"):
        cj.report(robot, "never.html")
    assert isinstance(robot._repr_html_(), str)
    with pytest.raises(ModelError, match="too large for a number"):
        cj.save(robot, "never.xml")


# --- JSON


def edited(**changes) -> str:
    return json.dumps(json.loads(cj.load("planar2r").to_json()) | changes)


JSON = {
    "a version of thousands of digits": (
        edited(version=0).replace('"version": 0', f'"version": {"9" * 5000}'),
        "thousands of digits",
    ),
    "a huge integer": (edited(gravity=[0, 0, 10**400]), r"'gravity' is \[0, 0, 1000.*expected numbers"),
    "a true version": (edited(version=True), "version true"),
    "notes that are no text": (edited(notes=["a", [1] * 1000]), r"one of the 'notes' is \[1, 1.*expected text"),
    "half a character": (edited(name="\ud800"), "lone surrogate"),
    "a deep list": (edited(gravity=json.loads("[" * 900 + "]" * 900)), "expected numbers of shape"),
}


@pytest.mark.parametrize(("text", "message"), JSON.values(), ids=JSON)
def test_wrong_json(text, message, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ReadError, match=rf"r\.json: .*{message}") as raised:
        cj.load(tmp_path / "r.json")
    assert len(str(raised.value)) < 500


def test_json_with_too_many_values(monkeypatch):
    monkeypatch.setattr(cj.robot.storage, "MOST_VALUES", 1000)
    with pytest.raises(ReadError, match="it has more than 1000 values"):
        cj.robot.storage.from_json("[" + "[]," * 1000 + "[]]")


# --- MJCF

BODY = '<body><joint/><geom size=".1"/></body>'


def world(text: str) -> str:
    return f"<mujoco>\n<worldbody>\n{text}</worldbody></mujoco>"


MJCF = {
    "replicates": (
        world('<replicate count="100"><replicate count="100">' + BODY + "</replicate></replicate>"),
        "line 3: <body>: .* 5000 bodies",
    ),
    "many bodies": (world(BODY * 6000), "line 3: <body>: .* more than 5000 bodies"),
    "many geoms": (world('<replicate count="1e9"><geom size=".1"/></replicate>'), "line 3: <geom>: .* more than 100000 elements"),
    "a height field": (
        '<mujoco><asset><hfield name="h" nrow="60000" ncol="60000" size="1 1 1 1"/></asset></mujoco>',
        "60000 x 60000",
    ),
    "a texture": ('<mujoco><asset><texture builtin="flat" width="100000" height="100000"/></asset></mujoco>', "100000 x 100000"),
    "user numbers": ('<mujoco><size nuser_body="1000000000"/></mujoco>', 'nuser_body="1000000000" is more than 10000'),
    "memory": ('<mujoco><size memory="100T"/></mujoco>', 'memory="100T" is more than'),
    "a grid": (
        world('<body><flexcomp name="f" type="grid" count="1000 1000 1000" spacing="1 1 1"/></body>'),
        "more than 5000 bodies",
    ),
    "latin letters": ('<?xml version="1.0" encoding="latin-1"?><mujoco model="é"/>'.encode("latin-1"), "not UTF-8"),
    "a body's name": (b'<?xml version="1.0" encoding="latin-1"?>' + world('<body name="\xe9"/>').encode("latin-1"), "not UTF-8"),
}


@pytest.mark.parametrize(("text", "message"), MJCF.values(), ids=MJCF)
def test_wrong_mjcf(text, message, tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "r.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
    for read in (cj.load, read_mjcf):
        with pytest.raises(CoadjointError, match=message) as raised:
            read(tmp_path / "r.xml")
        assert len(str(raised.value)) < 500


def test_included_and_attached_bodies_count(tmp_path, monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.setattr(mjcf_size, "MOST_BODIES", 5)
    (tmp_path / "part.xml").write_text(f"<mujoco>{BODY * 3}</mujoco>")
    (tmp_path / "model.xml").write_text(f'<mujoco model="m"><worldbody><body name="b">{BODY * 3}</body></worldbody></mujoco>')
    include = world('<include file="part.xml"/>')
    (tmp_path / "r.xml").write_text(include)
    assert cj.load(tmp_path / "r.xml").n_links == 3
    (tmp_path / "r.xml").write_text(world(BODY * 3 + '<include file="part.xml"/>'))
    with pytest.raises(ReadError, match=r"part\.xml: line 1: <body>: .*more than 5 bodies"):
        cj.load(tmp_path / "r.xml")
    attach = '<attach model="m" body="b" prefix="{}"/>'
    asset = '<asset><model name="m" file="model.xml"/></asset>'
    (tmp_path / "r.xml").write_text(f"<mujoco>{asset}<worldbody>{attach.format('x')}{attach.format('y')}</worldbody></mujoco>")
    with pytest.raises(ReadError, match="more than 5 bodies"):
        cj.load(tmp_path / "r.xml")


def test_a_failure_inside_mujoco_is_reported(tmp_path, monkeypatch):
    mujoco = pytest.importorskip("mujoco")

    class Broken:
        @staticmethod
        def from_xml_path(path):
            raise RuntimeError("Caught an unknown exception!")

    (tmp_path / "r.xml").write_text(world(BODY))
    monkeypatch.setattr(mujoco, "MjModel", Broken)
    for read in (cj.load, read_mjcf):
        with pytest.raises(ReadError, match="MuJoCo: Caught an unknown exception"):
            read(tmp_path / "r.xml")


# --- tables


def npz(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def npy(x: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, x)
    return file.getvalue()


TABLES = {
    "a long header.csv": (f"q1,q2,{'x' * 200_000}\n0,0,0\n", "line 1: field larger than field limit"),
    "a long cell.csv": (f"q1,q2\n0,{'1' * 200_000}x\n", "line 2: field larger than field limit"),
    "an open quotation.csv": ('x,q1,q2\n"0,1,2\n', "line 2: a quotation mark is not closed"),
    "quotations over lines.csv": ('x,q1,q2\n"0,1,2\n0",1,2\n', "line 2: a quotation mark is not closed"),
    "a comma in quotations.csv": ('x,q1,q2\n"0,1",2\n', "line 2 has 2 cells; the header has 3"),
    "no array.npz": (npz({"q": b"abc", "q.npy": npy(np.zeros((3, 2)))}), "'q' is not an array"),
    "only text.npz": (npz({"q": b"abc"}), "'q' is not an array|cannot be read"),
    "not a zip.npz": (b"PK\x03\x04", "not an npz file"),
}


@pytest.mark.parametrize("name", TABLES)
def test_wrong_tables(name, tmp_path):
    data, message = TABLES[name]
    (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(ReadError, match=message) as raised:
        read_states(tmp_path / name, cj.load("planar2r"), ["q"])
    assert str(raised.value).startswith(str(tmp_path / name))
    assert len(str(raised.value)) < 600


def test_tables_that_grow_are_refused(tmp_path, monkeypatch):
    from coadjoint.motion import delimited
    from coadjoint.motion import table_readers as readers

    np.savez_compressed(tmp_path / "t.npz", q=np.zeros((10_000, 2)))
    monkeypatch.setattr(readers, "LARGEST", 100_000)
    with pytest.raises(ReadError, match="the numbers take"):
        read_states(tmp_path / "t.npz", cj.load("planar2r"), ["q"])
    monkeypatch.setattr(delimited, "LONGEST_LINE", 50)
    (tmp_path / "t.csv").write_text("q1,q2\n" + "0" * 60 + ",0\n")
    with pytest.raises(ReadError, match="line 2 has more than 50 characters"):
        read_states(tmp_path / "t.csv", cj.load("planar2r"), ["q"])


# --- random faults: some of those that `python -m fuzz readers` tries


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_random_faults(first, tmp_path):
    for seed in range(first, first + 100):
        found = fuzz.outcome(seed, tmp_path)
        assert not found.startswith("FAILED"), (seed, found)


def test_a_digit_of_another_script_before_a_short_row(tmp_path):
    """Found by the fuzzer of readers: the number is one for Python and none for the fast reader; the row that is wrong is another."""
    from coadjoint.motion import read_states

    path = tmp_path / "x.csv"
    path.write_text("time,q1,q2\n0.0,\uff11,0.0\n0.1,0.0,0.0\n0.2,0.0\n0.3,0.0,0.0\n", encoding="utf-8")
    with pytest.raises(cj.CoadjointError, match=re.escape(str(path))):
        read_states(path, cj.load("planar2r"), ["q"])
