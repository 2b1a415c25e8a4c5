"""The conversation of `sgl-omni chat`: its messages, files for the next one, and the voice."""

import base64
import json
import mimetypes
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sglang_omni.protocol.errors import StartupError

Json = dict[str, Any]


@dataclass
class ChatHistory:
    """What has been said, and what the next message brings.

    Attributes:
        system: The system message, if any.
        voice: The voice of spoken answers; None is the server's.
        messages: The messages without the system's, as a request has them.
        attached: Parts of the next message.
    """

    system: str | None = None
    voice: str | None = None
    messages: list[Json] = field(default_factory=list)
    attached: list[Json] = field(default_factory=list)

    def build_messages(self) -> list[Json]:
        """Return the messages of a request."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, *self.messages]

    def ask(self, question: str) -> None:
        """Add a message of the user, with the attached files."""
        content: str | list[Json] = question
        if self.attached:
            content = [*self.attached, {"type": "text", "text": question}]
        self.messages.append({"role": "user", "content": content})
        self.attached = []

    def answer(self, text: str) -> None:
        """Add an answer. Without any text, the question is taken back: nothing goes on from it."""
        if text:
            self.messages.append({"role": "assistant", "content": text})
        else:
            self.messages.pop()

    def attach(self, kind: str, path: Path) -> None:
        """Add a file to the next message; `kind` is image, audio or video.

        Raises `StartupError` if it cannot be read.
        """
        try:
            data = base64.b64encode(path.read_bytes()).decode("ascii")
        except OSError as error:
            raise StartupError(f"cannot read {path}: {error.strerror}") from None
        media_type = mimetypes.guess_type(path.name)[0] or f"{kind}/*"
        part_type = f"{kind}_url"
        url = f"data:{media_type};base64,{data}"
        self.attached.append({"type": part_type, part_type: {"url": url}})

    def clear(self) -> None:
        """Forget what has been said. The system message and the voice stay."""
        self.messages, self.attached = [], []

    def save(self, path: Path) -> None:
        """Write the messages as JSON. Raises `StartupError` if that fails."""
        text = json.dumps(self.build_messages(), ensure_ascii=False, indent=1)
        try:
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise StartupError(f"cannot write {path}: {error.strerror}") from None
