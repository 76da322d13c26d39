"""Controllers beside the same laws written with Pinocchio's Python calls: `python -m benchmarks.control`."""

from __future__ import annotations

import numpy as np

import coadjoint as cj
from coadjoint import control

from .timing import measure

ROBOTS, STEPS, DT = 4096, 200, 1e-3
KP, KD = 100.0, 20.0


def main() -> None:
    """One computed-torque step of the Panda called from Python, and 4,096 robots rolled out under it."""
    import pinocchio as pin

    robot = cj.load("panda")
    rng = np.random.default_rng(0)
    q, v = robot.random(rng), rng.normal(size=7)
    center, amplitude, pulsation = np.array([0.1, -0.5, 0.0, -2.0, 0.0, 1.6, 0.5]), np.full(7, 0.3), 2 * np.pi * np.full(7, 0.5)
    ours = control.computed_torque(robot, control.sinusoid(robot, center, amplitude, 0.5), kp=KP, kd=KD)
    model = cj.interop.pinocchio.to_pinocchio(robot)
    data = model.createData()

    def theirs(q: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
        sine, cosine = np.sin(pulsation * t), np.cos(pulsation * t)
        a = -amplitude * pulsation**2 * sine + KD * (amplitude * pulsation * cosine - v) + KP * (center + amplitude * sine - q)
        return pin.rnea(model, data, q, v, a)

    np.testing.assert_allclose(ours.force(q, v, 0.3), theirs(q, v, 0.3), rtol=1e-10)
    found = measure({"coadjoint": (lambda: ours.force(q, v, 0.3), 1), "Pinocchio": (lambda: theirs(q, v, 0.3), 1)})
    _row("Panda, one computed-torque step from Python", found, 1e6, "µs")

    qs, vs = robot.random(rng, ROBOTS), 0.1 * rng.normal(size=(ROBOTS, 7))

    def loop() -> None:
        for k in range(2):  # a few robots stand for all: each takes the same time
            x, y = qs[k], vs[k]
            for step in range(STEPS):
                a = pin.aba(model, data, x, y, theirs(x, y, step * DT))
                y = y + DT * a
                x = pin.integrate(model, x, DT * y)

    together = lambda: cj.rollout(robot, qs, vs, dt=DT, steps=STEPS, control=ours, threads=1)
    found = measure({"coadjoint": (together, ROBOTS * STEPS), "Pinocchio": (loop, 2 * STEPS)}, 7)
    _row("4,096 Pandas rolled out under it, a step of one", found, 1e9, "ns")


def degradation() -> None:
    """The largest tracking error [rad] of the Panda under each controller, continuous and as a real loop runs it."""
    robot = cj.load("panda")
    reference = control.sinusoid(robot, [0.1, -0.5, 0.0, -2.0, 0.0, 1.6, 0.5], 0.3, [0.3, 0.4, 0.5, 0.4, 0.6, 0.5, 0.7])
    inertias = np.diag(cj.mass_matrix(robot, reference(0.0)[0]))
    laws = {
        "computed torque": control.computed_torque(robot, reference, kp=100.0, kd=20.0),
        "PD+": control.pd_plus(robot, reference, kp=100 * inertias, kd=20 * inertias),
        "passivity-based": control.passivity_based(robot, reference, rate=10.0, damping=20 * inertias),
        "adaptive": control.adaptive(robot, reference, rate=10.0, damping=20 * inertias, adaptation=1.0),
    }
    duration, period = 4.0, 1e-3
    noise = 1e-3 * np.random.default_rng(0).normal(size=(round(duration / period), 7))
    loops = {
        "10 kHz": {"period": 1e-4},
        "1 kHz": {},
        "one sample late": {"delay": 1},
        "encoders of 17 bits": {"delay": 1, "resolution": 2 * np.pi / 2**17},
        "noise of 1 mrad/s": {"delay": 1, "noise": noise},
    }
    print(f"| | {' | '.join(loops)} |\n|---|{'---|' * len(loops)}")
    start = reference(0.0)[:2]
    for name, law in laws.items():
        cells = []
        for options in loops.values():
            if "period" in options and hasattr(law, "period"):
                cells.append("")  # made for its own period
                continue
            loop = control.closed_loop(robot, law, *start, duration, **options)
            wanted = np.array([reference(t)[0] for t in loop.time])
            cells.append(f"{np.abs(loop.q - wanted)[len(wanted) // 2 :].max():.1e}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _row(name: str, found: dict, scale: float, unit: str) -> None:
    ours, theirs = found["coadjoint"], found["Pinocchio"]
    ratio, low, high = theirs.ratio_to(ours)
    print(f"| {name} | {ours.best * scale:.3g} {unit} | Pinocchio from Python: {ratio:.1f}× ({low:.1f} … {high:.1f}) |", flush=True)


if __name__ == "__main__":
    main()
    degradation()
