"""From a Python function to a graph: symbols that record what is done to them."""
