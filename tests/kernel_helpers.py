"""Random straight-line programs and 60-digit arithmetic, for the tests of the kernel."""

import mpmath
import numpy as np
from hypothesis import strategies as st

from coadjoint import arrays
from coadjoint.kernel.graph import verify
from coadjoint.kernel.passes.evaluate import evaluate

PROGRAM = {
    "add": lambda xp, a, b, d, c: a + b,
    "sub": lambda xp, a, b, d, c: a - b,
    "mul": lambda xp, a, b, d, c: a * b,
    "div": lambda xp, a, b, d, c: a / (b * b + 1.5),
    "inverse": lambda xp, a, b, d, c: c / (xp.sin(a) + 1.5),
    "neg": lambda xp, a, b, d, c: -a,
    "sin": lambda xp, a, b, d, c: xp.sin(a),
    "cos": lambda xp, a, b, d, c: xp.cos(a),
    "abs": lambda xp, a, b, d, c: abs(a),
    "min": lambda xp, a, b, d, c: xp.minimum(a, b),
    "max": lambda xp, a, b, d, c: xp.maximum(a, c),
    "where": lambda xp, a, b, d, c: xp.where((a < b) & ~(d <= c), d, c),
    "affine": lambda xp, a, b, d, c: a * c + c,
    "sqrt": lambda xp, a, b, d, c: xp.sqrt(a * a + 0.5),
    "atan2": lambda xp, a, b, d, c: xp.arctan2(a, b * b + 0.25),
    "exp": lambda xp, a, b, d, c: xp.exp(xp.sin(a)),
    "log": lambda xp, a, b, d, c: xp.log(a * a + 2),
}


@st.composite
def programs(draw, names=tuple(PROGRAM), length=25):
    """A random straight-line program on three inputs: (operation, its arguments, a constant) for each step."""
    return [
        (
            draw(st.sampled_from(names)),
            tuple(draw(st.integers(0, k + 2)) for _ in range(3)),
            draw(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])),
        )
        for k in range(draw(st.integers(1, length)))
    ]


def run(program, x, xp):
    """The values of all steps, stacked."""
    values = [x[..., 0], x[..., 1], x[..., 2]]
    for op, (i, j, k), c in program:
        values.append(PROGRAM[op](xp, values[i], values[j], values[k], c))
    return arrays.stack(values[3:])


MPMATH = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "sqrt": mpmath.sqrt,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "atan2": mpmath.atan2,
    "exp": mpmath.exp,
    "log": mpmath.log,
    "abs": abs,
    "floor": mpmath.floor,
    "fmod": lambda x, y: x - y * (mpmath.floor(x / y) if x / y >= 0 else mpmath.ceil(x / y)),
    "min": min,
    "max": max,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: x == y,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "not": lambda x: not x,
    "where": lambda c, x, y: x if c else y,
}


def exact(graph, *inputs):
    """The outputs of a graph in mpmath's arithmetic at its present precision."""
    lifted = [np.vectorize(mpmath.mpf, otypes=[object])(x) if np.size(x) else np.zeros(np.shape(x), object) for x in inputs]
    return evaluate(graph, *lifted, operations=MPMATH)


def difference_quotient(graph, output, k, *inputs):
    """∂output/∂input k by central differences in 60 digits: good to 20 digits and more."""
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -20
        x = np.vectorize(mpmath.mpf, otypes=[object])(inputs[k])
        columns = []
        for place in np.ndindex(*x.shape):
            ends = []
            for sign in (1, -1):
                moved = x.copy()
                moved[place] += sign * h
                ends.append(exact(graph, *inputs[:k], moved, *inputs[k + 1 :])[output])
            columns.append((ends[0] - ends[1]) / (2 * h))
        return np.stack(columns, axis=-1).reshape(graph.output_shapes[output] + x.shape)


def well_formed(graph):
    """The graph, if it is sound and holds nothing that no output needs."""
    verify(graph)
    used = {k for row in (*graph.outputs, *graph.args) for k in row}
    assert used == set(range(len(graph)))
    return graph


# A chain of revolute joints about z by the plain recursion of Newton and Euler, angular and linear parts apart.

LENGTHS = (0.0, 0.0, 0.0, 0.0825, -0.0825, 0.0, 0.088)
OFFSETS = (0.333, 0.0, 0.316, 0.0, 0.384, 0.0, 0.0)
TWISTS = (0, -1, 1, 1, -1, 1, 1)  # quarter turns about x


def bodies(n, seed=0):
    """(mass, mass · centre, inertia about the frame's origin) of n links, all of them full."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(n):
        m, c, J = rng.uniform(1, 4), rng.normal(size=3) * 0.1, rng.normal(size=(3, 3))
        result.append((m, m * c, J @ J.T * 0.01 + m * (c @ c * np.eye(3) - np.outer(c, c))))
    return result


def newton_euler(q, v, a, links):
    """Joint torques (..., n) of the chain, gravity along -z."""
    xp = arrays.namespace(q)
    z = np.array([0.0, 0.0, 1.0])
    w = u = dw = np.zeros(3)
    du = 9.81 * z
    frames, forces = [], []
    for i, (m, h, J) in enumerate(links):
        t, r, d = TWISTS[i % 7], LENGTHS[i % 7], OFFSETS[i % 7]
        X = np.array([[1.0, 0, 0], [0, 1 - t * t, -t], [0, t, 1 - t * t]])
        p = np.array([r, -t * d, (1 - t * t) * d])
        c, s = xp.cos(q[..., i]), xp.sin(q[..., i])
        R = X @ arrays.matrix([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        Rt = arrays.transpose(R)
        own = z * v[..., i : i + 1]
        u, w = arrays.mv(Rt, u + arrays.cross(w, p)), arrays.mv(Rt, w) + own
        du = arrays.mv(Rt, du + arrays.cross(dw, p)) + arrays.cross(u, own)
        dw = arrays.mv(Rt, dw) + z * a[..., i : i + 1] + arrays.cross(w, own)
        linear, angular = m * u - arrays.cross(h, w), arrays.mv(J, w) + arrays.cross(h, u)
        force = m * du - arrays.cross(h, dw) + arrays.cross(w, linear)
        moment = arrays.mv(J, dw) + arrays.cross(h, du) + arrays.cross(w, angular) + arrays.cross(u, linear)
        frames.append((R, p))
        forces.append((force, moment))
    torques = []
    for i in reversed(range(len(links))):
        force, moment = forces[i]
        torques.append(moment[..., 2])
        if i:
            R, p = frames[i]
            carried = arrays.mv(R, force)
            below = forces[i - 1]
            forces[i - 1] = below[0] + carried, below[1] + arrays.mv(R, moment) + arrays.cross(p, carried)
    return arrays.stack(torques[::-1])
