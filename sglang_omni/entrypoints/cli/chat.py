"""Implements `sgl-omni chat`: a conversation in the terminal with a running server."""

import argparse
import base64
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from sglang_omni.entrypoints.cli.server_connection import (
    iter_objects,
    open_client,
    report_connection_errors,
)
from sglang_omni.media import wav
from sglang_omni.protocol.errors import StartupError

# Programs that play a WAV file, with the options that suppress their output.
PLAYERS = (("aplay", "-q"), ("paplay",), ("afplay",), ("ffplay", "-nodisp", "-autoexit", "-v", "0"))


class Chat:
    """Holds the conversation. Prints text as it arrives, then plays or saves the speech."""

    def __init__(self, parsed: argparse.Namespace) -> None:
        self._url = parsed.base_url.rstrip("/")
        self._voice, self._save = parsed.voice, parsed.save
        self._wants_audio = bool(parsed.play or parsed.save)
        if self._voice and not self._wants_audio:
            raise StartupError("--voice needs --play or --save DIR")
        sampling = {"temperature": parsed.temperature, "max_tokens": parsed.max_tokens}
        self._sampling = {name: value for name, value in sampling.items() if value is not None}
        self._player = find_player() if parsed.play else None
        system = [{"role": "system", "content": parsed.system}] if parsed.system else []
        self._messages: list[dict[str, str]] = system

    def run(self) -> int:
        """Run the conversation until the end of input. Return the exit status.

        Raises `OmniError`.
        """
        with report_connection_errors(self._url), open_client(self._url) as client:
            model = self._get_model(client)
            for number, question in enumerate(_read_questions()):
                self._messages.append({"role": "user", "content": question})
                text, speech = self._stream_answer(client, model)
                self._messages.append({"role": "assistant", "content": text})
                self._output_speech(speech, number)
        return 0

    def _get_model(self, client: httpx.Client) -> str:
        listing = client.get("/v1/models").raise_for_status().json()
        return str(listing["data"][0]["id"])

    def _stream_answer(self, client: httpx.Client, model: str) -> tuple[str, bytes]:
        """Print the answer while it streams. Return its text, and its speech as a WAV file."""
        text: list[str] = []
        speech: list[bytes] = []
        with client.stream(
            "POST", "/v1/chat/completions", json=self._build_body(model)
        ) as response:
            for delta in _iter_deltas(response):
                if content := delta.get("content"):
                    text.append(content)
                    print(content, end="", flush=True)
                if data := (delta.get("audio") or {}).get("data"):
                    speech.append(base64.b64decode(data))
        print()
        return "".join(text), b"".join(speech)

    def _build_body(self, model: str) -> dict[str, Any]:
        body = {"model": model, "messages": self._messages, "stream": True, **self._sampling}
        if self._wants_audio:
            voice = {"voice": self._voice} if self._voice else {}
            body |= {"modalities": ["text", "audio"], "audio": {"format": "wav", **voice}}
        return body

    def _output_speech(self, speech: bytes, number: int) -> None:
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


def _read_questions() -> Iterator[str]:
    while True:
        try:
            question = input("> ").strip()
        except EOFError:
            return
        if question:
            yield question


def _iter_deltas(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the deltas of a streamed answer. Raises `OmniError` with the server's message."""
    for chunk in iter_objects(response):
        for choice in chunk["choices"]:
            yield choice["delta"]
