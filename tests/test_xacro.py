"""Xacro: every feature of the language against the reference implementation, and hostile files refused by name."""

from __future__ import annotations

import sys
import types
import xml.etree.ElementTree as ET

import pytest

import coadjoint as cj
from coadjoint.errors import CoadjointError, ReadError
from coadjoint.robot import xml
from coadjoint.robot.packages import Finder
from coadjoint.robot.xacro import expand, values

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'

FEATURES = {
    "properties": """<xacro:property name="a" value="2"/><xacro:property name="b" value="${a * 1.5}"/>
        <xacro:property name="s" value="text"/><xacro:property name="yes" value="true"/><xacro:property name="q" value="'3'"/>
        <x a="${a}" b="${b}" s="${s}_${a}" yes="${yes}" q="${q}"
        under="${1_000}" pi="${pi}" two="${a}${a}" e="1 ${a} ${-a}"/>""",
    "numbers": """<x a="${1/3}" b="${7//2}" c="${7 % 4}" d="${2**-1}" e="${1e-9}" f="${int(3.7)}" g="${round(2.567, 2)}"
        h="${sin(radians(30))}" i="${max(1, 2.5)}" j="${-0.0}" k="${1e22}" l="${10**20}"
        m="${3 &amp; 6 | 1}" n="${~5}" o="${1 &lt;&lt; 4}"/>""",
    "lazy": """<xacro:property name="b" value="${a + 1}"/><xacro:property name="a" value="1"/><x b="${b}"/>
        <xacro:property name="a" value="5"/><x b="${b}" a="${a}"/>
        <xacro:property name="c" value="${a}" lazy_eval="false"/><xacro:property name="a" value="7"/><x c="${c}"/>""",
    "default": """<xacro:property name="a" value="1"/><xacro:property name="a" default="2"/><xacro:property name="b" default="3"/>
        <x a="${a}" b="${b}"/>""",
    "remove": """<xacro:property name="a" value="1"/><xacro:property name="a" remove="true"/>
        <xacro:property name="a" default="2"/><x a="${a}"/>""",
    "named by expression": '<xacro:property name="k" value="7"/><xacro:property name="p${k}" value="8"/><x a="${p7}"/>',
    "scope": """<xacro:macro name="m" params="v"><xacro:property name="g" value="${v}" scope="global"/>
          <xacro:property name="p" value="${v + 1}" scope="parent"/><xacro:property name="l" value="9"/><y l="${l}"/></xacro:macro>
        <xacro:macro name="outer"><xacro:m v="1"/><y g="${g}" p="${p}"/></xacro:macro>
        <xacro:outer/><x g="${g}"/>""",
    "block property": """<xacro:property name="b"><origin xyz="${k} 0 0"/><other/></xacro:property><xacro:property name="k" value="1"/>
        <x><xacro:insert_block name="b"/></x><y><xacro:insert_block name="b"/></y>""",
    "macro": """<xacro:macro name="m" params="a b:=2 c:='x y' d=4"><x a="${a}" b="${b}" c="${c}" d="${d}"/></xacro:macro>
        <xacro:m a="1"/><xacro:m a="${1+1}" b="3" c="z" d="5"/>""",
    "defaults by expressions": """<xacro:property name="w" value="3"/><xacro:property name="s" value="1 2 3"/>
        <xacro:macro name="m" params="a:=${w} b:=${w*2} c:='${s}'  e:=^|7 w:=^ xyz:='0 0 0' f:=$(arg z)">
          <x a="${a}" b="${b}" c="${c}" e="${e}" w="${w}" xyz="${xyz}" f="${f}"/></xacro:macro>
        <xacro:arg name="z" default="zz"/><xacro:m/><xacro:property name="e" value="8"/><xacro:m/>""",
    "blocks": """<xacro:macro name="m" params="n *one **many"><x n="${n}"><xacro:insert_block name="one"/></x>
          <y><xacro:insert_block name="many"/><xacro:insert_block name="one"/></y></xacro:macro>
        <xacro:property name="v" value="3"/>
        <xacro:m n="1"><origin xyz="${v} 0 0"/><group><a/><b v="${v}"/></group></xacro:m>""",
    "blocks see where they are given": """<xacro:property name="v" value="outer"/>
        <xacro:macro name="m" params="v *b"><xacro:insert_block name="b"/></xacro:macro><xacro:m v="inner"><x v="${v}"/></xacro:m>""",
    "macros see where they are called": """<xacro:macro name="m"><x v="${v}"/></xacro:macro>
        <xacro:macro name="o" params="v"><xacro:m/></xacro:macro><xacro:property name="v" value="1"/><xacro:m/><xacro:o v="2"/>""",
    "macros in macros": """<xacro:macro name="o" params="k"><xacro:macro name="i" params="j"><x k="${k}" j="${j}"/></xacro:macro>
        <xacro:i j="1"/></xacro:macro><xacro:o k="2"/>""",
    "redefined": """<xacro:macro name="m"><a/></xacro:macro><xacro:m/><xacro:macro name="m"><b/></xacro:macro><xacro:m/>""",
    "recursion": """<xacro:macro name="m" params="n"><xacro:if value="${n}"><x n="${n}"/><xacro:m n="${n - 1}"/></xacro:if></xacro:macro>
        <xacro:m n="5"/>""",
    "call": """<xacro:macro name="m1" params="a"><x a="${a}"/></xacro:macro><xacro:call macro="m${1}" a="3"/>""",
    "conditions": """<xacro:property name="t" value="true"/><xacro:property name="s" value="left"/>
        <xacro:if value="${t}"><a/></xacro:if><xacro:unless value="${t}"><b/></xacro:unless><xacro:if value="0"><c/></xacro:if>
        <xacro:if value="${s == 'left' and 1 &lt; 2}"><d/></xacro:if><xacro:unless value="False"><e/></xacro:unless>
        <xacro:if value="${not t or [] }"><f/></xacro:if><xacro:if value="1"><xacro:property name="z" value="4"/></xacro:if>
        <x z="${z}"/>""",
    "arguments": """<xacro:arg name="given" default="0"/><xacro:arg name="other" default="${1+1}"/>
        <x a="$(arg given)" b="$(arg other)" c="${$(arg other) + 1}" d="${xacro.arg('other')}" e="$(arg given)_$(arg other)"/>""",
    "environment": """<x a="$(env COADJOINT_TEST)" b="$(optenv COADJOINT_TEST none)"
        c="$(optenv COADJOINT_NONE de fault)" d="$(optenv COADJOINT_NONE)"/>""",
    "dirname": """<x a="$(dirname)/meshes" b="$(cwd)"/>""",
    "find": """<x a="$(find own_package)/meshes/a.stl" b="$(find own_${'package'})"/>""",
    "eval": """<xacro:arg name="n" default="3"/><x a="$(eval n * 2)" b="$(eval 1 + 1)"/>""",
    "escapes": """<x a="$${a}" b="$$(arg b)" c="$$${x}" d="a$b" e="100$"/>""",
    "element and attribute": """<xacro:property name="t" value="link"/><xacro:element xacro:name="${t}_x" a="${1+1}"><in/></xacro:element>
        <x><xacro:attribute name="n" value="a${3*3}"/>
       </x>""",
    "include": """<xacro:include filename="inner.xacro"/><x a="${from_inner}"/><xacro:of_inner v="2"/>
        <xacro:include filename="${'in'}ner2.xacro"/><xacro:include filename="none.xacro" optional="true"/>""",
    "namespace": """<xacro:include filename="inner.xacro" ns="N"/><x a="${N.from_inner}"/><xacro:N.of_inner v="5"/>""",
    "globbed include": """<xacro:include filename="glob_*.xacro"/>""",
    "yaml": """<xacro:property name="y" value="${xacro.load_yaml('data.yaml')}"/>
        <x a="${y.joint.limit}" b="${y['joint']['limit'] * 2}" c="${y.names[1]}" d="${len(y.names)}"
        e="${y.joint.angle}" f="${y.joint.length}"
        g="${y.flag}" h="${' '.join(y.names)}" i="${y.table[0].k}" j="${y.none}"/>
        <xacro:property name="f" value="data.yaml"/><x a="${xacro.load_yaml(f)['joint']['limit']}"/>""",
    "lists": """<xacro:property name="l" value="${[1, 2.5, 'three']}"/><xacro:property name="d" value="${dict(a=1, b='x')}"/>
        <x a="${l[0]}" b="${l[-1]}" c="${l}" d="${d['a']}" e="${[2*i for i in range(3)]}" f="${sum}" />""".replace(
        ' f="${sum}"', ""
    )
    + """<y a="${list(map(float, '1 2'.split()))}" b="${','.join([str(i) for i in l])}" c="${(1, 2)[1]}"
        d="${l[1:]}" e="${'abc'[::-1]}"/>""",
    "python": """<x a="${python.sum([1, 2])}" b="${python.any([0, 1])}" c="${python.list(python.zip([1], [2]))}" d="${math.sqrt(16)}"
        e="${python.len('abc')}" f="${'%.3f' % pi}" g="${xacro.tokenize('a,b; c')}" h="${python.tuple([1])}" i="${python.abs(-2)}"/>""",
    "strings": """<x a="${'a' + 'b'}" b="${'a' * 3}" c="${'Left'.lower()}" d="${'x' if 1 > 2 else 'y'}"
        e="${'l' in 'left'}" f="${str(1.0)}"
        g="${'a b'.split()}" h="${'left_arm'.replace('left', 'right')}"/>""".replace("1 > 2", "1 &gt; 2"),
    "text": """<xacro:property name="a" value="2"/><x>before ${a * 2} after</x><y>plain</y>""",
    "CDATA": """<x><![CDATA[a ${1+1} $(arg b) $${c} $$$(d) $e]]></x><xacro:property name="b"><y>${2}<![CDATA[<z>${3}]]></y></xacro:property>
        <xacro:insert_block name="b"/><xacro:macro name="m"><x><![CDATA[${1}]]> and ${2}</x></xacro:macro><xacro:m/>""",
    "messages": """<x a="${xacro.warning('careful')}"/>""",
    "attributes of xacro": """<x xacro:foo="1" a="2"/>""",
    "comments": """<!-- ${undefined} --><x/>""",
    "quotes": """<xacro:property name="s" value="'1.0'"/><xacro:macro name="m" params="p">
        <x p="${p + 'a'}"/></xacro:macro><xacro:m p="'5'"/>""",
    "underscored numbers": """<xacro:property name="s" value="1_0"/><x a="${s}"/>""",
    "globals": """<x a="${M_PI if False else pi}" b="${inf}" c="${e}" d="${tau}"/>""".replace("M_PI if False else ", ""),
    "bool": """<xacro:macro name="m" params="a:=false"><x a="${a}"/><xacro:if value="${a}"><y/></xacro:if></xacro:macro>
        <xacro:m/><xacro:m a="true"/>""",
}
FILES = {
    "inner.xacro": HEAD
    + """<xacro:property name="from_inner" value="41"/><inner/><xacro:macro name="of_inner" params="v"><y v="${v}"
      f="${from_inner}"/></xacro:macro></robot>""",
    "inner2.xacro": HEAD + "<inner2/></robot>",
    "glob_b.xacro": HEAD + "<b/></robot>",
    "glob_a.xacro": HEAD + "<a/></robot>",
    "data.yaml": """joint: {limit: 1.5, angle: !degrees 180, length: !millimeters 2}
names: [a, b, c]
flag: true
none: null
table: [{k: 5}]
""",
}


