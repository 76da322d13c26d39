"""What the core can do at most: independent fused multiply-adds on full vectors, in machine code made the same way."""

from __future__ import annotations

import ctypes
import time


def peak_flops() -> float:
    """Floating-point operations a second of one core, double precision, a fused multiply-add counted as two."""
    import llvmlite.binding as llvm

    from coadjoint.kernel.runtime.target import host

    lanes, chains, loops = host().lanes("float64"), 12, 2_000_000
    kind = f"<{lanes} x double>"
    splat = lambda x: f"<{', '.join([f'double {x}'] * lanes)}>"
    lines = ["define double @peak(i64 %n) {", "entry:", "  br label %loop", "loop:", "  %i = phi i64 [0, %entry], [%j, %loop]"]
    lines += [f"  %x{k} = phi {kind} [{splat(f'{k + 1}.0e-3')}, %entry], [%y{k}, %loop]" for k in range(chains)]
    lines += [
        f"  %y{k} = call {kind} @llvm.fma.v{lanes}f64({kind} %x{k}, {kind} {splat('0.5')}, {kind} {splat('0.25')})"
        for k in range(chains)
    ]
    lines += ["  %j = add i64 %i, 1", "  %more = icmp slt i64 %j, %n", "  br i1 %more, label %loop, label %done", "done:"]
    lines += [f"  %e{k} = extractelement {kind} %y{k}, i32 0" for k in range(chains)]
    lines += ["  %s0 = fadd double %e0, 0.0"] + [f"  %s{k} = fadd double %s{k - 1}, %e{k}" for k in range(1, chains)]
    lines += [f"  ret double %s{chains - 1}", "}", f"declare {kind} @llvm.fma.v{lanes}f64({kind}, {kind}, {kind})"]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("\n".join(lines)), machine)
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(engine.get_function_address("peak"))
    best = 1e9
    for _ in range(7):
        start = time.process_time()
        run(loops)
        best = min(best, time.process_time() - start)
    return 2.0 * lanes * chains * loops / best
