"""Tables and progress for the terminal, figures and animations."""
