"""Run by `manage.py test`: each test in a transaction that is rolled back, its jobs with it."""

from contextlib import suppress

from django.db import transaction
from django.test import TestCase

from config.jobs import app
from rowlock.testing import assert_enqueued, assert_not_enqueued, drain
from shop.tasks import confirm


class Orders(TestCase):
    """What happens to an order."""

    def test_an_order_is_confirmed_by_its_job(self) -> None:
        """The job is run by `drain`, in this test's transaction."""
        order = self.client.post("/orders", {"item": "boat"}).json()["order"]
        assert_enqueued(confirm.bind(order))

        drain(app, raising=True)

        assert self.client.get(f"/orders/{order}").json() == {"item": "boat", "confirmed": True}

    def test_what_is_rolled_back_leaves_no_job(self) -> None:
        """The job belongs to the atomic block that it was enqueued in."""
        with suppress(ZeroDivisionError), transaction.atomic():
            confirm.enqueue(7)
            raise ZeroDivisionError

        assert_not_enqueued(confirm)
