"""Commands that look for faults by random: see each module."""
