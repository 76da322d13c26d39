"""A graph as LaTeX: the equations of its outputs, after those of shared subexpressions. Numbers are rounded for reading; for
computation, export to C, SymPy or CasADi.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ...arguments import a_flag, count_up_to, sequence, takes, whole
from ...errors import CoadjointError
from ..graph import Graph
from ..ops import OPS, TRUTH
from .names import a_graph, new_names, places

_SUM, _PRODUCT, _FUNCTION, _POWER, _ATOM = range(5)
"""Operator precedences, from loose to tight."""


@takes(graph=a_graph, names=new_names, outputs=sequence, digits=count_up_to(100), inline=whole, short=a_flag)
def latex(
    graph: Graph,
    names: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    *,
    digits: int = 6,
    inline: int = 8,
    short: bool = True,
) -> str:
    r"""The equations in an `aligned` environment, for use within mathematics.

    `names` gives LaTeX to input names, {"v": r"\dot q"}; `outputs` to the outputs. Subexpressions that occur more than once and
    have more than `inline` symbols are named x_1, x_2, …; numbers are rounded to `digits` places. With `short`, sin q_1 is s_1 and
    cos q_1 is c_1
    wherever only one input occurs within sines and cosines, as is usual for robots.
    """
    if digits < 1:
        raise CoadjointError(f"digits is {digits}; expected 1 or more.")
    return _Printer(graph, names or {}, outputs, digits, inline, short).equations()


class _Printer:
    def __init__(
        self, graph: Graph, names: Mapping[str, str], outputs: Sequence[str] | None, digits: int, inline: int, short: bool
    ) -> None:
        self.graph = graph
        self.digits = digits
        self.inputs = [
            [_element(names.get(name, name), place) for place in places(shape)]
            for name, shape in zip(graph.input_names, graph.input_shapes, strict=True)
        ]
        taken = {names.get(name, name) for name in graph.input_names}
        if outputs is None:
            letter = _free("yzf", taken)
            several = len(graph.outputs) > 1
            outputs = [f"{letter}^{{({k + 1})}}" if several else letter for k in range(len(graph.outputs))]
            taken.add(letter)
        if not all(isinstance(x, str) for x in outputs):
            raise CoadjointError(f"outputs is {list(outputs)!r:.60}; expected a list of texts.")
        if len(outputs) != len(graph.outputs):
            raise CoadjointError(f"outputs has {len(outputs)} names; expected {len(graph.outputs)}, one for each output.")
        self.outputs = list(outputs)
        self.shared = _free("xzwpr", taken | set(outputs))
        turned = {graph.value[j][0] for op, (j, *_) in self._nodes() if op in ("sin", "cos") and graph.op[j] == "input"}
        clash = any(name in ("s", "c") for name in (*names.values(), *graph.input_names))
        self.short = short and len(turned) == 1 and not clash
        self.turned = turned.pop() if self.short else 0
        self.angle = names.get(graph.input_names[self.turned], graph.input_names[self.turned]) if self.short else ""
        self.uses = [0] * len(graph)
        for args in graph.args:
            for k in args:
                self.uses[k] += 1
        self.inline = inline
        self.formula: list[tuple[str, int]] = []
        self.size: list[int] = []
        self.named: set[int] = set()

    def _nodes(self) -> list[tuple[str, tuple[int, ...]]]:
        return [(op, args) for op, args in zip(self.graph.op, self.graph.args, strict=True) if args]

    def equations(self) -> str:
        """The lines of all equations."""
        graph, lines = self.graph, []
        count = blocks = 0
        for k, op in enumerate(graph.op):
            if op == "block":
                blocks += 1
                lines.append(self._block(k, blocks))
                continue
            text, level = self._formula(k)
            size = self._size(k)
            leaf = op in ("input", "const", "part") or self._short(k) is not None or op in TRUTH
            if not leaf and ((self.uses[k] > 1 and size > self.inline) or size > 12 * self.inline):
                count += 1
                name = f"{self.shared}_{{{count}}}"
                lines.append(f"{name} &= {text}")
                text, level, size = name, _ATOM, 1
                self.named.add(k)
            self.formula.append((text, level))
            self.size.append(size)
        for name, shape, nodes in zip(self.outputs, graph.output_shapes, graph.outputs, strict=True):
            lines += [f"{_element(name, place)} &= {self.formula[k][0]}" for place, k in zip(places(shape), nodes, strict=True)]
        if self.short:
            s, c, angle = (self._indexed(name) for name in ("s", "c", self.angle))
            lines.append(rf"{s} &= \sin {angle}, \quad {c} = \cos {angle}")
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _indexed(self, name: str) -> str:
        """The name with as many letters for indices as the turned input has axes."""
        axes = "ijklmn"[: len(self.graph.input_shapes[self.turned])]
        return f"{name}_{{{axes}}}" if axes else name

    def _size(self, k: int) -> int:
        return 1 + sum(self.size[j] for j in self.graph.args[k]) if self._short(k) is None else 1

    def _short(self, k: int) -> str | None:
        """s_1 or c_1."""
        graph = self.graph
        if self.short and graph.op[k] in ("sin", "cos"):
            j = graph.args[k][0]
            if graph.op[j] == "input":
                argument, place = graph.value[j]
                index = list(places(graph.input_shapes[argument]))[place]
                return _element(graph.op[k][0], index)
        return None

    def _formula(self, k: int) -> tuple[str, int]:
        graph = self.graph
        op, args, value = graph.op[k], graph.args[k], graph.value[k]
        if op == "input":
            return self.inputs[value[0]][value[1]], _ATOM
        if op == "const":
            return self._constant(value)
        if op == "part":
            return self.formula[args[0]][0] % self._place(args[0], value), _ATOM
        if op in ("add", "sub", "neg"):
            return self._sum(k), _SUM
        if op == "mul":
            return self._product(k), _PRODUCT
        if op == "div":
            return rf"\frac{{{self._text(args[0])}}}{{{self._text(args[1])}}}", _POWER
        form = OPS[op].latex
        texts = [self._text(j) for j in args]
        if "{" in form:
            return form.format(*texts), _SUM if op == "where" else _POWER
        if len(args) == 2:
            parts = [self._at_least(j, _PRODUCT) for j in args] if op in ("and", "or") else texts
            return f" {form} ".join(parts), _SUM
        short = self._short(k)
        return (short, _ATOM) if short else (f"{form} {self._at_least(args[0], _ATOM)}", _FUNCTION)

    def _text(self, k: int) -> str:
        return self.formula[k][0]

    def _at_least(self, k: int, level: int) -> str:
        """The formula, in brackets if its precedence is lower."""
        text, own = self.formula[k]
        return text if own >= level else rf"\left({text}\right)"

    def _sum(self, root: int) -> str:
        text = ""
        for sign, k in self._terms(root):
            if text:
                text += " + " if sign > 0 else " - "
            elif sign < 0:
                text = "-"
            text += self._constant(abs(self.graph.value[k]))[0] if self.graph.op[k] == "const" else self._at_least(k, _PRODUCT)
        return text

    def _terms(self, root: int) -> list[tuple[int, int]]:
        """Signs and nodes of a sum, its unnamed parts looked through; a positive one first where there is one."""
        graph = self.graph
        terms, stack = [], [(1, root)]
        while stack:
            sign, k = stack.pop()
            op, args = graph.op[k], graph.args[k]
            if op in ("add", "sub", "neg") and (k == root or k not in self.named):
                second = sign if op == "add" else -sign
                stack += [(second, args[-1])] + ([(sign, args[0])] if len(args) == 2 else [])
            else:
                if op == "const" and graph.value[k] < 0:
                    sign = -sign
                terms.append((sign, k))
        return sorted(terms, key=lambda term: -term[0]) if terms[0][0] < 0 else terms

    def _product(self, root: int) -> str:
        """A number, then letters, then functions and sums; equal factors as powers."""
        graph = self.graph
        number = 1.0
        powers: dict[int, int] = {}
        stack = [root]
        while stack:
            k = stack.pop()
            if graph.op[k] == "mul" and (k == root or k not in self.named):
                stack += reversed(graph.args[k])
            elif graph.op[k] == "const":
                number *= graph.value[k]
            else:
                powers[k] = powers.get(k, 0) + 1
        texts = [] if abs(number) == 1.0 else [self._constant(abs(number))[0]]
        for k in sorted(powers, key=lambda k: (self._rank(k), k)):
            texts.append(self._raised(k, powers[k]))
        return ("-" if number < 0 else "") + r" \, ".join(texts)

    def _rank(self, k: int) -> int:
        level = self.formula[k][1]
        return {_ATOM: 0, _POWER: 1, _SUM: 2, _PRODUCT: 2, _FUNCTION: 3}[level]

    def _raised(self, k: int, power: int) -> str:
        if power == 1:
            return self._at_least(k, _FUNCTION)
        text, level = self.formula[k]
        if level == _FUNCTION:
            name, _, argument = text.partition(" ")
            return f"{name}^{{{power}}} {argument}"
        return f"{self._at_least(k, _ATOM)}^{{{power}}}"

    def _constant(self, x: float) -> tuple[str, int]:
        text = number(abs(x), self.digits)
        return (f"-{text}", _SUM) if x < 0 else (text, _PRODUCT if r"\cdot" in text else _ATOM)

    # Blocks

    def _place(self, block: int, part: int) -> tuple[int, int]:
        m = self.graph.value[block][2]
        return part // m + 1, part % m + 1

    def _block(self, k: int, count: int) -> str:
        """X = A⁻¹ B, written out; its parts are X_ij."""
        _, n, m = self.graph.value[k]
        args = self.graph.args[k]
        lower = [[args[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)] for j in range(n)] for i in range(n)]
        right = [[args[n * (n + 1) // 2 + i * m + j] for j in range(m)] for i in range(n)]
        self.formula.append((f"X^{{({count})}}_{{%d%d}}" if max(n, m) < 10 else f"X^{{({count})}}_{{%d,%d}}", _ATOM))
        self.size.append(1)
        return f"X^{{({count})}} &= {self._matrix(lower)}^{{-1}} {self._matrix(right)}"

    def _matrix(self, rows: list[list[int]]) -> str:
        return r"\begin{bmatrix} " + r" \\ ".join(" & ".join(self._text(k) for k in row) for row in rows) + r" \end{bmatrix}"


def _free(letters: str, taken: set[str]) -> str:
    """The first of the letters that is not taken."""
    return next((x for x in letters if x not in taken), r"\xi")


def _element(name: str, place: tuple[int, ...]) -> str:
    if not place:
        return name
    index = ("" if max(place) < 10 else ",").join(map(str, place))
    return f"{name}_{{{index}}}"


def number(x: float, digits: int) -> str:
    """A positive number: whole, a short fraction, or rounded."""
    if x == float("inf"):
        return r"\infty"
    if x != x:
        return r"\text{nan}"
    if x == int(x) and x < 1e6:
        return str(int(x))
    near = Fraction(x).limit_denominator(12)
    if float(near) == x and near.numerator < 100 and (near.denominator == 2 or len(f"{x:.{digits}g}") > 4):
        return rf"\frac{{{near.numerator}}}{{{near.denominator}}}"
    text = f"{x:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        power = f"10^{{{int(exponent)}}}"
        return power if mantissa == "1" else rf"{mantissa} \cdot {power}"
    return text
