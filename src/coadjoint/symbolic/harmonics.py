"""From e^{iθ} back to sines and cosines, in the form that reads best.

Angles of joints with parallel axes add up, so that cos(q₂ + q₃) is their natural form; for other joints it is the product cos q₂
cos q₃. Hence a polynomial is written in products over *runs* (joints with parallel axes, one after the other) of a sine or
cosine of a whole combination of the run's angles. Then terms with equal cofactors are combined:

    A + A cos 2θ = 2A cos²θ      A cos α + A cos β = 2A cos ½(α + β) cos ½(α - β)      and so on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..robot.robot import Robot
from .formula import Symbol, Trig
from .ring import Poly

Monomial = tuple[tuple[Symbol | Trig, int], ...]
"""Symbols, sines and cosines with their powers."""

_Angle = tuple[tuple[tuple[int, float], int], ...]
"""Pairs of (coordinate, unit) and a whole number: the angle is the sum of their products. The first number is positive."""
_Wave = tuple[str, _Angle]
"""("cos", "sin", "cos²" or "sin²", angle); the cosine of the empty angle is 1."""

_ONE: _Wave = ("cos", ())
_EQUAL = 1e-11


def runs(robot: Robot) -> list[int]:
    """The run to which every coordinate of q belongs: turning joints whose axes are parallel in every configuration."""
    axis: dict[int, np.ndarray | None] = {-1: None}
    last: dict[int, int] = {-1: -1}
    run = list(range(robot.nq))
    for i in robot.order:
        joint, parent = robot.links[i].joint, robot.parents[i]
        before = axis[parent]
        axis[i], last[i] = None if before is None else robot.placements[i][:3, :3].T @ before, last[parent]
        if robot.kind(i).quaternion is not None:
            axis[i] = None
        for k, screw in robot.kind(i).angles:
            q, w, before = robot.q_slice(joint.name).start + k, robot.joint_screws(i)[screw, :3], axis[i]
            if before is not None and np.linalg.norm(np.cross(w, before)) < 1e-9:
                run[q] = run[last[i]]
            axis[i], last[i] = w, q
    return run


def real_terms(poly: Any, run: Sequence[int]) -> dict[Monomial, float]:
    """The polynomial, or number, as products of symbols, sines and cosines, each with its coefficient."""
    if not isinstance(poly, Poly):
        return {(): float(poly)} if poly else {}
    total: dict[Any, complex] = defaultdict(complex)
    size: dict[Any, float] = defaultdict(float)
    for key, x in poly.terms.items():
        plain, turns = [], defaultdict(list)
        for k, e in sorted(poly.ring.exponents(key).items()):
            generator = poly.ring.generators[k]
            if isinstance(generator, Symbol):
                plain.append((generator, e))
            else:
                turns[run[generator[0]]].append((generator, e))
        for waves, factor in _expanded(turns):
            place = (tuple(plain), waves)
            total[place] += x * factor
            size[place] += abs(x * factor)
    families: dict[Any, dict[Any, float]] = defaultdict(dict)
    for (symbols, waves), x in total.items():
        if abs(x) > _EQUAL * size[symbols, waves]:
            families[symbols][waves] = x.real
    terms = {(plain, (), waves): x for plain, family in families.items() for waves, x in _squared(family).items()}
    return {(*plain, *waves): x for (plain, waves, _), x in _merged(terms).items()}


def _expanded(turns: Mapping[int, list[tuple[Any, int]]]) -> list[tuple[tuple[tuple[int, _Wave], ...], complex]]:
    """Π e^{iθ}, one θ a run, as a sum of products of cosines and sines."""
    products: list[tuple[tuple[tuple[int, _Wave], ...], complex]] = [((), 1.0)]
    for r in sorted(turns):
        angle, sign = _positive(tuple(sorted(turns[r])))
        waves = (("cos", 1.0), ("sin", 1j * sign))
        products = [((*p, (r, (function, angle))), f * g) for p, f in products for function, g in waves]
    return products


def _positive(angle: _Angle) -> tuple[_Angle, int]:
    """The angle or its negative, whichever begins with a positive number, and the sign."""
    sign = 1 if not angle or angle[0][1] > 0 else -1
    return tuple((which, sign * e) for which, e in angle), sign


def _squared(terms: dict[Any, float]) -> dict[Any, float]:
    """The terms with squares instead of 1 and cos 2θ, wherever that leaves fewer terms."""
    doubled = {(run, wave) for waves in terms for run, wave in waves if wave[0] == "cos" and _half(wave[1], (), 1) is not None}
    improved = True
    while improved:
        improved = False
        for run, wave in sorted(doubled):
            candidates = [_in_squares(terms, run, wave[1], basis) for basis in (("1", "sin²"), ("1", "cos²"), ("sin²", "cos²"))]
            best = min(candidates, key=len)
            if len(best) < len(terms):
                terms, improved = best, True
                doubled.remove((run, wave))
                break
    return terms


def _in_squares(terms: dict[Any, float], run: int, double: _Angle, basis: tuple[str, str]) -> dict[Any, float]:
    """A + B cos 2θ, for every cofactor, in another basis."""
    half = _half(double, (), 1)
    changed: dict[Any, float] = {}
    pairs: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for waves, x in terms.items():
        own = next((wave for r, wave in waves if r == run), _ONE)
        rest = tuple(item for item in waves if item[0] != run)
        if own in (_ONE, ("cos", double)):
            pairs[rest][own != _ONE] = x
        else:
            changed[waves] = x
    for rest, (a, b) in pairs.items():
        forms = {("1", "sin²"): (a + b, -2 * b), ("1", "cos²"): (a - b, 2 * b), ("sin²", "cos²"): (a - b, a + b)}
        for square, x in zip(basis, forms[basis], strict=True):
            if abs(x) > _EQUAL * (abs(a) + abs(b)):
                own = () if square == "1" else ((run, (square, half)),)
                changed[tuple(sorted((*rest, *own)))] = x
    return changed


def _merged(terms: dict[Any, float]) -> dict[Any, float]:
    """Run after run, the waves with the same cofactor rewritten; keys are (symbols, trigs written, waves to be written)."""
    for r in sorted({run for _, _, waves in terms for run, _ in waves}):
        families: dict[Any, dict[_Wave, float]] = defaultdict(dict)
        for (plain, written, waves), x in terms.items():
            own = next((wave for run, wave in waves if run == r), _ONE)
            rest = tuple(item for item in waves if item[0] != r)
            families[plain, written, rest][own] = x
        terms = {}
        for (plain, written, rest), waves in families.items():
            for trigs, x in _rewritten(waves):
                place = (plain, written + trigs, rest)
                terms[place] = terms.get(place, 0.0) + x
    return {place: x for place, x in terms.items() if x}


def _rewritten(waves: dict[_Wave, float]) -> list[tuple[tuple[tuple[Trig, int], ...], float]]:
    """A sum of waves with as few terms as products allow."""
    left = sorted(waves.items(), key=lambda item: (item[0] == _ONE, -abs(item[1]), item[0]))
    result = []
    while left:
        wave, a = left.pop(0)
        for k, (other, b) in enumerate(left):
            both = _product(wave, a, other, b)
            if both is not None:
                del left[k]
                result.append(both)
                break
        else:
            result += _halves(wave, a, left)
    return result


def _product(first: _Wave, a: float, second: _Wave, b: float) -> tuple[tuple[tuple[Trig, int], ...], float] | None:
    """a first + b second as one product, if |a| = |b| and the angles halve."""
    if first[0] != second[0] or first[0] not in ("sin", "cos") or abs(abs(a) - abs(b)) > _EQUAL * abs(a):
        return None
    mean, half = _half(first[1], second[1], 1), _half(first[1], second[1], -1)
    if mean is None or half is None:
        return None
    same = a * b > 0
    if first[0] == "cos":
        functions, factor = (("cos", "cos"), 2 * a) if same else (("sin", "sin"), -2 * a)
    else:
        functions, factor = (("sin", "cos"), 2 * a) if same else (("cos", "sin"), 2 * a)
    return _trigs(zip(functions, (mean, half), strict=True), factor)


def _half(first: _Angle, second: _Angle, sign: int) -> _Angle | None:
    """½ (first ± second), if whole."""
    total = dict(first)
    for which, e in second:
        total[which] = total.get(which, 0) + sign * e
    if any(e % 2 for e in total.values()):
        return None
    return tuple((which, e // 2) for which, e in sorted(total.items()) if e)


def _halves(wave: _Wave, a: float, left: list[tuple[_Wave, float]]) -> list[tuple[tuple[tuple[Trig, int], ...], float]]:
    """A wave by itself; ½ sin 2θ as sin θ cos θ, and 1½ + ½ cos 2θ as 1 + cos²θ, so that no fractions are left."""
    function, angle = wave
    half = _half(angle, (), 1)
    if function not in ("sin", "cos") or not angle or half is None or a != round(2 * a) / 2 or a == round(a):
        return [_trigs([wave], a)]
    if function == "sin":
        return [_trigs([("sin", half), ("cos", half)], 2 * a)]
    constant = next((k for k, (other, _) in enumerate(left) if other == _ONE), None)
    if constant is None:
        return [_trigs([wave], a)]
    _, b = left.pop(constant)
    return [_trigs([_ONE], b - a), _trigs([("cos", half), ("cos", half)], 2 * a)]


def _trigs(waves: Any, factor: float) -> tuple[tuple[tuple[Trig, int], ...], float]:
    """A product of waves as sines and cosines with powers."""
    found: dict[Trig, int] = {}
    for function, angle in waves:
        angle, sign = _positive(angle)
        if not angle and function == "cos":
            continue
        if function == "sin":
            factor *= sign if angle else 0
        trig = Trig(function[:3], tuple((which, e * unit) for (which, unit), e in angle))
        found[trig] = found.get(trig, 0) + (2 if function.endswith("²") else 1)
    return tuple(found.items()), factor
