"""Every URDF file of `example-robot-data` against Pinocchio, with a fixed and a free base, at 100 random states each.

Two results agree when every entry differs by less than 1e-10 of its largest magnitude over all states in Pinocchio's result, to
which 1e-4 of the largest entry is added, since entries that nearly vanish carry the rounding of the others. Accelerations are
measured by the largest of them alone: solving with a mass matrix mixes the rounding of all entries.
"""

import numpy as np
import pytest

import coadjoint as cj
from coadjoint.errors import SingularMassMatrixError
from coadjoint.robot.urdf_write import to_urdf
from models import FEW, slow_but_few
from pinocchio_helpers import EMPTY, FILES, STATES, SWAP, Peer, load, pin

TOLERANCE = 1e-10


def assert_close(ours: np.ndarray, theirs: np.ndarray, what: str, small: float = 1e-4) -> None:
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape, what
    if theirs.size == 0:
        return
    assert np.all(np.isfinite(ours)), what
    size = np.max(np.abs(theirs), axis=0)
    error = np.max(np.abs(ours - theirs) / np.where(size > 0, size + small * np.max(size), 1.0))
    assert error < TOLERANCE, f"{what}: relative error {error:.1e}"


QUICK = {(name, ("fixed", "free")[k % 2]) for k, name in enumerate(x for x in FILES if x.rpartition("/")[2] in FEW and x != EMPTY)}
"""A few files, with a fixed and a free base in turn."""
CASES = [
    pytest.param((name, base), id=f"{name}-{base}", marks=[] if (name, base) in QUICK else pytest.mark.slow)
    for name in FILES
    if name != EMPTY
    for base in ("fixed", "free")
]


@pytest.fixture(params=CASES, scope="module")
def peer(request: pytest.FixtureRequest) -> Peer:
    name, base = request.param
    return Peer.of(FILES[name], base)


def test_there_are_all_files() -> None:
    assert len(FILES) >= 69


@pytest.mark.native
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_file_that_describes_nothing(base: str) -> None:
    robot = cj.load(FILES[EMPTY], base=base)
    assert robot.n_links == robot.nv == 0
    assert [x.split(" and")[0] for x in robot.warnings] == ["the robot has no name", "the robot has no links; nothing of it moves."]
    nothing = robot.neutral()
    assert cj.mass_matrix(robot, nothing).shape == (0, 0)
    assert cj.inverse_dynamics(robot, nothing, nothing, nothing).shape == (0,)
    assert cj.forward_dynamics(robot, nothing, nothing, nothing).shape == (0,)
    assert cj.forward_kinematics(robot, nothing).shape == (0, 4, 4)
    assert cj.kinetic_energy(robot, nothing, nothing) == 0.0


REFERENCES = {"body": pin.LOCAL, "space": pin.WORLD, "world": pin.LOCAL_WORLD_ALIGNED}


def test_poses(peer: Peer) -> None:
    """All links of the file, merged or not."""
    robot, model, data = peer.robot, peer.model, peer.data
    frames = {f.name: k for k, f in enumerate(model.frames) if f.type == pin.FrameType.BODY}
    assert set(frames) == set(robot.frame_names) - ({robot.base} if robot.joint_names[:1] == ("root_joint",) else set())
    q = peer.states(0)[0]
    poses = np.empty((STATES, len(frames), 4, 4))
    for state, x in enumerate(peer.q(q)):
        pin.framesForwardKinematics(model, data, x)
        poses[state] = [data.oMf[k].homogeneous for k in frames.values()]
    theirs = dict(zip(frames, np.moveaxis(poses, 1, 0)))
    for name in frames:
        assert_close(cj.pose(robot, q, name), theirs[name], name)
    for name, ours in zip(robot.link_names, np.moveaxis(cj.forward_kinematics(robot, q), 1, 0)):
        assert_close(ours, theirs[name], f"{name} by forward_kinematics")


def test_jacobians(peer: Peer) -> None:
    """In the body of every link that moves; in all references for a few links at the tips and a few frames."""
    robot, model, data = peer.robot, peer.model, peer.data
    if robot.nv == 0:  # Pinocchio crashes on a Jacobian without columns
        assert {cj.jacobian(robot, robot.neutral(), name).shape for name in robot.frame_names} == {(6, 0)}
        return
    carriers = {link.parent for link in robot.links}
    few = [name for name in robot.link_names if name not in carriers][:4]
    few += [*{frame.link: frame.name for frame in robot.frames}.values()][:4]
    asked = [(name, reference) for name in few for reference in REFERENCES]
    asked += [(name, "body") for name in robot.link_names if name not in few]
    q = peer.states(1)[0]
    theirs = np.empty((len(asked), STATES, 6, model.nv))
    numbers = [(model.getFrameId(name, pin.FrameType.BODY), REFERENCES[reference]) for name, reference in asked]
    for state, x in enumerate(peer.q(q)):
        pin.computeJointJacobians(model, data, x)
        pin.updateFramePlacements(model, data)
        for row, (frame, reference) in enumerate(numbers):
            theirs[row, state] = pin.getFrameJacobian(model, data, frame, reference)
    for (name, reference), J in zip(asked, theirs):
        assert_close(cj.jacobian(robot, q, name, reference), J[:, SWAP] @ peer.P, f"{name} {reference}")


