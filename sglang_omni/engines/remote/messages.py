"""Messages on the links between an engine's proxy and its host on another machine."""

from dataclasses import dataclass

from sglang_omni.engines.remote.packed_message import PackedMessage, Part


@dataclass(frozen=True)
class Hello:
    """The first message of a host: its version of this package."""

    version: str


@dataclass(frozen=True)
class ToHost:
    """A message from the server to the engine. The parts of its memory came before (`Part`)."""

    packed: PackedMessage


@dataclass(frozen=True)
class ToProxy:
    """A message from the engine to the server."""

    packed: PackedMessage


@dataclass(frozen=True)
class Written:
    """What the engine wrote into the memory of a request."""

    request_id: str
    part: Part


@dataclass(frozen=True)
class OutputLine:
    """A line that the engine printed."""

    text: str


@dataclass(frozen=True)
class Ended:
    """The engine's process has ended, with this return code, which is negative for a signal.

    `reason` continues the engine's name. It is the last message.
    """

    return_code: int
    reason: str
