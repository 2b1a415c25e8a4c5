"""Numbers of the evaluation are computed from what a server says, and held to their bounds."""

import json
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from cookbook.ming_mini.evaluation.served_speech import ServedSpeaker
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.evaluation import natural_speech
from cookbook.ming_mini_2.evaluation.instructions import (
    ASKED,
    InstructedSpeech,
    ask_in_turn,
    measure_instructions,
    teach_in_turn,
)
from cookbook.ming_mini_2.evaluation.manners import MANNERS, measure_manners
from cookbook.ming_mini_2.evaluation.melody import compare_melody
from cookbook.ming_mini_2.evaluation.natural_speech import BOUNDS, unmet
from cookbook.ming_mini_2.evaluation.similarity import (
    measure_pitch,
    measure_similarity,
    reference_fields,
)
from cookbook.ming_mini_2.voices.manner import NEUTRAL, Manner
from measurement.whisper_recogniser import number_words
from sglang_omni.media.wav import HEADER_BYTES


def tone(seconds: float, first_hz: float, last_hz: float) -> np.ndarray:
    """Harmonics of a gliding pitch, float32 [n]."""
    hertz = np.geomspace(first_hz, last_hz, int(seconds * RATE))
    angle = 2 * np.pi * np.cumsum(hertz) / RATE
    return np.sum([np.sin(k * angle) / k for k in range(1, 9)], axis=0).astype(np.float32) * 0.1


class SpokenBytes(httpx.SyncByteStream):
    """A WAV header, then silence."""

    def __iter__(self) -> Iterator[bytes]:
        yield bytes(HEADER_BYTES)
        yield bytes(RATE)


def test_requests_carry_instructions_and_recordings() -> None:
    bodies = []

    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "mini"}]})
        bodies.append(json.loads(request.content))
        return httpx.Response(200, stream=SpokenBytes())

    client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(serve))
    speech = ServedSpeaker(client)
    speech.say("Hello.", "joe", 1, instructions={"speed": "slow"})
    speech.say("Hello.", None, 1, **reference_fields(np.arange(9, dtype=np.int16), "A text."))
    assert bodies[0]["instructions"] == {"speed": "slow"}
    assert bodies[0]["voice"] == "joe"
    assert "voice" not in bodies[1]
    assert bodies[1]["ref_audio"].startswith("data:audio/wav;base64,")
    assert bodies[1]["ref_text"] == "A text."


def test_the_melody_of_both_is_compared() -> None:
    pytest.importorskip("pyworld", reason="pitch is analysed by WORLD")
    row = compare_melody(["a"], lambda _: tone(1.5, 100, 141), lambda _: tone(1.5, 100, 200))
    assert row["items"] == 1
    assert row["ratio"] == pytest.approx(0.5, abs=0.05)
    silent = compare_melody(
        ["a"], lambda _: np.zeros(RATE, np.float32), lambda _: tone(1, 100, 120)
    )
    assert silent["ratio"] is None


def test_each_manner_is_said_and_its_sound_described() -> None:
    pytest.importorskip("pyworld", reason="pitch is analysed by WORLD")
    asked: list[object] = []

    def say(text: str, instructions: object) -> np.ndarray:
        asked.append(instructions)
        if instructions == {"style": "whisper"}:
            return np.zeros(RATE, np.float32)
        return tone(2.0, 100, 100)

    rows = measure_manners(["a"], say)
    assert asked == [None, *MANNERS]
    assert {"none", "speed slow", "pitch high", "emotion sad", "style lively"} <= set(rows)
    assert not any("medium" in name for name in rows)
    assert rows["none"]["seconds"] == pytest.approx(2)
    assert rows["none"]["semitones"] == pytest.approx(0, abs=0.3)
    assert rows["none"]["voiced"] > 0.8
    assert rows["style whisper"]["voiced"] == rows["style whisper"]["level"] == 0
    assert rows["style whisper"]["semitones"] is rows["style whisper"]["variation"] is None


def test_speed_and_pitch_count_only_in_the_asked_direction() -> None:
    pytest.importorskip("pyworld", reason="pitch is analysed by WORLD")
    plain, slower, higher = tone(1.0, 120, 120), tone(1.3, 120, 120), tone(1.0, 140, 140)
    assert InstructedSpeech(Manner(speed="slow"), "", plain, slower).has_moved()
    assert not InstructedSpeech(Manner(speed="fast"), "", plain, slower).has_moved()
    assert not InstructedSpeech(Manner(speed="slow"), "", plain, plain).has_moved()
    assert InstructedSpeech(Manner(pitch="high"), "", plain, higher).has_moved()
    assert not InstructedSpeech(Manner(pitch="low"), "", plain, higher).has_moved()


