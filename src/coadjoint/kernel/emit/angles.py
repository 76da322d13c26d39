"""sin and cos together on vectors of lanes, of several angles at a time.

An angle is reduced to |r| ≤ π/4 and a number of quarter turns, by Cody and Waite's method up to `FAR` and exactly beyond it (Payne and
Hanek); there minimax polynomials are evaluated (Remez in 45 digits, the coefficients rounded). Errors stay below 1.6 units in the last
place, float64 and float32 alike, however large the angle. Signed zeros, subnormal numbers, infinities and NaN give what IEEE 754 and
C's Annex F say.
"""

from __future__ import annotations

from collections.abc import Sequence

from .elementary import ROUNDER
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
