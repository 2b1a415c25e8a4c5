"""`sgl-omni timeline REQUEST_ID`: what happened to a request, stage by stage."""

import httpx

from sglang_omni.observability.timeline import draw_timeline
from sglang_omni.protocol.errors import OmniError

TIMEOUT_S = 10.0


def timeline(base_url: str, request_id: str, key: str | None) -> int:
    """Print the chart; returns the exit status. Raises `OmniError` with what the server says."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    address = f"{base_url.rstrip('/')}/v1/requests/{request_id}"
    try:
        reply = httpx.get(address, headers=headers, timeout=TIMEOUT_S)
    except httpx.HTTPError as error:
        raise OmniError(f"no answer from {base_url}: {error}") from None
    if reply.status_code != httpx.codes.OK:
        raise OmniError(_reason(reply))
    print("\n".join(draw_timeline(reply.json())))
    return 0


def _reason(reply: httpx.Response) -> str:
    try:
        return str(reply.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {reply.status_code}"
