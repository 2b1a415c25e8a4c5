"""Implements `sgl-omni timeline REQUEST_ID`: prints the stages of a request."""

import httpx

from sglang_omni.entrypoints.cli.server_connection import get_error_message
from sglang_omni.observability.timeline import draw_timeline
from sglang_omni.protocol.errors import OmniError

TIMEOUT_S = 10.0


def timeline(base_url: str, request_id: str, key: str | None) -> int:
    """Print the chart. Return the exit status. Raises `OmniError` with the server's message."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"{base_url.rstrip('/')}/v1/requests/{request_id}"
    try:
        response = httpx.get(url, headers=headers, timeout=TIMEOUT_S)
    except httpx.HTTPError as error:
        raise OmniError(f"cannot reach a server at {base_url}: {error}") from None
    if response.status_code != httpx.codes.OK:
        raise OmniError(get_error_message(response))
    print("\n".join(draw_timeline(response.json())))
    return 0
