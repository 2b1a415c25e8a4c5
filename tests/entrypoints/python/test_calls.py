"""What calls of the Python API ask of the pipeline, and what they return."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from sglang_omni import Omni
from sglang_omni.entrypoints.python.timed_text import TimedText
from sglang_omni.media.limits import VideoOptions
from sglang_omni.media.tempo import convert_time
from sglang_omni.pipeline.recording import RecordingPiece
from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    MediaPart,
    ReasoningDelta,
    Started,
    TextDelta,
    TextPart,
    TimedSegment,
    TimedWord,
    ToolCalled,
    UnspokenText,
    Usage,
)
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest, UnknownVoice
from sglang_omni.protocol.tools import ToolCall
from tests.entrypoints.http.fake import USAGE, playing, tone
from tests.entrypoints.python.conftest import FakeServer
from tests.testing.family import RATE

TOOL = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {}}},
}


def test_a_chat_returns_text_and_usage(omni: Omni) -> None:
    answer = omni.chat("two words")
    assert (answer.text, answer.finish_reason, answer.audio) == ("two words ", "stop", None)
    assert answer.usage == USAGE
    assert answer.message == {"role": "assistant", "content": "two words "}


def test_a_voice_makes_the_answer_spoken(omni: Omni, fake: FakeServer) -> None:
    answer = omni.chat("two words", voice="nova", seed=3)
    assert (fake.requests[-1].voice.name, fake.requests[-1].voice.seed) == ("river", 3)
    assert answer.audio is not None
    assert answer.audio.dtype == np.float32
    assert (answer.audio.size, answer.sample_rate) == (2 * tone().size, RATE)


def test_every_option_reaches_the_request(omni: Omni, fake: FakeServer) -> None:
    omni.chat(
        [{"role": "user", "content": "Hello."}],
        system="Be brief.",
        max_tokens=9,
        temperature=0,
        stop=("a", "b"),
        tools=(TOOL,),
        tool_choice="required",
        reasoning_effort="high",
        response_format={"type": "json_object"},
        seed=4,
    )
    request = fake.requests[-1]
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[0].content == (TextPart("Be brief."),)
    sampling = request.sampling
    assert (sampling.max_tokens, sampling.temperature, sampling.seed) == (9, 0, 4)
    assert sampling.stop == ("a", "b")
    assert sampling.json_schema is not None
    assert (request.tools[0].name, request.tool_choice.forced) == ("add", True)
    assert request.thinking


def test_options_of_videos_reach_the_request(omni: Omni, fake: FakeServer) -> None:
    content = [{"type": "video_url", "video_url": {"url": "v"}}]
    messages = [{"role": "user", "content": content}]
    omni.chat(messages, use_audio_in_video=False, video_fps=4, video_max_frames=9)
    (video,) = fake.requests[-1].media
    assert video.video == VideoOptions(4, 9, "off")


def test_an_answer_holds_reasoning_and_calls(omni: Omni, fake: FakeServer) -> None:
    call = ToolCalled(ToolCall("add", '{"a": 1}'))
    events = (Started(), ReasoningDelta("hm"), TextDelta("see"), call, Finished("stop", Usage(), 2))
    fake.script = playing(*events)
    answer = omni.chat("Add.", tools=[TOOL])
    assert (answer.reasoning, answer.text, answer.finish_reason) == ("hm", "see", "tool_calls")
    (made,) = answer.tool_calls
    assert made["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert answer.invalid_tool_calls == 2
    result = {"role": "tool", "tool_call_id": made["id"], "content": "2"}
    omni.chat([{"role": "user", "content": "Add."}, answer.message, result], tools=[TOOL])


def test_media_come_as_files_bytes_urls_and_samples(
    omni: Omni, fake: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(b"picture")
    images = (tmp_path / "a.png", str(tmp_path / "a.png"), b"bytes", "https://host/a.png")
    omni.chat("", images=images, audio=[(np.zeros(800, np.float32), 8000)])
    *before, text, clip = fake.requests[-1].messages[-1].content
    assert [part.sources for part in before] == [
        (b"picture",),
        (b"picture",),
        (b"bytes",),
        ("https://host/a.png",),
    ]
    assert [part.field for part in before] == [f"images.{index}" for index in range(4)]
    assert (text, clip.kind, clip.field) == (TextPart(""), "audio", "audio.0")
    samples, rate = soundfile.read(io.BytesIO(clip.sources[0]))
    assert (samples.shape, rate) == ((800,), 8000)


@pytest.mark.parametrize(
    ("messages", "options", "param"),
    [
        ([{"role": "user", "content": 3}], {}, "messages.0.content"),
        ([{"role": "user", "content": "a", "mood": 1}], {}, "messages.0.mood"),
        ([{"role": "user", "content": " "}], {}, "messages.0.content"),
        ([], {}, "messages"),
        ("a", {"temperature": 9}, "temperature"),
        ("a", {"max_tokens": 1_000_000}, "max_tokens"),
        ("a", {"voice": "nobody"}, "audio.voice"),
        ("a", {"images": ["/no/such/file"]}, "images.0"),
        ("a", {"audio": [np.zeros(9)]}, "audio.0"),
        ("a", {"system": 3}, "system"),
        ("\ud800", {}, "messages.0.content"),
        (
            [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}],
            {"system": "c"},
            "system",
        ),
    ],
)
def test_an_invalid_chat_names_its_field(
    omni: Omni, fake: FakeServer, messages: object, options: dict[str, object], param: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        omni.chat(messages, **options)  # type: ignore[call-overload]
    assert refused.value.param == param
    assert not fake.requests


def test_an_option_that_does_not_exist_is_a_type_error(omni: Omni) -> None:
    with pytest.raises(TypeError, match="'mood'"):
        omni.chat("a", mood=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="'mood'"):
        omni.speak("a", mood=1)  # type: ignore[call-arg]


def test_a_streamed_answer_comes_in_pieces(omni: Omni) -> None:
    with omni.chat("two words", voice="default", stream=True) as pieces:
        assert pieces.answer is None
        kinds = [type(piece) for piece in pieces]
    assert kinds == [TextDelta, AudioDelta] * 2
    assert pieces.answer is not None
    assert pieces.answer.text == "two words "
    assert list(pieces) == []


def test_speech_comes_in_chunks(omni: Omni, fake: FakeServer) -> None:
    speech = omni.speak("three short words", voice="river", seed=5)
    assert speech.sample_rate == omni.sample_rate == RATE
    first = next(speech)
    assert first.dtype == np.float32
    assert speech.read().size == 2 * first.size
    assert fake.requests[-1].voice.seed == 5


def test_loud_speech_is_limited(omni: Omni, fake: FakeServer) -> None:
    loud = AudioDelta(8 * tone())
    fake.script = playing(loud, Finished("stop", USAGE))
    assert np.abs(omni.speak("a").read()).max() <= 1
    answer = omni.chat("a", voice="default")
    assert answer.audio is not None
    assert np.abs(answer.audio).max() <= 1


def test_speed_changes_the_length(omni: Omni) -> None:
    plain, slow = omni.speak("a b").read(), omni.speak("a b", speed=0.5).read()
    assert slow.size == pytest.approx(2 * plain.size, rel=0.05)


def test_a_recording_is_a_voice(omni: Omni, fake: FakeServer) -> None:
    omni.speak("a", ref_audio=b"recording", ref_text="b").read()
    reference = fake.requests[-1].voice.source
    assert reference.recording == MediaPart("audio", (b"recording",), "ref_audio")
    assert reference.text == "b"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"speed": 9}, "speed"),
        ({"voice": "nobody"}, "voice"),
        ({"ref_text": "a"}, "ref_text"),
        ({"ref_audio": b"a", "voice": "river"}, "ref_audio"),
        ({"instructions": {"mood": "a"}}, "instructions.mood"),
    ],
)
def test_invalid_speech_names_its_field(omni: Omni, options: dict[str, object], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        omni.speak("Hello.", **options)  # type: ignore[arg-type]
    assert refused.value.param == param


def test_a_transcript_is_text(omni: Omni, fake: FakeServer) -> None:
    fake.script = playing(TextDelta(" Hello"), TextDelta(" there. "), Finished("stop", USAGE))
    assert omni.transcribe(np.zeros(800, np.int16), sample_rate=8000) == "Hello there."
    request = fake.requests[-1]
    assert request.media[0].sources[0].startswith(b"RIFF")
    assert omni.transcribe(b"file", language="en") == "Hello there."


def test_segments_have_times(omni: Omni, fake: FakeServer) -> None:
    fake.script = playing(TextDelta(" Hello there. "), Finished("stop", USAGE))
    fake.pieces = tuple(
        RecordingPiece(start, start + 1.5, 0.9, 1.9, b"RIFF") for start in (0.5, 4.0)
    )
    assert omni.transcribe_segments(b"file") == [
        TimedText(0.5, 2.0, "Hello there."),
        TimedText(4.0, 5.5, "Hello there."),
    ]
    assert fake.cut_rules[-1].whole_s == 0.0
    assert omni.transcribe(b"file") == "Hello there. Hello there."
    assert fake.cut_rules[-1].whole_s > 0.0


def test_samples_need_their_rate(omni: Omni) -> None:
    with pytest.raises(InvalidRequest) as refused:
        omni.transcribe(np.zeros(800))
    assert refused.value.param == "sample_rate"
    with pytest.raises(InvalidRequest, match="one channel"):
        omni.transcribe(np.zeros((800, 2)), sample_rate=8000)
    with pytest.raises(InvalidRequest, match="finite"):
        omni.transcribe(np.full(800, np.nan), sample_rate=8000)


def test_errors_of_a_request_are_raised(omni: Omni, fake: FakeServer) -> None:
    fake.script = playing(TextDelta("a"), then=UnknownVoice("no voice", param="voice"))
    with pytest.raises(UnknownVoice):
        omni.chat("a")
    fake.script = playing(TextDelta("a"))
    with pytest.raises(EngineFailed, match="without its final event"):
        omni.chat("a")
    fake.script = playing(AudioDelta(np.full(9, np.nan, np.float32)), Finished("stop", USAGE))
    with pytest.raises(EngineFailed, match="finite"):
        omni.speak("a").read()


def test_it_tells_what_the_checkpoint_has(omni: Omni, fake: FakeServer) -> None:
    assert (omni.voices, omni.capabilities) == (fake.voices, fake.capabilities)


def test_words_that_are_not_spoken_are_told(omni: Omni, fake: FakeServer) -> None:
    unspoken = UnspokenText(("Привет",))
    fake.script = playing(
        TextDelta("Привет"), unspoken, AudioDelta(tone()), Finished("stop", USAGE)
    )
    assert omni.chat("a", voice="prompt").unspoken == ("Привет",)
    assert unspoken in list(omni.chat("a", voice="prompt", stream=True))
    assert omni.chat("a", voice="prompt").text == "Привет"


def test_speakers_take_turns(omni: Omni, fake: FakeServer) -> None:
    turns: list[dict[str, Any]] = [
        {"text": "Who is there?", "voice": "river"},
        {"text": "A friend.", "ref_audio": b"recording", "ref_text": "b"},
        {"text": "Come in."},
    ]
    omni.speak(turns, voice="prompt", seed=5).read()
    request = fake.requests[-1]
    assert [turn.text for turn in request.turns] == [turn["text"] for turn in turns]
    assert [turn.voice.name for turn in request.turns] == ["river", "", "prompt"]
    recording = request.turns[1].voice.source.recording
    assert recording == MediaPart("audio", ("data:;base64,cmVjb3JkaW5n",), "input.1.ref_audio")


@pytest.mark.parametrize(
    ("turns", "param"),
    [
        ([], "input"),
        (["a"], "input.0"),
        ([{"voice": "river"}], "input.0.text"),
        ([{"text": "a", "mood": 1}], "input.0.mood"),
        ([{"text": "a"}, {"text": "b", "voice": "nobody"}], "input.1.voice"),
        ([{"text": "a", "ref_audio": "/no/such/file"}], "input.0.ref_audio"),
    ],
    ids=["none", "strings", "no text", "unknown field", "no voice", "no file"],
)
def test_an_invalid_turn_is_named(omni: Omni, turns: list[dict[str, object]], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        omni.speak(turns)
    assert refused.value.param == param


def test_the_segments_of_speech_have_its_times(omni: Omni, fake: FakeServer) -> None:
    segment = TimedSegment("a b", 0.0, 0.32, (TimedWord("a", 0.02, 0.1),), "river")
    fake.script = playing(AudioDelta(tone()), segment, Finished("stop", USAGE))
    speech = omni.speak("a b", timestamps="word", speed=0.5)
    assert not speech.segments
    speech.read()
    assert fake.requests[-1].timestamps == "word"
    (slow,) = speech.segments
    expected = [convert_time(seconds, RATE, 0.5) for seconds in (0.32, 0.1)]
    assert [slow.end, slow.words[0].end] == pytest.approx(expected)
    omni.speak("a b").read()
    assert fake.requests[-1].timestamps == "none"
