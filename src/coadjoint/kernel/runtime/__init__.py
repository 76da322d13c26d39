"""Machine code at run time: made, cached, loaded, called, shared among threads."""
