"""A server to attack, open or with keys."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.entrypoints.api_keys import Keys, _digest
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.request_body.reader import BodyRules
from sglang_omni.entrypoints.http.transport.uvicorn_server import freeze_gc
from tests.entrypoints.http.fake import Served, serving

KEY = "a-key-of-a-user"
# As by default, but the times are short.
LIMITS = HttpOptions(header_timeout=1.0, keep_alive_timeout=1.5)
BODIES = BodyRules(window_s=1.0, max_held_bytes=4 << 20)


@dataclass(frozen=True)
class Attacked:
    """A server, and the headers with which it serves: those of a key, where it asks for one."""

    served: Served
    headers: dict[str, str]


# Most of what is judged here is a wait, so the second server doubles minutes.
@pytest.fixture(scope="session", params=["open", pytest.param("keys", marks=pytest.mark.extended)])
def running(request: pytest.FixtureRequest) -> Iterator[Attacked]:
    has_keys = request.param == "keys"
    access = Access(Keys((_digest(KEY),))) if has_keys else None
    headers = {"Authorization": f"Bearer {KEY}"} if has_keys else {}
    with serving(access, limits=LIMITS, bodies=BODIES) as served:
        # As the server does once it is loaded.
        freeze_gc()
        yield Attacked(served, headers)


@pytest.fixture
def attacked(running: Attacked) -> Attacked:
    running.served.backend.reset()
    return running
