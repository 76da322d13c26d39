"""The site of the documentation: `python -m sphinx -W docs build/site`, from the pages beside this file and from the docstrings.

Needs the extra `docs`. Nothing is fetched when the pages are built or read: formulas are text, and the search works from disk.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
from pathlib import Path
from typing import Any

import coadjoint as cj

project = "coadjoint"
author = "The coadjoint developers"
version = release = cj.__version__
html_title = f"coadjoint {version}"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
exclude_patterns = ["pictures/*.html", "_gallery"]
html_extra_path = ["_gallery"]
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4
myst_all_links_external = False
suppress_warnings = [
    "myst.xref_missing"
]  # README and CONTRIBUTING stand outside of this folder; tests/test_docs.py follows every link
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False
smartquotes = False

HERE = Path(__file__).parent
GALLERY = HERE / "_gallery" / "gallery"
GALLERY.mkdir(parents=True, exist_ok=True)  # Sphinx asks for it before it calls anything
REFERENCE = HERE / "reference"
TITLES = {
    "": "Kinematics and dynamics",
    "calibration": "Calibration",
    "constraints": "Constraints and impacts",
    "control": "Control",
    "design": "Design",
    "geometry": "Geometry",
    "identification": "Identification",
    "motion": "Simulation, logs, linear models",
    "optimal": "Optimal motion and control",
    "redundancy": "Redundancy",
    "robot": "Robots",
    "symbolic": "Equations",
    "kinematics": "Kinematics and inverse kinematics",
    "dynamics": "Dynamics",
    "show": "Pages",
}


def write_reference() -> None:
    """One page for each part of the library, with every public name of it."""
    parts: dict[str, list[str]] = {}
    for name in sorted(cj.__all__, key=str.lower):
        thing = getattr(cj, name)
        if inspect.ismodule(thing) or not callable(thing):
            continue
        parts.setdefault(thing.__module__.split(".")[1] if "." in thing.__module__ else "", []).append(f"coadjoint.{name}")
    for module in (cj.control, cj.design, cj.identification):
        part = module.__name__.split(".")[1]
        for name in sorted(module.__all__, key=str.lower):
            thing = getattr(module, name)
            if callable(thing) and f"coadjoint.{name}" not in parts.get(part, []):
                parts.setdefault(part, []).append(f"{module.__name__}.{name}")
    REFERENCE.mkdir(exist_ok=True)
    for part, names in parts.items():
        title = TITLES.get(part, part.capitalize() or "Other")
        lines = [title, "=" * len(title), ""]
        for name in names:
            kind = "class" if inspect.isclass(_resolved(name)) else "function"
            lines += [f".. auto{kind}:: {name}", *(["   :members:"] if kind == "class" else []), ""]
        _write(REFERENCE / f"{part or 'core'}.rst", "\n".join(lines))
    pages = "\n".join(f"   reference/{part or 'core'}" for part in sorted(parts))
    _write(
        HERE / "reference.rst", f"Reference\n=========\n\nEvery public name, by part.\n\n.. toctree::\n   :maxdepth: 1\n\n{pages}\n"
    )


def write_gallery() -> None:
    """The live page of every notebook's motion, as `gallery/NAME.html` of the site."""
    for notebook in sorted((HERE / "notebooks").glob("*.py")):
        names: dict[str, Any] = {"__name__": notebook.stem}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(notebook.read_text(encoding="utf-8"), str(notebook), "exec"), names)
        _write(GALLERY / f"{notebook.stem}.html", cj.report(names["motion"].robot, motion=names["motion"]))


def _resolved(name: str) -> Any:
    found: Any = cj
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


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


def examples() -> dict[str, tuple[str, str]]:
    """For public names, the first statement of an executed page that uses each, and the page."""
    found: dict[str, tuple[str, str]] = {}
    for page in sorted(HERE.glob("*.md"), key=lambda path: (path.stem != "examples", path.stem)):
        for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for statement in ast.parse(block).body:
                text = ast.get_source_segment(block, statement) or ""
                for name in re.findall(r"\bcj\.((?:\w+\.)?\w+)", text):
                    if text.count("\n") < 8:
                        found.setdefault(f"coadjoint.{name}", (text, page.stem))
    return found


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


EXAMPLES = examples()


def setup(app: Any) -> None:
    app.connect("builder-inited", lambda app: write_reference())
    app.connect("builder-inited", lambda app: write_gallery())
    app.connect("autodoc-process-docstring", as_text)
