"""Implements `sgl-omni chat`: a conversation in the terminal with a running server."""

import argparse
import base64
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from sglang_omni.entrypoints.cli.chat_commands import LEAVE, ChatCommands
from sglang_omni.entrypoints.cli.chat_history import ChatHistory
from sglang_omni.entrypoints.cli.server_connection import (
    get_error_message,
    iter_objects,
    open_client,
    report_connection_errors,
)
from sglang_omni.media import wav
from sglang_omni.protocol.errors import OmniError, StartupError

# Programs that play a WAV file, with the options that suppress their output.
PLAYERS = (("aplay", "-q"), ("paplay",), ("afplay",), ("ffplay", "-nodisp", "-autoexit", "-v", "0"))


@dataclass
class Latency:
    """When parts of an answer came, in seconds since the question; None for what did not come."""

    started_at: float = field(default_factory=time.monotonic)
    text_s: float | None = None
    sound_s: float | None = None

    def note(self, has_text: bool, has_sound: bool) -> None:
        """Note the arrival of a part."""
        now_s = time.monotonic() - self.started_at
        if has_text and self.text_s is None:
            self.text_s = now_s
        if has_sound and self.sound_s is None:
            self.sound_s = now_s

    def describe(self) -> str:
        """Return a line such as `first text 0.12 s, first sound 0.40 s, all 1.30 s`."""
        times = {
            "first text": self.text_s,
            "first sound": self.sound_s,
            "all": time.monotonic() - self.started_at,
        }
        return ", ".join(f"{name} {s:.2f} s" for name, s in times.items() if s is not None)


class Chat:
    """Prints text as it arrives, then plays or saves the speech.

    In a terminal, an answer may be stopped by Ctrl-C, and an error does not end the conversation.
    """

    def __init__(self, parsed: argparse.Namespace, key: str | None) -> None:
        self._url, self._key = parsed.base_url.rstrip("/"), key
        self._save = parsed.save
        self._wants_audio = bool(parsed.play or parsed.save)
        if parsed.voice and not self._wants_audio:
            raise StartupError("--voice needs --play or --save DIR")
        sampling = {"temperature": parsed.temperature, "max_tokens": parsed.max_tokens}
        self._sampling = {name: value for name, value in sampling.items() if value is not None}
        self._player = find_player() if parsed.play else None
        self._history = ChatHistory(parsed.system, parsed.voice)
        self._is_interactive = sys.stdin.isatty()
        self._num_spoken = 0

    def run(self) -> int:
        """Run the conversation until the end of input. Return the exit status.

        Raises `OmniError`.
        """
        with report_connection_errors(self._url), open_client(self._url, self._key) as client:
            model = self._get_model(client)
            commands = ChatCommands(self._history, client)
            if self._is_interactive:
                _enable_editing()
                print(f"{model} at {self._url}; /help lists commands, /exit leaves")
            for line in _read_lines():
                if line.lstrip("/") in LEAVE and line.startswith("/"):
                    break
                with self._report_errors():
                    if line.startswith("/"):
                        print(commands.run(line))
                    else:
                        self._converse(client, model, line)
        return 0

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        """Print errors and go on, in a terminal."""
        try:
            yield
        except OmniError as error:
            if not self._is_interactive:
                raise
            print(error.message)

    def _get_model(self, client: httpx.Client) -> str:
        reply = client.get("/v1/models")
        if reply.status_code == httpx.codes.UNAUTHORIZED:
            raise OmniError(get_error_message(reply))
        return str(reply.raise_for_status().json()["data"][0]["id"])

    def _converse(self, client: httpx.Client, model: str, question: str) -> None:
        """Ask a question, and keep the answer, whole or as far as it came."""
        latency, text, speech = Latency(), list[str](), list[bytes]()
        self._history.ask(question)
        try:
            for content, sound in self._stream_answer(client, model):
                latency.note(bool(content), bool(sound))
                if content:
                    text.append(content)
                    print(content, end="", flush=True)
                speech.append(sound)
            print()
        except KeyboardInterrupt:
            if not self._is_interactive:
                raise
            print(" (stopped)")
        finally:
            self._history.answer("".join(text))
        if self._is_interactive:
            print(f"[{latency.describe()}]")
        self._output_speech(b"".join(speech))

    def _stream_answer(self, client: httpx.Client, model: str) -> Iterator[tuple[str, bytes]]:
        """Yield the answer's pieces of text and of a WAV file while it streams."""
        body = self._build_body(model)
        with client.stream("POST", "/v1/chat/completions", json=body) as response:
            for delta in _iter_deltas(response):
                data = (delta.get("audio") or {}).get("data")
                yield delta.get("content") or "", base64.b64decode(data) if data else b""

    def _build_body(self, model: str) -> dict[str, Any]:
        messages = self._history.build_messages()
        body = {"model": model, "messages": messages, "stream": True, **self._sampling}
        if self._wants_audio:
            voice = {"voice": self._history.voice} if self._history.voice else {}
            body |= {"modalities": ["text", "audio"], "audio": {"format": "wav", **voice}}
        return body

    def _output_speech(self, speech: bytes) -> None:
        number = self._num_spoken
        self._num_spoken += 1
        if len(speech) <= wav.HEADER_BYTES:
            return
        speech = _set_wav_length(speech)
        if self._save:
            self._save.mkdir(parents=True, exist_ok=True)
            path = self._save / f"answer-{number:03}.wav"
            path.write_bytes(speech)
            print(f"[{path}]")
        if self._player:
            with tempfile.NamedTemporaryFile(suffix=".wav") as file:
                Path(file.name).write_bytes(speech)
                subprocess.run([*self._player, file.name], check=False)


def find_player() -> tuple[str, ...]:
    """Return the command of an installed program that plays WAV files.

    Raises `StartupError` if there is none.
    """
    player = next((command for command in PLAYERS if shutil.which(command[0])), None)
    if player is None:
        names = ", ".join(command[0] for command in PLAYERS)
        raise StartupError(f"--play needs one of {names}; --save DIR writes files instead")
    return player


def _set_wav_length(file: bytes) -> bytes:
    """Return a streamed WAV file with its length in the header."""
    rate = int.from_bytes(file[24:28], "little")
    samples = file[wav.HEADER_BYTES :]
    return wav.build_header(rate, len(samples)) + samples


def _enable_editing() -> None:
    """Let arrow keys edit the line and recall earlier ones, where Python has readline."""
    with suppress(ImportError):
        import readline  # noqa: F401


def _read_lines() -> Iterator[str]:
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            return
        if line:
            yield line


def _iter_deltas(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the deltas of a streamed answer. Raises `OmniError` with the server's message."""
    for chunk in iter_objects(response):
        for choice in chunk["choices"]:
            yield choice["delta"]
