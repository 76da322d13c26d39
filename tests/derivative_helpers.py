"""Derivatives of traced functions by other means than ours: complex steps, and difference quotients in 60 digits."""

import mpmath
import numpy as np

from coadjoint.kernel.passes.evaluate import evaluate
from coadjoint.kernel.trace.trace import trace
from kernel_helpers import exact
from random_robots import ONE_SCREW, random_robot

ROBOTS = {
    "chain": lambda rng: random_robot(rng, 6, ONE_SCREW, tree=False, armature=True),
    "tree": lambda rng: random_robot(rng, 8, ONE_SCREW, shuffle=True),
    "floating": lambda rng: random_robot(rng, 6, ("free", *ONE_SCREW)),
    "groups": lambda rng: random_robot(rng, 5, ("spherical", "planar", "universal", "revolute"), shuffle=True),
    "universal": lambda rng: random_robot(rng, 4, ("universal", "prismatic"), tree=False),
    "mimic": lambda rng: random_robot(rng, 9, mimic=True, armature=True, damping=True),
}
"""Robots drawn at random."""


def traced(robot, fn, **shapes):
    """The graph of fn(robot, q ⊕ dq, v, x, *others): dq, v, x are the arguments to differentiate by."""
    sizes = {"q": (robot.nq,), "dq": (robot.nv,), "v": (robot.nv,), "x": (robot.nv,), **shapes}
    return trace(lambda q, dq, *others: fn(robot, robot.integrate(q, dq), *others), sizes, "moved")


def complex_step(graph, k, *inputs):
    """∂/∂(input k) of all outputs, by a complex step: exact to rounding where the function is analytic."""
    step = np.zeros((inputs[k].size, *inputs[k].shape), dtype=complex)
    step.reshape(inputs[k].size, -1)[...] = 1e-150j * np.eye(inputs[k].size)
    found = evaluate(graph, *inputs[:k], inputs[k] + step, *inputs[k + 1 :])
    return [np.moveaxis(y.imag / 1e-150, 0, -1).reshape(*y.shape[1:], *inputs[k].shape) for y in found]


def second_differences(graph, j, k, *inputs):
    """∂²output/∂(input j)∂(input k) of the only output, by differences in 60 digits: good to 25 digits and more."""
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -15
        lifted = [np.vectorize(mpmath.mpf, otypes=[object])(x) for x in inputs]
        found = np.empty((*graph.output_shapes[0], inputs[j].size, inputs[k].size))
        for m in range(inputs[j].size):
            for n in range(m if j == k else 0, inputs[k].size):
                total = 0
                for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                    moved = [x.copy() for x in lifted]
                    moved[j][m] += s * h
                    moved[k][n] += t * h
                    total = total + s * t * exact(graph, *moved)[0]
                found[..., m, n] = (total / (4 * h * h)).astype(float)
                if j == k:
                    found[..., n, m] = found[..., m, n]
        return found
