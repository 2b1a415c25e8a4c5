r"""Transcribe long recordings, and compare the times of their segments with the truth.

    python -m benchmarks.evaluation.transcript_times --url http://127.0.0.1:8000 --out FILE \
        --minutes 2 20

A recording is made of the voice recordings of the bundled checkpoint, in random order, with 0.7 to
3 s of silence after each. Where a clip begins and ends is thus known: where its sound is first and
last above a hundredth of its peak. The recording is sent to `POST /v1/audio/transcriptions` as
`verbose_json`, with default settings.

* `start_error_s`, `end_error_s`: how far the nearest segment begins and ends from each clip.
* `words_wrong`: word errors of the transcript, in percent of the words that were said.
* `memory_mib`: by engine, what the server's processes on this machine used before, and at most
  while they transcribed (proportional set size, which counts shared pages once).
"""

import argparse
import io
import json
import random
import shlex
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import soundfile

from measurement.environment import fingerprint
from measurement.word_errors import count_word_errors
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI

RATE = 24_000
SILENCE_S = (0.7, 3.0)
VOICES = MING_MINI / "talker"
SAMPLING_S = 0.5
MAX_WAV_MINUTES = 30


@dataclass(frozen=True)
class Utterance:
    """A clip in the recording: when it sounds, in seconds, and what it says."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Clip:
    """A spoken sentence without the silence around it, float32 [n] at `RATE`."""

    text: str
    samples: np.ndarray


def read_clips() -> list[Clip]:
    """Return the voice recordings of the bundled checkpoint."""
    manifest = json.loads((VOICES / "data" / "voice_name.json").read_text())
    return [
        _read_clip(voice["prompt_text"], voice["prompt_wav_path"]) for voice in manifest.values()
    ]


def _read_clip(text: str, path: str) -> Clip:
    samples, rate = soundfile.read(VOICES / path, dtype="float32")
    positions = np.arange(0, len(samples), rate / RATE)
    samples = np.interp(positions, np.arange(len(samples)), samples).astype(np.float32)
    (loud,) = np.nonzero(np.abs(samples) > np.abs(samples).max() / 100)
    return Clip(text, samples[loud[0] : loud[-1] + 1])


def make_recording(minutes: float, seed: int) -> tuple[np.ndarray, list[Utterance]]:
    """Return a recording of about that length, float32 [n], and what is said in it."""
    clips, chance = read_clips(), random.Random(seed)
    parts, utterances, position = [np.zeros(RATE, np.float32)], [], RATE
    while position < minutes * 60 * RATE:
        clip = chance.choice(clips)
        silence = np.zeros(round(chance.uniform(*SILENCE_S) * RATE), np.float32)
        end = position + len(clip.samples)
        utterances.append(Utterance(position / RATE, end / RATE, clip.text))
        parts += [clip.samples, silence]
        position = end + len(silence)
    return np.concatenate(parts), utterances


def encode(samples: np.ndarray) -> tuple[str, bytes]:
    """Return a name and the bytes of a file: WAV, or Ogg Vorbis where that would be too large."""
    is_long = len(samples) > MAX_WAV_MINUTES * 60 * RATE
    kind, subtype = ("OGG", "VORBIS") if is_long else ("WAV", "PCM_16")
    buffer = io.BytesIO()
    with soundfile.SoundFile(buffer, "w", RATE, 1, subtype, format=kind) as file:
        # libsndfile's Vorbis encoder overflows its stack with everything at once.
        for position in range(0, len(samples), 10 * RATE):
            file.write(samples[position : position + 10 * RATE])
    return f"recording.{kind.lower()}", buffer.getvalue()


class MemoryWatch:
    """Samples the memory of a server's processes on this machine, in MiB, by engine."""

    def __init__(self, url: str) -> None:
        engines = httpx.get(f"{url}/health").json()["engines"]
        self._processes = {
            name: psutil.Process(engine["pid"]) for name, engine in engines.items() if engine["pid"]
        }
        parent = next(iter(self._processes.values())).parent()
        assert parent is not None
        self._api = parent
        self.before = self.measure()
        self.peak = dict(self.before)

    def measure(self) -> dict[str, float]:
        """Return the memory of each engine now, and of all together."""
        used: defaultdict[str, float] = defaultdict(float)
        used["api"] = _measure_mib(self._api)
        for name, process in self._processes.items():
            # Replicas of an engine count together.
            used[name.partition("-")[0]] += sum(
                map(_measure_mib, (process, *process.children(recursive=True)))
            )
        return {**used, "all": sum(used.values())}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sample during the body."""
        done = threading.Event()

        def sample() -> None:
            while not done.wait(SAMPLING_S):
                for kind, value in self.measure().items():
                    self.peak[kind] = max(self.peak.get(kind, 0.0), value)

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def summary(self) -> dict[str, Any]:
        """Return what was used before, and at most."""
        return {
            kind: {"before": round(self.before.get(kind, 0.0)), "peak": round(peak)}
            for kind, peak in sorted(self.peak.items())
        }


def _measure_mib(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / (1 << 20)
    except psutil.NoSuchProcess:
        return 0.0


def transcribe(url: str, file: tuple[str, bytes]) -> tuple[dict[str, Any], float]:
    """Return the answer of the server, and the seconds that it took."""
    started_at = time.monotonic()
    reply = httpx.post(
        f"{url}/v1/audio/transcriptions",
        data={"response_format": "verbose_json"},
        files={"file": file},
        timeout=None,
    )
    reply.raise_for_status()
    answer: dict[str, Any] = reply.json()
    return answer, time.monotonic() - started_at


def compare(answer: dict[str, Any], utterances: Sequence[Utterance]) -> dict[str, Any]:
    """Return the errors of the times, and of the words."""
    starts = np.array([segment["start"] for segment in answer["segments"]])
    ends = np.array([segment["end"] for segment in answer["segments"]])
    start_errors = [float(np.abs(starts - utterance.start).min()) for utterance in utterances]
    end_errors = [float(np.abs(ends - utterance.end).min()) for utterance in utterances]
    errors = [
        count_word_errors(utterance.text, _find_text(answer, utterance), "en")
        for utterance in utterances
    ]
    return {
        "utterances": len(utterances),
        "segments": len(starts),
        "start_error_s": _describe(start_errors),
        "end_error_s": _describe(end_errors),
        "within_0.3_s": float(np.mean(np.array([*start_errors, *end_errors]) <= 0.3)),
        "words_wrong": round(
            100 * sum(error.wrong for error in errors) / sum(error.words for error in errors), 2
        ),
    }


def _find_text(answer: dict[str, Any], utterance: Utterance) -> str:
    """Return the text of the segments whose middle is in an utterance."""
    return " ".join(
        segment["text"]
        for segment in answer["segments"]
        if utterance.start <= (segment["start"] + segment["end"]) / 2 <= utterance.end
    )


def _describe(errors: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(float(np.median(errors)), 3),
        "p95": round(float(np.percentile(errors, 95)), 3),
        "max": round(max(errors), 3),
    }


def measure(url: str, minutes: float, seed: int) -> dict[str, Any]:
    """Make a recording, transcribe it and return the figures."""
    samples, utterances = make_recording(minutes, seed)
    file = encode(samples)
    watch = MemoryWatch(url)
    with watch.watching():
        answer, seconds = transcribe(url, file)
    return {
        "minutes": round(len(samples) / RATE / 60, 2),
        "file": {"name": file[0], "mib": round(len(file[1]) / (1 << 20), 1)},
        "seconds": round(seconds, 1),
        **compare(answer, utterances),
        "memory_mib": watch.summary(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure recordings of several lengths, and store the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--minutes", type=float, nargs="+", default=[2.0, 20.0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    runs = []
    for minutes in options.minutes:
        runs.append(measure(options.url, minutes, options.seed))
        print(json.dumps(runs[-1]), flush=True)
    command = shlex.join(["python", "-m", "benchmarks.evaluation.transcript_times", *sys.argv[1:]])
    report = {"command": command, "environment": fingerprint(), "runs": runs}
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
