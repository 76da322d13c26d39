"""Kernels as custom calls of XLA, the compiler behind JAX: no Python between XLA's buffers and the machine code.

XLA calls a handler with a frame that holds its arguments and results (XLA's `c_api.h`, version 0). Ours reads pointers and sizes from the
buffers and runs the kernel on all states. It is the same code for all kernels; each has a copy with a table of its own: the kernel's
address, and what it takes.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import threading
from pathlib import Path
from typing import Any

from ..kernel.runtime import cache, cache_key, jit
from ..kernel.runtime.function import CompiledFunction
from ..kernel.selftest import verify_every_call
from ._common import engine as library
from ._programs import Program

FIELDS = ("run", "inputs", "outputs", "bytes", "type", "version", "cores")
"""The table of a handler: the kernel's address, the number of its inputs and outputs, size and XLA code of their type, XLA's
version, and the size of one state in each array.
"""

TEXT = r"""
@context = dso_local global [7 x i64] zeroinitializer, align 8
@wrong = internal constant [59 x i8] c"coadjoint: XLA's buffers are not those that the kernel has\00"
@memory = internal constant [45 x i8] c"coadjoint: no memory for intermediate values\00"

; The number of states in a buffer, -1 if it is not what it should be.
define internal i64 @states(ptr %buffer, i64 %core, i64 %type) nounwind {
entry:
  %size = load i64, ptr %buffer, align 8
  %type_at = getelementptr i8, ptr %buffer, i64 16
  %type32 = load i32, ptr %type_at, align 4
  %its_type = sext i32 %type32 to i64
  %rank_at = getelementptr i8, ptr %buffer, i64 32
  %rank = load i64, ptr %rank_at, align 8
  %dims_at = getelementptr i8, ptr %buffer, i64 40
  %dims = load ptr, ptr %dims_at, align 8
  %large = icmp uge i64 %size, 48
  %same = icmp eq i64 %its_type, %type
  %good = and i1 %large, %same
  br i1 %good, label %head, label %bad
head:
  %k = phi i64 [0, %entry], [%next, %turn]
  %product = phi i64 [1, %entry], [%more, %turn]
  %go_on = icmp slt i64 %k, %rank
  br i1 %go_on, label %turn, label %done
turn:
  %dim_at = getelementptr i64, ptr %dims, i64 %k
  %dim = load i64, ptr %dim_at, align 8
  %more = mul i64 %product, %dim
  %next = add i64 %k, 1
  br label %head
done:
  %states = sdiv i64 %product, %core
  %back = mul i64 %states, %core
  %whole = icmp eq i64 %back, %product
  br i1 %whole, label %fine, label %bad
fine:
  ret i64 %states
bad:
  ret i64 -1
}

define internal ptr @error(ptr %frame, ptr %message, i32 %code) nounwind {
  %arguments = alloca [4 x i64], align 8
  store i64 28, ptr %arguments, align 8
  %extension = getelementptr i8, ptr %arguments, i64 8
  store ptr null, ptr %extension, align 8
  %message_at = getelementptr i8, ptr %arguments, i64 16
  store ptr %message, ptr %message_at, align 8
  %code_at = getelementptr i8, ptr %arguments, i64 24
  store i32 %code, ptr %code_at, align 4
  %api_at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api_at, align 8
  %create_at = getelementptr i8, ptr %api, i64 48
  %create = load ptr, ptr %create_at, align 8
  %error = call ptr %create(ptr %arguments)
  ret ptr %error
}

