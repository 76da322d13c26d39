"""The loop over all states: it calls each chunk on a few blocks of lanes at a time, with scratch memory for them."""

from __future__ import annotations

from collections.abc import Sequence

from ..runtime.abi import context
from ..schedule.plan import Plan
from .llvm import Body, Lanes, Module

STACK = 16384
"""The most bytes of scratch memory on the stack; more are allocated on the heap."""
SCRATCH = 1 << 18
"""The most bytes of scratch memory for several blocks: they should stay in the L2 cache."""
BLOCKS = 8
"""The most blocks of lanes that a chunk loops over."""

ARGUMENTS = "ptr %ins, ptr %instrides, ptr %outs, ptr %outstrides"
"""The first parameters of `@run` and of the chunks: arrays of data pointers and of batch strides."""


def block_bytes(scheme: Plan, lanes: Lanes) -> int:
    """The bytes of scratch memory of one block of lanes: an odd number of cache lines, so that blocks do not compete for the same
    cache sets.
    """
    lines = -(-scheme.n_slots * lanes.count * lanes.size // 64)
    return 64 * (lines | 1) if lines else 0


def blocks_at_once(scheme: Plan, lanes: Lanes) -> int:
    """The number of blocks of lanes for which a chunk is called."""
    size = block_bytes(scheme, lanes)
    return max(1, min(BLOCKS, SCRATCH // size)) if size else 1 << 40


def driver(module: Module, lanes: Lanes, scheme: Plan, alone: bool) -> str:
    """Define `@run`, which processes the states a few blocks at a time, so that scratch memory stays in cache. `alone`: the module
    has a function `@alone` for one state.
    """
    body = Body(module, lanes)
    size = block_bytes(scheme, lanes)
    n_blocks = blocks_at_once(scheme, lanes)
    writers = [c for c, chunk in enumerate(scheme.chunks) if chunk.steps[0].kind == "write"]
    others = [c for c in range(len(scheme.chunks)) if c not in writers]
    count = body.new("sub i64 %stop, %start")
    if alone:
        body.do(f"br i1 {body.new(f'icmp eq i64 {count}, 1')}, label %single, label %several")
        body.label("single")
        body.do(f"call void @alone({ARGUMENTS}, i64 %start, i64 %start, i64 %stop, i64 1, ptr null)")
        body.do("ret i32 0")
        body.label("several")
    blocks_all = body.new(f"sdiv i64 {body.new(f'add i64 {count}, {lanes.count - 1}')}, {lanes.count}")
    module.declarations.add("declare i64 @llvm.smin.i64(i64, i64)")
    scratch, memory = "null", "null"
    if size:
        used = body.new(f"call i64 @llvm.smin.i64(i64 {blocks_all}, i64 {n_blocks})")
        total = body.new(f"mul i64 {used}, {size}")
        before, small = body.block, body.new(f"icmp ule i64 {total}, {STACK}")
        stack = body.new(f"alloca i8, i64 {body.new(f'select i1 {small}, i64 {total}, i64 64')}, align 64")
        body.do(f"br i1 {small}, label %go, label %large")
        body.label("large")
        allocate = body.load("ptr", context("allocate"), 8)
        heap = body.new(f"call ptr {allocate}(i64 {body.new(f'add i64 {total}, 64')})")
        body.do(f"br i1 {body.new(f'icmp eq ptr {heap}, null')}, label %failed, label %got")
        body.lines += ["failed:", "  ret i32 1"]
        body.label("got")
        address = body.new(f"ptrtoint ptr {heap} to i64")
        aligned = body.new(f"and i64 {body.new(f'add i64 {address}, 63')}, -64")
        above = body.new(f"inttoptr i64 {aligned} to ptr")
        body.do("br label %go")
        body.label("go")
        scratch = body.new(f"phi ptr [{stack}, %{before}], [{above}, %got]")
        memory = body.new(f"phi ptr [null, %{before}], [{heap}, %got]")

    def turn(block: str, _: Sequence[str]) -> Sequence[str]:
        row = body.new(f"add i64 %start, {body.new(f'mul i64 {block}, {lanes.count}')}")
        left = body.new(f"sub i64 {blocks_all}, {block}")
        now = body.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {n_blocks})")

        def call(number: int, row: str, blocks: str, scratch: str) -> None:
            places = f"i64 {row}, i64 %start, i64 %stop, i64 {blocks}, ptr {scratch}"
            body.do(f"call void @chunk{number}({ARGUMENTS}, {places})")

        for number in others:
            call(number, row, now, scratch)

        def write(b: str, _: Sequence[str]) -> Sequence[str]:
            mine = body.new(f"add i64 {row}, {body.new(f'mul i64 {b}, {lanes.count}')}")
            memory = body.offset(scratch, body.new(f"mul i64 {b}, {size}"))
            for number in writers:
                call(number, mine, "1", memory)
            return []

        if writers:
            body.loop("0", now, 1, [], write)
        return []

    body.loop("0", blocks_all, n_blocks, [], turn)
    if size:  # freeing NULL does nothing
        body.do(f"call void {body.load('ptr', context('release'), 8)}(ptr {memory})")
    body.do("ret i32 0")
    return body.function(f"define dso_local i32 @run({ARGUMENTS}, i64 %start, i64 %stop) noinline nounwind")
