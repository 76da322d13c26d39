# %% [markdown]
# # Lifting with weak motors
# From hanging to pointing forward with the least effort ∫ τᵀτ dt: first without limits, then with a shoulder that cannot hold the
# arm still.

# %%

import coadjoint as cj

robot = cj.load("planar2r")
start, goal = [-1.5, 0.2], [0.3, 0.4]
easy = cj.optimal_motion(robot, start, goal, 1.5, "effort")
weak = cj.optimal_motion(robot, start, goal, 1.5, "effort", effort=[30.0, 10.0])
print(easy)
print(weak)
assert easy.converged
assert weak.converged
assert weak.cost > easy.cost

# %% [markdown]
# How the least effort would change with the masses: the derivative of the optimum, without solving again.

# %%
slopes = easy.sensitivity("masses")
print(slopes, slopes.cost)

# %%
motion = weak
motion
