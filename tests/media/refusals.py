"""How the tests of fetching look at what is refused."""

import time

import pytest

from sglang_omni.media.fetch import FetchPolicy, fetch
from sglang_omni.protocol.errors import InvalidRequest

PUBLIC = FetchPolicy()


async def refused(source: str, policy: FetchPolicy = PUBLIC) -> str:
    """The message a source is refused with, quickly and in the name of its field."""
    began = time.monotonic()
    with pytest.raises(InvalidRequest) as caught:
        await fetch(source, policy)
    assert time.monotonic() - began < 5
    return caught.value.message
