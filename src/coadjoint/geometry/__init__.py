"""The Riemannian geometry of kinetic energy."""
