"""Implements `sgl-omni timeline REQUEST_ID`: prints the stages of a request."""

import httpx

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
        raise OmniError(_get_error_message(response))
    print("\n".join(draw_timeline(response.json())))
    return 0


def _get_error_message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server returned status {response.status_code}"
