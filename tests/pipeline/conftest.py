import asyncio

import pytest

from tests.testing.family import TOKENS


@pytest.fixture(scope="session")
def tokenizer():
    return TOKENS


@pytest.fixture
async def no_task_is_left():
    """Fails a test that leaves a task behind."""
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}
