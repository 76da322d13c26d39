"""The commands of `coadjoint`, one module each: `HELP` is its line in the list of commands, `add_arguments(parser)` declares its
arguments, `run(args)` executes it. A module without `add_arguments` is a helper.
"""
