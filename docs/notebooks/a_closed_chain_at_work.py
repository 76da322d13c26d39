# %% [markdown]
# # A closed chain at work
# The end of three links is held: a four-bar linkage with one freedom. The motion of least effort is found under the constraint.

# %%
import numpy as np

import coadjoint as cj

robot = cj.load("planar3r")
held = cj.Constraint.point(robot, "tip", axes="xy", at=(1.2, 0.8))
q = cj.constraints.assemble(robot, held, [0.3, 0.8, 0.9])
free = cj.simulate(robot, q, np.zeros(3), np.linspace(0, 2, 101), constraints=held)
print("energy is kept to", np.ptp(free.energy), "and the constraint to", max(free.drift()))
assert np.ptp(free.energy) < 1e-8

# %% [markdown]
# From rest to rest, along the linkage, with the least effort:

# %%
goal = free.q[25]
best = cj.optimal_motion(robot, q, goal, 1.0, "effort", constraints=held, limits=False, spans=32)
print(best)
assert best.converged

# %%
motion = best
motion
