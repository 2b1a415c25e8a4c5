"""Ask items through a running server's own routes, and judge the replies."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from cookbook.ming_mini.thinker.checks import is_right
from cookbook.ming_mini.thinker.dialogs import ChatMessage, TextRun
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini_2.thinker.dialog import DialogItem
from measurement.media_files import encode_png, encode_wav
from sglang_omni.protocol.tools import Tool, ToolCall, ToolResult

MAX_TOKENS = 240
TRANSCRIPTIONS, CHAT = "/v1/audio/transcriptions", "/v1/chat/completions"
Json = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer: its text, its calls with their arguments, and why it ended."""

    text: str
    calls: tuple[tuple[str, Any], ...] = ()
    finish_reason: str = "stop"


def data_url(kind: str, data: bytes) -> str:
    """Return data as a URL of a media type."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def picture_part(pixels: np.ndarray) -> Json:
    """Return a picture, uint8 [height, width, 3], as a part of a message."""
    return {"type": "image_url", "image_url": {"url": data_url("image/png", encode_png(pixels))}}


def film_part(frames: Sequence[np.ndarray]) -> Json:
    """Return frames, two a second, as a part of a message."""
    urls = [data_url("image/png", encode_png(frame)) for frame in frames]
    return {"type": "video_url", "video_url": {"frames": urls}}


def clip_part(samples: np.ndarray) -> Json:
    """Return a clip, int16 [n] at 16 kHz, as a part of a message."""
    data = base64.b64encode(encode_wav(samples)).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def chat_body(item: Item, clip: np.ndarray | None = None, forced: bool = False) -> Json:
    """Return the body of a chat that asks an item; `forced` requires a call of a function."""
    dialog = item if isinstance(item, DialogItem) else None
    messages = _earlier(dialog.before) if dialog else []
    if dialog is None or dialog.result is None:
        messages.append({"role": "user", "content": _content(item, clip)})
    else:
        messages.append(_result(dialog.result, messages))
    body: Json = {"messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS}
    if dialog and dialog.tools:
        body["tools"] = [tool_body(tool) for tool in dialog.tools]
        body["tool_choice"] = "required" if forced else "auto"
    if dialog and dialog.thinking:
        body["chat_template_kwargs"] = {"enable_thinking": True}
    if dialog and dialog.schema:
        body["response_format"] = schema_format(dialog.schema)
    return body


def schema_format(schema: Mapping[str, Any]) -> Json:
    """Return the response format of a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}


def tool_body(tool: Tool) -> Json:
    """Return a function as OpenAI's API takes it."""
    about = {"description": tool.description} if tool.description else {}
    function = {"name": tool.name, **about, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _content(item: Item, clip: np.ndarray | None) -> list[Json]:
    media: list[Json] = []
    if isinstance(item, DialogItem) and item.film:
        media.append(film_part([scene.draw() for scene in item.film.scenes]))
    elif item.scene:
        media.append(picture_part(item.scene.draw()))
    elif clip is not None:
        media.append(clip_part(clip))
    text = [{"type": "text", "text": item.question}] if item.question else []
    return media + text if item.media_first else text + media


def _earlier(before: Sequence[ChatMessage]) -> list[Json]:
    return [_message(message, number) for number, message in enumerate(before)]


def _message(message: ChatMessage, number: int) -> Json:
    calls = [part for part in message.content if isinstance(part, ToolCall)]
    if not calls:
        text = "".join(part.text for part in message.content if isinstance(part, TextRun))
        return {"role": message.role, "content": text}
    made = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for place, call in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _result(result: ToolResult, messages: Sequence[Json]) -> Json:
    call = messages[-1]["tool_calls"][0]["id"]
    return {"role": "tool", "tool_call_id": call, "content": result.text}


async def ask_chat(client: httpx.AsyncClient, body: Json) -> Reply:
    """Send a chat. Raises `httpx.HTTPStatusError` if the server rejects it."""
    reply = (await client.post(CHAT, json=body)).raise_for_status().json()
    choice = reply["choices"][0]
    calls = choice["message"].get("tool_calls") or []
    made = tuple((one["function"]["name"], _parse(one["function"]["arguments"])) for one in calls)
    return Reply(choice["message"]["content"] or "", made, choice["finish_reason"])


def _parse(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None


async def transcribe(client: httpx.AsyncClient, model: str, wav: bytes) -> Reply:
    """Write a recording down with the route's default settings.

    Raises `httpx.HTTPStatusError` if the server rejects it.
    """
    file = ("clip.wav", wav, "audio/wav")
    reply = await client.post(TRANSCRIPTIONS, data={"model": model}, files={"file": file})
    return Reply(reply.raise_for_status().json()["text"])


def is_right_reply(item: Item, reply: Reply) -> bool:
    """Return whether a reply answers an item: with the right calls, values or words."""
    if isinstance(item, DialogItem):
        if item.calls:
            wanted = tuple((call.name, json.loads(call.arguments)) for call in item.calls)
            return wanted == reply.calls
        if item.schema:
            return bool(_parse(reply.text) == json.loads(item.answer))
        if reply.calls:
            return False
    return reply.finish_reason != "length" and is_right(item, reply.text)
