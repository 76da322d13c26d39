"""Sound descriptions of robots that the mutants are made of, and the words that faults put into them."""

from __future__ import annotations

_words = str.split
URDF = """<robot name="r"><link name="base"/><link name="a"><inertial><origin xyz="0 .1 0" rpy="0 0 1"/><mass value="1"/>
<inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial></link><link name="b"><inertial><mass value="2"/><inertia
ixx=".1" ixy=".01" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial></link><link name="c"/><joint name="ja" type="revolute">
<parent link="base"/><child link="a"/><origin xyz="0 0 1" rpy="1 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="3"
velocity="2"/><dynamics damping=".1" friction=".2" armature=".01"/></joint><joint name="jb" type="prismatic"><parent link="a"/>
<child link="b"/><axis xyz="1 0 0"/><limit lower="0" upper="1" effort="3" velocity="2"/><mimic joint="ja" multiplier="2"
offset=".1"/></joint><joint name="jc" type="fixed"><parent link="b"/><child link="c"/><origin xyz="1 0 0"/></joint>
<coadjoint gravity="0 0 -9.81"/></robot>"""
MJCF = """<mujoco model="m"><compiler angle="radian"/><option gravity="0 0 -9.81"/><default><joint damping=".1"/><default class="c">
<geom size=".1"/></default></default><worldbody><body name="a" pos="0 0 1"><freejoint/><geom size=".1" mass="1"/><body name="b"
quat="1 0 0 0"><joint name="jb" type="hinge" axis="0 1 0" pos="0 0 .1" range="-1 1" limited="true" armature=".1"/><inertial mass="1"
pos="0 0 0" diaginertia=".1 .1 .1"/><site name="s" pos="1 0 0"/><body name="c"><joint name="jc" type="slide" axis="1 0 0" ref=".1"/>
<geom class="c" type="capsule" size=".1 .2"/><replicate count="2" offset="1 0 0"><geom size=".1"/></replicate></body></body></body>
</worldbody><equality><joint joint1="jb" joint2="jc"/></equality><actuator><motor joint="jb" gear="3"/></actuator></mujoco>"""
SDF = """<sdf version="1.11"><model name="m" canonical_link="a"><pose>0 0 1 0 0 1</pose><frame name="f" attached_to="a">
<pose degrees="true">0 0 1 0 0 90</pose></frame><link name="base"/><link name="a"><pose relative_to="base">1 0 0 0 0 0</pose>
<inertial><pose>0 1 0 0 0 0</pose><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz><ixy>0</ixy></inertia></inertial><visual
name="v"><geometry><box><size>1 1 1</size></box></geometry><material><diffuse>1 0 0 1</diffuse></material></visual><collision name="c">
<geometry><mesh><uri>model://m/a.stl</uri><scale>1 1 1</scale></mesh></geometry></collision></link><link name="b"><pose
rotation_format="quat_xyzw" relative_to="a">0 0 1 0 0 0 1</pose><inertial><mass>2</mass></inertial></link><joint name="fixed"
type="fixed"><parent>world</parent><child>base</child></joint><joint name="ja" type="revolute"><parent>base</parent><child>a</child>
<axis><xyz expressed_in="f">0 0 1</xyz><limit><lower>-1</lower><upper>1</upper><velocity>2</velocity><effort>3</effort></limit><dynamics>
<damping>1</damping><friction>1</friction></dynamics></axis></joint><joint name="jb" type="prismatic"><pose>0 1 0 0 0 0</pose><parent>a
</parent><child>b</child><axis><xyz>1 0 0</xyz><mimic joint="ja"><multiplier>2</multiplier><offset>1</offset><reference>0</reference>
</mimic></axis></joint></model></sdf>"""
SRDF = """<robot name="two"><group name="arm"><joint name="ja"/><chain base_link="base" tip_link="b"/></group><group_state name="home"
group="arm"><joint name="ja" value=".5"/><joint name="jb" value="-1"/></group_state><group_state name="away" group="arm"><joint
name="jb" value="2"/><joint name="gone" value="1 2"/></group_state><disable_collisions link1="a" link2="b" reason="Adjacent"/></robot>"""
XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="prefix" default="left_"/><xacro:property name="m"
value="2"/><xacro:property name="n" value="${m * 1.5}"/><xacro:property name="block"><origin xyz="${m} 0 0"/></xacro:property>
<xacro:macro name="link" params="name mass:=${m} *more"><link name="${name}"><inertial><xacro:insert_block name="more"/><mass
value="${mass}"/><inertia ixx="${1/2}" ixy="0" ixz="0" iyy=".5" iyz="0" izz=".5"/></inertial></link></xacro:macro><link name="base"/>
<xacro:link name="$(arg prefix)a"><origin xyz="0 ${sin(pi/2)} 0"/></xacro:link><xacro:if value="${m == 2}"><xacro:link name="b"
mass="${len([1, 2])}"><xacro:insert_block name="block"/></xacro:link></xacro:if><xacro:unless value="true"><nothing/></xacro:unless>
<xacro:include filename="none.xacro" optional="true"/><xacro:property name="data" value="${xacro.load_yaml('data.yaml')}"/>
<joint name="ja" type="revolute"><parent link="base"/><child link="$(arg prefix)a"/><axis xyz="0 0 1"/><limit lower="${-m}"
upper="${data['limit']}" effort="3" velocity="2"/></joint><joint name="jb" type="fixed"><parent link="$(arg prefix)a"/><child link="b"/>
</joint></robot>"""
YAML = "limit: 1.5\nangle: !degrees 180\nnames: [a, b, {c: 1}]\nflag: true\n"
EXPRESSIONS = [
    *r"""
