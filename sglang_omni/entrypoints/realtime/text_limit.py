"""The texts of events, as `sglang_omni.entrypoints.text_limit` counts them."""

from sglang_omni.entrypoints.realtime.item_schema import (
    CallBody,
    CallOutputBody,
    ItemReference,
    MessageBody,
)
from sglang_omni.entrypoints.realtime.session_schema import Answering, ResponseBody
from sglang_omni.entrypoints.text_limit import FieldSizes, count_json_characters


def answering_texts(body: Answering, path: str) -> FieldSizes:
    """The texts of a session's or a response's settings."""
    if body.instructions is not None:
        yield f"{path}.instructions", len(body.instructions)
    for index, tool in enumerate(body.tools or ()):
        yield f"{path}.tools.{index}.description", len(tool.description)
        yield f"{path}.tools.{index}.parameters", count_json_characters(tool.parameters)


def item_texts(
    item: MessageBody | CallBody | CallOutputBody | ItemReference, path: str
) -> FieldSizes:
    """The texts of an item; its sound and pictures do not count."""
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


def response_texts(body: ResponseBody) -> FieldSizes:
    """The texts of a response that is asked for, with those of its own context."""
    yield from answering_texts(body, "response")
    for index, item in enumerate(body.input or ()):
        yield from item_texts(item, f"response.input.{index}")
