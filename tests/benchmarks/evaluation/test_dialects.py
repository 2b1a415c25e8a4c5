"""The same harness asks servers of every dialect, and understands what each sends."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import soundfile

from benchmarks.client.exchange import Answer, send_request
from benchmarks.client.target import (
    DIALECTS,
    ChatRequest,
    MediaPart,
    SpeechRequest,
    Target,
    TextPart,
    UnsupportedRequest,
)
from benchmarks.evaluation import evaluate
from benchmarks.evaluation.metrics import recognisers
from benchmarks.evaluation.metrics.recognisers import Clip
from benchmarks.evaluation.metrics.similarity import SpeakerSimilarity
from benchmarks.evaluation.protocol.summary import RunTranscripts
from sglang_omni.protocol.errors import EngineFailed
from tests.benchmarks.evaluation.peers import CHATS, PIECES, RATE, playing_as
from tests.entrypoints.http.fake import playing, serving, tone
from tests.testing.golden import TINY

SAMPLES = sum(len(piece) for piece in PIECES) // 2


def run(url: str, dialect: str, task: str, out: Path, *more: str) -> dict[str, Any]:
    """The file of a run of three samples."""
    command = ["--url", url, "--dialect", dialect, "--task", task, "--out", str(out)]
    assert evaluate.main([*command, "--samples", "3", "--clients", "2", *more]) == 0
    return json.loads((out / "run.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("dialect", CHATS)
def test_text_is_read_and_judged(dialect: str, tmp_path: Path) -> None:
    with playing_as(dialect) as peer:
        result = run(peer.url, dialect, "gsm8k/chat-0-shot", tmp_path)
    assert result["config"]["target"]["model"] == "peer-model"
    for record in result["records"]:
        assert record["extracted"] == "7"
        assert record["tokens"] == 9
        assert record["ttft_s"] > 0
    limit = "max_completion_tokens" if dialect == "openai" else "max_tokens"
    assert all(body[limit] == 1024 for _, body in peer.bodies)


@pytest.mark.parametrize("dialect", CHATS)
@pytest.mark.parametrize("streaming", [True, False])
def test_spoken_answers_are_heard(dialect: str, streaming: bool, tmp_path: Path) -> None:
    more = () if streaming else ("--whole",)
    with playing_as(dialect) as peer:
        result = run(peer.url, dialect, "speech-to-speech/contains", tmp_path, *more)
    for record in result["records"]:
        assert record["audio_s"] == pytest.approx(SAMPLES / RATE)
        assert record["ttfa_s"] > 0
        assert record["text"] == "It is 7."
        samples, rate = soundfile.read(tmp_path / record["audio"], dtype="int16")
        assert (rate, samples.tobytes()) == (RATE, b"".join(PIECES))
        assert ("ttft_s" in record) == streaming
    expected = 5 if dialect == "openai" and streaming else 9
    assert {record["tokens"] for record in result["records"]} == {expected}


@pytest.mark.parametrize("dialect", CHATS)
def test_texts_are_read_aloud(dialect: str, tmp_path: Path) -> None:
    with playing_as(dialect) as peer:
        result = run(peer.url, dialect, "seed-tts-en/speech", tmp_path)
    assert {record["audio_s"] for record in result["records"]} == {SAMPLES / RATE}
    assert all(("stream" in body) == (dialect != "openai") for _, body in peer.bodies)


def test_what_is_heard_is_counted_after_all_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hearing: list[list[int]] = []

    class Fake:
        name, languages, batch = "fake", ("en",), 2

        def __init__(self, weights: Path | None, language: str) -> None:
            assert language == "en"

        def transcribe(self, clips: Sequence[Clip]) -> list[str]:
            hearing.append([len(samples) for samples, _ in clips])
            assert {rate for _, rate in clips} == {RATE}
            return ["the baker waits for a train by the river"] * len(clips)

    monkeypatch.setitem(recognisers.RECOGNISERS, "pocketsphinx", Fake)
    with playing_as("openai") as peer:
        heard = ("--recogniser", "pocketsphinx")
        result = run(peer.url, "openai", "seed-tts-en/speech", tmp_path, *heard)
        assert hearing == [[SAMPLES] * 2, [SAMPLES]]
        assert result["recogniser"] == "fake"
        words = result["summary"][0]["repeats"][0]["words"]
        assert result["heard"][0]["wrong"] == 1
        assert result["heard"][0]["words"] == 9
        assert words["items"] == 3
        assert words["failed"] == 0
        total = sum(row["words"] for row in result["heard"])
        wrong = sum(row["wrong"] for row in result["heard"])
        assert words["wer_corpus"] == pytest.approx(wrong / total)
        # Who was heard once is not heard again.
        again = run(peer.url, "openai", "seed-tts-en/speech", tmp_path, *heard)
        assert len(hearing) == 2
        assert again["heard"] == result["heard"]
    assert RunTranscripts({}).summary([])["wer_corpus"] is None


def test_a_cloned_voice_is_compared_with_its_recording(tmp_path: Path) -> None:
    network = TINY / "talker" / "campplus.onnx"
    with playing_as("sglang-omni") as peer:
        more = ("--speaker-network", str(network))
        result = run(peer.url, "sglang-omni", "seed-tts-en/speech-cloned", tmp_path, *more)
        plain = run(peer.url, "sglang-omni", "seed-tts-en/speech", tmp_path / "plain", *more)
    assert "similarity" not in plain
    alike = result["similarity"]
    cosines = [row["cosine"] for row in alike["records"]]
    assert alike["failed"] == 0
    assert len(cosines) == 3
    assert alike["mean"] == {"closed/2": pytest.approx(sum(cosines) / 3)}
    voices = SpeakerSimilarity(network)
    speech = soundfile.read(tmp_path / result["records"][0]["audio"], dtype="float32")
    assert voices.similarity(speech, speech) == pytest.approx(1.0)
    assert -1 <= cosines[0] < 0.999
    with pytest.raises(FileNotFoundError, match="speaker network"):
        SpeakerSimilarity(tmp_path / "none.onnx")


def test_a_key_is_sent_and_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEER_KEY", "secret-of-this-test")
    with playing_as("openai") as peer:
        run(peer.url, "openai", "gsm8k/chat-0-shot", tmp_path, "--key-variable", "PEER_KEY")
    assert set(peer.keys) == {"Bearer secret-of-this-test"}
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "secret-of-this-test" not in written


def test_speech_that_is_not_streamed_is_a_batch_here() -> None:
    """The route for one text streams always."""

    async def ask(url: str) -> Answer:
        target = Target(url, "org/ming", "ours", streaming=False)
        async with aiohttp.ClientSession() as session:
            return await send_request(session, target.call(SpeechRequest("one two three", seed=5)))

    with serving() as served:
        answer = asyncio.run(ask(served.url))
        assert (answer.error, len(answer.audio.samples)) == (None, 2 * 3 * len(tone()))
        assert served.backend.requests[-1].voice.seed == 5
        served.backend.script = playing(then=EngineFailed("died"))
        assert "died" in (asyncio.run(ask(served.url)).error or "")


def test_what_a_dialect_cannot_say_is_refused() -> None:
    video = ChatRequest((MediaPart("video", b"", "mp4"), TextPart("What happens?")))
    with pytest.raises(UnsupportedRequest, match="no video"):
        Target("http://127.0.0.1:1", "m", "openai").call(video)
    with pytest.raises(UnsupportedRequest, match="cannot clone a voice"):
        Target("http://127.0.0.1:1", "m", "openai").call(SpeechRequest("a", b"wav"))
    for dialect in set(DIALECTS) - {"openai"}:
        body = Target("http://127.0.0.1:1/", "m", dialect).call(video).body
        assert body["messages"][0]["content"][0]["type"] == "video_url"


def test_media_and_sampling_are_put_in_the_words_of_the_api() -> None:
    ask = ChatRequest(
        (MediaPart("image", b"p", "png"), MediaPart("audio", b"w", "wav"), TextPart("?")),
        (("system", "Be brief."),),
        7,
        0.5,
        stop=("\n",),
        seed=3,
    )
    call = Target("http://127.0.0.1:1/", "m", "ours", streaming=False).call(ask)
    assert call.address == "http://127.0.0.1:1/v1/chat/completions"
    system, user = call.body.pop("messages")
    assert system == {"role": "system", "content": "Be brief."}
    assert [part["type"] for part in user["content"]] == ["image_url", "input_audio", "text"]
    assert user["content"][0]["image_url"]["url"] == "data:image/png;base64,cA=="
    assert user["content"][1]["input_audio"] == {"data": "dw==", "format": "wav"}
    assert call.body == {
        "model": "m",
        "max_tokens": 7,
        "stream": False,
        "temperature": 0.5,
        "seed": 3,
        "stop": ["\n"],
    }
