"""A held-up event loop is measured where operators look."""

import math
import time
from typing import Any

import httpx

from tests.entrypoints.http.fake import echo
from tests.hostile.clients import CHAT, CHATS, stall_buckets
from tests.hostile.conftest import Attacked

STALL_S = 0.3


def test_a_stall_of_the_event_loop_is_counted_with_its_length(attacked: Attacked) -> None:
    async def hold_up(request: Any) -> Any:
        time.sleep(STALL_S)
        async for event in echo(request):
            yield event

    served, headers = attacked.served, attacked.headers
    served.backend.script = hold_up
    before = stall_buckets(served, headers)
    httpx.post(f"{served.url}{CHATS}", json=CHAT, headers=headers)
    time.sleep(0.2)
    after = stall_buckets(served, headers)
    late = [counts[math.inf] - counts[0.1] for counts in (before, after)]
    assert late[1] > late[0]
    assert after[math.inf] - before[math.inf] >= 3
