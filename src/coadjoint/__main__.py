"""`python -m coadjoint` is the command `coadjoint`."""

import sys

from .cli import main

sys.exit(main())
