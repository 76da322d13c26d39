"""Passes on graphs: simplification, differentiation, and the plain evaluation that is the reference for all results."""
