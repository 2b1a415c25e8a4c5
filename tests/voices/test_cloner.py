"""From a recording to a voice: once for equal recordings, within limits, failures forgotten."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Sequence

import numpy as np
import pytest

from sglang_omni.engines.media_decoder.contract import Decoded
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.speech.contract import EncodedVoice, VoiceRequest
from sglang_omni.media.fetch import FetchPolicy
from sglang_omni.media.limits import Kind, PixelBudget
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from sglang_omni.voices.cloner import RecordingCloner, RecordingRules
from tests.pipeline.engines import ScriptedEngine

RATE_HZ = 24_000
RULES = RecordingRules(min_seconds=1.0, max_seconds=30.0, file_bytes=1000, max_cached=2)


class Decoder:
    """Takes the length of a file for hundredths of a second of sound."""

    def __init__(self) -> None:
        self.asked: list[tuple[Kind, Sequence[bytes], int | None, float | None]] = []

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None = None,
        sample_rate: int | None = None,
        max_seconds: float | None = None,
        tenant: str | None = None,
    ) -> tuple[Decoded, SharedArray]:
        self.asked.append((kind, files, sample_rate, max_seconds))
        array = SharedArray()
        samples = np.zeros(len(files[0]) * RATE_HZ // 100, np.float32)
        return Decoded(array.write(samples)), array


async def encode(request: VoiceRequest) -> AsyncGenerator[EncodedVoice, None]:
    yield EncodedVoice(request.voice.write(np.zeros(4 * 64, np.float32)), 4, 0)


def part(data: bytes) -> MediaPart:
    source = "data:audio/wav;base64," + base64.b64encode(data).decode()
    return MediaPart("audio", (source,), "ref_audio")


@pytest.fixture
def decoder() -> Decoder:
    return Decoder()


@pytest.fixture
def talker() -> ScriptedEngine:
    return ScriptedEngine(encode)


@pytest.fixture
def cloner(decoder: Decoder, talker: ScriptedEngine) -> RecordingCloner:
    return RecordingCloner(FetchPolicy(), RULES, decoder, talker, lambda: RATE_HZ)


async def test_equal_recordings_are_encoded_once_whatever_their_words(
    cloner: RecordingCloner, decoder: Decoder, talker: ScriptedEngine
) -> None:
    many = [cloner.clone(part(b"a" * 200), text) for text in ("One.", "Two.", None)]
    voices = await asyncio.gather(*many)
    assert [one.voice.text for one in voices] == ["One.", "Two.", None]
    assert len({one.voice.key for one in voices}) == len(talker.requests) == 1
    assert decoder.asked == [("audio", (b"a" * 200,), RATE_HZ, 30.0)]
    assert talker.requests[0].sample_rate == RATE_HZ
    assert voices[0].seconds == 2.0
    assert not voices[0].has_speaker
    await cloner.clone(part(b"b" * 200), None)
    assert len(talker.requests) == 2
    assert len({request.key for request in talker.requests}) == 2


async def test_the_recordings_used_last_are_remembered(
    cloner: RecordingCloner, talker: ScriptedEngine
) -> None:
    for name in (b"a", b"b", b"a", b"c", b"a"):
        await cloner.clone(part(name * 200), None)
    assert len(talker.requests) == 3
    await cloner.clone(part(b"b" * 200), None)
    assert len(talker.requests) == 4


@pytest.mark.parametrize(
    ("size", "reason"), [(50, "0.50 s; a voice needs at least 1 s"), (1001, "bytes")]
)
async def test_a_recording_beyond_the_limits_is_refused_by_its_field(
    cloner: RecordingCloner, size: int, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason) as error:
        await cloner.clone(part(b"a" * size), None)
    assert error.value.param == "ref_audio"


async def test_a_failure_is_not_remembered(decoder: Decoder) -> None:
    failures = [EngineFailed("the talker died")]

    async def once(request: VoiceRequest) -> AsyncGenerator[EncodedVoice, None]:
        if failures:
            raise failures.pop()
        async for made in encode(request):
            yield made

    cloner = RecordingCloner(FetchPolicy(), RULES, decoder, ScriptedEngine(once), lambda: RATE_HZ)
    with pytest.raises(EngineFailed):
        await cloner.clone(part(b"a" * 200), None)
    assert (await cloner.clone(part(b"a" * 200), None)).seconds == 2.0


async def test_a_client_who_leaves_does_not_spoil_it_for_the_others(
    cloner: RecordingCloner, talker: ScriptedEngine
) -> None:
    first = asyncio.create_task(cloner.clone(part(b"a" * 200), None))
    second = asyncio.create_task(cloner.clone(part(b"a" * 200), None))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).seconds == 2.0
    assert len(talker.requests) == 1