def tree(element: xml.Element) -> tuple:
    """Tags, attributes, text and children, without blanks between."""
    attributes = tuple(sorted((key, value) for key, value in element.attributes.items()))
    return element.tag, attributes, " ".join(element.content.split()), tuple(tree(x) for x in element.children)


def their_tree(element: ET.Element) -> tuple:
    words = " ".join([element.text or "", *(child.tail or "" for child in element)]).split()
    return element.tag, tuple(sorted(element.attrib.items())), " ".join(words), tuple(their_tree(x) for x in element)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "own_package").mkdir()
    monkeypatch.setenv("COADJOINT_TEST", "set")
    monkeypatch.delenv("COADJOINT_NONE", raising=False)
    return tmp_path


def written(folder, text, name="r.xacro"):
    (folder / name).write_text(f"{HEAD}{text}</robot>")
    return folder / name


def ours(path, **arguments) -> xml.Element:
    return expand(path, arguments, Finder(path.parent))


@pytest.mark.parametrize("name", FEATURES)
def test_every_feature_is_that_of_the_reference(name, folder, monkeypatch, capsys) -> None:
    xacro = pytest.importorskip("xacro")
    # $(find) of the reference asks the index of ROS, which is not installed here.
    packages = types.ModuleType("ament_index_python.packages")
    packages.get_package_share_directory = lambda name: str(folder / name)
    monkeypatch.setitem(sys.modules, "ament_index_python", types.ModuleType("ament_index_python"))
    monkeypatch.setitem(sys.modules, "ament_index_python.packages", packages)
    path = written(folder, FEATURES[name])
    xacro.substitution_args_context["filename"] = str(path)
    theirs = xacro.process_file(str(path), mappings={"given": "1"}).toxml()
    assert tree(ours(path, given="1")) == their_tree(ET.fromstring(theirs))


