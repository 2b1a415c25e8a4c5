"""The commands of `sgl-omni chat`: lines that begin with a slash."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from sglang_omni.entrypoints.cli.chat_history import ChatHistory
from sglang_omni.entrypoints.cli.server_connection import get_error_message
from sglang_omni.protocol.errors import OmniError, StartupError

ATTACHABLE = ("image", "audio", "video")
LEAVE = ("exit", "quit")


@dataclass(frozen=True)
class ChatCommand:
    """A command: the name of its argument, "" without one, what it does, and the function."""

    argument: str
    description: str
    run: Callable[[str], str]


class ChatCommands:
    """Runs commands on a conversation with the server of `client`."""

    def __init__(self, history: ChatHistory, client: httpx.Client) -> None:
        self._history, self._client = history, client
        self._commands: Mapping[str, ChatCommand] = {
            "help": ChatCommand("", "list the commands", self._help),
            "voices": ChatCommand("", "list the voices of the server", self._list_voices),
            "voice": ChatCommand("NAME", "speak with another voice", self._choose_voice),
            **{kind: self._make_attach(kind) for kind in ATTACHABLE},
            "system": ChatCommand("TEXT", "set the system message", self._set_system),
            "save": ChatCommand("FILE", "write the conversation as JSON", self._save),
            "clear": ChatCommand("", "begin a new conversation", self._clear),
            "exit": ChatCommand("", "leave, as Ctrl-D does", lambda argument: ""),
        }

    def run(self, line: str) -> str:
        """Run the command of a line, such as `/voice river`. Return what it says.

        Raises:
            OmniError: There is no such command, it lacks its argument, or it failed.
        """
        name, _, argument = line.removeprefix("/").partition(" ")
        command = self._commands.get(name)
        if command is None:
            raise StartupError(f"unknown command /{name}; /help lists them")
        if command.argument and not argument.strip():
            raise StartupError(f"/{name} needs {command.argument}")
        return command.run(argument.strip())

    def _help(self, _: str) -> str:
        lines = {
            f"/{name} {command.argument}".rstrip(): command.description
            for name, command in self._commands.items()
        }
        width = max(map(len, lines))
        return "\n".join(f"{usage:{width}}  {text}" for usage, text in lines.items())

    def _list_voices(self, _: str) -> str:
        return ", ".join(self._get_voices())

    def _get_voices(self) -> list[str]:
        reply = self._client.get("/v1/audio/voices")
        if reply.is_error:
            raise OmniError(get_error_message(reply))
        return list(map(str, reply.json()["voices"]))

    def _choose_voice(self, name: str) -> str:
        voices = self._get_voices()
        if name not in voices:
            raise StartupError(f"there is no voice {name!r}; there are {', '.join(voices)}")
        self._history.voice = name
        return f"voice {name}"

    def _make_attach(self, kind: str) -> ChatCommand:
        def attach(argument: str) -> str:
            self._history.attach(kind, Path(argument).expanduser())
            return f"{argument} goes with the next message"

        return ChatCommand("FILE", f"send {kind} with the next message", attach)

    def _set_system(self, text: str) -> str:
        self._history.system = text
        return "system message set"

    def _save(self, argument: str) -> str:
        self._history.save(Path(argument).expanduser())
        return f"wrote {argument}"

    def _clear(self, _: str) -> str:
        self._history.clear()
        return "new conversation"
