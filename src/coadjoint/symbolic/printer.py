"""Formulas as strings: plain text, LaTeX, C and Python."""

from __future__ import annotations

import re
from fractions import Fraction

from .formula import Formula, Power, Product, Quotient, Sum, Symbol, Trig

_SUM, _PRODUCT, _ATOM = range(3)
"""Operator precedences, to decide where brackets are needed."""


class Printer:
    """Plain text. `short`: sin(q_2 + q_3) is s_23, to be explained elsewhere. `fractions`: 0.5 is 1/2, as no number is measured."""

    times, plus, minus = " ", " + ", " - "
    negative = "-"
    """The sign before a first term."""

    def __init__(self, digits: int = 17, short: bool = False, fractions: bool = False) -> None:
        self.digits, self.short, self.fractions = digits, short, fractions

    def __call__(self, f: Formula) -> str:
        return self._level(f)[0]

    def lines(self, f: Formula, width: int) -> list[str]:
        """The formula, a sum broken before its signs into lines that are not much wider."""
        if not isinstance(f, Sum):
            return [self(f)]
        lines, terms = [""], [self._term(term, k == 0) for k, term in enumerate(f.terms)]
        for text in terms:
            if lines[-1] and len(lines[-1]) + len(text) > width:
                lines.append("")
            lines[-1] += text
        return [line.strip() for line in lines]

    def number(self, x: float) -> str:
        """A positive number: whole, a simple fraction, or rounded."""
        if x == int(x) and x < 1e6:
            return str(int(x))
        near = Fraction(x).limit_denominator(8)
        if float(near) == x and near.denominator in (2, 4, 8) and near.numerator < 10 and self.fractions:
            return f"{near.numerator}/{near.denominator}"
        return f"{x:.{self.digits}g}"

    def symbol(self, symbol: Symbol) -> str:
        return symbol.name

    def angle(self, trig: Trig) -> str:
        text = ""
        for k, factor in trig.angle:
            sign = (self.negative if factor < 0 else "") if not text else self.minus if factor < 0 else self.plus
            size = "" if abs(factor) == 1 else self.number(abs(factor)) + self.times
            text += sign + size + self.symbol(Symbol(f"q_{k + 1}", "q"))
        return text

    def trig(self, trig: Trig) -> str:
        return f"{trig.function}({self.angle(trig)})"

    def power(self, base: str, exponent: int, of: Formula) -> str:
        return f"{base}^{exponent}"

    def quotient(self, f: Quotient) -> str:
        return f"{self._bound(f.above, _PRODUCT)} / {self._bound(f.below, _ATOM)}"

    def brackets(self, text: str) -> str:
        return f"({text})"

    def _bound(self, f: Formula, level: int) -> str:
        text, own = self._level(f)
        return text if own >= level else self.brackets(text)

    def _level(self, f: Formula) -> tuple[str, int]:
        if isinstance(f, Symbol):
            return self.symbol(f), _ATOM
        if isinstance(f, Trig):
            return (self.symbol(Symbol(short_name(f), "named")) if self.short else self.trig(f)), _ATOM
        if isinstance(f, Power):
            return self.power(self._bound(f.base, _ATOM), f.exponent, f.base), _ATOM
        if isinstance(f, Quotient):
            return self.quotient(f), _PRODUCT
        if isinstance(f, Product):
            return self._product(f)
        return "".join(self._term(term, k == 0) for k, term in enumerate(f.terms)), _SUM

    def _term(self, f: Formula, first: bool) -> str:
        """A term of a sum with its sign."""
        negative = isinstance(f, Product) and f.coefficient < 0
        if negative:
            assert isinstance(f, Product)
            f = Product(-f.coefficient, f.factors)
        text = self._bound(f, _PRODUCT)
        if first:
            return f"{self.negative}{text}" if negative else text
        return (self.minus if negative else self.plus) + text

    def _product(self, f: Product) -> tuple[str, int]:
        size = abs(f.coefficient)
        if not f.factors:
            text = self.number(size)
            return (f"{self.negative}{text}", _SUM) if f.coefficient < 0 else (text, _ATOM)
        if f.coefficient == 1.0 and len(f.factors) == 1:
            return self._level(f.factors[0])
        texts = [self._bound(x, _ATOM) for x in f.factors]
        if size != 1.0:
            texts.insert(0, self.number(size))
        text = self.times.join(texts)
        return (f"{self.negative}{text}", _SUM) if f.coefficient < 0 else (text, _PRODUCT)


def short_name(trig: Trig) -> str:
    """s_23 for sin(q_2 + q_3), s_22 for sin(2 q_2), s_2m3 for sin(q_2 - q_3)."""
    single = all(k < 9 for k, _ in trig.angle)
    parts = []
    for k, factor in trig.angle:
        whole = factor == int(factor) and abs(factor) < 4
        index = ([str(k + 1)] * int(abs(factor))) if whole else [f"{str(abs(factor)).replace('.', 'p')}x{k + 1}"]
        parts.append(("m" if factor < 0 else "") + ("" if single else "_").join(index))
    return f"{trig.function[0]}_{('' if single else '_').join(parts)}"


