"""Fill an encoder from the checkpoint, strictly: what is missing, misshapen or unknown is named."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from sglang_omni.models.ming.config import EncoderConfig
from sglang_omni.models.ming.encoders.tensors import (
    AUDIO_PREFIXES,
    DEEPSTACK,
    VISION_PREFIXES,
    audio_tensors,
    encoder_name,
    vision_tensors,
)
from sglang_omni.models.weights import LoadReport, TensorFolder
from sglang_omni.protocol.errors import CheckpointError


class WeightFiller:
    """Takes the tensors of one encoder in any order and puts each where it belongs.

    A parameter of SGLang's parallel layers takes this rank's part of the whole tensor.
    """

    def __init__(
        self, module: nn.Module, shapes: Mapping[str, tuple[int, ...]], prefixes: tuple[str, ...]
    ) -> None:
        self._targets = module.state_dict(keep_vars=True)
        self._shapes, self._prefixes = shapes, prefixes
        self._seen: set[str] = set()
        self._ignored: list[str] = []

    def accepts(self, name: str) -> bool:
        """Whether the checkpoint's tensor `name` belongs to this encoder."""
        bare = encoder_name(name)
        return bare is not None and bare.startswith(self._prefixes)

    def fill(self, name: str, tensor: Tensor) -> None:
        """Take one tensor that `accepts` accepts. Raises `CheckpointError` if it does not fit."""
        bare = encoder_name(name)
        if bare is None or bare not in self._shapes:
            raise CheckpointError(f"tensor {name!r} is not part of the model")
        if tuple(tensor.shape) != self._shapes[bare]:
            shapes = f"{list(tensor.shape)}, the model needs {list(self._shapes[bare])}"
            raise CheckpointError(f"tensor {name!r} has shape {shapes}")
        self._seen.add(bare)
        if bare.startswith(DEEPSTACK):
            self._ignored.append(bare)
        else:
            _put(self._targets[bare], tensor)

    def finish(self) -> LoadReport:
        """Check that nothing is missing, or raise `CheckpointError`; say what was left out."""
        missing = sorted(self._shapes.keys() - self._seen)
        if missing:
            raise CheckpointError(f"tensor {missing[0]!r} is missing ({len(missing)} in all)")
        return LoadReport(len(self._seen) - len(self._ignored), tuple(sorted(self._ignored)))


def vision_filler(module: nn.Module, config: EncoderConfig) -> WeightFiller:
    """A filler for a `VisionEncoder`; the deepstack mergers are checked and left out."""
    return WeightFiller(module, vision_tensors(config.vision, config.hidden_size), VISION_PREFIXES)


def audio_filler(module: nn.Module, config: EncoderConfig) -> WeightFiller:
    """A filler for an `AudioEncoder`."""
    return WeightFiller(module, audio_tensors(config.audio, config.hidden_size), AUDIO_PREFIXES)


def fill_from(checkpoint: Path, filler: WeightFiller) -> LoadReport:
    """Give `filler` all its tensors of a checkpoint folder, file by file."""
    folder = TensorFolder(checkpoint)
    for name in folder:
        if filler.accepts(name):
            filler.fill(name, folder[name])
    return filler.finish()


@torch.no_grad()
def _put(target: Tensor, tensor: Tensor) -> None:
    loader = getattr(target, "weight_loader", None)
    if loader is not None:
        loader(target, tensor)
    else:
        # The patch embedding's convolution kernel lies flattened.
        target.copy_(tensor.reshape(target.shape))
