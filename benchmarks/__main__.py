"""`python -m benchmarks [--quick] [--robots panda …] [--functions …] [--batches 1 64 …] [--out FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import warnings
from pathlib import Path

import coadjoint as cj

from .compilation import first_calls
from .contenders import FUNCTIONS, contenders
from .operations import literature, operations, traced
from .peak import peak_flops
from .robots import robots
from .rollouts import rollouts
from .threads import threads
from .timing import measure

ROBOTS = ["panda", "ur5e", "humanoid", "chain10", "chain30", "chain100", "chain300"]
BATCHES = [1, 64, 4096, 65536]


def nanoseconds(seconds: float) -> str:
    return (
        f"{seconds * 1e9:.0f} ns" if seconds < 1e-6 else f"{seconds * 1e6:.2f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
    )


def speed_table(args: argparse.Namespace, made: dict[str, cj.Robot], results: list[dict]) -> None:
    """Ratios of every contender to ours, round by round, with quartiles."""
    print(
        "\n| robot | function | states | coadjoint | against | theirs | times slower (quartiles) |\n|---|---|---|---|---|---|---|"
    )
    for name, robot in made.items():
        long = name.startswith("chain") and robot.nv > 30
        for function in args.functions:
            if long and function not in ("inverse_dynamics", "forward_dynamics"):
                continue  # results of n² numbers are written straight-line for robots, not for chains of hundreds
            for batch in args.batches:
                if batch * robot.nv > 8_000_000 or not hasattr(cj, function):
                    continue
                timings = measure(contenders(function, robot, batch), args.rounds)
                mine = [t for key, t in timings.items() if key.startswith("coadjoint")]
                for us in mine:
                    for key, theirs in timings.items():
                        if key.startswith("coadjoint"):
                            continue
                        ratio, low, high = theirs.ratio_to(us)
                        label = us.name.removeprefix("coadjoint").strip(", ")
                        row = [
                            name,
                            function + (f" ({label})" if label else ""),
                            batch,
                            us.best,
                            key,
                            theirs.best,
                            ratio,
                            low,
                            high,
                        ]
                        results.append(
                            dict(
                                zip(
                                    ("robot", "function", "states", "ours", "peer", "theirs", "ratio", "low", "high"),
                                    row,
                                    strict=True,
                                )
                            )
                        )
                        print(
                            f"| {name} | {row[1]} | {batch} | {nanoseconds(us.best)} | {key} | {nanoseconds(theirs.best)} "
                            f"| **{ratio:.1f}** ({low:.1f} … {high:.1f}) |",
                            flush=True,
                        )


def operation_table(args: argparse.Namespace, made: dict[str, cj.Robot], results: list[dict]) -> None:
    """Operation counts, and the share of the core's peak that the batches reached."""
    peak = peak_flops()
    print(f"\nPeak of this core: {peak / 1e9:.1f} GFLOP/s.\n")
    print("| robot | function | multiplications | additions | other | literature | share of peak |\n|---|---|---|---|---|---|---|")
    for name, robot in made.items():
        for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            if function == "mass_matrix" and robot.nv > 40:
                continue
            mul, add, other = operations(traced(function, robot))
            known = "{} + {}".format(*literature(robot.n_links)) if function == "inverse_dynamics" else ""
            best = min(
                (r["ours"] for r in results if r["robot"] == name and r["function"] == function and r["states"] == 4096),
                default=None,
            )
            share = f"{(mul + add + other) / best / peak:.0%}" if best else ""
            print(f"| {name} | {function} | {mul} | {add} | {other} | {known} | {share} |", flush=True)


def compile_table(names: list[str]) -> list[dict]:
    """First calls in fresh processes."""
    rows = []
    print("\n| robot | function | first call, cold | from the disk cache | peak memory |\n|---|---|---|---|---|")
    for name in names:
        for function in ("inverse_dynamics", "forward_dynamics"):
            row = {"robot": name, "function": function} | first_calls(name, function)
            rows.append(row)
            print(
                f"| {name} | {function} | {row['cold']:.2f} s | {1e3 * row['cached']:.1f} ms | {row['memory']:.0f} MB |", flush=True
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Panda and humanoid, one state and 4096, few rounds")
    parser.add_argument("--robots", nargs="+", default=None)
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=FUNCTIONS)
    parser.add_argument("--batches", nargs="+", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--out", default="benchmarks/results/latest.json")
    args = parser.parse_args()
    args.robots = args.robots or (["panda", "humanoid"] if args.quick else ROBOTS)
    args.batches = args.batches or ([1, 4096] if args.quick else BATCHES)
    args.rounds = args.rounds or (15 if args.quick else 40)
    warnings.simplefilter("ignore", cj.errors.ModelWarning)
    if os.path.exists("/proc/loadavg"):
        print(f"load average: {Path('/proc/loadavg').read_text().split()[0]}; other work on the machine disturbs every figure.")
    made = robots(args.robots)
    results: list[dict] = []
    speed_table(args, made, results)
    steps = rollouts(args.rounds) if "panda" in made else []
    shared = threads({name: made[name] for name in ("panda", "humanoid") if name in made}, args.rounds)
    operation_table(args, made, results)
    first = compile_table(args.robots)
    out = Path(args.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"machine": platform.machine(), "processor": platform.processor(), "python": sys.version}
    out.write_text(
        json.dumps({"machine": machine, "speed": results, "rollouts": steps, "threads": shared, "first calls": first}, indent=1)
    )
    print(f"\nSaved to {out}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
