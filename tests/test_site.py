"""The site of the documentation in a browser, from disk: formulas are typeset, the search finds, and nothing asks a network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import Browser, chromium

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "site"

pytest.importorskip("sphinx")
pytest.importorskip("latex2mathml")
sys.path.insert(0, str(ROOT / "docs"))
from _mathml import mathml  # noqa: E402


def sources():
    """Every formula of the pages, with whether it stands on its own."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for found in re.finditer(r"\$\$(.+?)\$\$|(?<![\\$])\$(?![\s$])([^$]+?)(?<!\s)\$(?!\d)", text, re.DOTALL):
            yield path.name, (found[1] or found[2]).strip(), found[1] is not None


def test_every_formula_has_mathml():
    known = list(sources())
    assert len(known) > 100
    assert sum(alone for _, _, alone in known) > 15
    for page, latex, alone in known:
        found = mathml(latex, "block" if alone else "inline")
        assert "\\" not in re.sub(r' alttext="[^"]*"', "", found), (page, latex)


@pytest.mark.parametrize("latex", [r"\nosuchcommand a", r"a & b", r"\begin{aligned} a &= b \end{aligned}", r"\mathcal A"])
def test_what_is_not_typeset_is_an_error(latex):
    with pytest.raises(ValueError, match="no MathML"):
        mathml(latex)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site of these sources: the one that stands built, where it is of them."""
    if (index := BUILT / "index.html").exists():
        written = (ROOT / "docs", ROOT / "src")
        made = (ROOT / "docs" / "reference", ROOT / "docs" / "_gallery")
        files = [x for folder in written for x in folder.rglob("*.*") if not any(x.is_relative_to(y) for y in made)]
        if index.stat().st_mtime > max(
            x.stat().st_mtime for x in files if "__pycache__" not in x.parts and x.name != "reference.rst"
        ):
            return BUILT
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "docs", str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def page():
    if chromium() is None:
        pytest.skip("no chromium")
    browser = Browser()
    made = browser.page()
    made.size(1200, 900)
    yield made
    made.connection.close()
    browser.close()


SEARCHES = [("impedance", "Control"), ("curvature", "From two screws to curvature"), ("inverse_dynamics", "inverse_dynamics")]
LOADED = "document.readyState === 'complete'"

FORMULAS = """
Array.from(document.querySelectorAll('math'), e => {
  const b = e.getBoundingClientRect(), font = parseFloat(getComputedStyle(e).fontSize);
  return { latex: e.getAttribute('alttext'), width: b.width / font, height: b.height / font, left: b.left, right: b.right,
    colour: getComputedStyle(e).color, around: getComputedStyle(e.parentElement).color };
})"""


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_formulas_are_typeset_by_the_browser(site, page, dark):
    """Each is a `<math>` element with a box of its size, in the colour of the text around it; fractions are higher than lines."""
    page.size(1200, 900, dark)
    count = 0
    for name in sorted({name for name, _, _ in sources()}):
        page.open((site / name).with_suffix(".html").as_uri(), LOADED)
        found = page.run(FORMULAS)
        expected = [latex for at, latex, _ in sources() if at == name]
        assert sorted(x["latex"].strip() for x in found) == sorted(expected), name
        count += len(found)
        for x in found:
            assert 0.3 < x["width"] < 60, x
            assert 0.4 < x["height"] < 8, x  # ω alone is half a line high
            assert x["colour"] == x["around"], x
            if x["latex"].startswith("\\frac{"):
                assert x["height"] > 1.7, x
    assert count > 100


def asks_nobody(page):
    """Every request is of a file, and nothing is said to the console."""
    assert all(url.startswith(("file:", "data:", "blob:")) for url in page.requests), page.requests
    assert not page.errors, page.errors


@pytest.mark.slow
def test_no_page_of_the_site_asks_a_network(site, page):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 60
    for path in pages:
        page.open(path.as_uri(), "window.coadjoint && coadjoint.pictures > 1" if path.parent.name == "gallery" else LOADED)
        asks_nobody(page)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    SEARCHES,
)
def test_the_search_works_from_disk(site, page, words, expected):
    """From the field on the first page, by hand, to the page that is found."""
    page.open((site / "index.html").as_uri(), LOADED)
    page.click("input.sidebar-search")
    page.call("Input.insertText", text=words)
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.wait("location.pathname.endsWith('search.html') && document.querySelectorAll('#search-results li a').length")
    page.wait("/finished|found/.test(document.querySelector('#search-results').textContent)")
    titles = page.run("Array.from(document.querySelectorAll('#search-results li a'), e => e.textContent)")
    assert any(expected in title for title in titles), titles
    asks_nobody(page)
    page.run("document.querySelector('#search-results li a').click()")
    page.wait("!location.pathname.endsWith('search.html') && document.readyState === 'complete'")
    assert page.run("document.querySelector('h1').textContent.length") > 0
