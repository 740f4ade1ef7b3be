"""What things are: frozen values, no I/O, no clock."""
