"""The stored chats with media, as a client of OpenAI's schema sends them."""

import base64
import mimetypes
from pathlib import Path
from typing import Any

from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from tests.models.ming.prompt.test_chat import ROLES
from tests.testing.golden import TINY, Case, cases, file_of, load_case

# A client's frames are resized; the stored chat with a video was made from frames as they are.
CHATS = [name for name in cases("e2e", "chat_") if "video" not in name]


def data_uri(path: Path) -> str:
    """A file inside a URL."""
    kind = mimetypes.guess_type(path.name)[0]
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def content_of(raw: dict[str, Any]) -> dict[str, Any]:
    """A part of a stored message, by address."""
    if raw["type"] == "text":
        return raw
    kind = f"{raw['type']}_url"
    return {"type": kind, kind: {"url": data_uri(file_of(raw[raw["type"]]))}}


def messages_of(case: Case) -> list[dict[str, Any]]:
    """The conversation of a stored chat."""
    entries = load_case("prompt_format/chat").info["cases"]
    entry = next(e for e in entries if e["name"] == case.info["prompt_format_case"])
    turns = [
        {"role": ROLES[m["role"]], "content": [*map(content_of, m["content"])]}
        for m in entry["messages"]
    ]
    system = entry["system_replacement"]
    return turns if system is None else [{"role": "system", "content": system}, *turns]


def answer_of(case: Case) -> str:
    """The text of the stored tokens. They may end inside a character."""
    return whole(ThinkerTokenizer(TINY).decode(case["generated_ids"].tolist()))


def whole(text: str) -> str:
    """A text without the rest of a character at its end, which SGLang shows and we do not."""
    return text.rstrip("\ufffd")
