"""The reference: every public name has an example, the examples run, and what they return is what the annotations say."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import types
import typing
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import coadjoint as cj

DOCS = Path(__file__).parents[1] / "docs"


def loaded(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = loaded(DOCS / "_names.py")
PAGES = sorted(DOCS.glob("examples*.md"))
LONG = {"examples-motion", "examples-identification"}
"""They fit, plan and draw."""


def test_every_public_name_has_an_example():
    found = NAMES.examples()
    assert len(NAMES.wanted()) > 450
    assert [name for name in NAMES.wanted() if name not in found] == []


def test_every_public_name_says_what_it_returns():
    bare = [name for name in NAMES.wanted() if not inspect.getdoc(NAMES.resolved(name))]
    assert bare == []


def test_what_is_left_out_of_the_reference_exists():
    for name, hidden in NAMES.INTERNAL.items():
        assert hidden <= set(dir(NAMES.resolved(name))), name


class Witness(ast.NodeTransformer):
    """Calls and attributes of a page, told to `called` and `used` when they are evaluated."""

    def visit_Call(self, node):
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name("_called", ast.Load()), [node.func, *node.args], node.keywords), node)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        seen = ast.Call(ast.Name("_used", ast.Load()), [node.value, ast.Constant(node.attr)], [])
        return ast.copy_location(ast.Attribute(seen, node.attr, node.ctx), node)


def agrees(value: object, hint: object) -> bool:
    """Whether a value is what an annotation says; annotations that say nothing agree with everything."""
    if hint is typing.Any or isinstance(hint, str | typing.TypeVar):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(agrees(value, x) for x in inner)
    if origin is tuple:
        whole = inner[-1:] == (Ellipsis,)
        return (
            isinstance(value, tuple)
            and (whole or len(value) == len(inner))
            and all(agrees(x, inner[0] if whole else hint) for x, hint in zip(value, value if whole else inner))
        )
    if origin is list:
        return isinstance(value, list) and all(agrees(x, inner[0]) for x in value)
    if hint is np.ndarray:
        return isinstance(value, np.ndarray | np.generic | float | int)  # NumPy's own results of no axes
    if hint is float:
        return isinstance(value, float | int | np.floating | np.integer)
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) and not getattr(kind, "_is_protocol", False) else True


def returned(function: object) -> object:
    """What a function says that it returns; names that only type checkers import are looked up among the public ones."""
    text = getattr(function, "__annotations__", {}).get("return", "Any")
    names = {name: getattr(cj, name) for name in cj.__all__} | {"Any": typing.Any} | getattr(function, "__globals__", {})
    try:
        return eval(text, names) if isinstance(text, str) else text
    except NameError:
        return typing.Any


@pytest.mark.native
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.stem in LONG else (), id=page.stem) for page in PAGES],
)
def test_examples_run_and_annotations_are_true(page, tmp_path, monkeypatch):
    """All blocks of a page; what is shown as a method of a class was taken from one; results are what the signature says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    seen: set[str] = set()

    def used(value, name):
        for kind in (value if isinstance(value, type) else type(value)).__mro__:
            seen.add(f"{kind.__name__}.{name}")
        return value

    def called(function, *arguments, **options):
        result = function(*arguments, **options)
        if str(getattr(function, "__module__", None)).startswith("coadjoint.") and not isinstance(function, type):
            hint = returned(inspect.unwrap(function))
            assert agrees(result, hint), (function, type(result), hint)
        return result

    names = {"__name__": page.stem, "_used": used, "_called": called}
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        if all(map(find_spec, re.findall(r"^import (casadi)\b", block, re.MULTILINE))):
            exec(compile(ast.fix_missing_locations(Witness().visit(ast.parse(block))), str(page), "exec"), names)
    for name, (_, where) in NAMES.examples().items():
        owner, _, member = name.rpartition(".")
        if where == page.stem and inspect.isclass(thing := getattr(cj, owner, None) or (owner and NAMES.resolved(owner))):
            assert f"{thing.__name__}.{member}" in seen, name
