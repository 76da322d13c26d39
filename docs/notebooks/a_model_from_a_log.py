# %% [markdown]
# # A model from a log
# The description says one thing, the robot is another: a load in the hand and friction that nobody wrote down. A recorded motion
# tells.

# %%
import numpy as np

import coadjoint as cj

robot = cj.load("planar2r")
truth = robot.with_payload(robot.link_names[-1], mass=0.4, com=(0.1, 0.05, 0.0), inertia=0.01 * np.eye(3))
time = np.arange(0, 10, 0.02)
w = 2 * np.pi * np.array([0.3, 0.7])
q = np.sin(time[:, None] * w) + 0.5 * np.cos(1.7 * time[:, None] * w)
v = w * np.cos(time[:, None] * w) - 0.85 * w * np.sin(1.7 * time[:, None] * w)
a = -(w**2) * np.sin(time[:, None] * w) - 1.445 * w**2 * np.cos(1.7 * time[:, None] * w)
tau = cj.inverse_dynamics(truth, q, v, a) + 0.3 * v + 0.02 * np.random.default_rng(0).normal(size=q.shape)

# %%
before = cj.compare(robot, {"time": time, "q": q, "v": v, "a": a, "tau": tau})
fit = cj.identify(robot, {"time": time, "q": q, "v": v, "a": a, "tau": tau})
print(before)
print(fit)
assert fit.relative_error < 0.05

# %% [markdown]
# The identified robot is a robot like any other: it can be simulated, saved, controlled.

# %%
motion = cj.simulate(fit.robot, [0.5, 0.5], [0.0, 0.0], np.linspace(0, 2, 101))
motion
