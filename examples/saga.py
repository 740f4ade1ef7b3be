"""A saga: a trip is booked at two services; if the second has no room, the booking at the first is undone."""

import asyncio
from datetime import timedelta

from rowlock import Context, Retry, Rowlock
from rowlock.errors import JobFailed

app = Rowlock()


class Service:
    """A service of somebody else: one booking for each key. Its first answer gets lost on the way."""

    def __init__(self, rooms: int) -> None:
        self.rooms = rooms
        self.booked: dict[str, str] = {}
        self.calls = 0

    async def book(self, guest: str, key: str) -> str:
        self.calls += 1
        if key not in self.booked and len(self.booked) == self.rooms:
            raise LookupError("no room")
        self.booked[key] = guest
        if self.calls == 1:
            raise ConnectionError("the booking is made, and nobody hears of it")
        return f"{guest} is expected"

    async def cancel(self, key: str) -> None:
        guest = self.booked.pop(key, None)  # of what is not there, too
        print(f"cancelled for {guest}")


boat, hotel = Service(rooms=9), Service(rooms=1)


@app.workflow(retry=Retry(attempts=5, base=timedelta(milliseconds=10), on=ConnectionError))
async def trip(ctx: Context, guest: str) -> list[str]:
    answers = []
    for name, service in (("boat", boat), ("hotel", hotel)):
        key = ctx.idempotency_key  # the same in every try of the next step
        ctx.using(name=f"cancel {name}").undo(service.cancel, key)
        answers.append(await ctx.using(name=f"book {name}").step(service.book, guest, key))
    return answers


async def main() -> None:
    async with app, app.worker():
        print(await (await trip.aenqueue("Ada")).aresult())
        try:
            await (await trip.aenqueue("Eve")).aresult()
        except JobFailed as error:
            print(error.message)
    assert list(boat.booked.values()) == list(hotel.booked.values()) == ["Ada"]
    assert (boat.calls, hotel.calls) == (3, 3)


if __name__ == "__main__":
    asyncio.run(main())
