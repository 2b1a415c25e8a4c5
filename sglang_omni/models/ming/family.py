"""Ming-flash-omni-2.0 as a `ModelFamily`."""

from pathlib import Path

from sglang_omni.models.capabilities import Capabilities, read_capabilities
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.models.ming.prompt.format import MingChatFormat


class MingFamily:
    """Implements `ModelFamily`."""

    def capabilities(self, checkpoint: Path) -> Capabilities:
        """See `ModelFamily`."""
        return read_capabilities(checkpoint, RELEASED)

    def chat_format(self, checkpoint: Path) -> MingChatFormat:
        """See `ModelFamily`."""
        return MingChatFormat(checkpoint)


FAMILY = MingFamily()