class Latex(Printer):
    times = r" \, "

    def number(self, x: float) -> str:
        text = super().number(x)
        above, _, below = text.partition("/")
        mantissa, _, exponent = text.partition("e")
        if below:
            return rf"\frac{{{above}}}{{{below}}}"
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else text

    def symbol(self, symbol: Symbol) -> str:
        letter, _, index = symbol.name.partition("_")
        letter = {"v": r"\dot q", "Γ": r"\Gamma"}.get(letter, letter)
        index = index.replace("_", ",").replace("m", "-") if letter in ("s", "c") else index
        return f"{letter}_{{{index}}}" if index else letter

    def trig(self, trig: Trig) -> str:
        simple = len(trig.angle) == 1 and trig.angle[0][1] == 1
        return rf"\{trig.function} {self.angle(trig)}" if simple else rf"\{trig.function}\left({self.angle(trig)}\right)"

    def power(self, base: str, exponent: int, of: Formula) -> str:
        if isinstance(of, Trig) and not self.short:
            name, rest = f"\\{of.function}", base[len(of.function) + 1 :]
            return f"{name}^{{{exponent}}}{rest}"
        return f"{base}^{{{exponent}}}"

    def quotient(self, f: Quotient) -> str:
        return rf"\frac{{{self(f.above)}}}{{{self(f.below)}}}"

    def brackets(self, text: str) -> str:
        return rf"\left({text}\right)"


class MathML(Latex):
    """Presentation MathML, which browsers typeset themselves: a row of elements without the element `math` about them."""

    times, plus, minus, negative = '<mspace width="0.17em"/>', "<mo>+</mo>", "<mo>−</mo>", "<mo form='prefix'>−</mo>"

    def number(self, x: float) -> str:
        text = Printer.number(self, x)
        above, _, below = text.partition("/")
        mantissa, _, exponent = text.partition("e")
        if below:
            return f"<mfrac><mn>{above}</mn><mn>{below}</mn></mfrac>"
        power = f"<mo>·</mo><msup><mn>10</mn><mn>{int(exponent or 0)}</mn></msup>".replace("<mn>-", "<mn>−")
        return f"<mrow><mn>{mantissa}</mn>{power}</mrow>" if exponent else f"<mn>{text}</mn>"

    def symbol(self, symbol: Symbol) -> str:
        letter, _, index = symbol.name.partition("_")
        base = '<mover><mi>q</mi><mo lspace="0" rspace="0">.</mo></mover>' if letter == "v" else f"<mi>{letter}</mi>"
        index = index.replace("_", ",").replace("m", "−") if letter in ("s", "c") else index
        return f"<msub>{base}<mn>{index}</mn></msub>" if index else base

    def trig(self, trig: Trig) -> str:
        simple = len(trig.angle) == 1 and trig.angle[0][1] == 1
        angle = self.angle(trig)
        return f"<mrow><mi>{trig.function}</mi><mo>&#x2061;</mo>{self.times + angle if simple else self.brackets(angle)}</mrow>"

    def power(self, base: str, exponent: int, of: Formula) -> str:
        if isinstance(of, Trig) and not self.short:
            name = f"<mi>{of.function}</mi>"
            return base.replace(name, f"<msup>{name}<mn>{exponent}</mn></msup>", 1)
        return f"<msup><mrow>{base}</mrow><mn>{exponent}</mn></msup>"

    def quotient(self, f: Quotient) -> str:
        return f"<mfrac><mrow>{self(f.above)}</mrow><mrow>{self(f.below)}</mrow></mfrac>"

    def brackets(self, text: str) -> str:
        return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


class C(Printer):
    """C99; symbols are local variables, coordinates and velocities elements of arrays."""

    times = " * "

    def number(self, x: float) -> str:
        return repr(float(x))

    def symbol(self, symbol: Symbol) -> str:
        if symbol.kind in ("q", "v"):
            letter, _, index = symbol.name.partition("_")
            return f"{letter}[{int(index) - 1}]"
        return identifier(symbol.name)

    def power(self, base: str, exponent: int, of: Formula) -> str:
        return f"({' * '.join([base] * exponent)})"


class Python(Printer):
    """Python for SymPy; whole numbers and simple fractions are exact."""

    times = "*"

    def number(self, x: float) -> str:
        if x == int(x) and x < 1e6:
            return str(int(x))
        near = Fraction(x).limit_denominator(1000)
        return f"Rational({near.numerator}, {near.denominator})" if float(near) == x else repr(float(x))

    def symbol(self, symbol: Symbol) -> str:
        return identifier(symbol.name) + ("_" if symbol.kind == "gravity" and symbol.name == "g" else "")

    def power(self, base: str, exponent: int, of: Formula) -> str:
        return f"{base}**{exponent}"


def identifier(name: str) -> str:
    """The name as an identifier of C and Python."""
    return re.sub(r"\W", "_", name.replace("Γ", "Gamma"), flags=re.ASCII)
