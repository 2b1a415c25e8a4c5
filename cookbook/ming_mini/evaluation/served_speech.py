"""Measure how clearly a running Ming-mini speaks: a recogniser transcribes fresh sentences.

This is the speech half of `cookbook.ming_mini.evaluation.quality`. The voices of this recipe, if
the server has them, say held-out sentences of the recipe and everyday sentences that the recipe did
not write. The recogniser also transcribes the source synthesizer, so that its own errors can be
told from the model's. Commands are spoken by all preset voices of the server in turn. Sentences are
spoken one at a time and streamed.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Protocol, TypeVar

import httpx
import numpy as np

from cookbook.ming_mini import grammar
from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import commands, held_out, punctuate
from cookbook.ming_mini.speakers import PRESETS, Speaker
from cookbook.ming_mini.synthesize import synthesize_natural
from measurement.edit_distance import edit_distance
from measurement.everyday_sentences import sample_sentences
from measurement.intervals import bootstrap_interval, wilson_interval
from measurement.pocketsphinx_recogniser import Recogniser, spoken_words
from sglang_omni.media.wav import HEADER_BYTES

COMMANDS, SPEED = "speak a command", "speed of speech"
OWN, EVERYDAY = "speak", "speak everyday"
ROWS = (*(f"{kind}, {one.name}" for kind in (OWN, EVERYDAY) for one in PRESETS), COMMANDS, SPEED)

Transcribe = Callable[[np.ndarray], list[str]]


class NamedSpeaker(Protocol):
    """A speaker of any recipe; the name is that of the served voice."""

    @property
    def name(self) -> str:
        """Return the name."""


S = TypeVar("S", bound=NamedSpeaker)


@dataclass(frozen=True)
class ServedUtterance:
    """Speech of the server: float samples [n] at 44.1 kHz, and its times.

    Times are in seconds after the request, to the first samples and to the last.
    """

    samples: np.ndarray
    first_s: float
    took_s: float


@dataclass(frozen=True)
class SentenceErrors:
    """The word errors of a sentence, and its number of words.

    The sentence is spoken by the model and by its source.
    """

    words: int
    model: int
    source: int


class ServedSpeaker:
    """Ask a server to speak, and record its times."""

    def __init__(self, client: httpx.Client, rate: int = 44_100) -> None:
        self._client, self._rate = client, rate
        self._model = client.get("/v1/models").raise_for_status().json()["data"][0]["id"]
        self.spoken: list[ServedUtterance] = []

    def list_voices(self) -> list[str]:
        """Return the names of the server's preset voices."""
        listed = self._client.get("/v1/audio/voices").raise_for_status().json()
        stored = {voice["name"] for voice in listed["uploaded_voices"]}
        return [name for name in listed["voices"] if name not in stored]

    def say(self, text: str, voice: str | None, seed: int, **options: Any) -> np.ndarray:
        """Return the samples of a text; `options` are more fields of the request.

        Raises:
            httpx.HTTPStatusError: The server rejects the request.
        """
        body = {"model": self._model, "input": text, "seed": seed, **options}
        if voice is not None:
            body["voice"] = voice
        body |= {"response_format": "wav", "stream_format": "audio"}
        started_at, first_s, data = time.monotonic(), 0.0, bytearray()
        with self._client.stream("POST", "/v1/audio/speech", json=body) as reply:
            if reply.is_error:
                reply.read()
            reply.raise_for_status()
            for chunk in reply.iter_bytes():
                data += chunk
                first_s = first_s or (time.monotonic() - started_at) * (len(data) > HEADER_BYTES)
        samples = np.frombuffer(bytes(data[HEADER_BYTES:]), "<i2").astype(np.float32) / 32_768
        self.spoken.append(ServedUtterance(samples, first_s, time.monotonic() - started_at))
        return samples

    def speed(self) -> dict[str, Any]:
        """Return the real-time factor of all speech, and the times to the first audio.

        Both times are in seconds.
        """
        audio_s = sum(len(utterance.samples) for utterance in self.spoken) / self._rate
        first_times = [utterance.first_s for utterance in self.spoken]
        return {
            "items": len(self.spoken),
            "real_time_factor": sum(utterance.took_s for utterance in self.spoken) / audio_s,
            "first_audio_median_s": float(np.median(first_times)),
            "first_audio_largest_s": max(first_times),
        }


