"""Invariants of the framing."""

import asyncio
import socket
from contextlib import closing

import numpy as np
import pytest

from sglang_omni.engine import transport
from sglang_omni.engine.transport import (
    AsyncChannel,
    Beat,
    Cancel,
    Consumed,
    Failed,
    Output,
    Start,
    Stop,
    Submit,
    ToEngine,
    encode,
    receive,
)
from sglang_omni.errors import InvalidRequest


def test_messages_arrive_whole_and_in_order() -> None:
    ours, theirs = socket.socketpair()
    sent: list[ToEngine] = [
        Start("a:b", {"x": 1}, 4),
        Submit("r", "text"),
        Consumed("r", 2),
        Cancel("r"),
        Stop(),
    ]
    with ours, theirs:
        ours.sendall(b"".join(encode(message) for message in sent))
        ours.shutdown(socket.SHUT_WR)
        assert list(receive(theirs)) == sent


@pytest.mark.parametrize("missing", [1, 10])
def test_a_frame_cut_short_by_the_senders_death_is_no_message(missing: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(encode(Stop()) + encode(Cancel("r"))[:-missing])
        ours.shutdown(socket.SHUT_WR)
        assert list(receive(theirs)) == [Stop()]


async def test_the_channel_reads_frames_larger_than_its_buffer() -> None:
    ours, theirs = socket.socketpair()
    pcm = np.arange(1_000_000, dtype=np.float32)
    with theirs:
        sending = asyncio.to_thread(theirs.sendall, encode(Output("r", pcm)))
        with closing(await AsyncChannel.over(ours)) as channel:
            message, _ = await asyncio.gather(channel.receive(), sending)
    assert isinstance(message, Output)
    np.testing.assert_array_equal(message.output, pcm)


async def test_the_channel_tells_of_the_other_ends_death() -> None:
    ours, theirs = socket.socketpair()
    with closing(await AsyncChannel.over(ours)) as channel:
        theirs.sendall(encode(Beat({"held": 1}, 0.0)) + b"\0\0")
        theirs.close()
        assert await channel.receive() == Beat({"held": 1}, 0.0)
        with pytest.raises(EOFError):
            await channel.receive()
        channel.send(Stop())


def test_our_errors_cross_with_all_their_fields() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(encode(Failed("r", InvalidRequest("no such voice", param="voice"))))
        received = next(iter(receive(theirs)))
    assert isinstance(received, Failed)
    assert isinstance(received.error, InvalidRequest)
    assert (received.error.message, received.error.param) == ("no such voice", "voice")


def test_a_message_that_is_too_large_is_refused_by_the_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "MAX_FRAME_BYTES", 100)
    with pytest.raises(ValueError, match=r"a Submit message of .* is too large"):
        encode(Submit("r", b"x" * 200))


def test_a_header_that_cannot_be_ours_is_refused_before_reading_on() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"\xff\xff\xff\xff")
        with pytest.raises(ValueError, match="corrupt"):
            next(receive(theirs))
