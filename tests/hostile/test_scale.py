"""Attacks at their full size on a server with default limits, in a process of its own."""

import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.entrypoints.http.request_body.reader import BodyRules
from tests.hostile.clients import bystander, connect, head, read_all, send_until_refused, status_of
from tests.hostile.process import MAX_BODY_BYTES, MIB, Process, server_process

pytestmark = [pytest.mark.long, pytest.mark.alone]
CONNECTIONS = 2000


@pytest.fixture
def process() -> Iterator[Process]:
    with server_process() as running:
        yield running


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_thousands_of_silent_and_half_asking_connections_are_closed(process: Process) -> None:
    starts = (b"", b"GET /hea", head(Content_Length=100), head(Content_Length=100) + b"{")
    started = time.monotonic()
    with bystander(process.served), ExitStack() as stack:
        ends = [
            stack.enter_context(closing(connect(process.served, 90))) for _ in range(CONNECTIONS)
        ]
        for number, end in enumerate(ends):
            end.sendall(starts[number % len(starts)])
        answers = [status_of(read_all(end)) for end in ends]
    assert set(answers) == {0, 408}
    limits = HttpOptions()
    assert time.monotonic() - started < max(limits.header_timeout, limits.body_window) + 15


def test_hundreds_of_megabytes_of_one_line_are_not_kept(process: Process) -> None:
    with bystander(process.served):
        before = process.resident_bytes()
        with closing(connect(process.served)) as end:
            end.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            assert send_until_refused(end, b"x" * MIB, 300) < 300 * MIB
            assert process.resident_bytes() - before < 32 * MIB


def test_a_dozen_half_sent_videos_are_not_all_kept(process: Process) -> None:
    with bystander(process.served), ExitStack() as stack:
        before = process.resident_bytes()
        ends = [stack.enter_context(closing(connect(process.served, 60))) for _ in range(12)]
        for end in ends:
            end.sendall(head(Content_Length=MAX_BODY_BYTES))
        for _ in range(90):
            for end in ends:
                send_until_refused(end, b"x" * MIB, 1)
        kept = process.resident_bytes() - before
        answers = [status_of(read_all(end)) for end in ends]
    assert kept < 1.25 * BodyRules().max_held_bytes
    assert set(answers) <= {0, 408, 503}
    assert 503 in answers
