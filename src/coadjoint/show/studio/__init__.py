"""The studio: the page of a robot with Python behind it, for what a page cannot compute alone."""