def test_dynamics(peer: Peer) -> None:
    robot, model, data, P = peer.robot, peer.model, peer.data, peer.P
    q, v, a, _, wrenches = peer.states(2)
    names = "mass", "forced", "bias", "gravity", "kinetic", "potential", "momentum", "centre", "matrix"
    theirs: dict[str, list] = {name: [] for name in names}
    for x, vx, ax, w in zip(peer.q(q), v @ P.T, a @ P.T, wrenches):
        M = np.triu(pin.crba(model, data, x))
        theirs["mass"].append(P.T @ (M + np.triu(M, 1).T) @ P)
        theirs["forced"].append(P.T @ pin.rnea(model, data, x, vx, ax, peer.forces(w)))
        theirs["bias"].append(P.T @ pin.nonLinearEffects(model, data, x, vx))
        theirs["gravity"].append(P.T @ pin.computeGeneralizedGravity(model, data, x))
        theirs["kinetic"].append(pin.computeKineticEnergy(model, data, x, vx))
        theirs["potential"].append(pin.computePotentialEnergy(model, data, x))
        if robot.n_links:
            theirs["matrix"].append(pin.ccrba(model, data, x, vx)[SWAP] @ P)
            theirs["momentum"].append(data.hg.vector[SWAP])
            theirs["centre"].append(data.com[0].copy())
    assert_close(cj.mass_matrix(robot, q), theirs["mass"], "mass matrix")
    assert_close(cj.inverse_dynamics(robot, q, v, a, wrenches), theirs["forced"], "inverse dynamics")
    assert_close(cj.bias_force(robot, q, v), theirs["bias"], "bias force")
    assert_close(cj.gravity_force(robot, q), theirs["gravity"], "gravity force")
    assert_close(cj.kinetic_energy(robot, q, v), theirs["kinetic"], "kinetic energy")
    assert_close(cj.potential_energy(robot, q), theirs["potential"], "potential energy")
    if robot.n_links:
        assert_close(cj.centroidal_momentum_matrix(robot, q), theirs["matrix"], "centroidal momentum matrix")
        assert_close(cj.centroidal_momentum(robot, q, v), theirs["momentum"], "centroidal momentum")
        assert_close(cj.center_of_mass(robot, q), theirs["centre"], "centre of mass")


MASSLESS = {
    "romeo_description/urdf/romeo.urdf": ["LHand", "RHand"],
    "romeo_description/urdf/romeo_laas_small.urdf": ["l_gripper_joint", "r_gripper_joint"],
}
"""Joints that move links without mass. The mass matrix is singular, which Pinocchio does not notice; compared with them locked."""


def test_forward_dynamics(peer: Peer) -> None:
    massless = MASSLESS.get("/".join(peer.path.parts[-3:]), [])
    warned = [x.split("'")[1] for x in peer.robot.warnings if "moves no mass" in x]
    assert warned == massless
    if massless:
        q, v, _, tau, wrenches = peer.states(3)
        with pytest.raises(SingularMassMatrixError, match=massless[0]):
            cj.forward_dynamics(peer.robot, q, v, tau, wrenches)
        peer = peer.locked(massless)
    robot, model, data, P = peer.robot, peer.model, peer.data, peer.P
    q, v, _, tau, wrenches = peer.states(3)
    theirs = []
    for x, vx, t, w in zip(peer.q(q), v @ P.T, tau, wrenches):
        if robot.mimics:
            M = np.triu(pin.crba(model, data, x))
            bias = pin.rnea(model, data, x, vx, 0 * vx, peer.forces(w))
            theirs.append(np.linalg.solve(P.T @ (M + np.triu(M, 1).T) @ P, t - P.T @ bias))
        else:
            theirs.append(P.T @ pin.aba(model, data, x, vx, P @ t, peer.forces(w)))
    assert_close(cj.forward_dynamics(robot, q, v, tau, wrenches), np.reshape(theirs, v.shape), "forward dynamics", small=1.0)


@pytest.mark.parametrize("name", slow_but_few(FILES))
def test_fixed_joints_kept_and_files_written_again(name: str) -> None:
    """The same mechanism in three ways: merged, with all its links, and written as URDF and read again."""
    robot, kept = (load(FILES[name], base="free", fixed_joints=choice) for choice in ("merge", "keep"))
    again = load(to_urdf(robot))
    assert again.joint_names == robot.joint_names
    assert again.link_names == robot.link_names
    assert again.base == robot.base
    assert set(kept.link_names) | {kept.base} == set(robot.frame_names) == set(again.frame_names)
    for key in ("lower", "upper", "velocity_limit", "effort_limit", "damping", "friction"):
        assert np.array_equal(getattr(robot, key), getattr(again, key)), key
    for key in ("placements", "screws", "inertias"):
        assert np.allclose(getattr(robot, key), getattr(again, key), rtol=1e-14, atol=1e-14), key
    q, (v, a) = robot.random(0, 3), np.random.default_rng(0).normal(size=(2, 3, robot.nv))
    tau = cj.inverse_dynamics(robot, q, v, a)
    for other in (kept, again):
        assert np.allclose(cj.inverse_dynamics(other, q, v, a), tau, rtol=0, atol=1e-13 * np.max(np.abs(tau), initial=0.0))
