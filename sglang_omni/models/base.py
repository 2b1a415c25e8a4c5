"""What a model family brings: the interface between the server and the models that it serves.

The server knows families; a family knows nothing of the server. Members that the API process uses
import neither torch nor sglang; those that load a model are called in an engine's own process.
"""

from pathlib import Path
from typing import Protocol

from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.chat import ChatFormat


class ModelFamily(Protocol):
    """One family of checkpoints that share prompt format, media format and modules."""

    def capabilities(self, checkpoint: Path) -> Capabilities:
        """Return what the checkpoint can do. Raises `CheckpointError`."""

    def chat_format(self, checkpoint: Path) -> ChatFormat:
        """Return prompt, tool and reasoning formats. Raises `CheckpointError`."""
