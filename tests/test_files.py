"""Files: only ordinary ones are read, and what is written appears whole, with the old permissions, whoever else writes."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import files
from coadjoint.constraints.mjcf import read_mjcf
from coadjoint.errors import CoadjointError, ReadError
from coadjoint.motion import States, read_states, write_states

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


# --- reading


@posix
@pytest.mark.parametrize("name", ["r.urdf", "r.xml", "r.json", "t.csv", "t.npz", "t.parquet"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_only_ordinary_files_are_read(tmp_path, monkeypatch, name, kind):
    """A pipe would wait for ever, a device has no end."""
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        monkeypatch.chdir(tmp_path)  # addresses of sockets are short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(ReadError, match=f"{name}: this is not an ordinary file"):
        cj.load(path) if name.startswith("r") else read_states(path, cj.load("planar2r"))


@posix
@pytest.mark.parametrize(
    "element", ['<include file="p"/>', '<asset><mesh name="m" file="p"/></asset>', '<asset><model file="p"/></asset>']
)
def test_pipes_that_mjcf_names_are_not_read(tmp_path, element):
    pytest.importorskip("mujoco")
    os.mkfifo(tmp_path / "p")
    (tmp_path / "r.xml").write_text(f"<mujoco>{element}</mujoco>")
    for read in (cj.load, read_mjcf):
        with pytest.raises(ReadError, match="this is not an ordinary file but a pipe"):
            read(tmp_path / "r.xml")


def test_files_have_a_largest_size(tmp_path):
    with open(tmp_path / "r.urdf", "wb") as file:
        file.truncate(files.LARGEST + 1)  # a hole, which takes no room
    with pytest.raises(ReadError, match=r"r\.urdf: the file has 64 MiB; at most 64 MiB are read"):
        cj.load(tmp_path / "r.urdf")
    assert files.read_bytes(tmp_path / "r.urdf", 2**30) == bytes(files.LARGEST + 1)


def test_a_file_that_hides_its_size_is_cut(tmp_path):
    if not Path("/proc/self/maps").exists():
        pytest.skip("no /proc here")
    assert os.stat("/proc/self/maps").st_size == 0
    with pytest.raises(ReadError, match="more than 10 bytes"):
        files.read_bytes("/proc/self/maps", 10)


@pytest.mark.parametrize("path", [3, None, b"r.json", "a\0b.json", "\ud800.json", ""])
def test_what_cannot_be_the_name_of_a_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for act in (lambda: cj.save(cj.load("planar2r"), path), lambda: files.check_output(path), lambda: cj.load(path)):
        with pytest.raises(CoadjointError):
            act()
    assert not list(tmp_path.iterdir())


# --- writing


def robots() -> tuple[cj.Robot, ...]:
    return cj.load("panda"), cj.load("planar2r"), cj.load("ur5e")


def test_threads_that_save_one_path_show_readers_whole_files(tmp_path):
    path, stop, wrong = tmp_path / "r.json", threading.Event(), []
    choices = robots()
    cj.save(choices[0], path)

    def write(robot):
        while not stop.is_set():
            try:
                cj.save(robot, path)
            except Exception as error:
                wrong.append(error)

    def read():
        for _ in range(40):
            try:
                assert cj.load(path) in choices
            except Exception as error:
                wrong.append(error)

    writers = [threading.Thread(target=write, args=(robot,)) for robot in choices]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in writers + readers:
        thread.start()
    for thread in readers:
        thread.join()
    stop.set()
    for thread in writers:
        thread.join()
    assert not wrong
    assert [x.name for x in tmp_path.iterdir()] == ["r.json"]


@posix
def test_permissions_are_those_of_the_old_file(tmp_path):
    robot, path = cj.load("planar2r"), tmp_path / "r.json"
    before = os.umask(0o027)
    try:
        cj.save(robot, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640  # as for any new file
        for mode in (0o600, 0o664, 0o604):
            path.chmod(mode)
            cj.save(robot, path)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(before)


@posix
def test_while_it_is_written_a_private_file_stays_private(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o600)
    with files.replacing(path) as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        part.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_temporary_names_cannot_be_foreseen(tmp_path, monkeypatch):
    """And a file of that name, were it there, is neither followed nor overwritten."""
    path, victim = tmp_path / "a.txt", tmp_path / "victim"
    names = set()
    for _ in range(20):
        with files.replacing(path) as part:
            names.add(part.name)
            part.write_text("x")
    assert len(names) == 20
    victim.write_text("precious")
    monkeypatch.setattr(files.secrets, "token_hex", lambda n: "0" * (2 * n))
    with files.replacing(path) as part:
        planted = part
        part.write_text("x")
    planted.symlink_to(victim)
    with pytest.raises(FileExistsError), files.replacing(path) as part:
        part.write_text("y")
    assert victim.read_text() == "precious"


def test_the_longest_name_that_a_file_can_have(tmp_path):
    path = tmp_path / ("n" * 250 + ".json")
    cj.save(cj.load("planar2r"), path)
    assert cj.load(path) == cj.load("planar2r")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "l.json").symlink_to(tmp_path / "r.json")
    cj.save(cj.load("planar2r"), tmp_path / "l.json")
    assert (tmp_path / "l.json").is_symlink()
    assert cj.load(tmp_path / "r.json") == cj.load("planar2r")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    with pytest.raises(CoadjointError, match="link that leads nowhere but to itself"):
        cj.save(cj.load("planar2r"), tmp_path / "loop.json")


def test_what_a_killed_process_left_is_removed_a_day_later(tmp_path):
    code = (
        "import os, signal, sys\nfrom coadjoint.files import replacing\n"
        "with replacing(sys.argv[1]) as part:\n part.write_text('half')\n os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "a.json"
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    (left,) = tmp_path.iterdir()
    mine = [tmp_path / ".coadjoint-thesis.part.json", tmp_path / ".a.123.part.json"]
    for other in mine:
        other.write_text("not ours")
        os.utime(other, (0, 0))
    with files.replacing(path) as part:
        part.write_text("whole")
    assert left.exists()  # it may still be written
    os.utime(left, (time.time() - files.ABANDONED - 60,) * 2)
    files._swept.clear()  # as in a new process
    with files.replacing(path) as part:
        part.write_text("whole")
    assert set(tmp_path.iterdir()) == {path, *mine}


# --- what cannot be read back is not written


def named(joint: str = "j", link: str = "a", robot: str = "r") -> cj.Robot:
    return cj.Robot(robot, [cj.Link.solid(link, "base", cj.Joint.revolute(name=joint), mass=1.0, inertia=0.1)])


@pytest.mark.parametrize("place", ["joint", "link", "robot"])
@pytest.mark.parametrize("name", ["a\x01b", "a\x1b[31m", "a\0", "\uffff"])
@pytest.mark.parametrize("extension", ["urdf", "xml"])
def test_names_that_xml_cannot_hold_are_refused(tmp_path, place, name, extension):
    robot = named(**{place: name})
    with pytest.raises(CoadjointError, match=r"the name '.*' has the character .*cannot hold; write the robot as JSON"):
        cj.save(robot, tmp_path / f"r.{extension}")
    assert not list(tmp_path.iterdir())
    cj.save(robot, tmp_path / "r.json")
    assert cj.load(tmp_path / "r.json") == robot


@pytest.mark.parametrize("name", ["é", "日本 💥", "a\tb\nc", "<&>\"'", "$x$ %s {}"])
@pytest.mark.parametrize("extension", ["urdf", "xml", "json"])
def test_odd_names_come_back(tmp_path, name, extension):
    if extension == "xml":
        pytest.importorskip("mujoco")
    cj.save(named(name, name, name), tmp_path / f"r.{extension}")
    again = cj.load(tmp_path / f"r.{extension}")
    assert (again.name, again.joint_names, again.link_names) == (name, (name,), (name,))


def test_names_with_half_a_character_are_refused():
    for place in ("joint", "link", "robot"):
        with pytest.raises(CoadjointError, match="lone surrogate"):
            named(**{place: "a\ud800"})


@pytest.mark.parametrize("name", ["a\nb", "a\r", " a ", "a\0"])
def test_columns_that_a_line_cannot_hold_are_refused(tmp_path, name):
    states = States(np.zeros((3, 1)), numbered=False)
    with pytest.raises(CoadjointError, match="a line of text cannot hold"):
        write_states(tmp_path / "t.csv", named(name), states)
    assert not list(tmp_path.iterdir())
    write_states(tmp_path / "t.npz", named(name), states)
    np.testing.assert_array_equal(read_states(tmp_path / "t.npz", named(name), ["q"]).q, states.q)


def test_figures_with_control_characters_are_sound(tmp_path):
    pytest.importorskip("matplotlib")
    from xml.etree import ElementTree

    from coadjoint.show.plots import draw_states

    states = States(np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((3, 1)))
    draw_states(tmp_path / "f.svg", named("a\x01\x1b]0;b", robot="r\x02"), states)
    ElementTree.parse(tmp_path / "f.svg")
