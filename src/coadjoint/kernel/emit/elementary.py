"""Elementary functions on vectors of lanes: exp, log, atan2, floor; sin and cos have their own file, `angles.py`.

Each reduces its argument to a short interval and evaluates a minimax polynomial there (Remez in 45 digits, the
coefficients rounded). Errors, in units in the last place, float64 and float32 alike, stay below

    exp 1.1, log 1.0, atan2 2.0

Signed zeros, subnormal numbers, infinities and NaN give what IEEE 754 and C's Annex F say.
"""

from __future__ import annotations

from .llvm import Body

# Adding this rounds to an integer, which then stands in the lowest bits.
ROUNDER = {"float64": 1.5 * 2.0**52, "float32": 1.5 * 2.0**23}

# exp r = 1 + r + r² P(r) on |r| ≤ ln 2 / 2
EXP = {
    "float64": (
        0.5000000000000001,
        0.16666666666666585,
        0.04166666666662562,
        0.008333333333423279,
        0.0013888888916589535,
        0.00019841269582593222,
        2.4801522128302496e-05,
        2.755758061816056e-06,
        2.7619741754645457e-07,
        2.498465696771413e-08,
    ),
    "float32": (
        0.4999999701976776,
        0.16666579246520996,
        0.04166780039668083,
        0.00836286973208189,
        0.001382196438498795,
    ),
}
# ln 2 = first + second, n · first exact for every exponent n
LN2 = {
    "float64": ("0x1.62e42ff000000p-1", "-0x1.718432a1b0e26p-35"),
    "float32": ("0x1.62e4p-1", "0x1.7f7d1cp-20"),
}
# 2 artanh s = 2s + s³ P(s²) on |s| ≤ 3 - 2√2
LOG = {
    "float64": (
        0.6666666666666734,
        0.399999999994151,
        0.2857142874232109,
        0.22222198576486532,
        0.18183564354072637,
        0.1531404471864637,
        0.14796057284711503,
    ),
    "float32": (0.6666666269302368, 0.4000033438205719, 0.2853730320930481, 0.23582318425178528),
}
# atan t = t + t³ P(t²) on |t| ≤ tan π/8
ATAN = {
    "float64": (
        -0.333333333333332,
        0.1999999999995316,
        -0.14285714280157438,
        0.11111110781681764,
        -0.0909089771118874,
        0.07692059459777094,
        -0.06663096195622023,
        0.05847836844981231,
        -0.05039087080722017,
        0.03805945941761994,
        -0.01790204730449942,
    ),
    "float32": (
        -0.33333316445350647,
        0.19998471438884735,
        -0.1424352526664734,
        0.1059371680021286,
        -0.0607789009809494,
    ),
}
PI_LOW = {"float64": 1.2246467991473532e-16, "float32": -8.742278000372485e-08}
"""π minus its rounded value."""


def exp(body: Body, x: str) -> str:
    """exp x = 2ⁿ exp r, n = round(x / ln 2); the scale in two factors, so that results may be subnormal."""
    v = body.lanes
    double = v.dtype == "float64"
    # Beyond these the result is 0 or ∞ in any case; comparisons chosen so that NaN passes.
    low, high = (-746.0, 710.0) if double else (-104.0, 89.0)
    clamped = body.select(body.compare("olt", x, body.const(low)), body.const(low), x)
    clamped = body.select(body.compare("ogt", clamped, body.const(high)), body.const(high), clamped)
    rounder = body.const(ROUNDER[v.dtype])
    shifted = body.fma(clamped, body.const(1.4426950408889634), rounder)
    n = body.op("fsub", shifted, rounder)
    minus = body.op("fneg", n)
    r = body.fma(minus, body.const(float.fromhex(LN2[v.dtype][0])), clamped)
    r = body.fma(minus, body.const(float.fromhex(LN2[v.dtype][1])), r)
    tail = body.fma(body.op("fmul", r, r), body.horner(r, EXP[v.dtype]), r)
    value = body.op("fadd", tail, body.const(1.0))
    mantissa, bias = (52, 1023) if double else (23, 127)
    count = body.iop("sub", body.to_bits(shifted), body.to_bits(rounder))
    first = body.iop("ashr", count, v.integer(1))
    for power in (first, body.iop("sub", count, first)):
        bits = body.iop("shl", body.iop("add", power, v.integer(bias)), v.integer(mantissa))
        value = body.op("fmul", value, body.from_bits(bits))
    return body.select(body.compare("uno", x, x), x, value)


