"""Statistics: counts, rates, durations and workers as values."""
