# %% [markdown]
# # The fastest motion along a path
# A spline through five random configurations of a 7-joint arm; limits of speed, acceleration and joint force. The answer is the
# continuous optimum: at every instant one limit is reached.

# %%
import numpy as np

import coadjoint as cj

robot = cj.load("panda")
points = np.random.default_rng(0).uniform(-1, 1, (5, 7))
timing = cj.time_optimal(robot, points, acceleration=[15, 7.5, 10, 12.5, 15, 20, 20])
print(timing.report())
assert timing.excess() < 1e-8

# %% [markdown]
# The same path with a load of 2 kg in the hand takes longer where forces are the limit; with 5 kg they are.

# %%
loaded = cj.time_optimal(robot.with_payload("tip", mass=5.0), points, acceleration=[15, 7.5, 10, 12.5, 15, 20, 20])
print(f"{timing.duration:.4f} s empty, {loaded.duration:.4f} s loaded")
assert loaded.duration >= timing.duration - 1e-9

# %%
time = np.linspace(0.0, timing.duration, 200)
q, v, a = timing(time)
motion = cj.Trajectory(robot, time, q, v, cj.inverse_dynamics(robot, q, v, a))
motion
