"""What the shop does later: plain functions that use the ORM, as views do."""

from config.jobs import app
from shop.models import Order


@app.task(queue="mail")
def confirm(order: int) -> str:
    """Confirm an order; done twice, it is done once."""
    found = Order.objects.get(pk=order)
    found.confirmed = True
    found.save(update_fields=["confirmed"])
    return f"one {found.item}, coming up"
