"""Load an encoder from a checkpoint, strictly; errors name the tensor."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from sglang_omni.models.ming.config import EncoderConfig
from sglang_omni.models.ming.encoders.tensors import (
    AUDIO_PREFIXES,
    DEEPSTACK_PREFIX,
    VISION_PREFIXES,
    list_audio_tensors,
    list_vision_tensors,
    strip_encoder_prefix,
)
from sglang_omni.models.weights import LoadReport, TensorFolder
from sglang_omni.protocol.errors import CheckpointError


class WeightFiller:
    """Copy the tensors of one encoder, in any order, to its parameters.

    A parameter of SGLang's parallel layers takes this rank's part of the full tensor.
    """

    def __init__(
        self, module: nn.Module, shapes: Mapping[str, tuple[int, ...]], prefixes: tuple[str, ...]
    ) -> None:
        self._targets = module.state_dict(keep_vars=True)
        self._shapes, self._prefixes = shapes, prefixes
        self._seen: set[str] = set()
        self._ignored: list[str] = []

    def accepts(self, name: str) -> bool:
        """Whether the checkpoint tensor `name` belongs to this encoder."""
        stripped = strip_encoder_prefix(name)
        return stripped is not None and stripped.startswith(self._prefixes)

    def fill(self, name: str, tensor: Tensor) -> None:
        """Copy one accepted tensor; raise `CheckpointError` if it does not fit."""
        stripped = strip_encoder_prefix(name)
        if stripped is None or stripped not in self._shapes:
            raise CheckpointError(f"unexpected tensor {name!r}: it is not part of the model")
        if tuple(tensor.shape) != self._shapes[stripped]:
            shapes = f"{list(tensor.shape)}; expected {list(self._shapes[stripped])}"
            raise CheckpointError(f"tensor {name!r} has shape {shapes}")
        self._seen.add(stripped)
        if stripped.startswith(DEEPSTACK_PREFIX):
            self._ignored.append(stripped)
        else:
            _copy_tensor(self._targets[stripped], tensor)

    def finish(self) -> LoadReport:
        """Raise `CheckpointError` if a tensor is missing; return what was loaded and ignored."""
        missing = sorted(self._shapes.keys() - self._seen)
        if missing:
            raise CheckpointError(
                f"tensor {missing[0]!r} is missing ({len(missing)} missing in total)"
            )
        return LoadReport(len(self._seen) - len(self._ignored), tuple(sorted(self._ignored)))


def build_vision_filler(module: nn.Module, config: EncoderConfig) -> WeightFiller:
    """Return a filler for a `VisionEncoder`; deepstack mergers are checked and ignored."""
    return WeightFiller(
        module, list_vision_tensors(config.vision, config.hidden_size), VISION_PREFIXES
    )


def build_audio_filler(module: nn.Module, config: EncoderConfig) -> WeightFiller:
    """Return a filler for an `AudioEncoder`."""
    return WeightFiller(
        module, list_audio_tensors(config.audio, config.hidden_size), AUDIO_PREFIXES
    )


def fill_from_checkpoint(checkpoint: Path, filler: WeightFiller) -> LoadReport:
    """Fill an encoder with all its tensors of a checkpoint folder, file by file."""
    folder = TensorFolder(checkpoint)
    for name in folder:
        if filler.accepts(name):
            filler.fill(name, folder[name])
    return filler.finish()


@torch.no_grad()
def _copy_tensor(target: Tensor, tensor: Tensor) -> None:
    loader = getattr(target, "weight_loader", None)
    if loader is not None:
        loader(target, tensor)
    else:
        # The convolution kernel of the patch embedding is stored unflattened.
        target.copy_(tensor.reshape(target.shape))
