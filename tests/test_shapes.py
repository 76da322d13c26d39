"""Every kernel returns arrays of the core shapes that its decorator declares, behind any batch axes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import coadjoint as cj
from coadjoint import constraints
from coadjoint.constraints.pseudo import PseudoVelocities
from coadjoint.kernel.dispatch import Kernel
from coadjoint.redundancy.task import task_of
from random_robots import ONE_SCREW, random_robot


def kernels() -> dict[str, object]:
    """Every function of the package that is a kernel, by its dotted name."""
    found = {}
    for module in pkgutil.walk_packages(cj.__path__, "coadjoint."):
        if not module.name.endswith("__main__") and ".interop." not in module.name:  # bridges to packages that may be missing
            for x in vars(importlib.import_module(module.name)).values():
                if isinstance(getattr(x, "kernel", None), Kernel):
                    source = x.kernel.source
                    found[f"{source.__module__}.{source.__name__}".removeprefix("coadjoint.")] = x
    return found


KERNELS = kernels()
ROBOTS = {
    "chain": random_robot(1, 9, (*ONE_SCREW, "fixed"), tree=False, mimic=True),
    "tree": random_robot(3, 9, mimic=True, shuffle=True),
}
TASK = task_of("tip", (1, 3, 4))
ONE = [name for name in KERNELS if name.startswith("dynamics.kool.") or name == "dynamics.lagrangian.christoffel_sum"]
"""Kernels for joints of one screw."""
WORDS = {
    "2nv": lambda robot: 2 * robot.nv,
    "m": lambda robot: 2,
    "k": lambda robot: 5,
    "task": lambda robot: TASK.size,
    "parameters": lambda robot: 10 * robot.n_links,
    "drives": lambda robot: 3 * robot.tree_nv,
    "lines": lambda robot: robot.tree_nv,
}
"""Words that are no sizes of a robot alone, with the constraint, basis and task given here."""


def sizes(core: str, robot: cj.Robot) -> tuple[int, ...]:
    return tuple(
        int(word) if word.isdigit() else WORDS[word](robot) if word in WORDS else getattr(robot, word) for word in core.split()
    )


def statics(robot: cj.Robot) -> dict[str, object]:
    """What kernels take besides arrays."""
    columns = np.random.default_rng(0).normal(size=(robot.nv, 5))
    return {
        "constraint": constraints.Constraint.point(robot, "tip", "xz", at=(0.3, -0.2)),
        "basis": PseudoVelocities(lambda q: columns + 0.0 * q[0]),
        "frame": "tip",
        "task": TASK,
    }


def test_there_are_all_kernels():
    assert len(KERNELS) >= 81
    assert {"kinematics.poses.pose", "redundancy.lift._effective_inertia", "dynamics.kool.line_vectors"} <= set(KERNELS)


@pytest.mark.parametrize("kind", ROBOTS)
def test_the_sizes_can_be_distinguished(kind):
    robot = ROBOTS[kind]
    named = [robot.nv, robot.tree_nv, robot.n_links, *(word(robot) for name, word in WORDS.items() if name != "lines")]
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("batch", [(), (2,)], ids=["alone", "batch"])
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ROBOTS for name in KERNELS if kind == "chain" or name not in ONE]
)
def test_results_have_the_shapes_declared(kind, name, batch):
    robot, fn = ROBOTS[kind], KERNELS[name]
    rng = np.random.default_rng(0)
    arguments = {}
    for argument, parameter in list(inspect.signature(fn.kernel.source).parameters.items())[1:]:
        if argument == "q":
            arguments["q"] = robot.random(rng, batch)
        elif argument in ("weight", "dy"):
            arguments[argument] = np.broadcast_to(np.eye(robot.nv), (*batch, robot.nv, robot.nv))
        elif argument in fn.kernel.cores:
            arguments[argument] = rng.normal(size=(*batch, *sizes(fn.kernel.cores[argument], robot)))
        elif parameter.default is inspect.Parameter.empty:
            arguments[argument] = statics(robot)[argument]
    if name == "redundancy.operational._prioritized_inverse":  # of a list of tasks
        arguments["task"] = (TASK,)
    found = fn(robot, **arguments)
    results = found if isinstance(found, tuple) else (found,)
    assert [x.shape for x in results] == [(*batch, *sizes(core, robot)) for core in fn.kernel.returns]
    assert all(np.isfinite(x).all() for x in results)
