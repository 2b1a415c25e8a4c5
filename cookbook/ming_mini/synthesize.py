"""Speech of a speaker: run flite or espeak-ng, and convert every clip to one form.

The form is mono float32 at 44.1 kHz, with silence of a fixed length around the speech, at one
loudness. Training clips also have the speaker's steady pitch (`vocoder.py`). The programs are found
on PATH. The result depends only on text and speaker.
"""

import io
import os
import subprocess
import tempfile
import wave
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import soxr

from cookbook.ming_mini.speakers import Speaker
from cookbook.ming_mini.vocoder import HOP, RATE, analyse, resynthesise

PAD = 3 * HOP
"""Samples of silence before and after the speech."""
ANALYSIS_RATE = 16_000
LOUDNESS = 0.08
"""Root mean square of the speech between the pads."""
PEAK = 0.95
SILENCE = 0.01
"""Of the loudest frame: quieter frames at the ends are cut."""
FRAME = RATE // 100
FADE = 220
TIMEOUT_SECONDS = 60


class SynthesisError(RuntimeError):
    """The synthesizer failed or said nothing."""


@dataclass(frozen=True)
class Clip:
    """A text as one speaker says it: `samples` int16 [n] at 44.1 kHz."""

    text: str
    speaker: int
    samples: np.ndarray


def synthesize(text: str, speaker: Speaker) -> np.ndarray:
    """Return the speech of `text` at the speaker's pitch: float32 samples [n] at 44.1 kHz.

    n is a multiple of the VAE's hop. Raises `SynthesisError`.
    """
    speech = synthesize_natural(text, speaker)[PAD:-PAD]
    analysis = analyse(soxr.resample(speech, RATE, ANALYSIS_RATE), ANALYSIS_RATE)
    return finish_clip(resynthesise(analysis, speaker.tone))


def synthesize_natural(text: str, speaker: Speaker) -> np.ndarray:
    """Return the speech of `text` with the synthesizer's own melody, in the same form."""
    samples, rate = run_synthesizer(text, speaker)
    played = rate * speaker.size
    return normalise_clip(soxr.resample(samples, played, RATE).astype(np.float32))


def normalise_clip(samples: np.ndarray) -> np.ndarray:
    """Trim and pad samples [n], fade the ends and set the loudness; float32."""
    return finish_clip(trim(samples))


def finish_clip(speech: np.ndarray, loudness: float = LOUDNESS, pad: int = PAD) -> np.ndarray:
    """Turn speech [n] without silence around it into a clip, with `pad` samples on both sides."""
    level = np.sqrt(np.mean(np.square(speech))) if len(speech) else 0.0
    if len(speech) < RATE // 20 or level < 1e-5:
        raise SynthesisError("the synthesizer said nothing")
    speech = speech * min(loudness / level, PEAK / np.abs(speech).max())
    ramp = np.linspace(0.0, 1.0, FADE, dtype=np.float32)
    speech[:FADE] *= ramp
    speech[-FADE:] *= ramp[::-1]
    return np.pad(speech, pad)


def trim(samples: np.ndarray) -> np.ndarray:
    """Return samples [n] without the silent frames of 10 ms at both ends; a copy."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    if len(frames) == 0:
        return samples.copy()
    level = np.sqrt(np.square(frames).mean(axis=1))
    loud = np.flatnonzero(level > SILENCE * level.max())
    if len(loud) == 0:
        return samples[:0].copy()
    return samples[loud[0] * FRAME : (loud[-1] + 1) * FRAME].copy()


def clips(jobs: Iterable[tuple[str, int, Speaker]], processes: int) -> Iterator[Clip]:
    """Synthesise (text, speaker's number, speaker) in several processes, in the given order.

    Jobs that the synthesizer fails at are left out.
    """
    with get_context("fork").Pool(processes) as pool:
        for clip in pool.imap(_clip, jobs, chunksize=16):
            if clip is not None:
                yield clip


def _clip(job: tuple[str, int, Speaker]) -> Clip | None:
    text, number, speaker = job
    try:
        return Clip(text, number, to_int16(synthesize(text, speaker)))
    except (SynthesisError, subprocess.SubprocessError):
        return None


def to_int16(samples: np.ndarray) -> np.ndarray:
    """Convert float samples in [-1, 1] to int16."""
    return np.round(np.clip(samples, -1, 1) * 32767).astype(np.int16)


def run_synthesizer(text: str, speaker: Speaker) -> tuple[np.ndarray, int]:
    """Return the synthesizer's own samples [n] in [-1, 1], and their rate in Hz."""
    with tempfile.NamedTemporaryFile(suffix=".wav", dir=_scratch()) as file:
        command = _command(text, speaker, file.name)
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS)
        if done.returncode != 0:
            raise SynthesisError(done.stderr.decode(errors="replace"))
        return read_wav(file.read())


def _scratch() -> str | None:
    """Return a folder in memory if there is one, or else on disk."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _command(text: str, speaker: Speaker, path: str) -> list[str]:
    if speaker.engine == "flite":
        stretch = f"duration_stretch={speaker.pace:.4f}"
        return ["flite", "-voice", speaker.voice, "--setf", stretch, "-t", text, "-o", path]
    options = ["-p", str(speaker.pitch), "-s", str(speaker.speed)]
    return ["espeak-ng", "-v", speaker.voice, *options, "-w", path, "--", text]


def read_wav(data: bytes) -> tuple[np.ndarray, int]:
    """Return samples [n] in [-1, 1] and rate of a 16-bit mono WAV file. Raises `SynthesisError`."""
    try:
        with wave.open(io.BytesIO(data)) as file:
            raw = np.frombuffer(file.readframes(file.getnframes()), dtype=np.int16)
            return raw.astype(np.float32) / 32768, file.getframerate()
    except (wave.Error, EOFError) as error:
        raise SynthesisError(f"not a WAV file: {error}") from error
