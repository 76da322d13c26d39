"""python -m fuzz NAME [--cases N] [--seed S] [--seconds T]"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run one fuzzer; the exit code is 1 if something failed."""
    names = sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser("python -m fuzz", description="Random inputs, and outcomes that must hold for all of them.")
    parser.add_argument("name", choices=names, help="what is fuzzed")
    parser.add_argument("--cases", "--inputs", type=int, default=1000, help="how many inputs (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first; the others follow (default 0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many seconds")
    options = parser.parse_args(arguments)
    fuzzer = importlib.import_module(f"fuzz.{options.name}")
    start = time.monotonic()
    tally: dict[str, int] = {}
    if hasattr(fuzzer, "run_all"):  # one that isolates its inputs
        return fuzzer.run_all(options.seed, options.cases, options.seconds)
    cases = 0
    for seed in range(options.seed, options.seed + options.cases):
        if time.monotonic() - start > options.seconds:
            break
        cases += 1
        for outcome, count in fuzzer.run(seed).items():
            tally[outcome] = tally.get(outcome, 0) + count
    print(f"{options.name}: {cases} cases in {time.monotonic() - start:.0f} s")
    for outcome, count in sorted(tally.items()):
        print(f"{count:10d}  {outcome}")
    return 1 if any(outcome.startswith("FAILED") for outcome in tally) else 0


if __name__ == "__main__":
    sys.exit(main())