def test_features_without_the_reference(folder) -> None:
    """A few results by hand, so that the comparison is not the only witness."""
    path = written(folder, FEATURES["macro"] + FEATURES["conditions"])
    root = ours(path)
    assert [x.attributes for x in root.all("x")][:2] == [
        {"a": "1", "b": "2", "c": "x y", "d": "4"},
        {"a": "2", "b": "3", "c": "z", "d": "5"},
    ]
    assert [x.tag for x in root.children] == ["x", "x", "a", "d", "e", "x"]


ARM = """<xacro:arg name="prefix" default=""/><xacro:property name="length" value="0.5"/>
<xacro:macro name="segment" params="name parent mass:=1 *origin">
  <link name="${name}"><inertial><origin xyz="0 0 ${length/2}"/><mass value="${mass}"/>
    <inertia ixx="${mass*length**2/12}" iyy="${mass*length**2/12}" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><cylinder radius="0.02" length="${length}"/></geometry></visual></link>
  <joint name="${name}_joint" type="continuous"><xacro:insert_block name="origin"/><parent link="${parent}"/><child link="${name}"/>
    <axis xyz="0 1 0"/></joint>
</xacro:macro>
<link name="base"/>
<xacro:segment name="$(arg prefix)upper" parent="base"><origin xyz="0 0 1"/></xacro:segment>
<xacro:segment name="$(arg prefix)lower" parent="$(arg prefix)upper" mass="0.5"><origin xyz="0 0 ${length}"/></xacro:segment>"""


