"""The function that Python calls, in machine code: no interpreter between the call and the kernel.

`@call` has CPython's METH_FASTCALL | METH_KEYWORDS signature and reads pointers, shapes and strides straight from the
arrays' structs. Whatever it does not recognise at once it hands to `self`, a Python callable that takes the same
arguments. `builtin` checks the layout that it assumes before it is ever used.
"""

from __future__ import annotations

from ..runtime.abi import ALIGNED, COUNTED, DATA, DESCR, DIMS, FLAGS, ND, STRIDES, TUPLE_SIZE, TYPE, WRITEABLE, context
from .llvm import Body, Lanes, Module

RELEASE = 64
"""Above so many states other Python threads may run meanwhile."""


def define_call(
    module: Module,
    lanes: Lanes,
    input_shapes: tuple[tuple[int, ...], ...],
    output_shapes: tuple[tuple[int, ...], ...],
    counted: bool = False,
) -> None:
    """Add `@call` to the module of a kernel; if `counted` the last entry of its first input is how many states are left."""
    text = _Call(module, lanes, input_shapes, output_shapes, counted and lanes.dtype == "float64").text()
    module.define("@call", text)


class _Call:
    def __init__(
        self,
        module: Module,
        lanes: Lanes,
        input_shapes: tuple[tuple[int, ...], ...],
        output_shapes: tuple[tuple[int, ...], ...],
        counted: bool,
    ) -> None:
        self.counted = counted
        self.body = Body(module, lanes)
        self.size = lanes.size
        self.type_number = 12 if lanes.dtype == "float64" else 11
        self.input_shapes, self.output_shapes = input_shapes, output_shapes

    def text(self) -> str:
        body, n_in, n_out = self.body, len(self.input_shapes), len(self.output_shapes)
        body.module.declarations |= {f"declare i64 @llvm.{f}.i64(i64, i64)" for f in ("smin", "smax")}
        ins, instrides = body.local("ptr", max(n_in, 1), 8), body.local("i64", max(n_in, 1), 8)
        outs, outstrides = body.local("ptr", max(n_out, 1), 8), body.local("i64", max(n_out, 1), 8)
        self.check(f"icmp eq i64 %nargs, {n_in}")
        batch, batched = "-1", "0"
        ranges = []
        inputs = []
        for k, shape in enumerate(self.input_shapes):
            array = body.load("ptr", body.offset("%args", 8 * k), 8)
            batch, batched, data, stride = self.array(array, shape, batch, batched, ALIGNED)
            body.store("ptr", data, body.offset(ins, 8 * k), 8)
            body.store("i64", stride, body.offset(instrides, 8 * k), 8)
            inputs.append((data, stride, shape))
        # No batch axes: one state.
        count = self.new(f"select i1 {self.new(f'icmp eq i64 {batched}, 0')}, i64 1, i64 {batch}")
        self.check(f"icmp sgt i64 {count}, 0")
        given, most = self.keywords(n_in)
        self.check(f"icmp sle i64 {count}, {most}")
        if self.counted:
            self.count_down(inputs[0][0], count)
        last = self.new(f"sub i64 {count}, 1")
        with_out, allocate, go = body.fresh("with_out"), body.fresh("allocate"), body.fresh("go")
        body.do(f"br i1 {self.new(f'icmp eq ptr {given}, null')}, label %{allocate}, label %{with_out}")

        body.label(with_out)
        if n_out == 1:
            targets = [given]
        else:
            self.is_a(given, "tuple_type")
            self.check(f"icmp eq i64 {body.load('i64', body.offset(given, TUPLE_SIZE), 8)}, {n_out}")
            first = body.offset(given, body.load("i64", context("tuple_items"), 8))
            targets = [body.load("ptr", body.offset(first, 8 * k), 8) for k in range(n_out)]
        ranges = [self.extent(data, stride, shape, last) for data, stride, shape in inputs]
        for k, (array, shape) in enumerate(zip(targets, self.output_shapes, strict=True)):
            _, _, data, stride = self.array(array, shape, batch, batched, ALIGNED | WRITEABLE)
            nd = body.load("i32", body.offset(array, ND), 4)
            wanted = self.new(f"add i64 {batched}, {len(shape)}")
            self.check(f"icmp eq i64 {self.new(f'zext i32 {nd} to i64')}, {wanted}")
            mine = self.extent(data, stride, shape, last)
            apart = self.new(f"icmp ne i64 {stride}, 0")  # one row for all states of a batch is the slow way's to refuse
            self.check_bit(self.new(f"or i1 {apart}, {self.new(f'icmp eq i64 {last}, 0')}"))
            for low, high in ranges:
                apart = self.new(
                    f"or i1 {self.new(f'icmp ule i64 {mine[1]}, {low}')}, {self.new(f'icmp ule i64 {high}, {mine[0]}')}"
                )
                self.check_bit(apart)
            ranges.append(mine)
            body.store("ptr", data, body.offset(outs, 8 * k), 8)
            body.store("i64", stride, body.offset(outstrides, 8 * k), 8)
        increment = body.load("ptr", context("increment"), 8)
        body.do(f"call void {increment}(ptr {given})")
        from_out = body.block
        body.do(f"br label %{go}")

        body.label(allocate)
        pooled, fresh = body.fresh("pooled"), body.fresh("fresh")
        few = self.new(f"icmp sle i64 {count}, {body.load('i64', context('fresh'), 8)}")
        body.do(f"br i1 {few}, label %{fresh}, label %{pooled}")
        body.label(fresh)
        result = self.allocate(batched, count, outs, outstrides)
        from_new = body.block
        body.do(f"br label %{go}")
        body.label(pooled)
        large = self.from_pool(count, outs, outstrides)
        from_pool = body.block
        body.do(f"br label %{go}")

        body.label(go)
        value = self.new(f"phi ptr [{given}, %{from_out}], [{result}, %{from_new}], [{large}, %{from_pool}]")
        self.run(value, count, f"ptr {ins}, ptr {instrides}, ptr {outs}, ptr {outstrides}, i64 0, i64 {count}")
        body.label("slow")
        slow = body.load("ptr", context("vectorcall"), 8)
        body.do(f"ret ptr {self.new(f'call ptr {slow}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)')}")
        return body.function("define dso_local ptr @call(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) nounwind")

    def count_down(self, numbers: str, count: str) -> None:
        """Take the states of a batch from those that are left; the slow way when there are none."""
        body, (length,) = self.body, self.input_shapes[0]
        place = body.offset(numbers, (length - 1) * self.size)
        batch = self.new(f"select i1 {self.new(f'icmp sgt i64 {count}, {COUNTED}')}, i64 {count}, i64 0")
        left = self.new(f"fsub double {body.load('double', place, 8)}, {self.new(f'sitofp i64 {batch} to double')}")
        body.store("double", left, place, 8)
        self.check(f"fcmp oge double {left}, 0.0")

    def keywords(self, n_in: int) -> tuple[str, str]:
        """The value of `out`, null if not given, and the largest batch that is not shared among threads: the longest possible if
        `threads` is 1."""
        body = self.body
        given, most = body.local("ptr", 1, 8), body.local("i64", 1, 8)
        body.store("ptr", "null", given, 8)
        body.store("i64", body.load("i64", context("most"), 8), most, 8)
        done, some = body.fresh("keywords_done"), body.fresh("keywords")
        body.do(f"br i1 {self.new('icmp eq ptr %kwnames, null')}, label %{done}, label %{some}")
        body.label(some)
        size = body.load("i64", body.offset("%kwnames", TUPLE_SIZE), 8)
        self.check(f"icmp ule i64 {size}, 2")
        names = body.offset("%kwnames", body.load("i64", context("tuple_items"), 8))
        for k in range(2):
            inside, out, other, following = (body.fresh(w) for w in ("inside", "out", "other", "following"))
            body.do(f"br i1 {self.new(f'icmp ugt i64 {size}, {k}')}, label %{inside}, label %{done}")
            body.label(inside)
            name = body.load("ptr", body.offset(names, 8 * k), 8)
            value = body.load("ptr", body.offset("%args", 8 * (n_in + k)), 8)
            is_none = self.new(f"icmp eq ptr {value}, {body.load('ptr', context('none'), 8)}")
            is_out = self.new(f"icmp eq ptr {name}, {body.load('ptr', context('out'), 8)}")
            body.do(f"br i1 {is_out}, label %{out}, label %{other}")
            body.label(out)
            body.store("ptr", self.new(f"select i1 {is_none}, ptr null, ptr {value}"), given, 8)
            body.do(f"br label %{following}")
            body.label(other)
            self.check(f"icmp eq ptr {name}, {body.load('ptr', context('threads'), 8)}")
            is_one = self.new(f"icmp eq ptr {value}, {body.load('ptr', context('one'), 8)}")
            self.check_bit(self.new(f"or i1 {is_one}, {is_none}"))
            most_now, longest = (body.load("i64", context(field), 8) for field in ("most", "longest"))
            limit = self.new(f"select i1 {is_one}, i64 {longest}, i64 {most_now}")
            body.store("i64", limit, most, 8)
            body.do(f"br label %{following}")
            body.label(following)
        body.do(f"br label %{done}")
        body.label(done)
        return body.load("ptr", given, 8), body.load("i64", most, 8)

    def new(self, text: str) -> str:
        return self.body.new(text)

    def check(self, comparison: str) -> None:
        """Go on if it holds; else the slow way."""
        self.check_bit(self.new(comparison))

    def check_bit(self, bit: str) -> None:
        following = self.body.fresh("ok")
        self.body.do(f"br i1 {bit}, label %{following}, label %slow")
        self.body.label(following)

    def is_a(self, thing: str, type_: str) -> None:
        self.check(
            f"icmp eq ptr {self.body.load('ptr', self.body.offset(thing, TYPE), 8)}, {self.body.load('ptr', context(type_), 8)}"
        )

    def array(self, array: str, shape: tuple[int, ...], batch: str, batched: str, flags: int) -> tuple[str, str, str, str]:
        """Check one array; the batch size so far, whether there is one, data pointer and batch stride."""
        body = self.body
        self.is_a(array, "array_type")
        descr = body.load("ptr", body.offset(array, DESCR), 8)
        self.check(f"icmp eq ptr {descr}, {body.load('ptr', context('dtype'), 8)}")
        has = self.new(f"and i32 {body.load('i32', body.offset(array, FLAGS), 4)}, {flags}")
        self.check(f"icmp eq i32 {has}, {flags}")
        nd = body.load("i32", body.offset(array, ND), 4)
        dims = body.load("ptr", body.offset(array, DIMS), 8)
        strides = body.load("ptr", body.offset(array, STRIDES), 8)
        data = body.load("ptr", body.offset(array, DATA), 8)
        one, none, both = body.fresh("one"), body.fresh("none"), body.fresh("both")
        body.do(f"switch i32 {nd}, label %slow [i32 {len(shape)}, label %{none} i32 {len(shape) + 1}, label %{one}]")
        body.label(none)
        body.do(f"br label %{both}")
        body.label(one)
        mine = body.load("i64", dims, 8)
        stride_one = body.load("i64", strides, 8)
        first = self.new(f"icmp eq i64 {batched}, 0")
        same = self.new(f"icmp eq i64 {mine}, {batch}")
        self.check_bit(self.new(f"or i1 {first}, {same}"))
        from_one = body.block
        body.do(f"br label %{both}")
        body.label(both)
        size = self.new(f"phi i64 [{batch}, %{none}], [{mine}, %{from_one}]")
        any_ = self.new(f"phi i64 [{batched}, %{none}], [1, %{from_one}]")
        stride = self.new(f"phi i64 [0, %{none}], [{stride_one}, %{from_one}]")
        skip = self.new(f"phi i64 [0, %{none}], [8, %{from_one}]")
        step = self.size
        if shape:
            core_dims, core_strides = body.offset(dims, skip), body.offset(strides, skip)
            for axis in range(len(shape) - 1, -1, -1):
                self.check(f"icmp eq i64 {body.load('i64', body.offset(core_dims, 8 * axis), 8)}, {shape[axis]}")
                self.check(f"icmp eq i64 {body.load('i64', body.offset(core_strides, 8 * axis), 8)}, {step}")
                step *= shape[axis]
        return size, any_, data, stride

    def extent(self, data: str, stride: str, shape: tuple[int, ...], last: str) -> tuple[str, str]:
        """First address of an array and first address behind it."""
        size = self.size
        for n in shape:
            size *= n
        address = self.new(f"ptrtoint ptr {data} to i64")
        span = self.new(f"mul i64 {last}, {stride}")
        down = self.new(f"call i64 @llvm.smin.i64(i64 {span}, i64 0)")
        up = self.new(f"call i64 @llvm.smax.i64(i64 {span}, i64 0)")
        end = self.new(f"add i64 {address}, {self.new(f'add i64 {up}, {size}')}")
        return self.new(f"add i64 {address}, {down}"), end

    def allocate(self, batched: str, count: str, outs: str, outstrides: str) -> str:
        """New arrays for the results; the object to return."""
        body, n_out = self.body, len(self.output_shapes)
        dims = body.local("i64", 1 + max(map(len, self.output_shapes), default=0), 8)
        body.store("i64", count, dims, 8)
        # Without batch axes the shape begins behind the batch size.
        start = body.offset(dims, self.new(f"select i1 {self.new(f'icmp eq i64 {batched}, 0')}, i64 8, i64 0"))
        several = ""
        if n_out != 1:
            several = self.new(f"call ptr {body.load('ptr', context('new_tuple'), 8)}(i64 {n_out})")
            self.or_fail(several, "")
        array = ""
        for k, shape in enumerate(self.output_shapes):
            size = self.size
            for axis, n in enumerate(shape):
                body.store("i64", str(n), body.offset(dims, 8 * (axis + 1)), 8)
                size *= n
            nd = self.new(f"add i32 {len(shape)}, {self.new(f'trunc i64 {batched} to i32')}")
            kind = body.load("ptr", context("array_type"), 8)
            array = self.new(
                f"call ptr {body.load('ptr', context('new_array'), 8)}(ptr {kind}, i32 {nd}, ptr {start},"
                f" i32 {self.type_number}, ptr null, ptr null, i32 0, i32 0, ptr null)"
            )
            self.or_fail(array, several)
            if several:
                items = body.load("i64", context("tuple_items"), 8)
                body.store("ptr", array, body.offset(body.offset(several, items), 8 * k), 8)
            body.store("ptr", body.load("ptr", body.offset(array, DATA), 8), body.offset(outs, 8 * k), 8)
            body.store("i64", str(size), body.offset(outstrides, 8 * k), 8)
        return several or array

    def from_pool(self, count: str, outs: str, outstrides: str) -> str:
        """Large arrays for the results, which a function of Python's finds; the object to return. There is a batch axis."""
        body = self.body
        arguments = body.local("ptr", 1, 8)
        number = self.new(f"call ptr {body.load('ptr', context('integer'), 8)}(i64 {count})")
        self.or_fail(number, "")
        body.store("ptr", number, arguments, 8)
        call, find = (body.load("ptr", context(field), 8) for field in ("vectorcall", "pool"))
        made = self.new(f"call ptr {call}(ptr {find}, ptr {arguments}, i64 1, ptr null)")
        body.do(f"call void {body.load('ptr', context('decrement'), 8)}(ptr {number})")
        self.or_fail(made, "")
        items = body.load("i64", context("tuple_items"), 8)
        for k, shape in enumerate(self.output_shapes):
            array = made
            if len(self.output_shapes) != 1:
                array = body.load("ptr", body.offset(body.offset(made, items), 8 * k), 8)
            size = self.size
            for n in shape:
                size *= n
            body.store("ptr", body.load("ptr", body.offset(array, DATA), 8), body.offset(outs, 8 * k), 8)
            body.store("i64", str(size), body.offset(outstrides, 8 * k), 8)
        return made

    def or_fail(self, thing: str, drop: str) -> None:
        """Return NULL, Python's sign of an exception already set, if there is no thing."""
        body = self.body
        failed, fine = body.fresh("failed"), body.fresh("fine")
        body.do(f"br i1 {self.new(f'icmp eq ptr {thing}, null')}, label %{failed}, label %{fine}")
        body.label(failed)
        if drop:
            body.do(f"call void {body.load('ptr', context('decrement'), 8)}(ptr {drop})")
        body.do("ret ptr null")
        body.label(fine)

    def run(self, value: str, count: str, arguments: str) -> None:
        """Run the kernel, without Python's lock when it takes long, and return the value."""
        body = self.body
        long, short, done = body.fresh("long"), body.fresh("short"), body.fresh("done")
        body.do(f"br i1 {self.new(f'icmp sgt i64 {count}, {RELEASE}')}, label %{long}, label %{short}")
        body.label(long)
        state = self.new(f"call ptr {body.load('ptr', context('save_thread'), 8)}()")
        status_long = self.new(f"call i32 @run({arguments})")
        body.do(f"call void {body.load('ptr', context('restore_thread'), 8)}(ptr {state})")
        body.do(f"br label %{done}")
        body.label(short)
        status_short = self.new(f"call i32 @run({arguments})")
        body.do(f"br label %{done}")
        body.label(done)
        status = self.new(f"phi i32 [{status_long}, %{long}], [{status_short}, %{short}]")
        fine, failed = body.fresh("fine"), body.fresh("failed")
        body.do(f"br i1 {self.new(f'icmp eq i32 {status}, 0')}, label %{fine}, label %{failed}")
        body.label(failed)
        body.do(f"call void {body.load('ptr', context('decrement'), 8)}(ptr {value})")
        no_memory = body.load("ptr", context("no_memory"), 8)
        body.do(f"ret ptr {self.new(f'call ptr {no_memory}()')}")
        body.label(fine)
        body.do(f"ret ptr {value}")
