"""Recordings of any length: where somebody speaks, and the samples of each place."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.media.limits import MediaLimits
from sglang_omni.media.recording import RecordingReader
from sglang_omni.media.speech_spans import CutRules, RecordingProgress
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest

ALWAYS = CutRules(whole_s=0.0)
VOICE = MING_MINI / "talker" / "data" / "voices" / "joe.flac"


def voice(rate: int = 16_000) -> np.ndarray:
    """A spoken sentence without the silence around it."""
    samples, source = soundfile.read(VOICE, dtype="float32")
    samples = soxr.resample(samples, source, rate)
    loud = np.flatnonzero(np.abs(samples) > 0.02)
    return np.asarray(samples[loud[0] : loud[-1] + 1])


def encode(
    samples: np.ndarray, rate: int = 16_000, kind: str = "WAV", subtype: str | None = None
) -> io.BytesIO:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return io.BytesIO(file.getvalue())


class Sink(io.BytesIO):
    """A file whose content stays readable after it is closed."""

    content = b""

    def close(self) -> None:
        if not self.closed:
            self.content = self.getvalue()
        super().close()


def read(
    file: io.BytesIO, rules: CutRules = ALWAYS, limits: MediaLimits | None = None
) -> tuple[list[RecordingProgress], np.ndarray]:
    sink = Sink()
    reader = RecordingReader(file, sink, rules, limits or MediaLimits())
    steps = [reader.step()]
    while not steps[-1].last:
        steps.append(reader.step())
    reader.close()
    return steps, np.frombuffer(sink.content, "<i2")


@pytest.mark.parametrize(("rate", "kind"), [(16_000, "WAV"), (44_100, "FLAC"), (24_000, "OGG")])
def test_spans_have_the_times_of_the_speech(rate: int, kind: str) -> None:
    clip = voice(rate)
    begins = [1.0, 1.0 + len(clip) / rate + 1.5]
    total = begins[-1] + len(clip) / rate + 1.0
    samples = np.zeros(round(total * rate), np.float32)
    for begin in begins:
        at = round(begin * rate)
        samples[at : at + len(clip)] = clip
    steps, stored = read(encode(samples, rate, kind))
    spans = [span for step in steps for span in step.spans]
    # A pause inside the sentence may divide it.
    starts = [min(spans, key=lambda span: abs(span.start - begin)).start for begin in begins]
    ends = [
        min(spans, key=lambda span: abs(span.end - begin - len(clip) / rate)).end
        for begin in begins
    ]
    for begin, start, end in zip(begins, starts, ends, strict=True):
        assert start == pytest.approx(begin, abs=0.2)
        assert end == pytest.approx(begin + len(clip) / rate, abs=0.2)
    assert steps[-1].seconds == pytest.approx(total, abs=0.01)
    assert len(stored) == round(steps[-1].seconds * 16_000)


def test_a_short_recording_is_not_cut() -> None:
    silence = np.zeros(16_000, np.float32)
    samples = np.concatenate((silence, voice(), silence, voice()))
    steps, _ = read(encode(samples), CutRules())
    assert steps[-1].is_whole
    (span,) = steps[-1].spans
    assert span.padded_start == 0.0
    assert span.padded_end == pytest.approx(len(samples) / 16_000)


def test_nobody_speaks_in_silence() -> None:
    for seconds in (1, 45):
        steps, _ = read(encode(np.zeros(seconds * 16_000, np.float32)), CutRules())
        assert not [span for step in steps for span in step.spans]
        assert steps[-1].is_whole == (seconds < 30)


def test_spans_of_a_long_recording_come_while_it_is_read() -> None:
    silence = np.zeros(16_000, np.float32)
    samples = np.concatenate([part for _ in range(20) for part in (voice(), silence)])
    steps, _ = read(encode(samples), CutRules())
    assert len(steps) > 2
    assert not steps[-1].is_whole
    assert steps[1].spans
    starts = [span.start for step in steps for span in step.spans]
    assert starts == sorted(starts)
    assert len(starts) >= 20


def test_the_stored_samples_are_those_of_the_file() -> None:
    clip = voice()
    _, stored = read(encode(clip))
    assert np.abs(stored / 32_768 - clip).max() < 2e-4


def test_only_the_first_channel_is_heard() -> None:
    clip = voice()
    steps, stored = read(encode(np.stack((np.zeros_like(clip), clip), axis=1)))
    assert not steps[-1].spans
    assert not stored.any()


def test_a_recording_has_a_limit() -> None:
    limits = replace(MediaLimits(), recording_seconds=3.0)
    with pytest.raises(InvalidRequest, match="longer than 3 s"):
        read(encode(np.zeros(4 * 16_000, np.float32)), limits=limits)
    read(encode(np.zeros(3 * 16_000, np.float32)), limits=limits)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (io.BytesIO(b"not a recording" * 100), "supported format"),
        (encode(np.zeros(0, np.float32)), "no sound that can be decoded"),
        (encode(np.full(1600, np.nan, np.float32), subtype="FLOAT"), "not finite"),
    ],
    ids=["text", "empty", "not finite"],
)
def test_a_broken_file_is_refused(file: io.BytesIO, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        read(file)


def test_a_full_disk_is_not_the_clients_fault() -> None:
    class Full(io.BytesIO):
        def write(self, *_: Any) -> int:
            raise OSError(28, "No space left on device")

    reader = RecordingReader(encode(voice()), Full(), ALWAYS, MediaLimits())
    with pytest.raises(EngineFailed, match="No space left"):
        reader.step()
