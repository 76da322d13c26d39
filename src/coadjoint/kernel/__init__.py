"""From readable array code to machine code: trace, differentiate, lower, call."""
