"""The project's settings."""

import os

SECRET_KEY = os.environ.get("SECRET_KEY", "for development only")
ROOT_URLCONF = "config.urls"
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = ["rowlock.contrib.django", "shop"]
ROWLOCK_APP = "config.jobs:app"

# Where it is and who we are, libpq reads from $PGHOST, $PGUSER and $PGPASSWORD by itself.
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ.get("PGDATABASE", "shop")}}
