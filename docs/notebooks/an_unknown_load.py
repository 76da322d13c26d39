# %% [markdown]
# # Tracking with an unknown load
# The controller does not know the 1.5 kg in the hand. Adaptive control learns it while it tracks, and its estimates are inertias
# of a possible body at every step.

# %%
import numpy as np

import coadjoint as cj
from coadjoint import control

upper = cj.Link.solid("upper", "base", cj.Joint.revolute((0, 1, 0)), mass=2.0, com=(0.25, 0, 0), inertia=0.05)
elbow = cj.lie.se3.pose(np.eye(3), np.array([0.5, 0, 0]))
lower = cj.Link.solid("lower", "upper", cj.Joint.revolute((0, 1, 0)), elbow, mass=1.0, com=(0.2, 0, 0), inertia=0.01)
robot = cj.Robot("arm", [upper, lower])
plant = robot.with_payload("lower", mass=1.5, com=(0.4, 0, 0.03), inertia=0.002)

# %%
reference = control.sinusoid(robot, [0.2, -0.4], [0.8, 0.7], [0.5, 0.8])
learning = control.adaptive(robot, reference, rate=8.0, damping=5.0, adaptation=10.0, links=["lower"])
loop = control.closed_loop(plant, learning, *reference(0.0)[:2], 6.0)
error = np.abs(loop.q - np.array([reference(t)[0] for t in loop.time])).max(axis=1)
print(f"error in the first second {error[:1000].max():.4f} rad, in the last half {error[-500:].max():.4f} rad")
assert error[-500:].max() < 0.3 * error[:1000].max()

# %%
learned = control.estimates(learning, loop.state[-1])
print(f"mass of the lower link with its load: from 1 kg to {learned.parameters('masses')[1]:.2f} kg of 2.5: what this motion shows")

# %%
motion = cj.Trajectory(plant, loop.time[:-1:40], loop.q[:-1:40], loop.v[:-1:40], loop.tau[::40])
motion
