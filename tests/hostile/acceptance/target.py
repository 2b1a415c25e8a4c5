"""The server under attack as a client sees it: an address and a key."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

MODEL = "ming-omni"
CHATS = "/v1/chat/completions"
SPEECH = "/v1/audio/speech"


@dataclass(frozen=True)
class Target:
    """A server's address, and a key of one of its users."""

    url: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        """The header that carries the key."""
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def realtime_url(self) -> str:
        """Address of the realtime WebSocket."""
        return f"{self.url.replace('http', 'ws', 1)}/v1/realtime?model={MODEL}"

    def client(self, timeout_s: float = 60.0) -> httpx.Client:
        """Return an HTTP client that sends the key. Close it after use."""
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=timeout_s)

    def connect(self, timeout_s: float = 20.0) -> socket.socket:
        """Return a connection whose reads and writes give up after `timeout_s`."""
        address = urlsplit(self.url)
        return socket.create_connection((address.hostname, address.port), timeout=timeout_s)

    def head(self, path: str = CHATS, **headers: object) -> bytes:
        """Return the start of a POST, with the key and the blank line."""
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chat(*content: Mapping[str, object] | str, **fields: object) -> dict[str, object]:
    """Return the body of a chat: one message of these parts; a string is a text part."""
    parts = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return {"model": MODEL, "messages": [{"role": "user", "content": parts}], **fields}
