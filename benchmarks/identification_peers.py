"""Identification beside figaroh, MuJoCo's sysid and SymPyBotics: `python -m benchmarks.identification_peers [FOLDER]`.

pip install figaroh picos cvxopt "mujoco[sysid]". Each task is what a peer can do, on the same data in the same run, in turn, by processor
time. What they cannot do is not compared. figaroh's whole identification takes a class, a configuration file and data files for each robot;
its fit has viscous and Coulomb friction, a Euclidean prior whose weight is given, and standard deviations of uncorrelated residuals. The
sysid of MuJoCo compares simulated motions only, by differences, of unknowns and boxes that the user chooses.
Neither chooses terms of friction. SymPyBotics is for Python 2: its published figure for the base parameters of a seven-joint arm is 25 s.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import coadjoint as cj
from coadjoint.identification.consistency import ConsistentFit
from coadjoint.identification.preparation import prepare
from coadjoint.lie import inertia

ROUNDS = 5
NUMBERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


def seconds(fn):
    start = time.process_time()
    result = fn()
    return time.process_time() - start, result


def in_turn(ours, theirs, rounds: int = ROUNDS):
    """The least times of two calls, in turn, and their last results."""
    best = [np.inf, np.inf]
    for _ in range(rounds):
        for k, fn in enumerate((ours, theirs)):
            took, result = seconds(fn)
            best[k] = min(best[k], took)
            if k == 0:
                mine = result
    return best[0], mine, best[1], result


def base_parameters_beside_figaroh(robot: cj.Robot) -> None:
    """Rank and combinations: figaroh by QR of a regressor at random states, here from the structure."""
    import pinocchio
    from figaroh.tools.qrdecomposition import QRDecomposer
    from figaroh.tools.regressor import RegressorBuilder

    with tempfile.TemporaryDirectory() as folder:
        cj.save(robot, Path(folder) / "arm.urdf")
        model = pinocchio.buildModelFromUrdf(str(Path(folder) / "arm.urdf"))
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-2, 2, size=(3, 200, model.nq))
    joints = {"act_idxv": list(range(model.nv))}
    names = [f"{x}{k}" for k in range(model.nv) for x in NUMBERS]

    def theirs():
        Y = RegressorBuilder(SimpleNamespace(model=model, data=model.createData())).build_basic_regressor(q, v, a, joints)
        kept = [k for k in range(Y.shape[1]) if np.linalg.norm(Y[:, k]) > 1e-6]
        return len(QRDecomposer(tolerance=1e-8).get_base_mapping_matrix_double(Y[:, kept], [names[k] for k in kept])[2])

    mine, found, other, rank = in_turn(lambda: cj.base_parameters(robot.with_gravity(robot.gravity)), theirs)
    print(
        f"base parameters of {robot.name}: {found.rank} in {1e3 * mine:.1f} ms; figaroh {rank} in {1e3 * other:.1f} ms", flush=True
    )


def consistent_fit_beside_figaroh(robot: cj.Robot, problems: int = 10) -> None:
    """½ |Y θ - τ|² + a Euclidean prior under Σ ⪰ 0 of every link: figaroh's own problem, by picos and cvxopt."""
    from figaroh.identification.physical_fit import build_problem, solve_direct_effort_fit

    joints = tuple(f"j{k}" for k in range(robot.n_links))
    names = [f"{x}_{joint}" for joint in joints for x in NUMBERS]
    prior, times, off, accepted = np.array(robot.inertial_parameters), [], [], 0
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        q, v, a = robot.random(rng, (300,)), rng.normal(size=(300, robot.nv)), rng.normal(size=(300, robot.nv))
        Y = np.asarray(cj.regressor(robot, q, v, a)).reshape(-1, len(prior))
        tau = Y @ prior + (0.5, 2.0)[seed % 2] * rng.normal(size=len(Y))
        p = build_problem(Y, tau, names, joints, prior=prior)
        Q = p.policy.prior_weight * np.diag(p.coord_scale**-2.0)
        A, b = p.R.T @ p.R + Q, p.R.T @ p.Qt_tau + Q @ prior
        mine, x, other, record = in_turn(
            lambda A=A, b=b: ConsistentFit(A, b, np.eye(len(b)), robot.inertias).constrained(prior),
            lambda p=p: solve_direct_effort_fit(p),
            2,
        )
        times.append((mine, other))
        accepted += record.accepted
        if record.theta is not None:
            cost = [0.5 * z @ A @ z - b @ z for z in (x, record.theta)]
            least = np.linalg.eigvalsh(np.asarray(inertia.pseudo(record.theta.reshape(-1, 10)))).min()
            off.append(((cost[1] - cost[0]) / abs(cost[0]), least))
    mine, other = np.median(times, axis=0)
    above = [x for x, _ in off]
    print(
        f"consistent fit, {robot.n_links} links: {1e3 * mine:.1f} ms; figaroh {1e3 * other:.0f} ms, {accepted} of {problems} accepted by "
        f"itself, cost above ours by {min(above):.1g} … {max(above):.1g} (relative), least eigenvalue {min(x for _, x in off):.1g}",
        flush=True,
    )


