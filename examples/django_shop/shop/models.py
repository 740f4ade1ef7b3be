"""What the shop remembers."""

from django.db import models


class Order(models.Model):
    """Something that somebody wants."""

    item = models.CharField(max_length=100)
    confirmed = models.BooleanField(default=False)
