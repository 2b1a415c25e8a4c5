"""Write a complete tiny checkpoint in the released model's layout."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from tokenizers import Tokenizer
from torch import Tensor

from sglang_omni.models.checkpoint_files import INDEX, SINGLE
from sglang_omni.models.ming.config import read_talker_config, read_vae_config
from sglang_omni.models.ming.encoders.tensors import POSITIONAL_EMBEDDING
from sglang_omni.models.ming.speech.talker import ROTARY_BUFFERS
from sglang_omni.models.ming.thinker.hf_config import MingTextConfig
from sglang_omni.models.ming.tiny import configs
from sglang_omni.models.ming.tiny.draw import Draw
from sglang_omni.models.ming.tiny.encoders import encoder_weights
from sglang_omni.models.ming.tiny.speech import WINDOW, talker_weights, vae_weights
from sglang_omni.models.ming.tiny.thinker import thinker_weights
from sglang_omni.models.ming.tiny.tokenizers import build_talker_tokenizer, build_thinker_tokenizer
from sglang_omni.models.ming.tiny.voices import write_voices
from sglang_omni.protocol.errors import StartupError

SHARDS = 2
# Tables that the released files keep in float32; everything else is bfloat16.
FLOAT32 = (POSITIONAL_EMBEDDING, WINDOW, *ROTARY_BUFFERS)


def write_tiny_checkpoint(folder: Path, seed: int = 0) -> None:
    """Write a tiny model with random weights to `folder`; the same bytes for the same `seed`.

    `seed` is a signed 64-bit number. The files appear all at once. Raises `StartupError` when
    the folder holds something already or cannot be written.
    """
    try:
        with _appearing_at_once(folder.absolute()) as unfinished:
            draw = Draw(seed)
            _write_thinker(unfinished, draw)
            _write_talker(unfinished / "talker", draw)
    except OSError as error:
        raise StartupError(f"cannot write a checkpoint to {folder}: {error}") from error


@contextmanager
def _appearing_at_once(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` that takes its name at the end, or is removed."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StartupError(f"{folder} exists and is not an empty folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        unfinished = Path(scratch) / folder.name
        unfinished.mkdir()
        yield unfinished
        # POSIX lets a folder take the place of an empty one, and of nothing else.
        unfinished.rename(folder)


def _write_thinker(folder: Path, draw: Draw) -> None:
    """Thinker, encoders, their configuration and the tokenizer, at the top of the checkpoint."""
    tokenizer = build_thinker_tokenizer()
    config = configs.main_config(tokenizer)
    text_config = MingTextConfig(**config["llm_config"])
    tensors = thinker_weights(draw, text_config, tokenizer) | encoder_weights(draw, config)
    write_shards(folder, tensors)
    write_json(folder / "config.json", config)
    write_thinker_tokenizer(folder, tokenizer)


def write_thinker_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """The thinker's tokenizer, and how media become its inputs."""
    write_json(folder / "preprocessor_config.json", configs.preprocessor_config())
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    write_json(folder / "tokenizer_config.json", configs.thinker_tokenizer_config(tokenizer))
    write_json(folder / "special_tokens_map.json", configs.THINKER_SPECIAL_TOKENS)


def _write_talker(folder: Path, draw: Draw) -> None:
    """Everything below `talker/`. The weights follow from the configurations as they are read."""
    llm, vae = folder / "llm", folder / "vae"
    llm.mkdir(parents=True)
    vae.mkdir()
    tokenizer = build_talker_tokenizer()
    (llm / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    tokenizer.model.save(str(llm))
    write_json(llm / "tokenizer_config.json", configs.talker_tokenizer_config(tokenizer))
    write_json(llm / "config.json", configs.talker_llm_config(tokenizer))
    write_json(folder / "config.json", configs.talker_config())
    write_json(vae / "config.json", configs.vae_config())
    write_tensors(folder / SINGLE, talker_weights(draw, read_talker_config(folder)))
    write_tensors(vae / SINGLE, vae_weights(draw, read_vae_config(vae)))
    write_voices(folder, draw)


def write_shards(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors in files of about equal size, and the index over them."""
    weight_map: dict[str, str] = {}
    size = 0
    for number, names in enumerate(_shards(tensors), 1):
        file = f"model-{number:05d}-of-{SHARDS:05d}.safetensors"
        size += write_tensors(folder / file, {name: tensors[name] for name in names})
        weight_map |= dict.fromkeys(names, file)
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}
    write_json(folder / INDEX, index)


def _shards(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """Names in their given order, cut where the elements before them pass an equal share."""
    shards: list[list[str]] = [[] for _ in range(SHARDS)]
    total, before = sum(tensor.numel() for tensor in tensors.values()), 0
    for name, tensor in tensors.items():
        shards[before * SHARDS // total].append(name)
        before += tensor.numel()
    return shards


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> int:
    """Write a file of tensors in the dtypes of the released ones; returns their size in bytes."""
    stored = {
        name: tensor.to(torch.float32 if name in FLOAT32 else torch.bfloat16).contiguous()
        for name, tensor in tensors.items()
    }
    # Not `save_file`, which keeps the file from everyone but its owner.
    path.write_bytes(save(stored, metadata={"format": "pt"}))
    return sum(tensor.nbytes for tensor in stored.values())


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
