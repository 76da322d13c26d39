"""Mutation testing: change the source in one small place, and see whether the tests notice.

    python -m fuzz.mutation lie dynamics --sample 200 --out mutants.jsonl

Every mutant is made in a copy of `src`, and the tests of its module run on it as written, without machine code. One that no test
fails for has survived: either it computes the same (it is equivalent), or a law is missing. Results are appended to the file as they
come; started again with the same file, the run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import hypothesis  # noqa: F401  these once, for all children
import mpmath  # noqa: F401
import numpy  # noqa: F401
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "coadjoint"
SKIPPED = "not jax and not torch and not pytorch and not casadi and not mpmath and not kernels and not functions and not interrupt"
TESTS: dict[str, str] = {
    "lie/so3.py": "so3 se3",
    "lie/se3.py": "se3",
    "lie/quaternion.py": "quaternion quaternion_length",
    "lie/screw.py": "screw",
    "lie/inertia.py": "inertia dynamics",
    "lie/_series.py": "so3 se3 quaternion",
    "dynamics/articulated.py": "dynamics singular",
    "dynamics/blocks.py": "derivatives second_derivatives christoffel",
    "dynamics/christoffel.py": "christoffel curvature",
    "dynamics/composite.py": "dynamics",
    "dynamics/coriolis.py": "dynamics christoffel",
    "dynamics/derivatives.py": "derivatives triangles",
    "dynamics/energy.py": "dynamics regressor",
    "dynamics/factorisation.py": "lagrangian misprints_closed_form",
    "dynamics/freedoms.py": "christoffel second_derivatives",
    "dynamics/kool.py": "kool springs",
    "dynamics/lagrangian.py": "lagrangian",
    "dynamics/momentum.py": "dynamics",
    "dynamics/moving.py": "derivatives christoffel",
    "dynamics/newton_euler.py": "dynamics",
    "dynamics/regressor.py": "regressor",
    "dynamics/second_derivatives.py": "second_derivatives",
    "dynamics/singular.py": "singular dynamics errors",
    "dynamics/springs.py": "springs",
    "dynamics/steps.py": "rollout",
    "dynamics/wrenches.py": "payload",
    "kernel/passes/common_sums.py": "simplify fuzz",
    "kernel/passes/derive.py": "derive",
    "kernel/passes/evaluate.py": "simplify trace derive",
    "kernel/passes/order.py": "simplify fuzz",
    "kernel/passes/polynomial.py": "simplify fuzz",
    "kernel/passes/reassociate.py": "simplify fuzz",
    "kernel/passes/rewrite.py": "simplify fuzz",
    "kernel/passes/simplify.py": "simplify fuzz",
    "kernel/trace/builder.py": "trace simplify",
    "kernel/trace/expr.py": "trace simplify",
    "kernel/trace/functions.py": "trace simplify",
    "kernel/trace/symbols.py": "trace",
    "kernel/trace/trace.py": "trace",
    "kernel/schedule/chunks.py": "lower native selftest",
    "kernel/schedule/dense_layout.py": "lower sparse_solve",
    "kernel/schedule/fuse.py": "lower native",
    "kernel/schedule/list_schedule.py": "lower native",
    "kernel/schedule/plan.py": "lower native",
    "kernel/schedule/slots.py": "lower native",
    "kernel/schedule/spills.py": "lower native",
    "kernel/schedule/steps.py": "lower native",
    "kernel/emit/angles.py": "lower native",
    "kernel/emit/dense_solve.py": "lower sparse_solve",
    "kernel/emit/driver.py": "lower native threads",
    "kernel/emit/elementary.py": "lower tanh",
    "kernel/emit/entry.py": "native structures pool",
    "kernel/emit/llvm.py": "lower native",
    "kernel/emit/lower.py": "lower native",
    "kernel/emit/remainder.py": "remainder",
    "kernel/emit/sequential.py": "programs",
    "kernel/emit/sequential_expressions.py": "programs",
    "kernel/emit/sequential_module.py": "programs",
    "kernel/emit/sparse_solve.py": "sparse_solve lower",
    "kernel/emit/step_loop.py": "rollout",
    "kernel/graph.py": "trace simplify selftest",
    "kernel/ops.py": "trace simplify derive missing_numbers log1p",
    "kernel/selftest.py": "selftest",
    "kernel/structures.py": "structures",
    "kernel/trial.py": "selftest",
    "kernel/verified.py": "selftest",
    "kernel/runtime/abi.py": "native threads",
    "kernel/runtime/arguments.py": "native compile",
    "kernel/runtime/bound.py": "native rollout",
    "kernel/runtime/builtin.py": "native",
    "kernel/runtime/cache.py": "cache",
    "kernel/runtime/cache_key.py": "cache structures",
    "kernel/runtime/elf.py": "native cache",
    "kernel/runtime/folder.py": "cache",
    "kernel/runtime/function.py": "native compile",
    "kernel/runtime/native.py": "native selftest",
    "kernel/runtime/pool.py": "pool",
    "kernel/runtime/threads.py": "threads pool",
}
"""The test files (without `test_`) whose business each module is, those first that find most."""
NATIVE = tuple(f"kernel/{name}" for name in ("schedule", "emit", "runtime", "selftest", "structures", "trial", "verified"))
"""Folders and modules whose tests run machine code."""

DROPPED = ("transpose", "mirror", "conjugate", "normalize")
"""Functions of one array that a mutant leaves out."""
SWAPPED = ("cross", "ad_act", "ad_dual_act", "multiply")
"""Functions of two arrays whose order matters."""
OTHERS: dict[type, type] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may stand in the place of a node: a name for the change, and the new node."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield "sign of a term", ast.BinOp(node.left, other, node.right)
        yield "term dropped", node.left
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        other = ast.Div() if isinstance(node.op, ast.Mult) else ast.Mult()
        yield "factor inverted", ast.BinOp(node.left, other, node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign" if isinstance(node.op, ast.USub) else "not", node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "constant", ast.Constant(node.value + 1 if isinstance(node.value, int) or not node.value else node.value * 1.5)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "truth", ast.Constant(not node.value)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHERS:
        yield "comparison", ast.Compare(node.left, [OTHERS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield "and/or", ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in DROPPED and len(node.args) == 1:
            yield f"{name} dropped", node.args[0]
        elif name in SWAPPED and len(node.args) == 2:
            yield f"{name} swapped", ast.Call(node.func, node.args[::-1], node.keywords)


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Where the nodes of a module hang: parent, field, index. Not annotations, decorators, what is raised, text, and `strict=`."""
    if isinstance(tree, ast.keyword) and tree.arg == "strict":
        return
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list") or isinstance(tree, ast.Raise | ast.JoinedStr):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST):
                yield tree, field, index
                yield from places(node)


