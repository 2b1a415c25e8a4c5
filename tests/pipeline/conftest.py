"""The tokenizer, and a check that no test leaves a task behind."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.testing.family import TOKENS, Tokens


@pytest.fixture(scope="session")
def tokenizer() -> Tokens:
    return TOKENS


@pytest.fixture
async def no_task_is_left() -> AsyncIterator[None]:
    """Fails a test that leaves a task behind."""
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}
