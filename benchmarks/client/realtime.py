"""Events to a realtime session, as plain JSON."""

import json
from typing import Any

from websockets.asyncio.client import ClientConnection


async def send(connection: ClientConnection, kind: str, **fields: Any) -> None:
    """Send one event."""
    await connection.send(json.dumps({"type": kind, **fields}))