def log(body: Body, x: str) -> str:
    """log x = k ln 2 + log m, 1/√2 < m ≤ √2, log m = 2 artanh((m-1)/(m+1))."""
    v = body.lanes
    double = v.dtype == "float64"
    mantissa, tiny, shift = (52, 2.0**-1022, 54) if double else (23, 2.0**-126, 25)
    subnormal = body.compare("olt", x, body.const(tiny))
    normal = body.select(subnormal, body.op("fmul", x, body.const(2.0**shift)), x)
    bits = body.to_bits(normal)
    # Moving the exponent's origin to 1/√2 leaves m in the wanted interval.
    origin = 0x3FE6A09E667F3BCD if double else 0x3F3504F3
    moved = body.iop("sub", bits, v.integer(origin))
    k = body.iop("ashr", moved, v.integer(mantissa))
    m = body.from_bits(body.iop("sub", bits, body.iop("shl", k, v.integer(mantissa))))
    # k as a number: small integers stand in the lowest bits of the rounder.
    rounder = body.const(ROUNDER[v.dtype])
    count = body.op("fsub", body.from_bits(body.iop("add", k, body.to_bits(rounder))), rounder)
    count = body.op("fsub", count, body.select(subnormal, body.const(float(shift)), body.const(0.0)))
    f = body.op("fsub", m, body.const(1.0))
    s = body.op("fdiv", f, body.op("fadd", f, body.const(2.0)))
    z = body.op("fmul", s, s)
    tail = body.op("fmul", z, body.horner(z, LOG[v.dtype]))
    # 2s = f - s f, so log m = f - (f²/2 - s (f²/2 + tail)), which keeps f's leading bits.
    square = body.op("fmul", body.op("fmul", f, f), body.const(0.5))
    correction = body.op("fmul", s, body.op("fadd", square, tail))
    correction = body.fma(count, body.const(float.fromhex(LN2[v.dtype][1])), correction)
    value = body.op("fsub", f, body.op("fsub", square, correction))
    value = body.fma(count, body.const(float.fromhex(LN2[v.dtype][0])), value)
    infinity = body.const(float("inf"))
    value = body.select(body.compare("oeq", x, infinity), infinity, value)
    value = body.select(body.compare("oeq", x, body.const(0.0)), body.const(float("-inf")), value)
    return body.select(body.compare("oge", x, body.const(0.0)), value, body.const(float("nan")))


