"""Machine code: made from IR by LLVM, loaded from object code."""

from __future__ import annotations

import ctypes
from typing import Any

from .target import LLVM_LOCK, Target, host, llvm


def _machine(target: Target) -> Any:
    # A machine for each engine: LLVM's are not to be shared. Position-independent code with 32-bit distances suffices,
    # as the memory manager lays all sections of an object side by side.
    return (
        llvm()
        .Target.from_triple(target.triple)
        .create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small", jit=True
        )
    )


def compile_ir(text: str, target: Target) -> bytes:
    """Object code of a module."""
    binding = llvm()
    with LLVM_LOCK:
        module = binding.parse_assembly(text)
        module.triple = target.triple
        module.verify()
        return bytes(_machine(target).emit_object(module))


class Code:
    """Machine code in memory; freed with this object."""

    def __init__(self, object_code: bytes) -> None:
        binding = llvm()
        with LLVM_LOCK:
            empty = binding.parse_assembly("")
            self._engine = binding.create_mcjit_compiler(empty, _machine(host()), use_lmm=True)
            self._engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
            self._engine.finalize_object()
            self.run = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64)(
                self._engine.get_function_address("run")
            )
            self.call_address = self._engine.get_function_address("call")
            self.context_address = self._engine.get_global_value_address("context")
