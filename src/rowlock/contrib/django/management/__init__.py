"""Management: the command `manage.py rowlock`."""
