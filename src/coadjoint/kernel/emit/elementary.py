"""Elementary functions on vectors of lanes: sin with cos, exp, log, atan2, floor.

Each reduces its argument to a short interval and evaluates a minimax polynomial there (Remez in 45 digits, the
coefficients rounded). Errors, in units in the last place, float64 and float32 alike, stay below

    sin, cos 1.6 (however large the argument: see `_define_far_angles`), exp 1.1, log 1.0, atan2 2.0

Signed zeros, subnormal numbers, infinities and NaN give what IEEE 754 and C's Annex F say.
"""

from __future__ import annotations

from collections.abc import Sequence

from .llvm import Body, Lanes

# sin r = r + r³ P(r²), cos r = 1 - r²/2 + r⁴ Q(r²) on |r| ≤ π/4
SIN = {
    "float64": (
        -0.1666666666666663,
        0.008333333333322127,
        -0.00019841269829593168,
        2.7557313621765125e-06,
        -2.505074769847233e-08,
        1.5896220180698227e-10,
    ),
    "float32": (-0.16666655242443085, 0.00833216030150652, -0.00019515209714882076),
}
COS = {
    "float64": (
        0.0416666666666666,
        -0.0013888888888874131,
        2.4801587289486413e-05,
        -2.7557314353359946e-07,
        2.0875723393337202e-09,
        -1.1359653263161256e-11,
    ),
    "float32": (0.04166664555668831, -0.001388736767694354, 2.443840821797494e-05),
}
# π/2 as a sum. With a fused multiply-add every piece may be full; without, n times the first two must be exact.
HALF_PI = {
    "float64": ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"),
    "float32": ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50"),
}
HALF_PI_SHORT = ("0x1.921fb54400000p+0", "0x1.0b4611a600000p-34", "0x1.3198a2e037073p-69")
FAR = {"float64": 1e8, "float32": 1e5}
FAR_SHORT = 1e6
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

# 2/π in binary: floor(2/π · 2^1216)
TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424D"
    "D2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639"
    "835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F46"
    "3F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)


def sincos(body: Body, xs: Sequence[str]) -> list[tuple[str, str]]:
    """(sin x, cos x) of each vector.

    |x| = n π/2 + r by Cody and Waite's method, exact in its first step, for |x| up to `FAR`; a branch taken when any
    argument lies beyond it reduces those exactly. All arguments share the branch, so give as many as possible at once.
    """
    v = body.lanes
    sign_bit = v.integer(1 << (v.bits - 1))
    parts = []
    for x in xs:
        size = body.intrinsic("fabs", x)
        angle, turns = _near_angle(body, size)
        parts.append((x, size, angle, turns))
    reduced = _beyond(body, parts)
    results = []
    for (x, *_), (r, turns) in zip(parts, reduced, strict=True):
        z = body.op("fmul", r, r)
        odd = body.fma(body.op("fmul", r, z), body.horner(z, SIN[v.dtype]), r)
        even = body.fma(z, body.const(-0.5), body.const(1.0))
        even = body.fma(body.op("fmul", z, z), body.horner(z, COS[v.dtype]), even)
        # Quarter turns: odd ones exchange sine and cosine, the second bit tells the sign.
        swapped = body.iop("icmp slt", body.iop("shl", turns, v.integer(v.bits - 1)), v.integer(0))
        sine, cosine = body.select(swapped, even, odd), body.select(swapped, odd, even)
        half = body.iop("shl", turns, v.integer(v.bits - 2))
        sign_sin = body.iop("and", body.iop("xor", half, body.to_bits(x)), sign_bit)
        quarter = body.iop("shl", turns, v.integer(v.bits - 1))
        sign_cos = body.iop("and", body.iop("xor", half, quarter), sign_bit)
        sine = body.from_bits(body.iop("xor", body.to_bits(sine), sign_sin))
        cosine = body.from_bits(body.iop("xor", body.to_bits(cosine), sign_cos))
        results.append((sine, cosine))
    return results


