"""`python -m benchmarks.page [SECTION …]`: run benchmarks and write their figures to docs/speed.md and to the README's table.

Figures of speed stand in these two places and nowhere else, and are written by this command only. A section that is not run keeps the
figures that it has.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "docs" / "speed.md", ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
ROBOTS = ("panda", "ur5e", "humanoid", "chain100")
SECTIONS = {
    "dynamics": ("Kinematics and dynamics", ["benchmarks", "--batches", "1", "4096", "--robots", *ROBOTS]),
    "derivatives": ("Derivatives", ["benchmarks.derivatives"]),
    "geometry": ("Christoffel symbols and curvature", ["benchmarks.geometry"]),
    "constraints": ("Constraints", ["benchmarks.constraints"]),
    "inverse_kinematics": ("Inverse kinematics", ["benchmarks.inverse_kinematics"]),
    "frameworks": ("Gradients in frameworks", ["benchmarks.frameworks"]),
    "plain_calls": ("Plain calls", ["benchmarks.plain_calls"]),
    "changed_robots": ("Changed robots", ["benchmarks.changed_robots"]),
    "streaming": ("Streaming through Dask", ["benchmarks.streaming"]),
}
ROWS = (
    ("panda", "inverse_dynamics", "Panda, inverse dynamics"),
    ("panda", "forward_dynamics", "Panda, forward dynamics"),
    ("humanoid", "inverse_dynamics", "humanoid (38 freedoms), inverse dynamics"),
    ("humanoid", "forward_dynamics", "humanoid, forward dynamics"),
)


def processor() -> str:
    """The processor's name, as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def commit() -> str:
    """The commit that is measured, with its day."""
    found = subprocess.run(
        ["git", "log", "-1", "--format=commit %h of %cs"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return found.stdout.strip()


def replaced(text: str, name: str, content: str) -> str:
    """The text with the part between the marks of that name replaced."""
    mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not mark.search(text):
        raise SystemExit(f"there are no marks '<!-- {name} -->' and '<!-- end {name} -->' to write between.")
    return mark.sub(lambda m: m[1] + content.rstrip() + "\n" + m[2], text)


def readme_table(speed: list[dict]) -> str:
    """Four rows of the whole: a batch on one core, beside Pinocchio's pool and Pinocchio called from Python."""
    lines = ["| 4096 states, one core | coadjoint | Pinocchio, pool | Pinocchio from Python |", "|---|---|---|---|"]
    for robot, function, label in ROWS:
        rows = [r for r in speed if (r["robot"], r["function"], r["states"]) == (robot, function, 4096)]
        peers = {("pool" if "pool" in r["peer"] else "python"): r for r in rows if "Pinocchio" in r["peer"]}
        if peers:
            cells = [f"{peers[key]['ratio']:.0f}× slower" if key in peers else "" for key in ("pool", "python")]
            lines.append(f"| {label} | {rows[0]['ours'] * 1e9:.0f} ns | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION", help=", ".join(SECTIONS))
    chosen = parser.parse_args().sections or list(SECTIONS)
    for name in chosen:
        title, words = SECTIONS[name]
        print(f"{title}: python -m {' '.join(words)}", flush=True)
        done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        measured = f"Measured on {processor()}, {commit()}.\n\n{done.stdout.strip()}"
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), name, measured), encoding="utf-8")
    if "dynamics" in chosen:
        table = readme_table(json.loads(RESULTS.read_text())["speed"])
        README.write_text(replaced(README.read_text(encoding="utf-8"), "speed", table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
