"""Write a checkpoint whose talker and VAE have the released shapes and random weights.

    python -m benchmarks.speech_checkpoint DIR
    sgl-omni serve --version v1 --model-path DIR --text-only
    python -m benchmarks.speech_serving --clients 1,16,64 --out FILE

The thinker is the tiny checkpoint's, so that speech is all that is measured; it answers with a
sentence or a few, with `--talkative` it never comes to an end. The stop head fires at random, after
`--patches` patches of 320 ms in the mean.
"""

import argparse
import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import NormalDist
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from benchmarks.speech_shapes import TALKER, VAE
from sglang_omni.models.checkpoint_files import INDEX_FILE, WEIGHTS_FILE
from sglang_omni.models.ming.config import (
    TalkerConfig,
    VAEConfig,
    read_json,
    read_talker_config,
    read_vae_config,
)
from sglang_omni.models.ming.tiny.draw import WeightSampler
from sglang_omni.models.ming.tiny.speech import STOP_STD, sample_talker_weights, sample_vae_weights
from sglang_omni.models.ming.tiny.thinker import END, HEAD, Channel
from sglang_omni.models.ming.tiny.write import write_json, write_tensors, write_tiny_checkpoint


class QuickDraw(WeightSampler):
    """Normal numbers of torch's own generator: a thousand million of them in seconds."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(seed=0)
        self._device = device

    def normal(self, name: str, shape: tuple[int, ...], std: float = 1.0) -> Tensor:
        """Float32 numbers on the CPU that follow from `name`, on one kind of device."""
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
        generator = torch.Generator(self._device).manual_seed(seed)
        return (torch.randn(shape, generator=generator, device=self._device) * std).cpu()


def write_speech_checkpoint(
    folder: Path, talker: TalkerConfig, vae: VAEConfig, patches: float, device: torch.device
) -> None:
    """Write a tiny checkpoint to `folder` whose speaking half has these shapes."""
    write_tiny_checkpoint(folder)
    speech = folder / "talker"
    # The configurations' fields have the names of the files' keys.
    change(speech / "llm" / "config.json", asdict(talker.llm))
    flow, aggregator = asdict(talker.flow), asdict(talker.aggregator)
    change(speech / "config.json", {"flowmodel": flow, "aggregator": aggregator})
    sides = {"enc_kwargs": vae.encoder, "dec_kwargs": vae.decoder}
    backbones = {key: {"backbone": asdict(side.backbone)} for key, side in sides.items()}
    change(speech / "vae" / "config.json", backbones)
    draw = QuickDraw(device)
    weights = sample_talker_weights(draw, read_talker_config(speech), stop_logit(patches))
    write_tensors(speech / WEIGHTS_FILE, weights)
    write_tensors(
        speech / "vae" / WEIGHTS_FILE, sample_vae_weights(draw, read_vae_config(speech / "vae"))
    )


def talk_on(folder: Path) -> None:
    """Have the thinker of a tiny checkpoint never end an answer by itself."""
    shard = folder / read_json(folder / INDEX_FILE)["weight_map"][HEAD]
    tensors = load_file(shard)
    end = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(END)
    # What makes the end likely after a full stop; without it the end is muted as everywhere.
    tensors[HEAD][end, Channel.STOPPED] = 0.0
    write_tensors(shard, tensors)


def stop_logit(patches: float) -> float:
    """The mean logit with which one patch in so many is the last."""
    return STOP_STD * NormalDist().inv_cdf(1 / patches)


def change(path: Path, values: Mapping[str, Any]) -> None:
    """Set values of a JSON file, and leave the others, also inside objects."""
    write_json(path, merged(read_json(path), values))


def merged(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `values` in it, objects merged."""
    nested = {
        key: merged(base[key], value) for key, value in values.items() if isinstance(value, Mapping)
    }
    return {**base, **values, **nested}


def main() -> None:
    """Write the checkpoint."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--patches", type=float, default=16.0)
    parser.add_argument(
        "--talkative", action="store_true", help="answers are as long as they may be"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    write_speech_checkpoint(options.folder, TALKER, VAE, options.patches, device)
    if options.talkative:
        talk_on(options.folder)
    print(f"wrote {options.folder}")


if __name__ == "__main__":
    main()
