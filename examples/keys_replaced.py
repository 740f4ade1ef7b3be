"""What else a key can mean: once in an hour, replaced by the last word, put off while more comes in."""

import asyncio
from datetime import timedelta

from rowlock import Key, Rowlock
from rowlock.errors import KeyTaken

app = Rowlock()


@app.task
async def report(customer: int) -> None:
    print(f"a report for customer {customer}")


@app.task
async def index(document: int, version: int) -> None:
    print(f"document {document}: version {version} is indexed")


async def main() -> None:
    hourly = report.using(key=Key("report:7", period=timedelta(hours=1)))
    strict = report.using(key=Key("report:7", period=timedelta(hours=1), taken="raise"))
    latest = index.using(key=Key("index:42", taken="replace"))
    quiet = index.using(
        key=Key("index:43", taken="debounce", at_most=timedelta(seconds=0.5)), delay=timedelta(seconds=0.2)
    )
    async with app:
        first = await hourly.aenqueue(7)
        edits = [
            await edited.aenqueue(document, version)
            for version in (1, 2, 3)
            for document, edited in ((42, latest), (43, quiet))
        ]
        print(f"jobs made for 6 edits: {sum(job.created for job in edits)}")
        async with app.worker():
            await first.aresult()
            await edits[0].aresult()
            await edits[1].aresult()
        again = await hourly.aenqueue(7)
        print(f"again within the hour, created: {again.created}, the same job: {again == first}")
        try:
            await strict.aenqueue(7)
        except KeyTaken as error:
            print(f"taken by the first one: {error.job == first.id}")


if __name__ == "__main__":
    asyncio.run(main())
