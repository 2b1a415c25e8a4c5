"""Invariants of the framing."""

import asyncio
import socket
import threading
from contextlib import closing

import numpy as np
import pytest

from sglang_omni.engines.runtime import transport
from sglang_omni.engines.runtime.transport import (
    AsyncChannel,
    Cancel,
    Consumed,
    Failed,
    FrameProtocol,
    FromEngine,
    Heartbeat,
    Outputs,
    Start,
    Stop,
    Submit,
    ToEngine,
    encode,
    receive,
)
from sglang_omni.protocol.errors import InvalidRequest, Overloaded


def frame(message: ToEngine | FromEngine) -> bytes:
    """The bytes of a message on the wire."""
    return b"".join(encode(message))


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
        ours.sendall(b"".join(frame(message) for message in sent))
        ours.shutdown(socket.SHUT_WR)
        assert list(receive(theirs)) == sent


@pytest.mark.parametrize("missing", [1, 10])
def test_a_frame_cut_short_by_the_senders_death_is_no_message(missing: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frame(Stop()) + frame(Cancel("r"))[:-missing])
        ours.shutdown(socket.SHUT_WR)
        assert list(receive(theirs)) == [Stop()]


async def test_the_channel_reads_frames_larger_than_its_buffer() -> None:
    ours, theirs = socket.socketpair()
    pcm = np.arange(1_000_000, dtype=np.float32)
    with theirs:
        sending = asyncio.to_thread(theirs.sendall, frame(Outputs((("r", pcm),))))
        with closing(await AsyncChannel.connect(ours)) as channel:
            message, _ = await asyncio.gather(channel.receive(), sending)
    assert isinstance(message, Outputs)
    ((_, received),) = message.outputs
    np.testing.assert_array_equal(received, pcm)


def a_step() -> Outputs:
    """Outputs of several requests: with a large array, a small one, one with gaps, one of none."""
    arrays = [np.arange(size, dtype=np.float32) for size in (20_000, 3, 9_000, 0)]
    arrays[2] = arrays[2][::2]
    return Outputs(tuple((f"r{number}", array) for number, array in enumerate(arrays)))


def assert_same_step(received: object) -> None:
    assert isinstance(received, Outputs)
    assert [name for name, _ in received.outputs] == ["r0", "r1", "r2", "r3"]
    for (_, array), (_, expected) in zip(received.outputs, a_step().outputs, strict=True):
        np.testing.assert_array_equal(array, expected)
        assert array.flags.writeable


def test_large_arrays_travel_beside_the_pickle_without_a_copy() -> None:
    outputs = a_step()
    head, *arrays = encode(outputs)
    assert len(arrays) == 1
    assert len(head) < 60_000
    assert np.shares_memory(np.frombuffer(arrays[0], np.float32), outputs.outputs[0][1])


def test_arrays_of_every_kind_arrive_at_a_blocking_reader() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sending = threading.Thread(target=ours.sendall, args=[frame(a_step())])
        sending.start()
        assert_same_step(next(iter(receive(theirs))))
        sending.join()


@pytest.mark.parametrize("piece", [1, 7, 5000, 10**6])
async def test_frames_arrive_however_they_are_cut(piece: int) -> None:
    """Two frames with a small one between them, in pieces of every size."""
    data = frame(a_step()) + frame(Heartbeat({"held": 1}, 0.0)) + frame(a_step())
    arrived: list[object] = []
    incoming = FrameProtocol(arrived.append)
    while data:
        memory = incoming.get_buffer(-1)
        count = min(piece, len(memory), len(data))
        memory[:count] = data[:count]
        data = data[count:]
        incoming.buffer_updated(count)
    first, beat, second = arrived
    assert_same_step(first)
    assert beat == Heartbeat({"held": 1}, 0.0)
    assert_same_step(second)


async def test_a_corrupt_stream_is_an_error_of_every_later_reading() -> None:
    ours, theirs = socket.socketpair()
    with theirs, closing(await AsyncChannel.connect(ours)) as channel:
        theirs.sendall(frame(Heartbeat({}, 0.0)) + b"\xff" * 8)
        assert await channel.receive() == Heartbeat({}, 0.0)
        for _ in range(2):
            with pytest.raises(ValueError, match="corrupt"):
                await channel.receive()


async def test_what_is_sent_in_one_turn_leaves_together_and_in_order() -> None:
    ours, theirs = socket.socketpair()
    with theirs, closing(await AsyncChannel.connect(ours)) as channel:
        messages: list[ToEngine] = [Submit("r", "text"), Consumed("r", 1), Cancel("r")]
        for message in messages:
            channel.send(message)
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        await asyncio.sleep(0.05)
        assert theirs.recv(1 << 16) == b"".join(map(frame, messages))


async def test_the_channel_tells_of_the_other_ends_death() -> None:
    ours, theirs = socket.socketpair()
    with closing(await AsyncChannel.connect(ours)) as channel:
        theirs.sendall(frame(Heartbeat({"held": 1}, 0.0)) + b"\0\0")
        theirs.close()
        assert await channel.receive() == Heartbeat({"held": 1}, 0.0)
        with pytest.raises(EOFError):
            await channel.receive()
        channel.send(Stop())


def test_our_errors_cross_with_all_their_fields() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frame(Failed("r", InvalidRequest("no such voice", param="voice"))))
        received = next(iter(receive(theirs)))
    assert isinstance(received, Failed)
    assert isinstance(received.error, InvalidRequest)
    assert (received.error.message, received.error.param) == ("no such voice", "voice")


def test_a_refusal_crosses_with_its_time() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frame(Failed("r", Overloaded("full", retry_after_s=7.5))))
        received = next(iter(receive(theirs)))
    assert isinstance(received, Failed)
    assert isinstance(received.error, Overloaded)
    assert (received.error.message, received.error.retry_after_s) == ("full", 7.5)


def test_a_message_that_is_too_large_is_refused_by_the_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "MAX_FRAME_BYTES", 100)
    with pytest.raises(ValueError, match=r"a Submit message of .* is too large"):
        encode(Submit("r", b"x" * 200))


def test_a_header_that_cannot_be_ours_is_refused_before_reading_on() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"\xff" * 8)
        with pytest.raises(ValueError, match="corrupt"):
            next(receive(theirs))
