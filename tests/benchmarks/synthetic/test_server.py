"""The synthetic server speaks, and refuses everything else as a server without a thinker does."""

import httpx
import pytest

from benchmarks.synthetic.server import SyntheticBackend
from benchmarks.synthetic.talker import SyntheticSettings
from sglang_omni.entrypoints.http.app import create_app


@pytest.mark.parametrize("more", [{}, {"logprobs": True}])
async def test_a_chat_is_refused_whatever_it_asks_for(more: dict[str, bool]) -> None:
    app = create_app(SyntheticBackend(SyntheticSettings()))
    body = {"model": "ming-omni", "messages": [{"role": "user", "content": "Hello."}], **more}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        reply = await http.post("/v1/chat/completions", json=body)
    assert reply.status_code == 400
    assert "only speech" in reply.json()["error"]["message"]
