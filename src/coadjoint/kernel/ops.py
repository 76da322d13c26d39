"""The operations of a graph: the one table of all their properties. To add an operation, add an entry to OPS.

Tracing, folding, evaluation, differentiation, the costs in the simplifier and the scheduler, machine code, and the exports to C,
JavaScript, WebAssembly, LaTeX, SymPy and CasADi all read it here. `op.py` says what an entry has.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from .op import Op, bitwise, comparison, elementary, extremum, instruction, intrinsic, on_symbols, quotient, safe

if TYPE_CHECKING:
    from .emit.llvm import Body


def _number_fmod(x: float, y: float) -> float:
    return math.fmod(x, y) if math.isfinite(x) and y != 0.0 else math.nan


def _number_log1p(x: float) -> float:
    return math.log1p(x) if x > -1.0 else -math.inf if x == -1.0 else math.nan


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _not(body: Body, x: str) -> str:
    ones = "<" + ", ".join(["i1 1"] * body.lanes.count) + ">"
    return body.new(f"xor {body.lanes.bools} {x}, {ones}")


def _fmod(body: Body, x: str, y: str) -> str:
    from .emit.remainder import fmod

    return fmod(body, x, y)


def _tanh(body: Body, x: str) -> str:
    """tanh |x| = e / (e + 2) with e = exp 2|x| - 1 = 2ⁿ t + (2ⁿ - 1), t = exp r - 1, r = 2|x| - n ln 2; then the sign of x.

    Errors stay below 2.5 units in the last place.
    """
    from .emit.elementary import EXP, LN2, ROUNDER

    v = body.lanes
    double = v.dtype == "float64"
    size = body.intrinsic("fabs", x)
    twice, most = body.op("fadd", size, size), body.const(40.0 if double else 20.0)  # beyond that tanh is 1
    y = body.select(body.compare("ogt", twice, most), most, twice)  # NaN passes
    rounder = body.const(ROUNDER[v.dtype])
    shifted = body.fma(y, body.const(1.4426950408889634), rounder)
    minus_n = body.op("fsub", rounder, shifted)
    r = body.fma(minus_n, body.const(float.fromhex(LN2[v.dtype][0])), y)
    r = body.fma(minus_n, body.const(float.fromhex(LN2[v.dtype][1])), r)
    t = body.fma(body.op("fmul", r, r), body.horner(r, EXP[v.dtype]), r)
    mantissa, bias = (52, 1023) if double else (23, 127)
    n = body.iop("sub", body.to_bits(shifted), body.to_bits(rounder))
    power = body.from_bits(body.iop("shl", body.iop("add", n, v.integer(bias)), v.integer(mantissa)))
    e = body.fma(power, t, body.op("fsub", power, body.const(1.0)))
    value = body.op("fdiv", e, body.op("fadd", e, body.const(2.0)))
    sign = body.iop("and", body.to_bits(x), v.integer(1 << (v.bits - 1)))
    return body.from_bits(body.iop("or", body.to_bits(value), sign))


def _log1p(body: Body, x: str) -> str:
    """log u + (x - (u - 1)) / u, u = 1 + x: the second term is what rounding took from u; of the sign of x.

    Errors stay below 2 units in the last place.
    """
    from .emit.elementary import log

    v, zero, one = body.lanes, body.const(0.0), body.const(1.0)
    u = body.op("fadd", one, x)
    lost = body.op("fdiv", body.op("fsub", x, body.op("fsub", u, one)), u)
    exact = body.select(body.compare("oeq", u, x), zero, body.select(body.compare("oeq", u, zero), zero, lost))  # u = inf, u = 0
    value = body.op("fadd", log(body, u), exact)
    sign = body.iop("and", body.to_bits(x), v.integer(1 << (v.bits - 1)))
    return body.from_bits(body.iop("or", body.to_bits(value), sign))


_sin, _cos, _sign, _less_equal, _divide = (on_symbols(name) for name in ("sin", "cos", "sign", "less_equal", "divide"))


OPS: dict[str, Op] = {
    "add": Op(
        arity=2,
        number=operator.add,
        numpy=np.add,
        array="add",
        commutative=True,
        partials=(lambda n, x, y: 1.0, lambda n, x, y: 1.0),
        llvm=instruction("fadd"),
        c="{} + {}",
        wasm=0xA0,
    ),
    "sub": Op(
        arity=2,
        number=operator.sub,
        numpy=np.subtract,
        array="subtract",
        partials=(lambda n, x, y: 1.0, lambda n, x, y: -1.0),
        llvm=instruction("fsub"),
        c="{} - {}",
        wasm=0xA1,
    ),
    "mul": Op(
        arity=2,
        number=operator.mul,
        numpy=np.multiply,
        array="multiply",
        commutative=True,
        partials=(lambda n, x, y: y, lambda n, x, y: x),
        llvm=instruction("fmul"),
        c="{} * {}",
        wasm=0xA2,
    ),
    "div": Op(
        arity=2,
        number=quotient,
        numpy=np.divide,
        array="divide",
        cost=4,
        partials=(lambda n, x, y: _divide(1.0, y), lambda n, x, y: -n * _divide(1.0, y)),
        llvm=instruction("fdiv"),
        c="{} / {}",
        wasm=0xA3,
    ),
    "neg": Op(
        arity=1,
        number=operator.neg,
        numpy=np.negative,
        array="negative",
        partials=(lambda n, x: -1.0,),
        llvm=instruction("fneg"),
        c="-{}",
        wasm=0x9A,
    ),
    "sqrt": Op(
        arity=1,
        number=safe(math.sqrt),
        numpy=np.sqrt,
        array="sqrt",
        cost=4,
        partials=(lambda n, x: 0.5 / n,),
        llvm=intrinsic("sqrt"),
        c="sqrt({})",
        wasm=0x9F,
        latex=r"\sqrt{{{}}}",
        sympy=lambda sp: sp.sqrt,
        casadi=lambda ca: ca.sqrt,
    ),
    "sin": Op(
        arity=1,
        number=safe(math.sin),
        numpy=np.sin,
        array="sin",
        cost=15,
        parity="odd",
        partials=(lambda n, x: _cos(x),),
        c="sin({})",
        latex=r"\sin",
        sympy=lambda sp: sp.sin,
        casadi=lambda ca: ca.sin,
    ),
    "cos": Op(
        arity=1,
        number=safe(math.cos),
        numpy=np.cos,
        array="cos",
        cost=15,
        parity="even",
        partials=(lambda n, x: -_sin(x),),
        c="cos({})",
        latex=r"\cos",
        sympy=lambda sp: sp.cos,
        casadi=lambda ca: ca.cos,
    ),
    "atan2": Op(
        arity=2,
        number=math.atan2,
        numpy=np.arctan2,
        array="atan2",
        cost=60,
        partials=(lambda n, y, x: x * (1.0 / (y * y + x * x)), lambda n, y, x: -y * (1.0 / (y * y + x * x))),
        llvm=elementary("atan2"),
        called=True,
        c="atan2({}, {})",
        latex=r"\operatorname{{atan2}}\left({}, {}\right)",
        sympy=lambda sp: sp.atan2,
        casadi=lambda ca: ca.atan2,
    ),
    "exp": Op(
        arity=1,
        number=safe(math.exp, math.inf),
        numpy=np.exp,
        array="exp",
        cost=40,
        partials=(lambda n, x: n,),
        llvm=elementary("exp"),
        called=True,
        c="exp({})",
        latex="e^{{{}}}",
        sympy=lambda sp: sp.exp,
        casadi=lambda ca: ca.exp,
    ),
    "log": Op(
        arity=1,
        number=safe(math.log, -math.inf),
        numpy=np.log,
        array="log",
        cost=40,
        partials=(lambda n, x: 1.0 / x,),
        llvm=elementary("log"),
        called=True,
        c="log({})",
        latex=r"\ln",
        sympy=lambda sp: sp.log,
        casadi=lambda ca: ca.log,
    ),
    "log1p": Op(
        arity=1,
        number=_number_log1p,
        numpy=np.log1p,
        array="log1p",
        cost=46,
        partials=(lambda n, x: 1.0 / (1.0 + x),),
        llvm=_log1p,
        called=True,
        c="log1p({})",
        latex=r"\ln\left(1 + {}\right)",
        sympy=lambda sp: lambda x: sp.log(1 + x),
        casadi=lambda ca: ca.log1p,
    ),
    "tanh": Op(
        arity=1,
        number=math.tanh,
        numpy=np.tanh,
        array="tanh",
        cost=40,
        parity="odd",
        partials=(lambda n, x: 1.0 - n * n,),
        llvm=_tanh,
        called=True,
        c="tanh({})",
        latex=r"\tanh",
        sympy=lambda sp: sp.tanh,
        casadi=lambda ca: ca.tanh,
    ),
    "abs": Op(
        arity=1,
        number=abs,
        numpy=np.absolute,
        array="abs",
        parity="even",
        partials=(lambda n, x: _sign(x),),
        llvm=intrinsic("fabs"),
        c="fabs({})",
        js="Math.abs({})",
        wasm=0x99,
        latex=r"\left|{}\right|",
        sympy=lambda sp: sp.Abs,
        casadi=lambda ca: ca.fabs,
    ),
    "floor": Op(
        arity=1,
        number=_floor,
        numpy=np.floor,
        array="floor",
        llvm=elementary("floor"),
        c="floor({})",
        wasm=0x9C,
        latex=r"\left\lfloor {}\right\rfloor",
        sympy=lambda sp: sp.floor,
        casadi=lambda ca: ca.floor,
    ),
    "fmod": Op(  # x - trunc(x / y) y, exactly: of the sign of x
        arity=2,
        number=_number_fmod,
        numpy=np.fmod,
        array="fmod",
        cost=12,
        partials=(lambda n, x, y: 1.0, lambda n, x, y: (n - x) * _divide(1.0, y)),
        llvm=_fmod,
        called=True,
        c="fmod({}, {})",
        js="{} % {}",
        latex=r"\operatorname{{fmod}}\left({}, {}\right)",
        sympy=lambda sp: lambda x, y: sp.sign(x) * sp.Mod(sp.Abs(x), sp.Abs(y)),
        casadi=lambda ca: ca.fmod,
    ),
    "min": Op(
        arity=2,
        number=extremum(min),
        numpy=np.minimum,
        array="minimum",
        commutative=True,
        choice=lambda x, y: _less_equal(x, y),
        llvm=intrinsic("minimum"),
        c="({0} < {1} || {0} != {0}) ? {0} : {1}",  # not fmin: NaN in, NaN out
        wasm=0xA4,
        latex=r"\min\left({}, {}\right)",
        sympy=lambda sp: sp.Min,
        casadi=lambda ca: ca.fmin,
    ),
    "max": Op(
        arity=2,
        number=extremum(max),
        numpy=np.maximum,
        array="maximum",
        commutative=True,
        choice=lambda x, y: _less_equal(y, x),
        llvm=intrinsic("maximum"),
        c="({0} > {1} || {0} != {0}) ? {0} : {1}",
        wasm=0xA5,
        latex=r"\max\left({}, {}\right)",
        sympy=lambda sp: sp.Max,
        casadi=lambda ca: ca.fmax,
    ),
    "lt": Op(
        arity=2,
        number=operator.lt,
        numpy=np.less,
        array="less",
        truth=True,
        llvm=comparison("olt"),
        c="{} < {}",
        wasm=0x63,
        latex="<",
        sympy=lambda sp: sp.Lt,
    ),
    "le": Op(
        arity=2,
        number=operator.le,
        numpy=np.less_equal,
        array="less_equal",
        truth=True,
        llvm=comparison("ole"),
        c="{} <= {}",
        wasm=0x65,
        latex=r"\le",
        sympy=lambda sp: sp.Le,
    ),
    "eq": Op(
        arity=2,
        number=operator.eq,
        numpy=np.equal,
        array="equal",
        truth=True,
        commutative=True,
        llvm=comparison("oeq"),
        c="{} == {}",
        js="{} === {}",
        wasm=0x61,
        latex="=",
        sympy=lambda sp: sp.Eq,
    ),
    "and": Op(
        arity=2,
        number=lambda x, y: x and y,
        numpy=np.logical_and,
        array="logical_and",
        truth=True,
        commutative=True,
        llvm=bitwise("and"),
        c="{} && {}",
        wasm=0x71,
        latex=r"\land",
        sympy=lambda sp: sp.And,
        casadi=lambda ca: ca.logic_and,
    ),
    "or": Op(
        arity=2,
        number=lambda x, y: x or y,
        numpy=np.logical_or,
        array="logical_or",
        truth=True,
        commutative=True,
        llvm=bitwise("or"),
        c="{} || {}",
        wasm=0x72,
        latex=r"\lor",
        sympy=lambda sp: sp.Or,
        casadi=lambda ca: ca.logic_or,
    ),
    "not": Op(
        arity=1,
        number=operator.not_,
        numpy=np.logical_not,
        array="logical_not",
        truth=True,
        llvm=_not,
        c="!{}",
        wasm=0x45,
        latex=r"\lnot\left({}\right)",
        sympy=lambda sp: sp.Not,
        casadi=lambda ca: ca.logic_not,
    ),
    "where": Op(  # condition, value if true, value if false
        arity=3,
        number=lambda condition, x, y: x if condition else y,
        numpy=np.where,
        array="where",
        llvm=lambda body, condition, x, y: body.select(condition, x, y),
        c="{} ? {} : {}",
        wasm=0x1B,
        latex=r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{otherwise}} \end{{cases}}",
        sympy=lambda sp: lambda condition, x, y: sp.Piecewise((x, condition), (y, True)),
        casadi=lambda ca: ca.if_else,
    ),
}

TRUTH = frozenset(name for name, op in OPS.items() if op.truth)
COMMUTATIVE = frozenset(name for name, op in OPS.items() if op.commutative)
COST = {"input": 0, "const": 0, "part": 0, "block": 1} | {name: op.cost for name, op in OPS.items()}
