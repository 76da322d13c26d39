"""`python -m benchmarks.constraints`: forward dynamics of a humanoid with both feet fixed, beside Pinocchio's constraint dynamics.

Twelve rows: each sole keeps its pose. Ours in a batch, Pinocchio's called from Python state by state, both on one core; the
accelerations are compared first.
"""

from __future__ import annotations

import time

import numpy as np

import coadjoint as cj

from .robots import humanoid
from .timing import measure

STATES = 4096
FEET = ("left_sole_link", "right_sole_link")


def main() -> None:
    import pinocchio as pin

    robot = humanoid()
    feet = FEET if FEET[0] in robot.frame_names else ("left leg 6", "right leg 6")
    constraint = cj.Constraint.frame(robot, feet[0]) & cj.Constraint.frame(robot, feet[1])
    rng = np.random.default_rng(0)
    q, (v, tau) = robot.random(rng, STATES), rng.normal(size=(2, STATES, robot.nv))
    start = time.process_time()
    cj.constrained_dynamics(robot, constraint, q[0], v[0], tau[0])
    first = time.process_time() - start

    interop = cj.interop.pinocchio
    model = interop.to_pinocchio(robot)
    data, models, datas = model.createData(), pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for foot in feet:
        frame = model.frames[model.getFrameId(foot)]
        kind, local = pin.ContactType.CONTACT_6D, pin.ReferenceFrame.LOCAL
        models.append(pin.RigidConstraintModel(kind, model, frame.parentJoint, frame.placement, local))
        datas.append(models[len(models) - 1].createData())
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-14, 0.0, 1)
    states = [
        (
            interop.q_to_pinocchio(robot, model, q[k]),
            interop.v_to_pinocchio(robot, model, v[k]),
            interop.v_to_pinocchio(robot, model, tau[k]),
        )
        for k in range(64)
    ]

    def theirs() -> list[np.ndarray]:
        return [pin.constraintDynamics(model, data, *state, models, datas, settings).copy() for state in states]

    out = cj.constrained_dynamics(robot, constraint, q, v, tau, threads=1)
    found = np.array([interop.v_from_pinocchio(robot, model, a) for a in theirs()])
    apart = np.abs(found - out[0][:64]).max(-1) / np.abs(found).max(-1)
    timings = measure(
        {
            "ours": (lambda: cj.constrained_dynamics(robot, constraint, q, v, tau, out=out, threads=1), STATES),
            "theirs": (theirs, len(states)),
            "one": (lambda: cj.constrained_dynamics(robot, constraint, q[0], v[0], tau[0]), 1),
        },
        25,
    )
    ratio, low, high = timings["theirs"].ratio_to(timings["ours"])
    print(f"{robot.name}, {robot.nv} freedoms, both feet fixed (12 rows), batches of {STATES}, one thread\n")
    print("| | per state |\n|---|---|")
    print(f"| ours, batch | {timings['ours'].best * 1e6:.2f} µs |")
    print(f"| ours, one call | {timings['one'].best * 1e6:.2f} µs |")
    print(f"| Pinocchio from Python | {timings['theirs'].best * 1e6:.2f} µs |")
    print(f"\nPinocchio takes **{ratio:.1f}** times as long ({low:.1f} … {high:.1f}); first call {first:.1f} s.")
    print(f"Accelerations agree within {apart.max():.1e} of the largest, in {len(states)} states.")


if __name__ == "__main__":
    main()
