"""`manage.py rowlock`."""
