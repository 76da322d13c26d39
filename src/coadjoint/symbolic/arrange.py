"""Ordering and factoring of terms, as a person would write them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .formula import Formula, Power, Product, Sum, Symbol, Trig, parts
from .harmonics import Monomial

Terms = dict[Monomial, float]

_ORDER = {"armature": 0, "mass": 1, "gravity": 2, "inertia": 3, "length": 4, "sum": 5, "q": 6, "trig": 7, "v": 9}
"""The order of the factors in a product; brackets that contain sines or velocities come after these."""
_BRACKETS = ("v", "trig", "q", "mass", "gravity")
"""The kinds of factors that are taken out of brackets if several terms share them, the most frequent first."""
_EQUAL = 1e-11


def kind(atom: Any) -> str:
    return "trig" if isinstance(atom, Trig) else atom.kind if isinstance(atom, Symbol) else "sum"


def arranged(terms: Terms) -> Formula:
    """The sum of the terms as a formula; a quadratic form is grouped by products of velocities."""
    if any(sum(e for atom, e in monomial if kind(atom) == "v") == 2 for monomial in terms):
        return _quadratic(terms)
    return _bracketed(terms) if _has_symbols(terms) else _by_numbers(terms)


def _has_symbols(terms: Terms) -> bool:
    return any(kind(atom) in ("mass", "inertia", "length", "armature") for monomial in terms for atom, _ in monomial)


def _quadratic(terms: Terms) -> Formula:
    forms: dict[Monomial, Terms] = {}
    for monomial, x in terms.items():
        velocities = tuple(item for item in monomial if kind(item[0]) == "v")
        forms.setdefault(velocities, {})[tuple(item for item in monomial if kind(item[0]) != "v")] = x
    ordered = sorted(forms.items(), key=lambda item: [_atom_key(atom) for atom, e in item[0] for _ in range(e)])
    formulas = []
    for velocities, own in ordered:
        half = 0.5 if len(velocities) == 1 and _has_symbols(own) else 1.0  # ½ m v², as it is always written
        inner = arranged({monomial: x / half for monomial, x in own.items()})
        formulas.append(_joined(_product(half, velocities), inner))
    return _sum(formulas)


def _by_numbers(terms: Terms) -> Formula:
    """Terms of numbers, sines and velocities, grouped by their coefficient: equal coefficients stem from one inertia."""
    groups: list[list[tuple[Monomial, float]]] = []
    for monomial, x in sorted(terms.items(), key=lambda item: (bool(item[0]), -abs(item[1]))):
        before = groups[-1][0] if groups else ((), 0.0)
        if before[0] and abs(abs(before[1]) - abs(x)) <= _EQUAL * abs(x):
            groups[-1].append((monomial, x))
        else:
            groups.append([(monomial, x)])
    formulas = []
    for group in groups:
        group.sort(key=lambda item: _monomial_key(item[0]))
        number = group[0][1]
        formulas.append(_times(number, _common({monomial: 1.0 if x * number > 0 else -1.0 for monomial, x in group})))
    return _sum(formulas)


def _common(terms: Terms) -> Formula:
    """The terms with their common factor before a bracket."""
    content = _content(terms)
    if len(terms) == 1 or not content:
        return _sum([_product(x, monomial) for monomial, x in terms.items()])
    rest = {_without(monomial, content): x for monomial, x in terms.items()}
    return _joined(_product(1.0, tuple(content.items())), _common(rest))


def _bracketed(terms: Terms) -> Formula:
    """Terms with symbols for inertias and lengths: shared factors are taken out of brackets, lengths only if none stays inside."""
    if len(terms) <= 1:
        return _sum([_product(x, monomial) for monomial, x in terms.items()])
    content = _content(terms)
    rest = {_without(monomial, content): x for monomial, x in terms.items()}
    if any(kind(atom) == "length" for monomial in rest for atom, _ in monomial):
        content = {atom: e for atom, e in content.items() if kind(atom) != "length"}
        rest = {_without(monomial, content): x for monomial, x in terms.items()}
    number = _common_number(rest)
    if content or number != 1.0:
        inner = _bracketed({monomial: x / number for monomial, x in rest.items()})
        return _joined(_product(number, tuple(content.items())), inner)
    return _sum(sorted(_same_brackets(_groups(terms)), key=_term_key))


def _groups(terms: Terms) -> list[Formula]:
    """The terms grouped in brackets by shared factors, the most frequent factor first."""
    left, groups = dict(terms), list[Formula]()
    while True:
        counts = Counter(atom for monomial in left for atom, _ in monomial if kind(atom) in _BRACKETS)
        shared = [atom for atom, count in counts.items() if count > 1]
        if not shared:
            return groups + _same_lengths(left)
        best = max(shared, key=lambda atom: (counts[atom], -_BRACKETS.index(kind(atom)), _name(atom)))
        own = {monomial: x for monomial, x in left.items() if any(atom == best for atom, _ in monomial)}
        left = {monomial: x for monomial, x in left.items() if monomial not in own}
        groups.append(_bracketed(own))


def _same_brackets(groups: list[Formula]) -> list[Formula]:
    """The groups, those with the same bracket as a factor merged."""
    counts = Counter(x for f in groups if isinstance(f, Product) for x in f.factors if isinstance(x, Sum))
    for bracket, count in counts.items():
        own = [f for f in groups if isinstance(f, Product) and bracket in f.factors]
        if count < 2 or len(own) < 2:
            continue
        rest = [Product(f.coefficient, tuple(x for x in f.factors if x != bracket)) for f in own]
        number = rest[0].coefficient if all(abs(f.coefficient) == abs(rest[0].coefficient) for f in rest) else 1.0
        inner = _sum(sorted((Product(f.coefficient / number, f.factors) for f in rest), key=_term_key))
        outer = Product(number, tuple(sorted((bracket, inner), key=factor_key)))
        groups = [f for f in groups if f not in own] + [outer]
    return groups


def _same_lengths(terms: Terms) -> list[Formula]:
    """The terms, with the masses that multiply the same lengths in one bracket."""
    families: dict[Any, Terms] = {}
    for monomial, x in terms.items():
        masses = tuple(item for item in monomial if kind(item[0]) == "mass")
        lengths = tuple(item for item in monomial if kind(item[0]) != "mass")
        key = (lengths, x) if masses and lengths else (monomial, x)
        families.setdefault(key, {})[masses if masses and lengths else monomial] = x
    groups = []
    for (monomial, x), family in families.items():
        if len(family) == 1:
            (masses,) = family
            groups.append(_product(x, (*masses, *monomial) if masses != monomial else monomial))
        else:
            bracket = _sum([_product(1.0, masses) for masses in sorted(family, key=_monomial_key)])
            groups.append(_joined(_product(x, monomial), bracket))
    return groups


def _content(terms: Terms) -> dict[Any, int]:
    """The common factor of all terms."""
    first, *others = (dict(monomial) for monomial in terms)
    for other in others:
        first = {atom: min(e, other[atom]) for atom, e in first.items() if atom in other}
    return first


def _without(monomial: Monomial, content: dict[Any, int]) -> Monomial:
    return tuple((atom, e - content.get(atom, 0)) for atom, e in monomial if e > content.get(atom, 0))


def _common_number(terms: Terms) -> float:
    """The common coefficient of all terms up to sign, with the sign of the term that will be first."""
    sizes = [abs(x) for x in terms.values()]
    if max(sizes) - min(sizes) > _EQUAL * max(sizes):
        return 1.0
    return min(terms.items(), key=lambda item: _monomial_key(item[0]))[1]


def _product(x: float, monomial: Monomial) -> Formula:
    ordered = sorted(monomial, key=lambda item: factor_key(item[0]))
    return Product(x, tuple(atom if e == 1 else Power(atom, e) for atom, e in ordered))


def _times(x: float, f: Formula) -> Formula:
    if isinstance(f, Product):
        return Product(x * f.coefficient, f.factors)
    return Product(x, (f,)) if x != 1.0 else f


def _joined(outer: Formula, inner: Formula) -> Formula:
    """The product of the two, with its factors in order."""
    if not isinstance(inner, Product):
        inner = Product(1.0, (inner,))
    assert isinstance(outer, Product)
    factors = sorted((*outer.factors, *inner.factors), key=factor_key)
    return Product(outer.coefficient * inner.coefficient, tuple(factors))


def _sum(terms: list[Formula]) -> Formula:
    flat = [x for term in terms for x in (term.terms if isinstance(term, Sum) else (term,))]
    return Product(0.0) if not flat else flat[0] if len(flat) == 1 else Sum(tuple(flat))


def _name(atom: Any) -> str:
    return atom.name if isinstance(atom, Symbol) else str(atom)


def _kinds(f: Any) -> set[str]:
    return {kind(f)} if isinstance(f, Symbol | Trig) else {k for part in parts(f) for k in _kinds(part)}


def factor_key(f: Any) -> tuple[Any, ...]:
    """The sort key of a factor in a product."""
    base = f.base if isinstance(f, Power) else f
    if isinstance(base, Sum):
        inside = _kinds(base)
        return (10 if "v" in inside else 8 if "trig" in inside or "q" in inside else _ORDER["sum"], ())
    return (_ORDER.get(kind(base), 5), _atom_key(base) if isinstance(base, Symbol | Trig) else ())


def _atom_key(atom: Any) -> tuple[Any, ...]:
    """By number, then by letter: m_2 before m_10."""
    if isinstance(atom, Trig):
        return (atom.angle, atom.function != "sin")
    letter, _, index = atom.name.partition("_")
    digits = "".join(x for x in index if x.isdigit())
    return (letter != "l", int(digits or 0), letter, index) if atom.kind == "length" else (int(digits or 0), letter, index)


def _monomial_key(monomial: Monomial) -> tuple[Any, ...]:
    """The sort key of a monomial: masses by their number, then inertias, then the rest; constants before sines and cosines."""
    by_kind = {
        name: [item for item in monomial if kind(item[0]) == name] for name in ("mass", "inertia", "armature", "trig", "v", "q")
    }
    leading = by_kind["mass"] or by_kind["inertia"] or by_kind["armature"]
    rank = 0 if by_kind["mass"] else 1 if by_kind["inertia"] else 2 if by_kind["armature"] else 3
    turns = sum(e for _, e in by_kind["trig"])
    squares = -max((e for atom, e in monomial if kind(atom) == "length"), default=0)
    rest = sorted((factor_key(atom), -e) for atom, e in monomial)
    return (rank, [_atom_key(atom) for atom, _ in leading], [_atom_key(a) for a, _ in by_kind["v"]], turns, squares, rest)


def _term_key(f: Formula) -> Any:
    """The sort key of a term: that of its first product once brackets are expanded."""
    return min(_monomial_key(m) for m in _opened(f))


def _opened(f: Any) -> list[Monomial]:
    if isinstance(f, Symbol | Trig):
        return [((f, 1),)]
    if isinstance(f, Power):
        base: Any = f.base
        return [((base, f.exponent),)]
    if isinstance(f, Sum):
        return [m for term in f.terms for m in _opened(term)]
    monomials: list[Monomial] = [()]
    for factor in f.factors:
        monomials = [(*m, *n) for m in monomials for n in _opened(factor)]
    return monomials
