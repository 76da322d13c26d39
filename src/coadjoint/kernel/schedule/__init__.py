"""The order in which a graph is computed, the functions it is cut into, and where its values are kept."""
