"""`python -m benchmarks.streaming [--torques 1e9] [--workers N] [--kill-every 2]`: Panda torques streamed through Dask.

States are drawn at random chunk by chunk, their joint torques computed and summed; only the sums are kept, in a Zarr group. It shows

    speed     of a cluster against as many plain processes without Dask, in turns, and what generating, kernel and sum take of it
    memory    of all processes together (scheduler, workers and the server that forks them, client), at its largest
    bits      of all sums, against those of one process
    deaths    the same sums when a worker is killed every some seconds, and the client once, and the stream is resumed

A torque is one number: the Panda has seven joints, so 10⁹ torques are 1.43·10⁸ states.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import coadjoint as cj

CHUNK = 1 << 18
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",  # it looks at every thread 100 times a second
}
"""Set for all processes of the run."""


class RandomStates:
    """States of a robot with seven joints, drawn at random; each chunk by itself, so that it is the same for whoever reads it."""

    def __init__(self, rows: int, seed: int = 0) -> None:
        self.rows, self.seed, self.identity = rows, seed, f"random states {seed}"
        self.kept: dict[str, np.ndarray] | None = None  # filled again with every chunk

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"kept": None}

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]:
        rng = np.random.Generator(np.random.SFC64([self.seed, start]))
        if self.kept is None:
            self.kept = {name: np.empty((CHUNK, 7)) for name in ("q", "v", "a")}
        return {name: rng.random(out=x[: stop - start]) for name, x in self.kept.items()}


def plain(rows: int, first: int = 0, step: int = 1) -> tuple[np.ndarray, dict[str, float]]:
    """The sums of every step-th chunk from the first on, by one thread of this process without Dask, and the seconds of each part."""
    robot, source = cj.load("panda"), RandomStates(rows)
    out = np.empty((CHUNK, 7))
    sums, parts = [], dict.fromkeys(("generating", "kernel", "sum"), 0.0)
    for start in range(first * CHUNK, rows, step * CHUNK):
        t0 = time.perf_counter()
        states = source.read(start, min(start + CHUNK, rows))
        t1 = time.perf_counter()
        tau = cj.inverse_dynamics(robot, **states, out=out[: len(states["q"])], threads=1)
        t2 = time.perf_counter()
        sums.append(tau.sum(axis=0))
        t3 = time.perf_counter()
        for name, t in zip(parts, (t1 - t0, t2 - t1, t3 - t2), strict=True):
            parts[name] += t
    return np.array(sums).reshape(-1, 7), parts


def plain_worker(connection: Any, first: int, step: int) -> None:
    """A process that computes its share whenever it is told how many states there are."""
    plain(CHUNK)
    connection.send("ready")
    while rows := connection.recv():
        cpu = time.process_time()
        connection.send((*plain(rows, first, step), time.process_time() - cpu))


def stream(rows: int, out: str | Path, scheduler: Any) -> np.ndarray:
    """The same sums by a cluster."""
    found = cj.scale.stream(
        cj.inverse_dynamics,
        cj.load("panda"),
        RandomStates(rows),
        out,
        names=("tau",),
        chunk=CHUNK,
        reduce=np.sum,
        scheduler=scheduler,
    )
    return found["tau"][:]


FORKING = multiprocessing.get_context("forkserver")


def worker(address: str, folder: str) -> None:
    """A worker of one thread, until it is killed."""
    import distributed

    async def live() -> None:
        options: Any = {"nthreads": 1, "memory_limit": "700MB", "local_directory": folder, "dashboard": False, "silence_logs": 50}
        async with distributed.Worker(address, **options) as own:
            await own.finished()

    asyncio.run(live())


class Cluster:
    """A scheduler and workers of one thread, each a process, whose memory can be watched and which can be killed."""

    def __init__(self, workers: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        environment = os.environ | {"PYTHONPATH": str(Path(cj.__file__).parents[1])}
        file = Path(self.folder.name) / "scheduler.json"
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_scheduler",
            "--no-dashboard",
            "--port",
            "0",
            "--scheduler-file",
            str(file),
        ]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.scheduler = subprocess.Popen(command, env=environment, cwd=self.folder.name, **quiet)
        while not file.exists():
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        self.workers = [self.worker() for _ in range(workers)]
        self.others: list[Any] = []
        self.largest = self.largest_one = 0
        self.deaths = 0
        self.stop = threading.Event()

    def worker(self) -> Any:
        """A new worker process; forked from one that has imported all it needs, so that it starts quickly."""
        process = FORKING.Process(target=worker, args=(self.address, self.folder.name), daemon=True)
        process.start()
        return process

    def watch(self) -> None:
        """Note the memory of all processes that this one has started, until the cluster is closed."""
        import psutil

        while not self.stop.wait(0.5):
            total = 0
            for process in psutil.Process().children(recursive=True):
                try:
                    rss = process.memory_info().rss
                except psutil.Error:
                    continue
                total += rss
                self.largest_one = max(self.largest_one, rss)
            self.largest = max(self.largest, total)

    def cpu(self) -> float:
        """Seconds of processor time that scheduler and workers have used."""
        import psutil

        return sum(sum(psutil.Process(x.pid).cpu_times()[:2]) for x in (self.scheduler, *self.workers))

    def kill_one(self) -> None:
        """The worker that lives longest is killed and another started."""
        oldest = self.workers.pop(0)
        oldest.kill()
        oldest.join()
        self.deaths += 1
        self.workers.append(self.worker())

    def close(self) -> None:
        self.stop.set()
        for process in (*self.workers, *self.others, self.scheduler):
            process.kill()
        for process in (*self.others, self.scheduler):
            process.wait()
        for process in self.workers:
            process.join()
        self.folder.cleanup()


def speeds(cluster: Cluster, workers: int, rows: int, rounds: int) -> None:
    """A cluster against plain processes, in turns: by the clock, and by the processor time of all processes, client and scheduler too."""
    import distributed

    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(workers)]
    processes = [context.Process(target=plain_worker, args=(pair[1], k, workers), daemon=True) for k, pair in enumerate(pairs)]
    for process in processes:
        process.start()
    for pair in pairs:
        pair[0].recv()
    wall, cpu = [], []
    with tempfile.TemporaryDirectory() as folder, distributed.Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(workers)
        stream(4 * workers * CHUNK, f"{folder}/warm.zarr", client)
        for k in range(rounds):
            t = time.perf_counter()
            for pair in pairs:
                pair[0].send(rows)
            answers = [pair[0].recv() for pair in pairs]
            alone = time.perf_counter() - t
            used, own, t = cluster.cpu(), time.process_time(), time.perf_counter()
            stream(rows, f"{folder}/{k}.zarr", client)
            with_dask = time.perf_counter() - t
            wall.append(alone / with_dask)
            cpu.append(sum(x[2] for x in answers) / (cluster.cpu() - used + time.process_time() - own))
            parts = {name: 1e9 * sum(x[1][name] for x in answers) / rows for name in answers[0][1]}
            shares = ", ".join(f"{name} {ns:.0f}" for name, ns in parts.items())
            print(
                f"- round {k + 1}: plain {alone:.2f} s ({shares} ns a state), Dask {with_dask:.2f} s: "
                f"{100 * wall[-1]:.0f} % of the speed, {100 * cpu[-1]:.0f} % by processor time",
                flush=True,
            )
    for pair in pairs:
        pair[0].send(0)
    print(
        f"- speed of Dask against plain processes: {100 * np.median(wall):.0f} % (median of {rounds}; lowest {100 * min(wall):.0f} %), ",
        end="",
    )
    print(f"by processor time {100 * np.median(cpu):.0f} % (lowest {100 * min(cpu):.0f} %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torques", type=float, default=1e9)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kill-every", type=float, default=2.0, metavar="S")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--client", nargs=2, metavar=("ADDRESS", "OUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    FORKING.set_forkserver_preload(["coadjoint.scale.streaming", "distributed", "zarr"])
    os.environ |= ENVIRONMENT
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the cluster is closed on the way out
    rows = -(-int(args.torques) // 7)
    if args.client:
        stream(rows, args.client[1], args.client[0])
        return
    print(f"- {7 * rows:.4g} torques of {rows:.4g} states in {-(-rows // CHUNK)} chunks; load {os.getloadavg()[0]:.1f}", flush=True)
    speeds_of, folder = Cluster(args.workers), Path(tempfile.mkdtemp())
    try:
        speeds(speeds_of, args.workers, rows, args.rounds)
    finally:
        speeds_of.close()
    t = time.perf_counter()
    expected, _ = plain(rows)
    print(f"- one process without Dask: {time.perf_counter() - t:.1f} s", flush=True)
    calm, times = run(args, rows, folder / "calm.zarr", kill=False)
    print(f"- through Dask, {args.workers} workers: {times}; sums equal bit for bit: {np.array_equal(calm, expected)}", flush=True)
    stormy, times = run(args, rows, folder / "stormy.zarr", kill=True)
    print(f"- with deaths: {times}; sums equal bit for bit: {np.array_equal(stormy, expected)}")
    total = np.zeros(7)
    for x in stormy:
        total += x
    print(f"- mean torques: {np.array2string(total / rows, precision=6)}")


def run(args: argparse.Namespace, rows: int, out: Path, kill: bool) -> tuple[np.ndarray, str]:
    """The sums by a client process and a cluster; a worker is killed every so often, the client when a third of the chunks is done."""
    cluster = Cluster(args.workers)
    threading.Thread(target=cluster.watch, daemon=True).start()
    count = -(-rows // CHUNK)
    command = [sys.executable, "-m", "benchmarks.streaming", "--torques", str(args.torques), "--client", cluster.address, str(out)]
    begin = last = time.perf_counter()
    client, client_deaths = subprocess.Popen(command), 0
    cluster.others = [client]
    try:
        while client.poll() is None:
            time.sleep(0.05)
            if not kill:
                continue
            if time.perf_counter() - last > args.kill_every:
                last = time.perf_counter()
                cluster.kill_one()
            done = out / "done" / "c"
            if not client_deaths and done.is_dir() and len(os.listdir(done)) > count // 3:
                client.send_signal(signal.SIGKILL)
                client.wait()
                client_deaths = 1
                client = subprocess.Popen(command)
                cluster.others = [client]
        if client.returncode:
            raise SystemExit(f"the client failed with code {client.returncode}")
        seconds = time.perf_counter() - begin
    finally:
        largest, largest_one, deaths = cluster.largest, cluster.largest_one, cluster.deaths
        cluster.close()
    import zarr

    found = zarr.open_group(str(out), mode="r")["tau"][:]
    text = f"{seconds:.1f} s, {rows * 7 / seconds:.3g} torques a second, "
    text += f"{largest / 1e6:.0f} MB at most, {largest_one / 1e6:.0f} MB in one process"
    return found, text + (f", {deaths} workers and {client_deaths} client killed" if kill else "")


if __name__ == "__main__":
    main()
