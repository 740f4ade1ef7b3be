"""Claims, runs, settles."""
