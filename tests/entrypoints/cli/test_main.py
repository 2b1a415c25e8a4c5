"""The command line: what it prints, what it refuses, and how little it imports."""

import io
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from sglang_omni.entrypoints.cli import say as say_command
from sglang_omni.entrypoints.cli import serve
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.startup.preflight_checks import require_output
from sglang_omni.protocol.errors import StartupError
from tests.testing.golden import TINY

SENTENCE = "The river runs slowly past the old stone mill."
# What the process that serves HTTP may do without.
HEAVY = ("torch", "sglang", "transformers", "onnxruntime", "av", "cv2", "PIL")


def sgl_omni(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    command = [sys.executable, "-m", "sglang_omni", *map(str, arguments)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)


def say(output: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return sgl_omni(
        "say", SENTENCE, "-o", output, "--model-path", TINY, "--device", "cpu", *arguments
    )


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test in which `serve` gets as far as its engines."""

    def start(*arguments: object) -> None:
        raise AssertionError("the engines were started")

    monkeypatch.setattr(serve, "Server", start)


@pytest.fixture
def no_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test in which a command gets as far as a process of an engine."""

    def spawn(*arguments: object, **options: object) -> None:
        raise AssertionError("an engine was started")

    monkeypatch.setattr(subprocess, "Popen", spawn)


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port of the loopback that somebody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize(("typed", "expected"), [("ti", "timeline"), ("--ver", "--version")])
def test_the_tab_key_completes_commands_and_options(
    typed: str, expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    asked = f"""source {script}
        COMP_WORDS=(sgl-omni {typed}) COMP_CWORD=1
        $(complete -p sgl-omni | sed "s/.*-F \\([^ ]*\\).*/\\1/") sgl-omni {typed} sgl-omni
        echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected]
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("#compdef sgl-omni")


def test_config_view_prints_what_a_launch_would_use(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("port: 9000\nthinker: {tp_size: 4}\n")
    assert main(["config", "view", "--config", str(file), "--thinker.tp_size", "2"]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert (shown["port"], shown["thinker"]["tp_size"]) == (9000, 2)
    assert shown["talker"]["context"] == 2048


def test_a_busy_port_is_an_error_and_nothing_starts(
    nothing_starts: None, taken_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["serve", "--version", "v1", "--model-path", str(TINY), "--port", str(taken_port)]
    assert main(arguments) == 1
    printed = capsys.readouterr()
    assert f"port {taken_port} of 127.0.0.1 is in use" in printed.err
    assert printed.out == ""


def test_a_port_is_taken_before_anything_is_loaded() -> None:
    """So of two servers that start together one fails at once, not after its engines loaded."""
    with serve.bind_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StartupError, match=f"port {port} .* is in use"):
            serve.bind_socket("127.0.0.1", port)
    serve.bind_socket("127.0.0.1", port).close()


def test_an_address_of_another_machine_cannot_be_bound(
    nothing_starts: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--model-path", str(TINY), "--host", "192.0.2.1", "--port", "0"]) == 1
    assert "cannot be bound" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["say", "Hello", "-o", "x.wav"]])
def test_a_missing_checkpoint_is_a_clear_error(
    nothing_starts: None,
    command: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--model-path", str(tmp_path / "nowhere")]) == 1
    error = capsys.readouterr().err
    assert f"{tmp_path / 'nowhere'} is not a checkpoint folder" in error
    assert len(error.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"sgl-omni {version('sglang_omni')}\n"


def test_an_unknown_generation_of_the_api_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["serve", "--version", "v2"])
    assert exit_.value.code == 2
    assert re.search(r"--version: .*'v2'.*v1", capsys.readouterr().err)


def unwritable(tmp_path: Path) -> dict[Path, str]:
    """Places that nobody can write to, root neither, and what is said of each."""
    (tmp_path / "file").touch()
    return {
        tmp_path / "none" / "x.wav": f"the folder {tmp_path / 'none'} does not exist",
        tmp_path / "file" / "x.wav": f"the folder {tmp_path / 'file'} does not exist",
        tmp_path: "Is a directory",
        Path("/proc/x.wav"): "No such file or directory",
    }


def test_say_to_an_unwritable_place_fails_before_the_engine_loads(
    no_process_starts: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for output, reason in unwritable(tmp_path).items():
        assert main(["say", "Hello", "-o", str(output)]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"sgl-omni: cannot write {output}: {reason}")
        assert len(error.splitlines()) == 1


def test_the_check_of_an_output_leaves_a_file_and_a_folder_as_they_are(tmp_path: Path) -> None:
    old = tmp_path / "old.wav"
    old.write_bytes(b"speech of before")
    require_output(old)
    require_output(tmp_path / "new.wav")
    assert old.read_bytes() == b"speech of before"
    assert list(tmp_path.iterdir()) == [old]


def test_a_write_that_fails_after_the_speech_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def synthesise(*arguments: object) -> bytes:
        tmp_path.rmdir()
        return b"speech"

    monkeypatch.setattr(say_command, "_synthesise", synthesise)
    output = tmp_path / "x.wav"
    assert main(["say", "Hello", "-o", str(output)]) == 1
    assert capsys.readouterr().err == (
        f"sgl-omni: cannot write {output}: No such file or directory\n"
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `serve` prints when it refuses to start, which is one line."""
    assert main(["serve", "--version", "v1", "--port", "0", *arguments]) == 1
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    return error


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["--voice", "nobody"],
            "'nobody' is not in the checkpoint; it has: joan, joe, alpha, kumo, tebukuro, "
            "gongitsune",
        ),
        (["--voice-alias", "alloy=nobody"], "it has: joan, joe, alpha, kumo, tebukuro, "),
        (["--voice-alias", "joe=alpha"], "'joe' is itself a preset"),
        (["--served-model-name", ""], "served_model_name must not be empty"),
        (["--voices-dir", "/proc/voices"], "voices_dir /proc/voices: No such file"),
        (["--profile-folder", "/dev/null"], "profile_folder /dev/null: File exists"),
        (["--allowed-local-media-path", "/nowhere"], "the folder /nowhere does not exist"),
        (
            ["--tls-certificate", "/no.crt", "--tls-key", "/no.key"],
            "tls_certificate /no.crt: No such file",
        ),
        (["--api-key", "file:/nowhere"], "/nowhere"),
    ],
)
def test_serve_refuses_what_can_be_known_before_an_engine_starts(
    no_process_starts: None, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert reason in refused(capsys, *arguments)


def test_say_writes_speech_that_the_seed_fixes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again = tmp_path / "first.wav", tmp_path / "again.wav"
    finished = say(first, "--seed", "7")
    assert finished.returncode == 0, finished.stderr
    assert f"wrote {first}" in finished.stdout
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    arguments = ["say", SENTENCE, "-o", str(again), "--model-path", str(TINY), "--device", "cpu"]
    assert main([*arguments, "--seed", "7"]) == 0
    data = first.read_bytes()
    assert again.read_bytes() == data

    info = soundfile.info(io.BytesIO(data))
    assert (info.samplerate, info.channels, info.subtype) == (44100, 1, "PCM_16")
    samples, _ = soundfile.read(io.BytesIO(data))
    assert len(samples) > 44100 / 2
    assert np.isfinite(samples).all()
    assert np.abs(samples).max() > 0.05


def test_say_refuses_invalid_ssml_before_the_engine_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "x.wav"
    arguments = ["-o", str(output), "--model-path", str(TINY), "--device", "cpu"]
    assert main(["say", "<speak>Hello <b>there</b></speak>", *arguments]) == 1
    assert "<b> is not supported" in capsys.readouterr().err
    assert not output.exists()


def test_say_with_an_unknown_voice_is_a_clear_error_before_the_engine_starts(
    no_process_starts: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "x.wav"
    arguments = ["say", SENTENCE, "-o", str(output), "--model-path", str(TINY), "--device", "cpu"]
    assert main([*arguments, "--voice", "nobody"]) == 1
    error = capsys.readouterr().err
    assert "no voice 'nobody'" in error
    assert "DB30" in error
    assert not output.exists()


def test_the_api_process_does_not_import_what_computes() -> None:
    entrypoints = ("http.app", "cli.main", "cli.serve", "cli.say", "cli.chat", "cli.normalize")
    modules = ["serving.server", *(f"entrypoints.{name}" for name in entrypoints)]
    imported = ", ".join(f"sglang_omni.{name}" for name in modules)
    script = f"import sys, {imported}; print([m for m in {HEAVY} if m in sys.modules])"
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert finished.stdout.strip() == "[]"


def test_names_that_serving_tools_share_reach_the_same_leaves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shared = ["--image-encoder-tp", "2", "--gpu-image-encoder", "2,3", "--text-only"]
    assert main(["config", "view", *shared]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["image_encoder"]["tp_size"] == 2
    assert shown["image_encoder"]["gpus"] == [2, 3]
    assert shown["text_only"] is True


def test_every_piece_can_be_placed_by_a_name_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    placed = ["--thinker-tp-size", "2", "--thinker-gpus", "0,1", "--talker-gpu", "2"]
    placed += ["--gpu-audio-encoder", "3", "--mem-fraction-static", "0.8"]
    assert main(["config", "view", *placed]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert (shown["thinker"]["tp_size"], shown["thinker"]["gpus"]) == (2, [0, 1])
    assert shown["thinker"]["mem_fraction_static"] == 0.8
    assert shown["talker"]["gpus"] == [2]
    assert shown["audio_encoder"]["gpus"] == [3]
