"""What commands that talk to a running server have in common: errors, and streams of objects."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from sglang_omni.protocol.errors import EngineFailed, OmniError, StartupError

CONNECT_S = 5.0
DONE = "[DONE]"


def open_client(url: str, key: str | None = None) -> httpx.Client:
    """Return a client of the server at `url`, which waits for answers without a limit.

    Raises `httpx.InvalidURL`.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = httpx.Timeout(None, connect=CONNECT_S)
    return httpx.Client(base_url=url, headers=headers, timeout=timeout)


@contextmanager
def report_connection_errors(url: str) -> Iterator[None]:
    """Raise `StartupError` if the server cannot be reached, or the connection breaks."""
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise StartupError(
            f"cannot reach a server at {url} ({reason}); start one with sgl-omni serve"
        ) from None


def iter_objects(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Return the objects of a stream of server-sent events, as they arrive.

    Raises:
        OmniError: The server refused the request; the message is the server's.
        EngineFailed: While iterating: the stream ended with an error.
    """
    if response.is_error:
        response.read()
        raise OmniError(get_error_message(response))
    return _iter_events(response)


def _iter_events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        field, _, data = line.partition(": ")
        # Comments have no field, and names of events are in the objects as well.
        if field != "data" or data == DONE:
            continue
        item: dict[str, Any] = json.loads(data)
        if "error" in item:
            raise EngineFailed(str(item["error"]["message"]))
        yield item


def get_error_message(response: httpx.Response) -> str:
    """Return what the server says of a failed request."""
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server returned status {response.status_code}"
