"""How fast it is, beside the libraries that people use: `python -m benchmarks`."""