def mutants(path: Path) -> Iterator[tuple[str, str]]:
    """Every mutant of a file: a description that is the same in every run, and its text."""
    tree = ast.parse(path.read_text())
    for count, (parent, field, index) in enumerate(list(places(tree))):
        held = getattr(parent, field)
        node = held if index is None else held[index]
        for name, new in variants(node):
            new = ast.copy_location(copy.deepcopy(new), node)
            if index is None:
                setattr(parent, field, new)
            else:
                held[index] = new
            text = ast.unparse(ast.fix_missing_locations(tree))
            setattr(parent, field, held) if index is None else held.__setitem__(index, node)
            line = getattr(node, "lineno", 0)
            yield f"{path.relative_to(PACKAGE)}:{line} #{count} {name}: {ast.unparse(node)}  ->  {ast.unparse(new)}", text


def survives(source: Path, tests: list[str], limit: int, native: bool) -> tuple[str, float]:
    """Whether the tests notice: "killed", "timed out" or "survived", and the seconds it took; in a child, which has all but us imported."""
    files = [str(ROOT / "tests" / f"test_{name}.py") for name in tests]
    start = time.monotonic()
    child = os.fork()
    if not child:
        _run(source, files, limit, native)
    _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - start
    if os.WIFSIGNALED(status):
        return "timed out", seconds
    return ("killed", "survived")[os.WEXITSTATUS(status) == 0], seconds


def _run(source: Path, files: list[str], limit: int, native: bool) -> NoReturn:
    """Run test files on the package in `source`, for so many seconds of the processor; does not return."""
    code = 3
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.environ |= {
            "COADJOINT_NATIVE": "0",
            "COADJOINT_CACHE": str(source / "cache"),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(source / "hypothesis"),
        }
        os.chdir(ROOT)
        sys.path[:0] = [str(source), str(ROOT / "tests")]
        sys.dont_write_bytecode = True
        quiet = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        kind = "native" if native else "not native"
        chosen = [] if native else ["-k", f"{SKIPPED} and not native"]
        for speed in ("not slow", "slow"):  # most are noticed by the quick tests
            code = int(pytest.main([*quiet, *chosen, "-m", f"{kind} and {speed}", *files]))
            if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                break
        else:
            code = 0
    finally:
        os._exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="+", help="folders or files of src/coadjoint, as `lie` or `dynamics/energy.py`")
    parser.add_argument("--sample", type=int, help="how many mutants, drawn at random; all if left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=60, help="seconds of the processor for one mutant")
    parser.add_argument("--sound", action="store_true", help="the tests are known to pass without a change: do not run them first")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    args = parser.parse_args()
    names = [name for name in TESTS if any(name == part or name.startswith(part.rstrip("/") + "/") for part in args.parts)]
    chosen = [(name, *mutant) for name in names for mutant in mutants(PACKAGE / name)]
    random.Random(args.seed).shuffle(chosen)
    known = {}
    if args.out.exists():
        known = {row["mutant"]: row for row in map(json.loads, args.out.read_text().splitlines())}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        if "coadjoint" in sys.modules:
            raise SystemExit("coadjoint is imported already; mutants would not be.")
        shutil.copytree(PACKAGE, source / "coadjoint", ignore=shutil.ignore_patterns("__pycache__"))
        sound: set[str] = set()
        for name, mutant, text in chosen[: args.sample]:
            if mutant in known:
                continue
            native = name.startswith(NATIVE)
            if not args.sound and TESTS[name] not in sound:
                if survives(source, TESTS[name].split(), args.limit, native)[0] != "survived":
                    raise SystemExit(
                        f"the tests of {name}, {TESTS[name]}, fail without any change, or take more than {args.limit} s."
                    )
                sound.add(TESTS[name])
            place = source / "coadjoint" / name
            place.write_text(text)
            outcome, seconds = survives(source, TESTS[name].split(), args.limit, native)
            shutil.copyfile(PACKAGE / name, place)
            known[mutant] = {"mutant": mutant, "outcome": outcome, "seconds": round(seconds, 1)}
            with args.out.open("a") as file:
                file.write(json.dumps(known[mutant], ensure_ascii=False) + "\n")
            print(f"{outcome:9s} {seconds:5.1f} s  {mutant}", flush=True)
    tally = Counter(known[mutant]["outcome"] for _, mutant, _ in chosen[: args.sample] if mutant in known)
    print(f"{sum(tally.values())} of {len(chosen)} mutants: {dict(tally)}")


if __name__ == "__main__":
    main()
