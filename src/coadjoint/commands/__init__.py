"""The commands of `coadjoint`, a module each: `HELP` is its line in the list, `add_arguments(parser)` declares what it takes, `run(args)`
does it. A module without `add_arguments` is a helper of others."""