def test_lost_words_count_against_an_instruction() -> None:
    plain, slower = tone(1.0, 120, 120), tone(1.3, 120, 120)
    items = [InstructedSpeech(Manner(speed="slow"), "one two three", plain, slower)] * 2
    heard = iter([["one", "two", "three"], ["one", "two", "three"], ["one", "two", "three"], []])
    row = measure_instructions(items, lambda samples: next(heard))
    assert (row["moved"], row["words_kept"], row["accuracy"]) == (1.0, 0.5, 0.5)


def test_words_that_nobody_understands_are_not_kept() -> None:
    plain, slower = tone(1.0, 120, 120), tone(1.3, 120, 120)
    item = InstructedSpeech(Manner(speed="slow"), "one two three four", plain, slower)
    heard = iter([["one"], ["one"], ["one", "two"], ["one", "two"]])
    assert not item.keeps_words(lambda samples: next(heard))
    assert item.keeps_words(lambda samples: next(heard))


def test_every_manner_is_asked_as_fields_and_in_words() -> None:
    asked: list[object] = []

    def say(text: str, instructions: object) -> np.ndarray:
        asked.append(instructions)
        return np.zeros(1, np.float32)

    items = list(ask_in_turn(["Hello."] * 8, 1, say))
    assert [item.asked for item in items] == [*ASKED, *ASKED]
    given = asked[1::2]
    assert asked[::2] == [None] * 8
    assert given[:4] == [{"speed": "slow"}, {"speed": "fast"}, {"pitch": "low"}, {"pitch": "high"}]
    assert all(isinstance(value, str) for value in given[4:])


def test_the_teacher_is_asked_for_the_same_manners() -> None:
    def teach(text: str, manner: Manner) -> np.ndarray:
        return np.full(2 if manner == NEUTRAL else 3, len(text), np.float32)

    items = list(teach_in_turn(["Hello."] * 5, teach))
    assert [item.asked for item in items] == [*ASKED, ASKED[0]]
    assert [(len(item.plain), len(item.changed)) for item in items] == [(2, 3)] * 5


def test_a_clone_counts_if_it_is_nearest_to_its_own() -> None:
    def embed(samples: np.ndarray) -> np.ndarray:
        vector = np.asarray(samples[:2], dtype=np.float64)
        return vector / np.linalg.norm(vector)

    recordings = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    said = [(0, np.array([0.9, 0.1])), (1, np.array([0.8, 0.2]))]
    row = measure_similarity(recordings, said, embed)
    assert row["nearest_is_own"] == 0.5


def test_a_clone_keeps_the_pitch_within_two_semitones() -> None:
    pytest.importorskip("pyworld", reason="pitch is analysed by WORLD")

    def tone(hertz: float) -> np.ndarray:
        place = np.arange(44_100) / 44_100
        harmonics = [np.sin(2 * np.pi * hertz * count * place) / count for count in range(1, 9)]
        return (0.1 * np.sum(harmonics, axis=0)).astype(np.float32)

    row = measure_pitch([tone(120), tone(240)], [(0, tone(125)), (1, tone(120)), (1, tone(250))])
    assert row["pitch_kept"] == pytest.approx(2 / 3)
    assert row["semitones_apart"] == pytest.approx(0.7, abs=0.2)
    assert measure_pitch([tone(120)], [(0, np.zeros(44_100, np.float32))])["pitch_kept"] == 0.0


def test_bounds_that_are_missed_are_named() -> None:
    rows = {
        "words": {"excess": 0.05},
        "melody": {"ratio": 1.0},
        "speed": {"real_time_factor": 0.3, "first_audio_median_s": 0.5},
    }
    assert [(bound.part, bound.key) for bound in unmet(rows)] == [
        ("words", "excess"),
        ("speed", "first_audio_median_s"),
    ]
    assert {bound.part for bound in BOUNDS} <= set(natural_speech.PARTS)
    assert unmet({"melody": {"ratio": None}})


def test_fewer_sentences_than_voices_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["natural_speech", "--out", "report.json", "--count", "4"])
    with pytest.raises(SystemExit):
        natural_speech.main()
    assert "--count must be at least 6, a sentence for each voice" in capsys.readouterr().err


def test_numbers_are_compared_in_words() -> None:
    assert number_words("at 7 on the 21 st") == "at seven on the twenty-one st"
