"""From a graph to a graph: simplification, differentiation, and the plain evaluation that everything is measured by."""
