"""langchain-openai: its chat model of default name, with tools and structured output."""

import sys
from pathlib import Path
from typing import Literal

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

sys.path.insert(0, str(Path(__file__).parents[2]))
from ci.clients.media import RESULT, SUM


@tool
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


class Sum(BaseModel):
    """The sum that the user asks for."""

    left: int = Field(description="the first number")
    operation: Literal["plus", "minus"]


def written_chat(model: ChatOpenAI) -> None:
    print("-- an answer, whole and streamed")
    answer = model.invoke(SUM)
    print(f"  answer: {answer.text!r}, {answer.usage_metadata}")
    assert RESULT in answer.text
    chunks = list(model.stream(SUM))
    assert "".join(chunk.text for chunk in chunks) == answer.text
    print("  the same in chunks")


def function_calls(model: ChatOpenAI) -> None:
    print("-- a function called, and its result told")
    bound = model.bind_tools([add], tool_choice="any")
    question = HumanMessage(SUM)
    answer = bound.invoke([question])
    (call,) = answer.tool_calls
    print(f"  {call['name']}({sorted(call['args'])})")
    result = add.invoke(call)
    assert isinstance(result, ToolMessage)
    told = model.bind_tools([add]).invoke([question, answer, result])
    assert told.text or told.tool_calls
    streamed = None
    for chunk in bound.stream([question]):
        streamed = chunk if streamed is None else streamed + chunk
    assert streamed is not None
    assert [one["name"] for one in streamed.tool_calls] == ["add"]
    assert all(type(value) is int for value in streamed.tool_calls[0]["args"].values())
    print("  the same, streamed")


def structured_output(model: ChatOpenAI) -> None:
    print("-- structured output")
    for method in ("json_schema", "function_calling"):
        found = model.with_structured_output(Sum, method=method).invoke(SUM)
        assert isinstance(found, Sum)
        print(f"  by {method}: {type(found).__name__}")


def main(url: str) -> None:
    model = ChatOpenAI(base_url=url, api_key="none", temperature=0)
    print(f"model: {model.model_name}")
    written_chat(model)
    function_calls(model)
    # With the default one, a schema is sent as a function.
    structured_output(ChatOpenAI(base_url=url, api_key="none", model="gpt-4o-mini"))
    print("ok")


main(sys.argv[1])
