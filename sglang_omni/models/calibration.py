"""What is quantized by what the model computes for chats: a model family's part. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sglang_omni.models.chat import PromptText
from sglang_omni.protocol.tools import Tool, ToolCall, ToolResult


@dataclass(frozen=True)
class CalibrationMessage:
    """One message of a chat of text."""

    role: str
    content: tuple[PromptText | ToolCall | ToolResult, ...]


@dataclass(frozen=True)
class CalibrationChat:
    """A whole chat of text, answers included.

    Attributes:
        messages: The messages in order; the last may be an answer.
        tools: The functions that are offered.
        thinking: Whether reasoning is switched on.
    """

    messages: Sequence[CalibrationMessage]
    tools: Sequence[Tool] = ()
    thinking: bool = False


@dataclass(frozen=True)
class CalibrationReport:
    """What a calibration did.

    Attributes:
        files: Names of the files that it wrote, in order.
        lines: What to tell the user.
    """

    files: tuple[str, ...]
    lines: tuple[str, ...]


class Calibrator(Protocol):
    """Quantizes some tensors of a checkpoint by what the model computes for chats."""

    def covers(self, name: str) -> bool:
        """Whether the calibrator writes what stands for the tensor `name`."""
        ...

    def write_files(self, target: Path) -> CalibrationReport:
        """Write the tensors to files in `target`, and leave those that are there as they are."""
        ...
