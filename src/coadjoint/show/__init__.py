"""Results made visible: tables and progress in the terminal, figures."""
