"""Fuzzers: random inputs, and outcomes that must hold for all of them.

    python -m fuzz                                     what there is
    python -m fuzz graphs --cases 100000 --seed 1      one of them

Every module of this folder is a fuzzer: its `run(seed)` makes the input of that seed and returns a tally {outcome: count}. An
outcome that begins with FAILED is a defect; `run` prints it with the seed, so that `--seed S --cases 1` repeats it.
"""
