# %% [markdown]
# # A cart swings its pole up
# Differential dynamic programming with a motor at the cart and none at the pole. The result has the feedback that is best near
# the motion.

# %%
import numpy as np

import coadjoint as cj

robot = cj.load("cartpole")
cart, pole = robot.joint_names
up = np.pi if cj.potential_energy(robot, [0.0, np.pi]) > cj.potential_energy(robot, [0.0, 0.0]) else 0.0


def upright(robot, q, v, u):
    """Zero where the cart is in the middle and the pole stands upright, both at rest."""
    xp = cj.arrays.namespace(q)
    angle = q[..., 1:] - up
    return xp.concat([q[..., :1], xp.sin(angle), 1.0 - xp.cos(angle), v], axis=-1)


stage = cj.Stage(100, [cj.costs.control(1e-2), cj.costs.residual(upright, 1e-2)], 0.02)
found = cj.optimal_control(robot, stage, [0.0, up + 3.1], cj.costs.residual(upright, 100.0), actuation=[cart])
print(found)
assert found.converged
assert np.abs(np.sin(found.q[-1, 1])) < 0.05

# %% [markdown]
# From a start that is 0.05 rad off, with the feedback of the plan:

# %%
q, v = found.q[0] + [0.0, 0.05], found.v[0]
for k in range(100):
    u = found.feedback(k, q, v)
    path = cj.rollout(robot, q, v, np.array([[u[0], 0.0]]), dt=0.02)
    q, v = path[0][-1], path[1][-1]
print("the end with feedback:", q, " planned:", found.q[-1])
assert np.abs(q - found.q[-1]).max() < 0.2

# %%
motion = found
motion
