"""Speech as one complete file, with its usage and timestamps."""

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from sglang_omni.entrypoints.http.audio_output import AudioOutputChoice
from sglang_omni.entrypoints.timestamps import describe_segment
from sglang_omni.media.encode import get_media_type
from sglang_omni.pipeline.request import AudioDelta, Event, Finished, TimedSegment, Usage


@dataclass(frozen=True)
class CompleteSpeech:
    """A complete file and what is known about it.

    `seconds` is the length of its audio. `segments` and `words` are JSON objects, none unless the
    request has timestamps.
    """

    output: AudioOutputChoice
    data: bytes
    seconds: float
    usage: Usage
    segments: list[dict[str, Any]] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)

    def describe_file(self) -> dict[str, Any]:
        """Return the file as a JSON object."""
        return {
            "audio": base64.b64encode(self.data).decode("ascii"),
            "media_type": get_media_type(self.output.format),
            "sample_rate": self.output.sample_rate,
            "usage": build_usage(self.usage),
        }

    def describe_times(self) -> dict[str, Any]:
        """Return the length of the audio, its segments and its words as a JSON object."""
        times = {"segments": self.segments, "words": self.words}
        return {"duration": round(self.seconds, 3), **times}


async def collect_speech(
    events: AsyncGenerator[Event, None], output: AudioOutputChoice
) -> CompleteSpeech:
    """Return the complete file of some speech. Raises the errors of `events`."""
    encoder, usage = output.make_encoder(streaming=False), Usage()
    segments: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    async with aclosing(events):
        async for event in events:
            match event:
                case AudioDelta(pcm):
                    await encoder.encode(pcm)
                case TimedSegment():
                    described = describe_segment(output.time_segment(event), len(segments))
                    segments += described["segments"]
                    words += described["words"]
                case Finished():
                    usage = event.usage
    data = await encoder.close()
    return CompleteSpeech(output, data, encoder.seconds, usage, segments, words)


def build_usage(usage: Usage) -> dict[str, int]:
    """Return the usage object. Input tokens are text tokens, output tokens are talker patches."""
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.audio_tokens,
        "total_tokens": usage.prompt_tokens + usage.audio_tokens,
    }
