"""The site of the documentation: `python -m sphinx -W docs build/site`, from the pages beside this file and from the docstrings.

Needs the extra `docs`. Nothing is fetched when the pages are built or read: formulas are MathML (`_mathml.py`), and the search works
from disk.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import sys
from pathlib import Path
from typing import Any

import coadjoint as cj

sys.path.insert(0, str(Path(__file__).parent))
import _names

project = "coadjoint"
author = "The coadjoint developers"
version = release = cj.__version__
html_title = f"coadjoint {version}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "_mathml"]
myst_enable_extensions = ["amsmath", "dollarmath"]
html_math_renderer = "mathml"
html_theme = "furo"
exclude_patterns = ["pictures/*.html", "_gallery"]
html_extra_path = ["_gallery"]
html_css_files = ["site.css"]
html_static_path = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_js_files = [(None, {"body": "if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;"})]
"""A page from disk may not read others: there the search lists titles alone, and raises no errors."""
myst_heading_anchors = 4
myst_all_links_external = False
suppress_warnings = [
    "myst.xref_missing"
]  # README and CONTRIBUTING stand outside of this folder; tests/test_docs.py follows every link
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Vector")}
autodoc_member_order = "bysource"
add_module_names = False
smartquotes = False

HERE = Path(__file__).parent
GALLERY = HERE / "_gallery" / "gallery"
GALLERY.mkdir(parents=True, exist_ok=True)  # Sphinx asks for it before it calls anything
REFERENCE = HERE / "reference"
TITLES = {
    "arrays": "Arrays",
    "compiling": "Compiled functions",
    "constraints": "Constraints and impacts",
    "costs": "Costs of optimal control",
    "design.objectives": "Objectives of design",
    "design.studies": "Studies of design",
    "differentiating": "Derivatives of functions",
    "explaining": "What a function costs",
    "export": "Functions in other languages",
    "identification": "Identification",
    "interop": "Other libraries",
    "kinematics": "Kinematics and inverse kinematics",
    "lie.inertia": "Inertias",
    "lie.quaternion": "Quaternions",
    "lie.screw": "Screws",
    "lie.se3": "Rigid motions, SE(3)",
    "lie.so3": "Rotations, SO(3)",
    "motion": "Simulation, logs, linear models",
    "optimal": "Optimal motion and control",
    "robot": "Robots",
    "scale": "Large arrays and streams",
    "show": "Pages",
    "symbolic": "Equations",
}


def write_reference() -> None:
    """One page for each part of the library, with every public name of it."""
    REFERENCE.mkdir(exist_ok=True)
    parts = _names.parts()
    for part, names in parts.items():
        title = TITLES.get(part, part.capitalize())
        lines = [title, "=" * len(title), ""]
        for name in names:
            kind = "class" if inspect.isclass(_names.resolved(name)) else "function"
            lines += [f".. auto{kind}:: coadjoint.{name}", *(members(name) if kind == "class" else []), ""]
        _write(REFERENCE / f"{part}.rst", "\n".join(lines))
    pages = "\n".join(f"   reference/{part}" for part in parts)
    text = "Every public name, by part, with an example that the tests run."
    _write(HERE / "reference.rst", f"Reference\n=========\n\n{text}\n\n.. toctree::\n   :maxdepth: 1\n\n{pages}\n")


def members(name: str) -> list[str]:
    """The options for the entry of a class: its members, also those of bases that have no entry, but none that are internal."""
    hidden = sorted(_names.INTERNAL.get(name, ()))
    others = [x.__name__ for x in _names.resolved(name).__mro__ if x not in _names.bases(name)]
    inherited = [f"   :inherited-members: {', '.join(others)}"] if len(_names.bases(name)) > 1 else []
    return ["   :members:", *inherited, *([f"   :exclude-members: {', '.join(hidden)}"] if hidden else [])]


def write_gallery() -> None:
    """The live page of every notebook's motion, as `gallery/NAME.html` of the site."""
    for notebook in sorted((HERE / "notebooks").glob("*.py")):
        names: dict[str, Any] = {"__name__": notebook.stem}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(notebook.read_text(encoding="utf-8"), str(notebook), "exec"), names)
        _write(GALLERY / f"{notebook.stem}.html", cj.report(names["motion"].robot, motion=names["motion"]))


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def as_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A docstring as it stands: names in backticks are code, indented lines are formulas, and nothing else is markup."""
    found: list[str] = []
    for block in re.split(r"\n[ \t]*\n", "\n".join(lines).strip("\n")):
        rows = block.split("\n")
        if all(row.startswith(("    ", "\t")) for row in rows if row.strip()):
            found += ["::", "", *(f"    {row.strip()}" for row in rows), ""]
        else:
            found += [_escaped(" ".join(row.strip() for row in rows)), ""]
    lines[:] = found + example(name)


def example(name: str) -> list[str]:
    """The example of a name as text of its entry, with the page that runs it."""
    if name not in EXAMPLES:
        return []
    text, page = EXAMPLES[name]
    return [f"Example, from :doc:`/{page}`:", "", ".. code-block:: python", "", *(f"    {row}" for row in text.split("\n")), ""]


def _escaped(text: str) -> str:
    pieces = re.split(r"(``[^`]+``|`[^`]+`)", text)
    plain = [re.sub(r"([*|_\\`])", r"\\\1", x) if k % 2 == 0 else f"``{x.strip('`')}``" for k, x in enumerate(pieces)]
    return "".join(f"\\ {x}\\ " if k % 2 else x for k, x in enumerate(plain)).strip()


def plain_aliases(app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None) -> Any:
    """A signature in which `Array` within other types is that word, too, not how Sphinx holds it."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returned))


EXAMPLES = {f"coadjoint.{name}": found for name, found in _names.examples().items()}


def setup(app: Any) -> None:
    app.connect("builder-inited", lambda app: write_reference())
    app.connect("builder-inited", lambda app: write_gallery())
    app.connect("autodoc-process-docstring", as_text)
    app.connect("autodoc-process-signature", plain_aliases)
