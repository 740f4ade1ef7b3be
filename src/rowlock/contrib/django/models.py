"""No model: our tables are no affair of Django's. But only an app with this module is told of `migrate`."""
