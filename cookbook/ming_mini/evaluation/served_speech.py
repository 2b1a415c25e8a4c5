"""Measure how clearly a running Ming-mini speaks: a recogniser transcribes fresh sentences.

This is the speech half of `cookbook.ming_mini.evaluation.quality`. Each voice says held-out
sentences of the recipe and everyday sentences that the recipe did not write. The recogniser also
transcribes the source synthesizer, so that its own errors can be told from the model's. Sentences
are spoken one at a time and streamed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from cookbook.ming_mini import grammar
from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import commands, finish, held_out
from cookbook.ming_mini.speakers import PRESETS, Speaker
from cookbook.ming_mini.synthesize import source
from measurement.edit_distance import edit_distance
from measurement.everyday_sentences import sample_sentences
from measurement.intervals import bootstrap_interval, wilson_interval
from measurement.pocketsphinx_recogniser import Recogniser, spoken_words
from sglang_omni.media.wav import HEADER_BYTES

COMMANDS, SPEED = "speak a command", "speed of speech"
OWN, EVERYDAY = "speak", "speak everyday"
ROWS = (*(f"{kind}, {one.name}" for kind in (OWN, EVERYDAY) for one in PRESETS), COMMANDS, SPEED)

Hear = Callable[[np.ndarray], list[str]]
Say = Callable[[str, Speaker], np.ndarray]


@dataclass(frozen=True)
class Spoken:
    """What the server said: float samples [n] at 44.1 kHz, and when, in seconds after the request,
    the first of them came and the last."""

    samples: np.ndarray
    first_s: float
    took_s: float


@dataclass(frozen=True)
class Heard:
    """Word errors in a sentence of so many words, said by the model and by its source."""

    words: int
    model: int
    source: int


class Speech:
    """Asks a server to speak; keeps how long it took."""

    def __init__(self, client: httpx.Client, rate: int = 44_100) -> None:
        self._client, self._rate = client, rate
        self._model = client.get("/v1/models").raise_for_status().json()["data"][0]["id"]
        self.spoken: list[Spoken] = []

    def say(self, text: str, voice: str, seed: int) -> np.ndarray:
        """The samples of a text. Raises `httpx.HTTPStatusError` where the server refuses."""
        body = {"model": self._model, "input": text, "voice": voice, "seed": seed}
        body |= {"response_format": "wav", "stream_format": "audio"}
        began, first, data = time.monotonic(), 0.0, bytearray()
        with self._client.stream("POST", "/v1/audio/speech", json=body) as reply:
            if reply.is_error:
                reply.read()
            reply.raise_for_status()
            for piece in reply.iter_bytes():
                data += piece
                first = first or (time.monotonic() - began) * (len(data) > HEADER_BYTES)
        samples = np.frombuffer(bytes(data[HEADER_BYTES:]), "<i2").astype(np.float32) / 32_768
        self.spoken.append(Spoken(samples, first, time.monotonic() - began))
        return samples

    def speed(self) -> dict[str, Any]:
        """Real-time factor of everything said, and times to the first audio in seconds."""
        audio_s = sum(len(one.samples) for one in self.spoken) / self._rate
        first = [one.first_s for one in self.spoken]
        return {
            "items": len(self.spoken),
            "real_time_factor": sum(one.took_s for one in self.spoken) / audio_s,
            "first_audio_median_s": float(np.median(first)),
            "first_audio_largest_s": max(first),
        }


def measure(
    url: str, seed: int, count: int, lexicon: Lexicon, rows: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows, or those of them that are named: `count` items for each."""
    wanted = [row for row in ROWS if not rows or row in rows]
    if not wanted:
        return
    with httpx.Client(base_url=url, timeout=120.0) as client:
        speech = Speech(client)
        for kind in (OWN, EVERYDAY):
            voices = [one for one in PRESETS if f"{kind}, {one.name}" in wanted]
            texts = _texts(kind, count, seed, lexicon) if voices else []
            for speaker in voices:
                row = clarity(speech, texts, speaker, seed, Recogniser().words, source)
                yield f"{kind}, {speaker.name}", row
        if COMMANDS in wanted:
            hear = Recogniser(grammar.jsgf()).words
            texts = list(commands(count, seed, "held_out"))
            yield COMMANDS, obedience(speech, texts, seed, hear, source)
        if SPEED in wanted and speech.spoken:
            yield SPEED, speech.speed()


def _texts(kind: str, count: int, seed: int, lexicon: Lexicon) -> list[str]:
    return held_out(count, seed, lexicon) if kind == OWN else sample_sentences(count, seed)


def clarity(
    speech: Speech, texts: Sequence[str], speaker: Speaker, seed: int, hear: Hear, source: Say
) -> dict[str, Any]:
    """Word errors of one voice, beside those of its source, and by how much they differ."""
    heard = []
    for text in texts:
        said = spoken_words(text)
        model = edit_distance(said, hear(speech.say(text, speaker.name, seed)))
        heard.append(Heard(len(said), model, edit_distance(said, hear(source(text, speaker)))))
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


def obedience(
    speech: Speech, texts: Sequence[str], seed: int, hear: Hear, source: Say
) -> dict[str, Any]:
    """Commands of the grammar that are heard right in every word, voices in turn."""
    model = original = 0
    for number, text in enumerate(texts):
        speaker, said = PRESETS[number % len(PRESETS)], spoken_words(text)
        model += hear(speech.say(finish(text), speaker.name, seed)) == said
        original += hear(source(finish(text), speaker)) == said
    return {
        "items": len(texts),
        "accuracy": model / len(texts),
        "interval": wilson_interval(model, len(texts)),
        "accuracy_of_source": original / len(texts),
    }
