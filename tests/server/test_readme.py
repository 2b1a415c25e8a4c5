"""The README's examples work as they stand."""

import asyncio
import base64
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import soundfile

from sglang_omni.cli import build_parser
from tests.media.files import encoded, picture, tone, wav
from tests.realtime.sounds import pcm16, silence, voice
from tests.server.chats import data_uri
from tests.server.running import RunningServer

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_python_examples_speak_and_see(
    server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    speaking, seeing, telling, _ = blocks("python")
    (tmp_path / "mill.png").write_bytes(encoded(picture()))
    names = {"clip_base64": base64.b64encode(wav(tone(0.5), 16_000)).decode()}
    # The examples let the answer end by itself; here it must not take minutes.
    for example, here in (
        (speaking, {"http://127.0.0.1:8000": server.url}),
        (seeing, {"https://example.com/mill.jpg": data_uri(tmp_path / "mill.png")}),
    ):
        for there, ours in here.items():
            assert there in example
            example = example.replace(there, ours)
        exec(example.replace('model="ming-omni"', 'model="ming-omni", max_tokens=40'), names)
    exec(telling.replace("* 3", ""), names)
    assert soundfile.info("story.mp3").duration > 1
    samples, rate = soundfile.read("answer.wav")
    assert rate == 44100
    assert samples.size > rate


def test_the_realtime_example_answers_a_spoken_question(server: RunningServer) -> None:
    *_, talking = blocks("python")
    for there, here in (
        ("ws://127.0.0.1:8000", server.url.replace("http", "ws")),
        ('"Be brief."', '"Be brief.", "max_output_tokens": 24'),
    ):
        assert there in talking
        talking = talking.replace(there, here)
    names: dict[str, Any] = {}
    exec(talking, names)
    answer = asyncio.run(names["ask"](pcm16(voice(1.0)) + pcm16(silence(0.8))))
    assert len(answer) > 24_000


def test_every_command_line_is_understood() -> None:
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    commands = [
        shlex.split(line, comments=True)[1:] for line in lines if line.startswith("sgl-omni")
    ]
    assert len(commands) >= 5
    for command in commands:
        build_parser().parse_args(command)
