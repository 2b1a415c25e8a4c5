"""A held-up event loop is measured where operators look."""

import math
import time
from typing import Any

import httpx
import pytest

from tests.entrypoints.http.fake import echo
from tests.hostile.clients import CHAT, CHATS, MAX_STALL_S, MAX_WAIT_S, bystander, stall_buckets
from tests.hostile.conftest import Attacked
from tests.testing.machine_stalls import MachineStalls, measured_stalls

STALL_S = 0.3


async def hold_up(request: Any) -> Any:
    """Answer as the fake does, but stop the whole event loop for some time first."""
    time.sleep(STALL_S)
    async for event in echo(request):
        yield event


def test_a_stall_of_the_event_loop_is_counted_with_its_length(attacked: Attacked) -> None:
    served, headers = attacked.served, attacked.headers
    served.backend.script = hold_up
    before = stall_buckets(served, headers)
    httpx.post(f"{served.url}{CHATS}", json=CHAT, headers=headers)
    time.sleep(0.2)
    after = stall_buckets(served, headers)
    late = [counts[math.inf] - counts[0.1] for counts in (before, after)]
    assert late[1] > late[0]
    assert after[math.inf] - before[math.inf] >= 3


@pytest.mark.alone
def test_an_ordinary_client_notices_a_server_that_stalls(attacked: Attacked) -> None:
    async def hold_up_for_too_long(request: Any) -> Any:
        time.sleep(3 * MAX_STALL_S)
        async for event in hold_up(request):
            yield event

    attacked.served.backend.script = hold_up_for_too_long
    with (
        pytest.raises(AssertionError, match=r"stalled|waited"),
        bystander(attacked.served, attacked.headers),
    ):
        time.sleep(3 * MAX_STALL_S)


@pytest.mark.alone
def test_stalls_of_the_machine_itself_lengthen_a_bound_that_they_come_near() -> None:
    with measured_stalls() as machine:
        time.sleep(0.2)
    assert 0 < machine.longest_s < MAX_WAIT_S
    assert MachineStalls(0.04).allow(0.1) == 0.1
    assert MachineStalls(0.3).allow(0.1) == 0.6
