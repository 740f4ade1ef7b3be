"""Model: frozen values, without I/O and without a clock."""
