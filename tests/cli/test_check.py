"""`rowlock workflows check`: what it prints, and its exit codes, by which a deploy is stopped."""

from __future__ import annotations

import json

import pytest

from rowlock import Context, Rowlock
from rowlock.testing import drain
from tests.cli.conftest import Type
from tests.cli.programs import Shop

CODE = """
from rowlock import Context, Rowlock

app = Rowlock()


async def reserve(order: int) -> str:
    raise AssertionError("a check has called a step")


@app.workflow(name="shop.checkout")
async def checkout(ctx: Context, order: int) -> None:
    await ctx.using(name="NAME").step(reserve, order)
    await ctx.signal("paid")
"""


@pytest.fixture
def orders(url: str) -> list[str]:
    """Two workflows that wait for a signal, of which the newer is of version 2, which the code on disk lacks."""
    with Rowlock(url) as app:
        for version in (1, 2):

            @app.workflow(name="shop.checkout", version=version)
            async def checkout(ctx: Context, order: int) -> None:
                await ctx.using(name="reserve").step(lambda _order: "r-1", order)
                await ctx.signal("paid")

            checkout.using(key=f"order-{version}").enqueue(version)
        drain(app)
        return [str(record.id) for record in app.workflows.list().records]


def deploy(shop: Shop, *, step: str) -> None:
    (shop.folder / "orders.py").write_text(CODE.replace("NAME", step))


def test_code_that_fits_is_told_apart_from_code_that_is_not_there(rowlock: Type, shop: Shop, orders: list[str]) -> None:
    deploy(shop, step="reserve")

    checked = rowlock("workflows", "check", "--app", "orders")
    in_json = rowlock("workflows", "check", "--app", "orders", "--json")

    assert checked.code == 4
    assert checked.out.splitlines() == [
        f"no code  {orders[0]}  shop.checkout@2 order-2  parked",
        "  this code has no version 2 of it, nor a migration from that to another",
        "1 workflow fits, 0 differ, 1 without code here",
    ]
    assert in_json.code == 4
    document = json.loads(in_json.out)
    assert document["is_whole"]
    assert [(one["id"], one["verdict"]) for one in document["workflows"]] == [
        (orders[0], "no code"),
        (orders[1], "fits"),
    ]


def test_code_that_differs_is_shown_with_the_difference_and_stops_a_deploy(
    rowlock: Type, shop: Shop, orders: list[str]
) -> None:
    deploy(shop, step="hold")

    checked = rowlock("workflows", "check", "--app", "orders", "--workflow", "shop.checkout", "--ended")
    newest = rowlock("workflows", "check", "--app", "orders", "--limit", "1")

    assert checked.code == 5
    assert f"differs  {orders[1]}  shop.checkout@1 order-1  parked" in checked.out
    assert "at call 1 the code calls step 'hold', and the record has step 'reserve' (done)" in checked.out
    assert checked.out.splitlines()[-1] == "0 workflows fit, 1 differs, 1 without code here"
    assert newest.out.splitlines()[-1] == "0 workflows fit, 0 differ, 1 without code here; there are more: --limit"


def test_with_nothing_to_check_all_is_well(rowlock: Type, shop: Shop) -> None:
    deploy(shop, step="reserve")

    checked = rowlock("workflows", "check", "--app", "orders")

    assert (checked.code, checked.out) == (0, "0 workflows fit, 0 differ, 0 without code here\n")
