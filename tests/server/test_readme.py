"""The README's examples work as they stand."""

import asyncio
import base64
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import soundfile

from sglang_omni.cli import build_parser
from tests.api.fake import serving
from tests.media.files import encoded, picture, tone, wav
from tests.realtime.sounds import pcm16, silence, voice
from tests.server.chats import data_uri
from tests.server.running import RunningServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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


def test_the_commands_of_the_evaluation_run_in_their_order(tmp_path: Path) -> None:
    """Against a fake that echoes: bundled rows in place of the hub's, gates made of this run."""
    (block,) = [one for one in blocks("bash") if "make bench" in one]
    first, *lines = [shlex.join(shlex.split(line, comments=True)) for line in block.splitlines()]
    bench = subprocess.run(["make", "-n", "bench"], cwd=ROOT, capture_output=True, text=True)
    assert first == "make bench" and "ci/bench.sh" in bench.stdout
    here = {"hub": "fixture", "RUN": "runs/mmmu", "FILE": "made.json"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with serving() as server:
        asks = ("--url", server.url)
        for line in lines:
            python, *words = [here.get(word, word) for word in shlex.split(line)]
            assert python == "python"
            command = [sys.executable, *words]
            if "--preset" in words or "benchmarks.audio_audit" in words:
                command += asks
            if "benchmarks.gates" in words:
                made = [sys.executable, "-m", "benchmarks.gates", "calibrate", *["runs/mmmu"] * 5]
                assert _ended([*made, "--out", "made.json"], tmp_path, environment) == 0
            assert _ended(command, tmp_path, environment) == 0, line
    assert (tmp_path / "runs" / "mmmu" / "run.json").is_file()
    assert list((tmp_path / "plots").glob("*.png"))


def _ended(command: list[str], folder: Path, environment: dict[str, str]) -> int:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    print(done.stdout[-1500:], done.stderr[-1500:])
    return done.returncode


def test_every_benchmark_that_is_named_has_the_flags_it_is_named_with() -> None:
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    lines += [one.replace("\n", " ") for one in re.findall(r"`(python -m [^`]*)`", README)]
    commands = [shlex.split(line, comments=True) for line in lines if "python -m " in line]
    ends = [part for command in commands for part in _parted(command)]
    named = [words for words in ends if words[2:3] and words[2].startswith("benchmarks.")]
    assert len(named) >= 15
    for words in named:
        path = ROOT / words[2].replace(".", "/")
        source = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
        flags = {word for word in words[3:] if word.startswith("--")}
        known = set(re.findall(r'"(--[a-z][\w-]*)"', source.read_text(encoding="utf-8")))
        assert flags <= known, words


def _parted(command: list[str]) -> list[list[str]]:
    """The commands that && joins."""
    text = shlex.join(command).replace("'&&'", "&&")
    return [shlex.split(part) for part in text.split("&&")]
