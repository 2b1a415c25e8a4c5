"""How clearly a server speaks is counted against what its source says."""

import json
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from cookbook.ming_mini.evaluation import served_speech
from cookbook.ming_mini.evaluation.served_speech import (
    ServedSpeaker,
    measure,
    measure_clarity,
    measure_commands,
)
from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.speakers import PRESETS, Speaker
from sglang_omni.media.wav import HEADER_BYTES

TEXTS = ["The cat sat down.", "Good morning to you.", "It rains again today."]
VOICES = ["joe", "slt"]
RATE = 44_100


class Pieces(httpx.SyncByteStream):
    """A WAV header, then half a second of samples whose first numbers the text of the request."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __iter__(self) -> Iterator[bytes]:
        yield bytes(HEADER_BYTES)
        yield np.full(RATE // 2, self._number, "<i2").tobytes()


def server(request: httpx.Request) -> httpx.Response:
    if request.url.path == "/v1/models":
        return httpx.Response(200, json={"data": [{"id": "mini"}]})
    if request.url.path == "/v1/audio/voices":
        stored = [{"name": "me"}]
        return httpx.Response(200, json={"voices": [*VOICES, "me"], "uploaded_voices": stored})
    asked = json.loads(request.content)
    assert asked["model"] == "mini"
    assert asked["stream_format"] == "audio"
    if asked["voice"] not in VOICES:
        return httpx.Response(400, json={"error": {"message": "no such voice"}})
    return httpx.Response(200, stream=Pieces(1 + TEXTS.index(asked["input"])))


@pytest.fixture
def speech() -> ServedSpeaker:
    client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(server))
    return ServedSpeaker(client)


def hear(samples: np.ndarray) -> list[str]:
    """Reads the number back; the second text loses a word, the source never does."""
    number = round(float(samples[0]) * 32_768)
    heard = TEXTS[number % 100 - 1].lower().rstrip(".").split()
    return heard[1:] if number == 2 else heard


class Silent:
    """A recogniser that hears nothing."""

    def __init__(self, grammar: str = "") -> None:
        pass

    def words(self, samples: np.ndarray) -> list[str]:
        return []


def source(text: str, speaker: Speaker) -> np.ndarray:
    return np.full(10, (101 + TEXTS.index(text)) / 32_768, np.float32)


def test_word_errors_are_counted_beside_those_of_the_source(speech: ServedSpeaker) -> None:
    found = measure_clarity(speech, TEXTS, PRESETS[0], 1, hear, source)
    assert found["word_error"] == pytest.approx(1 / 12)
    assert found["word_error_of_source"] == 0
    low, high = found["excess_interval"]
    assert found["excess"] == pytest.approx(1 / 12)
    assert low <= found["excess"] <= high


def test_a_command_is_right_in_all_its_words_or_wrong(speech: ServedSpeaker) -> None:
    bare = [text.rstrip(".") for text in TEXTS]
    found = measure_commands(speech, bare, VOICES, 1, hear, source)
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["accuracy_of_source"] == 1


def test_commands_are_spoken_by_the_preset_voices_of_the_server_in_turn(
    monkeypatch: pytest.MonkeyPatch, speech: ServedSpeaker
) -> None:
    spoken = []

    def say(text: str, voice: str, seed: int) -> np.ndarray:
        spoken.append(voice)
        return np.full(RATE, (1 + TEXTS.index(text)) / 32_768, np.float32)

    monkeypatch.setattr(speech, "say", say)
    measure_commands(
        speech, [text.rstrip(".") for text in TEXTS], speech.list_voices(), 1, hear, source
    )
    assert spoken == ["joe", "slt", "joe"]


def test_speed_counts_audio_and_waits_from_the_first_sample(speech: ServedSpeaker) -> None:
    for text in TEXTS:
        assert len(speech.say(text, "slt", 1)) == RATE // 2
    speed = speech.speed()
    took = sum(one.took_s for one in speech.spoken)
    assert speed["real_time_factor"] == pytest.approx(took / 1.5)
    assert all(0 < one.first_s <= one.took_s for one in speech.spoken)


def test_a_refusal_is_an_error(speech: ServedSpeaker) -> None:
    with pytest.raises(httpx.HTTPStatusError):
        speech.say(TEXTS[0], "nobody", 1)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, speech: ServedSpeaker) -> None:
    """Rows of what would be asked of `server`."""

    def noted(
        speech: ServedSpeaker, texts: list[str], voice: Speaker, *_: object
    ) -> dict[str, object]:
        return {"texts": texts, "voice": voice.name}

    monkeypatch.setattr(served_speech, "ServedSpeaker", lambda client: speech)
    monkeypatch.setattr(served_speech, "Recogniser", Silent)
    monkeypatch.setattr(served_speech, "measure_clarity", noted)
    monkeypatch.setattr(served_speech, "measure_commands", lambda *_: {})
    monkeypatch.setattr(served_speech, "held_out", lambda count, *_: TEXTS[:count])
    monkeypatch.setattr(served_speech, "sample_sentences", lambda count, _: TEXTS[-count:])


LEXICON = Lexicon((), (), (), (), ())


@pytest.mark.usefixtures("measured")
def test_each_voice_says_sentences_of_both_kinds() -> None:
    wanted = ("speak, slt", "speak everyday, kal")
    rows = dict(measure("http://server", 1, 2, LEXICON, wanted))
    assert rows == {
        "speak, slt": {"texts": TEXTS[:2], "voice": "slt"},
        "speak everyday, kal": {"texts": TEXTS[-2:], "voice": "kal"},
    }


@pytest.mark.usefixtures("measured")
def test_rows_that_are_not_named_are_those_of_the_voices_of_the_server() -> None:
    rows = [row for row, _ in measure("http://server", 1, 0, LEXICON)]
    assert rows == ["speak, slt", "speak everyday, slt", "speak a command"]
