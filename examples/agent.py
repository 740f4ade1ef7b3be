"""An agent: what the model says and what its tools do are steps, so that no crash pays for one of them twice."""

import asyncio
from typing import NamedTuple

from rowlock import Cancel, Context, Rowlock
from rowlock.errors import JobCancelled

app = Rowlock()
calls: list[int] = []
wanted = [("weather", "Oslo"), ("weather", "Rome"), ("ask", "by boat?")]


class Reply(NamedTuple):
    text: str
    tool: str | None = None
    tokens: int = 100


async def ask_model(messages: list[str]) -> Reply:
    """A stand-in for a model: it wants to know three things, one after the other, and then it answers."""
    calls.append(len(messages))
    unknown = [Reply(about, tool) for tool, about in wanted if about not in str(messages)]
    return unknown[0] if unknown else Reply(f"a coat: {messages[-1]}")


def weather(city: str) -> str:
    return f"rain in {city}"


@app.workflow
async def agent(ctx: Context, messages: list[str], budget: int) -> str:
    while True:
        reply = await ctx.step(ask_model, messages)
        ctx.state["tokens"] = spent = ctx.state.get("tokens", 0) + reply.tokens
        if reply.tool is None:
            return reply.text
        if spent > budget:
            raise Cancel(f"{spent} tokens")
        if reply.tool == "ask":  # a person; hours may pass, and nothing is held
            said = f"{reply.text} {await ctx.signal('answer')}"
        else:
            said = await ctx.using(name=reply.tool).step(weather, reply.text)
        messages = [*messages, said]
        if len(messages) > 3:  # a long talk goes on with a summary and a fresh history
            ctx.restart([messages[0], ", ".join(messages[1:])], budget)


async def main() -> None:
    async with app, app.worker():
        job = await agent.aenqueue(["what to wear?"], 1_000)
        while (await job.arecord()).waits_for != "signal":  # noqa: ASYNC110  as a page would look
            await asyncio.sleep(0.01)
        await job.asignal("answer", "yes")
        print(await job.aresult())
        print(f"{len(calls)} calls of the model, {(await job.arecord()).workflow_state['tokens']} tokens")
        try:
            await (await agent.aenqueue(["what to eat?"], 150)).aresult()
        except JobCancelled as error:
            print("too expensive:", error.reason)
    assert calls == [1, 2, 3, 2, 1, 2]


if __name__ == "__main__":
    asyncio.run(main())
