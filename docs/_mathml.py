"""Formulas of the site as MathML, which browsers typeset by themselves: no script, no font to fetch, no network."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

ACCENTS = "˙¨^~¯→"


def mathml(latex: str, display: str = "inline") -> str:
    """The formula as a `<math>` element, with its source as annotation for who copies it."""
    found = re.sub(r"&(?![#\w]+;)", "&amp;", convert(latex, display=display))
    tree = ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", found))
    for element in tree.iter():
        text = element.text or ""
        if text.startswith("\\") or "&" in text or element.get("mathvariant", "normal") != "normal":  # browsers know no other
            known = "align*, cases, pmatrix, \\text, and letters such as \\mathcal{A} in braces"
            raise ValueError(f"no MathML for {text!r} in the formula {latex!r}; what is known: {known}")
        if element.tag in ("mover", "munder") and element[-1].text and element[-1].text in ACCENTS:
            element.set("accent" if element.tag == "mover" else "accentunder", "true")
            element[-1].set("stretchy", "true" if len(element[0]) > 1 else "false")
    tree.set("alttext", latex)
    return ElementTree.tostring(tree, encoding="unicode")


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(f'<span class="math">{mathml(node.astext())}</span>')
    raise SkipNode


def _block(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>\n')
    raise SkipNode
