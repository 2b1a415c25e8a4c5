"""Recordings in the decoder pool: progress, cancellation, crashes and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from sglang_omni.engines.media_decoder import pool as pools
from sglang_omni.engines.media_decoder.contract import (
    MediaDecoderSettings,
    RecordingRequest,
)
from sglang_omni.engines.media_decoder.pool import MediaDecoderPool
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.media.limits import MediaLimits
from sglang_omni.media.speech_spans import CutRules, RecordingProgress
from sglang_omni.protocol.errors import InvalidRequest
from tests.engines.media_decoder.faulty import EXIT, HANG
from tests.media.files import RULES, encoded, picture, wav
from tests.media.test_recording import voice

ROOT = Path(__file__).parents[3]
LIMITS = MediaLimits(decode_seconds=3.0, recording_seconds=600.0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[MediaDecoderPool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "FACTORY", "tests.engines.media_decoder.faulty:open_faulty")
        patch.setenv("PYTHONPATH", str(ROOT))
        running = MediaDecoderPool(MediaDecoderSettings(LIMITS, RULES), processes=2)
        await running.start()
        yield running
        await running.stop()


def speech(sentences: int) -> bytes:
    """Sentences with a second of silence after each."""
    parts = [np.concatenate((voice(), np.zeros(16_000, np.float32)))] * sentences
    return wav(np.concatenate(parts)[:, None])


def request(content: bytes, rules: CutRules | None = None) -> RecordingRequest:
    source, sink = SharedDescriptor.create_file(content), SharedDescriptor.create_file()
    return RecordingRequest(source, sink, rules or CutRules())


async def read(pool: MediaDecoderPool, wanted: RecordingRequest) -> list[RecordingProgress]:
    async with aclosing(pool.read_recording(wanted)) as steps:
        return [progress async for progress in steps]


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_spans_and_samples_come_from_another_process(pool: MediaDecoderPool) -> None:
    wanted = request(speech(12))
    steps = await read(pool, wanted)
    spans = [span for progress in steps for span in progress.spans]
    assert len(spans) >= 12
    assert steps[-1].last
    with wanted.sink.open() as file:
        assert len(file.read()) == round(steps[-1].seconds * 16_000) * 2


async def test_a_reader_that_leaves_frees_the_decoder(pool: MediaDecoderPool) -> None:
    async with aclosing(pool.read_recording(request(speech(60)))) as steps:
        await anext(steps)
        assert pool.in_flight == 1
    assert pool.in_flight == 0
    # The decoder has forgotten it, and serves others.
    assert (await pool.decode("image", [encoded(picture())]))[0].layout.shape
    assert (await read(pool, request(speech(1))))[-1].is_whole


async def test_a_recording_leaves_a_decoder_for_images(pool: MediaDecoderPool) -> None:
    async with aclosing(pool.read_recording(request(speech(60)))) as steps:
        await anext(steps)
        second = asyncio.ensure_future(read(pool, request(speech(1))))
        await asyncio.wait_for(pool.decode("image", [encoded(picture())]), 3.0)
        assert not second.done()
    assert (await second)[-1].last


async def test_a_broken_file_is_refused(pool: MediaDecoderPool) -> None:
    with pytest.raises(InvalidRequest, match="supported format"):
        await read(pool, request(b"nothing"))
    with pytest.raises(InvalidRequest, match="longer than 600 s"):
        await read(pool, request(wav(np.zeros((601 * 8000, 1), np.float32), 8000)))
    assert (await read(pool, request(speech(1))))[-1].last


@pytest.mark.parametrize(("file", "reason"), [(EXIT, "crashes"), (HANG, "within 3 s")])
async def test_a_file_that_ruins_its_decoder_is_refused(
    pool: MediaDecoderPool, file: bytes, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        await read(pool, request(file))
    assert (await read(pool, request(speech(1))))[-1].last
