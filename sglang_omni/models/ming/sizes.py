"""Read the sizes of a checkpoint's parts from the headers of its files. Does not import torch."""

from math import prod
from pathlib import Path

from safetensors import safe_open

from sglang_omni.models.checkpoint_files import QUANTIZATION_KEY, list_shard_files
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.encoders.tensors import AUDIO_PREFIXES, strip_encoder_prefix
from sglang_omni.models.ming.image.config import (
    CONNECTOR,
    GLYPHS,
    HEAD,
    TRANSFORMER,
    VAE,
    has_image_output,
)
from sglang_omni.models.ming.image.fp8_layout import has_fp8_transformer, is_image_matrix
from sglang_omni.models.ming.speech.vae_tensors import is_unused_tensor
from sglang_omni.models.ming.thinker.fp8_layout import is_block_fp8, is_quantized
from sglang_omni.models.ming.thinker.int4.layout import (
    is_expert_matrix,
    is_int4,
    is_int4_tensor,
)
from sglang_omni.models.ming.thinker.int4.published_configs import rewrite_quantization
from sglang_omni.models.ming.working_memory import read_working_memory
from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.protocol.errors import CheckpointError

ELEMENT_BYTES = {
    "F64": 8,
    "F32": 4,
    "BF16": 2,
    "F16": 2,
    "F8_E4M3": 1,
    "I64": 8,
    "I32": 4,
    "I16": 2,
}
# Weights that are not quantized are served in bfloat16, whatever type the file has.
SERVED_BYTES = 2


def read_sizes(checkpoint: Path) -> CheckpointSizes:
    """Sum the tensor sizes in the headers of a checkpoint's files. Raises `CheckpointError`."""
    config = read_json(checkpoint / "config.json")
    quantization = rewrite_quantization(config.get(QUANTIZATION_KEY), None)
    int4 = is_int4(quantization)
    fp8 = not int4 and is_block_fp8(quantization)
    parts = {"matrices": 0, "rest": 0, "image_encoder": 0, "audio_encoder": 0}
    expert_matrices = 0
    for path in list_shard_files(checkpoint):
        for name, size in _served_sizes(path, fp8 or int4):
            parts[_part(name)] += size
            expert_matrices += size if is_expert_matrix(name) else 0
    text = config["llm_config"]
    head = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    layers, kv_heads = text["num_hidden_layers"], text["num_key_value_heads"]
    image, image_matrices = _sum_image_files(checkpoint) if has_image_output(checkpoint) else (0, 0)
    return CheckpointSizes(
        matrices=parts["matrices"],
        rest=parts["rest"],
        image_encoder=parts["image_encoder"],
        audio_encoder=parts["audio_encoder"],
        talker=_sum_speech_files(checkpoint / "talker"),
        kv_bytes=2 * SERVED_BYTES * layers * kv_heads * head,
        kv_heads=kv_heads,
        context=text["max_position_embeddings"],
        fp8=fp8,
        working=read_working_memory(checkpoint, text),
        int4=int4,
        expert_matrices=expert_matrices,
        image=image,
        image_matrices=image_matrices,
    )


def _sum_image_files(checkpoint: Path) -> tuple[int, int]:
    """Return the bytes of the image folders as served, and of those that could become FP8.

    Tensors of `.pt` files count as stored.
    """
    files = [
        path
        for name in (HEAD, CONNECTOR, VAE)
        for path in (checkpoint / name).glob("*.safetensors")
    ]
    transformer = [
        pair
        for path in (checkpoint / TRANSFORMER).glob("*.safetensors")
        for pair in _served_sizes(path, False)
    ]
    glyphs = (checkpoint / GLYPHS).glob("byt5_m*/byt5_m*.pt")
    total = sum(size for path in files for _, size in _served_sizes(path, False))
    total += sum(size for _, size in transformer) + sum(path.stat().st_size for path in glyphs)
    matrices = sum(size for name, size in transformer if is_image_matrix(name))
    return total, 0 if has_fp8_transformer(checkpoint) else matrices


def _part(name: str) -> str:
    encoder = strip_encoder_prefix(name)
    if encoder is not None:
        return "audio_encoder" if encoder.startswith(AUDIO_PREFIXES) else "image_encoder"
    is_matrix = is_quantized(name, fp8_head=True) or is_int4_tensor(name)
    return "matrices" if is_matrix else "rest"


def _sum_speech_files(folder: Path) -> int:
    """Return the bytes of the talker and its VAE as served, without what the VAE does not load."""
    vae = folder / "vae"
    return sum(
        size
        for path in sorted(folder.rglob("*.safetensors"))
        for name, size in _served_sizes(path, False)
        if path.parent != vae or not is_unused_tensor(name)
    )


def _served_sizes(path: Path, quantized: bool) -> list[tuple[str, int]]:
    """Return the tensor names of a file and their bytes as served."""
    try:
        with safe_open(path, framework="numpy") as file:
            views = [(name, file.get_slice(name)) for name in file.keys()]  # noqa: SIM118
            return [
                (name, prod(view.get_shape()) * _element_bytes(name, view.get_dtype(), quantized))
                for name, view in views
            ]
    except (OSError, KeyError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error


def _element_bytes(name: str, dtype: str, quantized: bool) -> int:
    is_stored_form = is_quantized(name) or is_int4_tensor(name) or name.endswith("_scale_inv")
    if quantized and is_stored_form:
        return ELEMENT_BYTES[dtype]
    return min(SERVED_BYTES, ELEMENT_BYTES[dtype])
