"""What joins Rowlock to a framework; each is loaded by its users alone."""
