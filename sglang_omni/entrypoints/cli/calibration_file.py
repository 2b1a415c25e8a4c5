"""The file of `sgl-omni quantize --calibration`: whole chats as JSON Lines.

A line has what a body of `POST /v1/chat/completions` has, of which `messages` and `tools` count.
Unlike there, the last message may be an answer, as in files for fine-tuning.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sglang_omni.entrypoints.requests.chat import get_callable_tools
from sglang_omni.entrypoints.requests.messages import to_messages
from sglang_omni.entrypoints.requests.validation import to_invalid_request
from sglang_omni.models.calibration import CalibrationChat, CalibrationMessage
from sglang_omni.pipeline.request import MediaPart, Message
from sglang_omni.protocol.chat import ChatBody
from sglang_omni.protocol.errors import InvalidRequest, StartupError


def read_chats(path: Path) -> list[CalibrationChat]:
    """Return the chats of a file, in order.

    Raises:
        StartupError: The file cannot be read, has no chat, or a line is no chat of text; the
            message names the line.
    """
    chats = []
    for number, line in _read_lines(path):
        try:
            chats.append(_to_chat(line))
        except ValueError as error:
            raise StartupError(f"{path}:{number}: not valid JSON: {error}") from None
        except InvalidRequest as error:
            raise StartupError(f"{path}:{number}: {error.message}") from None
    if not chats:
        raise StartupError(f"{path} has no chat")
    return chats


def hash_file(path: Path) -> str:
    """Return a digest of the file, by which a continued run knows it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"cannot read {path}: {error}") from error
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _to_chat(line: str) -> CalibrationChat:
    """Return a chat. Raises `ValueError` for JSON, and `InvalidRequest` for what it says."""
    body: Any = json.loads(line)
    if not isinstance(body, dict):
        raise InvalidRequest("must be an object with messages")
    try:
        parsed = ChatBody.model_validate({"model": "any", **body})
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        raise to_invalid_request(problems) from None
    messages = tuple(map(_to_message, to_messages(parsed, lambda _: None)))
    return CalibrationChat(messages, get_callable_tools(parsed), parsed.thinks)


def _to_message(message: Message) -> CalibrationMessage:
    """Return a message of text. Raises `InvalidRequest` for media."""
    content = tuple(part for part in message.content if not isinstance(part, MediaPart))
    if len(content) < len(message.content):
        raise InvalidRequest("calibration takes chats of text only, without media")
    return CalibrationMessage(message.role, content)
