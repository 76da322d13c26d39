"""Files that are no robot, by mistake or by intent: one error each, with file and line, and nothing read or run behind it."""

from pathlib import Path

import pytest

import coadjoint as cj
from coadjoint.errors import ReadError
from coadjoint.robot import xml
from coadjoint.robot.urdf import read_urdf
from hostile_documents import HOSTILE

ROBOT = '<robot name="r"><link name="a"/></robot>'


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_document_types_are_refused(text: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"robot{suffix}"
    path.write_text(f"<!-- a comment -->\n{text}")
    for read in (cj.load, read_urdf):
        with pytest.raises(ReadError, match=rf"robot\{suffix}: line 2: .*DOCTYPE.*Remove it"):
            read(path)
    with pytest.raises(ReadError, match=r"the text: line 1: .*DOCTYPE"):
        cj.load(text)


def test_an_entity_that_is_not_declared() -> None:
    with pytest.raises(ReadError, match="line 1: not XML: undefined entity"):
        cj.load('<robot name="&x;"/>')


NO_XML = {
    "empty": (b"", "the file is empty"),
    "blank": (b" \n\n ", "the file is empty"),
    "text": (b"hello\n", "line 1: not XML"),
    "nul": (ROBOT.encode().replace(b"r", b"\0", 1), "line 1: not XML"),
    "binary": (bytes(range(256)), "line 1: not XML"),
    "truncated": (
        b'<robot name="r">\n  <link name="a">\n    <inertial>\n',
        "line 4: not XML: no element found inside <inertial> of line 3",
    ),
    "in a tag": (b'<robot name="r">\n  <link na', 'line 2: not XML: unclosed token inside <robot name="r"> of line 1'),
    "crossed": (b'<robot name="r">\n<link name="a">\n</robot>', 'line 3: not XML: mismatched tag inside <link name="a"> of line 2'),
    "two roots": (ROBOT.encode() * 2, "line 1: not XML: junk after document element"),
    "attribute twice": (b'<robot name="r" name="s"/>', "line 1: not XML: duplicate attribute"),
    "latin-1": ('<robot name="r">\n<link name="é"/></robot>'.encode("latin-1"), "line 2: not XML"),
    "unknown encoding": (b'<?xml version="1.0" encoding="klingon"?><robot name="r"/>', "line 1: .*klingon.*UTF-8"),
    "encoding not kept": (b'<?xml version="1.0" encoding="utf-16"?><robot name="r"/>', "line 1: not XML"),
    "many bytes": (b'<?xml version="1.0" encoding="shift_jis"?>\n<robot name="r"/>', "line 1: .*Save it as UTF-8"),
}


@pytest.mark.parametrize(("data", "message"), NO_XML.values(), ids=NO_XML)
def test_what_is_not_xml(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_bytes(data)
    for read in (cj.load, read_urdf):
        with pytest.raises(ReadError, match=rf"robot\.urdf: {message}"):
            read(path)


@pytest.mark.parametrize("length", range(0, len(ROBOT), 3))
def test_a_file_cut_anywhere_is_refused(length: int) -> None:
    with pytest.raises(ReadError):
        read_urdf("<" + ROBOT[1:length])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_that_are_kept(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    declared = '<?xml version="1.0" encoding="iso-8859-1"?>\n' if encoding == "latin-1" else ""
    path.write_text(f'{declared}<robot name="é"><link name="ü"/></robot>', encoding=encoding)
    assert cj.load(path).name == "é"
    assert cj.load(path).base == "ü"


def test_nesting_without_end() -> None:
    deep = "<x>" * 100_000 + "</x>" * 100_000
    assert read_urdf(f'<robot name="r"><link name="a"/>{deep}</robot>').base == "a"


def test_the_root_is_found_without_reading_on() -> None:
    assert xml.root_tag("<mujoco><worldbody", "the text") == "mujoco"
