"""What a model family brings: the interface between the server and the models that it serves.

The server knows families; a family knows nothing of the server. Members that the API process uses
import neither torch nor sglang; those that load a model are called in an engine's own process.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.chat import ChatFormat
from sglang_omni.models.media_format import MediaFormat
from sglang_omni.models.speech_text import SpeechText

if TYPE_CHECKING:
    from sglang_omni.models.speech import SpeechModel


class ModelFamily(Protocol):
    """One family of checkpoints that share prompt format, media format and modules."""

    @property
    def media_format(self) -> MediaFormat:
        """Return how images, videos and audio are taken, and what they cost in tokens."""

    @property
    def speech_text(self) -> SpeechText:
        """Return the text front end, styles and descriptions."""

    def voice_names(self, checkpoint: Path) -> tuple[str, ...]:
        """Return the names of the preset voices; the first is the default.

        Raises:
            CheckpointError: The checkpoint names no voice.
        """

    def voice_fingerprint(self, checkpoint: Path) -> str:
        """Return a digest of whatever gives a stored voice its meaning, such as an audio VAE.

        Raises:
            CheckpointError: The files cannot be read.
        """

    def load_speech_model(self, checkpoint: Path, device: str, dtype: str) -> "SpeechModel":
        """Load the speech model of a checkpoint.

        Raises:
            CheckpointError: The checkpoint is incomplete or names no voice.
            ConfigError: The dtype is not supported.
        """

    def capabilities(self, checkpoint: Path) -> Capabilities:
        """Return what the checkpoint can do. Raises `CheckpointError`."""

    def chat_format(self, checkpoint: Path) -> ChatFormat:
        """Return prompt, tool and reasoning formats. Raises `CheckpointError`."""
