"""Views: the pages of the shop."""

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from shop.models import Order
from shop.tasks import confirm


@csrf_exempt  # an API without cookies
@require_POST
def place(request: HttpRequest) -> JsonResponse:
    """Take an order: it and its job are committed together, or neither is."""
    with transaction.atomic():
        order = Order.objects.create(item=request.POST["item"])
        job = confirm.enqueue(order.pk)
    return JsonResponse({"order": order.pk, "job": str(job.id)}, status=201)


def show(_request: HttpRequest, order: int) -> JsonResponse:
    """How far an order is."""
    found = get_object_or_404(Order, pk=order)
    return JsonResponse({"item": found.item, "confirmed": found.confirmed})
