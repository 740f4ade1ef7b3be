"""Approval: a workflow asks a person, waits for days at the cost of a row, and goes on when the answer comes."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from rowlock import Context, Rowlock
from rowlock.errors import SignalRefused, SignalTimeout

app = Rowlock()


@dataclass
class Decision:
    approved: bool
    by: str


@app.workflow
async def expense(ctx: Context, cents: int, patience: timedelta) -> str:
    ctx.state["status"] = "asks"
    try:
        decision = await ctx.signal("decision", schema=Decision, timeout=patience)
    except SignalTimeout:
        return "nobody has answered"
    ctx.state["status"] = "decided"
    return f"{cents} {'approved' if decision.approved else 'refused'} by {decision.by}"


async def main() -> None:
    async with app, app.worker():
        job = await expense.using(key="expense:7").aenqueue(120_00, timedelta(days=3))
        while not (waits := (await app.workflows.ashow(job.id)).waits):  # noqa: ASYNC110  as a page would look
            await asyncio.sleep(0.01)
        print(f"{waits[0].name}: a form with {', '.join(waits[0].form['properties'])}")
        # A button may be pressed twice, and a webhook comes twice: by its key it counts once.
        for _ in range(2):
            sent = await app.asignal("expense:7", "decision", {"approved": True, "by": "ann"}, key="click 1")
            print("stored:", sent)
        print(await job.aresult())

        forgotten = await expense.aenqueue(80_00, timedelta(milliseconds=50))
        print(await forgotten.aresult())
        try:
            await forgotten.asignal("decision", {"approved": True, "by": "bob"})
        except SignalRefused as error:
            print("too late:", error.state)


if __name__ == "__main__":
    asyncio.run(main())