def panda_log_beside_figaroh(robot: cj.Robot, path: Path) -> None:
    """Forces of the last fifth of a recorded log from the first four fifths.

    figaroh's consistent fit gets the states that our preparation made and, since it holds friction fixed, that of plain least squares. Its
    rows have no weights: with those of the joints' scatter its solver ends in a division by zero (figaroh 1.0.2, cvxopt 1.3.3).
    """
    from figaroh.identification.physical_fit import FixedExtras, build_problem, solve_direct_effort_fit

    log = cj.read_log(path, robot)
    cut = int(0.8 * len(log.time))
    parts = [
        {key: np.asarray(getattr(log, key))[part] for key in ("time", "q", "v", "tau")} for part in (slice(cut), slice(cut, None))
    ]
    joints, n = tuple(f"j{k}" for k in range(robot.n_links)), 10 * robot.n_links
    friction = [f"{x}_{joint}" for x in ("fv", "fs", "off") for joint in joints]
    names, prior = [f"{x}_{joint}" for joint in joints for x in NUMBERS], np.array(robot.inertial_parameters)
    train, test = (prepare(robot, cj.read_log(x, robot)) for x in parts)

    def rows(x) -> tuple[np.ndarray, np.ndarray]:
        D = np.concatenate([y[:, None, :] * np.eye(robot.nv) for y in (x.v, np.sign(x.v), np.ones_like(x.v))], axis=2)
        Y = np.concatenate([np.asarray(cj.regressor(robot, x.q, x.v, x.a)), D], axis=2)
        return Y.reshape(-1, Y.shape[2]), np.asarray(x.tau).ravel()

    def theirs():
        Y, tau = rows(train)
        plain = np.linalg.lstsq(Y, tau, rcond=None)[0]
        p = build_problem(
            Y,
            tau,
            [*names, *friction],
            joints,
            prior=np.concatenate([prior, np.zeros(len(friction))]),
            extras=FixedExtras(tuple(friction), tuple(plain[n:]), "declared"),
        )
        record = solve_direct_effort_fit(p)
        return plain, record

    mine, fit, other, (plain, record) = in_turn(lambda: cj.identify(robot, parts[0]), theirs, 2)
    Y, tau = rows(test)
    predictions = {
        "here": np.asarray(fit.torque(test.q, test.v, test.a, time=test.time)).ravel(),
        "plain least squares": Y @ plain,
    }
    if record.theta is not None:
        predictions["figaroh"] = Y @ np.concatenate([record.theta, plain[n:]])
    print(f"Panda log: {mine:.2f} s with preparation; figaroh {other:.2f} s without it, accepted by itself: {record.accepted}")
    for name, x in predictions.items():
        rms = np.sqrt(np.mean((x - tau).reshape(-1, robot.nv) ** 2, axis=0))
        print(f"  {name}: rms of the last fifth {np.round(rms, 3)} N m", flush=True)


def _write_inertia(name: str, spec, param) -> None:
    """A body with the inertia of sysid's ten pseudo-inertia parameters; sysid 4.0.0's own function makes a body that does not compile."""
    import mujoco
    from mujoco.sysid import model_modifier

    pi, body = model_modifier.pi_from_theta(param.value), spec.body(name)
    body.mass, body.ipos = pi[0], pi[1:4] / pi[0]
    hat = model_modifier.skew(body.ipos)
    values, axes = np.linalg.eigh(pi[4:].reshape(3, 3) + pi[0] * hat @ hat)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, axes.ravel())
    body.fullinertia = np.full((6, 1), np.nan)
    body.inertia, body.iquat, body.explicitinertial = values, quat, True


