"""XML documents that would grow, fetch or reach other files if their reader let them."""


def laughs(n: int = 12) -> str:
    """Entities each ten times the one before: a few hundred bytes that would grow to 10ⁿ."""
    entities = "".join(f'<!ENTITY x{k} "{f"&x{k - 1};" * 10}">' for k in range(1, n))
    return f'<!DOCTYPE robot [<!ENTITY x0 "ha">{entities}]><robot name="&x{n - 1};"><link name="a"/></robot>'


HOSTILE = {
    "billion laughs": laughs(),
    "quadratic": f'<!DOCTYPE robot [<!ENTITY x "{"ha" * 50_000}">]><robot name="r"><link name="{"&x;" * 1000}"/></robot>',
    "external entity": '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r"><link name="a"/>&x;</robot>',
    "parameter entity": '<!DOCTYPE robot [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]><robot name="r"/>',
    "external type": '<!DOCTYPE robot SYSTEM "http://127.0.0.1:9/robot.dtd"><robot name="r"/>',
    "default attribute": '<!DOCTYPE robot [<!ATTLIST robot name CDATA "r">]><robot><link name="a"/></robot>',
}
