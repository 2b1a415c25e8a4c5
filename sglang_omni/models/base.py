"""What a model family brings: the interface between the server and the models that it serves.

The server knows families; a family knows nothing of the server. A family implements the abstract
members, and overrides the others where it has more than their defaults. Members that the API
process uses import neither torch nor sglang; `load_*` are called in an engine's own process.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_omni.models.calibration import CalibrationChat, Calibrator
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.chat import ChatFormat
from sglang_omni.models.image import ImageFormat, ImageModel
from sglang_omni.models.media_format import MediaFormat
from sglang_omni.models.quantized_folder import QuantizedFolder
from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.models.speech_text import SpeechText
from sglang_omni.protocol.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from sglang_omni.models.encoder import ModalityModel
    from sglang_omni.models.speech import SpeechModel


class WeightForm(StrEnum):
    """How `sgl-omni quantize` stores the thinker's matrices."""

    FP8 = "fp8"
    """FP8 in blocks of 128 x 128."""
    INT4 = "int4"
    """Experts in four bits around a fixed zero, other matrices in FP8."""
    INT4_ASYMMETRIC = "int4_asymmetric"
    """The same, with a zero for each group."""


class HeadForm(StrEnum):
    """How `sgl-omni quantize` stores the thinker's output head."""

    FP8 = "fp8"
    """FP8 in blocks of 128 x 128."""
    BF16 = "bf16"
    """As it is."""


class ModelFamily(ABC):
    """One family of checkpoints that share prompt format, media format and modules."""

    media_format: MediaFormat
    """How images, videos and audio are taken, and what they cost in tokens."""
    speech_text: SpeechText
    """Text front end, styles and descriptions."""
    drawing_model: str | None = None
    """Name of a released checkpoint of the family that draws images, to recommend; None if there is
    none."""
    thinker_factory: str | None = None
    """Factory ("module:function") of a `StreamWorker` or `StepWorker` that is the thinker; None for
    SGLang, which then knows the model by the entry-point group `sglang.srt.plugins`."""

    @abstractmethod
    def capabilities(self, checkpoint: Path) -> Capabilities:
        """Return what the checkpoint can do. Raises `CheckpointError`."""

    @abstractmethod
    def chat_format(self, checkpoint: Path) -> ChatFormat:
        """Return prompt, tool and reasoning formats. Raises `CheckpointError`."""

    @abstractmethod
    def voice_names(self, checkpoint: Path) -> tuple[str, ...]:
        """Return the names of the preset voices; the first is the default.

        Raises:
            CheckpointError: The checkpoint names no voice.
        """

    @abstractmethod
    def load_speech_model(self, checkpoint: Path, device: str, dtype: str) -> "SpeechModel":
        """Load the speech model of a checkpoint.

        Raises:
            CheckpointError: The checkpoint is incomplete or names no voice.
            ConfigError: The dtype is not supported.
        """

    @abstractmethod
    def load_vision_encoder(
        self, checkpoint: Path, device: str, dtype: str, *, parallel: bool, graphs: bool
    ) -> "ModalityModel":
        """Load this process's part of the vision encoder.

        With `parallel` its layers are SGLang's, in the tensor-parallel group that the process has
        joined. With `graphs` it captures CUDA graphs on a GPU. Raises `CheckpointError`.
        """

    @abstractmethod
    def load_audio_encoder(self, checkpoint: Path, device: str, dtype: str) -> "ModalityModel":
        """Load the audio encoder. It never imports sglang. Raises `CheckpointError`."""

    @abstractmethod
    def encoder_width(self, checkpoint: Path) -> int:
        """Return the width of a feature row. Raises `CheckpointError`."""

    def image_format(self, checkpoint: Path, chat: ChatFormat) -> ImageFormat:
        """Return how the checkpoint is asked for images, if it draws any.

        `chat` is the checkpoint's `chat_format`. Raises `CheckpointError`.
        """
        raise CheckpointError(f"{checkpoint}: this model family draws no images")

    def load_image_model(
        self, checkpoint: Path, device: str, dtype: str, backend: str = "auto", fp8: bool = False
    ) -> ImageModel:
        """Load the image model of a checkpoint, if `Capabilities.image_output` says it has one.

        Args:
            checkpoint: The model folder.
            device: A device of PyTorch.
            dtype: "float32" or "bfloat16".
            backend: "reference" is the plain implementation, "fast" the faster one, and "auto" the
                faster one on a GPU.
            fp8: Whether large products are in FP8, which changes the images a little.

        Raises:
            CheckpointError: The checkpoint is incomplete, or draws no images.
            ConfigError: The dtype or the back end is not supported.
        """
        raise CheckpointError(f"{checkpoint}: this model family draws no images")

    def voice_fingerprint(self, checkpoint: Path) -> str:
        """Return a digest of whatever gives a stored voice its meaning, such as an audio VAE.

        Raises:
            CheckpointError: The files cannot be read.
        """
        return type(self).__name__

    def check_vision_ranks(self, checkpoint: Path, ranks: int) -> None:
        """Check that the vision encoder can be split over tensor-parallel ranks.

        Raises:
            CheckpointError: The configuration is missing or malformed.
            ConfigError: The encoder cannot be split evenly.
        """
        if ranks > 1:
            raise ConfigError("this model family's vision encoder runs on one rank")

    def check_expert_ranks(self, checkpoint: Path, ep_size: int) -> None:
        """Check that `ep_size` groups of ranks can share the thinker's routed experts.

        Raises:
            CheckpointError: The configuration is missing or malformed.
            ConfigError: They cannot.
        """
        if ep_size > 1:
            raise ConfigError(
                "thinker.ep_size: this model family's thinker has no expert parallelism"
            )

    def sglang_args(self) -> Mapping[str, Any]:
        """Return SGLang server arguments that the thinker needs beside the server's own."""
        return {}

    def sizes(self, checkpoint: Path) -> CheckpointSizes:
        """Return the sizes of the checkpoint's parts, for placement. Raises `CheckpointError`."""
        raise CheckpointError(f"{checkpoint}: placement needs sizes; use --placement manual")

    def quantized_folders(
        self, checkpoint: Path, form: WeightForm, head: HeadForm
    ) -> tuple[QuantizedFolder, ...]:
        """Return the folders of the checkpoint that a form changes; the checkpoint itself first.

        Raises `CheckpointError`.
        """
        raise CheckpointError("this model family has no quantized form")

    def calibrator(
        self,
        checkpoint: Path,
        form: WeightForm,
        chats: Sequence[CalibrationChat],
        device: str,
    ) -> Calibrator:
        """Return what quantizes a part of the checkpoint, in four bits, by chats.

        Args:
            checkpoint: The model folder, in bfloat16.
            form: A form in four bits.
            chats: Whole chats of text.
            device: A device of PyTorch, which computes.

        Raises:
            CheckpointError: The checkpoint is incomplete, or its family has no calibration.
            InvalidRequest: The messages do not make a chat.
            StartupError: There is no chat, or no such device.
        """
        raise CheckpointError("this model family has no calibration")

    def write_tiny_checkpoint(self, folder: Path, seed: int) -> None:
        """Write a checkpoint of tiny sizes with random weights, for tests and trials."""
        raise CheckpointError("this model family has no tiny checkpoint")
