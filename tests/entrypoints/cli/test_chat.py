"""`sgl-omni chat` against a real server that plays scripts."""

import io
import json
import re
import shutil
import socket
import subprocess
import wave
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import soundfile

from sglang_omni.entrypoints.api_keys import read_keys
from sglang_omni.entrypoints.cli import chat
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.pipeline.request import AudioDelta, Finished, TextDelta, Usage, Voice
from sglang_omni.protocol.errors import EngineFailed
from tests.entrypoints.http.fake import Served, playing, serving, tone
from tests.testing.family import RATE

Talk = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def running_server() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def server(running_server: Served) -> Served:
    running_server.backend.reset()
    return running_server


@pytest.fixture
def talk(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Talk:
    """Types `questions` into the command; returns its status, output and errors."""

    def run(
        questions: Sequence[str], *arguments: object, url: str | None = None
    ) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{q}\n" for q in questions)))
        status = main(["chat", "--base-url", url or server.url, *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def turns(request: Any) -> list[tuple[str, str]]:
    return [(m.role, "".join(part.text for part in m.content)) for m in request.messages]


def test_the_answer_is_printed_and_nothing_is_spoken_unasked(server: Served, talk: Talk) -> None:
    assert talk(["one two three"]) == (0, "> one two three \n> ", "")
    (request,) = server.backend.requests
    assert request.voice is None


def test_text_is_printed_while_it_comes(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A print for each delta of the stream, and each is flushed."""
    printed = []
    monkeypatch.setattr("sys.stdin", io.StringIO("one two three\n"))
    monkeypatch.setattr(
        chat, "print", lambda *text, **how: printed.append((*text, how.get("flush"))), raising=False
    )
    assert main(["chat", "--base-url", server.url]) == 0
    assert printed == [("one ", True), ("two ", True), ("three ", True), (None,)]


def test_the_conversation_is_kept(server: Served, talk: Talk) -> None:
    assert talk(["How are you?", "And now?"], "--system", "Be brief.")[0] == 0
    first, second = map(turns, server.backend.requests)
    assert first == [("system", "Be brief."), ("user", "How are you?")]
    assert second == [*first, ("assistant", "How are you? "), ("user", "And now?")]


def test_blank_lines_are_not_questions(server: Served, talk: Talk) -> None:
    assert talk(["", "  ", "one"])[0] == 0
    assert len(server.backend.requests) == 1


def test_sampling_options_are_sent_and_only_those_given(server: Served, talk: Talk) -> None:
    talk(["one"], "--temperature", "0.5", "--max-tokens", "9")
    talk(["one"])
    given, usual = (request.sampling for request in server.backend.requests)
    assert (given.temperature, given.max_tokens) == (0.5, 9)
    assert (usual.temperature, usual.max_tokens) != (0.5, 9)


def test_save_writes_each_answer_as_a_wav_file(server: Served, talk: Talk, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "speech"
    status, output, _ = talk(["one", "one two three"], "--save", folder, "--voice", "river")
    assert status == 0
    for number, patches in enumerate((1, 3)):
        path = folder / f"answer-{number:03}.wav"
        # Unlike others this reader believes the header, which the stream had to leave open.
        with wave.open(str(path)) as speech:
            assert speech.getparams()[:4] == (1, 2, RATE, patches * len(tone()))
        assert f"[{path}]" in output
    assert sorted(p.name for p in folder.iterdir()) == ["answer-000.wav", "answer-001.wav"]
    assert {request.voice.name for request in server.backend.requests} == {"river"}


def test_play_hands_a_wav_file_to_a_player(
    server: Served, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []

    def play(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        samples, rate = soundfile.read(command[-1])
        played.append((command[:-1], rate, len(samples)))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(shutil, "which", {"paplay": "/usr/bin/paplay"}.get)
    monkeypatch.setattr(subprocess, "run", play)
    assert talk(["one two"], "--play")[0] == 0
    assert played == [(["paplay"], RATE, 2 * len(tone()))]
    assert isinstance(server.backend.requests[0].voice, Voice)


def test_play_without_a_player_is_refused_before_anything_is_asked(
    server: Served, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    status, _, error = talk(["one"], "--play")
    assert status == 1
    assert "aplay" in error
    assert "--save DIR" in error
    assert server.backend.requests == []


def test_a_voice_that_nobody_would_hear_is_refused(server: Served, talk: Talk) -> None:
    status, _, error = talk(["one"], "--voice", "river")
    assert status == 1
    assert "--save DIR" in error
    assert server.backend.requests == []


def test_an_absent_server_is_a_clear_error(talk: Talk, free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}"
    status, _, error = talk(["one"], url=url)
    assert status == 1
    assert error.startswith(f"sgl-omni: cannot reach a server at {url} (")
    assert error.rstrip().endswith("start one with sgl-omni serve")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "http://localhost:port", "nonsense"])
def test_an_address_that_is_none_is_a_clear_error(talk: Talk, url: str) -> None:
    status, _, error = talk(["one"], url=url)
    assert status == 1
    assert f"cannot reach a server at {url} (" in error


def test_a_server_that_goes_away_between_two_questions_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as running:
        url = running.enter_context(serving()).url
        turns = count()

        def typed(prompt: str) -> str:
            if next(turns) == 1:
                running.close()
            return "one"

        monkeypatch.setattr("builtins.input", typed)
        assert main(["chat", "--base-url", url]) == 1
    printed = capsys.readouterr()
    assert printed.out == "one \n"
    assert f"cannot reach a server at {url} (" in printed.err


def test_a_refusal_is_printed_with_the_server_s_words(talk: Talk, tmp_path: Path) -> None:
    status, _, error = talk(["one"], "--save", tmp_path, "--voice", "nobody")
    assert status == 1
    assert "audio.voice" in error
    assert "'nobody'" in error


def test_an_error_within_the_answer_is_printed_after_what_came_before(
    server: Served, talk: Talk
) -> None:
    server.backend.script = playing(TextDelta("one "), then=EngineFailed("the talker died"))
    status, output, error = talk(["go"])
    assert status == 1
    assert output.startswith("> one ")
    assert "the talker died" in error


def test_an_answer_without_speech_writes_no_file(
    server: Served, talk: Talk, tmp_path: Path
) -> None:
    server.backend.script = playing(TextDelta("..."), Finished("stop", Usage()))
    assert talk(["go"], "--save", tmp_path)[0] == 0
    assert list(tmp_path.iterdir()) == []
    server.backend.script = playing(AudioDelta(tone()), Finished("stop", Usage()))
    assert talk(["go"], "--save", tmp_path)[0] == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_help_lists_every_command(server: Served, talk: Talk) -> None:
    status, output, _ = talk(["/help"])
    assert status == 0
    for name in ("/voice NAME", "/voices", "/image FILE", "/system TEXT", "/save FILE", "/exit"):
        assert name in output
    assert server.backend.requests == []


def test_files_go_with_the_next_message_alone(server: Served, talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "mill.png").write_bytes(b"abc")
    status, output, _ = talk([f"/image {tmp_path / 'mill.png'}", "What is it?", "And now?"])
    assert status == 0
    assert "goes with the next message" in output
    first, second = server.backend.requests
    part = first.messages[0].content[0]
    assert part.kind == "image"
    assert part.sources == ("data:image/png;base64,YWJj",)
    assert len(first.messages[0].content) == 2
    assert len(second.messages[-1].content) == 1


def test_the_voice_and_the_system_message_can_be_changed(
    server: Served, talk: Talk, tmp_path: Path
) -> None:
    asked = ["/voices", "/voice river", "/system Be brief.", "one", "/clear", "two"]
    status, output, _ = talk(asked, "--save", tmp_path)
    assert status == 0
    assert "river" in output
    first, second = server.backend.requests
    assert first.voice.name == "river"
    assert turns(first) == [("system", "Be brief."), ("user", "one")]
    assert turns(second) == [("system", "Be brief."), ("user", "two")]


def test_a_conversation_is_written_as_json(server: Served, talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    assert talk(["one", f"/save {path}", "/exit", "never asked"])[0] == 0
    assert json.loads(path.read_text()) == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "one "},
    ]
    assert len(server.backend.requests) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("/paint", "unknown command /paint; /help lists them"),
        ("/voice", "/voice needs NAME"),
        ("/voice nobody", "there is no voice 'nobody'; there are "),
        ("/image nothing.png", "cannot read nothing.png: No such file"),
        ("/save no/folder.json", "cannot write no/folder.json: No such file"),
    ],
)
def test_a_command_that_fails_says_why(talk: Talk, line: str, reason: str) -> None:
    status, _, error = talk([line])
    assert status == 1
    assert reason in error


class Terminal(io.StringIO):
    """Standard input that somebody types into."""

    def isatty(self) -> bool:
        return True


def converse(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *lines: str
) -> str:
    """Type lines in a terminal. Returns what it shows."""
    monkeypatch.setattr("sys.stdin", Terminal("".join(f"{line}\n" for line in lines)))
    assert main(["chat", "--base-url", server.url]) == 0
    return capsys.readouterr().out


def test_a_terminal_shows_the_model_and_how_long_answers_take(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = converse(server, monkeypatch, capsys, "one two")
    assert f"at {server.url}; /help lists commands, /exit leaves" in shown
    assert re.search(r"one two \n\[first text \d\.\d\d s, all \d\.\d\d s\]", shown)


def test_an_error_does_not_end_a_conversation_in_a_terminal(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.backend.script = playing(then=EngineFailed("the talker died"))
    shown = converse(server, monkeypatch, capsys, "/paint", "one", "two")
    assert "unknown command /paint" in shown
    assert shown.count("the talker died") == 2
    # A question without an answer is taken back.
    assert turns(server.backend.requests[-1]) == [("user", "two")]


def test_ctrl_c_stops_an_answer_and_keeps_what_came(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    iterate = chat._iter_deltas
    stopped: list[bool] = []

    def interrupt(response: Any) -> Iterator[dict[str, Any]]:
        for delta in iterate(response):
            yield delta
            if delta.get("content") and not stopped:
                stopped.append(True)
                raise KeyboardInterrupt

    monkeypatch.setattr(chat, "_iter_deltas", interrupt)
    shown = converse(server, monkeypatch, capsys, "one two three", "four")
    assert "one  (stopped)" in shown
    assert turns(server.backend.requests[-1]) == [
        ("user", "one two three"),
        ("assistant", "one "),
        ("user", "four"),
    ]


def test_a_key_is_sent(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNI_KEY", "secret-key-of-16-characters")
    with serving(Access(keys=read_keys(("env:OMNI_KEY",), "api_key"))) as locked:
        status, _, error = talk(["one"], url=locked.url)
        assert status == 1
        assert "key" in error
        assert talk(["one"], "--api-key", "env:OMNI_KEY", url=locked.url)[0] == 0