define dso_local ptr @handler(ptr %frame) nounwind {
entry:
  %run = load ptr, ptr @context, align 8
  %n_in = load i64, ptr getelementptr (i8, ptr @context, i64 8), align 8
  %n_out = load i64, ptr getelementptr (i8, ptr @context, i64 16), align 8
  %bytes = load i64, ptr getelementptr (i8, ptr @context, i64 24), align 8
  %type = load i64, ptr getelementptr (i8, ptr @context, i64 32), align 8
  %version = load i64, ptr getelementptr (i8, ptr @context, i64 40), align 8
  %cores = load ptr, ptr getelementptr (i8, ptr @context, i64 48), align 8
  %extension_at = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %extension_at, align 8
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %call, label %extended
extended:
  %kind_at = getelementptr i8, ptr %extension, i64 8
  %kind = load i32, ptr %kind_at, align 4
  %asked = icmp eq i32 %kind, 1
  br i1 %asked, label %metadata, label %call
metadata: ; asked for the version of the interface: major and minor number, and no traits
  %metadata_at = getelementptr i8, ptr %extension, i64 24
  %data = load ptr, ptr %metadata_at, align 8
  %version_at = getelementptr i8, ptr %data, i64 24
  store i64 %version, ptr %version_at, align 4
  %traits_at = getelementptr i8, ptr %data, i64 32
  store i32 0, ptr %traits_at, align 4
  ret ptr null
call:
  %n_args_at = getelementptr i8, ptr %frame, i64 56
  %n_args = load i64, ptr %n_args_at, align 8
  %n_rets_at = getelementptr i8, ptr %frame, i64 96
  %n_rets = load i64, ptr %n_rets_at, align 8
  %frame_size = load i64, ptr %frame, align 8
  %large = icmp uge i64 %frame_size, 152
  %args_fit = icmp eq i64 %n_args, %n_in
  %rets_fit = icmp eq i64 %n_rets, %n_out
  %fit = and i1 %args_fit, %rets_fit
  %good = and i1 %fit, %large
  br i1 %good, label %begin, label %bad
begin:
  %args_at = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args_at, align 8
  %rets_at = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets_at, align 8
  %total = add i64 %n_in, %n_out
  %pointers = alloca ptr, i64 %total, align 8
  %strides = alloca i64, i64 %total, align 8
  %outs = getelementptr ptr, ptr %pointers, i64 %n_in
  %out_strides = getelementptr i64, ptr %strides, i64 %n_in
  %first_result = load ptr, ptr %rets, align 8
  %first_core_at = getelementptr i64, ptr %cores, i64 %n_in
  %first_core = load i64, ptr %first_core_at, align 8
  %count = call i64 @states(ptr %first_result, i64 %first_core, i64 %type)
  br label %head
head:
  %k = phi i64 [0, %begin], [%next, %set]
  %left = icmp slt i64 %k, %total
  br i1 %left, label %turn, label %go
turn:
  %is_input = icmp slt i64 %k, %n_in
  %behind = sub i64 %k, %n_in
  %list = select i1 %is_input, ptr %args, ptr %rets
  %place = select i1 %is_input, i64 %k, i64 %behind
  %buffer_at = getelementptr ptr, ptr %list, i64 %place
  %buffer = load ptr, ptr %buffer_at, align 8
  %core_at = getelementptr i64, ptr %cores, i64 %k
  %core = load i64, ptr %core_at, align 8
  %its = call i64 @states(ptr %buffer, i64 %core, i64 %type)
  %as_many = icmp eq i64 %its, %count
  %single = icmp eq i64 %its, 1
  %shared = and i1 %single, %is_input
  %either = or i1 %as_many, %shared
  %known = icmp sge i64 %its, 0
  %right = and i1 %either, %known
  br i1 %right, label %set, label %bad
set:
  %pointer_at = getelementptr ptr, ptr %pointers, i64 %k
  %stride_at = getelementptr i64, ptr %strides, i64 %k
  %memory_at = getelementptr i8, ptr %buffer, i64 24
  %memory = load ptr, ptr %memory_at, align 8
  store ptr %memory, ptr %pointer_at, align 8
  %step = mul i64 %core, %bytes
  %stride = select i1 %as_many, i64 %step, i64 0
  store i64 %stride, ptr %stride_at, align 8
  %next = add i64 %k, 1
  br label %head
go:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %compute, label %done
compute:
  %status = call i32 %run(ptr %pointers, ptr %strides, ptr %outs, ptr %out_strides, i64 0, i64 %count)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %failed
done:
  ret ptr null
bad:
  %wrong = call ptr @error(ptr %frame, ptr @wrong, i32 3)
  ret ptr %wrong
failed:
  %no_memory = call ptr @error(ptr %frame, ptr @memory, i32 8)
  ret ptr %no_memory
}
"""


@functools.cache
def version() -> tuple[int, int] | None:
    """The version of XLA's interface; None if it is not supported."""
    header = Path(library("jax.ffi").include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    try:
        text = header.read_text(encoding="utf-8")
    except OSError:
        return None
    found = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
    numbers = [int(x[1]) for x in found if x]
    return (numbers[0], numbers[1]) if len(numbers) == 2 and numbers[0] == 0 else None


@functools.cache
def _code() -> tuple[dict[str, Any], bytes]:
    """The handler's machine code, cached on disk."""
    key = cache_key.key(hashlib.sha256(TEXT.encode()).hexdigest(), handler="xla")
    found = cache.load(key)
    if found is None:
        from ..kernel.runtime.target import host

        found = jit.pack(jit.compile_ir(TEXT, host()))
        cache.store(key, *found)
    return found


class Handler:
    """The handler of one kernel."""

    def __init__(self, kernel: CompiledFunction, numbers: tuple[int, int]) -> None:
        s, how = kernel.signature, _code()
        self._code = jit.load(*how, ("handler",))
        self._kernel = kernel
        sizes = [_size(shape) for shape in (*s.input_shapes, *s.output_shapes)]
        self._cores = (ctypes.c_int64 * len(sizes))(*sizes)
        run = ctypes.cast(kernel.kernel.code.run, ctypes.c_void_p).value or 0
        double = s.dtype == "float64"
        values = {
            "run": run,
            "inputs": len(s.input_shapes),
            "outputs": len(s.output_shapes),
            "bytes": 8 if double else 4,
            "type": 12 if double else 11,
            "version": numbers[0] | numbers[1] << 32,
            "cores": ctypes.addressof(self._cores),
        }
        table = (ctypes.c_int64 * len(FIELDS)).from_address(self._code.addresses["context"])
        table[:] = [values[name] for name in FIELDS]
        self.function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._code.addresses["handler"])


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


_handlers: dict[str, Handler] = {}
_lock = threading.Lock()


def target(program: Program, dtype: Any) -> str | None:
    """The name under which the program is registered with XLA; None if XLA cannot call it. The name is a digest of the program: an
    executable that JAX cached on disk finds the same program in another process. XLA never unregisters a name, so handlers and
    their kernels are kept.
    """
    numbers = version()
    if numbers is None or verify_every_call():  # results are compared in Python
        return None
    kernel = program.native(dtype)
    name = f"coadjoint_{program.key}_{kernel.signature.dtype}"
    with _lock:
        if name not in _handlers:
            handler = Handler(kernel, numbers)
            ffi = library("jax.ffi")
            ffi.register_ffi_target(name, ffi.pycapsule(handler.function), platform="cpu")
            _handlers[name] = handler
    return name
