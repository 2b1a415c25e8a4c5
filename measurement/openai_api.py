"""Small parts of OpenAI's API that more than one client needs."""

import json
import urllib.request
from typing import Any

from websockets.asyncio.client import ClientConnection


def served_model(url: str) -> str:
    """Return the name of the first model that the server at `url` lists."""
    with urllib.request.urlopen(f"{url}/v1/models", timeout=10) as reply:
        name: str = json.load(reply)["data"][0]["id"]
    return name


async def send_event(connection: ClientConnection, event_type: str, **fields: Any) -> None:
    """Send one event of a realtime session."""
    await connection.send(json.dumps({"type": event_type, **fields}))
