# %% [markdown]
# # Least action is a geodesic
# Without gravity, the motion of least ∫ ½ vᵀMv dt between two configurations is a geodesic of the kinetic-energy metric: free
# motion, without any force.

# %%
import numpy as np

import coadjoint as cj

robot = cj.load("planar2r").with_gravity((0, 0, 0))
least = cj.optimal_motion(robot, [0.3, 0.5], [1.2, -0.4], 1.0, "action", limits=False, spans=32)
q, v = cj.geodesic(robot, least.q[0], least.v[0], least.time)
print("largest difference:", np.abs(q - least.q).max())
assert np.abs(q - least.q).max() < 1e-8

# %% [markdown]
# Beyond a conjugate point a geodesic is no longer the shortest way. The metric of two links is curved; its scalar curvature where
# the motion passes:

# %%
R = cj.scalar_curvature(robot, least.q)
print("scalar curvature from", R.min(), "to", R.max())

# %%
motion = least
motion
