"""From a graph to LLVM IR: every value a vector of lanes, each lane one state.

The kernel is `i32 @run(inputs, input_strides, outputs, output_strides, start, stop)`: pointers to arrays of pointers
and of batch strides in bytes; it computes states start … stop-1 and returns 0, or 1 when no scratch memory could be
had. A stride of 0 broadcasts. Rows lie as NumPy has them: a block of `lanes` rows is loaded piece by piece and
transposed in registers, results likewise. The last block is moved back so that it ends at `stop`, and where there are
fewer states than lanes, the last state is computed again in the spare lanes: so inputs and outputs must not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph import Graph
from ..op import Emit
from ..ops import OPS, TRUTH
from ..runtime.abi import define_context
from ..runtime.target import Target
from ..schedule.chunks import Chunk
from ..schedule.fuse import operands
from ..schedule.plan import Plan, plan_alone
from ..schedule.spills import REACH, SEGMENT, local_slots
from ..schedule.steps import Step, columns
from .angles import sincos
from .driver import ARGUMENTS, block_bytes, blocks_at_once, driver
from .llvm import Body, Lanes, Module

AHEAD = 512
"""Inputs of at least this many bytes per state are prefetched."""


def widths(lanes: Lanes) -> list[int]:
    """The numbers of columns of an input or output that can be loaded or stored together, the largest first."""
    return [w for w in (4, 2, 1) if w <= lanes.count and w * lanes.bits <= 128]


def lower(graph: Graph, scheme: Plan, lanes: Lanes, target: Target) -> Module:
    """The module with the function @run that computes the graph by its plan: a function for each chunk, and the driver."""
    module = Module()
    define_context(module)
    for number, chunk in enumerate(scheme.chunks):
        name = f"@chunk{number}"
        module.define(name, _Chunk(graph, scheme, chunk, module, lanes, target, widths(lanes)).text(name))
    alone = plan_alone(graph, scheme) if lanes.count > 1 else None
    if alone:
        text = _Chunk(graph, alone, alone.chunks[0], module, Lanes(lanes.dtype, 1), target, (1,), lanes).text("@alone")
        module.define("@alone", text)
    module.define("@run", driver(module, lanes, scheme, alone is not None))
    return module


class _Chunk:
    """Emits one chunk's function."""

    def __init__(
        self,
        graph: Graph,
        scheme: Plan,
        chunk: Chunk,
        module: Module,
        lanes: Lanes,
        target: Target,
        widths: Sequence[int],
        angles: Lanes | None = None,
    ) -> None:
        self.graph, self.plan, self.chunk, self.target, self.widths = graph, scheme, chunk, target, widths
        self.lanes = lanes
        self.angles = angles or lanes
        """The number of angles that share a vector when their sines and cosines are computed: several if there is one state."""
        self.body = Body(module, lanes, target.fma, target.rounding)
        self.values: dict[int, str] = {}
        self.width = lanes.count * lanes.size
        self.rows: dict[tuple[str, int], list[str]] = {}
        self.scratch = self.frame = ""
        self.local, self.n_local = local_slots(chunk, set(scheme.slots))
        self.now = 0
        self.touched: dict[int, int] = {}
        """The step at which each value was last computed, loaded or used."""

    def text(self, name: str) -> str:
        body = self.body
        sides = {"load": "in", "store": "out", "write": "out"}
        arrays = {(sides[s.kind], s.what[0]) for s in self.chunk.steps if s.kind in sides}
        bases = {key: self._base(*key) for key in sorted(arrays)}
        homes = body.local("ptr", 2, 8)
        second = body.offset(homes, 8)
        if self.n_local:
            body.do(f"store volatile ptr {body.local(self.lanes.type, self.n_local, 64)}, ptr {second}, align 8")

        def turn(block: str, _: Sequence[str]) -> Sequence[str]:
            self.scratch = body.offset("%scratch", body.new(f"mul i64 {block}, {block_bytes(self.plan, self.lanes)}"))
            body.do(f"store volatile ptr {self.scratch}, ptr {homes}, align 8")
            self._fetch_ahead(block)
            if bases:
                rows = self._row_numbers(block)
                for key, (base, stride) in bases.items():
                    self.rows[key] = [body.offset(base, body.new(f"mul i64 {row}, {stride}")) for row in rows]
            for now, step in enumerate(self.chunk.steps):
                self.now = now
                if now % SEGMENT == 0:
                    self.scratch = body.new(f"load volatile ptr, ptr {homes}, align 8")
                    if self.n_local:
                        self.frame = body.new(f"load volatile ptr, ptr {second}, align 8")
                getattr(self, "_" + step.kind)(step)
            return []

        body.loop("0", "%blocks", 1, [], turn)
        body.do("ret void")
        return body.function(
            f"define internal void {name}({ARGUMENTS}, i64 %row, i64 %start, i64 %stop, i64 %blocks, ptr %scratch)"
            " noinline nounwind"
        )

    def _base(self, side: str, array: int) -> tuple[str, str]:
        """Data pointer and batch stride of an array, read before the loop."""
        body = self.body
        base = body.load("ptr", body.offset(f"%{side}s", 8 * array), 8)
        return base, body.load("i64", body.offset(f"%{side}strides", 8 * array), 8)

    def _fetch_ahead(self, block: str) -> None:
        """Prefetch rows of the next blocks' inputs: chunks read them column by column, a pattern that hardware prefetchers do not
        detect. Each chunk prefetches its share of the rows, block by block.
        """
        body, n, size = self.body, self.lanes.count, self.lanes.size
        sizes = [size * math.prod(shape) for shape in self.graph.input_shapes]
        chunks = [id(c) for c in self.plan.chunks if c.steps[0].kind != "write"]
        if sum(sizes) < AHEAD or len(chunks) == 1 or id(self.chunk) not in chunks:
            return
        body.module.declarations |= {
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            "declare i64 @llvm.smin.i64(i64, i64)",
        }
        number = chunks.index(id(self.chunk))
        for lane in range(n * number // len(chunks), n * (number + 1) // len(chunks)):
            ahead = blocks_at_once(self.plan, self.lanes) * n + lane
            row = body.new(f"add i64 {body.new(f'add i64 %row, {ahead}')}, {body.new(f'mul i64 {block}, {n}')}")
            row = body.new(f"call i64 @llvm.smin.i64(i64 {row}, i64 %stop)")
            for array, length in enumerate(sizes):
                base, stride = self._base("in", array)
                start = body.offset(base, body.new(f"mul i64 {row}, {stride}"))
                for line in range(0, length, 64):
                    body.do(f"call void @llvm.prefetch.p0(ptr {body.offset(start, line)}, i32 0, i32 2, i32 1)")

    def _row_numbers(self, block: str) -> list[str]:
        """The states in the lanes of a block."""
        body, n = self.body, self.lanes.count
        body.module.declarations |= {f"declare i64 @llvm.{f}.i64(i64, i64)" for f in ("smin", "smax")}
        wanted = body.new(f"add i64 %row, {body.new(f'mul i64 {block}, {n}')}")
        latest = body.new(f"sub i64 %stop, {n}")
        first = body.new(f"call i64 @llvm.smin.i64(i64 {wanted}, i64 {latest})")
        first = body.new(f"call i64 @llvm.smax.i64(i64 {first}, i64 %start)")
        last = body.new("sub i64 %stop, 1")
        rows = [body.new(f"add i64 {first}, {lane}") for lane in range(n)]
        return [body.new(f"call i64 @llvm.smin.i64(i64 {row}, i64 {last})") for row in rows]

    def _slot(self, slot: int) -> str:
        return self.body.offset(self.scratch, slot * self.width)

    def _own(self, slot: int) -> str:
        return self.body.offset(self.frame, slot * self.width)

    def value(self, k: int) -> str:
        """The vector of node k: a constant, a value computed recently in this chunk, or a load from memory."""
        if self.graph.op[k] == "const":
            return self.body.const(self.graph.value[k])
        far = self.now - self.touched.get(k, self.now) > REACH and (k in self.plan.slots or k in self.local)
        self.touched[k] = self.now
        if far or k not in self.values:
            place = self._own(self.local[k]) if k in self.local else self._slot(self.plan.slots[k])
            value = self.body.load(self.lanes.type, place, self.width)
            if self.graph.op[k] in TRUTH:
                value = self.body.compare("une", value, self.body.const(0.0))
            self.values[k] = value
        return self.values[k]

    def made(self, k: int, value: str) -> None:
        """Record the value of node k, and store it in its slots for later chunks and blocks."""
        self.values[k] = value
        self.touched[k] = self.now
        slots = [*self.plan.feeds.get(k, ())]
        if k in self.chunk.keep:
            slots.append(self.chunk.keep[k])
        if (slots or k in self.local) and self.graph.op[k] in TRUTH:
            value = self.body.select(value, self.body.const(1.0), self.body.const(0.0))
        for slot in slots:
            self.body.store(self.lanes.type, value, self._slot(slot), self.width)
        if k in self.local:
            self.body.store(self.lanes.type, value, self._own(self.local[k]), self.width)

    def _node(self, step: Step) -> None:
        body, k = self.body, step.what
        op = self.graph.op[k]
        args = [self.value(a) for a in operands(self.graph, self.plan.fused, k)]
        if k in self.plan.fused:
            a, b, c = args
            if op == "sub":
                product_first = self.graph.args[k][0] == self.plan.fused[k]
                if product_first:
                    c = body.op("fneg", c)
                elif self.graph.op[self.graph.args[self.plan.fused[k]][0]] == "const":
                    b = body.op("fneg", b)
                else:
                    a = body.op("fneg", a)
            result = body.intrinsic("fma", a, b, c)
        elif OPS[op].called:
            result = self._call(op, args)
        else:
            result = self._emit(op)(body, *args)
        self.made(k, result)

    def _emit(self, op: str) -> Emit:
        emit = OPS[op].llvm
        assert emit is not None, op
        return emit

    def _call(self, op: str, args: list[str]) -> str:
        """A call of a separate function: for operations that are long and rare."""
        v, name = self.lanes.type, f"@vector{self.lanes.count}_{op}"
        if name not in self.body.module.definitions:
            inner = Body(self.body.module, self.lanes, self.target.fma, self.target.rounding)
            names = [f"%x{i}" for i in range(len(args))]
            inner.do(f"ret {v} {self._emit(op)(inner, *names)}")
            parameters = ", ".join(f"{v} {x}" for x in names)
            self.body.module.define(name, inner.function(f"define internal {v} {name}({parameters}) noinline nounwind"))
        return self.body.new(f"call {v} {name}({', '.join(f'{v} {x}' for x in args)})")

    def _trig(self, step: Step) -> None:
        angles = [self.value(a) for a in step.what]
        pairs = sincos(self.body, angles) if self.angles is self.lanes else self._packed_sincos(angles)
        of = dict(zip(step.what, pairs, strict=True))
        for k in step.defs:
            self.made(k, of[self.graph.args[k][0]][0 if self.graph.op[k] == "sin" else 1])

    def _packed_sincos(self, angles: list[str]) -> list[tuple[str, str]]:
        """(sin, cos) of vectors with one lane, as many at once as the processor's have."""
        body, n = self.body, self.angles.count
        wide = body.view(self.angles)
        packs = []
        for first in range(0, len(angles), n):
            few = angles[first : first + n]
            packs.append(self._join(few + [few[-1]] * (n - len(few)), 1))
        found = sincos(wide, packs)
        body.block = wide.block

        def pick(x: str, k: int) -> str:
            return body.shuffle(self.angles.type, x, "poison", [k % n])

        return [(pick(found[k // n][0], k), pick(found[k // n][1], k)) for k in range(len(angles))]

    def _block(self, step: Step) -> None:
        graph, block = self.graph, step.what
        area, lies = self.plan.areas[block]
        for index, k in enumerate(graph.args[block]):
            if graph.op[k] in ("const", "part"):  # all others were written here when they were made
                slot = lies.argument_slot(index)
                if slot is not None:
                    self.body.store(self.lanes.type, self.value(k), self._slot(area + slot), self.width)
        lies.emit(self.body, self._slot(area))

    def _load(self, step: Step) -> None:
        array, first, width = step.what
        rows = self.rows["in", array]
        piece = f"<{width} x {self.lanes.scalar}>"
        # Nothing writes to inputs: marked so, their loads need not wait for stores before them.
        places = [self.body.offset(p, first * self.lanes.size) for p in rows]
        loaded = [self.body.new(f"load {piece}, ptr {p}, align {self.lanes.size}, !invariant.load !1") for p in places]
        vectors = self._transpose([self._join(loaded[c::width], width) for c in range(width)], width)
        for k in step.defs:
            self.made(k, vectors[self.graph.value[k][1] - first])

    def _store(self, step: Step) -> None:
        array, first, width = step.what
        columns = [self.value(k) for k in self.graph.outputs[array][first : first + width]]
        self._store_columns(columns, [self.body.offset(p, first * self.lanes.size) for p in self.rows["out", array]])

    def _store_columns(self, columns: list[str], pointers: list[str]) -> None:
        """Transpose columns and write a piece of each row."""
        width = len(columns)
        joined = self._transpose(columns, width)
        for lane, pointer in enumerate(pointers):
            group, member = divmod(lane, width)
            picked = range(group * width, (group + 1) * width)
            row = self.body.shuffle(self.lanes.type, joined[member], "poison", picked)
            self.body.store(f"<{width} x {self.lanes.scalar}>", row, pointer, self.lanes.size)

    def _write(self, step: Step) -> None:
        """Write a wide output by a loop over its columns, a cache line at a time; a table has their slots."""
        body, array, nodes = self.body, step.what[0], self.graph.outputs[step.what[0]]
        for k, slot in self.chunk.keep.items():
            body.store(self.lanes.type, self.value(k), self._slot(slot), self.width)
        offsets = ", ".join(f"i64 {self.plan.slots[k] * self.width}" for k in nodes)
        table = f"@columns{array}"
        body.module.define(table, f"{table} = internal constant [{len(nodes)} x i64] [{offsets}]")
        rows, size, widest = self.rows["out", array], self.lanes.size, self.widths[0]

        def piece(column: str, width: int) -> None:
            values = []
            for c in range(width):
                place = body.new(f"getelementptr i64, ptr {table}, i64 {body.new(f'add i64 {column}, {c}')}")
                slot = body.offset(self.scratch, body.load("i64", place, 8))
                values.append(body.load(self.lanes.type, slot, self.width))
            at = body.new(f"mul i64 {column}, {size}")
            self._store_columns(values, [body.offset(p, at) for p in rows])

        line = max(64 // size, widest)

        def turn(column: str, _: Sequence[str]) -> Sequence[str]:
            for c in range(0, line, widest):
                piece(body.new(f"add i64 {column}, {c}"), widest)
            return []

        whole = len(nodes) - len(nodes) % line
        body.loop("0", str(whole), line, [], turn)
        for first, width in columns(len(nodes) - whole, self.widths):
            piece(str(whole + first), width)

    def _join(self, pieces: list[str], width: int) -> str:
        """The concatenation of short vectors."""
        while len(pieces) > 1:
            type_ = f"<{width} x {self.lanes.scalar}>"
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [self.body.shuffle(type_, a, b, range(2 * width)) for a, b in pairs]
            width *= 2
        return pieces[0]

    def _transpose(self, vectors: list[str], width: int) -> list[str]:
        """Transpose each width×width square of `width` vectors, by interleaving halves log₂(width) times."""
        n, half = self.lanes.count, width // 2
        low = [s + c // 2 + (n if c % 2 else 0) for s in range(0, n, width) for c in range(width)]
        high = [s + half for s in low]
        for _ in range(width.bit_length() - 1):
            pairs = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [self.body.shuffle(self.lanes.type, a, b, mask) for a, b in pairs for mask in (low, high)]
        return vectors