def atan2(body: Body, y: str, x: str) -> str:
    """The angle of (x, y) in [-π, π], with the signs of zero and the values at infinity of C's atan2."""
    v = body.lanes
    sign_bit = v.integer(1 << (v.bits - 1))
    big, small = (1e300, 1e-280) if v.dtype == "float64" else (1e37, 1e-25)
    shrink, grow = (2.0**-100, 2.0**200) if v.dtype == "float64" else (2.0**-20, 2.0**60)
    ax, ay = body.intrinsic("fabs", x), body.intrinsic("fabs", y)
    steep = body.compare("ogt", ay, ax)
    a, b = body.select(steep, ay, ax), body.select(steep, ax, ay)
    # Sums must not overflow, and quotients of subnormal numbers keep their bits.
    scale = body.select(body.compare("ogt", a, body.const(big)), body.const(shrink), body.const(1.0))
    scale = body.select(body.compare("olt", a, body.const(small)), body.const(grow), scale)
    a, b = body.op("fmul", a, scale), body.op("fmul", b, scale)
    infinity = body.const(float("inf"))
    both = body.new(f"and {v.bools} {body.compare('oeq', a, infinity)}, {body.compare('oeq', b, infinity)}")  # as steep as 1:1
    a, b = body.select(both, body.const(1.0), a), body.select(both, body.const(1.0), b)
    a = body.select(body.compare("oeq", a, body.const(0.0)), body.const(1.0), a)  # the angle of 0/0 is 0
    # Above tan π/8 turn by π/4: atan(b/a) = π/4 + atan((b-a)/(b+a)).
    turned = body.compare("ogt", b, body.op("fmul", a, body.const(0.41421356237309503)))
    numerator = body.select(turned, body.op("fsub", b, a), b)
    denominator = body.select(turned, body.op("fadd", b, a), a)
    t = body.op("fdiv", numerator, denominator)
    z = body.op("fmul", t, t)
    tail = body.op("fmul", body.op("fmul", t, z), body.horner(z, ATAN[v.dtype]))
    # The angle is ±atan t plus a multiple of π/4; the multiple's rounding error joins the small tail.
    zero, pi = body.const(0.0), 3.141592653589793
    low = PI_LOW[v.dtype]
    left = body.new(f"icmp slt {v.ints} {body.to_bits(x)}, {v.integer(0)}")

    def choose(f_flat: float, f_turned: float) -> str:
        return body.select(turned, body.const(f_turned), body.const(f_flat))

    # base + sign·atan t: steep: π/2 - angle; left: π - angle
    base = choose(0.0, pi / 4)
    base_low = choose(0.0, low / 4)
    base_steep, low_steep = choose(pi / 2, pi / 4), choose(low / 2, low / 4)
    base = body.select(steep, base_steep, base)
    base_low = body.select(steep, low_steep, base_low)
    t = body.select(steep, body.op("fneg", t), t)
    tail = body.select(steep, body.op("fneg", tail), tail)
    # left: π - base - atan t; the bases are 0, π/4, π/2, so the difference is one of 4 constants
    is_zero = body.compare("oeq", base, zero)
    is_quarter = body.compare("olt", base, body.const(1.0))
    mirrored = body.select(is_quarter, body.const(3 * pi / 4), body.const(pi / 2))
    mirrored_low = body.select(is_quarter, body.const(3 * low / 4), body.const(low / 2))
    mirrored = body.select(is_zero, body.const(pi), mirrored)
    mirrored_low = body.select(is_zero, body.const(low), mirrored_low)
    base, base_low = body.select(left, mirrored, base), body.select(left, mirrored_low, base_low)
    t = body.select(left, body.op("fneg", t), t)
    tail = body.select(left, body.op("fneg", tail), tail)
    value = body.op("fadd", base, body.op("fadd", t, body.op("fadd", tail, base_low)))
    signs = body.iop("and", body.to_bits(y), sign_bit)
    value = body.from_bits(body.iop("xor", body.to_bits(value), signs))
    unordered = body.compare("uno", x, y)
    return body.select(unordered, body.const(float("nan")), value)


def floor(body: Body, x: str) -> str:
    """The largest integer not above x, by one instruction where the processor has it."""
    if body.has_rounding:
        return body.intrinsic("floor", x)
    v = body.lanes
    whole = 2.0**52 if v.dtype == "float64" else 2.0**23
    size = body.intrinsic("fabs", x)
    rounded = body.op("fsub", body.op("fadd", size, body.const(whole)), body.const(whole))
    rounded = body.select(body.compare("olt", size, body.const(whole)), rounded, size)
    sign_bit = v.integer(1 << (v.bits - 1))
    signs = body.iop("and", body.to_bits(x), sign_bit)
    signed = body.from_bits(body.iop("or", body.to_bits(rounded), signs))
    one = body.select(body.compare("ogt", signed, x), body.const(1.0), body.const(0.0))
    return body.op("fsub", signed, one)
