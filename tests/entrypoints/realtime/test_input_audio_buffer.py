"""The audio that a user sent, addressed by time, and its turns."""

import numpy as np
import pytest

from sglang_omni.entrypoints.realtime.audio_codec import PCM, WireFormat
from sglang_omni.entrypoints.realtime.input_audio_buffer import (
    AudioBuffer,
    BufferEmpty,
    BufferFull,
    InputAudioBuffer,
)
from sglang_omni.entrypoints.realtime.turn_detection import SpeechStopped, TurnEvent, TurnRules
from tests.entrypoints.realtime.harness import LoudnessDetector, loud
from tests.entrypoints.realtime.sounds import pcm16, silence

RULES = TurnRules(prefix_ms=320, silence_ms=480, short_silence_ms=480)


def make_buffer(rules: TurnRules | None = RULES, max_turn_ms: int = 60_000) -> InputAudioBuffer:
    made = InputAudioBuffer(PCM, LoudnessDetector(), max_turn_ms)
    made.configure(PCM, rules)
    return made


async def append(made: InputAudioBuffer, *sounds: np.ndarray) -> list[TurnEvent]:
    return [turn async for turn in made.append(b"".join(map(pcm16, sounds)))]


def test_the_buffer_is_addressed_by_time() -> None:
    buffer = AudioBuffer()
    buffer.append(np.arange(1600).astype(np.int16))
    assert (buffer.start_ms, buffer.end_ms) == (0, 100)
    assert np.array_equal(buffer.read(10, 20), np.arange(160, 320))
    buffer.discard(50)
    assert (buffer.start_ms, buffer.end_ms) == (50, 100)
    assert np.array_equal(buffer.read(0, 60), np.arange(800, 960))
    buffer.discard(1000)
    assert (buffer.start_ms, buffer.end_ms) == (100, 100)
    assert buffer.read(0, 1000).size == 0


async def test_the_audio_of_a_turn_is_what_its_times_say() -> None:
    made = make_buffer()
    sound = b"".join(map(pcm16, (silence(1.024), loud(0.512), silence(0.9))))
    async for turn in made.append(sound):
        assert turn.start_ms == 704
        if isinstance(turn, SpeechStopped):
            samples = made.take(turn.start_ms, turn.end_ms)
            assert len(samples) == (turn.end_ms - 704) * 16
    heard = np.flatnonzero(np.abs(samples) > 1000)
    # The speech lies 320 ms after the beginning; the filter rings a little.
    assert abs(heard[0] - 320 * 16) < 32
    assert abs(heard[-1] - 832 * 16) < 32


async def test_it_makes_no_difference_how_a_long_recording_is_cut() -> None:
    sounds = (silence(2.0), loud(0.7), silence(1.3), loud(0.4), silence(3.0))
    expected = await append(make_buffer(), *sounds)
    data, made, turns = b"".join(map(pcm16, sounds)), make_buffer(), []
    for begin in range(0, len(data), 962):
        turns += [turn async for turn in made.append(data[begin : begin + 962])]
    assert len(turns) == 4
    assert turns == expected


async def test_silence_is_not_kept_beyond_the_padding() -> None:
    made = make_buffer()
    await append(made, silence(30.0))
    assert len(made.commit()) <= (320 + 64 + 16) * 16


async def test_a_session_without_turns_keeps_everything_up_to_a_limit() -> None:
    made = make_buffer(rules=None, max_turn_ms=2000)
    assert await append(made, loud(1.9)) == []
    assert len(made.commit()) == pytest.approx(1900 * 16, abs=16)
    await append(made, loud(2.0))
    await append(made, loud(0.1))
    with pytest.raises(BufferFull):
        await append(made, loud(0.1))
    made.clear()
    assert await append(made, loud(0.1)) == []


async def test_too_little_is_not_a_turn() -> None:
    made = make_buffer()
    with pytest.raises(BufferEmpty, match="0 ms"):
        made.commit()
    await append(made, loud(0.08))
    with pytest.raises(BufferEmpty):
        made.commit()


async def test_the_shortest_turn_counts_from_what_was_sent() -> None:
    made = make_buffer(None)
    await append(made, loud(0.1))
    assert len(made.commit()) == pytest.approx(1600, abs=16)


async def test_a_turn_that_the_client_commits_is_over() -> None:
    made = make_buffer()
    assert len(await append(made, loud(0.5), silence(0.064))) == 1
    assert made.is_in_turn
    assert len(made.commit()) == pytest.approx(564 * 16, abs=16)
    assert not made.is_in_turn
    assert await append(made, silence(1.0)) == []


async def test_the_clock_goes_on_over_commits_and_changes_of_format() -> None:
    made = make_buffer()
    for _ in range(20):
        await append(made, loud(0.2))
        made.commit()
        made.configure(WireFormat("audio/pcmu"), RULES)
        made.configure(PCM, RULES)
    played_ms = made.received_ms
    assert played_ms == pytest.approx(4000, abs=2)
    (started,) = await append(made, silence(0.64), loud(0.2))
    assert started.start_ms == pytest.approx(played_ms + 640 - 320, abs=48)
