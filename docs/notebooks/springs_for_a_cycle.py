# %% [markdown]
# # Springs for a pick-and-place cycle
# An arm of two links carries 3 kg from one place to another and comes back empty. Three springs without length at rest can hold
# it still anywhere; those that make the effort of the *cycle* least are others, since they also give and take the energy of the
# motion.

# %%
import numpy as np

import coadjoint as cj
from coadjoint.design import studies

cycle = studies.pick_and_place()
print(cycle)
assert cycle.converged

# %%
holding = studies.balancing_springs()
print(holding)
q = holding.robot.random(np.random.default_rng(0), (5,))
assert np.abs(cj.gravity_force(holding.robot, q)).max() < 1e-6

# %% [markdown]
# Let fall, the balanced arm does not fall: it goes on as it was pushed.

# %%
robot = holding.robot
motion = cj.simulate(robot, [0.3, 0.5], [1.0, -0.8], np.linspace(0, 3, 151))
assert np.ptp(motion.energy) < 1e-7
motion