def _far(body: Body) -> float:
    return FAR[body.lanes.dtype] if body.has_fma else FAR_SHORT


def _near_angle(body: Body, size: str) -> tuple[str, str]:
    """(r, number of quarter turns) for |x| ≤ FAR."""
    v = body.lanes
    rounder = body.const(ROUNDER[v.dtype])
    if body.has_fma:
        shifted = body.fma(size, body.const(0.6366197723675814), rounder)
        n = body.op("fsub", shifted, rounder)
        minus = body.op("fneg", n)
        r = size
        for piece in HALF_PI[v.dtype]:
            r = body.fma(minus, body.const(float.fromhex(piece)), r)
        return r, body.to_bits(shifted)
    if v.dtype == "float32":  # without fused operations float32 has too few bits for exact products
        wide = body.view(Lanes("float64", v.count))
        r, turns = _near_angle(wide, body.new(f"fpext {v.type} {size} to {wide.lanes.type}"))
        r = body.new(f"fptrunc {wide.lanes.type} {r} to {v.type}")
        return r, body.new(f"trunc {wide.lanes.ints} {turns} to {v.ints}")
    shifted = body.op("fadd", body.op("fmul", size, body.const(0.6366197723675814)), rounder)
    n = body.op("fsub", shifted, rounder)
    r = size
    for piece in HALF_PI_SHORT:
        r = body.op("fsub", r, body.op("fmul", n, body.const(float.fromhex(piece))))
    return r, body.to_bits(shifted)


def _beyond(body: Body, parts: list[tuple[str, str, str, str]]) -> list[tuple[str, str]]:
    """(r, turns) of each argument; a rarely taken branch corrects those beyond `FAR`."""
    v = body.lanes
    far = body.const(_far(body))
    beyond = [body.compare("ogt", size, far) for _, size, _, _ in parts]
    any_beyond = beyond[0]
    for b in beyond[1:]:
        any_beyond = body.new(f"or {v.bools} {any_beyond}, {b}")
    before, cold, after = body.block, body.fresh("far"), body.fresh("near")
    body.do(f"br i1 {body.any(any_beyond)}, label %{cold}, label %{after}, !prof !0")
    body.module.define("!0", '!0 = !{!"branch_weights", i32 1, i32 1000000}')
    body.label(cold)
    _define_far_angles(body)
    width = v.count * v.size
    room = [body.local(v.type, len(parts), 64) for _ in range(3)]
    for k, (_, *values) in enumerate(parts):
        for pointer, value, type_ in zip(room, values, (v.type, v.type, v.ints), strict=True):
            body.store(type_, value, body.offset(pointer, k * width), width)
    arguments = ", ".join(f"ptr {p}" for p in room)
    body.do(f"call void @far_angles({arguments}, i64 {len(parts) * v.count})")
    fixed = []
    for k in range(len(parts)):
        r = body.load(v.type, body.offset(room[1], k * width), width)
        turns = body.load(v.ints, body.offset(room[2], k * width), width)
        fixed.append((r, turns))
    body.do(f"br label %{after}")
    body.label(after)
    results = []
    for (_, _, r, turns), (r_far, turns_far) in zip(parts, fixed, strict=True):
        results.append(
            (
                body.new(f"phi {v.type} [{r}, %{before}], [{r_far}, %{cold}]"),
                body.new(f"phi {v.ints} [{turns}, %{before}], [{turns_far}, %{cold}]"),
            )
        )
    return results


