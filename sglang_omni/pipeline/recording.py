"""Cut a recording into pieces that can be transcribed one by one."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.engines.media_decoder.contract import RecordingRequest
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.media import wav
from sglang_omni.media.speech_spans import CutRules, RecordingProgress, SpeechSpan
from sglang_omni.media.vad import SAMPLE_RATE
from sglang_omni.pipeline.async_streams import merge
from sglang_omni.pipeline.media_preprocessor import with_error_field
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.errors import EngineFailed

# Spans that wait to be transcribed. They are small, and a decoder that waits helps nobody.
MAX_WAITING_STEPS = 4096
# At Opus's lowest rate, 6 kbit/s, these are six minutes, whose samples take 11 MB.
SMALL_FILE_BYTES = 256 << 10


@dataclass(frozen=True)
class RecordingPiece:
    """A part of a recording in which somebody speaks.

    Attributes:
        start: When the speech begins, in seconds from the start of the recording.
        end: When it ends.
        probability: Mean probability that there is speech.
        seconds: Length of the sound in `content`.
        content: The bytes of a file with the sound of this part.
    """

    start: float
    end: float
    probability: float
    seconds: float
    content: bytes


@dataclass(frozen=True)
class RecordingEnd:
    """The recording has ended after `seconds`."""

    seconds: float


class LongRecordingDecoder(Protocol):
    """The media decoder processes."""

    def read_recording(
        self, request: RecordingRequest, tenant: str | None = None
    ) -> AsyncGenerator[RecordingProgress, None]:
        """Yield what each step of a recording finds. Raises `InvalidRequest`."""
        ...


class MediaFetcher(Protocol):
    """What downloads files."""

    async def fetch(self, part: MediaPart, tenant: str | None = None) -> bytes:
        """Return the content of a file. Raises `InvalidRequest`, naming the part's field."""
        ...


async def cut_recording(
    decoder: LongRecordingDecoder,
    fetcher: MediaFetcher,
    source: SharedDescriptor | str,
    rules: CutRules,
    tenant: str | None,
    field: str,
) -> AsyncGenerator[RecordingPiece | RecordingEnd, None]:
    """Yield the pieces of a recording, a file or the URL of one, in order; then its end.

    The samples are kept in a file on disk, those of a small file in memory, and one piece is in
    memory. A short recording is one piece with the file as it was sent, or none if nobody speaks
    in it. `field` names the field of the request that holds the recording, for error messages.

    Raises:
        InvalidRequest: The file is invalid or exceeds a limit.
        Overloaded: Too many requests wait for a decoder.
        EngineFailed: The samples cannot be stored.
    """
    if isinstance(source, str):
        content = await fetcher.fetch(MediaPart("audio", (source,), field), tenant)
        source = await asyncio.to_thread(_store, content)
    sink = await asyncio.to_thread(_create_sink, source)
    reading = decoder.read_recording(RecordingRequest(source, sink, rules), tenant)
    steps = merge(_name_field(reading, field), window=MAX_WAITING_STEPS)
    async with aclosing(steps):
        async for progress in steps:
            for span in progress.spans:
                read = _read_file if progress.is_whole else _read_span
                file = source if progress.is_whole else sink
                content = await asyncio.to_thread(read, file, span)
                sound_s = min(span.padded_end, progress.seconds) - span.padded_start
                yield RecordingPiece(
                    *(span.start, min(span.end, progress.seconds), span.probability),
                    *(sound_s, content),
                )
            if progress.last:
                yield RecordingEnd(progress.seconds)


def _store(content: bytes) -> SharedDescriptor:
    """Return a file with the content, a small one in memory. Raises `EngineFailed`."""
    is_small = len(content) <= SMALL_FILE_BYTES
    create = SharedDescriptor.create_in_memory if is_small else SharedDescriptor.create_file
    try:
        return create(content)
    except OSError as error:
        raise EngineFailed(f"a recording cannot be stored: {error.strerror}") from error


def _create_sink(source: SharedDescriptor) -> SharedDescriptor:
    """Return a file for the samples of `source`. A small one needs no room on a disk."""
    if os.stat(source.path).st_size <= SMALL_FILE_BYTES:
        return SharedDescriptor.create_in_memory(b"")
    return SharedDescriptor.create_file()


async def _name_field(
    reading: AsyncGenerator[RecordingProgress, None], field: str
) -> AsyncGenerator[RecordingProgress, None]:
    async with aclosing(reading):
        while True:
            with with_error_field(field):
                progress = await anext(reading, None)
            if progress is None:
                return
            yield progress


def _read_file(source: SharedDescriptor, span: SpeechSpan) -> bytes:
    """Return a whole file."""
    with closing(source.open()) as file:
        return file.read()


def _read_span(sink: SharedDescriptor, span: SpeechSpan) -> bytes:
    """Return the sound of a span as a WAV file."""
    first, last = (round(at * SAMPLE_RATE) for at in (span.padded_start, span.padded_end))
    with closing(sink.open()) as file:
        begin, size = first * wav.BYTES_PER_SAMPLE, (last - first) * wav.BYTES_PER_SAMPLE
        samples = os.pread(file.fileno(), size, begin)
    return wav.build_header(SAMPLE_RATE, len(samples)) + samples
