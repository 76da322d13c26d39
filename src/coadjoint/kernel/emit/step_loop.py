"""Many steps in one call: a loop that runs the kernel and advances its pointers.

`i32 @repeat(ins, instrides, outs, outstrides, insteps, outsteps, steps, start, stop)` calls `@run` for t = 0 … steps - 1 with every
input and output `t · step` bytes further. Where the results of one step are the inputs of the next, that is a simulation.
"""

from __future__ import annotations

from collections.abc import Sequence

from .driver import ARGUMENTS
from .llvm import Body, Lanes, Module

STATES = 64
"""The number of states that take all their steps before the next ones begin, so that they stay in cache."""


def define_repeat(module: Module, lanes: Lanes, n_inputs: int, n_outputs: int) -> None:
    """Add `@repeat` to the module of a kernel."""
    body = Body(module, lanes)
    module.declarations.add("declare i64 @llvm.smin.i64(i64, i64)")
    sides = [
        (base, steps, body.local("ptr", max(n, 1), 8), n)
        for base, steps, n in (("%ins", "%insteps", n_inputs), ("%outs", "%outsteps", n_outputs))
    ]
    status = body.local("i32", 1, 4)
    body.store("i32", "0", status, 4)

    def some(first: str, _: Sequence[str]) -> Sequence[str]:
        last = body.new(f"call i64 @llvm.smin.i64(i64 {body.new(f'add i64 {first}, {STATES}')}, i64 %stop)")

        def step(t: str, _: Sequence[str]) -> Sequence[str]:
            for base, steps, moved, n in sides:
                for k in range(n):
                    pointer = body.load("ptr", body.offset(base, 8 * k), 8)
                    far = body.new(f"mul i64 {t}, {body.load('i64', body.offset(steps, 8 * k), 8)}")
                    body.store("ptr", body.offset(pointer, far), body.offset(moved, 8 * k), 8)
            places = f"ptr {sides[0][2]}, ptr %instrides, ptr {sides[1][2]}, ptr %outstrides, i64 {first}, i64 {last}"
            failed = body.new(f"call i32 @run({places})")
            body.store("i32", body.new(f"or i32 {body.load('i32', status, 4)}, {failed}"), status, 4)
            return []

        body.loop("0", "%steps", 1, [], step)
        return []

    body.loop("%start", "%stop", STATES, [], some)
    body.do(f"ret i32 {body.load('i32', status, 4)}")
    header = f"define dso_local i32 @repeat({ARGUMENTS}, ptr %insteps, ptr %outsteps, i64 %steps, i64 %start, i64 %stop) nounwind"
    module.define("@repeat", body.function(header))
