"""What pages cost: writing, size, first picture, pictures while something moves, the studio, a film. `python -m benchmarks.pages`

Times of Python are of the processor; those of the browser (headless Chromium with its software renderer) are of the clock, and mean
something on a quiet machine only: the load is printed. Each is the least of `--rounds`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj

from .robots import chain, humanoid

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import Browser, chromium

DRAWN = "window.coadjoint && coadjoint.first"
SECONDS = 2.0

DRAG = """(seconds => new Promise(done => {
  const { state, scene } = coadjoint, q = state.q.slice(), start = performance.now();
  let pictures = 0, spent = 0, finished = false;
  const draw = scene.draw;
  scene.draw = function () { const t = performance.now(); draw.call(this); spent += performance.now() - t; pictures++; };
  const step = now => {
    const t = (now - start) / 1000;
    if (t > seconds) { scene.draw = draw; state.set({ q }); return done([pictures / t, spent / pictures]); }
    state.set({ q: q.map((x, k) => x + 0.1 * Math.sin(3 * t + k)) });
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}))"""
"""Pictures a second, and milliseconds of the page's own thread for one, while all coordinates move."""


def processor(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def opened(page: Any, path: Path) -> tuple[float, float, float]:
    """Seconds to the first picture by the page's own clock, from its opening; then pictures a second while it moves, and ms for one."""
    page.open(path.as_uri(), DRAWN)
    first = page.run("coadjoint.first") / 1000
    page.run(f"{DRAG}(1.0)")  # the page finds its pace
    rate, each = page.run(f"{DRAG}({SECONDS})")
    return first, rate, each


def studio(name: str) -> tuple[float, float]:
    """Seconds from the command to the first picture, the start of a browser included; and those of the processor in Python."""
    # Modules are compiled, as they are where the package is installed.
    environment = {key: x for key, x in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "coadjoint-bytecode"))
    command = [sys.executable, "-u", "-m", "coadjoint", "studio", name, "--no-browser"]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout
    url = re.search(r"http://\S+", process.stdout.readline())[0]
    browser = Browser()
    page = browser.page()
    page.size(1280, 800)
    page.open(url, DRAWN)
    total = time.perf_counter() - begin
    spent = sum(int(x) for x in Path(f"/proc/{process.pid}/stat").read_text().split()[13:15]) / os.sysconf("SC_CLK_TCK")
    page.connection.close()
    browser.close()
    process.terminate()
    process.wait()
    return total, spent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    print(f"load of the machine: {os.getloadavg()[0]:.1f} of {os.cpu_count()}\n")
    print(f"{'page':20}{'written in s':>14}{'MB':>8}{'first picture s':>17}{'pictures/s':>12}{'ms each':>9}")
    browser = Browser() if chromium() else None
    page = browser.page() if browser else None
    if page:
        page.size(1280, 800)
    with tempfile.TemporaryDirectory() as folder:
        robots = {"panda": cj.load("panda"), "humanoid": humanoid(), "chain of 100": chain(100)}
        for name, robot in robots.items():
            path, report = Path(folder) / f"{name}.html", lambda path, robot: cj.report(robot, path)
            written = min(processor(lambda: report(path, robot)) for _ in range(rounds if name != "chain of 100" else 1))
            row = f"{name:20}{written:14.2f}{path.stat().st_size / 1e6:8.2f}"
            if page:
                found = np.array([opened(page, path) for _ in range(rounds)])
                row += f"{found[:, 0].min():17.2f}{found[:, 1].max():12.1f}{found[:, 2].min():9.1f}"
            print(row, flush=True)
        panda = robots["panda"]
        motion = cj.simulate(panda, panda.neutral(), np.zeros(7), 1.0)
        for kind in ("gif", "html"):
            spent = min(processor(lambda: motion.animate(Path(folder) / f"film.{kind}")) for _ in range(rounds))
            print(f"\nfilm of one second, .{kind}: {spent:.2f} s of the processor", end="")
    print()
    if page:
        page.connection.close()
        browser.close()
        total, spent = np.array([studio("panda") for _ in range(rounds)]).min(axis=0)
        print(f"studio, from the command to the first picture: {total:.2f} s, of which Python computes {spent:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
