"""Transcripts in OpenAI's formats, made from the events of a transcription."""

import math
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from sglang_omni.entrypoints.http.responses.token_logprobs import build_logprobs
from sglang_omni.entrypoints.requests.token_text import TokenText
from sglang_omni.pipeline.request import Usage
from sglang_omni.pipeline.transcript import (
    TranscriptEnd,
    TranscriptEvent,
    TranscriptSegment,
    TranscriptText,
    join_texts,
)

Json = dict[str, Any]
# Whisper counts positions in frames of 10 ms.
SEEK_FRAMES_PER_S = 100


@dataclass(frozen=True)
class Transcript:
    """A whole transcript of a recording of `seconds`."""

    segments: tuple[TranscriptSegment, ...]
    seconds: float

    @property
    def text(self) -> str:
        """Return the text of all segments."""
        return join_texts([segment.text for segment in self.segments])

    @property
    def usage(self) -> Usage:
        """Return the sum of the segments' usage."""
        return sum_usage([segment.usage for segment in self.segments])


async def read_transcript(events: AsyncGenerator[TranscriptEvent, None]) -> Transcript:
    """Read the events of a transcription to the end."""
    segments: list[TranscriptSegment] = []
    seconds = 0.0
    async with aclosing(events):
        async for event in events:
            if isinstance(event, TranscriptSegment):
                segments.append(event)
            elif isinstance(event, TranscriptEnd):
                seconds = event.seconds
    return Transcript(tuple(segments), seconds)


def sum_usage(usages: Sequence[Usage]) -> Usage:
    """Return the usage of several requests together."""
    return Usage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        prompt_audio_tokens=sum(usage.prompt_audio_tokens for usage in usages),
    )


def build_usage(usage: Usage) -> Json:
    """Return OpenAI's usage object of a transcription."""
    return {
        "type": "tokens",
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "input_token_details": {
            "audio_tokens": usage.prompt_audio_tokens,
            "text_tokens": usage.prompt_tokens - usage.prompt_audio_tokens,
        },
    }


def build_json(transcript: Transcript, token_text: TokenText | None = None) -> Json:
    """Return the answer of the format `json`, with log probabilities if `token_text` is given."""
    answer: Json = {"text": transcript.text, "usage": build_usage(transcript.usage)}
    if token_text is not None:
        answer["logprobs"] = _build_logprobs(transcript.segments, token_text)
    return answer


def build_verbose_json(
    transcript: Transcript, task: str, language: str, temperature: float
) -> Json:
    """Return the answer of the format `verbose_json`. `language` is that of the recording."""
    return {
        "task": task,
        "language": language,
        "duration": round(transcript.seconds, 3),
        "text": transcript.text,
        "segments": [
            build_segment(index, segment, temperature)
            for index, segment in enumerate(transcript.segments)
        ],
        "usage": {"type": "duration", "seconds": math.ceil(transcript.seconds)},
    }


def build_segment(index: int, segment: TranscriptSegment, temperature: float) -> Json:
    """Return a segment of `verbose_json`. Times are in seconds."""
    logprobs = [token.logprob for token in segment.logprobs if math.isfinite(token.logprob)]
    data = segment.text.encode()
    return {
        "id": index,
        "seek": round(segment.start * SEEK_FRAMES_PER_S),
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
        "tokens": [token.token_id for token in segment.logprobs],
        "temperature": temperature,
        "avg_logprob": sum(logprobs) / len(logprobs) if logprobs else 0.0,
        "compression_ratio": len(data) / len(zlib.compress(data)) if data else 1.0,
        "no_speech_prob": 1.0 - segment.speech_probability,
    }


def build_srt(transcript: Transcript) -> str:
    """Return the transcript as SubRip subtitles."""
    cues = (
        f"{number}\n{_format_time(segment.start, ',')} --> {_format_time(segment.end, ',')}\n"
        f"{_to_cue_text(segment.text)}\n"
        for number, segment in enumerate(_list_cues(transcript), 1)
    )
    return "\n".join(cues)


def build_vtt(transcript: Transcript) -> str:
    """Return the transcript as WebVTT subtitles."""
    cues = (
        f"{_format_time(segment.start, '.')} --> {_format_time(segment.end, '.')}\n"
        f"{_escape_cue(_to_cue_text(segment.text))}\n"
        for segment in _list_cues(transcript)
    )
    return "\n".join(["WEBVTT\n", *cues])


def _list_cues(transcript: Transcript) -> list[TranscriptSegment]:
    return [segment for segment in transcript.segments if segment.text]


def _to_cue_text(text: str) -> str:
    """Return a text in one line, without the arrow that separates times."""
    return " ".join(text.split()).replace("-->", "->")


def _escape_cue(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _format_time(seconds: float, mark: str) -> str:
    """Return a time such as 00:01:02,345."""
    total_s, ms = divmod(round(seconds * 1000), 1000)
    minutes, s = divmod(total_s, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{s:02}{mark}{ms:03}"


async def stream_events(
    events: AsyncGenerator[TranscriptEvent, None],
    temperature: float,
    *,
    with_segments: bool,
    token_text: TokenText | None = None,
) -> AsyncGenerator[Json, None]:
    """Yield OpenAI's `transcript.text.delta` objects, then `transcript.text.done`.

    With segments, `transcript.text.segment` follows the text of each. Usage and, if `token_text` is
    given, log probabilities are in the last object.
    """
    texts: list[str] = []
    segments: list[TranscriptSegment] = []
    async with aclosing(events):
        async for event in events:
            match event:
                case TranscriptText(text):
                    texts.append(text)
                    yield {"type": "transcript.text.delta", "delta": text}
                case TranscriptSegment():
                    segments.append(event)
                    if with_segments:
                        yield _build_segment_event(len(segments) - 1, event, temperature)
                case TranscriptEnd():
                    total = sum_usage([segment.usage for segment in segments])
                    done: Json = {"type": "transcript.text.done", "text": "".join(texts)}
                    done["usage"] = build_usage(total)
                    if token_text is not None:
                        done["logprobs"] = _build_logprobs(segments, token_text)
                    yield done


def _build_segment_event(index: int, segment: TranscriptSegment, temperature: float) -> Json:
    fields = build_segment(index, segment, temperature)
    return {"type": "transcript.text.segment", **fields, "id": f"seg_{index}"}


def _build_logprobs(
    segments: Sequence[TranscriptSegment], token_text: TokenText
) -> list[dict[str, Any]]:
    tokens = (token for segment in segments for token in segment.logprobs)
    entries = build_logprobs(tokens, token_text)["content"]
    return [{key: entry[key] for key in ("token", "logprob", "bytes")} for entry in entries]
