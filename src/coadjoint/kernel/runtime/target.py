"""The processor that kernels are made for: its name, its features, and how many lanes its vectors have."""

from __future__ import annotations

import functools
import os
import platform
import threading
from dataclasses import dataclass
from typing import Any

LLVM_LOCK = threading.RLock()
"""Held around every use of llvmlite: LLVM is set up once, and no fork happens while another thread is inside it."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LLVM_LOCK.acquire, after_in_parent=LLVM_LOCK.release, after_in_child=LLVM_LOCK.release)


@dataclass(frozen=True)
class Target:
    """A processor in LLVM's words, and what lowering wants to know of it."""

    triple: str
    cpu: str
    features: str
    vector_bits: int
    """Width of its vector registers; 64 where there are none."""
    fma: bool
    rounding: bool
    """True if `floor` is an instruction."""

    def lanes(self, dtype: str) -> int:
        """The number of values of a type that one vector holds."""
        return max(1, self.vector_bits // (64 if dtype == "float64" else 32))


@functools.cache
def llvm() -> Any:
    """llvmlite's binding, initialised; ImportError where it is not installed."""
    import llvmlite.binding as binding

    with LLVM_LOCK:
        if tuple(binding.llvm_version_info) < (20,):  # newer ones do this themselves and refuse the call
            binding.initialize()
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    return binding


@functools.cache
def host() -> Target:
    """The processor this process runs on."""
    binding = llvm()
    with LLVM_LOCK:
        features = dict(binding.get_host_cpu_features())
        flat = ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
        cpu, triple = binding.get_host_cpu_name(), binding.get_process_triple()
    return Target(triple, cpu, flat, *_abilities(platform.machine().lower(), features))


def _abilities(machine: str, features: dict[str, bool]) -> tuple[int, bool, bool]:
    """Vector width in bits, fused multiply-add, rounding instructions."""
    if machine in ("x86_64", "amd64"):
        fma, rounding = features.get("fma", False), features.get("sse4.1", False)
        if features.get("avx512f"):
            return 512, True, True
        return (256 if features.get("avx") else 128), fma, rounding
    if machine in ("arm64", "aarch64"):
        return 128, True, True
    return 64, False, False
