"""Large media on the server that users start first, and another client's picture beside them."""

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.hostile.acceptance.files import data_uri, grey_4k
from tests.media.files import encoded, picture
from tests.server.running import RunningServer
from tests.testing.machine import PATIENCE

# What the other client may wait for an answer to a small picture.
MAX_WAIT_S = 3.0 * PATIENCE
MAX_VIDEO_S = 30.0 * PATIENCE


def chat(kind: str, uri: str) -> dict[str, Any]:
    """A question about a medium, answered in a few tokens."""
    part = {"type": f"{kind}_url", f"{kind}_url": {"url": uri}}
    messages = [{"role": "user", "content": [part, {"type": "text", "text": "What is it?"}]}]
    return {"model": "ming-omni", "messages": messages, "max_tokens": 4, "temperature": 0}


def ask(server: RunningServer, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{server.api}/chat/completions", json=body, timeout=120)


def photo(width: int, height: int) -> bytes:
    """A JPEG of smooth colours and a little noise."""
    rows, columns = np.mgrid[:height, :width]
    pixels = np.stack([rows % 256, columns % 256, (rows + columns) % 256], -1).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=85)
    return file.getvalue()


@dataclass
class OtherClient:
    """Shows one small picture after the other, and asks whether the server is ready."""

    server: RunningServer
    statuses: set[int] = field(default_factory=set)
    ready: set[int] = field(default_factory=set)
    waits: list[float] = field(default_factory=list)

    def run(self, ending: threading.Event) -> None:
        while not ending.is_set():
            small = encoded(picture(size=(64, 64), seed=1000 + len(self.waits)))
            began = time.monotonic()
            self.statuses.add(ask(self.server, chat("image", data_uri(small))).status_code)
            self.waits.append(time.monotonic() - began)
            self.ready.add(self.server.ready_status())


@contextmanager
def other_client(server: RunningServer) -> Iterator[OtherClient]:
    client, ending = OtherClient(server), threading.Event()
    thread = threading.Thread(target=client.run, args=(ending,))
    thread.start()
    try:
        yield client
    finally:
        ending.set()
        thread.join()


@pytest.mark.parametrize(
    ("kind", "make", "max_s"),
    [
        ("image", lambda: photo(4000, 3000), 10 * PATIENCE),
        ("video", lambda: grey_4k(300), MAX_VIDEO_S),
    ],
    ids=["a photo of 12 megapixels", "ten seconds in 4K"],
)
def test_a_large_medium_is_answered_and_no_other_client_notices(
    default_server: RunningServer, kind: str, make: Any, max_s: float
) -> None:
    body, restarts = chat(kind, data_uri(make())), default_server.engine("encoders")["restarts"]
    with other_client(default_server) as other:
        began = time.monotonic()
        reply = ask(default_server, body)
        seconds = time.monotonic() - began
    print(f"{seconds=:.1f} waits={[round(wait, 2) for wait in other.waits]}")
    assert reply.status_code == 200, reply.text
    assert seconds < max_s
    assert other.statuses == {200}
    assert other.ready == {200}
    assert max(other.waits) < MAX_WAIT_S
    assert default_server.engine("encoders")["restarts"] == restarts
