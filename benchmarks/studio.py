"""A studio that is asked for long: memory of its process over thousands of mixed questions. `python -m benchmarks.studio --requests 30000`

The command `coadjoint studio` runs as a process of its own and is asked over HTTP, as its page asks: mostly a dragged hand, with null
motion, bonds, motions, phase portraits, curvature, geodesics, plans and the page itself between, connections that are closed and opened
anew, and questions that are refused. Growth is the slope of a line through the resident memory in the second half, after the code of
every question is compiled, in kB for 1,000 requests, beside its uncertainty; eight hours at 60 Hz are 1.7 million. Needs Linux (`/proc`).
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj

WEIGHTS = {
    "reach": 8000, "null": 1000, "hold": 400, "phase": 100, "motion": 100, "refused": 150, "wrong": 150, "page": 40,
    "torus": 40, "geodesic": 15, "plan": 5,
}  # fmt: skip
"""How often what is asked, of 10,000."""
SAMPLES = 400
EIGHT_HOURS = 8 * 3600 * 60


class Asker:
    """One who asks a studio, on one connection that is closed and opened anew from time to time."""

    def __init__(self, url: str, robot: cj.Robot, seed: int = 0) -> None:
        self.host, self.token = re.search(r"//([^/]+)/\?token=(.+)", url).groups()
        self.robot, self.rng = robot, np.random.default_rng(seed)
        self.connection = http.client.HTTPConnection(self.host, timeout=600)
        self.q = robot.random(self.rng)
        self.frame = robot.frame_names[-1]
        self.direction: Any = None
        self.answered: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []

    def ask(self) -> None:
        """One question, chosen by its weight."""
        names = list(WEIGHTS)
        kind = str(self.rng.choice(names, p=np.array([WEIGHTS[x] for x in names]) / sum(WEIGHTS.values())))
        if self.rng.random() < 0.01:
            self.connection.close()
        begin = time.perf_counter()
        if kind == "page":
            self._send("GET", f"/?token={self.token}", None, 200)
        elif kind == "refused":
            self._send("GET", f"/{self.rng.integers(1 << 40):x}/../../etc/passwd?token={self.token}", None, 404)
        else:
            self._note(kind, self._send("POST", "/ask", self.question(kind), 200))
        self.answered[kind].append(time.perf_counter() - begin)

    def question(self, kind: str) -> dict[str, Any]:
        robot, rng, q = self.robot, self.rng, self.q
        still = [0.0] * robot.nv
        data: dict[str, Any] = {"ask": kind, "q": q.tolist(), "frame": self.frame}
        near = cj.pose(robot, q, self.frame)
        if kind == "reach":
            data |= {"position": (near[:3, 3] + rng.normal(scale=0.01, size=3)).tolist(), "turn": bool(rng.random() < 0.5)}
        elif kind == "null":
            data |= {"pose": near.tolist(), "step": float(rng.uniform(-0.05, 0.05)), "turn": True, "direction": self.direction}
        elif kind in ("hold", "motion"):
            bond = {"kind": "rod", "a": self.frame, "b": robot.frame_names[0]}
            pin = {"kind": "ball", "a": self.frame, "b": robot.frame_names[0], "at": near[:3, 3].tolist()}
            data |= {"v": still, "duration": float(rng.uniform(0.1, 1.0)), "bonds": [[bond], [pin], []][rng.integers(3)]}
        elif kind == "torus":
            data |= {"points": int(rng.integers(11, 61))}
        elif kind in ("geodesic", "plan"):
            goal = np.clip(robot.integrate(q, rng.normal(scale=0.3, size=robot.nv)), robot.lower, robot.upper)
            data |= {"start": q.tolist(), "goal": goal.tolist(), "cost": "effort", "duration": float(rng.uniform(1.0, 3.0))}
        elif kind == "phase":
            data |= {"joint": robot.joint_names[rng.integers(robot.nv)], "fastest": float(rng.uniform(1.0, 9.0))}
        elif kind == "wrong":
            data |= {"ask": "reach", "frame": f"nowhere {rng.integers(1 << 40)}"}
        return data

    def _send(self, method: str, path: str, question: Any, expected: int) -> Any:
        headers = {"Origin": f"http://{self.host}", "X-Coadjoint-Token": self.token, "Content-Type": "application/json"}
        body = None if question is None else json.dumps(question)
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # after a refusal, and after a minute of silence
            self.connection.close()
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status == expected, (method, path, answer.status)
        return json.loads(text) if method == "POST" else None

    def _note(self, kind: str, answer: Any) -> None:
        if "error" in answer:
            if kind != "wrong":
                self.errors.append(f"{kind}: {answer['error']}")
            return
        if kind in ("reach", "null"):
            self.q = np.array(answer["q"])
            self.direction = answer.get("direction", self.direction)
        if self.rng.random() < 0.02:  # another posture
            self.q = self.robot.random(self.rng)


def resident(process: int) -> float:
    """Resident memory of a process [kB]."""
    return float(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1])


def growth(count: np.ndarray, memory: np.ndarray) -> tuple[float, float]:
    """The slope of memory over requests [kB for 1,000], with its standard error."""
    x, y = (count - count.mean()) / 1000, memory - memory.mean()
    slope = float(x @ y / (x @ x))
    rest = y - slope * x
    return slope, float(np.sqrt(rest @ rest / (len(x) - 2) / (x @ x)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    parser.add_argument("robot", nargs="?", default="panda")
    parser.add_argument("--requests", type=int, default=30_000)
    given = parser.parse_args()
    robot = cj.load(given.robot)
    command = [sys.executable, "-u", "-m", "coadjoint", "studio", given.robot, "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        url = re.search(r"http://\S+", process.stdout.readline())[0]
        asker = Asker(url, robot)
        count, memory, every, begin = [], [], max(1, given.requests // SAMPLES), time.perf_counter()
        for k in range(1, given.requests + 1):
            asker.ask()
            if k % every == 0:
                count.append(k)
                memory.append(resident(process.pid))
            if k % max(1, given.requests // 10) == 0:
                print(f"{k:8} requests, {memory[-1] / 1024:7.1f} MB, {time.perf_counter() - begin:6.0f} s", flush=True)
    finally:
        process.terminate()
        process.wait(30)
    later = np.array(count) > given.requests / 2
    slope, error = growth(np.array(count)[later], np.array(memory)[later])
    print(f"\n{'question':10}{'count':>8}{'median ms':>11}{'longest s':>11}")
    for kind, times in asker.answered.items():
        print(f"{kind:10}{len(times):8}{1e3 * np.median(times):11.2f}{max(times):11.2f}")
    for text in sorted(set(asker.errors)):
        print(f"answered by an error, {asker.errors.count(text)} times: {text}")
    print(f"\ngrowth in the second half: {slope:.1f} ± {error:.1f} kB for 1,000 requests; in eight hours at 60 Hz, ", end="")
    print(f"{EIGHT_HOURS / 1e6:.1f} million requests: {slope * EIGHT_HOURS / 1e6:.1f} ± {error * EIGHT_HOURS / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
