"""The audit passes what is equivalent, and nothing that is not."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from benchmarks.evaluation import audio_audit
from benchmarks.evaluation.audio_audit import Rendition, Renditions, audit_text, judge_audit
from benchmarks.evaluation.metrics.mel import log_mel, mel_distance
from benchmarks.evaluation.metrics.recognisers import Clip
from tests.benchmarks.evaluation.peers import playing_as

RATE = 16_000


def voice(pitch: float, seconds: float = 0.5, tilt: float = 1.0) -> np.ndarray:
    """A vowel: float samples [n]."""
    time = np.arange(int(seconds * RATE)) / RATE
    wobble = pitch * (1 + 0.05 * np.sin(9 * time))
    sound = sum(np.sin(2 * np.pi * n * np.cumsum(wobble) / RATE) / n**tilt for n in range(1, 12))
    return (0.1 * sound).astype(np.float32)


def renditions(change: Callable[[np.ndarray], np.ndarray] = lambda sound: sound) -> Renditions:
    """Two seeds that differ in pitch; the streamed ones are changed."""
    made: Renditions = {}
    for seed, pitch in enumerate((140.0, 150.0)):
        made["whole", seed] = Rendition(voice(pitch), RATE)
        made["streamed", seed] = Rendition(change(voice(pitch)), RATE)
    return made


class Says:
    """A recogniser that hears what it is told."""

    languages: ClassVar[tuple[str, ...]] = ("en",)
    batch: ClassVar[int] = 1

    def __init__(self, *texts: str) -> None:
        self.name, self._texts = "says", list(texts)

    def transcribe(self, clips: Sequence[Clip]) -> list[str]:
        return [self._texts.pop(0) for _ in clips]


def verdict(change: Callable[[np.ndarray], np.ndarray] = lambda sound: sound) -> dict[str, Any]:
    return judge_audit([audit_text("Ah.", renditions(change), None)] * 20, None)


def test_equal_sound_passes_and_its_distance_is_zero() -> None:
    found = verdict()
    assert found["passed"]
    assert found["mel_same_seed"] == 0.0
    assert found["mel_between"] == pytest.approx(found["mel_within"])
    assert found["characters_wrong"] is None
    assert found["listener"].startswith("none")


def test_another_sound_or_duration_fails_by_its_check() -> None:
    noise = np.random.default_rng(0).normal(0, 0.3, RATE).astype(np.float32)
    noisy = verdict(lambda sound: sound + noise[: len(sound)])
    assert noisy["checks"] == {"mel distance": False, "duration": True}
    longer = verdict(lambda sound: np.concatenate([sound, sound[-RATE // 25 :]]))
    assert not longer["checks"]["duration"]
    cut = verdict(lambda sound: sound[: int(0.975 * len(sound))])
    assert cut["checks"]["duration"]


def test_one_wrong_character_either_way_fails() -> None:
    right = audit_text("Ah, ah.", renditions(), Says(*["ah ah"] * 4))
    wrong = audit_text("Ah, ah.", renditions(), Says("ah ah", "ah ah", "ah ah", "ah a"))
    assert (right.whole_wrong, right.streamed_wrong, wrong.streamed_wrong) == (0, 0, 1)
    assert judge_audit([right] * 20, "says")["passed"]
    found = judge_audit([*[right] * 19, wrong], "says")
    assert found["characters_wrong"] == [0, 1]
    assert not found["passed"]


def test_fewer_than_twenty_texts_are_no_audit() -> None:
    with pytest.raises(ValueError, match="too few"):
        judge_audit([audit_text("Ah.", renditions(), None)] * 19, None)


def test_distance_does_not_depend_on_tempo_or_loudness() -> None:
    low, high = log_mel(voice(120.0), RATE), log_mel(voice(260.0, tilt=2.0), RATE)
    slow = log_mel(voice(120.0, 0.6), RATE)
    assert mel_distance(low, low) == 0.0
    assert mel_distance(low, slow) < 0.5 * mel_distance(low, high)
    assert mel_distance(low, high) == pytest.approx(mel_distance(high, low))
    assert np.allclose(log_mel(0.5 * voice(120.0), RATE), low, atol=0.1)
    assert log_mel(voice(120.0, 0.01), RATE).shape == (1, 40)


def test_the_command_speaks_every_text_both_ways(tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    with playing_as("sglang-omni") as peer:
        command = ["--url", peer.url, "--dialect", "sglang-omni", "--out", str(out)]
        assert audio_audit.main(command) == 0
        assert audio_audit.main([*command, "--count", "5"]) == 2
    result = json.loads(out.read_text(encoding="utf-8"))
    assert result["texts"] == 20 == len(result["found"])
    bodies = [body for _, body in peer.bodies[:80]]
    assert sum("stream" in body for body in bodies) == 40
    assert {body["seed"] for body in bodies} == {0, 1}
