"""Measures the texts of events for the limit of `sglang_omni.entrypoints.text_limit`."""

from sglang_omni.entrypoints.realtime.item_schema import (
    CallBody,
    CallOutputBody,
    ItemReference,
    MessageBody,
)
from sglang_omni.entrypoints.realtime.session_schema import AnswerBody, ResponseBody
from sglang_omni.entrypoints.text_limit import FieldSizes, count_json_characters


def measure_answer_texts(body: AnswerBody, path: str) -> FieldSizes:
    """Yield the path and length of each text in the settings of a session or a response."""
    if body.instructions is not None:
        yield f"{path}.instructions", len(body.instructions)
    for index, tool in enumerate(body.tools or ()):
        yield f"{path}.tools.{index}.description", len(tool.description)
        yield f"{path}.tools.{index}.parameters", count_json_characters(tool.parameters)


def measure_item_texts(
    item: MessageBody | CallBody | CallOutputBody | ItemReference, path: str
) -> FieldSizes:
    """Yield the path and length of each text of an item; audio and images do not count."""
    match item:
        case MessageBody(content=parts):
            for index, part in enumerate(parts):
                for name in ("text", "transcript"):
                    text = getattr(part, name, None)
                    yield f"{path}.content.{index}.{name}", len(text or "")
        case CallBody(arguments=arguments):
            yield f"{path}.arguments", len(arguments)
        case CallOutputBody(output=output):
            yield f"{path}.output", len(output)


def measure_response_texts(body: ResponseBody) -> FieldSizes:
    """Yield the path and length of each text of a `response.create`, including its `input`."""
    yield from measure_answer_texts(body, "response")
    for index, item in enumerate(body.input or ()):
        yield from measure_item_texts(item, f"response.input.{index}")
