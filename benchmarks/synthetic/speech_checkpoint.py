"""Write a checkpoint whose talker and VAE have the released shapes and random weights.

    python -m benchmarks.synthetic.speech_checkpoint DIR
    sgl-omni serve --version v1 --model-path DIR --text-only
    python -m benchmarks.serving.speech --clients 1,16,64 --out FILE

The thinker is that of the tiny checkpoint, so that only speech is measured. It answers with a few
sentences; with `--talkative` its answers never end by themselves. The stop head fires at random,
after a mean of `--patches` patches of 320 ms.
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

from benchmarks.talker.shapes import TALKER, VAE
from sglang_omni.models.checkpoint_files import INDEX_FILE, WEIGHTS_FILE
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.config import (
    TalkerConfig,
    VAEConfig,
    read_talker_config,
    read_vae_config,
)
from sglang_omni.models.ming.tiny.draw import WeightSampler
from sglang_omni.models.ming.tiny.files import write_json, write_tensors
from sglang_omni.models.ming.tiny.speech import STOP_STD, sample_talker_weights, sample_vae_weights
from sglang_omni.models.ming.tiny.thinker import END, HEAD, Channel
from sglang_omni.models.ming.tiny.write import write_tiny_checkpoint


class FastRandomWeights(WeightSampler):
    """Normal numbers of PyTorch's own generator, which draws a billion of them in seconds."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(seed=0)
        self._device = device

    def normal(self, name: str, shape: tuple[int, ...], std: float = 1.0) -> Tensor:
        """Draw float32 numbers on the CPU. They follow from `name`, and from the type of device."""
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
        generator = torch.Generator(self._device).manual_seed(seed)
        return (torch.randn(shape, generator=generator, device=self._device) * std).cpu()


def write_speech_checkpoint(
    folder: Path, talker: TalkerConfig, vae: VAEConfig, patches: float, device: torch.device
) -> None:
    """Write a tiny checkpoint to `folder` whose talker and VAE have these shapes."""
    write_tiny_checkpoint(folder)
    speech = folder / "talker"
    # The fields of the configurations are named like the keys of the files.
    update_json(speech / "llm" / "config.json", asdict(talker.llm))
    flow, aggregator = asdict(talker.flow), asdict(talker.aggregator)
    update_json(speech / "config.json", {"flowmodel": flow, "aggregator": aggregator})
    sides = {"enc_kwargs": vae.encoder, "dec_kwargs": vae.decoder}
    backbones = {key: {"backbone": asdict(side.backbone)} for key, side in sides.items()}
    update_json(speech / "vae" / "config.json", backbones)
    draw = FastRandomWeights(device)
    weights = sample_talker_weights(draw, read_talker_config(speech), stop_logit(patches))
    write_tensors(speech / WEIGHTS_FILE, weights)
    write_tensors(
        speech / "vae" / WEIGHTS_FILE, sample_vae_weights(draw, read_vae_config(speech / "vae"))
    )


def never_end_answers(folder: Path) -> None:
    """Change the thinker of a tiny checkpoint so that answers never end by themselves."""
    shard = folder / read_json(folder / INDEX_FILE)["weight_map"][HEAD]
    tensors = load_file(shard)
    end = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(END)
    # This weight makes the end token likely after a full stop; without it, it is unlikely.
    tensors[HEAD][end, Channel.STOPPED] = 0.0
    write_tensors(shard, tensors)


def stop_logit(patches: float) -> float:
    """Return the mean logit with which one patch in `patches` is the last."""
    return STOP_STD * NormalDist().inv_cdf(1 / patches)


def update_json(path: Path, values: Mapping[str, Any]) -> None:
    """Set values of a JSON file, also inside objects, and keep the others."""
    write_json(path, merge_json(read_json(path), values))


def merge_json(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `values` merged into it, also inside objects."""
    nested = {
        key: merge_json(base[key], value)
        for key, value in values.items()
        if isinstance(value, Mapping)
    }
    return {**base, **values, **nested}


def main() -> None:
    """Write the checkpoint."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--patches", type=float, default=16.0)
    parser.add_argument("--talkative", action="store_true", help="answers end only at `max_tokens`")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    write_speech_checkpoint(options.folder, TALKER, VAE, options.patches, device)
    if options.talkative:
        never_end_answers(options.folder)
    print(f"wrote {options.folder}")


if __name__ == "__main__":
    main()
