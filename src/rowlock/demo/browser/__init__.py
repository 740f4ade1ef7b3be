"""Browser: the demo as a page of the dashboard, with buttons."""
