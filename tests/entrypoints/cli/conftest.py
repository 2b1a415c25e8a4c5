"""Commands that run in the process of the tests set up its logging."""

from collections.abc import Iterator

import pytest

from tests.testing.logging_state import restore_logging


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    with restore_logging():
        yield