def output_error_beside_mujoco(robot: cj.Robot) -> None:
    """The last link's inertia from a motion and its forces, by simulated stretches: exact sensitivities beside differences of rollouts.

    Here all links are unknown, there the ten numbers of the last one, and 20 steps are taken at most.
    """
    import mujoco
    from mujoco import sysid

    if not hasattr(sysid, "ModelSequences"):
        print("MuJoCo's sysid is not installed: pip install 'mujoco[sysid]'")
        return
    logging.getLogger("absl").setLevel(logging.ERROR)
    rng = np.random.default_rng(0)
    G = np.tile(np.eye(4), (robot.n_links, 1, 1))
    G[-1] += 0.08 * rng.normal(size=(4, 4))
    sigma = np.asarray(inertia.pseudo(robot.inertias))
    truth = robot.with_inertial_parameters(np.asarray(inertia.from_pseudo(G @ sigma @ np.swapaxes(G, -1, -2))).reshape(-1))
    step, length, count = 0.002, 100, 5
    t = step * np.arange(length * count + 1)
    w = 2 * np.pi * np.array([0.5, 0.7, 1.1])
    goal, speed, change = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -(w**2) * np.sin(t[:, None] * w)
    feedforward = np.asarray(cj.inverse_dynamics(robot, goal, speed, change))
    q, v, held = [goal[0]], [speed[0]], []
    for k in range(len(t)):  # a controller whose force is held for a step
        held.append(feedforward[k] + 100.0 * (goal[k] - q[k]) + 10.0 * (speed[k] - v[k]))
        z = cj.simulate(truth, q[k], v[k], np.array([0.0, step]), control=held[k], tolerance=1e-11)
        q.append(np.asarray(z.q[-1]))
        v.append(np.asarray(z.v[-1]))
    q, v, held = np.array(q[:-1]), np.array(v[:-1]), np.array(held)
    log = {"time": t, "q": q, "v": v, "tau": held}

    def ours():
        options = {"hold": "zero", "horizon": length * step}
        return cj.identify(robot, log, method="output_error", friction=(), gravity="fixed", simulation=options).robot

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cj.save(robot, Path(folder) / "arm.xml")
        spec = mujoco.MjSpec.from_file(str(Path(folder) / "arm.xml"))
    spec.option.timestep, spec.option.integrator = step, mujoco.mjtIntegrator.mjINT_RK4
    for name in robot.joint_names:
        actuator = spec.add_actuator(name=f"{name}_motor", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_motor()
        for kind, sensor in (("pos", mujoco.mjtSensor.mjSENS_JOINTPOS), ("vel", mujoco.mjtSensor.mjSENS_JOINTVEL)):
            spec.add_sensor(name=f"{name}_{kind}", type=sensor, objtype=mujoco.mjtObj.mjOBJ_JOINT, objname=name)
    model = spec.compile()
    columns = np.stack([q, v], axis=2).reshape(len(t), -1)
    starts = [k * length for k in range(count)]
    own = np.arange(length + 1) * step
    sequences = sysid.ModelSequences(
        "arm",
        spec,
        [f"stretch {k}" for k in range(count)],
        [sysid.create_initial_state(model, q[k], v[k]) for k in starts],
        [sysid.TimeSeries(own, held[k : k + length + 1]) for k in starts],
        [sysid.TimeSeries.from_names(own[1:], columns[k + 1 : k + length + 1], model) for k in starts],
    )

    def theirs():
        params = sysid.ParameterDict()
        for name in robot.link_names[-1:]:
            write = partial(_write_inertia, name)
            params.add(sysid.body_inertia_param(spec.copy(), model, name, sysid.InertiaType.Pseudo, modifier=write))
        residual = sysid.build_residual_fn(models_sequences=[sequences])
        with contextlib.redirect_stdout(io.StringIO()):
            found, _ = sysid.optimize(initial_params=params, residual_fn=residual, optimizer="mujoco", verbose=False, max_iters=20)
        fitted = spec.copy()
        for param in found.values():
            param.apply_modifier(fitted)
        return cj.interop.mujoco.from_mjmodel(fitted.compile())

    mine, found, other, fitted = in_turn(ours, theirs, 2)
    rng = np.random.default_rng(5)
    q, v, a = robot.random(rng, (200,)), rng.normal(size=(200, robot.nv)), rng.normal(size=(200, robot.nv))
    expected = np.asarray(cj.inverse_dynamics(truth, q, v, a))
    off = [
        np.linalg.norm(np.asarray(cj.inverse_dynamics(x, q, v, a)) - expected) / np.linalg.norm(expected)
        for x in (robot, found, fitted)
    ]
    print(
        f"output error, {robot.n_links} links, {count} stretches of {length} steps: {mine:.2f} s, forces elsewhere off by {off[1]:.1g}; "
        f"MuJoCo's sysid {other:.2f} s, off by {off[2]:.1g}; before {off[0]:.1g}",
        flush=True,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    panda, ur5e = cj.load("panda"), cj.load("ur5e")
    base_parameters_beside_figaroh(panda)
    print("  SymPyBotics, published: 25 s")
    consistent_fit_beside_figaroh(panda)
    if len(sys.argv) > 1:
        panda_log_beside_figaroh(panda, Path(sys.argv[1]) / "panda_log" / "excitation.csv")
    output_error_beside_mujoco(ur5e.lock(dict.fromkeys(ur5e.joint_names[3:], 0.3)))