${  ${}  $()  $(  ${m  ${{m}}  $${m}  ${'${m}'}  ${m}${n}${name}  ${none}  ${m.n}  ${m[0]}  ${*m}  ${m, n}  ${m = 1}  ${m; n}  ${m if n}
$(arg none)  $(arg prefix)  $(find none)  $(env NONE)  $(optenv NONE x)  $(eval m *)  $(dirname)  $(cwd)/../../..  $(anon x)  ${not m}
${1/0}  ${0**-1}  ${10**10**10}  ${2**10000}  ${1 << 10**9}  ${1e308 * 10}  ${nan}  ${inf - inf}  ${1j}  ${round(inf)}  ${int(nan)}
${'a' * 10**10}  ${[0] * 10**10}  ${list(range(10**10))}  ${sum(range(10**10))}  ${'%999999999d' % 1}  ${int('9' * 9999)}
${[i for i in range(10**5) for j in range(10**5)]}  ${[[x for x in range(99)] for y in range(99)]}  ${(lambda: m)()}
${''.__class__}  ${().__class__.__bases__}  ${__import__('os')}  ${open('/etc/passwd')}  ${xacro.load_yaml('/etc/passwd')}
${xacro.load_yaml('data.yaml')}  ${xacro.load_yaml(5)}  ${data}  ${data.limit.x}  ${data['names'][5]}  ${data[data]}
${sin('x')}  ${sqrt(-1)}  ${max()}  ${max([])}  ${float('x')}  ${'{0.x}'.format(m)}  ${'\\ud800'}  ${'\\0'}
${'a'.join(5)}  ${'a'.split('')}  ${'a'.replace(1, 2)}  ${'a'.ljust(10**10)}  ${'%s %s' % m}  ${dict(m=m)[n]}
""".replace("\n", "  ").split("  "),
    *("${" + "(" * 300 + "m" + ")" * 300 + "}", "${" + "-" * 5000 + "1}", "${" + "+".join(["m"] * 3000) + "}"),
]
FILENAMES = [*_words("x.xacro none.xacro data.yaml /dev/zero /etc/passwd *.xacro ** . ../../* package://none/a"), "", "a\0b"]
TAGS = {
    "sdf": _words(
        "model link joint frame pose inertial mass inertia ixx axis axis2 xyz limit lower mimic parent child visual geometry mesh "
        "include world"
    ),
    "srdf": _words("robot group_state joint group chain link virtual_joint passive_joint"),
    "xacro": _words(
        "xacro:property xacro:macro xacro:link xacro:if xacro:unless xacro:include xacro:arg xacro:insert_block xacro:call xacro:element "
        "xacro:attribute xacro:none link joint origin"
    ),
    "urdf": _words("link joint origin inertial mass inertia axis limit mimic dynamics parent child robot coadjoint transmission"),
    "mjcf": _words(
        "body geom joint freejoint default include worldbody mujoco site equality replicate frame attach composite flexcomp compiler "
        "option inertial asset mesh hfield texture size"
    ),
}
KEYS = {
    "sdf": _words(
        "name type relative_to attached_to expressed_in degrees rotation_format canonical_link placement_frame version joint axis"
    ),
    "srdf": _words("name group value link1 joint"),
    "xacro": _words("name value params default scope lazy_eval remove filename ns optional macro xacro:name mass link"),
    "urdf": _words("name link xyz rpy value type ixx izz lower upper velocity effort joint multiplier offset damping gravity"),
    "mjcf": _words(
        "name type pos quat axis range mass size class file count nrow ncol nuser_body memory diaginertia fullinertia joint1 model "
        "childclass offset euler fromto builtin width height spacing"
    ),
}
TYPES = _words("revolute continuous prismatic fixed floating planar spherical ball free hinge slide screw REVOLUTE")
