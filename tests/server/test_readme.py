"""The examples of the README and the guide work as they stand, and give what they say they give."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import soundfile

from sglang_omni.entrypoints.cli.main import build_parser
from tests.entrypoints.http.fake import serving
from tests.entrypoints.realtime.sounds import pcm16, silence
from tests.media.files import tone, wav
from tests.server.running import RunningServer

ROOT = Path(__file__).parents[2]
README, GUIDE, MEASUREMENTS, EVALUATION = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/guide.md", "docs/measurements.md", "docs/evaluation.md")
)


def blocks(language: str, document: str = GUIDE) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", document, re.DOTALL)


def example(text: str, server: RunningServer) -> str:
    """An example as it stands, but for the port."""
    assert "127.0.0.1:8000" in text or "http" not in text
    return text.replace("127.0.0.1:8000", server.url.removeprefix("http://"))


def promised(text: str) -> list[str]:
    """What an example says that it prints."""
    return re.findall(r"^ *print\(.*\)  # (.+)$", text, re.MULTILINE)


def test_the_readme_is_short_and_its_examples_are_those_of_the_guide() -> None:
    assert len(README.splitlines()) <= 150
    shown = blocks("python", README)
    assert len(shown) == 3
    assert set(shown) <= set(blocks("python"))
    commands = {line for block in blocks("bash", README) for line in block.splitlines()}
    ours = {line for line in commands if line.startswith("sgl-omni ")}
    assert ours
    assert ours <= {line for block in blocks("bash") for line in block.splitlines()}


def test_the_readme_shows_the_start_as_it_is(default_server: RunningServer) -> None:
    (screen,) = blocks("text", README)
    default_server.log.seek(0)
    # Versions, times, the port and what follows the example differ.
    printed = default_server.log.read()
    for line in screen.splitlines():
        word = line.split()[0]
        assert any(shown.startswith(word) for shown in printed.splitlines()), line


@pytest.mark.extended
def test_the_python_examples_give_what_stands_beside_them(
    default_server: RunningServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    *examples, _ = blocks("python")
    names: dict[str, Any] = {}
    for text in examples:
        exec(example(text, default_server), names)
        assert capsys.readouterr().out.splitlines() == promised(text)
    assert sum(len(promised(text)) for text in examples) == 5
    samples, rate = soundfile.read("answer.wav")
    assert (rate, samples.size > rate) == (44100, True)
    assert 1 < soundfile.info("train.mp3").duration < 5


def test_the_realtime_example_answers_a_spoken_question(
    default_server: RunningServer, tmp_path: Path
) -> None:
    *_, talking = blocks("python")
    names: dict[str, Any] = {}
    exec(example(talking, default_server), names)
    speak = {"model": "ming-omni", "input": "What is seven plus five?", "voice": "joe", "seed": 1}
    speak |= {"response_format": "pcm"}
    question = httpx.post(f"{default_server.api}/audio/speech", json=speak, timeout=60).content
    answer = asyncio.run(names["ask"](question + pcm16(silence(0.8))))
    assert len(answer) > 24_000


def test_the_upload_of_a_voice_is_taken_as_it_stands(server: RunningServer, tmp_path: Path) -> None:
    (line,) = [one for block in blocks("bash") for one in block.splitlines() if "me.wav" in one]
    (tmp_path / "me.wav").write_bytes(wav(tone(2.0), 16_000))
    command = shlex.split(example(line, server))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    stored = json.loads(done.stdout)
    assert stored["name"] == "me"
    assert httpx.delete(f"{server.api}/audio/voices/{stored['id']}").status_code == 200


@pytest.mark.extended
def test_the_commands_do_what_is_said_of_them(
    default_server: RunningServer, tmp_path: Path
) -> None:
    (block,) = [one for one in blocks("bash") if "sgl-omni say" in one]
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    commands = {words[1]: words[1:] for words in lines if words[0] == "sgl-omni"}
    reply = httpx.post(
        f"{default_server.api}/audio/speech", json={"model": "ming-omni", "input": "Hello."}
    )
    address = ("--base-url", default_server.url)
    chat = [*commands["chat"], *address]
    timeline = ["timeline", reply.headers["x-request-id"], *address]
    assert [len(commands["timeline"]), commands["timeline"][2]] == [len(timeline), timeline[2]]
    ran = {
        name: _output(command, tmp_path, given)
        for name, command, given in (
            ("say", commands["say"], ""),
            ("timeline", timeline, ""),
            ("chat", chat, "What is 17 + 25?\n"),
            ("config", commands["config"], ""),
            ("reference", commands["reference"], ""),
            ("make-tiny", commands["make-tiny"], ""),
        )
    }
    assert soundfile.info(tmp_path / "hello.wav").duration > 0.3
    assert "talker" in ran["timeline"]
    assert "17 + 25 = 42. The answer is 42." in ran["chat"]
    assert list((tmp_path / "answers").iterdir())
    assert "tp_size: 2" in ran["config"]
    assert "POST /v1/chat/completions" in ran["reference"]
    assert (tmp_path / "DIR" / "config.json").exists()


def _output(arguments: list[str], folder: Path, given: str) -> str:
    command = [sys.executable, "-m", "sglang_omni", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-1500:]
    return done.stdout


def test_every_command_line_is_understood() -> None:
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    commands = [
        shlex.split(line, comments=True)[1:] for line in lines if line.startswith("sgl-omni")
    ]
    assert len(commands) >= 5
    for command in commands:
        build_parser().parse_args(command)


@pytest.mark.extended
def test_the_commands_of_the_evaluation_run_in_their_order(tmp_path: Path) -> None:
    """Against a fake that echoes: bundled rows in place of the hub's, gates made of this run."""
    (block,) = [one for one in blocks("bash", EVALUATION) if "make bench" in one]
    first, *lines = [shlex.join(shlex.split(line, comments=True)) for line in block.splitlines()]
    bench = subprocess.run(["make", "-n", "bench"], cwd=ROOT, capture_output=True, text=True)
    assert first == "make bench"
    assert "ci/bench.sh" in bench.stdout
    here = {"hub": "fixture", "RUN": "runs/mmmu", "FILE": "made.json"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with serving() as server:
        asks = ("--url", server.url)
        for line in lines:
            python, *words = [here.get(word, word) for word in shlex.split(line)]
            assert python == "python"
            command = [sys.executable, *words]
            if "--preset" in words or "benchmarks.evaluation.audio_audit" in words:
                command += asks
            if "benchmarks.evaluation.gates" in words:
                made = [
                    sys.executable,
                    "-m",
                    "benchmarks.evaluation.gates",
                    "calibrate",
                    *["runs/mmmu"] * 5,
                ]
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
    documents = (README, GUIDE, MEASUREMENTS, EVALUATION)
    lines = [
        line for text in documents for block in blocks("bash", text) for line in block.splitlines()
    ]
    lines += [
        one.replace("\n", " ")
        for text in documents
        for one in re.findall(r"`(python -m [^`]*)`", text)
    ]
    commands = [shlex.split(line, comments=True) for line in lines if "python -m " in line]
    ends = [part for command in commands for part in _parted(command)]
    named = [
        words for words in ends if words[2:3] and words[2].startswith(("benchmarks.", "cookbook."))
    ]
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
