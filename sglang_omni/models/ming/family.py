"""Ming-flash-omni-2.0 as a `ModelFamily`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_omni.models.base import HeadForm, ModelFamily, WeightForm
from sglang_omni.models.calibration import CalibrationChat, Calibrator
from sglang_omni.models.capabilities import Capabilities, read_capabilities
from sglang_omni.models.chat import ChatFormat
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.expert_ranks import check_expert_ranks
from sglang_omni.models.ming.image.config import has_image_output
from sglang_omni.models.ming.image.format import MingImageFormat
from sglang_omni.models.ming.media_rules import FORMAT
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.models.ming.sizes import read_sizes
from sglang_omni.models.ming.speech.vae_fingerprint import vae_fingerprint
from sglang_omni.models.ming.speech.voice_manifest import read_voice_names
from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.quantized_folder import QuantizedFolder
from sglang_omni.models.sizes import CheckpointSizes

if TYPE_CHECKING:
    from sglang_omni.models.ming.encoders.audio_model import MingAudioModel
    from sglang_omni.models.ming.encoders.vision_model import MingVisionModel
    from sglang_omni.models.ming.image.model import MingImageModel
    from sglang_omni.models.ming.speech.model import MingSpeechModel


class MingFamily(ModelFamily):
    """Implements `ModelFamily`."""

    media_format = FORMAT
    speech_text = MingSpeechText()
    drawing_model = RELEASED.name

    def voice_names(self, checkpoint: Path) -> tuple[str, ...]:
        """See `ModelFamily`."""
        return read_voice_names(checkpoint)

    def voice_fingerprint(self, checkpoint: Path) -> str:
        """Return a digest of the audio VAE's weights."""
        return vae_fingerprint(checkpoint)

    def sizes(self, checkpoint: Path) -> CheckpointSizes:
        """See `ModelFamily`."""
        return read_sizes(checkpoint)

    def quantized_folders(
        self, checkpoint: Path, form: WeightForm, head: HeadForm
    ) -> tuple[QuantizedFolder, ...]:
        """See `ModelFamily`."""
        from sglang_omni.models.ming.quantized_folders import list_quantized_folders

        return list_quantized_folders(checkpoint, form, head)

    def calibrator(
        self,
        checkpoint: Path,
        form: WeightForm,
        chats: Sequence[CalibrationChat],
        device: str,
    ) -> Calibrator:
        """See `ModelFamily`."""
        from sglang_omni.models.ming.quantized_folders import build_calibrator

        return build_calibrator(checkpoint, form, chats, device)

    def write_tiny_checkpoint(self, folder: Path, seed: int) -> None:
        """See `ModelFamily`."""
        from sglang_omni.models.ming.tiny import write_tiny_checkpoint

        write_tiny_checkpoint(folder, seed)

    def sglang_args(self) -> Mapping[str, Any]:
        """Leave the encoders out of the thinker: features come from the encoder engines."""
        return {"json_model_override_args": json.dumps({"ming_encoders": "external"})}

    def encoder_width(self, checkpoint: Path) -> int:
        """See `ModelFamily`."""
        return read_encoder_config(checkpoint).hidden_size

    def check_vision_ranks(self, checkpoint: Path, ranks: int) -> None:
        """See `ModelFamily`."""
        from sglang_omni.models.ming.encoders.vision_model import check_ranks

        check_ranks(checkpoint, ranks)

    def check_expert_ranks(self, checkpoint: Path, ep_size: int) -> None:
        """See `ModelFamily`."""
        check_expert_ranks(checkpoint, ep_size)

    def load_vision_encoder(
        self, checkpoint: Path, device: str, dtype: str, *, parallel: bool, graphs: bool
    ) -> "MingVisionModel":
        """See `ModelFamily`."""
        from sglang_omni.models.ming.encoders.vision_model import MingVisionModel

        return MingVisionModel(checkpoint, device, dtype, parallel, graphs)

    def load_audio_encoder(self, checkpoint: Path, device: str, dtype: str) -> "MingAudioModel":
        """See `ModelFamily`."""
        from sglang_omni.models.ming.encoders.audio_model import MingAudioModel

        return MingAudioModel(checkpoint, device, dtype)

    def load_speech_model(self, checkpoint: Path, device: str, dtype: str) -> "MingSpeechModel":
        """See `ModelFamily`."""
        from sglang_omni.models.ming.speech.model import MingSpeechModel
        from sglang_omni.models.ming.speech.modules import load_modules

        modules = load_modules(checkpoint, device, dtype)
        capabilities = self.capabilities(checkpoint)
        return MingSpeechModel(
            modules, capabilities.speech_marks, capabilities.instructions_keep_prompt
        )

    def image_format(self, checkpoint: Path, chat: ChatFormat) -> MingImageFormat:
        """See `ModelFamily`."""
        assert isinstance(chat, MingChatFormat)
        return MingImageFormat(checkpoint, chat)

    def load_image_model(
        self, checkpoint: Path, device: str, dtype: str, backend: str = "auto", fp8: bool = False
    ) -> "MingImageModel":
        """See `ModelFamily`."""
        from sglang_omni.models.ming.image.model import load_image_model

        return load_image_model(checkpoint, device, dtype, backend, fp8)

    def capabilities(self, checkpoint: Path) -> Capabilities:
        """See `ModelFamily`."""
        draws = has_image_output(checkpoint)
        stated = read_capabilities(checkpoint, replace(RELEASED, image_output=draws))
        return replace(stated, image_output=stated.image_output and draws)

    def chat_format(self, checkpoint: Path) -> MingChatFormat:
        """See `ModelFamily`."""
        return MingChatFormat(checkpoint)


FAMILY = MingFamily()
