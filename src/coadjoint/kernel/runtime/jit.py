"""Machine code: made from IR by LLVM, kept as bytes, loaded into memory."""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Sequence
from typing import Any

from . import elf
from .target import LLVM_LOCK, Target, host, llvm


def _machine(target: Target) -> Any:
    # A machine for each engine: LLVM's are not to be shared. Position-independent code with 32-bit distances suffices,
    # as all sections of an object are laid side by side.
    return (
        llvm()
        .Target.from_triple(target.triple)
        .create_target_machine(cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="small", jit=True)
    )


def compile_ir(text: str, target: Target) -> bytes:
    """Object code of a module. LLVM's passes over the IR are left out: they gain nothing on such code."""
    with LLVM_LOCK:
        return _emit(text, target)


def compile_text(text: str, target: Target) -> bytes:
    """Object code of a sequential program, for which LLVM's passes do much: its variables are in memory, its functions small."""
    with LLVM_LOCK:
        return _emit(text, target, optimise=True)


@atexit.register
def _at_exit() -> None:
    # LLVM destroys its globals when the process ends: no other thread may be inside it by then, nor enter it.
    LLVM_LOCK.acquire()


def _emit(text: str, target: Target, optimise: bool = False) -> bytes:
    # A function of its own: LLVM's objects are gone again before the lock is released.
    module = llvm().parse_assembly(text)
    module.triple = target.triple
    module.verify()
    machine = _machine(target)
    if optimise:
        options = llvm().create_pipeline_tuning_options(speed_level=2)
        builder = llvm().create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def assembly(text: str, target: Target) -> str:
    """The machine code of a module as text."""
    with LLVM_LOCK:
        module = llvm().parse_assembly(text)
        module.triple = target.triple
        return str(_machine(target).emit_assembly(module))


def pack(object_code: bytes) -> tuple[dict[str, Any], bytes]:
    """The bytes that `Code` loads, and their kind: a linked image where that is possible, else the object itself."""
    linked = elf.link(object_code) if elf.loads_here() else None
    if linked is None:
        return {"kind": "object"}, object_code
    return {"kind": "image", "writable": linked.writable, "symbols": linked.symbols}, linked.memory


def load(how: dict[str, Any], payload: bytes, functions: Sequence[str]) -> Any:
    """The code that `pack` made, in memory for as long as the result lives; its `addresses` are those of the functions and of `context`."""
    if how["kind"] == "image":
        return elf.Loaded(elf.Image(payload, how["writable"], how["symbols"]))
    return _Engine(payload, functions)


class Code:
    """Machine code in memory; freed with this object."""

    def __init__(self, how: dict[str, Any], payload: bytes) -> None:
        self._owner = load(how, payload, ("run", "call", "repeat"))
        addresses = self._owner.addresses
        self.call_address, self.context_address = addresses["call"], addresses["context"]
        run = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64)
        self.run = run(addresses["run"])
        repeat = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 6, *[ctypes.c_int64] * 3)
        self.repeat = repeat(addresses["repeat"])


class _Engine:
    """Object code loaded by LLVM."""

    def __init__(self, object_code: bytes, functions: Sequence[str]) -> None:
        with LLVM_LOCK:
            binding = llvm()
            # LLVM's own memory manager may put sections too far apart for 32-bit distances; llvmlite's does not.
            self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine(host()), use_lmm=True)
            self._engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
            self._engine.finalize_object()
            self.addresses = {name: self._engine.get_function_address(name) for name in functions}
            self.addresses["context"] = self._engine.get_global_value_address("context")

    def __del__(self) -> None:
        with LLVM_LOCK:
            self._engine.close()
