"""pydantic-ai: an agent with structured output, a tool and a stream, by responses and by chat."""

import asyncio
import os
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent

sys.path.insert(0, str(Path(__file__).parents[2]))
from ci.clients.media import RESULT, SUM

DEADLINE_S = 120


class Sum(BaseModel):
    """The numbers of a sum."""

    left: int
    right: int


async def answers(model: str) -> None:
    agent = Agent(model, model_settings={"temperature": 0})
    answer = await agent.run(SUM)
    print(f"  answer: {answer.output!r}")
    assert RESULT in answer.output
    async with agent.run_stream(SUM) as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True)]
    assert "".join(pieces) == answer.output
    print("  the same, streamed")
    more = await agent.run("And what is 3 + 4?", message_history=answer.all_messages())
    print(f"  asked again: {more.output!r}")
    assert more.usage.requests == 1


async def structured(model: str) -> None:
    agent = Agent(model, output_type=Sum)
    found = await agent.run(SUM)
    assert isinstance(found.output, Sum)
    print(f"  {type(found.output).__name__}")


async def tools(model: str) -> None:
    called: list[tuple[int, int]] = []

    def add(left: int, right: int) -> int:
        """Add two numbers."""
        called.append((left, right))
        return left + right

    offered = await Agent(model, tools=[add]).run(SUM)
    assert offered.output
    print("  answered with a tool at hand")
    found = await Agent(model, output_type=add).run(SUM)
    assert found.output == sum(called[-1])
    print("  called as the only way to answer")


async def main(url: str) -> None:
    os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
    async with asyncio.timeout(DEADLINE_S):
        for model in ("openai:gpt-5.2", "openai-chat:gpt-5.2"):
            print(f"-- {model}")
            await answers(model)
            await structured(model)
            await tools(model)
    print("ok")


asyncio.run(main(sys.argv[1]))
