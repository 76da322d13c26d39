"""Plain calls, whose results are new arrays, beside calls with `out=`: `python -m benchmarks.plain_calls [--rounds 15]`.

Twice: each result let go before the next call, beside one array for all calls; and each result kept until the next one is there, as in
`M = cj.mass_matrix(robot, q)` in a loop, beside two arrays in turn. Both then touch the same number of bytes, so that what is left is
the cost of a new array, not of a larger working set in the processor's caches. Times are of the processor, one thread.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import coadjoint as cj

from .timing import Contender, measure

FUNCTIONS: dict[str, tuple[int, tuple[int, ...]]] = {
    "inverse_dynamics": (3, (4096, 65536, 1 << 20)),
    "mass_matrix": (1, (1024, 4096, 16384, 65536, 262144)),
    "inverse_dynamics_derivatives": (3, (1024, 4096, 16384, 65536)),
    "curvature": (1, (64, 1024, 4096)),
}
"""How many arrays of states each takes, and the batches."""


def contenders(fn: Callable[..., Any], arrays: list[np.ndarray]) -> tuple[dict[str, Contender], int]:
    """The four ways to call, and the bytes of a result."""
    robot = cj.load("panda")
    result = fn(robot, *arrays)
    pair = [_like(result), _like(result)]
    size = sum(x.nbytes for x in _parts(result))
    kept, turns = [result], itertools.cycle(pair)

    def keep() -> None:
        kept[0] = fn(robot, *arrays, threads=1)

    ways: dict[str, Callable[[], object]] = {
        "one array": lambda: fn(robot, *arrays, out=pair[0], threads=1),
        "let go": lambda: fn(robot, *arrays, threads=1),
        "two arrays": lambda: fn(robot, *arrays, out=next(turns), threads=1),
        "kept": keep,
    }
    return {name: (way, len(arrays[0])) for name, way in ways.items()}, size


def _parts(result: Any) -> tuple[np.ndarray, ...]:
    return result if isinstance(result, tuple) else (result,)


def _like(result: Any) -> Any:
    return tuple(map(np.empty_like, result)) if isinstance(result, tuple) else np.empty_like(result)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plain_calls", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    print("| Panda | states | result | `out=` | plain, let go | plain, kept, beside two arrays |\n|---|---|---|---|---|---|")
    for name, (count, batches) in FUNCTIONS.items():
        for batch in batches:
            ways, size = contenders(getattr(cj, name), [rng.normal(size=(batch, 7)) for _ in range(count)])
            found = measure(ways, rounds, least=2e-2)
            cells = []
            for plain, given in (("let go", "one array"), ("kept", "two arrays")):
                ratio, low, high = found[plain].ratio_to(found[given])
                cells.append(f"{ratio:.2f} ({low:.2f} … {high:.2f})")
            nanoseconds = 1e9 * found["one array"].best
            print(f"| {name} | {batch} | {size / 1e6:.1f} MB | {nanoseconds:.0f} ns | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
