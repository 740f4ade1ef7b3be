"""A checkup: is the database healthy, and if not, what is to be done; `rowlock doctor` prints the same."""

import asyncio
from datetime import timedelta

from rowlock import Rowlock

app = Rowlock()


@app.task(queue="mail")
async def send(user: int) -> None: ...


async def main() -> None:
    async with app:
        await send.aenqueue(1)

        checkup = await app.adoctor(target=timedelta(minutes=5))

        for name in ("writable", "partitions ahead", "queues without a worker"):
            finding = checkup[name]
            print(f"{finding.level}: {finding.name}")
        print(f"do: {checkup['live workers'].do}")


if __name__ == "__main__":
    asyncio.run(main())
