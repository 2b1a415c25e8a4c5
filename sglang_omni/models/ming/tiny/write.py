"""Write a complete tiny checkpoint in the layout of the released model."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tokenizers import Tokenizer
from torch import Tensor

from sglang_omni.models.checkpoint_files import INDEX_FILE, WEIGHTS_FILE
from sglang_omni.models.ming.config import (
    read_encoder_config,
    read_talker_config,
    read_vae_config,
)
from sglang_omni.models.ming.thinker.hf_config import MingTextConfig
from sglang_omni.models.ming.tiny import configs
from sglang_omni.models.ming.tiny.draw import WeightSampler
from sglang_omni.models.ming.tiny.encoders import sample_encoder_weights
from sglang_omni.models.ming.tiny.files import write_json, write_tensors
from sglang_omni.models.ming.tiny.images import write_image_folders
from sglang_omni.models.ming.tiny.speech import sample_talker_weights, sample_vae_weights
from sglang_omni.models.ming.tiny.thinker import sample_thinker_weights
from sglang_omni.models.ming.tiny.tokenizers import build_talker_tokenizer, build_thinker_tokenizer
from sglang_omni.models.ming.tiny.voices import write_voices
from sglang_omni.protocol.errors import StartupError

SHARDS = 2


def write_tiny_checkpoint(folder: Path, seed: int = 0) -> None:
    """Write a tiny model with random weights to `folder`; equal seeds give equal bytes.

    `seed` is a signed 64-bit number. The folder appears only when it is complete.

    Raises:
        StartupError: The folder is not empty or cannot be written.
    """
    try:
        with _write_atomically(folder.absolute()) as unfinished:
            sampler = WeightSampler(seed)
            _write_thinker(unfinished, sampler)
            _write_talker(unfinished / "talker", sampler)
            width = read_encoder_config(unfinished).hidden_size
            write_image_folders(unfinished, sampler, width)
    except OSError as error:
        raise StartupError(f"cannot write a checkpoint to {folder}: {error}") from error


@contextmanager
def _write_atomically(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder` that is renamed to it at the end, or removed."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StartupError(f"{folder} exists and is not an empty folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temp_dir:
        unfinished = Path(temp_dir) / folder.name
        unfinished.mkdir()
        yield unfinished
        # POSIX allows renaming a folder over an empty one only.
        unfinished.rename(folder)


def _write_thinker(folder: Path, sampler: WeightSampler) -> None:
    """Write thinker, encoders, their configuration and the tokenizer, at the top level."""
    tokenizer = build_thinker_tokenizer()
    config = configs.build_main_config(tokenizer)
    text_config = MingTextConfig(**config["llm_config"])
    tensors = sample_thinker_weights(sampler, text_config, tokenizer) | sample_encoder_weights(
        sampler, config
    )
    write_shards(folder, tensors)
    write_json(folder / "config.json", config)
    write_thinker_tokenizer(folder, tokenizer)


def write_thinker_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Write the thinker's tokenizer, and the media preprocessor configuration."""
    write_json(folder / "preprocessor_config.json", configs.build_preprocessor_config())
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    write_json(folder / "tokenizer_config.json", configs.build_thinker_tokenizer_config(tokenizer))
    write_json(folder / "special_tokens_map.json", configs.THINKER_SPECIAL_TOKENS)


def _write_talker(folder: Path, sampler: WeightSampler) -> None:
    """Write everything below `talker/`; weights are sampled for the configurations as read."""
    llm, vae = folder / "llm", folder / "vae"
    llm.mkdir(parents=True)
    vae.mkdir()
    tokenizer = build_talker_tokenizer()
    (llm / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    tokenizer.model.save(str(llm))
    write_json(llm / "tokenizer_config.json", configs.build_talker_tokenizer_config(tokenizer))
    write_json(llm / "config.json", configs.build_talker_llm_config(tokenizer))
    write_json(folder / "config.json", configs.build_talker_config())
    write_json(vae / "config.json", configs.build_vae_config())
    write_tensors(folder / WEIGHTS_FILE, sample_talker_weights(sampler, read_talker_config(folder)))
    write_tensors(vae / WEIGHTS_FILE, sample_vae_weights(sampler, read_vae_config(vae)))
    write_voices(folder, sampler)


def write_shards(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors in files of about equal size, and the index over them."""
    weight_map: dict[str, str] = {}
    size = 0
    for number, names in enumerate(_split_into_shards(tensors), 1):
        file = f"model-{number:05d}-of-{SHARDS:05d}.safetensors"
        size += write_tensors(folder / file, {name: tensors[name] for name in names})
        weight_map |= dict.fromkeys(names, file)
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}
    write_json(folder / INDEX_FILE, index)


def _split_into_shards(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """Split names, in order, into shards of about equal size."""
    shards: list[list[str]] = [[] for _ in range(SHARDS)]
    total, elements_before = sum(tensor.numel() for tensor in tensors.values()), 0
    for name, tensor in tensors.items():
        shards[elements_before * SHARDS // total].append(name)
        elements_before += tensor.numel()
    return shards
