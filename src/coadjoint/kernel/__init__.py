"""The compiler from array code to machine code; README.md walks through it."""
