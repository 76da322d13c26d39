"""Machine code in use: loading it, keeping it on disk, calling it, sharing its work among threads."""

import time as _time

STARTED = _time.time()
"""The time at which this library was imported: files that changed later are not what runs here."""
