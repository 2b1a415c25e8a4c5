"""Ming-flash-omni-2.0 as a `ModelFamily`."""

from pathlib import Path
from typing import TYPE_CHECKING

from sglang_omni.models.capabilities import Capabilities, read_capabilities
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.models.ming.media_rules import FORMAT
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.models.ming.speech.vae_fingerprint import vae_fingerprint
from sglang_omni.models.ming.speech.voice_manifest import read_voice_names
from sglang_omni.models.ming.speech_text import MingSpeechText

if TYPE_CHECKING:
    from sglang_omni.models.ming.speech.model import MingSpeechModel


class MingFamily:
    """Implements `ModelFamily`."""

    media_format = FORMAT
    speech_text = MingSpeechText()

    def voice_names(self, checkpoint: Path) -> tuple[str, ...]:
        """See `ModelFamily`."""
        return read_voice_names(checkpoint)

    def voice_fingerprint(self, checkpoint: Path) -> str:
        """Return a digest of the audio VAE's weights."""
        return vae_fingerprint(checkpoint)

    def load_speech_model(self, checkpoint: Path, device: str, dtype: str) -> "MingSpeechModel":
        """See `ModelFamily`."""
        from sglang_omni.models.ming.speech.model import MingSpeechModel
        from sglang_omni.models.ming.speech.modules import load_modules

        return MingSpeechModel(load_modules(checkpoint, device, dtype))

    def capabilities(self, checkpoint: Path) -> Capabilities:
        """See `ModelFamily`."""
        return read_capabilities(checkpoint, RELEASED)

    def chat_format(self, checkpoint: Path) -> MingChatFormat:
        """See `ModelFamily`."""
        return MingChatFormat(checkpoint)


FAMILY = MingFamily()