def measure(
    url: str, seed: int, count: int, lexicon: Lexicon, rows: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the named rows, or all that the server has the voices for; `count` items for each.

    Raises:
        httpx.HTTPStatusError: The server lacks the voice of a named row.
    """
    if rows and not set(ROWS) & set(rows):
        return
    with httpx.Client(base_url=url, timeout=120.0) as client:
        speech = ServedSpeaker(client)
        served = speech.list_voices()
        wanted = rows or list_rows(served)
        for kind in (OWN, EVERYDAY):
            voices = [speaker for speaker in PRESETS if f"{kind}, {speaker.name}" in wanted]
            texts = _texts(kind, count, seed, lexicon) if voices else []
            for speaker in voices:
                row = measure_clarity(
                    speech, texts, speaker, seed, Recogniser().words, synthesize_natural
                )
                yield f"{kind}, {speaker.name}", row
        if COMMANDS in wanted:
            hear = Recogniser(grammar.jsgf()).words
            texts = list(commands(count, seed, "held_out"))
            yield COMMANDS, measure_commands(speech, texts, served, seed, hear, synthesize_natural)
        if SPEED in wanted and speech.spoken:
            yield SPEED, speech.speed()


def list_rows(served: Collection[str]) -> list[str]:
    """Return the rows that can be measured of a server with these voices."""
    missing = [f", {speaker.name}" for speaker in PRESETS if speaker.name not in served]
    return [row for row in ROWS if not row.endswith(tuple(missing))]


def _texts(kind: str, count: int, seed: int, lexicon: Lexicon) -> list[str]:
    return held_out(count, seed, lexicon) if kind == OWN else sample_sentences(count, seed)


def measure_clarity(
    speech: ServedSpeaker,
    texts: Sequence[str],
    speaker: S,
    seed: int,
    hear: Transcribe,
    source: Callable[[str, S], np.ndarray],
) -> dict[str, Any]:
    """Return the word errors of one voice, those of its source, and the difference."""
    heard = []
    for text in texts:
        said = spoken_words(text)
        model = edit_distance(said, hear(speech.say(text, speaker.name, seed)))
        heard.append(
            SentenceErrors(len(said), model, edit_distance(said, hear(source(text, speaker))))
        )
    total = sum(one.words for one in heard)
    return {
        "items": len(heard),
        "word_error": sum(one.model for one in heard) / total,
        "word_error_of_source": sum(one.source for one in heard) / total,
        "excess": sum(one.model - one.source for one in heard) / total,
        "excess_interval": bootstrap_interval(
            [(one.model - one.source, one.words) for one in heard]
        ),
    }


def measure_commands(
    speech: ServedSpeaker,
    texts: Sequence[str],
    voices: Sequence[str],
    seed: int,
    hear: Transcribe,
    source: Callable[[str, Speaker], np.ndarray],
) -> dict[str, Any]:
    """Return the share of commands that are transcribed without error, with voices in turn.

    The source is this recipe's synthesizers, in turn as well.
    """
    model = original = 0
    for text, voice, speaker in zip(texts, cycle(voices), cycle(PRESETS), strict=False):
        said = spoken_words(text)
        model += hear(speech.say(punctuate(text), voice, seed)) == said
        original += hear(source(punctuate(text), speaker)) == said
    return {
        "items": len(texts),
        "accuracy": model / len(texts),
        "interval": wilson_interval(model, len(texts)),
        "accuracy_of_source": original / len(texts),
    }