def _define_far_angles(body: Body) -> None:
    """A function that reduces each x > FAR of an array exactly, after Payne and Hanek.

    x = m 2^k. The bits of 2^k · 2/π from weight 2 down to 2^-190, times m, give the quarter turns (two bits) and their
    fraction to 137 bits, of which at most 62 can be zeros; the fraction's first 64 significant bits times π/2 is r.
    """
    v = body.lanes
    table = TWO_OVER_PI.to_bytes(168, "little")
    body.module.define(
        "@two_over_pi",
        f"@two_over_pi = internal constant [{len(table)} x i8] [" + ", ".join(f"i8 {b}" for b in table) + "]",
    )
    for name, type_ in (("ctlz", "i192"), ("fabs", "double")):
        extra = ", i1" if name == "ctlz" else ""
        body.module.declarations.add(f"declare {type_} @llvm.{name}.{type_.replace('double', 'f64')}({type_}{extra})")
    s, i = v.scalar, f"i{v.bits}"
    widen = "%given = fadd double %x0, 0.0" if s == "double" else "%given = fpext float %x0 to double"
    narrow = "%r = fadd double %exact, 0.0" if s == "double" else "%r = fptrunc double %exact to float"
    turns = "%turns = add i64 %turns64, 0" if s == "double" else "%turns = trunc i64 %turns64 to i32"
    far = _far(body)
    limit = v.number(far)
    half_pi = 0xC90FDAA22168C235  # π/2 · 2^63
    body.module.define(
        "@far_angles",
        f"""define internal void @far_angles(ptr %xs, ptr %rs, ptr %qs, i64 %count) noinline cold {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %step]
  %px = getelementptr {s}, ptr %xs, i64 %k
  %x0 = load {s}, ptr %px
  %beyond = fcmp ogt {s} %x0, {limit}
  br i1 %beyond, label %reduce, label %step
reduce:
  {widen}
  %word = bitcast double %given to i64
  %exponent = lshr i64 %word, 52
  %low = and i64 %word, {(1 << 52) - 1}
  %m = or i64 %low, {1 << 52}
  %infinite = icmp eq i64 %exponent, 2047
  %bounded = select i1 %infinite, i64 2000, i64 %exponent
  %place = sub i64 {1216 - 190 + 1075}, %bounded
  %byte = lshr i64 %place, 3
  %bit = and i64 %place, 7
  %address = getelementptr i8, ptr @two_over_pi, i64 %byte
  %window = load i256, ptr %address, align 1
  %bit256 = zext i64 %bit to i256
  %shifted = lshr i256 %window, %bit256
  %bits = trunc i256 %shifted to i192
  %m192 = zext i64 %m to i192
  %product = mul i192 %bits, %m192
  %rounded = add i192 %product, {1 << 189}
  %top = lshr i192 %rounded, 190
  %turns64 = trunc i192 %top to i64
  %fraction = shl i192 %product, 2
  %negative = icmp slt i192 %fraction, 0
  %opposite = sub i192 0, %fraction
  %size = select i1 %negative, i192 %opposite, i192 %fraction
  %zeros = call i192 @llvm.ctlz.i192(i192 %size, i1 false)
  %normal = shl i192 %size, %zeros
  %head192 = lshr i192 %normal, 128
  %head = trunc i192 %head192 to i64
  %head128 = zext i64 %head to i128
  %angle128 = mul i128 %head128, {half_pi}
  %angle_top = lshr i128 %angle128, 64
  %angle64 = trunc i128 %angle_top to i64
  %angle = uitofp i64 %angle64 to double
  %zeros64 = trunc i192 %zeros to i64
  %biased = sub i64 {1023 - 63}, %zeros64
  %scale_bits = shl i64 %biased, 52
  %scale = bitcast i64 %scale_bits to double
  %positive_angle = fmul double %angle, %scale
  %negative_angle = fneg double %positive_angle
  %signed = select i1 %negative, double %negative_angle, double %positive_angle
  %exact = select i1 %infinite, double 0x7FF8000000000000, double %signed
  {narrow}
  {turns}
  %pr = getelementptr {s}, ptr %rs, i64 %k
  %pq = getelementptr {i}, ptr %qs, i64 %k
  store {s} %r, ptr %pr
  store {i} %turns, ptr %pq
  br label %step
step:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}""",
    )


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
