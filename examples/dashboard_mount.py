"""The dashboard in a FastAPI app, for those whom the app knows itself: ann acts, ben looks, a stranger sees nothing.

DATABASE_URL=postgresql://localhost/shop uvicorn dashboard_mount:api
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI
from starlette.requests import HTTPConnection

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor

app = Rowlock()
STAFF = {"s-ann": Visitor("ann", "operator"), "s-ben": Visitor("ben", "viewer")}  # yours, by their sessions


@app.task(queue="mail")
async def welcome(user: int) -> None:
    """Some work to look at."""


def who(request: HTTPConnection) -> Visitor | None:
    """Who a request is from, as the rest of this app knows it; nobody is None."""
    return STAFF.get(request.cookies.get("session", ""))


dashboard = Dashboard(app, auth=who, hosts=["shop.example"])


@asynccontextmanager
async def lifespan(_api: FastAPI) -> AsyncIterator[None]:
    """The dashboard keeps connections of its own; they are closed with the server."""
    async with app:
        yield
        await dashboard.aclose()


api = FastAPI(lifespan=lifespan)
api.mount("/jobs", dashboard)


async def main() -> None:
    """Three visits."""
    await welcome.aenqueue(42)
    web = httpx.ASGITransport(api)
    async with lifespan(api), httpx.AsyncClient(transport=web, base_url="http://shop.example") as client:
        for name, session in (("a stranger", ""), ("ben", "s-ben"), ("ann", "s-ann")):
            client.cookies.set("session", session)
            seen = await client.get("/jobs/api/queues")
            print(f"{name}: {seen.status_code}")


if __name__ == "__main__":
    asyncio.run(main())
