"""The remainder of truncated division on vectors of lanes, C's fmod: exact, as its result is always representable."""

from __future__ import annotations

from .elementary import floor
from .llvm import Body

NEAR = {"float64": 2.0**52, "float32": 2.0**23}
"""Quotients below are computed in vectors; all integers up to here are representable."""


def fmod(body: Body, x: str, y: str) -> str:
    """x - n y with n = trunc(x / y), of the sign of x; NaN for y = 0 and for infinite x; x for infinite y.

    n from the rounded quotient of |x| and |y| is right or too large by one, and a fused x - n y has no rounding error. Where the
    quotient is too large for that, or the processor has no fused multiply-add, all lanes are divided as integers.
    """
    v = body.lanes
    sign_bit = v.integer(1 << (v.bits - 1))
    a, b = body.intrinsic("fabs", x), body.intrinsic("fabs", y)
    if body.has_fma:
        ratio = body.op("fdiv", a, b)
        near = body.fma(body.op("fneg", floor(body, ratio)), b, a)
        near = body.select(body.compare("olt", near, body.const(0.0)), body.op("fadd", near, b), near)
        near = body.select(body.compare("oeq", b, body.const(float("inf"))), a, near)
        far = body.compare("uge", ratio, body.const(NEAR[v.dtype]))  # NaN as well
        before, cold, after = body.block, body.fresh("far"), body.fresh("near")
        body.do(f"br i1 {body.any(far)}, label %{cold}, label %{after}, !prof !0")
        body.module.define("!0", '!0 = !{!"branch_weights", i32 1, i32 1000000}')
        body.label(cold)
        exact = _divided(body, a, b)
        body.do(f"br label %{after}")
        body.label(after)
        size = body.new(f"phi {v.type} [{near}, %{before}], [{exact}, %{cold}]")
    else:
        size = _divided(body, a, b)
    sign = body.iop("and", body.to_bits(x), sign_bit)
    return body.from_bits(body.iop("or", body.to_bits(size), sign))


def _divided(body: Body, a: str, b: str) -> str:
    """The remainders of vectors of numbers that are not negative, lane by lane."""
    v = body.lanes
    _define_division(body)
    result = "zeroinitializer"
    for k in range(v.count):
        pair = []
        for x in (a, b):
            lane = body.new(f"extractelement {v.type} {x}, i32 {k}")
            pair.append(lane if v.scalar == "double" else body.new(f"fpext float {lane} to double"))
        r = body.new(f"call double @exact_remainder(double {pair[0]}, double {pair[1]})")
        if v.scalar != "double":
            r = body.new(f"fptrunc double {r} to float")
        result = body.new(f"insertelement {v.type} {result}, {v.scalar} {r}, i32 {k}")
    return result


def _define_division(body: Body) -> None:
    """A function of two numbers a, b ≥ 0 that divides as on paper, eleven binary digits at a time.

    a = A 2^(e + n), b = B 2^e with integers A, B < 2^53: r = A mod B, then n times r → 2r mod B; the remainder is r 2^e.
    """
    body.module.define(
        "@exact_remainder",
        f"""define internal double @exact_remainder(double %a, double %b) noinline cold {{
entry:
  %ua = bitcast double %a to i64
  %ub = bitcast double %b to i64
  %zero = icmp eq i64 %ub, 0
  %endless = icmp uge i64 %ua, {0x7FF << 52}
  %nan = icmp ugt i64 %ub, {0x7FF << 52}
  %some = or i1 %zero, %endless
  %none = or i1 %some, %nan
  br i1 %none, label %undefined, label %compare
undefined:
  ret double 0x7FF8000000000000
compare:
  %less = icmp ult i64 %ua, %ub
  br i1 %less, label %same, label %begin
same:
  ret double %a
begin:
  %xa = lshr i64 %ua, 52
  %xb = lshr i64 %ub, 52
  %fa = and i64 %ua, {(1 << 52) - 1}
  %fb = and i64 %ub, {(1 << 52) - 1}
  %wa = or i64 %fa, {1 << 52}
  %wb = or i64 %fb, {1 << 52}
  %subnormal_a = icmp eq i64 %xa, 0
  %subnormal_b = icmp eq i64 %xb, 0
  %A = select i1 %subnormal_a, i64 %fa, i64 %wa
  %B = select i1 %subnormal_b, i64 %fb, i64 %wb
  %ea = select i1 %subnormal_a, i64 1, i64 %xa
  %eb = select i1 %subnormal_b, i64 1, i64 %xb
  %n0 = sub i64 %ea, %eb
  %r0 = urem i64 %A, %B
  br label %digits
digits:
  %n = phi i64 [%n0, %begin], [%left, %more]
  %r = phi i64 [%r0, %begin], [%next, %more]
  %done = icmp eq i64 %n, 0
  br i1 %done, label %end, label %more
more:
  %few = icmp ult i64 %n, 11
  %count = select i1 %few, i64 %n, i64 11
  %wide = shl i64 %r, %count
  %next = urem i64 %wide, %B
  %left = sub i64 %n, %count
  br label %digits
end:
  %whole = uitofp i64 %r to double
  %normal_scale = icmp ugt i64 %eb, 52
  %exponent = sub i64 %eb, 52
  %normal = shl i64 %exponent, 52
  %place = sub i64 %eb, 1
  %tiny = shl i64 1, %place
  %bits = select i1 %normal_scale, i64 %normal, i64 %tiny
  %scale = bitcast i64 %bits to double
  %value = fmul double %whole, %scale
  ret double %value
}}""",
    )