def test_a_robot_is_loaded(folder) -> None:
    robot = cj.load(written(folder, ARM, "arm.urdf.xacro"), arguments={"prefix": "left_"})
    assert robot.link_names == ("left_upper", "left_lower")
    assert [s.kind for s in robot.shapes] == ["cylinder", "cylinder"]
    assert robot.links[1].parameters[0] == 0.5
    assert cj.total_mass(robot) == 1.5
    assert cj.load(folder / "arm.urdf.xacro").joint_names == ("upper_joint", "lower_joint")


def test_errors_name_the_file_and_line_of_the_xacro(folder) -> None:
    (folder / "part.xacro").write_text(f'{HEAD}\n<xacro:macro name="m">\n<link nome="a"/></xacro:macro></robot>')
    path = written(folder, '\n<xacro:include filename="part.xacro"/><xacro:m/>')
    with pytest.raises(ReadError, match=r'part\.xacro: line 3: <link>: the attribute "name" is missing'):
        cj.load(path)


BOMB = "".join(
    f'<xacro:macro name="m{k}"><xacro:m{k + 1}/><xacro:m{k + 1}/></xacro:macro>'
    if k < 30
    else '<xacro:macro name="m30"><x/></xacro:macro>'
    for k in range(31)
)
HOSTILE = {
    "import": ("<x a=\"${__import__('os').system('true')}\"/>", "the name '__import__' is not allowed"),
    "builtins": ('<x a="${__builtins__}"/>', "'__builtins__' is not allowed"),
    "class": ('<x a="${().__class__.__bases__}"/>', "the attribute '__class__' is not allowed"),
    "class of a function": ('<x a="${len.__self__}"/>', "'__self__' is not allowed"),
    "template": ("<x a=\"${'a'.format(1)}\"/>", "has no 'format' that a description may use"),
    "open": ("<x a=\"${open('/etc/passwd')}\"/>", "no property is named 'open' here"),
    "eval": ("<x a=\"${eval('1')}\"/>", "no property is named 'eval' here"),
    "eval of arguments": ('<x a="$(eval __import__)"/>', "'__import__' is not allowed"),
    "walrus": ('<x a="${(z := 1)}"/>', "NamedExpr is not allowed"),
    "yield": ('<x a="${(yield)}"/>', "not allowed|not an expression"),
    "assignment": ('<x a="${a = 1}"/>', "is not an expression"),
    "bytes": ("<x a=\"${b'a'}\"/>", "is not a value of a robot description"),
    "power": ('<x a="${9**9**9**9}"/>', "is too large"),
    "shift": ('<x a="${1 &lt;&lt; 10**9}"/>', "is too large"),
    "factorial": ('<x a="${factorial(10**6)}"/>', "factorial of more than 1000"),
    "long text": ("<x a=\"${'a' * 10**9}\"/>", "is too long"),
    "long list": ('<x a="${[0] * 10**9}"/>', "is too long"),
    "lists of lists": (
        '<x a="${[[[[0]*1000]*1000]*1000]}"/>',
        "more than 100000 characters or entries",
    ),
    "list bomb": (
        "".join(f'<xacro:property name="p{k + 1}" value="${{[p{k}]*100}}"/>' for k in range(9))
        + '<xacro:property name="p0" value="1"/><x a="${p9}"/>',
        "more than 100000 characters or entries",
    ),
    "text bomb": (
        "".join(f'<xacro:property name="p{k + 1}" value="${{p{k} + p{k}}}"/>' for k in range(40))
        + '<xacro:property name="p0" value="\'aaaaaaaa\'"/><x a="${p40}"/>',
        "more than 100000 characters or entries",
    ),
    "wide format": ("<x a=\"${'%1000000000d' % 1}\"/>", "is too wide"),
    "computed width": ("<x a=\"${'%*d' % (10**9, 1)}\"/>", "is too wide"),
    "range": ('<x a="${range(10**12)}"/>', "range has 1000000000000 entries"),
    "long loops": ('<x a="${[i for i in range(9999) for j in range(9999)]}"/>', "more than 100000 steps"),
    "replace": ("<x a=\"${('a' * 9999).replace('a', 'b' * 9999)}\"/>", "too long"),
    "join": ("<x a=\"${('a' * 9999).join('b' * 9999)}\"/>", "too long"),
    "deep": (f'<x a="${{{"(" * 300}1{")" * 300}}}"/>', "nested|parentheses"),
    "unary": (f'<x a="${{{"-" * 3000}1}}"/>', "nested"),
    "long expression": (f'<x a="${{{"1+" * 3000}1}}"/>', "has 6001 characters"),
    "endless recursion": ('<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>', "does a macro call itself"),
    "two macros": (
        '<xacro:macro name="a"><xacro:b/></xacro:macro><xacro:macro name="b"><xacro:a/></xacro:macro><xacro:a/>',
        "does a macro call itself",
    ),
    "billion laughs": (BOMB + "<xacro:m0/>", "more than 200000 elements|more than 100000 steps"),
    "block in itself": (
        '<xacro:property name="b"><xacro:insert_block name="b"/></xacro:property><xacro:insert_block name="b"/>',
        "nested deeper than",
    ),
    "include itself": ('<xacro:include filename="r.xacro"/>', "circle|nested deeper|files are included"),
    "circular properties": (
        '<xacro:property name="a" value="${b}"/><xacro:property name="b" value="${a}"/><x a="${a}"/>',
        "properties are defined by each other: a → b → a",
    ),
    "lambda": ('<x a="${(lambda f: f(f))(lambda f: f(f))}"/>', "calls itself without end|nested|steps"),
    "entities": ('<!DOCTYPE x [<!ENTITY a "b">]><x a="&a;"/>', "not XML|document type"),
    "device": ('<xacro:include filename="/dev/zero"/>', "not an ordinary file"),
    "no file": ('<xacro:include filename="gone.xacro"/>', "there is no such file"),
    "no macro": ("<xacro:gone/>", "no macro is named 'gone' here"),
    "no namespace": ("<xacro:N.gone/>", "no file is included with the namespace 'N'"),
    "no parameter": ('<xacro:macro name="m" params="a"/><xacro:m/>', "the macro 'm' needs 'a'"),
    "another parameter": ('<xacro:macro name="m"/><xacro:m b="1"/>', "the macro 'm' has no parameter 'b'"),
    "no block": ('<xacro:macro name="m" params="*b"/><xacro:m/>', r"needs a block for '\*b'"),
    "another block": ('<xacro:macro name="m"/><xacro:m><x/></xacro:m>', "takes no block <x>"),
    "unknown block": ('<xacro:insert_block name="b"/>', "no block is named 'b' here"),
    "unclosed": ('<x a="${1"/>', "not closed"),
    "no argument": ('<x a="$(arg left)"/>', "the argument 'left' has no value"),
    "no package": ('<x a="$(find gone)"/>', "the package 'gone' was not found"),
    "no variable": ('<x a="$(env COADJOINT_NONE)"/>', "the environment variable 'COADJOINT_NONE' is not set"),
    "command": ('<x a="$(anon x)"/>', r"\$\(anon x\) is not understood"),
    "neither": ('<xacro:if value="maybe"/>', "'maybe', which is neither true nor false"),
    "fatal": ("<x a=\"${xacro.fatal('wrong arm')}\"/>", "the description says: wrong arm"),
    "division": ('<x a="${1/0}"/>', "ZeroDivisionError"),
    "wrong types": ("<x a=\"${1 + 'a'}\"/>", "TypeError"),
    "forwarded": ('<xacro:macro name="m" params="a:=^"/><xacro:m/>', "no property 'a' is there to be passed on"),
    "name of a property": ('<xacro:property name="a-b" value="1"/>', "needs a name of letters"),
    "keyword of a property": ('<xacro:property name="if" value="1"/>', "not a word of Python"),
    "argument without a default": ('<xacro:arg name="a"/>', 'the attribute "default" is missing'),
    "abs": ('<x a="${abs(-1)}"/>', "no property is named 'abs' here"),
    "yaml objects": ("<x a=\"${xacro.load_yaml('evil.yaml')}\"/>", "not YAML"),
    "yaml bomb": ("<x a=\"${xacro.load_yaml('bomb.yaml')}\"/>", "more than 100000"),
    "yaml in itself": ("<x a=\"${xacro.load_yaml('self.yaml')}\"/>", "more than 100000"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_and_wrong_files_are_refused_by_name(name, folder, monkeypatch) -> None:
    monkeypatch.setattr(values, "MOST_WORK", 100_000)  # a tenth of what users wait for
    (folder / "evil.yaml").write_text("a: !!python/object/apply:os.system ['true']\n")
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 12)]
    (folder / "bomb.yaml").write_text("\n".join(lines))
    (folder / "self.yaml").write_text("&a [*a, *a]")
    text, message = HOSTILE[name]
    path = written(folder, text)
    with pytest.raises(CoadjointError, match=message) as caught:
        cj.load(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 1500


def test_arguments_are_checked(folder) -> None:
    path = written(folder, ARM)
    with pytest.raises(CoadjointError, match="arguments is 3"):
        cj.load(path, arguments=3)
    with pytest.raises(CoadjointError, match=r"arguments are those of a \.xacro file; 'panda' is none"):
        cj.load("panda", arguments={"a": 1})
    with pytest.raises(CoadjointError, match="packages: 'a' is at 'gone'"):
        cj.load(path, packages={"a": "gone"})
    with pytest.raises(CoadjointError, match="packages is 'a'"):
        cj.load(path, packages="a")
