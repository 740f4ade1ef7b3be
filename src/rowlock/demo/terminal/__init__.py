"""Terminal: the demo as a live view, which kills workers by itself."""
